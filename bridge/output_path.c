/* Where an output really goes. Files appear by rename, which would put a file in the place of a link; but a link that
 * leads to a large disk is there to be followed. */
#include "commands.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *toile_output_path(const char *path, char *room, size_t size) {
    enum { LINKS_MOST = 40 };
    char target[PATH_MAX], next[PATH_MAX];
    if (snprintf(room, size, "%s", path) >= (int)size)
        return path;
    for (int i = 0; i < LINKS_MOST; i++) {
        ssize_t length = readlink(room, target, sizeof target - 1);
        if (length < 0) /* no link */
            return room;
        target[length] = 0;
        const char *slash = strrchr(room, '/');
        int folder = target[0] != '/' && slash ? (int)(slash - room) + 1 : 0;
        if (snprintf(next, sizeof next, "%.*s%s", folder, room, target) >= (int)sizeof next ||
            snprintf(room, size, "%s", next) >= (int)size)
            return path;
    }
    return path;
}
