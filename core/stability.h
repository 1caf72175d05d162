/* When is an explicit part stable, and which elements may be explicit?
 *
 * Near rest, M x'' = -K x - D x' with K = sum k g g' over elements (g the gradient of what the element keeps,
 * a length or an angle) and D = sum tau k g g'. For an eigenvector of the step the quadratic forms a = h^2
 * x.Kx / x.Mx and b = h x.Dx / x.Mx are numbers >= 0, and its growth g solves a polynomial in them alone.
 * With _e for explicit and _i for implicit elements:
 *
 *   fb_euler, imex, aimex   (1 + a_i + b_i) g^2 + (a_e + b_e - b_i - 2) g + 1 - b_e:   |g| <= 1 if a_e + 2
 * b_e <= 4 forward_euler           g^2 + (b - 2) g + 1 - b + a:                              |g| <= 1 if a <=
 * b and 2 b <= 4 + a rk4                     the half disc |h lambda| <= 2.6 is inside its region:      a
 * <= 2.6^2 and b <= 2.6 sbdf2                   R^2 + b_i R + a_i + (a_e + b_e R)(2 g - 1)/g^2, R = 3/2 - 2/g
 * + 1/(2 g^2)
 *
 * The first holds whatever the implicit elements are. So the local criterion of adaptive IMEX is enough for
 * the whole, of which the thesis (4.4.3) has experiments but no proof. For sbdf2 small a_e, a_i give |g| = 1
 * + (a_e + a_i)(a_e - a_i)/4 - (b_e + b_i)/2: an explicit element without damping grows, and 2 b_e >= a_e^2
 * is enough (implicit elements only help). The other edge is g = -1: 3 a_e + 12 b_e <= 16. Both together are
 * enough; the roots were searched on a grid of all four.
 *
 * The largest a + 2 b over all x is bounded by rows (Gershgorin): h^2 A_i + 2 h B_i <= 4 m_i for every
 * particle i, with A_i = sum k |g_i| sum_c |g_c| over the elements on i, and B_i the same with tau k. On the
 * thesis' grid of stretch connections A_i = 8 k_s, so (h^2 A_i + 2 h B_i) / (8 m_i) is its kappa <= 1/2
 * (eq. 4.8), and we call it kappa on any mesh. Gradients are those at rest: connections in tension are no
 * stiffer in any direction. */
#ifndef TOILE_STABILITY_H
#define TOILE_STABILITY_H

#include "sim.h"

/* Work arrays of the integrator in force, and the longest stable step. */
toile_status toile_stability_make(toile_sim *sim, toile_error *error);
void toile_stability_free(toile_sim *sim);

/* kappa of the explicit elements at step h, and the particle where it is largest (-1: none). */
double toile_kappa(const toile_sim *sim, double h, int *particle);

/* Fails if the integrator cannot be stable at time_step_min; says where, why and what to do. */
toile_status toile_stability_check(const toile_sim *sim, toile_error *error);

/* A line for the user if steps will be shorter than time_step for stability; false if not. */
bool toile_stability_note(const toile_sim *sim, char *text, size_t size);

/* Which elements are implicit in a step. */
void toile_set_shares(toile_sim *sim, double step);

/* Is drag, which has no place in the longest stable step, slow enough? */
bool toile_drag_is_stable(toile_sim *sim, int integrator, double h);

#endif
