/*
 * Each frame and each header block of a client passes here first.
 *
 *   unknown frame types   h2o writes a line to stderr for each: a client would fill the log, and with a pipe that
 * nobody empties stop the loop window of a stream    h2o asserts that a stream whose last bytes wait for the socket is
 * not opened further: one that has ended        WINDOW_UPDATE at the right moment ends the process trailers h2o adds
 * them to the header; they are dropped, as over HTTP/1, or a proxy in front that cleans headers alone would let
 * X-Forwarded-For and the like through endless header lists  a byte names an entry of the table, so 400 kB are 400,000
 * fields; such a client is told to calm down and loses its connection, and with it the memory
 */
#include "edge/h2_guard.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "edge/bodies.h"
#include "edge/h2_streams.h"
#include "edge/overrides.h"
#include "pipeline/request.h"

#define OVERRIDE __attribute__((visibility("default"), used))

#define FIELDS_MAX 1000 /* ten times what any configuration allows: below it the client gets its 431 */

static __thread h2o_http2_conn_t *reading;

void sz_h2_guard_reading(struct st_h2o_http2_conn_t *conn)
{
    reading = conn;
}

static void *original(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    SZ_ASSERT(found != NULL);
    return found;
}

/* Nothing more is sent on these, so what their window says is free to choose. */
static void open_windows_of_ended(h2o_http2_conn_t *conn)
{
    h2o_linklist_t *all = &conn->_write.streams_to_proceed;
    for (h2o_linklist_t *at = all->next; at != all; at = at->next) {
        h2o_http2_stream_t *stream = H2O_STRUCT_FROM_MEMBER(h2o_http2_stream_t, _refs.link, at);
        if (stream->state == H2O_HTTP2_STREAM_STATE_END_STREAM && stream->output_window._avail <= 0)
            stream->output_window._avail = 1;
    }
}

typedef ssize_t decode_frame_fn(h2o_http2_frame_t *frame, const uint8_t *src, size_t len,
                                const h2o_http2_settings_t *host_settings, const char **err_desc);

OVERRIDE ssize_t h2o_http2_decode_frame(h2o_http2_frame_t *frame, const uint8_t *src, size_t len,
                                        const h2o_http2_settings_t *host_settings, const char **err_desc)
{
    static decode_frame_fn *_Atomic found;
    decode_frame_fn *decode = atomic_load_explicit(&found, memory_order_relaxed);
    if (decode == NULL) {
        *(void **)&decode = original("h2o_http2_decode_frame");
        atomic_store_explicit(&found, decode, memory_order_relaxed);
    }
    sz_overrides_seen.frame++;
    if (reading != NULL)
        open_windows_of_ended(reading);
    ssize_t n = decode(frame, src, len, host_settings, err_desc);
    /* RFC 9113 4.1: to be ignored.  An acknowledgement is what h2o does nothing for. */
    if (n >= 0 && frame->type > H2O_HTTP2_FRAME_TYPE_CONTINUATION)
        *frame = (h2o_http2_frame_t){.type = H2O_HTTP2_FRAME_TYPE_SETTINGS, .flags = H2O_HTTP2_FRAME_FLAG_ACK};
    return n;
}

/* What the fields from `first` on take, an entry of h2o's list and one of ours included. */
static size_t size_of_fields(const h2o_req_t *req, size_t first)
{
    size_t sum = (req->headers.size - first) * (sizeof(*req->headers.entries) + sizeof(struct sz_header));
    for (size_t i = first; i < req->headers.size; i++)
        sum += req->headers.entries[i].name->len + req->headers.entries[i].value.len;
    return sum;
}

typedef int parse_headers_fn(h2o_req_t *req, h2o_hpack_header_table_t *table, const uint8_t *src, size_t len,
                             int *pseudo, size_t *content_length, h2o_cache_digests_t **digests, const char **err_desc);

OVERRIDE int h2o_hpack_parse_headers(h2o_req_t *req, h2o_hpack_header_table_t *table, const uint8_t *src, size_t len,
                                     int *pseudo, size_t *content_length, h2o_cache_digests_t **digests,
                                     const char **err_desc)
{
    static parse_headers_fn *_Atomic found;
    parse_headers_fn *parse = atomic_load_explicit(&found, memory_order_relaxed);
    size_t before = req->headers.size;
    if (parse == NULL) {
        *(void **)&parse = original("h2o_hpack_parse_headers");
        atomic_store_explicit(&found, parse, memory_order_relaxed);
    }
    sz_overrides_seen.header++;
    (void)digests; /* a guess at the client's cache, for pushes that we do not make */
    int rc = parse(req, table, src, len, pseudo, content_length, NULL, err_desc);
    if (req->headers.size - before > FIELDS_MAX) {
        *err_desc = "too many header fields";
        return H2O_HTTP2_ERROR_ENHANCE_YOUR_CALM;
    }
    size_t size = size_of_fields(req, before) + (pseudo != NULL ? req->input.path.len + req->input.authority.len : 0);
    if (pseudo == NULL) /* trailers */
        req->headers.size = before;
    if (!sz_bodies_head(req, size)) {
        *err_desc = sz_bodies_at_limit;
        return H2O_HTTP2_ERROR_ENHANCE_YOUR_CALM;
    }
    return rc;
}
