/*
 * Names to addresses without blocking a loop.  The system can only be asked by waiting (getaddrinfo), for as long
 * as half a minute when name servers are down, so that is done on a few threads here: a bounded number of
 * them and one look-up per name, however many calls want it (libcurl would start a thread for each).
 *
 * What was found is kept for the whole process, and kept on when a later look-up fails: an outage of the name
 * servers is not felt as long as the addresses are still right.
 */
#ifndef SZ_LOOP_RESOLVER_H
#define SZ_LOOP_RESOLVER_H

#include "subzero/addr.h"
#include "subzero/time.h"

#define SZ_ADDRESSES_MAX  8
#define SZ_RESOLVER_NAMES 1024 /* known at once; the one not asked for longest makes room */
#define SZ_HOST_MAX       253  /* bytes of a name (RFC 1035) */

struct sz_addresses {
    struct sz_addr v[SZ_ADDRESSES_MAX]; /* in the order to try them in */
    size_t n;
};

/* 0 with at least one address, or a negative errno.  Blocks.  For the system's, and for tests' own. */
typedef int (*sz_lookup_fn)(const char *host, struct sz_addresses *out);

struct sz_resolver;
struct sz_resolver_name;

/* lookup NULL: the system's.  Any thread. */
struct sz_resolver *sz_resolver_new(struct sz_span ttl, sz_lookup_fn lookup);
/* After the last mailbox was closed.  A look-up under way ends by itself later. */
void sz_resolver_free(struct sz_resolver **resolver);

/* Where answers wait for their thread; `fd` turns readable when there are some. */
struct sz_mailbox {
    struct sz_resolver *resolver;
    int fd; /* an eventfd */
    struct sz_ask *first, **last;
};
int sz_mailbox_open(struct sz_mailbox *box, struct sz_resolver *resolver) SZ_MUST_CHECK; /* negative errno */
void sz_mailbox_close(struct sz_mailbox *box); /* after all its questions were answered or forgotten */

/* A question, embedded in its owner's struct; zero-initialise. */
struct sz_ask {
    int status; /* 0, or why there is no address: a negative errno */
    struct sz_addresses found;
    struct sz_mono until; /* when to ask again */
    bool looked_up;       /* the system was asked for it, not our memory */
    /* the resolver's */
    struct sz_mailbox *box;
    struct sz_resolver_name *name;
    struct sz_ask *next, **prev;
};

enum { SZ_RESOLVER_WAIT = 1, SZ_RESOLVER_FULL };
/* The mailbox's thread.  0: filled in; WAIT: it will come to the mailbox; FULL: too many names are being looked up. */
int sz_resolver_ask(struct sz_mailbox *box, const char *host, struct sz_mono now, struct sz_ask *ask) SZ_MUST_CHECK;
void sz_resolver_forget(struct sz_mailbox *box, struct sz_ask *ask); /* no-op when answered and taken */
/* The next answer, NULL: none.  Clears fd's readiness with the last one. */
struct sz_ask *sz_mailbox_take(struct sz_mailbox *box);

#endif
