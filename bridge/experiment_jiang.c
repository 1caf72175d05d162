/* Jiang 2021, section 4: RK4 on Provot's grid needs steps that shrink with stiffness, implicit steps do not.
 * The critical step by bisection beside Provot's T0 = pi sqrt(m / K) (Jiang eq. 1), the cost of a simulated
 * second by stiffness, and the five test systems as they are among the samples. */
#include "bench.h"
#include "experiment_sheet.h"
#include "experiments.h"
#include "scene.h"

#include <math.h>

#define IMPLICIT_STEP (1.0 / 120)

/* CPU seconds of a simulated second; NaN if it blows up. */
static double cost_of(experiment *e, sheet s, const char *integrator, double step, double seconds,
                      double *stretch) {
    s.integrator = integrator;
    s.step = step;
    s.solver = "auto";
    toile_world *w = sheet_make(e, &s);
    if (!w)
        return NAN;
    sheet_cost cost = sheet_run(w, seconds, 1.0 / 60);
    *stretch = cost.largest_stretch;
    toile_destroy(w);
    return cost.sound ? cost.cpu / seconds : NAN;
}

static bool run_systems(experiment *e, int *done, int total, double *ratios) {
    for (int k = 0; k < 5 && !experiment_stopping(e); k++, experiment_tick(e, ++*done, total)) {
        experiment_cost cost[2];
        const char *name = experiment_text("jiang_%d", k + 1);
        for (int implicit = 0; implicit < 2; implicit++) {
            const char *sets[] = {"cloth_model=springs",
                                  implicit ? "integrator=backward_euler" : "integrator=rk4", "threads=1",
                                  "time_step_min=1e-7", e->quick ? "resolution=6" : "resolution=21"};
            toile_scene *scene = experiment_scene(e, name, sets, sizeof sets / sizeof *sets);
            if (!scene)
                return false;
            cost[implicit] = experiment_run_scene(e, scene, e->quick ? 1 : 12);
            toile_scene_free(scene);
            if (!cost[implicit].sound)
                return toile_fail(&e->error, TOILE_DIVERGED, "test system %d failed", k + 1), false;
        }
        if (experiment_stopping(e))
            break;
        double steps[2] = {cost[0].steps / cost[0].frames, cost[1].steps / cost[1].frames};
        ratios[k] = (cost[0].cpu / cost[0].frames) / (cost[1].cpu / cost[1].frames);
        for (int implicit = 0; implicit < 2; implicit++)
            experiment_row(e, "%s,%s,%d,,,%.4g,%.4g", name, implicit ? "backward_euler" : "rk4",
                           cost[implicit].particles, steps[implicit],
                           cost[implicit].cpu / cost[implicit].frames);
        experiment_result(e, experiment_text("test system %d: steps a frame, RK4 / implicit", k + 1),
                          "many / few", experiment_text("%.0f / %.1f", steps[0], steps[1]),
                          experiment_text("time RK4 over implicit: %.1f", ratios[k]));
    }
    return true;
}

bool experiment_jiang_rk4(experiment *e) {
    static const double STIFFNESS[] = {10, 100, 1000, 10000};
    int sizes[2] = {10, e->quick ? 14 : 30}, done = 0, total = 2 * 4 + 5, steps = e->quick ? 200 : 1000;
    double ratios[5] = {0}, least = INFINITY, most = 0;
    if (!experiment_csv(e, "case,integrator,particles,stiffness,step_s,steps_per_frame,cpu_seconds"))
        return false;
    plot *step = plot_create("Longest stable step of RK4", "stiffness, N/m", "step, s");
    plot *cost = plot_create("CPU time of a simulated second", "stiffness, N/m", "seconds");
    plot_log(step, true, true);
    plot_log(cost, true, true);
    for (int size = 0; size < 2; size++) {
        int n = sizes[size];
        int measured = plot_series(step, experiment_text("measured, %d x %d", n, n), PLOT_LINE_POINTS);
        int rk4 = plot_series(cost, experiment_text("RK4, %d x %d", n, n), PLOT_LINE_POINTS);
        int implicit = plot_series(cost, experiment_text("implicit, %d x %d", n, n), PLOT_LINE_POINTS);
        int provot = size == 1 ? plot_series(step, "pi sqrt(m/K)", PLOT_DASHED) : -1;
        for (int k = 0; k < 4 && !experiment_stopping(e); k++, experiment_tick(e, ++done, total)) {
            double K = STIFFNESS[k], stretch[2] = {0};
            sheet s = {.scene = SHEET_CORNERS,
                       .n = n,
                       .spacing = 0.05,
                       .density = 0.22,
                       .stretch = K,
                       .shear = K,
                       .integrator = "rk4",
                       .damp_stretch = 1e-4 * K,
                       .damp_shear = 1e-4 * K,
                       .bend = 1e-6,
                       .step = 1e-4};
            double mass = s.density * s.spacing * s.spacing, longest = sheet_critical_step(e, &s, steps),
                   T0 = M_PI * sqrt(mass / K);
            double seconds = e->quick ? 0.1 : 1;
            double explicit_cost = cost_of(e, s, "rk4", 0.9 * longest, seconds, &stretch[0]);
            double implicit_cost = cost_of(e, s, "backward_euler", IMPLICIT_STEP, seconds, &stretch[1]);
            if (e->error.status != TOILE_OK)
                return false;
            experiment_row(e, "sheet,rk4,%d,%g,%.4g,%.1f,%.5g", n * n, K, longest, 1 / (24 * 0.9 * longest),
                           explicit_cost);
            experiment_row(e, "sheet,backward_euler,%d,%g,%.4g,%.1f,%.5g", n * n, K, IMPLICIT_STEP, 5.0,
                           implicit_cost);
            plot_add(step, measured, K, longest);
            plot_add(step, provot, K, T0);
            plot_add(cost, rk4, K, explicit_cost);
            plot_add(cost, implicit, K, implicit_cost);
            least = fmin(least, longest / T0), most = fmax(most, longest / T0);
            experiment_result(e, experiment_text("%d x %d, K %g: longest step of RK4, s", n, n, K),
                              experiment_text("below %.2g (eq. 1)", T0), experiment_text("%.2g", longest),
                              experiment_text("time RK4 over implicit: %.2f; stretch %.2f and %.2f",
                                              explicit_cost / implicit_cost, stretch[0], stretch[1]));
        }
    }
    experiment_result(e, "longest step of RK4 over pi sqrt(m/K)", "at most 1",
                      experiment_text("%.2f to %.2f", least, most), "");
    if (!experiment_stopping(e) && !run_systems(e, &done, total, ratios))
        return false;
    return experiment_plot(e, "", (plot *[]){step, cost}, 2, 2);
}
