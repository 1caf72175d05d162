/* `mumps`: a second direct solver, to compare the first with (Amestoy, Duff, L'Excellent, Koster 2001). Only
 * built with -DTOILE_MUMPS=ON. MUMPS takes its memory from malloc and has process-wide state: one thread at a
 * time. */
#ifndef TOILE_SOLVE_MUMPS_H
#define TOILE_SOLVE_MUMPS_H

#include "solve.h"

typedef struct toile_mumps toile_mumps;

/* As those of solve_cholmod.h. */
toile_status toile_mumps_make(toile_memory *memory, const toile_model *model, bool fixed,
                              toile_mumps **solver, toile_error *error);
void toile_mumps_free(toile_mumps *solver);
toile_status toile_mumps_solve(toile_mumps *solver, toile_system *system, toile_error *error);

#endif
