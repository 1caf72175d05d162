/* Tables of Ye, Webber and Wang 2008: conjugate gradients on the reduced system beside MPCG (Table 1), and
 * direct and matrix-core solvers beside MPCG (Table 2). Mass of a node, shear and steps are theirs; bending
 * is that of a light fabric (bench_systems.c says why).
 *
 * Their times are of a whole step on a Core 2 at 2.13 GHz; ours on one thread of another machine. Ratios
 * within a table are what can be compared, and iterations. */
#include "bench.h"
#include "experiment_sheet.h"
#include "experiments.h"

#include <math.h>
#include <string.h>

static const double STRETCH[] = {60, 600, 6000};

/* Time step of Table 1, s. */
#define STEP 3.67e-3

/* Both solvers on the same systems: before every step the second world takes the state of the first. On ways of their own cloth
 * that folds soon meets systems that are not alike. */
static bool run_both(experiment *e, sheet_scene scene, int n, double stretch, int steps, sheet_cost cost[2], double cpu[2]) {
    toile_world *world[2] = {NULL, NULL};
    void *state = NULL;
    bool made = true;
    for (int reduced = 0; reduced < 2 && made; reduced++) {
        sheet s = {.scene = scene,
                   .n = n,
                   .spacing = 1.0 / (n - 1),
                   .stretch = stretch,
                   .shear = 0.3,
                   .bend = 4e-5,
                   .friction = 10,
                   .step = STEP,
                   .own_stop = true,
                   .solver = reduced ? "upcg" : "mpcg",
                   .damp_stretch = 0.2 * STEP * stretch,
                   .damp_shear = 0.06 * STEP};
        s.density = 9.5e-6 / (s.spacing * s.spacing);
        made = (world[reduced] = sheet_make(e, &s));
        cost[reduced] = (sheet_cost){.sound = true};
    }
    size_t size = made ? toile_state_size(world[0]) : 0;
    state = made ? malloc(size) : NULL;
    made = state;
    for (int i = 0; state && i < steps && cost[0].sound && cost[1].sound && !experiment_stopping(e); i++) {
        cost[1].sound = toile_save_state(world[0], state, size) >= 0 && toile_restore_state(world[1], state, size) >= 0;
        for (int k = 0; k < 2 && cost[k].sound; k++) {
            cost[k] = sheet_run(world[k], STEP, STEP);
            cpu[k] += cost[k].cpu;
        }
    }
    free(state);
    toile_destroy(world[0]);
    toile_destroy(world[1]);
    return made;
}

/* ---- Table 1 ---- */

bool experiment_ye_table1(experiment *e) {
    static const struct {
        const char *name;
        sheet_scene scene;
        int mpcg[3], upcg[3];
        double mpcg_s[3], upcg_s[3];
    } PAPER[] = {
        {"pinned", SHEET_FOUR, {35, 116, 413}, {35, 115, 414}, {0.25, 0.65, 2.03}, {0.22, 0.50, 1.53}},
        {"draping", SHEET_SPHERE, {26, 78, 267}, {24, 77, 270}, {0.23, 0.49, 1.54}, {0.11, 0.17, 0.42}}};
    int n = e->quick ? 21 : 81, done = 0;
    double iterations[2][2][3];
    if (!experiment_csv(
            e, "scene,stretch,solver,steps,solves,particles,contacts,largest_stretch,iterations_per_solve,cpu_seconds_per_step"))
        return false;
    plot *p = plot_create("Iterations per solve (Table 1)", "stretch stiffness, N/m", "iterations");
    plot_log(p, true, true);
    for (int scene = 0; scene < 2; scene++)
        for (int k = 0; k < 3; k++) {
            double cpu[2] = {0};
            int steps = e->quick ? 40 : 100;
            sheet_cost cost[2];
            if (!run_both(e, PAPER[scene].scene, n, STRETCH[k], steps, cost, cpu))
                return false;
            if (experiment_stopping(e))
                goto finish;
            for (int reduced = 0; reduced < 2; reduced++) {
                iterations[reduced][scene][k] = cost[reduced].sound ? cost[reduced].iterations / cost[reduced].solves : NAN;
                cpu[reduced] = cost[reduced].sound ? cpu[reduced] / steps : NAN;
                experiment_row(e, "%s,%g,%s,%d,%.0f,%d,%.0f,%.4g,%.2f,%.5g", PAPER[scene].name, STRETCH[k],
                               reduced ? "upcg" : "mpcg", steps, cost[reduced].solves, n * n, cost[reduced].contacts,
                               cost[reduced].largest_stretch, iterations[reduced][scene][k], cpu[reduced]);
                experiment_tick(e, ++done, 12);
            }
            experiment_result(
                e, experiment_text("%s, k %g: iterations MPCG / uPCG", PAPER[scene].name, STRETCH[k]),
                experiment_text("%d / %d", PAPER[scene].mpcg[k], PAPER[scene].upcg[k]),
                experiment_text("%.0f / %.0f", iterations[0][scene][k], iterations[1][scene][k]), "");
            double theirs = PAPER[scene].upcg_s[k] / PAPER[scene].mpcg_s[k], ours = cpu[1] / cpu[0];
            experiment_result(
                e, experiment_text("%s, k %g: time uPCG over MPCG", PAPER[scene].name, STRETCH[k]),
                experiment_text("%.2f", theirs), experiment_text("%.2f", ours),
                ours > 1.15 * theirs ? "does not hold here: filtering costs MPCG next to nothing" : "");
        }
finish:
    for (int scene = 0; scene < 2; scene++)
        for (int reduced = 0; reduced < 2; reduced++) {
            int line = plot_series(p, experiment_text("%s, %s", PAPER[scene].name, reduced ? "uPCG" : "MPCG"),
                                   reduced ? PLOT_DASHED : PLOT_LINE_POINTS);
            for (int k = 0; k < 3 && (scene * 3 + k) * 2 + reduced < done; k++)
                plot_add(p, line, STRETCH[k], iterations[reduced][scene][k]);
        }
    return experiment_plot(e, "", &p, 1, 1);
}

/* ---- Table 2 ---- */

enum { MPCG, DIRECT, CORE, AUTO, SOLVERS };
static const char *const SOLVER_NAMES[] = {"mpcg_diagonal", "cholmod", "corepcg", "auto"};
#define ERROR 1e-2 /* of the answer in the energy norm, the same for all */

typedef struct cell {
    double iterations, seconds;
} cell;

/* Medians over some systems of the same cloth. */
static bool measure(experiment *e, int n, double stretch, bool thin, cell out[SOLVERS]) {
    bench_case c;
    bench_cloth cloth = bench_ye_grid(n, stretch);
    char name[48];
    cloth.thin = thin;
    if (e->quick)
        cloth.first = 4, cloth.every = 2;
    snprintf(name, sizeof name, "grid_%d_k%.0f%s", n * n, stretch, thin ? "_thin" : "");
    bool made = bench_make_case(name, &cloth, &c);
    int systems = made ? (n > 100 ? 2 : 3) : 0;
    for (int i = 0; i < SOLVERS; i++) {
        double iterations[3], seconds[3];
        int count = 0;
        bench_solver *solver = made ? bench_solver_make(SOLVER_NAMES[i], &c) : NULL;
        for (int k = 0; solver && k < systems && !experiment_stopping(e); k++) {
            const bench_system *system = &c.systems[2 * k];
            double effort = bench_effort(solver, system, ERROR);
            bench_run run = {.sound = false};
            double best = INFINITY;
            for (int turn = 0; turn < 2 && isfinite(effort); turn++) {
                run = bench_solve(solver, system, effort, 1);
                best = fmin(best, run.seconds);
            }
            if (run.sound) {
                iterations[count] = run.iterations;
                seconds[count++] = best;
            }
        }
        out[i] = (cell){experiment_median(iterations, count), experiment_median(seconds, count)};
        bench_solver_free(solver);
    }
    bench_free_case(&c);
    if (!made)
        toile_fail(&e->error, TOILE_DIVERGED, "the systems of %s could not be made", name);
    return made;
}

bool experiment_ye_table2(experiment *e) {
    static const struct {
        int n;
        int mpcg[2][3], core[3];
        double mpcg_s[2][3], direct_s[2], core_s[3];
    } PAPER[] = {{41,
                  {{119, 314, 722}, {131, 305, 681}},
                  {2, 4, 3},
                  {{0.16, 0.38, 0.84}, {0.10, 0.22, 0.46}},
                  {0.11, 0.05},
                  {0.07, 0.07, 0.07}},
                 {81,
                  {{50, 123, 511}, {53, 114, 442}},
                  {3, 4, 5},
                  {{0.32, 0.66, 2.43}, {0.21, 0.36, 1.22}},
                  {0.65, 0.23},
                  {0.35, 0.35, 0.37}},
                 {161,
                  {{88, 256, 574}, {88, 258, 575}},
                  {4, 4, 4},
                  {{2.24, 5.77, 12.42}, {1.32, 3.35, 7.22}},
                  {3.88, 1.16},
                  {1.79, 1.81, 1.80}}};
    int meshes = e->quick ? 1 : 3, total = 6 * meshes, done = 0;
    bench_wake_blas();
    if (!experiment_csv(e, "particles,matrix,stretch,solver,iterations,cpu_seconds"))
        return false;
    plot *iterations =
        plot_create("Iterations to an error of 1e-2, semi-implicit", "stretch stiffness, N/m", "iterations");
    plot *seconds = plot_create(experiment_text("CPU time of a solve, %d nodes", e->quick ? 289 : 25921),
                                "stretch stiffness, N/m", "time, s");
    plot_log(iterations, true, true);
    plot_log(seconds, true, true);
    int lines[SOLVERS];
    static const char *const LABELS[] = {"MPCG", "CHOLMOD", "corePCG", "auto"};
    for (int i = 0; i < SOLVERS; i++)
        lines[i] = plot_series(seconds, LABELS[i], PLOT_LINE_POINTS);
    for (int m = 0; m < meshes && !experiment_stopping(e); m++) {
        int n = e->quick ? 17 : PAPER[m].n;
        int mpcg_line = plot_series(iterations, experiment_text("MPCG, %d nodes", n * n), PLOT_LINE_POINTS);
        int core_line =
            plot_series(iterations, experiment_text("corePCG, %d nodes", n * n), PLOT_LINE_POINTS);
        int auto_line = plot_series(iterations, experiment_text("auto, %d nodes", n * n), PLOT_DASHED);
        for (int k = 0; k < 3 && !experiment_stopping(e); k++) {
            cell full[SOLVERS], thin[SOLVERS];
            for (int imex = 0; imex < 2; imex++) {
                cell *to = imex ? thin : full;
                if (!measure(e, n, STRETCH[k], imex, to))
                    return false;
                for (int i = 0; i < SOLVERS; i++)
                    experiment_row(e, "%d,%s,%g,%s,%.0f,%.5g", n * n, imex ? "imex" : "semi_implicit",
                                   STRETCH[k], SOLVER_NAMES[i], to[i].iterations, to[i].seconds);
                experiment_tick(e, ++done, total);
            }
            if (experiment_stopping(e)) /* this row is not whole */
                break;
            plot_add(iterations, mpcg_line, STRETCH[k], full[MPCG].iterations);
            plot_add(iterations, core_line, STRETCH[k], full[CORE].iterations);
            plot_add(iterations, auto_line, STRETCH[k], full[AUTO].iterations);
            for (int i = 0; i < SOLVERS && m == meshes - 1; i++)
                plot_add(seconds, lines[i], STRETCH[k], full[i].seconds);
            char what[48];
            snprintf(what, sizeof what, "%d nodes, k %g", n * n, STRETCH[k]);
            experiment_result(e, experiment_text("%s: iterations MPCG / corePCG", what),
                              experiment_text("%d / %d", PAPER[m].mpcg[0][k], PAPER[m].core[k]),
                              experiment_text("%.0f / %.0f", full[MPCG].iterations, full[CORE].iterations),
                              experiment_text("auto: %.0f; to a true error of 1e-2", full[AUTO].iterations));
            double core = full[CORE].seconds / full[DIRECT].seconds,
                   theirs = PAPER[m].core_s[k] / PAPER[m].direct_s[0];
            experiment_result(
                e, experiment_text("%s: time over CHOLMOD, MPCG / corePCG", what),
                experiment_text("%.2f / %.2f", PAPER[m].mpcg_s[0][k] / PAPER[m].direct_s[0], theirs),
                experiment_text("%.2f / %.2f", full[MPCG].seconds / full[DIRECT].seconds, core),
                experiment_text("auto: %.2f%s", full[AUTO].seconds / full[DIRECT].seconds,
                                core > 1.2 * theirs ? "; corePCG gains less than in the paper" : ""));
            experiment_result(e, experiment_text("%s, IMEX: iterations MPCG", what),
                              experiment_text("%d", PAPER[m].mpcg[1][k]),
                              experiment_text("%.0f", thin[MPCG].iterations), "");
            /* the matrix core of a thin matrix is the matrix: corePCG is then a direct solve of it */
            experiment_result(e, experiment_text("%s: direct solve, IMEX over semi-implicit", what),
                              experiment_text("%.2f", PAPER[m].direct_s[1] / PAPER[m].direct_s[0]),
                              experiment_text("%.2f", thin[CORE].seconds / full[DIRECT].seconds), "");
        }
    }
    return experiment_plot(e, "", (plot *[]){iterations, seconds}, 2, 2);
}
