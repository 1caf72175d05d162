/* Quotas of control groups as the kernel shows them, in a folder that stands for the root. */
#include "allocation.h"
#include "check.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/toile_allocation_XXXXXX";

/* Writes a file with the folders above it. */
static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; *at; at++)
        if (*at == '/') {
            *at = 0;
            mkdir(path, 0777);
            *at = '/';
        }
    FILE *file = fopen(path, "w");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static void version_2(void) {
    put("/proc/self/cgroup", "0::/slurm/job_7/task\n");
    CHECK(toile_group_cpus(root) == INT_MAX, "%d", toile_group_cpus(root));
    put("/sys/fs/cgroup/slurm/job_7/task/cpu.max", "max 100000\n");
    CHECK(toile_group_cpus(root) == INT_MAX, "%d", toile_group_cpus(root));
    put("/sys/fs/cgroup/slurm/job_7/task/cpu.max", "400000 100000\n");
    CHECK(toile_group_cpus(root) == 4, "%d", toile_group_cpus(root));
    put("/sys/fs/cgroup/slurm/cpu.max", "150000 100000\n"); /* one above is tighter: 1.5, rounded up */
    CHECK(toile_group_cpus(root) == 2, "%d", toile_group_cpus(root));
    put("/sys/fs/cgroup/cpu.max", "5000 100000\n"); /* the whole container: less than one is one */
    CHECK(toile_group_cpus(root) == 1, "%d", toile_group_cpus(root));
    put("/proc/self/cgroup", "0::/\n");
    CHECK(toile_group_cpus(root) == 1, "%d", toile_group_cpus(root));
    for (int i = 0; i < 5; i++) { /* what is no quota is none */
        static const char *const texts[] = {"", "x y", "-1 100000", "100000 0", "100000"};
        put("/sys/fs/cgroup/cpu.max", texts[i]);
        CHECK(toile_group_cpus(root) == INT_MAX, "\"%s\": %d", texts[i], toile_group_cpus(root));
    }
}

static void version_1(void) {
    put("/proc/self/cgroup", "12:memory:/a\n5:cpu,cpuacct:/docker/b\n3:cpuset:/a\n");
    put("/sys/fs/cgroup/cpu/docker/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/docker/b/cpu.cfs_period_us", "100000\n");
    CHECK(toile_group_cpus(root) == INT_MAX, "%d", toile_group_cpus(root));
    put("/sys/fs/cgroup/cpu/docker/b/cpu.cfs_quota_us", "300000\n");
    CHECK(toile_group_cpus(root) == 3, "%d", toile_group_cpus(root));
    put("/proc/self/cgroup", "garbage\n:::::\n5:cpuset:/x\n\n7");
    CHECK(toile_group_cpus(root) == INT_MAX, "%d", toile_group_cpus(root));
}

static void all_together(void) {
    setenv("SLURM_CPUS_PER_TASK", "1", 1);
    CHECK(toile_allocated_cpus() == 1, "%d", toile_allocated_cpus());
    setenv("SLURM_CPUS_PER_TASK", "0", 1);
    int without = toile_allocated_cpus();
    unsetenv("SLURM_CPUS_PER_TASK");
    CHECK(without >= 1 && without == toile_allocated_cpus(), "%d and %d", without, toile_allocated_cpus());
}

int main(int argc, char **argv) {
    if (!mkdtemp(root))
        return 1;
    RUN(version_2);
    RUN(version_1);
    RUN(all_together);
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    if (system(command) != 0)
        return 1;
    FINISH();
}
