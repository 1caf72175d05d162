/* `toile info`: what is in a file. What kind it is, its first bytes say; a name is only believed for formats
 * that have no mark of their own. */
#include "commands.h"

#include "abc.h"
#include "cache.h"
#include "obj.h"
#include "pointcache.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

typedef struct bounds {
    double low[3], high[3];
} bounds;

static const bounds NOWHERE = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

static void bounds_add(bounds *b, const double point[3]) {
    for (int k = 0; k < 3; k++) {
        b->low[k] = fmin(b->low[k], point[k]);
        b->high[k] = fmax(b->high[k], point[k]);
    }
}

static json_t *bounds_json(const bounds *b) {
    return json_pack("[[f, f, f], [f, f, f]]", b->low[0], b->low[1], b->low[2], b->high[0], b->high[1],
                     b->high[2]);
}

static void print_bounds(const char *label, const bounds *b, const char *unit) {
    printf("%s(%.4g, %.4g, %.4g) to (%.4g, %.4g, %.4g)%s\n", label, b->low[0], b->low[1], b->low[2],
           b->high[0], b->high[1], b->high[2], unit);
}

/* Null, for what JSON cannot say or memory could not be had for, becomes JSON's null. */
static void put(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value ? value : json_null());
}

/* Null when it is not finite. */
static json_t *number_json(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/* A text from a file of unknown origin: what could command a terminal, or is not UTF-8, becomes '?'. */
static json_t *text_json(const char *text) {
    char *copy = text ? strdup(text) : NULL;
    for (char *at = copy; at && *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    json_t *value = copy ? json_string(copy) : NULL;
    for (char *at = copy; at && *at && !value; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    if (copy && !value)
        value = json_string(copy);
    free(copy);
    return value ? value : json_null();
}

/* 24.0000001 is 24: rates are stored as periods. */
static double tidy_rate(double rate) {
    return fabs(rate - round(rate)) < 1e-6 * rate ? round(rate) : rate;
}

static json_t *file_json(const char *path, const char *kind, int64_t size) {
    json_t *object = json_object();
    put(object, "file", text_json(path));
    put(object, "kind", json_string(kind));
    put(object, "bytes", json_integer(size));
    return object;
}

static void print_size(int64_t bytes, char *text, size_t size) {
    if (bytes < 1 << 20)
        snprintf(text, size, "%.1f KB", (double)bytes / 1024);
    else
        snprintf(text, size, "%.1f MB", (double)bytes / (1 << 20));
}

static bounds bounds_from(const json_t *value) {
    bounds box = NOWHERE;
    for (int k = 0; k < 3; k++) {
        box.low[k] = json_number_value(json_array_get(json_array_get(value, 0), (size_t)k));
        box.high[k] = json_number_value(json_array_get(json_array_get(value, 1), (size_t)k));
    }
    return box;
}

static long long whole(const json_t *object, const char *key) {
    return (long long)json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

/* Bounds of the first and the last frame, as far as they are there. */
static void print_ends(const json_t *object, const char *indent, const char *unit) {
    for (int end = 0; end < 2; end++) {
        const json_t *value = json_object_get(object, end ? "bounds_last" : "bounds_first");
        bounds box = bounds_from(value);
        char label[32];
        snprintf(label, sizeof label, "%s%-*s", indent, 15 - (int)strlen(indent), end ? "last" : "first");
        if (json_is_array(value))
            print_bounds(label, &box, unit);
    }
}

/* Prints a description and drops it. Returns the exit code. */
static int print_description(json_t *object, bool json, void (*print)(const json_t *object)) {
    if (json)
        return toile_print_json(object);
    print(object);
    json_decref(object);
    return 0;
}

/* ---- caches ---- */

/* Bounds of one frame of a garment; NOWHERE when memory is out or nothing in it is a number. */
static toile_status frame_bounds(toile_memory *memory, toile_cache *cache, int index, int garment,
                                 bounds *result, toile_error *error) {
    int count = toile_cache_get_header(cache)->garments[garment].vertex_count;
    *result = NOWHERE;
    float *positions = toile_alloc(memory, 3 * (size_t)count, sizeof *positions);
    if (!positions)
        return toile_fail_memory(error, "a frame");
    toile_status status = toile_cache_read(cache, index, garment, positions, NULL, error);
    for (int i = 0; i < count && status >= 0; i++) {
        const float *p = positions + 3 * (size_t)i;
        bounds_add(result, (const double[3]){(double)p[0], (double)p[1], (double)p[2]});
    }
    toile_free(memory, positions);
    return status;
}

static json_t *panels_json(const toile_garment_view *garment) {
    json_t *list = json_array();
    for (int p = 0; p < garment->panel_count; p++) {
        int triangles = 0;
        for (int t = 0; t < garment->triangle_count; t++)
            triangles += garment->triangle_panels[t] == p;
        json_array_append_new(
            list, json_pack("{s:s, s:i}", "name", garment->panel_names[p], "triangles", triangles));
    }
    return list;
}

static toile_status describe_cache(toile_memory *memory, toile_cache *cache, const char *path, int64_t size,
                                   json_t *object, toile_error *error) {
    const toile_cache_header *header = toile_cache_get_header(cache);
    int finished = toile_cache_frame_count(cache), planned = header->last_frame - header->first_frame + 1;
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, header->fingerprint);
    put(object, "file", json_string(path));
    put(object, "kind", json_string("cache"));
    put(object, "scene", json_string(header->scene_name));
    put(object, "fps", json_real(header->fps));
    put(object, "first_frame", json_integer(header->first_frame));
    put(object, "last_frame", json_integer(header->last_frame));
    put(object, "frames", json_integer(finished));
    put(object, "frames_planned", json_integer(planned));
    put(object, "complete", json_boolean(finished >= planned));
    put(object, "bytes", json_integer(size));
    put(object, "library_version", json_string(header->library_version));
    put(object, "fingerprint", json_string(fingerprint));

    json_t *garments = json_array();
    put(object, "garments", garments);
    for (int g = 0; g < header->garment_count; g++) {
        const toile_garment_view *garment = &header->garments[g];
        json_t *entry = json_object();
        json_array_append_new(garments, entry);
        put(entry, "name", json_string(garment->name));
        put(entry, "vertices", json_integer(garment->vertex_count));
        put(entry, "triangles", json_integer(garment->triangle_count));
        put(entry, "panels", panels_json(garment));
        for (int end = 0; end < 2 && finished > 0; end++) {
            bounds box;
            toile_status status = frame_bounds(memory, cache, end ? finished - 1 : 0, g, &box, error);
            if (status < 0)
                return status;
            put(entry, end ? "bounds_last" : "bounds_first", bounds_json(&box));
        }
    }
    if (finished > 0) {
        toile_cache_frame last;
        toile_status status = toile_cache_read_frame(cache, finished - 1, &last, error);
        if (status < 0)
            return status;
        char hash[17];
        snprintf(hash, sizeof hash, "%016" PRIx64, last.state_hash);
        put(object, "time", json_real(last.time));
        put(object, "state_hash", json_string(hash));
    }
    return TOILE_OK;
}

static void print_cache(const json_t *object) {
    char size[32];
    print_size(whole(object, "bytes"), size, sizeof size);
    long long first = whole(object, "first_frame"), frames = whole(object, "frames");
    printf("%s: Toile cache of scene \"%s\", %s\n", text_of(object, "file"), text_of(object, "scene"), size);
    printf("  frames       %lld to %lld planned, %g per second\n", first, whole(object, "last_frame"),
           json_number_value(json_object_get(object, "fps")));
    if (frames == 0)
        printf("  finished     none yet\n");
    else
        printf("  finished     %lld to %lld: %s\n", first, first + frames - 1,
               json_is_true(json_object_get(object, "complete")) ? "complete" : "not complete");
    printf("  written by   Toile %s, fingerprint %s\n", text_of(object, "library_version"),
           text_of(object, "fingerprint"));
    size_t i;
    const json_t *garment;
    json_array_foreach(json_object_get(object, "garments"), i, garment) {
        printf("  garment      %s: %lld vertices, %lld triangles\n", text_of(garment, "name"),
               whole(garment, "vertices"), whole(garment, "triangles"));
        size_t p;
        const json_t *panel;
        json_array_foreach(json_object_get(garment, "panels"), p, panel)
            printf("    panel      %s: %lld triangles\n", text_of(panel, "name"), whole(panel, "triangles"));
        print_ends(garment, "    ", " m");
    }
}

static int info_cache(toile_memory *memory, const char *path, int64_t size, bool json) {
    toile_error error;
    toile_cache *cache = NULL;
    json_t *object = json_object();
    toile_status status = toile_cache_open(memory, path, &cache, &error);
    if (status >= 0)
        status = describe_cache(memory, cache, path, size, object, &error);
    toile_cache_close(cache, NULL);
    if (status < 0) {
        json_decref(object);
        return toile_complain_error(&error);
    }
    return print_description(object, json, print_cache);
}

/* ---- OBJ ---- */

static int info_obj(toile_memory *memory, const char *path, int64_t size, bool json) {
    toile_error error;
    toile_obj obj;
    if (toile_obj_read(memory, path, &obj, &error) < 0)
        return toile_complain_error(&error);
    bounds box = NOWHERE;
    for (int i = 0; i < obj.vertex_count; i++)
        bounds_add(&box, obj.positions + 3 * (size_t)i);
    int quads = 0;
    for (int f = 0; f < obj.face_count; f++)
        quads += obj.face_sizes[f] == 4;
    json_t *groups = json_array();
    for (int p = 0; p < obj.panel_count; p++) {
        int faces = 0;
        for (int f = 0; f < obj.face_count; f++)
            faces += obj.face_panels[f] == p;
        json_array_append_new(groups, json_pack("{s:s, s:i}", "name", obj.panel_names[p], "faces", faces));
    }
    int exit_code = 0;
    if (json) {
        json_t *object = json_object();
        put(object, "file", json_string(path));
        put(object, "kind", json_string("obj"));
        put(object, "bytes", json_integer(size));
        put(object, "vertices", json_integer(obj.vertex_count));
        put(object, "uvs", json_integer(obj.uv_count));
        put(object, "triangles", json_integer(obj.face_count - quads));
        put(object, "quads", json_integer(quads));
        put(object, "bounds", obj.vertex_count ? bounds_json(&box) : json_null());
        put(object, "groups", json_incref(groups));
        exit_code = toile_print_json(object);
    } else {
        char length[32];
        print_size(size, length, sizeof length);
        printf("%s: OBJ mesh, %s\n  vertices     %d, with %d (u, v)\n  faces        %d triangles, %d quads\n",
               path, length, obj.vertex_count, obj.uv_count, obj.face_count - quads, quads);
        if (obj.vertex_count)
            print_bounds("  bounds       ", &box, " m");
        size_t i;
        const json_t *group;
        json_array_foreach(groups, i, group)
            printf("  group        %s: %lld faces\n", text_of(group, "name"), whole(group, "faces"));
    }
    json_decref(groups);
    toile_obj_free(memory, &obj);
    return exit_code;
}

/* ---- point caches ---- */

static toile_status describe_pointcache(toile_memory *memory, toile_pointcache_reader *reader, json_t *object,
                                        toile_error *error) {
    const toile_pointcache_info *info = toile_pointcache_get_info(reader);
    put(object, "vertices", json_integer(info->point_count));
    put(object, "frames", json_integer(info->frame_count));
    put(object, "frames_stored", json_integer(info->stored_frames));
    put(object, "extra_bytes", json_integer(info->extra_bytes));
    put(object, "complete", json_boolean(info->stored_frames == info->frame_count && info->extra_bytes == 0));
    if (info->kind == TOILE_PC2) {
        put(object, "first_frame", number_json(info->first_frame));
        put(object, "frame_step", number_json(info->frame_step));
    } else {
        put(object, "first_time", number_json(info->first_time));
        put(object, "last_time", number_json(info->last_time));
        put(object, "fps", info->fps > 0 ? number_json(info->fps) : json_null());
    }
    if (info->stored_frames == 0 || info->point_count == 0)
        return TOILE_OK;
    /* A frame that is there in full is no larger than the file. */
    float *positions = toile_alloc(memory, (size_t)info->point_count, 3 * sizeof *positions);
    toile_status status = positions ? TOILE_OK : toile_fail_memory(error, "a frame");
    for (int end = 0; end < 2 && status >= 0; end++) {
        bounds box = NOWHERE;
        status = toile_pointcache_read(reader, end ? info->stored_frames - 1 : 0, positions, error);
        for (size_t i = 0; i < 3 * (size_t)info->point_count && status >= 0; i += 3)
            bounds_add(&box, (const double[3]){(double)positions[i], (double)positions[i + 1],
                                               (double)positions[i + 2]});
        put(object, end ? "bounds_last" : "bounds_first", bounds_json(&box));
    }
    toile_free(memory, positions);
    return status;
}

static void print_pointcache(const json_t *object) {
    char size[32];
    print_size(whole(object, "bytes"), size, sizeof size);
    bool pc2 = strcmp(text_of(object, "kind"), "pc2") == 0;
    long long frames = whole(object, "frames"), stored = whole(object, "frames_stored");
    printf("%s: %s point cache, %s\n  vertices     %lld\n", text_of(object, "file"), pc2 ? "PC2" : "MDD",
           size, whole(object, "vertices"));
    if (pc2)
        printf("  frames       %lld from frame %g, %g apart\n", frames, number_of(object, "first_frame"),
               number_of(object, "frame_step"));
    else
        printf("  frames       %lld from %.6g to %.6g s\n", frames, number_of(object, "first_time"),
               number_of(object, "last_time"));
    if (!pc2 && json_is_number(json_object_get(object, "fps")))
        printf("  rate         %.6g per second\n", number_of(object, "fps"));
    if (stored < frames)
        printf("  finished     %lld: NOT COMPLETE, the file is cut off\n", stored);
    else if (whole(object, "extra_bytes") > 0)
        printf("  finished     all, but %lld bytes follow that do not belong: NOT AS IT SHOULD BE\n",
               whole(object, "extra_bytes"));
    else
        printf("  finished     complete\n");
    print_ends(object, "  ", "");
}

static int info_pointcache(toile_memory *memory, const char *path, int64_t size, bool json,
                           toile_pointcache_kind kind) {
    toile_error error;
    toile_pointcache_reader *reader = NULL;
    json_t *object = file_json(path, kind == TOILE_PC2 ? "pc2" : "mdd", size);
    toile_status status = toile_pointcache_open(memory, path, kind, &reader, &error);
    if (status >= 0)
        status = describe_pointcache(memory, reader, object, &error);
    toile_pointcache_close(reader);
    if (status < 0) {
        json_decref(object);
        return toile_complain_error(&error);
    }
    return print_description(object, json, print_pointcache);
}

static int info_pc2(toile_memory *memory, const char *path, int64_t size, bool json) {
    return info_pointcache(memory, path, size, json, TOILE_PC2);
}

static int info_mdd(toile_memory *memory, const char *path, int64_t size, bool json) {
    return info_pointcache(memory, path, size, json, TOILE_MDD);
}

/* ---- Alembic ---- */

static void put_sampling(json_t *entry, const abc_time_sampling *sampling, uint64_t samples) {
    if (!sampling || samples == 0)
        return;
    put(entry, "start", number_json(abc_time_of(sampling, 0)));
    put(entry, "end", number_json(abc_time_of(sampling, samples - 1)));
    if (samples > 1 && sampling->kind == ABC_UNIFORM)
        put(entry, "fps", number_json(tidy_rate(1 / sampling->period)));
}

static abc_status describe_mesh(abc_reader *reader, abc_object *mesh, json_t *entry) {
    static const char *const topologies[] = {"static", "deforming", "changing"};
    abc_mesh_info info;
    abc_mesh_sample sample = {0};
    abc_status status = abc_mesh_get_info(reader, mesh, &info);
    if (status < 0)
        return status;
    put(entry, "samples", json_integer((json_int_t)info.samples));
    put(entry, "topology", json_string(topologies[info.topology]));
    put_sampling(entry, abc_reader_time_sampling(reader, info.time_sampling), info.samples);
    put(entry, "velocities", json_boolean(info.has_velocities));
    put(entry, "uvs", json_boolean(info.has_uvs));
    put(entry, "normals", json_boolean(info.has_normals));
    json_t *params = json_array();
    put(entry, "params", params);
    for (size_t i = 0; i < info.param_count; i++) {
        abc_property_info about;
        abc_property *param = abc_mesh_param(reader, mesh, i);
        if (!param)
            continue;
        abc_property_get_info(param, &about);
        json_array_append_new(params, text_json(about.name));
    }
    for (int end = 0; end < 2 && info.samples > 0 && status >= 0; end++) {
        status = abc_mesh_read(reader, mesh, end ? info.samples - 1 : 0, &sample);
        if (status < 0)
            break;
        if (end == 0) {
            put(entry, "vertices", json_integer((json_int_t)sample.point_count));
            put(entry, "faces", json_integer((json_int_t)sample.face_count));
        }
        const double *b = sample.bounds;
        const bounds box = {{b[0], b[1], b[2]}, {b[3], b[4], b[5]}};
        put(entry, end ? "bounds_last" : "bounds_first",
            sample.point_count ? bounds_json(&box) : json_null());
    }
    abc_mesh_sample_free(reader, &sample);
    return status;
}

static abc_status describe_faceset(abc_reader *reader, abc_object *set, json_t *entry) {
    abc_sample faces = {0};
    bool exclusive;
    abc_status status = abc_faceset_read(reader, set, 0, &faces, &exclusive);
    if (status >= 0)
        put(entry, "faces", json_integer((json_int_t)faces.count));
    abc_sample_free(reader, &faces);
    return status;
}

static abc_status describe_xform(abc_reader *reader, abc_object *xform, json_t *entry) {
    abc_xform_info info;
    abc_status status = abc_xform_get_info(reader, xform, &info);
    if (status < 0)
        return status;
    put(entry, "samples", json_integer((json_int_t)info.samples));
    put(entry, "identity", json_boolean(info.identity));
    put_sampling(entry, abc_reader_time_sampling(reader, info.time_sampling), info.samples);
    return status;
}

/* Depth first. What is wrong with an object is told there and counted; the rest is still described. */
static int describe_object(toile_memory *memory, abc_reader *reader, abc_object *object, json_t *list) {
    int damaged = 0;
    for (size_t i = 0; i < abc_object_child_count(object); i++) {
        abc_object *child = abc_object_child(object, i);
        size_t length = abc_object_path(child, NULL, 0);
        char *path = toile_alloc(memory, length + 1, 1);
        json_t *entry = json_object();
        abc_status status = ABC_OK;
        if (path)
            abc_object_path(child, path, length + 1);
        json_array_append_new(list, entry);
        put(entry, "path", text_json(path ? path : abc_object_name(child)));
        put(entry, "schema", text_json(abc_object_schema_name(child)));
        toile_free(memory, path);
        switch (abc_object_schema(child)) {
        case ABC_SCHEMA_POLYMESH:
        case ABC_SCHEMA_SUBD: status = describe_mesh(reader, child, entry); break;
        case ABC_SCHEMA_FACESET: status = describe_faceset(reader, child, entry); break;
        case ABC_SCHEMA_XFORM: status = describe_xform(reader, child, entry); break;
        default: break;
        }
        if (status < 0) {
            put(entry, "error", text_json(abc_reader_message(reader)));
            damaged++;
        }
        damaged += describe_object(memory, reader, child, list);
    }
    return damaged;
}

static void describe_archive(abc_reader *reader, json_t *object) {
    abc_archive_info info;
    double start, end;
    if (abc_reader_info(reader, &info) < 0)
        return;
    put(object, "application", text_json(info.application));
    put(object, "description", text_json(info.description));
    put(object, "date", text_json(info.date));
    put(object, "units", text_json(info.units));
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", info.library_version / 10000,
             info.library_version / 100 % 100, info.library_version % 100);
    put(object, "library_version", json_string(version));
    if (info.has_frames) {
        put(object, "first_frame", number_json(info.first_frame));
        put(object, "last_frame", number_json(info.last_frame));
    }
    /* Stated, or that of the first evenly spaced animation. */
    double fps = info.fps;
    for (size_t i = 0; i < abc_reader_time_sampling_count(reader) && !(fps > 0); i++) {
        const abc_time_sampling *sampling = abc_reader_time_sampling(reader, i);
        if (sampling->kind == ABC_UNIFORM && sampling->max_samples > 1)
            fps = tidy_rate(1 / sampling->period);
    }
    put(object, "fps", fps > 0 ? number_json(fps) : json_null());
    if (abc_reader_time_range(reader, &start, &end) >= 0) {
        put(object, "start", number_json(start));
        put(object, "end", number_json(end));
    }
    json_t *metadata = json_object();
    put(object, "metadata", metadata);
    for (size_t i = 0; i < info.metadata.count; i++) {
        json_t *key = text_json(info.metadata.pairs[i].key);
        if (json_is_string(key))
            put(metadata, json_string_value(key), text_json(info.metadata.pairs[i].value));
        json_decref(key);
    }
}

static void print_archive(const json_t *object) {
    char size[32], unit[40];
    print_size(whole(object, "bytes"), size, sizeof size);
    printf("%s: Alembic archive (%s), %s%s\n", text_of(object, "file"), text_of(object, "container"), size,
           json_is_true(json_object_get(object, "complete")) ? ", complete" : "");
    static const char *const rows[][2] = {
        {"application", "written by"}, {"description", "described"}, {"date", "date"}, {"units", "units"}};
    for (int i = 0; i < COUNT(rows); i++)
        if (*text_of(object, rows[i][0]))
            printf("  %-12s %s\n", rows[i][1], text_of(object, rows[i][0]));
    if (json_object_get(object, "start"))
        printf("  time         %.6g to %.6g s\n", number_of(object, "start"), number_of(object, "end"));
    if (json_object_get(object, "first_frame"))
        printf("  frames       %g to %g\n", number_of(object, "first_frame"),
               number_of(object, "last_frame"));
    if (json_is_number(json_object_get(object, "fps")))
        printf("  rate         %.6g per second\n", number_of(object, "fps"));
    snprintf(unit, sizeof unit, "%s%.30s", *text_of(object, "units") ? " " : "", text_of(object, "units"));
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(object, "objects"), i, entry) {
        const char *schema = text_of(entry, "schema");
        printf("  object       %s: %s", text_of(entry, "path"), *schema ? schema : "no schema");
        if (json_object_get(entry, "vertices"))
            printf(", %lld vertices", whole(entry, "vertices"));
        if (json_object_get(entry, "faces"))
            printf(", %lld faces", whole(entry, "faces"));
        if (json_object_get(entry, "samples"))
            printf(", %lld sample%s", whole(entry, "samples"), whole(entry, "samples") == 1 ? "" : "s");
        if (*text_of(entry, "topology"))
            printf(", %s", text_of(entry, "topology"));
        printf("\n");
        if (*text_of(entry, "error"))
            printf("    DAMAGED    %s\n", text_of(entry, "error"));
        print_ends(entry, "    ", unit);
    }
}

static int info_abc(toile_memory *memory, const char *path, int64_t size, bool json) {
    abc_reader *reader = NULL;
    json_t *object = file_json(path, "abc", size), *objects = json_array();
    int exit_code, damaged = 0;
    char message[1100] = "not enough memory";
    put(object, "container", json_string("Ogawa"));
    abc_status status = abc_reader_open(path, NULL, &reader);
    if (status >= 0) {
        describe_archive(reader, object);
        damaged = describe_object(memory, reader, abc_reader_top(reader), objects);
    } else if (reader) {
        snprintf(message, sizeof message, "%s", abc_reader_message(reader));
    }
    put(object, "objects", objects);
    put(object, "complete", json_boolean(status >= 0 && damaged == 0));
    put(object, "error", status < 0 ? text_json(message) : json_null());
    abc_reader_close(reader);
    if (status >= 0 || json) {
        exit_code = print_description(object, json, print_archive);
        if (exit_code)
            return exit_code;
    } else {
        json_decref(object);
    }
    if (status < 0)
        return toile_complain(status == ABC_IO          ? TOILE_EXIT_IO
                              : status == ABC_NO_MEMORY ? TOILE_EXIT_FAILED
                                                        : TOILE_EXIT_INPUT,
                              "%s: the Alembic archive cannot be read: %s", path, message);
    if (damaged)
        return toile_complain(TOILE_EXIT_INPUT, "%s: %d object%s of the Alembic archive cannot be read", path,
                              damaged, damaged == 1 ? "" : "s");
    return 0;
}

/* The older form of Alembic, which nothing here reads. */
static int info_abc_hdf5(toile_memory *memory, const char *path, int64_t size, bool json) {
    (void)memory;
    if (json) {
        json_t *object = file_json(path, "abc", size);
        put(object, "container", json_string("HDF5"));
        put(object, "complete", json_null());
        int exit_code = toile_print_json(object);
        if (exit_code)
            return exit_code;
    }
    return toile_complain(
        TOILE_EXIT_INPUT,
        "%s is an Alembic archive in the old HDF5 form, which Toile does not read; write it "
        "again as Ogawa (abcconvert -toOgawa)",
        path);
}

/* ---- which ---- */

/* A format: its mark at the start of a file, how its name ends, or both; the first that fits reads it. */
static const struct format {
    const char *mark;
    size_t mark_size;
    const char *ending;
    int (*read)(toile_memory *memory, const char *path, int64_t size, bool json);
} FORMATS[] = {
    {"\x89HDF\r\n\x1a\n", 8, ".abc", info_abc_hdf5},
    {"\x89HDF\r\n\x1a\n", 8, NULL, info_cache},
    {"Ogawa", 5, NULL, info_abc},
    {"POINTCACHE2", 12, NULL, info_pc2},
    {NULL, 0, ".mdd", info_mdd},
    {NULL, 0, ".obj", info_obj},
};

static const char READS[] = "info reads Toile caches (.h5), .abc, .pc2, .mdd and .obj";

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcasecmp(text + length - tail, ending) == 0;
}

static int info_file(const char *path, bool json) {
    char start[16] = {0};
    struct stat info;
    /* A pipe or device would block the open. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return toile_complain(TOILE_EXIT_INPUT, "%s is not a file", path);
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info) != 0) {
        int exit_code = toile_complain(TOILE_EXIT_IO, "%s cannot be read: %s", path, strerror(errno));
        if (file)
            fclose(file);
        return exit_code;
    }
    size_t got = fread(start, 1, sizeof start, file);
    fclose(file);
    toile_memory memory;
    toile_memory_init(&memory, NULL);
    for (int i = 0; i < COUNT(FORMATS); i++) {
        const struct format *format = &FORMATS[i];
        bool marked = !format->mark ||
                      (got >= format->mark_size && memcmp(start, format->mark, format->mark_size) == 0);
        if (marked && (!format->ending || ends_with(path, format->ending)))
            return format->read(&memory, path, info.st_size, json);
    }
    static const char *const names[][2] = {{".abc", "an Alembic archive"}, {".pc2", "a PC2 point cache"}};
    for (int i = 0; i < COUNT(names); i++)
        if (ends_with(path, names[i][0]))
            return toile_complain(TOILE_EXIT_INPUT,
                                  "%s does not begin as %s does; it is damaged or of another format; %s",
                                  path, names[i][1], READS);
    return toile_complain(TOILE_EXIT_INPUT, "%s is of no format that Toile knows; %s", path, READS);
}

int toile_command_info(int argc, char **argv) {
    static const char *const operands[] = {"FILE"};
    bool json = false;
    const char *path;
    int exit_code;
    const toile_option options[] = {{"--json", NULL, TOILE_OPTION_FLAG, &json, NULL, "as JSON", NULL}};
    const toile_syntax syntax = {
        "toile info FILE [--json]",
        "What is in a Toile cache, an Alembic archive, a PC2 or MDD point cache or an "
        "OBJ file: objects, counts,\n"
        "frames, times, bounds, complete or not.",
        options,
        COUNT(options),
        operands,
        COUNT(operands)};
    if (!toile_parse_options(&syntax, argc, argv, &path, &exit_code))
        return exit_code;
    return info_file(path, json);
}
