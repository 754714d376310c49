/*
 * Decide listeners: how each front proxy describes the client's request.  One dialect a listener, that dialect's
 * headers alone, each exactly once; nothing has a default, because a default of "/" or GET is a hole that opens when a
 * header is forgotten.
 *
 *   dialect   method               target            host                 scheme
 *   nginx     X-Original-Method    X-Original-URI    the call's Host      –
 *   traefik   X-Forwarded-Method   X-Forwarded-Uri   X-Forwarded-Host     X-Forwarded-Proto
 *   caddy     X-Forwarded-Method   X-Forwarded-Uri   X-Forwarded-Host     X-Forwarded-Proto
 *   envoy     the call's           the call's        the call's Host      –
 *   haproxy   X-Original-Method    X-Original-URI    X-Original-Host      –
 */
#ifndef SZ_EDGE_DIALECT_H
#define SZ_EDGE_DIALECT_H

#include "edge/request.h"

struct sz_dialect_request {
    struct sz_slice method, target, authority;
    bool https;
};
/* Pure; borrowed from the call.  -EINVAL: *why is a literal. */
int sz_dialect_parse(enum sz_dialect dialect, const struct sz_request *call, struct sz_dialect_request *out,
                     const char **why) SZ_MUST_CHECK;
/* True for every header that any dialect describes a request with: none of them is the client's. */
bool sz_dialect_owns(struct sz_slice name);

/* Turns the call in x->txn.req into the client's request; false: *refusal. */
bool sz_dialect_read(struct sz_exchange *x, struct sz_refusal *refusal) SZ_MUST_CHECK;

#endif
