/* From a scene file to a world, and the world's colliders and pins from frame to frame.
 *
 * Loading goes: text -> JSON -> sets -> form checked by scene_schema.c -> settings, fabrics, garments,
 * colliders, pins told to the world -> toile_build -> resolved text and fingerprint. After the form is
 * checked, reading a value cannot fail; what is refused below is what the form cannot know: names, files, and
 * how values fit together. */
#include "scene_internal.h"

#include "hash.h"
#include "obj.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENE_MOST ((size_t)256 << 20) /* bytes of a scene file */

/* ---- loading ---- */

/* The text to JSON with the sets in it, and its form checked. */
static toile_status parse(loader *l, const char *path, const char *text, size_t size, const char *const *sets,
                          int set_count) {
    /* Some editors begin files with a byte order mark, which JSON has not. */
    size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    l->source = (toile_source){.file = path, .text = text + mark, .size = size - mark};
    json_error_t problem;
    l->root = json_loadb(l->source.text, l->source.size, JSON_REJECT_DUPLICATES, &problem);
    if (!l->root)
        return toile_fail(
            l->error, json_error_code(&problem) == json_error_out_of_memory ? TOILE_NO_MEMORY : TOILE_INVALID,
            "%s:%d: not a scene in JSON: %s", path, problem.line > 0 ? problem.line : 1, problem.text);

    l->sets = toile_alloc(l->memory, (size_t)set_count, sizeof *l->sets);
    if (!l->sets)
        return no_memory(l);
    l->source.sets = l->sets;
    if (set_count > 0 && !json_is_object(l->root))
        set_count = 0; /* the form is refused below */
    for (int i = 0; i < set_count; i++) {
        toile_status status = toile_scene_apply_set(l, &l->sets[i], sets[i]);
        if (status != TOILE_OK)
            return status;
        l->source.set_count = i + 1;
    }
    return toile_scene_check_form(&l->source, l->root, l->error);
}

/* Name, folder, rate and range. */
static toile_status load_head(const loader *l, const char *path) {
    toile_scene *scene = l->scene;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    char stem[129];
    size_t length = strcspn(file, ".");
    snprintf(stem, sizeof stem, "%.*s", (int)(length < 128 ? length : 128), file);
    scene->fps = 24;
    scene->first = 1;
    scene->last = 100;
    read_number(l->root, "fps", &scene->fps);
    toile_status status = toile_scene_read_frames(l, l->root, &WHOLE, &scene->first, &scene->last);
    if (status != TOILE_OK)
        return status;
    scene->frame = scene->first;
    scene->name = toile_copy_text(l->memory, read_text(l->root, "name", *stem ? stem : "scene"));
    scene->folder = toile_copy_text(l->memory, path);
    if (!scene->name || !scene->folder)
        return no_memory(l);
    scene->folder[file - path] = 0;
    return TOILE_OK;
}

/* A scene that came out of a job reads its meshes there; another may name one. The name is kept as a whole path, so that
 * the scene in a cache can be read from anywhere. */
static toile_status open_job(const loader *l, const char *path) {
    toile_scene *scene = l->scene;
    const char *file = read_text(l->root, "job", NULL);
    toile_place here = {&WHOLE, "job", 0};
    if (!scene->job && file) {
        char *seen = toile_scene_path_of(scene, l->memory, file);
        if (!seen)
            return no_memory(l);
        toile_status status = toile_scene_blame_file(l, &here, toile_job_file_open(l->memory, seen, &scene->job, l->error));
        toile_free(l->memory, seen);
        if (status != TOILE_OK)
            return status;
        path = toile_job_file_path(scene->job);
    }
    char *whole = scene->job ? realpath(path, NULL) : NULL;
    int failed = whole ? json_object_set_new(l->root, "job", json_string(whole)) : 0;
    free(whole);
    return failed ? no_memory(l) : TOILE_OK;
}

static toile_status build(const loader *l) {
    toile_scene *scene = l->scene;
    toile_status status = toile_build(scene->world);
    if (status < 0)
        return world_refuses(l, &WHOLE, status);
    status = toile_scene_take_start(l);
    if (status != TOILE_OK)
        return status;
    for (int i = 0; i < scene->garment_count; i++) {
        toile_free(&scene->memory, scene->garments[i].start);
        toile_free(&scene->memory, scene->garments[i].begin);
        scene->garments[i].start = scene->garments[i].begin = NULL;
        toile_scene_drop_pattern(&scene->memory, &scene->garments[i]);
    }
    return TOILE_OK;
}

/* `text` null: that of the file. */
static toile_status load(const toile_hooks *hooks, const char *path, const char *text, size_t size,
                         const char *const *sets, int set_count, toile_scene **scene, toile_error *error) {
    if (!path || !scene || set_count < 0 || (set_count > 0 && !sets))
        return toile_fail(error, TOILE_MISUSE, "loading a scene needs a path and a place for the scene");
    toile_error unwanted;
    toile_memory memory;
    toile_allocator allocator = {0};
    if (hooks)
        allocator = (toile_allocator){hooks->allocate, hooks->release, hooks->user};
    toile_memory_init(&memory, &allocator);
    loader l = {.error = error ? error : &unwanted, .files = TOILE_HASH_SEED};
    *scene = NULL;
    l.scene = toile_alloc(&memory, 1, sizeof *l.scene);
    if (!l.scene)
        return toile_fail_memory(error, "the scene");
    l.scene->memory = memory;
    l.memory = &l.scene->memory;
    if (hooks)
        l.scene->hooks = *hooks;

    toile_status status = TOILE_OK;
    if (!text && toile_job_file_is(path)) {
        status = toile_job_file_open(l.memory, path, &l.scene->job, l.error);
        text = status == TOILE_OK ? toile_job_file_scene(l.scene->job) : NULL;
        size = text ? strlen(text) : 0;
    } else if (!text) {
        status = toile_read_file(l.memory, path, SCENE_MOST, &l.text, &size, l.error);
        text = l.text;
    }
    if (status == TOILE_OK)
        status = parse(&l, path, text, size, sets, set_count);
    if (status == TOILE_OK)
        status = load_head(&l, path);
    if (status == TOILE_OK)
        status = open_job(&l, path);
    if (status == TOILE_OK && toile_create(hooks, &l.scene->world) < 0)
        status = no_memory(&l);
    if (status == TOILE_OK)
        status = toile_scene_load_settings(&l);
    if (status == TOILE_OK)
        status = toile_scene_check_fabrics(&l);
    if (status == TOILE_OK)
        status = toile_scene_load_garments(&l);
    if (status == TOILE_OK)
        status = toile_scene_load_shaping(&l);
    if (status == TOILE_OK)
        status = toile_scene_load_start(&l);
    if (status == TOILE_OK)
        status = toile_scene_load_colliders(&l);
    if (status == TOILE_OK)
        status = toile_scene_load_pins(&l);
    if (status == TOILE_OK)
        status = toile_scene_load_no_contact(&l);
    if (status == TOILE_OK)
        status = build(&l);
    if (status == TOILE_OK)
        status = toile_scene_write_resolved(&l);
    if (status == TOILE_OK)
        status = toile_scene_take_fingerprint(&l);

    json_decref(l.root);
    toile_free(l.memory, l.text);
    toile_free(l.memory, l.sets);
    toile_free(l.memory, l.fabrics);
    if (status == TOILE_OK)
        *scene = l.scene;
    else
        toile_scene_free(l.scene);
    return status;
}

toile_status toile_scene_load(const toile_hooks *hooks, const char *path, const char *const *sets,
                              int set_count, toile_scene **scene, toile_error *error) {
    return load(hooks, path, NULL, 0, sets, set_count, scene, error);
}

toile_status toile_scene_load_text(const toile_hooks *hooks, const char *text, size_t length,
                                   const char *path, const char *const *sets, int set_count,
                                   toile_scene **scene, toile_error *error) {
    if (!text)
        return toile_fail(error, TOILE_MISUSE, "toile_scene_load_text needs a text");
    return load(hooks, path, text, length, sets, set_count, scene, error);
}

void toile_scene_free(toile_scene *scene) {
    if (!scene)
        return;
    toile_destroy(scene->world);
    toile_scene_free_garments(scene);
    toile_scene_free_colliders(scene);
    toile_scene_free_pins(scene);
    toile_scene_free_shaping(scene);
    toile_job_file_close(scene->job);
    toile_free(&scene->memory, scene->name);
    toile_free(&scene->memory, scene->folder);
    toile_free(&scene->memory, scene->resolved);
    toile_memory memory = scene->memory;
    toile_free(&memory, scene);
}

toile_world *toile_scene_world(const toile_scene *scene) {
    return scene->world;
}

const char *toile_scene_name(const toile_scene *scene) {
    return scene->name;
}

double toile_scene_fps(const toile_scene *scene) {
    return scene->fps;
}

int toile_scene_first_frame(const toile_scene *scene) {
    return scene->first;
}

int toile_scene_last_frame(const toile_scene *scene) {
    return scene->last;
}

const char *toile_scene_resolved_json(const toile_scene *scene) {
    return scene->resolved;
}

uint64_t toile_scene_fingerprint(const toile_scene *scene) {
    return scene->fingerprint;
}

/* ---- from frame to frame ---- */

toile_status toile_scene_prepare(toile_scene *scene, int frame, toile_error *error) {
    toile_status status = TOILE_OK;
    bool placed = false;
    for (int i = 0; i < scene->collider_count && status == TOILE_OK; i++)
        status = toile_scene_place_collider(scene, &scene->colliders[i], frame, &placed, error);
    /* Everything else is where it was told to be before: this moves nothing but those. */
    if (status == TOILE_OK && placed && toile_place_inputs(scene->world) < 0)
        status = toile_fail(error, TOILE_MISUSE, "frame %d: %s", frame, toile_message(scene->world));
    for (int i = 0; i < scene->collider_count && status == TOILE_OK; i++)
        status = toile_scene_prepare_collider(scene, &scene->colliders[i], frame, error);
    for (int i = 0; i < scene->pin_count && status == TOILE_OK; i++)
        status = toile_scene_prepare_pin(scene, &scene->pins[i], frame, error);
    if (status == TOILE_OK)
        status = toile_scene_prepare_shaping(scene, frame, error);
    if (status == TOILE_OK)
        scene->frame = frame;
    return status;
}
