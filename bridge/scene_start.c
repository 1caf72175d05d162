/* Where a scene's garments begin if not as they were made: as they are in a frame of a cache, and settled before the first
 * frame. */
#include "scene_internal.h"

#include "cache.h"
#include "hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Frames in a row that are slow enough to count as rest. */
#define REST_FRAMES 4

/* ---- from a cache ---- */

/* Positions and velocities of one garment, by its name. */
static toile_status read_start(const loader *l, toile_cache *cache, int index, const toile_place *place, garment *g) {
    const toile_cache_header *header = toile_cache_get_header(cache);
    int found = 0;
    while (found < header->garment_count && strcmp(header->garments[found].name, g->name) != 0)
        found++;
    if (found == header->garment_count)
        return REFUSE(place, "it has no garment \"%.64s\"; name the garments alike", g->name);
    if (header->garments[found].vertex_count != g->vertex_count)
        return REFUSE(place, "its garment \"%.64s\" has %d vertices, the scene's has %d; use a bake of the same mesh", g->name,
                      header->garments[found].vertex_count, g->vertex_count);
    size_t n = 3 * (size_t)g->vertex_count;
    float *read = toile_alloc(l->memory, 2 * n, sizeof *read);
    g->begin = toile_alloc(l->memory, 2 * n, sizeof *g->begin);
    toile_status status = read && g->begin ? toile_cache_read(cache, index, found, read, read + n, l->error) : no_memory(l);
    for (size_t i = 0; status >= 0 && i < 2 * n; i++)
        g->begin[i] = (double)read[i];
    toile_free(l->memory, read);
    return status < 0 ? status : TOILE_OK;
}

/* The same from a job, which a scene with its cache was packed into. */
static toile_status read_start_track(loader *l, const char *name, const toile_place *place, garment *g) {
    toile_job_track info;
    int track;
    char whole[300];
    snprintf(whole, sizeof whole, "%.128s %.128s", name, g->name);
    toile_status status = toile_scene_need_job(l, place);
    if (status == TOILE_OK)
        status = toile_job_file_find_track(l->scene->job, whole, &track, &info, l->error);
    if (status != TOILE_OK)
        return status;
    if (info.vertex_count != g->vertex_count)
        return REFUSE(place, "\"%.200s\" has %d positions; garment \"%.64s\" has %d vertices", whole, info.vertex_count, g->name,
                      g->vertex_count);
    size_t n = 3 * (size_t)g->vertex_count;
    l->files = toile_hash(l->files, &info.checksum, sizeof info.checksum);
    if (!(g->begin = toile_alloc(l->memory, 2 * n, sizeof *g->begin)))
        return no_memory(l);
    for (int k = 0; k < 2 && status == TOILE_OK; k++)
        status = toile_job_file_read_track(l->scene->job, track, k, g->begin + (size_t)k * n, l->error);
    return status;
}

toile_status toile_scene_load_start(loader *l) {
    toile_scene *scene = l->scene;
    json_t *start = json_object_get(l->root, "start");
    const char *file = read_text(start, "cache", NULL);
    toile_place start_place = {&WHOLE, "start", 0}, here = {&start_place, "cache", 0}, frame_place = {&start_place, "frame", 0};
    const char *name = read_text(start, "track", NULL);
    toile_place track_place = {&start_place, "track", 0};
    for (int i = 0; name && i < scene->garment_count; i++) {
        toile_status status = read_start_track(l, name, &track_place, &scene->garments[i]);
        if (status != TOILE_OK)
            return status;
    }
    if (!file)
        return TOILE_OK;
    char *seen = toile_scene_path_of(scene, l->memory, file);
    toile_cache *cache = NULL;
    toile_cache_frame frame;
    toile_status status = seen ? toile_cache_open(l->memory, seen, &cache, l->error) : no_memory(l);
    status = toile_scene_blame_file(l, &here, status);
    if (status >= 0) {
        const toile_cache_header *header = toile_cache_get_header(cache);
        int count = toile_cache_frame_count(cache), wanted = header->first_frame + count - 1;
        read_int(start, "frame", &wanted);
        int index = wanted - header->first_frame;
        if (index < 0 || index >= count)
            status = REFUSE(&frame_place, "found %d; %.200s has frames %d to %d", wanted, seen, header->first_frame,
                            header->first_frame + count - 1);
        if (status >= 0)
            status = toile_cache_read_frame(cache, index, &frame, l->error);
        for (int i = 0; i < scene->garment_count && status >= 0; i++)
            status = read_start(l, cache, index, &here, &scene->garments[i]);
        if (status >= 0)
            l->files = toile_hash(l->files, &frame.checksum, sizeof frame.checksum);
        /* whole, so that the scene in a cache can be read from anywhere */
        char *whole = status >= 0 ? realpath(seen, NULL) : NULL;
        if (whole && (json_object_set_new(start, "cache", json_string(whole)) != 0 ||
                      json_object_set_new(start, "frame", json_integer(wanted)) != 0))
            status = no_memory(l);
        free(whole);
    }
    toile_cache_close(cache, NULL);
    toile_free(l->memory, seen);
    return status < 0 ? status : TOILE_OK;
}

/* After toile_build: the world, and the pins, which hold what they select where it is now. */
toile_status toile_scene_take_start(const loader *l) {
    toile_scene *scene = l->scene;
    double frames = 0;
    scene->settle_speed = 0.01;
    const json_t *settle = json_object_get(l->root, "settle");
    read_number(settle, "frames", &frames);
    read_number(settle, "speed", &scene->settle_speed);
    scene->settle_frames = (int)frames;
    toile_status status = frames > 0 ? toile_set_time(scene->world, -frames / scene->fps) : TOILE_OK;
    for (int i = 0; i < scene->garment_count && status >= 0; i++) {
        const garment *g = &scene->garments[i];
        if (g->begin)
            status = toile_set_start(scene->world, g->index, g->begin, g->begin + 3 * (size_t)g->vertex_count);
    }
    for (int i = 0; i < scene->pin_count && status >= 0; i++)
        if (scene->pins[i].elsewhere)
            status = toile_move_pin(scene->world, scene->pins[i].index, scene->pins[i].start);
    return status < 0 ? world_refuses(l, &WHOLE, status) : TOILE_OK;
}

/* ---- settling ---- */

int toile_scene_settle_frames(const toile_scene *scene) {
    return scene->settle_frames;
}

/* Seconds after which gravity is all there. */
static double gravity_seconds(const toile_scene *scene) {
    double delay[3] = {0}, ramp[3] = {0};
    toile_get_numbers(scene->world, "gravity_delay", delay, NULL);
    toile_get_numbers(scene->world, "gravity_ramp", ramp, NULL);
    return delay[0] + ramp[0];
}

toile_status toile_scene_settle(toile_scene *scene, bool (*go_on)(void *user, int frame, int most, const toile_statistics *now),
                                void *user, toile_error *error) {
    toile_status status = TOILE_OK;
    int slow = 0;
    double full = gravity_seconds(scene) * scene->fps;
    for (int f = 1; f <= scene->settle_frames && slow < REST_FRAMES; f++) {
        toile_statistics now;
        scene->before_first = scene->settle_frames - f + 1;
        status = toile_scene_prepare(scene, scene->first, error);
        scene->before_first = 0;
        if (status != TOILE_OK)
            return status;
        status = toile_advance(scene->world, 1 / scene->fps);
        if (status >= 0)
            status = toile_get_statistics(scene->world, false, &now);
        if (status < 0)
            return toile_fail(error, status, "settling, frame %d of at most %d: %s", f, scene->settle_frames,
                              toile_message(scene->world));
        slow = now.speed <= scene->settle_speed && now.open_stitches == 0 && f >= full ? slow + 1 : 0;
        if (!go_on(user, f, scene->settle_frames, &now))
            return toile_fail(error, TOILE_CANCELLED, "stopped while settling");
    }
    return scene->settle_frames ? toile_set_time(scene->world, 0) : TOILE_OK;
}
