/*
 * Affinity by sched_getaffinity; the quota from cgroup v2 (cpu.max) or v1 (cpu.cfs_quota_us over
 * cpu.cfs_period_us), the smallest from our own group up to the root, since every level limits.
 * Inside a container the paths of /proc/self/cgroup are often not visible below /sys/fs/cgroup:
 * a level that cannot be read does not limit.
 */
#include "conf/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "subzero/base.h"

#define WORKERS_MAX 256

static unsigned affinity(void)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) { /* the kernel's mask may be wider than cpu_set_t */
        cpu_set_t *set = CPU_ALLOC(cpus);
        size_t size = CPU_ALLOC_SIZE(cpus);
        if (set == NULL)
            break;
        int rc = sched_getaffinity(0, size, set);
        int count = rc == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return (unsigned)count;
    }
    return 1;
}

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *f = fopen(path, "re");
    bool ok = f != NULL && fgets(line, (int)size, f) != NULL;
    if (f != NULL)
        fclose(f);
    return ok;
}

/* CPUs of one quota, rounded up; UINT_MAX-like "no limit" is WORKERS_MAX. */
static unsigned whole(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0 || quota / period >= WORKERS_MAX)
        return WORKERS_MAX;
    return (unsigned)((quota + period - 1) / period);
}

static unsigned v2_level(const char *dir)
{
    char path[4400], line[128];
    long long quota, period;
    snprintf(path, sizeof(path), "%s/cpu.max", dir);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lld %lld", &quota, &period) != 2)
        return WORKERS_MAX; /* "max 100000" has no number first */
    return whole(quota, period);
}

static unsigned v1_level(const char *dir)
{
    char path[4400], line[128];
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    if (!read_line(path, line, sizeof(line)))
        return WORKERS_MAX;
    int64_t quota = strtoll(line, NULL, 10);
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (!read_line(path, line, sizeof(line)))
        return WORKERS_MAX;
    return whole(quota, strtoll(line, NULL, 10));
}

/* The least over `group` and everything above it, the mount's root included. */
static unsigned walk_up(const char *mount, const char *group, unsigned (*level)(const char *dir))
{
    char dir[4300];
    int n = snprintf(dir, sizeof(dir), "%s%s", mount, group);
    unsigned least = WORKERS_MAX;
    size_t floor = strlen(mount);
    if (n < 0 || (size_t)n >= sizeof(dir))
        return least;
    for (;;) {
        unsigned here = level(dir);
        least = here < least ? here : least;
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= floor || slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* A line of /proc/self/cgroup: "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1). */
static unsigned line_limit(const char *root, char *line)
{
    char mount[256];
    char *names = strchr(line, ':');
    char *group = names == NULL ? NULL : strchr(names + 1, ':');
    if (group == NULL)
        return WORKERS_MAX;
    names++;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (strstr(group, "..") != NULL)
        group[0] = '\0';
    if (*names == '\0') {
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
        return walk_up(mount, group, v2_level);
    }
    char *save = NULL;
    for (char *name = strtok_r(names, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save)) {
        if (strcmp(name, "cpu") != 0)
            continue;
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/cpu", root);
        return walk_up(mount, group, v1_level);
    }
    return WORKERS_MAX;
}

static unsigned quota(const char *root)
{
    char path[256], line[4096];
    unsigned least = WORKERS_MAX;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        unsigned limit = line_limit(root, line);
        least = limit < least ? limit : least;
    }
    if (f != NULL)
        fclose(f);
    return least;
}

unsigned sz_cpus_allowed(const char *root)
{
    unsigned cpus = affinity(), paid = quota(root);
    return cpus < paid ? cpus : paid;
}
