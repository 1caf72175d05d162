/* An allocator for tests: it counts what is asked for and what is still held, and lets one request fail. */
#ifndef TOILE_COUNTING_H
#define TOILE_COUNTING_H

#include <stdint.h>
#include <stdlib.h>

typedef struct counter {
    int64_t calls, fail_at, live; /* fail_at: number of the request that gets nothing, from 0; negative: none */
} counter;

static void *count_allocate(void *user, size_t size) {
    counter *c = user;
    if (c->calls++ == c->fail_at)
        return NULL;
    void *p = malloc(size);
    c->live += p != NULL;
    return p;
}

static void count_release(void *user, void *pointer) {
    counter *c = user;
    c->live -= pointer != NULL;
    free(pointer);
}

#endif
