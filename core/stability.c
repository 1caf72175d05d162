#include "stability.h"

#include "force_bend.h"
#include "force_spring.h"
#include "force_stretch.h"
#include "integrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Share of the longest stable step that is taken: stretched triangles shear and bend a little stiffer than at
 * rest. */
#define SAFETY 0.9

/* Radius of a half disc inside RK4's region of stability (the least distance of its edge from 0 is 2.616). */
#define RK4_RADIUS 2.6

/* ---- elements as gradients at rest ---- */

typedef enum part { WARP, WEFT, SHEAR, HINGE, SPRING, PART_COUNT } part;

typedef struct element {
    int corners, vertex[4];
    double gradient[4];        /* lengths */
    double stiffness, damping; /* k, s */
} element;

static int count_of(const toile_model *m, part p) {
    switch (p) {
    case HINGE: return m->hinges.count;
    case SPRING: return m->springs.padded;
    default: return m->springs_used ? 0 : m->triangles.count;
    }
}

static element triangle_element(const toile_model *m, part p, int e) {
    const toile_triangles *t = &m->triangles;
    const double *a = t->corner + 6 * (size_t)e, *b = a + 3;
    element out = {.corners = 3, .damping = t->damping[e]};
    out.stiffness = (p == WARP ? t->stiff_u : p == WEFT ? t->stiff_v : t->stiff_s)[e];
    double curve = (p == WARP ? t->curve_u : p == WEFT ? t->curve_v : t->curve_s)[e];
    out.stiffness *= 1 + 2 * TOILE_STRETCH_KNEE * fmax(curve, 0); /* steepest beyond the knee */
    if (p != SHEAR) /* of both principal directions never more than of both threads */
        out.stiffness += t->stiff_limit[e] / (p == WARP ? t->scale_u[e] * t->scale_u[e] : t->scale_v[e] * t->scale_v[e]);
    for (int c = 0; c < 3; c++) {
        out.vertex[c] = t->vertex[c][e];
        double ratio = sqrt(t->scale_v[e] / t->scale_u[e]);
        double across = a[c] * ratio, along = b[c] / ratio; /* shear: a p + b q, at right angles (force_stretch.h) */
        out.gradient[c] = p == WARP   ? fabs(a[c])
                          : p == WEFT ? fabs(b[c])
                                      : sqrt(across * across + along * along);
    }
    return out;
}

static element hinge_element(const toile_model *m, int e) {
    const toile_hinges *t = &m->hinges;
    element out = {.corners = 4, .stiffness = t->bound[e], .damping = t->damping[e]};
    double x[4][3], g[4][3];
    for (int c = 0; c < 4; c++) {
        out.vertex[c] = t->vertex[c][e];
        memcpy(x[c], m->start + 4 * (size_t)out.vertex[c], sizeof x[c]);
    }
    toile_hinge_gradient((const double(*)[3])x, g);
    for (int c = 0; c < 4; c++)
        out.gradient[c] = sqrt(g[c][0] * g[c][0] + g[c][1] * g[c][1] + g[c][2] * g[c][2]);
    return out;
}

static element spring_element(const toile_model *m, int e) {
    const toile_springs *s = &m->springs;
    element out = {2, {s->vertex[0][e], s->vertex[1][e]}, {1, 1}, s->stiffness[e], s->damping[e]};
    out.stiffness = out.stiffness * (1 + 2 * s->knee[e] * fmax(s->curve[e], 0)) + s->stiff_limit[e];
    if (e >= s->axial_padded && e < s->tie_begin && s->length[e] > 0) /* bend is steepest near rest (force_spring.h) */
        out.stiffness *=
            -toile_bend_polynomial(1 - TOILE_BEND_LINEAR, NULL) / (TOILE_BEND_LINEAR * s->length[e]);
    return out;
}

static element element_of(const toile_model *m, part p, int e) {
    return p == HINGE ? hinge_element(m, e) : p == SPRING ? spring_element(m, e) : triangle_element(m, p, e);
}

static double *share_of(const toile_stability *s, part p) {
    return p == HINGE    ? s->hinge_share
           : p == SPRING ? s->spring_share
           : p == SHEAR  ? s->shear_share
                         : s->stretch_share;
}

/* Adds an element's rows to A and B. */
static void add_rows(const element *e, double *stiffness, double *viscosity) {
    double sum = 0;
    for (int c = 0; c < e->corners; c++)
        sum += e->gradient[c];
    for (int c = 0; c < e->corners; c++) {
        double row = e->stiffness * e->gradient[c] * sum;
        stiffness[e->vertex[c]] += row;
        viscosity[e->vertex[c]] += e->damping * row;
    }
}

/* Rows of all elements whose share is 0; of all if there are no shares. */
static void explicit_rows(toile_sim *sim) {
    toile_stability *s = &sim->work.stability;
    const toile_model *m = sim->model;
    size_t bytes = (size_t)m->particle_count * sizeof(double);
    memset(s->stiffness, 0, bytes);
    memset(s->viscosity, 0, bytes);
    for (part p = WARP; p < PART_COUNT; p++) {
        const double *share = share_of(s, p);
        for (int e = 0; e < count_of(m, p); e++) {
            if (share && share[e] != 0)
                continue;
            element now = element_of(m, p, e);
            if (now.stiffness > 0)
                add_rows(&now, s->stiffness, s->viscosity);
        }
    }
}

/* ---- which elements are explicit ---- */

static bool decides(int integrator) {
    return integrator == TOILE_INTEGRATOR_AIMEX || integrator == TOILE_INTEGRATOR_SBDF2;
}

/* imex: stretch is implicit, the rest explicit. */
static void set_fixed_shares(toile_sim *sim) {
    toile_stability *s = &sim->work.stability;
    for (part p = WARP; p < PART_COUNT; p++)
        for (int e = 0; e < count_of(sim->model, p); e++)
            share_of(s, p)[e] =
                p == WARP || p == WEFT ||
                (p == SPRING && (e < sim->model->springs.stretch_count || e >= sim->model->springs.tie_begin));
}

/* Numerical stiffness of one element: (h/m)(k h + 2 k tau) of a connection (thesis 4.8), half of the largest
 * h^2 K + 2 h D against the masses of its corners for any. */
static double kappa_of(const toile_model *m, const element *e, double h) {
    double sum = 0;
    for (int c = 0; c < e->corners; c++)
        sum += e->gradient[c] * e->gradient[c] * m->inverse_mass[e->vertex[c]];
    return 0.5 * h * (h + 2 * e->damping) * e->stiffness * sum;
}

/* May the element be explicit as far as it alone decides? */
static bool is_soft(const toile_sim *sim, const element *e, double h, double threshold) {
    bool second_order = toile_integrator(sim->settings) == TOILE_INTEGRATOR_SBDF2;
    return kappa_of(sim->model, e, h) <= threshold && (!second_order || e->damping > 0 || e->stiffness == 0);
}

/* Is all that is explicit on particle i stable together? */
static bool rows_are_stable(const toile_sim *sim, int i, double h, double least_damping) {
    const toile_stability *s = &sim->work.stability;
    double a = h * h * s->stiffness[i] * sim->model->inverse_mass[i],
           b = h * s->viscosity[i] * sim->model->inverse_mass[i];
    if (toile_integrator(sim->settings) != TOILE_INTEGRATOR_SBDF2)
        return a + 2 * b <= 4 * SAFETY;
    return a <= 2 * SAFETY * least_damping / h && 3 * a + 12 * b <= 16 * SAFETY;
}

static double mean_share(const toile_sim *sim) {
    double implicit = 0, all = 0;
    for (part p = WARP; p < PART_COUNT; p++) {
        const double *share = share_of(&sim->work.stability, p);
        for (int e = 0; e < count_of(sim->model, p); e++) {
            bool there = p != SPRING || sim->model->springs.stiffness[e] > 0; /* not padding */
            implicit += there ? share[e] : 0;
            all += there;
        }
    }
    return all > 0 ? implicit / all : 1;
}

/* Bends are explicit whatever the criterion says. */
static void free_bends(toile_sim *sim) {
    const toile_springs *t = &sim->model->springs;
    toile_stability *s = &sim->work.stability;
    memset(s->hinge_share, 0, (size_t)sim->model->hinges.padded * sizeof(double));
    memset(s->spring_share + t->axial_padded, 0, (size_t)(t->tie_begin - t->axial_padded) * sizeof(double));
}

void toile_set_shares(toile_sim *sim, double step) {
    toile_stability *s = &sim->work.stability;
    const toile_model *m = sim->model;
    double h = (float)step; /* steps that differ by rounding have the same shares */
    if (!decides(toile_integrator(sim->settings)) || s->share_step == h)
        return;
    double threshold = sim->settings->aimex_threshold, least_damping = INFINITY;
    for (part p = WARP; p < PART_COUNT; p++)
        for (int e = 0; e < count_of(m, p); e++) {
            element now = element_of(m, p, e);
            bool soft = is_soft(sim, &now, h, threshold) && (p != SPRING || e < m->springs.tie_begin);
            if (p == WEFT) /* with the warp in one share */
                soft = soft && share_of(s, p)[e] == 0;
            share_of(s, p)[e] = !soft;
            if (now.stiffness > 0 && soft)
                least_damping = fmin(least_damping, now.damping);
        }
    explicit_rows(sim);
    /* where too many soft ones meet they are all implicit: no other particle's rows can grow by that */
    for (part p = WARP; p < PART_COUNT; p++)
        for (int e = 0; e < count_of(m, p); e++) {
            element now = element_of(m, p, e);
            bool stable = true;
            for (int c = 0; c < now.corners; c++)
                stable = stable && rows_are_stable(sim, now.vertex[c], h, least_damping);
            if (!stable)
                share_of(s, p)[e] = 1;
        }
    if (sim->settings->aimex_bends_explicit)
        free_bends(sim);
    toile_live_list(sim);
    s->share_step = h;
    s->implicit_share = mean_share(sim);
}

/* ---- the longest stable step ---- */

/* Longest step of an explicit integrator for rows A, B (per mass). */
static double stable_step(int integrator, double a, double b) {
    switch (integrator) {
    case TOILE_INTEGRATOR_RK4: return RK4_RADIUS / fmax(sqrt(a), b);
    case TOILE_INTEGRATOR_FORWARD_EULER: return b > 0 ? 2 / b : INFINITY;
    default: return a + b > 0 ? 4 / (b + sqrt(b * b + 4 * a)) : INFINITY; /* h^2 a + 2 h b = 4 */
    }
}

static void find_stable_step(toile_sim *sim, int integrator) {
    toile_stability *s = &sim->work.stability;
    const toile_model *m = sim->model;
    for (int i = 0; i < m->particle_count; i++) {
        double step = SAFETY * stable_step(integrator, s->stiffness[i] * m->inverse_mass[i],
                                           s->viscosity[i] * m->inverse_mass[i]);
        if (step < s->step) {
            s->step = step;
            s->particle = i;
        }
    }
    if (integrator != TOILE_INTEGRATOR_FORWARD_EULER)
        return;
    for (part p = WARP; p < PART_COUNT; p++) /* a <= b: h at most the damping of every element */
        for (int e = 0; e < count_of(m, p); e++) {
            element now = element_of(m, p, e);
            if (now.stiffness > 0 && SAFETY * now.damping < s->step) {
                s->step = SAFETY * now.damping;
                s->particle = now.vertex[0];
            }
        }
}

double toile_kappa(const toile_sim *sim, double h, int *particle) {
    const toile_stability *s = &sim->work.stability;
    double largest = 0;
    *particle = -1;
    for (int i = 0; s->stiffness && i < sim->model->particle_count; i++) {
        double kappa = h * (h * s->stiffness[i] + 2 * s->viscosity[i]) * sim->model->inverse_mass[i] / 8;
        if (kappa > largest) {
            largest = kappa;
            *particle = i;
        }
    }
    return largest;
}

static const char *name_of(int integrator) {
    static const char *const NAMES[] = {
#define NAME(id, text) text,
        TOILE_INTEGRATORS(NAME)};
    return NAMES[integrator];
}

/* Garment and vertex, as given, of a particle. */
static void place_of(const toile_model *m, int particle, int *garment, int *vertex) {
    int given = 0;
    *garment = 0;
    while (given < m->vertex_count - 1 && m->place[given] != particle)
        given++;
    while (*garment < m->garment_count - 1 && m->garment_begin[*garment + 1] <= given)
        ++*garment;
    *vertex = given - m->garment_begin[*garment];
}

toile_status toile_stability_check(const toile_sim *sim, toile_error *error) {
    const toile_stability *s = &sim->work.stability;
    const toile_settings *set = sim->settings;
    int garment, vertex, integrator = toile_integrator(set), at;
    if (s->step >= set->time_step_min)
        return TOILE_OK;
    place_of(sim->model, s->particle, &garment, &vertex);
    if (s->step <= 0)
        return toile_fail(
            error, TOILE_INVALID,
            "integrator %s would explode at any step: the cloth at garment %d, vertex %d has no damping; "
            "give "
            "its fabric stretch_damping and bend_damping, or use integrator fb_euler or backward_euler",
            name_of(integrator), garment, vertex);
    double kappa = toile_kappa(sim, set->time_step_min, &at);
    return toile_fail(
        error, TOILE_INVALID,
        "integrator %s would explode: kappa is %.3g at time_step_min %.3g s (garment %d, vertex %d); use "
        "time_step_min <= %.3g, a coarser mesh or a softer fabric, or integrator backward_euler",
        name_of(integrator), kappa, set->time_step_min, garment, vertex, s->step);
}

bool toile_stability_note(const toile_sim *sim, char *text, size_t size) {
    const toile_stability *s = &sim->work.stability;
    int garment, vertex, at;
    if (s->step >= sim->settings->time_step)
        return false;
    place_of(sim->model, s->particle, &garment, &vertex);
    snprintf(text, size,
             "integrator %s: steps are cut to %.3g s, the longest that is stable; at time_step %.3g s kappa "
             "is %.3g "
             "(garment %d, vertex %d)",
             name_of(toile_integrator(sim->settings)), s->step, sim->settings->time_step,
             toile_kappa(sim, sim->settings->time_step, &at), garment, vertex);
    return true;
}

bool toile_drag_is_stable(toile_sim *sim, int integrator, double h) {
    const toile_stability *s = &sim->work.stability;
    const double *drag = sim->work.drag;
    int unstable = 0;
    /* the last evaluation's velocities, for this step */
    toile_external_forces(sim, sim->state.x, sim->state.v, sim->state.time, h);
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)                    \
    reduction(|                                                                                              \
              : unstable)
    for (int i = 0; i < sim->model->particle_count; i++) {
        const double *g = drag + 8 * (size_t)i;
        double pull = fmax(g[0], fmax(g[3], g[5]));
        double a = h * h * s->stiffness[i] * sim->model->inverse_mass[i];
        double b = (h * s->viscosity[i] + pull) * sim->model->inverse_mass[i];
        unstable |= pull > 0 && (integrator == TOILE_INTEGRATOR_RK4             ? b > RK4_RADIUS
                                 : integrator == TOILE_INTEGRATOR_FORWARD_EULER ? b > 2
                                                                                : a + 2 * b > 4);
    }
    return !unstable;
}

/* ---- making ---- */

toile_status toile_stability_make(toile_sim *sim, toile_error *error) {
    toile_stability *s = &sim->work.stability;
    const toile_model *m = sim->model;
    int integrator = toile_integrator(sim->settings);
    bool splits = integrator == TOILE_INTEGRATOR_IMEX || decides(integrator);
    bool is_explicit = toile_scheme_of(sim, 1).procedure == TOILE_EXPLICIT;
    s->step = INFINITY;
    s->particle = -1;
    s->implicit_share = !is_explicit;
    if (!splits && !is_explicit)
        return TOILE_OK;
    size_t n = (size_t)m->particle_count, triangles = m->springs_used ? 0 : (size_t)m->triangles.padded;
    bool ok = (s->stiffness = toile_alloc(sim->memory, n, sizeof(double))) != NULL;
    ok = (s->viscosity = toile_alloc(sim->memory, n, sizeof(double))) && ok;
    if (splits) {
        ok = (s->stretch_share = toile_alloc(sim->memory, triangles, sizeof(double))) && ok;
        ok = (s->shear_share = toile_alloc(sim->memory, triangles, sizeof(double))) && ok;
        ok = (s->hinge_share = toile_alloc(sim->memory, (size_t)m->hinges.padded, sizeof(double))) && ok;
        ok = (s->spring_share = toile_alloc(sim->memory, (size_t)m->springs.padded, sizeof(double))) && ok;
        ok = (s->live = toile_live_make(sim->memory, &m->pattern)) && ok;
    }
    if (!ok)
        return toile_fail_memory(error, "the stability criterion");
    if (decides(integrator))
        return TOILE_OK;
    if (splits) {
        set_fixed_shares(sim);
        toile_live_list(sim);
        s->implicit_share = mean_share(sim);
    }
    explicit_rows(sim);
    find_stable_step(sim, integrator);
    return TOILE_OK;
}

void toile_stability_free(toile_sim *sim) {
    toile_stability *s = &sim->work.stability;
    void *blocks[] = {s->stiffness,   s->viscosity,   s->stretch_share,
                      s->shear_share, s->hinge_share, s->spring_share};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(sim->memory, blocks[i]);
    toile_live_free(sim->memory, s->live);
    s->live = NULL;
    sim->work.matrix.live = sim->work.fast.live = NULL;
}
