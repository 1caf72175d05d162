#include "scene_abc.h"

#include "abc.h"
#include "hash.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PARTS_MOST = 4096, DEPTH_MOST = 256, SET_NAME = 255, TAIL = 1 << 16 };

/* A mesh, and the transforms above it from the outermost on. An instance is a mesh of its own. */
typedef struct part {
    abc_object *mesh;
    abc_object **chain;
    int chain_count;
    abc_mesh_info info;
    abc_mesh_sample now, next; /* around the time asked for */
} part;

struct toile_abc {
    toile_memory *memory;
    char *path;
    abc_reader *reader;
    part *parts;
    int part_count;
    bool moves, changes;
    bool hides; /* something was left out as it is not visible */
    uint64_t hash;
};

static toile_status fail_abc(const toile_abc *abc, abc_status status, toile_error *error) {
    if (status == ABC_NO_MEMORY || !abc->reader)
        return toile_fail_memory(error, abc->path);
    return toile_fail(error, status == ABC_IO ? TOILE_IO : TOILE_INVALID, "%.300s: %s", abc->path,
                      abc_reader_message(abc->reader));
}

/* ---- the archive and its meshes ---- */

static toile_status add_part(toile_abc *abc, abc_object *mesh, abc_object *const *chain, int depth,
                             toile_error *error) {
    if (abc->part_count == PARTS_MOST)
        return toile_fail(error, TOILE_INVALID,
                          "%.300s has more than %d meshes; name an \"object\" with fewer", abc->path,
                          PARTS_MOST);
    part made = {.mesh = mesh};
    abc_status status = abc_mesh_get_info(abc->reader, mesh, &made.info);
    if (status < 0)
        return fail_abc(abc, status, error);
    if (made.info.samples == 0)
        return TOILE_OK;
    part *grown = toile_grow(abc->memory, abc->parts, (size_t)abc->part_count, (size_t)abc->part_count + 1,
                             sizeof *grown);
    if (!grown)
        return toile_fail_memory(error, abc->path);
    abc->parts = grown;
    made.chain = toile_alloc(abc->memory, (size_t)depth, sizeof *made.chain);
    if (!made.chain)
        return toile_fail_memory(error, abc->path);
    for (int i = 0; i < depth; i++)
        if (abc_object_schema(chain[i]) == ABC_SCHEMA_XFORM) {
            abc_xform_info info;
            status = abc_xform_get_info(abc->reader, chain[i], &info);
            if (status < 0) {
                toile_free(abc->memory, made.chain);
                return fail_abc(abc, status, error);
            }
            abc->moves = abc->moves || !info.constant;
            made.chain[made.chain_count++] = chain[i];
        }
    abc->moves = abc->moves || made.info.topology != ABC_STATIC;
    abc->changes = abc->changes || made.info.topology == ABC_CHANGING;
    abc->parts[abc->part_count++] = made;
    return TOILE_OK;
}

/* Meshes at and below an object; hidden ones are left out unless they were asked for by name. */
static toile_status collect(toile_abc *abc, abc_object *object, abc_object **chain, int depth, bool named,
                            toile_error *error) {
    abc_object *original = NULL;
    int visible = -1;
    if (depth == DEPTH_MOST)
        return toile_fail(error, TOILE_INVALID, "%.300s is nested more than %d deep", abc->path, DEPTH_MOST);
    abc_status status = abc_object_resolve(abc->reader, object, &original);
    if (status < 0)
        return fail_abc(abc, status, error);
    if (!named)
        status = abc_object_visibility(abc->reader, original, 0, &visible);
    if (status < 0)
        return fail_abc(abc, status, error);
    if (visible == 0) {
        abc->hides = true;
        return TOILE_OK;
    }
    abc_schema schema = abc_object_schema(original);
    if (schema == ABC_SCHEMA_POLYMESH || schema == ABC_SCHEMA_SUBD)
        return add_part(abc, original, chain, depth, error);
    chain[depth] = original;
    toile_status result = TOILE_OK;
    for (size_t i = 0; i < abc_object_child_count(original) && result == TOILE_OK; i++)
        result = collect(abc, abc_object_child(original, i), chain, depth + 1, false, error);
    return result;
}

static void list_meshes(abc_object *object, char *list, size_t size, int depth) {
    abc_schema schema = abc_object_schema(object);
    if (depth < DEPTH_MOST && (schema == ABC_SCHEMA_POLYMESH || schema == ABC_SCHEMA_SUBD)) {
        char path[200];
        size_t used = strlen(list);
        abc_object_path(object, path, sizeof path);
        snprintf(list + used, size - used, "%s%s", used ? ", " : "", path);
    }
    for (size_t i = 0; depth < DEPTH_MOST && i < abc_object_child_count(object); i++)
        list_meshes(abc_object_child(object, i), list, size, depth + 1);
}

static toile_status find_meshes(toile_abc *abc, const char *object, toile_error *error) {
    abc_object *chain[DEPTH_MOST], *from = abc_reader_top(abc->reader), *up[DEPTH_MOST];
    char list[400] = "";
    int depth = 0, above = 0;
    if (object && abc_reader_find(abc->reader, object, &from) < 0) {
        list_meshes(abc_reader_top(abc->reader), list, sizeof list, 0);
        return toile_fail(error, TOILE_INVALID, "%.300s has no object \"%.100s\"; its meshes are: %s",
                          abc->path, object, list);
    }
    for (abc_object *o = abc_object_parent(from); o && above < DEPTH_MOST; o = abc_object_parent(o))
        up[above++] = o;
    while (above > 0)
        chain[depth++] = up[--above];
    toile_status status = collect(abc, from, chain, depth, true, error);
    if (status == TOILE_OK && abc->part_count == 0 && abc->hides) {
        list_meshes(from, list, sizeof list, 0);
        return toile_fail(error, TOILE_INVALID,
                          "%.300s has no mesh that is visible at its start; show it there, or name one as \"object\": %s",
                          abc->path, list);
    }
    if (status == TOILE_OK && abc->part_count == 0)
        status = toile_fail(error, TOILE_INVALID, "%.300s has no mesh%s%.100s; export polygon meshes",
                            abc->path, object ? " at or below " : "", object ? object : "");
    return status;
}

/* The end of the file, where the hashes of everything are. */
static toile_status hash_tail(toile_abc *abc, uint64_t size, toile_error *error) {
    size_t tail = size > TAIL ? TAIL : (size_t)size;
    char *bytes = toile_alloc(abc->memory, tail, 1);
    if (!bytes)
        return toile_fail_memory(error, abc->path);
    FILE *file = fopen(abc->path, "rb");
    bool done = file && fseek(file, (long)(size - tail), SEEK_SET) == 0 && fread(bytes, 1, tail, file) == tail;
    abc->hash = toile_hash(toile_hash(TOILE_HASH_SEED, &size, sizeof size), bytes, done ? tail : 0);
    if (file)
        fclose(file);
    toile_free(abc->memory, bytes);
    return done ? TOILE_OK
                : toile_fail(error, TOILE_IO, "%.300s cannot be read to its end; has it changed meanwhile?",
                             abc->path);
}

toile_status toile_abc_open(toile_memory *memory, const char *path, const char *object, bool y_up,
                            toile_abc **result, toile_error *error) {
    *result = NULL;
    toile_abc *abc = toile_alloc(memory, 1, sizeof *abc);
    if (!abc)
        return toile_fail_memory(error, path);
    abc->memory = memory;
    abc->path = toile_copy_text(memory, path);
    const abc_allocator allocator = {memory->allocator.allocate, memory->allocator.release,
                                     memory->allocator.user};
    abc_reader_options options = abc_reader_default_options();
    options.z_up = y_up; /* files are Y up: turn them; one that is Z up already is taken as it is */
    options.allocator = &allocator;
    toile_status status = abc->path ? TOILE_OK : toile_fail_memory(error, path);
    if (status == TOILE_OK) {
        abc_status opened = abc_reader_open(path, &options, &abc->reader);
        if (opened < 0)
            status = fail_abc(abc, opened, error);
    }
    if (status == TOILE_OK)
        status = find_meshes(abc, object, error);
    abc_archive_info info;
    if (status == TOILE_OK && abc_reader_info(abc->reader, &info) >= 0)
        status = hash_tail(abc, info.file_size, error);
    if (status == TOILE_OK)
        *result = abc;
    else
        toile_abc_close(abc);
    return status;
}

void toile_abc_close(toile_abc *abc) {
    if (!abc)
        return;
    for (int i = 0; i < abc->part_count; i++) {
        abc_mesh_sample_free(abc->reader, &abc->parts[i].now);
        abc_mesh_sample_free(abc->reader, &abc->parts[i].next);
        toile_free(abc->memory, abc->parts[i].chain);
    }
    toile_free(abc->memory, abc->parts);
    abc_reader_close(abc->reader);
    toile_free(abc->memory, abc->path);
    toile_free(abc->memory, abc);
}

bool toile_abc_moves(const toile_abc *abc) {
    return abc->moves;
}

bool toile_abc_changes(const toile_abc *abc) {
    return abc->changes;
}

uint64_t toile_abc_hash(const toile_abc *abc) {
    return abc->hash;
}

/* ---- a time ---- */

/* The samples around a time and how far it is from the first of them, 0 to 1. */
static double around(const toile_abc *abc, uint32_t sampling, uint64_t samples, double time, uint64_t *before,
                     uint64_t *after) {
    const abc_time_sampling *times = abc_reader_time_sampling(abc->reader, sampling);
    *before = *after = 0;
    if (!times || samples < 2)
        return 0;
    *before = abc_time_floor(times, samples, time);
    *after = abc_time_ceil(times, samples, time);
    double a = abc_time_of(times, *before), b = abc_time_of(times, *after);
    double part = *after > *before && b > a ? (time - a) / (b - a) : 0;
    return part > 0 && part < 1 ? part : 0; /* also for times that are not numbers */
}

static void multiply(const double a[16], const double b[16], double result[16]) {
    double m[16] = {0};
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
            for (int k = 0; k < 4; k++)
                m[4 * r + c] += a[4 * r + k] * b[4 * k + c];
    memcpy(result, m, sizeof m);
}

/* All transforms above a mesh as one matrix, for row vectors. */
static toile_status place_of(const toile_abc *abc, const part *p, double time, double matrix[16],
                             toile_error *error) {
    static const double identity[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    memcpy(matrix, identity, sizeof identity);
    for (int i = 0; i < p->chain_count; i++) {
        abc_xform_info info;
        uint64_t before = 0, after = 0;
        double m[16], n[16];
        bool inherits = true, ignored;
        abc_status status = abc_xform_get_info(abc->reader, p->chain[i], &info);
        double part = status < 0 ? 0 : around(abc, info.time_sampling, info.samples, time, &before, &after);
        if (status >= 0 && info.samples > 0)
            status = abc_xform_read(abc->reader, p->chain[i], before, m, &inherits);
        else
            memcpy(m, identity, sizeof m);
        if (status >= 0 && part > 0) {
            status = abc_xform_read(abc->reader, p->chain[i], after, n, &ignored);
            for (int k = 0; k < 16 && status >= 0; k++)
                m[k] += part * (n[k] - m[k]);
        }
        if (status < 0)
            return fail_abc(abc, status, error);
        if (inherits)
            multiply(m, matrix, matrix);
        else
            memcpy(matrix, m, sizeof m);
    }
    return TOILE_OK;
}

/* Reads a part's samples at a time. Where faces change the sample before it counts, as in other programs. */
static toile_status read_part(toile_abc *abc, part *p, double time, double *between, toile_error *error) {
    uint64_t before, after;
    *between = around(abc, p->info.time_sampling, p->info.samples, time, &before, &after);
    if (p->info.topology == ABC_CHANGING)
        *between = 0;
    abc_status status = abc_mesh_read(abc->reader, p->mesh, before, &p->now);
    if (status >= 0 && *between > 0) {
        status = abc_mesh_read(abc->reader, p->mesh, after, &p->next);
        if (status >= 0 && p->next.point_count != p->now.point_count)
            *between = 0;
    }
    if (status >= 0 && p->now.point_count > INT_MAX / 4)
        return toile_fail(error, TOILE_INVALID, "%.300s has too many points", abc->path);
    return status < 0 ? fail_abc(abc, status, error) : TOILE_OK;
}

static void place_points(const part *p, double between, const double m[16], double *positions) {
    for (size_t i = 0; i < p->now.point_count; i++) {
        double x[3];
        for (size_t k = 0; k < 3; k++) {
            x[k] = p->now.positions[3 * i + k];
            if (between > 0)
                x[k] += between * ((double)p->next.positions[3 * i + k] - x[k]);
        }
        for (size_t k = 0; k < 3; k++)
            positions[3 * i + k] = x[0] * m[k] + x[1] * m[4 + k] + x[2] * m[8 + k] + m[12 + k];
    }
}

static bool is_mirrored(const double m[16]) {
    return m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) +
               m[2] * (m[4] * m[9] - m[5] * m[8]) <
           0;
}

toile_status toile_abc_positions(toile_abc *abc, double time, int vertex_count, double *positions,
                                 toile_error *error) {
    size_t used = 0;
    for (int i = 0; i < abc->part_count; i++) {
        part *p = &abc->parts[i];
        double between, matrix[16];
        toile_status status = read_part(abc, p, time, &between, error);
        if (status == TOILE_OK)
            status = place_of(abc, p, time, matrix, error);
        if (status != TOILE_OK)
            return status;
        if (used + p->now.point_count > (size_t)vertex_count)
            break;
        place_points(p, between, matrix, positions + 3 * used);
        used += p->now.point_count;
    }
    if (used != (size_t)vertex_count)
        return toile_fail(error, TOILE_INVALID,
                          "%.300s: at %g s the number of its points is not that of the start, %d", abc->path,
                          time, vertex_count);
    return TOILE_OK;
}

/* ---- faces that change ---- */

toile_status toile_abc_most_triangles(toile_abc *abc, int *count, toile_error *error) {
    uint64_t total = 0;
    for (int i = 0; i < abc->part_count; i++) {
        part *p = &abc->parts[i];
        uint64_t most = 0;
        for (uint64_t s = 0; s < p->info.samples; s++) {
            uint64_t points, faces, corners;
            abc_status status = abc_mesh_size(abc->reader, p->mesh, s, &points, &faces, &corners);
            if (status < 0)
                return fail_abc(abc, status, error);
            uint64_t triangles = corners > 2 * faces ? corners - 2 * faces : 0;
            most = triangles > most ? triangles : most;
            if (p->info.topology != ABC_CHANGING)
                break;
        }
        total += most;
    }
    if (total == 0 || total > INT_MAX / 16)
        return toile_fail(error, TOILE_INVALID, "%.300s has no faces, or too many", abc->path);
    *count = (int)total;
    return TOILE_OK;
}

static toile_status add_triangles(const toile_abc *abc, const part *p, double between, const double m[16],
                                  size_t count, size_t *used, double *positions, toile_error *error) {
    double *points = toile_alloc(abc->memory, p->now.point_count, 3 * sizeof *points);
    toile_status status = points ? TOILE_OK : toile_fail_memory(error, abc->path);
    if (points)
        place_points(p, between, m, points);
    bool mirrored = is_mirrored(m);
    const int32_t *corner = p->now.face_indices;
    for (size_t f = 0; f < p->now.face_count && status == TOILE_OK; corner += p->now.face_counts[f++])
        for (int k = 2; k < p->now.face_counts[f] && status == TOILE_OK; k++) {
            const int32_t three[3] = {corner[0], corner[mirrored ? k : k - 1], corner[mirrored ? k - 1 : k]};
            if (*used == count) {
                status =
                    toile_fail(error, TOILE_INVALID, "%.300s has more than %zu triangles", abc->path, count);
                break;
            }
            for (int c = 0; c < 3; c++)
                memcpy(positions + 9 * *used + 3 * c, points + 3 * (size_t)three[c], 3 * sizeof *points);
            ++*used;
        }
    toile_free(abc->memory, points);
    return status;
}

toile_status toile_abc_triangles(toile_abc *abc, double time, int count, double *positions,
                                 toile_error *error) {
    size_t used = 0;
    for (int i = 0; i < abc->part_count; i++) {
        double between, matrix[16];
        toile_status status = read_part(abc, &abc->parts[i], time, &between, error);
        if (status == TOILE_OK)
            status = place_of(abc, &abc->parts[i], time, matrix, error);
        if (status == TOILE_OK)
            status =
                add_triangles(abc, &abc->parts[i], between, matrix, (size_t)count, &used, positions, error);
        if (status != TOILE_OK)
            return status;
    }
    if (used == 0)
        return toile_fail(error, TOILE_INVALID,
                          "%.300s has no faces at %g s; a collider has some at all times", abc->path, time);
    for (size_t i = used; i < (size_t)count; i++)
        memcpy(positions + 9 * i, positions + 9 * (used - 1), 9 * sizeof *positions);
    return TOILE_OK;
}

/* ---- everything, in the form of a mesh file ---- */

typedef struct sizes {
    size_t vertices, faces, corners, uvs;
} sizes;

static toile_status make_arrays(toile_abc *abc, const sizes *most, toile_obj *obj, toile_error *error) {
    toile_memory *m = abc->memory;
    obj->path = toile_copy_text(m, abc->path);
    obj->positions = toile_alloc(m, most->vertices, 3 * sizeof *obj->positions);
    obj->vertex_lines = toile_alloc(m, most->vertices, sizeof *obj->vertex_lines);
    obj->uvs = toile_alloc(m, most->uvs, 2 * sizeof *obj->uvs);
    obj->face_sizes = toile_alloc(m, most->faces, sizeof *obj->face_sizes);
    obj->face_lines = toile_alloc(m, most->faces, sizeof *obj->face_lines);
    obj->face_panels = toile_alloc(m, most->faces, sizeof *obj->face_panels);
    obj->corner_vertices = toile_alloc(m, most->corners, sizeof *obj->corner_vertices);
    obj->corner_uvs = toile_alloc(m, most->corners, sizeof *obj->corner_uvs);
    bool made = obj->path && obj->positions && obj->vertex_lines && obj->uvs && obj->face_sizes &&
                obj->face_lines && obj->face_panels && obj->corner_vertices && obj->corner_uvs;
    return made ? TOILE_OK : toile_fail_memory(error, abc->path);
}

/* The number of a panel with this name; a new one if there is none. Below 0: no memory. */
static int find_panel(toile_abc *abc, toile_obj *obj, const char *name) {
    for (int i = 0; i < obj->panel_count; i++)
        if (strcmp(obj->panel_names[i], name) == 0)
            return i;
    char **names = toile_grow(abc->memory, obj->panel_names, (size_t)obj->panel_count,
                              (size_t)obj->panel_count + 1, sizeof *names);
    if (!names)
        return -1;
    obj->panel_names = names;
    names[obj->panel_count] = toile_copy_text(abc->memory, name);
    return names[obj->panel_count] ? obj->panel_count++ : -1;
}

/* The face set of every face of a part, or that of its name; (face_count). */
static toile_status find_sets(toile_abc *abc, const part *p, toile_obj *obj, int *panels,
                              toile_error *error) {
    size_t children = abc_object_child_count(p->mesh), count = p->now.face_count;
    abc_sample faces = {0};
    toile_status result = TOILE_OK;
    bool exclude = false, exclusive;
    for (size_t f = 0; f < count; f++)
        panels[f] = -1;
    for (int pass = 0; pass < 2 && result == TOILE_OK; pass++)
        for (size_t c = 0; c < children && result == TOILE_OK; c++) {
            abc_object *set = abc_object_child(p->mesh, c);
            if (abc_object_schema(set) != ABC_SCHEMA_FACESET)
                continue;
            abc_status status = abc_faceset_read(abc->reader, set, 0, &faces, &exclusive);
            if (status == ABC_MISSING) /* one without samples */
                continue;
            if (status < 0) {
                result = fail_abc(abc, status, error);
                break;
            }
            if (pass == 0) {
                exclude = exclude || exclusive;
                continue;
            }
            if (exclude && !exclusive)
                continue; /* another way to part the same faces, such as by material */
            int panel = -2;
            const int32_t *face = faces.data;
            for (uint64_t i = 0; i < faces.count; i++)
                if (face[i] >= 0 && (size_t)face[i] < count && panels[face[i]] == -1) {
                    if (panel == -2)
                        panel = find_panel(abc, obj, abc_object_name(set));
                    panels[face[i]] = panel;
                }
            if (panel == -1)
                result = toile_fail_memory(error, abc->path);
        }
    abc_sample_free(abc->reader, &faces);
    int rest = -1;
    for (size_t f = 0; f < count && result == TOILE_OK; f++)
        if (panels[f] == -1 && p->now.face_counts[f] >= 3) {
            if (rest < 0)
                rest = find_panel(abc, obj, abc_object_name(p->mesh));
            panels[f] = rest;
            if (rest < 0)
                result = toile_fail_memory(error, abc->path);
        }
    return result;
}

/* The value of a corner of the UV map, or -1. */
static int uv_of(const abc_param_sample *uvs, size_t corner, int32_t point, int base) {
    size_t item = uvs->scope == ABC_SCOPE_CORNER ? corner : (size_t)point;
    if (!uvs->values || uvs->pod != ABC_FLOAT || uvs->extent != 2 ||
        (uvs->scope != ABC_SCOPE_CORNER && uvs->scope != ABC_SCOPE_POINT && uvs->scope != ABC_SCOPE_VARYING))
        return -1;
    if (item >= (uvs->indices ? uvs->index_count : uvs->value_count))
        return -1;
    return base + (int)(uvs->indices ? uvs->indices[item] : item);
}

static void add_face(toile_obj *obj, const int32_t *points, const int *uvs, int count, int base, int panel,
                     int line) {
    obj->face_sizes[obj->face_count] = count;
    obj->face_lines[obj->face_count] = line;
    obj->face_panels[obj->face_count++] = panel;
    for (int k = 0; k < count; k++) {
        obj->corner_vertices[obj->corner_count] = base + points[k];
        obj->corner_uvs[obj->corner_count++] = uvs[k];
    }
}

static toile_status add_part_faces(toile_abc *abc, part *p, const double matrix[16], double between,
                                   toile_obj *obj, toile_error *error) {
    int base = obj->vertex_count, uv_base = obj->uv_count;
    bool mirrored = is_mirrored(matrix);
    int *panels = toile_alloc(abc->memory, p->now.face_count, sizeof *panels);
    toile_status status =
        panels ? find_sets(abc, p, obj, panels, error) : toile_fail_memory(error, abc->path);
    place_points(p, between, matrix, obj->positions + 3 * (size_t)base);
    for (size_t i = 0; i < p->now.point_count; i++)
        obj->vertex_lines[obj->vertex_count++] = (int)i + 1;
    if (p->now.uvs.values && p->now.uvs.pod == ABC_FLOAT && p->now.uvs.extent == 2) {
        const float *uv = p->now.uvs.values;
        for (size_t i = 0; i < 2 * p->now.uvs.value_count; i++)
            obj->uvs[2 * (size_t)uv_base + i] = uv[i];
        obj->uv_count += (int)p->now.uvs.value_count;
    }
    size_t corner = 0;
    for (size_t f = 0; f < p->now.face_count && status == TOILE_OK;
         corner += (size_t)p->now.face_counts[f++]) {
        int count = p->now.face_counts[f];
        /* Quads stay; of larger polygons a fan. */
        for (int first = 1, size; first + 1 < count; first += size - 2) {
            size = count == 4 ? 4 : 3;
            int32_t points[4];
            int uvs[4];
            for (int k = 0; k < size; k++) {
                int at = k == 0 ? 0 : first + k - 1, to = mirrored ? size - 1 - k : k;
                points[to] = p->now.face_indices[corner + (size_t)at];
                uvs[to] = uv_of(&p->now.uvs, corner + (size_t)at, points[to], uv_base);
            }
            add_face(obj, points, uvs, size, base, panels[f], (int)f + 1);
        }
    }
    toile_free(abc->memory, panels);
    return status;
}

toile_status toile_abc_mesh(toile_abc *abc, double time, toile_obj *obj, toile_error *error) {
    sizes most = {0};
    toile_status status = TOILE_OK;
    memset(obj, 0, sizeof *obj);
    for (int i = 0; i < abc->part_count && status == TOILE_OK; i++) {
        part *p = &abc->parts[i];
        double between;
        status = read_part(abc, p, time, &between, error);
        most.vertices += p->now.point_count;
        most.corners += 3 * p->now.corner_count;
        most.faces += p->now.corner_count;
        most.uvs += p->now.uvs.values ? p->now.uvs.value_count : 0;
    }
    if (status == TOILE_OK &&
        (most.vertices > INT_MAX / 8 || most.corners > INT_MAX / 8 || most.uvs > INT_MAX / 8))
        status = toile_fail(error, TOILE_INVALID, "%.300s is too large; name an \"object\"", abc->path);
    if (status == TOILE_OK)
        status = make_arrays(abc, &most, obj, error);
    for (int i = 0; i < abc->part_count && status == TOILE_OK; i++) {
        part *p = &abc->parts[i];
        double between, matrix[16];
        status = read_part(abc, p, time, &between, error);
        if (status == TOILE_OK)
            status = place_of(abc, p, time, matrix, error);
        if (status == TOILE_OK)
            status = add_part_faces(abc, p, matrix, between, obj, error);
    }
    if (status == TOILE_OK && obj->face_count == 0)
        status = toile_fail(error, TOILE_INVALID, "%.300s: no faces; export a mesh, not points or lines",
                            abc->path);
    obj->hash = abc->hash;
    if (status != TOILE_OK)
        toile_obj_free(abc->memory, obj);
    return status;
}
