/* Garments of a scene: grids, and meshes from OBJ files and archives with a fabric per panel. Sewing patterns are in
 * scene_panels.c. */
#include "scene_internal.h"

#include "hash.h"
#include "job.h"
#include "obj.h"
#include "scene_abc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RESOLUTION = 41 }; /* particles along the longer side of a grid, if nobody says */

/* A resolution is a pair, or one number for the longer side with squares kept as square as they can be. */
static void read_resolution(const loader *l, const json_t *grid, const double size[2], int counts[2]) {
    const json_t *value = json_object_get(grid, "resolution");
    if (!value)
        value = json_object_get(l->root, "resolution");
    if (json_is_array(value)) {
        for (size_t i = 0; i < 2; i++)
            counts[i] = (int)json_number_value(json_array_get(value, i));
        return;
    }
    int along = value ? (int)json_number_value(value) : RESOLUTION;
    double longer = fmax(size[0], size[1]);
    for (int i = 0; i < 2; i++) {
        counts[i] = 1 + (int)lround((along - 1) * (size[i] / longer));
        if (counts[i] < 2)
            counts[i] = 2;
    }
}

static toile_status load_grid(const loader *l, const json_t *object, const toile_place *place, garment *g) {
    const json_t *value = json_object_get(object, "grid");
    toile_place here = {place, "grid", 0}, fabric_place = {place, "fabric", 0};
    static const char *const DIAGONALS[] = {"alternate", "left", "right"};
    toile_grid grid = {.name = g->name};
    int counts[2];
    read_vector(value, "size", 2, g->size);
    read_resolution(l, value, g->size, counts);
    g->nu = grid.nu = counts[0];
    g->nv = grid.nv = counts[1];
    while (strcmp(DIAGONALS[grid.diagonals], read_text(value, "diagonals", "alternate")) != 0)
        grid.diagonals++;

    toile_key key = {0};
    read_place(object, &key);
    toile_pose pose = toile_pose_from(key.origin, key.rotate);
    toile_pose_apply(&pose, (double[3]){-g->size[0] / 2, -g->size[1] / 2, 0}, grid.origin);
    toile_pose_turn(&pose, (double[3]){g->size[0], 0, 0}, grid.u_axis);
    toile_pose_turn(&pose, (double[3]){0, g->size[1], 0}, grid.v_axis);

    toile_status status =
        toile_scene_use_fabric(l, json_object_get(object, "fabric"), &fabric_place, &grid.fabric);
    if (status != TOILE_OK)
        return status;
    status = toile_add_grid(l->scene->world, &grid, &g->index);
    if (status < 0)
        return world_refuses(l, &here, status);

    g->vertex_count = g->nu * g->nv;
    g->start = toile_alloc(l->memory, (size_t)g->vertex_count, 3 * sizeof *g->start);
    if (!g->start)
        return no_memory(l);
    for (int j = 0, v = 0; j < g->nv; j++)
        for (int i = 0; i < g->nu; i++, v++)
            for (int k = 0; k < 3; k++)
                g->start[3 * v + k] =
                    grid.origin[k] + grid.u_axis[k] * i / (g->nu - 1) + grid.v_axis[k] * j / (g->nv - 1);
    return TOILE_OK;
}

/* Fabric and rest scales of every panel: the garment's, then what "panels" says. */
static toile_status load_panels(const loader *l, const json_t *object, const toile_place *place,
                                const toile_obj *obj, int *fabrics, double *scales) {
    const json_t *panels = json_object_get(object, "panels");
    toile_place fabric_place = {place, "fabric", 0}, panels_place = {place, "panels", 0};
    int fabric;
    toile_status status =
        toile_scene_use_fabric(l, json_object_get(object, "fabric"), &fabric_place, &fabric);
    if (status != TOILE_OK)
        return status;
    for (int i = 0; i < obj->panel_count; i++) {
        fabrics[i] = fabric;
        scales[2 * i] = scales[2 * i + 1] = 1;
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)panels, key, value) {
        toile_place here = {&panels_place, key, 0}, inside = {&here, "fabric", 0};
        int i = 0;
        while (i < obj->panel_count && strcmp(obj->panel_names[i], key) != 0)
            i++;
        if (i == obj->panel_count) {
            char text[600];
            toile_known_names(key, (const char *const *)obj->panel_names, obj->panel_count, text,
                              sizeof text);
            return REFUSE(&here, "%s has no such panel; %s", obj->path, text);
        }
        const json_t *own = json_object_get(value, "fabric");
        if (own)
            status = toile_scene_use_fabric(l, own, &inside, &fabrics[i]);
        if (status != TOILE_OK)
            return status;
        read_vector(value, "scale", 2, scales + 2 * i);
    }
    return TOILE_OK;
}

/* Material coordinates that are not in metres are the commonest mistake with unwrapped meshes. */
static void warn_of_area(const loader *l, const garment *g, const toile_obj *obj, const double *corner_uv) {
    double space = toile_obj_area(obj, g->start, 3, true),
           material = toile_obj_area(obj, corner_uv, 2, false);
    char line[300];
    if (!l->scene->hooks.log || (material > space / 4 && material < space * 4))
        return;
    snprintf(line, sizeof line,
             "garment \"%.64s\": its material coordinates cover %.3g m^2 but it starts with %.3g m^2; "
             "if they are not in metres, give \"uv_scale\" (here about %.3g)",
             g->name, material, space, sqrt(space / material));
    l->scene->hooks.log(l->scene->hooks.user, 1, line);
}

/* The mesh of an archive at the scene's first frame. */
static toile_status read_archive(loader *l, const json_t *object, const char *path, toile_obj *obj) {
    toile_abc *abc = NULL;
    double offset = 0;
    bool y_up = strcmp(read_text(object, "up", "y"), "y") == 0;
    read_number(object, "frame_offset", &offset);
    toile_status status = toile_abc_open(l->memory, path, read_text(object, "object", NULL), y_up, &abc, l->error);
    if (status == TOILE_OK && toile_abc_changes(abc))
        status = toile_fail(l->error, TOILE_INVALID,
                            "%.300s: its faces change in the course of time, and a garment keeps its own; export it "
                            "with constant topology, or one frame of it",
                            path);
    if (status == TOILE_OK)
        status = toile_abc_mesh(abc, (l->scene->first + offset) / l->scene->fps, obj, l->error);
    toile_abc_close(abc);
    return status;
}

/* From a file or an archive, whose surface is checked, or from the job. */
static toile_status read_mesh(loader *l, const json_t *object, const toile_place *place, double scale, toile_obj *obj) {
    const char *inside = read_text(object, "mesh", NULL);
    if (inside) {
        toile_status status = toile_scene_need_job(l, place);
        return status != TOILE_OK ? status : toile_job_read_obj(l->scene->job, l->memory, inside, obj, l->error);
    }
    char *path = toile_scene_path_of(l->scene, l->memory, read_text(object, place->key, ""));
    if (!path)
        return no_memory(l);
    toile_status status = strcmp(place->key, "abc") == 0 ? read_archive(l, object, path, obj)
                                                         : toile_obj_read(l->memory, path, obj, l->error);
    status = toile_scene_blame_file(l, place, status);
    toile_free(l->memory, path);
    return status != TOILE_OK ? status : toile_obj_check(l->memory, obj, scale, true, l->error);
}

static toile_status load_mesh(loader *l, const json_t *object, const toile_place *place, garment *g) {
    toile_status status = TOILE_OK;
    toile_obj obj = {0};
    double *corner_uv = NULL, *panel_scales = NULL, scale = 1, uv_scale = 1;
    int *panel_fabrics = NULL, subdivide = 0;
    toile_key key = {0};
    toile_place here = {place, json_object_get(object, "mesh") ? "mesh" : json_object_get(object, "abc") ? "abc" : "obj", 0};
    read_number(object, "scale", &scale);
    read_number(object, "uv_scale", &uv_scale);
    status = read_mesh(l, object, &here, scale, &obj);
    if (status != TOILE_OK)
        goto out;
    l->files = toile_hash(l->files, &obj.hash, sizeof obj.hash);
    status = toile_scene_take_loose_edges(l, object, place, obj.lines, obj.line_count);
    if (status == TOILE_OK && strcmp(read_text(object, "panels_from", "names"), "uv_islands") == 0)
        status = toile_scene_blame_file(l, &here, toile_obj_panels_by_uv(l->memory, &obj, l->error));
    if (status != TOILE_OK)
        goto out;

    corner_uv = toile_alloc(l->memory, (size_t)obj.corner_count, 2 * sizeof *corner_uv);
    if (!corner_uv) {
        status = no_memory(l);
        goto out;
    }
    if (strcmp(read_text(object, "uv", "file"), "flat") == 0)
        status = toile_obj_uv_flat(l->memory, &obj, scale * uv_scale, corner_uv, l->error);
    else
        status = toile_obj_uv_from_file(&obj, uv_scale, corner_uv, l->error);
    if (status != TOILE_OK)
        goto out;
    read_int(object, "subdivide", &subdivide);
    status = toile_obj_subdivide(l->memory, &obj, &corner_uv, subdivide, l->error);
    if (status != TOILE_OK)
        goto out;

    g->vertex_count = obj.vertex_count;
    g->start = toile_alloc(l->memory, (size_t)obj.vertex_count, 3 * sizeof *g->start);
    panel_fabrics = toile_alloc(l->memory, (size_t)obj.panel_count, sizeof *panel_fabrics);
    panel_scales = toile_alloc(l->memory, (size_t)obj.panel_count, 2 * sizeof *panel_scales);
    if (!g->start || !panel_fabrics || !panel_scales) {
        status = no_memory(l);
        goto out;
    }
    read_place(object, &key);
    toile_pose pose = toile_pose_from(key.origin, key.rotate);
    transform(&pose, scale, obj.positions, obj.vertex_count, g->start);
    warn_of_area(l, g, &obj, corner_uv);
    status = load_panels(l, object, place, &obj, panel_fabrics, panel_scales);
    if (status != TOILE_OK)
        goto out;

    toile_mesh mesh = {
        .name = g->name,
        .vertex_count = obj.vertex_count,
        .positions = g->start,
        .face_count = obj.face_count,
        .face_sizes = obj.face_sizes,
        .face_vertices = obj.corner_vertices,
        .corner_uv = corner_uv,
        .panel_count = obj.panel_count,
        .panel_names = (const char *const *)obj.panel_names,
        .panel_fabrics = panel_fabrics,
        .panel_scales = panel_scales,
        .face_panels = obj.face_panels,
    };
    read_bool(object, "keep_start_angles", &mesh.keep_start_angles);
    status = toile_add_mesh(l->scene->world, &mesh, &g->index);
    if (status < 0)
        status = world_refuses(l, &here, status);
    else
        status = TOILE_OK;
out:
    toile_free(l->memory, corner_uv);
    toile_free(l->memory, panel_fabrics);
    toile_free(l->memory, panel_scales);
    toile_obj_free(l->memory, &obj);
    return status;
}

toile_status toile_scene_load_garments(loader *l) {
    toile_scene *scene = l->scene;
    const json_t *list = json_object_get(l->root, "garments");
    toile_place place = {&WHOLE, "garments", 0};
    size_t count = json_array_size(list);
    scene->garments = toile_alloc(l->memory, count, sizeof *scene->garments);
    if (!scene->garments)
        return no_memory(l);
    scene->garment_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        toile_place here = {&place, NULL, i};
        garment *g = &scene->garments[i];
        toile_status status = toile_scene_take_name(l, object, &here, name_of_garment, "garment", &g->name);
        if (status == TOILE_OK)
            status = json_object_get(object, "grid")                     ? load_grid(l, object, &here, g)
                     : json_is_array(json_object_get(object, "panels")) ? toile_scene_load_panels(l, object, &here, g)
                                                                         : load_mesh(l, object, &here, g);
        if (status != TOILE_OK)
            return status;
        int layer = 0;
        read_int(object, "layer", &layer);
        status = toile_set_layer(scene->world, g->index, layer);
        if (status < 0)
            return world_refuses(l, &here, status);
    }
    return TOILE_OK;
}

void toile_scene_free_garments(toile_scene *scene) {
    for (int i = 0; i < scene->garment_count; i++) {
        toile_free(&scene->memory, scene->garments[i].name);
        toile_free(&scene->memory, scene->garments[i].start);
        toile_free(&scene->memory, scene->garments[i].begin);
        toile_scene_drop_pattern(&scene->memory, &scene->garments[i]);
    }
    toile_free(&scene->memory, scene->garments);
}
