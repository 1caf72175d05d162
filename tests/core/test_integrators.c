/* Every integrator: order of accuracy with equal and changing steps, exact falls, energy, the criteria of
 * stability against random cloth, Newton's convergence, pins and contacts, saved history, and the same bits
 * on any threads. */
#include "check.h"
#include "counting.h"

#include "integrate.h"
#include "solve_linear.h"
#include "stability.h"
#include "world.h"

#include <stdint.h>

static const char *const MODELS[] = {"continuum", "springs"};
static const char *const ALL[] = {"backward_euler", "forward_euler", "fb_euler", "rk4",    "bdf2",
                                  "imex",           "aimex",         "sbdf2",    "newton", "auto"};
enum { ALL_COUNT = sizeof ALL / sizeof *ALL };

/* ---- a sheet in tension, held at its edge ---- */

typedef struct sheet {
    const char *model, *integrator, *solver; /* solver: null for the usual one */
    int nu, nv;
    double spacing; /* m */
    double strain;  /* of the start: positions = (1 + strain) uv */
    double density, stretch, shear, lock, limit, bend, damping;
    const char *gravity, *drag, *threads, *threshold;
    bool pinned; /* at all its edges */
} sheet;

static const sheet USUAL = {.model = "springs",
                            .integrator = "backward_euler",
                            .nu = 5,
                            .nv = 6,
                            .spacing = 0.1,
                            .strain = 0.1,
                            .density = 0.5,
                            .stretch = 5,
                            .shear = 0.1,
                            .bend = 1e-8,
                            .damping = 0.01,
                            .gravity = "0.3,0.2,-1",
                            .drag = "none",
                            .threads = "1",
                            .threshold = "0.2",
                            .pinned = true};

static void set(toile_world *w, const char *id, const char *value) {
    if (toile_set(w, id, value) < 0) {
        printf("%s = %s: %s\n", id, value, toile_message(w));
        exit(1);
    }
}

/* Steps are as long as the frames asked for, and solved as exactly as doubles allow. */
static void set_exact(toile_world *w) {
    set(w, "time_step", "0.1");
    set(w, "time_step_min", "1e-9");
    set(w, "stretch_change_max", "10");
    set(w, "solver_tolerance", "1e-12");
    set(w, "solver_iterations_max", "5000");
    set(w, "newton_tolerance", "1e-8");
}

static toile_status try_sheet(const sheet *s, toile_world **out) {
    enum { MOST = 400 };
    static double positions[3 * MOST], uv[8 * MOST];
    static int sizes[MOST], corners[4 * MOST], edge[MOST];
    int faces = 0, held = 0, fabric, n = s->nu * s->nv;
    if (n > MOST)
        exit(1);
    for (int j = 0; j < s->nv; j++)
        for (int i = 0; i < s->nu; i++) {
            int p = i + j * s->nu;
            positions[3 * p] = (1 + s->strain) * s->spacing * i;
            positions[3 * p + 1] = (1 + s->strain) * s->spacing * j;
            positions[3 * p + 2] = 0;
            if (i == 0 || j == 0 || i == s->nu - 1 || j == s->nv - 1)
                edge[held++] = p;
            if (i == s->nu - 1 || j == s->nv - 1)
                continue;
            const int at[4] = {p, p + 1, p + 1 + s->nu, p + s->nu};
            for (int c = 0; c < 4; c++) {
                corners[4 * faces + c] = at[c];
                uv[8 * faces + 2 * c] = s->spacing * (at[c] % s->nu);
                uv[8 * faces + 2 * c + 1] = s->spacing * (at[c] / s->nu);
            }
            sizes[faces++] = 4;
        }
    toile_world *w = NULL;
    toile_create(NULL, &w);
    *out = w;
    set_exact(w);
    set(w, "cloth_model", s->model);
    set(w, "linear_solver", s->solver ? s->solver : "auto");
    set(w, "integrator", s->integrator);
    set(w, "gravity", s->gravity);
    set(w, "drag_model", s->drag);
    set(w, "threads", s->threads);
    set(w, "aimex_threshold", s->threshold);
    toile_add_fabric(w, NULL, &fabric);
    toile_set_fabric(w, fabric, "density", s->density);
    toile_set_fabric(w, fabric, "stretch_warp", s->stretch);
    toile_set_fabric(w, fabric, "stretch_weft", s->stretch);
    toile_set_fabric(w, fabric, "shear", s->shear);
    toile_set_fabric(w, fabric, "shear_lock", s->lock); /* usually none: closed forms and criteria are of straight laws */
    toile_set_fabric(w, fabric, "stretch_limit", s->limit);
    toile_set_fabric(w, fabric, "bend_warp", s->bend);
    toile_set_fabric(w, fabric, "bend_weft", s->bend);
    toile_set_fabric(w, fabric, "stretch_damping", s->damping);
    toile_set_fabric(w, fabric, "bend_damping", s->damping);
    toile_mesh mesh = {.name = "sheet",
                       .vertex_count = n,
                       .positions = positions,
                       .face_count = faces,
                       .face_sizes = sizes,
                       .face_vertices = corners,
                       .corner_uv = uv,
                       .panel_count = 1,
                       .panel_fabrics = &fabric};
    toile_status status = toile_add_mesh(w, &mesh, NULL);
    toile_pin pin = {0, held, edge, {true, true, true}};
    if (status >= 0 && s->pinned)
        status = toile_add_pin(w, &pin, NULL);
    return status < 0 ? status : toile_build(w);
}

static toile_world *make_sheet(const sheet *s) {
    toile_world *w;
    if (try_sheet(s, &w) < 0) {
        printf("cannot build (%s, %s): %s\n", s->model, s->integrator, toile_message(w));
        exit(1);
    }
    return w;
}

static void advance(toile_world *w, double seconds) {
    if (toile_advance(w, seconds) < 0) {
        printf("%s: %s\n", check_name, toile_message(w));
        exit(1);
    }
}

/* ---- order ---- */

/* Positions after 0.24 s in `steps` steps, of equal length or of lengths that change by up to 1.9. Returns
 * the share of implicit elements. */
static double run_smooth(const sheet *s, int steps, bool changing, double *x) {
    static const double LENGTHS[6] = {1, 1.5, 0.8, 1.2, 0.7, 0.8}; /* sum 6 */
    toile_world *w = make_sheet(s);
    for (int k = 0; k < steps; k++)
        advance(w, 0.24 / steps * (changing ? LENGTHS[k % 6] : 1));
    toile_statistics counted;
    toile_get_statistics(w, true, &counted);
    CHECK(counted.steps == steps, "%s, %s: %lld steps instead of %d", s->model, s->integrator,
          (long long)counted.steps, steps);
    toile_get_positions(w, 0, x);
    double share = toile_world_sim(w)->total.implicit_share / steps;
    toile_destroy(w);
    return share;
}

static double distance(const double *a, const double *b, int count) {
    double worst = 0;
    for (int i = 0; i < count; i++)
        worst = fmax(worst, fabs(a[i] - b[i]));
    return worst;
}

static void order(void) {
    static const struct {
        const char *name;
        double order, stretch;
        int steps;
    } CASES[] = {{"forward_euler", 1, 5, 96}, {"fb_euler", 1, 5, 96}, {"backward_euler", 1, 5, 96},
                 {"newton", 1, 5, 96},        {"rk4", 4, 5, 48},      {"bdf2", 2, 5, 96},
                 {"bdf2", 2, 300, 96},        {"imex", 1, 5, 96},     {"aimex", 1, 5, 96},
                 {"sbdf2", 2, 5, 96},         {"sbdf2", 2, 300, 96}};
    enum { COUNT = 3 * 30 };
    double exact[2][COUNT], coarse[COUNT], fine[COUNT];
    for (int m = 0; m < 2; m++) {
        sheet s = USUAL;
        s.model = MODELS[m];
        s.integrator = "rk4";
        run_smooth(&s, 768, false, exact[0]);
        s.stretch = 300;
        run_smooth(&s, 9600, false, exact[1]);
        s.threshold = "0.008"; /* between stretch and the rest, for all steps here */
        for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++)
            for (int changing = 0; changing < 2; changing++) {
                const double *true_x = exact[CASES[c].stretch > 5];
                s.integrator = CASES[c].name;
                s.stretch = CASES[c].stretch;
                double share = run_smooth(&s, CASES[c].steps, changing, coarse);
                bool kept = fabs(run_smooth(&s, 2 * CASES[c].steps, changing, fine) - share) < 0.02;
                bool splits = strstr(s.integrator, "imex") || strcmp(s.integrator, "sbdf2") == 0;
                CHECK(kept && splits == (share > 0.05 && share < 0.95), "%s, %s: share %.3f%s", s.model,
                      s.integrator, share, kept ? "" : ", then another");
                double before = distance(coarse, true_x, COUNT), after = distance(fine, true_x, COUNT);
                double found = log2(before / after);
                CHECK(fabs(found - CASES[c].order) < 0.25,
                      "%s, %s, %s steps: order %.2f (errors %.2e, %.2e m)", s.model, s.integrator,
                      changing ? "changing" : "equal", found, before, after);
            }
    }
}

/* What is split converges to what is not. */
static void split_agrees(void) {
    enum { COUNT = 3 * 30 };
    double whole[COUNT], split[COUNT], apart[2];
    static const char *const NAMES[] = {"imex", "aimex"};
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < 2; k++) {
            for (int fine = 0; fine < 2; fine++) {
                sheet s = USUAL;
                s.model = MODELS[m];
                run_smooth(&s, fine ? 384 : 96, false, whole);
                s.integrator = NAMES[k];
                run_smooth(&s, fine ? 384 : 96, false, split);
                apart[fine] = distance(whole, split, COUNT);
            }
            CHECK(apart[0] > 0 && apart[0] < 2e-3 && apart[1] < 0.3 * apart[0],
                  "%s, %s: %.2e then %.2e m apart", MODELS[m], NAMES[k], apart[0], apart[1]);
        }
}

/* ---- falling ---- */

static void free_fall(void) {
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < ALL_COUNT; k++) {
            sheet s = USUAL;
            s.model = MODELS[m];
            s.integrator = ALL[k];
            s.strain = 0;
            s.pinned = false;
            s.gravity = "0,0,-10";
            toile_world *w = make_sheet(&s);
            double h = 0.004, x[3 * 30], v[3 * 30], t = 0;
            for (int i = 0; i < 50; i++, t += h)
                advance(w, h);
            toile_get_positions(w, 0, x);
            toile_get_velocities(w, 0, v);
            double fall = -5 * t * t, late = 0, room = 1e-9; /* the solver's */
            if (strcmp(ALL[k], "forward_euler") == 0)
                late = 5 * h * t;
            else if (strcmp(ALL[k], "bdf2") == 0 || strcmp(ALL[k], "sbdf2") == 0)
                room = 1.6 * 5 * h * h; /* of the one step they start with */
            else if (strcmp(ALL[k], "rk4") != 0)
                late = -5 * h * t;
            for (int i = 0; i < 30; i++) {
                CHECK(fabs(v[3 * i + 2] + 10 * t) < 1e-9, "%s, %s: falls at %.12f m/s instead of %.12f",
                      s.model, ALL[k], v[3 * i + 2], -10 * t);
                CHECK(fabs(x[3 * i + 2] - fall - late) < room, "%s, %s: fell to %.12f m instead of %.12f",
                      s.model, ALL[k], x[3 * i + 2], fall + late);
            }
            toile_destroy(w);
        }
}

/* ---- energy ---- */

/* Energy of an undamped sheet after 2 s over that at the start, both above rest. */
static double energy_kept(const char *model, const char *integrator) {
    sheet s = USUAL;
    s.model = model;
    s.integrator =
        strcmp(integrator, "forward_euler") ? integrator : "fb_euler"; /* undamped, it would be refused */
    s.damping = 0;
    s.gravity = "0,0,0";
    toile_world *w = make_sheet(&s);
    toile_sim *sim = toile_world_sim(w);
    if (s.integrator != integrator)
        ((toile_settings *)sim->settings)->integrator = TOILE_INTEGRATOR_FORWARD_EULER;
    double rest = toile_sim_energies(sim).elastic; /* evenly stretched: nowhere to go */
    for (int i = 0; i < sim->state.n; i++)
        sim->state.v[4 * i + 2] = 0.05 * sin(7.0 * i);
    double first = toile_sim_energies(sim).kinetic;
    for (int f = 0; f < 1000; f++)
        advance(w, 0.002);
    toile_energies last = toile_sim_energies(sim);
    toile_destroy(w);
    return (last.kinetic + last.elastic - rest) / first;
}

static void energy(void) {
    for (int m = 0; m < 2; m++) {
        double forward = energy_kept(MODELS[m], "forward_euler"), both = energy_kept(MODELS[m], "fb_euler");
        double backward = energy_kept(MODELS[m], "backward_euler"), second = energy_kept(MODELS[m], "bdf2");
        double fourth = energy_kept(MODELS[m], "rk4"), newton = energy_kept(MODELS[m], "newton");
        double sbdf2 = energy_kept(MODELS[m], "sbdf2");
        /* the edge's share of the first energy is taken by the pins */
        CHECK(forward > 2 * fourth, "%s: forward Euler keeps %.3f, rk4 %.3f", MODELS[m], forward, fourth);
        CHECK(fabs(both / fourth - 1) < 0.1, "%s: forward-backward Euler keeps %.4f, rk4 %.4f", MODELS[m],
              both, fourth);
        CHECK(backward < 0.7 * fourth && newton < 0.7 * fourth,
              "%s: backward Euler keeps %.3f, newton %.3f, rk4 %.3f", MODELS[m], backward, newton, fourth);
        CHECK(second > backward + 0.3 * (fourth - backward) && second < 1.01 * fourth &&
                  fabs(sbdf2 / second - 1) < 0.1,
              "%s: bdf2 keeps %.3f, sbdf2 %.3f between backward Euler's %.3f and %.3f", MODELS[m], second,
              sbdf2, backward, fourth);
    }
}

/* ---- criteria of stability ---- */

/* Largest eigenvalue of M^-1 (h^2 K + 2 h D) among free particles, by iteration. */
static double largest_eigenvalue(const sheet *given, double h) {
    sheet s = *given;
    s.integrator = "backward_euler";
    s.damping *= 2; /* the matrix has h D once */
    s.solver = "mpcg"; /* it assembles all of the matrix */
    toile_world *w = make_sheet(&s);
    toile_sim *sim = toile_world_sim(w);
    toile_work *work = &sim->work;
    toile_scheme scheme = toile_scheme_of(sim, h);
    int n = sim->state.n;
    sim->frame_seconds = h;
    toile_find_contacts(sim, h);
    toile_set_constraints(sim, h);
    toile_carry_over(sim, &scheme);
    toile_evaluate(sim, &scheme);
    toile_assemble(sim, &scheme);
    double *x = work->p, *y = work->q, value = 0;
    for (int i = 0; i < 4 * n; i++)
        x[i] = i % 4 == 3 ? 0 : random_between(-1, 1);
    for (int turn = 0; turn < 3000; turn++) {
        double size = 0;
        toile_filter(&work->constraints, x);
        toile_multiply(sim->kernels, &work->matrix, x, y, 1);
        for (int i = 0; i < 4 * n; i++)
            y[i] = y[i] / sim->model->mass[i / 4] - x[i];
        toile_filter(&work->constraints, y);
        for (int i = 0; i < 4 * n; i++)
            size = fmax(size, fabs(y[i]));
        for (int i = 0; i < 4 * n; i++)
            x[i] = y[i] / size;
        value = size;
    }
    toile_destroy(w);
    return value;
}

/* The step at which the largest eigenvalue of h^2 K + 2 h D is 4. */
static double critical_step(const sheet *s) {
    /* K and D are proportional: with e the eigenvalue of K / M, h^2 e + 2 h tau e = 4 */
    double h = 1e-3, e = largest_eigenvalue(s, h) / (h * (h + 2 * s->damping));
    return -s->damping + sqrt(s->damping * s->damping + 4 / e);
}

static sheet random_sheet(const char *model) {
    sheet s = USUAL;
    s.model = model;
    s.nu = 4 + (int)(4 * random_unit());
    s.nv = 4 + (int)(5 * random_unit());
    s.spacing = pow(10, random_between(-2, 0));
    s.density = pow(10, random_between(-2, 1));
    s.stretch = pow(10, random_between(1, 4));
    s.shear = pow(10, random_between(-1, 3));
    s.bend = 0;
    s.damping = random_unit() < 0.3 ? 0 : pow(10, random_between(-4, -2));
    s.strain = 0.01;
    s.gravity = "0,0,0";
    return s;
}

/* Largest velocity after so many steps, from random ones of 1 um/s; not finite: infinite. */
static double growth(toile_world *w, double h, int steps) {
    toile_sim *sim = toile_world_sim(w);
    double largest = 0;
    for (int i = 0; i < 4 * sim->state.n; i++)
        sim->state.v[i] = i % 4 == 3 ? 0 : random_between(-1e-6, 1e-6);
    for (int k = 0; k < steps; k++)
        if (toile_advance(w, h) < 0 || sim->total.rejected) /* of a motion that small: it has run away */
            return INFINITY;
    for (int i = 0; i < 4 * sim->state.n; i++)
        largest = fmax(largest, fabs(sim->state.v[i]));
    return largest / 1e-6;
}

/* How the elements of a split integrator are treated: all explicit, or each by chance. */
static void choose_shares(toile_sim *sim, double h, double implicit) {
    toile_stability *s = &sim->work.stability;
    const toile_model *m = sim->model;
    for (int e = 0; !m->springs_used && e < m->triangles.count; e++) {
        s->stretch_share[e] = random_unit() < implicit;
        s->shear_share[e] = random_unit() < implicit;
    }
    for (int e = 0; e < m->hinges.count; e++)
        s->hinge_share[e] = random_unit() < implicit;
    for (int e = 0; e < m->springs.padded; e++)
        s->spring_share[e] = random_unit() < implicit;
    toile_live_list(sim);
    s->share_step = (float)h;
}

/* fb_euler and imex with all explicit: stable at the step that rows allow, unstable just above the true one.
 */
static void criterion(void) {
    for (int m = 0; m < 2; m++) {
        double least = INFINITY, most = 0;
        for (int trial = 0; trial < 24; trial++) {
            sheet s = random_sheet(MODELS[m]);
            double critical = critical_step(&s);
            s.integrator = trial % 2 ? "fb_euler" : "aimex";
            sheet plain = s;
            plain.integrator = "fb_euler";
            toile_world *w = make_sheet(&plain);
            double promised = toile_world_sim(w)->work.stability.step;
            toile_destroy(w);
            least = fmin(least, promised / critical);
            most = fmax(most, promised / critical);
            CHECK(promised <= critical, "%s: %.3e s is promised, %.3e s is critical", s.model, promised,
                  critical);
            const double TRY[3] = {fmin(promised, 0.1), 0.98 * critical, 1.03 * critical};
            for (int k = 0; k < 3; k++) {
                if (TRY[k] > 0.1)
                    continue;
                w = make_sheet(&s);
                toile_sim *sim = toile_world_sim(w);
                sim->work.stability.step = INFINITY;
                if (trial % 2 == 0)
                    choose_shares(sim, TRY[k], 0);
                double grown = growth(w, TRY[k], k < 2 ? 2000 : 400);
                CHECK(k < 2 ? grown < 30 : grown > 1e3,
                      "%s, %s: %.3f of the critical step grows by %.2e (damping %g)", s.model, s.integrator,
                      TRY[k] / critical, grown, s.damping);
                toile_destroy(w);
            }
        }
        printf("  %s: the promised step is %.2f to %.2f of the critical one\n", MODELS[m], least, most);
        CHECK(least > 0.2, "%s: only %.2f of the critical step is promised", MODELS[m], least);
    }
}

/* Any mixture of explicit and implicit is stable when the explicit rows are. */
static void mixture(void) {
    for (int m = 0; m < 2; m++)
        for (int trial = 0; trial < 24; trial++) {
            sheet s = random_sheet(MODELS[m]), plain = s;
            plain.integrator = "fb_euler";
            toile_world *w = make_sheet(&plain);
            double h = fmin(0.1, toile_world_sim(w)->work.stability.step);
            toile_destroy(w);
            s.integrator = "aimex";
            w = make_sheet(&s);
            choose_shares(toile_world_sim(w), h, random_unit());
            double grown = growth(w, h, 1000);
            CHECK(grown < 30, "%s: a mixture grows by %.2e", s.model, grown);
            toile_destroy(w);
        }
}

/* What aimex and sbdf2 choose themselves is stable at any step, with any threshold, and explicit when steps
 * are short. */
static void adaptive(void) {
    static const char *const NAMES[] = {"aimex", "sbdf2"};
    for (int k = 0; k < 2; k++)
        for (int m = 0; m < 2; m++) {
            int mixed = 0;
            for (int trial = 0; trial < 20; trial++) {
                sheet s = random_sheet(MODELS[m]);
                s.integrator = NAMES[k];
                s.threshold = trial % 2 ? "0.5" : "0.2";
                s.bend = pow(10, random_between(-7, -3));
                s.damping = pow(10, random_between(-4, -2));
                if (k)
                    s.strain = 0.001; /* tension across an explicit element is not damped: stability.h */
                toile_world *w = make_sheet(&s);
                double h = fmin(0.1, critical_step(&s) * pow(10, random_between(-0.5, 1))),
                       grown = growth(w, h, 600);
                double share = toile_world_sim(w)->work.stability.implicit_share;
                CHECK(grown < 30, "%s, %s: grows by %.2e (implicit share %.2f)", s.model, NAMES[k], grown,
                      share);
                mixed += share > 0 && share < 1;
                toile_destroy(w);
                s.bend = 0;
                w = make_sheet(&s);
                grown = growth(w, 1e-3 * critical_step(&s) * fmin(1, s.damping / 1e-3), 20);
                CHECK(toile_world_sim(w)->work.stability.implicit_share == 0,
                      "%s, %s: share %.2f at a tiny step", s.model, NAMES[k],
                      toile_world_sim(w)->work.stability.implicit_share);
                toile_destroy(w);
            }
            CHECK(mixed >= 3, "%s, %s: only %d of 20 were mixed", MODELS[m], NAMES[k], mixed);
        }
}

/* The scalar recurrence of sbdf2 for a mode of explicit stiffness and damping a, b: its growth in 1000 steps.
 */
static double sbdf2_growth(double a, double b) {
    double x[2] = {1, 1}, v[2] = {0, 0}; /* now, before; steps of 1 */
    for (int k = 0; k < 1000; k++) {
        double force = -(a * (2 * x[0] - x[1]) + b * (2 * v[0] - v[1]));
        double next_v = (2 * v[0] - 0.5 * v[1] + force) / 1.5,
               next_x = (2 * x[0] - 0.5 * x[1] + next_v) / 1.5;
        x[1] = x[0], x[0] = next_x;
        v[1] = v[0], v[0] = next_v;
    }
    return fmax(fabs(x[0]), fabs(v[0]));
}

/* sbdf2 all explicit: 2 b >= a^2 and 3 a + 12 b <= 16 of every mode are enough, and where the recurrence of
 * the stiffest mode runs away the cloth does. */
static void sbdf2_criterion(void) {
    for (int i = 0; i < 4000; i++) { /* the region itself */
        double a = random_between(0, 1.5), b = random_between(0, 1.4);
        if (2 * b >= a * a && 3 * a + 12 * b <= 16)
            CHECK(sbdf2_growth(a, b) < 100, "a %.3f, b %.3f grows", a, b);
        if (3 * a + 12 * b > 16.5)
            CHECK(!(sbdf2_growth(a, b) < 1e3), "a %.3f, b %.3f does not grow", a, b);
    }
    CHECK(sbdf2_growth(0.5, 0.02) > 1e3 && sbdf2_growth(0.1, 1.4) > 1e3,
          "outside of the region it does not grow");
    for (int m = 0; m < 2; m++)
        for (int trial = 0; trial < 16; trial++) {
            sheet s = random_sheet(MODELS[m]);
            s.integrator = "sbdf2";
            s.damping = pow(10, random_between(-4, -2));
            s.strain = 0.001;
            double h = 1e-3, e = largest_eigenvalue(&s, h) / (h * (h + 2 * s.damping));
            /* h^2 e <= 2 tau / h and 3 h^2 e + 12 h tau e <= 16 */
            double first = cbrt(2 * s.damping / e),
                   second = -2 * s.damping + sqrt(4 * s.damping * s.damping + 16 / (3 * e));
            double stable = fmin(fmin(first, second), 0.1), unstable = stable;
            while (sbdf2_growth(unstable * unstable * e, unstable * s.damping * e) < 1e6)
                unstable *= 1.05;
            CHECK(unstable < 3 * stable || stable == 0.1, "%s: unstable only at %.2f of the criterion",
                  s.model, unstable / stable);
            for (int k = 0; k < 2; k++) {
                double step = k ? unstable : stable;
                if (step > 0.1)
                    continue;
                toile_world *w = make_sheet(&s);
                choose_shares(toile_world_sim(w), step, 0);
                double grown = growth(w, step, 3000);
                CHECK(k ? grown > 1e3 : grown < 30, "%s: %.2f of the criterion grows by %.2e", s.model,
                      step / stable, grown);
                toile_destroy(w);
            }
        }
}

/* A block without an implicit element is exactly zero, one with has something in it. */
static void zero_blocks(void) {
    for (int m = 0; m < 2; m++) {
        sheet s = USUAL;
        s.model = MODELS[m];
        s.integrator = "aimex";
        s.solver = "mpcg"; /* it assembles all of the matrix */
        toile_world *w = make_sheet(&s);
        toile_sim *sim = toile_world_sim(w);
        const toile_pattern *p = &sim->model->pattern;
        const toile_stability *shares = &sim->work.stability;
        double h = 0.01;
        choose_shares(sim, h, 0.3);
        advance(w, h);
        int empty = 0, full = 0, wrong = 0;
        for (int k = 0; k < p->off_count; k++) {
            bool implicit = false, zero = true;
            for (int j = p->spring_begin ? p->spring_begin[p->n + k] : 0;
                 sim->model->springs_used && j < p->spring_begin[p->n + k + 1]; j++)
                implicit = implicit || shares->spring_share[p->spring_code[j] >> 1] != 0;
            for (int j = p->triangle_begin[p->n + k];
                 !sim->model->springs_used && j < p->triangle_begin[p->n + k + 1]; j++)
                implicit = implicit || shares->stretch_share[p->triangle_code[j] >> 4] != 0 ||
                           shares->shear_share[p->triangle_code[j] >> 4] != 0;
            for (int j = p->hinge_begin[p->n + k];
                 !sim->model->springs_used && j < p->hinge_begin[p->n + k + 1]; j++)
                implicit = implicit || shares->hinge_share[p->hinge_code[j] >> 4] != 0;
            for (int j = 0; j < 9; j++)
                zero = zero && sim->work.matrix.off[9 * (size_t)k + (size_t)j] == 0;
            empty += zero;
            full += !zero;
            wrong += !implicit && !zero;
        }
        /* a product that leaves them out has the same bits */
        toile_matrix all = sim->work.matrix;
        size_t bytes = 4 * (size_t)p->n * sizeof(double);
        double *few = sim->work.p, *every = sim->work.q; /* aligned */
        bool listed = all.live && all.live->begin[p->n] < p->off_count;
        toile_multiply(sim->kernels, &sim->work.matrix, sim->state.v, few, 1);
        all.live = NULL;
        toile_multiply(sim->kernels, &all, sim->state.v, every, 1);
        CHECK(listed && memcmp(few, every, bytes) == 0, "%s: a product without the empty blocks differs", MODELS[m]);
        CHECK(wrong == 0 && empty > 3 && full > 3,
              "%s: %d blocks without implicit elements are not zero (%d empty, %d full)", MODELS[m], wrong,
              empty, full);
        toile_destroy(w);
    }
}

/* `auto` leaves explicit elements out of its products and gives the same answer as a direct solve, on 1 and 2 threads. */
static void live_answers(void) {
    static const char *const SOLVERS[] = {"cholmod", "auto", "auto"};
    for (int m = 0; m < 2; m++) {
        enum { COUNT = 3 * 16 * 20 };
        static double x[3][COUNT];
        unsigned long long seed = check_seed;
        for (int k = 0; k < 3; k++) {
            sheet s = USUAL;
            s.nu = 16;
            s.nv = 20;
            s.threads = k == 2 ? "2" : "1";
            s.model = MODELS[m];
            s.integrator = "aimex";
            s.solver = SOLVERS[k];
            toile_world *w = make_sheet(&s);
            toile_sim *sim = toile_world_sim(w);
            check_seed = seed; /* the same shares */
            for (int step = 0; step < 3; step++) {
                choose_shares(sim, 0.01, 0.3);
                advance(w, 0.01);
            }
            CHECK(3 * sim->model->particle_count == COUNT && sim->work.matrix.live, "%s: nothing is left out", s.model);
            toile_get_positions(w, 0, x[k]);
            toile_destroy(w);
        }
        CHECK(distance(x[0], x[1], COUNT) < 1e-7, "%s: %.3e m from the direct answer", MODELS[m], distance(x[0], x[1], COUNT));
        CHECK(memcmp(x[1], x[2], sizeof x[1]) == 0, "%s: two threads give other bits", MODELS[m]);
    }
}

/* ---- explicit integrators know their limits ---- */

static void limits(void) {
    static const char *const NAMES[] = {"forward_euler", "fb_euler", "rk4", "imex"};
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < 4; k++) {
            /* shorter steps are taken and told */
            sheet s = USUAL;
            s.model = MODELS[m];
            s.integrator = NAMES[k];
            s.stretch = 400;
            s.shear = 100;
            toile_world *w = make_sheet(&s);
            toile_sim *sim = toile_world_sim(w);
            char note[300];
            CHECK(toile_stability_note(sim, note, sizeof note) && strstr(note, NAMES[k]) &&
                      strstr(note, "kappa"),
                  "%s", note);
            for (int f = 0; f < 8; f++)
                advance(w, 0.04);
            double x[3 * 30];
            toile_get_positions(w, 0, x);
            CHECK(sim->total.step_max <= sim->work.stability.step && sim->total.limited == sim->total.steps &&
                      sim->total.steps > 8,
                  "%s, %s: steps of %.2e s where %.2e is stable", s.model, NAMES[k], sim->total.step_max,
                  sim->work.stability.step);
            CHECK(sim->total.max_stretch < 0.2, "%s, %s: stretches by %.2f", s.model, NAMES[k],
                  sim->total.max_stretch);
            double stable = sim->work.stability.step;
            int particle;
            CHECK(fabs(toile_kappa(sim, stable, &particle)) <= 1.8 && particle >= 0, "kappa %.3f",
                  toile_kappa(sim, stable, &particle));
            toile_destroy(w);
        }
    /* refused where even the shortest is too long */
    sheet s = USUAL;
    toile_world *w;
    s.integrator = "forward_euler";
    s.damping = 0;
    CHECK(try_sheet(&s, &w) == TOILE_INVALID && strstr(toile_message(w), "no damping") &&
              strstr(toile_message(w), "forward_euler"),
          "%s", toile_message(w));
    toile_destroy(w);
    s.integrator = "rk4";
    s.stretch = 1e7;
    s.damping = 10;
    s.density = 1e-4;
    s.spacing = 1e-3;
    CHECK(try_sheet(&s, &w) == TOILE_INVALID && strstr(toile_message(w), "rk4 would explode: kappa") &&
              strstr(toile_message(w), "time_step_min <="),
          "%s", toile_message(w));
    toile_destroy(w);
}

/* ---- newton ---- */

/* A step in which cloth is thrown about: forces balance at its end as asked, and the step is that of a stiff
 * sheet. */
static void newton_balances(void) {
    for (int m = 0; m < 2; m++) {
        sheet s = USUAL;
        s.model = MODELS[m];
        s.integrator = "newton";
        s.stretch = 2000;
        s.drag = "particle";
        toile_world *w = make_sheet(&s);
        toile_sim *sim = toile_world_sim(w);
        int n = sim->state.n;
        double h = 0.01, *before = malloc(4 * (size_t)n * sizeof *before);
        for (int i = 0; i < 4 * n; i++)
            sim->state.v[i] = i % 4 == 3 ? 0 : random_between(-2, 2);
        for (int step = 0; step < 5; step++) {
            memcpy(before, sim->state.v, 4 * (size_t)n * sizeof *before);
            advance(w, h);
            if (sim->frame.steps != 1)
                continue;
            memset(sim->work.ahead, 0, 4 * (size_t)n * sizeof(double));
            toile_evaluate_at(sim, sim->state.x, sim->state.v, sim->state.time, 0, 0);
            toile_gather(sim, 1, sim->work.b);
            for (int i = 0; i < 4 * n; i++)
                sim->work.b[i] = sim->model->mass[i / 4] * (sim->state.v[i] - before[i]) / h - sim->work.b[i];
            toile_filter(&sim->work.constraints, sim->work.b);
            double sum = 0, mass = 0;
            for (int i = 0; i < n; i++) {
                for (int k = 0; k < 3; k++)
                    sum += sim->work.b[4 * i + k] * sim->work.b[4 * i + k] / sim->model->mass[i];
                mass += sim->model->mass[i];
            }
            CHECK(sqrt(sum / mass) < 1.001e-8, "%s: %.2e m/s^2 are not balanced", s.model, sqrt(sum / mass));
        }
        CHECK(sim->total.steps <= 6 && sim->total.newton_iterations >= 10, "%s: %lld steps, %lld iterations",
              s.model, (long long)sim->total.steps, (long long)sim->total.newton_iterations);
        free(before);
        toile_destroy(w);
    }
}

/* 1/2 dv M dv + energy at an iterate's positions. */
static double incremental_potential(toile_sim *sim) {
    toile_energies e;
    double kinetic = 0, *kept = sim->state.x;
    sim->state.x = sim->work.at_x;
    e = toile_sim_energies(sim);
    sim->state.x = kept;
    for (int i = 0; i < 4 * sim->state.n; i++) {
        double dv = sim->work.next_v[i] - sim->state.v[i];
        kinetic += 0.5 * sim->model->mass[i / 4] * dv * dv;
    }
    return kinetic + e.elastic + e.potential;
}

static void newton_descends(void) {
    for (int m = 0; m < 2; m++)
        for (int trial = 0; trial < 12; trial++) {
            sheet s = USUAL;
            s.model = MODELS[m];
            s.integrator = "newton";
            s.damping = 0;
            s.stretch = pow(10, random_between(1, 4));
            s.bend = 1e-4;
            s.strain = 0;
            toile_world *w = make_sheet(&s);
            toile_sim *sim = toile_world_sim(w);
            double h = pow(10, random_between(-2.5, -1.2));
            for (int i = 0; i < 4 * sim->state.n; i++) {
                sim->state.v[i] = i % 4 == 3 ? 0 : random_between(-3, 3);
                sim->state.x[i] += i % 4 == 3 ? 0 : random_between(-0.02, 0.02);
            }
            sim->frame_seconds = h;
            toile_scheme scheme = toile_scheme_of(sim, h);
            toile_find_contacts(sim, h);
            toile_set_constraints(sim, h);
            toile_newton_start(sim, &scheme);
            double before = incremental_potential(sim), first = before;
            int iterations = 0;
            for (; iterations < 200 && !toile_newton_balanced(sim, &scheme); iterations++) {
                toile_newton_assemble(sim, &scheme);
                toile_solve_step(sim, 1);
                if (!toile_newton_advance(sim, &scheme))
                    break;
                double now = incremental_potential(sim);
                CHECK(now <= before + 1e-9 * fabs(first), "%s, h %.1e: iteration %d climbs from %.9e to %.9e",
                      s.model, h, iterations, before, now);
                before = now;
            }
            CHECK(toile_newton_balanced(sim, &scheme), "%s, h %.1e, k %.0f: not balanced after %d iterations",
                  s.model, h, s.stretch, iterations);
            toile_destroy(w);
        }
}

/* ---- pins, contacts, bits ---- */

/* A soft sheet with a moving corner over a ball. */
static toile_status build_drape(const toile_hooks *hooks, const char *model, const char *integrator,
                                const char *threads, toile_world **out) {
    int fabric, corner[1] = {0};
    toile_status s = toile_create(hooks, out);
    if (s < 0)
        return s;
    toile_world *w = *out;
    toile_grid grid = {.name = "sheet",
                       .nu = 11,
                       .nv = 9,
                       .origin = {-0.4, -0.4, 0.13},
                       .u_axis = {0.8, 0, 0},
                       .v_axis = {0, 0.8, 0}};
    toile_collider ball = {.name = "ball",
                           .shape = TOILE_SPHERE,
                           .size = {0.2},
                           .position = {0, 0, -0.11},
                           .friction_static = 0.4,
                           .friction_kinetic = 0.3};
    toile_pin pin = {0, 1, corner, {true, true, true}};
    /* a distance that is enough for its particles alone to hold so coarse a sheet */
    if ((s = toile_set(w, "contact_thickness", "0.03")) < 0 || (s = toile_set(w, "cloth_model", model)) < 0 || (s = toile_set(w, "integrator", integrator)) < 0 ||
        (s = toile_set(w, "threads", threads)) < 0 || (s = toile_set(w, "time_step_min", "1e-7")) < 0 ||
        (s = toile_add_fabric(w, NULL, &fabric)) < 0)
        return s;
    toile_set_fabric(w, fabric, "stretch_warp", 100);
    toile_set_fabric(w, fabric, "stretch_weft", 100);
    toile_set_fabric(w, fabric, "shear", 5);
    toile_set_fabric(w, fabric, "bend_warp", 1e-6);
    toile_set_fabric(w, fabric, "bend_weft", 1e-6);
    grid.fabric = fabric;
    if ((s = toile_add_grid(w, &grid, NULL)) < 0 || (s = toile_add_collider(w, &ball, NULL)) < 0 ||
        (s = toile_add_pin(w, &pin, NULL)) < 0)
        return s;
    return toile_build(w);
}

static toile_world *make_drape(const char *model, const char *integrator, const char *threads) {
    toile_world *w = NULL;
    if (build_drape(NULL, model, integrator, threads, &w) < 0) {
        printf("cannot build (%s, %s): %s\n", model, integrator, toile_message(w));
        exit(1);
    }
    return w;
}

static void run_drape(toile_world *w, int from, int to) {
    for (int f = from; f <= to; f++) {
        double corner[3] = {-0.4 + 0.002 * f, -0.4, 0.13 + 0.003 * f}, at[3] = {0, 0, -0.11 + 0.001 * f},
               turn[4] = {1, 0, 0, 0};
        toile_pose_collider(w, 0, at, turn);
        toile_move_pin(w, 0, corner);
        advance(w, 1.0 / 24);
    }
}

static void constraints_hold(void) {
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < ALL_COUNT; k++) {
            toile_world *w = make_drape(MODELS[m], ALL[k], "1");
            double x[3 * 99];
            for (int f = 1; f <= 10; f++) {
                run_drape(w, f, f);
                toile_get_positions(w, 0, x);
                CHECK(fabs(x[2] - 0.13 - 0.003 * f) < 1e-12 && fabs(x[0] + 0.4 - 0.002 * f) < 1e-12 &&
                          fabs(x[1] + 0.4) < 1e-12,
                      "%s, %s, frame %d: the pinned corner is %.2e off", MODELS[m], ALL[k], f,
                      x[2] - 0.13 - 0.003 * f);
            }
            toile_statistics s;
            toile_get_statistics(w, true, &s);
            CHECK(s.contacts >= 3, "%s, %s: only %d contacts", MODELS[m], ALL[k], s.contacts);
            CHECK(s.penetrations == 0, "%s, %s: %d particles inside, the deepest %.2e m", MODELS[m], ALL[k],
                  s.penetrations, s.deepest);
            CHECK(s.forced_steps == 0, "%s, %s: %lld forced steps", MODELS[m], ALL[k],
                  (long long)s.forced_steps);
            toile_destroy(w);
        }
}

/* A block of cloth on a slope: sticks below the angle of friction, slides above with the right acceleration.
 */
static void friction(void) {
    for (int k = 0; k < ALL_COUNT; k++)
        for (int slides = 0; slides < 2; slides++) {
            toile_world *w = NULL;
            int fabric;
            double tilt = slides ? 0.6 : 0.3, mu = 0.4; /* atan 0.4 = 0.38 */
            double c = cos(tilt), sn = sin(tilt);
            toile_create(NULL, &w);
            set(w, "integrator", ALL[k]);
            set(w, "drag_model", "none");
            set(w, "threads", "1");
            set(w, "time_step_min", "1e-7");
            toile_add_fabric(w, NULL, &fabric);
            toile_set_fabric(w, fabric, "stretch_warp", 100);
            toile_set_fabric(w, fabric, "stretch_weft", 100);
            toile_set_fabric(w, fabric, "shear", 5);
            toile_set_fabric(w, fabric, "bend_warp", 1e-6);
            toile_set_fabric(w, fabric, "bend_weft", 1e-6);
            toile_grid grid = {.name = "patch",
                               .nu = 5,
                               .nv = 5,
                               .u_axis = {0.2 * c, 0, -0.2 * sn},
                               .v_axis = {0, 0.2, 0},
                               .fabric = fabric,
                               .origin = {0.002 * sn, 0, 0.002 * c}};
            toile_collider plane = {.name = "plane",
                                    .shape = TOILE_PLANE,
                                    .rotation = {cos(tilt / 2), 0, sin(tilt / 2), 0},
                                    .friction_static = mu,
                                    .friction_kinetic = mu};
            if (toile_add_grid(w, &grid, NULL) < 0 || toile_add_collider(w, &plane, NULL) < 0 ||
                toile_build(w) < 0) {
                printf("%s\n", toile_message(w));
                exit(1);
            }
            for (int f = 0; f < 12; f++)
                advance(w, 1.0 / 24);
            double v[75], mean = 0, wanted = slides ? 9.81 * (sn - mu * c) * 0.5 : 0;
            toile_get_velocities(w, 0, v);
            for (int i = 0; i < 25; i++)
                mean += (v[3 * i] * c - v[3 * i + 2] * sn) / 25;
            CHECK(fabs(mean - wanted) < 0.03 * wanted + 0.003, "%s: slides at %.4f m/s, expected %.4f",
                  ALL[k], mean, wanted);
            toile_destroy(w);
        }
}

static void same_bits(void) {
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < ALL_COUNT; k++) {
            uint64_t hash[3];
            for (int t = 0; t < 3; t++) { /* the last with the plainest instructions */
                toile_world *w = make_drape(MODELS[m], ALL[k], t == 1 ? "2" : "1");
                if (t == 2)
                    toile_world_sim(w)->kernels = toile_kernels_find("sse2");
                run_drape(w, 1, 5);
                hash[t] = toile_state_hash(w);
                toile_destroy(w);
            }
            CHECK(hash[1] == hash[0], "%s, %s: 2 threads give other bits", MODELS[m], ALL[k]);
            CHECK(hash[2] == hash[0], "%s, %s: sse2 gives other bits", MODELS[m], ALL[k]);
        }
}

static void save_and_restore(void) {
    static const char *const NAMES[] = {"bdf2", "sbdf2", "aimex", "newton"};
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < 4; k++) {
            toile_world *a = make_drape(MODELS[m], NAMES[k], "1"), *b = make_drape(MODELS[m], NAMES[k], "1");
            run_drape(a, 1, 4);
            size_t size = toile_state_size(a);
            void *bytes = malloc(size);
            CHECK(toile_save_state(a, bytes, size) == TOILE_OK, "%s", toile_message(a));
            run_drape(a, 5, 9);
            CHECK(toile_restore_state(b, bytes, size) == TOILE_OK, "%s", toile_message(b));
            double corner[3] = {-0.4 + 0.008, -0.4, 0.13 + 0.012}, at[3] = {0, 0, -0.11 + 0.004},
                   turn[4] = {1, 0, 0, 0};
            toile_pose_collider(b, 0, at, turn);
            toile_move_pin(b, 0, corner);
            CHECK(toile_place_inputs(b) == TOILE_OK, "%s", toile_message(b));
            run_drape(b, 5, 9);
            CHECK(toile_state_hash(a) == toile_state_hash(b), "%s, %s: restored state leads elsewhere",
                  MODELS[m], NAMES[k]);
            if (toile_world_sim(a)->state.dx) { /* history is part of the state, and checked */
                uint64_t hash = toile_state_hash(b);
                toile_world_sim(b)->state.dx[1] += 1e-12;
                CHECK(toile_state_hash(b) != hash, "history is not in the hash");
                ((double *)bytes)[size / sizeof(double) - 3] = NAN;
                CHECK(toile_restore_state(b, bytes, size) == TOILE_FORMAT, "damaged history was taken");
            }
            free(bytes);
            toile_destroy(a);
            toile_destroy(b);
        }
}

/* A cancelled or failed frame takes the history back too. */
static void cancelling(void) {
    toile_world *a = make_drape("continuum", "bdf2", "1"), *b = make_drape("continuum", "bdf2", "1");
    run_drape(a, 1, 6);
    run_drape(b, 1, 3);
    toile_cancel(b, true);
    CHECK(toile_advance(b, 1.0 / 24) == TOILE_CANCELLED, "it was not cancelled");
    toile_cancel(b, false);
    run_drape(b, 4, 6);
    CHECK(toile_state_hash(a) == toile_state_hash(b), "a cancelled frame left a trace");
    toile_destroy(a);
    toile_destroy(b);
}

static void memory(void) {
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < ALL_COUNT; k++) {
            toile_world *w = make_drape(MODELS[m], ALL[k], "1");
            uint64_t before, after;
            run_drape(w, 1, 1);
            toile_memory_use(w, &before, NULL, NULL, NULL);
            run_drape(w, 2, 4);
            toile_memory_use(w, &after, NULL, NULL, NULL);
            CHECK(after == before, "%s, %s: %llu allocations in steps", MODELS[m], ALL[k],
                  (unsigned long long)(after - before));
            toile_destroy(w);
        }
    static const char *const NAMES[] = {"sbdf2", "newton", "rk4"};
    for (int k = 0; k < 3; k++)
        for (int64_t n = 0;; n++) {
            counter c = {0, n, 0};
            toile_hooks hooks = {count_allocate, count_release, NULL, &c};
            toile_world *w = NULL;
            toile_status s = build_drape(&hooks, MODELS[n % 2], NAMES[k], "1", &w);
            if (s == TOILE_OK)
                s = toile_advance(w, 1.0 / 240);
            toile_destroy(w);
            CHECK(c.live == 0, "%s: allocation %lld failing leaves %lld blocks", NAMES[k], (long long)n,
                  (long long)c.live);
            if (c.calls <= n)
                break;
            CHECK(s == TOILE_NO_MEMORY, "%s: allocation %lld failed unnoticed", NAMES[k], (long long)n);
        }
}

int main(int argc, char **argv) {
    RUN(order);
    RUN(split_agrees);
    RUN(free_fall);
    RUN(energy);
    RUN(criterion);
    RUN(mixture);
    RUN(adaptive);
    RUN(sbdf2_criterion);
    RUN(zero_blocks);
    RUN(live_answers);
    RUN(limits);
    RUN(newton_balances);
    RUN(newton_descends);
    RUN(constraints_hold);
    RUN(friction);
    RUN(same_bits);
    RUN(save_and_restore);
    RUN(cancelling);
    RUN(memory);
    FINISH();
}
