/*
 * Who is calling: the socket's peer, or, when that is a trusted proxy, what it says about the client.
 * Pure; RFC 7239 semantics applied to X-Forwarded-For, read from the right.
 */
#ifndef SZ_PIPELINE_CLIENT_ADDR_H
#define SZ_PIPELINE_CLIENT_ADDR_H

#include "pipeline/request.h"

struct sz_client_addr {
    struct sz_addr client; /* first untrusted address from the right */
    bool peer_trusted;
    bool is_proxy; /* the client's address is a trusted proxy's own: nobody in particular */
};
/* Never fails: an unparsable entry ends the walk at the last address that was understood. */
void sz_client_addr(const struct sz_request *req, const struct sz_cidrs *trusted, struct sz_client_addr *out);
/* X-Forwarded-For to send on: client, trusted hops, peer. */
struct sz_slice sz_client_chain(const struct sz_request *req, const struct sz_cidrs *trusted, struct sz_pool *pool);

#endif
