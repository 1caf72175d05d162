/* The reference solvers against each other: every one gives the direct solution within the error asked for,
 * on systems of real steps and on random ones, under every kind of constraint; the same bits for any number
 * of threads; and a clear no where there is no answer. */
#include "check.h"

#include "solve_cholmod.h"
#include "solve_corepcg.h"
#include "solve_decompose.h"
#include "solve_linear.h"
#ifdef TOILE_MUMPS
#include "solve_mumps.h"
#endif
#include "solve_stop.h"
#include "solve_upcg.h"
#include "world.h"

#include <SuiteSparse_config.h>

/* What an estimate of the error may be off by (solve_stop.h). */
#define ESTIMATE 1.2

enum { NONE, SCENE, PINS, PLANES, MIXED, MOVING, EVERYTHING, ALL_PLANES, CONSTRAINT_KINDS };
static const char *const KIND_NAMES[] = {"none",  "scene",  "pins",       "planes",
                                         "mixed", "moving", "everything", "all planes"};

enum {
    CHOLMOD,
    CHOLMOD_FIXED,
    UPCG,
    COREPCG,
    COREPCG_FIXED,
    DECOMPOSE,
#ifdef TOILE_MUMPS
    MUMPS,
#endif
    SOLVERS
};
static const char *const SOLVER_NAMES[] = {"cholmod",       "cholmod fixed", "upcg", "corepcg",
                                           "corepcg fixed", "decompose",     "mumps"};

/* ---- systems ---- */

/* A system with arrays of its own; `world` keeps the model. */
typedef struct problem {
    toile_world *world;
    toile_memory memory;
    const toile_sim *sim;
    size_t n;
    toile_matrix matrix;
    toile_constraints constraints;
    toile_assembly assembly;
    double *b, *x, *exact, *guess, *scratch, *difference;
} problem;

static double *doubles(problem *p, size_t count) {
    return toile_alloc(&p->memory, count, sizeof(double));
}

static toile_world *build_world(const char *model, int nu, int nv, int frames) {
    toile_world *w = NULL;
    int fabric, sheet, corners[2] = {0, nu - 1};
    toile_grid grid = {.name = "sheet",
                       .nu = nu,
                       .nv = nv,
                       .origin = {-0.4, -0.4, 0.125},
                       .u_axis = {0.8, 0, 0},
                       .v_axis = {0, 0.8, 0}};
    toile_collider ball = {.name = "ball",
                           .shape = TOILE_SPHERE,
                           .size = {0.12},
                           .friction_static = 0.4,
                           .friction_kinetic = 0.3};
    toile_create(NULL, &w);
    toile_set(w, "cloth_model", model);
    toile_set(w, "threads", "1");
    toile_set(w, "linear_solver", "mpcg"); /* leaves a whole matrix behind */
    toile_set(w, "contact_thickness", "0.01"); /* enough for its particles alone to hold so coarse a sheet */
    toile_add_fabric(w, "cotton", &fabric);
    grid.fabric = fabric;
    toile_add_grid(w, &grid, &sheet);
    toile_pin pin = {sheet, 2, corners, {true, true, true}};
    toile_add_pin(w, &pin, NULL);
    toile_add_collider(w, &ball, NULL);
    bool ok = toile_build(w) >= 0;
    for (int f = 0; ok && f < frames; f++)
        ok = toile_advance(w, 1.0 / 24) >= 0;
    if (!ok) {
        printf("cannot build: %s\n", toile_message(w));
        exit(1);
    }
    return w;
}

static void make_vectors(problem *p) {
    size_t n = p->n;
    p->b = doubles(p, 4 * n);
    p->x = doubles(p, 4 * n);
    p->exact = doubles(p, 4 * n);
    p->guess = doubles(p, 4 * n);
    p->scratch = doubles(p, 4 * n);
    p->difference = doubles(p, 4 * n);
    p->matrix.diagonal = doubles(p, 12 * n);
    p->matrix.off = doubles(p, 9 * (size_t)p->sim->model->pattern.off_count + 3);
    p->matrix.spill = p->sim->work.matrix.spill;
    p->matrix.pattern = &p->sim->model->pattern;
    p->constraints.particle = toile_alloc(&p->memory, n, sizeof(int));
    p->constraints.chunk_begin =
        toile_alloc(&p->memory, (size_t)p->matrix.pattern->chunk_count + 1, sizeof(int));
    p->constraints.filter = doubles(p, 12 * n);
    p->constraints.z = doubles(p, 4 * n);
}

/* The last system that a simulation solved. */
static problem *step_system(const char *model, int nu, int nv, int frames) {
    problem *p = calloc(1, sizeof *p);
    toile_memory_init(&p->memory, NULL);
    p->world = build_world(model, nu, nv, frames);
    p->sim = toile_world_sim(p->world);
    p->n = (size_t)p->sim->model->particle_count;
    make_vectors(p);
    const toile_work *w = &p->sim->work;
    p->assembly = (toile_assembly){.model = p->sim->model,
                                   .h = p->sim->total.step_max,
                                   .triangle = w->triangle,
                                   .hinge = w->hinge,
                                   .spring = w->spring,
                                   .force = w->force,
                                   .drag = w->drag};
    memcpy(p->matrix.diagonal, w->matrix.diagonal, 12 * p->n * sizeof(double));
    memcpy(p->matrix.off, w->matrix.off, 9 * (size_t)p->matrix.pattern->off_count * sizeof(double));
    memcpy(p->b, w->b, 4 * p->n * sizeof(double));
    memcpy(p->guess, p->sim->state.dv, 4 * p->n * sizeof(double));
    return p;
}

/* Random blocks on the same pattern, with diagonals that make it positive definite by not much. */
static problem *random_system(int nu, int nv) {
    problem *p = step_system("continuum", nu, nv, 0);
    const toile_pattern *pattern = p->matrix.pattern;
    double *sum = calloc(p->n, sizeof *sum);
    for (int i = 0; i < pattern->n; i++)
        for (int k = pattern->row_begin[i]; k < pattern->row_begin[i + 1]; k++) {
            double norm = 0;
            for (int e = 0; e < 9; e++) {
                double v = p->matrix.off[9 * (size_t)k + (size_t)e] = random_between(-1, 1);
                norm += v * v;
            }
            sum[i] += sqrt(norm);
            sum[pattern->column[k]] += sqrt(norm);
        }
    for (size_t i = 0; i < p->n; i++) {
        double *D = p->matrix.diagonal + 12 * i;
        memset(D, 0, 12 * sizeof *D);
        for (int a = 0; a < 3; a++) {
            D[5 * a] = 0.7 * sum[i] +
                       random_between(0.1, 1); /* below the row sums, and still definite for random signs */
            p->b[4 * i + (size_t)a] = random_between(-1, 1);
            p->guess[4 * i + (size_t)a] = random_between(-1, 1);
        }
        D[1] = D[4] = random_between(-0.05, 0.05);
    }
    free(sum);
    memset(p->sim->work.triangle, 0,
           (size_t)p->sim->model->triangles.padded * TOILE_TRIANGLE_RECORD * sizeof(double));
    return p;
}

static void free_problem(problem *p) {
    void *blocks[] = {p->b,
                      p->x,
                      p->exact,
                      p->guess,
                      p->scratch,
                      p->difference,
                      p->matrix.diagonal,
                      p->matrix.off,
                      p->constraints.particle,
                      p->constraints.chunk_begin,
                      p->constraints.filter,
                      p->constraints.z};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(&p->memory, blocks[i]);
    CHECK(p->memory.live == 0, "%llu blocks are left", (unsigned long long)p->memory.live);
    toile_destroy(p->world);
    free(p);
}

/* ---- constraints ---- */

static void random_direction(double d[3]) {
    double length = 0;
    while (length < 0.1) {
        for (int k = 0; k < 3; k++)
            d[k] = random_between(-1, 1);
        length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    }
    for (int k = 0; k < 3; k++)
        d[k] /= length;
}

/* Leaves `rank` directions of particle i free; z is random of this size, or (0, 0, speed) for a rigid motion.
 */
static void constrain(problem *p, int i, int rank, double speed, bool rigid) {
    toile_constraints *c = &p->constraints;
    double *S = c->filter + 12 * (size_t)c->count, d[3], t[3] = {0, 0, speed}, *z = c->z + 4 * (size_t)i;
    static const double AXES[3][3] = {
        {1, 0, 0}, {0, 0, 1}, {0, -1, 0}}; /* where closed forms have their special cases */
    random_direction(d);
    if (random_unit() < 0.3)
        memcpy(d, AXES[(int)(3 * random_unit())], sizeof d);
    memset(S, 0, 12 * sizeof *S);
    for (int a = 0; a < 3; a++) {
        if (!rigid)
            t[a] = random_between(-speed, speed);
        for (int b = 0; b < 3 && rank; b++)
            S[4 * a + b] = rank == 1 ? d[a] * d[b] : (a == b) - (rank == 2 ? d[a] * d[b] : 0);
    }
    for (int a = 0; a < 3; a++) {
        z[a] = t[a];
        for (int b = 0; b < 3; b++)
            z[a] -= S[4 * a + b] * t[b];
    }
    c->particle[c->count++] = i;
}

static void set_constraints(problem *p, int kind) {
    toile_constraints *c = &p->constraints;
    const toile_constraints *scene = &p->sim->work.constraints;
    int n = (int)p->n;
    c->count = 0;
    memset(c->z, 0, 4 * p->n * sizeof(double));
    if (kind == SCENE) {
        c->count = scene->count;
        memcpy(c->particle, scene->particle, (size_t)scene->count * sizeof(int));
        memcpy(c->filter, scene->filter, 12 * (size_t)scene->count * sizeof(double));
        memcpy(c->z, scene->z, 4 * p->n * sizeof(double));
    }
    for (int i = 0; i < n && kind != NONE && kind != SCENE; i++) {
        double u = random_unit();
        if (kind == PINS && u < 0.1)
            constrain(p, i, 0, 0.01, false);
        else if (kind == PLANES && u < 0.3)
            constrain(p, i, 2, 0.01, false);
        else if (kind == MIXED && u < 0.5)
            constrain(p, i, (int)(8 * u), 0.01, false);
        else if (kind == MOVING && i < n / 10)
            constrain(p, i, 0, 0.1, true);
        else if (kind == EVERYTHING)
            constrain(p, i, 0, 0.01, false);
        else if (kind == ALL_PLANES)
            constrain(p, i, 2, 0.01, false);
    }
    int k = 0;
    for (int chunk = 0; chunk < p->matrix.pattern->chunk_count; chunk++) {
        while (k < c->count && c->particle[k] < p->matrix.pattern->chunk_begin[chunk])
            k++;
        c->chunk_begin[chunk] = k;
    }
    c->chunk_begin[p->matrix.pattern->chunk_count] = c->count;
}

/* ---- solvers ---- */

typedef struct solver {
    int kind;
    toile_cholmod *cholmod;
    toile_upcg *upcg;
    toile_corepcg *corepcg;
    toile_decompose *decompose;
#ifdef TOILE_MUMPS
    toile_mumps *mumps;
#endif
} solver;

static toile_status make_solver(toile_memory *memory, const toile_model *model, int kind, solver *s,
                                toile_error *error) {
    *s = (solver){.kind = kind};
    switch (kind) {
    case CHOLMOD:
    case CHOLMOD_FIXED: return toile_cholmod_make(memory, model, kind == CHOLMOD_FIXED, &s->cholmod, error);
    case UPCG: return toile_upcg_make(memory, model, &s->upcg, error);
    case COREPCG:
    case COREPCG_FIXED: return toile_corepcg_make(memory, model, kind == COREPCG_FIXED, &s->corepcg, error);
#ifdef TOILE_MUMPS
    case MUMPS: return toile_mumps_make(memory, model, false, &s->mumps, error);
#endif
    default: return toile_decompose_make(memory, model, &s->decompose, error);
    }
}

static void free_solver(solver *s) {
    toile_cholmod_free(s->cholmod);
    toile_upcg_free(s->upcg);
    toile_corepcg_free(s->corepcg);
    toile_decompose_free(s->decompose);
#ifdef TOILE_MUMPS
    toile_mumps_free(s->mumps);
#endif
}

static toile_system system_of(problem *p, double tolerance, int threads, bool warm) {
    if (warm)
        memcpy(p->x, p->guess, 4 * p->n * sizeof(double));
    else
        memset(p->x, 0, 4 * p->n * sizeof(double));
    return (toile_system){.kernels = p->sim->kernels,
                          .model = p->sim->model,
                          .matrix = &p->matrix,
                          .constraints = &p->constraints,
                          .b = p->b,
                          .x = p->x,
                          .tolerance = tolerance,
                          .iterations_max = 20000,
                          .threads = threads};
}

static toile_status run_solver(solver *s, problem *p, toile_system *system) {
    toile_error error = {0};
    switch (s->kind) {
    case CHOLMOD:
    case CHOLMOD_FIXED: return toile_cholmod_solve(s->cholmod, system, &error);
    case UPCG: toile_upcg_solve(s->upcg, system); return TOILE_OK;
    case COREPCG:
    case COREPCG_FIXED: return toile_corepcg_solve(s->corepcg, system, &p->assembly, &error);
#ifdef TOILE_MUMPS
    case MUMPS: return toile_mumps_solve(s->mumps, system, &error);
#endif
    default: toile_decompose_solve(s->decompose, system); return TOILE_OK;
    }
}

static double dot_product(problem *p, const double *a, const double *b) {
    double sum = 0;
    for (size_t i = 0; i < 4 * p->n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double energy_of(problem *p, const double *x) {
    toile_multiply(p->sim->kernels, &p->matrix, x, p->scratch, 1);
    return dot_product(p, x, p->scratch);
}

/* |x - x*|_A / |x*|_A */
static double error_of(problem *p, const double *x) {
    double size = energy_of(p, p->exact);
    for (size_t i = 0; i < 4 * p->n; i++)
        p->difference[i] = x[i] - p->exact[i];
    double e = energy_of(p, p->difference);
    return size > 0 ? sqrt(e / size) : sqrt(e);
}

/* The direct solution into `exact`, checked by the equations themselves: S (b - A x) = 0 and (I - S) x = (I -
 * S) z. */
static void find_exact(problem *p) {
    toile_error error = {0};
    solver s;
    CHECK(make_solver(&p->memory, p->sim->model, CHOLMOD, &s, &error) == TOILE_OK, "%s", error.message);
    toile_system system = system_of(p, 1e-10, 1, false);
    CHECK(run_solver(&s, p, &system) == TOILE_OK && system.converged, "no direct solution");
    memcpy(p->exact, p->x, 4 * p->n * sizeof(double));
    free_solver(&s);
    toile_multiply(p->sim->kernels, &p->matrix, p->exact, p->scratch, 1);
    double residual = 0, scale = 0, off = 0;
    for (size_t i = 0; i < 4 * p->n; i++)
        scale = fmax(scale, fmax(fabs(p->b[i]), fabs(p->matrix.diagonal[12 * (i / 4)] * p->exact[i])));
    for (size_t i = 0, k = 0; i < p->n; i++) {
        double S[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, r[3];
        if (k < (size_t)p->constraints.count && p->constraints.particle[k] == (int)i)
            memcpy(S, p->constraints.filter + 12 * k++, sizeof S);
        for (int a = 0; a < 3; a++)
            r[a] = p->b[4 * i + (size_t)a] - p->scratch[4 * i + (size_t)a];
        for (int a = 0; a < 3; a++) {
            const double *x = p->exact + 4 * i;
            residual = fmax(residual, fabs(S[4 * a] * r[0] + S[4 * a + 1] * r[1] + S[4 * a + 2] * r[2]));
            off = fmax(off, fabs(x[a] - (S[4 * a] * x[0] + S[4 * a + 1] * x[1] + S[4 * a + 2] * x[2]) -
                                 p->constraints.z[4 * i + (size_t)a]));
        }
    }
    CHECK(residual <= 1e-9 * scale, "the direct solution leaves %.2e of %.2e", residual, scale);
    CHECK(off <= 1e-14, "the direct solution is %.2e off its constraints", off);
}

/* ---- tests ---- */

static void check_agreement(problem *p, const char *name) {
    static const double TOLERANCES[] = {1e-2, 1e-5, 1e-10};
    for (int kind = 0; kind < CONSTRAINT_KINDS; kind++) {
        set_constraints(p, kind);
        find_exact(p);
        for (int k = 0; k < SOLVERS; k++) {
            solver s;
            toile_error error;
            CHECK(make_solver(&p->memory, p->sim->model, k, &s, &error) == TOILE_OK, "%s", error.message);
            bool direct = k == CHOLMOD || k == CHOLMOD_FIXED || k > DECOMPOSE;
            for (int t = 0; t < 3; t++)
                for (int warm = 0; warm < 2; warm++) {
                    toile_system system = system_of(p, TOLERANCES[t], 1, warm);
                    uint64_t calls = p->memory.calls;
                    CHECK(run_solver(&s, p, &system) == TOILE_OK && system.converged,
                          "%s, %s, %s to %.0e: no answer", name, KIND_NAMES[kind], SOLVER_NAMES[k],
                          TOLERANCES[t]);
                    CHECK(p->memory.calls == calls, "%s allocates in a solve", SOLVER_NAMES[k]);
                    double found = error_of(p, p->x),
                           most = direct ? 1e-11 : ESTIMATE * TOLERANCES[t] + 1e-13;
                    CHECK(found <= most, "%s, %s, %s: error %.2e for %.0e after %d iterations", name,
                          KIND_NAMES[kind], SOLVER_NAMES[k], found, TOLERANCES[t], system.iterations);
                    CHECK(k == DECOMPOSE || system.components == 1, "%d components", system.components);
                }
            free_solver(&s);
        }
    }
}

static void springs_agree(void) {
    problem *p = step_system("springs", 23, 19, 5);
    CHECK(p->sim->work.constraints.count > 15, "only %d constraints in the scene",
          p->sim->work.constraints.count);
    check_agreement(p, "springs");
    free_problem(p);
}

static void continuum_agrees(void) {
    problem *p = step_system("continuum", 23, 19, 7);
    CHECK(p->sim->work.constraints.count > 15, "only %d constraints in the scene",
          p->sim->work.constraints.count);
    check_agreement(p, "continuum");
    free_problem(p);
}

static void random_agree(void) {
    for (int turn = 0; turn < 3; turn++) {
        problem *p = random_system(9 + turn, 7);
        check_agreement(p, "random");
        free_problem(p);
    }
}

static void same_bits(void) {
    static const char *const MODELS[] = {"springs", "continuum"};
    for (int m = 0; m < 2; m++) {
        problem *p = step_system(MODELS[m], 71, 61, 2);
        CHECK(p->matrix.pattern->chunk_count > 2, "%d chunks are no test", p->matrix.pattern->chunk_count);
        set_constraints(p, MIXED);
        for (int k = 0; k < SOLVERS; k++) {
            solver s;
            toile_error error;
            int first_count = 0;
            make_solver(&p->memory, p->sim->model, k, &s, &error);
            for (int threads = 1; threads <= 3; threads++) {
                toile_system system = system_of(p, 1e-4, threads, true);
                CHECK(run_solver(&s, p, &system) == TOILE_OK && system.converged, "%s: no answer",
                      SOLVER_NAMES[k]);
                if (threads == 1) {
                    memcpy(p->exact, p->x, 4 * p->n * sizeof(double));
                    first_count = system.iterations;
                }
                CHECK(memcmp(p->exact, p->x, 4 * p->n * sizeof(double)) == 0 &&
                          system.iterations == first_count,
                      "%s: %d threads give other bits, or %d iterations for %d", SOLVER_NAMES[k], threads,
                      system.iterations, first_count);
            }
            free_solver(&s);
        }
        free_problem(p);
    }
}

/* The estimate of solve_stop.h against true errors, step by step: MPCG with diagonal blocks, from nothing and
 * warm. */
static void follow_error(problem *p, bool warm, double *least, double *most) {
    const toile_constraints *c = &p->constraints;
    size_t n = 4 * p->n;
    double *inverse = doubles(p, 3 * n), *r = doubles(p, n), *d = doubles(p, n), *s = doubles(p, n),
           *q = doubles(p, n);
    toile_solve job = {.matrix = &p->matrix, .constraints = c, .inverse = inverse, .threads = 1};
    toile_precondition(&job, TOILE_PRECONDITIONER_CONSTRAINED);
#define FILTER(y)                                                                                            \
    for (int k = 0; k < c->count; k++) {                                                                     \
        double *v = (y) + 4 * (size_t)c->particle[k], t[3];                                                  \
        const double *S = c->filter + 12 * (size_t)k;                                                        \
        for (int a = 0; a < 3; a++)                                                                          \
            t[a] = S[4 * a] * v[0] + S[4 * a + 1] * v[1] + S[4 * a + 2] * v[2];                              \
        memcpy(v, t, sizeof t);                                                                              \
    }
#define PRECONDITION(in, out)                                                                                \
    for (size_t i = 0; i < n; i += 4)                                                                        \
        for (size_t a = 0; a < 3; a++)                                                                       \
            out[i + a] = inverse[3 * i + 4 * a] * in[i] + inverse[3 * i + 4 * a + 1] * in[i + 1] +           \
                         inverse[3 * i + 4 * a + 2] * in[i + 2];
    memcpy(p->x, p->guess, n * sizeof(double));
    for (size_t i = 0; i < n && !warm; i++)
        p->x[i] = 0;
    FILTER(p->x);
    for (size_t i = 0; i < n; i++)
        p->x[i] += c->z[i];
    toile_stop stop = toile_stop_begin(1e-8, energy_of(p, p->x));
    for (size_t i = 0; i < n; i++)
        r[i] = p->b[i] - p->scratch[i];
    FILTER(r);
    PRECONDITION(r, d);
    double delta = dot_product(p, r, d), begin = error_of(p, p->x);
    bool done = false;
    for (int k = 0; k < 5000 && !done; k++) {
        toile_multiply(p->sim->kernels, &p->matrix, d, s, 1);
        FILTER(s);
        double alpha = delta / dot_product(p, d, s);
        for (size_t i = 0; i < n; i++) {
            p->x[i] += alpha * d[i];
            r[i] -= alpha * s[i];
        }
        done = toile_stop_step(&stop, alpha, delta, dot_product(p, d, p->b));
        double error = error_of(p, p->x), size = energy_of(p, p->exact);
        if (stop.pending == 0 && stop.count >= TOILE_STOP_LEAST && error < 0.1 * begin && error < 0.1) {
            double ratio = sqrt(stop.error2 / size) / error;
            *least = fmin(*least, ratio);
            *most = fmax(*most, ratio);
            CHECK(fabs(stop.energy / size - 1) < 2.1 * error + 1e-12,
                  "|x|^2 is taken for %.6f of itself at error %.1e", stop.energy / size, error);
        }
        double last = delta;
        PRECONDITION(r, q);
        delta = dot_product(p, r, q);
        for (size_t i = 0; i < n; i++)
            d[i] = q[i] + delta / last * d[i];
    }
    CHECK(done && error_of(p, p->x) < ESTIMATE * 1e-8, "stopped at %.2e for 1e-8", error_of(p, p->x));
    double *vectors[] = {inverse, r, d, s, q};
    for (int i = 0; i < 5; i++)
        toile_free(&p->memory, vectors[i]);
}

static void estimate_follows_error(void) {
    static const char *const MODELS[] = {"springs", "continuum"};
    double least = 1e300, most = 0;
    for (int m = 0; m < 2; m++) {
        problem *p = step_system(MODELS[m], 31, 27, 5);
        for (int kind = 0; kind < CONSTRAINT_KINDS; kind++) {
            if (kind == EVERYTHING)
                continue;
            set_constraints(p, kind);
            find_exact(p);
            for (int warm = 0; warm < 2; warm++)
                follow_error(p, warm, &least, &most);
        }
        free_problem(p);
    }
    CHECK(least > 0.6, "the estimate is down to %.2f of the error", least);
    CHECK(most < 12, "the estimate is up to %.1f of the error", most);
    CHECK(toile_stop_thesis(1e-4, 1e-4, 1.0) && !toile_stop_thesis(1e-4, 1.1e-4, 1.0),
          "the rule of the papers");
}

/* Symbolic work is done again only when the pattern changes. */
static void pattern_reuse(void) {
    problem *p = step_system("springs", 21, 19, 3);
    toile_error error;
    for (int fixed = 0; fixed < 2; fixed++) {
        toile_cholmod *c;
        toile_cholmod_make(&p->memory, p->sim->model, fixed, &c, &error);
        static const int KINDS[] = {NONE, NONE, ALL_PLANES, ALL_PLANES, NONE, MIXED};
        static const int WANTED[] = {1, 1, 2, 2, 3, 4}; /* directions may change, ranks not */
        for (int k = 0; k < 6; k++) {
            set_constraints(p, KINDS[k]);
            toile_system system = system_of(p, 1e-10, 1, false);
            CHECK(toile_cholmod_solve(c, &system, &error) == TOILE_OK && system.converged, "no answer");
            CHECK(toile_cholmod_analyses(c) == (fixed ? 1 : WANTED[k]), "%d orderings after %d solves",
                  toile_cholmod_analyses(c), k + 1);
        }
        toile_cholmod_free(c);
    }
    free_problem(p);
}

/* ---- what has no answer ---- */

static void expect_refusal(problem *p, const char *what) {
    for (int k = 0; k < SOLVERS; k++) {
        solver s;
        toile_error error;
        make_solver(&p->memory, p->sim->model, k, &s, &error);
        for (int threads = 1; threads <= 2; threads++) {
            toile_system system = system_of(p, 1e-6, threads, false);
            system.iterations_max = 500;
            CHECK(run_solver(&s, p, &system) == TOILE_OK && !system.converged, "%s: %s found an answer", what,
                  SOLVER_NAMES[k]);
        }
        free_solver(&s);
    }
}

static void no_answer(void) {
    static const char *const MODELS[] = {"springs", "continuum"};
    for (int m = 0; m < 2; m++) {
        problem *p = step_system(MODELS[m], 15, 13, 2);
        set_constraints(p, MIXED);
        int row = 0;
        for (int k = 0; k < p->constraints.count && p->constraints.particle[k] == row; k++)
            row++; /* a free particle */
        double *D = p->matrix.diagonal + 12 * (size_t)row, kept = D[0];
        D[0] = NAN;
        expect_refusal(p, "a matrix that is not finite");
        D[0] = INFINITY;
        expect_refusal(p, "an infinite matrix");
        D[0] = -kept;
        expect_refusal(p, "an indefinite matrix");
        D[0] = kept;
        double b = p->b[4 * row];
        p->b[4 * row] = NAN;
        expect_refusal(p, "a right side that is not finite");
        p->b[4 * row] = b;
        memset(p->matrix.diagonal, 0, 12 * p->n * sizeof(double));
        memset(p->matrix.off, 0, 9 * (size_t)p->matrix.pattern->off_count * sizeof(double));
        expect_refusal(p, "a matrix of zeros");
        free_problem(p);
    }
}

/* Nothing to do: no right side, no motion. */
static void zero_right_side(void) {
    problem *p = step_system("springs", 15, 13, 2);
    set_constraints(p, PLANES);
    memset(p->b, 0, 4 * p->n * sizeof(double));
    memset(p->constraints.z, 0, 4 * p->n * sizeof(double));
    for (int k = 0; k < SOLVERS; k++) {
        solver s;
        toile_error error;
        make_solver(&p->memory, p->sim->model, k, &s, &error);
        toile_system system = system_of(p, 1e-6, 1, false);
        CHECK(run_solver(&s, p, &system) == TOILE_OK && system.converged, "%s: no answer", SOLVER_NAMES[k]);
        CHECK(dot_product(p, p->x, p->x) == 0, "%s: not zero", SOLVER_NAMES[k]);
        free_solver(&s);
    }
    free_problem(p);
}

typedef struct counter {
    int64_t calls, fail_at;
} counter;

static void *count_allocate(void *user, size_t size) {
    counter *c = user;
    return c->calls++ == c->fail_at ? NULL : malloc(size);
}

static void count_release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

static void failing_memory(void) {
    problem *p = step_system("springs", 9, 9, 0);
    for (int k = 0; k < SOLVERS; k++) {
        int64_t n = 0;
        for (;; n++) {
            counter c = {0, n};
            toile_allocator allocator = {count_allocate, count_release, &c};
            toile_memory memory;
            toile_error error = {0};
            solver s;
            toile_memory_init(&memory, &allocator);
            toile_status status = make_solver(&memory, p->sim->model, k, &s, &error);
            free_solver(&s);
            CHECK(memory.live == 0, "%s: allocation %lld failing leaves %llu blocks", SOLVER_NAMES[k],
                  (long long)n, (unsigned long long)memory.live);
            if (c.calls <= n) {
                CHECK(status == TOILE_OK, "%s: %s", SOLVER_NAMES[k], error.message);
                break;
            }
            CHECK(status == TOILE_NO_MEMORY && strstr(error.message, "memory"),
                  "%s: allocation %lld failing gives \"%s\"", SOLVER_NAMES[k], (long long)n, error.message);
        }
        CHECK(n > 3, "%s: only %lld allocations", SOLVER_NAMES[k], (long long)n);
    }
    free_problem(p);
}

/* CHOLMOD has memory of its own: when that fails, the solve says so, and works again afterwards. */
static int64_t cholmod_calls, cholmod_fail_at;

static void *cholmod_malloc(size_t size) {
    return cholmod_calls++ == cholmod_fail_at ? NULL : malloc(size);
}

static void *cholmod_calloc(size_t count, size_t size) {
    return cholmod_calls++ == cholmod_fail_at ? NULL : calloc(count, size);
}

static void *cholmod_realloc(void *block, size_t size) {
    return cholmod_calls++ == cholmod_fail_at ? NULL : realloc(block, size);
}

static void failing_cholmod(void) {
    static const int KINDS[] = {CHOLMOD, CHOLMOD_FIXED, COREPCG};
    problem *p = step_system("springs", 15, 13, 2);
    set_constraints(p, MIXED);
    find_exact(p);
    SuiteSparse_config.malloc_func = cholmod_malloc;
    SuiteSparse_config.calloc_func = cholmod_calloc;
    SuiteSparse_config.realloc_func = cholmod_realloc;
    for (int k = 0; k < 3; k++)
        for (int64_t n = 0, refused = 0;; n++) {
            solver s;
            toile_error error;
            cholmod_calls = 0;
            cholmod_fail_at = n;
            toile_status status = make_solver(&p->memory, p->sim->model, KINDS[k], &s, &error);
            toile_system system = system_of(p, 1e-8, 1, false);
            if (status == TOILE_OK)
                status = run_solver(&s, p, &system);
            bool reached = cholmod_calls > n;
            CHECK(status == TOILE_OK || status == TOILE_NO_MEMORY, "%s: allocation %lld failing gives %s",
                  SOLVER_NAMES[KINDS[k]], (long long)n, toile_status_name(status));
            CHECK(status == TOILE_NO_MEMORY || (system.converged && error_of(p, p->x) <= ESTIMATE * 1e-8),
                  "%s: allocation %lld failed and the answer is wrong", SOLVER_NAMES[KINDS[k]], (long long)n);
            refused += status == TOILE_NO_MEMORY;
            cholmod_fail_at = -1;
            if (status == TOILE_NO_MEMORY && s.kind == KINDS[k] && (s.cholmod || s.corepcg)) {
                system = system_of(p, 1e-8, 1, false);
                CHECK(run_solver(&s, p, &system) == TOILE_OK && system.converged &&
                          error_of(p, p->x) <= ESTIMATE * 1e-8,
                      "%s: no answer after allocation %lld failed once", SOLVER_NAMES[KINDS[k]],
                      (long long)n);
            }
            free_solver(&s);
            if (!reached) {
                CHECK(refused > 20, "%s: only %lld allocations were refused", SOLVER_NAMES[KINDS[k]],
                      (long long)refused);
                break;
            }
        }
    SuiteSparse_config.malloc_func = malloc;
    SuiteSparse_config.calloc_func = calloc;
    SuiteSparse_config.realloc_func = realloc;
    free_problem(p);
}

/* ---- parts ---- */

/* Position in the grid of a particle of the model. */
static int *grid_rows(problem *p, int nu) {
    int *row = malloc(p->n * sizeof *row);
    for (size_t g = 0; g < p->n; g++)
        row[p->sim->model->place[g]] = (int)g / nu;
    return row;
}

static int count_parts(problem *p, const char *what) {
    toile_decompose *d;
    toile_error error;
    toile_decompose_make(&p->memory, p->sim->model, &d, &error);
    toile_system system = system_of(p, 1e-8, 2, false);
    toile_decompose_solve(d, &system);
    CHECK(system.converged, "%s: no answer", what);
    CHECK(error_of(p, p->x) < ESTIMATE * 1e-8, "%s: error %.2e", what, error_of(p, p->x));
    int dead = 0;
    for (size_t i = 0; i < p->n; i++)
        dead += toile_decompose_parts(d)[i] < 0;
    if (system.iterations)
        CHECK(system.row_multiplies <= (int64_t)(system.iterations + 2) * (int64_t)p->n &&
                  system.row_multiplies >= (int64_t)p->n - dead,
              "%s: %lld rows multiplied", what, (long long)system.row_multiplies);
    toile_decompose_free(d);
    return system.components;
}

static void parts(void) {
    enum { NU = 20, NV = 17 };
    problem *p = step_system("continuum", NU, NV, 3);
    const toile_pattern *pattern = p->matrix.pattern;
    int *row = grid_rows(p, NU), found;
    set_constraints(p, NONE);
    find_exact(p);
    found = count_parts(p, "a sheet");
    CHECK(found == 1, "a sheet has %d parts", found);

    /* two held rows side by side are a dead end across the sheet: hinges reach two rows */
    p->constraints.count = 0;
    for (size_t i = 0; i < p->n; i++)
        if (row[i] == 8 || row[i] == 9)
            constrain(p, (int)i, 0, 0.01, false);
    p->constraints.chunk_begin[pattern->chunk_count] = p->constraints.count;
    for (int c = 0; c < pattern->chunk_count; c++) {
        int k = 0;
        while (k < p->constraints.count && p->constraints.particle[k] < pattern->chunk_begin[c])
            k++;
        p->constraints.chunk_begin[c] = k;
    }
    find_exact(p);
    found = count_parts(p, "a sheet held along a line");
    CHECK(found == 2, "a sheet held along a line has %d parts", found);

    /* a block that is exactly zero joins nothing: cut between rows 2 and 3, and between 12 and 13 */
    set_constraints(p, NONE);
    for (int i = 0; i < pattern->n; i++)
        for (int k = pattern->row_begin[i]; k < pattern->row_begin[i + 1]; k++) {
            int a = row[i], b = row[pattern->column[k]];
            if ((a <= 2) != (b <= 2) || (a <= 12) != (b <= 12))
                memset(p->matrix.off + 9 * (size_t)k, 0, 9 * sizeof(double));
        }
    find_exact(p);
    found = count_parts(p, "a sheet cut twice");
    CHECK(found == 3, "a sheet cut twice has %d parts", found);

    memset(p->matrix.off, 0, 9 * (size_t)pattern->off_count * sizeof(double));
    find_exact(p);
    found = count_parts(p, "single particles");
    CHECK(found == NU * NV, "%d particles have %d parts", NU * NV, found);

    set_constraints(p, EVERYTHING);
    find_exact(p);
    found = count_parts(p, "everything held");
    CHECK(found == 0, "everything held has %d parts", found);
    free(row);
    free_problem(p);
}

/* Iterations hardly depend on the stiffness of the core (Ye, Webber and Wang, Table 2), and are few. */
static void core_is_good(void) {
    problem *p = step_system("springs", 41, 41, 4);
    set_constraints(p, SCENE);
    toile_error error;
    toile_corepcg *core;
    toile_upcg *plain;
    toile_corepcg_make(&p->memory, p->sim->model, true, &core, &error);
    toile_upcg_make(&p->memory, p->sim->model, &plain, &error);
    toile_system a = system_of(p, 1e-5, 1, false);
    toile_corepcg_solve(core, &a, &p->assembly, &error);
    toile_system b = system_of(p, 1e-5, 1, false);
    toile_upcg_solve(plain, &b);
    CHECK(a.converged && b.converged && 4 * a.iterations < b.iterations,
          "corepcg takes %d iterations, upcg %d", a.iterations, b.iterations);
    toile_corepcg_free(core);
    toile_upcg_free(plain);
    free_problem(p);
}

int main(int argc, char **argv) {
    RUN(springs_agree);
    RUN(continuum_agrees);
    RUN(random_agree);
    RUN(same_bits);
    RUN(estimate_follows_error);
    RUN(pattern_reuse);
    RUN(no_answer);
    RUN(zero_right_side);
    RUN(failing_memory);
    RUN(failing_cholmod);
    RUN(parts);
    RUN(core_is_good);
    FINISH();
}
