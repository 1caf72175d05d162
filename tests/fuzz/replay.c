/* A fuzz target as an ordinary test: replays the seeds and repeatable damage to them.
 *
 *   fuzz_NAME                  seeds, and TOILE_FUZZ_RUNS (4000) damaged ones
 *   fuzz_NAME FILE...          these inputs: what the fuzzer found, a corpus
 *   fuzz_NAME --seeds FOLDER   writes the seeds there, for the fuzzer to start from */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FUZZ_RUNS
#define FUZZ_RUNS 4000
#endif
enum { SEEDS = 64 };

typedef struct seeds {
    struct {
        uint8_t *data;
        size_t size;
    } item[SEEDS];
    int count;
} seeds;

static void keep(void *user, const void *data, size_t size) {
    seeds *s = user;
    if (s->count == SEEDS)
        abort();
    s->item[s->count].data = malloc(size + 1);
    memcpy(s->item[s->count].data, data, size);
    s->item[s->count++].size = size;
}

/* xorshift64*: the same damage in every run. */
static uint64_t state = 88172645463325252u;
static uint64_t chance(uint64_t below) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 2685821657736338717u >> 16) % below;
}

/* A few changes: flipped bits, wild numbers, cuts, pieces copied elsewhere. */
static size_t damage(uint8_t *data, size_t size) {
    static const uint64_t wild[] = {0,          1,      0x7f, 0xff, 0x7fffffff, 0xffffffff, UINT64_C(1) << 63,
                                    UINT64_MAX, 1 << 16};
    for (uint64_t changes = 1 + chance(4); changes > 0 && size > 8; changes--) {
        size_t at = chance(size), length = 1 + chance(8);
        switch (chance(6)) {
        case 0: data[at] ^= (uint8_t)(1u << chance(8)); break;
        case 1: data[at] = (uint8_t)chance(256); break;
        case 2:
            memcpy(data + (at > size - 8 ? size - 8 : at), &wild[chance(sizeof wild / sizeof *wild)], length);
            break;
        case 3: size = chance(8) ? size : at; break;
        case 4:
            memmove(data + at, data + chance(size - length), size - at < length ? size - at : length);
            break;
        case 5:
            memmove(data + at, data + at + 1, size - at - 1);
            size--;
            break;
        }
    }
    return size;
}

static int replay_files(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        fseek(file, 0, SEEK_END);
        long size = ftell(file);
        rewind(file);
        uint8_t *data = malloc((size_t)size + 1);
        if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
            return 1;
        fclose(file);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        free(data);
    }
    printf("%d passed, 0 failed\n", argc - 1);
    return 0;
}

int main(int argc, char **argv) {
    seeds s = {.count = 0};
    if (argc > 1 && strcmp(argv[1], "--seeds") != 0)
        return replay_files(argc, argv);
    fuzz_seeds(keep, &s);
    for (int i = 0; argc > 2 && i < s.count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed_%02d", argv[2], i);
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(s.item[i].data, 1, s.item[i].size, file) != s.item[i].size || fclose(file)) {
            perror(path);
            return 1;
        }
    }
    int runs = argc > 2 ? 0 : getenv("TOILE_FUZZ_RUNS") ? atoi(getenv("TOILE_FUZZ_RUNS")) : FUZZ_RUNS;
    for (int i = 0; i < s.count && runs; i++)
        LLVMFuzzerTestOneInput(s.item[i].data, s.item[i].size);
    for (int run = 0; run < runs; run++) {
        size_t which = chance((uint64_t)s.count), size = s.item[which].size;
        uint8_t *copy = malloc(size + 1); /* of the exact size, so that a sanitizer sees a read behind it */
        memcpy(copy, s.item[which].data, size);
        size = damage(copy, size);
        uint8_t *exact = malloc(size ? size : 1);
        memcpy(exact, copy, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        free(copy);
    }
    for (int i = 0; i < s.count; i++)
        free(s.item[i].data);
    /* Whatever goes wrong ends the program before this line. */
    printf("%d seeds, %d damaged inputs\n%d passed, %d failed\n", s.count, runs, s.count + runs,
           s.count == 0);
    return s.count == 0;
}
