/* toile bench solvers: `auto` beside the solvers of the papers, on the same systems and to the same true
 * error.
 *
 * Every key is a ratio of times (or of iterations, rows) measured in turn in this run, the median over
 * several systems. Traps this one avoids: errors are true ones, against a direct solution, in the energy
 * norm, because each solver's own stopping rule means something else; CHOLMOD is kept from opening threads
 * (factor_cholmod.c); OpenBLAS is told what processor it runs on where it does not know (below), or CHOLMOD
 * would look slower than it is; what is not a number is never a small number. */
#include "bench.h"

#include "commands.h"
#include "experiment.h"
#include "experiments.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define E2 1e-2
#define E5 1e-5
#define TURNS 3
#define AIMEX_SETS 40
#define AIMEX_SECONDS 1
#define SLOW 0.7 /* s: a solve this long is timed once */

typedef struct board {
    const char *only;
    bool json;
    json_t *ratios, *cases, *missing;
} board;

/* ---- keys ---- */

static bool wanted(const board *b, const char *key) {
    return !b->only || strstr(key, b->only);
}

static bool any_wanted(const board *b, const char *const *keys, int count) {
    for (int i = 0; i < count; i++)
        if (wanted(b, keys[i]))
            return true;
    return false;
}
#define ANY_WANTED(b, ...)                                                                                   \
    any_wanted(b, (const char *const[]){__VA_ARGS__},                                                        \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void put(board *b, const char *key, double value) {
    if (!wanted(b, key))
        return;
    if (isfinite(value))
        json_object_set_new(b->ratios, key, json_real(value));
    else
        json_array_append_new(b->missing, json_string(key));
    if (!b->json) {
        if (isfinite(value))
            printf("%-48s %8.4f\n", key, value);
        else
            printf("%-48s  MISSING: this build has not what it compares, or it gave no answer\n", key);
        fflush(stdout);
    }
}

/* ---- timing solvers on a case ---- */

typedef struct timing {
    double seconds[BENCH_SYSTEMS], iterations[BENCH_SYSTEMS];
    int count; /* systems solved to the error asked for */
} timing;

static double ratio_of(const timing *a, const timing *b) {
    double ratio[BENCH_SYSTEMS];
    int count = a->count < b->count ? a->count : b->count;
    if (count < BENCH_SYSTEMS)
        return NAN;
    for (int k = 0; k < count; k++)
        ratio[k] = a->seconds[k] / b->seconds[k];
    return bench_median(ratio, count);
}

static double median_of(const double *values, int count) {
    double sorted[BENCH_SYSTEMS];
    if (count < BENCH_SYSTEMS)
        return NAN;
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    return bench_median(sorted, count);
}

static void note(board *b, const bench_case *c, const char *name, double error, const timing *t) {
    double ms = 1e3 * median_of(t->seconds, t->count), iterations = median_of(t->iterations, t->count);
    json_array_append_new(b->cases, json_pack("{s:s,s:s,s:f,s:i,s:f,s:f,s:i,s:i}", "case", c->name, "solver",
                                              name, "error", error, "systems", t->count, "milliseconds",
                                              isfinite(ms) ? ms : -1.0, "iterations",
                                              isfinite(iterations) ? iterations : -1.0, "particles",
                                              c->sim->model->particle_count, "constrained", c->contacts));
    if (!b->json) {
        printf("    %-22s %-14s to %.0e: %9.2f ms, %6.0f iterations (%d particles, %d constrained)\n",
               c->name, name, error, ms, iterations, c->sim->model->particle_count, c->contacts);
        fflush(stdout);
    }
}

/* Times the named solvers on every system of the case, in turn. Orderings are made and efforts found
 * beforehand. */
static void measure(board *b, bench_case *c, double error, const char *const *names, int count,
                    timing *timings) {
    bench_solver *solver[8] = {0};
    for (int i = 0; i < count; i++) {
        solver[i] = bench_solver_make(names[i], c);
        timings[i].count = 0;
    }
    for (int k = 0; k < c->count; k++) {
        double effort[8], spent[8][TURNS];
        int turns[8] = {0}, iterations[8] = {0};
        bool good[8];
        for (int i = 0; i < count; i++) {
            effort[i] = solver[i] ? bench_effort(solver[i], &c->systems[k], error) : NAN;
            good[i] = isfinite(effort[i]);
        }
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = 0; i < count; i++) {
                if (!good[i] || (turn > 0 && spent[i][0] > SLOW))
                    continue;
                bench_run run = bench_solve(solver[i], &c->systems[k], effort[i], 1);
                good[i] = run.sound && bench_error(c, &c->systems[k]) <= 1.000001 * error;
                iterations[i] = run.iterations;
                spent[i][turns[i]++] = run.seconds;
            }
        for (int i = 0; i < count; i++)
            if (good[i] && timings[i].count == k) { /* a gap ends it: ratios compare system by system */
                timings[i].seconds[k] = bench_median(spent[i], turns[i]);
                timings[i].iterations[k] = iterations[i];
                timings[i].count++;
            }
    }
    for (int i = 0; i < count; i++) {
        if (solver[i])
            note(b, c, names[i], error, &timings[i]);
        bench_solver_free(solver[i]);
    }
}

/* ---- groups of keys, each on one case ---- */

static void put_two_threads(board *b, bench_case *c) {
    double ratio[BENCH_SYSTEMS];
    int count = 0;
    bench_solver *s = bench_solver_make("auto", c);
    for (int k = 0; s && k < c->count; k++) {
        double one = INFINITY, two = INFINITY, effort = bench_effort(s, &c->systems[k], E2);
        for (int turn = 0; isfinite(effort) && turn < 7; turn++) {
            one = fmin(one, bench_solve(s, &c->systems[k], effort, 1).wall);
            two = fmin(two, bench_solve(s, &c->systems[k], effort, 2).wall);
        }
        if (isfinite(two))
            ratio[count++] = two / one;
    }
    bench_solver_free(s);
    put(b, "two_threads_over_one_25921", count == BENCH_SYSTEMS ? bench_median(ratio, count) : NAN);
}

static void put_parts(board *b, bench_case *c, const timing *own, const timing *direct) {
    double step[BENCH_SYSTEMS], product[BENCH_SYSTEMS], evaluate, some, all, fast, half, full;
    int steps = 0, products = 0;
    for (int k = 0; k < c->count; k++) {
        if (bench_products(c, &c->systems[k], &fast, &half) &&
            isfinite(full = bench_full_product(c, &c->systems[k]))) {
            product[products++] = fast / full;
            json_array_append_new(b->cases,
                                  json_pack("{s:s,s:s,s:f,s:f,s:f}", "case", c->name, "solver", "product",
                                            "milliseconds", 1e3 * fast, "half_blocks_milliseconds",
                                            1e3 * half, "all_blocks_milliseconds", 1e3 * full));
        }
        if (k < own->count && k < direct->count &&
            bench_step_parts(c, &c->systems[k], &evaluate, &some, &all))
            step[steps++] = (evaluate + some + own->seconds[k]) / (evaluate + all + direct->seconds[k]);
    }
    put(b, "spmv_over_bcsr64_25921", products == BENCH_SYSTEMS ? bench_median(product, products) : NAN);
    put(b, "step_auto_over_cholmod_25921_k6000", steps == BENCH_SYSTEMS ? bench_median(step, steps) : NAN);
}

/* The stiffest of the large grids: most keys are on it. Gives the time of auto to E2. */
static double bench_stiff_grid(board *b) {
    static const char *const NAMES[] = {"auto", "cholmod", "corepcg", "mpcg_diagonal"};
    bench_case c;
    bench_cloth cloth = bench_ye_grid(161, 6000);
    timing t[4] = {0};
    double seconds = NAN;
    bool e2 = ANY_WANTED(b, "auto_over_cholmod_25921_k6000_e2", "auto_over_corepcg_25921_k6000_e2",
                         "auto_over_mpcg_diagonal_25921_k6000_e2", "corepcg_over_cholmod_25921_k6000",
                         "spmv_over_bcsr64_25921", "step_auto_over_cholmod_25921_k6000",
                         "stiffness_60_to_6000_max_over_min");
    bool e5 = ANY_WANTED(b, "auto_over_cholmod_25921_k6000_e5", "auto_over_corepcg_25921_k6000_e5",
                         "auto_over_mpcg_diagonal_25921_k6000_e5");
    bool two = wanted(b, "two_threads_over_one_25921");
    if (!e2 && !e5 && !two)
        return NAN;
    if (bench_make_case("grid_25921_k6000", &cloth, &c)) {
        if (e2) {
            measure(b, &c, E2, NAMES, wanted(b, "auto_over_mpcg_diagonal_25921_k6000_e2") ? 4 : 3, t);
            put(b, "auto_over_cholmod_25921_k6000_e2", ratio_of(&t[0], &t[1]));
            put(b, "auto_over_corepcg_25921_k6000_e2", ratio_of(&t[0], &t[2]));
            put(b, "auto_over_mpcg_diagonal_25921_k6000_e2", ratio_of(&t[0], &t[3]));
            put(b, "corepcg_over_cholmod_25921_k6000", ratio_of(&t[2], &t[1]));
            put_parts(b, &c, &t[0], &t[1]);
            seconds = median_of(t[0].seconds, t[0].count);
        }
        if (e5) {
            measure(b, &c, E5, NAMES, wanted(b, "auto_over_mpcg_diagonal_25921_k6000_e5") ? 4 : 3, t);
            put(b, "auto_over_cholmod_25921_k6000_e5", ratio_of(&t[0], &t[1]));
            put(b, "auto_over_corepcg_25921_k6000_e5", ratio_of(&t[0], &t[2]));
            put(b, "auto_over_mpcg_diagonal_25921_k6000_e5", ratio_of(&t[0], &t[3]));
        }
        if (two)
            put_two_threads(b, &c);
    }
    bench_free_case(&c);
    return seconds;
}

/* Time of auto to E2 on another grid; with MPCG beside it if `key` is not null. */
static double bench_grid(board *b, int n, double stretch, const char *key) {
    static const char *const NAMES[] = {"auto", "mpcg_diagonal"};
    bench_case c;
    bench_cloth cloth = bench_ye_grid(n, stretch);
    timing t[2] = {0};
    char name[48];
    snprintf(name, sizeof name, "grid_%d_k%.0f", n * n, stretch);
    if (bench_make_case(name, &cloth, &c)) {
        measure(b, &c, E2, NAMES, key ? 2 : 1, t);
        if (key)
            put(b, key, ratio_of(&t[0], &t[1]));
    }
    bench_free_case(&c);
    return median_of(t[0].seconds, t[0].count);
}

static void bench_grids(board *b) {
    double stiff = bench_stiff_grid(b), middle = NAN, soft = NAN, small, large;
    bool range = wanted(b, "stiffness_60_to_6000_max_over_min"), growth = wanted(b, "growth_exponent");
    bool soft_mpcg = wanted(b, "auto_over_mpcg_diagonal_25921_k60_e2");
    if (range || soft_mpcg)
        soft = bench_grid(b, 161, 60, soft_mpcg ? "auto_over_mpcg_diagonal_25921_k60_e2" : NULL);
    if (range) {
        middle = bench_grid(b, 161, 600, NULL);
        double most = fmax(stiff, fmax(middle, soft)), least = fmin(stiff, fmin(middle, soft));
        put(b, "stiffness_60_to_6000_max_over_min", isfinite(stiff + middle + soft) ? most / least : NAN);
    }
    if (growth) {
        small = bench_grid(b, 41, 6000, NULL);
        bench_grid(b, 81, 6000, NULL);
        large = bench_grid(b, 321, 6000, NULL);
        put(b, "growth_exponent", log(large / small) / log(321.0 * 321 / (41.0 * 41)));
    }
}

/* A case with keys `auto over NAME` to each error; key null: not asked for. */
typedef struct keyed {
    const char *key, *against;
    double error;
} keyed;

static void bench_keyed(board *b, const char *name, const bench_cloth *cloth, const keyed *keys, int count) {
    bench_case c;
    bool any = false, made = false;
    for (int i = 0; i < count; i++)
        any = any || wanted(b, keys[i].key);
    if (!any)
        return;
    made = bench_make_case(name, cloth, &c);
    for (int i = 0; i < count; i++) {
        timing t[2] = {0};
        const char *names[2] = {"auto", keys[i].against};
        if (!wanted(b, keys[i].key))
            continue;
        if (made)
            measure(b, &c, keys[i].error, names, 2, t);
        put(b, keys[i].key, ratio_of(&t[0], &t[1]));
    }
    bench_free_case(&c);
}

static void bench_triangles(board *b) {
    bench_cloth tube = {.tube = true,
                        .ball = true,
                        .stretch = 5000,
                        .shear = 50,
                        .bend = 1e-5,
                        .density = 0.2,
                        .step = 1.0 / 120,
                        .first = 12,
                        .every = 6};
    static const keyed TUBE_120[] = {{"auto_over_cholmod_tube_dt120_e2", "cholmod", E2},
                                     {"auto_over_mpcg_diagonal_tube_dt120_e2", "mpcg_diagonal", E2}};
    bench_keyed(b, "tube_dt120", &tube, TUBE_120, 2);
    bench_cloth free_tube = tube;
    free_tube.ball = false;
    free_tube.shear = 500;
    free_tube.step = 1.0 / 48;
    static const keyed TUBE_48[] = {{"auto_over_cholmod_tube_dt48_e2", "cholmod", E2},
                                    {"auto_over_cholmod_tube_dt48_e5", "cholmod", E5}};
    bench_keyed(b, "tube_dt48", &free_tube, TUBE_48, 2);
    bench_cloth irregular = tube;
    irregular.tube = false;
    irregular.n = 91;
    irregular.jitter = 0.4;
    irregular.shuffled = true;
    static const keyed IRREGULAR[] = {{"auto_over_cholmod_irregular_e2", "cholmod", E2}};
    bench_keyed(b, "irregular", &irregular, IRREGULAR, 1);
    bench_cloth sheared = bench_ye_grid(81, 6000);
    sheared.shear = 300;
    static const keyed SHEARED[] = {{"auto_over_cholmod_6561_shear300_e2", "cholmod", E2}};
    bench_keyed(b, "grid_6561_shear300", &sheared, SHEARED, 1);
}

/* The same sheet with its particles given in random order: iterations of auto over those of the sorted one.
 */
static void bench_order(board *b) {
    static const char *const NAMES[] = {"auto"};
    double iterations[2] = {NAN, NAN};
    if (!wanted(b, "random_order_over_sorted"))
        return;
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        bench_case c;
        bench_cloth cloth = bench_ye_grid(81, 6000);
        timing t = {0};
        cloth.shuffled = shuffled;
        if (bench_make_case(shuffled ? "grid_6561_shuffled" : "grid_6561_sorted", &cloth, &c))
            measure(b, &c, E2, NAMES, 1, &t);
        iterations[shuffled] = median_of(t.iterations, t.count);
        bench_free_case(&c);
    }
    put(b, "random_order_over_sorted", iterations[1] / iterations[0]);
}

/* Rows multiplied by the decomposing solver over those of the whole system, on cloth that sticks to a ball
 * (thesis Fig. 6.9 and 6.10). */
static void bench_decomposition(board *b) {
    static const char KEY[] = "decompose_over_full_rowmultiplies_sphere_stick";
    bench_case c;
    bench_cloth cloth = {.springs = true,
                         .n = 61,
                         .ball = true,
                         .drape = true,
                         .stretch = 600,
                         .shear = 30,
                         .bend = 1e-6,
                         .density = 0.15,
                         .step = 1.0 / 480,
                         .first = 160,
                         .every = 80};
    double ratio[BENCH_SYSTEMS];
    int count = 0;
    if (!wanted(b, KEY))
        return;
    if (bench_make_case("sphere_stick", &cloth, &c)) {
        bench_solver *parts = bench_solver_make("decompose", &c), *whole = bench_solver_make("upcg", &c);
        for (int k = 0; parts && whole && k < c.count; k++) {
            bench_run a = bench_solve(parts, &c.systems[k], E2, 1),
                      full = bench_solve(whole, &c.systems[k], E2, 1);
            if (a.sound && full.sound)
                ratio[count++] =
                    (double)a.rows / ((double)(full.iterations + 2) * c.sim->model->particle_count);
            if (!b->json)
                printf("    %-22s %d parts, %d iterations; whole: %d iterations (%d of %d particles "
                       "constrained)\n",
                       c.name, a.components, a.iterations, full.iterations, c.systems[k].constraints.count,
                       c.sim->model->particle_count);
        }
        bench_solver_free(parts);
        bench_solver_free(whole);
    }
    bench_free_case(&c);
    put(b, KEY, count == BENCH_SYSTEMS ? bench_median(ratio, count) : NAN);
}

/* Iterations of MPCG with the preconditioner that knows the constraints over those without any, on cloth that
 * slides over a ball (thesis section 5.4). On the same systems and at the same true error: the thesis'
 * tolerance stops each at another one, and runs that are stopped differently are soon different runs (from
 * 0.53 to 0.85 by size and length of the run). */
static void bench_preconditioner(board *b) {
    static const char KEY[] = "iterations_constrained_over_none_sphere";
    bench_case c;
    bench_cloth cloth = {.springs = true,
                         .n = 41,
                         .ball = true,
                         .drape = true,
                         .slides = true,
                         .stretch = 600,
                         .shear = 30,
                         .bend = 1e-6,
                         .density = 0.15,
                         .step = 1.0 / 120,
                         .first = 20,
                         .every = 10};
    double ratio[BENCH_SYSTEMS];
    int count = 0;
    if (!wanted(b, KEY))
        return;
    if (bench_make_case("sphere_slide", &cloth, &c)) {
        bench_solver *none = bench_solver_make("mpcg_none", &c),
                     *constrained = bench_solver_make("mpcg_constrained", &c);
        for (int k = 0; none && constrained && k < c.count; k++) {
            double plain = bench_effort(none, &c.systems[k], E2),
                   known = bench_effort(constrained, &c.systems[k], E2);
            ratio[count++] = known / plain;
            if (!b->json)
                printf(
                    "    %-22s %g iterations, %g without a preconditioner (%d of %d particles constrained)\n",
                    c.name, known, plain, c.systems[k].constraints.count, c.sim->model->particle_count);
        }
        bench_solver_free(none);
        bench_solver_free(constrained);
    }
    bench_free_case(&c);
    put(b, KEY, count == BENCH_SYSTEMS ? bench_median(ratio, count) : NAN);
}

/* ---- whole runs ---- */

/* CPU time with adaptive implicit-explicit steps over all implicit, on the thesis' random cloths where
 * stretch and shear stay implicit (Table 4.1: 0.83). */
static void bench_aimex(board *b) {
    static const char KEY[] = "aimex_over_implicit_time";
    if (wanted(b, KEY))
        put(b, KEY, experiment_aimex_time(AIMEX_SETS, AIMEX_SECONDS));
}

static void bench_others(board *b, const char *blender_script, const char *bullet_source) {
    static const struct {
        const char *key;
        int n, frames; /* Blender needs seconds for a frame of the largest */
    } BLENDER[] = {{"two_corners_6561_over_blender", 81, 24}, {"two_corners_25921_over_blender", 161, 10}};
    for (int i = 0; i < 2; i++) {
        double ours = NAN, theirs = NAN;
        if (!wanted(b, BLENDER[i].key))
            continue;
        bool ok = bench_blender(blender_script, BLENDER[i].n, BLENDER[i].frames, &ours, &theirs);
        put(b, BLENDER[i].key, ok ? ours / theirs : NAN);
    }
    double ours, theirs, our_stretch, their_stretch;
    if (!wanted(b, "bullet_6561_sphere"))
        return;
    bool ok = bench_bullet(bullet_source, 81, 24, &ours, &theirs, &our_stretch, &their_stretch);
    put(b, "bullet_6561_sphere", ok ? ours / theirs : NAN);
    if (ok)
        json_array_append_new(b->cases,
                              json_pack("{s:s,s:f,s:f,s:f,s:f}", "case", "bullet_6561_sphere",
                                        "seconds_per_frame", ours, "bullet_seconds_per_frame", theirs,
                                        "stretch", our_stretch, "bullet_stretch", their_stretch));
}

/* ---- the whole ---- */

/* OpenBLAS of Debian 12 takes processors younger than itself for a Pentium 4 and then makes CHOLMOD 1.7 times
 * slower. It can be told better only before it starts: so the program starts itself again. */
void bench_wake_blas(void) {
    char *(*core)(void);
    *(void **)&core = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    if (!core || getenv("OPENBLAS_CORETYPE") || strcmp(core(), "Prescott") != 0 ||
        !__builtin_cpu_supports("avx2"))
        return;
    char line[8192], *arguments[128];
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t length = file ? fread(line, 1, sizeof line - 1, file) : 0;
    int count = 0;
    if (file)
        fclose(file);
    line[length] = 0;
    for (size_t at = 0; at < length && count < 127; at += strlen(line + at) + 1)
        arguments[count++] = line + at;
    arguments[count] = NULL;
    setenv("OPENBLAS_CORETYPE", __builtin_cpu_supports("avx512vl") ? "SkylakeX" : "Haswell", 1);
    if (count)
        execv("/proc/self/exe", arguments);
}

int bench_solvers(const char *only, bool json, const char *blender_script, const char *bullet_source) {
    bench_wake_blas();
    board b = {only, json, json_object(), json_array(), json_array()};
    if (!b.ratios || !b.cases || !b.missing)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the results");
    bench_grids(&b);
    bench_triangles(&b);
    bench_order(&b);
    bench_decomposition(&b);
    bench_preconditioner(&b);
    bench_aimex(&b);
    bench_others(&b, blender_script, bullet_source);
    bool complete = json_array_size(b.missing) == 0;
    if (!complete)
        fprintf(stderr, "toile bench solvers: %zu keys are missing, see \"missing\"\n",
                json_array_size(b.missing));
    json_object_set_new(b.ratios, "cases", b.cases);
    json_object_set_new(b.ratios, "missing", b.missing);
    if (json)
        return toile_print_json(b.ratios);
    json_decref(b.ratios);
    return 0;
}
