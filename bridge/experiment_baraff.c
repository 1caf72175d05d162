/* Baraff and Witkin 1998, section 8: a sheet on a cylinder (their figure 1) by number of particles, and by
 * bend stiffness. Steps are theirs, a frame of 1/30 s unless stretch asks for less. */
#include "experiments.h"
#include "scene.h"

#include <math.h>

enum { MPCG, AUTO, SOLVERS };
static const char *const LABELS[] = {"MPCG, diagonal (the paper's)", "auto"};
static const char *const SETS[SOLVERS] = {"linear_solver=mpcg", "linear_solver=auto"};

static bool run_sheet(experiment *e, int solver, int resolution, double bend, experiment_cost *cost) {
    char side[32], warp[48], weft[48], threads[32];
    snprintf(side, sizeof side, "resolution=%d", resolution);
    snprintf(warp, sizeof warp, "fabrics.own.bend_warp=%.6g", 1.04e-5 * bend);
    snprintf(weft, sizeof weft, "fabrics.own.bend_weft=%.6g", 1.04e-5 * bend);
    snprintf(threads, sizeof threads, "threads=%d", e->threads);
    const char *sets[] = {SETS[solver],
                          "preconditioner=diagonal",
                          "self_collision=off", /* the solvers are compared, and they know no couplings */
                          side,
                          "time_step=0.0333333333",
                          "fabrics.own.base=cotton",
                          warp,
                          weft,
                          "garments.sheet.fabric=own",
                          threads};
    toile_scene *scene = experiment_scene(e, "cylinder", sets, sizeof sets / sizeof *sets);
    if (!scene)
        return false;
    *cost = experiment_run_scene(e, scene, e->quick ? 8 : 0);
    toile_scene_free(scene);
    if (!cost->sound)
        toile_fail(&e->error, TOILE_DIVERGED, "the sheet on the cylinder failed at %d x %d particles",
                   resolution, resolution);
    return cost->sound;
}

static double per_step(const experiment_cost *c) {
    return c->iterations / (c->steps + c->rejected);
}

bool experiment_bw_resolution(experiment *e) {
    static const int SIDES[] = {22, 30, 51, 86}, SMALL[] = {9, 12, 16, 24};
    static const double PAPER[] = {0.23, 0.46, 2.23, 10.3};
    double particles[4], cpu[SOLVERS][4], iterations[SOLVERS][4], steps[4];
    int done = 0;
    if (!experiment_csv(
            e, "solver,particles,frames,steps,rejected_steps,iterations_per_step,cpu_seconds_per_frame"))
        return false;
    for (; done < 4 * SOLVERS && !experiment_stopping(e); experiment_tick(e, ++done, 4 * SOLVERS)) {
        int k = done / SOLVERS, solver = done % SOLVERS;
        experiment_cost c;
        if (!run_sheet(e, solver, e->quick ? SMALL[k] : SIDES[k], 1, &c))
            return false;
        if (experiment_stopping(e) || c.frames == 0)
            break;
        particles[k] = c.particles;
        cpu[solver][k] = c.cpu / c.frames;
        iterations[solver][k] = per_step(&c);
        steps[k] = c.steps / c.frames;
        experiment_row(e, "%s,%d,%d,%.0f,%.0f,%.2f,%.5g", solver == MPCG ? "mpcg" : "auto", c.particles,
                       c.frames, c.steps, c.rejected, iterations[solver][k], cpu[solver][k]);
    }
    int whole = done / SOLVERS;
    plot *time = plot_create("CPU time of a frame", "particles", "seconds"),
         *count = plot_create("Iterations per step", "particles", "iterations");
    plot_log(time, true, true);
    plot_log(count, true, true);
    for (int s = 0; s < SOLVERS; s++) {
        int a = plot_series(time, LABELS[s], PLOT_LINE_POINTS),
            b = plot_series(count, LABELS[s], PLOT_LINE_POINTS);
        for (int k = 0; k < whole; k++) {
            plot_add(time, a, particles[k], cpu[s][k]);
            plot_add(count, b, particles[k], iterations[s][k]);
        }
    }
    int line = plot_series(time, "the paper, 1998", PLOT_DASHED);
    static const double NODES[] = {500, 899, 2602, 7359};
    for (int k = 0; k < 4 && !e->quick; k++)
        plot_add(time, line, NODES[k], PAPER[k]);
    for (int k = 0; k < whole; k++)
        experiment_result(e, experiment_text("%.0f particles: seconds per frame", particles[k]),
                          experiment_text("%.2f", PAPER[k]),
                          experiment_text("%.4f MPCG, %.4f auto", cpu[MPCG][k], cpu[AUTO][k]),
                          experiment_text("%.1f steps a frame", steps[k]));
    experiment_result(
        e, "time of a frame grows as n^", experiment_text("%.2f", experiment_exponent(NODES, PAPER, 4)),
        experiment_text("%.2f MPCG, %.2f auto", experiment_exponent(particles, cpu[MPCG], whole),
                        experiment_exponent(particles, cpu[AUTO], whole)),
        "shared machine, CPU time of one thread");
    experiment_result(e, "iterations grow as n^", "about 0.5",
                      experiment_text("%.2f MPCG, %.2f auto",
                                      experiment_exponent(particles, iterations[MPCG], whole),
                                      experiment_exponent(particles, iterations[AUTO], whole)),
                      "");
    return experiment_plot(e, "", (plot *[]){time, count}, 2, 2);
}

bool experiment_bw_bend(experiment *e) {
    enum { COUNT = 5 };
    static const double FACTORS[COUNT] = {0.1, 1, 10, 100, 1000};
    experiment_cost c[SOLVERS][COUNT];
    int done = 0;
    if (!experiment_csv(e, "solver,bend_factor,particles,frames,steps,rejected_steps,iterations_per_step,"
                           "iterations_per_frame,"
                           "direct_share,cpu_seconds_per_frame"))
        return false;
    for (; done < COUNT * SOLVERS && !experiment_stopping(e); experiment_tick(e, ++done, COUNT * SOLVERS)) {
        int k = done / SOLVERS, solver = done % SOLVERS;
        experiment_cost *now = &c[solver][k];
        if (!run_sheet(e, solver, e->quick ? 16 : 51, FACTORS[k], now))
            return false;
        if (experiment_stopping(e) || now->frames == 0)
            break;
        experiment_row(e, "%s,%g,%d,%d,%.0f,%.0f,%.2f,%.2f,%.2f,%.5g", solver == MPCG ? "mpcg" : "auto",
                       FACTORS[k], now->particles, now->frames, now->steps, now->rejected, per_step(now),
                       now->iterations / now->frames, now->direct, now->cpu / now->frames);
    }
    plot *time = plot_create("CPU time of a frame", "bend stiffness over cotton's", "over that of cotton");
    plot *count = plot_create("Steps of a frame", "bend stiffness over cotton's", "steps");
    plot_log(time, true, false);
    plot_log(count, true, false);
    int whole = done / SOLVERS;
    for (int s = 0; s < SOLVERS && whole > 1; s++) {
        int a = plot_series(time, LABELS[s], PLOT_LINE_POINTS),
            b = plot_series(count, LABELS[s], PLOT_LINE_POINTS);
        const experiment_cost *cotton = &c[s][1];
        double least = INFINITY, most = 0;
        for (int k = 0; k < whole; k++) {
            const experiment_cost *now = &c[s][k];
            double ratio = now->cpu / now->frames / (cotton->cpu / cotton->frames);
            least = fmin(least, ratio), most = fmax(most, ratio);
            plot_add(time, a, FACTORS[k], ratio);
            plot_add(count, b, FACTORS[k], now->steps / now->frames);
            experiment_result(
                e, experiment_text("%s, bend x %g: time of a frame over cotton's", LABELS[s], FACTORS[k]),
                "within 5 %", experiment_text("%.2f", ratio),
                experiment_text("%.1f steps a frame, %.0f iterations a step, %.0f %% solved directly",
                                now->steps / now->frames, per_step(now), 100 * now->direct));
        }
        experiment_result(
            e, experiment_text("%s: time, most over least", LABELS[s]), "1.05",
            experiment_text("%.2f", most / least),
            most / least > 1.1
                ? "does not hold here: stiffer cloth folds less and takes fewer steps, but more iterations"
                : "");
    }
    return experiment_plot(e, "", (plot *[]){time, count}, 2, 2);
}
