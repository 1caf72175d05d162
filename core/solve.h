/* One linear system of a step, A x = b under constraints S and z, and what a solver says of it. Every linear solver takes
 * this; which one does is decided in solve.c.
 *
 * The answer has exactly (I - S) z in the constrained directions and solves S A x = S b in the others. Accuracy is asked
 * for as a relative error in the energy norm, |x - x*|_A <= tolerance |x*|_A, which means the same for every solver and
 * preconditioner (the thesis' stopping rule does not: numerics differ by the preconditioner's norm). */
#ifndef TOILE_SOLVE_H
#define TOILE_SOLVE_H

#include "kernels.h"

typedef struct toile_system {
    const toile_kernels *kernels;
    const toile_model *model;
    toile_matrix *matrix;                 /* assembled, upper half, double */
    const toile_constraints *constraints; /* S and z */
    const double *b;                      /* kg m/s, (n x 4) */
    double *x;                            /* in: guess, out: answer, m/s, (n x 4) */
    double tolerance;                     /* relative error in the energy norm */
    int iterations_max;
    int threads;
    /* out */
    bool converged;
    int iterations;
    int64_t row_multiplies;               /* rows of A multiplied by a vector */
    int components;                       /* parts solved on their own; 1 unless decomposed */
} toile_system;

#endif
