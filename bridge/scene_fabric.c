/* Settings and fabrics of a scene: told to the world, with the place in the file when it refuses one. */
#include "scene_internal.h"

#include "settings.h"

#include <stdio.h>
#include <string.h>

/* ---- settings ---- */

toile_status toile_scene_load_settings(const loader *l) {
    const json_t *object = json_object_get(l->root, "settings");
    toile_place place = {&WHOLE, "settings", 0};
    toile_settings settings = toile_default_settings();
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        const toile_field *field = toile_find_field(fields, count, key);
        toile_place here = {&place, key, 0};
        toile_status status;
        double numbers[3] = {json_is_true(value) ? 1 : json_number_value(value)};
        if (json_is_string(value)) {
            status = toile_set(l->scene->world, key, json_string_value(value));
            toile_set_field_text(field, &settings, json_string_value(value), NULL);
        } else {
            int size = json_is_array(value) ? 3 : 1;
            for (int i = 0; i < 3 && json_is_array(value); i++)
                numbers[i] = json_number_value(json_array_get(value, (size_t)i));
            status = toile_set_numbers(l->scene->world, key, numbers, size);
            toile_set_field_numbers(field, &settings, numbers, size, NULL);
        }
        if (status < 0)
            return world_refuses(l, &here, status);
    }

    /* How settings fit together: the message begins with the one at fault, which is what tells the line. */
    toile_error inner;
    if (toile_check_settings(&settings, "settings", &inner) != TOILE_OK) {
        char id[64] = "";
        int length = 0;
        sscanf(inner.message, "settings.%63[a-z0-9_]: %n", id, &length);
        toile_place here = {&place, id, 0};
        return REFUSE(&here, "%s", inner.message + length);
    }
    return TOILE_OK;
}

/* ---- fabrics ---- */

/* The number in loader.fabrics of a fabric's name; -1 if there is none. A scene's own comes before one of the same name that
 * comes with Toile, so that a new preset changes no scene. */
static int number_of_fabric(const loader *l, const char *name) {
    int named_count;
    const toile_named_fabric *named = toile_named_fabrics(&named_count);
    int number = 1 + named_count;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(l->root, "fabrics"), key, value) {
        if (strcmp(key, name) == 0)
            return number;
        number++;
    }
    for (int i = 0; i < named_count; i++)
        if (strcmp(named[i].name, name) == 0)
            return 1 + i;
    return -1;
}

static toile_status refuse_fabric(const loader *l, const toile_place *place, const char *name,
                                  bool scene_too) {
    const char *known[NAMES_MOST], *key;
    char text[600];
    int count;
    json_t *value;
    const toile_named_fabric *named = toile_named_fabrics(&count);
    for (int i = 0; i < count; i++)
        known[i] = named[i].name;
    json_object_foreach(json_object_get(l->root, "fabrics"), key, value) {
        if (scene_too && count < NAMES_MOST)
            known[count++] = key;
    }
    toile_known_names(name, known, count, text, sizeof text);
    return REFUSE(place, "found \"%.64s\"; %s", name, text);
}

/* A fabric of the world from an object with its properties; null: the default fabric. */
static toile_status make_fabric(const loader *l, const json_t *object, const char *base,
                                const toile_place *place, int *fabric) {
    toile_status status = toile_add_fabric(l->scene->world, base, fabric);
    if (status < 0)
        return world_refuses(l, place, status);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        toile_place here = {place, key, 0};
        if (strcmp(key, "base") == 0)
            continue;
        status = toile_set_fabric(l->scene->world, *fabric, key, json_number_value(value));
        if (status < 0)
            return world_refuses(l, &here, status);
    }
    return TOILE_OK;
}

static toile_status check_base(const loader *l, const json_t *object, const toile_place *place) {
    const char *base = read_text(object, "base", NULL);
    toile_place here = {place, "base", 0};
    return !base || toile_find_fabric(base) ? TOILE_OK : refuse_fabric(l, &here, base, false);
}

toile_status toile_scene_check_fabrics(loader *l) {
    const json_t *object = json_object_get(l->root, "fabrics");
    toile_place place = {&WHOLE, "fabrics", 0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        toile_place here = {&place, key, 0};
        toile_status status = check_base(l, value, &here);
        if (status != TOILE_OK)
            return status;
    }
    int named_count;
    toile_named_fabrics(&named_count);
    size_t count = 1 + (size_t)named_count + json_object_size(object);
    l->fabrics = toile_alloc(l->memory, count, sizeof *l->fabrics);
    if (!l->fabrics)
        return no_memory(l);
    for (size_t i = 0; i < count; i++)
        l->fabrics[i] = -1;
    return TOILE_OK;
}

/* The world's fabric for a "fabric" value: a name, an object or null. Each name is made once. */
toile_status toile_scene_use_fabric(const loader *l, const json_t *value, const toile_place *place,
                                    int *fabric) {
    if (json_is_object(value)) {
        toile_status status = check_base(l, value, place);
        return status != TOILE_OK ? status
                                  : make_fabric(l, value, read_text(value, "base", NULL), place, fabric);
    }
    const char *name = json_string_value(value), *base = NULL;
    int number = name ? number_of_fabric(l, name) : 0;
    if (number < 0)
        return refuse_fabric(l, place, name, true);
    if (l->fabrics[number] < 0) {
        const json_t *object = name ? json_object_get(json_object_get(l->root, "fabrics"), name) : NULL;
        base = object ? read_text(object, "base", NULL) : name;
        toile_status status = make_fabric(l, object, base, place, &l->fabrics[number]);
        if (status != TOILE_OK)
            return status;
    }
    *fabric = l->fabrics[number];
    return TOILE_OK;
}
