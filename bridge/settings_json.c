/* The tables of core/settings.h as JSON text: for `toile settings --json`, `toile fabrics --json`, and
 * interfaces that are made from them. */
#include "settings.h"
#include "toile.h"

#include <jansson.h>
#include <stdlib.h>

static void put(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static const char *type_name(toile_field_type type) {
    switch (type) {
    case TOILE_FIELD_REAL: return "real";
    case TOILE_FIELD_INT: return "integer";
    case TOILE_FIELD_VEC3: return "vector";
    case TOILE_FIELD_BOOL: return "boolean";
    case TOILE_FIELD_CHOICE: return "choice";
    }
    return "";
}

static json_t *value_json(const toile_field *field, const double values[3]) {
    switch (field->type) {
    case TOILE_FIELD_REAL: return json_real(values[0]);
    case TOILE_FIELD_INT: return json_integer((json_int_t)values[0]);
    case TOILE_FIELD_VEC3: return json_pack("[f, f, f]", values[0], values[1], values[2]);
    case TOILE_FIELD_BOOL: return json_boolean(values[0] != 0);
    case TOILE_FIELD_CHOICE: return json_string(field->choices[(int)values[0]]);
    }
    return json_null();
}

static json_t *field_json(const toile_field *field) {
    json_t *object = json_object();
    put(object, "id", json_string(field->id));
    put(object, "type", json_string(type_name(field->type)));
    put(object, "group", json_string(field->group));
    put(object, "default", value_json(field, field->standard));
    if (field->type != TOILE_FIELD_BOOL && field->type != TOILE_FIELD_CHOICE) {
        put(object, "min", json_real(field->hard_min));
        put(object, "max", json_real(field->hard_max));
        put(object, "soft_min", json_real(field->soft_min));
        put(object, "soft_max", json_real(field->soft_max));
    }
    if (field->choices) {
        json_t *choices = json_array();
        for (const char *const *c = field->choices; *c; c++)
            json_array_append_new(choices, json_string(*c));
        put(object, "choices", choices);
    }
    put(object, "unit", json_string(field->unit));
    put(object, "label", json_string(field->label));
    put(object, "tooltip", json_string(field->tooltip));
    return object;
}

static json_t *fields_json(const toile_field *fields, int count) {
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, field_json(&fields[i]));
    return list;
}

static char *text_of(json_t *value) {
    char *text = value ? json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(value);
    return text;
}

char *toile_settings_json(void) {
    int count, fabric_count;
    const toile_field *fields = toile_settings_fields(&count), *fabric = toile_fabric_fields(&fabric_count);
    json_t *object = json_object();
    put(object, "version", json_string(toile_version()));
    put(object, "settings", fields_json(fields, count));
    put(object, "fabric", fields_json(fabric, fabric_count));
    return text_of(object);
}

char *toile_fabrics_json(void) {
    int fabric_count, count;
    const toile_named_fabric *fabrics = toile_named_fabrics(&fabric_count);
    const toile_field *fields = toile_fabric_fields(&count);
    json_t *list = json_array();
    for (int f = 0; f < fabric_count; f++) {
        json_t *object = json_object();
        put(object, "name", json_string(fabrics[f].name));
        put(object, "label", json_string(fabrics[f].label));
        put(object, "source", json_string(fabrics[f].source));
        for (int i = 0; i < count; i++) {
            double values[3];
            toile_get_field(&fields[i], &fabrics[f].fabric, values);
            put(object, fields[i].id, value_json(&fields[i], values));
        }
        json_array_append_new(list, object);
    }
    return text_of(list);
}

void toile_free_text(char *text) {
    free(text);
}
