/* Figures that depend on the machine, and so are no test: what writing and reading a cache cost.
 *
 *   measure_cache write FILE [VERTICES FRAMES]   a cache of a waving sheet, for the others
 *   measure_cache read FILE                      frames per second of positions, from page cache after one
 * pass measure_cache bake SCENE.json FILE [TIMES]   a bake with and without its cache, in turns; median of
 * the ratio
 *
 * Time is the processor time of the thread that simulates, and of the clock beside it. */
#include "bake.h"
#include "cache.h"
#include "scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const toile_error *error) {
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

static int write_sheet(const char *path, int vertices, int frames) {
    int side = (int)sqrt(vertices), n = side * side, t = 2 * (side - 1) * (side - 1);
    float *rest = calloc((size_t)n, 12), *x = calloc((size_t)n, 12), *v = calloc((size_t)n, 12),
          *uv = calloc((size_t)t, 24);
    int *triangles = calloc((size_t)t, 12), *panels = calloc((size_t)t, 4), at = 0;
    for (int i = 0; i < n; i++) {
        rest[3 * i] = (float)(i % side) / (float)side;
        rest[3 * i + 1] = (float)(i / side) / (float)side;
    }
    for (int j = 0; j + 1 < side; j++)
        for (int i = 0; i + 1 < side; i++) {
            int p = j * side + i, corners[6] = {p, p + 1, p + side, p + 1, p + side + 1, p + side};
            memcpy(triangles + at, corners, sizeof corners);
            at += 6;
        }
    for (int c = 0; c < 3 * t; c++)
        memcpy(uv + 2 * c, rest + 3 * triangles[c], 8);
    const toile_garment_view sheet = {
        "sheet", n, t, 1, rest, triangles, panels, uv, (const char *const[]){"sheet"}};
    const toile_cache_header header = {.scene_name = "sheet",
                                       .settings_json = "{}",
                                       .library_version = "0",
                                       .fps = 24,
                                       .first_frame = 1,
                                       .last_frame = frames,
                                       .garment_count = 1,
                                       .garments = &sheet};
    toile_memory memory;
    toile_error error;
    toile_cache *cache = NULL;
    toile_memory_init(&memory, NULL);
    if (toile_cache_create(&memory, path, &header, &cache, &error) < 0)
        return fail(&error);
    double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int f = 0; f < frames; f++) {
        for (int i = 0; i < n; i++) {
            double phase =
                9 * (double)rest[3 * i] + 0.2 * f + 5 * sin(3 * (double)rest[3 * i + 1] + 0.01 * f);
            x[3 * i] = rest[3 * i] + (float)(0.01 * cos(phase));
            x[3 * i + 1] = rest[3 * i + 1] + (float)(0.003 * sin(7 * phase));
            x[3 * i + 2] = (float)(0.1 * sin(phase));
            v[3 * i] = (float)(-0.05 * sin(phase));
            v[3 * i + 1] = (float)(0.1 * cos(7 * phase));
            v[3 * i + 2] = (float)(0.48 * cos(phase));
        }
        const toile_frame_view view = {.frame = 1 + f,
                                       .time = f / 24.0,
                                       .state_hash = 1,
                                       .positions = (const float *const[]){x},
                                       .velocities = (const float *const[]){v}};
        if (toile_cache_append(cache, &view, &error) < 0)
            return fail(&error);
    }
    if (toile_cache_close(cache, &error) < 0)
        return fail(&error);
    printf("%d vertices: written at %.1f frames/s (clock), %.1f (processor)\n", n,
           frames / (seconds(CLOCK_MONOTONIC) - began), frames / (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu));
    free(rest), free(x), free(v), free(uv), free(triangles), free(panels);
    return 0;
}

static int read_all(const char *path) {
    toile_memory memory;
    toile_error error;
    toile_cache *cache = NULL;
    toile_memory_init(&memory, NULL);
    if (toile_cache_open(&memory, path, &cache, &error) < 0)
        return fail(&error);
    const toile_cache_header *header = toile_cache_get_header(cache);
    float *x = malloc((size_t)header->garments[0].vertex_count * 12),
          *v = malloc((size_t)header->garments[0].vertex_count * 12);
    int frames = toile_cache_frame_count(cache);
    for (int pass = 0; pass < 3; pass++) {
        double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int f = 0; f < frames; f++)
            if (toile_cache_read(cache, f, 0, x, pass == 2 ? v : NULL, &error) < 0)
                return fail(&error);
        printf("%s: %.0f frames/s (clock), %.0f (processor)\n",
               pass == 2 ? "positions and velocities" : "positions",
               frames / (seconds(CLOCK_MONOTONIC) - began),
               frames / (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu));
    }
    free(x), free(v);
    toile_cache_close(cache, NULL);
    return 0;
}

/* The same frames, without a cache. */
static int simulate(const char *path) {
    toile_scene *scene = NULL;
    toile_error error;
    toile_statistics told; /* a bake without a cache would tell of its frames, too */
    if (toile_scene_load(NULL, path, NULL, 0, &scene, &error) < 0)
        return fail(&error);
    toile_world *world = toile_scene_world(scene);
    int first = toile_scene_first_frame(scene);
    if (toile_scene_prepare(scene, first, &error) < 0 || toile_place_inputs(world) < 0)
        return fail(&error);
    for (int f = first + 1; f <= toile_scene_last_frame(scene); f++)
        if (toile_scene_prepare(scene, f, &error) < 0 || toile_advance(world, 1 / toile_scene_fps(scene)) < 0 ||
            toile_get_statistics(world, false, &told) < 0)
            return 1;
    toile_scene_free(scene);
    return 0;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_bakes(const char *scene, const char *path, int times) {
    enum { MOST = 99 };
    double clock[MOST], cpu[MOST];
    times = times > MOST ? MOST : times;
    for (int i = 0; i < times; i++) {
        double c[3], p[3];
        const toile_bake_options options = {
            .scene_path = scene, .cache_path = path, .threads = -1, .progress = TOILE_PROGRESS_NONE};
        for (int k = 0; k < 3; k++) { /* without, with, without: a drift of the machine cancels out */
            double began = seconds(CLOCK_MONOTONIC), spent = seconds(CLOCK_THREAD_CPUTIME_ID);
            if (k == 1 ? toile_bake(&options) : simulate(scene))
                return 1;
            c[k] = seconds(CLOCK_MONOTONIC) - began;
            p[k] = seconds(CLOCK_THREAD_CPUTIME_ID) - spent;
        }
        clock[i] = 2 * c[1] / (c[0] + c[2]) - 1;
        cpu[i] = 2 * p[1] / (p[0] + p[2]) - 1;
        printf("%.2f s with, %.2f s without: %+.1f %% (clock), %+.1f %% (processor, simulating thread)\n",
               c[1], (c[0] + c[2]) / 2, 100 * clock[i], 100 * cpu[i]);
    }
    qsort(clock, (size_t)times, sizeof *clock, compare);
    qsort(cpu, (size_t)times, sizeof *cpu, compare);
    printf("median of %d: %+.2f %% (clock), %+.2f %% (processor)\n", times, 100 * clock[times / 2],
           100 * cpu[times / 2]);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "write") == 0)
        return write_sheet(argv[2], argc > 3 ? atoi(argv[3]) : 100000, argc > 4 ? atoi(argv[4]) : 240);
    if (argc > 2 && strcmp(argv[1], "read") == 0)
        return read_all(argv[2]);
    if (argc > 3 && strcmp(argv[1], "bake") == 0)
        return compare_bakes(argv[2], argv[3], argc > 4 ? atoi(argv[4]) : 5);
    fprintf(stderr, "measure_cache write FILE | read FILE | bake SCENE.json FILE\n");
    return 2;
}
