/* Pins: particles held to points that move, to a collider's surface, or to a curve along which they slide; rigidly (a
 * constraint of the solve) or by a spring. */
#ifndef TOILE_PIN_H
#define TOILE_PIN_H

#include "sim.h"

/* Frees what a hold owns. */
void toile_hold_free(toile_memory *memory, toile_hold *hold);

/* Before a frame's first step: a pin that has just come on takes its particles from where they are; one on a surface finds
 * the place it holds them to. Then its targets follow the collider. */
void toile_prepare_holds(toile_sim *sim);
/* After the frame's last. */
void toile_holds_arrive(toile_sim *sim);

/* For a step: z and `held` of particles held rigidly, with the tangent in `found` of those on a curve; targets of springs. */
void toile_hold_particles(toile_sim *sim, double h);
/* Adds the springs to the external forces and to the diagonal of a matrix of step h; d is the known way. */
void toile_add_soft_holds(toile_sim *sim, const double *x, const double *d, double h);

/* Where on their surfaces pins hold: part of the state. */
size_t toile_holds_bytes(const toile_sim *sim);
void toile_holds_write(const toile_sim *sim, void *bytes);
toile_status toile_holds_read(toile_sim *sim, const void *bytes, toile_error *error);

#endif
