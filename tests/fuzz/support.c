#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The size stands before each block. */
enum { BEFORE = 64 };

static void *allocate(void *user, size_t size) {
    fuzz_limit *limit = user;
    if (size > limit->most || limit->used > limit->most - size)
        return NULL;
    char *block = malloc(size + BEFORE);
    if (!block)
        return NULL;
    memcpy(block, &size, sizeof size);
    limit->used += size;
    return block + BEFORE;
}

static void release(void *user, void *pointer) {
    fuzz_limit *limit = user;
    if (!pointer)
        return;
    size_t size;
    memcpy(&size, (char *)pointer - BEFORE, sizeof size);
    limit->used -= size;
    free((char *)pointer - BEFORE);
}

toile_allocator fuzz_allocator(fuzz_limit *limit) {
    return (toile_allocator){allocate, release, limit};
}

void fuzz_check_memory(const toile_memory *memory, const fuzz_limit *limit) {
    if ((memory && memory->live) || limit->used) {
        fprintf(stderr, "%zu bytes were not given back\n", limit->used);
        abort();
    }
}

const char *fuzz_file(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) || (size && pwrite(fd, data, size, 0) != (ssize_t)size))
        abort();
    return path;
}

const char *fuzz_scratch(void) {
    static char path[256];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/toile-fuzz-seed-%ld", folder ? folder : "/tmp", (long)getpid());
    unlink(path);
    return path;
}

void fuzz_put_file(const char *path, fuzz_put *put, void *user) {
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info))
        abort();
    char *bytes = malloc((size_t)info.st_size + 1);
    size_t size = bytes ? fread(bytes, 1, (size_t)info.st_size, file) : 0;
    fclose(file);
    unlink(path);
    put(user, bytes, size);
    free(bytes);
}
