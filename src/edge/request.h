/* Builds the pipeline's request from h2o's, after the strict checks of the protocol it came by. */
#ifndef SZ_EDGE_REQUEST_H
#define SZ_EDGE_REQUEST_H

#include "edge/exchange.h"

struct sz_refusal {
    enum sz_reason reason;
    const char *why; /* a literal for the problem document's detail */
};

/* Fills x->txn.req (listener and peer are set by the caller); false: *refusal says why the request is refused. */
bool sz_request_read(struct sz_exchange *x, struct sz_refusal *refusal) SZ_MUST_CHECK;

#endif
