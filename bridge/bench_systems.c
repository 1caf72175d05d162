/* Scenes for the solver benchmarks, and the linear systems of some of their steps. Trajectories are made by
 * the simulation as it is; a system is then taken with all that it was made from, so that every solver gets
 * the same. */
#include "bench.h"

#include "commands.h"
#include "solve_cholmod.h"
#include "solve_linear.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int count) {
    if (count < 1)
        return NAN;
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/* ---- meshes ---- */

enum { TUBE_AROUND = 96, TUBE_ALONG = 91 };
#define TUBE_RADIUS 0.165 /* of the cloth at rest, m */
#define TUBE_START 0.1725 /* clear of the ball, m */
#define TUBE_BALL 0.170
#define TUBE_LENGTH 0.972 /* square cells */

typedef struct mesh {
    int vertices, faces;
    double *position, *uv; /* (vertices x 3), (faces x 8) */
    int *sizes, *corners;
    int *pins, pin_count;
} mesh;

/* Repeatable random numbers in [0, 1). */
static double random_unit(uint64_t *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static bool make_arrays(mesh *m, int vertices, int faces) {
    size_t v = (size_t)vertices, f = (size_t)faces;
    *m = (mesh){.vertices = vertices, .faces = faces};
    m->position = calloc(3 * v, sizeof(double));
    m->uv = calloc(8 * f, sizeof(double));
    m->sizes = calloc(f, sizeof(int));
    m->corners = calloc(4 * f, sizeof(int));
    m->pins = calloc(v, sizeof(int));
    return m->position && m->uv && m->sizes && m->corners && m->pins;
}

static void free_mesh(mesh *m) {
    free(m->position);
    free(m->uv);
    free(m->sizes);
    free(m->corners);
    free(m->pins);
}

/* A tube of quads around z, its upper ring pinned; uv is unrolled, so the last face of a ring closes at u = 2
 * pi r. */
static bool make_tube(mesh *m, bool ball) {
    if (!make_arrays(m, TUBE_AROUND * TUBE_ALONG, TUBE_AROUND * (TUBE_ALONG - 1)))
        return false;
    double radius = ball ? TUBE_START : TUBE_RADIUS, width = 2 * M_PI * TUBE_RADIUS / TUBE_AROUND;
    for (int k = 0; k < TUBE_ALONG; k++)
        for (int a = 0; a < TUBE_AROUND; a++) {
            double *p = m->position + 3 * (k * TUBE_AROUND + a), turn = 2 * M_PI * a / TUBE_AROUND;
            p[0] = radius * cos(turn);
            p[1] = radius * sin(turn);
            p[2] = TUBE_LENGTH * (0.5 - (double)k / (TUBE_ALONG - 1));
        }
    for (int k = 0; k + 1 < TUBE_ALONG; k++)
        for (int a = 0; a < TUBE_AROUND; a++) {
            int f = k * TUBE_AROUND + a, next = (a + 1) % TUBE_AROUND;
            int corner[4] = {k * TUBE_AROUND + a, (k + 1) * TUBE_AROUND + a, (k + 1) * TUBE_AROUND + next,
                             k * TUBE_AROUND + next};
            double u = width * a, v = TUBE_LENGTH * k / (TUBE_ALONG - 1),
                   down = TUBE_LENGTH / (TUBE_ALONG - 1);
            double uv[8] = {u, -v, u, -v - down, u + width, -v - down, u + width, -v};
            m->sizes[f] = 4;
            memcpy(m->corners + 4 * f, corner, sizeof corner);
            memcpy(m->uv + 8 * f, uv, sizeof uv);
        }
    for (int a = 0; a < TUBE_AROUND; a++)
        m->pins[m->pin_count++] = a;
    return true;
}

/* A sheet of triangles or quads in the x z plane, two upper corners pinned, vertices jittered and shuffled as
 * asked. */
static bool make_sheet(mesh *m, const bench_cloth *cloth) {
    int n = cloth->n, per_cell = cloth->jitter > 0 ? 2 : 1;
    uint64_t seed = 7;
    int *order = malloc((size_t)(n * n) * sizeof *order);
    if (!make_arrays(m, n * n, per_cell * (n - 1) * (n - 1)) || !order) {
        free(order);
        return false;
    }
    for (int i = 0; i < n * n; i++)
        order[i] = i;
    for (int i = n * n - 1; i > 0 && cloth->shuffled; i--) {
        int j = (int)(random_unit(&seed) * (i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    double edge = 1.0 / (n - 1);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            double *p = m->position + 3 * order[i + j * n];
            bool inner = i > 0 && j > 0 && i < n - 1 && j < n - 1;
            p[0] = edge * (i + (inner ? cloth->jitter * (random_unit(&seed) - 0.5) : 0)) - 0.5;
            p[cloth->drape ? 1 : 2] =
                edge * (j + (inner ? cloth->jitter * (random_unit(&seed) - 0.5) : 0)) - 0.5;
            if (cloth->drape)
                p[2] = 0.305;
        }
    int f = 0;
    for (int j = 0; j + 1 < n; j++)
        for (int i = 0; i + 1 < n; i++) {
            int a = order[i + j * n], b = order[i + 1 + j * n], c = order[i + 1 + (j + 1) * n],
                d = order[i + (j + 1) * n];
            int quad[4] = {a, b, c, d}, left[6] = {a, b, c, a, c, d}, right[6] = {a, b, d, b, c, d};
            if (per_cell == 1) {
                m->sizes[f] = 4;
                memcpy(m->corners + 4 * f, quad, sizeof quad);
            } else {
                m->sizes[f] = m->sizes[f + 1] = 3;
                memcpy(m->corners + 3 * f, random_unit(&seed) < 0.5 ? left : right, sizeof left);
            }
            f += per_cell;
        }
    for (int k = 0, size = per_cell == 1 ? 4 : 3; k < size * f; k++) {
        m->uv[2 * k] = m->position[3 * m->corners[k]];
        m->uv[2 * k + 1] = m->position[3 * m->corners[k] + (cloth->drape ? 1 : 2)];
    }
    for (int j = 0; j < n && !cloth->drape; j++)
        for (int i = 0; i < n; i++)
            if (hypot(edge * i, edge * (n - 1 - j)) <= 0.0201 ||
                hypot(edge * (n - 1 - i), edge * (n - 1 - j)) <= 0.0201)
                m->pins[m->pin_count++] = order[i + j * n];
    free(order);
    return true;
}

/* ---- scenes ---- */

bench_cloth bench_ye_grid(int n, double stretch) {
    double step = n <= 41 ? 6.67e-3 : n <= 81 ? 5.55e-3 : 3.67e-3;
    /* 9.5e-6 kg each. Choi and Ko's bend constant of 0.05 is a moment per curvature of a strip of springs;
     * here it is that of a light fabric, and as little of the matrix. */
    return (bench_cloth){.springs = true,
                         .n = n,
                         .ball = true,
                         .stretch = stretch,
                         .shear = 0.3,
                         .bend = 1e-6,
                         .density = 9.5e-6 * n * n,
                         .step = step,
                         .first = 12,
                         .every = 8};
}

static toile_status build_world(const bench_cloth *cloth, toile_world *w) {
    char number[32];
    toile_status s;
    mesh m;
    int fabric, garment, face_fabric[1];
    snprintf(number, sizeof number, "%.17g", cloth->step);
    if ((s = toile_set(w, "cloth_model", cloth->springs ? "springs" : "continuum")) < 0 ||
        (s = toile_set(w, "threads", "1")) < 0 || (s = toile_set(w, "time_step", number)) < 0 ||
        (s = toile_set(w, "self_collision", "off")) < 0 || /* systems that every solver can take */
        (s = toile_set(w, "stretch_change_max", "10")) <
            0 || /* systems of the step asked for, not of a shorter one */
        (s = toile_add_fabric(w, NULL, &fabric)) < 0)
        return s;
    struct {
        const char *id;
        double value;
    } values[] = {{"density", cloth->density},
                  {"stretch_warp", cloth->stretch},
                  {"stretch_weft", cloth->stretch},
                  {"shear", cloth->shear},
                  {"shear_lock", 0}, /* nor does that of the papers */
                  {"stretch_limit", 0},
                  {"bend_warp", cloth->bend},
                  {"bend_weft", cloth->bend},
                  {"stretch_damping", 0.2 * cloth->step},
                  {"bend_damping", 0.2 * cloth->step}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if ((s = toile_set_fabric(w, fabric, values[i].id, values[i].value)) < 0)
            return s;
    bool made = cloth->tube ? make_tube(&m, cloth->ball) : make_sheet(&m, cloth);
    face_fabric[0] = fabric;
    toile_mesh garment_mesh = {.name = "cloth",
                               .vertex_count = m.vertices,
                               .positions = m.position,
                               .face_count = m.faces,
                               .face_sizes = m.sizes,
                               .face_vertices = m.corners,
                               .corner_uv = m.uv,
                               .panel_count = 1,
                               .panel_fabrics = face_fabric};
    s = made ? toile_add_mesh(w, &garment_mesh, &garment) : TOILE_NO_MEMORY;
    if (s >= 0 && m.pin_count) {
        toile_pin pin = {garment, m.pin_count, m.pins, {true, true, true}};
        s = toile_add_pin(w, &pin, NULL);
    }
    free_mesh(&m);
    double radius = cloth->tube ? TUBE_BALL : cloth->drape ? 0.3 : 0.15, friction = cloth->slides ? 0 : cloth->drape ? 10 : 0.3;
    bool flies = !cloth->tube && !cloth->drape;
    toile_collider ball = {.name = "ball",
                           .shape = TOILE_SPHERE,
                           .size = {radius},
                           .friction_static = friction,
                           .friction_kinetic = friction,
                           .position = {0, flies ? -0.17 : 0, 0}};
    if (s >= 0 && cloth->ball)
        s = toile_add_collider(w, &ball, NULL);
    if (s >= 0 && !cloth->ball) /* something to do: it swings */
        s = toile_set(w, "gravity", "3,1,-9.81");
    return s < 0 ? s : toile_build(w);
}

/* ---- systems ---- */

static double *copy(bench_case *c, const double *from, size_t count) {
    double *to = toile_alloc(&c->memory, count, sizeof *to);
    if (to && from)
        memcpy(to, from, count * sizeof *to);
    return to;
}

/* Leaves shear and bend out of the matrix; the right side stays. */
static void make_thin(const toile_springs *s, double *record) {
    for (int i = s->stretch_count; i < s->padded; i++)
        record[(size_t)i * TOILE_SPRING_RECORD + 3] = record[(size_t)i * TOILE_SPRING_RECORD + 4] = 0;
}

/* The system of the last step, all blocks assembled, into the next place. */
static bool take_system(bench_case *c, const double *previous, bool thin) {
    const toile_work *w = &c->sim->work;
    const toile_model *m = c->sim->model;
    const toile_pattern *p = &m->pattern;
    size_t n = (size_t)p->n;
    bench_system *s = &c->systems[c->count++];
    toile_assembly a = {.model = m, .h = c->step};
    a.triangle =
        copy(c, w->triangle, m->springs_used ? 0 : (size_t)m->triangles.padded * TOILE_TRIANGLE_RECORD);
    a.hinge = copy(c, w->hinge, (size_t)m->hinges.padded * TOILE_HINGE_RECORD);
    a.spring = copy(c, w->spring, (size_t)m->springs.padded * TOILE_SPRING_RECORD + 4);
    a.force = copy(c, w->force, 4 * n);
    a.drag = copy(c, w->drag, 8 * n);
    if (thin && a.spring)
        make_thin(&m->springs, (double *)a.spring);
    s->assembly = a;
    s->matrix = (toile_matrix){.pattern = p,
                               .diagonal = copy(c, NULL, 12 * n),
                               .off = copy(c, NULL, 9 * (size_t)p->off_count + 3),
                               .spill = copy(c, NULL, 4 * (size_t)p->spill_begin[p->chunk_count])};
    s->b = copy(c, NULL, 4 * n);
    s->previous = copy(c, previous, 4 * n);
    s->exact = copy(c, NULL, 4 * n);
    s->constraints =
        (toile_constraints){.count = w->constraints.count,
                            .particle = toile_alloc(&c->memory, n, sizeof(int)),
                            .chunk_begin = toile_alloc(&c->memory, (size_t)p->chunk_count + 1, sizeof(int)),
                            .filter = copy(c, w->constraints.filter, 12 * n),
                            .z = copy(c, w->constraints.z, 4 * n)};
    if (!a.triangle || !a.hinge || !a.spring || !a.force || !a.drag || !s->matrix.diagonal ||
        !s->matrix.off || !s->matrix.spill || !s->b || !s->previous || !s->exact ||
        !s->constraints.particle || !s->constraints.chunk_begin || !s->constraints.filter ||
        !s->constraints.z)
        return false;
    memcpy(s->constraints.particle, w->constraints.particle, (size_t)w->constraints.count * sizeof(int));
    memcpy(s->constraints.chunk_begin, w->constraints.chunk_begin,
           ((size_t)p->chunk_count + 1) * sizeof(int));
    for (int chunk = 0; chunk < p->chunk_count; chunk++)
        c->sim->kernels->assemble(&s->assembly, chunk, &s->matrix, s->b);
    c->contacts = w->constraints.count;
    return true;
}

static double dot(const bench_case *c, const double *a, const double *b) {
    double sum = 0;
    for (size_t i = 0; i < 4 * (size_t)c->sim->model->particle_count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The oracle: a direct solution of each system. */
static bool find_exact(bench_case *c) {
    toile_cholmod *direct = NULL;
    toile_error error;
    bool ok = toile_cholmod_make(&c->memory, c->sim->model, true, &direct, &error) == TOILE_OK;
    for (int k = 0; ok && k < c->count; k++) {
        bench_system *s = &c->systems[k];
        toile_system system = {.kernels = c->sim->kernels,
                               .model = c->sim->model,
                               .matrix = &s->matrix,
                               .constraints = &s->constraints,
                               .b = s->b,
                               .x = s->exact,
                               .threads = 1};
        ok = toile_cholmod_solve(direct, &system, &error) == TOILE_OK && system.converged;
        toile_multiply(c->sim->kernels, &s->matrix, s->exact, c->product, 1);
        s->size2 = dot(c, s->exact, c->product);
        ok = ok && s->size2 > 0;
    }
    toile_cholmod_free(direct);
    return ok;
}

bool bench_make_case(const char *name, const bench_cloth *cloth, bench_case *c) {
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%s", name);
    toile_memory_init(&c->memory, NULL);
    c->step = cloth->step;
    double no_turn[4] = {1, 0, 0, 0};
    toile_status status = toile_create(NULL, &c->world);
    if (status >= 0)
        status = build_world(cloth, c->world);
    if (status >= 0)
        c->sim = toile_world_sim(c->world);
    size_t n = c->sim ? 4 * (size_t)c->sim->model->particle_count : 0;
    c->x = toile_alloc(&c->memory, n, sizeof(double));
    c->difference = toile_alloc(&c->memory, n, sizeof(double));
    c->product = toile_alloc(&c->memory, n, sizeof(double));
    bool ok = c->x && c->difference && c->product;
    for (int step = 1; ok && status >= 0 && c->count < BENCH_SYSTEMS; step++) {
        double at[3] = {0, -0.17 + 1.0 * step * cloth->step, 0}; /* 1 m/s */
        if (cloth->ball && !cloth->tube && !cloth->drape)
            toile_pose_collider(c->world, 0, at, no_turn);
        memcpy(c->x, c->sim->state.dv, n * sizeof(double));
        status = toile_advance(c->world, cloth->step);
        if (status >= 0 && step >= cloth->first && (step - cloth->first) % cloth->every == 0)
            ok = take_system(c, c->x, cloth->thin);
    }
    ok = ok && status >= 0 && find_exact(c);
    if (!ok)
        toile_complain(TOILE_EXIT_FAILED, "benchmark case %s: %s", name,
                       status < 0 ? toile_message(c->world) : "not enough memory, or no direct solution");
    return ok;
}

void bench_free_case(bench_case *c) {
    for (int k = 0; k < c->count; k++) {
        bench_system *s = &c->systems[k];
        void *blocks[] = {(void *)s->assembly.triangle,
                          (void *)s->assembly.hinge,
                          (void *)s->assembly.spring,
                          (void *)s->assembly.force,
                          (void *)s->assembly.drag,
                          s->matrix.diagonal,
                          s->matrix.off,
                          s->matrix.spill,
                          s->b,
                          s->previous,
                          s->exact,
                          s->constraints.particle,
                          s->constraints.chunk_begin,
                          s->constraints.filter,
                          s->constraints.z};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
            toile_free(&c->memory, blocks[i]);
    }
    toile_free(&c->memory, c->x);
    toile_free(&c->memory, c->difference);
    toile_free(&c->memory, c->product);
    toile_destroy(c->world);
    memset(c, 0, sizeof *c);
}

double bench_error(bench_case *c, const bench_system *s) {
    for (size_t i = 0; i < 4 * (size_t)c->sim->model->particle_count; i++)
        c->difference[i] = c->x[i] - s->exact[i];
    toile_multiply(c->sim->kernels, &s->matrix, c->difference, c->product, 1);
    return sqrt(dot(c, c->difference, c->product) / s->size2);
}
