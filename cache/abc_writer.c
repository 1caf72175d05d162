/* Writing archives: samples go to disk when given, the structure when the archive is finished.
 *
 * A sample is keyed by its hash; equal payloads are stored once in the whole archive and a property
 * keeps only words pointing to them: slot 0 for sample 0, then one per sample from the first to the
 * last change. Finishing goes depth first, children before parents, so that every offset is known
 * when it is written and nothing but the file header is ever patched.
 */
#include "abc_internal.h"

#include <math.h>
#include <string.h>

/* The version of the reference library whose layout this is. */
#define ABC_LIBRARY_VERSION 10812
#define ABC_TABLE_ENTRIES 254
#define ABC_TABLE_TEXT 256
#define ABC_INLINE 255

/* Low bits of a table tag: which kind of bytes a key stands for. */
enum { ABC_TAG_NUMBERS, ABC_TAG_TEXT, ABC_TAG_WIDE, ABC_TAG_NAME };

/* ---------------------------------------------------------------- state and messages */

abc_status abc_writer_ready(abc_writer *writer) {
    if (!writer)
        return ABC_MISUSE;
    if (writer->failed < 0)
        return writer->failed;
    if (writer->finished)
        return abc_fail(&writer->core, ABC_MISUSE, "the archive is finished; open a new one");
    return ABC_OK;
}

abc_status abc_writer_keep(abc_writer *writer, abc_status status) {
    if ((status == ABC_IO || status == ABC_NO_MEMORY) && writer->failed == ABC_OK)
        writer->failed = status;
    return status;
}

static void abc_wobject_path(const abc_wobject *object, char *path, size_t size) {
    path[0] = '\0';
    if (!object->parent)
        return;
    abc_wobject_path(object->parent, path, size);
    size_t length = strlen(path);
    snprintf(path + length, size - length, "/%s", object->name);
}

abc_status abc_writer_at(abc_writer *writer, const abc_wobject *object, const char *property,
                         abc_status status) {
    char path[200];
    if (status == ABC_OK || status == ABC_NO_MEMORY)
        return status;
    abc_wobject_path(object, path, sizeof path);
    if (property && *property)
        abc_prefix(&writer->core, "object %s, property %.100s: ", *path ? path : "/", property);
    else
        abc_prefix(&writer->core, "object %s: ", *path ? path : "/");
    return status;
}

void abc_writer_add_hook(abc_writer *writer, abc_hook *hook) {
    *writer->last_hook = hook;
    writer->last_hook = &hook->next;
}

/* ---------------------------------------------------------------- metadata */

static bool abc_metadata_clean(const char *text) {
    return !strpbrk(text, ";=");
}

/* "key=value;key=value" in ascending order of keys, the first of equal keys winning. */
static abc_status abc_serialise(abc_writer *writer, const abc_pair *given, size_t count,
                                const char **text) {
    abc_core *core = &writer->core;
    abc_status status = ABC_OK;
    size_t length = 1, kept = 0;
    *text = "";
    if (count == 0)
        return ABC_OK;
    abc_pair *pairs =
        count <= SIZE_MAX / sizeof *pairs ? abc_allocate(core, count * sizeof *pairs) : NULL;
    if (!pairs)
        return abc_writer_keep(writer, abc_fail_memory(core, "metadata", count));
    for (size_t i = 0; i < count; i++) {
        abc_pair pair = given[i];
        if (!pair.key || !*pair.key || !abc_metadata_clean(pair.key) ||
            (pair.value && !abc_metadata_clean(pair.value))) {
            status =
                abc_fail(core, ABC_INVALID,
                         "metadata '%.100s' = '%.200s': neither may hold ';' or '='; change it",
                         pair.key ? pair.key : "", pair.value ? pair.value : "");
            goto out;
        }
        if (!pair.value || !*pair.value)
            continue;
        size_t at = kept;
        while (at > 0 && strcmp(pairs[at - 1].key, pair.key) > 0)
            at--;
        if (at > 0 && strcmp(pairs[at - 1].key, pair.key) == 0)
            continue;
        memmove(&pairs[at + 1], &pairs[at], (kept - at) * sizeof *pairs);
        pairs[at] = pair;
        kept++;
        length += strlen(pair.key) + strlen(pair.value) + 2;
    }
    char *end = abc_arena(core, length, 1);
    if (!end) {
        status = abc_writer_keep(writer, abc_fail_memory(core, "metadata", length));
        goto out;
    }
    *text = end;
    for (size_t i = 0; i < kept; i++)
        end += sprintf(end, "%s%s=%s", i ? ";" : "", pairs[i].key, pairs[i].value);
out:
    abc_release(core, pairs);
    return status;
}

abc_status abc_writer_set_metadata(abc_writer *writer, const char *key, const char *value) {
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    abc_core *core = &writer->core;
    if (!key || !*key || !abc_metadata_clean(key) || (value && !abc_metadata_clean(value)))
        return abc_fail(
            core, ABC_INVALID,
            "archive metadata '%.100s' = '%.200s': neither may hold ';' or '='; change it",
            key ? key : "", value ? value : "");
    abc_pair pair = {abc_arena_text(core, key, strlen(key)),
                     abc_arena_text(core, value ? value : "", value ? strlen(value) : 0)};
    if (!pair.key || !pair.value)
        return abc_writer_keep(writer, abc_fail_memory(core, "metadata", strlen(key)));
    abc_pair *pairs = (abc_pair *)(void *)writer->pairs.data;
    for (size_t i = 0; i < writer->pairs.size / sizeof *pairs; i++)
        if (strcmp(pairs[i].key, key) == 0) {
            pairs[i] = pair;
            return ABC_OK;
        }
    return abc_writer_keep(writer, abc_bytes_append(core, &writer->pairs, &pair, sizeof pair));
}

static abc_status abc_set_number(abc_writer *writer, const char *key, double value) {
    char text[40];
    abc_format_number(text, sizeof text, value);
    return abc_writer_set_metadata(writer, key, text);
}

/* Index of a text in the table, entering it if there is room. */
static abc_status abc_table_index(abc_writer *writer, const char *text, uint32_t *index) {
    *index = 0;
    if (!*text)
        return ABC_OK;
    const char **table = (const char **)(void *)writer->table.data;
    uint32_t count = (uint32_t)(writer->table.size / sizeof *table);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(table[i], text) == 0) {
            *index = i + 1;
            return ABC_OK;
        }
    *index = ABC_INLINE;
    if (count >= ABC_TABLE_ENTRIES || strlen(text) >= ABC_TABLE_TEXT)
        return ABC_OK;
    *index = count + 1;
    return abc_bytes_append(&writer->core, &writer->table, &text, sizeof text);
}

/* ---------------------------------------------------------------- time samplings */

static abc_wsampling *abc_sampling(abc_writer *writer, size_t index) {
    return (abc_wsampling *)(void *)writer->samplings.data + index;
}

static bool abc_same_sampling(const abc_time_sampling *a, const abc_time_sampling *b) {
    /* Periods this close are one to the reference library too. */
    return a->kind == b->kind && a->kind != ABC_ACYCLIC && fabs(a->period - b->period) <= 1e-9 &&
           a->time_count == b->time_count &&
           memcmp(a->times, b->times, a->time_count * sizeof *a->times) == 0;
}

abc_status abc_writer_add_time_sampling(abc_writer *writer, const abc_time_sampling *sampling,
                                        uint32_t *index) {
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if (!sampling || !index)
        return abc_fail(&writer->core, ABC_MISUSE, "no time sampling given");
    status = abc_time_check(&writer->core, sampling);
    if (status < 0)
        return status;
    if (sampling->time_count > UINT32_MAX)
        return abc_fail(&writer->core, ABC_INVALID, "a time sampling has more than 2^32 - 1 times");
    for (size_t i = 0; i < writer->sampling_count; i++)
        if (abc_same_sampling(&abc_sampling(writer, i)->sampling, sampling)) {
            *index = (uint32_t)i;
            return ABC_OK;
        }
    abc_wsampling made = {*sampling, {0}, 0};
    status = abc_bytes_append(&writer->core, &made.times, sampling->times,
                              sampling->time_count * sizeof *sampling->times);
    made.sampling.times = (const double *)(void *)made.times.data;
    if (status >= 0)
        status = abc_bytes_append(&writer->core, &writer->samplings, &made, sizeof made);
    if (status < 0) {
        abc_bytes_free(&writer->core, &made.times);
        return abc_writer_keep(writer, status);
    }
    *index = (uint32_t)writer->sampling_count++;
    return ABC_OK;
}

abc_status abc_writer_add_uniform(abc_writer *writer, double start, double period,
                                  uint32_t *index) {
    abc_time_sampling sampling = {ABC_UNIFORM, period, &start, 1, 0};
    return abc_writer_add_time_sampling(writer, &sampling, index);
}

abc_status abc_writer_add_time(abc_writer *writer, uint32_t index, double time) {
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if (index >= writer->sampling_count ||
        abc_sampling(writer, index)->sampling.kind != ABC_ACYCLIC)
        return abc_fail(&writer->core, ABC_INVALID, "time sampling %u is not an acyclic one",
                        index);
    abc_wsampling *to = abc_sampling(writer, index);
    double last = to->sampling.times[to->sampling.time_count - 1];
    if (!(time > last) || !isfinite(time) || to->sampling.time_count >= UINT32_MAX)
        return abc_fail(&writer->core, ABC_INVALID,
                        "time %g s of sampling %u does not come after %g s", time, index, last);
    status = abc_bytes_append(&writer->core, &to->times, &time, sizeof time);
    if (status < 0)
        return abc_writer_keep(writer, status);
    to->sampling.times = (const double *)(void *)to->times.data;
    to->sampling.time_count++;
    return ABC_OK;
}

/* ---------------------------------------------------------------- objects and properties */

/* Enters a name below `parent_id`; a second time it is refused. Ids are never reused. */
static abc_status abc_claim_name(abc_writer *writer, uint64_t parent_id, const char *name,
                                 const char *kind) {
    abc_core *core = &writer->core;
    if (!name || !*name || strchr(name, '/'))
        return abc_fail(core, ABC_INVALID, "%s name '%.200s' is empty or holds '/'; choose another",
                        kind, name ? name : "");
    if (strlen(name) > UINT32_MAX / 2)
        return abc_fail(core, ABC_INVALID, "the name of a new %s is too long", kind);
    abc_key key = abc_murmur(name, strlen(name));
    uint64_t tag = parent_id << 2 | ABC_TAG_NAME;
    if (abc_map_find(&writer->shared, key, tag))
        return abc_fail(core, ABC_INVALID, "%s '%.200s' exists already; choose another name", kind,
                        name);
    return abc_writer_keep(writer, abc_map_add(core, &writer->shared, key, tag, 1));
}

static void abc_wobject_init(abc_writer *writer, abc_wobject *object, abc_wobject *parent) {
    object->writer = writer;
    object->parent = parent;
    object->depth = parent ? parent->depth + 1 : 0;
    object->id = writer->next_id++;
    object->top.writer = writer;
    object->top.object = object;
    object->top.name = "";
    object->top.metadata = "";
    object->top.id = writer->next_id++;
}

abc_wobject *abc_writer_top(abc_writer *writer) {
    return writer ? &writer->top : NULL;
}

abc_status abc_wobject_create(abc_wobject *parent, const char *name, const abc_metadata *metadata,
                              abc_wobject **out) {
    if (!parent || !out)
        return ABC_MISUSE;
    *out = NULL;
    abc_writer *writer = parent->writer;
    const char *text = "";
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if (parent->depth >= ABC_MAX_DEPTH)
        status =
            abc_fail(&writer->core, ABC_INVALID, "objects may be nested %d deep", ABC_MAX_DEPTH);
    if (status >= 0 && metadata)
        status = abc_serialise(writer, metadata->pairs, metadata->count, &text);
    if (status >= 0)
        status = abc_claim_name(writer, parent->id, name, "object");
    if (status < 0)
        return abc_writer_at(writer, parent, NULL, status);
    abc_wobject *object = abc_arena(&writer->core, 1, sizeof *object);
    char *copy = abc_arena_text(&writer->core, name, strlen(name));
    if (!object || !copy)
        return abc_writer_keep(writer, abc_fail_memory(&writer->core, "an object", sizeof *object));
    abc_wobject_init(writer, object, parent);
    object->name = copy;
    object->metadata = text;
    if (parent->last_child)
        parent->last_child->next = object;
    else
        parent->first_child = object;
    parent->last_child = object;
    parent->child_count++;
    *out = object;
    return ABC_OK;
}

abc_wproperty *abc_wobject_properties(abc_wobject *object) {
    return object ? &object->top : NULL;
}

abc_status abc_wproperty_create(abc_wproperty *parent, const abc_wproperty_def *def,
                                abc_wproperty **out) {
    if (!parent || !def || !out)
        return ABC_MISUSE;
    *out = NULL;
    abc_writer *writer = parent->writer;
    abc_core *core = &writer->core;
    const char *text = "";
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    if (parent->kind != ABC_COMPOUND)
        status = abc_fail(core, ABC_INVALID, "only compounds have sub-properties");
    else if (parent->depth >= ABC_MAX_DEPTH)
        status = abc_fail(core, ABC_INVALID, "properties may be nested %d deep", ABC_MAX_DEPTH);
    else if (def->kind != ABC_COMPOUND &&
             ((unsigned)def->pod >= ABC_POD_COUNT || def->extent < 1 || def->extent > 255))
        status = abc_fail(core, ABC_INVALID, "type %d with extent %u; extents are 1 to 255",
                          (int)def->pod, def->extent);
    else if (def->kind != ABC_COMPOUND && def->time_sampling >= writer->sampling_count)
        status = abc_fail(core, ABC_INVALID, "there is no time sampling %u; add it first",
                          def->time_sampling);
    if (status >= 0)
        status = abc_serialise(writer, def->metadata.pairs, def->metadata.count, &text);
    if (status >= 0)
        status = abc_claim_name(writer, parent->id, def->name, "property");
    if (status < 0)
        return abc_writer_at(writer, parent->object, def->name, status);
    abc_wproperty *p = abc_arena(core, 1, sizeof *p);
    char *copy = abc_arena_text(core, def->name, strlen(def->name));
    if (!p || !copy)
        return abc_writer_keep(writer, abc_fail_memory(core, "a property", sizeof *p));
    p->writer = writer;
    p->object = parent->object;
    p->parent = parent;
    p->depth = parent->depth + 1;
    p->id = writer->next_id++;
    p->name = copy;
    p->metadata = text;
    p->kind = def->kind;
    if (p->kind != ABC_COMPOUND) {
        p->pod = def->pod;
        p->extent = def->extent;
        p->time_sampling = def->time_sampling;
    }
    p->single = p->plain = true;
    p->next_made = writer->made;
    writer->made = p;
    if (parent->last_child)
        parent->last_child->next = p;
    else
        parent->first_child = p;
    parent->last_child = p;
    *out = p;
    return ABC_OK;
}

/* ---------------------------------------------------------------- samples */

/* The next character of UTF-8 text, U+FFFD for bytes that are none. */
static uint32_t abc_take_utf8(const uint8_t **text) {
    const uint8_t *t = *text;
    uint32_t c = t[0];
    int more = c < 0x80 ? 0 : c >> 5 == 6 ? 1 : c >> 4 == 14 ? 2 : c >> 3 == 30 ? 3 : -1;
    *text = t + 1;
    if (more < 0)
        return 0xfffd;
    if (more > 0)
        c &= 0x3fu >> more;
    for (int i = 1; i <= more; i++) {
        if ((t[i] & 0xc0) != 0x80)
            return 0xfffd;
        c = c << 6 | (t[i] & 0x3f);
    }
    *text = t + 1 + more;
    return c;
}

/* Joins texts, each with its terminator, in the writer's scratch. */
static abc_status abc_join_texts(abc_writer *writer, abc_pod pod, const char *const *texts,
                                 uint64_t count) {
    abc_bytes *to = &writer->scratch_texts;
    abc_status status = ABC_OK;
    to->size = 0;
    for (uint64_t i = 0; status >= 0 && i < count; i++) {
        const char *text = texts[i] ? texts[i] : "";
        if (pod == ABC_STRING) {
            status = abc_bytes_append(&writer->core, to, text, strlen(text) + 1);
            continue;
        }
        const uint8_t *at = (const uint8_t *)text;
        uint32_t c = 0;
        do {
            c = *at ? abc_take_utf8(&at) : 0;
            status = abc_bytes_append(&writer->core, to, &c, sizeof c);
        } while (c && status >= 0);
    }
    return status;
}

static abc_status abc_put_words(abc_wproperty *p) {
    return abc_bytes_append(&p->writer->core, &p->words, p->previous,
                            p->kind == ABC_ARRAY ? 16 : 8);
}

static void abc_count_sample(abc_wproperty *p) {
    p->sum = p->samples ? abc_spooky_fold(p->sum, p->digest) : p->digest;
    p->samples++;
}

/* Stores a payload unless an equal one is in the archive already. */
static abc_status abc_store(abc_writer *writer, abc_key key, uint64_t tag, const void *payload,
                            size_t size, uint64_t *word) {
    *word = ABC_EMPTY_DATA;
    if (size == 0)
        return ABC_OK;
    *word = abc_map_find(&writer->shared, key, tag);
    if (*word)
        return ABC_OK;
    abc_status status =
        abc_sink_data(&writer->core, &writer->sink, &key, sizeof key, payload, size, word);
    if (status < 0)
        return status;
    return abc_map_add(&writer->core, &writer->shared, key, tag, *word);
}

static abc_status abc_append_sample(abc_wproperty *p, const void *payload, size_t size,
                                    uint32_t rank, const uint64_t *dims, uint64_t count) {
    abc_writer *writer = p->writer;
    const bool texts = p->pod >= ABC_STRING;
    abc_status status = ABC_OK;
    /* Only the first quarter of wide text is hashed: a slip of the reference library, kept so that
     * keys agree with it. */
    abc_key key = abc_murmur(payload, p->pod == ABC_WSTRING ? size / 4 : size);
    abc_key digest = key;
    uint64_t tag = (uint64_t)size << 2 | (p->pod == ABC_STRING    ? ABC_TAG_TEXT
                                          : p->pod == ABC_WSTRING ? ABC_TAG_WIDE
                                                                  : ABC_TAG_NUMBERS);
    if (p->kind == ABC_ARRAY) {
        uint64_t message[ABC_MAX_RANK + 2];
        memcpy(message, dims, rank * sizeof *dims);
        memcpy(message + rank, &key, sizeof key);
        digest = abc_spooky(message, rank * sizeof *dims + sizeof key);
    }
    bool same = p->samples && tag == p->previous_tag &&
                memcmp(&key, &p->previous_key, sizeof key) == 0 &&
                memcmp(&digest, &p->digest, sizeof digest) == 0;
    if (!same) {
        /* Unchanged samples before a second change need their places after all. */
        for (uint64_t i = p->last + 1; status >= 0 && p->first && i < p->samples; i++)
            status = abc_put_words(p);
        if (status >= 0)
            status = abc_store(writer, key, tag, payload, size, &p->previous[0]);
        p->previous[1] = ABC_EMPTY_DATA;
        if (status >= 0 && p->kind == ABC_ARRAY && (texts || rank > 1))
            status = abc_sink_data(&writer->core, &writer->sink, dims, rank * sizeof *dims, NULL, 0,
                                   &p->previous[1]);
        if (status >= 0)
            status = abc_put_words(p);
        if (status < 0)
            return status;
        p->previous_key = key;
        p->previous_tag = tag;
        p->digest = digest;
        p->first = p->first ? p->first : p->samples;
        p->last = p->samples;
        p->single = p->single && count == 1;
        /* Set by the reference library for these and no other reason; nobody reads it. */
        p->plain = p->plain && (p->kind == ABC_SCALAR || p->extent == 1 || count == 0);
    }
    abc_count_sample(p);
    return ABC_OK;
}

abc_status abc_wproperty_write_dims(abc_wproperty *p, const void *data, uint32_t rank,
                                    const uint64_t *dims) {
    if (!p)
        return ABC_MISUSE;
    abc_writer *writer = p->writer;
    abc_core *core = &writer->core;
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    uint64_t count = 1;
    size_t size = 0;
    size_t element = p->pod >= ABC_STRING ? sizeof(char *) : p->extent * abc_pod_size(p->pod);
    bool too_large = false;
    for (uint32_t i = 0; dims && i < rank && i < ABC_MAX_RANK; i++) {
        too_large = too_large || (dims[i] && count > UINT64_MAX / dims[i]);
        count *= dims[i];
    }
    if (p->kind == ABC_COMPOUND)
        status = abc_fail(core, ABC_MISUSE, "a compound has no samples");
    else if (!dims || rank < 1 || rank > ABC_MAX_RANK || (p->kind == ABC_SCALAR && count != 1))
        status = abc_fail(core, ABC_INVALID, "a scalar takes 1 element, an array of rank 1 to %d",
                          ABC_MAX_RANK);
    else if (too_large || count > SIZE_MAX / 4 / 255 / sizeof(char *))
        status = abc_fail(core, ABC_INVALID, "a sample of %llu elements is too large",
                          (unsigned long long)count);
    else if (!data && count)
        status = abc_fail(core, ABC_MISUSE, "no data given for %llu elements",
                          (unsigned long long)count);
    else if (p->samples >= UINT32_MAX)
        status = abc_fail(core, ABC_INVALID, "a property holds at most 2^32 - 1 samples");
    if (status < 0)
        return abc_writer_at(writer, p->object, p->name, status);
    size = (size_t)count * element;
    if (p->pod >= ABC_STRING) {
        status = abc_join_texts(writer, p->pod, data, count * p->extent);
        data = writer->scratch_texts.data;
        size = writer->scratch_texts.size;
    }
    if (status >= 0)
        status = abc_append_sample(p, data, size, rank, dims, count);
    return abc_writer_at(writer, p->object, p->name, abc_writer_keep(writer, status));
}

abc_status abc_wproperty_write(abc_wproperty *p, const void *data, uint64_t count) {
    return abc_wproperty_write_dims(p, data, 1, &count);
}

abc_status abc_wproperty_repeat(abc_wproperty *p) {
    if (!p)
        return ABC_MISUSE;
    abc_status status = abc_writer_ready(p->writer);
    if (status < 0)
        return status;
    if (p->samples == 0 || p->samples >= UINT32_MAX) {
        status = abc_fail(&p->writer->core, ABC_MISUSE, "there is no sample to repeat");
        return abc_writer_at(p->writer, p->object, p->name, status);
    }
    abc_count_sample(p);
    return ABC_OK;
}

uint64_t abc_wproperty_samples(const abc_wproperty *property) {
    return property ? property->samples : 0;
}

/* ---------------------------------------------------------------- finishing */

static abc_status abc_append_key(abc_core *core, abc_bytes *bytes, abc_key key) {
    return abc_bytes_append(core, bytes, &key, sizeof key);
}

static abc_status abc_append_text(abc_core *core, abc_bytes *bytes, const char *text) {
    return abc_bytes_append(core, bytes, text, strlen(text));
}

/* The bytes a property's hash takes from its header. */
static abc_status abc_append_identity(abc_wproperty *p, abc_bytes *bytes) {
    abc_core *core = &p->writer->core;
    abc_status status = abc_append_text(core, bytes, p->name);
    if (status >= 0)
        status = abc_append_text(core, bytes, p->metadata);
    if (status < 0 || p->kind == ABC_COMPOUND)
        return status;
    const abc_time_sampling *s = &abc_sampling(p->writer, p->time_sampling)->sampling;
    uint8_t type[3] = {(uint8_t)p->pod, (uint8_t)p->extent, 0};
    uint32_t times = (uint32_t)s->time_count;
    double period = s->kind == ABC_ACYCLIC ? abc_acyclic_period() : s->period;
    status = abc_bytes_append(core, bytes, type, p->kind == ABC_SCALAR ? 3 : 2);
    if (status >= 0)
        status = abc_bytes_append(core, bytes, &period, sizeof period);
    if (status >= 0)
        status = abc_bytes_append(core, bytes, &times, sizeof times);
    if (status >= 0)
        status = abc_bytes_append(core, bytes, s->times, times * sizeof *s->times);
    return status;
}

/* A property header; numbers take the width of the largest. */
static abc_status abc_append_header(abc_wproperty *p, abc_bytes *headers) {
    abc_core *core = &p->writer->core;
    size_t name = strlen(p->name), metadata = strlen(p->metadata);
    uint64_t largest = name > metadata ? name : metadata;
    largest = p->samples > largest ? p->samples : largest;
    largest = p->time_sampling > largest ? p->time_sampling : largest;
    uint32_t hint = largest < 256 ? 0 : largest < 65536 ? 1 : 2;
    uint64_t numbers[4];
    size_t count = 0;
    uint32_t index = 0;
    abc_status status = abc_table_index(p->writer, p->metadata, &index);
    if (status < 0)
        return status;
    uint32_t info = hint << 2 | index << 20;
    if (p->kind != ABC_COMPOUND) {
        info |= p->kind == ABC_SCALAR ? 1u : p->single ? 3u : 2u;
        info |= (uint32_t)p->pod << 4 | p->extent << 12 | (p->plain ? 0x400u : 0);
        numbers[count++] = p->samples;
        if (p->last == 0) {
            info |= 0x800;
        } else if (p->first != 1 || p->last != p->samples - 1) {
            info |= 0x200;
            numbers[count++] = p->first;
            numbers[count++] = p->last;
        }
        if (p->time_sampling) {
            info |= 0x100;
            numbers[count++] = p->time_sampling;
        }
    }
    status = abc_bytes_append(core, headers, &info, sizeof info);
    for (size_t i = 0; status >= 0 && i < count; i++)
        status = abc_bytes_append(core, headers, &numbers[i], (size_t)1 << hint);
    if (status >= 0)
        status = abc_bytes_append(core, headers, &name, (size_t)1 << hint);
    if (status >= 0)
        status = abc_bytes_append(core, headers, p->name, name);
    if (status < 0 || index != ABC_INLINE)
        return status;
    status = abc_bytes_append(core, headers, &metadata, (size_t)1 << hint);
    return status < 0 ? status : abc_bytes_append(core, headers, p->metadata, metadata);
}

/* Writes a compound's sub-properties and group; `hashes` receives theirs in order. */
static abc_status abc_finish_compound(abc_wproperty *compound, abc_bytes *hashes, uint64_t *word) {
    abc_writer *writer = compound->writer;
    abc_core *core = &writer->core;
    abc_bytes headers = {0}, words = {0}, message = {0};
    abc_status status = ABC_OK;
    for (abc_wproperty *p = compound->first_child; status >= 0 && p; p = p->next) {
        uint64_t child = 0;
        message.size = 0;
        if (p->kind == ABC_COMPOUND)
            status = abc_finish_compound(p, &message, &child);
        else
            status = abc_sink_group(core, &writer->sink, (const uint64_t *)(void *)p->words.data,
                                    p->words.size / 8, &child);
        if (status >= 0)
            status = abc_append_identity(p, &message);
        if (status >= 0 && p->samples)
            status = abc_append_key(core, &message, p->sum);
        if (status >= 0)
            status = abc_append_key(core, hashes, abc_spooky(message.data, message.size));
        if (status >= 0)
            status = abc_bytes_append(core, &words, &child, sizeof child);
        if (status >= 0)
            status = abc_append_header(p, &headers);
    }
    uint64_t data = 0;
    if (status >= 0 && headers.size) {
        status = abc_sink_data(core, &writer->sink, headers.data, headers.size, NULL, 0, &data);
        if (status >= 0)
            status = abc_bytes_append(core, &words, &data, sizeof data);
    }
    if (status >= 0)
        status = abc_sink_group(core, &writer->sink, (const uint64_t *)(void *)words.data,
                                words.size / 8, word);
    abc_bytes_free(core, &headers);
    abc_bytes_free(core, &words);
    abc_bytes_free(core, &message);
    return status;
}

static abc_status abc_append_object_header(abc_wobject *object, abc_bytes *headers) {
    abc_core *core = &object->writer->core;
    uint32_t name = (uint32_t)strlen(object->name), metadata = (uint32_t)strlen(object->metadata);
    uint32_t index = 0;
    abc_status status = abc_table_index(object->writer, object->metadata, &index);
    if (status >= 0)
        status = abc_bytes_append(core, headers, &name, sizeof name);
    if (status >= 0)
        status = abc_bytes_append(core, headers, object->name, name);
    if (status >= 0)
        status = abc_bytes_append(core, headers, &index, 1);
    if (status < 0 || index != ABC_INLINE)
        return status;
    status = abc_bytes_append(core, headers, &metadata, sizeof metadata);
    return status < 0 ? status : abc_bytes_append(core, headers, object->metadata, metadata);
}

/* Writes an object with everything below it; gives its word and the hash its parent uses. */
static abc_status abc_finish_object(abc_wobject *object, uint64_t *word, abc_key *hash) {
    abc_writer *writer = object->writer;
    abc_core *core = &writer->core;
    abc_bytes words = {0}, headers = {0}, hashes = {0}, kids = {0};
    uint64_t child = 0;
    abc_status status = abc_bytes_append(core, &words, &child, sizeof child);
    for (abc_wobject *o = object->first_child; status >= 0 && o; o = o->next) {
        abc_key up;
        status = abc_finish_object(o, &child, &up);
        if (status >= 0)
            status = abc_bytes_append(core, &words, &child, sizeof child);
        if (status >= 0)
            status = abc_append_key(core, &kids, up);
        if (status >= 0)
            status = abc_append_object_header(o, &headers);
    }
    if (status >= 0)
        status = abc_finish_compound(&object->top, &hashes, &child);
    if (status < 0)
        goto out;
    memcpy(words.data, &child, sizeof child);
    abc_key properties = abc_spooky(hashes.data, hashes.size);
    abc_key children = kids.size ? abc_spooky(kids.data, kids.size) : (abc_key){{0, 0}};
    status = abc_append_key(core, &headers, properties);
    if (status >= 0)
        status = abc_append_key(core, &headers, children);
    if (status >= 0)
        status = abc_sink_data(core, &writer->sink, headers.data, headers.size, NULL, 0, &child);
    if (status >= 0)
        status = abc_bytes_append(core, &words, &child, sizeof child);
    if (status >= 0)
        status = abc_sink_group(core, &writer->sink, (const uint64_t *)(void *)words.data,
                                words.size / 8, word);
    if (status >= 0)
        status = abc_append_key(core, &kids, properties);
    if (status >= 0)
        status = abc_append_text(core, &kids, object->metadata);
    if (status >= 0)
        status = abc_append_text(core, &kids, object->name);
    if (status >= 0)
        *hash = abc_spooky(kids.data, kids.size);
out:
    abc_bytes_free(core, &words);
    abc_bytes_free(core, &headers);
    abc_bytes_free(core, &hashes);
    abc_bytes_free(core, &kids);
    return status;
}

/* The most samples per sampling, and whether all of them have times. */
static abc_status abc_check_times(abc_writer *writer) {
    for (abc_wproperty *p = writer->made; p; p = p->next_made) {
        if (p->kind == ABC_COMPOUND)
            continue;
        abc_wsampling *s = abc_sampling(writer, p->time_sampling);
        uint64_t samples = p->samples && p->last == 0 ? 1 : p->samples;
        if (samples > s->max_samples)
            s->max_samples = samples;
        if (s->sampling.kind == ABC_ACYCLIC && p->samples > s->sampling.time_count)
            return abc_writer_at(
                writer, p->object, p->name,
                abc_fail(&writer->core, ABC_MISUSE,
                         "%llu samples but %llu times; add the missing times, then finish again",
                         (unsigned long long)p->samples,
                         (unsigned long long)s->sampling.time_count));
    }
    return ABC_OK;
}

/* Root children 3 to 5: archive metadata, time samplings, metadata table. */
static abc_status abc_finish_tables(abc_writer *writer, uint64_t words[6]) {
    abc_core *core = &writer->core;
    abc_bytes bytes = {0};
    const char *text = "";
    abc_status status = abc_serialise(writer, (const abc_pair *)(void *)writer->pairs.data,
                                      writer->pairs.size / sizeof(abc_pair), &text);
    if (status >= 0)
        status = abc_sink_data(core, &writer->sink, text, strlen(text), NULL, 0, &words[3]);
    for (size_t i = 0; status >= 0 && i < writer->sampling_count; i++) {
        const abc_wsampling *s = abc_sampling(writer, i);
        uint32_t max = (uint32_t)s->max_samples, times = (uint32_t)s->sampling.time_count;
        double period = s->sampling.kind == ABC_ACYCLIC ? abc_acyclic_period() : s->sampling.period;
        status = abc_bytes_append(core, &bytes, &max, sizeof max);
        if (status >= 0)
            status = abc_bytes_append(core, &bytes, &period, sizeof period);
        if (status >= 0)
            status = abc_bytes_append(core, &bytes, &times, sizeof times);
        if (status >= 0)
            status = abc_bytes_append(core, &bytes, s->sampling.times, times * sizeof(double));
    }
    if (status >= 0)
        status = abc_sink_data(core, &writer->sink, bytes.data, bytes.size, NULL, 0, &words[4]);
    bytes.size = 0;
    const char **table = (const char **)(void *)writer->table.data;
    for (size_t i = 0; status >= 0 && i < writer->table.size / sizeof *table; i++) {
        uint8_t length = (uint8_t)strlen(table[i]);
        status = abc_bytes_append(core, &bytes, &length, 1);
        if (status >= 0)
            status = abc_bytes_append(core, &bytes, table[i], length);
    }
    if (status >= 0)
        status = abc_sink_data(core, &writer->sink, bytes.data, bytes.size, NULL, 0, &words[5]);
    abc_bytes_free(core, &bytes);
    return status;
}

abc_status abc_writer_finish(abc_writer *writer) {
    static const int32_t storage = 0, library = ABC_LIBRARY_VERSION;
    abc_status status = abc_writer_ready(writer);
    if (status < 0)
        return status;
    abc_core *core = &writer->core;
    uint64_t words[6] = {0}, root = 0;
    abc_key hash;
    for (abc_hook *hook = writer->hooks; status >= 0 && hook; hook = hook->next)
        status = hook->finish(hook);
    if (status >= 0)
        status = abc_check_times(writer);
    /* Up to here a refusal changed nothing and may be put right; from here on it is final. */
    if (status < 0)
        return abc_writer_keep(writer, status);
    status = abc_sink_data(core, &writer->sink, &storage, sizeof storage, NULL, 0, &words[0]);
    if (status >= 0)
        status = abc_sink_data(core, &writer->sink, &library, sizeof library, NULL, 0, &words[1]);
    if (status >= 0)
        status = abc_finish_object(&writer->top, &words[2], &hash);
    if (status >= 0)
        status = abc_finish_tables(writer, words);
    if (status >= 0)
        status = abc_sink_group(core, &writer->sink, words, 6, &root);
    if (status >= 0)
        status = abc_sink_freeze(core, &writer->sink, root);
    writer->finished = status >= 0;
    return abc_writer_keep(writer, status);
}

/* ---------------------------------------------------------------- opening and closing */

abc_writer_options abc_writer_default_options(void) {
    return (abc_writer_options){.scale = 1.0, .last_frame = -1.0};
}

static abc_status abc_writer_start(abc_writer *writer, const char *path,
                                   const abc_writer_options *options) {
    const abc_pair texts[] = {
        {"_ai_AlembicVersion", "Alembic 1.8.12 (libabc " ABC_VERSION ")"},
        {"_ai_Application", options->application},
        {"_ai_Description", options->description},
        {"_ai_DateWritten", options->date},
        {"units", options->units},
    };
    uint32_t index = 0;
    if (!path)
        return abc_fail(&writer->core, ABC_MISUSE, "no file name given");
    if (!(options->scale > 0.0 && isfinite(options->scale)) || !(options->fps >= 0.0) ||
        !isfinite(options->fps))
        return abc_fail(&writer->core, ABC_INVALID,
                        "scale %g must be finite and > 0, fps %g finite and >= 0", options->scale,
                        options->fps);
    abc_status status = abc_writer_add_uniform(writer, 0.0, 1.0, &index);
    for (size_t i = 0; status >= 0 && i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].value)
            status = abc_writer_set_metadata(writer, texts[i].key, texts[i].value);
    /* Two programs, two keys for one number. */
    if (status >= 0 && options->fps > 0.0)
        status = abc_set_number(writer, "_ai_DCC_FPS", options->fps);
    if (status >= 0 && options->fps > 0.0)
        status = abc_set_number(writer, "FramesPerTimeUnit", options->fps);
    if (status >= 0 && options->last_frame >= options->first_frame) {
        status = abc_set_number(writer, "frameStart", options->first_frame);
        if (status >= 0)
            status = abc_set_number(writer, "frameEnd", options->last_frame);
    }
    return status < 0 ? status : abc_sink_open(&writer->core, &writer->sink, path);
}

abc_status abc_writer_open(const char *path, const abc_writer_options *options, abc_writer **out) {
    abc_core core;
    if (!out)
        return ABC_MISUSE;
    *out = NULL;
    abc_core_init(&core, options ? options->allocator : NULL);
    abc_writer *writer = abc_allocate(&core, sizeof *writer);
    if (!writer)
        return ABC_NO_MEMORY;
    memset(writer, 0, sizeof *writer);
    abc_writer_options chosen = options ? *options : abc_writer_default_options();
    writer->core = core;
    writer->options = chosen;
    /* Texts and allocator were the caller's and are copied; only the numbers are used later. */
    writer->options.application = writer->options.description = NULL;
    writer->options.date = writer->options.units = NULL;
    writer->options.allocator = NULL;
    writer->sink.sync = !chosen.no_sync;
    writer->next_id = 1;
    writer->last_hook = &writer->hooks;
    abc_wobject_init(writer, &writer->top, NULL);
    writer->top.name = "ABC";
    writer->top.metadata = "";
    *out = writer;
    abc_status status = abc_writer_start(writer, path, &chosen);
    if (status < 0)
        writer->failed = status;
    return status;
}

void abc_writer_close(abc_writer *writer) {
    if (!writer)
        return;
    abc_core core = writer->core;
    abc_sink_close(&writer->sink);
    for (abc_hook *hook = writer->hooks; hook; hook = hook->next)
        hook->release(hook);
    for (abc_wproperty *p = writer->made; p; p = p->next_made)
        abc_bytes_free(&core, &p->words);
    for (size_t i = 0; i < writer->sampling_count; i++)
        abc_bytes_free(&core, &abc_sampling(writer, i)->times);
    abc_bytes_free(&core, &writer->samplings);
    abc_bytes_free(&core, &writer->pairs);
    abc_bytes_free(&core, &writer->table);
    abc_bytes_free(&core, &writer->scratch);
    abc_bytes_free(&core, &writer->scratch_texts);
    abc_map_free(&core, &writer->shared);
    abc_core_free_arena(&core);
    abc_release(&core, writer);
}

const char *abc_writer_message(const abc_writer *writer) {
    return writer ? writer->core.message : "not enough memory to open the archive";
}

uint64_t abc_writer_bytes(const abc_writer *writer) {
    return writer ? writer->sink.position : 0;
}
