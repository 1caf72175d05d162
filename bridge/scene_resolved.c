/* The scene written out with everything it left to defaults, as the cache keeps it, and the hash of all input
 * that decides the result. */
#include "scene_internal.h"

#include "hash.h"
#include "settings.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value of a settings or fabric struct as JSON. */
static json_t *field_value(const toile_field *field, const void *source) {
    double values[3];
    toile_get_field(field, source, values);
    switch (field->type) {
    case TOILE_FIELD_REAL: return json_real(values[0]);
    case TOILE_FIELD_INT: return json_integer((json_int_t)values[0]);
    case TOILE_FIELD_BOOL: return json_boolean(values[0] != 0);
    case TOILE_FIELD_CHOICE: return json_string(field->choices[(int)values[0]]);
    case TOILE_FIELD_VEC3: return json_pack("[f,f,f]", values[0], values[1], values[2]);
    }
    return NULL;
}

/* Adds every field that an object does not have, from the struct at `source`. */
static bool fill_fields(json_t *object, const toile_field *fields, int count, const void *source) {
    for (int i = 0; i < count; i++)
        if (!json_object_get(object, fields[i].id) &&
            json_object_set_new(object, fields[i].id, field_value(&fields[i], source)) != 0)
            return false;
    return true;
}

/* A fabric by name or object becomes an object with every property: a new reference; null: no memory. */
static json_t *whole_fabric(const json_t *fabrics, const json_t *value) {
    const char *name = json_string_value(value);
    const json_t *given = name ? json_object_get(fabrics, name) : value;
    json_t *whole = given ? json_deep_copy(given) : json_object();
    if (name && !given && json_object_set_new(whole, "base", json_string(name)) != 0)
        goto fail;
    const char *base = read_text(whole, "base", NULL);
    toile_fabric standard = base ? toile_find_fabric(base)->fabric : toile_default_fabric();
    int count;
    const toile_field *fields = toile_fabric_fields(&count);
    if (whole && fill_fields(whole, fields, count, &standard))
        return whole;
fail:
    json_decref(whole);
    return NULL;
}

static bool fill_fabric(const json_t *fabrics, json_t *object, bool always) {
    const json_t *value = json_object_get(object, "fabric");
    return (!value && !always) || json_object_set_new(object, "fabric", whole_fabric(fabrics, value)) == 0;
}

static bool fill_names(const json_t *list, const toile_scene *scene, name_of *of) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_object_set_new(json_array_get(list, i), "name", json_string(of(scene, (int)i))) != 0)
            return false;
    return true;
}

/* Writes into the scene what it left to defaults: settings, fabrics, names, frames and resolutions. Reading
 * the result gives the same scene. */
static bool fill_scene(const loader *l) {
    const toile_scene *scene = l->scene;
    json_t *root = l->root, *fabrics = json_object_get(root, "fabrics"), *item;
    const char *key;
    if (!json_object_get(root, "settings") && json_object_set_new(root, "settings", json_object()) != 0)
        return false;
    toile_settings settings = toile_default_settings();
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    bool filled = fill_fields(json_object_get(root, "settings"), fields, count, &settings) &&
                  json_object_set_new(root, "name", json_string(scene->name)) == 0 &&
                  json_object_set_new(root, "fps", json_real(scene->fps)) == 0 &&
                  json_object_set_new(root, "frames", json_pack("[i,i]", scene->first, scene->last)) == 0 &&
                  fill_names(json_object_get(root, "garments"), scene, name_of_garment) &&
                  fill_names(json_object_get(root, "colliders"), scene, name_of_collider) &&
                  fill_names(json_object_get(root, "pins"), scene, name_of_pin);
    for (int i = 0; filled && i < scene->garment_count; i++) {
        json_t *object = json_array_get(json_object_get(root, "garments"), (size_t)i);
        json_t *grid = json_object_get(object, "grid");
        const garment *g = &scene->garments[i];
        if (grid)
            filled = json_object_set_new(grid, "resolution", json_pack("[i,i]", g->nu, g->nv)) == 0;
        filled = filled && fill_fabric(fabrics, object, true);
        json_object_foreach(json_object_get(object, "panels"), key, item) {
            filled = filled && fill_fabric(fabrics, item, false);
        }
        size_t panel;
        json_array_foreach(json_object_get(object, "panels"), panel, item) {
            filled = filled && fill_fabric(fabrics, item, false);
        }
    }
    json_object_foreach(fabrics, key, item) {
        toile_fabric standard = toile_default_fabric();
        const char *base = read_text(item, "base", NULL);
        if (base)
            standard = toile_find_fabric(base)->fabric;
        fields = toile_fabric_fields(&count);
        filled = filled && fill_fields(item, fields, count, &standard);
    }
    return filled;
}

/* Rewrites the real numbers of a JSON text with the fewest digits that read back the same: 0.22, not
 * 0.22000000000000000. The text only gets shorter. */
static void shorten_numbers(char *text) {
    const char *from = text;
    char *to = text;
    while (*from) {
        if (*from == '"') {
            do {
                if (*from == '\\')
                    *to++ = *from++;
                *to++ = *from++;
            } while (*from != '"');
            *to++ = *from++;
            continue;
        }
        size_t length = strspn(from, "+-.0123456789eE");
        char number[64];
        if (length == 0 || length >= sizeof number || !memchr(from, '.', length)) {
            *to++ = *from++;
            for (; length > 1; length--)
                *to++ = *from++;
            continue;
        }
        double value = strtod(from, NULL);
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(number, sizeof number, "%.*g", digits, value);
            if (strtod(number, NULL) == value)
                break;
        }
        if (!strpbrk(number, ".e"))
            strcat(number, ".0");
        if (strlen(number) > length)
            snprintf(number, sizeof number, "%.*s", (int)length, from);
        memcpy(to, number, strlen(number));
        to += strlen(number);
        from += length;
    }
    *to = 0;
}

toile_status toile_scene_write_resolved(const loader *l) {
    char *text = fill_scene(l) ? json_dumps(l->root, JSON_INDENT(2)) : NULL;
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", NULL);
    if (text && plain) {
        locale_t before = uselocale(plain);
        shorten_numbers(text);
        uselocale(before);
        l->scene->resolved = toile_copy_text(l->memory, text);
    }
    if (plain)
        freelocale(plain);
    free(text);
    return l->scene->resolved ? TOILE_OK : no_memory(l);
}

/* Of the scene as it is written out, less what does not decide the result. */
toile_status toile_scene_take_fingerprint(const loader *l) {
    static const char *const LEFT_OUT[] = {"$schema", "name", "description", "frames", "resolution", "job"};
    toile_status status = TOILE_OK;
    json_t *copy = json_deep_copy(l->root);
    for (size_t i = 0; i < sizeof LEFT_OUT / sizeof *LEFT_OUT; i++)
        json_object_del(copy, LEFT_OUT[i]);
    json_object_del(json_object_get(copy, "settings"), "threads");
    json_object_del(json_object_get(copy, "start"), "cache"); /* its frame is in the hash of files */
    char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    if (text)
        l->scene->fingerprint = toile_hash(l->files, text, strlen(text));
    else
        status = no_memory(l);
    free(text);
    json_decref(copy);
    return status;
}
