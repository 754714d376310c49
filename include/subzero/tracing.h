/*
 * Traces: what a sampled request leaves behind, and their way to a collector (OpenTelemetry, OTLP over HTTP).
 *
 *   worker: sz_trace fills ─▶ sz_tracer_submit ─▶ bounded queue ─▶ service loop: batches, protobuf ─▶ POST /v1/traces
 *                                     │ full: dropped and counted          │ 429, 5xx, nobody there: later, the same
 *                                                                          │ batch; after a minute, or a plain no: lost
 *
 * A trace holds names that the configuration gives and what the gateway decided: no token, claim, subject, query or
 * header of a request; its path only where the configuration says so.
 */
#ifndef SUBZERO_TRACING_H
#define SUBZERO_TRACING_H

#include "subzero/conf.h"
#include "subzero/dependency.h"
#include "subzero/loop.h"
#include "subzero/reason.h"
#include "subzero/trace_context.h"

enum { SZ_TRACE_SPANS = 24 };                              /* of one request; what comes beyond is counted in it */
enum { SZ_TRACE_ROOT, SZ_TRACE_UPSTREAM, SZ_TRACE_FIRST }; /* the first two have places of their own */

enum sz_trace_kind { SZ_TRACE_INTERNAL = 1, SZ_TRACE_SERVER = 2, SZ_TRACE_CLIENT = 3 }; /* as OTLP counts */

struct sz_trace_span {
    const char *name; /* a literal; NULL: none (the place of a call to an upstream that was not made) */
    uint8_t kind, parent;
    uint8_t layer; /* of identify: 1 L1, 2 L2, 3 verified or asked; 0: nothing to say */
    struct sz_mono start, end;
};

/* Text fields are cut to their room. */
struct sz_trace {
    struct sz_trace *next; /* the queue's */
    struct sz_trace_parent parent;
    bool has_parent;
    uint64_t ids; /* every span's id is made from it: sz_trace_span_id */
    /* A moment on both clocks. */
    struct sz_mono mono;
    struct sz_wall wall;
    struct sz_trace_span spans[SZ_TRACE_SPANS];
    unsigned n, left_out;
    uint8_t stage, waiting; /* spans that are open: a stage, what it waits for; 0: none */
    /* What the request was and what became of it. */
    bool made, allow; /* made: decided; otherwise its client left before */
    enum sz_reason reason;
    uint16_t status; /* 0: none was sent */
    bool https;
    const char *method, *protocol; /* literals */
    char route[128], pattern[160], listener[64], upstream[64], path[256];
};
void sz_trace_span_id(const struct sz_trace *trace, unsigned span, uint8_t id[SZ_TRACE_SPAN_ID]);

/* How the exporter reaches the network, which src/obs knows nothing of.  All on the service loop. */
struct sz_trace_wire {
    void *arg;
    int (*start)(void *arg, const struct sz_http_request *request, struct sz_dependency_call *call); /* as its own */
    void (*cancel)(struct sz_dependency_call *call);
    enum sz_breaker_outcome (*outcome)(const struct sz_http_answer *answer);
};

struct sz_tracer;

/* conf outlives it.  Before there are workers. */
struct sz_tracer *sz_tracer_new(const struct sz_conf_tracing *conf);
/* From now on what was submitted is sent: from this loop, and calls into the tracer but two belong to its thread. */
void sz_tracer_start(struct sz_tracer *tracer, struct sz_loop *loop, const struct sz_trace_wire *wire);

/* Any thread: a record to fill, zeroed.  Never NULL; given back by sz_tracer_submit. */
struct sz_trace *sz_tracer_record(struct sz_tracer *tracer);
/* Any thread, never blocks: takes the record over; a full queue drops and counts it. */
void sz_tracer_submit(struct sz_tracer *tracer, struct sz_trace *trace);

/*
 * The process is about to end: what is queued is sent, without waiting for the next batch and without trying twice;
 * on_drained runs once, at the latest after `most`, never inside this call.
 */
void sz_tracer_drain(struct sz_tracer *tracer, struct sz_span most, void (*on_drained)(void *arg), void *arg);
/* A call under way is given up; what is queued is lost.  No thread submits any more. */
void sz_tracer_free(struct sz_tracer **tracer);

/* Appends an ExportTraceServiceRequest of the traces from `first` on, in the order of the list. */
void sz_otlp_encode(const struct sz_conf_tracing *conf, const struct sz_trace *first, struct sz_buf *out);
/* rejected_spans of an ExportTraceServiceResponse; 0 when it says nothing of the kind, or nothing readable. */
uint64_t sz_otlp_rejected(struct sz_slice response);

#endif
