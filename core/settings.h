/* Settings of a simulation and properties of a fabric: two structs made from two tables (settings_table.inl,
 * fabric_table.inl), and one way to describe, set, read and check a field by its name. */
#ifndef TOILE_SETTINGS_H
#define TOILE_SETTINGS_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

#define TOILE_CLOTH_MODELS(X) X(CONTINUUM, "continuum") X(SPRINGS, "springs")
#define TOILE_INTEGRATORS(X) X(BACKWARD_EULER, "backward_euler") X(FORWARD_EULER, "forward_euler") X(FB_EULER, "fb_euler") \
    X(RK4, "rk4") X(BDF2, "bdf2") X(IMEX, "imex") X(AIMEX, "aimex") X(SBDF2, "sbdf2") X(NEWTON, "newton") X(AUTO, "auto")
#define TOILE_LINEAR_SOLVERS(X) X(AUTO, "auto") X(MPCG, "mpcg") X(UPCG, "upcg") X(CHOLMOD, "cholmod") \
    X(COREPCG, "corepcg")
#define TOILE_SOLVER_STOPS(X) X(ENERGY, "energy") X(THESIS, "thesis")
#define TOILE_PRECONDITIONERS(X) X(NONE, "none") X(DIAGONAL, "diagonal") X(BLOCK, "block") X(CONSTRAINED, "constrained") \
    X(INCOMPLETE, "incomplete")
#define TOILE_DRAG_MODELS(X) X(NONE, "none") X(PARTICLE, "particle") X(TRIANGLE, "triangle")

#define TOILE_SELF_MODES(X) X(OFF, "off") X(ON, "on") X(CHEAP, "cheap")

#define TOILE_CHOICE_CLOTH(name, text) TOILE_CLOTH_##name,
#define TOILE_CHOICE_INTEGRATOR(name, text) TOILE_INTEGRATOR_##name,
#define TOILE_CHOICE_SOLVER(name, text) TOILE_SOLVER_##name,
#define TOILE_CHOICE_STOP(name, text) TOILE_STOP_##name,
#define TOILE_CHOICE_PRECONDITIONER(name, text) TOILE_PRECONDITIONER_##name,
#define TOILE_CHOICE_DRAG(name, text) TOILE_DRAG_##name,
#define TOILE_CHOICE_SELF(name, text) TOILE_SELF_##name,
enum { TOILE_SELF_MODES(TOILE_CHOICE_SELF) };
enum { TOILE_CLOTH_MODELS(TOILE_CHOICE_CLOTH) };
enum { TOILE_INTEGRATORS(TOILE_CHOICE_INTEGRATOR) };
enum { TOILE_LINEAR_SOLVERS(TOILE_CHOICE_SOLVER) };
enum { TOILE_SOLVER_STOPS(TOILE_CHOICE_STOP) };
enum { TOILE_PRECONDITIONERS(TOILE_CHOICE_PRECONDITIONER) };
enum { TOILE_DRAG_MODELS(TOILE_CHOICE_DRAG) };

#define REAL(id, def, hmin, hmax, smin, smax, unit, group, label, tip) double id;
#define INT(id, def, hmin, hmax, smin, smax, unit, group, label, tip) int id;
#define VEC3(id, dx, dy, dz, hmin, hmax, smin, smax, unit, group, label, tip) double id[3];
#define BOOL(id, def, group, label, tip) bool id;
#define CHOICE(id, choices, def, group, label, tip) int id;
typedef struct toile_settings {
#include "settings_table.inl"
} toile_settings;
typedef struct toile_fabric {
#include "fabric_table.inl"
} toile_fabric;
#undef REAL
#undef INT
#undef VEC3
#undef BOOL
#undef CHOICE

typedef enum toile_field_type {
    TOILE_FIELD_REAL,
    TOILE_FIELD_INT,
    TOILE_FIELD_VEC3,
    TOILE_FIELD_BOOL,
    TOILE_FIELD_CHOICE,
} toile_field_type;

/* One row of a table, as data. */
typedef struct toile_field {
    const char *id;
    toile_field_type type;
    size_t offset;                  /* in the struct */
    double standard[3];             /* default value; the index for a choice */
    double hard_min, hard_max;      /* refused outside */
    double soft_min, soft_max;      /* what a slider offers */
    const char *unit, *group, *label, *tooltip;
    const char *const *choices;     /* null-terminated, for a choice; else null */
} toile_field;

const toile_field *toile_settings_fields(int *count);
const toile_field *toile_fabric_fields(int *count);
const toile_field *toile_find_field(const toile_field *fields, int count, const char *id);

toile_settings toile_default_settings(void);
toile_fabric toile_default_fabric(void);

/* Every field within its hard range and finite, and fields that depend on each other in order. `where` begins the
 * message (for example "settings"). */
toile_status toile_check_settings(const toile_settings *settings, const char *where, toile_error *error);
toile_status toile_check_fabric(const toile_fabric *fabric, const char *where, toile_error *error);

/* Sets one field of the struct at `target` from numbers (1, or 3 for a VEC3; booleans as 0 and 1) or from text
 * (a choice, true/false, or numbers separated by commas). Refuses what is out of range. */
toile_status toile_set_field_numbers(const toile_field *field, void *target, const double *values, int count,
                                     toile_error *error);
toile_status toile_set_field_text(const toile_field *field, void *target, const char *text, toile_error *error);

/* Reads a field as numbers (up to 3); returns how many. A choice gives its index. */
int toile_get_field(const toile_field *field, const void *source, double values[3]);

/* Named fabrics that come with Toile. `source` says where the figures are from. */
typedef struct toile_named_fabric {
    const char *name, *label, *source;
    toile_fabric fabric;
} toile_named_fabric;
const toile_named_fabric *toile_named_fabrics(int *count);
const toile_named_fabric *toile_find_fabric(const char *name);

#endif
