/* Reading geometry: Xform, PolyMesh and SubD, their parameters, FaceSets and visibility, checked
 * and brought into the caller's space.
 *
 * What a caller would index with (corner counts, face and value indices) is checked against what it
 * indexes before it is handed out. Positions and topology must be right; optional parts that are
 * not are left out with a warning, so that one bad UV map does not cost the artist the mesh.
 */
#include "abc_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const char ABC_DAMAGED[] = "the file is damaged, export it again";

/* ---------------------------------------------------------------- helpers */

static bool abc_is(const abc_property *p, abc_kind kind, abc_pod pod, uint32_t extent) {
    return p && p->kind == kind && p->pod == pod && p->extent == extent;
}

static const double abc_pi = 3.14159265358979323846;

/* The schema compound of an object of the right kind. */
static abc_status abc_schema_compound(abc_reader *reader, abc_object *object, const char *name,
                                      bool fits, const char *kind, abc_property **compound) {
    abc_property *top = NULL;
    *compound = NULL;
    if (!reader || !object)
        return ABC_MISUSE;
    if (!fits) {
        abc_fail(&reader->core, ABC_MISSING, "this is no %s", kind);
        return abc_reader_at(reader, object, NULL, ABC_MISSING);
    }
    abc_status status = abc_object_properties(reader, object, &top);
    if (status < 0)
        return status;
    *compound = abc_property_find(top, name);
    if (!*compound || (*compound)->kind != ABC_COMPOUND) {
        abc_fail(&reader->core, ABC_FORMAT, "the %s has no compound '%s'; %s", kind, name,
                 ABC_DAMAGED);
        *compound = NULL;
        return abc_reader_at(reader, object, NULL, ABC_FORMAT);
    }
    return ABC_OK;
}

/* Properties may have fewer samples than their mesh: the last one counts on. */
static abc_status abc_read_clamped(abc_reader *reader, abc_property *p, uint64_t index,
                                   abc_sample *sample) {
    if (p->samples && index >= p->samples)
        index = p->samples - 1;
    return abc_property_read(reader, p, index, sample);
}

/* Turns the failure of an optional part into a warning; lack of memory or disk stays a failure. */
static abc_status abc_forgive(abc_status status) {
    return status == ABC_FORMAT || status == ABC_INVALID || status == ABC_MISSING ? ABC_WARNING
                                                                                  : status;
}

/* The worse of what came before and a new status: failures over warnings over fine. */
static abc_status abc_worse(abc_status before, abc_status status) {
    return status < 0 || before == ABC_OK ? status : before;
}

/* ---------------------------------------------------------------- xform */

abc_status abc_xform_get_info(abc_reader *reader, abc_object *object, abc_xform_info *info) {
    abc_property *compound = NULL;
    *info = (abc_xform_info){.constant = true, .identity = true};
    abc_status status = abc_schema_compound(
        reader, object, ".xform", object && object->schema == ABC_SCHEMA_XFORM, "xform", &compound);
    if (status < 0)
        return status;
    const abc_property *inherits = abc_property_find(compound, ".inherits");
    const abc_property *values = abc_property_find(compound, ".vals");
    if (inherits) {
        info->samples = inherits->samples;
        info->time_sampling = inherits->time_sampling;
        info->constant = inherits->first == 0;
    }
    if (values)
        info->constant = info->constant && values->first == 0;
    info->identity = !abc_property_find(compound, "isNotConstantIdentity");
    return ABC_OK;
}

static const double abc_identity[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

/* result = a * b for row vectors: a acts first. */
static void abc_multiply(const double a[16], const double b[16], double result[16]) {
    double m[16];
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            m[4 * r + c] = 0.0;
            for (int k = 0; k < 4; k++)
                m[4 * r + c] += a[4 * r + k] * b[4 * k + c];
        }
    memcpy(result, m, sizeof m);
}

/* Rotation about an axis by an angle in degrees, for row vectors. */
static void abc_rotation(double x, double y, double z, double degrees, double m[16]) {
    double length = sqrt(x * x + y * y + z * z);
    if (length > 0.0) {
        x /= length;
        y /= length;
        z /= length;
    }
    double s = sin(degrees * abc_pi / 180.0), c = cos(degrees * abc_pi / 180.0), t = 1.0 - c;
    const double rotation[16] = {x * x * t + c,
                                 x * y * t + z * s,
                                 x * z * t - y * s,
                                 0.0, /* image of x */
                                 x * y * t - z * s,
                                 y * y * t + c,
                                 y * z * t + x * s,
                                 0.0, /* of y */
                                 x * z * t + y * s,
                                 y * z * t - x * s,
                                 z * z * t + c,
                                 0.0, /* of z */
                                 0.0,
                                 0.0,
                                 0.0,
                                 1.0};
    memcpy(m, rotation, sizeof rotation);
}

enum { ABC_OP_SCALE, ABC_OP_TRANSLATE, ABC_OP_ROTATE, ABC_OP_MATRIX, ABC_OP_X, ABC_OP_Y, ABC_OP_Z };

/* Matrix of one operation from its channels. */
static void abc_operation(int type, const double *v, double m[16]) {
    memcpy(m, abc_identity, sizeof abc_identity);
    switch (type) {
    case ABC_OP_SCALE:
        m[0] = v[0];
        m[5] = v[1];
        m[10] = v[2];
        break;
    case ABC_OP_TRANSLATE: memcpy(m + 12, v, 3 * sizeof *v); break;
    case ABC_OP_ROTATE: abc_rotation(v[0], v[1], v[2], v[3], m); break;
    case ABC_OP_MATRIX: memcpy(m, v, 16 * sizeof *v); break;
    case ABC_OP_X: abc_rotation(1.0, 0.0, 0.0, v[0], m); break;
    case ABC_OP_Y: abc_rotation(0.0, 1.0, 0.0, v[0], m); break;
    case ABC_OP_Z: abc_rotation(0.0, 0.0, 1.0, v[0], m); break;
    }
}

/* The operations of a sample multiplied up; the last in the list acts on points first. */
static abc_status abc_compose(abc_reader *reader, abc_property *compound, uint64_t index,
                              abc_sample *ops, abc_sample *values, double m[16]) {
    static const size_t channels[] = {3, 3, 4, 16, 1, 1, 1};
    abc_property *op = abc_property_find(compound, ".ops");
    abc_property *value = abc_property_find(compound, ".vals");
    if (!op)
        return ABC_OK;
    if (op->kind != ABC_SCALAR || op->pod != ABC_UINT8 || !value || value->pod != ABC_DOUBLE ||
        (value->kind == ABC_ARRAY && value->extent != 1))
        return abc_reader_at(reader, compound->object, compound,
                             abc_fail(&reader->core, ABC_FORMAT,
                                      "its operations are not of the right type; %s", ABC_DAMAGED));
    abc_status status = abc_read_clamped(reader, op, index, ops);
    if (status >= 0)
        status = abc_read_clamped(reader, value, index, values);
    if (status < 0)
        return status;
    const uint8_t *types = ops->data;
    const double *v = values->data;
    size_t left = values->size / sizeof *v;
    for (size_t i = 0; i < ops->size; i++) {
        int type = types[i] >> 4;
        double step[16];
        if (type > ABC_OP_Z || channels[type] > left)
            return abc_reader_at(reader, compound->object, compound,
                                 abc_fail(&reader->core, ABC_FORMAT,
                                          "operation %llu (type %d) %s; %s", (unsigned long long)i,
                                          type, type > ABC_OP_Z ? "is not known" : "lacks values",
                                          ABC_DAMAGED));
        abc_operation(type, v, step);
        abc_multiply(step, m, m);
        v += channels[type];
        left -= channels[type];
    }
    return ABC_OK;
}

abc_status abc_xform_read(abc_reader *reader, abc_object *object, uint64_t index, double matrix[16],
                          bool *inherits) {
    abc_property *compound = NULL;
    abc_sample ops = {0}, values = {0};
    abc_xform_info info;
    memcpy(matrix, abc_identity, sizeof abc_identity);
    *inherits = true;
    abc_status status = abc_xform_get_info(reader, object, &info);
    if (status < 0)
        return status;
    status = abc_schema_compound(reader, object, ".xform", true, "xform", &compound);
    if (status < 0)
        return status;
    abc_property *inherit = abc_property_find(compound, ".inherits");
    if (inherit && inherit->samples) {
        if (!abc_is(inherit, ABC_SCALAR, ABC_BOOL, 1)) {
            status = abc_fail(&reader->core, ABC_FORMAT, "it is no bool; %s", ABC_DAMAGED);
            abc_reader_at(reader, object, inherit, status);
            goto out;
        }
        status = abc_read_clamped(reader, inherit, index, &ops);
        if (status < 0)
            goto out;
        *inherits = *(const uint8_t *)ops.data != 0;
    }
    if (!info.identity)
        status = abc_compose(reader, compound, index, &ops, &values, matrix);
    if (status >= 0)
        abc_turn_matrix(matrix, matrix, reader->options.z_up, reader->options.scale, true);
out:
    abc_sample_free(reader, &ops);
    abc_sample_free(reader, &values);
    return status;
}

/* ---------------------------------------------------------------- mesh */

/* The required properties of a mesh. */
typedef struct abc_mesh_parts {
    abc_property *geom;
    abc_property *positions;
    abc_property *indices;
    abc_property *counts;
} abc_mesh_parts;

static abc_status abc_mesh_find(abc_reader *reader, abc_object *object, abc_mesh_parts *parts) {
    bool fits =
        object && (object->schema == ABC_SCHEMA_POLYMESH || object->schema == ABC_SCHEMA_SUBD);
    *parts = (abc_mesh_parts){0};
    abc_status status =
        abc_schema_compound(reader, object, ".geom", fits, "polygon mesh", &parts->geom);
    if (status < 0)
        return status;
    parts->positions = abc_property_find(parts->geom, "P");
    parts->indices = abc_property_find(parts->geom, ".faceIndices");
    parts->counts = abc_property_find(parts->geom, ".faceCounts");
    const char *bad = !abc_is(parts->positions, ABC_ARRAY, ABC_FLOAT, 3) ? "P"
                      : !abc_is(parts->indices, ABC_ARRAY, ABC_INT32, 1) ? ".faceIndices"
                      : !abc_is(parts->counts, ABC_ARRAY, ABC_INT32, 1)  ? ".faceCounts"
                                                                         : NULL;
    if (!bad)
        return ABC_OK;
    abc_fail(&reader->core, ABC_FORMAT, "the mesh's '%s' is missing or of the wrong type; %s", bad,
             ABC_DAMAGED);
    return abc_reader_at(reader, object, NULL, ABC_FORMAT);
}

abc_status abc_mesh_get_info(abc_reader *reader, abc_object *object, abc_mesh_info *info) {
    abc_mesh_parts parts;
    *info = (abc_mesh_info){0};
    abc_status status = abc_mesh_find(reader, object, &parts);
    if (status < 0)
        return status;
    info->samples = parts.positions->samples;
    info->time_sampling = parts.positions->time_sampling;
    if (parts.indices->first || parts.counts->first)
        info->topology = ABC_CHANGING;
    else
        info->topology = parts.positions->first ? ABC_DEFORMING : ABC_STATIC;
    const abc_property *uvs = abc_property_find(parts.geom, "uv");
    const abc_property *params = abc_property_find(parts.geom, ".arbGeomParams");
    info->has_velocities = abc_property_find(parts.geom, ".velocities") != NULL;
    info->has_normals = abc_property_find(parts.geom, "N") != NULL;
    info->has_uvs = uvs != NULL;
    info->uv_name = uvs ? abc_metadata_get(uvs->metadata, "sourceName") : NULL;
    info->param_count = params ? params->child_count : 0;
    return ABC_OK;
}

abc_status abc_mesh_size(abc_reader *reader, abc_object *object, uint64_t index, uint64_t *points,
                         uint64_t *faces, uint64_t *corners) {
    abc_mesh_parts parts;
    abc_status status = abc_mesh_find(reader, object, &parts);
    if (status >= 0)
        status = abc_property_elements(reader, parts.positions, index, points);
    if (status >= 0)
        status = abc_property_elements(reader, parts.counts, index, faces);
    if (status >= 0)
        status = abc_property_elements(reader, parts.indices, index, corners);
    return status;
}

/* How many items of each kind a mesh sample has, and its corners per face. */
typedef struct abc_mesh_extent {
    uint64_t points;
    uint64_t faces;
    uint64_t corners;
    const int32_t *counts;
} abc_mesh_extent;

static abc_scope abc_scope_of(const abc_metadata *metadata) {
    const char *text = abc_metadata_get(metadata, "geoScope");
    for (int scope = ABC_SCOPE_MESH; text && scope <= ABC_SCOPE_CORNER; scope++)
        if (strcmp(text, abc_scope_text((abc_scope)scope)) == 0)
            return (abc_scope)scope;
    return ABC_SCOPE_MESH;
}

static uint64_t abc_items_of(const abc_mesh_extent *size, abc_scope scope) {
    switch (scope) {
    case ABC_SCOPE_MESH: return 1;
    case ABC_SCOPE_FACE: return size->faces;
    case ABC_SCOPE_VARYING:
    case ABC_SCOPE_POINT: return size->points;
    case ABC_SCOPE_CORNER: break;
    }
    return size->corners;
}

/* Checks a parameter sample against the mesh and brings it into the caller's space. */
static abc_status abc_param_settle(abc_reader *reader, const abc_property *param, abc_turn turn,
                                   const abc_mesh_extent *size, abc_param_sample *sample) {
    abc_core *core = &reader->core;
    const abc_reader_options *options = &reader->options;
    void *values = sample->storage[0].data;
    uint32_t *indices = sample->storage[1].data;
    const size_t count = sample->value_count;
    const char *per_item = abc_metadata_get(param->metadata, "arrayExtent");
    const bool reverse = sample->scope == ABC_SCOPE_CORNER && !options->keep_winding;
    const bool indexed = sample->index_count > 0;
    const double scale = turn == ABC_TURN_POINT ? options->scale : 1.0;
    for (size_t i = 0; i < sample->index_count; i++)
        if (indices[i] >= count)
            return abc_fail(core, ABC_FORMAT, "index %llu is %u, there are %llu values; %s",
                            (unsigned long long)i, indices[i], (unsigned long long)count,
                            ABC_DAMAGED);
    if (turn && sample->extent == 3 && sample->pod == ABC_FLOAT)
        abc_turn_floats(values, values, count, options->z_up, scale, true);
    else if (turn && sample->extent == 3 && sample->pod == ABC_DOUBLE)
        abc_turn_doubles(values, values, count, options->z_up, scale, true);
    sample->values = values;
    sample->indices = indexed ? indices : NULL;
    if (per_item && strcmp(per_item, "1") != 0)
        return abc_fail(core, ABC_WARNING, "it has %.20s values per item and is given as stored",
                        per_item);
    uint64_t items = indexed ? sample->index_count : count;
    if (items != abc_items_of(size, sample->scope)) {
        sample->values = NULL;
        sample->indices = NULL;
        return abc_fail(core, ABC_FORMAT, "%llu items for a mesh with %llu; export it again",
                        (unsigned long long)items,
                        (unsigned long long)abc_items_of(size, sample->scope));
    }
    if (reverse && indexed)
        abc_reverse_faces(size->counts, (size_t)size->faces, indices, sizeof *indices);
    else if (reverse && sample->pod < ABC_STRING)
        abc_reverse_faces(size->counts, (size_t)size->faces, values,
                          sample->extent * abc_pod_size(sample->pod));
    else if (reverse)
        return abc_fail(core, ABC_WARNING, "its texts per corner are given in the file's order");
    return ABC_OK;
}

/* A parameter is an array, or a compound of values and indices. No samples or an empty one: no
 * values, and no complaint. */
static abc_status abc_param_load(abc_reader *reader, abc_property *param, uint64_t index,
                                 abc_turn turn, const abc_mesh_extent *size,
                                 abc_param_sample *sample) {
    abc_property *values = param, *indices = NULL;
    sample->values = NULL;
    sample->indices = NULL;
    sample->value_count = sample->index_count = 0;
    if (param->kind == ABC_COMPOUND) {
        values = abc_property_find(param, ".vals");
        indices = abc_property_find(param, ".indices");
    }
    if (!values || values->kind != ABC_ARRAY ||
        (indices && !abc_is(indices, ABC_ARRAY, ABC_UINT32, 1))) {
        abc_fail(&reader->core, ABC_FORMAT, "this is no geometry parameter; %s", ABC_DAMAGED);
        return abc_reader_at(reader, param->object, param, ABC_FORMAT);
    }
    sample->pod = values->pod;
    sample->extent = values->extent;
    sample->scope = abc_scope_of(param->metadata);
    if (values->samples == 0)
        return ABC_OK;
    abc_status first = abc_read_clamped(reader, values, index, &sample->storage[0]);
    if (first < 0 || sample->storage[0].count == 0)
        return first;
    sample->value_count = (size_t)sample->storage[0].count;
    if (indices && indices->samples) {
        abc_status status = abc_read_clamped(reader, indices, index, &sample->storage[1]);
        if (status < 0)
            return status;
        sample->index_count = (size_t)sample->storage[1].count;
    }
    abc_status status = abc_param_settle(reader, param, turn, size, sample);
    return abc_worse(first, abc_reader_at(reader, param->object, param, status));
}

/* uvs or normals: any damage leaves them out. */
static abc_status abc_read_optional(abc_reader *reader, const abc_mesh_parts *parts,
                                    const char *name, uint32_t extent, abc_turn turn,
                                    uint64_t index, const abc_mesh_extent *size,
                                    abc_param_sample *sample) {
    abc_property *param = abc_property_find(parts->geom, name);
    sample->values = NULL;
    sample->indices = NULL;
    sample->value_count = sample->index_count = 0;
    if (!param)
        return ABC_OK;
    abc_status status = abc_param_load(reader, param, index, turn, size, sample);
    if (status >= 0 && sample->values && (sample->pod != ABC_FLOAT || sample->extent != extent)) {
        status = abc_fail(&reader->core, ABC_FORMAT, "%s x %u is not what is expected here; %s",
                          abc_pod_name(sample->pod), sample->extent, ABC_DAMAGED);
        abc_reader_at(reader, param->object, param, status);
    }
    if (status < 0) {
        sample->values = NULL;
        sample->indices = NULL;
        sample->value_count = sample->index_count = 0;
    }
    return abc_forgive(status);
}

static abc_status abc_read_velocities(abc_reader *reader, const abc_mesh_parts *parts,
                                      uint64_t index, abc_mesh_sample *sample) {
    abc_property *p = abc_property_find(parts->geom, ".velocities");
    abc_sample *storage = &sample->storage[3];
    if (!p || p->samples == 0)
        return ABC_OK;
    abc_status status = ABC_OK;
    if (!abc_is(p, ABC_ARRAY, ABC_FLOAT, 3))
        status =
            abc_fail(&reader->core, ABC_FORMAT, "velocities are not float x 3; %s", ABC_DAMAGED);
    if (status < 0)
        return abc_forgive(abc_reader_at(reader, p->object, p, status));
    status = abc_read_clamped(reader, p, index, storage);
    if (status < 0 || storage->count == 0)
        return abc_forgive(status);
    if (storage->count != sample->point_count) {
        status = abc_fail(&reader->core, ABC_FORMAT, "%llu velocities for %llu points; %s",
                          (unsigned long long)storage->count,
                          (unsigned long long)sample->point_count, ABC_DAMAGED);
        return abc_forgive(abc_reader_at(reader, p->object, p, status));
    }
    abc_turn_floats(storage->data, storage->data, sample->point_count, reader->options.z_up,
                    reader->options.scale, true);
    sample->velocities = storage->data;
    return ABC_OK;
}

/* Counts must be non-negative and indices stay below the point count. Corners left over after the
 * last face (one exporter in the wild writes them) and faces of fewer than three corners do no
 * harm: a warning. */
static abc_status abc_check_faces(abc_reader *reader, abc_mesh_sample *sample) {
    abc_core *core = &reader->core;
    uint64_t corners = 0;
    size_t thin = 0;
    for (size_t i = 0; i < sample->face_count; i++) {
        if (sample->face_counts[i] < 0)
            return abc_fail(core, ABC_FORMAT, "face %llu has %d corners; %s", (unsigned long long)i,
                            (int)sample->face_counts[i], ABC_DAMAGED);
        thin += sample->face_counts[i] < 3;
        corners += (uint64_t)sample->face_counts[i];
    }
    if (corners > sample->corner_count)
        return abc_fail(core, ABC_FORMAT, "the faces have %llu corners but %llu are stored; %s",
                        (unsigned long long)corners, (unsigned long long)sample->corner_count,
                        ABC_DAMAGED);
    size_t unused = sample->corner_count - (size_t)corners;
    sample->corner_count = (size_t)corners;
    for (size_t i = 0; i < sample->corner_count; i++)
        if (sample->face_indices[i] < 0 || (size_t)sample->face_indices[i] >= sample->point_count)
            return abc_fail(core, ABC_FORMAT, "corner %llu uses point %d of %llu; %s",
                            (unsigned long long)i, (int)sample->face_indices[i],
                            (unsigned long long)sample->point_count, ABC_DAMAGED);
    if (thin || unused)
        return abc_fail(core, ABC_WARNING,
                        "%llu faces have fewer than 3 corners, %llu corners belong to no face",
                        (unsigned long long)thin, (unsigned long long)unused);
    return ABC_OK;
}

/* From the points handed out: the stored box may be absent or wrong, and is of the file's space. */
static void abc_mesh_bounds(abc_mesh_sample *sample) {
    for (int k = 0; k < 3; k++) {
        sample->bounds[k] = DBL_MAX;
        sample->bounds[3 + k] = -DBL_MAX;
    }
    for (size_t i = 0; i < sample->point_count; i++)
        for (size_t k = 0; k < 3; k++) {
            double x = sample->positions[3 * i + k];
            sample->bounds[k] = x < sample->bounds[k] ? x : sample->bounds[k];
            sample->bounds[3 + k] = x > sample->bounds[3 + k] ? x : sample->bounds[3 + k];
        }
}

abc_status abc_mesh_read(abc_reader *reader, abc_object *object, uint64_t index,
                         abc_mesh_sample *sample) {
    abc_mesh_parts parts;
    abc_sample *points = &sample->storage[0], *corners = &sample->storage[1];
    abc_sample *faces = &sample->storage[2];
    sample->point_count = sample->face_count = sample->corner_count = 0;
    sample->velocities = NULL;
    abc_status status = abc_mesh_find(reader, object, &parts);
    if (status >= 0)
        status = abc_property_read(reader, parts.positions, index, points);
    if (status >= 0)
        status = abc_read_clamped(reader, parts.indices, index, corners);
    if (status >= 0)
        status = abc_read_clamped(reader, parts.counts, index, faces);
    if (status < 0)
        return status;
    sample->positions = points->data;
    sample->point_count = (size_t)points->count;
    sample->face_indices = corners->data;
    sample->corner_count = (size_t)corners->count;
    sample->face_counts = faces->data;
    sample->face_count = (size_t)faces->count;
    status = abc_reader_at(reader, object, NULL, abc_check_faces(reader, sample));
    if (status < 0) {
        sample->point_count = sample->face_count = sample->corner_count = 0;
        return status;
    }
    abc_turn_floats(points->data, points->data, sample->point_count, reader->options.z_up,
                    reader->options.scale, true);
    if (!reader->options.keep_winding)
        abc_reverse_faces(sample->face_counts, sample->face_count, corners->data, sizeof(int32_t));
    abc_mesh_bounds(sample);
    const abc_mesh_extent size = {sample->point_count, sample->face_count, sample->corner_count,
                                sample->face_counts};
    status = abc_worse(status, abc_read_velocities(reader, &parts, index, sample));
    if (status >= 0)
        status = abc_worse(status, abc_read_optional(reader, &parts, "uv", 2, ABC_TURN_NONE, index,
                                                     &size, &sample->uvs));
    if (status >= 0)
        status = abc_worse(status, abc_read_optional(reader, &parts, "N", 3, ABC_TURN_DIRECTION,
                                                     index, &size, &sample->normals));
    return status;
}

void abc_mesh_sample_free(abc_reader *reader, abc_mesh_sample *sample) {
    for (size_t i = 0; i < sizeof sample->storage / sizeof sample->storage[0]; i++)
        abc_sample_free(reader, &sample->storage[i]);
    abc_param_sample_free(reader, &sample->uvs);
    abc_param_sample_free(reader, &sample->normals);
    *sample = (abc_mesh_sample){0};
}

/* ---------------------------------------------------------------- parameters */

abc_property *abc_mesh_param(abc_reader *reader, abc_object *object, size_t number) {
    abc_mesh_parts parts;
    if (abc_mesh_find(reader, object, &parts) < 0)
        return NULL;
    const abc_property *params = abc_property_find(parts.geom, ".arbGeomParams");
    return params ? abc_property_child(params, number) : NULL;
}

abc_status abc_param_read(abc_reader *reader, abc_object *mesh, abc_property *param, uint64_t index,
                          abc_turn turn, abc_param_sample *sample) {
    abc_mesh_parts parts;
    abc_mesh_extent size = {0};
    abc_sample counts = {0};
    sample->values = NULL;
    sample->indices = NULL;
    sample->value_count = sample->index_count = 0;
    if (!param)
        return ABC_MISUSE;
    abc_status status = abc_mesh_find(reader, mesh, &parts);
    if (status >= 0)
        status = abc_property_elements(reader, parts.positions, index, &size.points);
    if (status >= 0)
        status = abc_read_clamped(reader, parts.counts, index, &counts);
    if (status < 0)
        goto out;
    size.counts = counts.data;
    size.faces = counts.count;
    for (size_t i = 0; i < counts.count; i++) {
        if (size.counts[i] < 0) {
            abc_fail(&reader->core, ABC_FORMAT, "face %llu has %d corners; %s",
                     (unsigned long long)i, (int)size.counts[i], ABC_DAMAGED);
            status = abc_reader_at(reader, mesh, NULL, ABC_FORMAT);
            goto out;
        }
        size.corners += (uint64_t)size.counts[i];
    }
    status = abc_param_load(reader, param, index, turn, &size, sample);
out:
    abc_sample_free(reader, &counts);
    if (status < 0)
        sample->values = NULL;
    return status;
}

void abc_param_sample_free(abc_reader *reader, abc_param_sample *sample) {
    abc_sample_free(reader, &sample->storage[0]);
    abc_sample_free(reader, &sample->storage[1]);
    *sample = (abc_param_sample){0};
}

/* ---------------------------------------------------------------- face sets, visibility */

abc_status abc_faceset_read(abc_reader *reader, abc_object *object, uint64_t index,
                            abc_sample *sample, bool *exclusive) {
    abc_property *compound = NULL;
    abc_sample flag = {0};
    *exclusive = false;
    abc_status status =
        abc_schema_compound(reader, object, ".faceset",
                            object && object->schema == ABC_SCHEMA_FACESET, "face set", &compound);
    if (status < 0)
        return status;
    abc_property *faces = abc_property_find(compound, ".faces");
    abc_property *only = abc_property_find(compound, ".facesExclusive");
    if (!abc_is(faces, ABC_ARRAY, ABC_INT32, 1)) {
        abc_fail(&reader->core, ABC_FORMAT, "'.faces' is missing or of the wrong type; %s",
                 ABC_DAMAGED);
        return abc_reader_at(reader, object, NULL, ABC_FORMAT);
    }
    status = abc_read_clamped(reader, faces, index, sample);
    if (status >= 0 && abc_is(only, ABC_SCALAR, ABC_UINT32, 1) && only->samples) {
        status = abc_property_read(reader, only, only->samples - 1, &flag);
        if (status >= 0)
            *exclusive = *(const uint32_t *)flag.data == 1;
    }
    abc_sample_free(reader, &flag);
    return status;
}

abc_status abc_object_visibility(abc_reader *reader, abc_object *object, uint64_t index,
                                 int *visible) {
    abc_property *top = NULL;
    abc_sample sample = {0};
    *visible = -1;
    if (!object)
        return ABC_MISUSE;
    abc_status status = abc_object_properties(reader, object, &top);
    if (status < 0)
        return status;
    abc_property *p = abc_property_find(top, "visible");
    if (!p || (p->kind != ABC_COMPOUND && p->samples == 0))
        return ABC_OK;
    if (!abc_is(p, ABC_SCALAR, ABC_INT8, 1)) {
        abc_fail(&reader->core, ABC_FORMAT, "'visible' is not an int8; %s", ABC_DAMAGED);
        return abc_reader_at(reader, object, NULL, ABC_FORMAT);
    }
    status = abc_read_clamped(reader, p, index, &sample);
    if (status >= 0) {
        int value = *(const int8_t *)sample.data;
        *visible = value > 0 ? 1 : value < 0 ? -1 : 0;
    }
    abc_sample_free(reader, &sample);
    return status;
}
