/* `toile import`: a pattern of GarmentCode, or a drawing of panels, and a body become a scene that sews and drapes it. */
#include "commands.h"

#include "body_field.h"
#include "body_waist.h"
#include "obj.h"
#include "pattern_aim.h"
#include "pattern_drawing.h"
#include "pattern_fit.h"
#include "pattern_waist.h"
#include "scene.h"
#include "scene_abc.h"
#include "sewing_order.h"
#include "settings.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_MOST ((size_t)64 << 20) /* bytes */
#define MARGIN 0.012                    /* m that panels start away from the body */
#define FIT_EDGE 0.035                  /* m, of the mesh that is placed */
#define FIELD_STEP 0.02                 /* m, of the distances from the body */

/* N/m for every metre of an edge: trousers that are 5 cm short from waist to crotch are pulled up with 17 N. Five times as
 * stiff, pins drew cloth into the slot between the legs, 4 mm wide, and through its wall. */
#define PIN_STIFFNESS 400.0
#define OVERHANG_LEAST 0.05             /* m; less is pushed together */
#define SHRUNK_PART 1.5                 /* how much shrinks, as a multiple of what is too long */
#define SHRUNK_LEAST 0.25               /* m of a metre */
#define SHORT_MOST 0.11 /* m that trousers below a bodice may be too short through the crotch */
#define GATHER_LIKELY 5.0               /* of a longer side into a shorter one; more is asked about */

typedef struct import {
    toile_memory memory;
    toile_error error;
    const char *pattern_path, *sewing_path, *body_path, *scene_path, *mesh_path, *fabric;
    double edge_length;
    int units;                      /* of a drawing: 0 as it says, 1 mm, 2 cm, 3 in, 4 m, 5 px */
    bool is_drawing;
    toile_garmentcode read;
    bool body_is_abc;
    int body_vertices, body_triangles;
    double *body;                   /* m, y up, (body_vertices x 3) */
    int *triangles;
    double body_scale;              /* of the file's positions */
    bool body_z_up;
    double waist, girth;            /* where the body is narrowest, m: how high, how far around */
    bool *joins, *lower;            /* seams at a waist, panels that hang there; see pattern_waist.h */
    bool grows;                     /* something shrinks and grows again */
    toile_fit_report fit;
    int progress;                   /* 0: none, 1: json */
} import;

static void say(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "toile: warning: %s\n", line);
}

/* How far placing is, for the add-on. */
static void tell(void *user, int done, int total) {
    (void)user;
    printf("{\"event\": \"place\", \"done\": %d, \"total\": %d}\n", done, total);
    fflush(stdout);
}

/* ---- the body ---- */

static bool ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcasecmp(text + a - b, end) == 0;
}

static toile_status read_body_file(import *in, toile_obj *obj) {
    if (!in->body_is_abc)
        return toile_obj_read(&in->memory, in->body_path, obj, &in->error);
    struct toile_abc *abc = NULL;
    toile_status status = toile_abc_open(&in->memory, in->body_path, NULL, false, &abc, &in->error);
    if (status == TOILE_OK)
        status = toile_abc_mesh(abc, (double)TOILE_PLAN_FIRST / TOILE_PLAN_FPS, obj, &in->error);
    toile_abc_close(abc);
    return status;
}

static toile_status take_body(import *in, const toile_obj *obj) {
    for (int f = 0; f < obj->face_count; f++)
        in->body_triangles += obj->face_sizes[f] - 2;
    in->body_vertices = obj->vertex_count;
    in->body = toile_alloc(&in->memory, (size_t)obj->vertex_count, 3 * sizeof *in->body);
    in->triangles = toile_alloc(&in->memory, (size_t)in->body_triangles, 3 * sizeof *in->triangles);
    if (!in->body || !in->triangles)
        return toile_fail_memory(&in->error, "the body");
    int *to = in->triangles;
    for (int f = 0, at = 0; f < obj->face_count; at += obj->face_sizes[f++])
        for (int k = 2; k < obj->face_sizes[f]; k++) {
            *to++ = obj->corner_vertices[at];
            *to++ = obj->corner_vertices[at + k - 1];
            *to++ = obj->corner_vertices[at + k];
        }
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < 3 * obj->vertex_count; i++) {
        low[i % 3] = fmin(low[i % 3], obj->positions[i]);
        high[i % 3] = fmax(high[i % 3], obj->positions[i]);
    }
    /* A person stands: the longer of y and z is up, and is 0.5 to 3 m long in one of the usual units. */
    in->body_z_up = !in->body_is_abc && high[2] - low[2] > 1.2 * (high[1] - low[1]);
    double height = in->body_z_up ? high[2] - low[2] : high[1] - low[1];
    in->body_scale = height > 300 ? 0.001 : height > 30 ? 0.01 : 1;
    height *= in->body_scale;
    if (!(height > 0.3 && height < 4))
        return toile_fail(&in->error, TOILE_INVALID,
                          "%s: is %g units high; a body of 0.3 to 4 m in metres, centimetres or millimetres is expected",
                          in->body_path, height / in->body_scale);
    for (int i = 0; i < obj->vertex_count; i++) {
        const double *p = obj->positions + 3 * (size_t)i;
        double *q = in->body + 3 * (size_t)i, s = in->body_scale;
        q[0] = s * p[0];
        q[1] = s * (in->body_z_up ? p[2] : p[1]);
        q[2] = s * (in->body_z_up ? -p[1] : p[2]);
        if (!(fabs(q[0]) < 10 && fabs(q[1]) < 10 && fabs(q[2]) < 10))
            return toile_fail(&in->error, TOILE_INVALID, "%s: vertex %d is more than 10 m away from the origin", in->body_path, i);
    }
    if (in->body_scale != 1)
        fprintf(stderr, "toile: warning: the body is taken to be in %s\n", in->body_scale < 0.005 ? "millimetres" : "centimetres");
    double volume = 0;
    for (int t = 0; t < in->body_triangles; t++) {
        const double *a = in->body + 3 * in->triangles[3 * t], *b = in->body + 3 * in->triangles[3 * t + 1],
                     *c = in->body + 3 * in->triangles[3 * t + 2];
        volume += (a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])) / 6;
    }
    if (!(volume > 0))
        return toile_fail(&in->error, TOILE_INVALID, "%s: its faces point inwards; turn them around", in->body_path);
    return TOILE_OK;
}

static toile_status read_body(import *in) {
    toile_obj obj = {0};
    in->body_is_abc = ends_with(in->body_path, ".abc");
    toile_status status = read_body_file(in, &obj);
    if (status == TOILE_OK) {
        status = take_body(in, &obj);
        toile_obj_free(&in->memory, &obj);
    }
    return status;
}

/* ---- what is possible and unlikely ---- */

static double side_length(const import *in, const toile_pattern_seam *seam, int which) {
    double sum = 0;
    for (int i = 0; i < seam->count[which]; i++)
        sum += toile_garmentcode_length(&in->read, seam->sides[which][i].panel, seam->sides[which][i].edge);
    return sum;
}

static void doubt_gathers(const import *in) {
    for (int i = 0; i < in->read.pattern.seam_count; i++) {
        const toile_pattern_side *a = in->read.seams[i].sides[0], *b = in->read.seams[i].sides[1];
        double lengths[2] = {side_length(in, &in->read.seams[i], 0), side_length(in, &in->read.seams[i], 1)};
        if (fmax(lengths[0], lengths[1]) > GATHER_LIKELY * fmin(lengths[0], lengths[1]))
            fprintf(stderr,
                    "toile: warning: stitch %d gathers %.3g m (panel \"%s\", edge %d) and %.3g m (panel \"%s\", edge %d) into one; "
                    "if that is not meant, look at its edges\n", i,
                    lengths[0], in->read.panels[a->panel].name, a->edge, lengths[1], in->read.panels[b->panel].name, b->edge);
    }
}

/* ---- around the body ---- */

/* An outline that crosses itself: the panel is named already, not the file. */
static toile_status blame_pattern(import *in, toile_status status) {
    toile_error inner = in->error;
    return status == TOILE_INVALID ? toile_fail(&in->error, status, "%.200s: %s", in->pattern_path, inner.message) : status;
}

static toile_status fit(import *in) {
    toile_body_field field;
    toile_status status = toile_body_field_make(&in->memory, in->body_vertices, in->body, in->body_triangles, in->triangles,
                                                FIELD_STEP, 0.15, &field, &in->error);
    if (status != TOILE_OK)
        return status;
    status = toile_pattern_aim(&in->memory, &in->read, in->joins, &field, FIT_EDGE, &in->error);
    if (status == TOILE_OK)
        status =
            toile_pattern_fit(&in->memory, &in->read.pattern, in->read.panels, in->joins, in->lower, &field,
                              MARGIN, FIT_EDGE, in->progress ? tell : NULL, NULL, &in->fit, &in->error);
    toile_body_field_free(&in->memory, &field);
    if (status != TOILE_OK)
        return blame_pattern(in, status);
    const toile_fit_report *r = &in->fit;
    if (r->inside > 0)
        fprintf(stderr, "toile: warning: %d points of panels start nearer than %g m to the body or in it, some in panel \"%s\"\n",
                r->inside, MARGIN, in->read.panels[r->worst_panel].name);
    if (r->crossing > 0)
        fprintf(stderr, "toile: warning: %d pairs of panels cross each other where they start\n", r->crossing);
    return TOILE_OK;
}

/* ---- the scene ---- */

/* The file as seen from the scene's folder; for the caller to free. */
static char *seen_from(const char *scene_path, const char *file) {
    char *folder = strdup(scene_path), *slash = folder ? strrchr(folder, '/') : NULL, *result = NULL;
    if (slash)
        slash[slash == folder] = 0;
    char *here = folder ? realpath(slash ? folder : ".", NULL) : NULL, *there = realpath(file, NULL);
    if (here && there) {
        size_t same = 0, ups = 0;
        for (size_t i = 0; here[i] == there[i] && here[i]; i++)
            if (here[i] == '/')
                same = i + 1;
        size_t length = strlen(here);
        if (strncmp(here, there, length) == 0 && there[length] == '/')
            same = length + 1;
        for (size_t i = same; i < length; i++)
            ups += i == same || here[i] == '/';
        result = malloc(3 * ups + strlen(there + same) + 1);
        for (size_t i = 0; result && i < ups; i++)
            memcpy(result + 3 * i, "../", 3);
        if (result)
            strcpy(result + 3 * ups, there + same);
    }
    free(folder);
    free(here);
    free(there);
    return result;
}

static json_t *point(const double *p, int count) {
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_real(fabs(p[i]) < 1e-12 ? 0 : p[i]));
    return list;
}

static json_t *edge_json(const toile_pattern_edge *edge, const char *name) {
    json_t *object = json_pack("{s:o}", "from", point(edge->curve.from, 2));
    if (edge->curve.point_count > 0) {
        json_t *list = json_array();
        for (int i = 1; i + 1 < edge->curve.point_count; i++)
            json_array_append_new(list, point(edge->curve.points[i], 2));
        json_object_set_new(object, "through", list);
    } else if (edge->curve.arc) {
        json_object_set_new(object, "arc",
                            json_pack("{s:f,s:b,s:b}", "radius", edge->curve.radius, "large", edge->curve.large, "clockwise",
                                      edge->curve.clockwise));
    } else if (edge->curve.control_count > 0) {
        json_t *list = json_array();
        for (int i = 0; i < edge->curve.control_count; i++)
            json_array_append_new(list, point(edge->curve.control[i], 2));
        json_object_set_new(object, "control", list);
    }
    if (name)
        json_object_set_new(object, "name", json_string(name));
    return object;
}

static json_t *panel_json(const import *in, int index) {
    const toile_pattern_panel *p = &in->read.panels[index];
    json_t *outline = json_array(), *place;
    int label = 0;
    for (int i = 0; i < p->loop_sizes[0]; i++) {
        const char *name = NULL;
        for (; label < in->read.label_count; label++) {
            const toile_garmentcode_label *l = &in->read.labels[label];
            if (l->panel < index || (l->panel == index && l->edge < i))
                continue;
            name = l->panel == index && l->edge == i ? l->label : NULL;
            break;
        }
        json_array_append_new(outline, edge_json(&p->edges[i], name));
    }
    place = json_pack("{s:o,s:o}", "origin", point(p->pose.position, 3), "rotate", point(in->read.rotate[index], 3));
    if (p->bend_radius != 0)
        json_object_set_new(place, "bend",
                            json_pack("{s:f,s:f,s:o}", "radius", p->bend_radius, "axis", p->bend_axis * 180 / M_PI, "at",
                                      point(p->bend_at, 2)));
    return json_pack("{s:s,s:f,s:o,s:o}", "name", p->name, "grain", p->grain * 180 / M_PI, "place", place, "outline", outline);
}

static json_t *side_json(const import *in, const toile_pattern_seam *seam, int which) {
    json_t *list = json_array();
    for (int i = 0; i < seam->count[which]; i++) {
        const toile_pattern_side *side = &seam->sides[which][i];
        json_t *object = json_pack("{s:s,s:i}", "panel", in->read.panels[side->panel].name, "edge", side->edge);
        if (side->reverse)
            json_object_set_new(object, "reverse", json_true());
        json_array_append_new(list, object);
    }
    return list;
}

static int whole_at(const import *in) {
    return in->grows ? TOILE_PLAN_GROWN : TOILE_PLAN_SEWN;
}

/* Height of the middle of an edge where the panel starts. */
static double height_of(const import *in, const toile_garmentcode_label *l) {
    const toile_pattern_panel *p = &in->read.panels[l->panel];
    double height = 0;
    for (int k = 0; k < 2; k++) {
        double place[3];
        toile_pattern_place(p, p->edges[(l->edge + k) % p->loop_sizes[0]].curve.from, place);
        height += 0.5 * place[1];
    }
    return height;
}

/* One edge kept at a height until the garment hangs: it goes `up` from its start while it is sewn. */
static json_t *pin_json(const import *in, const toile_garmentcode_label *l, const char *garment, double up) {
    json_t *pin = json_pack("{s:s,s:{s:[{s:s,s:i}]},s:[i,i],s:s,s:f}", "garment", garment, "select", "panel_edges", "panel",
                            in->read.panels[l->panel].name, "edge", l->edge, "frames", TOILE_PLAN_FIRST,
                            whole_at(in) + TOILE_PLAN_HELD, "axes", "z", "stiffness", PIN_STIFFNESS * in->edge_length);
    if (up != 0)
        json_object_set_new(pin, "motion",
                            json_pack("{s:[{s:i,s:[f,f,f]},{s:i,s:[f,f,f]}],s:s}", "keys", "frame", TOILE_PLAN_FIRST,
                                      "translate", 0.0, 0.0, 0.0, "frame", TOILE_PLAN_SEWN, "translate", 0.0, 0.0, up,
                                      "interpolation", "smooth"));
    return pin;
}

/* What the reference attaches to the body for the first frames: waists go to the body's, tops without straps stay as high
 * as they are. Pins hold only the height, and are weaker than stitches, so that seams close. Collars are carried by the
 * shoulders. */
static json_t *pins_json(const import *in, const char *garment) {
    json_t *pins = json_array(), *said = json_object();
    for (int i = 0; i < in->read.label_count; i++) {
        const toile_garmentcode_label *l = &in->read.labels[i];
        if (strcmp(l->label, "lower_interface") == 0) {
            json_array_append_new(pins, pin_json(in, l, garment, in->waist - height_of(in, l)));
        } else if (strcmp(l->label, "strapless_top") == 0) {
            json_array_append_new(pins, pin_json(in, l, garment, 0));
        } else if (!json_object_get(said, l->label)) {
            fprintf(stderr, "toile: warning: edges labelled \"%.64s\" are not attached to the body\n", l->label);
            json_object_set_new(said, l->label, json_true());
        }
    }
    json_decref(said);
    return pins;
}

/* A map for every panel that hangs over a waist: its lower part shrinks by what is too long. */
static json_t *maps_json(import *in) {
    json_t *maps = json_array();
    for (int p = 0; p < in->read.pattern.panel_count; p++) {
        double begins, up[3], over = toile_pattern_overhang(&in->read, in->waist, in->joins, p, &begins);
        toile_pose_turn(&in->read.panels[p].pose, (double[3]){0, 1, 0}, up);
        if (over < OVERHANG_LEAST || up[1] < 0.8) /* the warp does not hang */
            continue;
        over -= OVERHANG_LEAST;
        double height = SHRUNK_PART * over, most = 0;
        for (int i = 0; i < in->read.panels[p].loop_sizes[0]; i++) {
            double place[3];
            toile_pattern_place(&in->read.panels[p], in->read.panels[p].edges[i].curve.from, place);
            most = fmax(most, place[1] - begins);
        }
        height = fmin(height, 0.75 * most);
        json_array_append_new(
            maps, json_pack("{s:s,s:{s:[[f,f,f],[f,f,f]],s:[s]},s:f,s:[{s:i,s:i},{s:i,s:i},{s:i,s:i},{s:i,s:i}]}", "property", "scale_u",
                            "select", "box", -10.0, -10.0, -10.0, 10.0, 10.0, begins + height, "panels", in->read.panels[p].name,
                            "value", fmax(1 - over / height, SHRUNK_LEAST), "keys", "frame", TOILE_PLAN_SEWN,
                            "value", 0, "frame", TOILE_PLAN_SHRUNK, "value", 1, "frame", TOILE_PLAN_JOINED,
                            "value", 1, "frame", TOILE_PLAN_GROWN, "value", 0));
        in->grows = true;
    }
    return maps;
}

/* The whole garment is as stiff as card while it is sewn. */
static void stiffen(const import *in, json_t *maps) {
    static const char *const PROPERTIES[] = {"bend_warp", "bend_weft"};
    const toile_fabric *fabric = &toile_find_fabric(in->fabric)->fabric;
    double bends[] = {fabric->bend_warp, fabric->bend_weft};
    int from = in->grows ? TOILE_PLAN_JOINED : TOILE_PLAN_WEIGHT, to = from + TOILE_PLAN_SHRUNK - TOILE_PLAN_WEIGHT;
    for (int k = 0; k < 2; k++)
        json_array_append_new(maps, json_pack("{s:s,s:{s:[[f,f,f],[f,f,f]]},s:f,s:[{s:i,s:i},{s:i,s:i}]}", "property", PROPERTIES[k],
                                              "select", "box", -10.0, -10.0, -10.0, 10.0, 10.0, 10.0, "value",
                                              fmax(1, fmin(TOILE_SEWN_BEND / bends[k], 1000)), "keys", "frame", from, "value", 1,
                                              "frame", to, "value", 0));
}

static json_t *scene_json(import *in, const char *name, const char *body) {
    json_t *panels = json_array(), *seams = json_array(), *maps = maps_json(in);
    const toile_sewing_order order = {&in->read, in->joins, in->grows};
    for (int i = 0; i < in->read.pattern.panel_count; i++)
        json_array_append_new(panels, panel_json(in, i));
    for (int i = 0; i < in->read.pattern.seam_count; i++) {
        const toile_pattern_seam *s = &in->read.seams[i];
        int frames[2];
        toile_sewn_when(&order, i, frames);
        json_array_append_new(seams, json_pack("{s:o,s:o,s:[i,i]}", "a", side_json(in, s, 0), "b", side_json(in, s, 1), "frames",
                                               frames[0], frames[1]));
    }
    json_t *collider = json_pack("{s:s,s:s,s:s,s:f}", "name", "body", "shape", "mesh", in->body_is_abc ? "abc" : "obj", body,
                                 "friction", 0.3);
    if (!in->body_is_abc && !in->body_z_up)
        json_object_set_new(collider, "place", json_pack("{s:[f,f,f]}", "rotate", 90.0, 0.0, 0.0));
    if (in->body_scale != 1)
        json_object_set_new(collider, "scale", json_real(in->body_scale));
    /* The pattern's frame has y upwards; turning the garment as a whole keeps the file's own numbers readable. */
    json_t *garment = json_pack("{s:s,s:s,s:f,s:{s:[f,f,f]},s:o,s:o}", "name", "garment", "fabric", in->fabric, "edge_length",
                                in->edge_length, "place", "rotate", 90.0, 0.0, 0.0, "panels", panels, "seams", seams);
    stiffen(in, maps);
    json_object_set_new(garment, "maps", maps);
    return json_pack("{s:i,s:s,s:s,s:i,s:[i,i],s:{s:f,s:f},s:[o],s:[o],s:o}", "toile", 1, "name", name, "description",
                     "Made by toile import: sewn without weight, then draped", "fps", TOILE_PLAN_FPS,
                     "frames", TOILE_PLAN_FIRST,
                     whole_at(in) + TOILE_PLAN_HELD + TOILE_PLAN_REST, "settings", "gravity_delay",
                     (double)(TOILE_PLAN_SEWN - TOILE_PLAN_FIRST) / TOILE_PLAN_FPS, "gravity_ramp",
                     (double)(TOILE_PLAN_WEIGHT - TOILE_PLAN_SEWN) / TOILE_PLAN_FPS, "garments", garment, "colliders", collider,
                     "pins", pins_json(in, "garment"));
}

/* The file's name without folder and ending, and without what GarmentCode adds to it. */
static void name_of(const char *path, char *name, size_t size) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    size_t length = strcspn(file, ".");
    const char *added = strstr(file, "_specification");
    if (added && (size_t)(added - file) < length && added > file)
        length = (size_t)(added - file);
    snprintf(name, size, "%.*s", (int)(length < 100 ? length : 100), file);
    if (!*name)
        snprintf(name, size, "pattern");
}

/* Written beside and renamed, so that a scene is whole or not there; loaded first, so that it can be baked. */
static toile_status write_scene(import *in) {
    char name[128];
    name_of(in->pattern_path, name, sizeof name);
    char *body = seen_from(in->scene_path, in->body_path);
    json_t *root = body ? scene_json(in, name, body) : NULL;
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(10)) : NULL;
    toile_status status = TOILE_OK;
    if (!body)
        status = toile_fail(&in->error, TOILE_IO, "%s: its folder could not be found: %s", in->scene_path, strerror(errno));
    else if (!text)
        status = toile_fail_memory(&in->error, "the scene");
    if (status == TOILE_OK) {
        toile_scene *scene = NULL;
        status = toile_scene_load_text(NULL, text, strlen(text), in->scene_path, NULL, 0, &scene, &in->error);
        if (status == TOILE_OK && in->mesh_path)
            status = toile_scene_write_obj(scene, in->mesh_path, &in->error);
        toile_scene_free(scene);
    }
    if (status == TOILE_OK) {
        FILE *file = fopen(in->scene_path, "w");
        bool written = file && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
        if (file && fclose(file) != 0)
            written = false;
        if (!written)
            status = toile_fail(&in->error, TOILE_IO, "%s: could not be written: %s", in->scene_path, strerror(errno));
    }
    free(text);
    free(body);
    json_decref(root);
    return status;
}

static toile_status raise_waists(import *in) {
    const toile_pattern *pattern = &in->read.pattern;
    in->joins = toile_alloc(&in->memory, (size_t)pattern->seam_count, sizeof *in->joins);
    in->lower = toile_alloc(&in->memory, (size_t)pattern->panel_count, sizeof *in->lower);
    if (!in->joins || !in->lower)
        return toile_fail_memory(&in->error, "waists");
    toile_status status = toile_body_waist(&in->memory, in->body_vertices, in->body, in->body_triangles, in->triangles,
                                           &in->waist, &in->girth, &in->error);
    if (status == TOILE_OK)
        status = toile_pattern_raise(&in->memory, &in->read, in->waist, in->joins, in->lower, &in->error);
    /* Trousers alone slide down from where they are too short; those that hang on a bodice are drawn into the
     * crotch. */
    double rise = toile_sewn_rise(&(toile_sewing_order){&in->read, in->joins, false});
    if (status == TOILE_OK && isfinite(rise) && memchr(in->lower, true, (size_t)pattern->panel_count)) {
        status = toile_body_hang(&in->memory, in->body_vertices, in->body, in->body_triangles, in->triangles,
                                 rise + SHORT_MOST, &in->waist, &in->error);
        if (status == TOILE_OK)
            status = toile_pattern_raise(&in->memory, &in->read, in->waist, in->joins, in->lower, &in->error);
    }
    return status;
}

/* ---- drawings ---- */

static toile_status read_companion(import *in, json_t **companion) {
    char *text = NULL;
    size_t size;
    json_error_t problem;
    toile_status status = toile_read_file(&in->memory, in->sewing_path, PATTERN_MOST, &text, &size, &in->error);
    if (status != TOILE_OK)
        return status;
    *companion = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    toile_free(&in->memory, text);
    return *companion ? TOILE_OK
                      : toile_fail(&in->error, TOILE_INVALID, "%.200s:%d: not JSON: %s", in->sewing_path,
                                   problem.line > 0 ? problem.line : 1, problem.text);
}

static toile_status read_drawing(import *in, const char *text, size_t size) {
    static const double UNITS[] = {0, 0.001, 0.01, 0.0254, 1, 0.0254 / 96};
    toile_drawing drawing;
    json_t *companion = NULL, *root = NULL;
    toile_drawing_init(&drawing, &in->memory, in->pattern_path, &in->error);
    toile_status status = (ends_with(in->pattern_path, ".svg") ? toile_svg_read : toile_dxf_read)(&drawing, text, size, UNITS[in->units]);
    if (status == TOILE_OK && in->sewing_path)
        status = read_companion(in, &companion);
    if (status == TOILE_OK)
        status = toile_pattern_from_drawing(&drawing, companion, in->sewing_path, say, NULL, &root);
    toile_drawing_free(&drawing);
    json_decref(companion);
    if (status == TOILE_OK)
        status = toile_garmentcode_take(&in->memory, in->sewing_path ? in->sewing_path : in->pattern_path, root, in->edge_length,
                                        say, NULL, &in->read, &in->error);
    return status;
}

static double outline_area(const toile_pattern_panel *p) {
    double sum = 0;
    for (int e = 0; e < p->loop_sizes[0]; e++) {
        const toile_curve *c = &p->edges[e].curve;
        const double *a = c->from, *end = p->edges[(e + 1) % p->loop_sizes[0]].curve.from;
        for (int i = 1; i < c->point_count; i++) {
            const double *b = c->points[i];
            sum += a[0] * b[1] - a[1] * b[0];
            a = b;
        }
        sum += a[0] * end[1] - a[1] * end[0];
    }
    return 0.5 * fabs(sum);
}

/* Cuts the panels, to know that they can be, and lists them for a person who writes what sews them. */
static toile_status list_panels(import *in) {
    toile_pattern_mesh mesh;
    toile_pattern_where where;
    toile_status status = toile_pattern_make(&in->memory, &in->read.pattern, &mesh, &where, &in->error);
    if (status != TOILE_OK)
        return blame_pattern(in, status);
    toile_pattern_mesh_free(&in->memory, &mesh);
    for (int i = 0; i < in->read.pattern.panel_count; i++) {
        const toile_pattern_panel *p = &in->read.panels[i];
        printf("panel \"%s\": %d edges, %.8f m2, grain %.1f degrees; corners in cm from its middle:\n", p->name, p->loop_sizes[0],
               outline_area(p), p->grain * 180 / M_PI);
        for (int e = 0; e < p->loop_sizes[0]; e++) {
            const double *a = p->edges[e].curve.from, *b = p->edges[(e + 1) % p->loop_sizes[0]].curve.from;
            printf("  edge %d: %.4f m, [%.1f, %.1f] to [%.1f, %.1f]\n", e, toile_garmentcode_length(&in->read, i, e), 100 * a[0], 100 * a[1], 100 * b[0],
                   100 * b[1]);
        }
    }
    return TOILE_OK;
}

static toile_status run(import *in) {
    char *text = NULL;
    size_t size;
    toile_status status = toile_read_file(&in->memory, in->pattern_path, PATTERN_MOST, &text, &size, &in->error);
    if (status == TOILE_OK && in->is_drawing)
        status = read_drawing(in, text, size);
    else if (status == TOILE_OK)
        status = toile_garmentcode_read(&in->memory, in->pattern_path, text, size, in->edge_length, say, NULL, &in->read, &in->error);
    toile_free(&in->memory, text);
    if (status == TOILE_OK && in->is_drawing && !in->sewing_path)
        status = list_panels(in);
    if (status != TOILE_OK || !in->scene_path)
        return status;
    status = read_body(in);
    if (status == TOILE_OK)
        status = raise_waists(in);
    if (status == TOILE_OK && (!in->is_drawing || in->sewing_path))
        status = fit(in);
    if (status == TOILE_OK) {
        doubt_gathers(in);
        status = write_scene(in);
    }
    return status;
}

int toile_command_import(int argc, char **argv) {
    static const char *const operand_names[] = {"PATTERN"}, *const progress_modes[] = {"none", "json", NULL};
    static const char *const units[] = {"file", "mm", "cm", "in", "m", "px", NULL};
    import in = {.fabric = "cotton", .edge_length = 0.01};
    int exit_code;
    const toile_option options[] = {
        {"--body", NULL, TOILE_OPTION_TEXT, &in.body_path, "BODY", "the body it is put on: .obj or .abc", NULL},
        {"--sewing", NULL, TOILE_OPTION_TEXT, &in.sewing_path, "SEWING.json",
         "places and stitches of a drawing's panels: \"pattern\" as in GarmentCode's files", NULL},
        {"--units", NULL, TOILE_OPTION_CHOICE, &in.units, "UNIT", "of a drawing: file (as it says), mm, cm, in, m or px", units},
        {"--output", "-o", TOILE_OPTION_TEXT, &in.scene_path, "SCENE.json", "the scene to write", NULL},
        {"--mesh", NULL, TOILE_OPTION_TEXT, &in.mesh_path, "MESH.obj",
         "the panels as they start, too: groups, vt in metres, l what is sewn by seams, p what is held meanwhile", NULL},
        {"--edge-length", NULL, TOILE_OPTION_NUMBER, &in.edge_length, "M", "length of the mesh's edges in metres (0.01)", NULL},
        {"--fabric", NULL, TOILE_OPTION_TEXT, &in.fabric, "NAME", "a fabric of `toile fabrics` (cotton)", NULL},
        {"--progress", NULL, TOILE_OPTION_CHOICE, &in.progress, "MODE", "none, or json: lines on stdout", progress_modes},
    };
    const toile_syntax syntax = {
        "toile import PATTERN --body BODY -o SCENE.json [--sewing SEWING.json] [--units UNIT] [--mesh MESH.obj]\n"
        "       [--edge-length M] [--fabric NAME] [--progress none|json]",
        "Makes a scene of a GarmentCode pattern (.json) or of a drawing of pattern pieces (.dxf, .svg): panels are placed and bent\n"
        "around the body, sewn without weight, and draped. What the pattern has and Toile has not is said in warnings. A drawing\n"
        "says neither where panels are nor what is sewn: SEWING.json does. Without it the panels and their edges are listed, and lie\n"
        "flat in front of the body; without a body too, they are listed only.",
        options,
        (int)(sizeof options / sizeof *options),
        operand_names,
        1};
    if (!toile_parse_options(&syntax, argc, argv, &in.pattern_path, &exit_code))
        return exit_code;
    in.is_drawing = ends_with(in.pattern_path, ".svg") || ends_with(in.pattern_path, ".dxf");
    if (!in.is_drawing && (in.sewing_path || in.units))
        return toile_complain(TOILE_EXIT_USAGE, "%s is for drawings, .dxf or .svg; %s is a pattern that says all itself",
                              in.sewing_path ? "--sewing" : "--units", in.pattern_path);
    bool only_list = in.is_drawing && !in.sewing_path && !in.body_path && !in.scene_path;
    if (!only_list && (!in.body_path || !in.scene_path))
        return toile_complain(TOILE_EXIT_USAGE, "%s is missing. Usage: %s", in.body_path ? "-o SCENE.json" : "--body BODY",
                              syntax.usage);
    if (!(in.edge_length >= 0.0005 && in.edge_length <= 0.2))
        return toile_complain(TOILE_EXIT_USAGE, "--edge-length %g: it is in metres, from 0.0005 to 0.2", in.edge_length);
    if (!toile_find_fabric(in.fabric))
        return toile_complain(TOILE_EXIT_USAGE, "--fabric %s: there is no such fabric; see `toile fabrics`", in.fabric);
    toile_memory_init(&in.memory, NULL);
    toile_status status = run(&in);
    if (status == TOILE_OK && in.is_drawing && !in.sewing_path) {
        fprintf(stderr, "toile: warning: a drawing does not say where its %d panels are on the body and what is sewn to what; "
                        "--sewing SEWING.json does, with the names and numbers listed\n", in.read.pattern.panel_count);
    } else if (status == TOILE_OK) {
        const toile_fit_report *r = &in.fit;
        printf("%s: %d panels, %d seams; ways to sew %.3g m on average (%.3g m as placed), %d of them through the body\n",
               in.scene_path, in.read.pattern.panel_count, in.read.pattern.seam_count, r->gap_after, r->gap_before, r->through);
    }
    toile_garmentcode_free(&in.memory, &in.read);
    toile_free(&in.memory, in.joins);
    toile_free(&in.memory, in.lower);
    toile_free(&in.memory, in.body);
    toile_free(&in.memory, in.triangles);
    return status == TOILE_OK ? 0 : toile_complain_error(&in.error);
}
