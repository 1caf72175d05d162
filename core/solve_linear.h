/* What surrounds the iterations: the preconditioner in constrained form, and the constraint forces afterwards. */
#ifndef TOILE_SOLVE_LINEAR_H
#define TOILE_SOLVE_LINEAR_H

#include "kernels.h"

/* Fills solve->inverse with S P^-1 S for the chosen preconditioner (settings.h): identity, diagonal of A, 3x3 diagonal
 * blocks C, or S C + (I - S) (thesis eq. 5.4). */
void toile_precondition(toile_solve *solve, int preconditioner);

/* Inverse of a symmetric positive definite 3x3 block given as rows of four; false if it is not positive definite. */
bool toile_invert_block(const double *B, double *R);

/* A whole product on `threads` threads: y = A x. */
void toile_multiply(const toile_kernels *kernels, const toile_matrix *matrix, const double *x, double *y, int threads);

#endif
