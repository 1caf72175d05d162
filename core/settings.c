#include "settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_TEXT(name, text) text,
static const char *const CLOTH_MODELS[] = {TOILE_CLOTH_MODELS(CHOICE_TEXT) NULL};
static const char *const INTEGRATORS[] = {TOILE_INTEGRATORS(CHOICE_TEXT) NULL};
static const char *const LINEAR_SOLVERS[] = {TOILE_LINEAR_SOLVERS(CHOICE_TEXT) NULL};
static const char *const SOLVER_STOPS[] = {TOILE_SOLVER_STOPS(CHOICE_TEXT) NULL};
static const char *const PRECONDITIONERS[] = {TOILE_PRECONDITIONERS(CHOICE_TEXT) NULL};
static const char *const SELF_MODES[] = {TOILE_SELF_MODES(CHOICE_TEXT) NULL};
static const char *const DRAG_MODELS[] = {TOILE_DRAG_MODELS(CHOICE_TEXT) NULL};

#define REAL(id, def, hmin, hmax, smin, smax, unit, group, label, tip) \
    {#id, TOILE_FIELD_REAL, offsetof(OWNER, id), {def, 0, 0}, hmin, hmax, smin, smax, unit, group, label, tip, NULL},
#define INT(id, def, hmin, hmax, smin, smax, unit, group, label, tip) \
    {#id, TOILE_FIELD_INT, offsetof(OWNER, id), {def, 0, 0}, hmin, hmax, smin, smax, unit, group, label, tip, NULL},
#define VEC3(id, dx, dy, dz, hmin, hmax, smin, smax, unit, group, label, tip) \
    {#id, TOILE_FIELD_VEC3, offsetof(OWNER, id), {dx, dy, dz}, hmin, hmax, smin, smax, unit, group, label, tip, NULL},
#define BOOL(id, def, group, label, tip) \
    {#id, TOILE_FIELD_BOOL, offsetof(OWNER, id), {def, 0, 0}, 0, 1, 0, 1, "1", group, label, tip, NULL},
#define CHOICE(id, list, def, group, label, tip)                                                               \
    {#id, TOILE_FIELD_CHOICE, offsetof(OWNER, id), {def, 0, 0}, 0, sizeof list / sizeof *list - 2, 0,          \
     sizeof list / sizeof *list - 2, "1", group, label, tip, list},

#define OWNER toile_settings
static const toile_field SETTINGS[] = {
#include "settings_table.inl"
};
#undef OWNER
#define OWNER toile_fabric
static const toile_field FABRIC[] = {
#include "fabric_table.inl"
};
#undef OWNER

enum { SETTINGS_COUNT = sizeof SETTINGS / sizeof *SETTINGS, FABRIC_COUNT = sizeof FABRIC / sizeof *FABRIC };

const toile_field *toile_settings_fields(int *count) {
    *count = SETTINGS_COUNT;
    return SETTINGS;
}

const toile_field *toile_fabric_fields(int *count) {
    *count = FABRIC_COUNT;
    return FABRIC;
}

const toile_field *toile_find_field(const toile_field *fields, int count, const char *id) {
    for (int i = 0; i < count; i++)
        if (strcmp(fields[i].id, id) == 0)
            return &fields[i];
    return NULL;
}

static void store(const toile_field *field, void *target, const double *values) {
    char *at = (char *)target + field->offset;
    switch (field->type) {
    case TOILE_FIELD_REAL: *(double *)at = values[0]; break;
    case TOILE_FIELD_VEC3: memcpy(at, values, 3 * sizeof(double)); break;
    case TOILE_FIELD_BOOL: *(bool *)at = values[0] != 0; break;
    case TOILE_FIELD_INT:
    case TOILE_FIELD_CHOICE: *(int *)at = (int)values[0]; break;
    }
}

int toile_get_field(const toile_field *field, const void *source, double values[3]) {
    const char *at = (const char *)source + field->offset;
    switch (field->type) {
    case TOILE_FIELD_REAL: values[0] = *(const double *)at; return 1;
    case TOILE_FIELD_VEC3: memcpy(values, at, 3 * sizeof(double)); return 3;
    case TOILE_FIELD_BOOL: values[0] = *(const bool *)at; return 1;
    case TOILE_FIELD_INT:
    case TOILE_FIELD_CHOICE: values[0] = *(const int *)at; return 1;
    }
    return 0;
}

toile_settings toile_default_settings(void) {
    toile_settings settings;
    memset(&settings, 0, sizeof settings);
    for (int i = 0; i < SETTINGS_COUNT; i++)
        store(&SETTINGS[i], &settings, SETTINGS[i].standard);
    return settings;
}

toile_fabric toile_default_fabric(void) {
    toile_fabric fabric;
    memset(&fabric, 0, sizeof fabric);
    for (int i = 0; i < FABRIC_COUNT; i++)
        store(&FABRIC[i], &fabric, FABRIC[i].standard);
    return fabric;
}

static void list_choices(const toile_field *field, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (const char *const *c = field->choices; *c && used < size; c++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", c == field->choices ? "" : ", ", *c);
}

static toile_status check_values(const toile_field *field, const double *values, int count, toile_error *error) {
    for (int i = 0; i < count; i++) {
        double v = values[i];
        if (!isfinite(v) || v < field->hard_min || v > field->hard_max) {
            const char *unit = strcmp(field->unit, "1") == 0 ? "" : field->unit;
            if (field->choices) {
                char list[256];
                list_choices(field, list, sizeof list);
                return toile_fail(error, TOILE_INVALID, "%s: %g is not a choice; use one of: %s", field->id, v, list);
            }
            return toile_fail(error, TOILE_INVALID, "%s: %g%s%s is out of range; use %g to %g%s%s", field->id, v,
                              *unit ? " " : "", unit, field->hard_min, field->hard_max, *unit ? " " : "", unit);
        }
    }
    return TOILE_OK;
}

toile_status toile_set_field_numbers(const toile_field *field, void *target, const double *values, int count,
                                     toile_error *error) {
    int wanted = field->type == TOILE_FIELD_VEC3 ? 3 : 1;
    if (count != wanted)
        return toile_fail(error, TOILE_INVALID, "%s: %d number%s given; it takes %d", field->id, count,
                          count == 1 ? "" : "s", wanted);
    bool whole = field->type == TOILE_FIELD_INT || field->type == TOILE_FIELD_CHOICE;
    if (whole && values[0] != floor(values[0]))
        return toile_fail(error, TOILE_INVALID, "%s: %g is not a whole number", field->id, values[0]);
    toile_status status = check_values(field, values, count, error);
    if (status == TOILE_OK)
        store(field, target, values);
    return status;
}

toile_status toile_set_field_text(const toile_field *field, void *target, const char *text, toile_error *error) {
    double values[3];
    int count = 0;
    if (field->type == TOILE_FIELD_CHOICE) {
        for (int i = 0; field->choices[i]; i++)
            if (strcmp(field->choices[i], text) == 0) {
                values[0] = i;
                store(field, target, values);
                return TOILE_OK;
            }
        char list[256];
        list_choices(field, list, sizeof list);
        return toile_fail(error, TOILE_INVALID, "%s: \"%s\" is not a choice; use one of: %s", field->id, text, list);
    }
    if (field->type == TOILE_FIELD_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        values[0] = text[0] == 't';
        store(field, target, values);
        return TOILE_OK;
    }
    for (const char *at = text; count < 3;) {
        char *end;
        values[count] = strtod(at, &end);
        if (end == at)
            return toile_fail(error, TOILE_INVALID, "%s: \"%s\" is not a number%s", field->id, text,
                              field->type == TOILE_FIELD_VEC3 ? " triple such as 0,0,-9.81" : "");
        count++;
        at = end;
        if (*at == ',') {
            at++;
            continue;
        }
        if (*at)
            return toile_fail(error, TOILE_INVALID, "%s: \"%s\" has text after the number", field->id, text);
        break;
    }
    return toile_set_field_numbers(field, target, values, count, error);
}

static toile_status check_struct(const toile_field *fields, int count, const void *source, const char *where,
                                 toile_error *error) {
    for (int i = 0; i < count; i++) {
        double values[3];
        int n = toile_get_field(&fields[i], source, values);
        toile_error inner;
        if (check_values(&fields[i], values, n, &inner) != TOILE_OK)
            return toile_fail(error, TOILE_INVALID, "%s.%s", where, inner.message);
    }
    return TOILE_OK;
}

toile_status toile_check_settings(const toile_settings *settings, const char *where, toile_error *error) {
    toile_status status = check_struct(SETTINGS, SETTINGS_COUNT, settings, where, error);
    if (status == TOILE_OK && settings->time_step_min > settings->time_step)
        return toile_fail(error, TOILE_INVALID,
                          "%s.time_step_min: %g s is longer than time_step (%g s); make it shorter", where,
                          settings->time_step_min, settings->time_step);
    return status;
}

toile_status toile_check_fabric(const toile_fabric *fabric, const char *where, toile_error *error) {
    return check_struct(FABRIC, FABRIC_COUNT, fabric, where, error);
}
