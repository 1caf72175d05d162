/* The last resort: what cannot be computed rests, and the bake goes on. */
#ifndef TOILE_REST_H
#define TOILE_REST_H

#include <stdbool.h>

struct toile_sim;

/* Instead of a step that is broken however short it is: everything goes with what surrounds it for h seconds. False if that would
 * help nobody: nothing touches anything, so that masses, stiffnesses or the integrator are to blame. */
bool toile_rest(struct toile_sim *sim, double h);

#endif
