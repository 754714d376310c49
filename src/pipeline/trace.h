/*
 * W3C trace context: passed on when it is well formed, started when there is none; and what a sampled request leaves
 * behind for a collector (subzero/tracing.h).  Without `tracing.endpoint` no request has a trace.
 */
#ifndef SZ_PIPELINE_TRACE_H
#define SZ_PIPELINE_TRACE_H

#include "pipeline/txn.h"

/* traceparent and tracestate of the forwarded request. */
void sz_trace_forward(struct sz_txn *txn, struct sz_headers *out);
/* The trace id (32 hex digits): the caller's, or that of the trace that was started here; SZ_NONE: neither. */
struct sz_slice sz_trace_id(const struct sz_txn *txn);

/* ---- only where the worker has a tracer ---- */

/* The request begins: decides whether it is recorded, and begins txn->trace if so. */
void sz_trace_begin(struct sz_txn *txn);
/* Around each call of a stage of a recorded request. */
void sz_trace_enter(struct sz_txn *txn);
void sz_trace_leave(struct sz_txn *txn, enum sz_stage stage, enum sz_step step);
/* The exchange is over: the record is handed on. */
void sz_trace_finish(struct sz_txn *txn, unsigned status);

#endif
