/* Fully implicit backward Euler: dv such that
 *
 *   F(dv) = M dv - h f(x + h (v + dv) + y, v + dv) = 0   in free directions,
 *
 * the nonlinear equation (thesis 4.9) of which the semi-implicit step takes one Newton iteration. The matrix
 * of each iteration, M - h df/dv - h^2 df/dx with the positive semi-definite parts of the kernels, is
 * positive definite, so the solution delta has delta . F = -delta . A delta < 0: it always leads downhill on
 * the incremental potential 1/2 dv . M dv + energy, whose gradient F is.
 *
 * That matrix is stiffer than the cloth where terms were left out or bounded (bending by a factor of up to
 * five), so that Newton's method converges only by about 0.8 an iteration on draped cloth. Directions are
 * therefore conjugate: part of the last one is added, as in nonlinear conjugate gradients (Polak-Ribiere)
 * with A for preconditioner. A skirt then takes a third of the iterations.
 *
 * How far along a direction? Damping, drag and friction have no potential, so energies cannot be compared;
 * but the slope, direction . F, can be had at any point, and for conservative forces it is that of the
 * potential. A point is good if the slope is at most SLOPE_MAX of the first one, up or down; if not, the next
 * is where a straight line between both slopes is zero (Matthies and Strang 1979). A slope still downhill may
 * be taken, one uphill not: ending on a slope of at most SLOPE_MAX of the first uphill lowers the potential
 * wherever the slope grows no slower than a straight line. */
#include "integrate.h"

#include <math.h>
#include <string.h>

#define SLOPE_MAX 0.3
#define TRIALS_MAX 12
#define ALONG_MAX 8.0

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
    memset(w->direction, 0, (size_t)count * sizeof(double));
    w->downhill = 0;
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

/* The direction from the solution and the last direction; returns its slope. */
static double choose_direction(toile_sim *sim) {
    toile_work *w = &sim->work;
    int count = 4 * sim->model->particle_count;
    double downhill = sum(sim, w->solution, w->balance, NULL), share = 0;
    if (w->downhill < 0)
        share = fmax(0, (downhill - sum(sim, w->solution, w->last_balance, NULL)) / w->downhill);
    for (int i = 0; i < count; i++)
        w->direction[i] = w->solution[i] + share * w->direction[i];
    double slope = sum(sim, w->direction, w->balance, NULL);
    if (!(slope < 0.1 * downhill)) { /* all but level: begin anew */
        memcpy(w->direction, w->solution, (size_t)count * sizeof(double));
        slope = downhill;
    }
    w->downhill = downhill;
    memcpy(w->last_balance, w->balance, (size_t)count * sizeof(double));
    return slope;
}

bool toile_newton_advance(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    int count = 4 * sim->model->particle_count;
    double first = choose_direction(sim), along = 1, low = 0, high = INFINITY;
    sim->frame.newton_iterations++;
    for (int trial = 0; trial < TRIALS_MAX; trial++) {
        for (int i = 0; i < count; i++)
            w->at_v[i] = w->next_v[i] + along * w->direction[i];
        balance_at(sim, s, w->at_v);
        double slope = sum(sim, w->direction, w->balance, NULL), zero;
        bool level = fabs(slope) <= SLOPE_MAX * -first;
        if (level || (slope < 0 && (trial > 1 || along >= ALONG_MAX))) {
            memcpy(w->next_v, w->at_v, (size_t)count * sizeof(double));
            if (along < 0.1) /* a kink, such as a connection going slack: what was learnt holds no longer */
                w->downhill = 0;
            return true;
        }
        if (slope < 0) { /* too short */
            low = along;
            zero = slope > first ? along * first / (first - slope) : ALONG_MAX;
            along = fmin(fmin(zero, 4 * along), high < INFINITY ? 0.5 * (low + high) : ALONG_MAX);
        } else { /* too long, or not finite */
            high = along;
            zero = slope < 1e300 ? along * first / (first - slope) : 0;
            along = fmin(0.8 * high, fmax(zero, low + 0.1 * (high - low)));
        }
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
