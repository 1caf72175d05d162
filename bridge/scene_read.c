/* Reading that every kind of thing in a scene shares: frame ranges, names, file names, motions. */
#include "scene_internal.h"

#include "hash.h"

#include <stdio.h>
#include <string.h>

toile_status toile_scene_read_frames(const loader *l, const json_t *object, const toile_place *place,
                                     int *first, int *last) {
    double frames[2] = {*first, *last};
    toile_place here = {place, "frames", 0};
    read_vector(object, "frames", 2, frames);
    if (frames[0] > frames[1])
        return REFUSE(&here, "found [%g, %g]; the first frame is not after the last", frames[0], frames[1]);
    *first = (int)frames[0];
    *last = (int)frames[1];
    return TOILE_OK;
}

/* ---- names ---- */

int toile_scene_find_name(const toile_scene *scene, name_of *of, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(of(scene, i), name) == 0)
            return i;
    return -1;
}

toile_status toile_scene_refuse_name(const loader *l, const toile_place *place, const char *name, name_of *of,
                                     int count) {
    const char *known[NAMES_MOST];
    char text[600];
    for (int i = 0; i < count; i++)
        known[i] = of(l->scene, i);
    toile_known_names(name, known, count, text, sizeof text);
    return REFUSE(place, "found \"%.64s\"; %s", name, text);
}

toile_status toile_scene_take_name(const loader *l, const json_t *object, const toile_place *place,
                                   name_of *of, const char *kind, char **name) {
    char made[32];
    snprintf(made, sizeof made, "%s_%zu", kind, place->index);
    const char *text = read_text(object, "name", made);
    int before = toile_scene_find_name(l->scene, of, (int)place->index, text);
    toile_place here = {place, "name", 0};
    if (before >= 0)
        return REFUSE(&here, "found \"%.64s\"; %ss[%d] already has this name", text, kind, before);
    *name = toile_copy_text(l->memory, text);
    return *name ? TOILE_OK : no_memory(l);
}

/* ---- files ---- */

char *toile_scene_path_of(const toile_scene *scene, toile_memory *memory, const char *file) {
    const char *folder = file[0] == '/' ? "" : scene->folder;
    size_t size = strlen(folder) + strlen(file) + 1;
    char *path = toile_alloc(memory, size, 1);
    if (path)
        snprintf(path, size, "%s%s", folder, file);
    return path;
}

toile_status toile_scene_blame_file(const loader *l, const toile_place *place, toile_status status) {
    if (status != TOILE_IO)
        return status;
    toile_error inner = *l->error;
    return toile_place_fail(&l->source, place, l->error, status, "%s", inner.message);
}

/* ---- jobs ---- */

toile_status toile_scene_need_job(const loader *l, const toile_place *place) {
    return l->scene->job ? TOILE_OK
                         : REFUSE(place, "the scene has no job; give the file that it is in: \"job\": \"FILE.h5\"");
}

toile_status toile_scene_load_track(loader *l, const json_t *object, const toile_place *place, int vertices, int *track) {
    const char *name = read_text(object, "track", NULL);
    toile_place here = {place, "track", 0};
    toile_job_track info;
    *track = -1;
    if (!name)
        return TOILE_OK;
    toile_status status = toile_scene_need_job(l, &here);
    if (status == TOILE_OK)
        status = toile_job_file_find_track(l->scene->job, name, track, &info, l->error);
    if (status != TOILE_OK)
        return status;
    l->files = toile_hash(l->files, &info.checksum, sizeof info.checksum);
    if (info.vertex_count != vertices)
        return REFUSE(&here, "\"%.64s\" has %d positions a frame; %d are needed, one for each vertex", name,
                      info.vertex_count, vertices);
    return TOILE_OK;
}

/* ---- motions ---- */

toile_status toile_scene_load_motion(const loader *l, const json_t *object, const toile_place *place,
                                     const char *origin, toile_motion *motion) {
    const json_t *value = json_object_get(object, "motion"), *keys = json_object_get(value, "keys");
    toile_place motion_place = {place, "motion", 0}, keys_place = {&motion_place, "keys", 0};
    if (!value)
        return TOILE_OK;
    motion->smooth = strcmp(read_text(value, "interpolation", "linear"), "smooth") == 0;
    motion->keys = toile_alloc(l->memory, json_array_size(keys), sizeof *motion->keys);
    if (!motion->keys)
        return no_memory(l);
    motion->key_count = (int)json_array_size(keys);
    for (int i = 0; i < motion->key_count; i++) {
        const json_t *item = json_array_get(keys, (size_t)i);
        toile_key *key = &motion->keys[i];
        *key = motion->rest;
        read_number(item, "frame", &key->frame);
        read_vector(item, origin, 3, key->origin);
        read_vector(item, "rotate", 3, key->rotate);
        if (i > 0 && !(key->frame > key[-1].frame)) {
            toile_place item_place = {&keys_place, NULL, (size_t)i}, here = {&item_place, "frame", 0};
            return REFUSE(&here, "found %g after %g; frames increase from key to key", key->frame,
                          key[-1].frame);
        }
    }
    return TOILE_OK;
}
