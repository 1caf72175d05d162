/* Writing jobs (toile.h), reading their meshes as if from files, and packing a scene with its files into one.
 */
#include "job.h"

#include "scene_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct toile_job {
    toile_memory memory;
    toile_error error;
    toile_job_file *file; /* null after a failed create */
};

/* ---- the public calls ---- */

toile_status toile_job_create(const char *path, toile_job **job) {
    if (!path || !job)
        return TOILE_MISUSE;
    toile_memory memory;
    toile_memory_init(&memory, NULL);
    toile_job *j = *job = toile_alloc(&memory, 1, sizeof *j);
    if (!j)
        return TOILE_NO_MEMORY;
    j->memory = memory;
    return toile_job_file_create(&j->memory, path, &j->file, &j->error);
}

void toile_job_destroy(toile_job *j) {
    if (!j)
        return;
    toile_job_file_close(j->file);
    toile_memory memory = j->memory;
    toile_free(&memory, j);
}

const char *toile_job_message(const toile_job *j) {
    return j ? j->error.message : "there is no job: toile_job_create failed or was not called";
}

static toile_status is_open(toile_job *j) {
    if (!j)
        return TOILE_MISUSE;
    return j->file ? TOILE_OK : toile_fail(&j->error, TOILE_MISUSE, "the job was not created");
}

toile_status toile_job_add_mesh(toile_job *j, const toile_job_mesh *m) {
    toile_status status = is_open(j);
    if (status != TOILE_OK)
        return status;
    if (!m || !m->name || !m->positions || !m->face_sizes || !m->face_vertices ||
        (m->panel_count > 0 && (!m->panel_names || !m->face_panels)))
        return toile_fail(&j->error, TOILE_MISUSE, "a mesh of a job needs a name, positions and faces");
    toile_job_array array = {.name = m->name,
                             .vertex_count = m->vertex_count,
                             .face_count = m->face_count,
                             .panel_count = m->panel_count,
                             .positions = m->positions,
                             .face_sizes = m->face_sizes,
                             .face_vertices = m->face_vertices,
                             .corner_uv = m->corner_uv,
                             .face_panels = m->panel_count > 0 ? m->face_panels : NULL,
                             .panel_names = m->panel_names};
    for (int f = 0; f < m->face_count; f++) {
        if (m->face_sizes[f] < 3 || m->face_sizes[f] > 4)
            return toile_fail(
                &j->error, TOILE_INVALID,
                "mesh \"%.64s\": face %d has %d corners; use triangles and quads (triangulate it first)",
                m->name, f, m->face_sizes[f]);
        array.corner_count += m->face_sizes[f];
    }
    for (int i = 0; i < array.corner_count; i++)
        if (m->face_vertices[i] < 0 || m->face_vertices[i] >= m->vertex_count)
            return toile_fail(&j->error, TOILE_INVALID,
                              "mesh \"%.64s\": a face uses vertex %d; there are %d vertices", m->name,
                              m->face_vertices[i], m->vertex_count);
    return toile_job_file_put_mesh(j->file, &array, &j->error);
}

toile_status toile_job_add_track(toile_job *j, const char *name, int first_frame, int vertex_count,
                                 int *track) {
    toile_status status = is_open(j);
    if (status != TOILE_OK)
        return status;
    if (!name || !track)
        return toile_fail(&j->error, TOILE_MISUSE, "a track needs a name and a place for its number");
    return toile_job_file_begin_track(j->file, name, first_frame, vertex_count, track, &j->error);
}

toile_status toile_job_add_frame(toile_job *j, int track, const double *positions) {
    toile_status status = is_open(j);
    if (status != TOILE_OK)
        return status;
    if (!positions)
        return toile_fail(&j->error, TOILE_MISUSE, "the positions are null");
    return toile_job_file_append(j->file, track, positions, &j->error);
}

toile_status toile_job_finish(toile_job *j, const char *scene) {
    toile_status status = is_open(j);
    if (status != TOILE_OK)
        return status;
    if (!scene)
        return toile_fail(&j->error, TOILE_MISUSE, "the scene is null");
    return toile_job_file_finish(j->file, scene, &j->error);
}

toile_status toile_job_check(const char *path, char *message, size_t size) {
    toile_error error = {0};
    toile_scene *scene = NULL;
    if (!path || (size > 0 && !message))
        return TOILE_MISUSE;
    toile_status status = toile_scene_load(NULL, path, NULL, 0, &scene, &error);
    toile_scene_free(scene);
    if (size > 0)
        snprintf(message, size, "%s", status < 0 ? error.message : "");
    return status;
}

/* ---- a job's mesh as a file ---- */

toile_status toile_job_read_obj(toile_job_file *file, toile_memory *memory, const char *name, toile_obj *obj,
                                toile_error *error) {
    toile_job_array mesh;
    char place[600];
    snprintf(place, sizeof place, "%.400s, mesh \"%.100s\"", toile_job_file_path(file), name);
    *obj = (toile_obj){0};
    toile_status status = toile_job_file_read_mesh(file, name, &mesh, &obj->hash, error);
    if (status != TOILE_OK)
        return status;
    size_t faces = (size_t)mesh.face_count, corners = (size_t)mesh.corner_count;
    obj->path = toile_copy_text(memory, place);
    obj->vertex_lines = toile_alloc(memory, (size_t)mesh.vertex_count, sizeof(int));
    obj->face_lines = toile_alloc(memory, faces, sizeof(int));
    obj->face_panels = mesh.face_panels ? (int *)mesh.face_panels : toile_alloc(memory, faces, sizeof(int));
    obj->corner_uvs = toile_alloc(memory, corners, sizeof(int));
    obj->panel_names =
        mesh.panel_count > 0 ? (char **)mesh.panel_names : toile_alloc(memory, 1, sizeof(char *));
    obj->panel_count = mesh.panel_count;
    if (mesh.panel_count == 0 && obj->panel_names) {
        obj->panel_names[0] = toile_copy_text(memory, "panel");
        obj->panel_count = 1;
    }
    obj->vertex_count = mesh.vertex_count;
    obj->positions = (double *)mesh.positions;
    obj->uvs = (double *)mesh.corner_uv;
    obj->uv_count = mesh.corner_uv ? mesh.corner_count : 0;
    obj->face_count = mesh.face_count;
    obj->corner_count = mesh.corner_count;
    obj->face_sizes = (int *)mesh.face_sizes;
    obj->corner_vertices = (int *)mesh.face_vertices;
    toile_free(memory, (void *)mesh.name);
    if (!obj->path || !obj->vertex_lines || !obj->face_lines || !obj->face_panels || !obj->corner_uvs ||
        !obj->panel_names || !obj->panel_names[0]) {
        toile_obj_free(memory, obj);
        return toile_fail_memory(error, "a mesh");
    }
    /* There are no lines: messages about a face have its number. */
    for (size_t i = 0; i < faces; i++)
        obj->face_lines[i] = (int)i;
    for (size_t i = 0; i < corners; i++)
        obj->corner_uvs[i] = obj->uvs ? (int)i : -1;
    for (int i = 0; i < obj->vertex_count; i++)
        obj->vertex_lines[i] = i;
    return TOILE_OK;
}

/* ---- packing ---- */

typedef struct packer {
    toile_memory memory;
    toile_error *error;
    toile_scene *scene;
    toile_job_file *file;
    json_t *root; /* the resolved scene, which becomes the job's */
} packer;

/* Writes a mesh file into the job under `name`. Corner (u, v) stand as the file has them. */
static toile_status pack_file(packer *p, const char *path, const char *name) {
    toile_obj obj = {0};
    toile_status status = toile_obj_read(&p->memory, path, &obj, p->error);
    if (status != TOILE_OK)
        return status;
    double *uv = toile_alloc(&p->memory, (size_t)obj.corner_count, 2 * sizeof *uv);
    bool has_uv = uv && obj.uv_count > 0;
    for (int i = 0; has_uv && i < obj.corner_count; i++) {
        has_uv = obj.corner_uvs[i] >= 0;
        if (has_uv)
            memcpy(uv + 2 * i, obj.uvs + 2 * obj.corner_uvs[i], 2 * sizeof *uv);
    }
    toile_job_array array = {.name = name,
                             .vertex_count = obj.vertex_count,
                             .face_count = obj.face_count,
                             .corner_count = obj.corner_count,
                             .panel_count = obj.panel_count,
                             .positions = obj.positions,
                             .face_sizes = obj.face_sizes,
                             .face_vertices = obj.corner_vertices,
                             .corner_uv = has_uv ? uv : NULL,
                             .face_panels = obj.face_panels,
                             .panel_names = (const char *const *)obj.panel_names};
    status = uv ? toile_job_file_put_mesh(p->file, &array, p->error) : toile_fail_memory(p->error, "a mesh");
    toile_free(&p->memory, uv);
    toile_obj_free(&p->memory, &obj);
    return status;
}

static toile_status pack_obj(packer *p, const char *file, const char *name) {
    char *path = toile_scene_path_of(p->scene, &p->memory, file);
    toile_status status = path ? pack_file(p, path, name) : toile_fail_memory(p->error, "a path");
    toile_free(&p->memory, path);
    return status;
}

/* A sequence of files becomes a mesh and a track, in metres as the scene tells them frame by frame. */
static toile_status pack_sequence(packer *p, collider *c, json_t *object, const char *name) {
    char first[4200];
    snprintf(first, sizeof first, "%.4000s%0*d%.100s", c->before, c->digits, c->file, c->after);
    int track;
    toile_status status = pack_file(p, first, name);
    if (status == TOILE_OK)
        status =
            toile_job_file_begin_track(p->file, name, p->scene->first, c->vertex_count, &track, p->error);
    for (int frame = p->scene->first; status == TOILE_OK && frame <= p->scene->last; frame++) {
        status = toile_scene_prepare_collider(p->scene, c, frame, p->error);
        if (status == TOILE_OK)
            status = toile_job_file_append(p->file, track, c->local, p->error);
    }
    json_object_del(object, "obj_sequence");
    json_object_del(object, "sequence_first");
    json_object_del(object, "hold");
    json_object_del(object, "scale");
    json_object_set_new(object, "track", json_string(name));
    return status;
}

/* Where garments begin, if that is a frame of a cache: a track for each, positions and velocities as two frames. */
static toile_status pack_start(packer *p) {
    json_t *start = json_object_get(p->root, "start");
    toile_world *world = p->scene->world;
    toile_status status = TOILE_OK;
    if (!start)
        return TOILE_OK;
    for (int g = 0; g < p->scene->garment_count && status >= 0; g++) {
        int count = toile_vertex_count(world, g), track;
        double *values = toile_alloc(&p->memory, (size_t)count, 3 * sizeof *values);
        char name[200];
        snprintf(name, sizeof name, "start %.128s", toile_garment_name(world, g));
        status = values ? toile_job_file_begin_track(p->file, name, 0, count, &track, p->error)
                        : toile_fail_memory(p->error, "a track");
        for (int k = 0; k < 2 && status >= 0; k++) {
            status = k ? toile_get_velocities(world, g, values) : toile_get_positions(world, g, values);
            if (status >= 0)
                status = toile_job_file_append(p->file, track, values, p->error);
        }
        toile_free(&p->memory, values);
    }
    json_object_clear(start);
    json_object_set_new(start, "track", json_string("start"));
    return status < 0 ? status : TOILE_OK;
}

static toile_status pack_arrays(packer *p) {
    static const char *const LISTS[] = {"garments", "colliders"};
    toile_status status = TOILE_OK;
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_t *object;
        json_array_foreach(json_object_get(p->root, LISTS[list]), i, object) {
            const char *file = json_string_value(json_object_get(object, "obj"));
            bool sequence = json_object_get(object, "obj_sequence") != NULL;
            char name[200];
            snprintf(name, sizeof name, "%s %.128s", list ? "collider" : "garment",
                     json_string_value(json_object_get(object, "name")));
            if (status != TOILE_OK || (!file && !sequence))
                continue;
            status =
                sequence ? pack_sequence(p, &p->scene->colliders[i], object, name) : pack_obj(p, file, name);
            json_object_del(object, "obj");
            json_object_set_new(object, "mesh", json_string(name));
        }
    }
    return status;
}

toile_status toile_job_pack(const char *scene_path, const char *const *sets, int set_count,
                            const char *job_path, toile_error *error) {
    packer p = {.error = error};
    toile_memory_init(&p.memory, NULL);
    toile_status status = toile_scene_load(NULL, scene_path, sets, set_count, &p.scene, error);
    if (status != TOILE_OK)
        return status;
    if (p.scene->job)
        status =
            toile_fail(error, TOILE_INVALID, "%s already reads a job; copy that file instead", scene_path);
    else if (!(p.root = json_loads(toile_scene_resolved_json(p.scene), 0, NULL)))
        status = toile_fail_memory(error, "the scene");
    if (status == TOILE_OK)
        status = toile_job_file_create(&p.memory, job_path, &p.file, error);
    if (status == TOILE_OK)
        status = pack_arrays(&p);
    if (status == TOILE_OK)
        status = pack_start(&p);
    char *text = status == TOILE_OK ? json_dumps(p.root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    if (status == TOILE_OK)
        status = text ? toile_job_file_finish(p.file, text, error) : toile_fail_memory(error, "the scene");
    free(text);
    json_decref(p.root);
    toile_job_file_close(p.file);
    toile_scene_free(p.scene);
    return status;
}
