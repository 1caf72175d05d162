/* Pins of a scene: which vertices they hold, and where they are from frame to frame. */
#include "scene_internal.h"

#include <math.h>
#include <string.h>

enum { GROWN_MOST = 1000 }; /* vertices that "within" can grow: the work is this times the garment */

/* ---- selections ---- */

static double distance(const double *a, const double *b) {
    return hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
}

/* Corners ("u0v1") and edges ("u0") of a grid: each letter and digit names the side whose distance counts. A
 * corner is near two sides, an edge near one. */
static void select_on_grid(const garment *g, const char *name, double within, bool *chosen) {
    for (int j = 0, v = 0; j < g->nv; j++)
        for (int i = 0; i < g->nu; i++, v++) {
            double far[2] = {0, 0};
            for (const char *side = name; *side; side += 2) {
                bool along_v = *side == 'v';
                int last = (along_v ? g->nv : g->nu) - 1, at = along_v ? j : i;
                far[along_v] = g->size[along_v] * (side[1] == '0' ? at : last - at) / last;
            }
            /* Ten digits are enough to put a particle that is exactly at the distance inside. */
            if (hypot(far[0], far[1]) <= within * (1 + 1e-10))
                chosen[v] = true;
        }
}

static toile_status select_sides(const loader *l, const json_t *select, const toile_place *place,
                                 const char *key, const garment *g, double within, bool *chosen) {
    const json_t *list = json_object_get(select, key);
    toile_place here = {place, key, 0};
    if (list && g->nu == 0)
        return REFUSE(&here, "garment \"%.64s\" is not a grid; select vertices, box or sphere", g->name);
    for (size_t i = 0; i < json_array_size(list); i++)
        select_on_grid(g, json_string_value(json_array_get(list, i)), within, chosen);
    return TOILE_OK;
}

static toile_status select_vertices(const loader *l, const json_t *select, const toile_place *place,
                                    const garment *g, double within, bool *chosen) {
    const json_t *list = json_object_get(select, "vertices");
    toile_place here = {place, "vertices", 0};
    if (within > 0 && json_array_size(list) > GROWN_MOST)
        return REFUSE(
            &here,
            "found a list of %zu; \"within\" grows at most %d vertices, list all that are held instead",
            json_array_size(list), GROWN_MOST);
    for (size_t i = 0; i < json_array_size(list); i++) {
        int vertex = (int)json_number_value(json_array_get(list, i));
        toile_place item = {&here, NULL, i};
        if (vertex >= g->vertex_count)
            return REFUSE(&item, "found %d; garment \"%.64s\" has vertices 0 to %d", vertex, g->name,
                          g->vertex_count - 1);
        chosen[vertex] = true;
        for (int v = 0; v < g->vertex_count && within > 0; v++)
            if (distance(g->start + 3 * (size_t)v, g->start + 3 * (size_t)vertex) <= within * (1 + 1e-10))
                chosen[v] = true;
    }
    return TOILE_OK;
}

static toile_status select_panel_edges(const loader *l, const json_t *select, const toile_place *place, int index,
                                       const garment *g, bool *chosen) {
    const json_t *list = json_object_get(select, "panel_edges");
    const json_t *object = json_array_get(json_object_get(l->root, "garments"), (size_t)index);
    toile_place here = {place, "panel_edges", 0};
    if (list && !g->panel_numbers)
        return REFUSE(&here, "garment \"%.64s\" is not made of panels with outlines; select vertices, box or sphere", g->name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        toile_place item = {&here, NULL, i};
        int panel, edge;
        toile_status status = toile_scene_find_edge(l, json_array_get(list, i), json_object_get(object, "panels"), g, &item,
                                                    &panel, &edge);
        if (status != TOILE_OK)
            return status;
        edge += g->pattern.edge_base[panel];
        for (int k = 0; k <= g->pattern.edge_count[edge]; k++)
            chosen[toile_pattern_vertex(&g->pattern, edge, k)] = true;
    }
    return TOILE_OK;
}

/* Takes out again what is not of the panels named. */
static toile_status keep_panels(const loader *l, const json_t *select, const toile_place *place, const garment *g, bool *chosen) {
    const json_t *names = json_object_get(select, "panels");
    toile_place here = {place, "panels", 0};
    if (!names)
        return TOILE_OK;
    if (!g->panel_numbers)
        return REFUSE(&here, "garment \"%.64s\" is not made of panels with outlines; leave this out", g->name);
    bool *kept = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof *kept);
    if (!kept)
        return no_memory(l);
    toile_status status = TOILE_OK;
    for (size_t i = 0; i < json_array_size(names) && status == TOILE_OK; i++) {
        toile_place item = {&here, NULL, i};
        const char *name = json_string_value(json_array_get(names, i));
        const json_t *number = json_object_get(g->panel_numbers, name);
        int panel = (int)json_integer_value(number);
        if (!number)
            status = REFUSE(&item, "found \"%.64s\"; garment \"%.64s\" has no such panel", name, g->name);
        for (int v = number ? g->pattern.panel_begin[panel] : 0; number && v < g->pattern.panel_begin[panel + 1]; v++)
            kept[v] = true;
    }
    for (int v = 0; v < g->vertex_count; v++)
        chosen[v] = chosen[v] && kept[v];
    toile_free(l->memory, kept);
    return status;
}

static toile_status select_regions(const loader *l, const json_t *select, const toile_place *place,
                                   const garment *g, bool *chosen) {
    const json_t *box = json_object_get(select, "box"), *sphere = json_object_get(select, "sphere");
    double low[3] = {0}, high[3] = {0}, center[3] = {0}, radius = 0;
    toile_place here = {place, "box", 0};
    for (size_t i = 0; box && i < 3; i++) {
        low[i] = json_number_value(json_array_get(json_array_get(box, 0), i));
        high[i] = json_number_value(json_array_get(json_array_get(box, 1), i));
        if (low[i] > high[i])
            return REFUSE(&here, "found %g to %g along %c; the first corner is the smallest", low[i], high[i],
                          "xyz"[i]);
    }
    read_vector(sphere, "center", 3, center);
    read_number(sphere, "radius", &radius);
    for (int v = 0; v < g->vertex_count; v++) {
        const double *at = g->start + 3 * (size_t)v;
        bool in_box = box != NULL;
        for (int i = 0; i < 3; i++)
            in_box = in_box && at[i] >= low[i] && at[i] <= high[i];
        if (in_box || (sphere && distance(at, center) <= radius))
            chosen[v] = true;
    }
    return TOILE_OK;
}

toile_status toile_scene_select(const loader *l, const json_t *object, const toile_place *place, int index, const garment *g,
                                bool *chosen) {
    const json_t *select = json_object_get(object, "select");
    toile_place here = {place, "select", 0};
    double within = 0, low[3], high[3];
    read_number(select, "within", &within);
    toile_status status = select_sides(l, select, &here, "corners", g, within, chosen);
    if (status == TOILE_OK)
        status = select_sides(l, select, &here, "edges", g, within, chosen);
    if (status == TOILE_OK)
        status = select_vertices(l, select, &here, g, within, chosen);
    if (status == TOILE_OK)
        status = select_panel_edges(l, select, &here, index, g, chosen);
    if (status == TOILE_OK)
        status = select_regions(l, select, &here, g, chosen);
    if (status == TOILE_OK)
        status = keep_panels(l, select, &here, g, chosen);
    if (status != TOILE_OK)
        return status;
    for (int v = 0; v < g->vertex_count; v++)
        if (chosen[v])
            return TOILE_OK;
    for (int k = 0; k < 3; k++)
        low[k] = high[k] = g->start[k];
    for (size_t i = 0; i < 3 * (size_t)g->vertex_count; i++) {
        low[i % 3] = fmin(low[i % 3], g->start[i]);
        high[i % 3] = fmax(high[i % 3], g->start[i]);
    }
    return REFUSE(&here,
                  "selects none of the %d vertices of \"%.64s\", which starts between [%g, %g, %g] and "
                  "[%g, %g, %g]",
                  g->vertex_count, g->name, low[0], low[1], low[2], high[0], high[1], high[2]);
}

/* Fills the pin's vertices from its "select": all that any part of it selects. */
static toile_status select_pin(const loader *l, const json_t *object, const toile_place *place, int index,
                               const garment *g, pin *p) {
    bool *chosen = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof *chosen);
    if (!chosen)
        return no_memory(l);
    toile_status status = toile_scene_select(l, object, place, index, g, chosen);
    if (status != TOILE_OK)
        goto out;
    for (int v = 0; v < g->vertex_count; v++)
        p->count += chosen[v];
    p->vertices = toile_alloc(l->memory, (size_t)p->count, sizeof *p->vertices);
    p->start = toile_alloc(l->memory, (size_t)p->count, 3 * sizeof *p->start);
    p->target = toile_alloc(l->memory, (size_t)p->count, 3 * sizeof *p->target);
    if (!p->vertices || !p->start || !p->target) {
        status = no_memory(l);
        goto out;
    }
    for (int v = 0, n = 0; v < g->vertex_count; v++)
        if (chosen[v]) {
            const double *from = g->begin ? g->begin : g->start;
            memcpy(p->start + 3 * (size_t)n, from + 3 * (size_t)v, 3 * sizeof *p->start);
            p->vertices[n++] = v;
        }
    p->elsewhere = g->begin != NULL;
out:
    toile_free(l->memory, chosen);
    return status;
}

/* ---- one and all ---- */

/* Springs, surfaces and curves. */
static toile_status hold_elsewhere(const loader *l, const json_t *object, const toile_place *place, pin *p) {
    toile_scene *scene = l->scene;
    toile_place surface_place = {place, "surface", 0};
    const char *surface = read_text(object, "surface", NULL);
    const json_t *curve = json_object_get(object, "curve");
    double stiffness = 0;
    toile_status status = TOILE_OK;
    read_number(object, "stiffness", &stiffness);
    if (stiffness > 0)
        status = toile_soften_pin(scene->world, p->index, stiffness);
    if (status >= 0 && surface) {
        int found = toile_scene_find_name(scene, name_of_collider, scene->collider_count, surface);
        if (found < 0)
            return toile_scene_refuse_name(l, &surface_place, surface, name_of_collider, scene->collider_count);
        if (scene->colliders[found].loose)
            return REFUSE(&surface_place, "found \"%.64s\", whose faces change: there is no place on it to hold to", surface);
        status = toile_pin_to_collider(scene->world, p->index, scene->colliders[found].index);
    }
    if (status >= 0 && curve) {
        p->curve_count = (int)json_array_size(curve);
        p->curve = toile_alloc(l->memory, (size_t)p->curve_count, 3 * sizeof *p->curve);
        p->curve_now = toile_alloc(l->memory, (size_t)p->curve_count, 3 * sizeof *p->curve);
        if (!p->curve || !p->curve_now)
            return no_memory(l);
        for (size_t i = 0; i < 3 * (size_t)p->curve_count; i++)
            p->curve[i] = json_number_value(json_array_get(json_array_get(curve, i / 3), i % 3));
        status = toile_pin_to_curve(scene->world, p->index, p->curve, p->curve_count);
    }
    return status < 0 ? world_refuses(l, place, status) : TOILE_OK;
}

static toile_status load_pin(loader *l, const json_t *object, const toile_place *place, pin *p) {
    toile_scene *scene = l->scene;
    toile_place garment_place = {place, "garment", 0}, follow_place = {place, "follow", 0};
    const char *name = read_text(object, "garment", "");
    int index = toile_scene_find_name(scene, name_of_garment, scene->garment_count, name);
    if (index < 0)
        return toile_scene_refuse_name(l, &garment_place, name, name_of_garment, scene->garment_count);
    const garment *g = &scene->garments[index];
    toile_status status = select_pin(l, object, place, index, g, p);
    if (status != TOILE_OK)
        return status;

    p->limited = json_object_get(object, "frames") != NULL;
    status = toile_scene_read_frames(l, object, place, &p->first, &p->last);
    if (status == TOILE_OK)
        status = toile_scene_load_motion(l, object, place, "translate", &p->motion);
    if (status == TOILE_OK)
        status = toile_scene_load_track(l, object, place, p->count, &p->track);
    if (status != TOILE_OK)
        return status;

    const char *follow = read_text(object, "follow", NULL);
    if (follow) {
        int followed = toile_scene_find_name(scene, name_of_collider, scene->collider_count, follow);
        if (followed < 0)
            return toile_scene_refuse_name(l, &follow_place, follow, name_of_collider, scene->collider_count);
        p->followed = &scene->colliders[followed];
        if (p->followed->sequence || p->followed->track >= 0)
            return REFUSE(&follow_place,
                          "found \"%.64s\", a sequence of files, which has no single motion; follow a "
                          "collider that has, or give the pin its own",
                          follow);
    }

    /* Without a point to turn about: the middle of the box around the pin, which no resolution changes. */
    for (int k = 0; k < 3; k++) {
        double low = p->start[k], high = low;
        for (int i = 1; i < p->count; i++) {
            low = fmin(low, p->start[3 * (size_t)i + (size_t)k]);
            high = fmax(high, p->start[3 * (size_t)i + (size_t)k]);
        }
        p->about[k] = (low + high) / 2;
    }
    read_vector(json_object_get(object, "motion"), "about", 3, p->about);

    p->garment = g->index;
    bool grabs = false;
    toile_pin made = {.garment = g->index, .count = p->count, .vertices = p->vertices};
    read_bool(object, "grab", &grabs);
    if (grabs && !(p->here = toile_alloc(l->memory, (size_t)g->vertex_count, 3 * sizeof *p->here)))
        return no_memory(l);
    for (const char *axis = read_text(object, "axes", "xyz"); *axis; axis++)
        made.axes[*axis - 'x'] = true;
    status = toile_add_pin(scene->world, &made, &p->index);
    if (status >= 0 && grabs)
        status = toile_grab_pin(scene->world, p->index, true);
    if (status < 0)
        return world_refuses(l, place, status);
    return hold_elsewhere(l, object, place, p);
}

toile_status toile_scene_load_pins(loader *l) {
    toile_scene *scene = l->scene;
    const json_t *list = json_object_get(l->root, "pins");
    toile_place place = {&WHOLE, "pins", 0};
    size_t count = json_array_size(list);
    scene->pins = toile_alloc(l->memory, count, sizeof *scene->pins);
    if (!scene->pins)
        return no_memory(l);
    scene->pin_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        toile_place here = {&place, NULL, i};
        pin *p = &scene->pins[i];
        toile_status status = toile_scene_take_name(l, object, &here, name_of_pin, "pin", &p->name);
        if (status == TOILE_OK)
            status = load_pin(l, object, &here, p);
        if (status != TOILE_OK)
            return status;
    }
    return TOILE_OK;
}

/* ---- from frame to frame ---- */

/* From the start to a frame. */
static toile_pose pose_of(const toile_scene *scene, const pin *p, int frame) {
    if (p->followed) {
        toile_pose start = toile_motion_at(&p->followed->motion, scene->first);
        toile_pose back = toile_pose_inverse(&start), now = toile_motion_at(&p->followed->motion, frame);
        return toile_pose_join(&now, &back);
    }
    /* Turn about the point, then move: p -> R (p - about) + about + translation. */
    double turned[3];
    toile_pose pose = toile_motion_at(&p->motion, frame);
    toile_pose_turn(&pose, p->about, turned);
    for (int k = 0; k < 3; k++)
        pose.position[k] += p->about[k] - turned[k];
    return pose;
}

/* What a pin grabs goes on from where it is, by as much as the motion goes on in the frame: nothing has to be
 * remembered from frame to frame, so that a bake which was stopped goes on alike. */
static toile_status aim_grab(toile_scene *scene, pin *p, int frame) {
    toile_pose before = pose_of(scene, p, frame - 1), now = pose_of(scene, p, frame);
    toile_pose back = toile_pose_inverse(&before), onward = toile_pose_join(&now, &back);
    toile_status status = toile_get_positions(scene->world, p->garment, p->here);
    for (int i = 0; i < p->count && status >= 0; i++)
        transform(&onward, 1, p->here + 3 * (size_t)p->vertices[i], 1, p->target + 3 * (size_t)i);
    return status;
}

toile_status toile_scene_prepare_pin(toile_scene *scene, pin *p, int frame, toile_error *error) {
    toile_status status = TOILE_OK;
    int now = frame - scene->before_first;
    if (p->limited)
        status = toile_enable_pin(scene->world, p->index, now >= p->first && now <= p->last);
    if (status >= 0 && p->track >= 0) {
        toile_status read = toile_job_file_read_track(scene->job, p->track, frame, p->target, error);
        if (read != TOILE_OK)
            return read;
        status = toile_move_pin(scene->world, p->index, p->target);
    } else if (status >= 0 && p->here) {
        status = aim_grab(scene, p, frame);
        if (status >= 0)
            status = toile_move_pin(scene->world, p->index, p->target);
    } else if (status >= 0 && (p->followed || p->motion.key_count > 0)) {
        toile_pose pose = pose_of(scene, p, frame);
        if (p->curve) {
            transform(&pose, 1, p->curve, p->curve_count, p->curve_now);
            status = toile_move_curve(scene->world, p->index, p->curve_now);
        } else {
            transform(&pose, 1, p->start, p->count, p->target);
            status = toile_move_pin(scene->world, p->index, p->target);
        }
    }
    if (status < 0)
        return toile_fail(error, status, "frame %d, pin \"%.64s\": %s", frame, p->name,
                          toile_message(scene->world));
    return TOILE_OK;
}

void toile_scene_free_pins(toile_scene *scene) {
    for (int i = 0; i < scene->pin_count; i++) {
        pin *p = &scene->pins[i];
        toile_free(&scene->memory, p->name);
        toile_free(&scene->memory, p->motion.keys);
        toile_free(&scene->memory, p->vertices);
        toile_free(&scene->memory, p->start);
        toile_free(&scene->memory, p->target);
        toile_free(&scene->memory, p->here);
        toile_free(&scene->memory, p->curve);
        toile_free(&scene->memory, p->curve_now);
    }
    toile_free(&scene->memory, scene->pins);
}
