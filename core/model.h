/* The model: everything about the cloth that stays constant during a simulation. Built once from garments, fabrics
 * and settings; particles are renumbered to keep the matrix narrow, `place` leads from the given order to ours.
 *
 * Vectors over particles hold four doubles each, x y z 0, so that one particle is one aligned 32-byte load.
 * Elements are kept as arrays of each property (SoA), padded to a multiple of 8 with elements of no stiffness, so
 * that kernels work on 8 at a time (lanes.h). */
#ifndef TOILE_MODEL_H
#define TOILE_MODEL_H

#include "hinge.h"
#include "garment.h"
#include "settings.h"

#include <stdbool.h>
#include <stdint.h>

/* Baraff-Witkin section 4.2, 4.3: one triangle with stretch in u and v, and shear. */
typedef struct toile_triangles {
    int count, padded;
    int *vertex[3];
    int *panel;                    /* over all garments */
    double *a1, *a2;               /* d w_u / d x_1, d x_2; that of x_0 is -(a1 + a2), 1/m */
    double *b1, *b2;               /* the same for w_v */
    double *area;                  /* in the material, m^2 */
    double *scale_u, *scale_v;     /* rest scales b_u, b_v */
    double *stiff_u, *stiff_v, *stiff_s; /* stiffness x area, N m */
    double *curve_u, *curve_v;     /* stiffening (force_stretch.h), per unit of strain */
    double *curve_s, *lock;        /* of shear, and the C from which on */
    double *limit, *stiff_limit;   /* principal stretch that resists more (force_stretch.h), 0 stiffness: none; its k x area, N m */
    double *reach;                 /* below this largest |w|^2 + |w_u . w_v| no principal stretch is beyond it */
    double *damping;               /* s */
    double *air;                   /* factor on what the air does */
    double *corner;                /* a0 a1 a2 b0 b1 b2 of each, for gathering, (count x 6) */
    double *middle;                /* u and v of the centre, m, (count x 2) */
    int *piece;                    /* connected piece of one panel's material, 0 .. piece_count - 1, (count) */
    int piece_count;
} toile_triangles;

/* Choi-Ko connections. Elements [0, stretch_count) are stretch, up to axial_count shear, padded to axial_padded;
 * [axial_padded, axial_padded + bend_count) are bend, padded to tie_begin; from there on tie_count ties, padded to `padded`.
 * Ties are in both cloth models: stitches that are being sewn, and elastic (sew.c evaluates them). */
typedef struct toile_springs {
    int stretch_count, axial_count, axial_padded, bend_count, tie_begin, tie_count, padded;
    int *vertex[2];
    double *length;                /* at rest, m */
    double *stiffness;             /* N/m; for bend: 4 k_b / L^2, N */
    double *curve;                 /* stiffening of stretch and shear (force_stretch.h), per metre; else 0 */
    double *onset, *knee;          /* extension from which on, and how far, m */
    double *limit, *stiff_limit;   /* length / rest from which on stretch and shear resist more (force_stretch.h), and how much, N/m */
    double *damping;               /* s */
    int *tie_seam;                 /* seam of each tie over all garments, -1: elastic, (tie_count) */
} toile_springs;

static inline bool toile_is_tie(const toile_springs *s, int spring) {
    return spring >= s->tie_begin && spring < s->tie_begin + s->tie_count;
}

/* Lists of elements end with so many of 0, so that assembly can fetch records ahead without looking. */
enum { TOILE_CODES_AHEAD = 12 };

/* Upper half of the block matrix, and which elements each block is made of. Block b < n is the diagonal of row b;
 * block n + k is the k-th off-diagonal. */
typedef struct toile_pattern {
    int n, off_count;
    int *row_begin;                /* (n + 1) first off-diagonal of each row */
    int *column;                   /* (off_count), greater than the row, ascending */
    int *row_split;                /* (n) first off-diagonal of the row whose column lies beyond the row's chunk */
    int chunk_count;               /* fixed by the pattern, never by the number of threads */
    int *chunk_begin;              /* (chunk_count + 1) rows */
    int *spill_count;              /* (chunk_count) rows after a chunk's end that its transposed blocks reach */
    int *spill_begin;              /* (chunk_count + 1) where they are in the spill buffer */
    int *triangle_begin, *triangle_code; /* per block: triangle * 16 + row corner * 4 + column corner */
    int *hinge_begin, *hinge_code;
    int *spring_begin, *spring_code;     /* per block: spring * 2 + (1 if the row is its second particle) */
} toile_pattern;

typedef struct toile_model {
    int particle_count;
    int vertex_count;              /* of all garments: more than particles where seams are welded */
    int garment_count;
    int *garment_begin;            /* first vertex of each garment, (garment_count + 1) */
    int *place;                    /* vertex -> particle; several vertices of a welded seam lead to one, (vertex_count) */
    int *sewn;                     /* one number for all particles that seams join or will join: cloth there is no obstacle
                                      to itself, (n) */
    int component_count;           /* connected pieces of cloth, contiguous in our order */
    int *component_begin;          /* (component_count + 1) */
    double *mass;                  /* kg */
    double *inverse_mass;
    double *area;                  /* material area of a particle, m^2 */
    double *air_area;              /* the part of it that the air acts on, m^2 */
    double *half_thickness;        /* m */
    double *friction;              /* factor on that of colliders */
    double *start;                 /* start positions, m, (n x 4) */
    bool springs_used;             /* else triangles and hinges */
    toile_triangles triangles;     /* always there: drag and statistics need them */
    toile_hinges hinges;
    toile_springs springs;
    toile_pattern pattern;
    toile_memory *memory;
} toile_model;

toile_status toile_model_build(toile_memory *memory, const toile_settings *settings, const toile_fabric *fabrics,
                               const toile_garment *garments, int garment_count, toile_model **model,
                               toile_error *error);
/* What has become of a stitch: its seam is drawn together, its two vertices are one. */
enum { TOILE_STITCH_WELDED = 1, TOILE_STITCH_GATHERED = 2 };

/* The same with stitches that are sewn: flags for each over all garments, in their order; null: none is. */
toile_status toile_model_build_welded(toile_memory *memory, const toile_settings *settings, const toile_fabric *fabrics,
                                      const toile_garment *garments, int garment_count, const unsigned char *welded,
                                      toile_model **model, toile_error *error);
void toile_model_free(toile_model *model);

#endif
