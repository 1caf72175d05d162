/* `toile settings`, `fabrics`, `solvers`, `schema`: the tables of core/settings.h for people and programs. */
#include "commands.h"

#include "scene.h"
#include "settings.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static void put(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

/* A table as JSON text, which it frees. */
static int print_text(char *text) {
    if (!text)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the JSON output");
    puts(text);
    toile_free_text(text);
    return 0;
}

/* ---- one field ---- */

static void format_value(const toile_field *field, const double values[3], char *text, size_t size) {
    switch (field->type) {
    case TOILE_FIELD_VEC3: snprintf(text, size, "%g, %g, %g", values[0], values[1], values[2]); break;
    case TOILE_FIELD_BOOL: snprintf(text, size, "%s", values[0] != 0 ? "true" : "false"); break;
    case TOILE_FIELD_CHOICE: snprintf(text, size, "%s", field->choices[(int)values[0]]); break;
    case TOILE_FIELD_REAL:
    case TOILE_FIELD_INT: snprintf(text, size, "%g", values[0]); break;
    }
}

static void format_range(const toile_field *field, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    if (field->type == TOILE_FIELD_BOOL)
        snprintf(text, size, "true, false");
    else if (!field->choices)
        snprintf(text, size, "%g to %g", field->hard_min, field->hard_max);
    else
        for (const char *const *c = field->choices; *c && used < size; c++)
            used += (size_t)snprintf(text + used, size - used, "%s%s", c == field->choices ? "" : ", ", *c);
}

static const char *unit_text(const toile_field *field) {
    return strcmp(field->unit, "1") == 0 ? "" : field->unit;
}

/* ---- a table of fields ---- */

/* A cell that must not end the column of a Markdown table. */
static void print_cell(const char *text) {
    for (; *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_markdown(const toile_field *fields, int count) {
    printf("| setting | default | range | unit | meaning |\n|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        char value[96], range[192];
        format_value(&fields[i], fields[i].standard, value, sizeof value);
        format_range(&fields[i], range, sizeof range);
        printf("| `%s` | %s | ", fields[i].id, value);
        print_cell(range);
        printf(" | %s | ", unit_text(&fields[i]));
        print_cell(fields[i].tooltip);
        printf(" |\n");
    }
}

/* Breaks a text at spaces to lines that begin at a column. */
static void print_wrapped(const char *text, int column, int width) {
    int used = 0;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (used > 0 && used + 1 + length > width) {
            printf("\n%*s", column, "");
            used = 0;
        }
        used += printf("%s%.*s", used ? " " : "", length, text);
        text += length + (int)strspn(text + length, " ");
    }
    printf("\n");
}

static int wider(int width, const char *text) {
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void print_fields(const toile_field *fields, int count) {
    enum { PAGE = 110, TEXT = 56 };
    char value[96], range[192];
    int id_width = 0, value_width = 0, unit_width = 0;
    for (int i = 0; i < count; i++) {
        format_value(&fields[i], fields[i].standard, value, sizeof value);
        id_width = wider(id_width, fields[i].id);
        value_width = wider(value_width, value);
        unit_width = wider(unit_width, unit_text(&fields[i]));
    }
    int column = 2 + id_width + 2 + value_width + 2 + unit_width + 2;
    int width = PAGE - column > TEXT ? PAGE - column : TEXT;
    for (int i = 0; i < count; i++) {
        const toile_field *field = &fields[i];
        if (i == 0 || strcmp(field->group, fields[i - 1].group) != 0)
            printf("%s%s\n", i ? "\n" : "", field->group);
        format_value(field, field->standard, value, sizeof value);
        format_range(field, range, sizeof range);
        printf("  %-*s  %*s  %-*s  ", id_width, field->id, value_width, value, unit_width, unit_text(field));
        print_wrapped(field->tooltip, column, width);
        printf("%*sallowed: ", column, "");
        print_wrapped(range, column, width - 9);
    }
}

int toile_command_settings(int argc, char **argv) {
    bool json = false, markdown = false;
    int exit_code, count, fabric_count;
    const toile_option options[] = {
        {"--json", NULL, TOILE_OPTION_FLAG, &json, NULL, "as JSON: settings, and the properties of a fabric",
         NULL},
        {"--markdown", NULL, TOILE_OPTION_FLAG, &markdown, NULL, "as tables for README.md", NULL},
    };
    const toile_syntax syntax = {
        "toile settings [--json | --markdown]",
        "Every setting with its default, unit, meaning and range; then the properties of a "
        "fabric.\nA scene sets them under \"settings\"; a bake changes them with --set "
        "settings.NAME=VALUE.",
        options,
        COUNT(options),
        NULL,
        0};
    if (!toile_parse_options(&syntax, argc, argv, NULL, &exit_code))
        return exit_code;
    const toile_field *fields = toile_settings_fields(&count), *fabric = toile_fabric_fields(&fabric_count);
    if (json)
        return print_text(toile_settings_json());
    if (markdown) {
        print_markdown(fields, count);
        printf("\n");
        print_markdown(fabric, fabric_count);
        return 0;
    }
    print_fields(fields, count);
    printf("\n");
    print_fields(fabric, fabric_count);
    return 0;
}

/* ---- fabrics ---- */

static void print_fabric(const toile_named_fabric *named, const toile_field *fields, int count) {
    printf("%s  %s\n  source: ", named->name, named->label);
    print_wrapped(named->source, 10, 96);
    for (int i = 0; i < count; i++) {
        double values[3];
        char text[96];
        toile_get_field(&fields[i], &named->fabric, values);
        format_value(&fields[i], values, text, sizeof text);
        printf("  %-16s %10s %s\n", fields[i].id, text, unit_text(&fields[i]));
    }
}

static void print_fabrics_markdown(const toile_named_fabric *fabrics, int fabric_count,
                                   const toile_field *fields, int count) {
    printf("| fabric |");
    for (int i = 0; i < count; i++)
        printf(" %s, %s |", fields[i].id, fields[i].unit);
    printf(" source |\n|---|");
    for (int i = 0; i < count; i++)
        printf("---|");
    printf("---|\n");
    for (int f = 0; f < fabric_count; f++) {
        printf("| `%s` |", fabrics[f].name);
        for (int i = 0; i < count; i++) {
            double values[3];
            char text[96];
            toile_get_field(&fields[i], &fabrics[f].fabric, values);
            format_value(&fields[i], values, text, sizeof text);
            printf(" %s |", text);
        }
        printf(" ");
        print_cell(fabrics[f].source);
        printf(" |\n");
    }
}

int toile_command_fabrics(int argc, char **argv) {
    bool json = false, markdown = false;
    int exit_code, fabric_count, count;
    const toile_option options[] = {
        {"--json", NULL, TOILE_OPTION_FLAG, &json, NULL, "as JSON", NULL},
        {"--markdown", NULL, TOILE_OPTION_FLAG, &markdown, NULL, "as a table for README.md", NULL},
    };
    const toile_syntax syntax = {
        "toile fabrics [--json | --markdown]",
        "The fabrics that come with Toile, what they are made of and where the figures are "
        "from.",
        options,
        COUNT(options),
        NULL,
        0};
    if (!toile_parse_options(&syntax, argc, argv, NULL, &exit_code))
        return exit_code;
    const toile_named_fabric *fabrics = toile_named_fabrics(&fabric_count);
    const toile_field *fields = toile_fabric_fields(&count);
    if (markdown) {
        print_fabrics_markdown(fabrics, fabric_count, fields, count);
        return 0;
    }
    if (json)
        return print_text(toile_fabrics_json());
    for (int f = 0; f < fabric_count; f++) {
        printf("%s", f ? "\n" : "");
        print_fabric(&fabrics[f], fields, count);
    }
    return 0;
}

/* ---- solvers ---- */

static const struct meaning {
    const char *setting, *choice, *text;
} MEANINGS[] = {
    {"cloth_model", "continuum", "triangles with stretch, shear and bend of their own fabric; any mesh"},
    {"cloth_model", "springs",
     "connections between particles that buckle like an arc instead of resisting pressure"},
    {"integrator", "backward_euler", "one linear system a step; stable at large steps, damps fast motion"},
    {"integrator", "forward_euler", "no system, tiny steps; for comparisons"},
    {"integrator", "fb_euler", "velocities first, then positions with them; no system, keeps energy, tiny steps"},
    {"integrator", "rk4", "four evaluations a step, fourth order; tiny steps"},
    {"integrator", "bdf2", "second order: livelier than backward_euler, one system a step"},
    {"integrator", "imex", "stretch in the system, the rest explicit"},
    {"integrator", "aimex", "in the system only what is too stiff for the step, element by element"},
    {"integrator", "sbdf2", "the second-order form of aimex"},
    {"integrator", "newton", "backward_euler iterated until forces balance; slowest"},
    {"integrator", "auto", "backward_euler"},
    {"linear_solver", "auto",
     "single precision with an incomplete factor, refined in double; direct where iterating would cost more"},
    {"linear_solver", "mpcg",
     "conjugate gradients that keep pins and contacts exactly; memory grows with the mesh only"},
    {"linear_solver", "upcg", "conjugate gradients on the system without constrained directions"},
    {"linear_solver", "cholmod", "that system solved directly; exact, memory grows faster than the mesh"},
    {"linear_solver", "corepcg", "conjugate gradients around a direct factor of the stretch part"},
    {"solver_stop", "energy", "at an estimated error of the answer, the same for every solver"},
    {"solver_stop", "thesis", "at a residual in the preconditioner's norm, as Boxerman does; mpcg only"},
    {"preconditioner", "none", "no help; for comparisons"},
    {"preconditioner", "diagonal", "the matrix's diagonal; cheap"},
    {"preconditioner", "block", "the 3x3 block of every particle; fewer iterations than diagonal"},
    {"preconditioner", "constrained",
     "3x3 blocks that know which directions are held; the fastest in contact"},
    {"preconditioner", "incomplete",
     "block incomplete Cholesky of the stretch part, in constrained form: fewest iterations"},
    {"drag_model", "none", "no air; wind has no effect"},
    {"drag_model", "particle", "against the velocity of every particle, by its share of area"},
    {"drag_model", "triangle", "along every triangle's normal only, so cloth slides through air edge on"},
};

static const char *const CHOSEN_SETTINGS[] = {"cloth_model", "integrator", "linear_solver", "preconditioner",
                                              "solver_stop", "drag_model"};

static const char *meaning_of(const char *setting, const char *choice) {
    for (int i = 0; i < COUNT(MEANINGS); i++)
        if (strcmp(MEANINGS[i].setting, setting) == 0 && strcmp(MEANINGS[i].choice, choice) == 0)
            return MEANINGS[i].text;
    return "";
}

int toile_command_solvers(int argc, char **argv) {
    bool json = false;
    int exit_code, count;
    const toile_option options[] = {{"--json", NULL, TOILE_OPTION_FLAG, &json, NULL, "as JSON", NULL}};
    const toile_syntax syntax = {
        "toile solvers [--json]",
        "The main choices of a simulation and what each is for; * marks the default.",
        options,
        COUNT(options),
        NULL,
        0};
    if (!toile_parse_options(&syntax, argc, argv, NULL, &exit_code))
        return exit_code;
    const toile_field *fields = toile_settings_fields(&count);
    json_t *object = json ? json_object() : NULL;
    for (int i = 0; i < COUNT(CHOSEN_SETTINGS); i++) {
        const toile_field *field = toile_find_field(fields, count, CHOSEN_SETTINGS[i]);
        if (!field || !field->choices)
            continue;
        json_t *list = json ? json_array() : NULL;
        if (!json)
            printf("%s%s\n", i ? "\n" : "", field->id);
        for (int c = 0; field->choices[c]; c++) {
            const char *text = meaning_of(field->id, field->choices[c]);
            bool standard = c == (int)field->standard[0];
            if (json)
                json_array_append_new(list, json_pack("{s:s, s:b, s:s}", "name", field->choices[c], "default",
                                                      standard, "meaning", text));
            else
                printf("  %c %-16s %s\n", standard ? '*' : ' ', field->choices[c], text);
        }
        if (json)
            put(object, field->id, list);
    }
    return json ? toile_print_json(object) : 0;
}

/* ---- schema ---- */

int toile_command_schema(int argc, char **argv) {
    int exit_code;
    const toile_syntax syntax = {
        "toile schema", "The JSON Schema (draft 2020-12) of a scene file, for editors and generators.",
        NULL,           0,
        NULL,           0};
    if (!toile_parse_options(&syntax, argc, argv, NULL, &exit_code))
        return exit_code;
    char *text = toile_scene_schema();
    if (!text)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the schema");
    puts(text);
    free(text);
    return 0;
}
