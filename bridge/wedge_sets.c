#include "wedge_sets.h"

#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of the scene itself that mean the whole of it. */
static const char *const WHOLE[] = {"fps", "frames", NULL};
/* Keys that every garment, every collider may have. */
static const char *const GARMENT[] = {"subdivide", NULL};
static const char *const COLLIDER[] = {"thickness", "friction_static", "friction_kinetic", "side", NULL};

static bool listed(const char *const *list, const char *key) {
    for (; *list; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

static bool is_setting(const char *key) {
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    return toile_find_field(fields, count, key) != NULL;
}

static bool is_property(const char *key) {
    if (strcmp(key, "friction") == 0 || strcmp(key, "thickness") == 0)
        return false; /* by these names alone colliders are meant */
    int count;
    const toile_field *fields = toile_fabric_fields(&count);
    return toile_find_field(fields, count, key) != NULL;
}

static const char *name_of(const json_t *object) {
    return json_string_value(json_object_get(object, "name"));
}

static toile_status put(json_t *sets, const char *path, const json_t *value, toile_error *error) {
    char *text = json_is_string(value)
                     ? NULL
                     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    /* A text goes without quotes unless it would be read as something else. */
    json_t *read = json_is_string(value) ? json_loads(json_string_value(value), JSON_DECODE_ANY, NULL) : NULL;
    json_t *set = read ? json_sprintf("%s=\"%s\"", path, json_string_value(value))
                       : json_sprintf("%s=%s", path, text ? text : json_string_value(value));
    json_decref(read);
    free(text);
    return set && json_array_append_new(sets, set) == 0 ? TOILE_OK : toile_fail_memory(error, "the plan");
}

static toile_status put_each(const json_t *scene, const char *list, const char *key, const json_t *value,
                             json_t *sets, toile_error *error) {
    toile_status status = TOILE_OK;
    size_t i;
    json_t *object;
    if (json_array_size(json_object_get(scene, list)) == 0)
        return toile_fail(error, TOILE_INVALID, "--vary %s: the scene has no %s", key, list);
    json_array_foreach(json_object_get(scene, list), i, object) {
        char path[512];
        snprintf(path, sizeof path, "%s.%.200s.%.200s", list, name_of(object), key);
        if (status == TOILE_OK)
            status = put(sets, path, value, error);
    }
    return status;
}

/* Where static and kinetic friction differ they keep their ratio. */
static toile_status put_friction(const json_t *scene, const json_t *value, json_t *sets, toile_error *error) {
    toile_status status = TOILE_OK;
    size_t i;
    json_t *object;
    if (json_array_size(json_object_get(scene, "colliders")) == 0)
        return toile_fail(error, TOILE_INVALID, "--vary friction: the scene has no colliders");
    if (!json_is_number(value))
        return toile_fail(error, TOILE_INVALID, "--vary friction: a value is not a number");
    json_array_foreach(json_object_get(scene, "colliders"), i, object) {
        const json_t *held = json_object_get(object, "friction_static"),
                     *kinetic = json_object_get(object, "friction_kinetic");
        char path[512];
        if (status != TOILE_OK)
            break;
        if (!held && !kinetic) {
            snprintf(path, sizeof path, "colliders.%.200s.friction", name_of(object));
            status = put(sets, path, value, error);
            continue;
        }
        double before = json_number_value(held ? held : kinetic);
        double ratio = held && kinetic && before > 0 ? json_number_value(kinetic) / before : 1;
        char digits[32];
        snprintf(digits, sizeof digits, "%.9g", ratio * json_number_value(value));
        json_t *slipping = json_real(strtod(digits, NULL));
        snprintf(path, sizeof path, "colliders.%.200s.friction_static", name_of(object));
        status = put(sets, path, value, error);
        snprintf(path, sizeof path, "colliders.%.200s.friction_kinetic", name_of(object));
        if (status == TOILE_OK)
            status = put(sets, path, slipping, error);
        json_decref(slipping);
    }
    return status;
}

/* The fabric of a garment and the properties that vary, as one value: {"base": "denim", "density": 0.4}. */
static toile_status put_fabrics(const json_t *scene, const json_t *values, json_t *sets, toile_error *error) {
    const json_t *fabric = json_object_get(values, "fabric");
    toile_status status = TOILE_OK;
    size_t i;
    json_t *object, *value;
    const char *key;
    json_array_foreach(json_object_get(scene, "garments"), i, object) {
        json_t *made = json_is_string(fabric) ? json_pack("{s:O}", "base", fabric)
                       : fabric               ? json_deep_copy(fabric)
                                              : json_deep_copy(json_object_get(object, "fabric"));
        int properties = 0;
        json_object_foreach((json_t *)values, key, value) {
            if (is_property(key)) {
                json_object_set(made, key, value);
                properties++;
            }
        }
        char path[512];
        snprintf(path, sizeof path, "garments.%.200s.fabric", name_of(object));
        if (status == TOILE_OK && (fabric || properties))
            status = put(sets, path, json_is_string(fabric) && !properties ? fabric : made, error);
        json_decref(made);
    }
    return status;
}

/* A grid of a job has its resolution written out; that of a scene file takes the scene's. */
static toile_status put_resolution(const json_t *scene, bool fixed, const json_t *value, json_t *sets,
                                   toile_error *error) {
    toile_status status = TOILE_OK;
    size_t i, grids = 0;
    json_t *object;
    json_array_foreach(json_object_get(scene, "garments"), i, object) {
        char path[512];
        if (!json_object_get(object, "grid"))
            continue;
        snprintf(path, sizeof path, "garments.%.200s.grid.resolution", name_of(object));
        if (fixed && status == TOILE_OK)
            status = put(sets, path, value, error);
        grids++;
    }
    if (grids == 0)
        return toile_fail(error, TOILE_INVALID,
                          "--vary resolution: no garment of the scene is a grid; a mesh is refined with "
                          "garments.NAME.subdivide");
    return fixed || status != TOILE_OK ? status : put(sets, "resolution", value, error);
}

static toile_status put_key(const json_t *scene, bool fixed, const char *key, const json_t *value,
                            json_t *sets, toile_error *error) {
    if (strcmp(key, "fabric") == 0 || is_property(key))
        return TOILE_OK; /* together, after the others */
    if (strcmp(key, "friction") == 0)
        return put_friction(scene, value, sets, error);
    if (strcmp(key, "resolution") == 0)
        return put_resolution(scene, fixed, value, sets, error);
    if (strchr(key, '.') || is_setting(key) || listed(WHOLE, key))
        return put(sets, key, value, error);
    if (listed(GARMENT, key))
        return put_each(scene, "garments", key, value, sets, error);
    if (listed(COLLIDER, key))
        return put_each(scene, "colliders", key, value, sets, error);
    return toile_fail(error, TOILE_INVALID,
                      "--vary %.80s: no setting, and no property of fabrics, garments or colliders, has this "
                      "name. There is "
                      "fabric, friction, thickness, resolution, every row of `toile settings`, and every "
                      "path that --set takes, "
                      "such as garments.NAME.fabric or colliders.NAME.radius",
                      key);
}

toile_status toile_wedge_sets(const json_t *scene, bool fixed, const json_t *values, json_t *sets,
                              toile_error *error) {
    toile_status status = put_fabrics(scene, values, sets, error);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)values, key, value) {
        if (status == TOILE_OK)
            status = put_key(scene, fixed, key, value, sets, error);
    }
    return status;
}

void toile_wedge_own_fabrics(const json_t *scene, char *names, size_t size) {
    size_t i;
    json_t *object, *panel;
    const char *key;
    names[0] = 0;
    json_array_foreach(json_object_get(scene, "garments"), i, object) {
        bool own = false;
        json_object_foreach(json_object_get(object, "panels"), key, panel) {
            own = own || json_object_get(panel, "fabric");
        }
        size_t used = strlen(names);
        if (own)
            snprintf(names + used, size - used, "%s%s", used ? ", " : "", name_of(object));
    }
}
