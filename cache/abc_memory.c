/* Memory and messages of a handle: allocator hook, arena, growing byte arrays, the key table, and
 * number text that does not follow the host's locale (an artist's comma must not reach the file).
 */
#include "abc_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Large enough that an archive of a few hundred objects takes a handful of blocks. */
#define ABC_ARENA_BLOCK 16384
#define ABC_ALIGN 16

struct abc_arena_block {
    abc_arena_block *next;
    size_t used;
    size_t capacity;
    size_t padding; /* keeps the bytes after the header 16-byte aligned */
};

static void *abc_default_allocate(void *user, size_t size) {
    (void)user;
    return malloc(size);
}

static void abc_default_release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

void abc_core_init(abc_core *core, const abc_allocator *allocator) {
    static const abc_allocator standard = {abc_default_allocate, abc_default_release, NULL};
    core->allocator = allocator ? *allocator : standard;
    core->arena = NULL;
    core->message[0] = '\0';
}

void *abc_allocate(abc_core *core, size_t size) {
    return core->allocator.allocate(core->allocator.user, size ? size : 1);
}

void abc_release(abc_core *core, void *pointer) {
    if (pointer)
        core->allocator.release(core->allocator.user, pointer);
}

void abc_core_free_arena(abc_core *core) {
    while (core->arena) {
        abc_arena_block *next = core->arena->next;
        abc_release(core, core->arena);
        core->arena = next;
    }
}

void *abc_arena(abc_core *core, size_t count, size_t size) {
    if (size && count > (SIZE_MAX / 2 - sizeof(abc_arena_block)) / size)
        return NULL;
    size_t bytes = (count * size + ABC_ALIGN - 1) / ABC_ALIGN * ABC_ALIGN;
    abc_arena_block *block = core->arena;
    if (!block || block->capacity - block->used < bytes) {
        size_t capacity = bytes > ABC_ARENA_BLOCK ? bytes : ABC_ARENA_BLOCK;
        block = abc_allocate(core, sizeof *block + capacity);
        if (!block)
            return NULL;
        block->used = 0;
        block->capacity = capacity;
        block->next = core->arena;
        core->arena = block;
    }
    void *memory = (char *)(block + 1) + block->used;
    block->used += bytes;
    memset(memory, 0, bytes);
    return memory;
}

char *abc_arena_text(abc_core *core, const void *bytes, size_t length) {
    if (length == SIZE_MAX)
        return NULL;
    char *text = abc_arena(core, length + 1, 1);
    if (text && length)
        memcpy(text, bytes, length);
    return text;
}

abc_status abc_fail(abc_core *core, abc_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(core->message, sizeof core->message, format, arguments);
    va_end(arguments);
    return status;
}

abc_status abc_fail_memory(abc_core *core, const char *what, uint64_t size) {
    return abc_fail(
        core, ABC_NO_MEMORY,
        "not enough memory for %s (%llu bytes); close other programs or use less detail", what,
        (unsigned long long)size);
}

void abc_prefix(abc_core *core, const char *format, ...) {
    char place[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(place, sizeof place, format, arguments);
    va_end(arguments);
    size_t length = strlen(place);
    size_t rest = strlen(core->message);
    if (rest > sizeof core->message - 1 - length)
        rest = sizeof core->message - 1 - length;
    memmove(core->message + length, core->message, rest);
    memcpy(core->message, place, length);
    core->message[length + rest] = '\0';
}

abc_status abc_bytes_reserve(abc_core *core, abc_bytes *bytes, size_t extra) {
    if (extra <= bytes->capacity - bytes->size)
        return ABC_OK;
    if (extra > SIZE_MAX / 4 || bytes->size > SIZE_MAX / 4)
        return abc_fail_memory(core, "a growing list", extra);
    size_t needed = bytes->size + extra;
    size_t capacity = bytes->capacity + bytes->capacity / 2;
    if (capacity < needed)
        capacity = needed < 64 ? 64 : needed;
    uint8_t *data = abc_allocate(core, capacity);
    if (!data)
        return abc_fail_memory(core, "a growing list", capacity);
    if (bytes->size)
        memcpy(data, bytes->data, bytes->size);
    abc_release(core, bytes->data);
    bytes->data = data;
    bytes->capacity = capacity;
    return ABC_OK;
}

abc_status abc_bytes_append(abc_core *core, abc_bytes *bytes, const void *data, size_t size) {
    abc_status status = abc_bytes_reserve(core, bytes, size);
    if (status < 0 || size == 0)
        return status;
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return ABC_OK;
}

void abc_bytes_free(abc_core *core, abc_bytes *bytes) {
    abc_release(core, bytes->data);
    *bytes = (abc_bytes){0};
}

/* Keys are hashes already, so their first word picks the place; collisions step on. */
static abc_map_entry *abc_map_place(const abc_map *map, abc_key key, uint64_t tag) {
    size_t mask = map->capacity - 1;
    size_t i = (size_t)(key.word[0] ^ tag) & mask;
    for (;; i = (i + 1) & mask) {
        abc_map_entry *entry = &map->entries[i];
        if (!entry->word || (entry->key.word[0] == key.word[0] &&
                             entry->key.word[1] == key.word[1] && entry->tag == tag))
            return entry;
    }
}

uint64_t abc_map_find(const abc_map *map, abc_key key, uint64_t tag) {
    return map->capacity ? abc_map_place(map, key, tag)->word : 0;
}

abc_status abc_map_add(abc_core *core, abc_map *map, abc_key key, uint64_t tag, uint64_t word) {
    /* Grown at two thirds full: short probe runs, and place() always meets an empty entry. */
    if (map->count + 1 > map->capacity / 3 * 2) {
        if (map->capacity > SIZE_MAX / 4 / sizeof(abc_map_entry))
            return abc_fail_memory(core, "the table of samples", UINT64_MAX);
        abc_map grown = {NULL, map->capacity ? map->capacity * 2 : 64, map->count};
        size_t size = grown.capacity * sizeof(abc_map_entry);
        grown.entries = abc_allocate(core, size);
        if (!grown.entries)
            return abc_fail_memory(core, "the table of samples", size);
        memset(grown.entries, 0, size);
        for (size_t i = 0; i < map->capacity; i++) {
            const abc_map_entry *entry = &map->entries[i];
            if (entry->word)
                *abc_map_place(&grown, entry->key, entry->tag) = *entry;
        }
        abc_release(core, map->entries);
        *map = grown;
    }
    abc_map_entry *entry = abc_map_place(map, key, tag);
    if (!entry->word)
        map->count++;
    *entry = (abc_map_entry){key, tag, word};
    return ABC_OK;
}

void abc_map_free(abc_core *core, abc_map *map) {
    abc_release(core, map->entries);
    *map = (abc_map){0};
}

void abc_format_number(char *text, size_t size, double value) {
    snprintf(text, size, "%.10g", value);
    char *to = text;
    /* Whatever the decimal mark of the locale, and however many bytes it takes: a point. */
    for (const char *from = text; *from; from++) {
        if (strchr("0123456789+-einfa", *from))
            *to++ = *from;
        else if (to > text && to[-1] != '.')
            *to++ = '.';
    }
    *to = '\0';
}

bool abc_parse_number(const char *text, double *value) {
    const char *c = text;
    bool negative = *c == '-';
    if (*c == '-' || *c == '+')
        c++;
    double number = 0.0, unit = 1.0;
    int digits = 0;
    for (; *c >= '0' && *c <= '9'; c++, digits++)
        number = number * 10.0 + (*c - '0');
    if (*c == '.')
        for (c++; *c >= '0' && *c <= '9'; c++, digits++) {
            number = number * 10.0 + (*c - '0');
            unit *= 10.0;
        }
    if (digits == 0 || *c != '\0' || digits > 300)
        return false;
    *value = (negative ? -number : number) / unit;
    return isfinite(*value);
}
