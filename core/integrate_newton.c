/* Fully implicit backward Euler: dv such that
 *
 *   F(dv) = M dv - h f(x + h (v + dv) + y, v + dv) = 0   in free directions,
 *
 * the nonlinear equation (thesis 4.9) of which the semi-implicit step takes one Newton iteration. The matrix of each
 * iteration, M - h df/dv - h^2 df/dx with the positive semi-definite parts of the kernels, is positive definite, so the
 * solution delta has delta . F = -delta . A delta < 0: it always leads downhill on the incremental potential
 * 1/2 dv . M dv + energy, whose gradient F is.
 *
 * How far along delta? Damping, drag and friction have no potential, so energies cannot be compared; but the slope
 * delta . F can be had at any point, and for conservative forces it is that of the potential. A point is taken unless the
 * slope there is uphill by more than SLOPE_MAX of the first slope downhill; then the way is shortened to where a straight
 * line between both slopes is zero (Matthies and Strang 1979). Ending on a slope of at most half of the first one uphill
 * lowers the potential wherever the slope grows no slower than a straight line. */
#include "integrate.h"

#include <math.h>
#include <string.h>

#define SLOPE_MAX 0.5
#define TRIALS_MAX 12

/* Sum over particles in an order that the number of threads does not change. */
static double sum(const toile_sim *sim, const double *a, const double *b, const double *scale) {
    const toile_pattern *p = &sim->model->pattern;
    double *partial = sim->work.partial, total = 0;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int c = 0; c < p->chunk_count; c++) {
        partial[c] = 0;
        for (size_t i = 4 * (size_t)p->chunk_begin[c]; i < 4 * (size_t)p->chunk_begin[c + 1]; i++)
            partial[c] += a[i] * b[i] * (scale ? scale[i / 4] : 1);
    }
    for (int c = 0; c < p->chunk_count; c++)
        total += partial[c];
    return total;
}

/* Evaluates at velocities `v`: positions to at_x, records, and F to `balance`. */
static void balance_at(toile_sim *sim, const toile_scheme *s, const double *v) {
    toile_work *w = &sim->work;
    const toile_state *state = &sim->state;
    const double *mass = sim->model->mass;
    int count = 4 * sim->model->particle_count;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < count; i++)
        w->at_x[i] = state->x[i] + s->h * v[i] + w->alter[i];
    toile_evaluate_at(sim, w->at_x, v, state->time + s->h, s->h, 0);
    toile_gather(sim, s->h, w->balance);
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < count; i++)
        w->balance[i] = mass[i / 4] * (v[i] - state->v[i]) - w->balance[i];
}

void toile_newton_start(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    int count = 4 * sim->model->particle_count;
    memset(w->ahead, 0, (size_t)count * sizeof(double));
    /* from the velocities there are, with constraints kept from the first iterate on */
    for (int i = 0; i < count; i++)
        w->next_v[i] = sim->state.v[i] + w->constraints.z[i];
    memset(w->constraints.z, 0, (size_t)count * sizeof(double)); /* no iteration leaves them */
    balance_at(sim, s, w->next_v);
}

bool toile_newton_balanced(const toile_sim *sim, const toile_scheme *s) {
    const toile_work *w = &sim->work;
    double mass = 0;
    memcpy(w->q, w->balance, 4 * (size_t)sim->model->particle_count * sizeof(double));
    toile_filter(&w->constraints, w->q);
    for (int i = 0; i < sim->model->particle_count; i++)
        mass += sim->model->mass[i];
    double most = sim->settings->newton_tolerance * s->h;
    return sum(sim, w->q, w->q, sim->model->inverse_mass) <= most * most * mass;
}

void toile_newton_assemble(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    int count = 4 * sim->model->particle_count;
    toile_assemble(sim, s);
    for (int i = 0; i < count; i++)
        w->b[i] = -w->balance[i];
    memset(w->solution, 0, (size_t)count * sizeof(double));
}

bool toile_newton_advance(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    int count = 4 * sim->model->particle_count;
    const double *delta = w->solution;
    double first = sum(sim, delta, w->balance, NULL), along = 1;
    sim->frame.newton_iterations++;
    for (int trial = 0; trial < TRIALS_MAX; trial++) {
        for (int i = 0; i < count; i++)
            w->at_v[i] = w->next_v[i] + along * delta[i];
        balance_at(sim, s, w->at_v);
        double slope = sum(sim, delta, w->balance, NULL);
        if (slope <= SLOPE_MAX * -first) {
            memcpy(w->next_v, w->at_v, (size_t)count * sizeof(double));
            return true;
        }
        /* not finite: far too long */
        double zero = slope - first < 1e300 ? -first / (slope - first) : 0;
        along *= fmin(0.8, fmax(0.1, zero));
    }
    return false; /* a wall: a shorter step has to do */
}

void toile_newton_finish(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    const toile_state *state = &sim->state;
    for (int i = 0; i < 4 * sim->model->particle_count; i++) {
        w->solution[i] = w->next_v[i] - state->v[i];
        w->next_x[i] = state->x[i] + s->h * w->next_v[i] + w->alter[i];
        w->r[i] = w->balance[i];
    }
}
