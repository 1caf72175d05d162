/* "no_contact" of a scene: pairs of things that go through each other, and parts of garments that touch nothing. */
#include "scene_internal.h"

#include <string.h>

/* A name of a pair: a garment's, or a collider's where the pair may have one. */
static toile_status find_thing(const loader *l, const toile_place *place, const char *name, bool may_collide, int *garment,
                               int *solid) {
    const toile_scene *scene = l->scene;
    *garment = toile_scene_find_name(scene, name_of_garment, scene->garment_count, name);
    *solid = toile_scene_find_name(scene, name_of_collider, scene->collider_count, name);
    if (may_collide && *garment >= 0 && *solid >= 0)
        return REFUSE(place, "found \"%.64s\", which is a garment and a collider; rename one of them", name);
    if (*garment >= 0 || (may_collide && *solid >= 0))
        return TOILE_OK;
    if (*solid >= 0)
        return REFUSE(place, "found \"%.64s\", a collider; the first of a pair is a garment", name);
    return may_collide && scene->collider_count > 0
               ? REFUSE(place, "found \"%.64s\"; there is no garment and no collider of this name", name)
               : toile_scene_refuse_name(l, place, name, name_of_garment, scene->garment_count);
}

static toile_status load_pair(const loader *l, const json_t *pair, const toile_place *place) {
    toile_scene *scene = l->scene;
    toile_place first_place = {place, NULL, 0}, second_place = {place, NULL, 1};
    int first, second, none, solid;
    toile_status status =
        find_thing(l, &first_place, json_string_value(json_array_get(pair, 0)), false, &first, &none);
    if (status == TOILE_OK)
        status = find_thing(l, &second_place, json_string_value(json_array_get(pair, 1)), true, &second, &solid);
    if (status != TOILE_OK)
        return status;
    status = second >= 0 ? toile_exclude_garments(scene->world, scene->garments[first].index, scene->garments[second].index)
                         : toile_exclude_collider(scene->world, scene->garments[first].index, scene->colliders[solid].index);
    return status < 0 ? world_refuses(l, place, status) : TOILE_OK;
}

static toile_status load_exempt(const loader *l, const json_t *object, const toile_place *place) {
    toile_scene *scene = l->scene;
    toile_place garment_place = {place, "garment", 0};
    const char *name = read_text(object, "garment", ""), *with = read_text(object, "with", "all");
    int index = toile_scene_find_name(scene, name_of_garment, scene->garment_count, name), n = 0;
    if (index < 0)
        return toile_scene_refuse_name(l, &garment_place, name, name_of_garment, scene->garment_count);
    const garment *g = &scene->garments[index];
    bool *chosen = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof *chosen);
    int *vertices = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof *vertices);
    toile_status status = chosen && vertices ? toile_scene_select(l, object, place, index, g, chosen) : no_memory(l);
    if (status == TOILE_OK) {
        for (int v = 0; v < g->vertex_count; v++)
            if (chosen[v])
                vertices[n++] = v;
        status = toile_exempt_vertices(scene->world, g->index, n, vertices, strcmp(with, "colliders") != 0,
                                       strcmp(with, "cloth") != 0);
        status = status < 0 ? world_refuses(l, place, status) : TOILE_OK;
    }
    toile_free(l->memory, chosen);
    toile_free(l->memory, vertices);
    return status;
}

toile_status toile_scene_load_no_contact(loader *l) {
    const json_t *list = json_object_get(l->root, "no_contact");
    toile_place place = {&WHOLE, "no_contact", 0};
    toile_status status = TOILE_OK;
    for (size_t i = 0; i < json_array_size(list) && status == TOILE_OK; i++) {
        const json_t *item = json_array_get(list, i);
        toile_place here = {&place, NULL, i};
        status = json_is_array(item) ? load_pair(l, item, &here) : load_exempt(l, item, &here);
    }
    return status;
}
