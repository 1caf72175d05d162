/* libabc: reads and writes Alembic archives (.abc) in the Ogawa container. Plain C11 and libc.
 *
 * Conventions
 *   Status     0 fine, > 0 usable with a warning, < 0 failed. A call that does not return 0 leaves
 *              a message on its handle: what, where (object, property, offset), what to do.
 *   Handles    abc_reader and abc_writer own everything reached through them; objects, properties,
 *              meshes and names live until the handle is closed. Structs with a _free call of
 *              their own (abc_sample, abc_mesh_sample, abc_param_sample) belong to the caller,
 *              start as {0} and are reused from call to call; free them before closing the reader.
 *   Threads    One handle is used by one thread at a time; different handles are independent.
 *              There are no globals; the library never prints and never exits.
 *   Units      Times are seconds. Lengths have no unit in the format (`scale` converts).
 *              Velocities are lengths per second.
 *   Space      Files are right handed, Y up, with clockwise faces. Callers see counter-clockwise
 *              faces, and Z up if they ask for it, on both sides: what was written is read back.
 *   Matrices   16 doubles, translation in 12, 13, 14: rows of a matrix acting on row vectors,
 *              which is the same memory as columns of one acting on column vectors.
 *   Text       UTF-8, NUL ended.
 *   Hosts      Little endian only (checked when compiled).
 *   Hostile    Readers check every offset and count against the file size; structure may be nested
 *              ABC_MAX_DEPTH deep and its total is bounded by a multiple of the file size.
 */
#ifndef ABC_H
#define ABC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ABC_VERSION "1.0"
#define ABC_MAX_DEPTH 1000
#define ABC_MAX_RANK 8

typedef enum abc_status {
    ABC_OK = 0,
    ABC_WARNING = 1,    /* done; the message says what was left out or repaired */
    ABC_INVALID = -1,   /* an argument is not acceptable; nothing was changed */
    ABC_NO_MEMORY = -2, /* memory ran out */
    ABC_IO = -4,        /* the file could not be read or written */
    ABC_FORMAT = -5,    /* the file is damaged, unfinished or of another format */
    ABC_MISUSE = -6,    /* a call in the wrong order or with a null handle */
    ABC_MISSING = -8    /* there is no such object, property, sample or schema */
} abc_status;

/* Host memory. `allocate` returns null on failure; alignment as malloc. */
typedef struct abc_allocator {
    void *(*allocate)(void *user, size_t size);
    void (*release)(void *user, void *pointer);
    void *user;
} abc_allocator;

typedef struct abc_pair {
    const char *key;
    const char *value;
} abc_pair;

/* Neither keys nor values may hold ';' or '='. */
typedef struct abc_metadata {
    const abc_pair *pairs;
    size_t count;
} abc_metadata;

/* Null when the key is absent. */
const char *abc_metadata_get(const abc_metadata *metadata, const char *key);

/* ---------------------------------------------------------------- time */

typedef enum abc_time_kind { ABC_UNIFORM, ABC_CYCLIC, ABC_ACYCLIC } abc_time_kind;

typedef struct abc_time_sampling {
    abc_time_kind kind;
    double period;       /* s between samples (uniform) or cycles (cyclic); unused for acyclic */
    const double *times; /* s, strictly increasing; one for uniform */
    size_t time_count;
    uint64_t max_samples; /* reading: the most samples any property has; writing: ignored */
} abc_time_sampling;

/* NaN when an acyclic sampling has no such sample. */
double abc_time_of(const abc_time_sampling *sampling, uint64_t sample);
/* The sample at or before, at or after, and nearest to a time; within 0 .. sample_count - 1. */
uint64_t abc_time_floor(const abc_time_sampling *sampling, uint64_t sample_count, double time);
uint64_t abc_time_ceil(const abc_time_sampling *sampling, uint64_t sample_count, double time);
uint64_t abc_time_near(const abc_time_sampling *sampling, uint64_t sample_count, double time);

/* ---------------------------------------------------------------- properties */

typedef enum abc_kind { ABC_COMPOUND, ABC_SCALAR, ABC_ARRAY } abc_kind;

typedef enum abc_pod {
    ABC_BOOL,
    ABC_UINT8,
    ABC_INT8,
    ABC_UINT16,
    ABC_INT16,
    ABC_UINT32,
    ABC_INT32,
    ABC_UINT64,
    ABC_INT64,
    ABC_HALF,
    ABC_FLOAT,
    ABC_DOUBLE,
    ABC_STRING,
    ABC_WSTRING,
    ABC_POD_COUNT
} abc_pod;

size_t abc_pod_size(abc_pod pod);      /* 0 for the string types */
const char *abc_pod_name(abc_pod pod); /* as in the format: "float32_t" */

/* Which items of a mesh a parameter has one value for. */
typedef enum abc_scope {
    ABC_SCOPE_MESH,    /* one value in all; "con" in the format */
    ABC_SCOPE_FACE,    /* "uni" */
    ABC_SCOPE_VARYING, /* per point, "var" */
    ABC_SCOPE_POINT,   /* per point, "vtx" */
    ABC_SCOPE_CORNER   /* per face corner, "fvr" */
} abc_scope;

/* How a parameter follows the Z-up and scale options. */
typedef enum abc_turn {
    ABC_TURN_NONE,
    ABC_TURN_DIRECTION, /* turned */
    ABC_TURN_POINT      /* turned and scaled */
} abc_turn;

/* ---------------------------------------------------------------- writing */

typedef struct abc_writer abc_writer;
typedef struct abc_wobject abc_wobject;
typedef struct abc_wproperty abc_wproperty;

typedef struct abc_writer_options {
    const char *application; /* null: left out; likewise the other texts */
    const char *description;
    const char *date;   /* only what is given: equal input makes equal files */
    const char *units;  /* free text such as "m", under the key "units" */
    double fps;         /* 0: not written */
    double first_frame; /* written with last_frame if last_frame >= first_frame */
    double last_frame;
    bool z_up;                      /* the caller's data is Z up */
    double scale;                   /* file length = caller length * scale */
    bool keep_winding;              /* do not turn faces round */
    bool no_sync;                   /* skip fsync: faster, unsafe against power cuts */
    const abc_allocator *allocator; /* null: malloc and free; copied */
} abc_writer_options;

abc_writer_options abc_writer_default_options(void);

/* Creates or empties `path`. Null options: the defaults. *writer is set even on failure (null only
 * without memory) so that the message can be read, and must be closed. Samples go to disk as they
 * are given; in memory stay 8 to 16 bytes per stored sample and some 64 per different one. */
abc_status abc_writer_open(const char *path, const abc_writer_options *options,
                           abc_writer **writer);

/* Writes the structure, then marks the file finished. Before that no reader accepts the file. After
 * a failed write or allocation every call fails with that status and the file stays unfinished. */
abc_status abc_writer_finish(abc_writer *writer);

/* Frees the writer; null is fine. Without a successful finish readers refuse the file. */
void abc_writer_close(abc_writer *writer);

const char *abc_writer_message(const abc_writer *writer);
uint64_t abc_writer_bytes(const abc_writer *writer); /* written so far */

/* Archive metadata, until finish; replaces the key's value. */
abc_status abc_writer_set_metadata(abc_writer *writer, const char *key, const char *value);

/* An equal uniform or cyclic sampling is reused. Index 0 always exists: uniform from 0 s with
 * period 1 s. */
abc_status abc_writer_add_time_sampling(abc_writer *writer, const abc_time_sampling *sampling,
                                        uint32_t *index);
abc_status abc_writer_add_uniform(abc_writer *writer, double start, double period, uint32_t *index);
/* Appends a time to an acyclic sampling, for times not known beforehand. */
abc_status abc_writer_add_time(abc_writer *writer, uint32_t index, double time);

abc_wobject *abc_writer_top(abc_writer *writer);

/* Names are unique among siblings, not empty and without '/'. Null metadata: none. */
abc_status abc_wobject_create(abc_wobject *parent, const char *name, const abc_metadata *metadata,
                              abc_wobject **object);
abc_wproperty *abc_wobject_properties(abc_wobject *object); /* its top compound */

typedef struct abc_wproperty_def {
    const char *name;
    abc_kind kind;
    abc_pod pod;
    uint32_t extent; /* PODs per element, 1 to 255 */
    uint32_t time_sampling;
    abc_metadata metadata;
} abc_wproperty_def;

abc_status abc_wproperty_create(abc_wproperty *parent, const abc_wproperty_def *def,
                                abc_wproperty **property);

/* Appends a sample of `count` elements (1 for a scalar). Elements are extent PODs each, little
 * endian; for both string types `data` is a const char *const * of count * extent UTF-8 texts. A
 * sample equal to one stored before, anywhere in the archive, takes no further room. */
abc_status abc_wproperty_write(abc_wproperty *property, const void *data, uint64_t count);
/* The same for an array of higher rank. */
abc_status abc_wproperty_write_dims(abc_wproperty *property, const void *data, uint32_t rank,
                                    const uint64_t *dims);
/* Appends the previous sample again. */
abc_status abc_wproperty_repeat(abc_wproperty *property);
uint64_t abc_wproperty_samples(const abc_wproperty *property);

/* ---------------------------------------------------------------- writing geometry */

typedef struct abc_wxform abc_wxform;
typedef struct abc_wmesh abc_wmesh;
typedef struct abc_wparam abc_wparam;
typedef struct abc_wfaceset abc_wfaceset;

/* An xform without samples is the identity. The object is for creating children under it. */
abc_status abc_wxform_create(abc_wobject *parent, const char *name, uint32_t time_sampling,
                             abc_wxform **xform);
abc_wobject *abc_wxform_object(abc_wxform *xform);
abc_status abc_wxform_write(abc_wxform *xform, const double matrix[16], bool inherits);

typedef struct abc_wmesh_def {
    const char *name;
    uint32_t time_sampling;
    const char *uv_name; /* name of the UV map in the application; null: none */
} abc_wmesh_def;

abc_status abc_wmesh_create(abc_wobject *parent, const abc_wmesh_def *def, abc_wmesh **mesh);
abc_wobject *abc_wmesh_object(abc_wmesh *mesh);

/* Values of a parameter. Without indices there is one value per item of the scope, else one index
 * per item. */
typedef struct abc_values {
    const void *values; /* null: not given in this sample */
    size_t value_count;
    const uint32_t *indices; /* null: not indexed */
    size_t index_count;
    abc_scope scope;
} abc_values;

/* One sample. Positions and topology are needed in the first one; later a null pointer means as
 * before. Velocities, uvs and normals may start at any sample; left out, they repeat while their
 * number still fits the mesh and are empty otherwise. Scope and indexing must not change. */
typedef struct abc_mesh_data {
    const float *positions; /* point_count x 3 */
    size_t point_count;
    const int32_t *face_counts; /* corners per face, at least 3 each */
    size_t face_count;
    const int32_t *face_indices; /* points of all faces, counter-clockwise */
    size_t corner_count;
    const float *velocities; /* point_count x 3, per second */
    abc_values uvs;          /* float x 2, V upwards */
    abc_values normals;      /* float x 3 */
} abc_mesh_data;

abc_status abc_wmesh_write(abc_wmesh *mesh, const abc_mesh_data *data);
uint64_t abc_wmesh_samples(const abc_wmesh *mesh);

/* Any further attribute of the mesh: panel id, rest position ("Pref"), stretch, ... */
typedef struct abc_wparam_def {
    const char *name;
    abc_pod pod;
    uint32_t extent;
    abc_scope scope;
    const char
        *interpretation; /* "vector", "point", "normal", "rgb", "rgba"; null: plain numbers */
    bool indexed;
    abc_turn turn; /* float or double with extent 3 only */
    abc_metadata extra;
} abc_wparam_def;

abc_status abc_wmesh_add_param(abc_wmesh *mesh, const abc_wparam_def *def, abc_wparam **param);
/* At most once after each abc_wmesh_write; left out as uvs are. The scope comes from the def. */
abc_status abc_wparam_write(abc_wparam *param, const void *values, size_t value_count,
                            const uint32_t *indices, size_t index_count);

abc_status abc_wmesh_add_faceset(abc_wmesh *mesh, const char *name, bool exclusive,
                                 uint32_t time_sampling, abc_wfaceset **faceset);
abc_status abc_wfaceset_write(abc_wfaceset *faceset, const int32_t *faces, size_t face_count);

/* ---------------------------------------------------------------- reading */

typedef struct abc_reader abc_reader;
typedef struct abc_object abc_object;
typedef struct abc_property abc_property;

typedef enum abc_schema {
    ABC_SCHEMA_NONE, /* plain node, or one this library does not name */
    ABC_SCHEMA_XFORM,
    ABC_SCHEMA_POLYMESH,
    ABC_SCHEMA_SUBD,
    ABC_SCHEMA_FACESET,
    ABC_SCHEMA_POINTS,
    ABC_SCHEMA_CURVES,
    ABC_SCHEMA_NUPATCH,
    ABC_SCHEMA_CAMERA,
    ABC_SCHEMA_LIGHT,
    ABC_SCHEMA_MATERIAL
} abc_schema;

typedef struct abc_reader_options {
    bool z_up;         /* give geometry Z up */
    double scale;      /* as in abc_writer_options: caller length = file length / scale */
    bool keep_winding; /* give faces as stored: clockwise */
    const abc_allocator *allocator;
} abc_reader_options;

abc_reader_options abc_reader_default_options(void);

/* Reads the object tree; properties and samples are read when asked for. *reader is set even on
 * failure (null only without memory) so that the message can be read, and must be closed. */
abc_status abc_reader_open(const char *path, const abc_reader_options *options,
                           abc_reader **reader);
/* `data` must stay until close. */
abc_status abc_reader_open_memory(const void *data, size_t size, const abc_reader_options *options,
                                  abc_reader **reader);
void abc_reader_close(abc_reader *reader);
const char *abc_reader_message(const abc_reader *reader);

typedef struct abc_archive_info {
    abc_metadata metadata;
    const char *application; /* null: not stated; likewise the other texts */
    const char *description;
    const char *date;
    const char *units;
    double fps;      /* 0: not stated */
    bool has_frames; /* first_frame and last_frame are stated */
    double first_frame;
    double last_frame;
    int32_t library_version; /* 10812 = 1.8.12 */
    uint64_t file_size;
    size_t object_count; /* without the top object */
} abc_archive_info;

abc_status abc_reader_info(abc_reader *reader, abc_archive_info *info);
size_t abc_reader_time_sampling_count(const abc_reader *reader);
const abc_time_sampling *abc_reader_time_sampling(const abc_reader *reader, size_t index);
/* First and last time of the archive's animation. */
abc_status abc_reader_time_range(abc_reader *reader, double *start, double *end);

abc_object *abc_reader_top(abc_reader *reader);
abc_status abc_reader_find(abc_reader *reader, const char *path, abc_object **object);
const char *abc_object_name(const abc_object *object);
/* Writes the full path, cut to `size` with its NUL; returns the whole length, as snprintf. */
size_t abc_object_path(const abc_object *object, char *path, size_t size);
abc_schema abc_object_schema(const abc_object *object);
const char *abc_object_schema_name(const abc_object *object); /* "" without one */
const abc_metadata *abc_object_metadata(const abc_object *object);
abc_object *abc_object_parent(const abc_object *object);
size_t abc_object_child_count(const abc_object *object);
abc_object *abc_object_child(const abc_object *object, size_t index);
/* The original of an instance, the object itself otherwise. */
abc_status abc_object_resolve(abc_reader *reader, abc_object *object, abc_object **original);

typedef struct abc_property_info {
    const char *name;
    abc_kind kind;
    abc_pod pod; /* this and the rest: not for compounds */
    uint32_t extent;
    uint64_t samples;
    uint64_t stored; /* samples that have a place of their own */
    bool constant;
    uint32_t time_sampling;
    abc_metadata metadata; /* also for compounds */
} abc_property_info;

abc_status abc_object_properties(abc_reader *reader, abc_object *object, abc_property **top);
size_t abc_property_child_count(const abc_property *property);
abc_property *abc_property_child(const abc_property *property, size_t index);
abc_property *abc_property_find(const abc_property *property, const char *name); /* or null */
void abc_property_get_info(const abc_property *property, abc_property_info *info);

typedef struct abc_sample {
    void *data;     /* elements; for both string types UTF-8 texts, each with its NUL */
    size_t size;    /* bytes */
    uint64_t count; /* elements, 1 for scalars */
    uint32_t rank;
    uint64_t dims[ABC_MAX_RANK];
    uint8_t key[16]; /* identity of the stored bytes; zero for an empty array */
    size_t capacity; /* bytes allocated */
} abc_sample;

/* The sample as stored: no turning, scaling or reordering. */
abc_status abc_property_read(abc_reader *reader, abc_property *property, uint64_t index,
                             abc_sample *sample);
void abc_sample_free(abc_reader *reader, abc_sample *sample);
/* Time of a sample by the property's time sampling. */
abc_status abc_property_time(abc_reader *reader, const abc_property *property, uint64_t index,
                             double *time);

/* ---------------------------------------------------------------- reading geometry */

typedef struct abc_xform_info {
    uint64_t samples; /* 0: never given one, the identity */
    uint32_t time_sampling;
    bool constant;
    bool identity; /* always, whatever is stored */
} abc_xform_info;

abc_status abc_xform_get_info(abc_reader *reader, abc_object *object, abc_xform_info *info);
abc_status abc_xform_read(abc_reader *reader, abc_object *object, uint64_t index, double matrix[16],
                          bool *inherits);

typedef enum abc_topology { ABC_STATIC, ABC_DEFORMING, ABC_CHANGING } abc_topology;

typedef struct abc_mesh_info {
    uint64_t samples;
    uint32_t time_sampling;
    abc_topology topology;
    bool has_velocities;
    bool has_uvs;
    bool has_normals;
    const char *uv_name; /* null: not stated */
    size_t param_count;
} abc_mesh_info;

/* PolyMesh or SubD. */
abc_status abc_mesh_get_info(abc_reader *reader, abc_object *object, abc_mesh_info *info);

/* Numbers of points, faces and corners of a sample, without reading it. */
abc_status abc_mesh_size(abc_reader *reader, abc_object *object, uint64_t index, uint64_t *points,
                         uint64_t *faces, uint64_t *corners);

typedef struct abc_param_sample {
    abc_pod pod;
    uint32_t extent;
    abc_scope scope;
    const void *values; /* null: none in this sample */
    size_t value_count;
    const uint32_t *indices; /* null: not indexed; all below value_count */
    size_t index_count;
    abc_sample storage[2];
} abc_param_sample;

typedef struct abc_mesh_sample {
    const float *positions;
    size_t point_count;
    const int32_t *face_counts;
    size_t face_count;
    const int32_t *face_indices; /* all within 0 .. point_count - 1 */
    size_t corner_count;
    const float *velocities; /* null: none in this sample */
    abc_param_sample uvs;
    abc_param_sample normals;
    double bounds[6]; /* min xyz, max xyz, in the caller's space */
    abc_sample storage[4];
} abc_mesh_sample;

/* Damaged positions or topology fail; a damaged optional part is left out with ABC_WARNING. */
abc_status abc_mesh_read(abc_reader *reader, abc_object *object, uint64_t index,
                         abc_mesh_sample *sample);
void abc_mesh_sample_free(abc_reader *reader, abc_mesh_sample *sample);

/* Parameters of `.arbGeomParams`, by number below param_count. */
abc_property *abc_mesh_param(abc_reader *reader, abc_object *object, size_t number);
abc_status abc_param_read(abc_reader *reader, abc_object *mesh, abc_property *param, uint64_t index,
                          abc_turn turn, abc_param_sample *sample);
void abc_param_sample_free(abc_reader *reader, abc_param_sample *sample);

/* Faces of a FaceSet object as int32 in `sample`. */
abc_status abc_faceset_read(abc_reader *reader, abc_object *object, uint64_t index,
                            abc_sample *sample, bool *exclusive);

/* -1 as the parent (also when not stated), 0 hidden, 1 visible. */
abc_status abc_object_visibility(abc_reader *reader, abc_object *object, uint64_t index,
                                 int *visible);

#ifdef __cplusplus
}
#endif

#endif
