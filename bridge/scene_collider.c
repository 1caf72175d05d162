/* Colliders of a scene: primitives, meshes and sequences of mesh files, and where they are from frame to
 * frame. */
#include "scene_internal.h"

#include "hash.h"
#include "job.h"
#include "obj.h"
#include "scene_abc.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FRICTION 0.3 /* if nobody says */

/* ---- mesh files ---- */

static toile_status take_obj(toile_memory *memory, const toile_obj *obj, collider *c, toile_error *error) {
    if (c->local && (obj->vertex_count != c->vertex_count || obj->face_count != c->face_count))
        return toile_fail(error, TOILE_INVALID,
                          "%s: has %d vertices and %d faces; the first file of the sequence has %d "
                          "and %d, and all must be equal",
                          obj->path, obj->vertex_count, obj->face_count, c->vertex_count, c->face_count);
    if (!c->local) {
        c->vertex_count = obj->vertex_count;
        c->face_count = obj->face_count;
        c->local = toile_alloc(memory, (size_t)obj->vertex_count, 3 * sizeof *c->local);
        c->moved = toile_alloc(memory, (size_t)obj->vertex_count, 3 * sizeof *c->moved);
        c->triangles = toile_alloc(memory, 2 * (size_t)obj->face_count, 3 * sizeof *c->triangles);
        if (!c->local || !c->moved || !c->triangles)
            return toile_fail_memory(error, obj->path);
        const int *corner = obj->corner_vertices;
        for (int f = 0; f < obj->face_count; corner += obj->face_sizes[f++])
            for (int k = 2; k < obj->face_sizes[f]; k++) {
                int *triangle = c->triangles + 3 * (size_t)c->triangle_count++;
                triangle[0] = corner[0];
                triangle[1] = corner[k - 1];
                triangle[2] = corner[k];
            }
    }
    for (size_t i = 0; i < 3 * (size_t)obj->vertex_count; i++)
        c->local[i] = c->scale * obj->positions[i];
    return TOILE_OK;
}

static char *sequence_path(toile_memory *memory, const collider *c, int number) {
    size_t size = strlen(c->before) + strlen(c->after) + (size_t)c->digits + 16;
    char *path = toile_alloc(memory, size, 1);
    if (path)
        snprintf(path, size, "%s%0*d%s", c->before, c->digits, number, c->after);
    return path;
}

/* Reads the file that a sequence shows at a frame, unless it is there already; tells whether it was read. */
static toile_status read_sequence(toile_scene *scene, collider *c, int frame, bool *read,
                                  toile_error *error) {
    toile_status status = TOILE_OK;
    toile_obj obj = {0};
    int number = frame;
    if (c->hold)
        number = frame < c->first_file ? c->first_file : frame > c->last_file ? c->last_file : frame;
    *read = !c->local || number != c->file;
    if (!*read)
        return TOILE_OK;
    char *path = sequence_path(&scene->memory, c, number);
    if (!path) {
        status = toile_fail_memory(error, "a file name");
        goto out;
    }
    /* Skin may fold to nothing in the course of a motion: only the first file must be a clean surface. */
    status = toile_obj_read(&scene->memory, path, &obj, error);
    if (status == TOILE_OK)
        status = c->local ? toile_obj_check_positions(&obj, c->scale, error)
                          : toile_obj_check(&scene->memory, &obj, c->scale, false, error);
    if (status == TOILE_OK)
        status = take_obj(&scene->memory, &obj, c, error);
    if (status == TOILE_OK)
        c->file = number;
out:
    toile_free(&scene->memory, path);
    toile_obj_free(&scene->memory, &obj);
    return status;
}

/* Splits the name at its # signs and finds how far the files go. All their names and sizes are hashed. */
static toile_status find_sequence(loader *l, const json_t *object, const toile_place *place, collider *c) {
    const char *pattern = read_text(object, "obj_sequence", "");
    size_t start = strcspn(pattern, "#"), digits = strspn(pattern + start, "#");
    toile_place here = {place, "obj_sequence", 0};
    if (digits == 0 || digits > 9 || strchr(pattern + start + digits, '#'))
        return REFUSE(&here,
                      "found \"%.64s\"; a sequence has one group of # signs that stands for the frame, as in "
                      "body_####.obj",
                      pattern);
    c->sequence = true;
    c->digits = (int)digits;
    c->before = toile_scene_path_of(l->scene, l->memory, pattern);
    c->after = toile_copy_text(l->memory, pattern + start + digits);
    if (!c->before || !c->after)
        return no_memory(l);
    c->before[strlen(c->before) - strlen(pattern) + start] = 0;
    c->first_file = l->scene->first;
    read_int(object, "sequence_first", &c->first_file);
    read_bool(object, "hold", &c->hold);

    struct stat info;
    for (c->last_file = c->first_file - 1; c->last_file < INT_MAX / 2; c->last_file++) {
        char *path = sequence_path(l->memory, c, c->last_file + 1);
        if (!path)
            return no_memory(l);
        bool there = stat(path, &info) == 0;
        if (there) {
            uint64_t size = (uint64_t)info.st_size;
            const char *name = strrchr(path, '/');
            name = name ? name + 1 : path;
            l->files = toile_hash(toile_hash(l->files, name, strlen(name)), &size, sizeof size);
        }
        toile_free(l->memory, path);
        if (!there)
            break;
    }

    /* Better now than in the middle of a bake. */
    int missing = l->scene->first < c->first_file ? l->scene->first : c->last_file + 1;
    bool lacks = c->hold ? c->last_file < c->first_file : missing <= l->scene->last;
    if (!lacks)
        return TOILE_OK;
    char *path = sequence_path(l->memory, c, missing);
    if (!path)
        return no_memory(l);
    toile_status status = toile_place_fail(&l->source, &here, l->error, TOILE_IO,
                                           "there is no %s; give a file for every frame, or \"hold\": true "
                                           "to keep the first and last ones that are there",
                                           path);
    toile_free(l->memory, path);
    return status;
}

/* The job's positions of a frame. */
static toile_status read_track(toile_scene *scene, collider *c, int frame, toile_error *error) {
    toile_status status = toile_job_file_read_track(scene->job, c->track, frame, c->local, error);
    for (size_t i = 0; i < 3 * (size_t)c->vertex_count; i++)
        c->local[i] *= c->scale;
    return status;
}

/* ---- archives ---- */

static double time_of(const toile_scene *scene, const collider *c, double frame) {
    return (frame + c->abc_offset) / scene->fps;
}

static void scale_points(double *points, size_t count, double scale) {
    for (size_t i = 0; i < 3 * count && scale != 1; i++)
        points[i] *= scale;
}

/* Faces that change have no vertices to follow: at every frame all triangles are put in place anew. */
static toile_status take_loose(loader *l, collider *c) {
    int count;
    toile_status status = toile_abc_most_triangles(c->abc, &count, l->error);
    if (status != TOILE_OK)
        return status;
    c->loose = true;
    c->triangle_count = count;
    c->vertex_count = 3 * count;
    c->local = toile_alloc(l->memory, (size_t)c->vertex_count, 3 * sizeof *c->local);
    c->moved = toile_alloc(l->memory, (size_t)c->vertex_count, 3 * sizeof *c->moved);
    c->triangles = toile_alloc(l->memory, (size_t)c->vertex_count, sizeof *c->triangles);
    if (!c->local || !c->moved || !c->triangles)
        return no_memory(l);
    for (int i = 0; i < c->vertex_count; i++)
        c->triangles[i] = i;
    status = toile_abc_triangles(c->abc, time_of(l->scene, c, l->scene->first), count, c->local, l->error);
    scale_points(c->local, (size_t)c->vertex_count, c->scale);
    return status;
}

static toile_status load_collider_abc(loader *l, const json_t *object, const toile_place *place, collider *c) {
    toile_obj obj = {0};
    toile_place here = {place, "abc", 0};
    char *path = toile_scene_path_of(l->scene, l->memory, read_text(object, "abc", ""));
    if (!path)
        return no_memory(l);
    bool y_up = strcmp(read_text(object, "up", "y"), "y") == 0;
    read_number(object, "frame_offset", &c->abc_offset);
    toile_status status = toile_abc_open(l->memory, path, read_text(object, "object", NULL), y_up, &c->abc, l->error);
    status = toile_scene_blame_file(l, &here, status);
    toile_free(l->memory, path);
    if (status != TOILE_OK)
        return status;
    uint64_t hash = toile_abc_hash(c->abc);
    l->files = toile_hash(l->files, &hash, sizeof hash);
    if (toile_abc_changes(c->abc))
        return take_loose(l, c);
    status = toile_abc_mesh(c->abc, time_of(l->scene, c, l->scene->first), &obj, l->error);
    if (status == TOILE_OK)
        status = toile_obj_check(l->memory, &obj, c->scale, false, l->error);
    if (status == TOILE_OK)
        status = take_obj(l->memory, &obj, c, l->error);
    toile_obj_free(l->memory, &obj);
    return status;
}

/* `local` at a frame, if it is another then. */
static toile_status read_abc(toile_scene *scene, collider *c, int frame, bool *read, toile_error *error) {
    toile_error inner;
    *read = toile_abc_moves(c->abc);
    if (!*read)
        return TOILE_OK;
    double time = time_of(scene, c, frame);
    toile_status status = c->loose ? toile_abc_triangles(c->abc, time, c->triangle_count, c->local, &inner)
                                   : toile_abc_positions(c->abc, time, c->vertex_count, c->local, &inner);
    if (status != TOILE_OK)
        return toile_fail(error, status, "frame %d, collider \"%.64s\": %s", frame, c->name, inner.message);
    scale_points(c->local, (size_t)c->vertex_count, c->scale);
    return TOILE_OK;
}

static toile_status load_collider_mesh(loader *l, const json_t *object, const toile_place *place,
                                       collider *c) {
    toile_status status;
    toile_obj obj = {0};
    c->scale = 1;
    read_number(object, "scale", &c->scale);
    if (json_object_get(object, "obj_sequence")) {
        toile_place here = {place, "obj_sequence", 0};
        bool read;
        status = find_sequence(l, object, place, c);
        return status != TOILE_OK
                   ? status
                   : toile_scene_blame_file(l, &here,
                                            read_sequence(l->scene, c, l->scene->first, &read, l->error));
    }
    const char *inside = read_text(object, "mesh", NULL);
    if (inside) {
        toile_place mesh_place = {place, "mesh", 0};
        status = toile_scene_need_job(l, &mesh_place);
        if (status == TOILE_OK)
            status = toile_job_read_obj(l->scene->job, l->memory, inside, &obj, l->error);
        if (status == TOILE_OK)
            status = take_obj(l->memory, &obj, c, l->error);
        l->files = toile_hash(l->files, &obj.hash, sizeof obj.hash);
        toile_obj_free(l->memory, &obj);
        if (status == TOILE_OK)
            status = toile_scene_load_track(l, object, place, c->vertex_count, &c->track);
        return status != TOILE_OK || c->track < 0 ? status
                                                  : read_track(l->scene, c, l->scene->first, l->error);
    }
    if (json_object_get(object, "abc"))
        return load_collider_abc(l, object, place, c);
    toile_place here = {place, "obj", 0};
    char *path = toile_scene_path_of(l->scene, l->memory, read_text(object, "obj", ""));
    if (!path)
        return no_memory(l);
    status = toile_scene_blame_file(l, &here, toile_obj_read(l->memory, path, &obj, l->error));
    if (status == TOILE_OK)
        status = toile_obj_check(l->memory, &obj, c->scale, false, l->error);
    if (status == TOILE_OK)
        status = take_obj(l->memory, &obj, c, l->error);
    l->files = toile_hash(l->files, &obj.hash, sizeof obj.hash);
    toile_free(l->memory, path);
    toile_obj_free(l->memory, &obj);
    return status;
}

/* ---- one and all ---- */

static toile_status load_collider(loader *l, const json_t *object, const toile_place *place, collider *c) {
    static const char *const SHAPES[] = {
        [TOILE_SPHERE] = "sphere",     [TOILE_BOX] = "box",     [TOILE_CAPSULE] = "capsule",
        [TOILE_CYLINDER] = "cylinder", [TOILE_PLANE] = "plane", [TOILE_MESH] = "mesh"};
    toile_collider made = {.name = c->name};
    c->track = -1;
    while (strcmp(SHAPES[c->shape], read_text(object, "shape", "")) != 0)
        c->shape++;
    made.shape = c->shape;

    /* Sizes of a scene are whole lengths, those of the world half lengths. */
    if (c->shape == TOILE_BOX) {
        read_vector(object, "size", 3, c->size);
        for (int i = 0; i < 3; i++)
            c->size[i] /= 2;
    } else if (c->shape != TOILE_MESH) {
        read_number(object, "radius", &c->size[0]);
        read_number(object, "length", &c->size[1]);
        c->size[1] /= 2;
    }
    memcpy(made.size, c->size, sizeof made.size);

    static const char *const SIDES[] = {[TOILE_OUTSIDE] = "outside", [TOILE_INSIDE] = "inside", [TOILE_BOTH_SIDES] = "both"};
    while (strcmp(SIDES[made.side], read_text(object, "side", "outside")) != 0)
        made.side++;
    c->side = made.side;
    read_number(object, "thickness", &made.thickness);
    double friction = FRICTION;
    read_number(object, "friction", &friction);
    read_number(object, "friction_kinetic", &friction);
    made.friction_static = friction;
    read_number(object, "friction_static", &made.friction_static);
    made.friction_kinetic = json_object_get(object, "friction_kinetic") ? friction : made.friction_static;
    toile_place friction_place = {place, "friction_kinetic", 0};
    if (made.friction_kinetic > made.friction_static)
        return REFUSE(&friction_place, "found %g; it is not greater than friction_static, %g",
                      made.friction_kinetic, made.friction_static);

    read_place(object, &c->motion.rest);
    toile_status status = toile_scene_load_motion(l, object, place, "origin", &c->motion);
    if (status != TOILE_OK)
        return status;
    toile_pose pose = toile_motion_at(&c->motion, l->scene->first);
    if (c->shape == TOILE_MESH) {
        status = load_collider_mesh(l, object, place, c);
        if (status != TOILE_OK)
            return status;
        transform(&pose, 1, c->local, c->vertex_count, c->moved);
        made.vertex_count = c->vertex_count;
        made.positions = c->moved;
        made.triangle_count = c->triangle_count;
        made.triangles = c->triangles;
    } else {
        memcpy(made.position, pose.position, sizeof made.position);
        memcpy(made.rotation, pose.rotation, sizeof made.rotation);
    }
    status = toile_add_collider(l->scene->world, &made, &c->index);
    return status < 0 ? world_refuses(l, place, status) : TOILE_OK;
}

toile_status toile_scene_load_colliders(loader *l) {
    toile_scene *scene = l->scene;
    const json_t *list = json_object_get(l->root, "colliders");
    toile_place place = {&WHOLE, "colliders", 0};
    size_t count = json_array_size(list);
    scene->colliders = toile_alloc(l->memory, count, sizeof *scene->colliders);
    if (!scene->colliders)
        return no_memory(l);
    scene->collider_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        toile_place here = {&place, NULL, i};
        collider *c = &scene->colliders[i];
        toile_status status = toile_scene_take_name(l, object, &here, name_of_collider, "collider", &c->name);
        if (status == TOILE_OK)
            status = load_collider(l, object, &here, c);
        if (status != TOILE_OK)
            return status;
    }
    return TOILE_OK;
}

/* ---- from frame to frame ---- */

static toile_status deform(toile_scene *scene, collider *c, int frame, toile_error *error) {
    toile_pose pose = toile_motion_at(&c->motion, frame);
    transform(&pose, 1, c->local, c->vertex_count, c->moved);
    toile_status status = toile_deform_collider(scene->world, c->index, c->moved);
    if (status < 0)
        return toile_fail(error, status, "frame %d, collider \"%.64s\": %s", frame, c->name, toile_message(scene->world));
    return TOILE_OK;
}

toile_status toile_scene_place_collider(toile_scene *scene, collider *c, int frame, bool *placed, toile_error *error) {
    bool read = false;
    toile_status status = c->loose ? read_abc(scene, c, frame, &read, error) : TOILE_OK;
    if (status != TOILE_OK || !read)
        return status;
    *placed = true;
    return deform(scene, c, frame, error);
}

toile_status toile_scene_prepare_collider(toile_scene *scene, collider *c, int frame, toile_error *error) {
    bool read = false;
    toile_status status = TOILE_OK;
    if (c->loose)
        return TOILE_OK; /* it is there already */
    if (c->abc) {
        status = read_abc(scene, c, frame, &read, error);
        if (status != TOILE_OK)
            return status;
    }
    if (c->sequence) {
        toile_error inner;
        status = read_sequence(scene, c, frame, &read, &inner);
        if (status != TOILE_OK)
            return toile_fail(error, status, "frame %d, collider \"%.64s\": %s", frame, c->name,
                              inner.message);
    }
    if (c->track >= 0) {
        read = true;
        status = read_track(scene, c, frame, error);
        if (status != TOILE_OK)
            return status;
    }
    if (!read && c->motion.key_count == 0)
        return TOILE_OK;
    toile_pose pose = toile_motion_at(&c->motion, frame);
    if (c->shape == TOILE_MESH) {
        transform(&pose, 1, c->local, c->vertex_count, c->moved);
        status = toile_deform_collider(scene->world, c->index, c->moved);
    } else {
        status = toile_pose_collider(scene->world, c->index, pose.position, pose.rotation);
    }
    if (status < 0)
        return toile_fail(error, status, "frame %d, collider \"%.64s\": %s", frame, c->name,
                          toile_message(scene->world));
    return TOILE_OK;
}

void toile_scene_free_colliders(toile_scene *scene) {
    for (int i = 0; i < scene->collider_count; i++) {
        collider *c = &scene->colliders[i];
        toile_free(&scene->memory, c->name);
        toile_free(&scene->memory, c->motion.keys);
        toile_free(&scene->memory, c->local);
        toile_free(&scene->memory, c->moved);
        toile_free(&scene->memory, c->triangles);
        toile_free(&scene->memory, c->before);
        toile_free(&scene->memory, c->after);
        toile_abc_close(c->abc);
    }
    toile_free(&scene->memory, scene->colliders);
}
