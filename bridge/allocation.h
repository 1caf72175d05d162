/* How many processors this process may use: what a queue gave it, which is often less than the machine has.
 */
#ifndef TOILE_ALLOCATION_H
#define TOILE_ALLOCATION_H

/* The least of SLURM_CPUS_PER_TASK, the quota of the control group, and the processors that the process may
 * run on; at least 1. */
int toile_allocated_cpus(void);

/* The quota of the control group (version 1 or 2) and of those above it, rounded up; INT_MAX if there is
 * none. `root` stands before /proc and /sys/fs/cgroup: "" but in tests. */
int toile_group_cpus(const char *root);

#endif
