/* Decomposing cloth (thesis chapter 6; Boxerman and Ascher 2004): what the decomposing solver costs where
 * nothing falls apart, how many row multiplications it saves on a sphere, on the ground and on a bending arm,
 * what two threads add, and pictures of the parts (Figs. 6.4 to 6.6).
 *
 * Row multiplications count one row of A times a vector. Bends are made soft enough to be explicit by the
 * criterion: the thesis leaves them out of the matrix always, and a bend in the matrix joins what it spans.
 */
#include "bench.h"
#include "experiment_sheet.h"
#include "experiments.h"
#include "force_spring.h"
#include "progress.h"
#include "scene.h"
#include "solve_decompose.h"

#include <math.h>
#include <string.h>

/* The bend force whose numerical stiffness near rest (stability.c) is half the threshold. */
static double soft_bend(const sheet *s) {
    double mass = s->density * s->spacing * s->spacing, rest = 2 * s->spacing;
    double slope = -toile_bend_polynomial(1 - TOILE_BEND_LINEAR, NULL) / (TOILE_BEND_LINEAR * rest);
    return 0.1 * mass / (s->step * s->step) / slope;
}

static sheet random_sheet(const experiment *e, uint64_t *seed, sheet_scene scene) {
    sheet s = {.scene = scene, .integrator = "aimex", .own_stop = true, .off_centre = 0.04};
    int n = experiment_side(e, seed, 10, 5, 60);
    s.n = e->quick ? 8 + n / 4 : n;
    s.spacing = 1.5 / s.n;
    s.density = EXPERIMENT_CHOOSE(seed, 0.05, 0.1, 0.2, 0.5);
    s.stretch = EXPERIMENT_CHOOSE(seed, 300, 600, 1000, 2000, 3000);
    s.shear = EXPERIMENT_CHOOSE(seed, 300, 600, 1000, 2000, 3000);
    s.damp_stretch = EXPERIMENT_CHOOSE(seed, 0, 0.01, 0.1, 1, 10);
    s.damp_shear = EXPERIMENT_CHOOSE(seed, 0, 0.01, 0.1, 1, 10);
    s.step = EXPERIMENT_CHOOSE(seed, 0.005, 0.01, 0.015, 0.02);
    s.friction = EXPERIMENT_CHOOSE(seed, 0.3, 0.6, 1);
    s.bend = soft_bend(&s);
    return s;
}

/* The same cloth with the whole system and in parts. */
typedef struct halves {
    bool sound;
    sheet_cost whole, parts;
} halves;

static bool run_halves(experiment *e, const sheet *s, double seconds, halves *out) {
    sheet own = *s;
    own.decompose = true;
    toile_world *w[2] = {sheet_make(e, s), sheet_make(e, &own)};
    bool made = w[0] && w[1];
    double cpu[2] = {0};
    *out = (halves){.sound = made};
    for (double t = 0; out->sound && t < seconds - 1e-9 && !experiment_stopping(e); t += s->step) {
        out->whole = sheet_run(w[0], s->step, s->step);
        out->parts = sheet_run(w[1], s->step, s->step);
        cpu[0] += out->whole.cpu, cpu[1] += out->parts.cpu;
        out->sound = out->whole.sound && out->parts.sound;
    }
    out->whole.cpu = cpu[0], out->parts.cpu = cpu[1];
    toile_destroy(w[0]);
    toile_destroy(w[1]);
    return made;
}

/* ---- pictures ---- */

static void draw_parts(plot *p, const toile_sim *sim) {
    const toile_springs *s = &sim->model->springs;
    const int *part = sim->solvers.decompose ? toile_decompose_parts(sim->solvers.decompose) : NULL;
    double at[2][2];
    plot_equal(p);
    for (int i = 0; i < s->stretch_count; i++) {
        for (int end = 0; end < 2; end++)
            sheet_view(sim->state.x + 4 * (size_t)s->vertex[end][i], &at[end][0], &at[end][1]);
        plot_segment(p, at[0][0], at[0][1], at[1][0], at[1][1], 0xdddddd, 0.5);
    }
    for (int colour = -1; part && colour < PLOT_COLOURS; colour++) /* held ones first: white */
        for (int i = 0; i < sim->model->particle_count; i++) {
            if ((part[i] < 0 ? -1 : part[i] % PLOT_COLOURS) != colour)
                continue;
            sheet_view(sim->state.x + 4 * (size_t)i, &at[0][0], &at[0][1]);
            plot_segment(p, at[0][0], at[0][1], at[0][0], at[0][1],
                         colour < 0 ? 0xf4f4f4 : plot_colour(colour), 4);
        }
}

static int count_parts(const toile_sim *sim) {
    const int *part = sim->solvers.decompose ? toile_decompose_parts(sim->solvers.decompose) : NULL;
    int most = -1;
    for (int i = 0; part && i < sim->model->particle_count; i++)
        most = part[i] > most ? part[i] : most;
    return most + 1;
}

/* A sheet whose stretch is implicit and whose shear is explicit, after some time. */
static plot *draw_scene(experiment *e, sheet_scene scene, double seconds, const char *title, int *parts) {
    sheet s = {.scene = scene,
               .n = e->quick ? 16 : 24,
               .density = 0.2,
               .stretch = 1000,
               .friction = 0.6,
               .step = 0.002,
               .integrator = "aimex",
               .own_stop = true,
               .decompose = true,
               .damp_stretch = 0.1};
    s.spacing = 1.0 / s.n;
    s.shear = 0.15 * s.density * s.spacing * s.spacing / (s.step * s.step);
    s.bend = soft_bend(&s);
    toile_world *w = sheet_make(e, &s);
    plot *p = NULL;
    if (w && sheet_run(w, seconds, s.step).sound) {
        *parts = count_parts(toile_world_sim(w));
        p = plot_create(experiment_text("%s: %d parts", title, *parts), NULL, NULL);
        if (scene == SHEET_TABLE)
            sheet_draw_table(p, &s);
        draw_parts(p, toile_world_sim(w));
    }
    toile_destroy(w);
    return p;
}

/* ---- the arm ---- */

/* Row multiplications of the sample scene with connections and adaptive IMEX, in cotton without bending
 * resistance to speak of (see above); NaN if it cannot be had. */
static double run_arm(experiment *e, bool decompose, double *components) {
    const char *sets[] = {"cloth_model=springs",
                          "integrator=aimex",
                          "linear_solver=mpcg",
                          "threads=1",
                          decompose ? "decompose=true" : "decompose=false",
                          "fabrics.limp.base=cotton",
                          "fabrics.limp.bend_warp=1e-9",
                          "fabrics.limp.bend_weft=1e-9",
                          "garments.sleeve.fabric=limp"};
    toile_scene *scene = experiment_scene(e, "arm_bend", sets, sizeof sets / sizeof *sets);
    if (!scene) {
        if (decompose)
            fprintf(stderr, "toile: arm bend is LEFT OUT: %s\n", e->error.message);
        e->error = (toile_error){0};
        return NAN;
    }
    experiment_cost cost = experiment_run_scene(e, scene, e->quick ? 3 : 0);
    *components = cost.parts;
    toile_scene_free(scene);
    return cost.sound ? cost.rows : NAN;
}

/* ---- threads ---- */

/* Wall seconds of a run: the least of some turns, taken in turn. */
static bool time_threads(experiment *e, double wall[3]) {
    sheet s = {.scene = SHEET_GROUND,
               .integrator = "aimex",
               .own_stop = true,
               .n = e->quick ? 20 : 50,
               .density = 0.2,
               .stretch = 1000,
               .shear = 300,
               .damp_stretch = 0.1,
               .damp_shear = 0.1,
               .friction = 0.6,
               .step = 0.01};
    s.spacing = 1.5 / s.n;
    s.bend = soft_bend(&s);
    wall[0] = wall[1] = wall[2] = INFINITY;
    for (int turn = 0; turn < (e->quick ? 1 : 3) && !experiment_stopping(e); turn++)
        for (int k = 0; k < 3; k++) {
            sheet own = s;
            own.decompose = k > 0;
            own.threads = k == 2 ? 2 : 1;
            toile_world *w = sheet_make(e, &own);
            if (!w)
                return false;
            double begin = toile_now();
            bool sound = sheet_run(w, e->quick ? 0.2 : 1, s.step).sound;
            wall[k] = sound ? fmin(wall[k], toile_now() - begin) : NAN;
            toile_destroy(w);
        }
    return true;
}

/* ---- random cloths ---- */

enum { CORNERS, SPHERE, GROUND, SCENES };
static const sheet_scene WHERE[] = {SHEET_CORNERS, SHEET_SPHERE, SHEET_GROUND};
static const char *const NAMES[] = {"two corners", "sphere", "ground"};

/* Ratios in parts over whole, of one scene. */
typedef struct tally {
    int count;
    double rows, cpu, best; /* sums, and the least ratio of rows */
    int large_count;        /* cloths of 700 and more particles */
    double large_rows;
} tally;

static void add_halves(tally *t, const sheet *s, const halves *h) {
    double ratio = h->parts.rows / h->whole.rows;
    t->best = t->count ? fmin(t->best, ratio) : ratio;
    t->count++;
    t->rows += ratio;
    t->cpu += h->parts.cpu / h->whole.cpu;
    if (s->n * s->n >= 700) {
        t->large_count++;
        t->large_rows += ratio;
    }
}

static bool run_cloths(experiment *e, tally tallies[SCENES], plot *ratios, plot *counts) {
    int total = SCENES * experiment_sets(e, 2, 500), lines[SCENES];
    int whole = plot_series(counts, "whole system", PLOT_POINTS),
        parts = plot_series(counts, "in parts", PLOT_POINTS);
    uint64_t seed = 5;
    for (int k = 0; k < SCENES; k++)
        lines[k] = plot_series(ratios, NAMES[k], PLOT_POINTS);
    for (int done = 0; done < total; experiment_tick(e, ++done, total)) {
        int k = done % SCENES;
        sheet s = random_sheet(e, &seed, WHERE[k]);
        halves h;
        if (!run_halves(e, &s, e->quick ? 0.3 : 1, &h))
            return false;
        if (experiment_stopping(e))
            break;
        experiment_row(e, "%d,%s,%d,%g,%g,%g,%.3g,%g,%g,%g,%g,%d,%.0f,%.0f,%.4g,%.4g,%.4g,%.0f",
                       done / SCENES, NAMES[k], s.n * s.n, s.density, s.stretch, s.shear, s.bend,
                       s.damp_stretch, s.damp_shear, s.friction, s.step, h.sound, h.whole.rows, h.parts.rows,
                       h.whole.cpu, h.parts.cpu, h.parts.components, h.parts.contacts);
        if (!h.sound || h.whole.rows == 0)
            continue;
        add_halves(&tallies[k], &s, &h);
        plot_add(ratios, lines[k], s.n * s.n, h.parts.rows / h.whole.rows);
        if (k == SPHERE) {
            plot_add(counts, whole, s.n * s.n, h.whole.rows);
            plot_add(counts, parts, s.n * s.n, h.parts.rows);
        }
    }
    return true;
}

static void put_cloths(experiment *e, const tally tallies[SCENES]) {
    const tally *corners = &tallies[CORNERS], *sphere = &tallies[SPHERE], *ground = &tallies[GROUND];
    if (corners->count) {
        double time = corners->cpu / corners->count;
        experiment_result(
            e, "two corners: time in parts over whole", "1.023", experiment_text("%.2f", time),
            time > 1.1 ? "does not hold here" : "");
        experiment_result(e, "two corners: row multiplications", "0.992",
                          experiment_text("%.3f", corners->rows / corners->count),
                          experiment_text("%d cloths", corners->count));
    }
    if (sphere->count)
        experiment_result(e, "sphere: row multiplications", "about 0.8 from 700 particles on",
                          experiment_text("%.2f", sphere->rows / sphere->count),
                          experiment_text("best %.2f; time %.2f", sphere->best, sphere->cpu / sphere->count));
    if (sphere->large_count)
        experiment_result(e, "the same from 700 particles on", "about 0.8",
                          experiment_text("%.2f", sphere->large_rows / sphere->large_count),
                          experiment_text("%d cloths", sphere->large_count));
    if (ground->count)
        experiment_result(e, "falling to the ground: row multiplications", "0.6 to 0.7, at times below 0.2",
                          experiment_text("%.2f", ground->rows / ground->count),
                          experiment_text("best %.2f; time %.2f", ground->best, ground->cpu / ground->count));
}

/* ---- the whole ---- */

static void put_arm(experiment *e) {
    double pieces = 0, one = 0, parts = run_arm(e, true, &pieces), whole = run_arm(e, false, &one);
    if (isfinite(parts + whole) && !experiment_stopping(e))
        experiment_result(e, "arm bend: row multiplications", "0.5 to 0.65",
                          experiment_text("%.2f", parts / whole),
                          experiment_text("the sample scene in limp cotton; %.1f parts on average", pieces));
}

static void put_threads(experiment *e) {
    double wall[3];
    if (time_threads(e, wall) && !experiment_stopping(e))
        experiment_result(e, "wall time over whole: in parts, 1 and 2 threads", "0.82 and 0.70",
                          experiment_text("%.2f and %.2f", wall[1] / wall[0], wall[2] / wall[0]),
                          "falling to the ground; whole steps, best of turns, on a shared machine");
}

/* NAME_parts.svg */
static bool put_pictures(experiment *e) {
    static const struct {
        sheet_scene scene;
        double seconds;
        const char *title;
    } PICTURES[] = {{SHEET_TABLE, 0.26, "Fig. 6.4 on a table"},
                    {SHEET_CENTRE, 0.02, "Fig. 6.5 held in the middle, begins to fall"},
                    {SHEET_CENTRE, 0.3, "Fig. 6.6 moments after"}};
    plot *panels[3];
    int parts[3] = {0};
    for (int k = 0; k < 3; k++)
        if (!(panels[k] =
                  draw_scene(e, PICTURES[k].scene, PICTURES[k].seconds, PICTURES[k].title, &parts[k])))
            return toile_fail(&e->error, TOILE_DIVERGED, "the sheet of %s failed", PICTURES[k].title), false;
    experiment_result(e, "parts in the pictures", "many",
                      experiment_text("%d, %d, %d", parts[0], parts[1], parts[2]),
                      "decompose_parts.svg: colours repeat, held particles are white");
    return experiment_plot(e, "_parts", panels, 3, 3);
}

bool experiment_decompose(experiment *e) {
    tally tallies[SCENES] = {{0}};
    if (!experiment_csv(
            e, "set,scene,particles,density,stretch,shear,bend,damp_stretch,damp_shear,friction,step_s,sound,"
               "rows_whole,rows_parts,cpu_whole_s,cpu_parts_s,parts_mean,contacts") ||
        !put_pictures(e))
        return false;
    plot *panels[] = {
        plot_create("In parts over whole (Fig. 6.10)", "particles", "ratio of row multiplications"),
        plot_create("Row multiplications, sphere (Fig. 6.9)", "particles", "row multiplications")};
    plot_log(panels[0], true, false);
    plot_log(panels[1], true, true);
    if (!run_cloths(e, tallies, panels[0], panels[1]))
        return false;
    put_cloths(e, tallies);
    if (!experiment_stopping(e))
        put_arm(e);
    if (!experiment_stopping(e))
        put_threads(e);
    return experiment_plot(e, "", panels, 2, 2) && e->error.status == TOILE_OK;
}
