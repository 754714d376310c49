/* W3C trace context: passed on when it is well formed, started when there is none. */
#ifndef SZ_PIPELINE_TRACE_H
#define SZ_PIPELINE_TRACE_H

#include "pipeline/txn.h"

void sz_trace_forward(struct sz_txn *txn, struct sz_headers *out);
/* The trace id (32 hex digits) of a well-formed traceparent of the client's, else SZ_NONE. */
struct sz_slice sz_trace_id(const struct sz_txn *txn);

#endif
