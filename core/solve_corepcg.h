/* `corepcg`: conjugate gradients preconditioned by the exact factor of the stiff part of the matrix, its core
 * (Ye, Webber and Wang 2008, section 4).
 *
 * The core has the off-diagonal blocks of the stretch springs, or of the triangles, and all diagonal blocks
 * of A. It is made from the elements rather than by deleting blocks of A as the paper does, because a block
 * that hinges and triangles share would keep one part of the hinge and lose the rest, and the core would no
 * longer be positive definite. Made like this it is a sum of positive semi-definite elements and of diagonal
 * blocks of others, so it always is. */
#ifndef TOILE_SOLVE_COREPCG_H
#define TOILE_SOLVE_COREPCG_H

#include "solve.h"

typedef struct toile_corepcg toile_corepcg;

/* `fixed`: as in solve_cholmod.h. */
toile_status toile_corepcg_make(toile_memory *memory, const toile_model *model, bool fixed,
                                toile_corepcg **solver, toile_error *error);
void toile_corepcg_free(toile_corepcg *solver);

/* `assembly` is what the system's matrix was made from. Failures and `converged` as in solve_cholmod.h. */
toile_status toile_corepcg_solve(toile_corepcg *solver, toile_system *system, const toile_assembly *assembly,
                                 toile_error *error);

#endif
