/* The constrained system as an unconstrained one, in scalars: Ye, Webber and Wang 2008, section 3.
 *
 * Every particle has a basis U_i of the directions it is free in: S_i = U_i U_i' with 3, 2, 1 or no columns.
 * Then
 *
 *   (U' A U) y = U' (b - A (I - S) z),    x = U y + (I - S) z      (their eq. 8-11)
 *
 * has no constraints and is positive definite. Its pattern changes with the constraints. The fixed form keeps
 * three rows for every particle, S A S + sigma (I - S): the same answer, a somewhat larger factor, and a
 * pattern that never changes.
 *
 * Stored is the lower half by columns, which for a symmetric matrix is the upper half by rows. */
#ifndef TOILE_REDUCE_H
#define TOILE_REDUCE_H

#include "kernels.h"

typedef struct toile_reduced {
    toile_memory *memory;
    const toile_pattern *pattern;
    const unsigned char *keep; /* off-diagonal blocks that are part of the matrix, (off_count); null: all */
    bool fixed;
    int structure; /* grows whenever rows or pattern change */
    int size;      /* scalar rows, 3 n at most */
    int *first;    /* first row of each particle, (n + 1) */
    double *basis; /* U_i by rows of 3, unused columns 0; S_i in the fixed form, (n x 9) */
    int *begin,
        *row; /* (size + 1) and their entries: first of each column, rows ascending from the diagonal */
    double *value;
    double *scratch; /* (n x 4) */
} toile_reduced;

toile_status toile_reduced_make(toile_memory *memory, const toile_pattern *pattern, const unsigned char *keep,
                                bool fixed, toile_reduced *reduced, toile_error *error);
void toile_reduced_free(toile_reduced *reduced);

/* Bases and rows of these constraints, and the pattern if it changed. Must come before the rest. */
void toile_reduced_constrain(toile_reduced *reduced, const toile_constraints *constraints);
/* U' A U. `diagonal` and `off` as in toile_matrix. */
void toile_reduced_fill(toile_reduced *reduced, const double *diagonal, const double *off, int threads);
/* U' (b - A (I - S) z); returns rows of A multiplied. */
int64_t toile_reduced_right_side(toile_reduced *reduced, const toile_kernels *kernels,
                                 const toile_matrix *matrix, const toile_constraints *constraints,
                                 const double *b, double *right, int threads);
/* y = U' x, and x = U y + (I - S) z; z null: 0. */
void toile_reduced_restrict(const toile_reduced *reduced, const double *x, double *y);
void toile_reduced_expand(const toile_reduced *reduced, const double *z, const double *y, double *x);

/* The columns of U_i for the filter S (three rows of four), by rows of 3: as many as S has rank, which is its trace. */
int toile_basis_of(const double *S, double U[9]);
/* T = U' B V for blocks by rows of 3. */
void toile_project(const double *U, const double *B, const double *V, double *T);

#endif
