#include "pattern_garmentcode.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SIZE_MOST 20.0 /* m; a panel that is larger is in other units */
#define SIZE_LEAST 0.002

typedef struct reader {
    toile_memory *memory;
    const char *path;
    toile_garmentcode *to;
    toile_garmentcode_log *log;
    void *user;
    toile_error *error;
    double unit;                    /* m of one unit of the file */
    bool absolute;                  /* control points are places, not parts of the edge */
    json_t *numbers;                /* of panels by name */
    bool *sewn;                     /* of all edges */
    bool *clockwise;                /* of panels */
    size_t points_used;
    int *edge_base;
} reader;

#define REFUSE(...) refuse(r, __VA_ARGS__)

static __attribute__((format(printf, 2, 3))) toile_status refuse(const reader *r, const char *format, ...) {
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return toile_fail(r->error, TOILE_INVALID, "%.200s: %s", r->path, text);
}

static __attribute__((format(printf, 2, 3))) void warn(const reader *r, const char *format, ...) {
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->log)
        r->log(r->user, text);
}

static toile_status no_memory(const reader *r) {
    return toile_fail_memory(r->error, "a sewing pattern");
}

/* Says once for every object which of its keys mean nothing to us. */
static void warn_of_keys(const reader *r, const json_t *object, const char *const *known, const char *what) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        int i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            warn(r, "%.120s: \"%.64s\" is not used", what, key);
    }
}

static bool read_numbers(const json_t *list, size_t count, double *to) {
    if (!json_is_array(list) || json_array_size(list) != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(list, i);
        to[i] = json_number_value(number);
        if (!json_is_number(number) || !isfinite(to[i]))
            return false;
    }
    return true;
}

/* ---- edges ---- */

/* start + a (end - start) + b perp(end - start), perp(x, y) = (-y, x) */
static void from_edge(const reader *r, const double a[2], const double b[2], const double relative[2], double to[2]) {
    double x = b[0] - a[0], y = b[1] - a[1];
    to[0] = r->absolute ? relative[0] * r->unit : a[0] + relative[0] * x - relative[1] * y;
    to[1] = r->absolute ? relative[1] * r->unit : a[1] + relative[0] * y + relative[1] * x;
}

static toile_status read_through(reader *r, const char *panel, int edge, const json_t *params, const double end[2],
                                 toile_curve *curve) {
    size_t count = json_array_size(params);
    double(*points)[3] = r->to->points + r->points_used;
    memcpy(points[0], curve->from, sizeof curve->from);
    for (size_t i = 0; i < count; i++) {
        if (!read_numbers(json_array_get(params, i), 2, points[i + 1]))
            return REFUSE("panel \"%.64s\", edge %d: a point that it goes through is two numbers", panel, edge);
        points[i + 1][0] *= r->unit;
        points[i + 1][1] *= r->unit;
    }
    memcpy(points[count + 1], end, 2 * sizeof *end);
    if (count > 0)
        toile_curve_through(curve, points, (int)count + 2);
    r->points_used += count + 2;
    return TOILE_OK;
}

static toile_status read_curve(reader *r, const char *panel, int edge, const json_t *curvature, const double end[2],
                               toile_curve *curve) {
    const json_t *params = json_is_array(curvature) ? curvature : json_object_get(curvature, "params");
    const char *type = json_is_array(curvature) ? "old" : json_string_value(json_object_get(curvature, "type"));
    double p[3], control[2];
    if (type && strcmp(type, "through") == 0)
        return read_through(r, panel, edge, params, end, curve);
    if (type && strcmp(type, "circle") == 0) {
        json_t *flags[2] = {json_array_get(params, 1), json_array_get(params, 2)};
        double radius = json_number_value(json_array_get(params, 0));
        for (int k = 0; k < 2; k++)
            p[k] = json_is_boolean(flags[k]) ? json_is_true(flags[k]) : json_number_value(flags[k]);
        if (json_array_size(params) != 3 || !json_is_number(json_array_get(params, 0)) || !(radius > 0))
            return REFUSE("panel \"%.64s\", edge %d: a circle is [radius, large_arc, right] with a radius above 0", panel, edge);
        curve->arc = true;
        curve->radius = radius * r->unit;
        curve->large = p[0] != 0;
        curve->clockwise = p[1] == 0; /* SVG's sweep flag: angles grow, which is counter-clockwise where y is up */
        return TOILE_OK;
    }
    int count = type && strcmp(type, "old") == 0         ? 1
                : type && strcmp(type, "quadratic") == 0 ? 1
                : type && strcmp(type, "cubic") == 0     ? 2
                                                         : 0;
    if (!type)
        return REFUSE("panel \"%.64s\", edge %d: \"curvature\" is {\"type\": name, \"params\": [...]}", panel, edge);
    if (count == 0)
        return REFUSE("panel \"%.64s\", edge %d: curvature \"%.32s\" is not known; quadratic, cubic and circle are", panel, edge, type);
    if (type[0] != 'o' && json_array_size(params) != (size_t)count)
        return REFUSE("panel \"%.64s\", edge %d: a %s curve has %d control points, found %zu", panel, edge, type, count,
                      json_array_size(params));
    curve->control_count = count;
    for (int i = 0; i < count; i++) {
        if (!read_numbers(type[0] == 'o' ? params : json_array_get(params, (size_t)i), 2, control))
            return REFUSE("panel \"%.64s\", edge %d: a control point is two numbers", panel, edge);
        from_edge(r, curve->from, end, control, curve->control[i]);
    }
    return TOILE_OK;
}

static toile_status read_edges(reader *r, const char *name, const json_t *panel, toile_pattern_edge *edges, int count) {
    static const char *const KNOWN[] = {"endpoints", "label", "curvature", NULL};
    const json_t *list = json_object_get(panel, "edges"), *vertices = json_object_get(panel, "vertices");
    int first = -1, before = -1;
    for (int i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        double ends[2], points[2][2];
        char what[160];
        if (!read_numbers(json_object_get(item, "endpoints"), 2, ends))
            return REFUSE("panel \"%.64s\", edge %d: needs \"endpoints\": [vertex, vertex]", name, i);
        for (int k = 0; k < 2; k++) {
            if (!(ends[k] >= 0 && ends[k] < (double)json_array_size(vertices)) || ends[k] != floor(ends[k]))
                return REFUSE("panel \"%.64s\", edge %d: goes to vertex %g; there are vertices 0 to %d", name, i, ends[k],
                              (int)json_array_size(vertices) - 1);
            if (!read_numbers(json_array_get(vertices, (size_t)ends[k]), 2, points[k]))
                return REFUSE("panel \"%.64s\", edge %d: vertex %d is not two numbers", name, i, (int)ends[k]);
            points[k][0] *= r->unit;
            points[k][1] *= r->unit;
        }
        if (i > 0 && (int)ends[0] != before)
            return REFUSE("panel \"%.64s\", edge %d: begins at vertex %d, but edge %d ends at vertex %d: the outline is open",
                          name, i, (int)ends[0], i - 1, before);
        before = (int)ends[1];
        if (i == 0)
            first = (int)ends[0];
        memcpy(edges[i].curve.from, points[0], sizeof points[0]);
        const json_t *label = json_object_get(item, "label"), *curvature = json_object_get(item, "curvature");
        if (json_is_string(label) && *json_string_value(label)) {
            toile_garmentcode_label *to = &r->to->labels[r->to->label_count++];
            *to = (toile_garmentcode_label){(int)json_integer_value(json_object_get(r->numbers, name)), i,
                                            json_string_value(label)};
        }
        if (curvature && !json_is_null(curvature)) {
            toile_status status = read_curve(r, name, i, curvature, points[1], &edges[i].curve);
            if (status != TOILE_OK)
                return status;
        }
        snprintf(what, sizeof what, "panel \"%.64s\", edge %d", name, i);
        warn_of_keys(r, item, KNOWN, what);
    }
    if (before != first)
        return REFUSE("panel \"%.64s\", edge %d: ends at vertex %d, but edge 0 begins at vertex %d: the outline is open", name,
                      count - 1, before, first);
    return TOILE_OK;
}

/* ---- panels ---- */

static toile_status check_size(const reader *r, const char *name, const toile_pattern_edge *edges, int count) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], edges[i].curve.from[k]);
            high[k] = fmax(high[k], edges[i].curve.from[k]);
        }
    double size = fmax(high[0] - low[0], high[1] - low[1]);
    if (!(size <= SIZE_MOST && size >= SIZE_LEAST))
        return REFUSE("panel \"%.64s\" is %.3g m large with \"units_in_meter\": %.6g; panels have %g to %g m, is the unit right?",
                      name, size, 1 / r->unit, SIZE_LEAST, SIZE_MOST);
    return TOILE_OK;
}

static toile_status read_panel(reader *r, const char *name, const json_t *item, int index, double edge_length,
                               toile_pattern_edge *edges) {
    static const char *const KNOWN[] = {"translation", "rotation", "vertices", "edges", "label", "grain", "clockwise", NULL};
    int count = (int)json_array_size(json_object_get(item, "edges"));
    toile_garmentcode *to = r->to;
    char what[120];
    if (json_array_size(json_object_get(item, "vertices")) < 2 || count < 2)
        return REFUSE("panel \"%.64s\": needs lists of \"vertices\" and \"edges\", at least two of each", name);
    const json_t *translation = json_object_get(item, "translation"), *rotation = json_object_get(item, "rotation");
    const json_t *grain = json_object_get(item, "grain");
    double warp = grain ? json_number_value(grain) : 90; /* the warp hangs: along y */
    if ((grain && !json_is_number(grain)) || !(fabs(warp) <= 360))
        return REFUSE("panel \"%.64s\": \"grain\" is an angle from the x axis in degrees", name);
    r->clockwise[index] = json_is_true(json_object_get(item, "clockwise"));
    if (translation && !read_numbers(translation, 3, to->origin[index]))
        return REFUSE("panel \"%.64s\": \"translation\" is not three numbers", name);
    if (rotation && !read_numbers(rotation, 3, to->rotate[index]))
        return REFUSE("panel \"%.64s\": \"rotation\" is not three numbers", name);
    for (int k = 0; k < 3; k++) {
        to->origin[index][k] *= r->unit;
        if (!(fabs(to->origin[index][k]) <= SIZE_MOST) || !(fabs(to->rotate[index][k]) <= 1e6))
            return REFUSE("panel \"%.64s\": is placed %.3g m away, turned by %.3g degrees; are the units right?", name,
                          to->origin[index][k], to->rotate[index][k]);
    }
    toile_status status = read_edges(r, name, item, edges, count);
    if (status == TOILE_OK)
        status = check_size(r, name, edges, count);
    if (status != TOILE_OK)
        return status;
    to->loop_sizes[index] = count;
    to->panels[index] = (toile_pattern_panel){.name = name,
                                              .loop_count = 1,
                                              .loop_sizes = &to->loop_sizes[index],
                                              .edges = edges,
                                              .edge_length = edge_length,
                                              .grain = warp * M_PI / 180,
                                              .pose = toile_pose_from(to->origin[index], to->rotate[index])};
    snprintf(what, sizeof what, "panel \"%.64s\"", name);
    warn_of_keys(r, item, KNOWN, what);
    return TOILE_OK;
}

static toile_status read_panels(reader *r, const json_t *panels, double edge_length) {
    toile_garmentcode *to = r->to;
    size_t count = json_object_size(panels), edges = 0, points = 0;
    const char *name;
    json_t *item;
    if (!json_is_object(panels) || count == 0 || count > TOILE_PATTERN_PANELS)
        return REFUSE("\"pattern\".\"panels\" is %s with %zu panels; 1 to %d by name are possible",
                      json_is_object(panels) ? "an object" : "no object", count, TOILE_PATTERN_PANELS);
    r->numbers = json_object();
    r->edge_base = toile_alloc(r->memory, count + 1, sizeof *r->edge_base);
    if (!r->numbers || !r->edge_base)
        return no_memory(r);
    json_object_foreach((json_t *)panels, name, item) {
        size_t of_panel = json_array_size(json_object_get(item, "edges")), number = json_object_size(r->numbers);
        if (of_panel > TOILE_PATTERN_EDGES)
            return REFUSE("panel \"%.64s\" has %zu edges; at most %d are possible", name, of_panel, TOILE_PATTERN_EDGES);
        if (!*name || strlen(name) > 120 || strpbrk(name, "/\n\r\t"))
            return REFUSE("panel \"%.64s\": a name has 1 to 120 characters, none of them / or a control character", name);
        r->edge_base[number] = (int)edges;
        edges += of_panel;
        for (size_t i = 0; i < of_panel; i++) {
            const json_t *edge = json_array_get(json_object_get(item, "edges"), i);
            points += 2 + json_array_size(json_object_get(json_object_get(edge, "curvature"), "params"));
        }
        if (edges > 100 * (size_t)TOILE_PATTERN_EDGES)
            return REFUSE("the panels have more than %d edges", 100 * TOILE_PATTERN_EDGES);
        if (json_object_set_new(r->numbers, name, json_integer((json_int_t)number)) != 0)
            return no_memory(r);
    }
    r->edge_base[count] = (int)edges;
    to->panels = toile_alloc(r->memory, count, sizeof *to->panels);
    to->origin = toile_alloc(r->memory, count, sizeof *to->origin);
    to->rotate = toile_alloc(r->memory, count, sizeof *to->rotate);
    to->loop_sizes = toile_alloc(r->memory, count, sizeof *to->loop_sizes);
    to->edges = toile_alloc(r->memory, edges, sizeof *to->edges);
    to->labels = toile_alloc(r->memory, edges, sizeof *to->labels);
    to->points = toile_alloc(r->memory, points, sizeof *to->points);
    r->clockwise = toile_alloc(r->memory, count, sizeof *r->clockwise);
    r->sewn = toile_alloc(r->memory, edges, sizeof *r->sewn);
    if (!to->panels || !to->origin || !to->rotate || !to->loop_sizes || !to->edges || !to->labels ||
        !to->points || !r->clockwise || !r->sewn)
        return no_memory(r);
    int index = 0;
    json_object_foreach((json_t *)panels, name, item) {
        toile_status status = read_panel(r, name, item, index, edge_length, to->edges + r->edge_base[index]);
        if (status != TOILE_OK)
            return status;
        index++;
    }
    to->pattern.panels = to->panels;
    to->pattern.panel_count = (int)count;
    return TOILE_OK;
}

/* ---- stitches ---- */

static toile_status read_side(const reader *r, size_t stitch, const json_t *item, toile_pattern_side *side) {
    const char *name = json_string_value(json_object_get(item, "panel"));
    const json_t *edge = json_object_get(item, "edge"), *number = name ? json_object_get(r->numbers, name) : NULL;
    if (!name || !json_is_integer(edge))
        return REFUSE("stitch %zu: a side is {\"panel\": name, \"edge\": number}", stitch);
    if (!number)
        return REFUSE("stitch %zu: there is no panel \"%.64s\"", stitch, name);
    side->panel = (int)json_integer_value(number);
    json_int_t which = json_integer_value(edge);
    int count = r->edge_base[side->panel + 1] - r->edge_base[side->panel];
    if (which < 0 || which >= count)
        return REFUSE("stitch %zu: panel \"%.64s\" has no edge %lld; it has edges 0 to %d", stitch, name, (long long)which,
                      count - 1);
    side->edge = (int)which;
    return TOILE_OK;
}

/* One edge, or a list of them. */
static toile_status read_sides(const reader *r, size_t stitch, const json_t *item, bool reverse, toile_pattern_side *sides,
                               int *count) {
    static const char *const KNOWN[] = {"panel", "edge", NULL};
    *count = json_is_array(item) ? (int)json_array_size(item) : 1;
    if (*count == 0)
        return REFUSE("stitch %zu: a side is an empty list; it has at least one edge", stitch);
    for (int j = 0; j < *count; j++) {
        const json_t *one = json_is_array(item) ? json_array_get(item, (size_t)j) : item;
        char what[32];
        toile_status status = read_side(r, stitch, one, &sides[j]);
        if (status != TOILE_OK)
            return status;
        sides[j].reverse = reverse != r->clockwise[sides[j].panel];
        snprintf(what, sizeof what, "stitch %zu", stitch);
        warn_of_keys(r, one, KNOWN, what);
    }
    return TOILE_OK;
}

/* Marks the edges of a seam as sewn; false: one of them is already. */
static bool take_sides(const reader *r, size_t stitch, const toile_pattern_seam *seam, toile_status *status) {
    const toile_garmentcode *to = r->to;
    *status = TOILE_OK;
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < seam->count[k]; j++) {
            const toile_pattern_side *side = &seam->sides[k][j];
            if (r->sewn[r->edge_base[side->panel] + side->edge]) {
                warn(r, "stitch %zu: edge %d of panel \"%.64s\" is already sewn to another; three layers in one seam are not "
                        "possible, this stitch is left out",
                     stitch, side->edge, to->panels[side->panel].name);
                return false;
            }
        }
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < seam->count[k]; j++) {
            const toile_pattern_side *side = &seam->sides[k][j];
            bool *sewn = &r->sewn[r->edge_base[side->panel] + side->edge];
            if (*sewn) {
                *status = REFUSE("stitch %zu: joins edge %d of panel \"%.64s\" to itself; it joins two edges", stitch,
                                 side->edge, to->panels[side->panel].name);
                return false;
            }
            *sewn = true;
        }
    return true;
}

static toile_status read_stitches(const reader *r, const json_t *stitches) {
    toile_garmentcode *to = r->to;
    size_t count = json_array_size(stitches);
    if (stitches && !json_is_array(stitches))
        return REFUSE("\"pattern\".\"stitches\" is no list; use [[{\"panel\": name, \"edge\": number}, {...}], ...]");
    size_t side_count = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 2; k++) {
            const json_t *side = json_array_get(json_array_get(stitches, i), k);
            side_count += json_is_array(side) ? json_array_size(side) : 1;
        }
    to->seams = toile_alloc(r->memory, count, sizeof *to->seams);
    to->sides = toile_alloc(r->memory, side_count, sizeof *to->sides);
    if (!to->seams || !to->sides)
        return no_memory(r);
    if (!stitches)
        warn(r, "the pattern has no \"stitches\": nothing will be sewn");
    toile_pattern_side *room = to->sides;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(stitches, i);
        size_t size = json_array_size(item);
        if (size < 2)
            return REFUSE("stitch %zu: has %zu sides; it joins two edges", i, size);
        /* The end of one edge meets the beginning of the other, unless right goes to wrong side. */
        bool against = true;
        for (size_t k = 2; k < size; k++) {
            const char *flag = json_string_value(json_array_get(item, k));
            if (flag && strcmp(flag, "right_wrong") == 0)
                against = false;
            else
                warn(r, "stitch %zu: \"%.32s\" is not used", i, flag ? flag : "its third element");
        }
        toile_pattern_seam seam = {.seam = toile_default_seam()};
        for (size_t k = 0; k < 2; k++) {
            toile_status status = read_sides(r, i, json_array_get(item, k), k == 1 && against, room, &seam.count[k]);
            if (status != TOILE_OK)
                return status;
            seam.sides[k] = room;
            room += seam.count[k];
        }
        toile_status status;
        if (!take_sides(r, i, &seam, &status)) {
            if (status != TOILE_OK)
                return status;
            continue;
        }
        to->seams[to->pattern.seam_count++] = seam;
    }
    to->pattern.seams = to->seams;
    return TOILE_OK;
}

/* ---- the file ---- */

static toile_status read_properties(reader *r, const json_t *properties) {
    const json_t *units = json_object_get(properties, "units_in_meter");
    const char *coords = json_string_value(json_object_get(properties, "curvature_coords"));
    static const char *const KNOWN[] = {"units_in_meter", "curvature_coords", "normalize_panel_translation",
                                        "normalized_edge_loops", NULL};
    double value = 100;
    if (units) {
        value = json_number_value(units);
        if (!json_is_number(units))
            return REFUSE("\"units_in_meter\" is no number; use how many units of the file are a metre, 100 for centimetres");
        if (!(value >= 0.001 && value <= 1e6))
            return REFUSE("\"units_in_meter\" is %g; use how many units of the file are a metre, 100 for centimetres", value);
    } else {
        warn(r, "the file does not say \"units_in_meter\"; centimetres are taken");
    }
    r->unit = 1 / value;
    if (coords && strcmp(coords, "absolute") == 0)
        r->absolute = true;
    else if (coords && strcmp(coords, "relative") != 0)
        return REFUSE("\"curvature_coords\" is \"%.32s\"; relative and absolute are known", coords);
    if (json_is_true(json_object_get(properties, "normalize_panel_translation")))
        warn(r, "\"normalize_panel_translation\" is not used: panels are placed as written");
    warn_of_keys(r, properties, KNOWN, "properties");
    return TOILE_OK;
}

toile_status toile_garmentcode_read(toile_memory *memory, const char *path, const char *text, size_t length,
                                    double edge_length, toile_garmentcode_log *log, void *user, toile_garmentcode *to,
                                    toile_error *error) {
    json_error_t problem;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    memset(to, 0, sizeof *to);
    if (!root)
        return toile_fail(error, json_error_code(&problem) == json_error_out_of_memory ? TOILE_NO_MEMORY : TOILE_INVALID,
                          "%.200s:%d: not a pattern in JSON: %s", path, problem.line > 0 ? problem.line : 1, problem.text);
    return toile_garmentcode_take(memory, path, root, edge_length, log, user, to, error);
}

toile_status toile_garmentcode_take(toile_memory *memory, const char *path, json_t *root, double edge_length,
                                    toile_garmentcode_log *log, void *user, toile_garmentcode *to, toile_error *error) {
    static const char *const KNOWN[] = {"pattern", "properties", "parameters", "parameter_order", "constraints",
                                        "constraint_order", NULL};
    static const char *const KNOWN_PATTERN[] = {"panels", "stitches", "panel_order", NULL};
    reader state = {.memory = memory, .path = path, .to = to, .log = log, .user = user, .error = error}, *r = &state;
    memset(to, 0, sizeof *to);
    to->root = root;
    const json_t *pattern = json_object_get(to->root, "pattern");
    toile_status status = TOILE_OK;
    if (!json_is_object(pattern))
        status = REFUSE("is no GarmentCode pattern: it has no \"pattern\" with \"panels\" and \"stitches\"");
    if (status == TOILE_OK)
        status = read_properties(r, json_object_get(to->root, "properties"));
    if (status == TOILE_OK)
        status = read_panels(r, json_object_get(pattern, "panels"), edge_length);
    if (status == TOILE_OK)
        status = read_stitches(r, json_object_get(pattern, "stitches"));
    if (status == TOILE_OK) {
        warn_of_keys(r, to->root, KNOWN, "the file");
        warn_of_keys(r, pattern, KNOWN_PATTERN, "pattern");
    }
    json_decref(r->numbers);
    toile_free(memory, r->sewn);
    toile_free(memory, r->clockwise);
    toile_free(memory, r->edge_base);
    if (status != TOILE_OK)
        toile_garmentcode_free(memory, to);
    return status;
}

double toile_garmentcode_length(const toile_garmentcode *read, int panel, int edge) {
    const toile_pattern_panel *p = &read->panels[panel];
    toile_curve curve = p->edges[edge].curve;
    toile_curve_measure measure;
    memcpy(curve.to, p->edges[(edge + 1) % p->loop_sizes[0]].curve.from, sizeof curve.to);
    toile_curve_measure_of(&curve, &measure);
    return measure.length;
}

void toile_garmentcode_free(toile_memory *memory, toile_garmentcode *read) {
    toile_free(memory, read->panels);
    toile_free(memory, read->origin);
    toile_free(memory, read->rotate);
    toile_free(memory, read->labels);
    toile_free(memory, read->edges);
    toile_free(memory, read->points);
    toile_free(memory, read->loop_sizes);
    toile_free(memory, read->seams);
    toile_free(memory, read->sides);
    json_decref(read->root);
    memset(read, 0, sizeof *read);
}
