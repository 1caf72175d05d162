/* Who writes a file: CACHE.lock beside it. Made so that only one can make it, which network file systems honour where they
 * do not honour locks on bytes; it names host and process, and its holder touches it every few seconds.
 *
 * A lock is stale, and taken over, if its process is gone (of this machine, since its start and by its
 * process number and start time: numbers are reused) or, held from elsewhere, if it was not touched for
 * STALE_SECONDS of the file system's own clock. A holder that slept for longer than that finds another's lock
 * in place of its own and stops writing. */
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BEAT_SECONDS 5
#define STALE_SECONDS 60
#define ATTEMPTS 20
enum { TEXT_SIZE = 512, PATH_SIZE = PATH_MAX + 32 };

struct toile_lock {
    toile_memory *memory;
    char *path;
    int fd; /* below 0: the folder may not be written, there is no lock */
    time_t beat;
};

/* What a lock file says of its holder. */
typedef struct holder {
    char host[128], boot[64];
    long pid;
    unsigned long long start;
    long long since;
} holder;

/* ---- this process ---- */

/* The machine since its start, and the set of processes that this one can see. */
static void read_boot(char *boot, size_t size) {
    char spaces[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    boot[0] = '\0';
    if (file) {
        if (!fgets(boot, (int)size, file))
            boot[0] = '\0';
        fclose(file);
    }
    boot[strcspn(boot, "\n")] = '\0';
    ssize_t length = readlink("/proc/self/ns/pid", spaces, sizeof spaces - 1);
    size_t used = strlen(boot);
    if (length > 0 && used + 1 < size)
        snprintf(boot + used, size - used, "/%.*s", (int)length, spaces);
}

/* When a process started, in ticks since the machine did; 0 if it is not known. Field 22 of its stat, counted
 * behind the name in parentheses, which may hold anything. */
static unsigned long long start_of(long pid) {
    char name[64], text[1024];
    snprintf(name, sizeof name, "/proc/%ld/stat", pid);
    FILE *file = fopen(name, "r");
    if (!file)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

static void describe_self(holder *self) {
    *self =
        (holder){.pid = (long)getpid(), .start = start_of((long)getpid()), .since = (long long)time(NULL)};
    if (gethostname(self->host, sizeof self->host - 1) || !self->host[0])
        snprintf(self->host, sizeof self->host, "unknown");
    read_boot(self->boot, sizeof self->boot);
}

/* ---- lock files ---- */

static bool read_holder(int fd, holder *h) {
    char text[TEXT_SIZE + 1];
    ssize_t length = pread(fd, text, TEXT_SIZE, 0);
    *h = (holder){0};
    if (length <= 0)
        return false;
    text[length] = '\0';
    return sscanf(text, "toile lock 1\nhost %127[^\n]\nboot %63[^\n]\npid %ld\nstart %llu\nsince %lld\n",
                  h->host, h->boot, &h->pid, &h->start, &h->since) == 5;
}

static bool write_holder(int fd, const holder *h) {
    char text[TEXT_SIZE];
    int length =
        snprintf(text, sizeof text, "toile lock 1\nhost %s\nboot %s\npid %ld\nstart %llu\nsince %lld\n",
                 h->host, h->boot[0] ? h->boot : "unknown", h->pid, h->start, h->since);
    return pwrite(fd, text, (size_t)length, 0) == length;
}

/* A file without a name in the folder of `path`, or -1 where there are none. */
static int open_nameless(const char *path) {
#ifdef O_TMPFILE
    char folder[PATH_SIZE] = ".";
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
#else
    (void)path;
    return -1;
#endif
}

/* Seconds since a file was touched, by the clock that stamps files there: that of a new file beside it. */
static double age_of(const char *path, const struct stat *info) {
    char fresh[PATH_SIZE + 32];
    struct stat now;
    snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    int fd = open_nameless(path);
    bool named = fd < 0;
    if (named)
        fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool known = fd >= 0 && write(fd, "", 1) == 1 && fsync(fd) == 0 && fstat(fd, &now) == 0;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && named)
        unlink(fresh);
    return known ? difftime(now.st_mtime, info->st_mtime) : 0;
}

/* Whether the holder is a process that would be seen from here. */
static bool is_near(const holder *h) {
    holder self;
    describe_self(&self);
    return strcmp(self.boot, h->boot) == 0 && strcmp(self.host, h->host) == 0;
}

/* Of one that is: whether it has ended. */
static bool has_ended(const holder *h) {
    if (kill((pid_t)h->pid, 0) != 0 && errno == ESRCH)
        return true;
    unsigned long long start = start_of(h->pid);
    return start != 0 && h->start != 0 && start != h->start;
}

/* Whether the holder of the lock at `path` can no longer be at it. */
static bool is_stale(const char *path, const holder *h, bool readable, const struct stat *info) {
    /* A lock without a holder is being made, or was left by a full disk: a while is given to it. */
    return readable && is_near(h) ? has_ended(h) : age_of(path, info) > STALE_SECONDS;
}

static toile_status fail_held(const char *cache_path, const holder *h, bool readable, toile_error *error) {
    char since[64] = "", host[160] = "";
    holder self;
    describe_self(&self);
    time_t taken = (time_t)h->since;
    struct tm parts;
    if (readable && localtime_r(&taken, &parts))
        strftime(since, sizeof since, " since %Y-%m-%d %H:%M:%S", &parts);
    if (readable && strcmp(self.host, h->host) != 0)
        snprintf(host, sizeof host, " on %.120s", h->host);
    return toile_fail(error, TOILE_IO,
                      "cannot write %.400s: another process is writing it (process %ld%s%s); wait for it or "
                      "stop it. If it is "
                      "gone, its lock expires by itself within %d s",
                      cache_path, h->pid, host, since, STALE_SECONDS);
}

/* Puts a stale lock out of the way. Of several that try, one renames the file that was judged; should it have
 * been exchanged in between, it is put back. */
static void remove_stale(const char *path, const struct stat *judged) {
    char aside[PATH_SIZE + 32];
    struct stat info;
    snprintf(aside, sizeof aside, "%s.stale-%ld", path, (long)getpid());
    if (rename(path, aside))
        return;
    if (stat(aside, &info) == 0 && info.st_ino != judged->st_ino && link(aside, path) == 0) {
        unlink(aside);
        return;
    }
    unlink(aside);
}

/* Removes what processes left that were killed while a lock was aside. One whose holder lives is not touched:
 * it was put aside by mistake, and whoever did puts it back. */
static void sweep_aside(const char *path) {
    char folder[PATH_SIZE], prefix[PATH_SIZE], file[PATH_SIZE + 300];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? path : ".");
    snprintf(prefix, sizeof prefix, "%s.stale-", path + length);
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        holder h;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(file, sizeof file, "%.*s%s", length, path, entry->d_name);
        int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0 && read_holder(fd, &h) && is_near(&h) && has_ended(&h))
            unlink(file);
        if (fd >= 0)
            close(fd);
    }
    if (list)
        closedir(list);
}

/* The lock appears with its text in it: whoever is killed in between leaves nothing behind. Where a file cannot be made
 * without a name (network folders), it is made empty and then filled, and a kill between the two holds others up for
 * STALE_SECONDS. */
static int try_to_make(const char *path) {
    holder self;
    describe_self(&self);
    int fd = open_nameless(path);
    if (fd >= 0) {
        char name[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        if (write_holder(fd, &self)) {
            if (linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
                return fd;
            if (errno == EEXIST) {
                close(fd);
                errno = EEXIST;
                return -1;
            }
        }
        close(fd);
    }
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    if (write_holder(fd, &self))
        return fd;
    int failed = errno;
    close(fd);
    unlink(path);
    errno = failed ? failed : ENOSPC;
    return -1;
}

/* ---- interface ---- */

toile_status toile_lock_take(toile_memory *memory, const char *cache_path, toile_lock **result,
                             toile_error *error) {
    *result = NULL;
    toile_lock *lock = toile_alloc(memory, 1, sizeof *lock);
    size_t size = strlen(cache_path) + sizeof ".lock";
    char *path = toile_alloc(memory, size, 1);
    toile_status status = TOILE_OK;
    if (!lock || !path || size > PATH_MAX) {
        status = !lock || !path
                     ? toile_fail_memory(error, "a lock")
                     : toile_fail(error, TOILE_INVALID, "%.300s...: the path is too long; use a shorter one",
                                  cache_path);
        goto fail;
    }
    snprintf(path, size, "%s.lock", cache_path);
    *lock = (toile_lock){memory, path, -1, time(NULL)};
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        lock->fd = try_to_make(path);
        /* Where no file can be made none can be replaced either; the lock on the file itself has to do. */
        if (lock->fd >= 0 || errno == EACCES || errno == EPERM || errno == EROFS || errno == ENOENT ||
            errno == ENOTDIR) {
            if (lock->fd >= 0)
                sweep_aside(path);
            *result = lock;
            return TOILE_OK;
        }
        if (errno != EEXIST) {
            status = toile_fail(error, TOILE_IO, "cannot make %.400s: %s; %s", path, strerror(errno),
                                toile_io_advice(errno));
            goto fail;
        }
        holder h;
        struct stat info;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &info)) { /* it has just gone */
            if (fd >= 0)
                close(fd);
            continue;
        }
        bool readable = read_holder(fd, &h);
        close(fd);
        if (is_stale(path, &h, readable, &info)) {
            remove_stale(path, &info);
        } else if (readable || attempt == ATTEMPTS - 1) {
            status = fail_held(cache_path, &h, readable, error);
            goto fail;
        } else { /* in the making */
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        }
    }
    status =
        toile_fail(error, TOILE_IO, "cannot make %.400s: others take it at the same time; try again", path);
fail:
    toile_free(memory, path);
    toile_free(memory, lock);
    return status;
}

bool toile_lock_beat(toile_lock *lock) {
    struct stat mine, there;
    if (!lock || lock->fd < 0)
        return true;
    if (stat(lock->path, &there) || fstat(lock->fd, &mine) || mine.st_ino != there.st_ino ||
        mine.st_dev != there.st_dev)
        return false;
    time_t now = time(NULL);
    if (now - lock->beat >= BEAT_SECONDS || now < lock->beat) {
        futimens(lock->fd, NULL);
        lock->beat = now;
    }
    return true;
}

bool toile_lock_move(toile_lock *lock, const char *cache_path) {
    size_t size = strlen(cache_path) + sizeof ".lock";
    char *path = toile_alloc(lock->memory, size, 1);
    if (!path) {
        errno = ENOMEM;
        return false;
    }
    snprintf(path, size, "%s.lock", cache_path);
    if (lock->fd >= 0 && rename(lock->path, path)) {
        toile_free(lock->memory, path);
        return false;
    }
    toile_free(lock->memory, lock->path);
    lock->path = path;
    return true;
}

void toile_lock_release(toile_lock *lock) {
    if (!lock)
        return;
    if (lock->fd >= 0) {
        if (toile_lock_beat(lock)) /* still ours */
            unlink(lock->path);
        close(lock->fd);
    }
    toile_free(lock->memory, lock->path);
    toile_free(lock->memory, lock);
}
