/* What is done to the garments of a scene: pairs of vertices to sew, maps, creases, elastic, pressure. */
#include "scene_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys of one number ---- */

static toile_status load_curve(const loader *l, const json_t *list, const toile_place *place, number_curve *curve) {
    curve->keys = toile_alloc(l->memory, json_array_size(list), sizeof *curve->keys);
    if (!curve->keys)
        return no_memory(l);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        number_key *key = &curve->keys[i];
        curve->count = (int)i + 1;
        read_number(item, "frame", &key->frame);
        read_number(item, "value", &key->value);
        if (i > 0 && !(key->frame > key[-1].frame)) {
            toile_place item_place = {place, NULL, i}, here = {&item_place, "frame", 0};
            return REFUSE(&here, "found %g after %g; frames increase from key to key", key->frame, key[-1].frame);
        }
    }
    return TOILE_OK;
}

/* Straight lines between keys, and level before the first and after the last. */
static double curve_at(const number_curve *curve, double frame) {
    int i = 0;
    while (i < curve->count && curve->keys[i].frame <= frame)
        i++;
    if (i == 0 || i == curve->count)
        return curve->keys[i == 0 ? 0 : i - 1].value;
    const number_key *a = &curve->keys[i - 1], *b = &curve->keys[i];
    return a->value + (b->value - a->value) * (frame - a->frame) / (b->frame - a->frame);
}

/* ---- seams ---- */

toile_status toile_scene_read_seam(const loader *l, const json_t *object, const toile_place *place, toile_seam *seam) {
    *seam = toile_default_seam();
    seam->name = read_text(object, "name", NULL);
    read_number(object, "strength", &seam->strength);
    read_number(object, "fold_angle", &seam->fold_angle);
    seam->fold_angle *= M_PI / 180;
    if (json_object_get(object, "frames")) {
        int first = 0, last = 0;
        toile_status status = toile_scene_read_frames(l, object, place, &first, &last);
        if (status != TOILE_OK)
            return status;
        seam->begin = (first - l->scene->first) / l->scene->fps;
        seam->duration = (last - first) / l->scene->fps;
    }
    if (json_object_get(object, "release")) {
        read_number(object, "release", &seam->release);
        seam->release = (seam->release - l->scene->first) / l->scene->fps;
    }
    return TOILE_OK;
}

toile_status toile_scene_take_loose_edges(const loader *l, const json_t *object, const toile_place *place, const int *lines,
                                          int count) {
    const json_t *list = json_object_get(object, "sewing");
    toile_place here = {place, "sewing", 0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);
        toile_place item_place = {&here, NULL, i}, key = {&item_place, "loose_edges", 0};
        if (!json_object_get(item, "loose_edges"))
            continue;
        if (count == 0)
            return REFUSE(&key, "the mesh has no edges without faces (lines that begin with l); leave this out, or list pairs");
        json_t *pairs = json_array();
        bool ok = pairs != NULL;
        for (int k = 0; ok && k < count; k++)
            ok = json_array_append_new(pairs, json_pack("[i,i]", lines[2 * k], lines[2 * k + 1])) == 0;
        ok = json_object_set_new(item, "pairs", pairs) == 0 && ok;
        json_object_del(item, "loose_edges");
        if (!ok)
            return no_memory(l);
    }
    return TOILE_OK;
}

/* Pairs of vertices of a garment, each [a, b]; for the caller to free. */
static toile_status read_pairs(const loader *l, const json_t *list, const toile_place *place, const garment *g, int **pairs,
                               int *count) {
    *count = (int)json_array_size(list);
    *pairs = toile_alloc(l->memory, (size_t)*count, 2 * sizeof **pairs);
    if (!*pairs)
        return no_memory(l);
    for (int i = 0; i < 2 * *count; i++) {
        int v = (int)json_number_value(json_array_get(json_array_get(list, (size_t)i / 2), (size_t)i % 2));
        toile_place item = {place, NULL, (size_t)i / 2};
        if (v >= g->vertex_count)
            return REFUSE(&item, "found vertex %d; garment \"%.64s\" has vertices 0 to %d", v, g->name, g->vertex_count - 1);
        (*pairs)[i] = v;
    }
    return TOILE_OK;
}

static toile_status load_sewing(const loader *l, const json_t *item, const toile_place *place, const garment *g) {
    toile_seam seam;
    int *pairs = NULL, count = 0;
    toile_place pairs_place = {place, "pairs", 0}, loose_place = {place, "loose_edges", 0};
    if (json_object_get(item, "loose_edges"))
        return REFUSE(&loose_place, "garment \"%.64s\" is not an OBJ file, which alone has them; list pairs", g->name);
    toile_status status = toile_scene_read_seam(l, item, place, &seam);
    if (status == TOILE_OK)
        status = read_pairs(l, json_object_get(item, "pairs"), &pairs_place, g, &pairs, &count);
    if (status == TOILE_OK) {
        status = toile_add_seam(l->scene->world, g->index, &seam, pairs, count);
        status = status < 0 ? world_refuses(l, place, status) : TOILE_OK;
    }
    toile_free(l->memory, pairs);
    return status;
}

/* ---- edges: listed, or all between selected vertices ---- */

static int compare_edges(const void *a, const void *b) {
    const int *p = a, *q = b;
    return p[0] != q[0] ? (p[0] > q[0]) - (p[0] < q[0]) : (p[1] > q[1]) - (p[1] < q[1]);
}

static toile_status read_edges(const loader *l, const json_t *item, const toile_place *place, int index, const garment *g,
                               int **edges, int *count) {
    toile_place edges_place = {place, "edges", 0}, select_place = {place, "select", 0};
    if (json_object_get(item, "edges"))
        return read_pairs(l, json_object_get(item, "edges"), &edges_place, g, edges, count);
    int triangles = toile_triangle_count(l->scene->world, g->index);
    bool *chosen = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof *chosen);
    int *corners = toile_alloc(l->memory, (size_t)triangles, 3 * sizeof *corners);
    *edges = toile_alloc(l->memory, (size_t)triangles, 6 * sizeof **edges);
    toile_status status = chosen && corners && *edges ? toile_scene_select(l, item, place, index, g, chosen) : no_memory(l);
    if (status == TOILE_OK)
        toile_get_triangles(l->scene->world, g->index, corners, NULL, NULL);
    *count = 0;
    for (int i = 0; status == TOILE_OK && i < 3 * triangles; i++) {
        int a = corners[i], b = corners[i % 3 == 2 ? i - 2 : i + 1];
        if (!chosen[a] || !chosen[b])
            continue;
        (*edges)[2 * *count] = a < b ? a : b;
        (*edges)[2 * *count + 1] = a < b ? b : a;
        ++*count;
    }
    /* both sides of an edge were found: each once */
    int found = *count;
    if (found > 0)
        qsort(*edges, (size_t)found, 2 * sizeof **edges, compare_edges);
    *count = 0;
    for (int k = 0; k < found; k++)
        if (k == 0 || compare_edges(*edges + 2 * k, *edges + 2 * k - 2) != 0) {
            memmove(*edges + 2 * *count, *edges + 2 * k, 2 * sizeof **edges);
            ++*count;
        }
    if (status == TOILE_OK && *count == 0)
        status = REFUSE(&select_place, "no edge of \"%.64s\" has both ends among the selected vertices", g->name);
    toile_free(l->memory, chosen);
    toile_free(l->memory, corners);
    return status;
}

static toile_status load_crease(const loader *l, const json_t *item, const toile_place *place, int index, const garment *g) {
    int *edges = NULL, count = 0;
    double angle = 0;
    read_number(item, "angle", &angle);
    toile_status status = read_edges(l, item, place, index, g, &edges, &count);
    if (status == TOILE_OK) {
        status = toile_add_crease(l->scene->world, g->index, edges, count, angle * M_PI / 180);
        status = status < 0 ? world_refuses(l, place, status) : TOILE_OK;
    }
    toile_free(l->memory, edges);
    return status;
}

static toile_status load_elastic(const loader *l, const json_t *item, const toile_place *place, int index, const garment *g) {
    int *edges = NULL, count = 0;
    double stiffness = 20, scale = 1;
    read_number(item, "stiffness", &stiffness);
    read_number(item, "scale", &scale);
    toile_status status = read_edges(l, item, place, index, g, &edges, &count);
    if (status == TOILE_OK) {
        status = toile_add_elastic(l->scene->world, g->index, edges, count, stiffness, scale);
        status = status < 0 ? world_refuses(l, place, status) : TOILE_OK;
    }
    toile_free(l->memory, edges);
    return status;
}

/* ---- maps ---- */

/* Factors at a frame: 1 + amount (full - 1). */
static void blend_map(const scene_map *map, double amount, double *factors) {
    for (int i = 0; i < map->count; i++)
        factors[i] = 1 + amount * (map->full[i] - 1);
}

static toile_status load_map(loader *l, const json_t *item, const toile_place *place, int index, const garment *g) {
    toile_scene *scene = l->scene;
    scene_map *map = &scene->maps[scene->map_count];
    toile_place values_place = {place, "values", 0}, keys_place = {place, "keys", 0};
    const json_t *values = json_object_get(item, "values"), *keys = json_object_get(item, "keys");
    map->full = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof(double));
    map->now = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof(double));
    bool *chosen = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof *chosen);
    *map = (scene_map){.garment = g->index, .count = g->vertex_count, .full = map->full, .now = map->now};
    scene->map_count++;
    if (!map->full || !map->now || !chosen) {
        toile_free(l->memory, chosen);
        return no_memory(l);
    }
    toile_status status = TOILE_OK;
    double value = 1;
    read_number(item, "value", &value);
    if (values && json_array_size(values) != (size_t)g->vertex_count)
        status = REFUSE(&values_place, "found %zu numbers; garment \"%.64s\" has %d vertices", json_array_size(values), g->name,
                        g->vertex_count);
    else if (!values)
        status = toile_scene_select(l, item, place, index, g, chosen);
    for (int i = 0; i < g->vertex_count; i++)
        map->full[i] = values ? json_number_value(json_array_get(values, (size_t)i)) : chosen[i] ? value : 1;
    toile_free(l->memory, chosen);
    if (status == TOILE_OK && keys)
        status = load_curve(l, keys, &keys_place, &map->amount);
    if (status != TOILE_OK)
        return status;
    blend_map(map, map->amount.count ? curve_at(&map->amount, scene->first) : 1, map->now);
    status = toile_add_map(scene->world, g->index, read_text(item, "property", ""), map->now, &map->index);
    return status < 0 ? world_refuses(l, place, status) : TOILE_OK;
}

/* ---- pressure ---- */

static toile_status load_pressure(loader *l, const json_t *value, const toile_place *place, const garment *g) {
    toile_scene *scene = l->scene;
    scene_pressure *p = &scene->pressures[scene->pressure_count++];
    *p = (scene_pressure){.garment = g->index, .panel = -1};
    toile_place keys_place = {place, "keys", 0}, panel_place = {place, "panel", 0};
    const json_t *keys = json_object_get(value, "keys");
    const char *panel = read_text(value, "panel", NULL);
    if (panel) {
        int count = toile_panel_count(scene->world, g->index);
        for (int i = 0; i < count && p->panel < 0; i++)
            if (strcmp(toile_panel_name(scene->world, g->index, i), panel) == 0)
                p->panel = i;
        if (p->panel < 0)
            return REFUSE(&panel_place, "found \"%.64s\"; garment \"%.64s\" has no such panel", panel, g->name);
    }
    if (keys)
        return load_curve(l, keys, &keys_place, &p->value);
    p->value.keys = toile_alloc(l->memory, 1, sizeof *p->value.keys);
    if (!p->value.keys)
        return no_memory(l);
    p->value.count = 1;
    read_number(value, "value", &p->value.keys[0].value);
    return TOILE_OK;
}

/* ---- all ---- */

static size_t count_in_garments(const loader *l, const char *key) {
    const json_t *garments = json_object_get(l->root, "garments");
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(garments); i++)
        count += json_array_size(json_object_get(json_array_get(garments, i), key));
    return count;
}

typedef enum kind { SEWING, CREASES, ELASTIC, MAPS, PRESSURE, KIND_COUNT } kind;

static toile_status load_item(loader *l, kind kind, const json_t *item, const toile_place *place, int index) {
    const garment *g = &l->scene->garments[index];
    switch (kind) {
    case SEWING: return load_sewing(l, item, place, g);
    case CREASES: return load_crease(l, item, place, index, g);
    case ELASTIC: return load_elastic(l, item, place, index, g);
    case MAPS: return load_map(l, item, place, index, g);
    default: return load_pressure(l, item, place, g);
    }
}

toile_status toile_scene_load_shaping(loader *l) {
    static const char *const KEYS[KIND_COUNT] = {"sewing", "creases", "elastic", "maps", "pressure"};
    toile_scene *scene = l->scene;
    scene->maps = toile_alloc(l->memory, count_in_garments(l, "maps"), sizeof *scene->maps);
    scene->pressures = toile_alloc(l->memory, count_in_garments(l, "pressure"), sizeof *scene->pressures);
    if (!scene->maps || !scene->pressures)
        return no_memory(l);
    const json_t *garments = json_object_get(l->root, "garments");
    toile_place place = {&WHOLE, "garments", 0};
    for (int g = 0; g < scene->garment_count; g++)
        for (kind kind = SEWING; kind < KIND_COUNT; kind++) {
            const json_t *list = json_object_get(json_array_get(garments, (size_t)g), KEYS[kind]);
            toile_place here = {&place, NULL, (size_t)g}, list_place = {&here, KEYS[kind], 0};
            for (size_t i = 0; i < json_array_size(list); i++) {
                toile_place item_place = {&list_place, NULL, i};
                toile_status status = load_item(l, kind, json_array_get(list, i), &item_place, g);
                if (status != TOILE_OK)
                    return status;
            }
        }
    return TOILE_OK;
}

toile_status toile_scene_prepare_shaping(toile_scene *scene, int frame, toile_error *error) {
    toile_status status = TOILE_OK;
    for (int i = 0; i < scene->map_count && status >= 0; i++) {
        scene_map *map = &scene->maps[i];
        if (map->amount.count == 0)
            continue;
        blend_map(map, curve_at(&map->amount, frame), map->now);
        status = toile_change_map(scene->world, map->garment, map->index, map->now);
    }
    for (int i = 0; i < scene->pressure_count && status >= 0; i++) {
        const scene_pressure *p = &scene->pressures[i];
        status = toile_set_pressure(scene->world, p->garment, p->panel, curve_at(&p->value, frame));
    }
    return status < 0 ? toile_fail(error, status, "frame %d: %s", frame, toile_message(scene->world)) : TOILE_OK;
}

void toile_scene_free_shaping(toile_scene *scene) {
    for (int i = 0; i < scene->map_count; i++) {
        toile_free(&scene->memory, scene->maps[i].full);
        toile_free(&scene->memory, scene->maps[i].now);
        toile_free(&scene->memory, scene->maps[i].amount.keys);
    }
    for (int i = 0; i < scene->pressure_count; i++)
        toile_free(&scene->memory, scene->pressures[i].value.keys);
    toile_free(&scene->memory, scene->maps);
    toile_free(&scene->memory, scene->pressures);
}
