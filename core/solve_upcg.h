/* `upcg`: plain conjugate gradients on the reduced system (Ye, Webber and Wang 2008, section 3),
 * preconditioned by its diagonal blocks of 3, 2 or 1 rows, which is what MPCG's constrained preconditioner is
 * (thesis eq. 5.4). */
#ifndef TOILE_SOLVE_UPCG_H
#define TOILE_SOLVE_UPCG_H

#include "solve.h"

typedef struct toile_upcg toile_upcg;

toile_status toile_upcg_make(toile_memory *memory, const toile_model *model, toile_upcg **solver,
                             toile_error *error);
void toile_upcg_free(toile_upcg *solver);

/* Never fails; system->converged says whether the answer is one. */
void toile_upcg_solve(toile_upcg *solver, toile_system *system);

#endif
