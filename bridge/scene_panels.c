/* Garments given as a sewing pattern: panels with outlines, and seams. */
#include "scene_internal.h"

#include "pattern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EDGE_LENGTH 0.01 /* m, if nobody says */

/* What is made of the JSON before it is cut; all of it lives as long as the loading of one garment. */
typedef struct parts {
    toile_pattern pattern;
    toile_pattern_panel *panels;
    toile_pattern_edge *edges;      /* of all panels */
    double (*points)[3];            /* that edges go through */
    int *loop_sizes;
    toile_finer *finer;
    toile_pattern_seam *seams;
    toile_pattern_side *sides;
    int *fabrics;
    double *scales;
    const char **names;
} parts;

static void free_parts(toile_memory *memory, parts *p) {
    toile_free(memory, p->panels);
    toile_free(memory, p->edges);
    toile_free(memory, p->points);
    toile_free(memory, p->loop_sizes);
    toile_free(memory, p->finer);
    toile_free(memory, p->seams);
    toile_free(memory, p->sides);
    toile_free(memory, p->fabrics);
    toile_free(memory, p->scales);
    toile_free(memory, p->names);
}

/* Number of outlines, edges and so on of all panels together. */
static toile_status make_room(const loader *l, const json_t *object, parts *p) {
    const json_t *panels = json_object_get(object, "panels"), *seams = json_object_get(object, "seams");
    size_t panel_count = json_array_size(panels), seam_count = json_array_size(seams);
    size_t edges = 0, points = 0, loops = 0, finer = 0, sides = 0;
    for (size_t i = 0; i < panel_count; i++) {
        const json_t *panel = json_array_get(panels, i), *holes = json_object_get(panel, "holes");
        loops += 1 + json_array_size(holes);
        for (size_t k = 0; k <= json_array_size(holes); k++) {
            const json_t *loop = k == 0 ? json_object_get(panel, "outline") : json_array_get(holes, k - 1);
            edges += json_array_size(loop);
            for (size_t e = 0; e < json_array_size(loop); e++)
                points += 2 + json_array_size(json_object_get(json_array_get(loop, e), "through"));
        }
        finer += json_array_size(json_object_get(panel, "finer"));
    }
    for (size_t i = 0; i < seam_count; i++) {
        const json_t *seam = json_array_get(seams, i);
        sides += json_array_size(json_object_get(seam, "a")) + json_array_size(json_object_get(seam, "b"));
    }
    p->panels = toile_alloc(l->memory, panel_count, sizeof *p->panels);
    p->edges = toile_alloc(l->memory, edges, sizeof *p->edges);
    p->points = toile_alloc(l->memory, points, sizeof *p->points);
    p->loop_sizes = toile_alloc(l->memory, loops, sizeof *p->loop_sizes);
    p->finer = toile_alloc(l->memory, finer, sizeof *p->finer);
    p->seams = toile_alloc(l->memory, seam_count, sizeof *p->seams);
    p->sides = toile_alloc(l->memory, sides, sizeof *p->sides);
    p->fabrics = toile_alloc(l->memory, panel_count, sizeof *p->fabrics);
    p->scales = toile_alloc(l->memory, panel_count, 2 * sizeof *p->scales);
    p->names = toile_alloc(l->memory, panel_count, sizeof *p->names);
    if (!p->panels || !p->edges || !p->points || !p->loop_sizes || !p->finer || !p->seams || !p->sides || !p->fabrics || !p->scales ||
        !p->names)
        return no_memory(l);
    p->pattern = (toile_pattern){.panel_count = (int)panel_count,
                                 .seam_count = (int)seam_count,
                                 .panels = p->panels,
                                 .seams = p->seams};
    return TOILE_OK;
}

/* ---- panels ---- */

static void read_edge(const json_t *object, toile_pattern_edge *edge) {
    const json_t *control = json_object_get(object, "control"), *arc = json_object_get(object, "arc");
    edge->name = read_text(object, "name", NULL);
    read_vector(object, "from", 2, edge->curve.from);
    read_number(object, "edge_length", &edge->edge_length);
    edge->curve.control_count = (int)json_array_size(control);
    for (size_t i = 0; i < json_array_size(control); i++)
        for (size_t k = 0; k < 2; k++)
            edge->curve.control[i][k] = json_number_value(json_array_get(json_array_get(control, i), k));
    if (arc) {
        edge->curve.arc = true;
        read_number(arc, "radius", &edge->curve.radius);
        read_bool(arc, "large", &edge->curve.large);
        read_bool(arc, "clockwise", &edge->curve.clockwise);
    }
}

/* Edges that go through points, of a loop whose edges all have their beginnings. Gives the room that is left. */
static double (*read_through(const json_t *loop, toile_pattern_edge *edges, double (*points)[3]))[3] {
    size_t size = json_array_size(loop);
    for (size_t e = 0; e < size; e++) {
        const json_t *through = json_object_get(json_array_get(loop, e), "through");
        int count = (int)json_array_size(through);
        if (count == 0)
            continue;
        memcpy(points[0], edges[e].curve.from, sizeof edges->curve.from);
        memcpy(points[count + 1], edges[(e + 1) % size].curve.from, sizeof edges->curve.from);
        for (int i = 0; i < count; i++)
            for (size_t k = 0; k < 2; k++)
                points[i + 1][k] = json_number_value(json_array_get(json_array_get(through, (size_t)i), k));
        toile_curve_through(&edges[e].curve, points, count + 2);
        points += count + 2;
    }
    return points;
}

static void read_panel_place(const json_t *object, const toile_pose *around, toile_pattern_panel *panel) {
    const json_t *bend = json_object_get(json_object_get(object, "place"), "bend");
    toile_key key = {0};
    read_place(object, &key);
    toile_pose own = toile_pose_from(key.origin, key.rotate);
    panel->pose = toile_pose_join(around, &own);
    read_number(bend, "radius", &panel->bend_radius);
    read_number(bend, "axis", &panel->bend_axis);
    panel->bend_axis *= M_PI / 180;
    read_vector(bend, "at", 2, panel->bend_at);
}

/* Names to numbers; two panels of one name are refused. */
static toile_status index_panels(const loader *l, const json_t *panels, const toile_place *place, garment *g) {
    toile_place here = {place, "panels", 0};
    g->panel_numbers = json_object();
    if (!g->panel_numbers)
        return no_memory(l);
    for (size_t i = 0; i < json_array_size(panels); i++) {
        const char *name = read_text(json_array_get(panels, i), "name", "");
        toile_place item = {&here, NULL, i}, name_place = {&item, "name", 0};
        const json_t *before = json_object_get(g->panel_numbers, name);
        if (before)
            return REFUSE(&name_place, "found \"%.64s\"; panels[%d] already has this name", name,
                          (int)json_integer_value(before));
        if (json_object_set_new(g->panel_numbers, name, json_integer((json_int_t)i)) != 0)
            return no_memory(l);
    }
    return TOILE_OK;
}

static toile_status read_panels(const loader *l, const json_t *object, const toile_place *place, parts *p) {
    const json_t *panels = json_object_get(object, "panels");
    toile_place panels_place = {place, "panels", 0}, fabric_place = {place, "fabric", 0};
    toile_key key = {0};
    double edge_length = EDGE_LENGTH;
    int fabric;
    read_number(object, "edge_length", &edge_length);
    read_place(object, &key);
    toile_pose around = toile_pose_from(key.origin, key.rotate);
    toile_status status = toile_scene_use_fabric(l, json_object_get(object, "fabric"), &fabric_place, &fabric);
    toile_pattern_edge *edge = p->edges;
    double(*points)[3] = p->points;
    toile_finer *finer = p->finer;
    int *loop_size = p->loop_sizes;
    for (int i = 0; i < p->pattern.panel_count && status == TOILE_OK; i++) {
        const json_t *item = json_array_get(panels, (size_t)i), *holes = json_object_get(item, "holes");
        const json_t *own = json_object_get(item, "fabric"), *areas = json_object_get(item, "finer");
        toile_place here = {&panels_place, NULL, (size_t)i}, inside = {&here, "fabric", 0};
        toile_pattern_panel *panel = &p->panels[i];
        p->names[i] = panel->name = read_text(item, "name", "");
        panel->edges = edge;
        panel->loop_sizes = loop_size;
        panel->loop_count = 1 + (int)json_array_size(holes);
        for (int k = 0; k < panel->loop_count; k++) {
            const json_t *loop = k == 0 ? json_object_get(item, "outline") : json_array_get(holes, (size_t)k - 1);
            *loop_size++ = (int)json_array_size(loop);
            for (size_t e = 0; e < json_array_size(loop); e++)
                read_edge(json_array_get(loop, e), edge++);
            points = read_through(loop, edge - json_array_size(loop), points);
        }
        panel->edge_length = edge_length;
        read_number(item, "edge_length", &panel->edge_length);
        read_number(item, "grain", &panel->grain);
        panel->grain *= M_PI / 180;
        panel->finer = finer;
        panel->finer_count = (int)json_array_size(areas);
        for (int k = 0; k < panel->finer_count; k++, finer++) {
            const json_t *area = json_array_get(areas, (size_t)k);
            read_vector(area, "center", 2, finer->center);
            read_number(area, "radius", &finer->radius);
            read_number(area, "edge_length", &finer->edge_length);
        }
        read_panel_place(item, &around, panel);
        p->fabrics[i] = fabric;
        if (own)
            status = toile_scene_use_fabric(l, own, &inside, &p->fabrics[i]);
        p->scales[2 * i] = p->scales[2 * i + 1] = 1;
        read_vector(item, "scale", 2, p->scales + 2 * i);
    }
    return status;
}

/* ---- edges by name ---- */

/* The edge number k of a panel, through its outline and holes. */
static const json_t *edge_of_panel(const json_t *panel, size_t k) {
    const json_t *loop = json_object_get(panel, "outline"), *holes = json_object_get(panel, "holes");
    for (size_t hole = 0; k >= json_array_size(loop); hole++) {
        k -= json_array_size(loop);
        loop = json_array_get(holes, hole);
        if (!loop)
            return NULL;
    }
    return json_array_get(loop, k);
}

toile_status toile_scene_find_edge(const loader *l, const json_t *object, const json_t *panels, const garment *g,
                                   const toile_place *place, int *panel, int *edge) {
    const char *name = read_text(object, "panel", "");
    const json_t *number = json_object_get(g->panel_numbers, name), *which = json_object_get(object, "edge");
    toile_place panel_place = {place, "panel", 0}, edge_place = {place, "edge", 0};
    char text[600];
    const char *known[NAMES_MOST];
    int count = 0;
    if (!number) {
        for (size_t i = 0; i < json_array_size(panels) && count < NAMES_MOST; i++)
            known[count++] = read_text(json_array_get(panels, i), "name", "");
        toile_known_names(name, known, count, text, sizeof text);
        return REFUSE(&panel_place, "found \"%.64s\"; the garment has no such panel; %s", name, text);
    }
    *panel = (int)json_integer_value(number);
    const json_t *item = json_array_get(panels, (size_t)*panel), *found;
    const char *wanted = json_string_value(which);
    if (!wanted) {
        *edge = (int)json_number_value(which);
        if (edge_of_panel(item, (size_t)*edge))
            return TOILE_OK;
        for (count = 0; edge_of_panel(item, (size_t)count);)
            count++;
        return REFUSE(&edge_place, "found %d; panel \"%.64s\" has edges 0 to %d", *edge, name, count - 1);
    }
    for (*edge = 0; (found = edge_of_panel(item, (size_t)*edge)); ++*edge) {
        const char *own = read_text(found, "name", NULL);
        if (own && strcmp(own, wanted) == 0)
            return TOILE_OK;
        if (own && count < NAMES_MOST)
            known[count++] = own;
    }
    toile_known_names(wanted, known, count, text, sizeof text);
    return REFUSE(&edge_place, "found \"%.64s\"; panel \"%.64s\" has no edge of this name; %s", wanted, name, text);
}

/* ---- seams ---- */

static toile_status read_seams(const loader *l, const json_t *object, const toile_place *place, const garment *g, parts *p) {
    const json_t *seams = json_object_get(object, "seams"), *panels = json_object_get(object, "panels");
    toile_place seams_place = {place, "seams", 0};
    toile_pattern_side *side = p->sides;
    for (int i = 0; i < p->pattern.seam_count; i++) {
        const json_t *item = json_array_get(seams, (size_t)i);
        toile_place here = {&seams_place, NULL, (size_t)i};
        toile_pattern_seam *seam = &p->seams[i];
        toile_status status = toile_scene_read_seam(l, item, &here, &seam->seam);
        if (status != TOILE_OK)
            return status;
        for (int k = 0; k < 2; k++) {
            const char *key = k == 0 ? "a" : "b";
            const json_t *list = json_object_get(item, key);
            toile_place list_place = {&here, key, 0};
            seam->sides[k] = side;
            seam->count[k] = (int)json_array_size(list);
            for (size_t j = 0; j < json_array_size(list); j++, side++) {
                toile_place side_place = {&list_place, NULL, j};
                const json_t *part = json_array_get(list, j);
                status =
                    toile_scene_find_edge(l, part, panels, g, &side_place, &side->panel, &side->edge);
                if (status != TOILE_OK)
                    return status;
                read_bool(part, "reverse", &side->reverse);
            }
        }
    }
    return TOILE_OK;
}

/* ---- the garment ---- */

/* Says where in the scene the panel, edge or seam is that could not be made. */
static toile_status blame(const loader *l, const json_t *object, const toile_place *place, const toile_pattern_where *where,
                          toile_status status) {
    if (status == TOILE_NO_MEMORY)
        return status;
    toile_error inner = *l->error;
    toile_place panels = {place, "panels", 0}, panel = {&panels, NULL, (size_t)where->panel};
    toile_place outline = {&panel, "outline", 0}, holes = {&panel, "holes", 0};
    toile_place seams = {place, "seams", 0}, seam = {&seams, NULL, (size_t)where->seam};
    if (where->seam >= 0)
        return toile_place_fail(&l->source, &seam, l->error, status, "%s", inner.message);
    if (where->panel < 0)
        return toile_place_fail(&l->source, &panels, l->error, status, "%s", inner.message);
    if (where->edge < 0)
        return toile_place_fail(&l->source, &panel, l->error, status, "%s", inner.message);
    const json_t *item = json_array_get(json_object_get(object, "panels"), (size_t)where->panel);
    size_t in_outline = json_array_size(json_object_get(item, "outline")), edge = (size_t)where->edge;
    toile_place at = {edge < in_outline ? &outline : &holes, NULL, edge < in_outline ? edge : 0};
    return toile_place_fail(&l->source, &at, l->error, status, "%s", inner.message);
}

static void warn_of_angle(const loader *l, const garment *g, const parts *p) {
    char line[300];
    if (!l->scene->hooks.log || g->pattern.smallest_angle >= 15)
        return;
    snprintf(line, sizeof line,
             "garment \"%.64s\": panel \"%.64s\" has a triangle with an angle of %.1f degrees; a smaller edge_length, or an "
             "outline without sharp points, makes better ones",
             g->name, p->names[g->pattern.smallest_panel], g->pattern.smallest_angle);
    l->scene->hooks.log(l->scene->hooks.user, 1, line);
}

toile_status toile_scene_load_panels(const loader *l, const json_t *object, const toile_place *place, garment *g) {
    parts p = {0};
    int *sizes = NULL;
    toile_pattern_where where = {-1, -1, -1};
    toile_status status = make_room(l, object, &p);
    if (status == TOILE_OK)
        status = index_panels(l, json_object_get(object, "panels"), place, g);
    if (status == TOILE_OK)
        status = read_panels(l, object, place, &p);
    if (status == TOILE_OK)
        status = read_seams(l, object, place, g, &p);
    if (status != TOILE_OK)
        goto out;
    p.pattern.name = g->name;
    status = toile_pattern_make(l->memory, &p.pattern, &g->pattern, &where, l->error);
    if (status != TOILE_OK) {
        status = blame(l, object, place, &where, status);
        goto out;
    }
    warn_of_angle(l, g, &p);

    const toile_pattern_mesh *made = &g->pattern;
    g->vertex_count = made->vertex_count;
    g->start = toile_alloc(l->memory, (size_t)made->vertex_count, 3 * sizeof *g->start);
    sizes = toile_alloc(l->memory, (size_t)made->triangle_count, sizeof *sizes);
    if (!g->start || !sizes) {
        status = no_memory(l);
        goto out;
    }
    memcpy(g->start, made->positions, 3 * (size_t)made->vertex_count * sizeof *g->start);
    for (int t = 0; t < made->triangle_count; t++)
        sizes[t] = 3;
    toile_seam *seams = toile_alloc(l->memory, (size_t)p.pattern.seam_count, sizeof *seams);
    if (!seams) {
        status = no_memory(l);
        goto out;
    }
    for (int i = 0; i < p.pattern.seam_count; i++)
        seams[i] = p.seams[i].seam;
    toile_mesh mesh = {
        .name = g->name,
        .vertex_count = made->vertex_count,
        .positions = g->start,
        .face_count = made->triangle_count,
        .face_sizes = sizes,
        .face_vertices = made->triangles,
        .corner_uv = made->corner_uv,
        .panel_count = p.pattern.panel_count,
        .panel_names = p.names,
        .panel_fabrics = p.fabrics,
        .panel_scales = p.scales,
        .face_panels = made->triangle_panels,
        .seam_count = p.pattern.seam_count,
        .stitch_count = made->stitch_count,
        .seams = seams,
        .stitches = made->stitches,
    };
    status = toile_add_mesh(l->scene->world, &mesh, &g->index);
    toile_free(l->memory, seams);
    if (status < 0) {
        toile_place here = {place, "panels", 0};
        status = world_refuses(l, &here, status);
    } else {
        status = TOILE_OK;
    }
out:
    free_parts(l->memory, &p);
    toile_free(l->memory, sizes);
    return status;
}

void toile_scene_drop_pattern(toile_memory *memory, garment *g) {
    toile_pattern_mesh_free(memory, &g->pattern);
    json_decref(g->panel_numbers);
    g->panel_numbers = NULL;
}
