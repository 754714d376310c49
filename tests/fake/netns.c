/* See netns.h.  A namespace lives as long as a descriptor or a process in it: the test's end is theirs. */
#include "fake/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "fake/process.h"

static int current(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

int netns_enter(int ns)
{
    if (ns == 0)
        return 0;
    int before = current();
    SZ_ASSERT(before > 0 && setns(ns, CLONE_NEWNET) == 0);
    return before;
}

void netns_leave(int before)
{
    if (before == 0)
        return;
    SZ_ASSERT(setns(before, CLONE_NEWNET) == 0);
    close(before);
}

/* One line of ip(8), in this namespace. */
static bool ip(int ns, const char *fmt, ...) SZ_PRINTF(2, 3);
static bool ip(int ns, const char *fmt, ...)
{
    struct proc p = {0};
    char program[512], text[256];
    const char *argv[24] = {program};
    size_t n = 1;
    va_list args;

    snprintf(program, sizeof(program), "%s", program_find("ip"));
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *rest = text, *word; (word = strsep(&rest, " ")) != NULL && n + 1 < SZ_COUNT(argv);)
        argv[n++] = word;
    int before = netns_enter(ns);
    bool ok = proc_run(&p, "ip", 10, argv) == 0;
    netns_leave(before);
    return ok;
}

/* A fresh one, with its loopback up; -1: this user or this kernel may not. */
static int fresh(void)
{
    int before = current();
    if (before < 0 || unshare(CLONE_NEWNET) != 0) {
        close(before);
        return -1;
    }
    int ns = current();
    netns_leave(before);
    if (ns < 0 || ip(ns, "link set lo up"))
        return ns;
    close(ns);
    return -1;
}

static bool plug(struct netns *net, unsigned i)
{
    snprintf(net->addresses[i], sizeof(net->addresses[i]), "10.213.7.%u", i + 1);
    return ip(net->bridge, "link add port%u type veth peer name cable%u", i, i) &&
           ip(net->bridge, "link set cable%u netns /proc/%d/fd/%d", i, (int)getpid(), net->hosts[i]) &&
           ip(net->bridge, "link set port%u master bridge up", i) &&
           ip(net->hosts[i], "address add %s/24 dev cable%u", net->addresses[i], i) &&
           ip(net->hosts[i], "link set cable%u up", i);
}

static const char *build(struct netns *net, unsigned n)
{
    if (geteuid() != 0)
        return "network namespaces are for root";
    if (program_find("ip") == NULL)
        return "no ip here (iproute2)";
    if ((net->bridge = fresh()) < 0)
        return "no network namespaces here";
    if (!ip(net->bridge, "link add bridge type bridge") || !ip(net->bridge, "link set bridge up"))
        return "no bridges here";
    for (; net->n < n; net->n++) {
        if ((net->hosts[net->n] = fresh()) < 0)
            return "no further network namespace here";
        if (!plug(net, net->n)) {
            net->n++;
            return "no veth pairs here";
        }
    }
    return NULL;
}

const char *netns_open(struct netns *net, unsigned n)
{
    *net = (struct netns){.bridge = -1};
    SZ_ASSERT(n <= NETNS_HOSTS_MAX);
    const char *why = build(net, n);
    if (why != NULL)
        netns_close(net);
    return why;
}

void netns_close(struct netns *net)
{
    for (unsigned i = 0; i < net->n; i++)
        close(net->hosts[i]);
    if (net->bridge > 0)
        close(net->bridge);
    *net = (struct netns){.bridge = -1};
}

/* At the bridge's end the carrier would go with it: an address whose cable is out is told so.  Out of the bridge, not.
 */
void netns_cut(const struct netns *net, unsigned host, bool cut)
{
    SZ_ASSERT(cut ? ip(net->bridge, "link set port%u nomaster", host)
                  : ip(net->bridge, "link set port%u master bridge", host));
}
