/*
 * How many loop threads `workers: auto` means: the CPUs that the scheduler lets us use, and no more than
 * the cgroup's quota pays for (rounded up; at least 1).
 */
#ifndef SZ_CONF_CPUS_H
#define SZ_CONF_CPUS_H

/* Blocking.  `root` stands before /proc and /sys ("" in the real world). */
unsigned sz_cpus_allowed(const char *root);

#endif
