/* How many CPUs a container pays for, from made-up /proc and /sys trees. */
#include "conf_test.h"

#include <sched.h>
#include <sys/stat.h>

#include "conf/cpus.h"

static void put(const char *path, const char *content)
{
    char full[256], *at;
    snprintf(full, sizeof(full), "%s/%s", conf_dir(), path);
    for (at = full + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0755);
        *at = '/';
    }
    conf_write(path, content, 0644);
}

static unsigned all(void)
{
    cpu_set_t set;
    cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    return (unsigned)CPU_COUNT(&set);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

Test(cpus, without_any_cgroup_the_affinity_counts)
{
    cr_expect_eq(sz_cpus_allowed(conf_dir()), all());
}

Test(cpus, affinity)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        CPU_SET(i, &one);
        if (sched_setaffinity(0, sizeof(one), &one) != 0)
            CPU_CLR(i, &one);
    }
    cr_expect_eq(sz_cpus_allowed(conf_dir()), 1);
}

Test(cpus, v2)
{
    static const struct {
        const char *root, *group, *max;
        unsigned want;
    } cases[] = {
        {"a", "max 100000", "max 100000\n", 1000},
        {"b", "max 100000", "100000 100000\n", 1},
        {"c", "max 100000", "50000 100000\n", 1},
        {"d", "max 100000", "150000 100000\n", 2},
        {"e", "20000 100000", "400000 100000\n", 1},
        {"f", "max 100000", "0 100000\n", 1000},
        {"g", "max 100000", "nonsense\n", 1000},
        {"h", "max 100000", "100000 0\n", 1000},
        {"i", "", "", 1000},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        char path[128], root[128];
        snprintf(path, sizeof(path), "%s/proc/self/cgroup", cases[i].root);
        put(path, "0::/pod/gateway\n");
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup/pod/cpu.max", cases[i].root);
        put(path, cases[i].group);
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup/pod/gateway/cpu.max", cases[i].root);
        put(path, cases[i].max);
        snprintf(root, sizeof(root), "%s/%s", conf_dir(), cases[i].root);
        cr_expect_eq(sz_cpus_allowed(root), least(all(), cases[i].want), "%s", cases[i].max);
    }
}

Test(cpus, v1)
{
    char root[128];
    put("v1/proc/self/cgroup", "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n");
    put("v1/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"); /* the group's own path is not visible in here */
    put("v1/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    snprintf(root, sizeof(root), "%s/v1", conf_dir());
    cr_expect_eq(sz_cpus_allowed(root), 1);
    put("v1/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    cr_expect_eq(sz_cpus_allowed(root), all());
    put("v1/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "90000\n");
    put("v1/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n");
    cr_expect_eq(sz_cpus_allowed(root), 1);
    put("v1/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "");
    cr_expect_eq(sz_cpus_allowed(root), all());
}

Test(cpus, odd_cgroup_files)
{
    static const char *const odd[] = {"", "\n", "nonsense\n", "0:\n", "0::\n", "0::/../../..\n", "4:cpu\n"};
    char root[128];
    snprintf(root, sizeof(root), "%s/odd", conf_dir());
    for (size_t i = 0; i < SZ_COUNT(odd); i++) {
        put("odd/proc/self/cgroup", odd[i]);
        cr_expect_eq(sz_cpus_allowed(root), all(), "%s", odd[i]);
    }
}
