/* Writing beside the simulation. The bake copies a finished frame into a slot and goes on; a thread of its
 * own compresses, writes and syncs it. What has come together meanwhile is committed at once: one wait for
 * the disk, however many frames, so a disk that is slower than the simulation does not hold it up until all
 * slots are full.
 *
 * A checkpoint is written after the frames pushed before it are committed, so that it never names a frame
 * that the cache does not have. While nothing is to be done the thread shows others that the cache is still
 * being written. */
#include "cache.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOT_BYTES ((size_t)64 << 20) /* in all slots together, but */
enum { SLOTS_LEAST = 2, SLOTS_MOST = 16 };
#define BEAT_SECONDS 2
#define NICER 10

typedef struct slot {
    toile_cache_slot arrays;
    float *room; /* all of them */
    toile_frame_view view;
} slot;

struct toile_cache_writer {
    toile_memory *memory;
    toile_cache_writer_def def;
    char *path;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t pushed, done;
    /* From here on under the mutex, but slots and state while they belong to one side. */
    slot *slots;
    int slot_count;
    int first, waiting; /* slots in the queue: first, first + 1, ... modulo slot_count */
    void *state;
    bool state_waiting;           /* to be written, or being written */
    int state_frame, state_after; /* its frame, and how many frames of the queue come before it */
    int checkpoint;               /* frame of the newest on disk */
    bool busy, closing;
    double waited;
    toile_error error; /* of the first failure */
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- the thread ---- */

/* Frames first .. first + count - 1 of the queue, to disk together. */
static toile_status write_frames(toile_cache_writer *w, int first, int count, toile_error *error) {
    toile_status status = TOILE_OK;
    for (int i = 0; i < count && status == TOILE_OK; i++)
        status = toile_cache_stage(w->def.cache, &w->slots[(first + i) % w->slot_count].view, error);
    if (status == TOILE_OK)
        status = toile_cache_commit(w->def.cache, error);
    for (int i = 0; i < count && status == TOILE_OK && w->def.on_frame; i++)
        w->def.on_frame(w->def.user, w->slots[(first + i) % w->slot_count].view.frame);
    return status;
}

/* Waits for work, showing meanwhile that someone is there. */
static void wait_for_work(toile_cache_writer *w) {
    while (!w->closing && w->waiting == 0 && !w->state_waiting) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += BEAT_SECONDS;
        if (pthread_cond_timedwait(&w->pushed, &w->mutex, &until) != 0) {
            pthread_mutex_unlock(&w->mutex);
            toile_cache_beat(w->def.cache);
            toile_lock_beat(w->def.lock);
            pthread_mutex_lock(&w->mutex);
        }
    }
}

/* The simulation's threads wait for each other many times a step: each time this one takes a core from one of
 * them, all wait. It has as long as a frame takes and so gives way; when the queue is full the simulation waits
 * for it and it has a core anyway. */
static void give_way(void) {
    id_t self = (id_t)syscall(SYS_gettid);
    setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + NICER);
}

static void *run(void *user) {
    toile_cache_writer *w = user;
    give_way();
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        wait_for_work(w);
        if (w->waiting == 0 && !w->state_waiting)
            break; /* closing, and nothing left */
        bool state = w->state_waiting, failed = w->error.status < 0;
        int first = w->first, count = state ? w->state_after : w->waiting, frame = w->state_frame;
        w->busy = true;
        pthread_mutex_unlock(&w->mutex);

        toile_error error = {0};
        toile_status status = TOILE_OK;
        toile_lock_beat(w->def.lock);
        if (!failed) { /* else what is in the queue is thrown away */
            status = write_frames(w, first, count, &error);
            if (status == TOILE_OK && state)
                status = toile_checkpoint_write(w->path, w->def.fingerprint, frame, w->state,
                                                w->def.state_size, &error);
        }

        pthread_mutex_lock(&w->mutex);
        w->busy = false;
        w->first = (first + count) % w->slot_count;
        w->waiting -= count;
        if (!state && w->state_waiting) /* pushed meanwhile: these frames were among those before it */
            w->state_after -= count;
        if (state) {
            w->state_waiting = false;
            if (status == TOILE_OK && !failed)
                w->checkpoint = frame;
        }
        if (status < 0 && w->error.status >= 0)
            w->error = error;
        pthread_cond_broadcast(&w->done);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* ---- the bake's side ---- */

static toile_status make_slots(toile_cache_writer *w, toile_error *error) {
    const toile_cache_header *header = toile_cache_get_header(w->def.cache);
    size_t floats = 0, garments = (size_t)header->garment_count;
    for (size_t g = 0; g < garments; g++)
        floats += 6 * (size_t)header->garments[g].vertex_count;
    size_t fit = SLOT_BYTES / (floats * sizeof(float) + 1);
    w->slot_count = fit < SLOTS_LEAST ? SLOTS_LEAST : fit > SLOTS_MOST ? SLOTS_MOST : (int)fit;
    w->slots = toile_alloc(w->memory, (size_t)w->slot_count, sizeof *w->slots);
    for (int i = 0; w->slots && i < w->slot_count; i++) {
        slot *s = &w->slots[i];
        s->room = toile_alloc(w->memory, floats, sizeof(float));
        s->arrays.positions = toile_alloc(w->memory, garments, sizeof(float *));
        s->arrays.velocities = toile_alloc(w->memory, garments, sizeof(float *));
        if (!s->room || !s->arrays.positions || !s->arrays.velocities)
            return toile_fail_memory(error, "frames that wait for the disk");
        float *at = s->room;
        for (size_t g = 0; g < garments; g++) {
            size_t count = 3 * (size_t)header->garments[g].vertex_count;
            s->arrays.positions[g] = at;
            s->arrays.velocities[g] = at + count;
            at += 2 * count;
        }
    }
    return w->slots ? TOILE_OK : toile_fail_memory(error, "frames that wait for the disk");
}

static void free_writer(toile_cache_writer *w) {
    for (int i = 0; w->slots && i < w->slot_count; i++) {
        toile_free(w->memory, w->slots[i].room);
        toile_free(w->memory, w->slots[i].arrays.positions);
        toile_free(w->memory, w->slots[i].arrays.velocities);
    }
    toile_free(w->memory, w->slots);
    toile_free(w->memory, w->state);
    toile_free(w->memory, w->path);
    toile_free(w->memory, w);
}

/* Signals are for the thread that runs the bake. */
static int start_thread(toile_cache_writer *w) {
    sigset_t all, before;
    pthread_condattr_t clock;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w->pushed, &clock);
    pthread_cond_init(&w->done, NULL);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&w->thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

toile_status toile_cache_writer_start(toile_memory *memory, const toile_cache_writer_def *def,
                                      toile_cache_writer **result, toile_error *error) {
    *result = NULL;
    toile_cache_writer *w = toile_alloc(memory, 1, sizeof *w);
    if (!w)
        return toile_fail_memory(error, "the writer of a cache");
    w->memory = memory;
    w->def = *def;
    w->checkpoint = INT_MIN;
    w->path = toile_copy_text(memory, def->path);
    w->state = toile_alloc(memory, def->state_size, 1);
    toile_status status =
        w->path && w->state ? make_slots(w, error) : toile_fail_memory(error, "the writer of a cache");
    int failed = status < 0 ? 0 : start_thread(w);
    if (failed)
        status = toile_fail(error, TOILE_NO_MEMORY,
                            "a thread to write the cache cannot be started: %s; end other programs",
                            strerror(failed));
    if (status < 0)
        free_writer(w);
    else
        *result = w;
    return status;
}

toile_status toile_cache_writer_slot(toile_cache_writer *w, toile_cache_slot *slot, toile_error *error) {
    toile_status status = TOILE_OK;
    pthread_mutex_lock(&w->mutex);
    if (w->waiting == w->slot_count) {
        double began = now();
        while (w->waiting == w->slot_count)
            pthread_cond_wait(&w->done, &w->mutex);
        w->waited += now() - began;
    }
    if (w->error.status < 0) {
        status = w->error.status;
        if (error)
            *error = w->error;
    }
    *slot = w->slots[(w->first + w->waiting) % w->slot_count].arrays;
    pthread_mutex_unlock(&w->mutex);
    return status;
}

void toile_cache_writer_push(toile_cache_writer *w, const toile_frame_view *view) {
    pthread_mutex_lock(&w->mutex);
    slot *s = &w->slots[(w->first + w->waiting) % w->slot_count];
    s->view = *view;
    s->view.positions = (const float *const *)s->arrays.positions;
    s->view.velocities = (const float *const *)s->arrays.velocities;
    w->waiting++;
    pthread_cond_signal(&w->pushed);
    pthread_mutex_unlock(&w->mutex);
}

void *toile_cache_writer_state(toile_cache_writer *w) {
    pthread_mutex_lock(&w->mutex);
    void *state = w->state_waiting ? NULL : w->state;
    pthread_mutex_unlock(&w->mutex);
    return state;
}

void toile_cache_writer_push_state(toile_cache_writer *w, int frame) {
    pthread_mutex_lock(&w->mutex);
    w->state_frame = frame;
    w->state_after = w->waiting;
    w->state_waiting = true;
    pthread_cond_signal(&w->pushed);
    pthread_mutex_unlock(&w->mutex);
}

int toile_cache_writer_checkpoint(toile_cache_writer *w) {
    pthread_mutex_lock(&w->mutex);
    int frame = w->checkpoint;
    pthread_mutex_unlock(&w->mutex);
    return frame;
}

double toile_cache_writer_waited(toile_cache_writer *w) {
    pthread_mutex_lock(&w->mutex);
    double waited = w->waited;
    pthread_mutex_unlock(&w->mutex);
    return waited;
}

toile_status toile_cache_writer_wait(toile_cache_writer *w, toile_error *error) {
    pthread_mutex_lock(&w->mutex);
    while (w->waiting > 0 || w->state_waiting || w->busy)
        pthread_cond_wait(&w->done, &w->mutex);
    toile_status status = w->error.status < 0 ? w->error.status : TOILE_OK;
    if (status < 0 && error)
        *error = w->error;
    pthread_mutex_unlock(&w->mutex);
    return status;
}

toile_status toile_cache_writer_finish(toile_cache_writer *w, toile_error *error) {
    if (!w)
        return TOILE_OK;
    toile_status status = toile_cache_writer_wait(w, error);
    pthread_mutex_lock(&w->mutex);
    w->closing = true;
    pthread_cond_signal(&w->pushed);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->pushed);
    pthread_cond_destroy(&w->done);
    pthread_mutex_destroy(&w->mutex);
    free_writer(w);
    return status;
}
