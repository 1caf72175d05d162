/* Stability: of fb_euler over random cloths (thesis 4.1.3), and of aimex while connections change from
 * explicit to implicit and back (thesis 4.4.3, Figs. 4.8 to 4.10). */
#include "experiment_sheet.h"
#include "experiments.h"

#include <math.h>
#include <string.h>

/* ---- fb_euler ---- */

enum { STEPS = 1000 };

static sheet random_sheet(const experiment *e, uint64_t *seed) {
    sheet s = {.scene = SHEET_CORNERS, .integrator = "fb_euler", .step = 0.01};
    do {
        double n = EXPERIMENT_CHOOSE(seed, 10, 20, 30);
        s.n = e->quick ? 10 : (int)(e->largest ? fmin(n, e->largest) : n);
        s.spacing = EXPERIMENT_CHOOSE(seed, 0.001, 0.01, 0.05, 0.1, 1);
        s.density = EXPERIMENT_CHOOSE(seed, 0.01, 0.1, 1, 10, 100);
        s.stretch = EXPERIMENT_CHOOSE(seed, 0, 10, 100, 1000, 10000);
        s.shear = EXPERIMENT_CHOOSE(seed, 0, 10, 100, 1000, 10000);
        s.damp_stretch = EXPERIMENT_CHOOSE(seed, 0, 0.01, 0.1, 1, 10);
        s.damp_shear = EXPERIMENT_CHOOSE(seed, 0, 0.01, 0.1, 1, 10);
        /* without stretch stiffness the sheet only falls apart: the thesis cannot have counted that as cloth
         */
    } while (s.stretch == 0);
    return s;
}

bool experiment_fb_stability(experiment *e) {
    int total_sets = experiment_sets(e, 6, 500), steps = e->quick ? 300 : STEPS, done = 0, below = 0,
        above = 0, latex_below = 0;
    double least = INFINITY, most = 0, least_rows = INFINITY;
    uint64_t seed = 1;
    if (!experiment_csv(
            e, "set,particles,spacing_m,density,stretch,shear,damp_stretch,damp_shear,critical_step_s,kappa,"
               "kappa_rows,sag"))
        return false;
    plot *p = plot_create("fb_euler: kappa at the longest stable step", "critical step, s", "kappa");
    int points = plot_series(p, "one cloth each", PLOT_POINTS),
        line = plot_series(p, "criterion, 1/2", PLOT_DASHED);
    plot_log(p, true, true);
    double step_min = INFINITY, step_max = 0;
    while (done < total_sets) {
        sheet s = random_sheet(e, &seed);
        double step = sheet_critical_step(e, &s, steps);
        if (e->error.status != TOILE_OK)
            break;
        double mass = s.density * s.spacing * s.spacing, kappa = sheet_kappa(&s, step);
        /* the row bound of core/stability.h: stretch and shear together */
        double rows = step / mass * ((s.stretch + s.shear) * step + 2 * (s.damp_stretch + s.damp_shear));
        /* weight of a column of the sheet on one connection, over its stiffness: how many times its length it
         * sags */
        double sag = mass * 9.81 * s.n / s.stretch / s.spacing;
        experiment_row(e, "%d,%d,%g,%g,%g,%g,%g,%g,%.4g,%.4g,%.4g,%.3g", done, s.n * s.n, s.spacing,
                       s.density, s.stretch, s.shear, s.damp_stretch, s.damp_shear, step, kappa, rows, sag);
        plot_add(p, points, step, kappa);
        least = fmin(least, kappa), most = fmax(most, kappa), least_rows = fmin(least_rows, rows);
        step_min = fmin(step_min, step), step_max = fmax(step_max, step);
        below += kappa < 0.5;
        latex_below += kappa < 0.5 && sag > 0.5;
        above += kappa > 1;
        if (!experiment_tick(e, ++done, total_sets))
            break;
    }
    plot_add(p, line, step_min, 0.5);
    plot_add(p, line, step_max, 0.5);
    experiment_result(e, "parameter sets", "500", experiment_text("%d", done),
                      "without stretch stiffness 0: that is no cloth");
    experiment_result(e, "kappa at the longest stable step", "0.35 to 2.69",
                      experiment_text("%.2f to %.2f", least, most), "of the stiffer kind of connection");
    experiment_result(e, "sets unstable below kappa 1/2", "a few, all very dense and soft",
                      experiment_text("%d", below),
                      experiment_text("%d of them sag by more than half their length", latex_below));
    experiment_result(e, "sets stable above kappa 1", "short steps, little motion",
                      experiment_text("%d", above), "");
    experiment_result(e, "least kappa of the row bound (core/stability.h)", "-",
                      experiment_text("%.2f", least_rows),
                      "stretch and shear counted together: what the integrator is held to");
    return experiment_plot(e, "", &p, 1, 1) && e->error.status == TOILE_OK;
}

/* ---- aimex ---- */

static unsigned by_share(const toile_sim *sim, int i, void *user) {
    const toile_springs *s = &sim->model->springs;
    const double *a = sim->state.x + 4 * (size_t)s->vertex[0][i],
                 *b = sim->state.x + 4 * (size_t)s->vertex[1][i];
    double length =
        sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
    (void)user;
    if (length < s->length[i])
        return 0xffffff; /* slack */
    return sim->work.stability.spring_share[i] != 0 ? 0x000000 : 0xb4b4b4;
}

/* Steps between those at which all is explicit and all is implicit. */
static double aimex_step(const sheet *s, bool slide, int k) {
    /* kappa is the threshold 0.2 at h = 0.2 m / (k_d + sqrt(k_d^2 + 0.2 k_s m)) */
    double some = 0.2 * s->density * s->spacing * s->spacing, d = s->damp_stretch, d_soft = s->damp_shear;
    double shortest = 0.7 * some / (d + sqrt(d * d + some * s->stretch));
    double longest = 3 * some / (d_soft + sqrt(d_soft * d_soft + some * s->shear));
    if (!slide)
        return k % 2 ? longest : shortest;
    double t = 0.5 - 0.5 * cos(2 * M_PI * k / 200.0);
    return shortest * pow(longest / shortest, t);
}

typedef struct aimex_run {
    bool stable;
    double share_min, share_max; /* of implicit connections */
    double growth;               /* largest excess of energy over the start, per work of gravity */
    int changes;                 /* of the share from step to step */
} aimex_run;

/* What is drawn of a run; null: nothing. */
typedef struct aimex_picture {
    plot *energies;
    int line;
    plot **wires; /* long, middle and short step, (3) or null */
} aimex_picture;

static void draw_wires(const toile_sim *sim, plot **wires, double share, bool shear_explicit) {
    static const char *const TITLES[] = {"long step: all active ones implicit",
                                         "middle: stretch implicit, shear explicit",
                                         "short step: all explicit"};
    int kind = share == 1 ? 0 : share == 0 ? 2 : shear_explicit ? 1 : -1;
    if (kind < 0 || wires[kind] || sim->state.time < 0.2) /* it hangs by then */
        return;
    wires[kind] = plot_create(TITLES[kind], NULL, NULL);
    sheet_draw(wires[kind], sim, by_share, NULL);
}

static bool run_aimex(experiment *e, const sheet *s, bool slide, int steps, const aimex_picture *picture,
                      aimex_run *out) {
    toile_world *w = sheet_make(e, s);
    *out = (aimex_run){.stable = true, .share_min = 1, .growth = -INFINITY};
    if (!w)
        return false;
    toile_sim *sim = toile_world_sim(w);
    const double *shares = sim->work.stability.spring_share; /* null: all implicit */
    double start = sheet_energy(sim), rest = toile_sim_energies(sim).potential, fallen = 0, share = -1;
    int axial = sim->model->springs.axial_count, stretch = sim->model->springs.stretch_count;
    for (int k = 0; out->stable && k < steps; k++) {
        double h = aimex_step(s, slide, k), implicit = 0, implicit_shear = 0;
        sheet_set_step(w, h);
        out->stable = toile_advance(w, h) >= 0;
        for (int i = 0; i < axial; i++) {
            implicit += !shares || shares[i] != 0;
            implicit_shear += i >= stretch && (!shares || shares[i] != 0);
        }
        out->changes += share >= 0 && implicit / axial != share;
        share = implicit / axial;
        out->share_min = fmin(out->share_min, share);
        out->share_max = fmax(out->share_max, share);
        fallen = fmax(fallen, rest - toile_sim_energies(sim).potential);
        out->growth = fmax(out->growth, fallen > 0 ? (sheet_energy(sim) - start) / fallen : 0);
        if (picture)
            plot_add(picture->energies, picture->line, sim->state.time, sheet_energy(sim));
        if (picture && picture->wires)
            draw_wires(sim, picture->wires, share, implicit_shear == 0);
    }
    out->stable = out->stable && out->growth < SHEET_MARGIN;
    toile_destroy(w);
    return true;
}

static sheet random_aimex_sheet(const experiment *e, uint64_t *seed) {
    sheet s = {.scene = SHEET_CORNERS, .n = e->quick ? 15 : 20, .step = 1e-3};
    s.spacing = EXPERIMENT_CHOOSE(seed, 0.01, 0.05, 0.1);
    s.density = EXPERIMENT_CHOOSE(seed, 0.03, 0.1, 0.3, 1);
    s.stretch = EXPERIMENT_CHOOSE(seed, 100, 1000, 3000);
    s.shear = s.stretch * EXPERIMENT_CHOOSE(seed, 0.01, 0.1);
    s.damp_stretch = EXPERIMENT_CHOOSE(seed, 0, 0.01, 0.1);
    s.damp_shear = 0.1 * s.damp_stretch;
    s.bend = 1e-3 * s.density * s.spacing * s.spacing; /* explicit at every step used here */
    return s;
}

bool experiment_aimex_stability(experiment *e) {
    enum { ALTERNATING, SLIDING, KINDS };
    static const char *const NAMES[] = {"alternating", "sliding"};
    int sets = experiment_sets(e, 2, 40), steps = e->quick ? 300 : 1500, done = 0;
    int stable[KINDS] = {0}, runs[KINDS] = {0}, implicit_stable[KINDS] = {0}, alone[KINDS] = {0};
    plot *panels[4] = {plot_create("Total energy of the first cloth", "time, s", "energy, J")};
    plot *wires[3] = {NULL};
    uint64_t seed = 2;
    if (!experiment_csv(
            e, "set,scheme,particles,spacing_m,density,stretch,shear,bend,damp_stretch,damp_shear,shortest_s,"
               "longest_s,explicit_share_max,implicit_share_max,changes,energy_growth,stable,"
               "energy_growth_all_implicit,stable_all_implicit"))
        return false;
    for (int k = 0; k < sets && !experiment_stopping(e); k++) {
        sheet s = random_aimex_sheet(e, &seed);
        if (k == 0) /* the one in the pictures: cloth */
            s.spacing = 0.05, s.density = 0.3, s.stretch = 1000, s.shear = 50, s.damp_stretch = 0.05,
            s.damp_shear = 0.005;
        for (int kind = 0; kind < KINDS; kind++) {
            aimex_picture picture = {panels[0], kind, kind == SLIDING ? wires : NULL};
            aimex_run run, control;
            if (k == 0)
                plot_series(panels[0], experiment_text("%s steps", NAMES[kind]), PLOT_LINE);
            sheet all = s;
            s.integrator = "aimex";
            if (!run_aimex(e, &s, kind == SLIDING, steps, k == 0 ? &picture : NULL, &run) ||
                !run_aimex(e, &all, kind == SLIDING, steps, NULL, &control))
                return false;
            s.integrator = NULL;
            runs[kind]++;
            stable[kind] += run.stable;
            implicit_stable[kind] += control.stable;
            alone[kind] += control.stable && !run.stable;
            experiment_row(e, "%d,%s,%d,%g,%g,%g,%g,%g,%g,%g,%.4g,%.4g,%.3f,%.3f,%d,%.3g,%d,%.3g,%d", k,
                           NAMES[kind], s.n * s.n, s.spacing, s.density, s.stretch, s.shear, s.bend,
                           s.damp_stretch, s.damp_shear, aimex_step(&s, true, 0), aimex_step(&s, true, 100),
                           1 - run.share_min, run.share_max, run.changes, run.growth, run.stable,
                           control.growth, control.stable);
            experiment_tick(e, ++done, KINDS * sets);
        }
    }
    for (int kind = 0; kind < KINDS; kind++)
        experiment_result(e, experiment_text("stable under %s steps", NAMES[kind]), "all cases",
                          experiment_text("%d of %d", stable[kind], runs[kind]),
                          experiment_text("all implicit: %d of %d; unstable in adaptive IMEX alone: %d",
                                          implicit_stable[kind], runs[kind], alone[kind]));
    int count = 1;
    for (int i = 0; i < 3; i++)
        if (wires[i])
            panels[count++] = wires[i];
    experiment_result(e, "wireframes of Figs. 4.8 to 4.10", "3", experiment_text("%d", count - 1),
                      "black implicit, grey explicit, missing: slack");
    return experiment_plot(e, "", panels, count, 2);
}
