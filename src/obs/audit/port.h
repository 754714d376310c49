/*
 * Where a loop's waits meet the writer.  No pointer to a wait goes through the queue: the records of one loop are taken
 * in the order in which it pushed them, so a count and a ring of outcomes say it all, and a wait whose owner has left
 * is just not there any more.
 */
#ifndef SZ_OBS_AUDIT_PORT_H
#define SZ_OBS_AUDIT_PORT_H

#include <pthread.h>
#include <stdatomic.h>

#include "subzero/audit.h"

enum { SZ_AUDIT_WAITS = 16384 /* of one loop */ };

struct sz_audit_port {
    struct sz_audit *audit;
    uint32_t id; /* from 1 */
    /* the loop's */
    uint64_t pushed, seen;
    struct sz_audit_wait **waits; /* SZ_AUDIT_WAITS; by place */
    /* the writer's */
    uint64_t taken;
    /* both */
    _Atomic uint64_t done;
    _Atomic uint8_t *committed; /* SZ_AUDIT_WAITS outcomes */
    pthread_mutex_t lock;       /* of loop: the writer's post against the loop's end */
    struct sz_loop *loop;       /* NULL: closed */
    struct sz_msg told;
    atomic_bool posted;
};

struct sz_audit_port *sz_audit_port_make(struct sz_audit *audit, uint32_t id, struct sz_loop *loop);
void sz_audit_port_destroy(struct sz_audit_port *port);
/* The loop: room for one more? */
bool sz_audit_port_free(const struct sz_audit_port *port);
/* The loop: its record was pushed. */
void sz_audit_port_pushed(struct sz_audit_port *port, struct sz_audit_wait *wait);
/* The writer: what it has taken up to now came to this; tells the loop. */
void sz_audit_port_tell(struct sz_audit_port *port, bool committed);

#endif
