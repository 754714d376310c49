/*
 * The PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt): what a load balancer says in front of a
 * connection about the client behind it.  Pure functions over bytes.
 */
#ifndef SZ_EDGE_PROXY_HEADER_H
#define SZ_EDGE_PROXY_HEADER_H

#include "subzero/addr.h"

#define SZ_PROXY_HEADER_MAX 536 /* a version 2 header with room for TLVs; more is refused */

struct sz_proxy_header {
    size_t length;   /* bytes of the header */
    bool has_client; /* false: LOCAL or UNKNOWN (the balancer's own health check), keep the socket's address */
    struct sz_addr client;
    uint16_t port;
};

/* 0: *out is filled; SZ_PROXY_HEADER_MORE: incomplete so far; -EINVAL: not a PROXY header. */
enum { SZ_PROXY_HEADER_MORE = 1 };
int sz_proxy_header_parse(struct sz_slice bytes, struct sz_proxy_header *out) SZ_MUST_CHECK;

#endif
