#include "fuzz.h"

#include "pointcache.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, FUZZ_MEMORY};
    const toile_allocator allocator = fuzz_allocator(&limit);
    toile_memory memory;
    toile_pointcache_reader *reader = NULL;
    toile_error error;
    toile_memory_init(&memory, &allocator);
    if (toile_pointcache_open(&memory, fuzz_file(data, size), KIND, &reader, &error) == TOILE_OK) {
        const toile_pointcache_info *info = toile_pointcache_get_info(reader);
        size_t points = info->stored_frames > 0 ? (size_t)info->point_count : 0; /* then the file holds as many */
        float *positions = toile_alloc(&memory, points, 3 * sizeof *positions);
        for (int f = 0; positions && f < info->stored_frames && f < 8; f++)
            toile_pointcache_read(reader, f, positions, &error);
        if (positions && points)
            toile_pointcache_read(reader, info->stored_frames - 1, positions, &error);
        toile_free(&memory, positions);
    }
    toile_pointcache_close(reader);
    fuzz_check_memory(&memory, &limit);
    return 0;
}

void fuzz_seeds(fuzz_put *put, void *user) {
    static const float positions[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    for (int frames = 1; frames <= 3; frames++) {
        const toile_pointcache_def def = {KIND, frames, frames, 1, 24};
        toile_memory memory;
        toile_pointcache_writer *writer = NULL;
        toile_error error;
        const char *path = fuzz_scratch();
        toile_memory_init(&memory, NULL);
        if (toile_pointcache_create(&memory, path, &def, &writer, &error) < 0)
            abort();
        for (int f = 0; f < frames; f++)
            if (toile_pointcache_append(writer, positions, &error) < 0)
                abort();
        if (toile_pointcache_finish(writer, &error) < 0)
            abort();
        fuzz_put_file(path, put, user);
    }
}
