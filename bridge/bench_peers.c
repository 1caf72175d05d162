/* Other programs on the same scenes. They are run as programs; where one is missing, stderr says so and there
 * is no figure. */
#include "bench.h"

#include "commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double process_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* CPU seconds per frame of our cloth on one thread. */
static bool run_ours(const char *scene, int n, int frames, double *seconds, double *stretch) {
    toile_world *w;
    toile_statistics statistics;
    if (bench_make_sheet(scene, "continuum", n, 1, &w) != TOILE_OK)
        return false;
    double begin = process_cpu();
    bool ok = true;
    for (int f = 0; ok && f < frames; f++)
        ok = toile_advance(w, 1.0 / 24) >= 0;
    *seconds = (process_cpu() - begin) / frames;
    toile_get_statistics(w, true, &statistics);
    *stretch = statistics.max_stretch;
    toile_destroy(w);
    return ok;
}

/* The last line of JSON that a command prints; null if there is none. */
static json_t *run_for_json(const char *command) {
    char *line = NULL;
    size_t size = 0;
    json_t *last = NULL;
    FILE *pipe = popen(command, "r");
    while (pipe && getline(&line, &size, pipe) > 0) {
        json_t *record = line[0] == '{' ? json_loads(line, 0, NULL) : NULL;
        if (record) {
            json_decref(last);
            last = record;
        }
    }
    if (pipe)
        pclose(pipe);
    free(line);
    return last;
}

static double number_of(const json_t *record, const char *key) {
    json_t *value = record ? json_object_get(record, key) : NULL;
    return json_is_number(value) ? json_number_value(value) : NAN;
}

bool bench_blender(const char *script, int n, int frames, double *ours, double *theirs) {
    char command[2048];
    double stretch;
    if (access(script, R_OK) != 0 || system("command -v blender >/dev/null 2>&1") != 0) {
        fprintf(stderr, "toile bench: NOT COMPARED WITH BLENDER: %s\n",
                access(script, R_OK) != 0 ? "its script is not there; --blender-script names it"
                                          : "the program blender is not installed (Debian: blender)");
        return false;
    }
    snprintf(command, sizeof command,
             "OMP_NUM_THREADS=1 blender -b -t 1 --factory-startup --python-exit-code 1 --python '%s' -- "
             "--scene pinned "
             "--res %d --frames %d --mass areal --dist 0.004 2>/dev/null",
             script, n, frames);
    json_t *record = run_for_json(command);
    *theirs = number_of(record, "cpu_ms_per_frame") / 1e3;
    json_decref(record);
    if (!isfinite(*theirs)) {
        fprintf(stderr, "toile bench: NOT COMPARED WITH BLENDER: its script gave no figure for %d x %d\n", n,
                n);
        return false;
    }
    return run_ours("pinned", n, frames, ours, &stretch);
}

bool bench_bullet(const char *source, int n, int frames, double *ours, double *theirs, double *our_stretch,
                  double *their_stretch) {
    char command[2048], program[64];
    if (access(source, R_OK) != 0 ||
        system("pkg-config --exists bullet && command -v g++ >/dev/null 2>&1") != 0) {
        fprintf(stderr, "toile bench: NOT COMPARED WITH BULLET: %s\n",
                access(source, R_OK) != 0 ? "its program's source is not there; --bullet-source names it"
                                          : "it is not installed (Debian: libbullet-dev, g++)");
        return false;
    }
    snprintf(program, sizeof program, "/tmp/toile_bullet_XXXXXX");
    int file = mkstemp(program);
    if (file < 0)
        return false;
    close(file);
    snprintf(command, sizeof command,
             "g++ -O3 -march=native -w -o '%s' '%s' $(pkg-config --cflags --libs bullet) >&2", program,
             source);
    bool ok = system(command) == 0;
    if (!ok)
        fprintf(stderr, "toile bench: NOT COMPARED WITH BULLET: its program does not compile\n");
    snprintf(command, sizeof command, "'%s' %d %d", program, n, frames);
    json_t *record = ok ? run_for_json(command) : NULL;
    unlink(program);
    *theirs = number_of(record, "cpu_ms_per_frame") / 1e3;
    *their_stretch = number_of(record, "stretch_final");
    json_decref(record);
    return ok && isfinite(*theirs) && run_ours("sphere", n, frames, ours, our_stretch);
}
