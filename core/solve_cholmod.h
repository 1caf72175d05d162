/* `cholmod`: the reduced system solved directly (Ye, Webber and Wang 2008, section 3). Exact to rounding
 * whatever the tolerance, and no iterations. */
#ifndef TOILE_SOLVE_CHOLMOD_H
#define TOILE_SOLVE_CHOLMOD_H

#include "solve.h"

typedef struct toile_cholmod toile_cholmod;

/* `fixed`: one pattern for all constraints (reduce.h), so that the ordering is sought once. */
toile_status toile_cholmod_make(toile_memory *memory, const toile_model *model, bool fixed,
                                toile_cholmod **solver, toile_error *error);
void toile_cholmod_free(toile_cholmod *solver);

/* A matrix that is not positive definite gives TOILE_OK and converged = false, with the reason in `error`; x
 * is then as it was. A failure is one of memory. */
toile_status toile_cholmod_solve(toile_cholmod *solver, toile_system *system, toile_error *error);

/* How often an ordering was sought. */
int toile_cholmod_analyses(const toile_cholmod *solver);

#endif
