/* `--set path=value`: a value of the scene changed before anything is checked. scene.h says how paths are
 * written. */
#include "scene_internal.h"

#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of `name` if the path begins with it as a whole element, else 0. */
static size_t element_matches(const char *path, const char *name) {
    size_t length = strlen(name);
    bool same = length > 0 && strncmp(path, name, length) == 0 && (!path[length] || path[length] == '.');
    return same ? length : 0;
}

/* The element that a path begins with in an object: the longest key that is there, since names may have dots,
 * or what ends at the next dot. */
static size_t match_key(const json_t *object, const char *path) {
    size_t best = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        size_t length = element_matches(path, key);
        if (length > best)
            best = length;
    }
    return best ? best : strcspn(path, ".");
}

/* The same in a list: a name of one of its objects, or an index. Returns false if there is none. */
static bool match_index(const json_t *list, const char *path, size_t *length, size_t *index) {
    *length = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *name = json_object_get(json_array_get(list, i), "name");
        size_t matched = json_is_string(name) ? element_matches(path, json_string_value(name)) : 0;
        if (matched > *length) {
            *length = matched;
            *index = i;
        }
    }
    if (*length > 0)
        return true;
    *length = strcspn(path, ".");
    if (*length == 0 || *length > 9 || strspn(path, "0123456789") != *length)
        return false;
    *index = (size_t)strtoul(path, NULL, 10);
    return *index < json_array_size(list);
}

static toile_status refuse_element(const loader *l, const toile_source_set *set, const json_t *list,
                                   const char *path, size_t length) {
    const char *known[NAMES_MOST];
    char element[65], text[600];
    int count = 0;
    snprintf(element, sizeof element, "%.*s", (int)(length < 64 ? length : 64), path);
    for (size_t i = 0; i < json_array_size(list) && count < NAMES_MOST; i++) {
        const json_t *name = json_object_get(json_array_get(list, i), "name");
        if (json_is_string(name))
            known[count++] = json_string_value(name);
    }
    toile_known_names(element, known, count, text, sizeof text);
    return toile_fail(l->error, TOILE_INVALID,
                      "--set %s: %s has no element \"%s\"; use 0 to %zu or a name; %s", set->written,
                      set->path, element, json_array_size(list) - (json_array_size(list) > 0), text);
}

/* Puts `value` where the path says, making objects on the way. `set->path` grows along. */
static toile_status put_value(const loader *l, toile_source_set *set, const char *path, json_t *value) {
    json_t *node = l->root;
    for (;;) {
        size_t used = strlen(set->path), length = 0, index = 0;
        json_t *child = NULL;
        char key[TOILE_PLACE_TEXT];
        if (json_is_object(node)) {
            length = match_key(node, path);
            if (length == 0 || length >= sizeof key)
                return toile_fail(l->error, TOILE_INVALID,
                                  "--set %s: a part of the path is empty or too long", set->written);
            memcpy(key, path, length);
            key[length] = 0;
            snprintf(set->path + used, sizeof set->path - used, "%s%s", used ? "." : "", key);
        } else if (json_is_array(node)) {
            if (!match_index(node, path, &length, &index))
                return refuse_element(l, set, node, path, length);
            snprintf(set->path + used, sizeof set->path - used, "[%zu]", index);
        } else {
            return toile_fail(l->error, TOILE_INVALID, "--set %s: %s is a single value and has no parts",
                              set->written, set->path);
        }

        bool last = !path[length];
        if (json_is_object(node)) {
            child = last ? json_incref(value) : json_incref(json_object_get(node, key));
            if (!child)
                child = json_object();
            if (json_object_set_new(node, key, child) != 0)
                return toile_fail(l->error, TOILE_INVALID, "--set %s: not UTF-8 text", set->written);
        } else {
            if (last && json_array_set(node, index, value) != 0)
                return no_memory(l);
            child = json_array_get(node, index);
        }
        if (last)
            return TOILE_OK;
        node = child;
        path += length + 1;
    }
}

toile_status toile_scene_apply_set(const loader *l, toile_source_set *set, const char *text) {
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    if (length == 0 || length >= sizeof set->written)
        return toile_fail(l->error, TOILE_INVALID,
                          "--set %.80s: write it as path=value, for example "
                          "settings.time_step=0.01",
                          text);
    memcpy(set->written, text, length);
    set->written[length] = 0;

    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (!value)
        value = json_string(equals + 1);
    if (!value)
        return toile_fail(l->error, TOILE_INVALID, "--set %s: the value is not UTF-8 text", set->written);

    /* The id of a setting alone is short for settings.id. */
    char path[sizeof set->written + 16];
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    bool setting = toile_find_field(fields, count, set->written) != NULL;
    snprintf(path, sizeof path, "%s%s", setting ? "settings." : "", set->written);
    toile_status status = put_value(l, set, path, value);
    json_decref(value);
    return status;
}
