/* All memory of the library goes through one of these, so that a host can supply it, count it, and make it fail.
 * A toile_memory belongs to one handle and is used by one thread at a time. */
#ifndef TOILE_MEMORY_H
#define TOILE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Host hook. `allocate` returns null on failure and any alignment; we align to 64 bytes ourselves. */
typedef struct toile_allocator {
    void *(*allocate)(void *user, size_t size);
    void (*release)(void *user, void *pointer);
    void *user;
} toile_allocator;

typedef struct toile_memory {
    toile_allocator allocator;
    uint64_t calls;      /* allocations asked for so far, failed ones included */
    uint64_t live;       /* allocations not yet released */
    size_t bytes;        /* bytes in them */
    size_t peak_bytes;
} toile_memory;

/* `allocator` may be null: malloc and free. */
void toile_memory_init(toile_memory *memory, const toile_allocator *allocator);

/* Zeroed, 64-byte aligned; null when memory is out or count * size overflows. count 0 gives a valid pointer. */
void *toile_alloc(toile_memory *memory, size_t count, size_t size);

/* Keeps the first old_count elements, zeroes the rest; null on failure (old block stays valid). */
void *toile_grow(toile_memory *memory, void *block, size_t old_count, size_t new_count, size_t size);

void toile_free(toile_memory *memory, void *block);

char *toile_copy_text(toile_memory *memory, const char *text);

#endif
