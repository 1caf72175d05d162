#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 64

/* Sits in the 64 bytes before each block. */
typedef struct header {
    void *raw;
    size_t bytes;
} header;

static void *default_allocate(void *user, size_t size) {
    (void)user;
    return malloc(size);
}

static void default_release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

void toile_memory_init(toile_memory *memory, const toile_allocator *allocator) {
    memset(memory, 0, sizeof *memory);
    if (allocator && allocator->allocate && allocator->release) {
        memory->allocator = *allocator;
    } else {
        memory->allocator.allocate = default_allocate;
        memory->allocator.release = default_release;
    }
}

void *toile_alloc(toile_memory *memory, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2 - 2 * ALIGN) {
        memory->calls++;
        return NULL;
    }
    memory->calls++;
    void *raw = memory->allocator.allocate(memory->allocator.user, bytes + 2 * ALIGN);
    if (!raw)
        return NULL;
    uintptr_t at = ((uintptr_t)raw + sizeof(header) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    header *h = (header *)(at - sizeof(header));
    h->raw = raw;
    h->bytes = bytes;
    memory->live++;
    memory->bytes += bytes;
    if (memory->bytes > memory->peak_bytes)
        memory->peak_bytes = memory->bytes;
    memset((void *)at, 0, bytes);
    return (void *)at;
}

void *toile_grow(toile_memory *memory, void *block, size_t old_count, size_t new_count, size_t size) {
    void *grown = toile_alloc(memory, new_count, size);
    if (!grown)
        return NULL;
    if (block) {
        memcpy(grown, block, (old_count < new_count ? old_count : new_count) * size);
        toile_free(memory, block);
    }
    return grown;
}

void toile_free(toile_memory *memory, void *block) {
    if (!block)
        return;
    header *h = (header *)((uintptr_t)block - sizeof(header));
    memory->live--;
    memory->bytes -= h->bytes;
    memory->allocator.release(memory->allocator.user, h->raw);
}

char *toile_copy_text(toile_memory *memory, const char *text) {
    size_t length = strlen(text);
    char *copy = toile_alloc(memory, length + 1, 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}
