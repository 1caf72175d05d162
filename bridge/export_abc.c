/* Alembic: one archive. Every garment is an xform /NAME (the identity) with the mesh /NAME/NAMEShape under
 * it, as Blender, Maya and Houdini expect:
 *
 *   positions, velocities   every frame, velocities in lengths per second
 *   faces                   once
 *   uv                      per corner, indexed, in metres of the flat pattern whatever --scale
 *   panel                   number of the panel, per face; the panels by name are face sets
 *   Pref                    the start shape, per vertex
 *
 * Frame F is at F / fps seconds, where a scene of that fps plays it. With --colliders these are meshes beside
 * the garments, without velocities. Z up becomes Y up unless --up z, by the library's option.
 */
#include "export_job.h"

#include "abc.h"

#include <stdio.h>
#include <string.h>

typedef struct archive_state {
    toile_export_file file;
    abc_writer *writer;
    uint32_t sampling;
    int collider_count;
    abc_wmesh **meshes; /* garments, then colliders */
    int32_t *threes;    /* corners per face, for as many as there may be */
    size_t threes_count;
    float *points; /* of one collider, (point_room x 3) */
    size_t point_room;
} archive_state;

static toile_status check(toile_export *job, const archive_state *s, abc_status status) {
    if (status >= 0)
        return TOILE_OK;
    toile_status ours = status == ABC_MISSING ? TOILE_FORMAT : (toile_status)status;
    if (!s->writer)
        return toile_fail_memory(&job->error, "the Alembic archive");
    return toile_fail(&job->error, ours, "%.400s: %s", job->output, abc_writer_message(s->writer));
}

static toile_status reserve_threes(toile_export *job, archive_state *s, size_t count) {
    if (count <= s->threes_count)
        return TOILE_OK;
    toile_free(&job->memory, s->threes);
    s->threes = toile_alloc(&job->memory, count, sizeof *s->threes);
    s->threes_count = s->threes ? count : 0;
    for (size_t i = 0; i < s->threes_count; i++)
        s->threes[i] = 3;
    return s->threes ? TOILE_OK : toile_fail_memory(&job->error, "the faces");
}

/* ---- the archive and its objects ---- */

/* Metadata may not hold ';' or '='. */
static void metadata_text(char *text) {
    for (; *text; text++)
        if (*text == ';' || *text == '=')
            *text = ',';
}

static void unit_text(double scale, char *text, size_t size) {
    if (scale == 1 || scale == 100 || scale == 1000)
        snprintf(text, size, "%s", scale == 1 ? "m" : scale == 100 ? "cm" : "mm");
    else
        snprintf(text, size, "%.9g m", 1 / scale);
}

static toile_status open_archive(toile_export *job, archive_state *s) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    char application[64], description[512], units[32];
    snprintf(application, sizeof application, "Toile %s", toile_version());
    snprintf(description, sizeof description,
             "scene %.200s, frames %d to %d, %s up, uv in metres of the flat pattern", header->scene_name,
             job->first, job->last, job->up == TOILE_UP_Y ? "Y" : "Z");
    unit_text(job->scale, units, sizeof units);
    metadata_text(application);
    metadata_text(description);
    abc_writer_options options = abc_writer_default_options();
    options.application = application;
    options.description = description;
    options.units = units;
    options.fps = header->fps;
    options.first_frame = job->first;
    options.last_frame = job->last;
    options.z_up = job->up == TOILE_UP_Y; /* our data is Z up: turn it */
    options.scale = job->scale;
    abc_status status = abc_writer_open(s->file.temporary, &options, &s->writer);
    if (status >= 0)
        status = abc_writer_add_uniform(s->writer, job->first / header->fps, 1 / header->fps, &s->sampling);
    return check(job, s, status);
}

/* /NAME and /NAME/NAMEShape */
static toile_status create_object(toile_export *job, archive_state *s, const char *name, const char *uv_name,
                                  abc_wmesh **mesh) {
    static const double identity[16] = {[0] = 1, [5] = 1, [10] = 1, [15] = 1};
    char shape[TOILE_NAME_SIZE + 8];
    abc_wxform *xform = NULL;
    snprintf(shape, sizeof shape, "%sShape", name);
    const abc_wmesh_def def = {shape, s->sampling, uv_name};
    abc_status status = abc_wxform_create(abc_writer_top(s->writer), name, 0, &xform);
    if (status >= 0)
        status = abc_wxform_write(xform, identity, true);
    if (status >= 0)
        status = abc_wmesh_create(abc_wxform_object(xform), &def, mesh);
    return check(job, s, status);
}

static toile_status create_objects(toile_export *job, archive_state *s) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    int count = job->garment_count + s->collider_count;
    char(*names)[TOILE_NAME_SIZE] = toile_alloc(&job->memory, (size_t)count, sizeof *names);
    s->meshes = toile_alloc(&job->memory, (size_t)count, sizeof *s->meshes);
    toile_status status = names && s->meshes ? TOILE_OK : toile_fail_memory(&job->error, "the objects");
    for (int i = 0; i < count && status >= 0; i++) {
        bool garment = i < job->garment_count;
        const char *name = garment ? header->garments[job->garments[i]].name
                                   : toile_scene_collider_name(job->scene, i - job->garment_count);
        toile_export_name(name, garment ? "garment" : "collider", names, i + 1);
        status = create_object(job, s, names[i], garment ? "UVMap" : NULL, &s->meshes[i]);
    }
    toile_free(&job->memory, names);
    return status;
}

static toile_status begin(toile_export *job, void **state) {
    archive_state *s = toile_alloc(&job->memory, 1, sizeof *s);
    if (!s)
        return toile_fail_memory(&job->error, "the export");
    *state = s;
    s->collider_count = job->scene ? toile_scene_collider_count(job->scene) : 0;
    toile_status status = toile_export_file_begin(&s->file, job->output, &job->error);
    if (status >= 0)
        status = open_archive(job, s);
    if (status >= 0)
        status = create_objects(job, s);
    return status;
}

/* ---- garments ---- */

typedef struct uv_index {
    float *values; /* (count x 2) */
    uint32_t count;
    uint32_t *corners; /* (3 * triangle_count), into values */
} uv_index;

static void free_uvs(toile_memory *memory, uv_index *uvs) {
    toile_free(memory, uvs->values);
    toile_free(memory, uvs->corners);
}

/* Corners at one vertex with the same (u, v) share a value, hence tools keep the pattern's pieces together
 * and part them at seams. Values of a vertex are chained. */
static toile_status index_uvs(toile_memory *memory, const toile_garment_view *garment, uv_index *uvs,
                              toile_error *error) {
    size_t corners = 3 * (size_t)garment->triangle_count;
    uint32_t *first =
        toile_alloc(memory, (size_t)garment->vertex_count, sizeof *first); /* 1 + value, 0: none */
    uint32_t *next = toile_alloc(memory, corners, sizeof *next);
    *uvs = (uv_index){toile_alloc(memory, corners, 2 * sizeof(float)), 0,
                      toile_alloc(memory, corners, sizeof(uint32_t))};
    toile_status status = first && next && uvs->values && uvs->corners
                              ? TOILE_OK
                              : toile_fail_memory(error, "the material coordinates");
    for (size_t c = 0; c < corners && status >= 0; c++) {
        const float *uv = garment->corner_uv + 2 * c;
        uint32_t *link = &first[garment->triangles[c]];
        while (*link && memcmp(uvs->values + 2 * (size_t)(*link - 1), uv, 2 * sizeof *uv) != 0)
            link = &next[*link - 1];
        if (!*link) {
            memcpy(uvs->values + 2 * (size_t)uvs->count, uv, 2 * sizeof *uv);
            *link = ++uvs->count;
        }
        uvs->corners[c] = *link - 1;
    }
    toile_free(memory, first);
    toile_free(memory, next);
    return status;
}

static toile_status write_params(toile_export *job, archive_state *s, abc_wmesh *mesh,
                                 const toile_garment_view *garment) {
    /* Blender takes Pref only as a "vector" per point. */
    const abc_wparam_def pref = {.name = "Pref",
                                 .pod = ABC_FLOAT,
                                 .extent = 3,
                                 .scope = ABC_SCOPE_POINT,
                                 .interpretation = "vector",
                                 .turn = ABC_TURN_POINT};
    const abc_wparam_def panel = {.name = "panel", .pod = ABC_INT32, .extent = 1, .scope = ABC_SCOPE_FACE};
    abc_wparam *param = NULL;
    abc_status status = abc_wmesh_add_param(mesh, &pref, &param);
    if (status >= 0)
        status = abc_wparam_write(param, garment->rest_positions, (size_t)garment->vertex_count, NULL, 0);
    if (status >= 0)
        status = abc_wmesh_add_param(mesh, &panel, &param);
    if (status >= 0)
        status = abc_wparam_write(param, garment->triangle_panels, (size_t)garment->triangle_count, NULL, 0);
    return check(job, s, status);
}

static toile_status write_panels(toile_export *job, archive_state *s, abc_wmesh *mesh,
                                 const toile_garment_view *garment) {
    char(*names)[TOILE_NAME_SIZE] = toile_alloc(&job->memory, (size_t)garment->panel_count, sizeof *names);
    int32_t *faces = toile_alloc(&job->memory, (size_t)garment->triangle_count, sizeof *faces);
    toile_status status = names && faces ? TOILE_OK : toile_fail_memory(&job->error, "the panels");
    for (int p = 0; p < garment->panel_count && status >= 0; p++) {
        size_t count = 0;
        for (int t = 0; t < garment->triangle_count; t++)
            if (garment->triangle_panels[t] == p)
                faces[count++] = t;
        toile_export_name(garment->panel_names[p], "panel", names, p + 1);
        abc_wfaceset *set = NULL;
        abc_status written = abc_wmesh_add_faceset(mesh, names[p], true, 0, &set);
        if (written >= 0)
            written = abc_wfaceset_write(set, faces, count);
        status = check(job, s, written);
    }
    toile_free(&job->memory, names);
    toile_free(&job->memory, faces);
    return status;
}

/* The first sample brings all that stays the same. */
static toile_status write_garment(toile_export *job, archive_state *s, abc_wmesh *mesh, int frame,
                                  int number) {
    const toile_garment_view *garment = &toile_cache_get_header(job->cache)->garments[number];
    const bool first = abc_wmesh_samples(mesh) == 0;
    uv_index uvs = {0};
    toile_status status = toile_export_read(job, frame, number, job->positions, job->velocities);
    abc_mesh_data data = {.positions = job->positions,
                          .point_count = (size_t)garment->vertex_count,
                          .velocities = job->velocities};
    if (status >= 0 && first)
        status = reserve_threes(job, s, (size_t)garment->triangle_count);
    if (status >= 0 && first)
        status = index_uvs(&job->memory, garment, &uvs, &job->error);
    if (status >= 0 && first) {
        data.face_counts = s->threes;
        data.face_count = (size_t)garment->triangle_count;
        data.face_indices = garment->triangles;
        data.corner_count = 3 * data.face_count;
        data.uvs = (abc_values){uvs.values, uvs.count, uvs.corners, data.corner_count, ABC_SCOPE_CORNER};
    }
    if (status >= 0)
        status = check(job, s, abc_wmesh_write(mesh, &data));
    if (status >= 0 && first)
        status = write_params(job, s, mesh, garment);
    if (status >= 0 && first)
        status = write_panels(job, s, mesh, garment);
    free_uvs(&job->memory, &uvs);
    return status;
}

/* ---- colliders ---- */

/* Faces are given every time; the archive keeps what did not change only once. */
static toile_status write_collider(toile_export *job, archive_state *s, abc_wmesh *mesh, int collider) {
    int vertices, faces;
    const double *positions;
    const int *triangles;
    toile_status status = toile_scene_collider_mesh(job->scene, collider, &vertices, &positions, &faces,
                                                    &triangles, &job->error);
    if (status >= 0)
        status = reserve_threes(job, s, (size_t)faces);
    if (status >= 0 && (size_t)vertices > s->point_room) {
        toile_free(&job->memory, s->points);
        s->points = toile_alloc(&job->memory, (size_t)vertices, 3 * sizeof(float));
        s->point_room = s->points ? (size_t)vertices : 0;
        if (!s->points)
            status = toile_fail_memory(&job->error, "a collider");
    }
    if (status < 0)
        return status;
    for (size_t i = 0; i < 3 * (size_t)vertices; i++)
        s->points[i] = (float)positions[i];
    const abc_mesh_data data = {.positions = s->points,
                                .point_count = (size_t)vertices,
                                .face_counts = s->threes,
                                .face_count = (size_t)faces,
                                .face_indices = triangles,
                                .corner_count = 3 * (size_t)faces};
    return check(job, s, abc_wmesh_write(mesh, &data));
}

/* ---- frames ---- */

static toile_status write_frame(toile_export *job, void *state, int frame) {
    archive_state *s = state;
    toile_status status = TOILE_OK;
    for (int i = 0; i < job->garment_count && status >= 0; i++)
        status = write_garment(job, s, s->meshes[i], frame, job->garments[i]);
    for (int c = 0; c < s->collider_count && status >= 0; c++)
        status = write_collider(job, s, s->meshes[job->garment_count + c], c);
    return status;
}

static toile_status end(toile_export *job, void *state, bool keep) {
    archive_state *s = state;
    toile_status status = TOILE_OK;
    if (!s)
        return status;
    if (keep)
        status = check(job, s, abc_writer_finish(s->writer));
    abc_writer_close(s->writer);
    if (keep && status >= 0)
        status = toile_export_file_keep(&s->file, &job->error);
    toile_export_file_drop(&s->file);
    toile_free(&job->memory, s->meshes);
    toile_free(&job->memory, s->threes);
    toile_free(&job->memory, s->points);
    toile_free(&job->memory, s);
    return status;
}

const toile_export_format toile_export_abc = {".abc", "Alembic archive", TOILE_UP_Y, true,
                                              begin,  write_frame,       end};
