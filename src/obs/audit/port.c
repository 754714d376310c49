/* See the header. */
#include "obs/audit/port.h"

#include <stdlib.h>

static void on_told(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_audit_port *port = SZ_CONTAINER(msg, struct sz_audit_port, told);
    (void)loop;
    atomic_store(&port->posted, false); /* before the look: what comes after it is posted anew */
    uint64_t done = atomic_load_explicit(&port->done, memory_order_acquire);
    while (port->seen < done) {
        uint64_t place = port->seen++;
        struct sz_audit_wait *wait = port->waits[place % SZ_AUDIT_WAITS];
        bool committed = atomic_load_explicit(&port->committed[place % SZ_AUDIT_WAITS], memory_order_relaxed) != 0;
        port->waits[place % SZ_AUDIT_WAITS] = NULL;
        if (wait == NULL)
            continue;
        wait->port = NULL;
        wait->on_done(wait, committed);
    }
}

struct sz_audit_port *sz_audit_port_make(struct sz_audit *audit, uint32_t id, struct sz_loop *loop)
{
    struct sz_audit_port *port = sz_xcalloc(1, sizeof(*port));
    port->audit = audit;
    port->id = id;
    port->loop = loop;
    port->waits = sz_xcalloc(SZ_AUDIT_WAITS, sizeof(struct sz_audit_wait *));
    port->committed = sz_xcalloc(SZ_AUDIT_WAITS, sizeof(*port->committed));
    port->told.on_msg = on_told;
    pthread_mutex_init(&port->lock, NULL);
    return port;
}

void sz_audit_port_destroy(struct sz_audit_port *port)
{
    pthread_mutex_destroy(&port->lock);
    free(port->waits);
    free((void *)port->committed);
    free(port);
}

void sz_audit_port_close(struct sz_audit_port **portp)
{
    struct sz_audit_port *port = *portp;
    *portp = NULL;
    if (port == NULL)
        return;
    pthread_mutex_lock(&port->lock);
    port->loop = NULL;
    pthread_mutex_unlock(&port->lock);
}

bool sz_audit_port_free(const struct sz_audit_port *port)
{
    return port->pushed - port->seen < SZ_AUDIT_WAITS;
}

void sz_audit_port_pushed(struct sz_audit_port *port, struct sz_audit_wait *wait)
{
    wait->port = port;
    wait->place = port->pushed++;
    port->waits[wait->place % SZ_AUDIT_WAITS] = wait;
}

void sz_audit_wait_cancel(struct sz_audit_wait *wait)
{
    if (wait->port == NULL)
        return;
    wait->port->waits[wait->place % SZ_AUDIT_WAITS] = NULL;
    wait->port = NULL;
}

void sz_audit_port_tell(struct sz_audit_port *port, bool committed)
{
    uint64_t done = atomic_load_explicit(&port->done, memory_order_relaxed);
    if (done == port->taken)
        return;
    for (; done < port->taken; done++)
        atomic_store_explicit(&port->committed[done % SZ_AUDIT_WAITS], committed, memory_order_relaxed);
    atomic_store_explicit(&port->done, done, memory_order_release);
    pthread_mutex_lock(&port->lock);
    if (port->loop != NULL && !atomic_exchange(&port->posted, true))
        sz_loop_post(port->loop, &port->told);
    pthread_mutex_unlock(&port->lock);
}
