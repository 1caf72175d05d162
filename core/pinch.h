/* Cloth that solids close on from two sides, so that it has no room left: it rides with them until they part ("flypapering",
 * Baraff, Witkin and Kass, "Untangling cloth", 2003, section 6). */
#ifndef TOILE_PINCH_H
#define TOILE_PINCH_H

#include <stdbool.h>

struct toile_sim;

/* After toile_find_contacts and toile_self_look: contacts of particles that are pinched at the end of the step become rides. */
void toile_pinch_find(struct toile_sim *sim, double h);

/* Did a neighbour of particle i ride in the last step? Then what is behind a surface has come there with it. */
bool toile_beside_rider(const struct toile_sim *sim, int i);

/* Does particle i ride in this step? */
#define toile_rides(sim, i) ((sim)->work.found[i].solid >= 0 && (sim)->work.found[i].mode == TOILE_TOUCH_RIDE)
/* Is a particle held to a surface by a constraint? What rides is dragged, unless steps are explicit. */
#define toile_found_holds(found) ((found)->solid >= 0 && !((found)->mode == TOILE_TOUCH_RIDE && (found)->across > 0))
/* Does it ride, or was it drawn into solids with what does? */
bool toile_is_caught(const struct toile_sim *sim, int i);

#endif
