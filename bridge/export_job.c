/* What the export formats share: reading a frame, axes, names, and files that appear when they are whole. */
#include "export_job.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

toile_status toile_export_read(toile_export *job, int frame, int garment, float *positions,
                               float *velocities) {
    int index = frame - toile_cache_get_header(job->cache)->first_frame;
    return toile_cache_read(job->cache, index, garment, positions, velocities, &job->error);
}

void toile_export_place(const toile_export *job, const double from[3], double to[3]) {
    double x = job->scale * from[0], y = job->scale * from[1], z = job->scale * from[2];
    to[0] = x;
    to[1] = job->up == TOILE_UP_Y ? z : y;
    to[2] = job->up == TOILE_UP_Y ? -y : z;
}

/* ---- names ---- */

static bool taken(char (*names)[TOILE_NAME_SIZE], int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return false;
}

void toile_export_name(const char *name, const char *fallback, char (*names)[TOILE_NAME_SIZE], int count) {
    enum { LONGEST = TOILE_NAME_SIZE - 16 }; /* room for a number */
    char *own = names[count - 1], base[LONGEST];
    size_t length = 0;
    for (const char *at = name && *name ? name : fallback; *at && length < LONGEST - 1; at++) {
        unsigned char c = (unsigned char)*at;
        base[length++] = c >= 0x80 || isalnum(c) || c == '_' || c == '-' ? *at : '_';
    }
    /* Do not cut a UTF-8 sequence in two. */
    if (length == LONGEST - 1)
        while (length > 0 && (unsigned char)base[length - 1] >= 0x80)
            length--;
    base[length] = 0;
    snprintf(own, TOILE_NAME_SIZE, "%s", base);
    for (int number = 2; taken(names, count - 1, own); number++)
        snprintf(own, TOILE_NAME_SIZE, "%s_%d", base, number);
}

/* ---- a file that appears only when it is whole ---- */

toile_status toile_export_file_begin(toile_export_file *file, const char *path, toile_error *error) {
    struct stat about;
    file->temporary[0] = 0;
    if (snprintf(file->path, TOILE_PATH_SIZE, "%s", path) >= TOILE_PATH_SIZE - 32)
        return toile_fail(error, TOILE_INVALID, "the name is too long: %.200s...", path);
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return toile_fail(error, TOILE_IO, "%s cannot be written: it is a folder", path);
    char temporary[TOILE_PATH_SIZE + 32];
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return toile_fail(error, TOILE_IO, "%s cannot be written: %s; %s", path, strerror(errno),
                          toile_io_advice(errno));
    close(fd);
    snprintf(file->temporary, TOILE_PATH_SIZE, "%.*s", TOILE_PATH_SIZE - 1, temporary);
    return TOILE_OK;
}

toile_status toile_export_file_keep(toile_export_file *file, toile_error *error) {
    if (rename(file->temporary, file->path) != 0)
        return toile_fail(error, TOILE_IO, "%s cannot be written: %s; %s", file->path, strerror(errno),
                          toile_io_advice(errno));
    file->temporary[0] = 0;
    int failure = toile_sync_folder(file->path);
    if (failure)
        return toile_fail(error, TOILE_IO, "%s: its folder cannot be written: %s", file->path,
                          strerror(failure));
    return TOILE_OK;
}

void toile_export_file_drop(toile_export_file *file) {
    if (file->temporary[0])
        unlink(file->temporary);
    file->temporary[0] = 0;
}
