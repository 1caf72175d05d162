/* Overstretch that the linear step itself has made, taken back where it is local. */
#ifndef TOILE_LIMIT_H
#define TOILE_LIMIT_H

#include "integrate.h"

/* The candidate grew some elements by more than stretch_change_max, or fast beyond what is usual (next_stretch is filled in):
 * moves particles of these, and their velocities with them. `change` is the largest growth there is, as kernels.h counts it. False:
 * nothing was moved; there are none, or too many. */
bool toile_limit_stretch(toile_sim *sim, const toile_scheme *scheme, double change);

/* Before a step: nothing is known of its state. */
void toile_limit_begin(struct toile_sim *sim);

/* Before the guard: what the solve stretched by is kept, for what the guard adds to it is no load. */
void toile_limit_keep(struct toile_sim *sim);

/* After the guard: what it has stretched again beyond its fabric's limit, though the solve had let it go, is brought back to what the solve
 * made it. False: there is nothing. */
bool toile_limit_relax(struct toile_sim *sim, const toile_scheme *scheme);

/* Is all that grew too much in the midst of solids, and did it not grow much too much, or does it take over a load from what is beyond its
 * limit? Then no shorter step would help. */
bool toile_limit_excuses(struct toile_sim *sim);

#endif
