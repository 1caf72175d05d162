/* Solvers by name, each at the effort that brings the true error just below what was asked: only then are
 * their times comparable. Setup that depends on numbers is part of a solve; orderings are sought once and not
 * timed. */
#include "bench.h"

#include "solve_cholmod.h"
#include "solve_corepcg.h"
#include "solve_decompose.h"
#include "solve_linear.h"
#include "solve_upcg.h"
#ifdef TOILE_MUMPS
#include "solve_mumps.h"
#endif
#include "fast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind {
    AUTO,
    CHOLMOD,
    COREPCG,
    DECOMPOSE,
    MPCG_NONE,
    MPCG_DIAGONAL,
    MPCG_CONSTRAINED,
    MUMPS,
    UPCG,
    KINDS
} kind;
static const char *const NAMES[] = {"auto",          "cholmod",          "corepcg", "decompose", "mpcg_none",
                                    "mpcg_diagonal", "mpcg_constrained", "mumps",   "upcg"};

struct bench_solver {
    kind kind;
    bench_case *c;
    toile_cholmod *cholmod;
    toile_corepcg *corepcg;
    toile_decompose *decompose;
    toile_upcg *upcg;
#ifdef TOILE_MUMPS
    toile_mumps *mumps;
#endif
    double *r, *p, *s, *q, *inverse, *partial; /* of mpcg */
};

bench_solver *bench_solver_make(const char *name, bench_case *c) {
    const toile_model *m = c->sim->model;
    toile_error error;
    bench_solver *s = calloc(1, sizeof *s);
    bool ok = s != NULL;
    size_t n = (size_t)m->particle_count;
    if (!ok)
        return NULL;
    s->c = c;
    s->kind = AUTO;
    while (s->kind < KINDS && strcmp(NAMES[s->kind], name) != 0)
        s->kind++;
    switch (s->kind) {
    case CHOLMOD: ok = toile_cholmod_make(&c->memory, m, true, &s->cholmod, &error) == TOILE_OK; break;
    case COREPCG: ok = toile_corepcg_make(&c->memory, m, true, &s->corepcg, &error) == TOILE_OK; break;
    case DECOMPOSE: ok = toile_decompose_make(&c->memory, m, &s->decompose, &error) == TOILE_OK; break;
    case UPCG: ok = toile_upcg_make(&c->memory, m, &s->upcg, &error) == TOILE_OK; break;
    case MPCG_NONE:
    case MPCG_DIAGONAL:
    case MPCG_CONSTRAINED:
        ok = (s->r = toile_alloc(&c->memory, 4 * n, sizeof(double))) &&
             (s->p = toile_alloc(&c->memory, 4 * n, sizeof(double))) &&
             (s->s = toile_alloc(&c->memory, 4 * n, sizeof(double))) &&
             (s->q = toile_alloc(&c->memory, 4 * n, sizeof(double))) &&
             (s->inverse = toile_alloc(&c->memory, 12 * n, sizeof(double))) &&
             (s->partial = toile_alloc(&c->memory, 8 * (size_t)m->pattern.chunk_count, sizeof(double)));
        break;
#ifdef TOILE_MUMPS
    case MUMPS: ok = toile_mumps_make(&c->memory, m, true, &s->mumps, &error) == TOILE_OK; break;
#endif
    case AUTO: break;
    default: ok = false;
    }
    if (ok)
        return s;
    bench_solver_free(s);
    return NULL;
}

void bench_solver_free(bench_solver *s) {
    if (!s)
        return;
    toile_cholmod_free(s->cholmod);
    toile_corepcg_free(s->corepcg);
    toile_decompose_free(s->decompose);
    toile_upcg_free(s->upcg);
#ifdef TOILE_MUMPS
    toile_mumps_free(s->mumps);
#endif
    double *blocks[] = {s->r, s->p, s->s, s->q, s->inverse, s->partial};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(&s->c->memory, blocks[i]);
    free(s);
}

/* ---- MPCG; with the diagonal of A it is as Baraff and Witkin precondition ---- */

static bool is_mpcg(kind k) {
    return k == MPCG_NONE || k == MPCG_DIAGONAL || k == MPCG_CONSTRAINED;
}

static void fill_inverse(bench_solver *s, const bench_system *system) {
    int preconditioner = s->kind == MPCG_NONE       ? TOILE_PRECONDITIONER_NONE
                         : s->kind == MPCG_DIAGONAL ? TOILE_PRECONDITIONER_DIAGONAL
                                                    : TOILE_PRECONDITIONER_CONSTRAINED;
    toile_solve job = {.matrix = (toile_matrix *)&system->matrix,
                       .constraints = &system->constraints,
                       .inverse = s->inverse,
                       .threads = 1};
    toile_precondition(&job, preconditioner);
}

static int solve_mpcg(bench_solver *s, const bench_system *system, int iterations, int threads) {
    fill_inverse(s, system);
    /* without a tolerance it goes on for as long as it may */
    toile_solve job = {.matrix = (toile_matrix *)&system->matrix,
                       .constraints = &system->constraints,
                       .b = system->b,
                       .x = s->c->x,
                       .r = s->r,
                       .p = s->p,
                       .s = s->s,
                       .q = s->q,
                       .inverse = s->inverse,
                       .partial = s->partial,
                       .iterations_max = iterations,
                       .threads = threads};
    s->c->sim->kernels->mpcg(&job);
    return job.iterations;
}

static double dot(size_t n, const double *a, const double *b) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void filter(const toile_constraints *c, double *y) {
    for (int k = 0; k < c->count; k++) {
        double *v = y + 4 * (size_t)c->particle[k], t[3];
        const double *S = c->filter + 12 * (size_t)k;
        for (int a = 0; a < 3; a++)
            t[a] = S[4 * a] * v[0] + S[4 * a + 1] * v[1] + S[4 * a + 2] * v[2];
        memcpy(v, t, sizeof t);
    }
}

static void precondition(const bench_solver *s, const double *r, double *q) {
    for (size_t i = 0; i < 4 * (size_t)s->c->sim->model->particle_count; i += 4)
        for (size_t a = 0; a < 3; a++)
            q[i + a] = s->inverse[3 * i + 4 * a] * r[i] + s->inverse[3 * i + 4 * a + 1] * r[i + 1] +
                       s->inverse[3 * i + 4 * a + 2] * r[i + 2];
}

/* The same iteration with the true error looked at in every step. The error is followed exactly by what each
 * step takes off it (solve_stop.h), because the answer is known. */
static double mpcg_effort(bench_solver *s, const bench_system *system, double error) {
    bench_case *c = s->c;
    const toile_kernels *k = c->sim->kernels;
    size_t n = 4 * (size_t)c->sim->model->particle_count;
    double *x = c->x;
    fill_inverse(s, system);
    memcpy(x, system->constraints.z, n * sizeof *x);
    double e = bench_error(c, system), left = e * e * system->size2;
    toile_multiply(k, &system->matrix, x, s->s, 1);
    for (size_t i = 0; i < n; i++)
        s->r[i] = system->b[i] - s->s[i];
    filter(&system->constraints, s->r);
    precondition(s, s->r, s->p);
    double delta = dot(n, s->r, s->p);
    for (int count = 1; count < 100000 && delta > 0; count++) {
        toile_multiply(k, &system->matrix, s->p, s->s, 1);
        filter(&system->constraints, s->s);
        double alpha = delta / dot(n, s->p, s->s), last = delta;
        for (size_t i = 0; i < n; i++) {
            x[i] += alpha * s->p[i];
            s->r[i] -= alpha * s->s[i];
        }
        left -= alpha * delta;
        if (left <= 1.05 * error * error * system->size2 && bench_error(c, system) <= error)
            return count;
        precondition(s, s->r, s->q);
        delta = dot(n, s->r, s->q);
        for (size_t i = 0; i < n; i++)
            s->p[i] = s->q[i] + delta / last * s->p[i];
    }
    return NAN;
}

/* ---- auto: what a simulation's step calls ---- */

/* Puts the system into the simulation's work space as a step would have left it. Not timed: it belongs to the
 * assembly. */
static void load_auto(bench_case *c, const bench_system *system) {
    toile_sim *sim = c->sim;
    toile_work *w = &sim->work;
    const toile_model *m = sim->model;
    const toile_pattern *p = &m->pattern;
    const toile_assembly *from = &system->assembly;
    size_t n = (size_t)p->n;
    if (!m->springs_used)
        memcpy(w->triangle, from->triangle,
               (size_t)m->triangles.padded * TOILE_TRIANGLE_RECORD * sizeof(double));
    memcpy(w->hinge, from->hinge, (size_t)m->hinges.padded * TOILE_HINGE_RECORD * sizeof(double));
    memcpy(w->spring, from->spring, (size_t)m->springs.padded * TOILE_SPRING_RECORD * sizeof(double));
    memcpy(w->force, from->force, 4 * n * sizeof(double));
    memcpy(w->drag, from->drag, 8 * n * sizeof(double));
    w->constraints.count = system->constraints.count;
    memcpy(w->constraints.particle, system->constraints.particle,
           (size_t)system->constraints.count * sizeof(int));
    memcpy(w->constraints.chunk_begin, system->constraints.chunk_begin,
           ((size_t)p->chunk_count + 1) * sizeof(int));
    memcpy(w->constraints.filter, system->constraints.filter,
           12 * (size_t)system->constraints.count * sizeof(double));
    memcpy(w->constraints.z, system->constraints.z, 4 * n * sizeof(double));
    memset(w->solution, 0, 4 * n * sizeof(double));
    toile_assembly a = *from;
    a.fast = &w->fast;
    a.diagonal_only = m->springs_used;
    if (m->springs_used)
        sim->kernels->convert_springs(w->spring, 0, m->springs.padded, w->fast.spring);
    for (int chunk = 0; chunk < p->chunk_count; chunk++)
        sim->kernels->assemble(&a, chunk, &w->matrix, w->b);
    w->assembly = a;
}

static bool solve_auto(bench_case *c, double tolerance, int threads, int *iterations) {
    toile_sim *sim = c->sim;
    toile_settings settings = *sim->settings, *own = &settings;
    const toile_settings *kept = sim->settings;
    int64_t before = sim->frame.iterations;
    own->solver_tolerance = tolerance;
    own->linear_solver = TOILE_SOLVER_AUTO;
    sim->settings = own;
    sim->threads = threads;
    bool converged = toile_solve_step(sim, c->step);
    sim->settings = kept;
    sim->threads = 1;
    *iterations = (int)(sim->frame.iterations - before);
    return converged;
}

/* ---- all ---- */

bench_run bench_solve(bench_solver *s, const bench_system *system, double effort, int threads) {
    bench_case *c = s->c;
    bench_run run = {.sound = true, .components = 1};
    toile_error error;
    toile_system job = {.kernels = c->sim->kernels,
                        .model = c->sim->model,
                        .matrix = (toile_matrix *)&system->matrix,
                        .constraints = &system->constraints,
                        .b = system->b,
                        .x = c->x,
                        .tolerance = effort,
                        .iterations_max = 100000,
                        .threads = threads};
    memset(c->x, 0, 4 * (size_t)c->sim->model->particle_count * sizeof(double));
    if (s->kind == AUTO)
        load_auto(c, system);
    double wall = toile_clock(), begin = bench_cpu();
    switch (s->kind) {
    case CHOLMOD: run.sound = toile_cholmod_solve(s->cholmod, &job, &error) == TOILE_OK; break;
    case COREPCG:
        run.sound = toile_corepcg_solve(s->corepcg, &job, &system->assembly, &error) == TOILE_OK;
        break;
    case DECOMPOSE: toile_decompose_solve(s->decompose, &job); break;
    case UPCG: toile_upcg_solve(s->upcg, &job); break;
    case MPCG_NONE:
    case MPCG_DIAGONAL:
    case MPCG_CONSTRAINED:
        job.iterations = solve_mpcg(s, system, (int)effort, threads);
        job.converged = true; /* as far as it was let; the error is looked at */
        break;
#ifdef TOILE_MUMPS
    case MUMPS: run.sound = toile_mumps_solve(s->mumps, &job, &error) == TOILE_OK; break;
#endif
    case AUTO: job.converged = solve_auto(c, effort, threads, &job.iterations); break;
    default: run.sound = false;
    }
    run.seconds = bench_cpu() - begin;
    run.wall = toile_clock() - wall;
    if (s->kind == AUTO)
        memcpy(c->x, c->sim->work.solution, 4 * (size_t)c->sim->model->particle_count * sizeof(double));
    run.sound = run.sound && job.converged;
    run.iterations = job.iterations;
    run.rows = job.row_multiplies;
    run.components = job.components;
    return run;
}

bool bench_products(bench_case *c, const bench_system *system, double *own, double *blocks) {
    typedef void product(const toile_fast *f, const toile_pattern *p, int chunk, const float *x, float *y);
    typedef void spill(const toile_fast *f, const toile_pattern *p, int chunk, float *y);
    extern product toile_fast_multiply_sse2, toile_fast_multiply_avx2, toile_fast_multiply_avx512;
    extern spill toile_fast_multiply_spill_sse2, toile_fast_multiply_spill_avx2,
        toile_fast_multiply_spill_avx512;
    const char *name = c->sim->kernels->name;
    product *multiply = strcmp(name, "avx512") == 0 ? toile_fast_multiply_avx512
                        : strcmp(name, "avx2") == 0 ? toile_fast_multiply_avx2
                                                    : toile_fast_multiply_sse2;
    spill *add = strcmp(name, "avx512") == 0 ? toile_fast_multiply_spill_avx512
                 : strcmp(name, "avx2") == 0 ? toile_fast_multiply_spill_avx2
                                             : toile_fast_multiply_spill_sse2;
    toile_fast *f = &c->sim->work.fast;
    load_auto(c, system);
    *own = *blocks = INFINITY;
    for (size_t i = 0; i < 4 * (size_t)c->sim->model->particle_count; i++)
        f->p[i] = (float)system->exact[i];
    for (int turn = 0; turn < 15; turn++) { /* each for itself, as in a solve */
        double begin = bench_cpu();
        for (int chunk = 0; chunk < c->sim->model->pattern.chunk_count; chunk++)
            multiply(f, &c->sim->model->pattern, chunk, f->p, f->s);
        for (int chunk = 0; chunk < c->sim->model->pattern.chunk_count; chunk++)
            add(f, &c->sim->model->pattern, chunk, f->s);
        *own = fmin(*own, bench_cpu() - begin);
    }
    for (int turn = 0; turn < 15; turn++) {
        double begin = bench_cpu();
        toile_multiply(c->sim->kernels, &system->matrix, system->exact, c->product, 1);
        *blocks = fmin(*blocks, bench_cpu() - begin);
    }
    return true;
}

bool bench_step_parts(bench_case *c, const bench_system *system, double *evaluate, double *assemble_auto,
                      double *assemble_all) {
    toile_sim *sim = c->sim;
    toile_work *w = &sim->work;
    const toile_model *m = sim->model;
    toile_assembly a = system->assembly;
    a.fast = &w->fast;
    a.diagonal_only = m->springs_used;
    toile_evaluation at = {
        .model = m, .x = sim->state.x, .v = sim->state.v, .d = w->ahead, .h = c->step, .turn = c->step};
    *evaluate = *assemble_auto = *assemble_all = INFINITY;
    load_auto(c, system);
    for (int turn = 0; turn < 7; turn++) {
        double t[4] = {bench_cpu()};
        if (m->springs_used) {
            sim->kernels->springs(&at, 0, m->springs.padded, w->spring);
        } else {
            sim->kernels->triangles(&at, 0, m->triangles.padded, w->triangle);
            sim->kernels->hinges(&at, 0, m->hinges.padded, w->bend, w->hinge);
            for (int pass = 0; pass < m->hinges.passes; pass++)
                sim->kernels->moments(m, pass, 0, m->hinges.padded, w->bend, w->hinge);
        }
        t[1] = bench_cpu();
        if (m->springs_used)
            sim->kernels->convert_springs(w->spring, 0, m->springs.padded, w->fast.spring);
        for (int chunk = 0; chunk < m->pattern.chunk_count; chunk++)
            sim->kernels->assemble(&a, chunk, &w->matrix, w->b);
        t[2] = bench_cpu();
        for (int chunk = 0; chunk < m->pattern.chunk_count; chunk++)
            sim->kernels->assemble(&system->assembly, chunk, (toile_matrix *)&system->matrix, c->product);
        t[3] = bench_cpu();
        *evaluate = fmin(*evaluate, t[1] - t[0]);
        *assemble_auto = fmin(*assemble_auto, t[2] - t[1]);
        *assemble_all = fmin(*assemble_all, t[3] - t[2]);
    }
    return true;
}

double bench_effort(bench_solver *s, const bench_system *system, double error) {
    if (s->kind == CHOLMOD || s->kind == MUMPS) /* one run for the ordering */
        return bench_solve(s, system, error, 1).sound && bench_error(s->c, system) <= error ? error : NAN;
    if (is_mpcg(s->kind))
        return mpcg_effort(s, system, error);
    /* the largest tolerance that does: estimates are on the safe side, so begin above */
    for (double tolerance = 2.8 * error; tolerance > 0.01 * error; tolerance /= 1.2)
        if (bench_solve(s, system, tolerance, 1).sound && bench_error(s->c, system) <= error)
            return tolerance;
    return NAN;
}
