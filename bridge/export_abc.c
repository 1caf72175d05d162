/* Alembic: one archive. Every garment is an xform /NAME (the identity) with the mesh /NAME/NAMEShape under
 * it, as Blender, Maya and Houdini expect:
 *
 *   positions, velocities   every frame, velocities in lengths per second
 *   faces                   once
 *   uv                      per corner, indexed, in metres of the flat pattern whatever --scale
 *   panel                   number of the panel, per face; the panels by name are face sets
 *   material_FABRIC         face sets beside those, where a garment has more than one fabric
 *   Pref                    the start shape, per vertex
 *   stretch                 with --stretch: the largest stretch of each face against its pattern, 0 is none;
 * every frame
 *
 * Frame F is at F / fps seconds, where a scene of that fps plays it. With --subframes there are several
 * samples per frame, within its shutter, on the cubic through positions and velocities of two frames
 * (Hermite); past the last frame they go on straight. With --colliders these are meshes beside the garments,
 * without velocities, once per frame. Z up becomes Y up unless --up z, by the library's option.
 */
#include "export_job.h"

#include "abc.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SUBFRAMES_MOST = 64 };

typedef struct archive_state {
    toile_export_file file;
    abc_writer *writer;
    uint32_t sampling, whole; /* with the samples of the shutter, and of whole frames */
    int collider_count;
    abc_wmesh **meshes;                                   /* garments, then colliders */
    abc_wparam **stretch;                                 /* of garments, with --stretch */
    float *values;                                        /* of faces */
    float *next, *next_velocities, *sub, *sub_velocities; /* with --subframes, (as job->positions) */
    int32_t *threes;                                      /* corners per face, for as many as there may be */
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
    options.fps = job->fps;
    options.first_frame = job->first + job->offset;
    options.last_frame = job->last + job->offset;
    options.z_up = job->up == TOILE_UP_Y; /* our data is Z up: turn it */
    options.scale = job->scale;
    abc_status status = abc_writer_open(s->file.temporary, &options, &s->writer);
    double start = (job->first + job->offset) / job->fps, times[SUBFRAMES_MOST];
    if (status >= 0)
        status = abc_writer_add_uniform(s->writer, start, 1 / job->fps, &s->whole);
    s->sampling = s->whole;
    for (int i = 0; i < job->subframes; i++)
        times[i] = start + (job->subframes > 1 ? job->shutter * i / (job->subframes - 1) / job->fps : 0);
    const abc_time_sampling cycle = {ABC_CYCLIC, 1 / job->fps, times, (size_t)job->subframes, 0};
    if (status >= 0 && job->subframes > 1)
        status = abc_writer_add_time_sampling(s->writer, &cycle, &s->sampling);
    return check(job, s, status);
}

/* /NAME and /NAME/NAMEShape */
static toile_status create_object(toile_export *job, archive_state *s, const char *name, const char *uv_name,
                                  uint32_t sampling, abc_wmesh **mesh) {
    static const double identity[16] = {[0] = 1, [5] = 1, [10] = 1, [15] = 1};
    char shape[TOILE_NAME_SIZE + 8];
    abc_wxform *xform = NULL;
    snprintf(shape, sizeof shape, "%sShape", name);
    const abc_wmesh_def def = {shape, sampling, uv_name};
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
        status = create_object(job, s, names[i], garment ? "UVMap" : NULL, garment ? s->sampling : s->whole,
                               &s->meshes[i]);
    }
    toile_free(&job->memory, names);
    return status;
}

/* For what the options ask for. */
static toile_status make_room(toile_export *job, archive_state *s) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    size_t vertices = 0, faces = 0;
    for (int i = 0; i < job->garment_count; i++) {
        const toile_garment_view *g = &header->garments[job->garments[i]];
        vertices = (size_t)g->vertex_count > vertices ? (size_t)g->vertex_count : vertices;
        faces = (size_t)g->triangle_count > faces ? (size_t)g->triangle_count : faces;
    }
    float **const four[] = {&s->next, &s->next_velocities, &s->sub, &s->sub_velocities};
    bool made = true;
    for (int i = 0; i < 4 && job->subframes > 1; i++) {
        *four[i] = toile_alloc(&job->memory, vertices, 3 * sizeof(float));
        made = made && *four[i];
    }
    s->stretch = toile_alloc(&job->memory, (size_t)job->garment_count, sizeof *s->stretch);
    s->values = toile_alloc(&job->memory, job->stretch ? faces : 0, sizeof *s->values);
    return made && s->stretch && s->values ? TOILE_OK : toile_fail_memory(&job->error, "the export");
}

static toile_status begin(toile_export *job, void **state) {
    archive_state *s = toile_alloc(&job->memory, 1, sizeof *s);
    if (!s)
        return toile_fail_memory(&job->error, "the export");
    *state = s;
    s->collider_count = job->scene ? toile_scene_collider_count(job->scene) : 0;
    toile_status status = toile_export_file_begin(&s->file, job->output, &job->error);
    if (status >= 0)
        status = make_room(job, s);
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

/* Face sets by fabric, where there is more than one, from the scene that the cache keeps. */
static toile_status write_materials(toile_export *job, archive_state *s, abc_wmesh *mesh, int number,
                                    const toile_garment_view *garment) {
    json_t *scene = json_loads(toile_cache_get_header(job->cache)->settings_json, 0, NULL);
    const json_t *object = json_array_get(json_object_get(scene, "garments"), (size_t)number);
    const json_t *panels = json_object_get(object, "panels"), *own = json_object_get(object, "fabric");
    size_t count = (size_t)garment->panel_count;
    const json_t **fabrics = toile_alloc(&job->memory, count, sizeof *fabrics);
    char(*names)[TOILE_NAME_SIZE] = toile_alloc(&job->memory, count, sizeof *names);
    int32_t *faces = toile_alloc(&job->memory, (size_t)garment->triangle_count, sizeof *faces);
    toile_status status =
        fabrics && names && faces ? TOILE_OK : toile_fail_memory(&job->error, "the fabrics");
    int kinds = 0;
    for (size_t p = 0; status >= 0 && p < count; p++) {
        fabrics[p] = json_object_get(json_object_get(panels, garment->panel_names[p]), "fabric");
        if (!fabrics[p])
            fabrics[p] = own;
        size_t same = 0;
        while (same < p && !json_equal((json_t *)fabrics[same], (json_t *)fabrics[p]))
            same++;
        kinds += same == p;
    }
    for (size_t p = 0, made = 0; kinds > 1 && status >= 0 && p < count; p++) {
        size_t before = 0, used = 0;
        while (before < p && !json_equal((json_t *)fabrics[before], (json_t *)fabrics[p]))
            before++;
        if (before < p)
            continue;
        for (int t = 0; t < garment->triangle_count; t++) {
            int panel = garment->triangle_panels[t];
            if (panel >= 0 && json_equal((json_t *)fabrics[panel], (json_t *)fabrics[p]))
                faces[used++] = t;
        }
        const char *base = json_string_value(json_object_get(fabrics[p], "base"));
        char name[TOILE_NAME_SIZE];
        snprintf(name, sizeof name, "material_%.100s", base ? base : "fabric");
        toile_export_name(name, "material", names, (int)++made);
        abc_wfaceset *set = NULL;
        abc_status written = abc_wmesh_add_faceset(mesh, names[made - 1], false, 0, &set);
        if (written >= 0)
            written = abc_wfaceset_write(set, faces, used);
        status = check(job, s, written);
    }
    toile_free(&job->memory, fabrics);
    toile_free(&job->memory, names);
    toile_free(&job->memory, faces);
    json_decref(scene);
    return status;
}

/* Largest singular value, less 1, of the map from the flat pattern to space: sqrt of the larger eigenvalue of
 * F'F. */
static void measure_stretch(const toile_garment_view *garment, const float *positions, float *stretch) {
    for (int t = 0; t < garment->triangle_count; t++) {
        const int *v = garment->triangles + 3 * (size_t)t;
        const float *uv = garment->corner_uv + 6 * (size_t)t;
        double du1 = (double)uv[2] - uv[0], dv1 = (double)uv[3] - uv[1], du2 = (double)uv[4] - uv[0];
        double dv2 = (double)uv[5] - uv[1], area = du1 * dv2 - du2 * dv1, a = 0, b = 0, c = 0;
        for (int k = 0; k < 3; k++) {
            double o = positions[3 * (size_t)v[0] + (size_t)k],
                   x1 = positions[3 * (size_t)v[1] + (size_t)k] - o;
            double x2 = positions[3 * (size_t)v[2] + (size_t)k] - o;
            double wu = (x1 * dv2 - x2 * dv1) / area, wv = (x2 * du1 - x1 * du2) / area;
            a += wu * wu;
            b += wu * wv;
            c += wv * wv;
        }
        double largest = (a + c) / 2 + sqrt((a - c) * (a - c) / 4 + b * b);
        stretch[t] = area != 0 && isfinite(largest) ? (float)(sqrt(largest) - 1) : 0;
    }
}

static toile_status write_stretch(toile_export *job, archive_state *s, int i,
                                  const toile_garment_view *garment, const float *positions) {
    const abc_wparam_def def = {.name = "stretch", .pod = ABC_FLOAT, .extent = 1, .scope = ABC_SCOPE_FACE};
    abc_status status = s->stretch[i] ? ABC_OK : abc_wmesh_add_param(s->meshes[i], &def, &s->stretch[i]);
    measure_stretch(garment, positions, s->values);
    if (status >= 0)
        status = abc_wparam_write(s->stretch[i], s->values, (size_t)garment->triangle_count, NULL, 0);
    return check(job, s, status);
}

/* Position and velocity at `u` frames after the first of two, `h` seconds apart. */
static void interpolate(const archive_state *s, const float *x0, const float *v0, size_t count, double u,
                        double h, bool ends) {
    double a = 2 * u * u * u - 3 * u * u + 1, b = u * u * u - 2 * u * u + u, c = 3 * u * u - 2 * u * u * u,
           d = u * u * u - u * u;
    double da = 6 * u * u - 6 * u, db = 3 * u * u - 4 * u + 1, dd = 3 * u * u - 2 * u;
    for (size_t i = 0; i < count; i++) {
        if (ends) { /* there is no second one */
            s->sub[i] = (float)(x0[i] + h * u * (double)v0[i]);
            s->sub_velocities[i] = v0[i];
            continue;
        }
        double x1 = s->next[i], v1 = s->next_velocities[i];
        s->sub[i] = (float)(a * (double)x0[i] + b * h * (double)v0[i] + c * x1 + d * h * v1);
        s->sub_velocities[i] = (float)(da * ((double)x0[i] - x1) / h + db * (double)v0[i] + dd * v1);
    }
}

/* One sample. The first brings all that stays the same. */
static toile_status write_sample(toile_export *job, archive_state *s, int i, const float *positions,
                                 float *velocities) {
    abc_wmesh *mesh = s->meshes[i];
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    const toile_garment_view *garment = &header->garments[job->garments[i]];
    const bool first = abc_wmesh_samples(mesh) == 0;
    uv_index uvs = {0};
    toile_status status = TOILE_OK;
    /* Played at another rate, it moves at another speed. */
    if (job->fps != header->fps)
        for (size_t k = 0; k < 3 * (size_t)garment->vertex_count; k++)
            velocities[k] = (float)(velocities[k] * (job->fps / header->fps));
    abc_mesh_data data = {
        .positions = positions, .point_count = (size_t)garment->vertex_count, .velocities = velocities};
    if (first)
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
    if (status >= 0 && first)
        status = write_materials(job, s, mesh, job->garments[i], garment);
    if (status >= 0 && job->stretch)
        status = write_stretch(job, s, i, garment, positions);
    free_uvs(&job->memory, &uvs);
    return status;
}

static toile_status write_garment(toile_export *job, archive_state *s, int frame, int i) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    int number = job->garments[i];
    size_t count = 3 * (size_t)header->garments[number].vertex_count;
    bool ends = frame - header->first_frame + 1 >= toile_cache_frame_count(job->cache);
    toile_status status = toile_export_read(job, frame, number, job->positions, job->velocities);
    if (job->subframes <= 1)
        return status < 0 ? status : write_sample(job, s, i, job->positions, job->velocities);
    if (status >= 0 && !ends)
        status = toile_export_read(job, frame + 1, number, s->next, s->next_velocities);
    for (int k = 0; k < job->subframes && status >= 0; k++) {
        interpolate(s, job->positions, job->velocities, count, job->shutter * k / (job->subframes - 1),
                    1 / header->fps, ends);
        status = write_sample(job, s, i, s->sub, s->sub_velocities);
    }
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
        status = write_garment(job, s, frame, i);
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
    toile_free(&job->memory, s->stretch);
    toile_free(&job->memory, s->values);
    toile_free(&job->memory, s->next);
    toile_free(&job->memory, s->next_velocities);
    toile_free(&job->memory, s->sub);
    toile_free(&job->memory, s->sub_velocities);
    toile_free(&job->memory, s);
    return status;
}

const toile_export_format toile_export_abc = {".abc", "Alembic archive", TOILE_UP_Y, true, true,
                                              begin,  write_frame,       end};
