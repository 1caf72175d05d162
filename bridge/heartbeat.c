#include "heartbeat.h"

#include "progress.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The thread looks this often whether a signal has come, which adds to the grace. */
#define LOOK_SECONDS 0.1

/* ---- the file ---- */

static json_t *describe(const toile_heartbeat *h, const char *state, const char *message) {
    char host[128] = "", updated[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "unknown");
    if (gmtime_r(&now, &parts))
        strftime(updated, sizeof updated, "%Y-%m-%dT%H:%M:%SZ", &parts);
    int frames = h->def.last - h->def.first + 1, done = h->frame - h->def.first + 1;
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "state", state, "updated", updated,
                  "file", h->def.file, "host", host, "process", (int)getpid(), "first", h->def.first, "last",
                  h->def.last, "frame", h->frame, "done", done, "frames", frames);
    json_object_set_new(object, "percent", json_real(frames > 0 ? 100.0 * done / frames : 100));
    json_object_set_new(object, "elapsed", json_real(toile_now() - h->started));
    json_object_set_new(object, "in_frame", json_real(toile_now() - h->frame_began));
    json_object_set_new(object, "eta", json_real(h->seconds_per_frame * (h->def.last - h->frame)));
    json_object_set_new(object, "message", json_string(message));
    return object;
}

/* Written beside and renamed: a reader never sees half of it. */
static bool write_file(const char *path, json_t *object) {
    char temporary[4096];
    if (!object ||
        snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof temporary)
        return false;
    FILE *file = fopen(temporary, "w");
    bool written = file && json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0 &&
                   fputc('\n', file) != EOF;
    written = file && fclose(file) == 0 && written && rename(temporary, path) == 0;
    if (!written && file)
        unlink(temporary);
    return written;
}

/* With the mutex held, which is let go while the disk is waited for. A file that cannot be written harms no
 * bake. */
static void beat(toile_heartbeat *h, const char *state, const char *message) {
    if (!h->path)
        return;
    json_t *object = describe(h, state, message);
    pthread_mutex_unlock(&h->mutex);
    write_file(h->path, object);
    json_decref(object);
    pthread_mutex_lock(&h->mutex);
}

/* ---- the thread ---- */

static void wait_until(toile_heartbeat *h, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long nanoseconds = until.tv_nsec + (long)(1e9 * seconds);
    until.tv_sec += nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_cond_timedwait(&h->wake, &h->mutex, &until);
}

static void *run(void *user) {
    toile_heartbeat *h = user;
    double beaten = 0;
    pthread_mutex_lock(&h->mutex);
    while (!h->closing) {
        double now = toile_now();
        if (*h->def.stops > 0 && h->stopped == 0)
            h->stopped = now;
        if (h->stopped > 0 && h->def.grace >= 0 && now - h->stopped >= h->def.grace)
            toile_cancel(h->def.world, true);
        if (h->path && now - beaten >= TOILE_BEAT_SECONDS) {
            beaten = now;
            beat(h, h->stopped > 0 ? "stopping" : "running", "");
        } else {
            wait_until(h, LOOK_SECONDS);
        }
    }
    pthread_mutex_unlock(&h->mutex);
    return NULL;
}

/* ---- interface ---- */

toile_status toile_heartbeat_start(toile_heartbeat *h, const toile_heartbeat_def *def, toile_error *error) {
    double now = toile_now();
    *h = (toile_heartbeat){.def = *def, .frame = def->first - 1, .started = now, .frame_began = now};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&h->mutex, NULL);
    pthread_cond_init(&h->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    /* Signals are for the thread that simulates: this one would only delay them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&h->thread, NULL, run, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        pthread_cond_destroy(&h->wake);
        pthread_mutex_destroy(&h->mutex);
        return toile_fail(error, TOILE_NO_MEMORY, "a thread for the heartbeat cannot be started: %s",
                          strerror(failed));
    }
    h->running = true;
    return TOILE_OK;
}

void toile_heartbeat_show(toile_heartbeat *h, const char *path, int frame) {
    if (!h->running)
        return;
    pthread_mutex_lock(&h->mutex);
    h->path = path;
    h->frame = frame;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->mutex);
}

void toile_heartbeat_frame(toile_heartbeat *h, int frame) {
    if (!h->running)
        return;
    pthread_mutex_lock(&h->mutex);
    double now = toile_now(), seconds = now - h->frame_began;
    h->seconds_per_frame = h->seconds_per_frame == 0 ? seconds : 0.85 * h->seconds_per_frame + 0.15 * seconds;
    h->frame_began = now;
    h->frame = frame;
    pthread_mutex_unlock(&h->mutex);
}

void toile_heartbeat_end(toile_heartbeat *h, const char *state, const char *message) {
    if (!h->running)
        return;
    pthread_mutex_lock(&h->mutex);
    h->closing = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->mutex);
    pthread_join(h->thread, NULL);
    pthread_mutex_lock(&h->mutex);
    beat(h, state, message);
    pthread_mutex_unlock(&h->mutex);
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->mutex);
    h->running = false;
}
