/* A fuzz target is one reader behind one function. The same file is built two ways: with libFuzzer
 * (TOILE_FUZZ, clang), and with replay.c as an ordinary test that needs no fuzzer.
 *
 * A reader may refuse whatever it likes; it may not crash, leak, read out of bounds or take memory without
 * limit. */
#ifndef TOILE_FUZZ_H
#define TOILE_FUZZ_H

#include "memory.h"

#include <stddef.h>
#include <stdint.h>

/* One input. Called by libFuzzer and by the replayer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Good inputs, made by our own writers, to start from: hands each to `put`. */
typedef void fuzz_put(void *user, const void *data, size_t size);
void fuzz_seeds(fuzz_put *put, void *user);

/* ---- support.c ---- */

/* A memory with a limit: what a file of a few kilobytes may ask for in all. */
enum { FUZZ_MEMORY = 256 << 20 };
typedef struct fuzz_limit {
    size_t used, most;
} fuzz_limit;
toile_allocator fuzz_allocator(fuzz_limit *limit);
/* Ends the program if something was not given back. */
void fuzz_check_memory(const toile_memory *memory, const fuzz_limit *limit);

/* The bytes as a file in memory, for readers that want a path; the same path every time. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* A new empty file for a seed's writer, and its bytes handed on. */
const char *fuzz_scratch(void);
void fuzz_put_file(const char *path, fuzz_put *put, void *user);

#endif
