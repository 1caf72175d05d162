/* How the hinges of bending share their moments: the lowest Hellan-Herrmann-Johnson plate (hinge.c). */
#ifndef TOILE_HINGE_H
#define TOILE_HINGE_H

#include <stdbool.h>

enum { TOILE_HINGE_PARTNERS = 4, TOILE_HINGE_PASSES_MAX = 12 };

/* Two triangles on an edge x_0 x_1 with opposite vertices x_2, x_3. Moments m follow from the angles by S m = angle - rest with
 * the compliance S, in `passes` passes over all hinges. */
typedef struct toile_hinges {
    int count, padded;
    int *vertex[4];
    double *rest;                         /* rad */
    double *damping;                      /* s */
    int *partner[TOILE_HINGE_PARTNERS];   /* other hinges of both triangles; unused ones lead to the hinge itself with share 0 */
    double *share[TOILE_HINGE_PARTNERS];  /* S_ef / S_ee */
    double *stiffness;                    /* 1 / S_ee, N m per rad */
    double *bound;                        /* diagonal that is no softer than the inverse of S in any mode, N m per rad */
    int passes;
    double relax[TOILE_HINGE_PASSES_MAX], carry[TOILE_HINGE_PASSES_MAX]; /* of Chebyshev's iteration, by pass */
} toile_hinges;

/* Least and largest eigenvalue of a triangle's compliance over its diagonal, of all triangles. */
typedef struct toile_hinge_range {
    double low, high;
} toile_hinge_range;

/* Adds a triangle whose corners are p, m, in the directions of warp and weft; its hinges lie across from the corners, -1: a
 * border. stiffness: warp, weft and twist, moment per width over k_uu, k_vv and k_uv, N m. The arrays of `h` begin with 0,
 * `partner` with the hinges themselves. */
void toile_hinge_add(toile_hinges *h, const int hinge[3], const double p[3][2], const double stiffness[3],
                     toile_hinge_range *range);
/* After all triangles. */
void toile_hinge_finish(toile_hinges *h, toile_hinge_range range);

/* Moments of angles less rest angles in plain form; `other` is scratch, all (count). */
void toile_hinge_moments(const toile_hinges *h, const double *bend, double *moment, double *other);

#endif
