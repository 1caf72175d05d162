/* The bake: load the scene, then for every frame tell the world where colliders and pins go, advance, append to the
 * cache, and every few seconds write a checkpoint. In that order: a checkpoint never names a frame that the cache does
 * not have, so whatever ends the process, the next --resume finds frame and state together.
 *
 * Resuming restores the exact state and simulates the frames after it anew, holding the hash of each against the cached
 * one: the result has the bits of a bake that was never stopped, and no finished frame is lost or doubted. */
#include "bake.h"

#include "cache.h"
#include "intersect.h"
#include "report.h"
#include "scene.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A checkpoint costs a wait for the disk; so much work is at stake between two. */
#define CHECKPOINT_SECONDS 2.0

typedef struct bake {
    const toile_bake_options *options;
    toile_memory memory;
    toile_error error;
    toile_progress progress;
    toile_report report;
    toile_scene *scene;
    toile_world *world;
    toile_cache *cache;
    int first, last; /* planned */
    int finished;    /* frames in the cache, counted from first */
    int resumed_from;
    int checkpoint_frame;      /* of the checkpoint on disk */
    double checkpoint_time;    /* when it was written, toile_now() */
    int world_frame;           /* that the world has reached */
    bool complete_before; /* there was nothing left to resume */
    int garment_count;
    toile_garment_view *garments;
    float **positions, **velocities; /* per garment, as stored */
    double *numbers;                 /* room for one garment's vectors */
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
    if (level > 0)
        toile_progress_warn(user, line);
}

static toile_status load_scene(bake *b) {
    const toile_bake_options *options = b->options;
    const toile_hooks hooks = {.log = on_log, .user = &b->progress};
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

/* Makes the file names of the scene's meshes absolute, so that the scene in the cache can be read from
 * anywhere. */
static void point_to_files(json_t *scene, const char *scene_path) {
    static const char *const LISTS[] = {"garments", "colliders"}, *const KEYS[] = {"obj", "obj_sequence"};
    char *folder = realpath(scene_path, NULL);
    if (!folder)
        return;
    *strrchr(folder, '/') = 0;
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_t *object;
        json_array_foreach(json_object_get(scene, LISTS[list]), i, object) {
            for (int k = 0; k < 2; k++) {
                const char *file = json_string_value(json_object_get(object, KEYS[k]));
                if (file && file[0] != '/')
                    json_object_set_new(object, KEYS[k], json_sprintf("%s/%s", folder, file));
            }
        }
    }
    free(folder);
}

/* The scene as the cache keeps it; null when memory is out. */
static json_t *scene_to_keep(const bake *b) {
    json_t *scene = json_loads(toile_scene_resolved_json(b->scene), 0, NULL);
    if (scene)
        point_to_files(scene, b->options->scene_path);
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

static toile_status read_positions(bake *b) {
    for (int g = 0; g < b->garment_count; g++) {
        size_t count = 3 * (size_t)b->garments[g].vertex_count;
        toile_status status = toile_get_positions(b->world, g, b->numbers);
        if (status < 0)
            return world_failed(b, status, "positions");
        to_float(b->numbers, b->positions[g], count);
        status = toile_get_velocities(b->world, g, b->numbers);
        if (status < 0)
            return world_failed(b, status, "velocities");
        to_float(b->numbers, b->velocities[g], count);
    }
    return TOILE_OK;
}

/* The exact state after `frame`, beside the cache. */
static toile_status write_checkpoint(bake *b, int frame) {
    double began = toile_now();
    toile_status status = toile_save_state(b->world, b->state, b->state_size);
    if (status < 0)
        return world_failed(b, status, "the state");
    status = toile_checkpoint_write(b->options->cache_path, toile_scene_fingerprint(b->scene), frame, b->state,
                                    b->state_size, &b->error);
    if (status >= 0) {
        b->checkpoint_frame = frame;
        b->checkpoint_time = toile_now();
    }
    b->report.write_seconds += toile_now() - began;
    return status;
}

/* The world's present state as the next frame of the cache, and a checkpoint now and then: frames after it are
 * simulated anew on --resume, to the same bits. */
static toile_status write_frame(bake *b, int frame) {
    double began = toile_now();
    toile_statistics statistics = {0};
    toile_get_statistics(b->world, false, &statistics);
    toile_status status = read_positions(b);
    if (status < 0)
        return status;
#define NUMBER(id) .id = (double)statistics.id,
    const toile_frame_view view = {.frame = frame,
                                   .time = toile_time(b->world),
                                   .state_hash = toile_state_hash(b->world),
                                   .numbers = {TOILE_FRAME_NUMBERS(NUMBER)},
                                   .positions = (const float *const *)b->positions,
                                   .velocities = (const float *const *)b->velocities};
#undef NUMBER
    status = toile_cache_append(b->cache, &view, &b->error);
    if (status < 0)
        return status;
    b->finished = frame - b->first + 1;
    b->report.write_seconds += toile_now() - began;
    return frame == b->first || toile_now() - b->checkpoint_time >= CHECKPOINT_SECONDS ? write_checkpoint(b, frame)
                                                                                       : TOILE_OK;
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

static toile_status start_fresh(bake *b) {
    toile_status status = check_overwrite(b);
    if (status < 0)
        return status;
    json_t *scene = scene_to_keep(b);
    char *text = scene ? json_dumps(scene, JSON_INDENT(2)) : NULL;
    json_decref(scene);
    if (!text)
        return toile_fail_memory(&b->error, "the scene's text");
    const toile_cache_header header = {.scene_name = toile_scene_name(b->scene),
                                       .settings_json = text,
                                       .library_version = toile_version(),
                                       .fingerprint = toile_scene_fingerprint(b->scene),
                                       .fps = toile_scene_fps(b->scene),
                                       .first_frame = b->first,
                                       .last_frame = b->last,
                                       .garment_count = b->garment_count,
                                       .garments = b->garments};
    status = place_inputs(b, b->first);
    if (status >= 0)
        status = toile_cache_create(&b->memory, b->options->cache_path, &header, &b->cache, &b->error);
    free(text);
    if (status < 0)
        return status;
    /* One of an earlier bake does not belong to the new file. */
    toile_checkpoint_remove(b->options->cache_path);
    return write_frame(b, b->first);
}

/* ---- a bake that goes on ---- */

typedef struct changes {
    char text[512];
    size_t used;
    int count, told; /* how many there are, how many are in the text */
} changes;

static void add_change(changes *c, const char *path, const json_t *before, const json_t *after) {
    c->count++;
    char *old = before ? json_dumps(before, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    char *new = after ? json_dumps(after, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    char line[256];
    int length = snprintf(line, sizeof line, "%s%s: %.60s -> %.60s", c->used ? "; " : "", path,
                          old ? old : "absent", new ? new : "absent");
    if (length > 0 && c->used + (size_t)length < sizeof c->text) {
        memcpy(c->text + c->used, line, (size_t)length + 1);
        c->used += (size_t)length;
        c->told++;
    }
    free(old);
    free(new);
}

/* Lists where two values differ, object by object and element by element. */
static void compare_json(changes *c, const char *path, json_t *before, json_t *after) {
    char inner[256];
    if (json_is_object(before) && json_is_object(after)) {
        const char *key;
        json_t *value;
        json_object_foreach(before, key, value) {
            snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", key);
            json_t *other = json_object_get(after, key);
            if (other)
                compare_json(c, inner, value, other);
            else
                add_change(c, inner, value, NULL);
        }
        json_object_foreach(after, key, value) {
            snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", key);
            if (!json_object_get(before, key))
                add_change(c, inner, NULL, value);
        }
    } else if (json_is_array(before) && json_is_array(after) &&
               json_array_size(before) == json_array_size(after)) {
        for (size_t i = 0; i < json_array_size(before); i++) {
            snprintf(inner, sizeof inner, "%s[%zu]", path, i);
            compare_json(c, inner, json_array_get(before, i), json_array_get(after, i));
        }
    } else if (!json_equal(before, after)) {
        add_change(c, path, before, after);
    }
}

/* What may change between a bake and its continuation. */
static void forget_harmless(json_t *scene) {
    static const char *const KEYS[] = {"$schema", "name", "description", "frames", "resolution"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        json_object_del(scene, KEYS[i]);
    json_object_del(json_object_get(scene, "settings"), "threads");
}

/* The cache's scene and the present one differ: refused, or said and gone on with after --force. */
static toile_status tell_changed(bake *b, const char *cached_json) {
    changes c = {.used = 0};
    json_t *before = json_loads(cached_json, 0, NULL), *after = scene_to_keep(b);
    forget_harmless(before);
    forget_harmless(after);
    if (before && after)
        compare_json(&c, "", before, after);
    json_decref(before);
    json_decref(after);
    char what[1024];
    snprintf(
        what, sizeof what, "the scene is not the one that %s was baked from: %s%s", b->options->cache_path,
        c.count ? c.text : "a file that it names has changed, or it was baked by another version of Toile",
        c.told < c.count ? "; and more" : "");
    if (b->options->force) {
        toile_progress_warn(&b->progress, what);
        return TOILE_OK;
    }
    return toile_fail(
        &b->error, TOILE_INVALID,
        "%.700s. Undo the change, bake anew without --resume, or go on regardless with --resume --force",
        what);
}

/* --frames A-B with --resume: A may say the frame that comes next, and nothing else. */
static toile_status check_start(bake *b, int next) {
    const toile_frame_range *frames = &b->options->frames;
    if (!frames->given || frames->first == b->first || frames->first == next)
        return TOILE_OK;
    return toile_fail(&b->error, TOILE_INVALID,
                      "--resume --frames %d-%d: %s goes on at frame %d and nowhere else; write --frames %d-%d, or start "
                      "anew without --resume",
                      frames->first, frames->last, b->options->cache_path, next, next, frames->last);
}

/* Restores the state after `frame`; the cache must hold that frame with the same hash. */
static toile_status restore(bake *b, int frame, const void *state, size_t size, uint64_t cached_hash) {
    toile_status status = place_inputs(b, frame);
    if (status < 0)
        return status;
    status = toile_restore_state(b->world, state, size);
    if (status < 0)
        return world_failed(b, status, "the checkpoint does not fit the scene; bake anew without --resume");
    if (!b->options->force && toile_state_hash(b->world) != cached_hash)
        return toile_fail(
            &b->error, TOILE_FORMAT,
            "the checkpoint %s.state is not of the cache beside it (frame %d differs); bake anew "
            "without --resume",
            b->options->cache_path, frame);
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
                              "frame %d comes out differently from the one in %s: it was baked by another build of Toile or "
                              "changed since. Bake anew without --resume",
                              frame, b->options->cache_path);
    }
    return TOILE_OK;
}

static toile_status start_resumed(bake *b) {
    const char *path = b->options->cache_path;
    toile_cache *old = NULL;
    void *state = NULL;
    size_t size;
    uint64_t fingerprint;
    int frame;
    toile_cache_frame cached;
    toile_status status = toile_cache_open(&b->memory, path, &old, &b->error);
    if (status < 0)
        goto out;
    const toile_cache_header *header = toile_cache_get_header(old);
    int finished = toile_cache_frame_count(old);

    toile_error inner;
    status = toile_checkpoint_read(&b->memory, path, &fingerprint, &frame, &state, &size, &inner);
    if (status < 0) {
        toile_fail(&b->error, status, "%.300s cannot be continued: %.600s. Bake anew without --resume", path,
                   inner.message);
        goto out;
    }
    bool changed = fingerprint != toile_scene_fingerprint(b->scene);
    if (changed) {
        status = tell_changed(b, header->settings_json);
        if (status < 0)
            goto out;
    }
    if (header->first_frame != b->first || header->garment_count != b->garment_count) {
        status = toile_fail(
            &b->error, TOILE_INVALID,
            "%s starts at frame %d and has %d garments, the scene starts at frame %d and has %d; bake "
            "anew without --resume",
            path, header->first_frame, header->garment_count, b->first, b->garment_count);
        goto out;
    }
    if (frame < b->first || frame >= b->first + finished) {
        status = toile_fail(
            &b->error, TOILE_FORMAT,
            "the checkpoint is at frame %d, but %s has frames %d to %d only: they are not of one bake, "
            "or the cache was damaged. Bake anew without --resume",
            frame, path, b->first, b->first + finished - 1);
        goto out;
    }
    status = toile_cache_read_frame(old, frame - b->first, &cached, &b->error);
    if (status < 0)
        goto out;
    status = restore(b, frame, state, size, cached.state_hash);
    if (status < 0)
        goto out;
    /* Frames after the checkpoint stay and are simulated anew up to the last, each held against the cached one; with
     * changed input they would differ, so then they go. */
    b->checkpoint_frame = frame;
    b->finished = changed ? frame - b->first + 1 : finished;
    b->resumed_from = b->first + b->finished - 1;
    status = check_start(b, b->resumed_from + 1);
    if (status < 0)
        goto out;
    if (b->resumed_from >= b->last) {
        b->complete_before = true;
        goto out;
    }
    status = replay(b, old, frame);
    if (status < 0)
        goto out;
    toile_cache_close(old, NULL);
    old = NULL;
    status = toile_cache_reopen(&b->memory, path, b->resumed_from, &b->cache, &b->error);
out:
    toile_cache_close(old, NULL);
    toile_free(&b->memory, state);
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
        if (status < 0)
            return status;
        toile_statistics statistics = {0};
        toile_get_statistics(b->world, false, &statistics);
        toile_report_frame(&b->report, frame, &statistics);
        toile_progress_frame(&b->progress, frame, &statistics);
    }
    return TOILE_OK;
}

/* At the end of a run, unless the world is ahead of the cache (a frame that could not be written): then the checkpoint
 * before it stands. A first failure is worth more than a second. */
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

static toile_status count_intersections(bake *b, int64_t *count) {
    toile_judgement judgement;
    toile_status status = read_positions(b);
    if (status >= 0)
        status = toile_scene_prepare(b->scene, b->first + b->finished - 1, &b->error);
    if (status >= 0)
        status = toile_judge_frame(&b->memory, b->garment_count, b->garments,
                                   (const float *const *)b->positions, b->scene, &judgement, &b->error);
    *count = status < 0 ? 0 : judgement.cloth_pairs + judgement.collider_pairs;
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
    toile_status status = count_intersections(b, &facts.intersections);
    if (status >= 0)
        status = toile_report_write(&b->report, b->options->report_path, b->world, &facts, &b->error);
    if (status < 0)
        toile_progress_error(&b->progress, toile_status_exit_code(status), b->error.message);
    b->error = kept;
    return status;
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
        snprintf(note, sizeof note, "stopped after frame %d of %d; go on with: %s", last, b->last, resume);
    else if (b->finished > 0)
        snprintf(note, sizeof note, "%s (frames %d to %d are kept in %s%s)", b->error.message, b->first, last,
                 b->options->cache_path,
                 status == TOILE_DIVERGED ? "; after a change go on from there with --resume --force" : "");
    else
        snprintf(note, sizeof note, "%s", b->error.message);

    int exit_code = toile_status_exit_code(status);
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

int toile_bake(const toile_bake_options *options) {
    bake b = {.options = options};
    b.progress.mode = options->progress;
    struct sigaction before[SIGNAL_COUNT];
    catch_signals(before);
    toile_memory_init(&b.memory, NULL);

    toile_status status = toile_report_start(&b.report, &b.error);
    if (status >= 0)
        status = load_scene(&b);
    if (status >= 0) {
        running = b.world;
        status = describe_garments(&b);
    }
    if (status >= 0)
        status = options->resume ? start_resumed(&b) : start_fresh(&b);
    if (status >= 0) {
        toile_progress_start(&b.progress, options->progress, "bake", toile_scene_name(b.scene),
                             options->cache_path, b.first, b.last, b.finished);
        status = run_frames(&b);
        status = last_checkpoint(&b, status);
    }
    int exit_code = tell_end(&b, status);

    running = NULL;
    release_signals(before);
    if (toile_cache_close(b.cache, &b.error) < 0) {
        toile_progress_error(&b.progress, toile_status_exit_code(b.error.status), b.error.message);
        if (exit_code == 0)
            exit_code = toile_status_exit_code(b.error.status);
    }
    free_garments(&b);
    toile_scene_free(b.scene);
    toile_report_free(&b.report);
    return exit_code;
}
