#include "experiment_sheet.h"

#include "bench.h"
#include "stability.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Stands for no stiffness: damping is kept as a time, k_d / k_s. */
#define NO_STIFFNESS 1e-9

/* Half the table's side over that of the sheet (Fig. 6.1). */
#define TABLE 0.27

static bool set_number(toile_world *w, const char *id, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    return toile_set(w, id, text) >= 0;
}

static bool set_up(toile_world *w, const sheet *s) {
    const char *texts[][2] = {{"cloth_model", "springs"},
                              {"integrator", s->integrator ? s->integrator : "backward_euler"},
                              {"linear_solver", s->solver ? s->solver : "mpcg"},
                              {"preconditioner", s->preconditioner ? s->preconditioner : "constrained"},
                              {"solver_stop", s->own_stop || s->solver ? "energy" : "thesis"},
                              {"decompose", s->decompose ? "true" : "false"},
                              {"aimex_bends_explicit", s->bends_explicit ? "true" : "false"},
                              {"self_collision", "off"}, /* the papers' tables were made without */
                              {"drag_model", "none"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (toile_set(w, texts[i][0], texts[i][1]) < 0)
            return false;
    return set_number(w, "threads", s->threads ? s->threads : 1) && set_number(w, "stretch_change_max", 10) &&
           set_number(w, "time_step_min", 1e-9) && set_number(w, "solver_iterations_max", 20000) &&
           set_number(w, "contact_thickness", fmin(0.002, 0.1 * s->spacing));
}

/* Stiffness and damping of every connection, and masses, as the thesis has them. */
static bool override_model(experiment *e, toile_world *w, const sheet *s) {
    toile_sim *sim = toile_world_sim(w);
    toile_model *m = sim->model;
    toile_springs *t = &m->springs;
    double mass = s->density * s->spacing * s->spacing;
    for (int i = 0; i < m->particle_count; i++) {
        m->mass[i] = mass;
        m->inverse_mass[i] = 1 / mass;
    }
    for (int i = 0; i < t->padded; i++) {
        bool stretch = i < t->stretch_count, shear = !stretch && i < t->axial_count;
        bool bend = i >= t->axial_padded && i < t->axial_padded + t->bend_count;
        double k = stretch ? s->stretch
                   : shear ? s->shear
                           : 0,
               d = stretch ? s->damp_stretch
                   : shear ? s->damp_shear
                           : 0;
        if (bend) {
            t->stiffness[i] = s->bend;
            t->damping[i] = 0;
        } else if (stretch || shear) {
            t->stiffness[i] = k > 0 ? k : d > 0 ? NO_STIFFNESS : 0;
            t->damping[i] = d > 0 ? d / t->stiffness[i] : 0;
        }
    }
    toile_stability_free(sim);
    memset(&sim->work.stability, 0, sizeof sim->work.stability);
    if (toile_stability_make(sim, &e->error) < 0)
        return false;
    sim->work.stability.step = INFINITY; /* steps are as asked for, stable or not */
    sheet_set_step(w, s->step);
    return true;
}

static bool add_scene(toile_world *w, const sheet *s) {
    int fabric, garment, pins[4] = {0, s->n - 1, s->n * (s->n - 1), s->n * s->n - 1}, count = 0;
    double size = (s->n - 1) * s->spacing, above = 0;
    toile_collider solid = {.name = "solid", .friction_static = s->friction, .friction_kinetic = s->friction};
    switch (s->scene) {
    case SHEET_CORNERS: count = 2; break;
    case SHEET_FOUR: count = 4; break;
    case SHEET_CENTRE:
        pins[0] = s->n / 2 * s->n + s->n / 2;
        count = 1;
        break;
    case SHEET_SPHERE:
        solid.shape = TOILE_SPHERE;
        solid.size[0] = 0.25 * size;
        above = 1.02 * solid.size[0];
        break;
    case SHEET_TABLE:
        solid.shape = TOILE_BOX;
        memcpy(solid.size, (double[]){TABLE * size, TABLE * size, 0.02 * size}, sizeof solid.size);
        above = 0.03 * size;
        break;
    case SHEET_GROUND:
        solid.shape = TOILE_PLANE;
        above = 0.3 * size;
        break;
    }
    double left = -size * (0.5 - s->off_centre);
    toile_grid grid = {.name = "sheet",
                       .nu = s->n,
                       .nv = s->n,
                       .origin = {left, left, above},
                       .u_axis = {size, 0, 0},
                       .v_axis = {0, size, 0}};
    if (s->scene == SHEET_GROUND) { /* it comes down on an edge, and crumples */
        memcpy(grid.u_axis, (double[]){0.8 * size, 0, 0.6 * size}, sizeof grid.u_axis);
        grid.origin[2] = 0.05 * size;
    }
    /* a soft one that every integrator takes; what counts is put in afterwards */
    if (toile_add_fabric(w, NULL, &fabric) < 0 || toile_set_fabric(w, fabric, "bend_warp", 1e-12) < 0 ||
        toile_set_fabric(w, fabric, "bend_weft", 1e-12) < 0 || toile_set_fabric(w, fabric, "shear_lock", 0) < 0 ||
        toile_set_fabric(w, fabric, "stretch_limit", 0) < 0)
        return false;
    grid.fabric = fabric;
    if (toile_add_grid(w, &grid, &garment) < 0)
        return false;
    toile_pin pin = {garment, count, pins, {true, true, true}};
    if (count && toile_add_pin(w, &pin, NULL) < 0)
        return false;
    return (count || toile_add_collider(w, &solid, NULL) >= 0) && toile_build(w) >= 0;
}

toile_world *sheet_make(experiment *e, const sheet *s) {
    toile_world *w = NULL;
    if (toile_create(NULL, &w) < 0) {
        toile_fail_memory(&e->error, "a sheet");
        return NULL;
    }
    bool made = set_up(w, s) && add_scene(w, s);
    if (!made)
        toile_fail(&e->error, TOILE_INVALID, "a sheet of the experiment could not be made: %s",
                   toile_message(w));
    if (made && override_model(e, w, s))
        return w;
    toile_destroy(w);
    return NULL;
}

void sheet_set_step(toile_world *world, double step) {
    toile_settings *settings = (toile_settings *)toile_world_sim(world)->settings;
    settings->time_step = step;
    settings->time_step_min = step; /* what is finite is accepted at this length */
}

double sheet_kappa(const sheet *s, double h) {
    double mass = s->density * s->spacing * s->spacing;
    return h / mass * fmax(s->stretch * h + 2 * s->damp_stretch, s->shear * h + 2 * s->damp_shear);
}

sheet_cost sheet_run(toile_world *world, double seconds, double frame) {
    toile_sim *sim = toile_world_sim(world);
    sheet_cost cost = {.sound = true};
    toile_statistics now;
    double begin = bench_cpu(), end = sim->state.time + seconds;
    while (cost.sound && sim->state.time < end - 1e-9 * seconds)
        cost.sound = toile_advance(world, fmin(frame, end - sim->state.time)) >= 0;
    cost.cpu = bench_cpu() - begin;
    const toile_counters *c = &sim->total;
    toile_get_statistics(world, true, &now);
    cost.iterations = (double)c->iterations;
    cost.rows = (double)c->row_multiplies;
    cost.solves = (double)c->solves;
    cost.steps = (double)c->steps;
    cost.components = c->solves ? (double)c->components / (double)c->solves : 0;
    cost.implicit_share = c->steps ? c->implicit_share / (double)c->steps : 0;
    cost.contacts = now.contacts;
    cost.largest_stretch = now.max_stretch;
    return cost;
}

/* ---- stability ---- */

enum { CHUNK = 50 };

double sheet_energy(const toile_sim *sim) {
    toile_energies now = toile_sim_energies(sim);
    return now.kinetic + now.elastic + now.potential;
}

/* 1 stable, 0 not, -1 failed to make the sheet. */
static int is_stable(experiment *e, const sheet *s, double step, int steps) {
    sheet at = *s;
    at.step = step;
    toile_world *w = sheet_make(e, &at);
    if (!w)
        return -1;
    toile_sim *sim = toile_world_sim(w);
    double start = sheet_energy(sim), fallen = 0, rest = toile_sim_energies(sim).potential;
    bool good = true;
    /* the library takes frames of 10 s at most */
    int chunk = (int)fmax(1, fmin(CHUNK, 5 / step));
    for (int done = 0; good && done < steps; done += chunk) {
        good = toile_advance(w, chunk * step) >= 0;
        fallen = fmax(fallen, rest - toile_sim_energies(sim).potential);
        good = good && sheet_energy(sim) - start <= SHEET_MARGIN * fallen;
    }
    toile_destroy(w);
    return good;
}

double sheet_critical_step(experiment *e, const sheet *s, int steps) {
    double mass = s->density * s->spacing * s->spacing, k = fmax(s->stretch, s->shear),
           d = fmax(s->damp_stretch, s->damp_shear);
    double guess = mass / (d + sqrt(d * d + k * mass)); /* about kappa = 1 */
    double low = guess, high = guess;
    int stable;
    while ((stable = is_stable(e, s, low, steps)) == 0 && low > 1e-3 * guess)
        low *= 0.7;
    while (stable > 0 && (stable = is_stable(e, s, high, steps)) > 0 && high < 100 * guess)
        low = high, high /= 0.7;
    while (stable >= 0 && high > 1.01 * low) {
        double middle = sqrt(low * high);
        if ((stable = is_stable(e, s, middle, steps)) > 0)
            low = middle;
        else
            high = middle;
    }
    return stable < 0 ? NAN : low;
}

/* ---- pictures ---- */

void sheet_view(const double x[3], double *right, double *up) {
    const double turn = 0.6, tilt = 0.5; /* rad */
    double across = cos(turn) * x[0] + sin(turn) * x[1], deep = -sin(turn) * x[0] + cos(turn) * x[1];
    *right = across;
    *up = cos(tilt) * x[2] + sin(tilt) * deep;
}

void sheet_draw_table(plot *p, const sheet *s) {
    double half = TABLE * (s->n - 1) * s->spacing, top = 0.02 * (s->n - 1) * s->spacing, at[4][2];
    for (int k = 0; k < 4; k++)
        sheet_view((const double[]){k == 0 || k == 3 ? -half : half, k < 2 ? -half : half, top}, &at[k][0],
                   &at[k][1]);
    for (int k = 0; k < 4; k++)
        plot_segment(p, at[k][0], at[k][1], at[(k + 1) % 4][0], at[(k + 1) % 4][1], 0xd55e00, 1.5);
}

typedef struct drawn {
    int connection;
    unsigned colour;
} drawn;

static int by_colour(const void *a, const void *b) {
    const drawn *x = a, *y = b;
    if (x->colour != y->colour) /* light ones first, so that dark ones lie on top */
        return x->colour > y->colour ? -1 : 1;
    return (x->connection > y->connection) - (x->connection < y->connection);
}

void sheet_draw(plot *p, const toile_sim *sim, sheet_colour colour, void *user) {
    const toile_springs *s = &sim->model->springs;
    drawn *list = malloc((size_t)(s->axial_count + 1) * sizeof *list);
    int count = 0;
    plot_equal(p);
    for (int i = 0; list && i < s->axial_count; i++) {
        unsigned c = colour(sim, i, user);
        if (c != 0xffffff)
            list[count++] = (drawn){i, c};
    }
    if (list)
        qsort(list, (size_t)count, sizeof *list, by_colour);
    for (int k = 0; k < count; k++) {
        int i = list[k].connection;
        double at[2][2];
        for (int end = 0; end < 2; end++)
            sheet_view(sim->state.x + 4 * (size_t)s->vertex[end][i], &at[end][0], &at[end][1]);
        plot_segment(p, at[0][0], at[0][1], at[1][0], at[1][1], list[k].colour, 0.7);
    }
    free(list);
}
