/* What the parts of libabc share and callers do not see: memory and messages of a handle, hashes,
 * the Ogawa container, and the reader and writer themselves.
 *
 * Layers, each using only those before it: memory, hash, ogawa (blocks), time, reader | writer
 * (objects and properties), geom (schemas).
 */
#ifndef ABC_INTERNAL_H
#define ABC_INTERNAL_H

#include "abc.h"

#include <stdio.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libabc copies numbers between memory and file: it needs a little endian host"
#endif

#if defined(__GNUC__)
#define ABC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define ABC_PRINTF(text, first)
#endif

/* ---------------------------------------------------------------- memory (abc_memory.c) */

typedef struct abc_arena_block abc_arena_block;

/* The part every handle has. Arena memory is zeroed and lives until the handle is closed. */
typedef struct abc_core {
    abc_allocator allocator;
    abc_arena_block *arena;
    char message[1024];
} abc_core;

void abc_core_init(abc_core *core, const abc_allocator *allocator);
void abc_core_free_arena(abc_core *core);
void *abc_allocate(abc_core *core, size_t size);
void abc_release(abc_core *core, void *pointer);
void *abc_arena(abc_core *core, size_t count, size_t size);
char *abc_arena_text(abc_core *core, const void *bytes, size_t length);

/* Stores the message and returns the status. */
abc_status abc_fail(abc_core *core, abc_status status, const char *format, ...) ABC_PRINTF(3, 4);
abc_status abc_fail_memory(abc_core *core, const char *what, uint64_t size);
/* Puts the place in front of the message that is there. */
void abc_prefix(abc_core *core, const char *format, ...) ABC_PRINTF(2, 3);

typedef struct abc_bytes {
    uint8_t *data;
    size_t size;
    size_t capacity;
} abc_bytes;

abc_status abc_bytes_reserve(abc_core *core, abc_bytes *bytes, size_t extra);
abc_status abc_bytes_append(abc_core *core, abc_bytes *bytes, const void *data, size_t size);
void abc_bytes_free(abc_core *core, abc_bytes *bytes);

/* A table from 128-bit keys (and a tag) to words. Word 0 is never stored. */
typedef struct abc_key {
    uint64_t word[2];
} abc_key;

typedef struct abc_map_entry {
    abc_key key;
    uint64_t tag;
    uint64_t word;
} abc_map_entry;

typedef struct abc_map {
    abc_map_entry *entries;
    size_t capacity; /* power of two */
    size_t count;
} abc_map;

uint64_t abc_map_find(const abc_map *map, abc_key key, uint64_t tag);
abc_status abc_map_add(abc_core *core, abc_map *map, abc_key key, uint64_t tag, uint64_t word);
void abc_map_free(abc_core *core, abc_map *map);

/* Numbers as text and back, whatever the host's locale. */
void abc_format_number(char *text, size_t size, double value);
bool abc_parse_number(const char *text, double *value);

/* ---------------------------------------------------------------- hashes (abc_hash.c) */

abc_key abc_murmur(const void *data, size_t size);
abc_key abc_spooky(const void *data, size_t size);
/* Folds one digest into the running digest of a property. */
abc_key abc_spooky_fold(abc_key sum, abc_key digest);

/* ---------------------------------------------------------------- container (abc_ogawa.c) */

#define ABC_DATA_BIT ((uint64_t)1 << 63)
#define ABC_EMPTY_DATA ABC_DATA_BIT
#define ABC_EMPTY_GROUP ((uint64_t)0)

/* Where the file's bytes come from: a file or the caller's memory. */
typedef struct abc_source {
    FILE *file;
    const uint8_t *memory;
    uint64_t size;
} abc_source;

/* A checked block: `offset` is that of its first child or byte, all `count` are in the file. */
typedef struct abc_block {
    uint64_t offset;
    uint64_t count;
} abc_block;

abc_status abc_source_open(abc_core *core, abc_source *source, const char *path);
void abc_source_close(abc_source *source);
/* Checks the file header and gives the root group. */
abc_status abc_source_root(abc_core *core, const abc_source *source, abc_block *root);
abc_status abc_source_read(abc_core *core, const abc_source *source, uint64_t offset, void *to,
                           size_t size);
abc_status abc_source_group(abc_core *core, const abc_source *source, uint64_t word,
                            abc_block *group);
abc_status abc_source_data(abc_core *core, const abc_source *source, uint64_t word,
                           abc_block *data);
abc_status abc_source_child(abc_core *core, const abc_source *source, abc_block group,
                            uint64_t index, uint64_t *word);

typedef struct abc_sink {
    FILE *file;
    uint64_t position;
    bool sync;
} abc_sink;

abc_status abc_sink_open(abc_core *core, abc_sink *sink, const char *path);
void abc_sink_close(abc_sink *sink);
/* A data block of two parts; empty data and groups without children are not written. */
abc_status abc_sink_data(abc_core *core, abc_sink *sink, const void *head, size_t head_size,
                         const void *body, size_t body_size, uint64_t *word);
abc_status abc_sink_group(abc_core *core, abc_sink *sink, const uint64_t *words, size_t count,
                          uint64_t *word);
/* Sets the root and, last of all, the finished flag. */
abc_status abc_sink_freeze(abc_core *core, abc_sink *sink, uint64_t root);

/* ---------------------------------------------------------------- time (abc_time.c) */

/* The period that marks acyclic samplings in the file. */
double abc_acyclic_period(void);
abc_status abc_time_check(abc_core *core, const abc_time_sampling *sampling);

/* ---------------------------------------------------------------- reader (abc_reader.c) */

struct abc_property {
    abc_object *object;
    abc_property *parent;
    const char *name;
    const abc_metadata *metadata;
    abc_kind kind;
    abc_pod pod;
    uint32_t extent;
    uint32_t time_sampling;
    uint64_t samples;
    uint64_t first; /* first and last changed sample */
    uint64_t last;
    abc_block group;        /* words of the samples */
    abc_property *children; /* one array */
    size_t child_count;
};

struct abc_object {
    abc_object *parent;
    const char *name;
    const abc_metadata *metadata;
    abc_schema schema;
    abc_object *children; /* one array */
    size_t child_count;
    uint64_t property_word;
    abc_status loaded; /* what loading the properties returned */
    abc_property *top; /* null before the first try */
};

struct abc_reader {
    abc_core core;
    abc_source source;
    abc_reader_options options;
    int32_t library_version;
    abc_metadata metadata;
    abc_metadata *table; /* indexed metadata; entry 0 is empty */
    size_t table_count;
    abc_time_sampling *samplings;
    size_t sampling_count;
    abc_object top;
    size_t object_count;
    uint64_t budget; /* bytes of structure that may still be read, see abc_reader.c */
    bool open;
};

/* Number of elements of a sample of a numeric array, without reading it; the index is clamped. */
abc_status abc_property_elements(abc_reader *reader, const abc_property *property, uint64_t index,
                                 uint64_t *count);
/* Puts object and property in front of the message that is there; returns the status. */
abc_status abc_reader_at(abc_reader *reader, const abc_object *object, const abc_property *property,
                         abc_status status);

/* ---------------------------------------------------------------- writer (abc_writer.c) */

struct abc_wproperty {
    abc_writer *writer;
    abc_wobject *object;
    abc_wproperty *parent;
    const char *name;
    const char *metadata; /* serialised */
    uint64_t id;          /* for the table of names */
    uint32_t depth;
    abc_kind kind;
    abc_pod pod;
    uint32_t extent;
    uint32_t time_sampling;
    uint64_t samples;
    uint64_t first;
    uint64_t last;
    abc_bytes words;
    uint64_t previous[2]; /* words of the last different sample */
    abc_key previous_key;
    uint64_t previous_tag;
    abc_key digest; /* of that sample, with its dimensions */
    abc_key sum;    /* of all samples */
    bool single;    /* every sample has one element */
    bool plain;     /* the format's "homogenous" bit */
    abc_wproperty *first_child;
    abc_wproperty *last_child;
    abc_wproperty *next;
    abc_wproperty *next_made; /* all properties of the writer, to free their words */
};

struct abc_wobject {
    abc_writer *writer;
    abc_wobject *parent;
    const char *name;
    const char *metadata;
    uint64_t id;
    uint32_t depth;
    abc_wproperty top;
    abc_wobject *first_child;
    abc_wobject *last_child;
    abc_wobject *next;
    size_t child_count;
};

typedef struct abc_wsampling {
    abc_time_sampling sampling; /* times point into `times` */
    abc_bytes times;
    uint64_t max_samples;
} abc_wsampling;

/* Schemas that have something to add before the file is finished, or memory of their own. */
typedef struct abc_hook {
    abc_status (*finish)(struct abc_hook *hook);
    void (*release)(struct abc_hook *hook);
    struct abc_hook *next;
} abc_hook;

struct abc_writer {
    abc_core core;
    abc_sink sink;
    abc_writer_options options;
    abc_status failed; /* sticky: first failed write or allocation */
    bool finished;
    uint64_t next_id;
    abc_wobject top;
    abc_wproperty *made;
    abc_map shared;      /* stored samples, and the names in use */
    abc_bytes samplings; /* abc_wsampling */
    size_t sampling_count;
    abc_bytes pairs; /* abc_pair: archive metadata */
    abc_bytes table; /* const char *: indexed metadata */
    abc_bytes scratch;
    abc_bytes scratch_texts;
    abc_hook *hooks;
    abc_hook **last_hook;
};

/* ABC_OK while samples may be written. */
abc_status abc_writer_ready(abc_writer *writer);
/* A failed write or allocation leaves the structure half done: nothing may follow it. */
abc_status abc_writer_keep(abc_writer *writer, abc_status status);
abc_status abc_writer_at(abc_writer *writer, const abc_wobject *object, const char *property,
                         abc_status status);
void abc_writer_add_hook(abc_writer *writer, abc_hook *hook);

/* ---------------------------------------------------------------- conversions (abc_geom.c) */

/* file = caller * scale, turned from Z up to Y up if asked; `back` for the other way. */
void abc_turn_floats(const float *from, float *to, size_t count, bool z_up, double scale,
                     bool back);
void abc_turn_doubles(const double *from, double *to, size_t count, bool z_up, double scale,
                      bool back);
void abc_turn_matrix(const double from[16], double to[16], bool z_up, double scale, bool back);
/* Reverses, in place, the items of each face; `size` bytes each. Counts must be right and >= 0. */
void abc_reverse_faces(const int32_t *counts, size_t face_count, void *items, size_t size);
const char *abc_scope_text(abc_scope scope);

#endif
