/* Sheets of the validation protocols: a world with one garment. */
#include "validation.h"

#include <stdlib.h>
#include <string.h>

const char *const VALIDATION_MODELS[MODEL_COUNT] = {"continuum", "springs"};
const char *const VALIDATION_MESHES[MESH_KINDS] = {"m1", "m2", "m3", "45 deg"};

static void keep(trial *s, toile_status status) {
    if (status >= 0 || s->bad)
        return;
    s->bad = true;
    if (s->v->e->error.status == TOILE_OK)
        toile_fail(&s->v->e->error, status, "%s", toile_message(s->world));
}

static void set_number(trial *s, const char *id, double value) {
    if (!s->bad)
        keep(s, toile_set_numbers(s->world, id, &value, 1));
}

trial trial_open(validation *v, int model, double step) {
    trial s = {.v = v, .model = model, .step = step, .garment = -1};
    keep(&s, toile_create(NULL, &s.world));
    trial_set(&s, "cloth_model", VALIDATION_MODELS[model]);
    trial_set(&s, "drag_model", "none");
    trial_set(&s, "self_collision", "off");
    set_number(&s, "threads", v->e->threads);
    set_number(&s, "time_step", step);
    set_number(&s, "time_step_min", step);
    set_number(&s, "stretch_change_max", 10);
    set_number(&s, "solver_tolerance", 1e-6);
    set_number(&s, "solver_iterations_max", 20000);
    return s;
}

void trial_close(trial *s) {
    toile_destroy(s->world);
    s->world = NULL;
    s->bad = true;
}

void trial_set(trial *s, const char *id, const char *text) {
    if (!s->bad)
        keep(s, toile_set(s->world, id, text));
}

void trial_property(trial *s, const char *id, double value) {
    if (!s->bad)
        keep(s, toile_set_fabric(s->world, s->fabric, id, value));
}

void trial_fabric(trial *s, double density, double stretch, double shear, double bend) {
    if (!s->bad)
        keep(s, toile_add_fabric(s->world, NULL, &s->fabric));
    trial_property(s, "density", density);
    trial_property(s, "stretch_warp", stretch);
    trial_property(s, "stretch_weft", stretch);
    trial_property(s, "shear", shear);
    trial_property(s, "bend_warp", bend);
    trial_property(s, "bend_weft", bend);
    trial_property(s, "stretch_limit", 0); /* closed forms are of straight laws, and steps of one length turn into a limit */
}

void trial_damping(trial *s, double stretch, double bend) {
    trial_property(s, "stretch_damping", stretch);
    trial_property(s, "bend_damping", bend);
}

void trial_triangles(trial *s, int count, const double *x, const double *uv, int faces,
                     const int *triangles) {
    if (s->bad)
        return;
    double *corner = malloc((size_t)faces * 6 * sizeof *corner);
    int *sizes = malloc((size_t)faces * sizeof *sizes);
    if (corner && sizes) {
        for (int i = 0; i < 3 * faces; i++) {
            const double *from = uv ? uv + 2 * triangles[i] : x + 3 * triangles[i];
            corner[2 * i] = from[0], corner[2 * i + 1] = from[1];
            sizes[i / 3] = 3;
        }
        toile_mesh mesh = {.name = "sheet",
                           .vertex_count = count,
                           .positions = x,
                           .face_count = faces,
                           .face_sizes = sizes,
                           .face_vertices = triangles,
                           .corner_uv = corner,
                           .panel_count = 1,
                           .panel_fabrics = &s->fabric};
        keep(s, toile_add_mesh(s->world, &mesh, &s->garment));
        s->count = count;
    } else {
        s->bad = true;
    }
    free(corner);
    free(sizes);
}

/* A sheet as triangles: jittered, turned by 45 degrees, or with the warp turned. */
static void mesh_triangles(trial *s, const double origin[3], const double u[3], const double v[3],
                           double turn) {
    int nu = s->nu, nv = s->nv, cells = (nu - 1) * (nv - 1), middle = s->kind == M45 ? cells : 0,
        n = nu * nv + middle;
    double *x = malloc((size_t)n * 3 * sizeof *x), *uv = malloc((size_t)n * 2 * sizeof *uv);
    int *t = malloc((size_t)cells * 12 * sizeof *t), faces = 0;
    double lu = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]),
           lv = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    uint64_t seed = 20240229;
    if (!x || !uv || !t) {
        s->bad = true;
        goto out;
    }
    for (int i = 0; i < n; i++) {
        bool centre = i >= nu * nv;
        int a = centre ? (i - nu * nv) % (nu - 1) : i % nu, b = centre ? (i - nu * nv) / (nu - 1) : i / nu;
        double p = a + (centre ? 0.5 : 0), q = b + (centre ? 0.5 : 0);
        if (s->kind == M3 && a > 0 && a < nu - 1 && b > 0 && b < nv - 1) {
            p += 0.4 * ((double)(experiment_random(&seed) >> 11) / 9007199254740992.0 - 0.5);
            q += 0.4 * ((double)(experiment_random(&seed) >> 11) / 9007199254740992.0 - 0.5);
        }
        p /= nu - 1, q /= nv - 1;
        for (int k = 0; k < 3; k++)
            x[3 * i + k] = origin[k] + u[k] * p + v[k] * q;
        uv[2 * i] = cos(turn) * lu * p + sin(turn) * lv * q;
        uv[2 * i + 1] = -sin(turn) * lu * p + cos(turn) * lv * q;
    }
    for (int c = 0; c < cells; c++) {
        int a = c % (nu - 1), b = c / (nu - 1), o = nu * nv + c;
        int q[4] = {a + b * nu, a + 1 + b * nu, a + 1 + (b + 1) * nu, a + (b + 1) * nu};
        bool other = s->kind == M1 || ((a + b) & 1);
        int fan[12] = {q[0], q[1], o, q[1], q[2], o, q[2], q[3], o, q[3], q[0], o};
        int one[6] = {q[0], q[1], q[2], q[0], q[2], q[3]}, two[6] = {q[0], q[1], q[3], q[1], q[2], q[3]};
        int corners = s->kind == M45 ? 12 : 6;
        memcpy(t + 3 * faces, s->kind == M45 ? fan : other ? two : one, (size_t)corners * sizeof *t);
        faces += corners / 3;
    }
    trial_triangles(s, n, x, uv, faces, t);
out:
    free(x);
    free(uv);
    free(t);
}

void trial_mesh(trial *s, mesh_kind kind, int nu, int nv, const double origin[3], const double u[3],
                const double v[3], double turn) {
    s->kind = kind, s->nu = nu, s->nv = nv, s->count = nu * nv;
    if (s->bad)
        return;
    if (kind == M3 || kind == M45 || turn != 0) {
        mesh_triangles(s, origin, u, v, turn);
        return;
    }
    toile_grid grid = {.name = "sheet",
                       .nu = nu,
                       .nv = nv,
                       .fabric = s->fabric,
                       .diagonals = kind == M1 ? TOILE_DIAGONALS_LEFT : TOILE_DIAGONALS_ALTERNATE};
    memcpy(grid.origin, origin, sizeof grid.origin);
    memcpy(grid.u_axis, u, sizeof grid.u_axis);
    memcpy(grid.v_axis, v, sizeof grid.v_axis);
    keep(s, toile_add_grid(s->world, &grid, &s->garment));
}

int trial_hold(trial *s, int count, const int *particles) {
    int pin = -1;
    if (!s->bad)
        keep(s,
             toile_add_pin(s->world, &(toile_pin){s->garment, count, particles, {true, true, true}}, &pin));
    return pin;
}

int trial_hold_columns(trial *s, int from, int to) {
    int *held = malloc((size_t)(s->nu * s->nv * 2) * sizeof *held), count = 0, pin;
    if (!held) {
        s->bad = true;
        return -1;
    }
    for (int j = 0; j < s->nv; j++)
        for (int i = from; i < to; i++)
            held[count++] = i + j * s->nu;
    for (int j = 0; s->kind == M45 && j < s->nv - 1; j++) /* the middles between held columns */
        for (int i = from; i < to - 1; i++)
            held[count++] = s->nu * s->nv + i + j * (s->nu - 1);
    pin = trial_hold(s, count, held);
    free(held);
    return pin;
}

void trial_build(trial *s) {
    if (!s->bad)
        keep(s, toile_build(s->world));
}

void trial_advance(trial *s, int steps) {
    for (int i = 0; i < steps && !s->bad; i++)
        keep(s, toile_advance(s->world, s->step));
}

bool trial_settle(trial *s, double seconds, double speed) {
    for (int i = 0; i < seconds / s->step && !s->bad && !experiment_stopping(s->v->e); i++) {
        trial_advance(s, 1);
        double most = 0;
        for (int p = 0; p < s->count && !s->bad; p++) {
            const double *v = trial_v(s, p);
            most = fmax(most, v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        }
        if (i > 10 && most < speed * speed)
            return !s->bad;
    }
    return false;
}

double trial_at_rest(trial *s, double found) {
    int fast = 0;
    for (int p = 0; p < s->count && !s->bad; p++) {
        const double *v = trial_v(s, p);
        fast += v[0] * v[0] + v[1] * v[1] + v[2] * v[2] > 1e-6;
    }
    return s->bad || (fast > s->count / 100 && !s->v->nature) ? NAN : found;
}

double *trial_x(trial *s, int particle) {
    toile_sim *sim = toile_world_sim(s->world);
    return sim->state.x + 4 * (size_t)sim->model->place[particle];
}

double *trial_v(trial *s, int particle) {
    toile_sim *sim = toile_world_sim(s->world);
    return sim->state.v + 4 * (size_t)sim->model->place[particle];
}

double trial_mass(trial *s, int particle) {
    toile_sim *sim = toile_world_sim(s->world);
    return sim->model->mass[sim->model->place[particle]];
}

double trial_column(trial *s, int column, int axis) {
    double sum = 0;
    for (int j = 0; j < s->nv && !s->bad; j++)
        sum += trial_x(s, column + j * s->nu)[axis] / s->nv;
    return s->bad ? NAN : sum;
}

double trial_elastic(trial *s) {
    return s->bad ? NAN : toile_sim_energies(toile_world_sim(s->world)).elastic;
}

double trial_energy(trial *s) {
    if (s->bad)
        return NAN;
    toile_energies e = toile_sim_energies(toile_world_sim(s->world));
    return e.kinetic + e.elastic + e.potential;
}
