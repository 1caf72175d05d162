#include "integrate.h"

#include "pin.h"
#include "sew.h"
#include "stability.h"

#include <math.h>
#include <string.h>

/* Elements a thread takes at a time. */
#define ELEMENT_BLOCK 512

/* The largest growth of the step that a two-step method takes with its history. */
#define GROWTH_MAX 2.0001

int toile_integrator(const toile_settings *settings) {
    return settings->integrator == TOILE_INTEGRATOR_AUTO ? TOILE_INTEGRATOR_BACKWARD_EULER
                                                         : settings->integrator;
}

bool toile_integrator_has_history(int integrator) {
    return integrator == TOILE_INTEGRATOR_BDF2 || integrator == TOILE_INTEGRATOR_SBDF2;
}

static toile_procedure procedure_of(int integrator) {
    switch (integrator) {
    case TOILE_INTEGRATOR_FORWARD_EULER:
    case TOILE_INTEGRATOR_FB_EULER:
    case TOILE_INTEGRATOR_RK4: return TOILE_EXPLICIT;
    case TOILE_INTEGRATOR_NEWTON: return TOILE_NEWTON;
    default: return TOILE_LINEAR;
    }
}

bool toile_integrator_is_explicit(int integrator) {
    return procedure_of(integrator) == TOILE_EXPLICIT;
}

toile_scheme toile_scheme_of(const toile_sim *sim, double h) {
    int integrator = toile_integrator(sim->settings);
    toile_scheme s = {
        .procedure = procedure_of(integrator), .integrator = integrator, .h = h, .reach = h, .turn = h};
    double last = sim->state.last_step;
    if (toile_integrator_has_history(integrator) && last > 0 && h <= GROWTH_MAX * last) {
        double w = h / last;
        s.reach = h * (1 + w) / (1 + 2 * w);
        s.carry = w * w / (1 + 2 * w);
        s.lead = w;
    }
    /* turning is only false where a step leaves on the tangent */
    if (s.lead > 0 || s.procedure != TOILE_LINEAR)
        s.turn = 0;
    return s;
}

/* ---- stages ---- */

void toile_guess(toile_sim *sim, const toile_scheme *scheme) {
    size_t bytes = 4 * (size_t)sim->model->particle_count * sizeof(double);
    if (scheme->lead > 0)
        memset(sim->work.solution, 0, bytes); /* the trend is in v* */
    else
        memcpy(sim->work.solution, sim->state.dv, bytes);
    sim->work.older = scheme->lead > 0 || scheme->procedure != TOILE_LINEAR ? NULL : sim->state.older;
}

/* (I - S) a */
static void constrained_part(const double *S, const double *a, double *out) {
    for (int k = 0; k < 3; k++)
        out[k] = a[k] - (S[4 * k] * a[0] + S[4 * k + 1] * a[1] + S[4 * k + 2] * a[2]);
}

void toile_carry_over(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    const double *x = sim->state.x, *v = sim->state.v, *dx = sim->state.dx, *dv = sim->state.dv;
    int count = 4 * sim->model->particle_count;
    if (s->lead == 0) {
        memcpy(w->shift, w->alter, (size_t)count * sizeof(double));
        return;
    }
    for (int i = 0; i < count; i++) {
        w->at_v[i] = v[i] + s->lead * dv[i];
        w->at_x[i] = x[i] + s->lead * dx[i];
        w->shift[i] = s->carry * dx[i] + w->alter[i];
    }
    /* in constrained directions a step is h v' + y whatever the method: pins arrive, contacts stay on their
     * surface */
    const toile_constraints *c = &w->constraints;
    for (int k = 0; k < c->count; k++) {
        size_t i = 4 * (size_t)c->particle[k];
        const double *S = c->filter + 12 * (size_t)k;
        double way[3], correction[3], trend[3];
        for (int a = 0; a < 3; a++)
            way[a] =
                (s->h - s->reach) * (v[i + (size_t)a] + c->z[i + (size_t)a]) - s->carry * dx[i + (size_t)a];
        constrained_part(S, way, correction);
        constrained_part(S, dv + i, trend);
        for (int a = 0; a < 3; a++) {
            w->shift[i + (size_t)a] += correction[a];
            c->z[i + (size_t)a] -= s->lead * trend[a];
        }
    }
}

void toile_evaluate_at(toile_sim *sim, const double *x, const double *v, double time, double h, double turn) {
    const toile_model *m = sim->model;
    const toile_kernels *k = sim->kernels;
    toile_work *w = &sim->work;
    const toile_stability *stability = &w->stability;
    toile_evaluation at = {.model = m,
                           .x = x,
                           .v = v,
                           .d = w->ahead,
                           .h = h,
                           .turn = turn,
                           .stretch_share = stability->stretch_share,
                           .shear_share = stability->shear_share,
                           .hinge_share = stability->hinge_share,
                           .spring_share = stability->spring_share};
    int triangles = m->springs_used ? 0 : m->triangles.padded, hinges = m->hinges.padded,
        springs = m->springs.tie_begin;
    toile_external_forces(sim, x, v, time, h);
    toile_add_pressure(sim, x, time);
    toile_add_soft_holds(sim, x, w->ahead, h);
    toile_evaluate_ties(sim, x, v, w->ahead, h);
#define END(count) (e + ELEMENT_BLOCK < count ? e + ELEMENT_BLOCK : count)
#pragma omp parallel num_threads(sim->threads) if (sim->threads > 1)
    {
#pragma omp for schedule(static) nowait
        for (int e = 0; e < triangles; e += ELEMENT_BLOCK)
            k->triangles(&at, e, END(triangles), w->triangle);
#pragma omp for schedule(static) nowait
        for (int e = 0; e < hinges; e += ELEMENT_BLOCK)
            k->hinges(&at, e, END(hinges), w->bend, w->hinge);
#pragma omp for schedule(static)
        for (int e = 0; e < springs; e += ELEMENT_BLOCK)
            k->springs(&at, e, END(springs), w->spring);
        for (int pass = 0; pass < m->hinges.passes; pass++)
#pragma omp for schedule(static)
            for (int e = 0; e < hinges; e += ELEMENT_BLOCK)
                k->moments(m, pass, e, END(hinges), w->bend, w->hinge);
    }
}

void toile_evaluate(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    bool ahead_of_state = s->lead > 0;
    const double *x = ahead_of_state ? w->at_x : sim->state.x, *v = ahead_of_state ? w->at_v : sim->state.v;
    double *ahead = w->ahead;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < 4 * sim->model->particle_count; i++) {
        ahead[i] = s->reach * v[i] + w->shift[i];
        if (ahead_of_state)
            ahead[i] -= x[i] - sim->state.x[i];
    }
    /* gusts of the step's begin in first order, of its end in second */
    toile_evaluate_at(sim, x, v, sim->state.time + (ahead_of_state ? s->h : 0), s->reach, s->turn);
}

void toile_assemble(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    const toile_model *m = sim->model;
    bool fast = toile_solves_fast(sim->settings), convert = fast && m->springs_used;
    toile_assembly a = {m, s->reach, w->triangle, w->hinge, w->spring, w->force, w->drag, fast ? &w->fast : NULL,
                        fast && sim->settings->linear_solver == TOILE_SOLVER_AUTO &&
                            (m->springs_used || sim->settings->solver_tolerance >= TOILE_SINGLE_PRECISION)};
    w->assembly = a;
    int chunks = m->pattern.chunk_count, springs = convert ? m->springs.padded : 0;
#pragma omp parallel num_threads(sim->threads) if (sim->threads > 1)
    {
#pragma omp for schedule(static)
        for (int e = 0; e < springs; e += ELEMENT_BLOCK)
            sim->kernels->convert_springs(w->spring, e, END(springs), w->fast.spring);
#pragma omp for schedule(static)
        for (int c = 0; c < chunks; c++)
            sim->kernels->assemble(&a, c, &w->matrix, w->b);
    }
    if (s->lead == 0)
        return;
    /* M (v* - v - carry dv) goes to the right side */
    const double *mass = sim->model->mass, *dv = sim->state.dv;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < 4 * sim->model->particle_count; i++)
        w->b[i] -= (s->lead - s->carry) * mass[i / 4] * dv[i];
}

void toile_gather(toile_sim *sim, double scale, double *b) {
    toile_work *w = &sim->work;
    toile_assembly a = {sim->model, scale, w->triangle, w->hinge, w->spring, w->force, w->drag, NULL, false};
    int chunks = sim->model->pattern.chunk_count;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int c = 0; c < chunks; c++)
        sim->kernels->gather(&a, c, b);
}

void toile_propose(toile_sim *sim, const toile_scheme *s) {
    toile_work *w = &sim->work;
    const double *x = sim->state.x, *v = sim->state.v, *dv = sim->state.dv;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < 4 * sim->model->particle_count; i++) {
        if (s->lead > 0)
            w->solution[i] += s->lead * dv[i];
        w->next_v[i] = v[i] + w->solution[i];
        w->next_x[i] = x[i] + s->reach * w->next_v[i] + w->shift[i];
    }
}

void toile_remember(toile_sim *sim, const toile_scheme *s, const double *before) {
    toile_state *state = &sim->state;
    const toile_constraints *c = &sim->work.constraints;
    if (!state->dx)
        return;
    for (int i = 0; i < 4 * state->n; i++)
        state->dx[i] = state->x[i] - before[i];
    for (int k = 0; k < c->count; k++) {
        size_t i = 4 * (size_t)c->particle[k];
        const double *S = c->filter + 12 * (size_t)k;
        double excess[3], blocked[3], change[3];
        for (int a = 0; a < 3; a++)
            excess[a] = state->dx[i + (size_t)a] - s->h * state->v[i + (size_t)a];
        constrained_part(S, state->dv + i, change);
        constrained_part(S, excess, blocked);
        for (int a = 0; a < 3; a++) {
            state->dv[i + (size_t)a] -= change[a];
            state->dx[i + (size_t)a] -= blocked[a];
        }
    }
    state->last_step = s->h;
}

void toile_filter(const toile_constraints *c, double *vector) {
    for (int k = 0; k < c->count; k++) {
        double *a = vector + 4 * (size_t)c->particle[k], blocked[3];
        constrained_part(c->filter + 12 * (size_t)k, a, blocked);
        for (int j = 0; j < 3; j++)
            a[j] -= blocked[j];
    }
}
