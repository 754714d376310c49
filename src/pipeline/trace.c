/*
 * Trace context.  traceparent and tracestate stay in the client's headers when exactly one well-formed traceparent
 * came; otherwise both are dropped (plan.c strips neither, so this file does) and a new trace starts, not sampled.  A
 * recorded request sends its own call's span as the parent.
 */
#include "pipeline/trace.h"

/* Who may say which trace this is: everybody, unless the configuration says otherwise. */
static bool parent_of(const struct sz_txn *txn, struct sz_trace_parent *parent, struct sz_slice *text)
{
    const struct sz_conf *conf = txn->snapshot->conf;
    unsigned count;
    *text = sz_headers_get(&txn->req.headers, SZ_S("traceparent"), &count);
    if (count != 1 || !sz_traceparent_parse(*text, parent))
        return false;
    return !conf->tracing.trusted_alone || sz_cidrs_contain(&conf->trusted_proxies, txn->req.peer);
}

static void random_bytes(struct sz_worker *worker, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = sz_trace_random(&worker->trace_ids) | 1; /* all zeros is no id */
        memcpy(out + i, &word, 8);
    }
}

static void begin_context(struct sz_worker *worker, struct sz_trace_parent *out)
{
    random_bytes(worker, out->trace_id, sizeof(out->trace_id));
    random_bytes(worker, out->span_id, sizeof(out->span_id));
    out->flags = 0;
}

static void drop(struct sz_headers *headers, struct sz_slice name)
{
    size_t kept = 0;
    for (size_t i = 0; i < headers->n; i++) {
        if (!sz_eq(headers->v[i].name, name))
            headers->v[kept++] = headers->v[i];
    }
    headers->n = kept;
}

static bool has_valid_state(const struct sz_headers *headers)
{
    struct sz_tracestate state = {.n = 0};
    for (size_t i = 0; i < headers->n; i++) {
        if (sz_eq(headers->v[i].name, SZ_S("tracestate")) && !sz_tracestate_add(&state, headers->v[i].value))
            return false;
    }
    return true;
}

void sz_trace_forward(struct sz_txn *txn, struct sz_headers *out)
{
    struct sz_trace_parent parent;
    struct sz_slice given;
    bool known = parent_of(txn, &parent, &given);
    if (!known || !has_valid_state(out))
        drop(out, SZ_S("tracestate"));
    if (known && txn->trace == NULL)
        return;
    drop(out, SZ_S("traceparent"));
    if (txn->trace != NULL) {
        parent = txn->trace->parent;
        parent.flags = SZ_TRACE_SAMPLED;
        sz_trace_span_id(txn->trace, SZ_TRACE_UPSTREAM, parent.span_id);
    } else {
        begin_context(txn->worker, &parent);
    }
    char *text = sz_pool_alloc(txn->pool, SZ_TRACEPARENT);
    sz_traceparent_write(&parent, text);
    txn->trace_id = sz_slice(text + 3, 2 * SZ_TRACE_ID);
    sz_headers_add(out, txn->pool, SZ_S("traceparent"), sz_slice(text, SZ_TRACEPARENT));
}

struct sz_slice sz_trace_id(const struct sz_txn *txn)
{
    struct sz_trace_parent parent;
    struct sz_slice given;
    if (txn->trace_id.p != NULL)
        return txn->trace_id;
    return parent_of(txn, &parent, &given) ? sz_sub(given, 3, 2 * SZ_TRACE_ID) : SZ_NONE;
}

/* ---- recording ------------------------------------------------------------------------------------------------------
 */

static void copy_text(char *out, size_t size, struct sz_slice text)
{
    size_t n = text.n < size ? text.n : size - 1;
    if (n > 0)
        memcpy(out, text.p, n);
    out[n] = '\0';
}

/* The methods that the semantic conventions know; others are data of the client. */
static const char *method_name(struct sz_slice method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"};
    for (size_t i = 0; i < SZ_COUNT(known); i++) {
        if (sz_eq(method, sz_cstr(known[i])))
            return known[i];
    }
    return "HTTP";
}

void sz_trace_begin(struct sz_txn *txn)
{
    const struct sz_conf_tracing *conf = &txn->snapshot->conf->tracing;
    struct sz_trace_parent parent;
    struct sz_slice given;
    bool known = parent_of(txn, &parent, &given);
    if (!known)
        begin_context(txn->worker, &parent);
    bool sampled = known && conf->parent_based ? (parent.flags & SZ_TRACE_SAMPLED) != 0
                                               : sz_trace_in_share(parent.trace_id, conf->sample);
    if (!sampled)
        return;
    struct sz_trace *trace = sz_tracer_record(txn->worker->tracer);
    trace->parent = parent;
    trace->has_parent = known;
    trace->ids = sz_trace_random(&txn->worker->trace_ids);
    trace->mono = sz_loop_tick(txn->worker->loop);
    trace->wall = sz_loop_wall(txn->worker->loop);
    trace->spans[SZ_TRACE_ROOT] =
        (struct sz_trace_span){.name = "request", .kind = SZ_TRACE_SERVER, .start = txn->started};
    trace->n = SZ_TRACE_FIRST;
    txn->trace = trace;
    char *text = sz_pool_alloc(txn->pool, 2 * SZ_TRACE_ID);
    sz_hex_encode(parent.trace_id, SZ_TRACE_ID, text);
    txn->trace_id = sz_slice(text, 2 * SZ_TRACE_ID);
}

/* Its index; 0 when there is no room. */
static uint8_t open_span(struct sz_trace *trace, const char *name, uint8_t kind, uint8_t parent, struct sz_mono now)
{
    if (trace->n == SZ_TRACE_SPANS) {
        trace->left_out++;
        return 0;
    }
    trace->spans[trace->n] = (struct sz_trace_span){.name = name, .kind = kind, .parent = parent, .start = now};
    return (uint8_t)trace->n++;
}

static const char *stage_name(enum sz_stage stage)
{
    static const char *const names[SZ_STAGE_COUNT] = {
#define SZ_STAGE(name, help) #name,
#include "subzero/tbl/stages.h"
    };
    return names[stage];
}

void sz_trace_enter(struct sz_txn *txn)
{
    struct sz_trace *trace = txn->trace;
    struct sz_mono now = sz_loop_tick(txn->worker->loop);
    if (trace->waiting != 0)
        trace->spans[trace->waiting].end = now;
    trace->waiting = 0;
    if (trace->stage == 0)
        trace->stage = open_span(trace, stage_name(txn->stage), SZ_TRACE_INTERNAL, SZ_TRACE_ROOT, now);
}

/* What a parked stage waits for.  The answer may serve others as well, or have been asked for by one of them. */
static const char *wait_name(const struct sz_txn *txn, enum sz_stage stage, uint8_t *kind)
{
    *kind = SZ_TRACE_CLIENT;
    switch (stage) {
    case SZ_STAGE_limit:
        return "redis limit";
    case SZ_STAGE_authorize:
        return "relation check";
    case SZ_STAGE_identify:
        break;
    default:
        *kind = SZ_TRACE_INTERNAL;
        return "journal";
    }
    switch (txn->identify_at) {
    case SZ_IDENTIFY_L2:
        return "redis identity";
    case SZ_IDENTIFY_KEYS:
        return "provider keys";
    case SZ_IDENTIFY_ASKED:
        return "provider token";
    default:
        *kind = SZ_TRACE_INTERNAL;
        return "verification queue";
    }
}

/* A stage that had nothing to do leaves no span. */
static bool is_idle(const struct sz_txn *txn, enum sz_stage stage)
{
    switch (stage) {
    case SZ_STAGE_identify:
        return txn->match.route != NULL && txn->match.route->is_public;
    case SZ_STAGE_limit:
        return txn->limits == NULL;
    case SZ_STAGE_commit:
        return txn->worker->gate->audit == NULL;
    case SZ_STAGE_done:
        return true;
    default:
        return false;
    }
}

void sz_trace_leave(struct sz_txn *txn, enum sz_stage stage, enum sz_step step)
{
    struct sz_trace *trace = txn->trace;
    struct sz_mono now = sz_loop_tick(txn->worker->loop);
    uint8_t kind;
    if (step == SZ_STEP_PARKED) {
        const char *name = wait_name(txn, stage, &kind);
        trace->waiting = open_span(trace, name, kind, trace->stage, now);
        return;
    }
    if (trace->stage != 0 && trace->stage + 1u == trace->n && is_idle(txn, stage)) {
        trace->n--;
    } else if (trace->stage != 0) {
        trace->spans[trace->stage].end = now;
        trace->spans[trace->stage].layer = stage == SZ_STAGE_identify ? txn->token_layer : 0;
    }
    trace->stage = 0;
    if (step == SZ_STEP_FINISHED && txn->proxy)
        trace->spans[SZ_TRACE_UPSTREAM] =
            (struct sz_trace_span){.name = "upstream", .kind = SZ_TRACE_CLIENT, .parent = SZ_TRACE_ROOT, .start = now};
}

static void describe(const struct sz_txn *txn, struct sz_trace *trace)
{
    static const char *const protocols[] = {[SZ_HTTP_1_0] = "1.0", [SZ_HTTP_1_1] = "1.1", [SZ_HTTP_2] = "2"};
    const struct sz_conf_route *route = txn->match.route;
    trace->made = txn->decision.made;
    trace->allow = txn->decision.allow;
    trace->reason = txn->decision.reason;
    trace->https = txn->req.https;
    trace->method = method_name(txn->req.method);
    trace->protocol = protocols[txn->req.protocol];
    if (route != NULL) {
        copy_text(trace->route, sizeof(trace->route), route->id);
        copy_text(trace->pattern, sizeof(trace->pattern), route->match.path);
    }
    if (txn->req.listener != NULL)
        copy_text(trace->listener, sizeof(trace->listener), txn->req.listener->address);
    if (txn->forward.upstream != NULL)
        copy_text(trace->upstream, sizeof(trace->upstream), txn->forward.upstream->name);
    if (txn->snapshot->conf->tracing.paths)
        copy_text(trace->path, sizeof(trace->path), txn->target.path);
}

void sz_trace_finish(struct sz_txn *txn, unsigned status)
{
    struct sz_trace *trace = txn->trace;
    struct sz_mono now = sz_loop_tick(txn->worker->loop);
    txn->trace = NULL;
    for (unsigned i = 0; i < trace->n; i++) {
        if (trace->spans[i].end.us == 0)
            trace->spans[i].end = now;
    }
    trace->status = (uint16_t)(txn->decision.made ? status : 0);
    describe(txn, trace);
    sz_tracer_submit(txn->worker->tracer, trace);
}
