/*
 * Several hosts on one machine: network namespaces on a bridge, none of which has a name, so that nothing is left
 * behind however a test ends, and nothing of the machine's own network is touched.
 *
 * A namespace is that of a thread: whatever the thread starts or connects while it is in one (programs, threads, the
 * harness with its 127.0.0.1) is on that host.
 */
#ifndef FAKE_NETNS_H
#define FAKE_NETNS_H

#include <stdbool.h>

#define NETNS_HOSTS_MAX 8

struct netns {
    int bridge;                 /* the namespace with the bridge in it */
    int hosts[NETNS_HOSTS_MAX]; /* for netns_enter */
    char addresses[NETNS_HOSTS_MAX][16];
    unsigned n;
};

/* n hosts that see each other and their own loopback, nothing else.  NULL, or why that cannot be had here. */
const char *netns_open(struct netns *net, unsigned n);
/* Once everything in them has ended. */
void netns_close(struct netns *net);
/* Pulls the host's cable, or puts it back: what is sent is lost, and nobody is told. */
void netns_cut(const struct netns *net, unsigned host, bool cut);

/* Moves the calling thread into a namespace (0: it stays).  Gives what netns_leave takes to move it back. */
int netns_enter(int ns);
void netns_leave(int before);

#endif
