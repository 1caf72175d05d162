/* The checkpoint beside a cache. */
#include "fuzz.h"

#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its name is made from the cache's, so it is a link to the file in memory. */
static const char *name(void) {
    static char path[280], link[300];
    if (!path[0]) {
        const char *folder = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/toile-fuzz-checkpoint-%ld", folder ? folder : "/tmp", (long)getpid());
        snprintf(link, sizeof link, "%s.state", path);
    }
    unlink(link);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, FUZZ_MEMORY};
    const toile_allocator allocator = fuzz_allocator(&limit);
    toile_memory memory;
    toile_error error;
    void *state;
    size_t bytes;
    int frame;
    uint64_t fingerprint;
    char link[320];
    toile_memory_init(&memory, &allocator);
    const char *path = name();
    snprintf(link, sizeof link, "%s.state", path);
    if (symlink(fuzz_file(data, size), link))
        abort();
    if (toile_checkpoint_read(&memory, path, &fingerprint, &frame, &state, &bytes, &error) >= 0)
        toile_free(&memory, state);
    unlink(link);
    fuzz_check_memory(&memory, &limit);
    return 0;
}

void fuzz_seeds(fuzz_put *put, void *user) {
    char state[400], path[320];
    toile_error error;
    for (int i = 0; i < (int)sizeof state; i++)
        state[i] = (char)(i * 37);
    for (size_t size = 0; size <= sizeof state; size += 200) {
        if (toile_checkpoint_write(name(), 5, -3, state, size, &error) < 0)
            abort();
        snprintf(path, sizeof path, "%s.state", name());
        if (toile_checkpoint_write(name(), 5, -3, state, size, &error) < 0)
            abort();
        fuzz_put_file(path, put, user);
    }
}
