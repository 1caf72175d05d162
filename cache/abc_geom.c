/* Writing geometry: the Xform, PolyMesh and FaceSet schemas on top of objects and properties, and
 * the conversions between the caller's space (counter-clockwise, perhaps Z up) and the file's
 * (clockwise, Y up) that reading uses too.
 *
 * A mesh keeps in memory only its corner counts, needed to turn face-varying arrays round when they
 * come without topology. Parts that are not given in a sample are caught up with when the next
 * sample begins, so the order of calls within one sample is free.
 */
#include "abc_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Matrix entries closer than this count as equal, as in the reference library. */
#define ABC_XFORM_CLOSE 1e-12
/* Xform operation: a matrix, no hint. */
#define ABC_OP_MATRIX 0x30

/* ---------------------------------------------------------------- conversions */

/* Where each axis comes from and with which sign. File (x, y, z) = caller (x, z, -y) for Z up. */
typedef struct abc_axes {
    int from[3];
    double sign[3];
} abc_axes;

static abc_axes abc_axes_of(bool z_up, bool back) {
    if (!z_up)
        return (abc_axes){{0, 1, 2}, {1.0, 1.0, 1.0}};
    return back ? (abc_axes){{0, 2, 1}, {1.0, -1.0, 1.0}} : (abc_axes){{0, 2, 1}, {1.0, 1.0, -1.0}};
}

/* `from` and `to` may be the same array: a vector is read before it is written. */
void abc_turn_floats(const float *from, float *to, size_t count, bool z_up, double scale,
                     bool back) {
    abc_axes axes = abc_axes_of(z_up, back);
    double factor = back ? 1.0 / scale : scale;
    for (size_t i = 0; i < 3 * count; i += 3) {
        float v[3];
        for (int k = 0; k < 3; k++)
            v[k] = (float)(axes.sign[k] * factor * (double)from[i + (size_t)axes.from[k]]);
        memcpy(to + i, v, sizeof v);
    }
}

void abc_turn_doubles(const double *from, double *to, size_t count, bool z_up, double scale,
                      bool back) {
    abc_axes axes = abc_axes_of(z_up, back);
    double factor = back ? 1.0 / scale : scale;
    for (size_t i = 0; i < 3 * count; i += 3) {
        double v[3];
        for (int k = 0; k < 3; k++)
            v[k] = axes.sign[k] * factor * from[i + (size_t)axes.from[k]];
        memcpy(to + i, v, sizeof v);
    }
}

/* The same map seen from the other space: rows and columns change axes, only the translation has a
 * length to scale. */
void abc_turn_matrix(const double from[16], double to[16], bool z_up, double scale, bool back) {
    abc_axes axes = abc_axes_of(z_up, back);
    double factor = back ? 1.0 / scale : scale;
    double m[16];
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            int row = r < 3 ? axes.from[r] : 3, column = c < 3 ? axes.from[c] : 3;
            double sign = (r < 3 ? axes.sign[r] : 1.0) * (c < 3 ? axes.sign[c] : 1.0);
            m[4 * r + c] = sign * (r == 3 && c < 3 ? factor : 1.0) * from[4 * row + column];
        }
    memcpy(to, m, sizeof m);
}

void abc_reverse_faces(const int32_t *counts, size_t face_count, void *items, size_t size) {
    uint8_t *face = items;
    for (size_t f = 0; f < face_count; f++) {
        size_t count = (size_t)counts[f];
        for (size_t i = 0, j = count; i + 1 < j; i++) {
            j--;
            for (size_t b = 0; b < size; b++) {
                uint8_t byte = face[i * size + b];
                face[i * size + b] = face[j * size + b];
                face[j * size + b] = byte;
            }
        }
        face += count * size;
    }
}

const char *abc_scope_text(abc_scope scope) {
    static const char *const texts[] = {"con", "uni", "var", "vtx", "fvr"};
    return texts[scope];
}

/* ---------------------------------------------------------------- schema objects */

/* An object with its schema compound. The base type is that of shapes; transforms have none. */
static abc_status abc_schema_create(abc_wobject *parent, const char *name, const char *schema,
                                    const char *compound, bool shape, abc_wobject **object,
                                    abc_wproperty **properties) {
    char title[64];
    snprintf(title, sizeof title, "%s:%s", schema, compound);
    const abc_pair pairs[] = {{"schema", schema},
                              {"schemaBaseType", shape ? "AbcGeom_GeomBase_v1" : NULL},
                              {"schemaObjTitle", title}};
    const abc_metadata metadata = {pairs, 3};
    abc_status status = abc_wobject_create(parent, name, &metadata, object);
    if (status < 0)
        return status;
    const abc_wproperty_def def = {.name = compound, .kind = ABC_COMPOUND, .metadata = {pairs, 2}};
    return abc_wproperty_create(abc_wobject_properties(*object), &def, properties);
}

static abc_status abc_create_bounds(abc_wproperty *parent, uint32_t time_sampling,
                                    abc_wproperty **bounds) {
    static const abc_pair box = {"interpretation", "box"};
    const abc_wproperty_def def = {".selfBnds", ABC_SCALAR,    ABC_DOUBLE,
                                   6,           time_sampling, {&box, 1}};
    return abc_wproperty_create(parent, &def, bounds);
}

static abc_status abc_create_plain(abc_wproperty *parent, const char *name, abc_kind kind,
                                   abc_pod pod, uint32_t extent, uint32_t time_sampling,
                                   abc_wproperty **out) {
    const abc_wproperty_def def = {name, kind, pod, extent, time_sampling, {NULL, 0}};
    return abc_wproperty_create(parent, &def, out);
}

/* Not even the corners of a box: what the format stores for "nothing". */
static const double abc_empty_box[6] = {DBL_MAX, DBL_MAX, DBL_MAX, -DBL_MAX, -DBL_MAX, -DBL_MAX};

/* ---------------------------------------------------------------- xform */

struct abc_wxform {
    abc_hook hook;
    abc_writer *writer;
    abc_wobject *object;
    abc_wproperty *compound;
    uint32_t time_sampling;
    abc_wproperty *inherits;
    abc_wproperty *ops;
    abc_wproperty *values;
    abc_wproperty *moves; /* isNotConstantIdentity */
    double first[16];
    bool animated[16];
    bool done;
};

/* `.animChans`: which of the 16 numbers ever changed; only known at the end. */
static abc_status abc_wxform_finish(abc_hook *hook) {
    abc_wxform *xform = (abc_wxform *)(void *)hook;
    uint32_t channels[16];
    uint64_t count = 0;
    abc_wproperty *property = NULL;
    for (uint32_t i = 0; i < 16; i++)
        if (xform->animated[i])
            channels[count++] = i;
    if (count == 0 || xform->done)
        return ABC_OK;
    xform->done = true;
    abc_status status = abc_create_plain(xform->compound, ".animChans", ABC_ARRAY, ABC_UINT32, 1,
                                         xform->time_sampling, &property);
    return status < 0 ? status : abc_wproperty_write(property, channels, count);
}

static void abc_wxform_release(abc_hook *hook) {
    (void)hook; /* all its memory is in the arena */
}

abc_status abc_wxform_create(abc_wobject *parent, const char *name, uint32_t time_sampling,
                             abc_wxform **out) {
    if (!parent || !out)
        return ABC_MISUSE;
    *out = NULL;
    abc_writer *writer = parent->writer;
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if (time_sampling >= writer->sampling_count)
        return abc_fail(&writer->core, ABC_INVALID, "there is no time sampling %u; add it first",
                        time_sampling);
    abc_wxform *xform = abc_arena(&writer->core, 1, sizeof *xform);
    if (!xform)
        return abc_writer_keep(writer, abc_fail_memory(&writer->core, "an xform", sizeof *xform));
    status = abc_schema_create(parent, name, "AbcGeom_Xform_v3", ".xform", false, &xform->object,
                               &xform->compound);
    if (status < 0)
        return status;
    xform->writer = writer;
    xform->time_sampling = time_sampling;
    xform->hook = (abc_hook){abc_wxform_finish, abc_wxform_release, NULL};
    abc_writer_add_hook(writer, &xform->hook);
    *out = xform;
    return ABC_OK;
}

abc_wobject *abc_wxform_object(abc_wxform *xform) {
    return xform ? xform->object : NULL;
}

abc_status abc_wxform_write(abc_wxform *xform, const double matrix[16], bool inherits) {
    static const uint8_t op = ABC_OP_MATRIX, yes = 1;
    if (!xform || !matrix)
        return ABC_MISUSE;
    abc_writer *writer = xform->writer;
    const uint32_t sampling = xform->time_sampling;
    const uint8_t inherit = inherits;
    double m[16];
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    for (int i = 0; i < 16; i++)
        if (!isfinite(matrix[i]))
            return abc_writer_at(
                writer, xform->object, NULL,
                abc_fail(&writer->core, ABC_INVALID, "matrix entry %d is not a finite number", i));
    abc_turn_matrix(matrix, m, writer->options.z_up, writer->options.scale, false);
    if (!xform->values) {
        status = abc_create_plain(xform->compound, ".inherits", ABC_SCALAR, ABC_BOOL, 1, sampling,
                                  &xform->inherits);
        if (status >= 0)
            status =
                abc_create_plain(xform->compound, ".ops", ABC_SCALAR, ABC_UINT8, 1, 0, &xform->ops);
        if (status >= 0)
            status = abc_create_plain(xform->compound, ".vals", ABC_SCALAR, ABC_DOUBLE, 16,
                                      sampling, &xform->values);
        memcpy(xform->first, m, sizeof m);
    }
    bool identity = true;
    for (int i = 0; i < 16; i++) {
        identity = identity && fabs(m[i] - (i % 5 == 0 ? 1.0 : 0.0)) <= ABC_XFORM_CLOSE;
        if (fabs(m[i] - xform->first[i]) > ABC_XFORM_CLOSE)
            xform->animated[i] = true;
    }
    if (status >= 0)
        status = abc_wproperty_write(xform->inherits, &inherit, 1);
    if (status >= 0)
        status = abc_wproperty_write(xform->ops, &op, 1);
    if (status >= 0)
        status = abc_wproperty_write(xform->values, m, 1);
    /* Readers take an xform without this for the identity, whatever its values. */
    if (status >= 0 && !identity && !xform->moves) {
        status = abc_create_plain(xform->compound, "isNotConstantIdentity", ABC_SCALAR, ABC_BOOL, 1,
                                  0, &xform->moves);
        if (status >= 0)
            status = abc_wproperty_write(xform->moves, &yes, 1);
    }
    return status;
}

/* ---------------------------------------------------------------- mesh */

/* One per-item array of a mesh: velocities, uvs, normals or a parameter. */
struct abc_wparam {
    abc_wmesh *mesh;
    abc_wproperty *values;
    abc_wproperty *indices; /* null: not indexed */
    abc_scope scope;
    abc_turn turn;
    size_t items; /* of the last sample given */
    abc_wparam *next;
};

struct abc_wmesh {
    abc_hook hook;
    abc_writer *writer;
    abc_wobject *object;
    abc_wproperty *geom;
    abc_wproperty *bounds;
    abc_wproperty *positions;
    abc_wproperty *face_indices;
    abc_wproperty *face_counts;
    abc_wproperty *arbitrary;
    uint32_t time_sampling;
    const char *uv_name;
    abc_wparam *velocities;
    abc_wparam *uvs;
    abc_wparam *normals;
    abc_wparam *params; /* all of them, the three above included */
    abc_bytes counts;   /* int32: corners per face of the current topology */
    size_t point_count;
    size_t corner_count;
    int32_t highest; /* point the topology uses, -1 without any */
    uint64_t samples;
};

static size_t abc_mesh_faces(const abc_wmesh *mesh) {
    return mesh->counts.size / sizeof(int32_t);
}

static const int32_t *abc_mesh_counts(const abc_wmesh *mesh) {
    return (const int32_t *)(const void *)mesh->counts.data;
}

static size_t abc_mesh_items(const abc_wmesh *mesh, abc_scope scope) {
    switch (scope) {
    case ABC_SCOPE_MESH: return 1;
    case ABC_SCOPE_FACE: return abc_mesh_faces(mesh);
    case ABC_SCOPE_VARYING:
    case ABC_SCOPE_POINT: return mesh->point_count;
    case ABC_SCOPE_CORNER: break;
    }
    return mesh->corner_count;
}

/* Gives a parameter the samples it was left out of, up to `samples` in all: its last value while
 * that fits the current mesh, nothing otherwise. */
static abc_status abc_catch_up(abc_wparam *param, uint64_t samples) {
    bool fits = param->values->samples && param->items == abc_mesh_items(param->mesh, param->scope);
    abc_status status = ABC_OK;
    while (status >= 0 && param->values->samples < samples) {
        status = fits ? abc_wproperty_repeat(param->values)
                      : abc_wproperty_write(param->values, NULL, 0);
        if (status >= 0 && param->indices)
            status = fits ? abc_wproperty_repeat(param->indices)
                          : abc_wproperty_write(param->indices, NULL, 0);
        if (!fits)
            param->items = SIZE_MAX;
    }
    return status;
}

static abc_status abc_wmesh_catch_up(abc_wmesh *mesh) {
    abc_status status = ABC_OK;
    for (abc_wparam *param = mesh->params; status >= 0 && param; param = param->next)
        status = abc_catch_up(param, mesh->samples);
    return status;
}

static abc_status abc_wmesh_finish(abc_hook *hook) {
    return abc_wmesh_catch_up((abc_wmesh *)(void *)hook);
}

static void abc_wmesh_release(abc_hook *hook) {
    abc_wmesh *mesh = (abc_wmesh *)(void *)hook;
    abc_bytes_free(&mesh->writer->core, &mesh->counts);
}

abc_status abc_wmesh_create(abc_wobject *parent, const abc_wmesh_def *def, abc_wmesh **out) {
    static const abc_pair point[] = {{"geoScope", "vtx"}, {"interpretation", "point"}};
    if (!parent || !def || !out)
        return ABC_MISUSE;
    *out = NULL;
    abc_writer *writer = parent->writer;
    abc_core *core = &writer->core;
    const uint32_t sampling = def->time_sampling;
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if (sampling >= writer->sampling_count)
        return abc_fail(core, ABC_INVALID, "there is no time sampling %u; add it first", sampling);
    if (def->uv_name && strpbrk(def->uv_name, ";="))
        return abc_fail(core, ABC_INVALID, "the UV map's name '%.100s' holds ';' or '='; rename it",
                        def->uv_name);
    abc_wmesh *mesh = abc_arena(core, 1, sizeof *mesh);
    if (mesh && def->uv_name)
        mesh->uv_name = abc_arena_text(core, def->uv_name, strlen(def->uv_name));
    if (!mesh || (def->uv_name && !mesh->uv_name))
        return abc_writer_keep(writer, abc_fail_memory(core, "a mesh", sizeof *mesh));
    status = abc_schema_create(parent, def->name, "AbcGeom_PolyMesh_v1", ".geom", true,
                               &mesh->object, &mesh->geom);
    if (status >= 0)
        status = abc_create_bounds(mesh->geom, sampling, &mesh->bounds);
    const abc_wproperty_def positions = {"P", ABC_ARRAY, ABC_FLOAT, 3, sampling, {point, 2}};
    if (status >= 0)
        status = abc_wproperty_create(mesh->geom, &positions, &mesh->positions);
    if (status >= 0)
        status = abc_create_plain(mesh->geom, ".faceIndices", ABC_ARRAY, ABC_INT32, 1, sampling,
                                  &mesh->face_indices);
    if (status >= 0)
        status = abc_create_plain(mesh->geom, ".faceCounts", ABC_ARRAY, ABC_INT32, 1, sampling,
                                  &mesh->face_counts);
    if (status < 0)
        return status;
    mesh->writer = writer;
    mesh->time_sampling = sampling;
    mesh->highest = -1;
    mesh->hook = (abc_hook){abc_wmesh_finish, abc_wmesh_release, NULL};
    abc_writer_add_hook(writer, &mesh->hook);
    *out = mesh;
    return ABC_OK;
}

abc_wobject *abc_wmesh_object(abc_wmesh *mesh) {
    return mesh ? mesh->object : NULL;
}

uint64_t abc_wmesh_samples(const abc_wmesh *mesh) {
    return mesh ? mesh->samples : 0;
}

static abc_status abc_param_link(abc_wmesh *mesh, abc_wparam **out, abc_scope scope,
                                 abc_turn turn) {
    abc_wparam *param = abc_arena(&mesh->writer->core, 1, sizeof *param);
    *out = param;
    if (!param)
        return abc_writer_keep(
            mesh->writer, abc_fail_memory(&mesh->writer->core, "a mesh parameter", sizeof *param));
    param->mesh = mesh;
    param->scope = scope;
    param->turn = turn;
    return ABC_OK;
}

/* The property or the compound of values and indices of a geometry parameter. */
static abc_status abc_param_create(abc_wmesh *mesh, abc_wproperty *parent,
                                   const abc_wparam_def *def, abc_wparam **out) {
    enum { OWN = 6 };
    abc_core *core = &mesh->writer->core;
    char extent[16];
    snprintf(extent, sizeof extent, "%u", def->extent);
    size_t count = OWN + def->extra.count;
    abc_pair *pairs = abc_arena(core, count, sizeof *pairs);
    abc_wparam *param = NULL;
    *out = NULL;
    if (!pairs)
        return abc_writer_keep(mesh->writer,
                               abc_fail_memory(core, "a mesh parameter", count * sizeof *pairs));
    pairs[0] = (abc_pair){"arrayExtent", "1"};
    pairs[1] = (abc_pair){"geoScope", abc_scope_text(def->scope)};
    pairs[2] = (abc_pair){"interpretation", def->interpretation};
    pairs[3] = (abc_pair){"isGeomParam", "true"};
    pairs[4] = (abc_pair){"podExtent", extent};
    pairs[5] = (abc_pair){"podName", abc_pod_name(def->pod)};
    if (def->extra.count)
        memcpy(pairs + OWN, def->extra.pairs, def->extra.count * sizeof *pairs);
    abc_wproperty_def values = {def->name,   ABC_ARRAY,           def->pod,
                                def->extent, mesh->time_sampling, {pairs, count}};
    abc_status status = abc_param_link(mesh, &param, def->scope, def->turn);
    if (status >= 0 && def->indexed) {
        const abc_wproperty_def compound = {
            .name = def->name, .kind = ABC_COMPOUND, .metadata = {pairs, count}};
        status = abc_wproperty_create(parent, &compound, &parent);
        values.name = ".vals";
    }
    if (status >= 0)
        status = abc_wproperty_create(parent, &values, &param->values);
    if (status >= 0 && def->indexed)
        status = abc_create_plain(parent, ".indices", ABC_ARRAY, ABC_UINT32, 1, mesh->time_sampling,
                                  &param->indices);
    if (status < 0)
        return status;
    param->next = mesh->params;
    mesh->params = param;
    *out = param;
    return ABC_OK;
}

/* Checks values against the numbers of items the mesh has or is about to have. */
static abc_status abc_check_values(abc_wmesh *mesh, const char *name, const abc_values *v,
                                   size_t items) {
    abc_core *core = &mesh->writer->core;
    size_t given = v->indices ? v->index_count : v->value_count;
    if (given != items)
        return abc_fail(core, ABC_INVALID, "%s: %llu items given, the mesh has %llu", name,
                        (unsigned long long)given, (unsigned long long)items);
    for (size_t i = 0; v->indices && i < v->index_count; i++)
        if (v->indices[i] >= v->value_count)
            return abc_fail(core, ABC_INVALID, "%s: index %llu is %u, there are %llu values", name,
                            (unsigned long long)i, v->indices[i],
                            (unsigned long long)v->value_count);
    return ABC_OK;
}

/* A copy in the writer's scratch that may be changed. */
static abc_status abc_scratch_copy(abc_writer *writer, const void *data, size_t size) {
    writer->scratch.size = 0;
    return abc_bytes_append(&writer->core, &writer->scratch, data, size);
}

/* Appends a checked sample of a parameter, turned and with reversed faces as the options say. */
static abc_status abc_param_put(abc_wparam *param, const abc_values *v) {
    abc_wmesh *mesh = param->mesh;
    abc_writer *writer = mesh->writer;
    abc_wproperty *values = param->values;
    const abc_writer_options *options = &writer->options;
    const bool reverse = param->scope == ABC_SCOPE_CORNER && !options->keep_winding;
    const size_t element =
        values->extent * (values->pod >= ABC_STRING ? sizeof(char *) : abc_pod_size(values->pod));
    const double scale = param->turn == ABC_TURN_POINT ? options->scale : 1.0;
    const void *data = v->values;
    abc_status status = abc_catch_up(param, mesh->samples - 1);
    if (status >= 0 && v->value_count && ((reverse && !param->indices) || param->turn)) {
        status = abc_scratch_copy(writer, data, v->value_count * element);
        if (status < 0)
            return status;
        void *copy = writer->scratch.data;
        if (param->turn && values->pod == ABC_FLOAT)
            abc_turn_floats(copy, copy, v->value_count, options->z_up, scale, false);
        else if (param->turn)
            abc_turn_doubles(copy, copy, v->value_count, options->z_up, scale, false);
        if (reverse && !param->indices)
            abc_reverse_faces(abc_mesh_counts(mesh), abc_mesh_faces(mesh), copy, element);
        data = copy;
    }
    if (status >= 0)
        status = abc_wproperty_write(values, data, v->value_count);
    param->items = param->indices ? v->index_count : v->value_count;
    if (status < 0 || !param->indices)
        return status;
    data = v->indices;
    if (reverse && v->index_count) {
        status = abc_scratch_copy(writer, v->indices, v->index_count * sizeof *v->indices);
        if (status < 0)
            return status;
        abc_reverse_faces(abc_mesh_counts(mesh), abc_mesh_faces(mesh), writer->scratch.data,
                          sizeof *v->indices);
        data = writer->scratch.data;
    }
    return abc_wproperty_write(param->indices, data, v->index_count);
}

static abc_status abc_check_finite(abc_wmesh *mesh, const char *what, const float *values,
                                   size_t count) {
    for (size_t i = 0; i < 3 * count; i++)
        if (!isfinite(values[i]))
            return abc_fail(&mesh->writer->core, ABC_INVALID,
                            "%s of point %llu is not finite; the simulation went wrong before this "
                            "frame",
                            what, (unsigned long long)(i / 3));
    return ABC_OK;
}

/* Refuses faces an importer would choke on; gives the highest point used. */
static abc_status abc_check_topology(abc_wmesh *mesh, const abc_mesh_data *data, size_t point_count,
                                     int32_t *highest) {
    abc_core *core = &mesh->writer->core;
    uint64_t corners = 0;
    for (size_t i = 0; i < data->face_count; i++) {
        if (data->face_counts[i] < 3)
            return abc_fail(core, ABC_INVALID, "face %llu has %d corners; at least 3 are needed",
                            (unsigned long long)i, (int)data->face_counts[i]);
        corners += (uint64_t)data->face_counts[i];
    }
    if (corners != data->corner_count)
        return abc_fail(core, ABC_INVALID, "the faces have %llu corners but %llu indices are given",
                        (unsigned long long)corners, (unsigned long long)data->corner_count);
    *highest = -1;
    for (size_t i = 0; i < data->corner_count; i++) {
        int32_t point = data->face_indices[i];
        if (point < 0 || (size_t)point >= point_count)
            return abc_fail(core, ABC_INVALID, "corner %llu uses point %d of %llu",
                            (unsigned long long)i, (int)point, (unsigned long long)point_count);
        *highest = point > *highest ? point : *highest;
    }
    return ABC_OK;
}

/* Optional values that were there before must keep their form. */
static abc_status abc_check_optional(abc_wmesh *mesh, const char *name, const abc_wparam *param,
                                     const abc_values *v, size_t points, size_t faces,
                                     size_t corners) {
    if (!v->values)
        return ABC_OK;
    if ((unsigned)v->scope > ABC_SCOPE_CORNER ||
        (param && (param->scope != v->scope || !param->indices != !v->indices)))
        return abc_fail(&mesh->writer->core, ABC_INVALID,
                        "%s: scope and indexing are fixed by the first sample", name);
    size_t items = v->scope == ABC_SCOPE_MESH     ? 1
                   : v->scope == ABC_SCOPE_FACE   ? faces
                   : v->scope == ABC_SCOPE_CORNER ? corners
                                                  : points;
    return abc_check_values(mesh, name, v, items);
}

/* All checks of a sample, before anything is written. */
static abc_status abc_check_mesh(abc_wmesh *mesh, const abc_mesh_data *data, int32_t *highest) {
    abc_core *core = &mesh->writer->core;
    const bool moved = data->positions || mesh->samples == 0;
    const bool rebuilt = data->face_counts || mesh->samples == 0;
    const size_t points = moved ? data->point_count : mesh->point_count;
    const size_t faces = rebuilt ? data->face_count : abc_mesh_faces(mesh);
    const size_t corners = rebuilt ? data->corner_count : mesh->corner_count;
    abc_status status = ABC_OK;
    *highest = mesh->highest;
    if (!data->face_counts != !data->face_indices && (data->face_count || data->corner_count))
        return abc_fail(core, ABC_MISUSE, "face counts and face indices must be given together");
    if (moved && !data->positions && points)
        return abc_fail(core, ABC_MISUSE, "the first sample of a mesh needs positions");
    if (rebuilt && !data->face_counts && (faces || corners))
        return abc_fail(core, ABC_MISUSE, "the first sample of a mesh needs its faces");
    if (points > INT32_MAX || faces > INT32_MAX || corners > INT32_MAX)
        return abc_fail(core, ABC_INVALID, "meshes of 2^31 and more points or corners do not fit");
    if (data->positions)
        status = abc_check_finite(mesh, "the position", data->positions, points);
    if (status >= 0 && data->velocities)
        status = abc_check_finite(mesh, "the velocity", data->velocities, points);
    if (status >= 0 && rebuilt)
        status = abc_check_topology(mesh, data, points, highest);
    if (status >= 0 && *highest >= 0 && (size_t)*highest >= points)
        status = abc_fail(core, ABC_INVALID,
                          "the faces use point %d but only %llu positions are given; give the new "
                          "faces too",
                          (int)*highest, (unsigned long long)points);
    if (status >= 0)
        status = abc_check_optional(mesh, "uvs", mesh->uvs, &data->uvs, points, faces, corners);
    if (status >= 0)
        status = abc_check_optional(mesh, "normals", mesh->normals, &data->normals, points, faces,
                                    corners);
    return status;
}

/* Box of the stored floats, so that it holds for what readers will see. */
static void abc_box_of(const float *positions, size_t count, double box[6]) {
    memcpy(box, abc_empty_box, sizeof abc_empty_box);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 3; k++) {
            double x = positions[3 * i + k];
            box[k] = x < box[k] ? x : box[k];
            box[3 + k] = x > box[3 + k] ? x : box[3 + k];
        }
}

static abc_status abc_put_positions(abc_wmesh *mesh, const abc_mesh_data *data) {
    abc_writer *writer = mesh->writer;
    double box[6];
    if (!data->positions && mesh->samples) {
        abc_status status = abc_wproperty_repeat(mesh->positions);
        return status < 0 ? status : abc_wproperty_repeat(mesh->bounds);
    }
    abc_status status =
        abc_scratch_copy(writer, data->positions, 3 * data->point_count * sizeof(float));
    if (status < 0)
        return status;
    float *stored = (float *)(void *)writer->scratch.data;
    abc_turn_floats(stored, stored, data->point_count, writer->options.z_up, writer->options.scale,
                    false);
    mesh->point_count = data->point_count;
    abc_box_of(stored, data->point_count, box);
    status = abc_wproperty_write(mesh->positions, stored, data->point_count);
    return status < 0 ? status : abc_wproperty_write(mesh->bounds, box, 1);
}

static abc_status abc_put_topology(abc_wmesh *mesh, const abc_mesh_data *data, int32_t highest) {
    abc_writer *writer = mesh->writer;
    abc_core *core = &writer->core;
    if (!data->face_counts && mesh->samples) {
        abc_status status = abc_wproperty_repeat(mesh->face_indices);
        return status < 0 ? status : abc_wproperty_repeat(mesh->face_counts);
    }
    mesh->counts.size = 0;
    abc_status status = abc_bytes_append(core, &mesh->counts, data->face_counts,
                                         data->face_count * sizeof(int32_t));
    if (status >= 0)
        status = abc_scratch_copy(writer, data->face_indices, data->corner_count * sizeof(int32_t));
    if (status < 0)
        return status;
    mesh->corner_count = data->corner_count;
    mesh->highest = highest;
    if (!writer->options.keep_winding)
        abc_reverse_faces(abc_mesh_counts(mesh), abc_mesh_faces(mesh), writer->scratch.data,
                          sizeof(int32_t));
    status = abc_wproperty_write(mesh->face_indices, writer->scratch.data, data->corner_count);
    return status < 0 ? status
                      : abc_wproperty_write(mesh->face_counts, data->face_counts, data->face_count);
}

/* uvs and normals: made at the first sample that has them. */
static abc_status abc_put_optional(abc_wmesh *mesh, abc_wparam **param, const abc_wparam_def *form,
                                   const abc_values *v) {
    abc_status status = ABC_OK;
    if (!v->values)
        return ABC_OK;
    if (!*param) {
        abc_wparam_def def = *form;
        def.scope = v->scope;
        def.indexed = v->indices != NULL;
        status = abc_param_create(mesh, mesh->geom, &def, param);
    }
    return status < 0 ? status : abc_param_put(*param, v);
}

static abc_status abc_put_velocities(abc_wmesh *mesh, const float *velocities) {
    static const abc_pair vector = {"interpretation", "vector"};
    const abc_wproperty_def def = {".velocities",       ABC_ARRAY,   ABC_FLOAT, 3,
                                   mesh->time_sampling, {&vector, 1}};
    if (!velocities)
        return ABC_OK;
    if (!mesh->velocities) {
        abc_wparam *param = NULL;
        abc_status status = abc_param_link(mesh, &param, ABC_SCOPE_POINT, ABC_TURN_POINT);
        if (status >= 0)
            status = abc_wproperty_create(mesh->geom, &def, &param->values);
        if (status < 0)
            return status;
        param->next = mesh->params;
        mesh->params = mesh->velocities = param;
    }
    const abc_values v = {.values = velocities, .value_count = mesh->point_count};
    return abc_param_put(mesh->velocities, &v);
}

abc_status abc_wmesh_write(abc_wmesh *mesh, const abc_mesh_data *data) {
    if (!mesh || !data)
        return ABC_MISUSE;
    abc_writer *writer = mesh->writer;
    int32_t highest = -1;
    const abc_pair source = {"sourceName", mesh->uv_name};
    const abc_wparam_def uvs = {.name = "uv",
                                .pod = ABC_FLOAT,
                                .extent = 2,
                                .interpretation = "vector",
                                .extra = {&source, mesh->uv_name ? 1 : 0}};
    const abc_wparam_def normals = {.name = "N",
                                    .pod = ABC_FLOAT,
                                    .extent = 3,
                                    .interpretation = "normal",
                                    .turn = ABC_TURN_DIRECTION};
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    status = abc_check_mesh(mesh, data, &highest);
    if (status < 0)
        return abc_writer_at(writer, mesh->object, NULL, status);
    status = abc_wmesh_catch_up(mesh);
    if (status >= 0)
        status = abc_put_positions(mesh, data);
    if (status >= 0)
        status = abc_put_topology(mesh, data, highest);
    mesh->samples++;
    if (status >= 0)
        status = abc_put_velocities(mesh, data->velocities);
    if (status >= 0)
        status = abc_put_optional(mesh, &mesh->uvs, &uvs, &data->uvs);
    if (status >= 0)
        status = abc_put_optional(mesh, &mesh->normals, &normals, &data->normals);
    /* The checks left only writing and memory to fail, and after either nothing may follow. */
    if (status < 0 && writer->failed == ABC_OK)
        writer->failed = status;
    return status;
}

abc_status abc_wmesh_add_param(abc_wmesh *mesh, const abc_wparam_def *def, abc_wparam **out) {
    if (!mesh || !def || !out)
        return ABC_MISUSE;
    *out = NULL;
    abc_writer *writer = mesh->writer;
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if ((unsigned)def->scope > ABC_SCOPE_CORNER || (unsigned)def->turn > ABC_TURN_POINT ||
        (def->turn && (def->extent != 3 || (def->pod != ABC_FLOAT && def->pod != ABC_DOUBLE))))
        return abc_writer_at(writer, mesh->object, def->name,
                             abc_fail(&writer->core, ABC_INVALID,
                                      "only float or double parameters of extent 3 can turn"));
    if (!mesh->arbitrary) {
        const abc_wproperty_def compound = {.name = ".arbGeomParams", .kind = ABC_COMPOUND};
        status = abc_wproperty_create(mesh->geom, &compound, &mesh->arbitrary);
        if (status < 0)
            return status;
    }
    return abc_param_create(mesh, mesh->arbitrary, def, out);
}

abc_status abc_wparam_write(abc_wparam *param, const void *values, size_t value_count,
                            const uint32_t *indices, size_t index_count) {
    if (!param)
        return ABC_MISUSE;
    abc_wmesh *mesh = param->mesh;
    abc_writer *writer = mesh->writer;
    const char *name = param->indices ? param->values->parent->name : param->values->name;
    const abc_values v = {values, value_count, indices, index_count, param->scope};
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if (mesh->samples == 0 || param->values->samples >= mesh->samples)
        status = abc_fail(&writer->core, ABC_MISUSE,
                          "write the mesh's sample first, then each parameter once");
    else if (!param->indices != !indices || (!values && value_count))
        status = abc_fail(&writer->core, ABC_INVALID,
                          param->indices ? "this parameter needs indices"
                                         : "this parameter takes "
                                           "values, no indices");
    else
        status = abc_check_values(mesh, "values", &v, abc_mesh_items(mesh, param->scope));
    if (status < 0)
        return abc_writer_at(writer, mesh->object, name, status);
    status = abc_param_put(param, &v);
    if (status < 0 && writer->failed == ABC_OK)
        writer->failed = status;
    return status;
}

/* ---------------------------------------------------------------- face sets */

struct abc_wfaceset {
    abc_wmesh *mesh;
    abc_wobject *object;
    abc_wproperty *bounds;
    abc_wproperty *faces;
    abc_wproperty *exclusive; /* null: not */
};

abc_status abc_wmesh_add_faceset(abc_wmesh *mesh, const char *name, bool exclusive,
                                 uint32_t time_sampling, abc_wfaceset **out) {
    if (!mesh || !out)
        return ABC_MISUSE;
    *out = NULL;
    abc_writer *writer = mesh->writer;
    abc_wproperty *compound = NULL;
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if (time_sampling >= writer->sampling_count)
        return abc_fail(&writer->core, ABC_INVALID, "there is no time sampling %u; add it first",
                        time_sampling);
    abc_wfaceset *set = abc_arena(&writer->core, 1, sizeof *set);
    if (!set)
        return abc_writer_keep(writer, abc_fail_memory(&writer->core, "a face set", sizeof *set));
    set->mesh = mesh;
    status = abc_schema_create(mesh->object, name, "AbcGeom_FaceSet_v1", ".faceset", true,
                               &set->object, &compound);
    if (status >= 0)
        status = abc_create_bounds(compound, time_sampling, &set->bounds);
    if (status >= 0)
        status = abc_create_plain(compound, ".faces", ABC_ARRAY, ABC_INT32, 1, time_sampling,
                                  &set->faces);
    if (status >= 0 && exclusive)
        status = abc_create_plain(compound, ".facesExclusive", ABC_SCALAR, ABC_UINT32, 1,
                                  time_sampling, &set->exclusive);
    if (status >= 0)
        *out = set;
    return status;
}

abc_status abc_wfaceset_write(abc_wfaceset *set, const int32_t *faces, size_t face_count) {
    static const uint32_t yes = 1;
    if (!set || (!faces && face_count))
        return ABC_MISUSE;
    abc_writer *writer = set->mesh->writer;
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    /* A set given before its mesh's first sample cannot be checked. */
    for (size_t i = 0; i < face_count; i++)
        if (faces[i] < 0 || (set->mesh->samples && (size_t)faces[i] >= abc_mesh_faces(set->mesh)))
            return abc_writer_at(writer, set->object, NULL,
                                 abc_fail(&writer->core, ABC_INVALID, "face %d of %llu",
                                          (int)faces[i],
                                          (unsigned long long)abc_mesh_faces(set->mesh)));
    status = abc_wproperty_write(set->bounds, abc_empty_box, 1);
    if (status >= 0)
        status = abc_wproperty_write(set->faces, faces, face_count);
    if (status >= 0 && set->exclusive)
        status = abc_wproperty_write(set->exclusive, &yes, 1);
    return status;
}
