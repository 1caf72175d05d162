/* A sign of life: a thread of its own that writes a small JSON file every few seconds, also while a frame is
 * long or a disk is slow, and that ends a frame which takes too long to finish after a signal. */
#ifndef TOILE_HEARTBEAT_H
#define TOILE_HEARTBEAT_H

#include "error.h"
#include "toile.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Seconds between two beats; whoever finds an older file may take the process for dead after a few of them.
 */
#define TOILE_BEAT_SECONDS 2.0

typedef struct toile_heartbeat_def {
    const char *file; /* what is being made, for the reader */
    int first, last;  /* frames planned */
    double grace;     /* s that a frame may go on after the first signal; below 0: as long as it takes */
    volatile const sig_atomic_t *stops; /* signals so far */
    toile_world *world;                 /* that is cancelled then */
} toile_heartbeat_def;

typedef struct toile_heartbeat {
    toile_heartbeat_def def;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool running, closing;
    const char *path;            /* of the file; null: none is written */
    int frame;                   /* last finished */
    double started, frame_began; /* s, monotonic */
    double stopped;              /* when a signal was first seen, or 0 */
    double seconds_per_frame;
} toile_heartbeat;

toile_status toile_heartbeat_start(toile_heartbeat *heartbeat, const toile_heartbeat_def *def,
                                   toile_error *error);
/* From now on the file is written, with frames up to `frame` done: the task has its place to itself. Null: no
 * file. */
void toile_heartbeat_show(toile_heartbeat *heartbeat, const char *path, int frame);
void toile_heartbeat_frame(toile_heartbeat *heartbeat, int frame);
/* Ends the thread and writes the file a last time. `state` is complete, stopped or failed. Fine if it never
 * started. */
void toile_heartbeat_end(toile_heartbeat *heartbeat, const char *state, const char *message);

#endif
