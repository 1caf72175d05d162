/* Overstretch that the linear step itself has made, taken back where it is local. */
#ifndef TOILE_LIMIT_H
#define TOILE_LIMIT_H

#include "integrate.h"

/* The candidate grew some elements by more than stretch_change_max (next_stretch and extreme are filled in): moves particles
 * of these, and their velocities with them, until none does. False: they are too many, or it does not help; the candidate may
 * have moved all the same. */
bool toile_limit_stretch(toile_sim *sim, const toile_scheme *scheme);

#endif
