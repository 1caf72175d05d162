/* Do surfaces cross? Exact answers about triangle meshes, for judging a finished frame. Shares no code with
 * the simulator's collision handling, so that neither can hide a mistake of the other.
 *
 * What is counted. Triangles are closed sets: a pair that merely touches counts. Two triangles of one surface
 * that share a vertex count only if they meet anywhere else than there; two that share an edge only if they
 * lie folded flat onto each other; two on the same three vertices always. In a frame, vertices of a garment at exactly
 * the same place are one: seams made them so. Triangles without area are left out
 * of all pairs (their edges belong to neighbours too) and counted on their own.
 *
 * Every decision is the exact sign of a determinant of the given doubles, so float32 positions are judged as
 * they are stored. Coordinates must be finite; non-zero ones between about 1e-80 and 1e80 in size. */
#ifndef TOILE_INTERSECT_H
#define TOILE_INTERSECT_H

#include "error.h"
#include "frame.h"
#include "memory.h"
#include "scene.h"

#include <stdbool.h>
#include <stdint.h>

/* Counting stops here: a crumpled frame has a number of pairs that grows with the square of its triangles. */
#define TOILE_INTERSECT_LIMIT 1000000

typedef struct toile_surface toile_surface;

/* Copies what it is given. positions (vertex_count x 3), triangles (triangle_count x 3). */
toile_status toile_surface_create(toile_memory *memory, int vertex_count, const double *positions,
                                  int triangle_count, const int *triangles, toile_surface **surface,
                                  toile_error *error);
void toile_surface_free(toile_surface *surface);

/* Triangles without area. */
int toile_surface_degenerate(const toile_surface *surface);
/* Every edge is used once in each direction: there is an inside. */
bool toile_surface_closed(const toile_surface *surface);
/* A point on the surface is not inside. Only for a closed surface whose triangles run counter-clockwise seen
 * from outside. */
bool toile_surface_contains(const toile_surface *surface, const double point[3]);

int64_t toile_intersect_self(const toile_surface *surface);
int64_t toile_intersect_pair(const toile_surface *a, const toile_surface *b);
/* Calls for every pair, a triangle of each; a == b: each pair once, the smaller triangle first. */
typedef void toile_meet(void *user, int triangle, int other);
int64_t toile_intersect_each(const toile_surface *a, const toile_surface *b, toile_meet *meet, void *user);

/* -1, 0 or 1: on which side of the plane through a, b, c the point d is; 1 where a, b, c run clockwise seen
 * from d. */
int toile_orient3d(const double *a, const double *b, const double *c, const double *d);

/* A finished frame, as it is stored, against itself and against the scene's colliders at the pose last
 * prepared. Pairs, inside and degenerate are left at 0 when a number is not finite: there is nothing to
 * measure then. */
enum { TOILE_MEETINGS_MOST = 16 };

/* Two things that meet where they should not. */
typedef struct toile_meeting {
    int garment;            /* of a pair of garments the one with the smaller index */
    int other;              /* garment or collider */
    bool collider;
    int64_t pairs;          /* of triangles */
    int inside;             /* vertices of the garment inside the collider */
    double place[3];        /* of the first: middle of the pair, or the vertex, m */
} toile_meeting;

typedef struct toile_judgement {
    bool finite;
    double max_stretch;     /* largest |w_u| - 1 or |w_v| - 1 of any triangle, from the corners' (u, v) */
    int64_t cloth_pairs;    /* intersecting pairs, cloth against cloth, of one garment or of two */
    int64_t collider_pairs; /* cloth against collider */
    int inside;             /* cloth vertices inside a closed collider or behind a plane */
    int degenerate;         /* cloth triangles without area */
    int open_colliders;     /* colliders with a border: they have no inside, only pairs were looked for */
    int64_t excluded_pairs; /* pairs of what the scene excludes from contact; not among the others */
    int meeting_count;      /* those kept: the first TOILE_MEETINGS_MOST that were found */
    toile_meeting meetings[TOILE_MEETINGS_MOST];
} toile_judgement;

/* positions: per garment, m, (vertex_count x 3). `scene` may be null: no colliders. */
toile_status toile_judge_frame(toile_memory *memory, int garment_count, const toile_garment_view *garments,
                               const float *const *positions, toile_scene *scene, toile_judgement *judgement,
                               toile_error *error);

#endif
