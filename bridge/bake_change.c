#include "bake_change.h"

#include "hash.h"
#include "obj.h"
#include "toile.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HASHED_MOST ((size_t)256 << 20) /* bytes; of longer files (archives) size and time have to do */

static const char *const LISTS[] = {"garments", "colliders"};
static const char *const KEYS[] = {"obj", "obj_sequence", "abc"};
enum { LIST_COUNT = 2, KEY_COUNT = 3 };

/* ---- files ---- */

void toile_point_to_files(json_t *scene, const char *scene_path) {
    char *folder = realpath(scene_path, NULL);
    if (!folder)
        return;
    *strrchr(folder, '/') = 0;
    for (int list = 0; list < LIST_COUNT; list++) {
        size_t i;
        json_t *object;
        json_array_foreach(json_object_get(scene, LISTS[list]), i, object) {
            for (int k = 0; k < KEY_COUNT; k++) {
                const char *file = json_string_value(json_object_get(object, KEYS[k]));
                if (file && file[0] != '/')
                    json_object_set_new(object, KEYS[k], json_sprintf("%s/%s", folder, file));
            }
        }
    }
    json_t *start = json_object_get(scene, "start");
    const char *cache = json_string_value(json_object_get(start, "cache"));
    if (cache && cache[0] != '/')
        json_object_set_new(start, "cache", json_sprintf("%s/%s", folder, cache));
    free(folder);
}

static json_t *describe_file(const char *path) {
    struct stat info;
    toile_memory memory;
    char *bytes = NULL;
    size_t size = 0;
    if (stat(path, &info))
        return json_string("missing");
    toile_memory_init(&memory, NULL);
    if ((size_t)info.st_size > HASHED_MOST ||
        toile_read_file(&memory, path, HASHED_MOST, &bytes, &size, NULL) != TOILE_OK)
        return json_sprintf("%lld bytes of %lld", (long long)info.st_size, (long long)info.st_mtime);
    uint64_t hash = toile_hash(TOILE_HASH_SEED, bytes, size);
    toile_free(&memory, bytes);
    return json_sprintf("%zu bytes %016llx", size, (unsigned long long)hash);
}

/* All files of a sequence as one: names and sizes, as in the fingerprint. */
static json_t *describe_sequence(const char *pattern) {
    char *digits = strdup(pattern);
    glob_t found = {0};
    uint64_t hash = TOILE_HASH_SEED;
    if (!digits)
        return NULL;
    for (char *at = digits; *at; at++)
        *at = *at == '#' ? '?' : *at;
    if (glob(digits, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct stat info;
            int64_t size = stat(found.gl_pathv[i], &info) ? -1 : (int64_t)info.st_size;
            hash = toile_hash(toile_hash(hash, found.gl_pathv[i], strlen(found.gl_pathv[i])), &size,
                              sizeof size);
        }
    json_t *text = json_sprintf("%zu files %016llx", (size_t)found.gl_pathc, (unsigned long long)hash);
    globfree(&found);
    free(digits);
    return text;
}

json_t *toile_describe_inputs(const json_t *scene) {
    json_t *inputs = json_object();
    for (int list = 0; inputs && list < LIST_COUNT; list++) {
        size_t i;
        json_t *object;
        json_array_foreach(json_object_get(scene, LISTS[list]), i, object) {
            for (int k = 0; k < KEY_COUNT; k++) {
                const char *file = json_string_value(json_object_get(object, KEYS[k]));
                if (file && !json_object_get(inputs, file) &&
                    json_object_set_new(inputs, file,
                                        k == 1 ? describe_sequence(file) : describe_file(file)) != 0) {
                    json_decref(inputs);
                    return NULL;
                }
            }
        }
    }
    const char *start = json_string_value(json_object_get(json_object_get(scene, "start"), "cache"));
    if (inputs && start && json_object_set_new(inputs, start, describe_file(start)) != 0) {
        json_decref(inputs);
        return NULL;
    }
    return inputs;
}

/* ---- differences ---- */

typedef struct changes {
    char text[512];
    size_t used;
    int count, told; /* how many there are, how many are in the text */
} changes;

static void add_line(changes *c, const char *line) {
    size_t length = strlen(line), joint = c->used ? 2 : 0;
    c->count++;
    if (c->used + joint + length >= sizeof c->text)
        return;
    c->used += (size_t)snprintf(c->text + c->used, sizeof c->text - c->used, "%s%s", joint ? "; " : "", line);
    c->told++;
}

static void add_change(changes *c, const char *path, const json_t *before, const json_t *after) {
    char *old = before ? json_dumps(before, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    char *new = after ? json_dumps(after, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    char line[256];
    snprintf(line, sizeof line, "%.120s: %.60s -> %.60s", path, old ? old : "absent", new ? new : "absent");
    add_line(c, line);
    free(old);
    free(new);
}

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
    } else if (json_is_number(before) && json_is_number(after)
                   ? json_number_value(before) != json_number_value(after)
                   : !json_equal(before, after)) {
        add_change(c, path, before, after);
    }
}

/* What may change between a bake and its continuation. */
static void forget_harmless(json_t *scene) {
    static const char *const HARMLESS[] = {"$schema", "name", "description", "frames", "resolution"};
    for (size_t i = 0; i < sizeof HARMLESS / sizeof *HARMLESS; i++)
        json_object_del(scene, HARMLESS[i]);
    json_object_del(json_object_get(scene, "settings"), "threads");
}

static void compare_inputs(changes *c, const char *before_text, const json_t *scene) {
    json_t *before = before_text ? json_loads(before_text, 0, NULL) : NULL,
           *after = toile_describe_inputs(scene), *value;
    const char *file;
    char line[256];
    json_object_foreach(after, file, value) {
        const json_t *old = json_object_get(before, file);
        if (old && !json_equal((json_t *)old, value)) {
            const char *name = strrchr(file, '/');
            snprintf(line, sizeof line, "the content of %.200s", name ? name + 1 : file);
            add_line(c, line);
        }
    }
    json_decref(before);
    json_decref(after);
}

void toile_describe_change(const toile_cache_header *header, const json_t *scene, const char *cache_path,
                           char *text, size_t size) {
    changes c = {.used = 0};
    char line[256];
    json_t *before = json_loads(header->settings_json, 0, NULL),
           *after = scene ? json_deep_copy(scene) : NULL;
    if (strcmp(header->library_version, toile_version()) != 0) {
        snprintf(line, sizeof line, "it was baked by Toile %.40s and this is %.40s", header->library_version,
                 toile_version());
        add_line(&c, line);
    }
    forget_harmless(before);
    forget_harmless(after);
    if (before && after)
        compare_json(&c, "", before, after);
    compare_inputs(&c, header->inputs_json, scene);
    json_decref(before);
    json_decref(after);
    snprintf(text, size, "the scene is not the one that %s was baked from: %s%s", cache_path,
             c.count ? c.text : "a file that it names has changed", c.told < c.count ? "; and more" : "");
}
