/* Shaping and constraints against what can be computed by hand: maps, creases, elastic, pressure; soft pins, pins to
 * surfaces and curves; gravity that begins late. */
#include "check.h"

#include "force_bend.h"
#include "sew.h"
#include "world.h"

static void give_up(toile_world *w) {
    printf("cannot go on: %s\n", toile_message(w));
    exit(1);
}

static void need(toile_world *w, toile_status status) {
    if (status < 0)
        give_up(w);
}

static toile_world *new_world(const char *model, const char *gravity, int *fabric) {
    toile_world *w = NULL;
    if (toile_create(NULL, &w) < 0)
        give_up(w);
    need(w, toile_add_fabric(w, "cotton", fabric));
    need(w, toile_set(w, "cloth_model", model));
    need(w, toile_set(w, "gravity", gravity));
    need(w, toile_set(w, "drag_model", "none"));
    need(w, toile_set(w, "threads", "1"));
    return w;
}

static toile_grid sheet(int fabric, int n, double size) {
    return (toile_grid){.name = "sheet", .nu = n, .nv = n, .u_axis = {size, 0, 0}, .v_axis = {0, size, 0}, .fabric = fabric};
}

static void run(toile_world *w, int frames) {
    for (int f = 0; f < frames; f++)
        need(w, toile_advance(w, 1.0 / 24));
}

static const char *const MODELS[] = {"continuum", "springs"};

/* Linear density: the mass is that of the mean, the centre of mass that of the integral. */
static void density_map(void) {
    enum { N = 11 };
    double factors[N * N], mass = 0, moment = 0;
    int fabric, map;
    toile_world *w = new_world("continuum", "0,0,0", &fabric);
    toile_grid grid = sheet(fabric, N, 0.5);
    for (int i = 0; i < N * N; i++)
        factors[i] = 0.5 + 2.0 * (i % N) / (N - 1);
    need(w, toile_add_grid(w, &grid, NULL));
    need(w, toile_add_map(w, 0, "density", factors, &map));
    CHECK(toile_add_map(w, 0, "densty", factors, NULL) == TOILE_INVALID, "a wrong name");
    need(w, toile_build(w));
    toile_sim *sim = toile_world_sim(w);
    for (int i = 0; i < N * N; i++) {
        mass += sim->model->mass[i];
        moment += sim->model->mass[i] * sim->state.x[4 * i];
    }
    CHECK(fabs(mass / (0.22 * 1.5 * 0.25) - 1) < 1e-12, "mass %g kg", mass);
    /* sum over quads of (0.5 + 2 u) u, u in cells of 0.1: centre 0.5 * (0.25 + 2/3) / 1.5 but for the cells' own share */
    CHECK(fabs(moment / mass - 0.5 * (0.25 + 2.0 / 3) / 1.5) < 2e-3, "centre %g m", moment / mass);
    /* changed between frames: the model follows, the state stays */
    double before[3 * N * N], after[3 * N * N];
    toile_get_positions(w, 0, before);
    for (int i = 0; i < N * N; i++)
        factors[i] = 3;
    need(w, toile_change_map(w, 0, map, factors));
    run(w, 1);
    mass = 0;
    for (int i = 0; i < N * N; i++)
        mass += sim->model->mass[i];
    toile_get_positions(w, 0, after);
    CHECK(fabs(mass / (0.22 * 3 * 0.25) - 1) < 1e-12, "mass %g kg", mass);
    double moved = 0;
    for (int i = 0; i < 3 * N * N; i++)
        moved = fmax(moved, fabs(after[i] - before[i]));
    CHECK(moved < 1e-12, "a sheet at rest moved by %g m", moved);
    factors[7] = NAN;
    CHECK(toile_change_map(w, 0, map, factors) == TOILE_INVALID && strstr(toile_message(w), "vertex 7"), "%s", toile_message(w));
    toile_destroy(w);
}

static double distance(const double a[3], const double b[3]) {
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

/* A rest scale of 0.8 along u: a free sheet shrinks to it. */
static void scale_map(void) {
    enum { N = 9 };
    for (int m = 0; m < 2; m++) {
        double factors[N * N], x[3 * N * N];
        int fabric;
        toile_world *w = new_world(MODELS[m], "0,0,0", &fabric);
        toile_grid grid = sheet(fabric, N, 0.5);
        need(w, toile_set_fabric(w, fabric, "stretch_damping", 0.05));
        for (int i = 0; i < N * N; i++)
            factors[i] = 0.8;
        need(w, toile_add_grid(w, &grid, NULL));
        need(w, toile_add_map(w, 0, "scale_u", factors, NULL));
        need(w, toile_build(w));
        run(w, 72);
        toile_get_positions(w, 0, x);
        double width = distance(x, x + 3 * (N - 1)), height = distance(x, x + 3 * N * (N - 1)); /* it may have turned */
        CHECK(fabs(width - 0.4) < 2e-3 && fabs(height - 0.5) < 2e-3, "%s: %g x %g m", MODELS[m], width, height);
        toile_destroy(w);
    }
}

/* A crease along the middle of a sheet comes to rest at its angle. */
static void crease(void) {
    enum { N = 9 };
    int fabric, edges[2 * (N - 1)];
    toile_world *w = new_world("continuum", "0,0,0", &fabric);
    toile_grid grid = sheet(fabric, N, 0.5);
    need(w, toile_set_fabric(w, fabric, "bend_warp", 0.02));
    need(w, toile_set_fabric(w, fabric, "bend_weft", 0.02));
    need(w, toile_set_fabric(w, fabric, "bend_damping", 0.02));
    need(w, toile_add_grid(w, &grid, NULL));
    for (int j = 0; j < N - 1; j++) {
        edges[2 * j] = N / 2 + j * N;
        edges[2 * j + 1] = N / 2 + (j + 1) * N;
    }
    need(w, toile_add_crease(w, 0, edges, N - 1, 1.0));
    int wrong[2] = {0, 5};
    CHECK(toile_add_crease(w, 0, wrong, 1, 1.0) == TOILE_INVALID && strstr(toile_message(w), "from vertex 0 to 5"), "%s",
          toile_message(w));
    need(w, toile_build(w));
    run(w, 120);
    double x[3 * N * N];
    toile_get_positions(w, 0, x);
    const double *a = x + 3 * (4 * N), *m = x + 3 * (4 * N + N / 2), *b = x + 3 * (4 * N + N - 1);
    double p = atan2(a[2] - m[2], fabs(a[0] - m[0])), q = atan2(b[2] - m[2], fabs(b[0] - m[0]));
    CHECK(fabs(p + q - 1.0) < 0.02, "the halves meet at %g rad, expected 1 (the front, +z, inside)", p + q);
    toile_destroy(w);
}

/* Elastic along one edge of a sheet that is held at both ends: tension = stiffness x strain of the elastic, besides the
 * cloth's. Here a sheet without stiffness to speak of. */
static void elastic(void) {
    enum { N = 5 };
    for (int m = 0; m < 2; m++) {
        int fabric, edges[2 * (N - 1)], ends[2] = {0, N - 1};
        toile_world *w = new_world(MODELS[m], "0,0,0", &fabric);
        toile_grid grid = sheet(fabric, N, 0.4);
        need(w, toile_set_fabric(w, fabric, "stretch_warp", 1));
        need(w, toile_set_fabric(w, fabric, "stretch_weft", 1));
        need(w, toile_set_fabric(w, fabric, "shear", 1));
        need(w, toile_set_fabric(w, fabric, "stretch_damping", 0.1));
        need(w, toile_add_grid(w, &grid, NULL));
        for (int i = 0; i < N - 1; i++) {
            edges[2 * i] = i;
            edges[2 * i + 1] = i + 1;
        }
        need(w, toile_add_elastic(w, 0, edges, N - 1, 50, 0.8));
        toile_pin pin = {0, 2, ends, {true, true, true}};
        need(w, toile_add_pin(w, &pin, NULL));
        need(w, toile_soften_pin(w, 0, 100));
        need(w, toile_build(w));
        run(w, 120);
        /* 100 d = 50 (0.4 - 2 d - 0.32) / 0.32: each end goes d inwards */
        double x[3 * N * N], expected = 50 * 0.08 / 0.32 / (100 + 100 / 0.32);
        toile_get_positions(w, 0, x);
        CHECK(fabs(x[0] / expected - 1) < 0.05, "%s: the end went %g m, expected %g", MODELS[m], x[0], expected);
        toile_destroy(w);
    }
}

/* A soft pin carries the sheet's weight with k x. */
static void soft_pin(void) {
    enum { N = 5 };
    for (int m = 0; m < 2; m++) {
        int fabric, all[N * N];
        double x[3 * N * N], mass = 0, sum = 0;
        toile_world *w = new_world(MODELS[m], "0,0,-9.81", &fabric);
        toile_grid grid = sheet(fabric, N, 0.4);
        for (int i = 0; i < N * N; i++)
            all[i] = i;
        need(w, toile_add_grid(w, &grid, NULL));
        toile_pin pin = {0, N * N, all, {true, true, true}};
        need(w, toile_add_pin(w, &pin, NULL));
        CHECK(toile_soften_pin(w, 0, -1) == TOILE_INVALID, "a stiffness below 0");
        need(w, toile_soften_pin(w, 0, 20));
        need(w, toile_build(w));
        run(w, 240);
        toile_get_positions(w, 0, x);
        for (int i = 0; i < N * N; i++) {
            mass += toile_world_sim(w)->model->mass[i];
            sum += -20 * x[3 * i + 2];
        }
        CHECK(fabs(sum / (9.81 * mass) - 1) < 1e-6, "%s: springs carry %g N, weight %g N", MODELS[m], sum, 9.81 * mass);
        toile_destroy(w);
    }
    /* in one direction only: free in the others */
    int fabric, corner[1] = {0};
    toile_world *w = new_world("continuum", "1,0,-9.81", &fabric);
    toile_grid grid = sheet(fabric, N, 0.4);
    need(w, toile_add_grid(w, &grid, NULL));
    toile_pin pin = {0, 1, corner, {false, false, true}};
    need(w, toile_add_pin(w, &pin, NULL));
    need(w, toile_soften_pin(w, 0, 1e5));
    need(w, toile_build(w));
    run(w, 12);
    double x[3 * N * N];
    toile_get_positions(w, 0, x);
    CHECK(fabs(x[2]) < 1e-3 && x[0] > 0.02, "corner at %g %g %g", x[0], x[1], x[2]);
    toile_destroy(w);
}

/* A pin on a collider goes where its surface goes, rigid or soft, primitive or mesh, also when it comes on later. */
static void surface_pin(void) {
    enum { N = 5 };
    static const double FLOOR[12] = {-1, -1, -0.1, 1, -1, -0.1, 1, 1, -0.1, -1, 1, -0.1};
    static const int FACES[6] = {0, 1, 2, 0, 2, 3};
    for (int kind = 0; kind < 4; kind++) {
        bool mesh = kind & 1, soft = kind & 2;
        int fabric, corner[2] = {0, N - 1};
        toile_world *w = new_world("continuum", "0,0,0", &fabric);
        toile_grid grid = sheet(fabric, N, 0.4);
        need(w, toile_add_grid(w, &grid, NULL));
        toile_collider box = {.name = "box", .shape = TOILE_BOX, .size = {1, 1, 0.05}, .position = {0, 0, -0.15}};
        toile_collider floor = {.name = "floor", .shape = TOILE_MESH, .vertex_count = 4, .positions = FLOOR, .triangle_count = 2,
                                .triangles = FACES};
        need(w, toile_add_collider(w, mesh ? &floor : &box, NULL));
        toile_pin pin = {0, 2, corner, {true, true, true}};
        need(w, toile_add_pin(w, &pin, NULL));
        need(w, toile_pin_to_collider(w, 0, 0));
        CHECK(toile_pin_to_collider(w, 0, 0) == TOILE_INVALID, "pinned twice");
        if (soft)
            need(w, toile_soften_pin(w, 0, 1e4));
        need(w, toile_build(w));
        need(w, toile_enable_pin(w, 0, false));
        run(w, 2);
        need(w, toile_enable_pin(w, 0, true));
        void *bytes = malloc(toile_state_size(w));
        size_t size = toile_state_size(w);
        for (int f = 1; f <= 24; f++) { /* turns by a quarter about z at the origin, and rises by 0.1 m */
            double angle = 1.5707963267948966 * f / 24, c = cos(angle), s = sin(angle), rise = 0.1 * f / 24, moved[12];
            double at[3] = {0, 0, -0.15 + rise}, turn[4] = {cos(angle / 2), 0, 0, sin(angle / 2)};
            for (int i = 0; i < 4; i++) {
                const double *p = FLOOR + 3 * i;
                moved[3 * i] = c * p[0] - s * p[1];
                moved[3 * i + 1] = s * p[0] + c * p[1];
                moved[3 * i + 2] = p[2] + rise;
            }
            need(w, mesh ? toile_deform_collider(w, 0, moved) : toile_pose_collider(w, 0, at, turn));
            run(w, 1);
            if (f == 12) { /* the place on the surface is part of the state */
                need(w, toile_save_state(w, bytes, size));
                toile_world_sim(w)->holds[0].anchored = false;
                need(w, toile_restore_state(w, bytes, size));
                CHECK(toile_world_sim(w)->holds[0].anchored, "not anchored after restoring");
                memset(bytes, 0x77, 8);
                CHECK(toile_restore_state(w, bytes, size) == TOILE_FORMAT, "a damaged pin");
            }
        }
        double x[3 * N * N], slack = soft ? 5e-3 : 1e-9;
        toile_get_positions(w, 0, x);
        const double *a = x, *b = x + 3 * (N - 1); /* started at 0 0 0 and 0.4 0 0 */
        CHECK(fabs(a[0]) < slack && fabs(a[1]) < slack && fabs(a[2] - 0.1) < slack, "kind %d: %g %g %g", kind, a[0], a[1], a[2]);
        CHECK(fabs(b[0]) < slack && fabs(b[1] - 0.4) < slack && fabs(b[2] - 0.1) < slack, "kind %d: %g %g %g", kind, b[0], b[1],
              b[2]);
        free(bytes);
        toile_destroy(w);
    }
}

/* Rings on a rail: the sheet slides along it and stays on it; without friction on a slope it gains g sin cos. */
static void curve_pin(void) {
    enum { N = 5 };
    for (int soft = 0; soft < 2; soft++) {
        int fabric, top[N];
        toile_world *w = new_world("continuum", "0,0,-9.81", &fabric);
        double slope = 0.5, c = cos(slope), s = sin(slope);
        toile_grid grid = {.name = "curtain", .nu = N, .nv = N, .u_axis = {0.4 * c, 0, -0.4 * s}, .v_axis = {0, 0.4, 0},
                           .fabric = fabric};
        double rail[9] = {-1 * c, 0, s, 0, 0, 0, 4 * c, 0, -4 * s};
        need(w, toile_add_grid(w, &grid, NULL));
        for (int i = 0; i < N; i++)
            top[i] = i;
        toile_pin pin = {0, N, top, {true, true, true}};
        need(w, toile_add_pin(w, &pin, NULL));
        CHECK(toile_pin_to_curve(w, 0, rail, 1) == TOILE_INVALID, "one point");
        need(w, toile_pin_to_curve(w, 0, rail, 3));
        if (soft)
            need(w, toile_soften_pin(w, 0, 1e4));
        need(w, toile_build(w));
        run(w, 12);
        double x[3 * N * N], off = 0, along = 0;
        toile_get_positions(w, 0, x);
        for (int i = 0; i < N; i++) {
            const double *p = x + 3 * i;
            off = fmax(off, fmax(fabs(p[1]), fabs(s * p[0] + c * p[2])));
            along += (c * p[0] - s * p[2]) / N - 0.1 * i / N;
        }
        CHECK(off < (soft ? 2e-3 : 1e-9), "%g m off the rail", off);
        /* all of it, the part that hangs too: the mean of the rings is near g sin(slope) t^2 / 2 */
        CHECK(along > 0.4 && along < 0.75, "went %g m, free slide %g", along, 0.5 * 9.81 * s * 0.25);
        printf("  %s rail: %g m along, free slide %g\n", soft ? "soft" : "rigid", along, 0.5 * 9.81 * s * 0.25);
        toile_destroy(w);
    }
}

/* Mean distance of the middle ring of a tube from its own centre: nothing holds the tube across its axis, and it drifts. */
enum { AROUND = 48, ALONG = 7 };
static double ring_radius(const double *x) {
    const double *ring = x + 3 * (ALONG / 2) * AROUND;
    double centre[2] = {0, 0}, mean = 0;
    for (int i = 0; i < 2 * AROUND; i++)
        centre[i % 2] += ring[3 * (i / 2) + i % 2] / AROUND;
    for (int i = 0; i < AROUND; i++)
        mean += hypot(ring[3 * i] - centre[0], ring[3 * i + 1] - centre[1]) / AROUND;
    return mean;
}

/* A cylinder of cloth under pressure p: hoop tension N = p r, so strain p r / k around. Its ends slide freely on their
 * planes (held along the axis), so that nothing else holds it. */
static void pressure(void) {
    const double radius = 0.1, height = 0.2, p = 400;
    static double x[3 * AROUND * ALONG], uv[8 * AROUND * (ALONG - 1)];
    static int sizes[AROUND * (ALONG - 1)], faces[4 * AROUND * (ALONG - 1)], rims[2 * AROUND];
    for (int j = 0; j < ALONG; j++)
        for (int i = 0; i < AROUND; i++) {
            double angle = 2 * 3.14159265358979323846 * i / AROUND, *q = x + 3 * (j * AROUND + i);
            q[0] = radius * cos(angle), q[1] = radius * sin(angle), q[2] = height * j / (ALONG - 1);
        }
    double side = 2 * radius * sin(3.14159265358979323846 / AROUND);
    for (int j = 0, f = 0; j < ALONG - 1; j++)
        for (int i = 0; i < AROUND; i++, f++) {
            static const int DI[4] = {0, 1, 1, 0}, DJ[4] = {0, 0, 1, 1};
            sizes[f] = 4;
            for (int c = 0; c < 4; c++) {
                faces[4 * f + c] = (i + DI[c]) % AROUND + (j + DJ[c]) * AROUND;
                uv[8 * f + 2 * c] = side * (i + DI[c]);
                uv[8 * f + 2 * c + 1] = height * (j + DJ[c]) / (ALONG - 1);
            }
        }
    for (int m = 0; m < 2; m++) {
        int fabric;
        toile_world *w = new_world(MODELS[m], "0,0,0", &fabric);
        need(w, toile_set_fabric(w, fabric, "stretch_warp", 1000));
        need(w, toile_set_fabric(w, fabric, "stretch_weft", 1000));
        need(w, toile_set_fabric(w, fabric, "stiffening_warp", 1)); /* the formula is for linear cloth */
        need(w, toile_set_fabric(w, fabric, "stiffening_weft", 1));
        need(w, toile_set_fabric(w, fabric, "stretch_damping", 0.02));
        toile_mesh mesh = {.name = "tube", .vertex_count = AROUND * ALONG, .positions = x, .face_count = AROUND * (ALONG - 1),
                           .face_sizes = sizes, .face_vertices = faces, .corner_uv = uv, .panel_count = 1,
                           .panel_fabrics = &fabric, .keep_start_angles = true};
        need(w, toile_add_mesh(w, &mesh, NULL));
        for (int i = 0; i < AROUND; i++)
            rims[i] = i, rims[AROUND + i] = (ALONG - 1) * AROUND + i;
        toile_pin pin = {0, 2 * AROUND, rims, {false, false, true}};
        need(w, toile_add_pin(w, &pin, NULL));
        need(w, toile_build(w));
        need(w, toile_set_pressure(w, 0, -1, p));
        CHECK(toile_set_pressure(w, 0, 1, p) == TOILE_INVALID, "a panel that is not there");
        run(w, 120);
        static double y[3 * AROUND * ALONG];
        toile_get_positions(w, 0, y);
        double mean = ring_radius(y);
        /* k (r - r0) / r0 = p r */
        double expected = radius / (1 - p * radius / 1000);
        printf("  %s: radius %g m, expected %g\n", MODELS[m], mean, expected);
        CHECK(fabs((mean - radius) / (expected - radius) - 1) < 0.03, "%s: radius %g m, expected %g", MODELS[m], mean, expected);
        /* and back without */
        need(w, toile_set_pressure(w, 0, 0, 0));
        run(w, 120);
        toile_get_positions(w, 0, y);
        mean = ring_radius(y);
        CHECK(fabs(mean - radius) < 1e-3, "%s: radius %g m without pressure", MODELS[m], mean);
        toile_destroy(w);
    }
}

/* No gravity for 0.25 s, then growing for 0.5 s: v = g ((t - 0.25)^2 / 2 / 0.5) up to 0.75 s. */
static void late_gravity(void) {
    int fabric;
    toile_world *w = new_world("continuum", "0,0,-10", &fabric);
    toile_grid grid = sheet(fabric, 3, 0.4);
    need(w, toile_add_grid(w, &grid, NULL));
    need(w, toile_set(w, "gravity_delay", "0.25"));
    need(w, toile_set(w, "gravity_ramp", "0.5"));
    need(w, toile_set(w, "time_step", "0.0005"));
    need(w, toile_build(w));
    need(w, toile_set_time(w, -1));
    double v[27];
    run(w, 6);
    toile_get_velocities(w, 0, v);
    CHECK(v[2] == 0, "%g m/s before", v[2]);
    run(w, 6);
    toile_get_velocities(w, 0, v);
    CHECK(fabs(v[2] + 10 * 0.25 * 0.25) < 0.01, "%g m/s at 0.5 s", v[2]);
    run(w, 12);
    toile_get_velocities(w, 0, v);
    CHECK(fabs(v[2] + 10 * (0.25 + 0.25)) < 0.01, "%g m/s at 1 s", v[2]);
    CHECK(fabs(toile_time(w)) < 1e-9, "time %g s", toile_time(w));
    toile_destroy(w);
}

int main(int argc, char **argv) {
    RUN(density_map);
    RUN(scale_map);
    RUN(crease);
    RUN(elastic);
    RUN(soft_pin);
    RUN(surface_pin);
    RUN(curve_pin);
    RUN(pressure);
    RUN(late_gravity);
    FINISH();
}
