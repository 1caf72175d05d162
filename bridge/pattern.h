/* A sewing pattern: panels cut along curves, and the seams that join their edges. It becomes one mesh with pairs of
 * vertices to sew.
 *
 * Edges are walked along the outline as it is written. The two sides of a seam are lists of edges, each walked from
 * its beginning to its end or, reversed, the other way; the beginnings of both lists meet. Both sides get the same
 * number of vertices, corners of either side have a partner on the other, and what is longer is gathered evenly.
 * Panels are turned over where it takes that for all seams to join right side to right side. */
#ifndef TOILE_PATTERN_H
#define TOILE_PATTERN_H

#include "error.h"
#include "memory.h"
#include "motion.h"
#include "panel_mesh.h"
#include "pattern_curve.h"
#include "seam.h"

typedef struct toile_pattern_edge {
    const char *name;               /* or null */
    toile_curve curve;              /* its end is the beginning of the next edge of the loop */
    double edge_length;             /* m; 0: the panel's */
} toile_pattern_edge;

typedef struct toile_pattern_panel {
    const char *name;
    int loop_count;                 /* the outline, then holes */
    const int *loop_sizes;          /* edges of each, (loop_count) */
    const toile_pattern_edge *edges;
    double edge_length;             /* m */
    double grain;                   /* of the warp from the x axis, radians */
    int finer_count;
    const toile_finer *finer;
    /* from the panel's plane to the scene: bent around an axis in the plane, then moved */
    double bend_radius;             /* m, 0: flat; positive curls away from the side that z points to */
    double bend_axis;               /* angle of the axis from the x axis, radians */
    double bend_at[2];              /* m, a point that stays where it is */
    toile_pose pose;
} toile_pattern_panel;

typedef struct toile_pattern_side {
    int panel, edge;                /* edges are counted through all loops */
    bool reverse;
} toile_pattern_side;

typedef struct toile_pattern_seam {
    toile_seam seam;
    int count[2];
    const toile_pattern_side *sides[2]; /* (count[0]), (count[1]) */
} toile_pattern_seam;

typedef struct toile_pattern {
    const char *name;
    int panel_count, seam_count;
    const toile_pattern_panel *panels;
    const toile_pattern_seam *seams;
} toile_pattern;

/* What an error is about, for callers that know where it was written; -1: not about one. */
typedef struct toile_pattern_where {
    int panel, edge, seam;
} toile_pattern_where;

typedef struct toile_pattern_mesh {
    int vertex_count, triangle_count, stitch_count;
    double *positions;              /* m, (vertex_count x 3) */
    double *flat;                   /* in the panels' planes, m, (vertex_count x 2) */
    int *panel_begin;               /* vertices of each panel, (panel_count + 1) */
    int *triangles;                 /* (triangle_count x 3) */
    int *triangle_panels;           /* (triangle_count) */
    double *corner_uv;              /* m, (triangle_count x 3 x 2) */
    toile_stitch *stitches;
    int *edge_base;                 /* number of each panel's first edge among all, (panel_count + 1) */
    int *edge_first, *edge_count;   /* first vertex and number of segments of each edge, among all */
    int *edge_next;                 /* the vertex that its last segment ends at */
    double smallest_angle;          /* degrees */
    int smallest_panel;             /* where that is */
} toile_pattern_mesh;

enum {
    TOILE_PATTERN_PANELS = 20000,   /* at most */
    TOILE_PATTERN_EDGES = 100000,   /* of a panel, at most */
    TOILE_PATTERN_VERTICES = 8000000
};

/* The longer side of a seam by the shorter one, at most: tulle of tutus has 6, and much more does not fit into a seam. */
#define TOILE_GATHER_MOST 20.0

/* Measures, samples, cuts and places all panels. What cannot be cut or sewn is refused with panel and edge named. */
toile_status toile_pattern_make(toile_memory *memory, const toile_pattern *pattern, toile_pattern_mesh *mesh,
                                toile_pattern_where *where, toile_error *error);
void toile_pattern_mesh_free(toile_memory *memory, toile_pattern_mesh *mesh);

/* Where a point of a panel's plane is in the scene. */
void toile_pattern_place(const toile_pattern_panel *panel, const double point[2], double place[3]);

/* Vertex number `i` along an edge, from 0 to its number of segments. */
int toile_pattern_vertex(const toile_pattern_mesh *mesh, int edge, int i);

#endif
