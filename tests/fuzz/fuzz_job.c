/* Jobs: opened, meshes and tracks read. The seeds have no mark at their end, so that HDF5 sees what is damaged; it
 * allocates by itself, out of our count. */
#include "fuzz.h"

#include "job_hdf5.h"

#include <stdlib.h>
#include <string.h>

/* HDF5 loses memory of its own when a file of the old kind, without checksums, is damaged; ours is counted. Asked for by
 * the leak checker, if any. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

static const char *const names[] = {"skirt", "b/ody"};

static void read_job(toile_memory *memory, toile_job_file *file) {
    toile_error error;
    for (int i = 0; i < 2; i++) {
        toile_job_array mesh = {0};
        toile_job_track track;
        int index;
        uint64_t checksum;
        if (toile_job_file_read_mesh(file, names[i], &mesh, &checksum, &error) >= 0)
            toile_job_file_free_mesh(memory, &mesh);
        if (toile_job_file_find_track(file, names[i], &index, &track, &error) < 0 &&
            toile_job_file_find_track(file, names[i], &index, &track, &error) < 0)
            continue;
        double *room = toile_alloc(memory, (size_t)track.vertex_count, 3 * sizeof *room);
        for (int frame = -1; room && frame < 6; frame++)
            toile_job_file_read_track(file, index, frame, room, &error);
        toile_free(memory, room);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, FUZZ_MEMORY};
    const toile_allocator allocator = fuzz_allocator(&limit);
    toile_memory memory;
    toile_memory_init(&memory, &allocator);
    toile_job_file *file = NULL;
    toile_error error;
    if (toile_job_file_open(&memory, fuzz_file(data, size), &file, &error) >= 0)
        read_job(&memory, file);
    toile_job_file_close(file);
    fuzz_check_memory(&memory, &limit);
    return 0;
}

typedef struct seed {
    fuzz_put *put;
    void *user;
} seed;

static void put_without_mark(void *user, const void *data, size_t size) {
    const seed *s = user;
    s->put(s->user, data, size > 16 ? size - 16 : size);
}

void fuzz_seeds(fuzz_put *put, void *user) {
    static const double points[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0}, uv[12] = {0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1};
    static const int sizes[] = {3, 3}, corners[] = {0, 1, 2, 1, 3, 2}, panels[] = {0, 1};
    static const char *const panel_names[] = {"front", "back"};
    for (int kind = 0; kind < 3; kind++) {
        toile_memory memory;
        toile_memory_init(&memory, NULL);
        toile_job_file *file = NULL;
        toile_error error;
        const char *path = fuzz_scratch();
        int track;
        double moved[12];
        if (toile_job_file_create(&memory, path, &file, &error) < 0)
            abort();
        for (int i = 0; i < (kind ? 2 : 1); i++) {
            const toile_job_array mesh = {names[i], 4, 2, 6, i ? 0 : 2, points, sizes, corners, i ? NULL : uv, i ? NULL : panels,
                                          panel_names};
            if (toile_job_file_put_mesh(file, &mesh, &error) < 0 ||
                toile_job_file_begin_track(file, names[i], 1, 4, &track, &error) < 0)
                abort();
            for (int frame = 0; frame < 2 * kind + 1; frame++) {
                memcpy(moved, points, sizeof moved);
                moved[0] = frame / 2;
                if (toile_job_file_append(file, track, moved, &error) < 0)
                    abort();
            }
        }
        if (toile_job_file_finish(file, "{\"toile\": 1}", &error) < 0)
            abort();
        toile_job_file_close(file);
        fuzz_put_file(path, put_without_mark, &(seed){put, user});
    }
}
