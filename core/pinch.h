/* Cloth that solids close on from two sides, so that it has no room left: it rides with them until they part ("flypapering",
 * Baraff, Witkin and Kass, "Untangling cloth", 2003, section 6). */
#ifndef TOILE_PINCH_H
#define TOILE_PINCH_H

struct toile_sim;

/* After toile_find_contacts and toile_self_look: contacts of particles that are pinched at the end of the step become rides. */
void toile_pinch_find(struct toile_sim *sim, double h);

/* Does particle i ride in this step? */
#define toile_rides(sim, i) ((sim)->work.found[i].solid >= 0 && (sim)->work.found[i].mode == TOILE_TOUCH_RIDE)

#endif
