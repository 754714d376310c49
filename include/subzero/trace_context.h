/*
 * W3C Trace Context (level 1): whose trace a request belongs to, read strictly.  A traceparent that is not just as the
 * recommendation says is no traceparent: the trace begins anew and tracestate goes with it.
 */
#ifndef SUBZERO_TRACE_CONTEXT_H
#define SUBZERO_TRACE_CONTEXT_H

#include "subzero/base.h"

enum { SZ_TRACE_ID = 16, SZ_TRACE_SPAN_ID = 8, SZ_TRACEPARENT = 55, SZ_TRACE_SAMPLED = 1 };

struct sz_trace_parent {
    uint8_t trace_id[SZ_TRACE_ID];
    uint8_t span_id[SZ_TRACE_SPAN_ID]; /* the caller's span */
    uint8_t flags;                     /* SZ_TRACE_SAMPLED and what later versions add */
    bool later_version;                /* than 00: to be passed on as 00, since what else it says is not understood */
};

/* False: none.  Fields of a version later than 00 that follow the four known ones are passed over. */
bool sz_traceparent_parse(struct sz_slice value, struct sz_trace_parent *out);
/* Writes SZ_TRACEPARENT bytes of version 00, without a NUL. */
void sz_traceparent_write(const struct sz_trace_parent *parent, char *out);

/* tracestate may come in several fields, which count as one list: at most 32 members, no key twice. */
struct sz_tracestate {
    struct sz_slice keys[32];
    unsigned n;
};
/* One field more, in order; starts zeroed; borrows.  False: the list is not valid, and not to be passed on. */
bool sz_tracestate_add(struct sz_tracestate *state, struct sz_slice value);

/*
 * Whether a share of all traces contains this one: the rule of OpenTelemetry's TraceIdRatioBased sampler, so that every
 * service of a trace which uses it decides alike.  share: of SZ_TRACE_ALL.
 */
#define SZ_TRACE_ALL (UINT64_C(1) << 63)
bool sz_trace_in_share(const uint8_t trace_id[SZ_TRACE_ID], uint64_t share);

/* Ids: unique and evenly spread, not secret.  The state is the caller's own, seeded once with random bytes. */
uint64_t sz_trace_random(uint64_t *state);

#endif
