/* Sparse Cholesky factor of a reduced system by CHOLMOD (Chen, Davis, Hager, Rajamanickam 2008): supernodal,
 * fill reduced by METIS or AMD, whichever needs less work. The ordering is kept as long as the pattern is.
 *
 * CHOLMOD's memory is its own: it does not come from toile_memory and grows inside a step when the pattern
 * changes. */
#ifndef TOILE_FACTOR_CHOLMOD_H
#define TOILE_FACTOR_CHOLMOD_H

#include "reduce.h"

typedef struct toile_cholesky toile_cholesky;

toile_status toile_cholesky_make(toile_memory *memory, toile_cholesky **cholesky, toile_error *error);
void toile_cholesky_free(toile_cholesky *cholesky);

/* Factors the matrix. TOILE_DIVERGED: it is not positive definite, or has numbers that are not finite. */
toile_status toile_cholesky_factor(toile_cholesky *cholesky, toile_reduced *matrix, toile_error *error);

/* x = L'^-1 L^-1 b with the last factor; b and x may be the same. */
toile_status toile_cholesky_solve(toile_cholesky *cholesky, const double *b, double *x, toile_error *error);

/* Work of one factorization, and how often an ordering was sought. */
double toile_cholesky_flops(const toile_cholesky *cholesky);
int toile_cholesky_analyses(const toile_cholesky *cholesky);

#endif
