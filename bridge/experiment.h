/* Experiments of the papers: what they share. Each one is a function that runs, and leaves in a folder
 *
 *     NAME.csv   every measurement, a row as soon as it is made
 *     NAME.svg   a plot
 *     NAME.md    a short table: what the paper says beside what we measure
 *
 * An experiment asks experiment_tick after every piece of work; when that says stop (Ctrl-C), it makes table
 * and plot of what it has. A new experiment is one line in command_experiment.c. */
#ifndef TOILE_EXPERIMENT_H
#define TOILE_EXPERIMENT_H

#include "plot.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct experiment {
    const char *name;
    const char *directory;
    bool quick;          /* small sizes, few runs: for tests */
    int threads;         /* of what is not about threads */
    const char *samples; /* folder of the sample scenes */
    int sets;            /* parameter sets or cases asked for; 0: as many as the paper has */
    int largest;         /* particles along the side of a random sheet, at most; 0: as the paper has them */
    FILE *csv;
    FILE *table;
    double began, said; /* s, monotonic */
    bool stopped;
    toile_error error; /* the first failure */
} experiment;

typedef struct experiment_entry {
    const char *name, *source, *summary;
    /* False: it failed, with e->error filled. A stop is no failure. */
    bool (*run)(experiment *e);
} experiment_entry;

/* ---- output ---- */

/* Header line of NAME.csv; then rows, printf form, without line end. */
bool experiment_csv(experiment *e, const char *header);
void experiment_row(experiment *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A row of NAME.md; "-" for what the paper does not say. */
void experiment_result(experiment *e, const char *what, const char *paper, const char *ours,
                       const char *note);
/* A figure as text, for experiment_result: lives until the eighth call after it. */
const char *experiment_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes and frees the panels. `suffix` "" for NAME.svg, "_wire" for NAME_wire.svg. */
bool experiment_plot(experiment *e, const char *suffix, plot **panels, int count, int columns);
/* Opens another file of the folder for writing; null: e->error is filled. */
FILE *experiment_open(experiment *e, const char *suffix);

/* ---- sample scenes ---- */

/* A scene of the samples by name, with changes as for `toile bake --set`, placed at its first frame. Null:
 * e->error says why. */
struct toile_scene *experiment_scene(experiment *e, const char *name, const char *const *sets, int count);
/* What some frames cost. */
typedef struct experiment_cost {
    bool sound;
    int frames, particles;
    double cpu; /* s, of the calling thread */
    double iterations, rows, steps, rejected, parts;
    double direct; /* share of the systems that were solved directly */
} experiment_cost;
/* Advances the scene by so many frames (0: to its end), less if the user stops. */
experiment_cost experiment_run_scene(experiment *e, struct toile_scene *scene, int frames);

/* ---- progress ---- */

void experiment_catch_signals(void);
/* Part `done` of `total` is finished: says so on stderr now and then, with the time left. False: stop now. */
bool experiment_tick(experiment *e, int done, int total);
/* Whether the user wants to stop. */
bool experiment_stopping(experiment *e);

/* ---- numbers ---- */

/* The same numbers on every machine (SplitMix64). */
uint64_t experiment_random(uint64_t *seed);
/* One of `count` values. */
double experiment_choose(uint64_t *seed, const double *values, int count);
#define EXPERIMENT_CHOOSE(seed, ...)                                                                         \
    experiment_choose(seed, (const double[]){__VA_ARGS__},                                                   \
                      sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
/* How many parameter sets: what the user asks for, else one of these. */
int experiment_sets(const experiment *e, int quick, int full);
/* Particles along a side: one of first, first + every, ... last that --largest allows. */
int experiment_side(const experiment *e, uint64_t *seed, int first, int every, int last);
/* NaN of none; sorts them. */
double experiment_median(double *values, int count);
/* Slope of log y over log x by least squares: the exponent of a growth. NaN with fewer than two. */
double experiment_exponent(const double *x, const double *y, int count);

#endif
