/* When conjugate gradients may stop. Two rules; every iterative solver can use either.
 *
 * The rule of the settings: the error in the energy norm is at most `tolerance` times the answer. Neither is
 * known, but Hestenes and Stiefel 1952 (theorem 6:1) show that step j takes exactly alpha_j delta_j off the
 * squared error, delta_j = r_j' P^-1 r_j, so that
 *
 *   |x* - x_k|_A^2 = sum over j >= k of alpha_j delta_j.
 *
 * What the steps still to come will take off is judged from the past (Meurant, Papez, Tichy 2021): nowhere in
 * the recent past was the error more than S times what the next step took off, so it is now no more than S
 * times what the last one did. Slow convergence makes S large by itself, a good preconditioner makes it 1
 * or 2. It is an estimate, not a bound: a solve that stands still from its first step on cannot be told from
 * one that is finished. A few steps are therefore asked for in any case, and as long as the past is short (a
 * good first guess) the estimate is raised. Tests hold it to 1.2 times what was asked for, against true errors of sheets pinned
 * and on a ball, both models, every iterative solver, cold and warm, 1e-2 to 1e-10.
 *
 * The size of the answer is followed along with it: |x_k|_A^2 = |x_0|_A^2 + 2 (x_k - x_0)' b - sum of alpha_j
 * delta_j, constrained directions included.
 *
 * The rule of the papers: delta <= tol^2 delta_0 (thesis Fig. 5.2), in the preconditioner's norm. */
#ifndef TOILE_SOLVE_STOP_H
#define TOILE_SOLVE_STOP_H

#include <stdbool.h>
#include <string.h>

enum {
    TOILE_STOP_MEMORY =
        64, /* gains remembered; when it is full, neighbours are joined, so it reaches back to the start */
    TOILE_STOP_LEAST = 3, /* gains before the estimate is believed */
};

typedef struct toile_stop {
    double tolerance2;              /* square of the relative error asked for */
    double energy;                  /* |x_k|_A^2, kg m^2/s^2 */
    double error2;                  /* estimate of |x* - x_k|_A^2, of the same unit */
    double gain[TOILE_STOP_MEMORY]; /* alpha_j delta_j, joined over `stride` steps each */
    double joining;                 /* gain of the steps not yet complete */
    int count, stride, pending;
} toile_stop;

/* `energy` is x_0' A x_0 of the whole first guess, constrained directions included. */
static inline toile_stop toile_stop_begin(double tolerance, double energy) {
    toile_stop s = {.tolerance2 = tolerance * tolerance, .energy = energy, .error2 = 1e300, .stride = 1};
    return s;
}

/* Half as many gains, each of twice as many steps. */
static inline void toile_stop_join(toile_stop *s) {
    for (int j = 0; j < TOILE_STOP_MEMORY / 2; j++)
        s->gain[j] = s->gain[2 * j] + s->gain[2 * j + 1];
    s->count = TOILE_STOP_MEMORY / 2;
    s->stride *= 2;
}

/* Largest (error) / (gain of the next step) in the recent past: where the error was up to 100 times what it
 * is now. */
static inline double toile_stop_slowness(const toile_stop *s) {
    int last = s->count - 1;
    double rest = s->gain[last], most = 1, horizon = 0;
    for (int j = last - 1; j >= 0; j--) {
        rest += s->gain[j]; /* what was taken off since j: no more than the error there */
        if (rest > most * s->gain[j])
            most = s->gain[j] > 0 ? rest / s->gain[j] : 1e300;
        if (horizon == 0 && most * s->gain[last] < rest)
            horizon = 1e4 * most * s->gain[last];
        if (horizon > 0 && rest > horizon)
            break;
    }
    return most;
}

/* Twice as much for its noise, and up to eight times while the error has fallen by little. */
static inline double toile_stop_caution(const toile_stop *s, double error2) {
    double total = 0;
    for (int j = 0; j < s->count; j++)
        total += s->gain[j];
    double short_past = 150 * error2 / total;
    return 2 * (1 + (short_past < 3 ? short_past : 3));
}

/* After x += alpha p with p' b = pb, and delta = r' P^-1 r of the residual before that. True: x is good
 * enough. */
static inline bool toile_stop_step(toile_stop *s, double alpha, double delta, double pb) {
    s->energy += alpha * (2 * pb - delta);
    s->joining += alpha * delta;
    if (++s->pending < s->stride)
        return false;
    if (s->count == TOILE_STOP_MEMORY) {
        toile_stop_join(s);
        if (s->pending < s->stride)
            return false;
    }
    s->gain[s->count++] = s->joining;
    s->joining = 0;
    s->pending = 0;
    double error2 = toile_stop_slowness(s) * s->gain[s->count - 1];
    s->error2 = error2 > 0 ? toile_stop_caution(s, error2) * error2 : error2;
    return (s->count >= TOILE_STOP_LEAST || s->stride > 1) && s->error2 <= s->tolerance2 * s->energy;
}

/* Nothing left to do: the residual is zero, or so small that squaring it gives zero. */
static inline bool toile_stop_at_once(double delta) {
    return delta == 0;
}

/* The rule of the papers; delta_0 is that of the right side, b^' P^-1 b^. */
static inline bool toile_stop_thesis(double tolerance2, double delta, double delta_0) {
    return delta <= tolerance2 * delta_0;
}

#endif
