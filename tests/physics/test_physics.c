/* Closed forms, conservation and convergence: does the cloth obey the physics it claims? Both cloth models where the
 * question makes sense for both.
 *
 * Every tolerance says where it is from: the scheme's own closed form (then only rounding and the solver's tolerance
 * stand between), or the discretisation error that theory allows. The figures found are printed beside the ones
 * expected. test_physics [NAME] runs the tests whose name contains NAME.
 *
 * Steps have equal length here (stretch_change_max is large), one thread, no air unless air is the question. */
#include "check.h"
#include "force_bend.h"
#include "force_spring.h"
#include "force_stretch.h"
#include "integrate.h"
#include "world.h"

#define PI 3.14159265358979323846
#define G 9.81
#define TIGHT 1e-16 /* see tighten */

static const char *const MODELS[] = {"continuum", "springs"};

/* ---- worlds and sheets ---- */

static void must(toile_world *world, toile_status status) {
    if (status < 0) {
        printf("FAILED %s: %s: %s\n", check_name, toile_status_name(status), toile_message(world));
        exit(1);
    }
}

static void set(toile_world *w, const char *id, double value) {
    must(w, toile_set_numbers(w, id, &value, 1));
}

/* `tolerance` is the thesis' measure, a squared relative error per second of step. */
static toile_world *new_world(const char *model, double step, double tolerance) {
    toile_world *w;
    must(NULL, toile_create(NULL, &w));
    must(w, toile_set(w, "cloth_model", model));
    must(w, toile_set(w, "drag_model", "none"));
    set(w, "threads", 1);
    set(w, "time_step", step);
    set(w, "time_step_min", step);
    set(w, "stretch_change_max", 10);
    set(w, "solver_tolerance", sqrt(tolerance * step));
    set(w, "solver_iterations_max", 20000);
    return w;
}

static void no_gravity(toile_world *w) {
    must(w, toile_set(w, "gravity", "0,0,0"));
}

static int new_fabric(toile_world *w, double density, double stretch, double shear, double bend) {
    int f;
    must(w, toile_add_fabric(w, NULL, &f));
    must(w, toile_set_fabric(w, f, "density", density));
    must(w, toile_set_fabric(w, f, "stretch_warp", stretch));
    must(w, toile_set_fabric(w, f, "stretch_weft", stretch));
    must(w, toile_set_fabric(w, f, "shear", shear));
    must(w, toile_set_fabric(w, f, "bend_warp", bend));
    must(w, toile_set_fabric(w, f, "bend_weft", bend));
    must(w, toile_set_fabric(w, f, "stretch_limit", 0)); /* closed forms are of straight laws, and steps of one length turn into a limit */
    return f;
}

static void damping(toile_world *w, int fabric, double stretch, double bend) {
    must(w, toile_set_fabric(w, fabric, "stretch_damping", stretch));
    must(w, toile_set_fabric(w, fabric, "bend_damping", bend));
}

typedef enum mesh_kind { LEFT, ALTERNATE, JITTERED, SEAMED } mesh_kind;
static const char *const KINDS[] = {"left", "alternate", "jittered", "seamed"};

/* A sheet of nu x nv particles; u and v are its sides as vectors. JITTERED: triangles only, the alternate mesh with its
 * inner vertices moved by up to 20 % of the spacing. SEAMED: the same in two panels that meet at the middle u; the second
 * lies in the material turned by 90 degrees and elsewhere. */
typedef struct sheet {
    mesh_kind kind;
    int nu, nv;
    double origin[3], u[3], v[3];
    const double *scales; /* b_u, b_v or null */
} sheet;

static double length3(const double *a) {
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
}

static int add_jittered(toile_world *w, const sheet *s, int fabric) {
    int n = s->nu * s->nv, faces = 2 * (s->nu - 1) * (s->nv - 1), garment;
    double *uv = malloc((size_t)n * 2 * sizeof *uv), *x = malloc((size_t)n * 3 * sizeof *x);
    double *corner = malloc((size_t)faces * 6 * sizeof *corner), lu = length3(s->u), lv = length3(s->v);
    int *sizes = malloc((size_t)faces * sizeof *sizes), *vertices = malloc((size_t)faces * 3 * sizeof *vertices);
    int *panels = malloc((size_t)faces * sizeof *panels);
    double amount = s->kind == LEFT || s->kind == ALTERNATE ? 0 : 0.2;
    check_seed = 20240229;
    for (int i = 0; i < n; i++) {
        int a = i % s->nu, b = i / s->nu;
        double p = a, q = b;
        if (a > 0 && a < s->nu - 1 && b > 0 && b < s->nv - 1) {
            p += random_between(-amount, amount);
            q += random_between(-amount, amount);
        }
        uv[2 * i] = p / (s->nu - 1);
        uv[2 * i + 1] = q / (s->nv - 1);
        for (int k = 0; k < 3; k++)
            x[3 * i + k] = s->origin[k] + s->u[k] * uv[2 * i] + s->v[k] * uv[2 * i + 1];
    }
    int f = 0;
    for (int b = 0; b < s->nv - 1; b++)
        for (int a = 0; a < s->nu - 1; a++) {
            static const int CUT[2][6] = {{0, 1, 2, 0, 2, 3}, {0, 1, 3, 1, 2, 3}};
            int quad[4] = {a + b * s->nu, a + 1 + b * s->nu, a + 1 + (b + 1) * s->nu, a + (b + 1) * s->nu};
            for (int t = 0; t < 2; t++, f++) {
                sizes[f] = 3;
                panels[f] = s->kind == SEAMED && a >= (s->nu - 1) / 2;
                for (int c = 0; c < 3; c++) {
                    int i = quad[CUT[s->kind == LEFT || (a + b) & 1][3 * t + c]];
                    double p = lu * uv[2 * i], q = lv * uv[2 * i + 1];
                    vertices[3 * f + c] = i;
                    corner[6 * f + 2 * c] = panels[f] ? 7 - q : p;
                    corner[6 * f + 2 * c + 1] = panels[f] ? 3 + p : q;
                }
            }
        }
    double scales[4] = {1, 1, 1, 1};
    if (s->scales)
        memcpy(scales, s->scales, 2 * sizeof *scales);
    toile_mesh mesh = {.name = "sheet", .vertex_count = n, .positions = x, .face_count = faces, .face_sizes = sizes,
                       .face_vertices = vertices, .corner_uv = corner, .panel_count = s->kind == SEAMED ? 2 : 1,
                       .panel_fabrics = (int[]){fabric, fabric}, .panel_scales = scales, .face_panels = panels};
    must(w, toile_add_mesh(w, &mesh, &garment));
    free(uv), free(x), free(corner), free(sizes), free(vertices), free(panels);
    return garment;
}

static int add_sheet(toile_world *w, const sheet *s, int fabric) {
    int garment;
    if (s->kind == JITTERED || s->kind == SEAMED || s->scales)
        return add_jittered(w, s, fabric);
    toile_grid grid = {.name = "sheet", .nu = s->nu, .nv = s->nv, .fabric = fabric,
                       .diagonals = s->kind == LEFT ? TOILE_DIAGONALS_LEFT : TOILE_DIAGONALS_ALTERNATE};
    memcpy(grid.origin, s->origin, sizeof grid.origin);
    memcpy(grid.u_axis, s->u, sizeof grid.u_axis);
    memcpy(grid.v_axis, s->v, sizeof grid.v_axis);
    must(w, toile_add_grid(w, &grid, &garment));
    return garment;
}

/* Pins the particles with u index in [from, to). */
static int pin_columns(toile_world *w, int garment, const sheet *s, int from, int to) {
    int *held = malloc((size_t)(s->nu * s->nv) * sizeof *held), count = 0, pin;
    for (int j = 0; j < s->nv; j++)
        for (int i = from; i < to; i++)
            held[count++] = i + j * s->nu;
    must(w, toile_add_pin(w, &(toile_pin){garment, count, held, {true, true, true}}, &pin));
    free(held);
    return pin;
}

/* ---- state: what is not in the public interface ---- */

static double *position_of(toile_world *w, int vertex) {
    toile_sim *sim = toile_world_sim(w);
    return sim->state.x + 4 * (size_t)sim->model->place[vertex];
}

static double *velocity_of(toile_world *w, int vertex) {
    toile_sim *sim = toile_world_sim(w);
    return sim->state.v + 4 * (size_t)sim->model->place[vertex];
}

/* The solver to the last digits: where the scheme's own closed form is the question. */
static void tighten(toile_world *w) {
    ((toile_settings *)toile_world_sim(w)->settings)->solver_tolerance = 1e-12;
}

static double mass_of(toile_world *w, int vertex) {
    toile_sim *sim = toile_world_sim(w);
    return sim->model->mass[sim->model->place[vertex]];
}

static double top_speed(toile_world *w) {
    double most = 0;
    for (int i = 0; i < toile_vertex_count(w, 0); i++)
        most = fmax(most, length3(velocity_of(w, i)));
    return most;
}

/* Until nothing is faster than `speed`. Steps are the frames. */
static bool settle(toile_world *w, double step, double seconds, double speed) {
    for (int f = 0; f < seconds / step; f++) {
        must(w, toile_advance(w, step));
        if (f > 10 && top_speed(w) < speed)
            return true;
    }
    return false;
}

/* Mean coordinate of the particles with u index `column`. */
static double column_mean(toile_world *w, const sheet *s, int column, int axis) {
    double sum = 0;
    for (int j = 0; j < s->nv; j++)
        sum += position_of(w, column + j * s->nu)[axis] / s->nv;
    return sum;
}

static void momentum(toile_world *w, double linear[3], double angular[3]) {
    double p[3] = {0, 0, 0}, l[3] = {0, 0, 0};
    for (int i = 0; i < toile_vertex_count(w, 0); i++) {
        const double *x = position_of(w, i), *v = velocity_of(w, i);
        double m = mass_of(w, i);
        for (int k = 0; k < 3; k++) {
            int a = (k + 1) % 3, b = (k + 2) % 3;
            p[k] += m * v[k];
            l[k] += m * (x[a] * v[b] - x[b] * v[a]);
        }
    }
    memcpy(linear, p, sizeof p);
    memcpy(angular, l, sizeof l);
}

static double total_energy(toile_world *w) {
    toile_energies e = toile_sim_energies(toile_world_sim(w));
    return e.kinetic + e.elastic + e.potential;
}

/* Found, expected, and their difference in percent. */
static double off(double found, double expected) {
    return found / expected - 1;
}
#define WITHIN(tolerance, found, expected, ...)                                                              \
    do {                                                                                                     \
        double found_ = (found), expected_ = (expected);                                                     \
        printf("  ");                                                                                        \
        printf(__VA_ARGS__);                                                                                 \
        printf(": %.6g, expected %.6g (%+.3f %%)\n", found_, expected_, 100 * off(found_, expected_));       \
        CHECK(fabs(off(found_, expected_)) <= (tolerance), "%.8g, expected %.8g", found_, expected_);        \
    } while (0)

/* ---- 1 free fall ---- */

/* After n steps backward Euler is at -g h^2 n (n + 1) / 2. Internal damping does not act on a translation. */
static void fall(const char *model, mesh_kind kind, double tolerance, double allowed, double spread_allowed) {
    enum { STEPS = 60 };
    double h = 1.0 / 120, expected = -G * h * h * STEPS * (STEPS + 1) / 2, lowest = 0, highest = -INFINITY, drift = 0;
    toile_world *w = new_world(model, h, tolerance);
    sheet s = {kind, 13, 9, {0, 0, 0}, {1.2, 0, 0}, {0, 0.8, 0}, NULL};
    int fabric = new_fabric(w, 0.2, 4000, 50, 1e-5);
    add_sheet(w, &s, fabric);
    must(w, toile_build(w));
    if (tolerance == TIGHT)
        tighten(w);
    for (int f = 0; f < STEPS; f++)
        must(w, toile_advance(w, h));
    double *x = malloc((size_t)(s.nu * s.nv * 3) * sizeof *x);
    must(w, toile_get_positions(w, 0, x));
    for (int i = 0; i < s.nu * s.nv; i++) {
        lowest = fmin(lowest, x[3 * i + 2]);
        highest = fmax(highest, x[3 * i + 2]);
        drift = fmax(drift, fabs(x[3 * i] - toile_world_sim(w)->model->start[4 * toile_world_sim(w)->model->place[i]]));
    }
    free(x);
    double error = fmax(fabs(off(lowest, expected)), fabs(off(highest, expected)));
    printf("  %s, %s, solver %.0e: z %.12f, expected %.12f (off by %.1e relative), spread %.1e m, sideways %.1e m\n", model,
           KINDS[kind], tolerance, lowest, expected, error, highest - lowest, drift);
    CHECK(error <= allowed, "%s %s: %.3g relative", model, KINDS[kind], error);
    CHECK(highest - lowest <= spread_allowed, "%s %s: spread %.3g m", model, KINDS[kind], highest - lowest);
    CHECK(drift <= spread_allowed, "%s %s: sideways %.3g m", model, KINDS[kind], drift);
    toile_destroy(w);
}

static void free_fall(void) {
    for (int m = 0; m < 2; m++)
        for (mesh_kind kind = LEFT; kind <= SEAMED; kind++)
            fall(MODELS[m], kind, TIGHT, 1e-10, 1e-10);
    /* with the solver as it comes: its residual is sqrt(0.01 h) = 0.9 % of the force at most */
    for (int m = 0; m < 2; m++)
        fall(MODELS[m], ALTERNATE, 0.01, 0.01, 0.01 * 1.25);
}

/* ---- 2, 3 momentum ---- */

/* A sheet in space with random velocities. Internal forces of each element sum to zero, so linear momentum is kept up to
 * what the solver leaves: 1e-10 of the momentum that moves about. Backward Euler does not keep angular momentum. */
static void linear_momentum(void) {
    for (int m = 0; m < 2; m++)
        for (mesh_kind kind = ALTERNATE; kind <= SEAMED; kind++) {
            double h = 1.0 / 500, before[3], after[3], l[3], moving = 0, lost = 0, steady = 0;
            toile_world *w = new_world(MODELS[m], h, TIGHT);
            sheet s = {kind, 11, 9, {0, 0, 0}, {0.5, 0, 0}, {0, 0.4, 0}, NULL};
            no_gravity(w);
            add_sheet(w, &s, new_fabric(w, 0.2, 1000, 30, 1e-5));
            must(w, toile_build(w));
            tighten(w);
            check_seed = 7;
            for (int i = 0; i < s.nu * s.nv; i++) {
                for (int k = 0; k < 3; k++)
                    velocity_of(w, i)[k] = random_between(-1, 1) + (k == 1);
                moving += mass_of(w, i) * length3(velocity_of(w, i));
            }
            momentum(w, before, l);
            toile_energies start = toile_sim_energies(toile_world_sim(w));
            for (int f = 0; f < 100; f++)
                must(w, toile_advance(w, h));
            toile_energies end = toile_sim_energies(toile_world_sim(w));
            momentum(w, after, l);
            for (int k = 0; k < 3; k++) {
                lost = fmax(lost, fabs(after[k] - before[k]) / moving);
                steady += before[k] * before[k];
            }
            printf("  %s, %s: lost %.1e of the momentum in 100 steps; kinetic energy %.3g -> %.3g J\n", MODELS[m],
                   KINDS[kind], lost, start.kinetic, end.kinetic);
            CHECK(lost <= 1e-10, "%s %s: %.3g of the momentum", MODELS[m], KINDS[kind], lost);
            CHECK(sqrt(steady) > 0.3 * moving, "nothing to keep");
            CHECK(end.kinetic < 0.95 * start.kinetic, "the internal forces did nothing");
            toile_destroy(w);
        }
}

/* One particle of a sheet in space is hit: its neighbours would be overstretched by the linear step. They are
 * brought back instead of cutting the step for all (core/limit.c), and momentum is kept as before. */
static void overstretch_is_local(void) {
    for (int m = 0; m < 2; m++) {
        double h = 1.0 / 120, before[3], after[3], l[3], moving;
        toile_statistics all;
        toile_world *w = new_world(MODELS[m], h, TIGHT);
        sheet s = {ALTERNATE, 41, 33, {0, 0, 0}, {1, 0, 0}, {0, 0.8, 0}, NULL};
        int hit = 20 + 16 * s.nu;
        no_gravity(w);
        set(w, "stretch_change_max", 0.03);
        set(w, "time_step_min", 1e-5);
        add_sheet(w, &s, new_fabric(w, 0.2, 400, 30, 1e-5));
        must(w, toile_build(w));
        tighten(w);
        velocity_of(w, hit)[0] = velocity_of(w, hit)[2] = m == 0 ? 1.3 : 1; /* cut without it */
        moving = mass_of(w, hit) * length3(velocity_of(w, hit));
        momentum(w, before, l);
        for (int f = 0; f < 5; f++)
            must(w, toile_advance(w, h));
        momentum(w, after, l);
        must(w, toile_get_statistics(w, true, &all));
        double lost = 0;
        for (int k = 0; k < 3; k++)
            lost = fmax(lost, fabs(after[k] - before[k]) / moving);
        printf("  %s: %lld steps, %lld rejected, stretch %.4f, lost %.1e of the momentum\n", MODELS[m], (long long)all.steps,
               (long long)all.rejected_steps, all.max_stretch, lost);
        CHECK(lost <= 1e-9, "%s: %.3g of the momentum", MODELS[m], lost);
        CHECK(all.rejected_steps == 0, "%s: %lld steps were cut", MODELS[m], (long long)all.rejected_steps);
        CHECK(all.max_stretch > 0.005 && all.max_stretch < 0.05, "%s: stretch %.4f", MODELS[m], all.max_stretch);
        toile_destroy(w);
    }
}

/* Largest stretch in each frame of a sheet whose left side is held, while a hand draws seven particles of its right side away by a
 * quarter of its size, and holds them. */
enum { PULL_FRAMES = 14, PULLED_AT = 10, HAND = 7 };
static void pulled(const char *model, double step, double limit, double stretch[PULL_FRAMES]) {
    toile_world *w = new_world(model, step, TIGHT);
    sheet s = {ALTERNATE, 31, 31, {0, 0, 0}, {0.6, 0, 0}, {0, 0.6, 0}, NULL};
    int pin, held[HAND];
    no_gravity(w);
    set(w, "stretch_change_max", 0.03);
    set(w, "time_step_min", 1e-5);
    int fabric = new_fabric(w, 0.2, 1000, 100, 1e-5), garment = add_sheet(w, &s, fabric);
    must(w, toile_set_fabric(w, fabric, "stretch_limit", limit));
    pin_columns(w, garment, &s, 0, 1);
    for (int i = 0; i < HAND; i++)
        held[i] = s.nu - 1 + (12 + i) * s.nu;
    must(w, toile_add_pin(w, &(toile_pin){garment, HAND, held, {true, true, true}}, &pin));
    must(w, toile_build(w));
    for (int f = 0; f < PULL_FRAMES; f++) {
        double target[3 * HAND];
        toile_statistics frame;
        for (int i = 0; i < HAND; i++)
            memcpy(target + 3 * i, (double[]){0.6 + 0.15 * fmin(1, (f + 1.0) / PULLED_AT), 0.02 * (12 + i), 0}, 3 * sizeof *target);
        must(w, toile_move_pin(w, pin, target));
        must(w, toile_advance(w, 1.0 / 24));
        must(w, toile_get_statistics(w, false, &frame));
        stretch[f] = frame.max_stretch;
    }
    toile_destroy(w);
}

/* Elements before the hand grow fast in every step, but bear a load: brought back (core/limit.c), they would lag behind and then
 * overshoot. Usual steps give what short ones do. */
static void load_is_borne(void) {
    for (int i = 0; i < 4; i++) {
        int m = i / 2;
        double usual[PULL_FRAMES], fine[PULL_FRAMES], most = 0, limit = i % 2 ? 0.2 : 0;
        pulled(MODELS[m], 1.0 / 120, limit, usual);
        pulled(MODELS[m], 1.0 / 480, limit, fine);
        for (int f = 0; f < PULL_FRAMES; f++)
            most = fmax(most, fabs(usual[f] - fine[f]));
        printf("  %s, limit %g: stretch %.3f as the hand stops, %.3f at the end; %.4f beside short steps at most\n", MODELS[m], limit,
               usual[PULLED_AT - 1], usual[PULL_FRAMES - 1], most);
        CHECK(fine[PULLED_AT - 1] > (limit > 0 ? 0.25 : 0.3), "%s: stretch %.3f, nothing was pulled", MODELS[m], fine[PULLED_AT - 1]);
        CHECK(most < 0.02, "%s: stretch is %.3f off that of short steps", MODELS[m], most);
    }
}

/* A strip that is held at 1.3 of its length, beyond its fabric's limit, starts with one cell that has more of that and its neighbour less, at
 * rest. What a step knows of a limit is its slope at the step's begin, so the neighbour grows by far more than a step usually allows: if it
 * is brought back (core/limit.c), the first one has the load again, in every step, and the two go on at 1.44 and 0.8 m/s for good. */
static void limits_settle(void) {
    enum { N = 121, MIDDLE = 60, FRAMES = 6 };
    const double even = 1.3, more = 0.3, scales[2] = {1 / even, 1};
    toile_world *w = new_world("continuum", 1.0 / 120, TIGHT);
    sheet s = {ALTERNATE, N, 3, {0, 0, 0}, {0.01 * (N - 1), 0, 0}, {0, 0.02, 0}, scales};
    double x[9 * N], v[9 * N], largest = 0, speed = 0;
    no_gravity(w);
    set(w, "stretch_change_max", 0.03);
    set(w, "time_step_min", 1e-5);
    int fabric = new_fabric(w, 0.2, 1000, 100, 1e-5), garment = add_sheet(w, &s, fabric);
    must(w, toile_set_fabric(w, fabric, "stretch_limit", 0.2));
    pin_columns(w, garment, &s, 0, 1);
    pin_columns(w, garment, &s, N - 1, N);
    must(w, toile_build(w));
    for (int i = 0; i < 3 * N; i++)
        x[3 * i] = 0.01 * (i % N + (i % N == MIDDLE ? more / even : 0)), x[3 * i + 1] = 0.01 * (i / N), x[3 * i + 2] = 0;
    must(w, toile_set_start(w, garment, x, NULL));
    for (int f = 0; f < FRAMES; f++) {
        toile_statistics frame;
        must(w, toile_advance(w, 1.0 / 24));
        must(w, toile_get_statistics(w, false, &frame));
        largest = frame.max_stretch;
        printf("  frame %d: stretch %.4f, %lld steps, %lld rejected\n", f, frame.max_stretch, (long long)frame.steps, (long long)frame.rejected_steps);
    }
    must(w, toile_get_velocities(w, garment, v));
    for (int i = 0; i < 9 * N; i++)
        speed = fmax(speed, fabs(v[i]));
    CHECK(largest < even - 1 + 0.001, "stretch %.4f", largest);
    CHECK(speed < 1e-3, "%.2g m/s at the end", speed);
    toile_destroy(w);
}

/* A bend connection that is pressed together by half a percent, and nothing taut to stop what it pushes: in one long step that
 * goes back to rest, not beyond (the push itself would throw it 0.3 m), and the step is not cut. */
static void pressed_flat(void) {
    double h = 1.0 / 120, press = 1e-4;
    toile_statistics all;
    toile_world *w = new_world("springs", h, TIGHT);
    sheet s = {LEFT, 3, 2, {0, 0, 0}, {0.02, 0, 0}, {0, 0.01, 0}, NULL};
    no_gravity(w);
    set(w, "stretch_change_max", 0.03);
    set(w, "time_step_min", 1e-5);
    int garment = add_sheet(w, &s, new_fabric(w, 0.15, 2000, 100, 1e-4));
    pin_columns(w, garment, &s, 0, 2);
    must(w, toile_build(w));
    for (int j = 0; j < s.nv; j++)
        position_of(w, 2 + j * s.nu)[0] -= press;
    must(w, toile_advance(w, h));
    must(w, toile_get_statistics(w, true, &all));
    double back = (column_mean(w, &s, 2, 0) - 0.02 + press) / press;
    printf("  pressed by %.1e m, back by %.3f of it, %lld steps, %lld rejected\n", press, back, (long long)all.steps,
           (long long)all.rejected_steps);
    CHECK(back > 0.5 && back < 1.01, "back by %.3f", back);
    CHECK(all.rejected_steps == 0, "%lld steps were cut", (long long)all.rejected_steps);
    toile_destroy(w);
}

typedef struct spin {
    double momentum, kinetic; /* share left after 1 s */
} spin;

/* About the normal (axis 2) or about the sheet's own u (axis 0). */
static spin spin_sheet(const char *model, int axis, double h, double stretch_damping, double bend_damping) {
    double before[3], after[3], p[3], omega = 2 * PI;
    toile_world *w = new_world(model, h, 1e-12);
    sheet s = {ALTERNATE, 9, 9, {-0.2, -0.2, 0}, {0.4, 0, 0}, {0, 0.4, 0}, NULL};
    no_gravity(w);
    /* rho omega^2 R^2 / k = 1.6e-4: as good as rigid */
    int fabric = new_fabric(w, 0.2, 4000, 1000, 1e-3);
    damping(w, fabric, stretch_damping, bend_damping);
    add_sheet(w, &s, fabric);
    must(w, toile_build(w));
    int a = (axis + 1) % 3, b = (axis + 2) % 3;
    for (int i = 0; i < s.nu * s.nv; i++) {
        const double *x = position_of(w, i);
        double *v = velocity_of(w, i);
        v[a] = -omega * x[b];
        v[b] = omega * x[a];
    }
    momentum(w, p, before);
    double kinetic = toile_sim_energies(toile_world_sim(w)).kinetic;
    for (int f = 0; f < (int)(1 / h + 0.5); f++)
        must(w, toile_advance(w, h));
    momentum(w, p, after);
    spin left = {after[axis] / before[axis], toile_sim_energies(toile_world_sim(w)).kinetic / kinetic};
    toile_destroy(w);
    return left;
}

/* Backward Euler itself slows a rotor: dw/dt = -w^3 h, so w0 / sqrt(1 + 2 w0^2 h t) is left. Damping must add nothing
 * to that: 0.1 %, which is what the strain that backward Euler itself makes of a rotation (h^2 w^2 / 2) may cost. */
static void rotation(void) {
    double h = 1.0 / 240, omega = 2 * PI, expected = 1 / sqrt(1 + 2 * omega * omega * h);
    for (int m = 0; m < 2; m++)
        for (int axis = 0; axis <= 2; axis += 2) {
            spin undamped = spin_sheet(MODELS[m], axis, h, 0, 0), damped = spin_sheet(MODELS[m], axis, h, 0.002, 0.002);
            printf("  %s, about the %s: angular momentum left %.5f undamped, %.5f damped, backward Euler %.5f; kinetic "
                   "energy %.5f, %.5f\n",
                   MODELS[m], axis == 2 ? "normal" : "u axis", undamped.momentum, damped.momentum, expected,
                   undamped.kinetic, damped.kinetic);
            if (m == 1 && axis == 0) {
                /* Nothing pulls along the axis, and connections hold nothing that is not pulled: the sheet crumples along it
                 * and may lose spin in that. */
                CHECK(damped.momentum >= expected - 0.03, "springs about u: %.6f, backward Euler %.6f", damped.momentum, expected);
                continue;
            }
            CHECK(fabs(off(damped.momentum, undamped.momentum)) <= 1e-3, "%s axis %d: %.6f, undamped %.6f", MODELS[m], axis,
                  damped.momentum, undamped.momentum);
            CHECK(fabs(off(damped.kinetic, undamped.kinetic)) <= 2e-3, "%s axis %d: kinetic %.6f, undamped %.6f", MODELS[m],
                  axis, damped.kinetic, undamped.kinetic);
            CHECK(damped.momentum >= expected - 0.02, "%s axis %d: %.6f left, backward Euler %.6f", MODELS[m], axis,
                  damped.momentum, expected);
            /* nor can it gain; 1e-4 is 240 times what the solver leaves in a step */
            CHECK(damped.momentum <= 1 + 1e-4, "%s axis %d: %.6f", MODELS[m], axis, damped.momentum);
        }
}

/* Damping forces of deformed elements that move rigidly: zero but for rounding. */
static void rigid_damping(void) {
    double worst[3] = {0, 0, 0}, against[3] = {0, 0, 0};
    check_seed = 99;
    for (int n = 0; n < 1000; n++) {
        double x[4][3], v[4][3], still[4][3] = {{0}}, omega[3], v0[3], f0[4][3] = {{0}}, f1[4][3] = {{0}};
        for (int k = 0; k < 3; k++) {
            omega[k] = random_between(-3, 3);
            v0[k] = random_between(-3, 3);
            for (int c = 0; c < 4; c++)
                x[c][k] = random_between(0, 1);
        }
        for (int c = 0; c < 4; c++)
            for (int k = 0; k < 3; k++)
                v[c][k] = v0[k] + omega[(k + 1) % 3] * x[c][(k + 2) % 3] - omega[(k + 2) % 3] * x[c][(k + 1) % 3];
        toile_triangle_element triangle = {-1, 1, -0.5, 1.2, 1, 1, 3000, 2000, 50, 0.5, 5, 2, 20, 0.1, 1.2, 30000};
        toile_hinge_element hinge = {2, 0.1, 0.5};
        toile_spring_element spring = {n & 1, n & 1 ? 2 : 0.01, 1000, 0.5, n & 1 ? 0 : 300, 0, 0.1, 1.2, 9000};
        for (int e = 0; e < 3; e++) {
            double rate = 0;
            for (int move = 0; move < 3; move++) { /* still, rigid, any: the last shows that there is damping at all */
                double(*f)[3] = move == 1 ? f1 : f0, any[4][3];
                for (int c = 0; c < 4; c++)
                    for (int k = 0; k < 3; k++)
                        any[c][k] = random_between(-3, 3);
                const double(*u)[3] = (const double(*)[3])(move == 0 ? still : move == 1 ? v : any);
                double g[4][3] = {{0}};
                if (e == 0)
                    toile_triangle_force(&triangle, (const double(*)[3])x, u, g);
                else if (e == 1)
                    toile_hinge_force(&hinge, (const double(*)[3])x, u, g);
                else
                    toile_spring_force(&spring, (const double(*)[3])x, u, g[0]);
                if (move == 2)
                    for (int c = 0; c < 4; c++)
                        for (int k = 0; k < 3; k++)
                            rate = fmax(rate, fabs(g[c][k] - f0[c][k]));
                else
                    memcpy(f, g, sizeof g);
            }
            double rigid = 0;
            for (int c = 0; c < 4; c++)
                for (int k = 0; k < 3; k++)
                    rigid = fmax(rigid, fabs(f1[c][k] - f0[c][k]));
            if (rate > 0)
                worst[e] = fmax(worst[e], rigid / rate);
            against[e] = fmax(against[e], rate);
        }
    }
    printf("  damping force of a rigid motion against that of any: triangle %.1e, hinge %.1e, spring %.1e\n", worst[0],
           worst[1], worst[2]);
    for (int e = 0; e < 3; e++) {
        CHECK(worst[e] < 1e-10, "element %d: %.3g", e, worst[e]);
        CHECK(against[e] > 1, "element %d: there is no damping", e);
    }
}

/* Damping is a decay time: a strip that was stretched by 1 % and is so strongly damped that its mass does not count is back to
 * 1/e of that after the time. 2 % for the mass (its own time is 1/1000 of the damping's) and for backward Euler's steps. */
static void decay_time(void) {
    for (int m = 0; m < 2; m++) {
        double tau = 0.5, h = tau / 500, length = 0.5;
        toile_world *w = new_world(MODELS[m], h, 1e-12);
        sheet s = {LEFT, 2, 2, {0, 0, 0}, {length, 0, 0}, {0, 0.5, 0}, NULL};
        no_gravity(w);
        int fabric = new_fabric(w, 0.2, 4000, 0, 0);
        damping(w, fabric, tau, 0);
        int garment = add_sheet(w, &s, fabric);
        pin_columns(w, garment, &s, 0, 1);
        must(w, toile_build(w));
        position_of(w, 1)[0] = position_of(w, 3)[0] = 1.01 * length;
        for (int f = 0; f < 500; f++)
            must(w, toile_advance(w, h));
        WITHIN(0.02, (column_mean(w, &s, 1, 0) / length - 1) / 0.01, exp(-1), "%s, stretch left after the decay time", MODELS[m]);
        toile_destroy(w);
    }
}

/* ---- 4 hanging strip ---- */

/* Elongation of a strip under its own weight, over rho g L^2 / (2 k). */
static double hang(const char *model, mesh_kind kind, int n, double strain, double shear_share) {
    double density = 0.2, length = 1, k = density * G * length / strain, step = 1.0 / 50;
    toile_world *w = new_world(model, step, 1e-10);
    sheet s = {kind, n + 1, n / 5 + 1, {0, 0, 0}, {0, 0, -length}, {0.2 * length, 0, 0}, NULL};
    int fabric = new_fabric(w, density, k, shear_share * k, 1e-5);
    damping(w, fabric, 0.02, 0.02);
    int garment = add_sheet(w, &s, fabric);
    pin_columns(w, garment, &s, 0, 1);
    must(w, toile_build(w));
    CHECK(settle(w, step, 20, 1e-6), "%s %s %d does not come to rest: %.2g m/s", model, KINDS[kind], n, top_speed(w));
    double found = -column_mean(w, &s, n, 2) - length;
    toile_destroy(w);
    return found / (density * G * length * length / (2 * k));
}

/* Linear law T = k (lambda - 1): rho g L^2 / (2 k), exact on a lumped regular grid whatever N. 1 % leaves room for the
 * clamp's corners; 5 % on the irregular mesh, whose masses and widths are not even. */
static void hanging_strip(void) {
    static const double STRAINS[] = {0.01, 0.05};
    for (int e = 0; e < 2; e++)
        for (mesh_kind kind = LEFT; kind <= JITTERED; kind++) {
            double least = INFINITY, most = 0;
            for (int n = 10; n <= 40; n *= 2) {
                double found = hang("continuum", kind, n, STRAINS[e], 0.0125);
                WITHIN(kind == JITTERED ? 0.05 : 0.01, found, 1,
                       "continuum, %s, strain %g, N %d, elongation k / (rho g L^2/2)", KINDS[kind], STRAINS[e], n);
                least = fmin(least, found), most = fmax(most, found);
            }
            CHECK(kind == JITTERED || most / least < 1.01, "%s, strain %g: N 10, 20, 40 spread by %.2f %%", KINDS[kind],
                  STRAINS[e], 100 * (most / least - 1));
        }
}

/* Springs: shear connections pull the strip narrow, and nothing but they carries what was taken off the warp for
 * them: a share of 2 G / k. Cotton has G = 0.013 k: 2.6 %, so 3 % are allowed. */
static void hanging_strip_springs(void) {
    static const double STRAINS[] = {0.01, 0.05};
    for (int e = 0; e < 2; e++)
        for (mesh_kind kind = LEFT; kind <= ALTERNATE; kind++)
            for (int n = 10; n <= 40; n *= 2)
                WITHIN(0.03, hang("springs", kind, n, STRAINS[e], 0.0125), 1,
                       "springs, %s, strain %g, N %d, elongation k / (rho g L^2/2)", KINDS[kind], STRAINS[e], n);
}

/* The same with the shear of jersey (G = 0.2 k of its warp): stretch must not depend on shear. 1 % as above; 10 % for
 * springs, whose diagonals also carry a part of the stretch. */
static void hanging_strip_springs_shear(void) {
    WITHIN(0.10, hang("springs", ALTERNATE, 20, 0.05, 0.2), 1, "springs, shear 0.2 k, elongation k / (rho g L^2/2)");
    WITHIN(0.01, hang("continuum", ALTERNATE, 20, 0.05, 0.2), 1, "continuum, shear 0.2 k, elongation k / (rho g L^2/2)");
}

/* ---- 5 bending ---- */

/* H / W of the tip of a strip clamped level; B = rho g L^3 / gamma. Two columns are clamped. */
static double cantilever(mesh_kind kind, double gamma, int n, double width) {
    double density = 0.2, length = 0.3, du = length / n, step = 1.0 / 30;
    int nv = (int)(width / du + 0.5) + 1;
    toile_world *w = new_world("continuum", step, 1e-10);
    sheet s = {kind, n + 2, nv, {-du, 0, 0}, {length + du, 0, 0}, {0, width, 0}, NULL};
    int fabric = new_fabric(w, density, 4000, 200, density * G * pow(length, 3) / gamma); /* rho g L / k = 1.5e-4 */
    damping(w, fabric, 0.002, 0.02);
    int garment = add_sheet(w, &s, fabric);
    pin_columns(w, garment, &s, 0, 2);
    must(w, toile_build(w));
    CHECK(settle(w, step, 20, 1e-5), "Gamma %g, N %d does not come to rest: %.2g m/s", gamma, n, top_speed(w));
    double drop = -column_mean(w, &s, n + 1, 2), reach = column_mean(w, &s, n + 1, 0);
    toile_destroy(w);
    return drop / reach;
}

/* The elastica under its own weight. A clamp of two columns is first order (a chain of N links without any other error
 * is off by 10 % at N = 20, 5 % at 40), so 2 X(40) - X(20) is compared; of a perfect chain that is 0.1 % off. */
static void cantilever_refined(void) {
    static const struct {
        mesh_kind kind;
        double gamma, expected, chain_20, chain_40;
    } CASES[] = {{ALTERNATE, 5, 0.58572, 0.64396914, 0.61451653}, {ALTERNATE, 20, 1.86393, 0, 0},
                 {LEFT, 5, 0.58572, 0.64396914, 0.61451653}};
    for (int c = 0; c < 3; c++) {
        const char *kind = KINDS[CASES[c].kind];
        double gamma = CASES[c].gamma, expected = CASES[c].expected;
        double coarse = cantilever(CASES[c].kind, gamma, 20, 0.06), fine = cantilever(CASES[c].kind, gamma, 40, 0.06);
        if (CASES[c].chain_20 > 0) { /* what a perfect chain gives at each N; 3 % for two dimensions in place of one */
            WITHIN(0.03, coarse, CASES[c].chain_20, "%s, Gamma %g, N 20, H/W against a chain of links", kind, gamma);
            WITHIN(0.03, fine, CASES[c].chain_40, "%s, Gamma %g, N 40, H/W against a chain of links", kind, gamma);
        }
        WITHIN(0.04, 2 * fine - coarse, expected, "%s, Gamma %g, N 20 %.5f, N 40 %.5f, extrapolated H/W", kind, gamma, coarse,
               fine);
        CHECK(coarse > fine && fine > expected, "the clamp's error does not fall: %.5f, %.5f", coarse, fine);
    }
    /* no contraction across (nu = 0): width does not matter */
    WITHIN(0.03, cantilever(ALTERNATE, 5, 20, 0.15), cantilever(ALTERNATE, 5, 20, 0.06),
           "Gamma 5, N 20, width 0.5 L against 0.2 L");
}

/* Bending energy of a sheet of nu x nv cells rolled to `radius` about a direction at `angle` to v, over
 * B area / (2 R^2). Stretch and shear have no stiffness, so all that is elastic is bending. */
static double roll_bias; /* of bend at 45 degrees, in B; 0: as it comes */
static double roll(const char *model, mesh_kind kind, int cells_u, int cells_v, double spacing, double radius, double angle) {
    double bend = 1e-4, lu = cells_u * spacing, lv = cells_v * spacing;
    toile_world *w = new_world(model, 0.01, 1e-10);
    sheet s = {kind, cells_u + 1, cells_v + 1, {0, 0, 0}, {lu, 0, 0}, {0, lv, 0}, NULL};
    int fabric = new_fabric(w, 0.2, 0, 0, bend);
    must(w, toile_set_fabric(w, fabric, "bend_bias", roll_bias * bend));
    add_sheet(w, &s, fabric);
    must(w, toile_build(w));
    for (int i = 0; i < s.nu * s.nv; i++) {
        double *x = position_of(w, i), c = cos(angle), d = sin(angle);
        double along = c * x[0] + d * x[1], across = -d * x[0] + c * x[1], p = radius * sin(along / radius);
        x[2] = radius * (1 - cos(along / radius));
        x[0] = c * p - d * across;
        x[1] = d * p + c * across;
    }
    double found = toile_sim_energies(toile_world_sim(w)).elastic / (bend * lu * lv / (2 * radius * radius));
    toile_destroy(w);
    return found;
}

/* Inside, the energy is exact up to the hinge angle's own curvature: that of a sheet twice as long is one sheet more. The half
 * cell along each end has no hinge, and the cell there takes a little of the moment off its own; 3 % of the closed form itself
 * are reached at N = 40. */
static void rolled_sheet(void) {
    double radius = 0.3;
    for (mesh_kind kind = LEFT; kind <= ALTERNATE; kind++) {
        for (int n = 10; n <= 80; n *= 2) {
            double found = roll("continuum", kind, n, n / 2, radius / n, radius, 0);
            WITHIN(0.005, 2 * roll("continuum", kind, 2 * n, n / 2, radius / n, radius, 0) - found, 1,
                   "continuum, %s, %d cells per radius, energy inside / (B A / 2 R^2)", KINDS[kind], n);
            CHECK(n * (1 - found) > 1 && n * (1 - found) < 1.25, "%s %d: the ends lose %.3f cells", KINDS[kind], n, n * (1 - found));
            CHECK(n < 40 || fabs(found - 1) <= 0.03, "%s %d: %.4f of the closed form", KINDS[kind], n, found);
        }
    }
}

/* The same against the direction of the mesh: 3 % where the mesh lies at 45 degrees, 10 % where it is irregular. */
static void rolled_sheet_bias(void) {
    double radius = 0.3, whole = 39.0 / 40;
    for (mesh_kind kind = LEFT; kind <= ALTERNATE; kind++)
        for (int way = -1; way <= 1; way += 2)
            WITHIN(0.03, roll("continuum", kind, 40, 40, radius / 40, radius, way * PI / 4), whole,
                   "continuum, %s, rolled at %+d degrees to the mesh, energy / (B A / 2 R^2)", KINDS[kind], 45 * way);
    WITHIN(0.10, roll("continuum", JITTERED, 40, 40, radius / 40, radius, 0), whole,
           "continuum, jittered, 40 cells per radius, energy / (B A / 2 R^2)");
}

/* A fabric that is softer or stiffer on the bias: 45 degrees has what it says, the threads keep theirs. Less than three quarters
 * of the threads is taken as that (model.c). */
static void bend_on_the_bias(void) {
    static const double SHARES[] = {0.5, 0.8, 1.4};
    for (int b = 0; b < 3; b++)
        for (mesh_kind kind = LEFT; kind <= ALTERNATE; kind++)
            for (int way = -1; way <= 1; way++) {
                roll_bias = SHARES[b];
                double found = roll("continuum", kind, 40, 40, 0.3 / 40, 0.3, way * PI / 4);
                roll_bias = 0;
                WITHIN(0.03, found, (way ? fmax(SHARES[b], 0.75) : 1) * 39.0 / 40, "%s, bias %g B, rolled at %+d degrees, energy / (B A / 2 R^2)",
                       KINDS[kind], SHARES[b], 45 * way);
            }
}

/* Shapes that are no roll: dome, saddle and twist of small curvature k, over B k^2 area (nu = 0: no coupling of both curvatures).
 * Cloth whose shear is soft takes such shapes when it drapes. */
static void bent_shapes(void) {
    static const char *const SHAPES[] = {"dome", "saddle", "twist"};
    for (mesh_kind kind = LEFT; kind <= JITTERED; kind++)
        for (int shape = 0; shape < 3; shape++) {
            double bend = 1e-4, k = 0.05, side = 0.4;
            toile_world *w = new_world("continuum", 0.01, 1e-10);
            sheet s = {kind, 41, 41, {-side / 2, -side / 2, 0}, {side, 0, 0}, {0, side, 0}, NULL};
            add_sheet(w, &s, new_fabric(w, 0.2, 0, 0, bend));
            must(w, toile_build(w));
            for (int i = 0; i < s.nu * s.nv; i++) {
                double *x = position_of(w, i);
                x[2] = shape == 2 ? k * x[0] * x[1] : 0.5 * k * (x[0] * x[0] + (shape ? -1 : 1) * x[1] * x[1]);
            }
            WITHIN(kind == JITTERED ? 0.15 : 0.05, toile_sim_energies(toile_world_sim(w)).elastic, bend * k * k * side * side,
                   "%s, %s, bending energy", KINDS[kind], SHAPES[shape]);
            toile_destroy(w);
        }
}

/* The same shapes pull at no particle inside: what is left of B k there. Where it does not vanish, vertices of one kind give way
 * against the others and the sheet bends more easily than its energy says: couplings within triangles left 0.4 on
 * alternating diagonals and 4 on irregular meshes. */
static void bent_forces(void) {
    enum { N = 41, RIM = 10 };
    static const char *const SHAPES[] = {"dome", "saddle", "twist"};
    for (mesh_kind kind = LEFT; kind <= JITTERED; kind++)
        for (int shape = 0; shape < 3; shape++) {
            double bend = 1e-4, k = 0.05, side = 0.4, worst = 0;
            toile_world *w = new_world("continuum", 0.01, 1e-10);
            sheet s = {kind, N, N, {-side / 2, -side / 2, 0}, {side, 0, 0}, {0, side, 0}, NULL};
            add_sheet(w, &s, new_fabric(w, 0.2, 0, 0, bend));
            must(w, toile_set(w, "gravity", "0,0,0"));
            must(w, toile_build(w));
            for (int i = 0; i < N * N; i++) {
                double *x = position_of(w, i);
                x[2] = shape == 2 ? k * x[0] * x[1] : 0.5 * k * (x[0] * x[0] + (shape ? -1 : 1) * x[1] * x[1]);
            }
            toile_sim *sim = toile_world_sim(w);
            memset(sim->work.ahead, 0, 4 * (size_t)sim->model->particle_count * sizeof(double));
            toile_evaluate_at(sim, sim->state.x, sim->state.v, 0, 0, 0);
            toile_gather(sim, 1, sim->work.b);
            for (int i = 0; i < N * N; i++)
                if (i % N >= RIM && i % N < N - RIM && i / N >= RIM && i / N < N - RIM)
                    worst = fmax(worst, fabs(sim->work.b[4 * (size_t)sim->model->place[i] + 2]) / (bend * k));
            CHECK(worst < (kind == JITTERED ? 0.5 : 0.01), "%s, %s: %.4f of B k on a particle inside", KINDS[kind], SHAPES[shape], worst);
            toile_destroy(w);
        }
}

/* Share of its energy that a bend connection has whose arc spans 2 phi: the force of the arc model sets in at once, that
 * of ours grows linearly up to a strain of TOILE_BEND_LINEAR. */
static double arc_share(double phi) {
    double strain = 1 - sin(phi) / phi;
    return strain < TOILE_BEND_LINEAR ? strain / (2 * TOILE_BEND_LINEAR) : 1 - TOILE_BEND_LINEAR / (2 * strain);
}

/* Springs: a bend connection spans two cells; a third of the moment is carried by the diagonals, which have half the
 * curvature and of which a free edge lacks a row. 3 % for Choi-Ko's polynomial in place of the arc. So the
 * bending of springs depends on the mesh: a radius of 4 cells has 90 % of its energy, 12 cells half, 16 a quarter, 32 a
 * fifteenth. */
static void rolled_sheet_springs(void) {
    static const double CELLS[] = {2, 3, 4, 6, 8, 12, 16, 32};
    int n = 40, m = 20;
    for (size_t c = 0; c < sizeof CELLS / sizeof *CELLS; c++)
        for (mesh_kind kind = LEFT; kind <= ALTERNATE; kind++) {
            double phi = 1 / CELLS[c];
            double expected = (n - 1.0) / n * (2.0 / 3 * arc_share(phi) + 1.0 / 3 * (m - 1) / m * arc_share(phi * sqrt(0.5)));
            WITHIN(0.03, roll("springs", kind, n, m, 0.01, 0.01 * CELLS[c], 0), expected,
                   "springs, %s, %g cells per radius, energy / (B A / 2 R^2)", KINDS[kind], CELLS[c]);
        }
}

/* ---- 6 pendulum and catenary ---- */

/* One stiff quad on a hinge of two pinned particles. */
static void pendulum(void) {
    double length = 0.5, amplitude = 10 * PI / 180, expected = 6.295168524 * sqrt(length / G), h = expected / 500;
    for (int m = 0; m < 2; m++) {
        toile_world *w = new_world(MODELS[m], h, 1e-12);
        double c = cos(amplitude), d = sin(amplitude);
        sheet s = {LEFT, 2, 2, {0, 0, 0}, {length * d, 0, -length * c}, {0, 0.5, 0}, NULL};
        int fabric = new_fabric(w, 0.2, 4000, 1000, 0); /* stretches by rho g L / k = 0.02 % */
        damping(w, fabric, 0, 0);
        int garment = add_sheet(w, &s, fabric);
        pin_columns(w, garment, &s, 0, 1);
        must(w, toile_build(w));
        double start = total_energy(w), lowest = -length * (mass_of(w, 1) + mass_of(w, 3)) * G, crossing[3] = {0}, left = 0;
        double before = column_mean(w, &s, 1, 0);
        for (int f = 1, seen = 0; f <= 900 && seen < 3; f++) {
            must(w, toile_advance(w, h));
            double x = column_mean(w, &s, 1, 0);
            if ((x < 0) != (before < 0))
                crossing[seen++] = (f - 1 + before / (before - x)) * h;
            if (f == 500)
                left = (total_energy(w) - lowest) / (start - lowest);
            before = x;
        }
        /* 1 % as the protocol has it; backward Euler makes the period longer by (w h)^2 / 3 only */
        WITHIN(0.01, crossing[2] - crossing[0], expected, "%s, period at 10 degrees", MODELS[m]);
        /* a linear oscillator has (1 + (w h)^2)^(-2 pi / (w h)) of its energy after a period; 1.15 times the loss allowed */
        double wh = 2 * PI / 500, euler = pow(1 + wh * wh, -500);
        printf("  %s, energy left after a period: %.4f, backward Euler %.4f\n", MODELS[m], left, euler);
        CHECK(1 - left <= 1.15 * (1 - euler), "%s: lost %.4f, backward Euler %.4f", MODELS[m], 1 - left, 1 - euler);
        CHECK(left < 1, "%s: gained energy: %.4f", MODELS[m], left);
        toile_destroy(w);
    }
}

/* A strip held at both ends that are brought together to a span of 1: sag of N = 32 rigid links (a continuous chain: 0.29234,
 * 0.50263), horizontal pull rho g a on each metre of width. */
static void catenary(void) {
    static const double CASES[][3] = {{1.2, 0.29249114, 0.469541523}, {1.5, 0.50294993, 0.308236470}};
    for (int m = 0; m < 2; m++)
        for (int c = 0; c < 2; c++) {
            enum { N = 32, M = 4 };
            double length = CASES[c][0], density = 0.2, step = 1.0 / 50, width = length * M / N;
            toile_world *w = new_world(MODELS[m], step, 1e-10);
            /* the scheme is the question; and slack connections never come quite to rest on what an iteration leaves over */
            must(w, toile_set(w, "linear_solver", "cholmod"));
            must(w, toile_set(w, "self_collision", "off")); /* folds of slack cloth at the pins would carry a part of the pull */
            sheet s = {ALTERNATE, N + 1, M + 1, {-length / 2, 0, 0}, {length, 0, 0}, {0, width, 0}, NULL};
            int fabric = new_fabric(w, density, 8000, 100, density * G * pow(length, 3) / 1e6); /* rho g L / k = 4e-4 */
            damping(w, fabric, 0.002, 0.002);
            int garment = add_sheet(w, &s, fabric), left = pin_columns(w, garment, &s, 0, 1);
            pin_columns(w, garment, &s, N, N + 1);
            must(w, toile_build(w));
            double target[3 * (M + 1)];
            for (int f = 1; f <= 50; f++) {
                for (int j = 0; j <= M; j++) {
                    target[3 * j] = -length / 2 + (length - 1) * f / 50;
                    target[3 * j + 1] = width * j / M;
                    target[3 * j + 2] = 0;
                }
                must(w, toile_move_pin(w, left, target));
                must(w, toile_advance(w, step));
            }
            CHECK(settle(w, step, 60, 1e-6), "%s, L / span %g does not come to rest: %.2g m/s", MODELS[m], length,
                  top_speed(w));
            double sag = -column_mean(w, &s, N / 2, 2), pull = 0;
            toile_sim *sim = toile_world_sim(w);
            for (int j = 0; j <= M; j++) /* what the constraint adds in a step is an impulse */
                pull -= sim->work.r[4 * (size_t)sim->model->place[j * (N + 1)]] / step;
            WITHIN(0.01, sag, CASES[c][1], "%s, L / span %g, sag", MODELS[m], length);
            WITHIN(0.02, pull / width, density * G * CASES[c][2], "%s, L / span %g, horizontal pull, N/m", MODELS[m], length);
            toile_destroy(w);
        }
}

/* ---- 7 friction ---- */

typedef struct slide {
    double drift;        /* m, after 2 s */
    double acceleration; /* m/s^2, of the mean between 0.5 and 1.5 s */
    double apart;        /* m, change of the sheet's length */
} slide;

static slide incline(const char *model, bool mesh, double mu, double angle) {
    enum { CELLS = 8, PLANE = 12 };
    double h = 1.0 / 120, down[3] = {cos(angle), 0, -sin(angle)}, normal[3] = {sin(angle), 0, cos(angle)}, side = 0.3;
    toile_world *w = new_world(model, h, 0.01);
    sheet s = {ALTERNATE, CELLS + 1, CELLS + 1, {0}, {0}, {0, side, 0}, NULL};
    for (int k = 0; k < 3; k++) {
        s.u[k] = side * down[k];
        s.origin[k] = -0.5 * s.u[k] - 0.5 * s.v[k] + 0.002 * normal[k]; /* as far as the cloth is thick */
    }
    add_sheet(w, &s, new_fabric(w, 0.2, 4000, 50, 1e-5));
    double x[(PLANE + 1) * (PLANE + 1)][3];
    int triangles[2 * PLANE * PLANE][3];
    for (int i = 0; i <= PLANE; i++)
        for (int j = 0; j <= PLANE; j++)
            for (int k = 0; k < 3; k++)
                x[i + j * (PLANE + 1)][k] = (-1.07 + 7.0 * i / PLANE) * down[k] + (k == 1) * (-1.03 + 2.0 * j / PLANE);
    for (int i = 0, t = 0; i < PLANE; i++)
        for (int j = 0; j < PLANE; j++) {
            int a = i + j * (PLANE + 1), b = a + 1, c = b + PLANE + 1, d = c - 1;
            memcpy(triangles[t++], (int[]){a, b, c}, sizeof *triangles);
            memcpy(triangles[t++], (int[]){a, c, d}, sizeof *triangles);
        }
    toile_collider plane = {.name = "plane", .shape = mesh ? TOILE_MESH : TOILE_PLANE, .friction_static = mu,
                            .friction_kinetic = mu, .rotation = {cos(angle / 2), 0, sin(angle / 2), 0}};
    if (mesh) {
        plane.vertex_count = (PLANE + 1) * (PLANE + 1);
        plane.positions = x[0];
        plane.triangle_count = 2 * PLANE * PLANE;
        plane.triangles = triangles[0];
    }
    must(w, toile_add_collider(w, &plane, NULL));
    must(w, toile_build(w));
    double speed[2] = {0, 0}, start = 0, end = 0;
    for (int f = 0; f <= 240; f++) {
        double v = 0, at = 0;
        for (int i = 0; i < s.nu * s.nv; i++)
            for (int k = 0; k < 3; k++) {
                v += velocity_of(w, i)[k] * down[k] / (s.nu * s.nv);
                at += position_of(w, i)[k] * down[k] / (s.nu * s.nv);
            }
        if (f == 0)
            start = at;
        if (f == 60 || f == 180)
            speed[f == 180] = v;
        end = at;
        if (f < 240)
            must(w, toile_advance(w, h));
    }
    double first[3], extent = 0;
    for (int k = 0; k < 3; k++) {
        first[k] = position_of(w, CELLS)[k] - position_of(w, 0)[k];
        extent += first[k] * down[k];
    }
    toile_destroy(w);
    return (slide){end - start, speed[1] - speed[0], extent - side};
}

/* Holds below atan(mu), slides above, at g (sin a - mu cos a). The solver is as it comes: the strain it leaves must not
 * shake the cloth loose. */
static void check_friction(const char *model, double margin) {
    static const double MU[] = {0.3, 0.5};
    for (int mesh = 0; mesh < 2; mesh++)
        for (int c = 0; c < 2; c++) {
            double mu = MU[c], critical = atan(mu), degree = PI / 180, above = critical + margin * degree;
            double steep = critical + 10 * degree, creep = G * (sin(above) - mu * cos(above)) * 2; /* a t^2 / 2 at 2 s */
            const char *shape = mesh ? "mesh" : "plane";
            slide holds = incline(model, mesh, mu, critical - margin * degree), creeps = incline(model, mesh, mu, above);
            slide slides = incline(model, mesh, mu, steep);
            printf("  %s, %s, mu %g: drift %.3f mm %g degrees below, %.1f mm above (expected %.1f)\n", model, shape, mu,
                   1000 * holds.drift, margin, 1000 * creeps.drift, 1000 * creep);
            /* of the 1 mm, h^2 g sin a = 0.3 mm is the first step, in which it falls on the plane */
            CHECK(fabs(holds.drift) < (strcmp(model, "springs") ? 0.001 : 0.005), "%s %s mu %g: drift %.3g m", model, shape, mu,
                  holds.drift);
            /* the margin over friction is 2 % of it here, so 20 % of the distance is 0.4 % of the friction */
            if (strcmp(model, "continuum") == 0)
                CHECK(fabs(off(creeps.drift, creep)) < 0.2, "%s %s mu %g: %.4f m, expected %.4f", model, shape, mu,
                      creeps.drift, creep);
            else /* connections hold nothing in compression: particles settle and stick one by one, some mm, before the sheet moves
                  * as one; so for them the angles are 6 degrees off, not 0.5 */
                CHECK(creeps.drift > 0.2 * creep, "%s %s mu %g: %.4f m of %.4f", model, shape, mu, creeps.drift, creep);
            WITHIN(0.03, slides.acceleration, G * (sin(steep) - mu * cos(steep)),
                   "%s, %s, mu %g, acceleration at + 10 degrees", model, shape, mu);
            CHECK(fabs(slides.apart) < 0.003, "%s %s mu %g: the sheet's length changed by %.4f m", model, shape, mu,
                  slides.apart);
        }
}

static void friction(void) {
    check_friction("continuum", 0.5);
}

static void friction_springs(void) {
    check_friction("springs", 6);
}

/* A sheet on one that is held, 0.5 degrees below and above atan(mu) in 2 s and 10 degrees above in 1 s: gravity is tilted. */
static double on_cloth(const char *model, double mu, double off_degrees, double *acceleration) {
    enum { SIDE = 9, LONG = 81, WIDE = 16 };
    double h = 1.0 / 120, angle = atan(mu) + off_degrees * PI / 180, gravity[3] = {G * sin(angle), 0, -G * cos(angle)}, at[241];
    int held[LONG * WIDE], below;
    toile_world *w = new_world(model, h, 0.01);
    must(w, toile_set(w, "self_collision", "on"));
    set(w, "self_thickness", 0.002);
    set(w, "self_friction", mu);
    must(w, toile_set_numbers(w, "gravity", gravity, 3));
    int fabric = new_fabric(w, 0.2, 4000, 50, 1e-5);
    sheet s = {ALTERNATE, SIDE, SIDE, {-0.15, -0.15, 0.002}, {0.3, 0, 0}, {0, 0.3, 0}, NULL};
    add_sheet(w, &s, fabric);
    must(w, toile_add_grid(w, &(toile_grid){.name = "below", .nu = LONG, .nv = WIDE, .fabric = fabric,
                                            .diagonals = TOILE_DIAGONALS_ALTERNATE, .origin = {-0.487, -0.283, 0},
                                            .u_axis = {3.2, 0, 0}, .v_axis = {0, 0.6, 0}}, &below));
    for (int i = 0; i < LONG * WIDE; i++)
        held[i] = i;
    must(w, toile_add_pin(w, &(toile_pin){below, LONG * WIDE, held, {true, true, true}}, NULL));
    must(w, toile_build(w));
    int steps = off_degrees > 5 ? 120 : 240;
    for (int f = 0; f <= steps; f++) {
        at[f] = 0;
        for (int i = 0; i < SIDE * SIDE; i++)
            at[f] += position_of(w, i)[0] / (SIDE * SIDE);
        if (f < steps)
            must(w, toile_advance(w, h));
    }
    toile_destroy(w);
    if (acceleration)
        *acceleration = (at[90] - 2 * at[60] + at[30]) / (30 * h * 30 * h);
    return at[steps] - at[0];
}

/* A tight band around a body with a waist, a mesh whose faces meet there in a crease: its middle is pressed into the crease with
 * many times its weight, its edges lie on the slopes and hold by friction. It has to come to rest: thrown from one face of the
 * crease to the other, or held too softly, it trembles by millimetres in a second for good. */
static void rest_in_a_crease(void) {
    enum { AROUND = 48, ROWS = 8, SECTORS = 20, CORNERS = 3 * SECTORS, FACES = 2 * AROUND * (ROWS - 1) };
    static const double HEIGHT[3] = {-0.15, 0, 0.15}, RADIUS[3] = {0.13, 0.1, 0.13};
    static double x[AROUND * ROWS][3], uv[FACES][3][2], body[CORNERS][3];
    static int sizes[FACES], faces[FACES][3], triangles[4 * SECTORS][3];
    double lean = (RADIUS[2] - RADIUS[1]) / HEIGHT[2], h = 1.0 / 120, width = 0.05, tight = 0.097, most = 0;
    for (int i = 0; i < CORNERS; i++) {
        double angle = 2 * PI * (i % SECTORS) / SECTORS, r = RADIUS[i / SECTORS];
        memcpy(body[i], (double[]){r * cos(angle), r * sin(angle), HEIGHT[i / SECTORS]}, sizeof *body);
    }
    for (int i = 0, t = 0; i < 2 * SECTORS; i++) {
        int a = i, b = i % SECTORS == SECTORS - 1 ? i + 1 - SECTORS : i + 1;
        memcpy(triangles[t++], (int[]){a, b, b + SECTORS}, sizeof *triangles);
        memcpy(triangles[t++], (int[]){a, b + SECTORS, a + SECTORS}, sizeof *triangles);
    }
    for (int i = 0; i < AROUND * ROWS; i++) {
        double angle = 2 * PI * (i % AROUND + 0.3) / AROUND, z = width * ((i / AROUND + 0.2) / (ROWS - 1) - 0.5), r = RADIUS[1] + lean * fabs(z) + 0.004;
        memcpy(x[i], (double[]){r * cos(angle), r * sin(angle), z}, sizeof *x);
    }
    for (int i = 0, f = 0; i < AROUND * (ROWS - 1); i++)
        for (int t = 0; t < 2; t++, f++) {
            static const int CORNER[2][3][2] = {{{0, 0}, {1, 0}, {1, 1}}, {{0, 0}, {1, 1}, {0, 1}}};
            sizes[f] = 3;
            for (int c = 0; c < 3; c++) {
                int a = i % AROUND + CORNER[t][c][0], b = i / AROUND + CORNER[t][c][1];
                faces[f][c] = a % AROUND + b * AROUND;
                uv[f][c][0] = 2 * PI * tight * a / AROUND, uv[f][c][1] = width * b / (ROWS - 1);
            }
        }
    toile_world *w = new_world("continuum", h, 0.01);
    int fabric = new_fabric(w, 0.2, 400, 20, 1e-5);
    toile_mesh band = {.name = "band", .vertex_count = AROUND * ROWS, .positions = x[0], .face_count = FACES, .face_sizes = sizes,
                       .face_vertices = faces[0], .corner_uv = uv[0][0], .panel_count = 1, .panel_fabrics = &fabric};
    toile_collider waist = {.name = "waist", .shape = TOILE_MESH, .friction_static = 0.3, .friction_kinetic = 0.3, .rotation = {1},
                            .vertex_count = CORNERS, .positions = body[0], .triangle_count = 4 * SECTORS, .triangles = triangles[0]};
    must(w, toile_add_mesh(w, &band, NULL));
    must(w, toile_add_collider(w, &waist, NULL));
    must(w, toile_build(w));
    for (int f = 1; f <= 360; f++) {
        double sum = 0;
        must(w, toile_advance(w, h));
        for (int i = 0; i < AROUND * ROWS; i++)
            for (int k = 0; k < 3; k++)
                sum += velocity_of(w, i)[k] * velocity_of(w, i)[k] / (AROUND * ROWS);
        most = f > 300 ? fmax(most, sqrt(sum)) : 0;
    }
    toile_destroy(w);
    printf("  a band in a crease: %.3f mm/s after 2.5 s\n", 1000 * most);
    CHECK(most < 0.2e-3, "%.3f mm/s (root mean square) in the last half second", 1000 * most);
}

static void friction_layers(void) {
    for (int m = 0; m < 2; m++) {
        double mu = 0.3, above = atan(mu) + 0.5 * PI / 180, steep = atan(mu) + 10 * PI / 180, acceleration;
        double creep = 2 * G * (sin(above) - mu * cos(above)), holds = on_cloth(MODELS[m], mu, -0.5, NULL);
        double slides = on_cloth(MODELS[m], mu, 0.5, NULL);
        on_cloth(MODELS[m], mu, 10, &acceleration);
        printf("  %s, on cloth, mu %g: %.3f mm 0.5 degrees below, %.1f mm above (expected %.1f)\n", MODELS[m], mu, 1000 * holds,
               1000 * slides, 1000 * creep);
        CHECK(fabs(holds) < 0.001, "%s: drift %.4f m", MODELS[m], holds);
        CHECK(fabs(off(slides, creep)) < 0.2, "%s: %.4f m, expected %.4f", MODELS[m], slides, creep);
        WITHIN(0.03, acceleration, G * (sin(steep) - mu * cos(steep)), "%s, on cloth, acceleration at + 10 degrees", MODELS[m]);
    }
}

/* How far the end of the long side of a strip over a cylinder moves at most from 0.1 to 1 s, in radii. */
static double capstan(const char *model, double mu, double share) {
    enum { ROWS = 5 };
    double radius = 0.05, outer = radius + 0.002, spacing = radius / 6, lift = 2 * mu / (1 + mu * mu), h = 1.0 / 240;
    double critical = (5 + lift) * exp(mu * PI) + lift, length = (5 + PI + share * critical) * outer, start = 0, most = 0;
    int n = (int)(length / spacing + 0.5);
    double bend = 0.005 * 0.2 * G * pow(radius, 3);
    toile_world *w = new_world(model, h, 0.01);
    int fabric = new_fabric(w, 0.2, 4000, 50, bend);
    damping(w, fabric, 0.005, 0.005);
    sheet s = {ALTERNATE, n + 1, ROWS, {0, 0, 0}, {length, 0, 0}, {0, (ROWS - 1) * spacing, 0}, NULL};
    add_sheet(w, &s, fabric);
    toile_collider roll = {.name = "roll", .shape = TOILE_CYLINDER, .friction_static = mu, .friction_kinetic = mu,
                           .size = {radius, 1}, .rotation = {cos(PI / 4), sin(PI / 4), 0, 0}};
    must(w, toile_add_collider(w, &roll, NULL));
    must(w, toile_build(w));
    for (int i = 0; i <= n; i++)
        for (int j = 0; j < ROWS; j++) {
            double at = length * i / n - 5 * outer, *p = position_of(w, i + j * (n + 1)), angle = PI - at / outer;
            p[0] = at < 0 ? -outer : at > PI * outer ? outer : outer * cos(angle);
            p[2] = at < 0 ? at : at > PI * outer ? PI * outer - at : outer * sin(angle);
        }
    for (int f = 1; f <= 240; f++) {
        must(w, toile_advance(w, h));
        double end = column_mean(w, &s, n, 2);
        if (f == 24)
            start = end;
        most = f > 24 ? fmax(most, fabs(end - start) / radius) : 0;
    }
    toile_destroy(w);
    return most;
}

/* Slips when L_long / R exceeds (L_short / R + c) e^(mu pi) + c, c = 2 mu / (1 + mu^2): the capstan equation with weight. */
static void friction_capstan(void) {
    for (int m = 0; m < 2; m++) {
        double holds = capstan(MODELS[m], 0.3, 0.93), slips = capstan(MODELS[m], 0.3, 1.07);
        printf("  %s, capstan: moves %.4f radii at 0.93 of the critical length, %.2f at 1.07\n", MODELS[m], holds, slips);
        CHECK(holds < 0.1, "%s: %.3f radii", MODELS[m], holds);
        CHECK(slips > 0.3, "%s: %.3f radii", MODELS[m], slips);
    }
}

/* ---- 8 contact ---- */

enum { RINGS = 24, SECTORS = 48, BALL_VERTICES = (RINGS - 1) * SECTORS + 2 };

static void ball_vertices(const double centre[3], double radius, double x[BALL_VERTICES][3]) {
    for (int r = 1; r < RINGS; r++)
        for (int s = 0; s < SECTORS; s++) {
            double a = PI * r / RINGS, b = 2 * PI * s / SECTORS, *p = x[(r - 1) * SECTORS + s];
            p[0] = centre[0] + radius * sin(a) * cos(b);
            p[1] = centre[1] + radius * sin(a) * sin(b);
            p[2] = centre[2] + radius * cos(a);
        }
    for (int e = 0; e < 2; e++) {
        double *p = x[BALL_VERTICES - 2 + e];
        memcpy(p, centre, 3 * sizeof *p);
        p[2] += e ? -radius : radius;
    }
}

static int ball_triangles(int t[2 * RINGS * SECTORS][3]) {
    int n = 0, north = BALL_VERTICES - 2, south = BALL_VERTICES - 1;
    for (int s = 0; s < SECTORS; s++) {
        int next = (s + 1) % SECTORS, last = (RINGS - 2) * SECTORS;
        memcpy(t[n++], (int[]){north, s, next}, sizeof *t);
        memcpy(t[n++], (int[]){last + s, south, last + next}, sizeof *t);
        for (int r = 0; r < RINGS - 2; r++) {
            int a = r * SECTORS + s, b = a + SECTORS, c = (r + 1) * SECTORS + next, d = r * SECTORS + next;
            memcpy(t[n++], (int[]){a, b, c}, sizeof *t);
            memcpy(t[n++], (int[]){a, c, d}, sizeof *t);
        }
    }
    return n;
}

static const int BOX_TRIANGLES[12][3] = {{0, 2, 3}, {0, 3, 1}, {4, 5, 7}, {4, 7, 6}, {0, 1, 5}, {0, 5, 4},
                                         {2, 6, 7}, {2, 7, 3}, {0, 4, 6}, {0, 6, 2}, {1, 3, 7}, {1, 7, 5}};

/* A 1 m sheet of cotton above a ball of 0.3 m or a box of 0.2 m half side, as a primitive or as a mesh. */
enum { DROP = 31 };
#define BALL 0.3
#define BOX 0.2
static toile_world *drop_on(const char *model, bool box, bool mesh, double drop_from, double aside, double friction) {
    static double x[BALL_VERTICES][3];
    static int t[2 * RINGS * SECTORS][3];
    double h = 1.0 / 120;
    toile_world *w = new_world(model, h, 0.01);
    set(w, "stretch_change_max", 0.03); /* as it comes: a blow may need short steps */
    set(w, "time_step_min", 1e-5);
    must(w, toile_set(w, "drag_model", "particle"));
    int fabric;
    must(w, toile_add_fabric(w, "cotton", &fabric));
    sheet s = {ALTERNATE, DROP, DROP, {aside - 0.5, 0.7 * aside - 0.5, drop_from}, {1, 0, 0}, {0, 1, 0}, NULL};
    add_sheet(w, &s, fabric);
    toile_collider c = {.name = "solid", .shape = mesh ? TOILE_MESH : box ? TOILE_BOX : TOILE_SPHERE, .friction_static = friction,
                        .friction_kinetic = 0.8 * friction, .size = {box ? BOX : BALL, BOX, BOX}};
    if (mesh && box) {
        for (int i = 0; i < 8; i++)
            for (int k = 0; k < 3; k++)
                x[i][k] = i >> k & 1 ? BOX : -BOX;
        c.vertex_count = 8, c.triangle_count = 12;
        memcpy(t, BOX_TRIANGLES, sizeof BOX_TRIANGLES);
    } else if (mesh) {
        ball_vertices((double[]){0, 0, 0}, BALL, x);
        c.vertex_count = BALL_VERTICES, c.triangle_count = ball_triangles(t);
    }
    c.positions = x[0], c.triangles = t[0];
    must(w, toile_add_collider(w, &c, NULL));
    must(w, toile_build(w));
    return w;
}

static toile_world *drop(const char *model, bool box, bool mesh, double drop_from, double aside) {
    return drop_on(model, box, mesh, drop_from, aside, 0.5);
}

/* How deep the deepest particle is inside, m; of a ball made of flat faces, inside the ball that fits into it. */
static double ball_depth(toile_world *w, const double centre[3], double radius, bool mesh) {
    double deepest = -INFINITY, inner = mesh ? radius * cos(PI / SECTORS) * cos(PI / (2 * RINGS)) : radius;
    for (int i = 0; i < DROP * DROP; i++) {
        const double *x = position_of(w, i);
        double from[3] = {x[0] - centre[0], x[1] - centre[1], x[2] - centre[2]};
        deepest = fmax(deepest, inner - length3(from));
    }
    return deepest;
}

static double box_depth(toile_world *w) {
    double deepest = -INFINITY;
    for (int i = 0; i < DROP * DROP; i++) {
        const double *x = position_of(w, i);
        deepest = fmax(deepest, BOX - fmax(fabs(x[0]), fmax(fabs(x[1]), fabs(x[2]))));
    }
    return deepest;
}

/* No frame ends with a particle inside; a mesh does what the primitive does: corners within 2 cm (folds are not unique),
 * tops within 2 mm. */
static void drape(void) {
    /* 3 cm aside: from a perfectly symmetric start a sheet on a perfect sphere can stay in folds that no other sheet keeps */
    static const int PLACES[] = {0, DROP - 1, DROP * (DROP - 1), DROP * DROP - 1};
    for (int m = 0; m < 2; m++)
        for (int box = 0; box < 2; box++) {
            double corner[2][4], top[2] = {-INFINITY, -INFINITY}, worst = 0;
            for (int mesh = 0; mesh < 2; mesh++) {
                toile_world *w = drop(MODELS[m], box, mesh, (box ? BOX : BALL) + 0.05, 0.03);
                double during = -INFINITY, last = 0;
                for (int f = 0; f < 72; f++) {
                    must(w, toile_advance(w, 1.0 / 24));
                    last = box ? box_depth(w) : ball_depth(w, (double[]){0, 0, 0}, BALL, mesh);
                    during = fmax(during, last);
                }
                toile_statistics now;
                must(w, toile_get_statistics(w, false, &now));
                for (int c = 0; c < 4; c++)
                    corner[mesh][c] = position_of(w, PLACES[c])[2];
                for (int i = 0; i < DROP * DROP; i++)
                    top[mesh] = fmax(top[mesh], position_of(w, i)[2]);
                printf("  %s, %s as %s: deepest %.3f mm in flight, %.3f mm at the end; %d contacts; corners %.3f %.3f %.3f "
                       "%.3f\n",
                       MODELS[m], box ? "box" : "ball", mesh ? "mesh" : "primitive", 1000 * during, 1000 * last, now.contacts,
                       corner[mesh][0], corner[mesh][1], corner[mesh][2], corner[mesh][3]);
                CHECK(now.penetrations == 0, "%d particles inside, %.3f mm", now.penetrations, 1000 * now.deepest);
                CHECK(during < 1e-6, "%s %s %s: %.3f mm inside in flight", MODELS[m], box ? "box" : "ball",
                      mesh ? "mesh" : "primitive", 1000 * during);
                CHECK(now.contacts > 20, "only %d particles in contact", now.contacts);
                toile_destroy(w);
            }
            for (int c = 0; c < 4; c++) /* their mean: which corner hangs lowest is up to how the folds fall */
                worst += (corner[1][c] - corner[0][c]) / 4;
            worst = fabs(worst);
            printf("  %s, %s: mesh and primitive differ by %.1f mm at the corners in the mean, %.2f mm at the top\n", MODELS[m],
                   box ? "box" : "ball", 1000 * worst, 1000 * fabs(top[1] - top[0]));
            /* and what is drawn around an edge rubs on it, which a primitive's does not: that holds the box's cloth higher */
            CHECK(worst < (box ? 0.06 : 0.02), "%s %s: corners differ by %.1f mm", MODELS[m], box ? "box" : "ball", 1000 * worst);
            /* the edges of a mesh hold cloth between its particles, those of a primitive do not: 4.5 and 2.7 mm at the box */
            CHECK(fabs(top[1] - top[0]) < (box ? 0.006 : 0.002), "%s %s: tops differ by %.2f mm", MODELS[m], box ? "box" : "ball",
                  1000 * fabs(top[1] - top[0]));
            /* the cloth's thickness above the solid; a cloth that bends over an edge bulges before it by some millimetres */
            double above = top[0] - (box ? BOX : BALL);
            CHECK(above > 0.0015 && above < (box ? 0.012 : 0.0025), "%s %s: the top is %.2f mm above the solid", MODELS[m],
                  box ? "box" : "ball", 1000 * above);
        }
}

/* Friction that lets nothing slide, as artists ask for: the sheet lands, stays, and neither stretches nor flies off. */
static void friction_strong(void) {
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < 4; k++) {
            toile_world *w = drop_on(MODELS[m], false, k & 1, BALL + 0.05, 0.03, k & 2 ? 100 : 10);
            toile_statistics all;
            for (int f = 0; f < 40; f++)
                must(w, toile_advance(w, 1.0 / 24));
            must(w, toile_get_statistics(w, true, &all));
            printf("  %s, friction %d, %s: stretch %.1f %%, %lld steps, %lld taken back\n", MODELS[m], k & 2 ? 100 : 10,
                   k & 1 ? "mesh" : "ball", 100 * all.max_stretch, (long long)all.steps, (long long)all.rejected_steps);
            CHECK(all.max_stretch < 0.06, "%s, friction %d: stretch %.3f", MODELS[m], k & 2 ? 100 : 10, all.max_stretch);
            CHECK(all.penetrations == 0, "%d particles inside", all.penetrations);
            CHECK(all.rejected_steps < all.steps / 10, "%lld of %lld steps were taken back", (long long)all.rejected_steps,
                  (long long)all.steps);
            toile_destroy(w);
        }
}

/* Where the carrying ball is: at rest for 1 s, then up at 0.5 m/s and to the side at 0.2 m/s. The mesh also breathes. */
static void ball_path(double time, bool mesh, double centre[3], double *radius) {
    double since = fmax(time - 1, 0);
    centre[0] = 0.2 * since;
    centre[1] = 0;
    centre[2] = 0.5 * since;
    *radius = BALL + (mesh ? 0.03 * sin(2 * PI * since) : 0);
}

static void carried(void) {
    static double x[BALL_VERTICES][3];
    for (int m = 0; m < 2; m++)
        for (int mesh = 0; mesh < 2; mesh++) {
            toile_world *w = drop(MODELS[m], false, mesh, BALL + 0.05, 0);
            double during = -INFINITY, last = 0, centre[3], radius = BALL, no_turn[4] = {1, 0, 0, 0};
            int most = 0;
            for (int f = 1; f <= 48; f++) {
                ball_path(f / 24.0, mesh, centre, &radius);
                ball_vertices(centre, radius, x);
                must(w, mesh ? toile_deform_collider(w, 0, x[0]) : toile_pose_collider(w, 0, centre, no_turn));
                must(w, toile_advance(w, 1.0 / 24));
                last = ball_depth(w, centre, radius, mesh);
                during = fmax(during, last);
                toile_statistics now;
                must(w, toile_get_statistics(w, false, &now));
                most = now.penetrations > most ? now.penetrations : most;
            }
            double *middle = position_of(w, DROP * DROP / 2);
            printf("  %s, ball as %s: deepest %.3f mm in flight, %.3f mm at the end, at most %d particles inside; middle at "
                   "%.3f %.3f %.3f, ball's top at %.3f %.3f %.3f\n",
                   MODELS[m], mesh ? "breathing mesh" : "primitive", 1000 * during, 1000 * last, most, middle[0], middle[1],
                   middle[2], centre[0], centre[1], centre[2] + radius);
            CHECK(during < 1e-6, "%s %s: %.3f mm inside in flight", MODELS[m], mesh ? "mesh" : "primitive", 1000 * during);
            CHECK(most == 0, "%s %s: %d particles inside at once", MODELS[m], mesh ? "mesh" : "primitive", most);
            /* carried: what lay on top is still near the top, having gone 0.5 m up and 0.2 m along */
            double from[3] = {middle[0] - centre[0], middle[1] - centre[1], middle[2] - centre[2]};
            CHECK(length3(from) < radius + 0.006 && from[2] > 0.95 * radius,
                  "%s %s: the middle is at %.3f %.3f %.3f from the ball", MODELS[m], mesh ? "mesh" : "primitive", from[0],
                  from[1], from[2]);
            toile_destroy(w);
        }
}

/* ---- 9 energy ---- */

/* A sheet held at one edge, let go from the level, no damping of any kind: nothing feeds it, so it can only lose. */
static void energy(void) {
    for (int m = 0; m < 2; m++)
        for (int fine = 0; fine < 2; fine++) {
            double h = fine ? 1.0 / 480 : 1.0 / 120, length = 0.5;
            toile_world *w = new_world(MODELS[m], h, 1e-10);
            sheet s = {ALTERNATE, 13, 13, {0, 0, 0}, {length, 0, 0}, {0, length, 0}, NULL};
            int fabric = new_fabric(w, 0.2, 2000, 50, 1e-5);
            damping(w, fabric, 0, 0);
            int garment = add_sheet(w, &s, fabric);
            pin_columns(w, garment, &s, 0, 1);
            must(w, toile_build(w));
            double start = total_energy(w), scale = 0.2 * length * length * G * length / 2, last = start, rise = 0, above = 0;
            double lowest = 0;
            for (int f = 0; f < (int)(3 / h + 0.5); f++) {
                must(w, toile_advance(w, h));
                double now = total_energy(w);
                rise = fmax(rise, (now - last) / scale);
                above = fmax(above, (now - start) / scale);
                lowest = fmin(lowest, column_mean(w, &s, 12, 2));
                last = now;
            }
            printf("  %s, h %.5f: never more than %.1e above the start; most in a step %+.1e; after 3 s %.4f (in units of "
                   "m g L/2); lowest %.3f\n",
                   MODELS[m], h, above, rise, (last - start) / scale, lowest);
            CHECK(above <= 1e-6, "%s: %.3g above the start", MODELS[m], above);
            CHECK(last < start && lowest < -0.45, "%s: it did not swing: %.3f m", MODELS[m], lowest);
            toile_destroy(w);
        }
}

/* ---- 10 air ---- */

static void set_text(toile_world *w, const char *id, const char *text) {
    must(w, toile_set(w, id, text));
}

/* A level sheet falls flat until m g = 1/2 rho c A v^2. */
static void terminal_velocity(void) {
    static const char *const DRAGS[] = {"particle", "triangle"};
    for (int m = 0; m < 2; m++)
        for (int d = 0; d < 2; d++)
            for (mesh_kind kind = ALTERNATE; kind <= JITTERED; kind++) {
                double density = 0.15, c = 1.3, air = 1.2, h = 1.0 / 120, mean = 0;
                double expected = sqrt(2 * density * G / (air * c));
                toile_world *w = new_world(MODELS[m], h, 1e-12);
                set_text(w, "drag_model", DRAGS[d]);
                set(w, "drag_coefficient", c);
                set(w, "air_density", air);
                sheet s = {kind, 9, 9, {0, 0, 0}, {0.4, 0, 0}, {0, 0.4, 0}, NULL};
                add_sheet(w, &s, new_fabric(w, density, 4000, 50, 1e-4));
                must(w, toile_build(w));
                for (int f = 0; f < 180; f++)
                    must(w, toile_advance(w, h));
                for (int i = 0; i < s.nu * s.nv; i++)
                    mean -= velocity_of(w, i)[2] / (s.nu * s.nv);
                /* after 1.5 s tanh(g t / v) is 1 to 1e-9; terminal velocity does not depend on the step */
                WITHIN(0.001, mean, expected, "%s, %s drag, %s, terminal velocity", MODELS[m], DRAGS[d], KINDS[kind]);
                toile_destroy(w);
            }
}

/* A sheet across the wind ends up as fast as the wind; along it, no normal meets the wind, so nothing pushes. */
static void wind(void) {
    static const char *const DRAGS[] = {"particle", "triangle"};
    for (int d = 0; d < 2; d++)
        for (int along = 0; along < 2; along++) {
            double h = 1.0 / 60, v[3] = {0, 0, 0}, early = 0;
            toile_world *w = new_world("continuum", h, 1e-12);
            no_gravity(w);
            set_text(w, "drag_model", DRAGS[d]);
            set_text(w, "wind_velocity", along ? "2,0,0" : "0,0,-2");
            sheet s = {ALTERNATE, 7, 7, {0, 0, 0}, {0.4, 0, 0}, {0, 0.4, 0}, NULL};
            add_sheet(w, &s, new_fabric(w, 0.15, 4000, 50, 1e-4));
            must(w, toile_build(w));
            for (int f = 1; f <= 600; f++) {
                must(w, toile_advance(w, h));
                if (f == 1)
                    early = velocity_of(w, 24)[2];
            }
            for (int i = 0; i < s.nu * s.nv; i++)
                for (int k = 0; k < 3; k++)
                    v[k] += velocity_of(w, i)[k] / (s.nu * s.nv);
            if (along) {
                printf("  %s drag, wind along the sheet: %.2e m/s\n", DRAGS[d], length3(v));
                CHECK(length3(v) < 1e-9, "%s: pushed to %.3g m/s", DRAGS[d], length3(v));
            } else {
                /* dv/dt = -q (v - 2)^2 with q = rho c / (2 density) = 4: v lags the wind by 2 / (1 + 2 q t), 1.2 % at 10 s.
                 * 0.2 %: first order in h, which matters only while it is fast */
                WITHIN(0.002, v[2], -2 + 2 / (1 + 2 * 4 * 10.0), "%s drag, wind across the sheet, velocity after 10 s",
                       DRAGS[d]);
                CHECK(early < 0, "%s: the first push goes to %.3g", DRAGS[d], early);
            }
            toile_destroy(w);
        }
}

/* Gust: rho dv/dt = p sin(2 pi (f t - s / lambda)); the force is taken at the step's begin, so the sum is its own closed
 * form. At s = lambda / 4 the wave is a quarter late and begins by pulling. */
static void gust(void) {
    for (int late = 0; late < 2; late++) {
        double h = 1.0 / 240, density = 0.2, p = 0.5, f = 0.5, lambda = 40;
        double expected = 0, sum = 0, mean = 0, worst = 0, early = 0;
        toile_world *w = new_world("continuum", h, 1e-14);
        no_gravity(w);
        set(w, "gust_frequency", f);
        set(w, "gust_wavelength", lambda);
        set_text(w, "gust_pressure", "0,0.5,0");
        double at = late ? lambda / 4 * sqrt(3.0) : 0; /* along x: s = x / sqrt 3 */
        sheet s = {ALTERNATE, 5, 5, {at - 0.05, -0.05, 0}, {0.1, 0, 0}, {0, 0.1, 0}, NULL};
        add_sheet(w, &s, new_fabric(w, density, 4000, 50, 1e-4));
        must(w, toile_build(w));
        int steps = (int)(1 / (f * h) + 0.5); /* one swing */
        for (int n = 0; n < steps; n++) {
            /* the wave at the middle, which moves along y: 3 % of lambda at most */
            double middle = (position_of(w, 12)[0] + position_of(w, 12)[1]) / sqrt(3.0);
            expected += h * p / density * sin(2 * PI * (f * n * h - middle / lambda));
            must(w, toile_advance(w, h));
            double v = 0;
            for (int i = 0; i < 25; i++)
                v += velocity_of(w, i)[1] / 25;
            worst = fmax(worst, fabs(v - expected));
            sum += v / steps;
            if (n == 4)
                early = v;
        }
        mean = late ? 0 : p / density / (2 * PI * f); /* of (1 - cos) or of -sin over a swing */
        printf("  gust %s: mean velocity %.4f m/s, expected about %.4f; first push %+.4f m/s; off by at most %.1e m/s\n",
               late ? "a quarter late" : "from the start", sum, mean, early, worst);
        /* the sheet is 0.1 m wide: the wave turns by 0.5 degrees over it, and evenly to both sides of the middle */
        CHECK(worst < 1e-4, "off by %.3g m/s", worst);
        CHECK(late ? early < 0 : early > 0, "the first push is %.3g m/s", early);
        CHECK(fabs(sum - mean) < 0.15 * p / density / (2 * PI * f), "mean %.4f, expected %.4f", sum, mean);
        toile_destroy(w);
    }
}

/* ---- 11 pins ---- */

static void pins(void) {
    for (int m = 0; m < 2; m++) {
        double step = 1.0 / 24, worst = 0, target[2][3], far = 0;
        toile_world *w = new_world(MODELS[m], 1.0 / 100, 0.01); /* steps do not divide the frame evenly */
        sheet s = {ALTERNATE, 9, 9, {0, 0, 0}, {0.4, 0, 0}, {0, 0.4, 0}, NULL};
        int garment = add_sheet(w, &s, new_fabric(w, 0.2, 4000, 50, 1e-5)), held, partial;
        must(w, toile_add_pin(w, &(toile_pin){garment, 2, (int[]){0, 8}, {true, true, true}}, &held));
        must(w, toile_add_pin(w, &(toile_pin){garment, 1, (int[]){80}, {false, true, false}}, &partial));
        must(w, toile_build(w));
        for (int f = 1; f <= 24; f++) {
            double t = f * step;
            for (int i = 0; i < 2; i++) {
                target[i][0] = 0.4 * i + 0.1 * sin(7 * t);
                target[i][1] = 0.2 * t * t;
                target[i][2] = 0.3 * (1 - cos(5 * t));
            }
            double side[3] = {77, 0.4 + 0.05 * sin(6 * t), 77}; /* only its y is held */
            must(w, toile_move_pin(w, held, target[0]));
            must(w, toile_move_pin(w, partial, side));
            must(w, toile_advance(w, step));
            for (int k = 0; k < 3; k++) {
                worst = fmax(worst, fabs(position_of(w, 0)[k] - target[0][k]));
                worst = fmax(worst, fabs(position_of(w, 8)[k] - target[1][k]));
            }
            worst = fmax(worst, fabs(position_of(w, 80)[1] - side[1]));
            far = fmax(far, fmax(fabs(position_of(w, 80)[0]), fabs(position_of(w, 80)[2])));
        }
        printf("  %s: targets missed by at most %.1e m; free axes of a partial pin reach %.2f m\n", MODELS[m], worst, far);
        CHECK(worst <= 1e-12, "%s: missed by %.3g m", MODELS[m], worst);
        CHECK(far < 2 && far > 0.3, "%s: free axes at %.3g m", MODELS[m], far);
        CHECK(position_of(w, 80)[2] < 0.2, "%s: the free axes of a partial pin do not fall", MODELS[m]);

        /* off: both fall freely (the top of a hanging sheet even faster); on: back to the targets within the frame */
        double before = position_of(w, 0)[2];
        must(w, toile_enable_pin(w, held, false));
        must(w, toile_enable_pin(w, partial, false));
        for (int f = 0; f < 5; f++)
            must(w, toile_advance(w, step));
        double fell = before - position_of(w, 0)[2], missed = 0;
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 3; k++)
                target[i][k] = position_of(w, i * 8)[k] + (k == 2) * 0.05;
        must(w, toile_move_pin(w, held, target[0]));
        must(w, toile_enable_pin(w, held, true));
        must(w, toile_advance(w, step));
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 3; k++)
                missed = fmax(missed, fabs(position_of(w, i * 8)[k] - target[i][k]));
        printf("  %s: fell by %.3f m in 5 frames without pins, targets missed by %.1e m when they came on again\n", MODELS[m],
               fell, missed);
        CHECK(fell > 0.1, "%s: fell by %.3f m only", MODELS[m], fell); /* g t^2 / 2 = 0.21 m; it had been pulled upwards */
        CHECK(missed <= 1e-12, "%s: missed by %.3g m", MODELS[m], missed);
        toile_destroy(w);
    }
}

/* ---- 12 rest scales ---- */

/* A free sheet with b_u = 0.9 takes 0.9 of its cut length in u and stays as cut in v. The other way, b_v = 1.05, needs
 * stretch that pushes, which springs do not have. */
static void rest_scales(void) {
    static const double SCALES[][2] = {{0.9, 1}, {1, 1.05}};
    for (int m = 0; m < 2; m++)
        for (int c = 0; c < 2 - m; c++)
            for (mesh_kind kind = ALTERNATE; kind <= JITTERED; kind++) {
                double step = 1.0 / 50, size[2] = {0, 0};
                toile_world *w = new_world(MODELS[m], step, 1e-10);
                sheet s = {kind, 11, 11, {0, 0, 0}, {0.5, 0, 0}, {0, 0.5, 0}, SCALES[c]};
                no_gravity(w);
                int fabric = new_fabric(w, 0.2, 1000, 50, 1e-4);
                damping(w, fabric, 0.02, 0.02);
                add_sheet(w, &s, fabric);
                must(w, toile_build(w));
                CHECK(settle(w, step, 10, 1e-3), "does not come to rest: %.2g m/s", top_speed(w));
                for (int i = 0; i < 11; i++)
                    for (int k = 0; k < 2; k++) {
                        const double *a = position_of(w, k ? i : 11 * i), *b = position_of(w, k ? i + 110 : 11 * i + 10);
                        double between[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
                        size[k] += length3(between) / 11;
                    }
                /* at rest every element can be at its own rest shape at once, so only the rest of the motion is left */
                for (int k = 0; k < 2; k++)
                    WITHIN(0.002, size[k], 0.5 * SCALES[c][k], "%s, %s, b %g %g, size in %c", MODELS[m], KINDS[kind],
                           SCALES[c][0], SCALES[c][1], k ? 'v' : 'u');
                toile_destroy(w);
            }
}

int main(int argc, char **argv) {
    RUN(free_fall);
    RUN(linear_momentum);
    RUN(overstretch_is_local);
    RUN(load_is_borne);
    RUN(limits_settle);
    RUN(pressed_flat);
    RUN(rotation);
    RUN(rigid_damping);
    RUN(decay_time);
    RUN(hanging_strip);
    RUN(hanging_strip_springs);
    RUN(hanging_strip_springs_shear);
    RUN(cantilever_refined);
    RUN(rolled_sheet);
    RUN(rolled_sheet_bias);
    RUN(bend_on_the_bias);
    RUN(bent_shapes);
    RUN(bent_forces);
    RUN(rolled_sheet_springs);
    RUN(pendulum);
    RUN(catenary);
    RUN(friction);
    RUN(friction_springs);
    RUN(friction_layers);
    RUN(rest_in_a_crease);
    RUN(friction_capstan);
    RUN(friction_strong);
    RUN(drape);
    RUN(carried);
    RUN(energy);
    RUN(terminal_velocity);
    RUN(wind);
    RUN(gust);
    RUN(pins);
    RUN(rest_scales);
    FINISH();
}
