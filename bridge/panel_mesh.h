/* The mesh of one panel of cloth: a grid along warp and weft inside, the outline kept as it was sampled.
 *
 * Grid points that keep their distance from the outline, refined as a quadtree where the outline or the caller asks
 * for shorter edges, are triangulated together with the outline (delaunay.h). Between outline and grid, points are
 * moved, added and taken out until the smallest angle is good. */
#ifndef TOILE_PANEL_MESH_H
#define TOILE_PANEL_MESH_H

#include "memory.h"

typedef struct toile_finer {
    double center[2], radius;       /* m, in the panel's plane */
    double edge_length;             /* m, inside of it; grows gently around it */
} toile_finer;

typedef struct toile_panel_shape {
    int loop_count;                 /* the outline, then holes; each in either direction */
    const int *loop_sizes;          /* points of each, (loop_count) */
    const double *points;           /* m, (sum of loop_sizes x 2); a segment is named by its first point */
    double edge_length;             /* m */
    double grain;                   /* angle of the warp from the x axis, radians */
    int finer_count;
    const toile_finer *finer;
} toile_panel_shape;

typedef enum toile_panel_fault_kind {
    TOILE_PANEL_FINE,
    TOILE_PANEL_TOUCHES,            /* segments a and b meet where they should not */
    TOILE_PANEL_CROSSES,            /* segments a and b cross */
    TOILE_PANEL_HOLE_OUTSIDE,       /* the hole of segment a is not inside the outline, or is in another hole */
    TOILE_PANEL_TOO_FINE,           /* more than TOILE_PANEL_MOST vertices */
    TOILE_PANEL_NO_MEMORY
} toile_panel_fault_kind;

enum { TOILE_PANEL_MOST = 4000000 };

typedef struct toile_panel_fault {
    toile_panel_fault_kind kind;
    int a, b;
} toile_panel_fault;

typedef struct toile_panel_mesh {
    int vertex_count;
    double *points;                 /* m, those of the outline first and as given, (vertex_count x 2) */
    int triangle_count;
    int *triangles;                 /* counter-clockwise, (triangle_count x 3) */
    double smallest_angle;          /* degrees */
} toile_panel_mesh;

toile_panel_fault toile_panel_mesh_make(toile_memory *memory, const toile_panel_shape *shape, toile_panel_mesh *mesh);
void toile_panel_mesh_free(toile_memory *memory, toile_panel_mesh *mesh);

#endif
