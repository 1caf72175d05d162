/* A collider: a primitive with a pose or a triangle mesh with moving vertices. During a frame it moves linearly from
 * where it was to where it was told to be; within a step it is asked at the step's end. */
#ifndef TOILE_SOLID_H
#define TOILE_SOLID_H

#include "error.h"
#include "memory.h"

#include <stdbool.h>

typedef enum toile_solid_shape {
    TOILE_SOLID_SPHERE,
    TOILE_SOLID_BOX,
    TOILE_SOLID_CAPSULE,
    TOILE_SOLID_CYLINDER,
    TOILE_SOLID_PLANE,
    TOILE_SOLID_MESH
} toile_solid_shape;

/* Where the cloth is. */
typedef enum toile_solid_side {
    TOILE_SOLID_OUTSIDE,
    TOILE_SOLID_INSIDE, /* the surface holds it in: outward normals and distances are turned round */
    TOILE_SOLID_BOTH    /* on either side, wherever it starts: nothing is inside; distances are those of OUTSIDE */
} toile_solid_side;

typedef struct toile_pose {
    double position[3];
    double rotation[4]; /* unit quaternion w, x, y, z */
} toile_pose;

/* Node of the bounding-volume tree; children of node i are i + 1 and `right`, always later in the array. */
typedef struct toile_bvh_node {
    double lo[3], hi[3];
    int right;        /* 0 for a leaf */
    int first, count; /* of a leaf, in `order` */
} toile_bvh_node;

typedef struct toile_solid {
    char *name;
    toile_solid_shape shape;
    double size[3];             /* m, see toile.h */
    double thickness;           /* m */
    double friction_static, friction_kinetic;
    toile_solid_side side;

    toile_pose from, to;        /* at the frame's begin and end */
    toile_pose before, now;     /* at the step's begin and end, written by toile_solid_move */
    bool still;                 /* these two are the same */

    /* a mesh, or the shell of a primitive (shell.h), which has none of what only a mesh is asked */
    int vertex_count, triangle_count;
    double *shell;              /* its vertices in the pose's own frame, (vertex_count x 3); null: none, or a mesh */
    bool smooth;                /* cloth cannot get at its shell between particles: it is left out (toile_self_begin) */
    int *triangles;             /* (triangle_count x 3) */
    bool closed;                /* every edge has two triangles: inside and outside are known everywhere */
    double *from_x, *to_x;      /* vertices at the frame's begin and end, (vertex_count x 3) */
    double *x, *velocity;       /* at the step's end; m/s over the frame */
    /* of a mesh: */
    int *neighbour;             /* triangle across the edge from corner c to c + 1, or -1, (triangle_count x 3) */
    int *around_begin, *around; /* triangle * 4 + corner around each vertex */
    toile_bvh_node *nodes;
    int node_count;
    int *order;                 /* triangles in tree order */
    double built_area;          /* sum of box areas when the tree was built */
    double *centre;             /* scratch of a rebuild, (triangle_count x 3) */
} toile_solid;

typedef struct toile_solid_input {
    const char *name;
    toile_solid_shape shape;
    double size[3], thickness, friction_static, friction_kinetic;
    double position[3], rotation[4];
    int vertex_count, triangle_count;
    const double *positions;
    const int *triangles;
    toile_solid_side side;
} toile_solid_input;

toile_status toile_solid_make(toile_memory *memory, const toile_solid_input *input, toile_solid *solid,
                              toile_error *error);
void toile_solid_free(toile_memory *memory, toile_solid *solid);

/* Is it part of the skin that cloth meets with edges and faces? */
static inline bool toile_has_edges(const toile_solid *solid) {
    return solid->triangle_count && !solid->smooth;
}

/* Checks a pose: finite, rotation of unit length (normalised here; all zero means none). */
toile_status toile_pose_make(const double position[3], const double rotation[4], const char *name, toile_pose *pose,
                             toile_error *error);

/* From a pose's own frame into the world, and back. */
void toile_pose_outward(const toile_pose *pose, const double local[3], double world[3]);
void toile_pose_inward(const toile_pose *pose, const double world[3], double local[3]);

/* To the part [begin, end] of the frame, in 0..1; the frame lasts `frame` seconds. */
void toile_solid_move(toile_solid *solid, double begin, double end, double frame);
/* The frame is over: its end becomes the next one's begin. */
void toile_solid_arrive(toile_solid *solid);

typedef struct toile_hit {
    double distance;    /* m, negative inside */
    double point[3];    /* nearest on the surface */
    double normal[3];   /* outward, unit */
    double velocity[3]; /* of the surface there, m/s */
    double sharp;       /* at an edge or a corner, outside: sine of the angle from the normal to the nearest of its faces', else 0 */
} toile_hit;

/* Nearest surface point at the step's end if it lies within `radius` of p, or p is inside. Inside an open mesh is
 * believed only up to `open_depth`: beyond, p may as well be far outside. */
bool toile_solid_nearest(const toile_solid *solid, const double p[3], double radius, double open_depth, double h,
                         toile_hit *hit);
/* The same answer, sooner if `triangle` (of a mesh; -1: none) is near p; becomes the nearest one. */
bool toile_solid_nearest_from(const toile_solid *solid, const double p[3], double radius, double open_depth, double h,
                              int *triangle, toile_hit *hit);
/* In a crease a point has several nearest points, each on a face of its own. The nearest one within `radius` beside that on
 * triangle `first`, which is outside and has this normal. Of a mesh that has an outside. */
bool toile_solid_crease(const toile_solid *solid, const double p[3], double radius, int first, const double normal[3], int *triangle,
                        toile_hit *hit);
/* Nearest point within `radius`, from whichever side, of what looks within 60 degrees of `way` (unit). */
bool toile_solid_facing(const toile_solid *solid, const double p[3], double radius, const double way[3], double h, toile_hit *hit);

#endif
