/* The checkpoints beside a cache: the exact state after a frame, from which a bake goes on as if it had
 * never stopped. FORMAT.md gives the bytes.
 *
 * PATH.state is the newest; those before it are PATH.state-FRAME, of which a few are kept: the last ones,
 * should the newest be damaged, and some spread over the bake, to take it up again from an earlier frame.
 *
 * It is replaced whole: written under another name, forced to disk, renamed. A crash leaves the old one or
 * the new one. The cache is forced to disk first, so that a checkpoint never names a frame that a power cut
 * took from it. */
#include "cache.h"
#include "hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "TOILECKP"
#define VERSION 1
#define HEADER_SIZE 48
#define HASHED_SIZE 40 /* of the header: all before its own hash */
#define PATH_SIZE (PATH_MAX + 32)
#define KEPT_LAST 2    /* of those before the newest */
#define KEPT_SPREAD 5  /* of the rest */
#define FOUND_MOST 256 /* more are not ours */

const char *toile_io_advice(int error_number) {
    switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return "free some disk space or choose another disk, then resume";
    case EACCES:
    case EPERM:
    case EROFS: return "choose a folder you may write to, or change the permissions";
    case ENOENT:
    case ENOTDIR: return "check that the folder exists and the name is right";
    case EISDIR: return "choose a file name that is not a folder";
    case EMFILE:
    case ENFILE: return "close other files or raise the limit of open files";
    default: return "check the disk or the network folder and try again";
    }
}

int toile_sync_folder(const char *path) {
    char folder[PATH_SIZE];
    const char *slash = strrchr(path, '/');
    int length = !slash ? 0 : slash == path ? 1 : (int)(slash - path);
    snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int result = fsync(fd) ? errno : 0;
    close(fd);
    /* Some network file systems have no sync of folders; they write names through anyway. */
    return result == EINVAL || result == ENOTSUP ? 0 : result;
}

static void put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static bool write_all(int fd, const void *bytes, size_t size) {
    for (const char *at = bytes; size > 0;) {
        ssize_t done = write(fd, at, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        at += done;
        size -= (size_t)done;
    }
    return true;
}

/* False with errno 0 when the file ends early. */
static bool read_all(int fd, void *bytes, size_t size) {
    for (char *at = bytes; size > 0;) {
        ssize_t done = read(fd, at, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = 0;
        if (done <= 0)
            return false;
        at += done;
        size -= (size_t)done;
    }
    return true;
}

static toile_status state_path(const char *cache_path, const char *suffix, char path[PATH_SIZE],
                               toile_error *error) {
    if (!cache_path || !*cache_path)
        return toile_fail(error, TOILE_MISUSE, "a checkpoint needs the path of its cache");
    if (snprintf(path, PATH_SIZE, "%s%s", cache_path, suffix) >= PATH_SIZE)
        return toile_fail(error, TOILE_INVALID, "%.300s...: the path is too long; use a shorter one",
                          cache_path);
    return TOILE_OK;
}

static toile_status fail_io(toile_error *error, const char *what, const char *path, int error_number) {
    return toile_fail(error, TOILE_IO, "cannot %s checkpoint %.400s: %s; %s", what, path,
                      strerror(error_number), toile_io_advice(error_number));
}

/* ---- those before the newest ---- */

static toile_status older_path(const char *cache_path, int frame, char path[PATH_SIZE], toile_error *error) {
    char suffix[32];
    snprintf(suffix, sizeof suffix, ".state-%d", frame);
    return state_path(cache_path, suffix, path, error);
}

/* The frame that a checkpoint says it is of; what else it says is not looked at. */
static bool frame_of(const char *path, int *frame) {
    unsigned char header[HEADER_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool known = fd >= 0 && read_all(fd, header, sizeof header) && memcmp(header, MAGIC, 8) == 0 &&
                 get(header + HASHED_SIZE, 8) == toile_hash(TOILE_HASH_SEED, header, HASHED_SIZE);
    if (fd >= 0)
        close(fd);
    if (known)
        *frame = (int)(int32_t)(uint32_t)get(header + 12, 4);
    return known;
}

static int compare_frames(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Frames of all PATH.state-FRAME, in order; returns their number. */
static int find_older(const char *cache_path, int frames[FOUND_MOST]) {
    char folder[PATH_SIZE], prefix[PATH_SIZE], path[PATH_SIZE];
    if (state_path(cache_path, ".state-", path, NULL) != TOILE_OK)
        return 0;
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    snprintf(prefix, sizeof prefix, "%s", slash ? slash + 1 : path);
    size_t length = strlen(prefix);
    DIR *list = opendir(folder);
    int count = 0;
    for (struct dirent *entry; list && count < FOUND_MOST && (entry = readdir(list));) {
        char *end;
        if (strncmp(entry->d_name, prefix, length) != 0)
            continue;
        long frame = strtol(entry->d_name + length, &end, 10);
        if (end != entry->d_name + length && *end == '\0' && frame >= INT_MIN && frame <= INT_MAX)
            frames[count++] = (int)frame;
    }
    if (list)
        closedir(list);
    qsort(frames, (size_t)count, sizeof *frames, compare_frames);
    return count;
}

/* Removes those that are closest to their neighbours until as many are left as are kept. */
static void thin_out(const char *cache_path) {
    char path[PATH_SIZE];
    int frames[FOUND_MOST], count = find_older(cache_path, frames);
    while (count > KEPT_LAST + KEPT_SPREAD) {
        int which = 1;
        for (int i = 2; i < count - KEPT_LAST; i++)
            if ((int64_t)frames[i + 1] - frames[i - 1] < (int64_t)frames[which + 1] - frames[which - 1])
                which = i;
        if (older_path(cache_path, frames[which], path, NULL) == TOILE_OK)
            unlink(path);
        memmove(frames + which, frames + which + 1, (size_t)(count - which - 1) * sizeof *frames);
        count--;
    }
}

/* ---- the newest ---- */

/* What was the newest is kept under its frame's name, unless it is of the same frame. */
static void keep_older(const char *cache_path, const char *path, int frame) {
    char older[PATH_SIZE];
    int before;
    if (!frame_of(path, &before) || before >= frame ||
        older_path(cache_path, before, older, NULL) != TOILE_OK)
        return;
    unlink(older);
    if (link(path, older)) /* there are file systems without; then for an instant there is no newest */
        rename(path, older);
}

toile_status toile_checkpoint_write(const char *cache_path, uint64_t fingerprint, int frame,
                                    const void *state, size_t size, toile_error *error) {
    char path[PATH_SIZE], new_path[PATH_SIZE];
    toile_status status = state_path(cache_path, ".state", path, error);
    if (status == TOILE_OK)
        status = state_path(cache_path, ".state.new", new_path, error);
    if (status != TOILE_OK)
        return status;
    if (!state && size)
        return toile_fail(error, TOILE_MISUSE, "a checkpoint of %zu bytes was asked for without the bytes",
                          size);

    int cache_fd = open(cache_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (cache_fd >= 0) {
        int failed = fsync(cache_fd) ? errno : 0;
        close(cache_fd);
        if (failed)
            return fail_io(error, "secure the frames before", path, failed);
    }

    unsigned char header[HEADER_SIZE];
    memcpy(header, MAGIC, 8);
    put(header + 8, VERSION, 4);
    put(header + 12, (uint32_t)frame, 4);
    put(header + 16, fingerprint, 8);
    put(header + 24, size, 8);
    put(header + 32, toile_hash(TOILE_HASH_SEED, state ? state : "", size), 8);
    put(header + HASHED_SIZE, toile_hash(TOILE_HASH_SEED, header, HASHED_SIZE), 8);

    int fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_io(error, "create", new_path, errno);
    if (!write_all(fd, header, sizeof header) || !write_all(fd, state, size) || fsync(fd)) {
        status = fail_io(error, "write", new_path, errno);
        goto out;
    }
    keep_older(cache_path, path, frame);
    if (rename(new_path, path)) {
        status = fail_io(error, "put in place", path, errno);
        goto out;
    }
    thin_out(cache_path);
    int failed = toile_sync_folder(path);
    if (failed)
        status = fail_io(error, "secure", path, failed);
out:
    if (close(fd) && status == TOILE_OK)
        status = fail_io(error, "close", path, errno);
    if (status != TOILE_OK)
        unlink(new_path);
    return status;
}

static toile_status read_file(toile_memory *memory, const char *path, uint64_t *fingerprint, int *frame,
                              void **state, size_t *size, toile_error *error) {
    unsigned char header[HEADER_SIZE];
    struct stat info;
    void *bytes = NULL;
    int fd = -1;
    toile_status status = TOILE_OK;
    *state = NULL;
    *size = 0;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return toile_fail(error, TOILE_IO,
                          "cannot open checkpoint %.400s: %s; without it a bake starts at its first "
                          "frame",
                          path, strerror(errno));
    if (fstat(fd, &info)) {
        status = fail_io(error, "look at", path, errno);
        goto out;
    }
    const char *damage = NULL;
    if (!S_ISREG(info.st_mode))
        damage = "it is not a file";
    else if (info.st_size < HEADER_SIZE)
        damage = "it is shorter than its header";
    else if (!read_all(fd, header, sizeof header)) {
        if (errno) {
            status = fail_io(error, "read", path, errno);
            goto out;
        }
        damage = "it ends inside its header";
    } else if (memcmp(header, MAGIC, 8) != 0)
        damage = "it does not begin like a checkpoint";
    else if (get(header + 8, 4) > VERSION) {
        status = toile_fail(error, TOILE_FORMAT,
                            "checkpoint %.400s has version %u, this Toile knows up to %d; update "
                            "Toile or bake again from the first frame",
                            path, (unsigned)get(header + 8, 4), VERSION);
        goto out;
    } else if (get(header + 8, 4) != VERSION ||
               get(header + HASHED_SIZE, 8) != toile_hash(TOILE_HASH_SEED, header, HASHED_SIZE))
        damage = "its header is damaged";
    /* Compared with the file before anything of that size is allocated. */
    else if (get(header + 24, 8) != (uint64_t)info.st_size - HEADER_SIZE)
        damage = "its length is not the one it states";
    if (!damage) {
        size_t payload = (size_t)info.st_size - HEADER_SIZE;
        bytes = toile_alloc(memory, payload, 1);
        if (!bytes) {
            status = toile_fail_memory(error, "a checkpoint");
            goto out;
        }
        if (!read_all(fd, bytes, payload)) {
            if (errno) {
                status = fail_io(error, "read", path, errno);
                goto out;
            }
            damage = "it ends early";
        } else if (toile_hash(TOILE_HASH_SEED, bytes, payload) != get(header + 32, 8))
            damage = "the hash of its state is not the one it states";
    }
    if (damage) {
        status = toile_fail(error, TOILE_FORMAT,
                            "checkpoint %.400s is damaged: %s; delete it and bake again from the "
                            "first frame",
                            path, damage);
        goto out;
    }
    *frame = (int)(int32_t)(uint32_t)get(header + 12, 4);
    *fingerprint = get(header + 16, 8);
    *size = (size_t)info.st_size - HEADER_SIZE;
    *state = bytes;
    bytes = NULL;
out:
    toile_free(memory, bytes);
    close(fd);
    return status;
}

toile_status toile_checkpoint_read(toile_memory *memory, const char *cache_path, uint64_t *fingerprint,
                                   int *frame, void **state, size_t *size, toile_error *error) {
    char path[PATH_SIZE];
    if (!memory || !fingerprint || !frame || !state || !size)
        return toile_fail(error, TOILE_MISUSE, "toile_checkpoint_read was called with a null pointer");
    *state = NULL;
    *size = 0;
    toile_status status = state_path(cache_path, ".state", path, error);
    return status != TOILE_OK ? status : read_file(memory, path, fingerprint, frame, state, size, error);
}

toile_status toile_checkpoint_find(toile_memory *memory, const char *cache_path, int most,
                                   uint64_t *fingerprint, int *frame, void **state, size_t *size,
                                   toile_error *error) {
    toile_status status = toile_checkpoint_read(memory, cache_path, fingerprint, frame, state, size, error);
    if (status == TOILE_MISUSE || status == TOILE_NO_MEMORY || (status == TOILE_OK && *frame <= most))
        return status;
    if (status == TOILE_OK) {
        toile_free(memory, *state);
        *state = NULL;
        status =
            toile_fail(error, TOILE_IO, "the checkpoints of %.400s are all after frame %d", cache_path, most);
    }
    int frames[FOUND_MOST], count = find_older(cache_path, frames);
    char path[PATH_SIZE];
    for (int i = count - 1; i >= 0; i--) {
        toile_error inner;
        if (frames[i] > most || older_path(cache_path, frames[i], path, NULL) != TOILE_OK)
            continue;
        toile_status found = read_file(memory, path, fingerprint, frame, state, size, &inner);
        if (found == TOILE_OK && *frame == frames[i])
            return TOILE_OK;
        if (found == TOILE_OK)
            toile_free(memory, *state);
        *state = NULL;
        if (found == TOILE_NO_MEMORY)
            return toile_fail_memory(error, "a checkpoint");
    }
    return status;
}

void toile_checkpoint_remove(const char *cache_path) {
    char path[PATH_SIZE];
    int frames[FOUND_MOST], count = find_older(cache_path, frames);
    if (state_path(cache_path, ".state", path, NULL) == TOILE_OK)
        unlink(path);
    if (state_path(cache_path, ".state.new", path, NULL) == TOILE_OK)
        unlink(path);
    for (int i = 0; i < count; i++)
        if (older_path(cache_path, frames[i], path, NULL) == TOILE_OK)
            unlink(path);
}

void toile_checkpoint_move(const char *old_path, const char *new_path, int from) {
    char path[PATH_SIZE], target[PATH_SIZE];
    int frames[FOUND_MOST], count = find_older(new_path, frames), newest;
    for (int i = 0; i < count; i++)
        if (frames[i] >= from && older_path(new_path, frames[i], path, NULL) == TOILE_OK)
            unlink(path);
    /* The newest of the old ones may be from before. */
    if (state_path(new_path, ".state", path, NULL) == TOILE_OK && frame_of(path, &newest)) {
        if (newest < from && older_path(new_path, newest, target, NULL) == TOILE_OK)
            rename(path, target);
        else
            unlink(path);
    }
    count = find_older(old_path, frames);
    for (int i = 0; i < count; i++)
        if (older_path(old_path, frames[i], path, NULL) == TOILE_OK &&
            older_path(new_path, frames[i], target, NULL) == TOILE_OK)
            rename(path, target);
    /* Last, since it is what tells that a move is not over. */
    if (state_path(old_path, ".state", path, NULL) == TOILE_OK &&
        state_path(new_path, ".state", target, NULL) == TOILE_OK)
        rename(path, target);
    thin_out(new_path);
    toile_sync_folder(new_path);
}
