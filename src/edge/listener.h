/*
 * Listeners: bound once for the process, watched by every thread that serves them.  Limits on connections are enforced
 * here, before a byte is read and before TLS.
 */
#ifndef SZ_EDGE_LISTENER_H
#define SZ_EDGE_LISTENER_H

#include <h2o.h>

#include "subzero/addr.h"
#include "subzero/conf.h"
#include "subzero/loop.h"
#include "subzero/metrics.h"

struct sz_edge_thread;
struct sz_server;

enum sz_listener_kind { SZ_LISTEN_DATA, SZ_LISTEN_FGA, SZ_LISTEN_ADMIN, SZ_LISTEN_DEMO };
/* Clients' own: the workers serve them, and the limits on connections are theirs. */
static inline bool sz_listener_is_public(enum sz_listener_kind kind)
{
    return kind == SZ_LISTEN_DATA || kind == SZ_LISTEN_FGA;
}

struct sz_listener { /* the process's side; constant after the start */
    enum sz_listener_kind kind;
    const struct sz_conf_listener *conf; /* SZ_LISTEN_DATA, _FGA: of the configuration that the process started with */
    int fd;                              /* -1 once it is closed: by the last thread that drains */
    uint16_t port;                       /* the bound one */
    struct sz_series gauge;
};

struct sz_acceptor { /* a thread's side of a listener */
    struct sz_edge_thread *thread;
    struct sz_listener *listener;
    struct sz_watch *watch;
    struct sz_timer retry; /* accepting is paused until then */
    bool paused;
    h2o_accept_ctx_t ctx;
};

/* Binds and listens. -errno and *why with the address and the remedy. */
int sz_listener_bind(struct sz_listener *listener, struct sz_addr ip, uint16_t port, struct sz_text *why) SZ_MUST_CHECK;

int sz_acceptor_init(struct sz_acceptor *acceptor, struct sz_edge_thread *thread,
                     struct sz_listener *listener) SZ_MUST_CHECK;
/* Stops watching. */
void sz_acceptor_stop(struct sz_acceptor *acceptor);
/* The last acceptor of its listener to stop: accepts what waits in the backlog, then closes the listener. */
void sz_acceptor_close(struct sz_acceptor *acceptor);

/* A connection of this thread has closed: accepting may go on. */
void sz_listeners_resume(struct sz_edge_thread *thread);

#endif
