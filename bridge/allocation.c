/* Processors of an allocation. A queue that runs several tasks on a machine says what is theirs by its
 * variables, by the processors that they may run on, or by a quota of time in a control group; containers use
 * the last two. */
#include "allocation.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static int from_slurm(void) {
    const char *text = getenv("SLURM_CPUS_PER_TASK");
    char *end = NULL;
    long count = text ? strtol(text, &end, 10) : 0;
    return text && *text && *end == 0 && count >= 1 && count < INT_MAX ? (int)count : INT_MAX;
}

static int from_affinity(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) !=
        0) /* more processors than the set has room for: no limit known */
        return INT_MAX;
    return CPU_COUNT(&set);
}

/* A quota of 1.5 processors keeps two threads busy part of the time; one would waste a third of it. */
static int whole(double cpus) {
    return cpus > 0 && cpus < INT_MAX ? (int)fmax(1, ceil(cpus - 1e-9)) : INT_MAX;
}

static bool read_number(const char *path, double *value) {
    FILE *file = fopen(path, "r");
    bool read = file && fscanf(file, "%lf", value) == 1;
    if (file)
        fclose(file);
    return read;
}

/* Version 2: cpu.max is "QUOTA PERIOD" or "max PERIOD". */
static int quota_v2(const char *folder) {
    char path[PATH_SIZE + 32];
    double quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    FILE *file = fopen(path, "r");
    bool read = file && fscanf(file, "%lf %lf", &quota, &period) == 2;
    if (file)
        fclose(file);
    return read && period > 0 ? whole(quota / period) : INT_MAX;
}

/* Version 1: a quota of -1 is none. */
static int quota_v1(const char *folder) {
    char path[PATH_SIZE + 32];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_number(path, &quota))
        return INT_MAX;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return read_number(path, &period) && period > 0 && quota > 0 ? whole(quota / period) : INT_MAX;
}

/* A group is bound by those above it too: the least on the way from `group` to `mount`. */
static int least_upwards(const char *mount, const char *group, int (*quota)(const char *)) {
    char folder[PATH_SIZE];
    int least = INT_MAX;
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder)
        return INT_MAX;
    for (size_t top = strlen(mount);;) {
        int here = quota(folder);
        least = here < least ? here : least;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top)
            return least;
        *slash = 0;
    }
}

/* Lines of /proc/self/cgroup are NUMBER:CONTROLLERS:PATH; version 2 has one without controllers. */
int toile_group_cpus(const char *root) {
    char path[PATH_SIZE], line[PATH_SIZE], mount[PATH_SIZE];
    int least = INT_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        controllers++;
        *group++ = 0;
        char listed[PATH_SIZE + 2];
        snprintf(listed, sizeof listed, ",%s,", controllers);
        int here = INT_MAX;
        if (!*controllers) {
            snprintf(mount, sizeof mount, "%.1000s/sys/fs/cgroup", root);
            here = least_upwards(mount, group, quota_v2);
        } else if (strstr(listed, ",cpu,")) {
            /* Under the names of its controllers, with a link of the plain name. */
            snprintf(mount, sizeof mount, "%.1000s/sys/fs/cgroup/cpu", root);
            here = least_upwards(mount, group, quota_v1);
        }
        least = here < least ? here : least;
    }
    if (file)
        fclose(file);
    return least;
}

int toile_allocated_cpus(void) {
    int least = from_affinity(), slurm = from_slurm(), groups = toile_group_cpus("");
    least = slurm < least ? slurm : least;
    least = groups < least ? groups : least;
    return least < 1 || least == INT_MAX ? 1 : least;
}
