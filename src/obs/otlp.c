/*
 * OTLP in protobuf, written by hand: opentelemetry/proto/collector/trace/v1/trace_service.proto and what it includes.
 * A message inside another is written into a buffer of its own first, since its length comes before it.
 *
 *   ExportTraceServiceRequest ▸ resource_spans[1] ▸ resource, scope_spans[1] ▸ scope, spans[]
 *
 * Attributes have the names of the HTTP semantic conventions; ours begin with "subzero.".
 */
#include <stdio.h>

#include "subzero/tracing.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* wire types */

static void add_varint(struct sz_buf *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
        v >>= 7;
    } while (v != 0);
    sz_buf_add(b, bytes, n);
}

static void add_tag(struct sz_buf *b, unsigned field, unsigned wire)
{
    add_varint(b, (uint64_t)field << 3 | wire);
}

static void add_number(struct sz_buf *b, unsigned field, uint64_t v)
{
    add_tag(b, field, VARINT);
    add_varint(b, v);
}

static void add_bytes(struct sz_buf *b, unsigned field, struct sz_slice s)
{
    add_tag(b, field, BYTES);
    add_varint(b, s.n);
    sz_buf_adds(b, s);
}

static void add_fixed64(struct sz_buf *b, unsigned field, uint64_t v)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    add_tag(b, field, FIXED64);
    sz_buf_add(b, bytes, 8);
}

static void add_fixed32(struct sz_buf *b, unsigned field, uint32_t v)
{
    uint8_t bytes[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    add_tag(b, field, FIXED32);
    sz_buf_add(b, bytes, 4);
}

/* The inner message is done with: into the outer one it goes, and is empty again. */
static void add_message(struct sz_buf *b, unsigned field, struct sz_buf *inner)
{
    add_bytes(b, field, sz_buf_slice(inner));
    inner->n = 0;
}

/* ---- attributes: KeyValue{key, AnyValue{string | int}} ----------------------------------------------------- */

enum { ANY_STRING = 1, ANY_INT = 3 };

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v > 127; v >>= 7)
        n++;
    return n;
}

/* Everything of a pair but its value's bytes, which follow: there are many of these, so no buffer of their own. */
static void begin_attribute(struct sz_buf *b, unsigned field, struct sz_slice key, size_t value_n)
{
    add_tag(b, field, BYTES);
    add_varint(b, 1 + varint_size(key.n) + key.n + 1 + varint_size(value_n) + value_n);
    add_bytes(b, 1, key);
    add_tag(b, 2, BYTES);
    add_varint(b, value_n);
}

static void add_text(struct sz_buf *b, unsigned field, struct sz_slice key, struct sz_slice text)
{
    if (text.n == 0)
        return;
    begin_attribute(b, field, key, 1 + varint_size(text.n) + text.n);
    add_bytes(b, ANY_STRING, text);
}

static void add_int(struct sz_buf *b, unsigned field, struct sz_slice key, uint64_t n)
{
    begin_attribute(b, field, key, 1 + varint_size(n));
    add_number(b, ANY_INT, n);
}

/* ---- spans --------------------------------------------------------------------------------------------------------
 */

enum { NAME = 5, KIND = 6, START = 7, END = 8, ATTRIBUTE = 9, STATUS = 15, FLAGS = 16 };
enum { STATUS_ERROR = 2 };

void sz_trace_span_id(const struct sz_trace *trace, unsigned span, uint8_t id[SZ_TRACE_SPAN_ID])
{
    uint64_t state = trace->ids + span, n = sz_trace_random(&state);
    for (unsigned i = 0; i < SZ_TRACE_SPAN_ID; i++)
        id[i] = (uint8_t)(n >> 8 * i);
    id[0] |= n == 0; /* all zeros is no id */
}

static uint64_t nanoseconds(const struct sz_trace *trace, struct sz_mono at)
{
    return (uint64_t)(trace->wall.us + sz_between(trace->mono, at).us) * 1000;
}

static void add_name(const struct sz_trace *trace, unsigned at, struct sz_buf *span)
{
    char name[256];
    int n;
    if (at != SZ_TRACE_ROOT)
        n = snprintf(name, sizeof(name), "%s", trace->spans[at].name);
    else if (trace->pattern[0] != '\0')
        n = snprintf(name, sizeof(name), "%s %s", trace->method, trace->pattern);
    else
        n = snprintf(name, sizeof(name), "%s", trace->method);
    add_bytes(span, NAME, sz_slice(name, n < (int)sizeof(name) ? (size_t)n : sizeof(name) - 1));
}

static struct sz_slice layer_name(unsigned layer)
{
    static const char *const names[] = {"", "l1", "l2", "l3"};
    return sz_cstr(layer < SZ_COUNT(names) ? names[layer] : "");
}

static void add_status(const struct sz_trace *trace, struct sz_buf *span)
{
    struct sz_buf status = {0};
    if (trace->status >= 500) {
        add_number(&status, 3, STATUS_ERROR);
        add_message(span, STATUS, &status);
    }
    sz_buf_fini(&status);
}

/* Why it failed: our reason, or the status of an upstream that answered with one itself. */
static void add_error(const struct sz_trace *trace, struct sz_buf *span)
{
    char status[8];
    struct sz_slice type = sz_cstr("client_left");
    if (trace->made && trace->status < 500)
        return;
    if (trace->made && sz_reason_row(trace->reason)->status >= 500)
        type = sz_cstr(sz_reason_row(trace->reason)->name);
    else if (trace->made)
        type = sz_slice(status, (size_t)snprintf(status, sizeof(status), "%u", trace->status));
    add_text(span, ATTRIBUTE, SZ_S("error.type"), type);
}

static void add_root(const struct sz_trace *trace, struct sz_buf *span)
{
    add_text(span, ATTRIBUTE, SZ_S("http.request.method"),
             strcmp(trace->method, "HTTP") == 0 ? SZ_S("_OTHER") : sz_cstr(trace->method));
    add_text(span, ATTRIBUTE, SZ_S("http.route"), sz_cstr(trace->pattern));
    add_text(span, ATTRIBUTE, SZ_S("url.scheme"), trace->https ? SZ_S("https") : SZ_S("http"));
    add_text(span, ATTRIBUTE, SZ_S("url.path"), sz_cstr(trace->path));
    add_text(span, ATTRIBUTE, SZ_S("network.protocol.version"), sz_cstr(trace->protocol));
    if (trace->status != 0)
        add_int(span, ATTRIBUTE, SZ_S("http.response.status_code"), trace->status);
    add_error(trace, span);
    add_text(span, ATTRIBUTE, SZ_S("subzero.listener"), sz_cstr(trace->listener));
    add_text(span, ATTRIBUTE, SZ_S("subzero.route"), sz_cstr(trace->route));
    if (trace->made) {
        add_text(span, ATTRIBUTE, SZ_S("subzero.decision"), trace->allow ? SZ_S("allow") : SZ_S("deny"));
        add_text(span, ATTRIBUTE, SZ_S("subzero.reason"), sz_cstr(sz_reason_row(trace->reason)->name));
    }
    if (trace->left_out > 0)
        add_int(span, ATTRIBUTE, SZ_S("subzero.spans_left_out"), trace->left_out);
    add_status(trace, span);
}

static void add_upstream(const struct sz_trace *trace, struct sz_buf *span)
{
    add_text(span, ATTRIBUTE, SZ_S("http.request.method"),
             strcmp(trace->method, "HTTP") == 0 ? SZ_S("_OTHER") : sz_cstr(trace->method));
    add_text(span, ATTRIBUTE, SZ_S("subzero.upstream"), sz_cstr(trace->upstream));
    if (trace->status != 0)
        add_int(span, ATTRIBUTE, SZ_S("http.response.status_code"), trace->status);
    add_error(trace, span);
    add_status(trace, span);
}

static void add_ids(const struct sz_trace *trace, unsigned at, struct sz_buf *span)
{
    uint8_t id[SZ_TRACE_SPAN_ID];
    add_bytes(span, 1, sz_slice(trace->parent.trace_id, SZ_TRACE_ID));
    sz_trace_span_id(trace, at, id);
    add_bytes(span, 2, sz_slice(id, sizeof(id)));
    if (at != SZ_TRACE_ROOT) {
        sz_trace_span_id(trace, trace->spans[at].parent, id);
        add_bytes(span, 4, sz_slice(id, sizeof(id)));
    } else if (trace->has_parent) {
        add_bytes(span, 4, sz_slice(trace->parent.span_id, SZ_TRACE_SPAN_ID));
    }
}

static void add_span(const struct sz_trace *trace, unsigned at, struct sz_buf *span)
{
    const struct sz_trace_span *s = &trace->spans[at];
    bool remote = at == SZ_TRACE_ROOT && trace->has_parent;
    add_ids(trace, at, span);
    add_name(trace, at, span);
    add_number(span, KIND, s->kind);
    add_fixed64(span, START, nanoseconds(trace, s->start));
    add_fixed64(span, END, nanoseconds(trace, s->end));
    add_text(span, ATTRIBUTE, SZ_S("subzero.cache.layer"), layer_name(s->layer));
    if (at == SZ_TRACE_ROOT)
        add_root(trace, span);
    else if (at == SZ_TRACE_UPSTREAM)
        add_upstream(trace, span);
    add_fixed32(span, FLAGS, SZ_TRACE_SAMPLED | 0x100 | (remote ? 0x200 : 0)); /* it is known whether it is remote */
}

static void add_trace(const struct sz_trace *trace, struct sz_buf *scope_spans)
{
    struct sz_buf span = {0};
    for (unsigned at = 0; at < trace->n; at++) {
        if (trace->spans[at].name == NULL)
            continue;
        add_span(trace, at, &span);
        add_message(scope_spans, 2, &span);
    }
    sz_buf_fini(&span);
}

static void add_resource(const struct sz_conf_tracing *conf, struct sz_buf *resource)
{
    add_text(resource, 1, SZ_S("service.name"), conf->service_name);
    add_text(resource, 1, SZ_S("service.version"), SZ_S(SZ_VERSION));
    for (size_t i = 0; i < conf->resource_n; i++)
        add_text(resource, 1, conf->resource[i].name, conf->resource[i].value);
}

void sz_otlp_encode(const struct sz_conf_tracing *conf, const struct sz_trace *first, struct sz_buf *out)
{
    struct sz_buf resource_spans = {0}, scope_spans = {0}, inner = {0};
    add_resource(conf, &inner);
    add_message(&resource_spans, 1, &inner);
    add_bytes(&inner, 1, SZ_S("subzero"));
    add_bytes(&inner, 2, SZ_S(SZ_VERSION));
    add_message(&scope_spans, 1, &inner);
    for (const struct sz_trace *trace = first; trace != NULL; trace = trace->next)
        add_trace(trace, &scope_spans);
    add_message(&resource_spans, 2, &scope_spans);
    add_message(out, 1, &resource_spans);
    sz_buf_fini(&resource_spans);
    sz_buf_fini(&scope_spans);
    sz_buf_fini(&inner);
}

/* ---- the answer: ExportTraceServiceResponse{partial_success{rejected_spans}} ----------------------------------------
 */

static bool take_varint(struct sz_slice *s, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; shift < 64 && s->n > 0; shift += 7) {
        uint8_t byte = (uint8_t)s->p[0];
        *s = sz_from(*s, 1);
        *v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* The next field: its number, and its value as a number or as bytes.  False: the end, or nonsense. */
static bool take_field(struct sz_slice *s, uint64_t *field, uint64_t *number, struct sz_slice *bytes)
{
    uint64_t tag;
    *bytes = SZ_NONE;
    if (!take_varint(s, &tag))
        return false;
    *field = tag >> 3;
    switch (tag & 7) {
    case VARINT:
        return take_varint(s, number);
    case BYTES:
        if (!take_varint(s, number) || *number > s->n)
            return false;
        *bytes = sz_sub(*s, 0, (size_t)*number);
        break;
    case FIXED64:
        *number = 8;
        break;
    case FIXED32:
        *number = 4;
        break;
    default:
        return false;
    }
    if (*number > s->n)
        return false;
    *s = sz_from(*s, (size_t)*number);
    return true;
}

uint64_t sz_otlp_rejected(struct sz_slice response)
{
    struct sz_slice partial = SZ_NONE, bytes;
    uint64_t field, number, rejected = 0;
    while (take_field(&response, &field, &number, &bytes)) {
        if (field == 1 && bytes.p != NULL)
            partial = bytes;
    }
    while (partial.n > 0 && take_field(&partial, &field, &number, &bytes)) {
        if (field == 1 && bytes.p == NULL)
            rejected = number;
    }
    return rejected;
}
