/* The bake: load the scene, then for every frame tell the world where colliders and pins go, advance, hand
 * the frame to the thread that writes the cache, and every few seconds a checkpoint. In that order: a
 * checkpoint never names a frame that the cache does not have, so whatever ends the process, the next
 * --resume finds frame and state together. A frame is told of as finished when it is on disk.
 *
 * Resuming restores the exact state and simulates the frames after it anew, holding the hash of each against
 * the cached one: the result has the bits of a bake that was never stopped, and no finished frame is lost or
 * doubted.
 *
 * Where frames are to be replaced (a start frame, a changed scene) the bake goes into CACHE.redo, which
 * begins with a copy of the frames that stay. It takes the cache's place when it has as many frames as that,
 * or all it wants; until then the old frames are where they were, and --resume goes on with the new ones. */
#include "bake.h"

#include "allocation.h"
#include "bake_change.h"
#include "cache.h"
#include "meetings.h"
#include "heartbeat.h"
#include "intersect.h"
#include "report.h"
#include "scene.h"
#include "sew.h"
#include "world.h"
#include "xdmf.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A checkpoint is a copy of all there is; so much work is at stake between two. */
#define CHECKPOINT_SECONDS 2.0
/* The disk is waited for when all frames that memory holds are on their way to it; so long is worth a word. */
#define SLOW_DISK_SECONDS 10.0
enum { PENDING_MOST = 64 }; /* frames that may wait for the disk; more than the writer has slots */

typedef struct bake {
    const toile_bake_options *options;
    toile_memory memory, cache_memory; /* the second is the writing thread's while there is one */
    toile_error error;
    pthread_mutex_t telling; /* for the two below, which both threads use */
    toile_progress progress;
    toile_report report;
    json_t *start_meetings, *start_colliders; /* for the report; null after a resume */
    toile_heartbeat heartbeat;
    toile_scene *scene;
    toile_world *world;
    char *redo_path;
    const char *work_path; /* the cache, or CACHE.redo */
    toile_cache *cache;
    toile_cache_writer *writer;
    toile_lock *lock;                       /* on the cache while work_path is another file */
    int old_finished;                       /* frames in the cache that CACHE.redo is to replace */
    toile_statistics pending[PENDING_MOST]; /* of frames on their way to the disk, by frame number modulo */
    int first, last;                        /* planned */
    int finished;                           /* frames in the cache, counted from first */
    int resumed_from;
    int checkpoint_frame;   /* of the checkpoint on disk */
    double checkpoint_time; /* when it was written, toile_now() */
    int world_frame;        /* that the world has reached */
    bool complete_before;   /* there was nothing left to resume */
    int garment_count;
    toile_garment_view *garments;
    float **positions, **velocities;     /* per garment, of the last frame; for the judge */
    double *numbers;                     /* room for one garment's vectors */
    double position_step, velocity_step; /* of stored values; 0: as exact as float32 */
    void *state;
    size_t state_size;
} bake;

/* ---- signals ---- */

static volatile sig_atomic_t stops;   /* signals so far */
static toile_world *volatile running; /* what the second one cancels */

static void on_signal(int number) {
    (void)number;
    stops++;
    toile_world *world = running;
    if (stops > 1 && world)
        toile_cancel(world, true);
}

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof *SIGNALS };

static void catch_signals(struct sigaction *before) {
    stops = 0;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask); /* one at a time, or the count could miss one */
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        sigaction(SIGNALS[i], NULL, &before[i]);
        /* nohup and background shells ignore some of them on purpose. */
        if (before[i].sa_handler != SIG_IGN)
            sigaction(SIGNALS[i], &action, NULL);
    }
}

static void release_signals(const struct sigaction *before) {
    for (int i = 0; i < SIGNAL_COUNT; i++)
        sigaction(SIGNALS[i], &before[i], NULL);
}

/* ---- scene and garments ---- */

static toile_status world_failed(bake *b, toile_status status, const char *doing) {
    return toile_fail(&b->error, status, "%s: %s", doing, toile_message(b->world));
}

/* What the library has to say while it runs; only warnings are worth a line. */
static void on_log(void *user, int level, const char *line) {
    bake *b = user;
    if (level <= 0)
        return;
    pthread_mutex_lock(&b->telling);
    toile_progress_warn(&b->progress, line);
    pthread_mutex_unlock(&b->telling);
}

static toile_status load_scene(bake *b) {
    const toile_bake_options *options = b->options;
    const toile_hooks hooks = {.log = on_log, .user = b};
    char threads[32];
    const char **sets = toile_alloc(&b->memory, (size_t)options->set_count + 1, sizeof *sets);
    if (!sets)
        return toile_fail_memory(&b->error, "the options");
    int count = 0;
    for (; count < options->set_count; count++)
        sets[count] = options->sets[count];
    if (options->threads >= 0) {
        snprintf(threads, sizeof threads, "settings.threads=%d", options->threads);
        sets[count++] = threads;
    }
    toile_status status = toile_scene_load(&hooks, options->scene_path, sets, count, &b->scene, &b->error);
    toile_free(&b->memory, sets);
    if (status < 0)
        return status;
    b->world = toile_scene_world(b->scene);
    if (options->threads < 0) {
        int cpus = toile_allocated_cpus();
        toile_sim *sim = toile_world_sim(b->world);
        if (sim && sim->threads > cpus)
            sim->threads = cpus;
    }
    b->first = toile_scene_first_frame(b->scene);
    b->last = toile_scene_last_frame(b->scene);
    b->resumed_from = b->first;
    if (!options->frames.given)
        return TOILE_OK;
    if (options->frames.first != b->first && !options->resume)
        return toile_fail(
            &b->error, TOILE_INVALID,
            "--frames %d-%d: a simulation starts at the scene's first frame, %d; write --frames %d-%d, "
            "or change the scene's frames. A later start goes with --resume only",
            options->frames.first, options->frames.last, b->first, b->first, options->frames.last);
    if (options->frames.last < b->first)
        return toile_fail(&b->error, TOILE_INVALID, "--frames: %d is before the scene's first frame, %d",
                          options->frames.last, b->first);
    b->last = options->frames.last;
    return TOILE_OK;
}

/* The scene as the cache keeps it; null when memory is out. */
static json_t *scene_to_keep(const bake *b) {
    json_t *scene = json_loads(toile_scene_resolved_json(b->scene), 0, NULL);
    if (scene)
        toile_point_to_files(scene, b->options->scene_path);
    return scene;
}

static toile_status name_panels(bake *b, int garment) {
    toile_garment_view *view = &b->garments[garment];
    view->panel_count = toile_panel_count(b->world, garment);
    const char **names = toile_alloc(&b->memory, (size_t)view->panel_count, sizeof *names);
    view->panel_names = names;
    if (!names)
        return toile_fail_memory(&b->error, "panel names");
    for (int p = 0; p < view->panel_count; p++) {
        names[p] = toile_copy_text(&b->memory, toile_panel_name(b->world, garment, p));
        if (!names[p])
            return toile_fail_memory(&b->error, "panel names");
    }
    return TOILE_OK;
}

static void to_float(const double *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++)
        to[i] = (float)from[i];
}

static toile_status describe_garment(bake *b, int g) {
    toile_garment_view *view = &b->garments[g];
    size_t vertices = (size_t)toile_vertex_count(b->world, g),
           faces = (size_t)toile_triangle_count(b->world, g);
    float *rest = toile_alloc(&b->memory, 3 * vertices, sizeof *rest);
    int *triangles = toile_alloc(&b->memory, 3 * faces, sizeof *triangles);
    int *panels = toile_alloc(&b->memory, faces, sizeof *panels);
    float *uv = toile_alloc(&b->memory, 6 * faces, sizeof *uv);
    double *exact_uv = toile_alloc(&b->memory, 6 * faces, sizeof *exact_uv);
    *view = (toile_garment_view){.name = toile_garment_name(b->world, g),
                                 .vertex_count = (int)vertices,
                                 .triangle_count = (int)faces,
                                 .rest_positions = rest,
                                 .triangles = triangles,
                                 .triangle_panels = panels,
                                 .corner_uv = uv};
    b->positions[g] = toile_alloc(&b->memory, 3 * vertices, sizeof(float));
    b->velocities[g] = toile_alloc(&b->memory, 3 * vertices, sizeof(float));
    toile_status status = TOILE_OK;
    if (!rest || !triangles || !panels || !uv || !exact_uv || !b->positions[g] || !b->velocities[g]) {
        status = toile_fail_memory(&b->error, "a garment");
        goto out;
    }
    status = toile_get_positions(b->world, g, b->numbers);
    if (status >= 0)
        status = toile_get_triangles(b->world, g, triangles, panels, exact_uv);
    if (status < 0) {
        status = world_failed(b, status, view->name);
        goto out;
    }
    to_float(b->numbers, rest, 3 * vertices);
    to_float(exact_uv, uv, 6 * faces);
    status = name_panels(b, g);
out:
    toile_free(&b->memory, exact_uv);
    return status;
}

static toile_status describe_garments(bake *b) {
    size_t count = (size_t)(b->garment_count = toile_garment_count(b->world)), most = 0;
    for (int g = 0; g < b->garment_count; g++)
        if ((size_t)toile_vertex_count(b->world, g) > most)
            most = (size_t)toile_vertex_count(b->world, g);
    b->garments = toile_alloc(&b->memory, count, sizeof *b->garments);
    b->positions = toile_alloc(&b->memory, count, sizeof *b->positions);
    b->velocities = toile_alloc(&b->memory, count, sizeof *b->velocities);
    b->numbers = toile_alloc(&b->memory, 3 * most, sizeof *b->numbers);
    b->state_size = toile_state_size(b->world);
    b->state = toile_alloc(&b->memory, b->state_size, 1);
    if (!b->garments || !b->positions || !b->velocities || !b->numbers || !b->state)
        return toile_fail_memory(&b->error, "the garments");
    toile_status status = TOILE_OK;
    for (int g = 0; g < b->garment_count && status >= 0; g++)
        status = describe_garment(b, g);
    return status;
}

static void free_garments(bake *b) {
    for (int g = 0; b->garments && b->positions && b->velocities && g < b->garment_count; g++) {
        const toile_garment_view *view = &b->garments[g];
        for (int p = 0; view->panel_names && p < view->panel_count; p++)
            toile_free(&b->memory, (void *)view->panel_names[p]);
        toile_free(&b->memory, (void *)view->panel_names);
        toile_free(&b->memory, (void *)view->rest_positions);
        toile_free(&b->memory, (void *)view->triangles);
        toile_free(&b->memory, (void *)view->triangle_panels);
        toile_free(&b->memory, (void *)view->corner_uv);
        toile_free(&b->memory, b->positions[g]);
        toile_free(&b->memory, b->velocities[g]);
    }
    toile_free(&b->memory, b->garments);
    toile_free(&b->memory, b->positions);
    toile_free(&b->memory, b->velocities);
    toile_free(&b->memory, b->numbers);
    toile_free(&b->memory, b->state);
}

/* ---- frames ---- */

/* The largest power of two whose half is not above the error: multiples of it end in zero bits, which pack
 * well, and are exact in float32. */
static double step_for(double error) {
    return error > 0 ? exp2(floor(log2(2 * error))) : 0;
}

static void store(const double *from, float *to, size_t count, double step) {
    if (step > 0)
        for (size_t i = 0; i < count; i++)
            to[i] = (float)(step * rint(from[i] / step));
    else
        to_float(from, to, count);
}

/* The world's present state as it is stored. */
static toile_status read_frame(bake *b, float *const *positions, float *const *velocities) {
    for (int g = 0; g < b->garment_count; g++) {
        size_t count = 3 * (size_t)b->garments[g].vertex_count;
        toile_status status = toile_get_positions(b->world, g, b->numbers);
        if (status < 0)
            return world_failed(b, status, "positions");
        store(b->numbers, positions[g], count, b->position_step);
        status = toile_get_velocities(b->world, g, b->numbers);
        if (status < 0)
            return world_failed(b, status, "velocities");
        store(b->numbers, velocities[g], count, b->velocity_step);
    }
    return TOILE_OK;
}

/* A frame is on disk: called by the writing thread. The start frame is not news. */
static void on_frame(void *user, int frame) {
    bake *b = user;
    const toile_statistics *statistics = &b->pending[(unsigned)frame % PENDING_MOST];
    if (frame == b->first)
        return;
    pthread_mutex_lock(&b->telling);
    toile_report_frame(&b->report, frame, statistics);
    toile_progress_frame(&b->progress, frame, statistics);
    toile_heartbeat_frame(&b->heartbeat, frame);
    pthread_mutex_unlock(&b->telling);
}

static toile_status start_writer(bake *b) {
    const toile_cache_writer_def def = {.cache = b->cache,
                                        .path = b->work_path,
                                        .fingerprint = toile_scene_fingerprint(b->scene),
                                        .state_size = b->state_size,
                                        .lock = b->lock,
                                        .on_frame = on_frame,
                                        .user = b};
    return toile_cache_writer_start(&b->memory, &def, &b->writer, &b->error);
}

/* The exact state after `frame`, beside the cache; only while there is no writer. */
static toile_status write_checkpoint(bake *b, int frame) {
    double began = toile_now();
    toile_status status = toile_save_state(b->world, b->state, b->state_size);
    if (status < 0)
        return world_failed(b, status, "the state");
    status = toile_checkpoint_write(b->work_path, toile_scene_fingerprint(b->scene), frame, b->state,
                                    b->state_size, &b->error);
    if (status >= 0) {
        b->checkpoint_frame = frame;
        b->checkpoint_time = toile_now();
    }
    b->report.write_seconds += toile_now() - began;
    return status;
}

/* The same by the writer, if the one before is through. */
static toile_status push_checkpoint(bake *b, int frame) {
    void *state = toile_cache_writer_state(b->writer);
    if (!state)
        return TOILE_OK;
    toile_status status = toile_save_state(b->world, state, b->state_size);
    if (status < 0)
        return world_failed(b, status, "the state");
    toile_cache_writer_push_state(b->writer, frame);
    b->checkpoint_time = toile_now();
    return TOILE_OK;
}

static void tell_slow_disk(bake *b, int frame, double seconds) {
    char note[512];
    if (seconds < SLOW_DISK_SECONDS)
        return;
    snprintf(note, sizeof note,
             "frame %d waited %.0f s for the disk of %.300s, which is slower than the simulation or hangs; nothing is lost. "
             "Bake to a faster disk, or with --position-error for a smaller cache",
             frame, seconds, b->work_path);
    pthread_mutex_lock(&b->telling);
    toile_progress_warn(&b->progress, note);
    pthread_mutex_unlock(&b->telling);
}

/* The world's present state as the next frame of the cache, and a checkpoint now and then: frames after it
 * are simulated anew on --resume, to the same bits. */
static toile_status write_frame(bake *b, int frame) {
    double began = toile_now();
    toile_statistics *statistics = &b->pending[(unsigned)frame % PENDING_MOST];
    toile_cache_slot slot;
    toile_status status = toile_cache_writer_slot(b->writer, &slot, &b->error);
    tell_slow_disk(b, frame, toile_now() - began);
    if (status >= 0)
        status = read_frame(b, slot.positions, slot.velocities);
    if (status < 0)
        return status;
    memset(statistics, 0, sizeof *statistics);
    toile_get_statistics(b->world, false, statistics);
#define NUMBER(id) .id = (double)statistics->id,
    const toile_frame_view view = {.frame = frame,
                                   .time = toile_time(b->world),
                                   .state_hash = toile_state_hash(b->world),
                                   .numbers = {TOILE_FRAME_NUMBERS(NUMBER)}};
#undef NUMBER
    toile_cache_writer_push(b->writer, &view);
    if (frame == b->first || toile_now() - b->checkpoint_time >= CHECKPOINT_SECONDS)
        status = push_checkpoint(b, frame);
    b->report.write_seconds += toile_now() - began;
    return status;
}

static toile_status place_inputs(bake *b, int frame) {
    b->world_frame = frame;
    toile_status status = toile_scene_prepare(b->scene, frame, &b->error);
    if (status < 0)
        return status;
    status = toile_place_inputs(b->world);
    return status < 0 ? world_failed(b, status, "start") : TOILE_OK;
}

/* ---- a bake from the beginning ---- */

/* A cache may be replaced, an empty file too; anything else is somebody's. */
static toile_status check_overwrite(bake *b) {
    const char *path = b->options->cache_path;
    struct stat info;
    if (stat(path, &info) != 0 || (S_ISREG(info.st_mode) && info.st_size == 0))
        return TOILE_OK;
    toile_cache *old = NULL;
    toile_error error;
    toile_status status = S_ISREG(info.st_mode)
                              ? toile_cache_open(&b->memory, path, &old, &error)
                              : toile_fail(&error, TOILE_FORMAT, "it is not a regular file");
    toile_cache_close(old, NULL);
    if (status < 0)
        return toile_fail(
            &b->error, status,
            "%s exists and is not a readable Toile cache (%s); it was left alone. Choose another name "
            "or remove it yourself",
            path, error.message);
    return TOILE_OK;
}

/* What the cache is to say of the bake. *text and *inputs are what it points to, to be freed. */
static toile_status make_header(bake *b, toile_cache_header *header, char **text, char **inputs) {
    json_t *scene = scene_to_keep(b), *files = scene ? toile_describe_inputs(scene) : NULL;
    *text = scene ? json_dumps(scene, JSON_INDENT(2)) : NULL;
    *inputs = files ? json_dumps(files, JSON_COMPACT) : NULL;
    json_decref(files);
    json_decref(scene);
    if (!*text || !*inputs)
        return toile_fail_memory(&b->error, "the scene's text");
    *header = (toile_cache_header){.scene_name = toile_scene_name(b->scene),
                                   .settings_json = *text,
                                   .library_version = toile_version(),
                                   .fingerprint = toile_scene_fingerprint(b->scene),
                                   .fps = toile_scene_fps(b->scene),
                                   .first_frame = b->first,
                                   .last_frame = b->last,
                                   .garment_count = b->garment_count,
                                   .garments = b->garments,
                                   .position_error = b->position_step / 2,
                                   .velocity_error = b->velocity_step / 2,
                                   .inputs_json = *inputs};
    return TOILE_OK;
}

/* Makes work_path anew with the first `keep` frames of `from`, or with none. */
static toile_status create_cache(bake *b, toile_cache *from, int keep) {
    toile_cache_header header;
    char *text = NULL, *inputs = NULL;
    toile_status status = make_header(b, &header, &text, &inputs);
    if (status >= 0)
        status = toile_cache_create_from(&b->cache_memory, b->work_path, &header, from, keep, &b->cache,
                                         &b->error);
    free(text);
    free(inputs);
    return status;
}

static void remove_redo(bake *b) {
    unlink(b->redo_path);
    toile_cache_sweep(b->redo_path);
    toile_checkpoint_remove(b->redo_path);
}

/* Crossings at the start are told by name and place, and then pulled apart: they are no reason not to bake. */
static toile_status tell_start(bake *b) {
    toile_judgement judgement;
    char line[700], meeting[512];
    double layers[3] = {0};
    int count;
    toile_get_numbers(b->world, "self_collision", layers, &count);
    toile_status status = read_frame(b, b->positions, b->velocities);
    if (status >= 0)
        status = toile_judge_frame(&b->memory, b->garment_count, b->garments, (const float *const *)b->positions, b->scene,
                                   &judgement, &b->error);
    if (status < 0)
        return status;
    b->start_meetings = toile_meetings_json(&judgement, b->garments, b->scene);
    b->start_colliders = json_array();
    for (int i = 0; i < judgement.meeting_count; i++) {
        if (layers[0] == 0 && !judgement.meetings[i].collider)
            continue; /* cloth may pass through cloth */
        toile_meeting_text(&judgement.meetings[i], b->garments, b->scene, meeting, sizeof meeting);
        snprintf(line, sizeof line, "crosses at the start: %s. It is pulled apart in the first frames; what is left is in the report", meeting);
        on_log(b, 1, line);
    }
    for (int c = 0; c < toile_scene_collider_count(b->scene); c++) {
        toile_self_crossing own;
        status = toile_collider_crosses(&b->memory, b->scene, c, &own, &b->error);
        if (status < 0)
            return status;
        if (own.pairs == 0)
            continue;
        const char *name = toile_scene_collider_name(b->scene, c);
        json_array_append_new(b->start_colliders, json_pack("{s:s, s:I, s:[f,f,f]}", "collider", name, "pairs", (json_int_t)own.pairs,
                                                            "at", own.place[0], own.place[1], own.place[2]));
        snprintf(line, sizeof line,
                 "collider \"%.128s\" crosses itself at the start: %lld pairs of triangles; the first at (%.4g, %.4g, %.4g). Cloth that "
                 "is caught there has no place to go and is let go",
                 name, (long long)own.pairs, own.place[0], own.place[1], own.place[2]);
        on_log(b, 1, line);
    }
    return TOILE_OK;
}

static bool hear_of_settling(void *user, int frame, int most, const toile_statistics *now) {
    bake *b = user;
    pthread_mutex_lock(&b->telling);
    toile_progress_settle(&b->progress, b->options->progress, frame, most, now);
    pthread_mutex_unlock(&b->telling);
    return stops == 0;
}

/* Before the first frame: the garments come to rest if the scene says so. */
static toile_status settle(bake *b) {
    return toile_scene_settle_frames(b->scene) ? toile_scene_settle(b->scene, hear_of_settling, b, &b->error) : TOILE_OK;
}

static toile_status start_fresh(bake *b) {
    toile_status status = check_overwrite(b);
    if (status >= 0) {
        b->position_step = step_for(b->options->position_error);
        /* Over one frame it moves a thing by as much as its position may be off. */
        b->velocity_step = step_for(b->options->position_error * toile_scene_fps(b->scene));
        status = place_inputs(b, b->first);
    }
    if (status >= 0)
        status = settle(b);
    if (status >= 0)
        status = create_cache(b, NULL, 0);
    if (status < 0)
        return status;
    /* Those of an earlier bake do not belong to the new file. */
    toile_checkpoint_remove(b->options->cache_path);
    remove_redo(b);
    status = start_writer(b);
    if (status >= 0)
        status = write_frame(b, b->first);
    if (status >= 0) /* whoever is told that the bake has started can read the first frame, and resume */
        status = toile_cache_writer_wait(b->writer, &b->error);
    if (status >= 0)
        status = tell_start(b);
    b->finished = status >= 0;
    return status;
}

/* ---- a bake that goes on ---- */

/* The cache's scene and the present one differ: refused, or said and gone on with after --force or a start
 * frame. */
static toile_status tell_changed(bake *b, const toile_cache_header *header, bool consent) {
    char what[1024];
    json_t *scene = scene_to_keep(b);
    toile_describe_change(header, scene, b->options->cache_path, what, sizeof what);
    json_decref(scene);
    if (consent) {
        toile_progress_warn(&b->progress, what);
        return TOILE_OK;
    }
    return toile_fail(&b->error, TOILE_INVALID,
                      "%.640s. Undo the change, bake anew without --resume, go on regardless with --resume "
                      "--force, or from "
                      "frame N with --resume --frames N-%d",
                      what, b->last);
}

/* --resume --frames N-B: frames from N on are made anew. N at the scene's first frame says nothing: that is a
 * new bake. */
static bool start_frame(const bake *b, int *start) {
    const toile_frame_range *frames = &b->options->frames;
    *start = frames->first;
    return frames->given && frames->first != b->first;
}

static toile_status check_start(bake *b, int next) {
    const toile_frame_range *frames = &b->options->frames;
    int start;
    if (!start_frame(b, &start) || (start > b->first && start <= next))
        return TOILE_OK;
    return toile_fail(&b->error, TOILE_INVALID,
                      "--resume --frames %d-%d: %s has frames %d to %d, so it goes on at frame %d or any "
                      "before; write --frames "
                      "%d-%d, or start anew without --resume",
                      frames->first, frames->last, b->options->cache_path, b->first, next - 1, next, next,
                      frames->last);
}

/* Restores the state after `frame`; the cache must hold that frame with the same hash. */
static toile_status restore(bake *b, int frame, const void *state, size_t size, uint64_t cached_hash) {
    toile_status status = place_inputs(b, frame);
    if (status < 0)
        return status;
    status = toile_restore_state(b->world, state, size);
    if (status < 0)
        return world_failed(b, status, "the checkpoint does not fit the scene; bake anew without --resume");
    if (toile_state_hash(b->world) != cached_hash)
        return toile_fail(
            &b->error, TOILE_FORMAT,
            "the checkpoint %s.state is not of the cache beside it (frame %d differs); bake anew "
            "without --resume",
            b->work_path, frame);
    return TOILE_OK;
}

static toile_status advance(bake *b, int frame) {
    toile_status status = toile_scene_prepare(b->scene, frame, &b->error);
    if (status < 0)
        return status;
    status = toile_advance(b->world, 1.0 / toile_scene_fps(b->scene));
    if (status < 0) {
        char doing[32];
        snprintf(doing, sizeof doing, "frame %d", frame);
        return world_failed(b, status, doing);
    }
    b->world_frame = frame;
    return TOILE_OK;
}

/* From the checkpoint after `frame` to the last finished frame. */
static toile_status replay(bake *b, toile_cache *old, int frame) {
    while (frame < b->resumed_from) {
        toile_cache_frame cached;
        toile_status status = advance(b, ++frame);
        if (status >= 0)
            status = toile_cache_read_frame(old, frame - b->first, &cached, &b->error);
        if (status < 0)
            return status;
        if (toile_state_hash(b->world) != cached.state_hash)
            return toile_fail(&b->error, TOILE_FORMAT,
                              "frame %d comes out differently from the one in %s: it was baked by another "
                              "build of Toile or "
                              "changed since. Bake anew without --resume",
                              frame, b->work_path);
    }
    return TOILE_OK;
}

/* Everything that was pushed is on disk, or the reason why not is known. */
static toile_status end_writer(bake *b, toile_error *error) {
    if (!b->writer)
        return TOILE_OK;
    toile_cache_writer_wait(b->writer, NULL);
    int frame = toile_cache_writer_checkpoint(b->writer);
    if (frame != INT_MIN)
        b->checkpoint_frame = frame;
    toile_status status = toile_cache_writer_finish(b->writer, error);
    b->writer = NULL;
    return status;
}

/* CACHE.redo takes the cache's place. Its frames from old_first on are the new ones. */
static toile_status take_place(bake *b, int old_first) {
    toile_status status = toile_cache_rename(b->cache, b->options->cache_path, &b->error);
    if (status < 0)
        return status;
    toile_checkpoint_move(b->redo_path, b->options->cache_path, old_first);
    toile_cache_sweep(b->redo_path);
    b->work_path = b->options->cache_path;
    /* Its lock was overwritten by the cache's own. */
    toile_lock_release(b->lock);
    b->lock = NULL;
    return TOILE_OK;
}

/* Whether CACHE.redo holds what this run is about: a replacement of the same scene that was stopped. Else it
 * goes. */
static bool redo_continues(bake *b) {
    toile_cache *redo = NULL;
    struct stat info;
    int start;
    if (stat(b->redo_path, &info) != 0) {
        /* Killed between the renames of take_place: the checkpoints follow now. */
        char *state = NULL;
        if (asprintf(&state, "%s.state", b->redo_path) > 0 && stat(state, &info) == 0)
            toile_checkpoint_move(b->redo_path, b->options->cache_path, INT_MIN);
        free(state);
        return false;
    }
    bool same = toile_cache_open(&b->memory, b->redo_path, &redo, NULL) >= 0 &&
                toile_cache_get_header(redo)->fingerprint == toile_scene_fingerprint(b->scene) &&
                strcmp(toile_cache_get_header(redo)->library_version, toile_version()) == 0 &&
                (!start_frame(b, &start) || start <= b->first + toile_cache_frame_count(redo));
    toile_cache_close(redo, NULL);
    if (!same) {
        toile_progress_warn(
            &b->progress, "frames that replaced others and were not finished, of another scene, are dropped");
        remove_redo(b);
    }
    return same;
}

/* Where the bake goes on: the state, how many frames stay, and whether those behind it must come out as they
 * were. */
typedef struct going_on {
    toile_cache *old;
    void *state;
    size_t size;
    int frame;    /* of the state */
    int keep;     /* frames */
    bool changed; /* the scene, since */
} going_on;

/* The scene that the cache keeps brings its state from the checkpoint up to frame `limit`; every frame must
 * come out as the cached one, or it is not that scene any more (a file has changed, or the program) and the
 * checkpoint has to do. */
static void bring_up(bake *b, going_on *g, int limit) {
    const char *text = toile_cache_get_header(g->old)->settings_json;
    toile_scene *scene = NULL;
    toile_error error;
    toile_status status =
        toile_scene_load_text(NULL, text, strlen(text), b->options->scene_path, NULL, 0, &scene, &error);
    toile_world *world = scene ? toile_scene_world(scene) : NULL;
    if (status >= 0)
        status = toile_scene_prepare(scene, g->frame, &error);
    if (status >= 0)
        status = toile_place_inputs(world);
    if (status >= 0)
        status = toile_restore_state(world, g->state, g->size);
    for (int frame = g->frame + 1; frame <= limit && status >= 0; frame++) {
        toile_cache_frame cached;
        status = toile_scene_prepare(scene, frame, &error);
        if (status >= 0)
            status = toile_advance(world, 1 / toile_scene_fps(scene));
        if (status >= 0)
            status = toile_cache_read_frame(g->old, frame - b->first, &cached, &error);
        if (status >= 0 && toile_state_hash(world) != cached.state_hash)
            status = TOILE_FORMAT;
    }
    if (status >= 0 && toile_state_size(world) == g->size && toile_save_state(world, g->state, g->size) >= 0)
        g->frame = limit;
    toile_scene_free(scene);
}

static toile_status find_start(bake *b, going_on *g) {
    const char *path = b->work_path;
    const toile_cache_header *header = toile_cache_get_header(g->old);
    int finished = toile_cache_frame_count(g->old), start;
    uint64_t fingerprint;
    toile_error inner;
    bool from_start = start_frame(b, &start) && b->work_path == b->options->cache_path;
    toile_status status = from_start ? check_start(b, b->first + finished) : TOILE_OK;
    if (status < 0)
        return status;
    if (header->first_frame != b->first || header->garment_count != b->garment_count)
        return toile_fail(
            &b->error, TOILE_INVALID,
            "%s starts at frame %d and has %d garments, the scene starts at frame %d and has %d; bake "
            "anew without --resume",
            path, header->first_frame, header->garment_count, b->first, b->garment_count);
    int limit = from_start && start <= b->first + finished ? start - 1 : b->first + finished - 1;
    status =
        toile_checkpoint_find(&b->memory, path, limit, &fingerprint, &g->frame, &g->state, &g->size, &inner);
    if (status < 0)
        return toile_fail(&b->error, status,
                          "%.300s cannot be continued%s: %.600s. Bake anew without --resume", path,
                          from_start ? " from there" : "", inner.message);
    /* With a start frame the checkpoint may be of a scene before; the header says what was baked last. */
    g->changed = (from_start ? header->fingerprint : fingerprint) != toile_scene_fingerprint(b->scene) ||
                 strcmp(header->library_version, toile_version()) != 0;
    if (g->changed) {
        status = tell_changed(b, header, b->options->force || from_start);
        if (status < 0)
            return status;
    }
    if (g->frame < b->first)
        return toile_fail(
            &b->error, TOILE_FORMAT,
            "the checkpoint is at frame %d, but %s has frames %d to %d only: they are not of one bake, "
            "or the cache was damaged. Bake anew without --resume",
            g->frame, path, b->first, b->first + finished - 1);
    /* Frames after the checkpoint stay and are simulated anew up to the limit, each held against the cached
     * one: by the scene, or if it has changed by the one before. */
    if (g->changed && g->frame < limit)
        bring_up(b, g, limit);
    g->keep = (g->changed ? g->frame : limit) - b->first + 1;
    if (g->keep < limit - b->first + 1) {
        char note[240];
        snprintf(note, sizeof note,
                 "the scene as it was cannot be run again, and the nearest checkpoint is of frame %d: frames "
                 "from %d on are made "
                 "anew",
                 g->frame, g->frame + 1);
        toile_progress_warn(&b->progress, note);
    }
    return TOILE_OK;
}

/* Opens what goes on being written: the cache itself; a copy of it where its header has to say something new;
 * CACHE.redo where frames are to be replaced. */
static toile_status open_for_going_on(bake *b, going_on *g) {
    const toile_cache_header *header = toile_cache_get_header(g->old);
    int finished = toile_cache_frame_count(g->old);
    bool same = header->last_frame == b->last && header->fingerprint == toile_scene_fingerprint(b->scene) &&
                strcmp(header->library_version, toile_version()) == 0;
    toile_status status;
    if (g->keep >= finished && same) {
        toile_cache_close(g->old, NULL);
        g->old = NULL;
        return toile_cache_reopen(&b->cache_memory, b->work_path, b->first + g->keep - 1, &b->cache,
                                  &b->error);
    }
    if (g->keep >= finished || b->work_path == b->redo_path)
        return create_cache(b, g->old, g->keep);
    b->old_finished = finished;
    b->work_path = b->redo_path;
    status = toile_lock_take(&b->cache_memory, b->options->cache_path, &b->lock, &b->error);
    if (status >= 0)
        status = create_cache(b, g->old, g->keep);
    if (status >= 0)
        status = write_checkpoint(b, b->first + g->keep - 1);
    return status;
}

static toile_status start_resumed(bake *b) {
    going_on g = {0};
    toile_cache_frame cached;
    toile_cache *replaced = NULL;
    toile_status status = TOILE_OK;
    if (redo_continues(b)) {
        toile_cache_open(&b->cache_memory, b->options->cache_path, &replaced, NULL);
        b->old_finished = toile_cache_frame_count(replaced); /* 0 if it is gone */
        toile_cache_close(replaced, NULL);
        status = toile_lock_take(&b->cache_memory, b->options->cache_path, &b->lock, &b->error);
        b->work_path = b->redo_path;
    }
    if (status >= 0)
        status = toile_cache_open(&b->cache_memory, b->work_path, &g.old, &b->error);
    if (status < 0)
        goto out;
    const toile_cache_header *header = toile_cache_get_header(g.old);
    b->position_step = 2 * header->position_error;
    b->velocity_step = 2 * header->velocity_error;
    if (b->options->position_error > 0 && step_for(b->options->position_error) != b->position_step) {
        status = toile_fail(
            &b->error, TOILE_INVALID,
            "--position-error %g: %s was begun with %g; a cache has one. Leave it out, or bake anew without "
            "--resume",
            b->options->position_error, b->work_path, header->position_error);
        goto out;
    }
    status = find_start(b, &g);
    if (status >= 0)
        status = toile_cache_read_frame(g.old, g.frame - b->first, &cached, &b->error);
    if (status >= 0)
        status = restore(b, g.frame, g.state, g.size, cached.state_hash);
    if (status < 0)
        goto out;
    b->checkpoint_frame = g.frame;
    b->finished = g.keep;
    b->resumed_from = b->first + b->finished - 1;
    if (b->resumed_from >= b->last && b->work_path == b->options->cache_path) {
        b->complete_before = true;
        goto out;
    }
    if (!g.changed)
        status = replay(b, g.old, g.frame);
    if (status >= 0)
        status = open_for_going_on(b, &g);
    toile_cache_close(g.old, NULL); /* before another thread uses HDF5 */
    g.old = NULL;
    if (status >= 0)
        status = start_writer(b);
out:
    toile_cache_close(g.old, NULL);
    toile_free(&b->memory, g.state);
    return status;
}

/* ---- the loop ---- */

static toile_status run_frames(bake *b) {
    for (int frame = b->first + b->finished; frame <= b->last; frame++) {
        if (stops > 0)
            return toile_fail(&b->error, TOILE_CANCELLED, "stopped by a signal");
        toile_status status = advance(b, frame);
        if (status >= 0)
            status = write_frame(b, frame);
        /* As many as there were before: nothing is lost by the exchange. */
        if (status >= 0 && b->lock && frame - b->first + 1 >= b->old_finished) {
            status = end_writer(b, &b->error);
            if (status >= 0)
                status = take_place(b, b->resumed_from + 1);
            if (status >= 0)
                status = start_writer(b);
        }
        if (status < 0)
            return status;
    }
    return TOILE_OK;
}

/* A failed write is worth more than a signal. */
static toile_status end_writing(bake *b, toile_status status) {
    toile_error error;
    if (!b->cache)
        return status;
    toile_status written = end_writer(b, &error);
    b->finished = toile_cache_frame_count(b->cache);
    if (written < 0 && (status >= 0 || status == TOILE_CANCELLED)) {
        b->error = error;
        return written;
    }
    return status;
}

/* At the end of a run, unless the world is ahead of the cache (a frame that could not be written): then the
 * checkpoint before it stands. A first failure is worth more than a second. */
static toile_status last_checkpoint(bake *b, toile_status status) {
    int last = b->first + b->finished - 1;
    if (!b->cache || b->checkpoint_frame == last || b->world_frame != last)
        return status;
    toile_error kept = b->error;
    toile_status written = write_checkpoint(b, last);
    if (status >= 0)
        return written;
    b->error = kept;
    return status;
}

/* ---- the end ---- */

/* A word of a command line as a shell would need it. */
static void append_word(char *text, size_t size, const char *word) {
    size_t used = strlen(text);
    bool plain = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/=,+-[]:") ==
                 strlen(word);
    snprintf(text + used, size - used, plain ? " %s" : " '%s'", word);
}

static void format_resume(const bake *b, char *text, size_t size) {
    const toile_bake_options *options = b->options;
    snprintf(text, size, "toile bake");
    append_word(text, size, options->scene_path);
    append_word(text, size, "-o");
    append_word(text, size, options->cache_path);
    append_word(text, size, "--resume");
    if (options->force)
        append_word(text, size, "--force");
    for (int i = 0; i < options->set_count; i++) {
        append_word(text, size, "--set");
        append_word(text, size, options->sets[i]);
    }
    if (options->frames.given) {
        char range[32];
        snprintf(range, sizeof range, "%d-%d", b->first, b->last);
        append_word(text, size, "--frames");
        append_word(text, size, range);
    }
}

static toile_status count_intersections(bake *b, int64_t *count, json_t **left) {
    toile_judgement judgement;
    toile_status status = read_frame(b, b->positions, b->velocities);
    if (status >= 0)
        status = toile_scene_prepare(b->scene, b->first + b->finished - 1, &b->error);
    if (status >= 0)
        status = toile_judge_frame(&b->memory, b->garment_count, b->garments,
                                   (const float *const *)b->positions, b->scene, &judgement, &b->error);
    *count = status < 0 ? 0 : judgement.cloth_pairs + judgement.collider_pairs;
    if (status >= 0)
        *left = toile_meetings_json(&judgement, b->garments, b->scene);
    return status;
}

/* The error of the bake itself, if any, is kept; a report that fails is an error of its own. */
static toile_status write_report(bake *b, const char *outcome, const char *message) {
    toile_error kept = b->error;
    toile_report_facts facts = {.outcome = outcome,
                                .message = message,
                                .scene_path = b->options->scene_path,
                                .cache_path = b->options->cache_path,
                                .fps = toile_scene_fps(b->scene),
                                .first_frame = b->first,
                                .last_frame = b->last,
                                .finished = b->finished,
                                .resumed_from = b->resumed_from};
    facts.start = b->start_meetings;
    facts.colliders = b->start_colliders;
    toile_status status = count_intersections(b, &facts.intersections, &facts.left);
    if (status >= 0)
        status = toile_report_write(&b->report, b->options->report_path, b->world, &facts, &b->error);
    json_decref(facts.left);
    if (status < 0)
        toile_progress_error(&b->progress, toile_status_exit_code(status), b->error.message);
    b->error = kept;
    return status;
}

/* A seam that could not be closed without passing through something (weld.c) is named. */
static void tell_open_seams(bake *b) {
    const toile_sim *sim = toile_world_sim(b->world);
    for (int g = 0; sim && g < sim->garment_count; g++)
        for (int s = 0; s < sim->garments[g].seam_count; s++) {
            toile_open_seam open = toile_sim_open_seam(sim, g, s);
            const char *name = sim->garments[g].seams[s].name;
            char line[768];
            snprintf(line, sizeof line,
                     "garment \"%s\", seam %d%s%s of panels \"%s\" and \"%s\": %d of %d stitches are open, the widest by %.1f mm at (%.4g, "
                     "%.4g, %.4g); something lies between, or it is short of time: let panels start further apart, or sew later",
                     sim->garments[g].name, s, name && *name ? " " : "", name ? name : "", open.panels[0] ? open.panels[0] : "?",
                     open.panels[1] ? open.panels[1] : "?", open.count, open.of, 1e3 * open.widest, open.place[0], open.place[1],
                     open.place[2]);
            if (open.count)
                toile_progress_warn(&b->progress, line);
        }
}

/* Says how it ended and returns the exit code. */
static int tell_end(bake *b, toile_status status) {
    char note[2048], resume[1024];
    int last = b->first + b->finished - 1;
    format_resume(b, resume, sizeof resume);
    if (b->complete_before)
        snprintf(note, sizeof note, "%s is complete already: frames %d to %d", b->options->cache_path,
                 b->first, last);
    else if (status >= 0)
        snprintf(note, sizeof note, "done: %d frames in %s", b->finished, b->options->cache_path);
    else if (status == TOILE_CANCELLED)
        snprintf(note, sizeof note, "stopped after frame %d of %d%s; go on with: %s", last, b->last,
                 b->lock ? " (the frames of before stay until the new ones are through)" : "", resume);
    else if (b->finished > 0 && access(b->work_path, F_OK) == 0)
        snprintf(note, sizeof note, "%s (frames %d to %d are kept in %s%s)", b->error.message, b->first, last,
                 b->work_path,
                 status == TOILE_DIVERGED ? "; after a change go on from there with --resume --force" : "");
    else
        snprintf(note, sizeof note, "%s", b->error.message);

    int exit_code = toile_status_exit_code(status);
    if (status >= 0 && !b->complete_before)
        tell_open_seams(b);
    if (status >= 0)
        toile_progress_end(&b->progress, "complete", last, note);
    else if (status == TOILE_CANCELLED)
        toile_progress_end(&b->progress, "stopped", last, note);
    else
        toile_progress_error(&b->progress, exit_code, note);

    if (b->options->report_path && b->finished > 0) {
        const char *outcome = status >= 0 ? "complete" : status == TOILE_CANCELLED ? "stopped" : "failed";
        toile_status reported = write_report(b, outcome, status < 0 ? b->error.message : "");
        if (reported < 0 && exit_code == 0)
            exit_code = toile_status_exit_code(reported);
    }
    return exit_code;
}

/* For ParaView; a bake is no worse without it. */
static void write_side_file(bake *b) {
    toile_error error;
    if (b->cache && !b->lock && b->finished > 0 && access(b->options->cache_path, F_OK) == 0 &&
        toile_xdmf_write(&b->memory, b->cache, b->options->cache_path, NULL, 0, b->finished - 1, &error) < 0)
        toile_progress_warn(&b->progress, error.message);
}

/* From here on signals are answered in time. The file is shown when the cache is ours: a second bake must not speak for
 * the first. */
static toile_status start_heartbeat(bake *b) {
    const toile_heartbeat_def def = {.file = b->options->cache_path,
                                     .first = b->first,
                                     .last = b->last,
                                     .grace = b->options->grace,
                                     .stops = &stops,
                                     .world = b->world};
    return toile_heartbeat_start(&b->heartbeat, &def, &b->error);
}

static void end_heartbeat(bake *b, toile_status status) {
    toile_heartbeat_end(&b->heartbeat,
                        status >= 0                 ? "complete"
                        : status == TOILE_CANCELLED ? "stopped"
                                                    : "failed",
                        status >= 0 || status == TOILE_CANCELLED ? "" : b->error.message);
}

int toile_bake(const toile_bake_options *options) {
    bake b = {.options = options, .work_path = options->cache_path, .checkpoint_frame = INT_MIN};
    b.progress.mode = options->progress;
    struct sigaction before[SIGNAL_COUNT];
    catch_signals(before);
    pthread_mutex_init(&b.telling, NULL);
    toile_memory_init(&b.memory, NULL);
    toile_memory_init(&b.cache_memory, NULL);

    toile_status status = toile_report_start(&b.report, &b.error);
    size_t size = strlen(options->cache_path) + sizeof ".redo";
    b.redo_path = toile_alloc(&b.memory, size, 1);
    if (b.redo_path)
        snprintf(b.redo_path, size, "%s.redo", options->cache_path);
    else
        status = toile_fail_memory(&b.error, "a file name");
    if (status >= 0)
        status = load_scene(&b);
    if (status >= 0) {
        running = b.world;
        status = describe_garments(&b);
    }
    if (status >= 0)
        status = start_heartbeat(&b);
    if (status >= 0)
        status = options->resume ? start_resumed(&b) : start_fresh(&b);
    if (status >= 0) {
        pthread_mutex_lock(&b.telling);
        toile_progress_start(&b.progress, options->progress, "bake", toile_scene_name(b.scene),
                             options->cache_path, b.first, b.last, b.finished);
        pthread_mutex_unlock(&b.telling);
        if (!b.complete_before) {
            toile_heartbeat_show(&b.heartbeat, options->heartbeat_path, b.first + b.finished - 1);
            status = run_frames(&b);
        }
    }
    status = end_writing(&b, status);
    status = last_checkpoint(&b, status);
    if (status >= 0 && b.lock) /* all that was wanted, though fewer than before */
        status = take_place(&b, b.resumed_from + 1);
    int exit_code = tell_end(&b, status);
    write_side_file(&b);

    end_heartbeat(&b, status);
    running = NULL;
    release_signals(before);
    if (toile_cache_close(b.cache, &b.error) < 0) {
        toile_progress_error(&b.progress, toile_status_exit_code(b.error.status), b.error.message);
        if (exit_code == 0)
            exit_code = toile_status_exit_code(b.error.status);
    }
    toile_lock_release(b.lock);
    free_garments(&b);
    toile_scene_free(b.scene);
    toile_report_free(&b.report);
    json_decref(b.start_meetings);
    json_decref(b.start_colliders);
    toile_free(&b.memory, b.redo_path);
    pthread_mutex_destroy(&b.telling);
    return exit_code;
}
