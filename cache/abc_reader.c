/* Reading archives: time samplings, metadata, the object tree, properties and their samples.
 *
 * The object tree is read when the archive is opened, properties when an object is first asked for
 * them, samples when asked for. Blocks may be shared or point back to their parents in hostile
 * files, so depth is limited and every byte of structure read is charged to a budget of a few file
 * sizes: an honest archive uses each block once, a small bomb runs out quickly.
 */
#include "abc_internal.h"

#include <math.h>
#include <string.h>

/* Honest files need at most 1; more leaves room for writers that share groups. */
#define ABC_BUDGET_FACTOR 4
#define ABC_BUDGET_FLOOR 65536
#define ABC_TABLE_MAX 65536
#define ABC_INLINE 255
#define ABC_HASHES 32
#define ABC_KEY_SIZE 16
#define ABC_INSTANCE_HOPS 32
/* Number of texts before dimensions were seen; times any extent it still fits 64 bits. */
#define ABC_UNKNOWN (UINT64_MAX / 256)
/* Oldest library version with this layout of the archive. */
#define ABC_OLDEST_LIBRARY 9999

static const char ABC_DAMAGED[] = "the file is damaged, export it again";

/* ---------------------------------------------------------------- pods and metadata */

size_t abc_pod_size(abc_pod pod) {
    static const uint8_t sizes[ABC_POD_COUNT] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 0, 0};
    return (unsigned)pod < ABC_POD_COUNT ? sizes[pod] : 0;
}

const char *abc_pod_name(abc_pod pod) {
    static const char *const names[ABC_POD_COUNT] = {
        "bool_t",   "uint8_t", "int8_t",    "uint16_t",  "int16_t",   "uint32_t", "int32_t",
        "uint64_t", "int64_t", "float16_t", "float32_t", "float64_t", "string",   "wstring"};
    return (unsigned)pod < ABC_POD_COUNT ? names[pod] : "unknown";
}

const char *abc_metadata_get(const abc_metadata *metadata, const char *key) {
    for (size_t i = 0; metadata && i < metadata->count; i++)
        if (strcmp(metadata->pairs[i].key, key) == 0)
            return metadata->pairs[i].value;
    return NULL;
}

/* "key=value;key=value" to pairs. Parsing stops at an entry without '='; empty values count as
 * absent. */
static abc_status abc_metadata_parse(abc_core *core, const uint8_t *bytes, size_t size,
                                     abc_metadata *metadata) {
    size_t entries = 1;
    for (size_t i = 0; i < size; i++)
        entries += bytes[i] == ';';
    char *text = abc_arena_text(core, bytes, size);
    abc_pair *pairs = size ? abc_arena(core, entries, sizeof *pairs) : NULL;
    if (!text || (size && !pairs))
        return abc_fail_memory(core, "metadata", size);
    *metadata = (abc_metadata){pairs, 0};
    for (char *end = text + size; text < end;) {
        char *semicolon = memchr(text, ';', (size_t)(end - text));
        char *stop = semicolon ? semicolon : end;
        char *equals = memchr(text, '=', (size_t)(stop - text));
        if (!equals)
            break;
        *equals = '\0';
        *stop = '\0';
        if (equals + 1 < stop)
            pairs[metadata->count++] = (abc_pair){text, equals + 1};
        text = stop + 1;
    }
    return ABC_OK;
}

/* ---------------------------------------------------------------- places in messages */

/* Path of a property below its object, cut to fit. */
static void abc_property_path(const abc_property *property, char *path, size_t size) {
    path[0] = '\0';
    if (!property->parent)
        return;
    abc_property_path(property->parent, path, size);
    size_t length = strlen(path);
    snprintf(path + length, size - length, "%s%s", length ? "/" : "", property->name);
}

abc_status abc_reader_at(abc_reader *reader, const abc_object *object, const abc_property *property,
                         abc_status status) {
    char path[200], name[200];
    if (status == ABC_OK || status == ABC_NO_MEMORY)
        return status;
    abc_object_path(object, path, sizeof path);
    if (property && property->parent) {
        abc_property_path(property, name, sizeof name);
        abc_prefix(&reader->core, "object %s, property %s: ", path, name);
    } else {
        abc_prefix(&reader->core, "object %s: ", path);
    }
    return status;
}

/* ---------------------------------------------------------------- blocks of structure */

static abc_status abc_charge(abc_reader *reader, uint64_t bytes) {
    if (bytes > reader->budget)
        return abc_fail(&reader->core, ABC_FORMAT,
                        "blocks of the file are used over and over (a loop or a bomb); %s",
                        ABC_DAMAGED);
    reader->budget -= bytes;
    return ABC_OK;
}

/* A whole data block into fresh memory, which the caller releases. */
static abc_status abc_load_data(abc_reader *reader, uint64_t word, uint8_t **bytes, size_t *size) {
    abc_block data;
    *bytes = NULL;
    *size = 0;
    abc_status status = abc_source_data(&reader->core, &reader->source, word, &data);
    if (status >= 0)
        status = abc_charge(reader, data.count);
    if (status < 0 || data.count == 0)
        return status;
    if (data.count > SIZE_MAX || !(*bytes = abc_allocate(&reader->core, (size_t)data.count)))
        return abc_fail_memory(&reader->core, "a block of the file", data.count);
    status =
        abc_source_read(&reader->core, &reader->source, data.offset, *bytes, (size_t)data.count);
    if (status < 0) {
        abc_release(&reader->core, *bytes);
        *bytes = NULL;
        return status;
    }
    *size = (size_t)data.count;
    return ABC_OK;
}

/* Reads fields from a block; `bad` once anything was missing. */
typedef struct abc_cursor {
    const uint8_t *at;
    size_t left;
    bool bad;
} abc_cursor;

static const uint8_t *abc_take(abc_cursor *cursor, size_t size) {
    if (size > cursor->left) {
        cursor->bad = true;
        cursor->left = 0;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += size;
    cursor->left -= size;
    return bytes;
}

static uint32_t abc_take_number(abc_cursor *cursor, size_t width) {
    uint32_t number = 0;
    const uint8_t *bytes = abc_take(cursor, width);
    if (bytes)
        memcpy(&number, bytes, width);
    return number;
}

/* Metadata of an object or property: from the table or inline. */
static abc_status abc_take_metadata(abc_reader *reader, uint32_t index, const uint8_t *inlined,
                                    size_t inlined_size, const abc_metadata **metadata) {
    if (index != ABC_INLINE) {
        if (index >= reader->table_count)
            return abc_fail(&reader->core, ABC_FORMAT, "metadata entry %u of %llu; %s", index,
                            (unsigned long long)reader->table_count, ABC_DAMAGED);
        *metadata = &reader->table[index];
        return ABC_OK;
    }
    abc_metadata *own = abc_arena(&reader->core, 1, sizeof *own);
    if (!own)
        return abc_fail_memory(&reader->core, "metadata", sizeof *own);
    *metadata = own;
    return abc_metadata_parse(&reader->core, inlined, inlined_size, own);
}

/* ---------------------------------------------------------------- objects */

static abc_schema abc_schema_of(const abc_metadata *metadata) {
    static const struct {
        const char *title;
        abc_schema schema;
    } titles[] = {
        {"AbcGeom_Xform_v3:.xform", ABC_SCHEMA_XFORM},
        {"AbcGeom_PolyMesh_v1:.geom", ABC_SCHEMA_POLYMESH},
        {"AbcGeom_SubD_v1:.geom", ABC_SCHEMA_SUBD},
        {"AbcGeom_FaceSet_v1:.faceset", ABC_SCHEMA_FACESET},
        {"AbcGeom_Points_v1:.geom", ABC_SCHEMA_POINTS},
        {"AbcGeom_Curve_v2:.geom", ABC_SCHEMA_CURVES},
        {"AbcGeom_NuPatch_v2:.geom", ABC_SCHEMA_NUPATCH},
        {"AbcGeom_Camera_v1:.geom", ABC_SCHEMA_CAMERA},
        {"AbcGeom_Light_v1:.geom", ABC_SCHEMA_LIGHT},
        {"AbcMaterial_Material_v1:.material", ABC_SCHEMA_MATERIAL},
    };
    const char *title = abc_metadata_get(metadata, "schemaObjTitle");
    const char *schema = abc_metadata_get(metadata, "schema");
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if ((title && strcmp(title, titles[i].title) == 0) ||
            (schema && strcmp(schema, titles[i].title) == 0))
            return titles[i].schema;
    return ABC_SCHEMA_NONE;
}

/* One child header. A name that no path could reach is refused. */
static abc_status abc_take_object(abc_reader *reader, abc_cursor *cursor, abc_object *child) {
    uint32_t length = abc_take_number(cursor, 4);
    const uint8_t *name = abc_take(cursor, length);
    uint32_t index = abc_take_number(cursor, 1);
    uint32_t inlined_size = index == ABC_INLINE ? abc_take_number(cursor, 4) : 0;
    const uint8_t *inlined = abc_take(cursor, inlined_size);
    if (cursor->bad || length == 0)
        return abc_fail(&reader->core, ABC_FORMAT, "the list of child objects is cut short; %s",
                        ABC_DAMAGED);
    if (memchr(name, '/', length) || memchr(name, '\0', length))
        return abc_fail(&reader->core, ABC_FORMAT, "a child's name holds '/' or NUL; %s",
                        ABC_DAMAGED);
    if (!child)
        return ABC_OK;
    child->name = abc_arena_text(&reader->core, name, length);
    if (!child->name)
        return abc_fail_memory(&reader->core, "an object name", length);
    return abc_take_metadata(reader, index, inlined, inlined_size, &child->metadata);
}

/* Makes the child array from the header block, which is parsed twice: to count and to fill. */
static abc_status abc_load_headers(abc_reader *reader, abc_object *object, uint64_t word) {
    uint8_t *bytes = NULL;
    size_t size = 0, count = 0;
    abc_status status = abc_load_data(reader, word, &bytes, &size);
    if (status < 0 || size == 0)
        goto out;
    if (size < ABC_HASHES) {
        status = abc_fail(&reader->core, ABC_FORMAT, "the list of child objects has %llu bytes; %s",
                          (unsigned long long)size, ABC_DAMAGED);
        goto out;
    }
    for (abc_cursor cursor = {bytes, size - ABC_HASHES, false}; status >= 0 && cursor.left; count++)
        status = abc_take_object(reader, &cursor, NULL);
    if (status < 0 || count == 0)
        goto out;
    object->children = abc_arena(&reader->core, count, sizeof *object->children);
    if (!object->children) {
        status =
            abc_fail_memory(&reader->core, "the object tree", count * sizeof *object->children);
        goto out;
    }
    abc_cursor cursor = {bytes, size - ABC_HASHES, false};
    for (size_t i = 0; i < count; i++) {
        object->children[i].parent = object;
        status = abc_take_object(reader, &cursor, &object->children[i]);
        if (status < 0)
            goto out;
        object->children[i].schema = abc_schema_of(object->children[i].metadata);
    }
    object->child_count = count;
    reader->object_count += count;
out:
    abc_release(&reader->core, bytes);
    return status;
}

/* An object group: properties, one group per child, the child headers. */
static abc_status abc_load_object(abc_reader *reader, abc_object *object, uint64_t word,
                                  int depth) {
    abc_core *core = &reader->core;
    abc_block group;
    uint64_t first = 0, last = 0;
    if (depth > ABC_MAX_DEPTH)
        return abc_fail(core, ABC_FORMAT, "objects are nested more than %d deep; %s", ABC_MAX_DEPTH,
                        ABC_DAMAGED);
    abc_status status = abc_source_group(core, &reader->source, word, &group);
    if (status >= 0 && group.count)
        status = abc_charge(reader, 8 * group.count);
    if (status >= 0 && group.count)
        status = abc_source_child(core, &reader->source, group, 0, &first);
    if (status >= 0 && group.count)
        status = abc_source_child(core, &reader->source, group, group.count - 1, &last);
    if (status >= 0 && group.count > 1 && (first & ABC_DATA_BIT))
        status = abc_fail(core, ABC_FORMAT, "data where the properties belong; %s", ABC_DAMAGED);
    if (status >= 0 && !(first & ABC_DATA_BIT))
        object->property_word = first;
    if (status >= 0 && (last & ABC_DATA_BIT))
        status = abc_load_headers(reader, object, last);
    if (status >= 0 && object->child_count && object->child_count > group.count - 2)
        status = abc_fail(core, ABC_FORMAT, "%llu child objects are named but %llu stored; %s",
                          (unsigned long long)object->child_count,
                          (unsigned long long)group.count - 2, ABC_DAMAGED);
    if (status < 0)
        return abc_reader_at(reader, object, NULL, status);
    for (size_t i = 0; i < object->child_count; i++) {
        status = abc_source_child(core, &reader->source, group, i + 1, &word);
        if (status < 0)
            return abc_reader_at(reader, object, NULL, status);
        status = abc_load_object(reader, &object->children[i], word, depth + 1);
        if (status < 0)
            return status;
    }
    return ABC_OK;
}

/* ---------------------------------------------------------------- archive */

/* Record 0 .. n of (max samples, period, count, times). */
static abc_status abc_load_samplings(abc_reader *reader, uint64_t word) {
    abc_core *core = &reader->core;
    uint8_t *bytes = NULL;
    size_t size = 0, count = 0;
    abc_status status = abc_load_data(reader, word, &bytes, &size);
    if (status < 0)
        goto out;
    for (abc_cursor cursor = {bytes, size, false}; cursor.left; count++) {
        abc_take(&cursor, 12);
        uint32_t times = abc_take_number(&cursor, 4);
        abc_take(&cursor, times <= cursor.left / 8 ? 8 * (size_t)times : SIZE_MAX);
        if (cursor.bad || times == 0) {
            status = abc_fail(core, ABC_FORMAT, "time sampling %llu is cut short; %s",
                              (unsigned long long)count, ABC_DAMAGED);
            goto out;
        }
    }
    if (count == 0) {
        status = abc_fail(core, ABC_FORMAT, "there are no time samplings; %s", ABC_DAMAGED);
        goto out;
    }
    reader->samplings = abc_arena(core, count, sizeof *reader->samplings);
    if (!reader->samplings) {
        status = abc_fail_memory(core, "time samplings", count * sizeof *reader->samplings);
        goto out;
    }
    abc_cursor cursor = {bytes, size, false};
    for (size_t i = 0; i < count; i++) {
        abc_time_sampling *sampling = &reader->samplings[i];
        sampling->max_samples = abc_take_number(&cursor, 4);
        memcpy(&sampling->period, abc_take(&cursor, 8), 8);
        sampling->time_count = abc_take_number(&cursor, 4);
        double *times = abc_arena(core, sampling->time_count, sizeof *times);
        if (!times) {
            status = abc_fail_memory(core, "time samplings", 8 * (uint64_t)sampling->time_count);
            goto out;
        }
        memcpy(times, abc_take(&cursor, 8 * sampling->time_count), 8 * sampling->time_count);
        sampling->times = times;
        sampling->kind = sampling->period == abc_acyclic_period() ? ABC_ACYCLIC
                         : sampling->time_count > 1               ? ABC_CYCLIC
                                                                  : ABC_UNIFORM;
        if (abc_time_check(core, sampling) < 0) {
            abc_prefix(core, "time sampling %llu: ", (unsigned long long)i);
            status = ABC_FORMAT;
            goto out;
        }
    }
    reader->sampling_count = count;
out:
    abc_release(core, bytes);
    return status;
}

/* Entries of (length byte, text); entry 0 is the empty metadata and not stored. */
static abc_status abc_load_table(abc_reader *reader, uint64_t word) {
    abc_core *core = &reader->core;
    uint8_t *bytes = NULL;
    size_t size = 0, count = 1;
    abc_status status = abc_load_data(reader, word, &bytes, &size);
    if (status < 0)
        goto out;
    for (abc_cursor cursor = {bytes, size, false}; cursor.left; count++) {
        abc_take(&cursor, abc_take_number(&cursor, 1));
        if (cursor.bad || size > ABC_TABLE_MAX) {
            status =
                abc_fail(core, ABC_FORMAT, "the metadata table is not readable; %s", ABC_DAMAGED);
            goto out;
        }
    }
    reader->table = abc_arena(core, count, sizeof *reader->table);
    if (!reader->table) {
        status = abc_fail_memory(core, "metadata", count * sizeof *reader->table);
        goto out;
    }
    abc_cursor cursor = {bytes, size, false};
    for (size_t i = 1; status >= 0 && i < count; i++) {
        size_t length = abc_take_number(&cursor, 1);
        status = abc_metadata_parse(core, abc_take(&cursor, length), length, &reader->table[i]);
    }
    reader->table_count = count;
out:
    abc_release(core, bytes);
    return status;
}

static abc_status abc_load_int(abc_reader *reader, uint64_t word, int32_t *value) {
    abc_block data;
    abc_status status = abc_source_data(&reader->core, &reader->source, word, &data);
    if (status < 0)
        return status;
    if (data.count != sizeof *value)
        return abc_fail(&reader->core, ABC_FORMAT, "a version number has %llu bytes; %s",
                        (unsigned long long)data.count, ABC_DAMAGED);
    return abc_source_read(&reader->core, &reader->source, data.offset, value, sizeof *value);
}

static abc_status abc_load_archive(abc_reader *reader) {
    abc_core *core = &reader->core;
    abc_block root;
    uint64_t words[6];
    int32_t storage = -1;
    uint8_t *bytes = NULL;
    size_t size = 0;
    reader->budget = ABC_BUDGET_FLOOR + (reader->source.size < UINT64_MAX / 8
                                             ? ABC_BUDGET_FACTOR * reader->source.size
                                             : UINT64_MAX / 2);
    abc_status status = abc_source_root(core, &reader->source, &root);
    if (status < 0)
        return status;
    for (uint64_t i = 0; i < 6; i++) {
        status = abc_source_child(core, &reader->source, root, i, &words[i]);
        if (status >= 0 && !(words[i] & ABC_DATA_BIT) != (i == 2))
            status = abc_fail(core, ABC_FORMAT, "child %d is of the wrong kind; %s", (int)i,
                              ABC_DAMAGED);
        if (status < 0) {
            abc_prefix(core, "root: ");
            return status;
        }
    }
    status = abc_load_int(reader, words[0], &storage);
    if (status >= 0)
        status = abc_load_int(reader, words[1], &reader->library_version);
    if (status >= 0 && (storage != 0 || reader->library_version < ABC_OLDEST_LIBRARY))
        status =
            abc_fail(core, ABC_FORMAT,
                     "storage version %d of library version %d is not known; export it again with "
                     "a current program",
                     (int)storage, (int)reader->library_version);
    if (status >= 0)
        status = abc_load_data(reader, words[3], &bytes, &size);
    if (status >= 0)
        status = abc_metadata_parse(core, bytes, size, &reader->metadata);
    abc_release(core, bytes);
    if (status >= 0)
        status = abc_load_samplings(reader, words[4]);
    if (status >= 0)
        status = abc_load_table(reader, words[5]);
    if (status < 0) {
        abc_prefix(core, "archive: ");
        return status;
    }
    reader->top.name = "ABC";
    reader->top.metadata = &reader->metadata;
    return abc_load_object(reader, &reader->top, words[2], 0);
}

abc_reader_options abc_reader_default_options(void) {
    return (abc_reader_options){.scale = 1.0};
}

static abc_status abc_reader_make(const char *path, const void *data, size_t size,
                                  const abc_reader_options *options, abc_reader **out) {
    abc_core core;
    if (!out)
        return ABC_MISUSE;
    *out = NULL;
    abc_core_init(&core, options ? options->allocator : NULL);
    abc_reader *reader = abc_allocate(&core, sizeof *reader);
    if (!reader)
        return ABC_NO_MEMORY;
    memset(reader, 0, sizeof *reader);
    reader->core = core;
    reader->options = options ? *options : abc_reader_default_options();
    reader->options.allocator = NULL; /* copied into the core; the caller's may go */
    *out = reader;
    if (!path && !data)
        return abc_fail(&reader->core, ABC_MISUSE, "no file name given");
    if (!(reader->options.scale > 0.0 && isfinite(reader->options.scale)))
        return abc_fail(&reader->core, ABC_INVALID, "scale %g must be finite and > 0",
                        reader->options.scale);
    reader->source.memory = data;
    reader->source.size = size;
    abc_status status = ABC_OK;
    if (path)
        status = abc_source_open(&reader->core, &reader->source, path);
    if (status >= 0)
        status = abc_load_archive(reader);
    reader->open = status >= 0;
    return status;
}

abc_status abc_reader_open(const char *path, const abc_reader_options *options,
                           abc_reader **reader) {
    return abc_reader_make(path, NULL, 0, options, reader);
}

abc_status abc_reader_open_memory(const void *data, size_t size, const abc_reader_options *options,
                                  abc_reader **reader) {
    return abc_reader_make(NULL, data, size, options, reader);
}

void abc_reader_close(abc_reader *reader) {
    if (!reader)
        return;
    abc_core core = reader->core;
    abc_source_close(&reader->source);
    abc_core_free_arena(&core);
    abc_release(&core, reader);
}

const char *abc_reader_message(const abc_reader *reader) {
    return reader ? reader->core.message : "not enough memory to open the archive";
}

/* Queries on a reader whose open failed would walk a half-built tree. */
static abc_status abc_reader_ready(abc_reader *reader) {
    if (!reader)
        return ABC_MISUSE;
    if (!reader->open)
        return abc_fail(&reader->core, ABC_MISUSE, "the archive did not open; close this reader");
    return ABC_OK;
}

abc_status abc_reader_info(abc_reader *reader, abc_archive_info *info) {
    *info = (abc_archive_info){0};
    abc_status status = abc_reader_ready(reader);
    if (status < 0)
        return status;
    const abc_metadata *metadata = &reader->metadata;
    info->metadata = *metadata;
    info->application = abc_metadata_get(metadata, "_ai_Application");
    info->description = abc_metadata_get(metadata, "_ai_Description");
    info->date = abc_metadata_get(metadata, "_ai_DateWritten");
    info->units = abc_metadata_get(metadata, "units");
    const char *fps = abc_metadata_get(metadata, "_ai_DCC_FPS");
    if (!fps)
        fps = abc_metadata_get(metadata, "FramesPerTimeUnit");
    if (!fps || !abc_parse_number(fps, &info->fps))
        info->fps = 0.0;
    const char *first = abc_metadata_get(metadata, "frameStart");
    const char *last = abc_metadata_get(metadata, "frameEnd");
    info->has_frames = first && last && abc_parse_number(first, &info->first_frame) &&
                       abc_parse_number(last, &info->last_frame);
    info->library_version = reader->library_version;
    info->file_size = reader->source.size;
    info->object_count = reader->object_count;
    return ABC_OK;
}

size_t abc_reader_time_sampling_count(const abc_reader *reader) {
    return reader && reader->open ? reader->sampling_count : 0;
}

const abc_time_sampling *abc_reader_time_sampling(const abc_reader *reader, size_t index) {
    return index < abc_reader_time_sampling_count(reader) ? &reader->samplings[index] : NULL;
}

abc_status abc_reader_time_range(abc_reader *reader, double *start, double *end) {
    *start = *end = 0.0;
    abc_status status = abc_reader_ready(reader);
    if (status < 0)
        return status;
    /* Animated samplings decide; without any, those with one sample; without those, the default. */
    for (int pass = 0; pass < 3; pass++) {
        bool found = false;
        size_t from = pass < 2 ? 1 : 0;
        size_t to = pass < 2 ? reader->sampling_count : 1;
        for (size_t i = from; i < to; i++) {
            const abc_time_sampling *s = &reader->samplings[i];
            uint64_t max = s->max_samples;
            if ((pass == 0 && max <= 1) || (pass == 1 && max != 1))
                continue;
            if (s->kind == ABC_ACYCLIC && max > s->time_count)
                max = s->time_count;
            double first = abc_time_of(s, 0), last = abc_time_of(s, max ? max - 1 : 0);
            *start = !found || first < *start ? first : *start;
            *end = !found || last > *end ? last : *end;
            found = true;
        }
        if (found)
            break;
    }
    return ABC_OK;
}

abc_object *abc_reader_top(abc_reader *reader) {
    return reader && reader->open ? &reader->top : NULL;
}

abc_status abc_reader_find(abc_reader *reader, const char *path, abc_object **object) {
    *object = NULL;
    abc_status status = abc_reader_ready(reader);
    if (status < 0)
        return status;
    abc_object *at = &reader->top;
    for (const char *name = path; *name;) {
        size_t length = strcspn(name, "/");
        if (length) {
            abc_object *child = NULL;
            for (size_t i = 0; i < at->child_count && !child; i++)
                if (strlen(at->children[i].name) == length &&
                    memcmp(at->children[i].name, name, length) == 0)
                    child = &at->children[i];
            if (!child)
                return abc_fail(&reader->core, ABC_MISSING,
                                "there is no object '%.300s'; list the archive to see its objects",
                                path);
            at = child;
        }
        name += length + (name[length] == '/');
    }
    *object = at;
    return ABC_OK;
}

const char *abc_object_name(const abc_object *object) {
    return object->name;
}

size_t abc_object_path(const abc_object *object, char *path, size_t size) {
    size_t length = 0;
    for (const abc_object *o = object; o->parent; o = o->parent)
        length += 1 + strlen(o->name);
    if (length == 0) {
        snprintf(path, size, "/");
        return 1;
    }
    /* Filled from the end; what does not fit is skipped. */
    size_t end = length;
    for (const abc_object *o = object; o->parent; o = o->parent) {
        size_t part = strlen(o->name);
        end -= part + 1;
        for (size_t i = 0; size && i <= part && end + i < size - 1; i++)
            path[end + i] = i ? o->name[i - 1] : '/';
    }
    if (size)
        path[length < size ? length : size - 1] = '\0';
    return length;
}

abc_schema abc_object_schema(const abc_object *object) {
    return object->schema;
}

const char *abc_object_schema_name(const abc_object *object) {
    const char *schema = object->parent ? abc_metadata_get(object->metadata, "schema") : NULL;
    return schema ? schema : "";
}

const abc_metadata *abc_object_metadata(const abc_object *object) {
    return object->metadata;
}

abc_object *abc_object_parent(const abc_object *object) {
    return object->parent;
}

size_t abc_object_child_count(const abc_object *object) {
    return object->child_count;
}

abc_object *abc_object_child(const abc_object *object, size_t index) {
    return index < object->child_count ? &object->children[index] : NULL;
}

abc_status abc_object_resolve(abc_reader *reader, abc_object *object, abc_object **original) {
    abc_status status = abc_reader_ready(reader);
    abc_sample text = {0};
    *original = object;
    for (int hop = 0; status >= 0; hop++) {
        const char *mark = abc_metadata_get((*original)->metadata, "isInstance");
        if (!mark || strcmp(mark, "1") != 0)
            break;
        abc_property *top = NULL, *source = NULL;
        status = abc_object_properties(reader, *original, &top);
        if (status >= 0)
            source = abc_property_find(top, ".instanceSource");
        if (status < 0)
            break;
        if (hop == ABC_INSTANCE_HOPS || !source || source->kind != ABC_SCALAR ||
            source->pod != ABC_STRING) {
            status =
                abc_fail(&reader->core, ABC_FORMAT, "the instance leads nowhere; %s", ABC_DAMAGED);
            abc_reader_at(reader, object, NULL, status);
            break;
        }
        status = abc_property_read(reader, source, 0, &text);
        if (status >= 0)
            status = abc_reader_find(reader, text.data, original);
    }
    abc_sample_free(reader, &text);
    if (status < 0)
        *original = NULL;
    return status;
}

/* ---------------------------------------------------------------- properties */

static abc_status abc_check_changes(abc_reader *reader, abc_property *p, uint32_t info) {
    bool ranged = info & 0x200, constant = info & 0x800;
    if (!ranged && !constant && p->samples > 1) {
        p->first = 1;
        p->last = p->samples - 1;
    }
    if (p->first > p->last || (p->last && (p->first == 0 || p->last >= p->samples)))
        return abc_fail(&reader->core, ABC_FORMAT, "changes %llu to %llu of %llu samples; %s",
                        (unsigned long long)p->first, (unsigned long long)p->last,
                        (unsigned long long)p->samples, ABC_DAMAGED);
    return ABC_OK;
}

/* One property header; `p` null: only step over it. */
static abc_status abc_take_property(abc_reader *reader, abc_cursor *cursor, abc_property *p) {
    static const size_t widths[4] = {1, 2, 4, 0};
    abc_core *core = &reader->core;
    abc_property scratch = {0};
    if (!p)
        p = &scratch;
    uint32_t info = abc_take_number(cursor, 4);
    uint32_t type = info & 3;
    size_t width = widths[info >> 2 & 3];
    p->kind = type == 0 ? ABC_COMPOUND : type == 1 ? ABC_SCALAR : ABC_ARRAY;
    if (width == 0)
        return abc_fail(core, ABC_FORMAT, "a property header has number width 3; %s", ABC_DAMAGED);
    if (p->kind != ABC_COMPOUND) {
        p->pod = (abc_pod)(info >> 4 & 15);
        p->extent = info >> 12 & 255;
        p->samples = abc_take_number(cursor, width);
        if (info & 0x200) {
            p->first = abc_take_number(cursor, width);
            p->last = abc_take_number(cursor, width);
        }
        p->time_sampling = info & 0x100 ? abc_take_number(cursor, width) : 0;
    }
    uint32_t length = abc_take_number(cursor, width);
    const uint8_t *name = abc_take(cursor, length);
    uint32_t index = info >> 20 & 255;
    uint32_t inlined_size = index == ABC_INLINE ? abc_take_number(cursor, width) : 0;
    const uint8_t *inlined = abc_take(cursor, inlined_size);
    if (cursor->bad || length == 0 || memchr(name, '\0', length))
        return abc_fail(core, ABC_FORMAT, "the list of properties is cut short; %s", ABC_DAMAGED);
    if (p == &scratch)
        return ABC_OK;
    p->name = abc_arena_text(core, name, length);
    if (!p->name)
        return abc_fail_memory(core, "a property name", length);
    abc_status status = abc_take_metadata(reader, index, inlined, inlined_size, &p->metadata);
    if (status < 0 || p->kind == ABC_COMPOUND)
        return status;
    if (p->pod >= ABC_POD_COUNT || p->extent == 0)
        return abc_fail(core, ABC_FORMAT, "type %d with extent %u; %s", (int)p->pod, p->extent,
                        ABC_DAMAGED);
    if (p->time_sampling >= reader->sampling_count)
        return abc_fail(core, ABC_FORMAT, "time sampling %u of %llu; %s", p->time_sampling,
                        (unsigned long long)reader->sampling_count, ABC_DAMAGED);
    return abc_check_changes(reader, p, info);
}

static uint64_t abc_stored(const abc_property *p) {
    return p->samples == 0 ? 0 : 1 + (p->last ? p->last - p->first + 1 : 0);
}

/* Makes the sub-property array of a compound from its header block. */
static abc_status abc_load_property_headers(abc_reader *reader, abc_property *compound,
                                            uint64_t word) {
    uint8_t *bytes = NULL;
    size_t size = 0, count = 0;
    abc_status status = abc_load_data(reader, word, &bytes, &size);
    if (status < 0)
        goto out;
    for (abc_cursor cursor = {bytes, size, false}; status >= 0 && cursor.left; count++)
        status = abc_take_property(reader, &cursor, NULL);
    if (status < 0 || count == 0)
        goto out;
    compound->children = abc_arena(&reader->core, count, sizeof *compound->children);
    if (!compound->children) {
        status = abc_fail_memory(&reader->core, "properties", count * sizeof *compound->children);
        goto out;
    }
    abc_cursor cursor = {bytes, size, false};
    for (size_t i = 0; i < count; i++) {
        abc_property *child = &compound->children[i];
        child->object = compound->object;
        child->parent = compound;
        status = abc_take_property(reader, &cursor, child);
        if (status < 0) {
            if (child->name)
                abc_prefix(&reader->core, "sub-property '%.100s': ", child->name);
            goto out;
        }
    }
    compound->child_count = count;
out:
    abc_release(&reader->core, bytes);
    return status;
}

/* A compound group: one group per sub-property, then their headers. */
static abc_status abc_load_compound(abc_reader *reader, abc_property *compound, uint64_t word,
                                    int depth) {
    abc_core *core = &reader->core;
    abc_block group;
    uint64_t last = 0;
    if (depth > ABC_MAX_DEPTH)
        return abc_fail(core, ABC_FORMAT, "properties are nested more than %d deep; %s",
                        ABC_MAX_DEPTH, ABC_DAMAGED);
    abc_status status = abc_source_group(core, &reader->source, word, &group);
    if (status >= 0 && group.count == 0)
        return ABC_OK;
    if (status >= 0)
        status = abc_charge(reader, 8 * group.count);
    if (status >= 0)
        status = abc_source_child(core, &reader->source, group, group.count - 1, &last);
    if (status >= 0)
        status = abc_load_property_headers(reader, compound, last);
    if (status >= 0 && compound->child_count > group.count - 1)
        status = abc_fail(core, ABC_FORMAT, "%llu properties are named but %llu stored; %s",
                          (unsigned long long)compound->child_count,
                          (unsigned long long)group.count - 1, ABC_DAMAGED);
    if (status < 0)
        return abc_reader_at(reader, compound->object, compound, status);
    for (size_t i = 0; i < compound->child_count; i++) {
        abc_property *child = &compound->children[i];
        status = abc_source_child(core, &reader->source, group, i, &word);
        if (status >= 0 && child->kind == ABC_COMPOUND) {
            status = abc_load_compound(reader, child, word, depth + 1);
            if (status < 0)
                return status;
            continue;
        }
        if (status >= 0)
            status = abc_source_group(core, &reader->source, word, &child->group);
        /* Counted against what is stored, so that a claim of 2^32 samples costs nothing. */
        if (status >= 0 &&
            child->group.count / (child->kind == ABC_ARRAY ? 2 : 1) < abc_stored(child))
            status =
                abc_fail(core, ABC_FORMAT, "%llu samples need %llu places, %llu words stored; %s",
                         (unsigned long long)child->samples, (unsigned long long)abc_stored(child),
                         (unsigned long long)child->group.count, ABC_DAMAGED);
        if (status < 0)
            return abc_reader_at(reader, child->object, child, status);
    }
    return ABC_OK;
}

abc_status abc_object_properties(abc_reader *reader, abc_object *object, abc_property **top) {
    static const abc_metadata none = {NULL, 0};
    *top = NULL;
    abc_status status = abc_reader_ready(reader);
    if (status < 0)
        return status;
    if (!object->top) {
        abc_property *made = abc_arena(&reader->core, 1, sizeof *made);
        if (!made)
            return abc_fail_memory(&reader->core, "properties", sizeof *made);
        made->object = object;
        made->name = "";
        made->metadata = &none;
        object->loaded = abc_load_compound(reader, made, object->property_word, 0);
        object->top = made;
        if (object->loaded < 0)
            return object->loaded;
    }
    if (object->loaded < 0) {
        abc_fail(&reader->core, object->loaded, "its properties could not be read before; %s",
                 ABC_DAMAGED);
        return abc_reader_at(reader, object, NULL, object->loaded);
    }
    *top = object->top;
    return ABC_OK;
}

size_t abc_property_child_count(const abc_property *property) {
    return property->child_count;
}

abc_property *abc_property_child(const abc_property *property, size_t index) {
    return index < property->child_count ? &property->children[index] : NULL;
}

abc_property *abc_property_find(const abc_property *property, const char *name) {
    for (size_t i = 0; property && i < property->child_count; i++)
        if (strcmp(property->children[i].name, name) == 0)
            return &property->children[i];
    return NULL;
}

void abc_property_get_info(const abc_property *property, abc_property_info *info) {
    *info = (abc_property_info){
        .name = property->name,
        .kind = property->kind,
        .pod = property->pod,
        .extent = property->extent,
        .samples = property->samples,
        .stored = abc_stored(property),
        .constant = property->first == 0,
        .time_sampling = property->time_sampling,
        .metadata = *property->metadata,
    };
}

abc_status abc_property_time(abc_reader *reader, const abc_property *property, uint64_t index,
                             double *time) {
    *time = 0.0;
    abc_status status = abc_reader_ready(reader);
    if (status < 0)
        return status;
    *time = abc_time_of(&reader->samplings[property->time_sampling], index);
    if (!isnan(*time))
        return ABC_OK;
    status = abc_fail(&reader->core, ABC_FORMAT, "sample %llu has no time; %s",
                      (unsigned long long)index, ABC_DAMAGED);
    return abc_reader_at(reader, property->object, property, status);
}

/* ---------------------------------------------------------------- samples */

static abc_status abc_sample_fit(abc_reader *reader, abc_sample *sample, uint64_t size) {
    if (sample->data && size <= sample->capacity)
        return ABC_OK;
    void *data = size > SIZE_MAX ? NULL : abc_allocate(&reader->core, (size_t)size);
    if (!data)
        return abc_fail_memory(&reader->core, "a sample", size);
    abc_release(&reader->core, sample->data);
    sample->data = data;
    sample->capacity = (size_t)size;
    return ABC_OK;
}

void abc_sample_free(abc_reader *reader, abc_sample *sample) {
    if (reader && sample->data)
        abc_release(&reader->core, sample->data);
    *sample = (abc_sample){0};
}

static size_t abc_put_utf8(char *to, uint32_t c) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* 32-bit units to UTF-8 in place: no character grows. Windows writers store UTF-16 pairs. */
static size_t abc_narrow(char *text, size_t size) {
    size_t from = 0, to = 0;
    while (from + 4 <= size) {
        uint32_t c, low = 0;
        memcpy(&c, text + from, 4);
        from += 4;
        if (c >= 0xd800 && c < 0xdc00 && from + 4 <= size) {
            memcpy(&low, text + from, 4);
            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                from += 4;
            }
        }
        to += abc_put_utf8(text + to, c);
    }
    return to;
}

/* Makes `size` bytes hold whole texts: at most `wanted`, for a scalar exactly so many. The buffer
 * has room for 256 more bytes, the most an extent can ask for. */
static abc_status abc_settle_texts(abc_reader *reader, const abc_property *p, abc_sample *sample,
                                   size_t size, uint64_t wanted) {
    char *text = sample->data;
    uint64_t found = 0;
    size_t used = 0;
    while (used < size && found < wanted) {
        const char *end = memchr(text + used, '\0', size - used);
        if (!end)
            text[size] = '\0';
        used = end ? (size_t)(end - text) + 1 : size + 1;
        found++;
    }
    if (p->kind == ABC_SCALAR)
        for (; found < wanted; found++)
            text[used++] = '\0';
    sample->size = used;
    sample->count = found / p->extent;
    if (found == wanted)
        return ABC_OK;
    sample->rank = 1;
    sample->dims[0] = sample->count;
    if (wanted == ABC_UNKNOWN * p->extent)
        return ABC_OK;
    return abc_fail(&reader->core, ABC_WARNING, "%llu texts are announced but %llu stored",
                    (unsigned long long)wanted, (unsigned long long)found);
}

/* Dimensions that do not multiply to the element count are ignored, as other readers do. For texts
 * (`known` false) they are the count. */
static abc_status abc_read_dims(abc_reader *reader, uint64_t word, bool known, abc_sample *sample) {
    abc_block data;
    abc_status status = abc_source_data(&reader->core, &reader->source, word, &data);
    if (status < 0)
        return status;
    uint64_t dims[ABC_MAX_RANK], product = 1;
    uint64_t rank = data.count / 8;
    bool usable = rank >= 1 && rank <= ABC_MAX_RANK;
    if (usable) {
        status =
            abc_source_read(&reader->core, &reader->source, data.offset, dims, 8 * (size_t)rank);
        if (status < 0)
            return status;
    }
    for (uint64_t i = 0; usable && i < rank; i++) {
        usable = dims[i] == 0 || product <= UINT64_MAX / dims[i];
        product *= dims[i];
    }
    if (usable && !known)
        sample->count = product;
    sample->rank = usable && product == sample->count ? (uint32_t)rank : 1;
    sample->dims[0] = sample->count;
    if (sample->rank > 1 || (usable && product == sample->count))
        memcpy(sample->dims, dims, 8 * (size_t)rank);
    return ABC_OK;
}

static abc_status abc_read_slot(abc_reader *reader, const abc_property *p, uint64_t slot,
                                abc_sample *sample) {
    abc_core *core = &reader->core;
    const bool array = p->kind == ABC_ARRAY, texts = p->pod >= ABC_STRING;
    const uint64_t element = (uint64_t)p->extent * abc_pod_size(p->pod);
    uint64_t word = 0;
    abc_block data;
    abc_status status =
        abc_source_child(core, &reader->source, p->group, array ? 2 * slot : slot, &word);
    if (status >= 0)
        status = abc_source_data(core, &reader->source, word, &data);
    if (status < 0)
        return status;
    /* Only an array of no elements may do without its key. */
    if (data.count < ABC_KEY_SIZE && (data.count > 0 || !array))
        return abc_fail(
            core, ABC_FORMAT, "the sample at offset %llu has %llu bytes, less than its key; %s",
            (unsigned long long)data.offset, (unsigned long long)data.count, ABC_DAMAGED);
    memset(sample->key, 0, sizeof sample->key);
    uint64_t size = data.count ? data.count - ABC_KEY_SIZE : 0;
    if (!texts && (array ? size % element != 0 : size != element))
        return abc_fail(core, ABC_FORMAT,
                        "the sample at offset %llu has %llu bytes for elements of %llu; %s",
                        (unsigned long long)data.offset, (unsigned long long)size,
                        (unsigned long long)element, ABC_DAMAGED);
    status = abc_sample_fit(reader, sample, size + (texts ? 257 : 0));
    if (status >= 0 && data.count)
        status = abc_source_read(core, &reader->source, data.offset, sample->key, ABC_KEY_SIZE);
    if (status >= 0)
        status = abc_source_read(core, &reader->source, data.offset + ABC_KEY_SIZE, sample->data,
                                 (size_t)size);
    if (status < 0)
        return status;
    sample->size = (size_t)size;
    sample->count = texts ? (array ? ABC_UNKNOWN : 1) : size / element;
    sample->rank = array ? 1 : 0;
    sample->dims[0] = sample->count;
    if (array) {
        status = abc_source_child(core, &reader->source, p->group, 2 * slot + 1, &word);
        if (status >= 0)
            status = abc_read_dims(reader, word, !texts, sample);
        if (status < 0)
            return status;
    }
    if (!texts)
        return ABC_OK;
    if (p->pod == ABC_WSTRING)
        size = abc_narrow(sample->data, (size_t)size);
    if (sample->count > ABC_UNKNOWN)
        sample->count = ABC_UNKNOWN;
    return abc_settle_texts(reader, p, sample, (size_t)size, sample->count * p->extent);
}

/* Which stored sample is sample `index`: those before the first change equal sample 0, those after
 * the last change the last one. */
static uint64_t abc_slot(const abc_property *p, uint64_t index) {
    if (p->first == 0 || index < p->first)
        return 0;
    return (index < p->last ? index : p->last) - p->first + 1;
}

abc_status abc_property_elements(abc_reader *reader, const abc_property *p, uint64_t index,
                                 uint64_t *count) {
    const uint64_t element = (uint64_t)p->extent * abc_pod_size(p->pod);
    abc_block data;
    uint64_t word = 0;
    *count = 0;
    if (p->kind != ABC_ARRAY || element == 0 || p->samples == 0)
        return ABC_OK;
    index = index < p->samples ? index : p->samples - 1;
    abc_status status =
        abc_source_child(&reader->core, &reader->source, p->group, 2 * abc_slot(p, index), &word);
    if (status >= 0)
        status = abc_source_data(&reader->core, &reader->source, word, &data);
    if (status < 0)
        return abc_reader_at(reader, p->object, p, status);
    *count = data.count > ABC_KEY_SIZE ? (data.count - ABC_KEY_SIZE) / element : 0;
    return ABC_OK;
}

abc_status abc_property_read(abc_reader *reader, abc_property *p, uint64_t index,
                             abc_sample *sample) {
    abc_status status = abc_reader_ready(reader);
    if (status < 0)
        return status;
    if (p->kind == ABC_COMPOUND || index >= p->samples) {
        status = abc_fail(&reader->core, p->samples ? ABC_INVALID : ABC_MISSING,
                          "sample %llu was asked for, there are %llu", (unsigned long long)index,
                          (unsigned long long)p->samples);
        return abc_reader_at(reader, p->object, p, status);
    }
    status = abc_read_slot(reader, p, abc_slot(p, index), sample);
    if (status == ABC_OK)
        return status;
    abc_prefix(&reader->core, "sample %llu: ", (unsigned long long)index);
    return abc_reader_at(reader, p->object, p, status);
}
