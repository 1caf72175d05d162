/* `toile info`: what is in a file. What kind it is, its first bytes say; a name is only believed for formats
 * that have no mark of their own. */
#include "commands.h"

#include "cache.h"
#include "obj.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
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

static void print_bounds(const char *label, const bounds *b) {
    printf("%s(%.4g, %.4g, %.4g) to (%.4g, %.4g, %.4g) m\n", label, b->low[0], b->low[1], b->low[2],
           b->high[0], b->high[1], b->high[2]);
}

static void put(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static void print_size(int64_t bytes, char *text, size_t size) {
    if (bytes < 1 << 20)
        snprintf(text, size, "%.1f KB", (double)bytes / 1024);
    else
        snprintf(text, size, "%.1f MB", (double)bytes / (1 << 20));
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
            json_t *value = bounds_json(&box);
            put(entry, end ? "bounds_last" : "bounds_first", value ? value : json_null());
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
        for (int end = 0; end < 2; end++) {
            const json_t *value = json_object_get(garment, end ? "bounds_last" : "bounds_first");
            bounds box = bounds_from(value);
            if (json_is_array(value))
                print_bounds(end ? "    last       " : "    first      ", &box);
        }
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
    if (json)
        return toile_print_json(object);
    print_cache(object);
    json_decref(object);
    return 0;
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
            print_bounds("  bounds       ", &box);
        size_t i;
        const json_t *group;
        json_array_foreach(groups, i, group)
            printf("  group        %s: %lld faces\n", text_of(group, "name"), whole(group, "faces"));
    }
    json_decref(groups);
    toile_obj_free(memory, &obj);
    return exit_code;
}

/* ---- which ---- */

/* A format: its mark at the start of a file, or else how its name ends, and who reads it; null: nobody yet.
 */
static const struct format {
    const char *mark;
    size_t mark_size;
    const char *ending, *label;
    int (*read)(toile_memory *memory, const char *path, int64_t size, bool json);
} FORMATS[] = {
    {"\x89HDF\r\n\x1a\n", 8, NULL, "an HDF5 file", info_cache},
    {"Ogawa", 5, NULL, "an Alembic archive", NULL},
    {"POINTCACHE2", 11, NULL, "a PC2 point cache", NULL},
    {NULL, 0, ".mdd", "an MDD point cache", NULL},
    {NULL, 0, ".obj", "an OBJ mesh", info_obj},
};

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcasecmp(text + length - tail, ending) == 0;
}

static int info_file(const char *path, bool json) {
    char start[16] = {0};
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0) {
        int exit_code = toile_complain(TOILE_EXIT_IO, "%s cannot be read: %s", path, strerror(errno));
        if (file)
            fclose(file);
        return exit_code;
    }
    size_t got = S_ISREG(info.st_mode) ? fread(start, 1, sizeof start, file) : 0;
    fclose(file);
    if (!S_ISREG(info.st_mode))
        return toile_complain(TOILE_EXIT_INPUT, "%s is not a file", path);
    toile_memory memory;
    toile_memory_init(&memory, NULL);
    for (int i = 0; i < COUNT(FORMATS); i++) {
        const struct format *format = &FORMATS[i];
        bool fits = format->mark
                        ? got >= format->mark_size && memcmp(start, format->mark, format->mark_size) == 0
                        : ends_with(path, format->ending);
        if (fits && format->read)
            return format->read(&memory, path, info.st_size, json);
        if (fits)
            return toile_complain(TOILE_EXIT_INPUT,
                                  "%s is %s, which info cannot read yet; it reads Toile caches "
                                  "(.h5) and .obj",
                                  path, format->label);
    }
    return toile_complain(TOILE_EXIT_INPUT,
                          "%s is of no format that Toile knows; info reads Toile caches (.h5) and .obj",
                          path);
}

int toile_command_info(int argc, char **argv) {
    static const char *const operands[] = {"FILE"};
    bool json = false;
    const char *path;
    int exit_code;
    const toile_option options[] = {{"--json", NULL, TOILE_OPTION_FLAG, &json, NULL, "as JSON", NULL}};
    const toile_syntax syntax = {
        "toile info FILE [--json]",
        "What is in a Toile cache or an OBJ file: objects, counts, frames, bounds, complete "
        "or not.",
        options,
        COUNT(options),
        operands,
        COUNT(operands)};
    if (!toile_parse_options(&syntax, argc, argv, &path, &exit_code))
        return exit_code;
    return info_file(path, json);
}
