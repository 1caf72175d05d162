/* What can touch: the cloth's triangles, edges and particles, and those of collider meshes behind them, with one numbering of
 * points, edges and triangles; and the search for pairs that come near each other during a step. */
#ifndef TOILE_SKIN_H
#define TOILE_SKIN_H

#include "ccd.h"
#include "model.h"
#include "solid.h"
#include "tree.h"

/* A vertex and a triangle, or two edges. The key orders pairs the same way however they were found. */
typedef struct toile_pair {
    uint64_t key; /* kind, then the two primitives: kind << 62 | first << 31 | second */
    int point[4]; /* as ccd.h wants them */
    /* what is known of it; below 0: nothing. Who finds a pair knows nothing, who moves points says so (self.c, guard.c) */
    float clear;  /* no nearer than this at the begin, m */
    float time;   /* of impact on the way to the end, in parts of the step; above 1: none */
} toile_pair;

static inline toile_ccd_kind toile_pair_kind(const toile_pair *pair) {
    return pair->key >> 62 ? TOILE_CCD_EE : TOILE_CCD_VF;
}

typedef struct toile_pairs {
    int count, capacity;
    toile_pair *pair;
} toile_pairs;

/* A point's triangle crosses one of the cloth, or of a solid. */
enum { TOILE_TANGLED_CLOTH = 1, TOILE_TANGLED_SOLID = 2 };

/* A collider mesh in the skin. */
typedef struct toile_skin_solid {
    int solid;                   /* of the simulation */
    int point_begin, triangle_begin;
    toile_tree tree;
} toile_skin_solid;

typedef struct toile_skin {
    toile_memory *memory;
    int cloth_points, point_count, cloth_edges, edge_count, cloth_triangles, triangle_count;
    int *triangle;        /* points, (triangle_count x 3) */
    int *edge;            /* points, (edge_count x 2) */
    int *edge_of;         /* edge from each corner of a triangle to the next, (triangle_count x 3) */
    int *beside;          /* the first two triangles at an edge, -1: none, (edge_count x 2) */
    unsigned char *owns;  /* corners, then edges, that are this triangle's to test, as bits, (triangle_count) */
    int *point_owner, *edge_owner; /* the triangle whose they are, -1: none, (point_count), (edge_count) */
    int *around_begin, *around; /* cloth triangles around each cloth point */
    int *same;            /* one number for points that are, or are to be sewn to be, one, (point_count) */
    bool sewing;          /* are any two of these not one yet? */
    int *solid_of;        /* of each point: index in solids, -1 cloth, (point_count) */
    double *mean_edge;    /* of the edges at a cloth point at the start, m, (cloth_points) */
    toile_tree tree;      /* of the cloth */
    toile_skin_solid *solids;
    int solid_count;

    /* during a step */
    double *begin, *end;  /* points, m, (point_count x 4) */
    bool listed;          /* pairs were found for `at` (toile_skin_search); whoever changes shape or state says no */
    double *at;           /* the ends that pairs were found for, m, (point_count x 4) */
    unsigned char *fresh; /* points, then triangles, that are now elsewhere, (point_count + triangle_count) */
    float *normal;        /* of triangles there, unit, (triangle_count x 4) */
    float *hold;          /* how far a cloth point may drift before the triangles around it turn, m, (cloth_points) */
    unsigned char *loose; /* cloth points that are never calm, (cloth_points) */
    unsigned char *calm;  /* cloth points whose triangles cannot touch each other, (cloth_points) */
    unsigned char *tangled; /* TOILE_TANGLED_... of points whose triangles cross others at the end, (point_count) */
    toile_pairs crossed;    /* those pairs of triangles, (first, second) in the key; unsorted */
    int crossings[2];       /* pairs of triangles that do: cloth with cloth, cloth with a solid */
    bool flooded;           /* the last search found more than cloth can have: it has flown apart. There are no pairs then */
    struct toile_finder *finders; /* one per thread */
    int finder_count;
    int *task;            /* node pairs to look at, (task_capacity x 3): solid or -1, node, node */
    int task_capacity;
} toile_skin;

/* Solids may be null. */
toile_status toile_skin_make(toile_memory *memory, const toile_model *model, const toile_solid *solids, int solid_count,
                             int threads, toile_skin *skin, toile_error *error);
void toile_skin_free(toile_skin *skin);

typedef struct toile_reach {
    double cloth, solid; /* m; negative: not those */
    double drift;        /* how far points may be from where they were looked for before they are looked for again, m; so much
                          * more than `reach` is looked for, on both sides */
} toile_reach;

/* All pairs that may come within `reach` of each other while points move straight from `begin` to `end`, but none of a point or
 * edge with its neighbours. Unsorted. What did not move by more than the drift since the last search into `pairs`
 * keeps the pairs that it has (lists with a skin: Verlet 1967); `same_begin` if only ends have changed since.
 * With `crossings` also says which points are tangled at the end; else it leaves none. */
toile_status toile_skin_search(toile_skin *skin, const toile_model *model, toile_reach reach, bool same_begin, bool crossings,
                               int threads, toile_pairs *pairs, toile_error *error);

/* Is what is nearest of a pair at the begin also nearest of what surrounds it, up to this slope? Where surfaces lie on each
 * other most pairs are not, and only say sideways what another pair says straight. */
bool toile_pair_is_least(const toile_skin *skin, const toile_pair *pair, const toile_near *near, double slope);

/* How many triangles of the cloth, at x (n x 4), the line from a to b passes through, but those around a particle. Where it was
 * looked for last. */
int toile_skin_layers(const toile_skin *skin, const double *x, const double a[3], const double b[3], int but);

/* Counts a crossing of triangles a (of cloth) and b, and marks their points. */
void toile_skin_mark_crossing(toile_skin *skin, int a, int b);

/* Room for so many pairs that a garment in ordinary folds needs no more later; and more than one crushed into a ball has. */
int toile_skin_usual_pairs(const toile_skin *skin);
int toile_skin_most_pairs(const toile_skin *skin);

/* By key. */
void toile_pairs_sort(toile_pairs *pairs);

/* The four points of a pair, at the begin or end. */
static inline void toile_pair_points(const double *x, const toile_pair *pair, double out[4][3]) {
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            out[i][k] = x[4 * (size_t)pair->point[i] + (size_t)k];
}

#endif
