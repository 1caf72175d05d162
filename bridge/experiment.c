#include "experiment.h"

#include "bench.h"
#include "commands.h"
#include "progress.h"
#include "scene.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* ---- output ---- */

FILE *experiment_open(experiment *e, const char *suffix) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s%s", e->directory, e->name, suffix) >= (int)sizeof path) {
        toile_fail(&e->error, TOILE_INVALID, "the name of the folder is too long");
        return NULL;
    }
    FILE *file = fopen(path, "w");
    if (!file)
        toile_fail(&e->error, TOILE_IO, "%s cannot be written: %s. Choose another folder with -o", path,
                   strerror(errno));
    return file;
}

bool experiment_csv(experiment *e, const char *header) {
    e->csv = experiment_open(e, ".csv");
    if (e->csv) {
        fprintf(e->csv, "%s\n", header);
        fflush(e->csv);
    }
    return e->csv != NULL;
}

void experiment_row(experiment *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(e->csv, format, args);
    va_end(args);
    fputc('\n', e->csv);
    fflush(e->csv); /* what is done stays, whatever happens next */
}

void experiment_result(experiment *e, const char *what, const char *paper, const char *ours,
                       const char *note) {
    fprintf(e->table, "| %s | %s | %s | %s |\n", what, paper, ours, note);
    fflush(e->table);
    printf("  %-58s paper: %-28s ours: %-28s %s\n", what, paper, ours, note);
}

const char *experiment_text(const char *format, ...) {
    static char texts[8][256];
    static int next;
    char *text = texts[next++ % 8];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof texts[0], format, args);
    va_end(args);
    return text;
}

bool experiment_plot(experiment *e, const char *suffix, plot **panels, int count, int columns) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s%s.svg", e->directory, e->name, suffix);
    toile_status status = length < (int)sizeof path
                              ? plot_write(panels, count, columns, path, &e->error)
                              : toile_fail(&e->error, TOILE_INVALID, "the folder's name is too long");
    for (int i = 0; i < count; i++)
        plot_free(panels[i]);
    return status == TOILE_OK;
}

/* ---- sample scenes ---- */

toile_scene *experiment_scene(experiment *e, const char *name, const char *const *sets, int count) {
    char path[4096];
    toile_scene *scene = NULL;
    snprintf(path, sizeof path, "%s/%s.json", e->samples, name);
    if (access(path, R_OK) != 0) {
        toile_fail(&e->error, TOILE_IO,
                   "%s is not here: run it from the project's folder, or name the folder of its scenes with "
                   "--samples",
                   path);
        return NULL;
    }
    if (toile_scene_load(NULL, path, sets, count, &scene, &e->error) < 0)
        return NULL;
    if (toile_scene_prepare(scene, toile_scene_first_frame(scene), &e->error) >= 0 &&
        toile_place_inputs(toile_scene_world(scene)) >= 0)
        return scene;
    toile_scene_free(scene);
    return NULL;
}

experiment_cost experiment_run_scene(experiment *e, toile_scene *scene, int frames) {
    toile_world *w = toile_scene_world(scene);
    int first = toile_scene_first_frame(scene),
        last = frames ? first + frames : toile_scene_last_frame(scene);
    experiment_cost cost = {.sound = true, .particles = toile_world_sim(w)->model->particle_count};
    double begin = bench_cpu();
    for (int f = first + 1; cost.sound && f <= last && !experiment_stopping(e); f++) {
        toile_error error;
        cost.sound =
            toile_scene_prepare(scene, f, &error) >= 0 && toile_advance(w, 1 / toile_scene_fps(scene)) >= 0;
        cost.frames += cost.sound;
    }
    cost.cpu = bench_cpu() - begin;
    const toile_counters *c = &toile_world_sim(w)->total;
    cost.iterations = (double)c->iterations;
    cost.rows = (double)c->row_multiplies;
    cost.steps = (double)c->steps;
    cost.rejected = (double)c->rejected;
    cost.parts = c->solves ? (double)c->components / (double)c->solves : 0;
    cost.direct = c->solves ? (double)c->direct_solves / (double)c->solves : 0;
    return cost;
}

/* ---- progress ---- */

static volatile sig_atomic_t stop_asked;

static void on_stop(int number) {
    (void)number;
    if (stop_asked)
        _exit(128 + number); /* asked twice: now */
    stop_asked = 1;
}

void experiment_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool experiment_stopping(experiment *e) {
    e->stopped = e->stopped || stop_asked;
    return e->stopped;
}

bool experiment_tick(experiment *e, int done, int total) {
    double now = toile_now(), spent = now - e->began;
    bool terminal = isatty(STDERR_FILENO);
    if (now - e->said > (terminal ? 0.5 : 15) || (terminal && done == total)) {
        double left = done > 0 ? spent / done * (total - done) : 0;
        fprintf(stderr, "%s%s: %d of %d, %.0f s so far, about %.0f s left%s", terminal ? "\r" : "", e->name,
                done, total, spent, left, terminal ? "   " : "\n");
        if (terminal && done == total)
            fputc('\n', stderr);
        e->said = now;
    }
    return !experiment_stopping(e);
}

/* ---- numbers ---- */

uint64_t experiment_random(uint64_t *seed) {
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double experiment_choose(uint64_t *seed, const double *values, int count) {
    return values[experiment_random(seed) % (uint64_t)count];
}

int experiment_sets(const experiment *e, int quick, int full) {
    return e->sets > 0 ? e->sets : e->quick ? quick : full;
}

int experiment_side(const experiment *e, uint64_t *seed, int first, int every, int last) {
    int most = e->largest > 0 && e->largest < last ? e->largest : last;
    int choices = most > first ? (most - first) / every + 1 : 1;
    return first + every * (int)(experiment_random(seed) % (uint64_t)choices);
}

double experiment_median(double *values, int count) {
    return bench_median(values, count);
}

double experiment_exponent(const double *x, const double *y, int count) {
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!(x[i] > 0 && y[i] > 0))
            continue;
        double u = log(x[i]), v = log(y[i]);
        sx += u, sy += v, sxx += u * u, sxy += u * v, n++;
    }
    double below = n * sxx - sx * sx;
    return n >= 2 && below > 1e-12 ? (n * sxy - sx * sy) / below : NAN;
}
