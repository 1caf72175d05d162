/* `decompose`: the system falls apart where springs are slack or treated explicitly and where particles are
 * held, and its parts are solved one by one (Boxerman 2003, chapter 6; Boxerman and Ascher 2004).
 *
 * Particles are joined by off-diagonal blocks that are not zero. A fully constrained particle is a dead end:
 * known, it acts on the parts around it but joins none of them and belongs to none. Small parts are solved
 * directly, others by MPCG with the constrained preconditioner, each to the tolerance, and each by one
 * thread. */
#ifndef TOILE_SOLVE_DECOMPOSE_H
#define TOILE_SOLVE_DECOMPOSE_H

#include "solve.h"

typedef struct toile_decompose toile_decompose;

toile_status toile_decompose_make(toile_memory *memory, const toile_model *model, toile_decompose **solver,
                                  toile_error *error);
void toile_decompose_free(toile_decompose *solver);

/* Never fails. `iterations` is the most that a part took, `row_multiplies` counts rows of parts only. */
void toile_decompose_solve(toile_decompose *solver, toile_system *system);

/* After a solve: the part each particle is in, -1 if fully constrained, (n). */
const int *toile_decompose_parts(const toile_decompose *solver);

#endif
