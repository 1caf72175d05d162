/* What surrounds the iterations: the preconditioner in constrained form, and the constraint forces afterwards. */
#ifndef TOILE_SOLVE_LINEAR_H
#define TOILE_SOLVE_LINEAR_H

#include "kernels.h"

/* Fills solve->inverse with S P^-1 S for the chosen preconditioner (settings.h): identity, diagonal of A, 3x3 diagonal
 * blocks C, or S C + (I - S) (thesis eq. 5.4); and solve->factor if it is not null. */
void toile_precondition(const toile_kernels *kernels, toile_solve *solve, int preconditioner);

/* A whole product on `threads` threads: y = A x. */
void toile_multiply(const toile_kernels *kernels, const toile_matrix *matrix, const double *x, double *y, int threads);

#endif
