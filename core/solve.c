/* Which solver takes a step's system, and what is done around it: first guess, residual in double, refinement, momentum,
 * constraint forces. */
#include "sim.h"

#include "solve_cholmod.h"
#include "solve_corepcg.h"
#include "solve_decompose.h"
#include "solve_linear.h"
#include "solve_upcg.h"

#include <math.h>
#include <string.h>

#define REFINEMENTS_MAX 20

/* The thesis stops at tol^2 = 0.01 dt (section 5.4). */
#define THESIS_TOLERANCE 0.01

/* ---- vectors; sums chunk by chunk so that threads do not change them ---- */

static double dot(const toile_pattern *p, const double *a, const double *b) {
    double sum = 0;
    for (int c = 0; c < p->chunk_count; c++) {
        double own[4] = {0};
        for (size_t i = 4 * (size_t)p->chunk_begin[c]; i < 4 * (size_t)p->chunk_begin[c + 1]; i += 4)
            for (int k = 0; k < 4; k++)
                own[k] += a[i + (size_t)k] * b[i + (size_t)k];
        sum += (own[0] + own[1]) + (own[2] + own[3]);
    }
    return sum;
}

/* y += what couplings do to x. */
static void add_couplings(toile_sim *sim, const double *x, double *y) {
    const toile_couplings *couplings = &sim->self.couplings;
    if (!couplings->count)
        return;
    toile_couplings_pull(couplings, 0, couplings->count, x);
    for (int c = 0; c < sim->model->pattern.chunk_count; c++)
        toile_couplings_add_rows(couplings, c, x, y);
}

/* The blocks that the fast solver does without. */
static void assemble_all(toile_sim *sim) {
    toile_work *w = &sim->work;
    if (!w->assembly.diagonal_only)
        return;
    w->assembly.diagonal_only = false;
    for (int c = 0; c < sim->model->pattern.chunk_count; c++)
        sim->kernels->assemble(&w->assembly, c, &w->matrix, w->q);
    if (sim->self.couplings.count)
        toile_couplings_assemble(&sim->self.couplings, w->matrix.diagonal, w->assembly.fast ? w->fast.diagonal : NULL,
                                 w->assembly.fast ? w->fast.inertia : NULL, w->q);
}

/* y = A x in double, from the springs' records or the assembled blocks. */
static void multiply(toile_sim *sim, const double *x, double *y) {
    toile_work *w = &sim->work;
    int chunks = sim->model->pattern.chunk_count;
    if (!sim->model->springs_used)
        assemble_all(sim);
    if (!w->assembly.diagonal_only) {
        toile_multiply(sim->kernels, &w->matrix, x, y, sim->threads);
    } else {
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
        for (int c = 0; c < chunks; c++)
            sim->kernels->fast_multiply_springs(&w->fast, &w->matrix, w->spring, c, x, y);
    }
    add_couplings(sim, x, y);
}

static void filter(const toile_constraints *c, double *x) {
    for (int k = 0; k < c->count; k++) {
        double *at = x + 4 * (size_t)c->particle[k], a[3] = {at[0], at[1], at[2]};
        const double *S = c->filter + 12 * (size_t)k;
        for (int i = 0; i < 3; i++)
            at[i] = S[4 * i] * a[0] + S[4 * i + 1] * a[1] + S[4 * i + 2] * a[2];
    }
}

/* ---- around the iterations ---- */

/* The guess of fast_guess.c in double, from the last step alone. Leaves A x in s. */
static void guess(toile_sim *sim) {
    toile_work *w = &sim->work;
    const toile_constraints *c = &w->constraints;
    const toile_pattern *p = &sim->model->pattern;
    size_t n = 4 * (size_t)p->n;
    double *x = w->solution, *moved = w->q;
    bool driven = false;
    for (int k = 0; k < c->count && !driven; k++) {
        const double *z = c->z + 4 * (size_t)c->particle[k];
        driven = z[0] != 0 || z[1] != 0 || z[2] != 0;
    }
    filter(c, x);
    multiply(sim, x, w->s);
    double along = dot(p, x, w->b), curvature = dot(p, x, w->s);
    if (driven) {
        multiply(sim, c->z, moved);
        along -= dot(p, x, moved);
    }
    double t = curvature > 0 ? along / curvature : 0;
    t = t == t ? t : 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = t * x[i] + c->z[i];
        w->s[i] = t * w->s[i] + (driven ? moved[i] : 0);
    }
}

/* r = S (b - A x), with A x in s; returns x' A x. */
static double residual(toile_sim *sim) {
    toile_work *w = &sim->work;
    const toile_pattern *p = &sim->model->pattern;
    for (size_t i = 0; i < 4 * (size_t)p->n; i++)
        w->r[i] = w->b[i] - w->s[i];
    filter(&w->constraints, w->r);
    return dot(p, w->solution, w->s);
}

/* A connected piece of cloth that nothing holds moves as a whole exactly as outer forces say: the elements' part of A has
 * no say in that, whatever the iteration has left over. */
static void keep_momentum(toile_sim *sim) {
    toile_work *w = &sim->work;
    const toile_model *m = sim->model;
    for (int c = 0, k = 0; c < m->component_count; c++) {
        int begin = m->component_begin[c], end = m->component_begin[c + 1];
        while (k < w->constraints.count && w->constraints.particle[k] < begin)
            k++;
        if (k < w->constraints.count && w->constraints.particle[k] < end)
            continue;
        if (sim->self.couplings.count)
            continue;
        double T[12] = {0}, inverse[12], left[3] = {0}, total = 0;
        for (int i = begin; i < end; i++) {
            const double *g = w->drag + 8 * (size_t)i, *x = w->solution + 4 * (size_t)i, *b = w->b + 4 * (size_t)i;
            double mass = m->mass[i];
            left[0] += b[0] - ((mass + g[0]) * x[0] + g[1] * x[1] + g[2] * x[2]);
            left[1] += b[1] - (g[1] * x[0] + (mass + g[3]) * x[1] + g[4] * x[2]);
            left[2] += b[2] - (g[2] * x[0] + g[4] * x[1] + (mass + g[5]) * x[2]);
            T[0] += g[0], T[1] += g[1], T[2] += g[2], T[5] += g[3], T[6] += g[4], T[10] += g[5];
            total += mass;
        }
        T[0] += total, T[5] += total, T[10] += total, T[4] = T[1], T[8] = T[2], T[9] = T[6];
        if (!toile_invert_block(T, inverse))
            continue;
        for (int i = begin; i < end; i++)
            for (int a = 0; a < 3; a++)
                w->solution[4 * (size_t)i + (size_t)a] +=
                    inverse[4 * a] * left[0] + inverse[4 * a + 1] * left[1] + inverse[4 * a + 2] * left[2];
    }
}

/* Impulses of the constraints, A dv - b (Baraff-Witkin 5.4), in r; other rows of r are anything. */
static void find_impulses(toile_sim *sim, toile_system *system) {
    toile_work *w = &sim->work;
    const toile_constraints *c = &w->constraints;
    if (!c->count)
        return;
    if (w->assembly.diagonal_only) {
        for (int k = 0; k < c->count; k++)
            sim->kernels->multiply_row(&w->assembly, &w->matrix, c->particle[k], w->solution, w->r);
        add_couplings(sim, w->solution, w->r);
        system->row_multiplies += c->count;
    } else {
        multiply(sim, w->solution, w->r);
        system->row_multiplies += sim->model->particle_count;
    }
    for (int k = 0; k < c->count; k++)
        for (size_t i = 4 * (size_t)c->particle[k], end = i + 3; i < end; i++)
            w->r[i] -= w->b[i];
}

/* ---- solvers ---- */

static toile_system system_of(toile_sim *sim) {
    toile_work *w = &sim->work;
    return (toile_system){.kernels = sim->kernels,
                          .model = sim->model,
                          .matrix = &w->matrix,
                          .constraints = &w->constraints,
                          .b = w->b,
                          .x = w->solution,
                          .tolerance = sim->settings->solver_tolerance,
                          .iterations_max = sim->settings->solver_iterations_max,
                          .threads = sim->threads,
                          .components = 1};
}

static bool solve_fast(toile_sim *sim, int iterations_max, toile_system *out) {
    toile_work *w = &sim->work;
    toile_fast_job job = {.fast = &w->fast,
                          .pattern = &sim->model->pattern,
                          .constraints = &w->constraints,
                          .couplings = sim->self.couplings.count ? &sim->self.couplings : NULL,
                          .fresh = true,
                          .shift = sim->state.shift,
                          .b = w->b,
                          .older = w->older,
                          .residual = w->r,
                          .x = w->solution,
                          .tolerance = out->tolerance,
                          .reduction = TOILE_SINGLE_PRECISION,
                          .threads = sim->threads};
    int products = 1;
    double gained = INFINITY;
    if (out->tolerance >= TOILE_SINGLE_PRECISION) {
        sim->kernels->fast_guess(&job);
        w->older = NULL; /* when a step is solved again its own answer is the better guess */
    } else {
        guess(sim);
        job.energy = residual(sim);
    }
    for (int turn = 0; turn < REFINEMENTS_MAX; turn++) {
        job.iterations_max = iterations_max - out->iterations;
        sim->kernels->fast_solve(&job);
        out->iterations += job.iterations;
        products += job.iterations;
        if (job.sound && job.gained > 0.25 * gained) /* rounding is all that is left */
            job.converged = true;
        if (!job.sound || job.converged || out->iterations >= iterations_max)
            break;
        gained = job.gained;
        job.fresh = false;
        multiply(sim, w->solution, w->s);
        job.energy = residual(sim);
        products++;
    }
    sim->state.shift = job.shift <= TOILE_SHIFT_LAST ? job.shift : 0;
    out->row_multiplies = (int64_t)products * sim->model->particle_count;
    return out->converged = job.converged;
}

static bool solve_directly(toile_sim *sim, toile_system *system) {
    toile_solvers *own = &sim->solvers;
    toile_error *error = &sim->trouble;
    if (!own->cholmod && toile_cholmod_make(sim->memory, sim->model, true, &own->cholmod, error) != TOILE_OK)
        return false;
    assemble_all(sim);
    toile_error unsound; /* a matrix that is not positive definite makes the step shorter, it does not end the bake */
    toile_status status = toile_cholmod_solve(own->cholmod, system, &unsound);
    if (status != TOILE_OK)
        *error = unsound;
    sim->frame.direct_solves++;
    return status == TOILE_OK && system->converged;
}

static bool solve_mpcg(toile_sim *sim, double h, toile_system *out) {
    toile_work *w = &sim->work;
    const toile_settings *set = sim->settings;
    bool factored = set->preconditioner == TOILE_PRECONDITIONER_INCOMPLETE && set->linear_solver == TOILE_SOLVER_MPCG;
    toile_solve job = {.matrix = &w->matrix,
                       .constraints = &w->constraints,
                       .couplings = sim->self.couplings.count ? &sim->self.couplings : NULL,
                       .b = w->b,
                       .x = w->solution,
                       .r = w->r,
                       .p = w->p,
                       .s = w->s,
                       .q = w->q,
                       .inverse = w->inverse,
                       .fast = factored ? &w->fast : NULL,
                       .partial = w->partial,
                       .tolerance = set->solver_tolerance,
                       .thesis = set->solver_stop == TOILE_STOP_THESIS,
                       .tolerance2 = THESIS_TOLERANCE * h,
                       .iterations_max = set->solver_iterations_max,
                       .threads = sim->threads};
    if (!factored)
        toile_precondition(&job, set->preconditioner);
    sim->kernels->mpcg(&job);
    out->iterations = job.iterations;
    out->row_multiplies = (int64_t)job.products * sim->model->particle_count;
    return out->converged = job.converged;
}

/* The fast solver, unless its iterations would cost more than a direct solve. Costs are counted, not timed, so that the
 * same scene gives the same bits: a factor of n particles takes about 400 (3 n)^1.5 operations at 12 a nanosecond, an
 * iteration 40 n nanoseconds (measured; the ratio is what matters). After a solve that had to be given up the next ones go
 * directly before the fast solver is tried again. */
static bool solve_auto(toile_sim *sim, double h, toile_system *system) {
    const int patience = 24;
    double worth = 4.3 * sqrt((double)sim->model->particle_count);
    int most = worth < 100 ? 100 : (int)worth;
    bool coupled = sim->self.couplings.count > 0; /* then there is no matrix to factor */
    if (sim->state.direct_left > 0 && !coupled) {
        sim->state.direct_left--;
        return solve_directly(sim, system);
    }
    most = most < sim->settings->solver_iterations_max ? most : sim->settings->solver_iterations_max;
    sim->frame.fast_solves++;
    if (solve_fast(sim, coupled ? sim->settings->solver_iterations_max : most, system))
        return true;
    if (coupled) {
        assemble_all(sim);
        return solve_mpcg(sim, h, system);
    }
    sim->state.direct_left = patience;
    return solve_directly(sim, system);
}

/* One of the papers' solvers; its memory is made when it is first needed. */
static bool solve_as_asked(toile_sim *sim, double h, toile_system *system) {
    toile_solvers *own = &sim->solvers;
    toile_error *error = &sim->trouble;
    if (sim->self.couplings.count && sim->settings->linear_solver != TOILE_SOLVER_AUTO)
        return solve_mpcg(sim, h, system); /* the others need all of the matrix in its pattern */
    if (sim->settings->decompose) {
        if (!own->decompose && toile_decompose_make(sim->memory, sim->model, &own->decompose, error) != TOILE_OK)
            return false;
        toile_decompose_solve(own->decompose, system);
        return system->converged;
    }
    switch (sim->settings->linear_solver) {
    case TOILE_SOLVER_UPCG:
        if (!own->upcg && toile_upcg_make(sim->memory, sim->model, &own->upcg, error) != TOILE_OK)
            return false;
        toile_upcg_solve(own->upcg, system);
        return system->converged;
    case TOILE_SOLVER_CHOLMOD: return solve_directly(sim, system);
    case TOILE_SOLVER_COREPCG: {
        toile_error unsound;
        if (!own->corepcg && toile_corepcg_make(sim->memory, sim->model, true, &own->corepcg, error) != TOILE_OK)
            return false;
        if (toile_corepcg_solve(own->corepcg, system, &sim->work.assembly, &unsound) != TOILE_OK)
            *error = unsound;
        return error->status == TOILE_OK && system->converged;
    }
    case TOILE_SOLVER_MPCG: return solve_mpcg(sim, h, system);
    default: return solve_auto(sim, h, system);
    }
}

void toile_solvers_free(toile_solvers *own) {
    toile_cholmod_free(own->cholmod);
    toile_upcg_free(own->upcg);
    toile_corepcg_free(own->corepcg);
    toile_decompose_free(own->decompose);
}

bool toile_solve_step(toile_sim *sim, double h) {
    toile_system system = system_of(sim);
    bool converged = solve_as_asked(sim, h, &system);
    keep_momentum(sim);
    find_impulses(sim, &system);
    sim->frame.solves++;
    sim->frame.components += system.components;
    sim->frame.iterations += system.iterations;
    sim->frame.row_multiplies += system.row_multiplies;
    return converged;
}
