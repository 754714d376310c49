/*
 * The admin listener: what operators and their tools ask.  It runs on the service thread, so that it answers however
 * busy the workers are.  HTTP/1 alone.
 */
#ifndef SZ_EDGE_ADMIN_H
#define SZ_EDGE_ADMIN_H

#include <h2o.h>

#include "edge/head_check.h"

struct sz_server;

int sz_admin_on_req(h2o_handler_t *handler, h2o_req_t *req);

struct sz_admin_call {
    h2o_req_t *req;
    struct sz_server *server;
    struct sz_head *head;
    struct sz_slice path, query;
};
void sz_admin_send(struct sz_admin_call *call, unsigned status, const char *type, struct sz_slice body);

/* An admin action that was done, on record: `action` such as "cache.flush", object on what. */
void sz_admin_record(struct sz_admin_call *call, const char *action, struct sz_slice object);

/* The pages (admin_pages.c, admin_health.c, admin_cache.c). */
void sz_admin_livez(struct sz_admin_call *call);
void sz_admin_readyz(struct sz_admin_call *call);
void sz_admin_health(struct sz_admin_call *call);
void sz_admin_metrics(struct sz_admin_call *call);
void sz_admin_config(struct sz_admin_call *call);
void sz_admin_jwks(struct sz_admin_call *call);
void sz_admin_breakers(struct sz_admin_call *call);
void sz_admin_cache_stats(struct sz_admin_call *call);
void sz_admin_cache_flush(struct sz_admin_call *call);
void sz_admin_threat(struct sz_admin_call *call); /* admin_threat.c */
void sz_admin_threat_blocks(struct sz_admin_call *call);
void sz_admin_threat_block(struct sz_admin_call *call);   /* ... */
void sz_admin_threat_unblock(struct sz_admin_call *call); /* ... */
void sz_admin_threat_event(struct sz_admin_call *call);   /* ... */
void sz_admin_audit(struct sz_admin_call *call);
void sz_admin_audit_export(struct sz_admin_call *call);

#endif
