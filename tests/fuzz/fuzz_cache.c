/* The cache: opened, every frame read and checked, looked at anew. HDF5 allocates by itself, out of our
 * count. */
#include "fuzz.h"

#include "cache.h"
#include "hdf5_journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, FUZZ_MEMORY};
    const toile_allocator allocator = fuzz_allocator(&limit);
    toile_memory memory;
    toile_memory_init(&memory, &allocator);
    toile_cache *cache = NULL;
    toile_error error;
    if (toile_cache_open(&memory, fuzz_file(data, size), &cache, &error) >= 0) {
        const toile_cache_header *header = toile_cache_get_header(cache);
        for (int i = 0; i < toile_cache_frame_count(cache) && i < 4; i++) {
            toile_cache_frame frame;
            toile_cache_read_frame(cache, i, &frame, &error);
            toile_cache_check(cache, i, &error);
            for (int g = 0; g < header->garment_count && g < 4; g++) {
                float *room =
                    toile_alloc(&memory, (size_t)header->garments[g].vertex_count, 6 * sizeof *room);
                if (room)
                    toile_cache_read(cache, i, g, room, room + 3 * (size_t)header->garments[g].vertex_count,
                                     &error);
                toile_free(&memory, room);
            }
        }
    }
    toile_cache_close(cache, &error);
    fuzz_check_memory(&memory, &limit);
    return 0;
}

/* The same file as a writer leaves it that was killed in its journal. */
static void put_journal(const char *path, fuzz_put *put, void *user) {
    toile_memory memory;
    toile_journal journal = {0};
    unsigned char start[64];
    struct stat info;
    toile_memory_init(&memory, NULL);
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &info) || pread(fd, start, sizeof start, 0) != sizeof start ||
        !toile_journal_add(&memory, &journal, 0, start, 48) ||
        !toile_journal_add(&memory, &journal, 48, start + 48, sizeof start - 48))
        abort();
    size_t size = journal.size + TOILE_JOURNAL_END;
    /* It is cut off again, but still in its block. */
    if (toile_journal_commit(&journal, fd, info.st_size) ||
        pwrite(fd, journal.bytes, size, info.st_size) != (ssize_t)size || close(fd))
        abort();
    toile_journal_free(&memory, &journal);
    fuzz_put_file(path, put, user);
}

void fuzz_seeds(fuzz_put *put, void *user) {
    static const float points[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0},
                       uv[12] = {0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1};
    static const int triangles[] = {0, 1, 2, 1, 3, 2}, panels[] = {0, 1};
    static const char *const names[] = {"front", "back"};
    for (int frames = 0; frames <= 3; frames++) {
        toile_memory memory;
        toile_memory_init(&memory, NULL);
        const toile_garment_view garments[] = {
            {"skirt", 4, 2, 2, points, triangles, panels, uv, names},
            {"b/elt", 3, 1, 0, points, triangles, (const int[]){0}, uv, NULL}};
        const toile_cache_header header = {.scene_name = "seed",
                                           .settings_json = "{}",
                                           .library_version = "0",
                                           .fingerprint = 77,
                                           .fps = 24,
                                           .first_frame = 1,
                                           .last_frame = 9,
                                           .garment_count = frames == 1 ? 1 : 2,
                                           .garments = garments,
                                           .position_error = frames == 2 ? 1e-4 : 0,
                                           .inputs_json = frames == 2 ? "{}" : NULL};
        toile_cache *cache = NULL;
        toile_error error;
        const char *path = fuzz_scratch();
        if (toile_cache_create(&memory, path, &header, &cache, &error) < 0)
            abort();
        for (int f = 0; f < frames; f++) {
            const toile_frame_view view = {.frame = 1 + f,
                                           .time = f / 24.0,
                                           .state_hash = 5,
                                           .positions = (const float *const[]){points, points},
                                           .velocities = (const float *const[]){points, points}};
            if (toile_cache_append(cache, &view, &error) < 0)
                abort();
        }
        if (frames == 3) /* one whose writer is still at it */
            fuzz_put_file(path, put, user);
        toile_cache_close(cache, NULL);
        if (frames == 2)
            put_journal(path, put, user);
        else if (frames != 3)
            fuzz_put_file(path, put, user);
    }
}
