/* Preconditioners of MPCG over random cloths (thesis 5.3.1, Figs. 5.3 to 5.10): held at two corners, where
 * constraints are trivial, and sliding over a sphere, where they are not. None, A-Block (3x3 blocks of A), CP
 * (blocks that know the constraints), and beyond the thesis an incomplete factor of the matrix core.
 *
 * The thesis stops at a residual in the preconditioner's own norm, which means another error for each of
 * them. So every cloth runs twice: stopped as in the thesis, and at the same estimated error in the energy
 * norm. */
#include "experiment_sheet.h"
#include "experiments.h"

#include <math.h>
#include <string.h>

enum { NONE, BLOCK, CONSTRAINED, INCOMPLETE, KINDS };
static const char *const KIND_NAMES[] = {"none", "block", "constrained", "incomplete"};
static const char *const LABELS[] = {"I (none)", "A-Block", "CP (constrained)", "incomplete factor"};
enum { THESIS_STOP, ENERGY_STOP, STOPS };
enum { MOST = 1000 };

static sheet random_sheet(const experiment *e, uint64_t *seed) {
    sheet s = {.off_centre = 0};
    int n = experiment_side(e, seed, 5, 5, 80);
    s.n = e->quick ? 5 + n / 4 : n;
    s.spacing = 1.0 / s.n;
    s.density = EXPERIMENT_CHOOSE(seed, 0.05, 0.1, 0.2, 0.5);
    s.stretch = EXPERIMENT_CHOOSE(seed, 300, 600, 1000, 2000, 3000);
    s.shear = EXPERIMENT_CHOOSE(seed, 300, 600, 1000, 2000, 3000);
    s.bend = EXPERIMENT_CHOOSE(seed, 0.001, 0.01, 0.1);
    s.damp_stretch = EXPERIMENT_CHOOSE(seed, 0, 0.01, 0.1, 1, 10);
    s.damp_shear = EXPERIMENT_CHOOSE(seed, 0, 0.01, 0.1, 1, 10);
    s.step = EXPERIMENT_CHOOSE(seed, 0.005, 0.01, 0.015, 0.02);
    return s;
}

/* Iterations per solve; NaN if it blew up or was stopped. */
static double iterations_of(experiment *e, const sheet *s, int kind, int stop, double seconds,
                            double *contacts) {
    sheet own = *s;
    own.preconditioner = KIND_NAMES[kind];
    own.own_stop = stop == ENERGY_STOP;
    if (kind == INCOMPLETE && stop == THESIS_STOP)
        return NAN; /* its norm has no place in the thesis' rule */
    toile_world *w = sheet_make(e, &own);
    if (!w)
        return NAN;
    double t = 0;
    sheet_cost cost = {.sound = true};
    for (; cost.sound && t < seconds - 1e-9 && !experiment_stopping(e); t += s->step)
        cost = sheet_run(w, s->step, s->step);
    toile_destroy(w);
    *contacts = cost.contacts;
    return cost.sound && cost.solves > 0 && t >= seconds - 1e-9 ? cost.iterations / cost.solves : NAN;
}

/* All sets of one configuration. */
typedef struct series {
    int count;
    double particles[MOST], kappa[MOST], iterations[STOPS][KINDS][MOST];
} series;

static double mean_ratio(const series *s, int stop, int above, int below) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < s->count; i++) {
        double ratio = s->iterations[stop][above][i] / s->iterations[stop][below][i];
        if (isfinite(ratio)) {
            sum += ratio;
            count++;
        }
    }
    return count ? sum / count : NAN;
}

/* The four plots of a configuration: counts and ratios over particles and over kappa. */
static void fill_plots(const series *s, const char *which, const int figures[4], plot **out) {
    for (int k = 0; k < 4; k++) {
        bool ratio = k % 2, stiffness = k / 2;
        out[k] = plot_create(experiment_text("%s, Fig. 5.%d", which, figures[k]),
                             stiffness ? "kappa" : "particles",
                             ratio ? "iterations over those of none" : "iterations per solve");
        plot_log(out[k], true, !ratio);
        for (int kind = 0; kind < CONSTRAINED + 1; kind++) {
            int line = plot_series(out[k], LABELS[kind], PLOT_POINTS);
            for (int i = 0; i < s->count; i++) {
                double y =
                    s->iterations[THESIS_STOP][kind][i] / (ratio ? s->iterations[THESIS_STOP][NONE][i] : 1);
                plot_add(out[k], line, stiffness ? s->kappa[i] : s->particles[i], y);
            }
        }
    }
}

static void put_results(experiment *e, const series *s, bool sphere) {
    const char *where = sphere ? "sphere" : "two corners";
    experiment_result(e, experiment_text("%s: CP over none, mean", where),
                      sphere ? "0.70; 0.3 for stiff cloth" : "0.70",
                      experiment_text("%.2f", mean_ratio(s, THESIS_STOP, CONSTRAINED, NONE)),
                      experiment_text("at equal error: %.2f", mean_ratio(s, ENERGY_STOP, CONSTRAINED, NONE)));
    experiment_result(e, experiment_text("%s: A-Block over none, mean", where),
                      sphere ? "above 1" : "0.70, the same as CP",
                      experiment_text("%.2f", mean_ratio(s, THESIS_STOP, BLOCK, NONE)),
                      experiment_text("at equal error: %.2f%s", mean_ratio(s, ENERGY_STOP, BLOCK, NONE),
                                      sphere && mean_ratio(s, THESIS_STOP, BLOCK, NONE) < 1
                                          ? "; the paper's loss does not show here"
                                          : ""));
    experiment_result(e, experiment_text("%s: incomplete factor over CP, mean", where), "-",
                      experiment_text("%.2f", mean_ratio(s, ENERGY_STOP, INCOMPLETE, CONSTRAINED)),
                      "at equal error");
    static const char *const PAPER[2][KINDS] = {{"about 0.5", "-", "-", "-"}, {"0.512", "-", "0.436", "-"}};
    for (int kind = 0; kind < KINDS; kind++) {
        double thesis = experiment_exponent(s->particles, s->iterations[THESIS_STOP][kind], s->count);
        double energy = experiment_exponent(s->particles, s->iterations[ENERGY_STOP][kind], s->count);
        const char *ours = isfinite(thesis) ? experiment_text("%.3f", thesis) : "-";
        experiment_result(e, experiment_text("%s: iterations grow as n^, %s", where, LABELS[kind]),
                          PAPER[sphere][kind], ours, experiment_text("at equal error: %.3f", energy));
    }
}

bool experiment_preconditioners(experiment *e) {
    static series all[2];
    int sets = experiment_sets(e, 4, 500), total = 2 * (sets > MOST ? MOST : sets), done = 0;
    double seconds = e->quick ? 0.3 : 1;
    uint64_t seed = 4;
    memset(all, 0, sizeof all);
    if (!experiment_csv(
            e,
            "set,scene,particles,density,stretch,shear,bend,damp_stretch,damp_shear,step_s,kappa,contacts,"
            "none,block,"
            "constrained,none_equal_error,block_equal_error,constrained_equal_error,incomplete_equal_error"))
        return false;
    for (int k = 0; done < total; k++) {
        sheet s = random_sheet(e, &seed);
        for (int sphere = 0; sphere < 2; sphere++) {
            series *to = &all[sphere];
            double got[STOPS][KINDS], contacts = 0, unused;
            s.scene = sphere ? SHEET_SPHERE : SHEET_CORNERS;
            for (int stop = 0; stop < STOPS; stop++)
                for (int kind = 0; kind < KINDS; kind++)
                    got[stop][kind] =
                        iterations_of(e, &s, kind, stop, seconds, kind == NONE ? &contacts : &unused);
            if (e->error.status != TOILE_OK)
                return false;
            if (experiment_stopping(e))
                goto finish;
            experiment_row(e, "%d,%s,%d,%g,%g,%g,%g,%g,%g,%g,%.4g,%.0f,%.4g,%.4g,%.4g,%.4g,%.4g,%.4g,%.4g", k,
                           sphere ? "sphere" : "corners", s.n * s.n, s.density, s.stretch, s.shear, s.bend,
                           s.damp_stretch, s.damp_shear, s.step, sheet_kappa(&s, s.step), contacts,
                           got[0][NONE], got[0][BLOCK], got[0][CONSTRAINED], got[1][NONE], got[1][BLOCK],
                           got[1][CONSTRAINED], got[1][INCOMPLETE]);
            to->particles[to->count] = s.n * s.n;
            to->kappa[to->count] = sheet_kappa(&s, s.step);
            for (int stop = 0; stop < STOPS; stop++)
                for (int kind = 0; kind < KINDS; kind++)
                    to->iterations[stop][kind][to->count] = got[stop][kind];
            to->count++;
            if (!experiment_tick(e, ++done, total))
                goto finish;
        }
    }
finish:;
    plot *panels[8];
    fill_plots(&all[0], "Two corners", (const int[]){3, 4, 5, 6}, panels);
    fill_plots(&all[1], "Sphere", (const int[]){7, 8, 9, 10}, panels + 4);
    put_results(e, &all[0], false);
    put_results(e, &all[1], true);
    return experiment_plot(e, "", panels, 8, 2);
}
