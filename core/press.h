/* Pairs that are near, or were hit, pressed apart inside the linear system: a coupling (coupling.h) for each, stiff and damped
 * along the line between them, with friction that sticks and slides across it. */
#ifndef TOILE_PRESS_H
#define TOILE_PRESS_H

#include "self.h"

/* Gap in thicknesses below which layers count as crushed. */
#define TOILE_CRUSHED 0.8

/* Keeps the pair of a contact from coming nearer than thickness within the step; v are the velocities it is linear about. False
 * if memory is short. In no sum until toile_press_sort. */
bool toile_press_apart(struct toile_sim *sim, const toile_press *press, const double *v, double h);
void toile_press_sort(struct toile_sim *sim);
/* Takes out what had to pull in the last solve. Before toile_press_sort. */
void toile_press_release(struct toile_sim *sim, double h);
/* After the step: which contacts slide, which press? */
void toile_press_remember(struct toile_sim *sim);

#endif
