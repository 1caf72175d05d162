/* Plain views of a garment and of one finished frame: what a cache needs to know, and all it knows, of the core. */
#ifndef TOILE_FRAME_H
#define TOILE_FRAME_H

#include <stdint.h>

/* What stays the same for all frames of a garment. */
typedef struct toile_garment_view {
    const char *name;
    int vertex_count, triangle_count, panel_count;
    const float *rest_positions;    /* start shape, m, (vertex_count x 3) */
    const int *triangles;           /* (triangle_count x 3) */
    const int *triangle_panels;     /* (triangle_count) */
    const float *corner_uv;         /* m, (triangle_count x 3 x 2) */
    const char *const *panel_names; /* (panel_count) */
} toile_garment_view;

/* Per-frame figures, in the order of TOILE_FRAME_NUMBERS. */
#define TOILE_FRAME_NUMBERS(X)                                                                         \
    X(steps) X(rejected_steps) X(iterations) X(seconds) X(max_stretch) X(contacts) X(penetrations)     \
    X(kinetic_energy) X(elastic_energy) X(potential_energy)
typedef struct toile_frame_numbers {
#define TOILE_FRAME_NUMBER(id) double id;
    TOILE_FRAME_NUMBERS(TOILE_FRAME_NUMBER)
#undef TOILE_FRAME_NUMBER
} toile_frame_numbers;

typedef struct toile_frame_view {
    int frame;                      /* number in the scene */
    double time;                    /* s since the first frame */
    uint64_t state_hash;
    toile_frame_numbers numbers;
    const float *const *positions;  /* per garment, m, (vertex_count x 3) */
    const float *const *velocities; /* per garment, m/s, (vertex_count x 3) */
} toile_frame_view;

#endif
