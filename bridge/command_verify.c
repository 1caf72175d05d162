/* `toile verify`: is a cache what it should be? Per frame: the checksum, finite numbers, the largest stretch,
 * triangle pairs that intersect (bridge/intersect.h says exactly what counts), vertices inside colliders.
 * Judges what is stored, with nothing of the simulator's. */
#include "commands.h"

#include "cache.h"
#include "meetings.h"
#include "scene.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

typedef struct verify {
    const char *path, *scene_path;
    bool json;
    double max_stretch; /* more is a fault; infinite: none is */
    toile_frame_range range;
    toile_memory memory;
    toile_error error;
    toile_cache *cache;
    toile_scene *scene; /* null: no colliders, or none that could be had */
    bool colliders_checked;
    char unchecked[1200]; /* why not */
    float **positions, *velocities;
    json_t *frames; /* array */
    int faults;     /* frames with any */
    int64_t cloth_pairs, collider_pairs, inside, excluded_pairs;
    double largest_stretch;
    int open_colliders, degenerate;
} verify;

/* ---- the scene of a cache ---- */

toile_scene *toile_open_cache_scene(const toile_cache *cache, const char *scene_path, toile_error *error) {
    const toile_cache_header *header = toile_cache_get_header(cache);
    const char *kept = header->settings_json;
    toile_scene *scene = NULL;
    if (scene_path)
        toile_scene_load(NULL, scene_path, NULL, 0, &scene, error);
    else
        toile_scene_load_text(NULL, kept, strlen(kept), "the scene in the cache", NULL, 0, &scene, error);
    if (scene && scene_path && toile_scene_fingerprint(scene) != header->fingerprint)
        toile_complain(
            0,
            "warning: %s is not quite the scene of the bake (changed since, or baked with --set); its "
            "colliders may be elsewhere",
            scene_path);
    return scene;
}

static bool has_colliders(const toile_cache *cache) {
    json_t *resolved = json_loads(toile_cache_get_header(cache)->settings_json, 0, NULL);
    bool some = !resolved || json_array_size(json_object_get(resolved, "colliders")) > 0;
    json_decref(resolved);
    return some;
}

/* An option that was given must work; mesh files that the kept scene names may be gone. */
static toile_status find_colliders(verify *v) {
    if (!v->scene_path && !has_colliders(v->cache)) {
        v->colliders_checked = true;
        return TOILE_OK;
    }
    v->scene = toile_open_cache_scene(v->cache, v->scene_path, &v->error);
    if (!v->scene && v->scene_path)
        return v->error.status;
    if (!v->scene) {
        snprintf(v->unchecked, sizeof v->unchecked, "%s; give the scene with --scene SCENE.json",
                 v->error.message);
        return TOILE_OK;
    }
    v->colliders_checked = true;
    return TOILE_OK;
}

/* ---- one frame ---- */

static toile_status read_frame(verify *v, int index, bool *finite) {
    const toile_cache_header *header = toile_cache_get_header(v->cache);
    for (int g = 0; g < header->garment_count; g++) {
        toile_status status = toile_cache_read(v->cache, index, g, v->positions[g], v->velocities, &v->error);
        if (status < 0)
            return status;
        for (size_t i = 0; i < 3 * (size_t)header->garments[g].vertex_count; i++)
            *finite = *finite && isfinite(v->velocities[i]);
    }
    return TOILE_OK;
}

/* Numbers of a garbled frame may be beyond what JSON can say. */
static json_t *real(double value) {
    json_t *number = json_real(value);
    return number ? number : json_null();
}

static void print_frame(const verify *v, int frame, const toile_judgement *j, bool sound, bool finite,
                        bool clean) {
    printf("%7d  %-8s  %-6s  %8.3f %%  %11" PRId64, frame, sound ? "ok" : "DIFFERS", finite ? "ok" : "NO",
           100 * j->max_stretch, j->cloth_pairs);
    if (v->colliders_checked)
        printf("  %14" PRId64 "  %6d", j->collider_pairs, j->inside);
    printf("%s\n", clean ? "" : "  <-");
}

static void print_meetings(const verify *v, const toile_judgement *j) {
    char line[512];
    for (int i = 0; i < j->meeting_count; i++) {
        toile_meeting_text(&j->meetings[i], toile_cache_get_header(v->cache)->garments, v->scene, line, sizeof line);
        printf("         %s\n", line);
    }
    if (j->meeting_count == TOILE_MEETINGS_MOST)
        printf("         and maybe more; the first %d are named\n", TOILE_MEETINGS_MOST);
}

static toile_status check_frame(verify *v, int index) {
    const toile_cache_header *header = toile_cache_get_header(v->cache);
    toile_cache_frame stored;
    toile_judgement j = {0};
    bool finite = true;
    toile_status status = toile_cache_read_frame(v->cache, index, &stored, &v->error);
    if (status < 0)
        return status;
    status = toile_cache_check(v->cache, index, &v->error);
    if (status < 0 && status != TOILE_FORMAT)
        return status;
    bool sound = status >= 0;
    /* A frame that cannot even be read has a fault, but the others can still be looked at. */
    status = read_frame(v, index, &finite);
    if (status == TOILE_FORMAT) {
        sound = finite = false;
    } else if (status < 0) {
        return status;
    } else {
        if (v->scene)
            status = toile_scene_prepare(v->scene, stored.frame, &v->error);
        if (status >= 0)
            status = toile_judge_frame(&v->memory, header->garment_count, header->garments,
                                       (const float *const *)v->positions, v->scene, &j, &v->error);
        if (status < 0)
            return status;
        finite = finite && j.finite;
    }
    bool clean = sound && finite && j.max_stretch <= v->max_stretch && j.cloth_pairs == 0 &&
                 j.collider_pairs == 0 && j.inside == 0;
    v->faults += !clean;
    v->cloth_pairs += j.cloth_pairs;
    v->collider_pairs += j.collider_pairs;
    v->inside += j.inside;
    v->excluded_pairs += j.excluded_pairs;
    v->largest_stretch = fmax(v->largest_stretch, j.max_stretch);
    v->open_colliders = j.open_colliders > v->open_colliders ? j.open_colliders : v->open_colliders;
    v->degenerate = j.degenerate > v->degenerate ? j.degenerate : v->degenerate;
    if (!v->json) {
        print_frame(v, stored.frame, &j, sound, finite, clean);
        print_meetings(v, &j);
        return TOILE_OK;
    }
    char hash[17], checksum[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, stored.state_hash);
    snprintf(checksum, sizeof checksum, "%016" PRIx64, stored.checksum);
    json_t *entry = json_pack("{s:i, s:b, s:s, s:s, s:b, s:o, s:I, s:i, s:b}", "frame", stored.frame,
                              "checksum_ok", sound, "checksum", checksum, "state_hash", hash, "finite",
                              finite, "max_stretch", real(j.max_stretch), "cloth_pairs",
                              (json_int_t)j.cloth_pairs, "degenerate", j.degenerate, "clean", clean);
    json_object_set_new(entry, "collider_pairs",
                        v->colliders_checked ? json_integer(j.collider_pairs) : json_null());
    json_object_set_new(entry, "inside_colliders",
                        v->colliders_checked ? json_integer(j.inside) : json_null());
    json_object_set_new(entry, "excluded_pairs", json_integer(j.excluded_pairs));
    json_object_set_new(entry, "meetings", toile_meetings_json(&j, header->garments, v->scene));
    json_array_append_new(v->frames, entry);
    return TOILE_OK;
}

/* ---- all of them ---- */

static void print_verdict(const verify *v, int count, bool complete) {
    if (v->degenerate)
        printf("note: up to %d cloth triangles of a frame have no area and were left out of the pairs\n",
               v->degenerate);
    if (v->open_colliders)
        printf(
            "note: %d colliders have a border, hence no inside; only their intersecting pairs were counted\n",
            v->open_colliders);
    if (v->excluded_pairs)
        printf("note: %" PRId64 " pairs of what the scene excludes from contact (no_contact) do not count\n", v->excluded_pairs);
    if (!v->colliders_checked)
        printf("COLLIDERS WERE NOT CHECKED: %s\n", v->unchecked);
    if (!complete)
        printf("note: the bake is not complete; the finished frames were checked\n");
    if (v->faults)
        printf("NOT CLEAN: %d of %d frames have faults\n", v->faults, count);
    else
        printf("clean: %d frames%s\n", count, v->colliders_checked ? "" : ", as far as checked");
}

static int verify_frames(verify *v, int first, int last) {
    const toile_cache_header *header = toile_cache_get_header(v->cache);
    int planned = header->last_frame - header->first_frame + 1;
    bool complete = toile_cache_frame_count(v->cache) >= planned;
    if (!v->json)
        printf("%7s  %-8s  %-6s  %10s  %11s%s\n", "frame", "checksum", "finite", "stretch", "cloth pairs",
               v->colliders_checked ? "  collider pairs  inside" : "");
    for (int i = first; i <= last; i++)
        if (check_frame(v, i) < 0)
            return toile_complain_error(&v->error);
    int count = last - first + 1;
    int exit_code = v->faults ? TOILE_EXIT_FAILED : 0;
    if (!v->json) {
        print_verdict(v, count, complete);
        return exit_code;
    }
    json_t *object =
        json_pack("{s:s, s:b, s:b, s:b, s:s, s:i, s:i, s:o, s:I, s:i, s:O}", "file", v->path, "clean",
                  v->faults == 0, "complete", complete, "colliders_checked", v->colliders_checked,
                  "colliders_unchecked_reason", v->unchecked, "frames_checked", count, "frames_with_faults",
                  v->faults, "max_stretch", real(v->largest_stretch), "cloth_pairs",
                  (json_int_t)v->cloth_pairs, "open_colliders", v->open_colliders, "frames", v->frames);
    json_object_set_new(object, "collider_pairs",
                        v->colliders_checked ? json_integer(v->collider_pairs) : json_null());
    json_object_set_new(object, "inside_colliders",
                        v->colliders_checked ? json_integer(v->inside) : json_null());
    int printed = toile_print_json(object);
    return printed ? printed : exit_code;
}

static toile_status make_room(verify *v) {
    const toile_cache_header *header = toile_cache_get_header(v->cache);
    size_t most = 0;
    v->positions = toile_alloc(&v->memory, (size_t)header->garment_count, sizeof *v->positions);
    for (int g = 0; v->positions && g < header->garment_count; g++) {
        size_t vertices = (size_t)header->garments[g].vertex_count;
        most = vertices > most ? vertices : most;
        v->positions[g] = toile_alloc(&v->memory, 3 * vertices, sizeof(float));
        if (!v->positions[g])
            return toile_fail_memory(&v->error, "a frame");
    }
    v->velocities = toile_alloc(&v->memory, 3 * most, sizeof(float));
    v->frames = json_array();
    if (!v->positions || !v->velocities || !v->frames)
        return toile_fail_memory(&v->error, "a frame");
    return TOILE_OK;
}

static int verify_cache(verify *v) {
    int exit_code, first, last;
    toile_status status = toile_cache_open(&v->memory, v->path, &v->cache, &v->error);
    if (status >= 0)
        status = make_room(v);
    if (status >= 0)
        status = find_colliders(v);
    if (status < 0)
        exit_code = toile_complain_error(&v->error);
    else if (!toile_choose_frames(&v->range, v->cache, v->path, &first, &last))
        exit_code = TOILE_EXIT_INPUT;
    else
        exit_code = verify_frames(v, first, last);

    for (int g = 0; v->positions && g < toile_cache_get_header(v->cache)->garment_count; g++)
        toile_free(&v->memory, v->positions[g]);
    toile_free(&v->memory, v->positions);
    toile_free(&v->memory, v->velocities);
    json_decref(v->frames);
    toile_scene_free(v->scene);
    toile_cache_close(v->cache, NULL);
    return exit_code;
}

int toile_command_verify(int argc, char **argv) {
    static const char *const operands[] = {"CACHE.h5"};
    verify v = {.max_stretch = INFINITY};
    int exit_code;
    const toile_option options[] = {
        {"--frames", NULL, TOILE_OPTION_FRAMES, &v.range, "A-B", "only these frames", NULL},
        {"--scene", NULL, TOILE_OPTION_TEXT, &v.scene_path, "SCENE.json",
         "take the colliders of this scene, not of the one kept in the cache", NULL},
        {"--max-stretch", NULL, TOILE_OPTION_NUMBER, &v.max_stretch, "S",
         "a stretch above S (0.1 is 10 %) is a fault; else it is only reported", NULL},
        {"--json", NULL, TOILE_OPTION_FLAG, &v.json, NULL, "as JSON", NULL},
    };
    const toile_syntax syntax = {
        "toile verify CACHE.h5 [--frames A-B] [--scene SCENE.json] [--max-stretch S] [--json]",
        "Checks frames of a cache. Exit code 0 only if every one is clean: its checksum fits, every number "
        "is finite,\n"
        "no two triangles of the cloth intersect, none intersects a collider, no vertex is inside a "
        "collider.\n"
        "Triangles that touch count as intersecting; neighbours count only if they meet beyond the vertex or "
        "edge\n"
        "that they share. All tests are exact for the stored positions; round colliders are taken as the "
        "fine meshes\n"
        "that `toile export --colliders` writes. What a scene excludes from contact does not count. Stretch is the largest of the triangles' |w_u| and |w_v| "
        "less 1.",
        options,
        COUNT(options),
        operands,
        COUNT(operands)};
    if (!toile_parse_options(&syntax, argc, argv, &v.path, &exit_code))
        return exit_code;
    toile_memory_init(&v.memory, NULL);
    return verify_cache(&v);
}
