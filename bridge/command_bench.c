/* toile bench step: what a step costs here, beside what the machine could do and beside Blender's own cloth.
 *
 * Every figure is the fastest of several turns, and figures that are compared are measured in turn in one run: other
 * programs can only make a turn slower. Blender runs its cloth in a process of its own, from a script that the caller
 * names; without Blender or the script that part says so. */
#include "bench.h"
#include "commands.h"
#include "solve_linear.h"
#include "world.h"

#include <jansson.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURNS 7
#define DEFAULT_SCRIPT "tests/bench/blender_sheet.py"
#define BULLET_SOURCE "tests/bench/bullet_sheet.cpp"
#define FRAMES 60

static const int SIZES[] = {41, 81, 161};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

typedef struct bench {
    bool json;
    int threads, frames;
    const char *script;
    json_t *result;
    double read_1, read_all; /* bytes/s, by one thread and by all */
} bench;

/* ---- scenes: the sheets of the Blender benchmark, cotton, 1 m ---- */

toile_status bench_make_sheet(const char *scene, const char *model, int n, int threads, toile_world **out) {
    toile_world *w = NULL;
    char number[16];
    int fabric, sheet, pins[4096], count = 0;
    bool vertical = strcmp(scene, "ball") == 0;
    toile_grid grid = {.name = "sheet", .nu = n, .nv = n, .origin = {-0.5, -0.5, 0.345}, .u_axis = {1, 0, 0},
                       .v_axis = {0, 1, 0}};
    if (vertical) {
        memcpy(grid.origin, (double[]){-0.5, 0, -0.5}, sizeof grid.origin);
        memcpy(grid.v_axis, (double[]){0, 0, 1}, sizeof grid.v_axis);
    }
    snprintf(number, sizeof number, "%d", threads);
    toile_status status = toile_create(NULL, &w);
    if (status != TOILE_OK)
        return status;
    if ((status = toile_set(w, "cloth_model", model)) != TOILE_OK || (status = toile_set(w, "threads", number)) != TOILE_OK ||
        (status = toile_set(w, "self_collision", "off")) != TOILE_OK || /* as the peer */
        (status = toile_add_fabric(w, "cotton", &fabric)) != TOILE_OK)
        goto fail;
    grid.fabric = fabric;
    if ((status = toile_add_grid(w, &grid, &sheet)) != TOILE_OK)
        goto fail;
    if (strcmp(scene, "sphere") != 0) { /* two corners, held over 2 cm */
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                double u = (double)i / (n - 1), v = (double)(n - 1 - j) / (n - 1);
                if (count < 4096 && (hypot(u, v) <= 0.0201 || hypot(1 - u, v) <= 0.0201))
                    pins[count++] = i + j * n;
            }
        toile_pin pin = {sheet, count, pins, {true, true, true}};
        if ((status = toile_add_pin(w, &pin, NULL)) != TOILE_OK)
            goto fail;
    }
    toile_collider ball = {.name = "ball", .shape = TOILE_SPHERE, .size = {vertical ? 0.15 : 0.3}, .friction_static = 0.3,
                           .friction_kinetic = 0.3};
    if (vertical)
        memcpy(ball.position, (double[]){0, -1, -0.1}, sizeof ball.position);
    if (strcmp(scene, "pinned") != 0 && (status = toile_add_collider(w, &ball, NULL)) != TOILE_OK)
        goto fail;
    if ((status = toile_build(w)) != TOILE_OK)
        goto fail;
    *out = w;
    return TOILE_OK;
fail:
    toile_complain(TOILE_EXIT_FAILED, "%s", toile_message(w));
    toile_destroy(w);
    return status;
}

/* Frames of a scene; the ball of `ball` flies through the sheet at 3 m/s. Returns seconds. */
static double run_sheet(toile_world *w, const char *scene, int frames, toile_statistics *statistics) {
    double begin = toile_clock(), no_turn[4] = {1, 0, 0, 0};
    for (int f = 1; f <= frames; f++) {
        double at[3] = {0, -1 + 3.0 * f / 24, -0.1};
        if (strcmp(scene, "ball") == 0)
            toile_pose_collider(w, 0, at, no_turn);
        if (toile_advance(w, 1.0 / 24) < 0)
            return NAN;
    }
    double seconds = toile_clock() - begin;
    toile_get_statistics(w, true, statistics);
    return seconds;
}

/* ---- what the machine can do ---- */

static double read_bandwidth(int threads) {
    size_t count = (size_t)32 << 20; /* 256 MB: beyond any cache */
    double *data = malloc(count * sizeof *data), best = 0, sink = 0;
    if (!data)
        return NAN;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t i = 0; i < count; i++)
        data[i] = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        double begin = toile_clock();
#pragma omp parallel num_threads(threads) reduction(+ : sink)
        {
            size_t from = count / (size_t)omp_get_num_threads() * (size_t)omp_get_thread_num();
            size_t to = from + count / (size_t)omp_get_num_threads();
            double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
            for (size_t i = from; i + 8 <= to; i += 8) {
                s0 += data[i], s1 += data[i + 1], s2 += data[i + 2], s3 += data[i + 3];
                s4 += data[i + 4], s5 += data[i + 5], s6 += data[i + 6], s7 += data[i + 7];
            }
            sink += s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
        }
        best = fmax(best, (double)(count * sizeof *data) / (toile_clock() - begin));
    }
    free(data);
    return sink > 0 ? best : NAN;
}

/* ---- parts of a step ---- */

static void measure_parts(bench *b, const char *model, int n) {
    toile_world *w;
    if (bench_make_sheet("pinned", model, n, b->threads, &w) != TOILE_OK)
        return;
    for (int f = 0; f < 6; f++) /* into the fall, so that nothing is at rest */
        toile_advance(w, 1.0 / 24);
    toile_sim *sim = toile_world_sim(w);
    const toile_model *m = sim->model;
    const toile_kernels *k = sim->kernels;
    toile_work *work = &sim->work;
    toile_assembly assembly = {m, 1.0 / 120, work->triangle, work->hinge, work->spring, work->force, work->drag, NULL, false};
    toile_evaluation at = {.model = m, .x = sim->state.x, .v = sim->state.v, .d = work->ahead, .h = 1.0 / 120, .turn = 1.0 / 120};
    double fast[5] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
    for (int turn = 0; turn < 3 * TURNS; turn++) {
        double t[6];
        t[0] = toile_clock();
        if (m->springs_used) {
            k->springs(&at, 0, m->springs.padded, work->spring);
            t[1] = t[2] = toile_clock();
        } else {
            k->triangles(&at, 0, m->triangles.padded, work->triangle);
            t[1] = toile_clock();
            k->hinges(&at, 0, m->hinges.padded, work->bend, work->hinge);
            for (int pass = 0; pass < m->hinges.passes; pass++)
                k->moments(m, pass, 0, m->hinges.padded, work->bend, work->hinge);
            t[2] = toile_clock();
        }
        for (int c = 0; c < m->pattern.chunk_count; c++)
            k->assemble(&assembly, c, &work->matrix, work->b);
        t[3] = toile_clock();
        toile_multiply(k, &work->matrix, sim->state.v, work->s, 1);
        t[4] = toile_clock();
        toile_multiply(k, &work->matrix, sim->state.v, work->s, b->threads);
        t[5] = toile_clock();
        for (int i = 0; i < 5; i++)
            fast[i] = fmin(fast[i], t[i + 1] - t[i]);
    }
    const toile_pattern *p = &m->pattern;
    double bytes = 72.0 * p->off_count + 96.0 * p->n + 4.0 * p->off_count + 3 * 32.0 * p->n;
    json_t *row = json_pack("{s:s,s:i,s:s,s:f,s:f,s:f,s:f,s:f}", "model", model, "sheet", n, "kernels", k->name,
                            "assemble_ns_per_triangle", 1e9 * fast[2] / m->triangles.count, "product_mb", bytes / 1e6,
                            "product_gb_per_s_1", bytes / fast[3] / 1e9, "product_gb_per_s_all", bytes / fast[4] / 1e9,
                            "product_share_of_bandwidth", bytes / fast[3] / b->read_1);
    if (m->springs_used) {
        json_object_set_new(row, "evaluate_ns_per_spring",
                            json_real(1e9 * fast[0] / (m->springs.axial_count + m->springs.bend_count)));
    } else {
        json_object_set_new(row, "evaluate_ns_per_triangle", json_real(1e9 * fast[0] / m->triangles.count));
        json_object_set_new(row, "evaluate_ns_per_hinge", json_real(1e9 * fast[1] / m->hinges.count));
    }
    json_array_append_new(json_object_get(b->result, "parts"), row);
    if (!b->json) {
        if (m->springs_used)
            printf("  springs   %3d x %3d  evaluate %5.1f ns/spring                    ", n, n,
                   1e9 * fast[0] / (m->springs.axial_count + m->springs.bend_count));
        else
            printf("  continuum %3d x %3d  evaluate %5.1f ns/triangle, %5.1f ns/hinge  ", n, n,
                   1e9 * fast[0] / m->triangles.count, 1e9 * fast[1] / m->hinges.count);
        printf("assemble %6.1f ns/triangle  product %6.2f MB at %5.1f GB/s (%.1f on %d threads), %.2f of the bandwidth\n",
               1e9 * fast[2] / m->triangles.count, bytes / 1e6, bytes / fast[3] / 1e9, bytes / fast[4] / 1e9, b->threads,
               bytes / fast[3] / b->read_1);
    }
    toile_destroy(w);
}

/* ---- whole frames, beside Blender ---- */

/* CPU seconds per frame of Blender's cloth on the same sheet, one thread; NaN if it cannot be had. */
static double run_blender(const bench *b, const char *scene, int n, int frames) {
    char command[2048], line[65536];
    snprintf(command, sizeof command,
             "OMP_NUM_THREADS=1 blender -b -t 1 --factory-startup --python-exit-code 1 --python '%s' -- --scene %s --res %d "
             "--frames %d --mass areal --dist 0.004 2>/dev/null",
             b->script, scene, n, frames);
    FILE *pipe = popen(command, "r");
    double milliseconds = NAN;
    while (pipe && fgets(line, sizeof line, pipe)) {
        json_t *record = line[0] == '{' ? json_loads(line, 0, NULL) : NULL;
        json_t *value = record ? json_object_get(record, "cpu_ms_per_frame") : NULL;
        if (json_is_number(value))
            milliseconds = json_number_value(value);
        json_decref(record);
    }
    if (pipe)
        pclose(pipe);
    return milliseconds / 1e3;
}

static bool have_blender(const bench *b) {
    return access(b->script, R_OK) == 0 && system("command -v blender >/dev/null 2>&1") == 0;
}

static void measure_frames(bench *b, const char *scene, int n, bool blender) {
    static const char *const MODELS[] = {"continuum", "springs"};
    /* Blender needs minutes for the largest sheet: fewer frames there, the same for both */
    int frames = b->frames ? b->frames : n > 100 ? FRAMES / 4 : FRAMES;
    double theirs = blender ? run_blender(b, scene, n, frames) : NAN;
    for (int k = 0; k < 2; k++) {
        double seconds[2];
        toile_statistics s[2];
        for (int all = 0; all < 2; all++) {
            toile_world *w;
            if (bench_make_sheet(scene, MODELS[k], n, all ? b->threads : 1, &w) != TOILE_OK)
                return;
            seconds[all] = run_sheet(w, scene, frames, &s[all]) / frames;
            toile_destroy(w);
        }
        json_t *row = json_pack("{s:s,s:s,s:i,s:i,s:f,s:f,s:f,s:f,s:f}", "scene", scene, "model", MODELS[k], "sheet", n,
                                "frames", frames, "seconds_per_frame_1", seconds[0], "seconds_per_frame_all", seconds[1],
                                "max_stretch", s[0].max_stretch, "steps_per_frame", (double)s[0].steps / frames,
                                "iterations_per_step", (double)s[0].iterations / (double)(s[0].steps + s[0].rejected_steps));
        if (isfinite(theirs)) {
            json_object_set_new(row, "blender_cpu_seconds_per_frame", json_real(theirs));
            json_object_set_new(row, "ratio_to_blender_1", json_real(seconds[0] / theirs));
        }
        json_array_append_new(json_object_get(b->result, "frames"), row);
        if (!b->json) {
            printf("  %-7s %-9s %3d x %3d  %8.4f s/frame, %8.4f on %d threads, stretch %5.3f", scene, MODELS[k], n, n,
                   seconds[0], seconds[1], b->threads, s[0].max_stretch);
            if (isfinite(theirs))
                printf("   Blender %8.4f: ratio %.2f", theirs, seconds[0] / theirs);
            printf("\n");
            fflush(stdout);
        }
    }
}

static int bench_step(bench *b, int largest) {
    bool blender = have_blender(b);
    b->result = json_pack("{s:i,s:[],s:[]}", "threads", b->threads, "parts", "frames");
    if (!b->result)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the results");
    b->read_1 = read_bandwidth(1);
    b->read_all = read_bandwidth(b->threads);
    json_object_set_new(b->result, "read_gb_per_s_1", json_real(b->read_1 / 1e9));
    json_object_set_new(b->result, "read_gb_per_s_all", json_real(b->read_all / 1e9));
    if (!b->json)
        printf("memory: %.1f GB/s read by one thread, %.1f by %d\nparts of a step, one thread:\n", b->read_1 / 1e9,
               b->read_all / 1e9, b->threads);
    for (int i = 0; i < SIZE_COUNT; i++)
        for (int k = 0; k < 2 && SIZES[i] <= largest; k++)
            measure_parts(b, k ? "springs" : "continuum", SIZES[i]);
    json_object_set_new(b->result, "blender", json_boolean(blender));
    if (!b->json) {
        printf("seconds per frame at 24 fps, cotton, 1 m sheet:\n");
        if (!blender)
            printf("  (Blender is not compared: %s; --blender-script names the script)\n",
                   access(b->script, R_OK) == 0 ? "the program blender is not installed" : "its benchmark script is not here");
    }
    static const char *const SCENES[] = {"pinned", "sphere", "ball"};
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < SIZE_COUNT && SIZES[i] <= largest; i++)
            measure_frames(b, SCENES[s], SIZES[i], blender);
    if (b->json)
        return toile_print_json(b->result);
    json_decref(b->result);
    return 0;
}

int toile_command_bench(int argc, char **argv) {
    const char *queries = NULL, *kind = NULL;
    bench b = {.threads = omp_get_num_procs(), .script = DEFAULT_SCRIPT};
    int largest = SIZES[SIZE_COUNT - 1];
    const char *only = NULL, *bullet = BULLET_SOURCE;
    toile_option options[] = {
        {"--json", NULL, TOILE_OPTION_FLAG, &b.json, NULL, "print the results as JSON", NULL},
        {"--threads", NULL, TOILE_OPTION_WHOLE, &b.threads, "N", "threads of the second measurement", NULL},
        {"--frames", NULL, TOILE_OPTION_WHOLE, &b.frames, "N", "frames of each run (60; 15 of the largest sheet)", NULL},
        {"--largest", NULL, TOILE_OPTION_WHOLE, &largest, "N", "leave out sheets of more than N x N particles", NULL},
        {"--blender-script", NULL, TOILE_OPTION_TEXT, &b.script, "FILE", "script that measures Blender's cloth", NULL},
        {"--only", NULL, TOILE_OPTION_TEXT, &only, "TEXT", "solvers: keys that contain this", NULL},
        {"--bullet-source", NULL, TOILE_OPTION_TEXT, &bullet, "FILE", "program that measures Bullet's cloth", NULL},
        {"--queries", NULL, TOILE_OPTION_TEXT, &queries, "FILE.f64", "ccd: collision queries with their answers", NULL},
        {"--kind", NULL, TOILE_OPTION_TEXT, &kind, "vf|ee", "ccd: vertex against face, or edge against edge", NULL}};
    static const char *const operands[] = {"NAME"};
    const char *given[1] = {"step"};
    toile_syntax syntax = {"toile bench step|solvers [--json] [--threads N] [--largest N] [--only TEXT]\n"
                           "       toile bench ccd --queries FILE.f64 --kind vf|ee [--json]",
                           "step: the parts of a step and whole frames, beside the machine's memory bandwidth and Blender;\n"
                           "solvers: the linear solvers beside each other, as ratios;\n"
                           "ccd: collision queries against their known answers",
                           options, sizeof options / sizeof *options, operands, 1};
    int exit_code;
    if (!toile_parse_options(&syntax, argc, argv, given, &exit_code))
        return exit_code;
    if (strcmp(given[0], "solvers") == 0)
        return bench_solvers(only, b.json, b.script, bullet);
    if (strcmp(given[0], "ccd") == 0)
        return toile_bench_ccd(queries, kind, b.json);
    if (strcmp(given[0], "step") != 0)
        return toile_complain(TOILE_EXIT_USAGE, "there is no benchmark \"%s\"; there are: step, solvers, ccd", given[0]);
    if (b.threads < 1)
        b.threads = 1;
    return bench_step(&b, largest);
}
