/* Every integrator as one of three procedures, and the linear ones as four numbers.
 *
 *   linear    one linear system (integrate.c): backward_euler, bdf2, imex, aimex, sbdf2
 *   explicit  no system (integrate_explicit.c): forward_euler, fb_euler, rk4
 *   newton    systems until forces balance (integrate_newton.c)
 *
 * A linear one goes from x, v to x', v' by
 *
 *   x' = x + carry dx + reach v' + y
 *   v' = v + carry dv + reach f' / m
 *
 * with dx, dv the last step's way and change of velocity. One step: reach = h, carry = 0 (Baraff-Witkin 1998
 * eq. 17). Two steps, w = h / last h: reach = h (1 + w) / (1 + 2 w), carry = w^2 / (1 + 2 w), which is BDF2
 * for steps of any length (for equal ones 2/3 h and 1/3: thesis 4.2.1).
 *
 * f' is linear about a point (x*, v*). One-step methods take x and v. Two-step ones extrapolate, x* = x + w
 * dx and v* = v + w dv: about x and v every term that the matrix leaves out would be an error of first order;
 * about x*, v* it is one of second. (x* = x + carry dx + reach v* is nearer to x' yet, but v* carries the
 * noise of stiff modes into it: stretch runs away and steps are rejected.) An explicit element has its force
 * at x*, v* and nothing else, which is thesis eq. 4.15: extrapolating the state and extrapolating the force
 * agree to second order, and exactly where forces are linear. */
#ifndef TOILE_INTEGRATE_H
#define TOILE_INTEGRATE_H

#include "sim.h"

typedef enum toile_procedure { TOILE_LINEAR, TOILE_EXPLICIT, TOILE_NEWTON } toile_procedure;

typedef struct toile_scheme {
    toile_procedure procedure;
    int integrator;      /* TOILE_INTEGRATOR_..., never AUTO */
    double h;            /* the step, s */
    double reach, carry; /* see above; s, 1 */
    double lead; /* w: how far x*, v* are ahead of x, v, in last steps; 0: forces are taken at the state */
    double turn; /* see toile_evaluation */
} toile_scheme;

/* The integrator in force, AUTO resolved. */
int toile_integrator(const toile_settings *settings);
/* Does it solve no system? */
bool toile_integrator_is_explicit(int integrator);
/* Does it need the last step's way? */
bool toile_integrator_has_history(int integrator);
/* How the next step of length h goes. A two-step method takes one step first: at the start, and when the step
 * has more than doubled (beyond 1 + sqrt 2 BDF2 is not zero-stable). */
toile_scheme toile_scheme_of(const toile_sim *sim, double h);

/* ---- stages of a linear integrator, in order ---- */

/* First guess of the unknown, v' - v*. */
void toile_guess(toile_sim *sim, const toile_scheme *scheme);
/* x*, v*, the shift of x', and z as a change from v*. After toile_set_constraints. */
void toile_carry_over(toile_sim *sim, const toile_scheme *scheme);
/* Element records and external forces at x*, v*; then A and b. */
void toile_evaluate(toile_sim *sim, const toile_scheme *scheme);
void toile_assemble(toile_sim *sim, const toile_scheme *scheme);
/* The candidate from the unknown; `solution` becomes v' - v. */
void toile_propose(toile_sim *sim, const toile_scheme *scheme);
/* After the state has become the candidate: what the next step may take for a trend. `way` holds the
 * positions before. */
void toile_remember(toile_sim *sim, const toile_scheme *scheme, const double *before);

/* ---- what they share with the others ---- */

/* Element records at (x, v) for a matrix of step h (0: forces only), external forces at `time`; `ahead` is
 * read. */
void toile_evaluate_at(toile_sim *sim, const double *x, const double *v, double time, double h, double turn);
/* b of the records: scale x (G + external). */
void toile_gather(toile_sim *sim, double scale, double *b);
/* Takes constrained directions out of a vector, (n x 4). */
void toile_filter(const toile_constraints *constraints, double *vector);

/* ---- the other procedures ---- */

/* Candidate, solution and constraint impulses (work.r) of an explicit step; false if drag makes it unstable.
 */
bool toile_step_explicitly(toile_sim *sim, const toile_scheme *scheme);

/* Newton: start gives the first iterate and its balance; while it is not good enough, the caller assembles
 * and solves, and advance goes along the solution. finish makes the candidate; false if forces are not
 * balanced. */
void toile_newton_start(toile_sim *sim, const toile_scheme *scheme);
bool toile_newton_balanced(const toile_sim *sim, const toile_scheme *scheme);
void toile_newton_assemble(toile_sim *sim, const toile_scheme *scheme);
bool toile_newton_advance(toile_sim *sim, const toile_scheme *scheme);
void toile_newton_finish(toile_sim *sim, const toile_scheme *scheme);

#endif
