/*
 * The fake provider over HTTP/2: one thread a connection, streams answered when they are due.  nghttp2 does the
 * protocol; a stream's request is written out as the head of an HTTP/1 request, so that both are answered by the
 * same code.
 */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/provider_state.h"

struct stream {
    struct stream *next;
    int32_t id;
    struct sz_buf method, target, head, body;
    struct provider_answer answer;
    struct sz_mono due;
    bool answered, cut;
    size_t sent;
};

struct session {
    struct provider *provider;
    struct wire *wire;
    nghttp2_session *h2;
    struct stream *streams;
};

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static void free_stream(struct session *s, struct stream *stream)
{
    struct stream **at = &s->streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    sz_buf_fini(&stream->method);
    sz_buf_fini(&stream->target);
    sz_buf_fini(&stream->head);
    sz_buf_fini(&stream->body);
    provider_answer_fini(&stream->answer);
    free(stream);
}

static int on_begin(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
    struct session *s = arg;
    struct stream *stream = sz_xcalloc(1, sizeof(*stream));
    stream->id = frame->hd.stream_id;
    stream->due = SZ_NEVER;
    stream->next = s->streams;
    s->streams = stream;
    sz_buf_printf(&stream->head, "REQUEST\r\n");
    return nghttp2_session_set_stream_user_data(h2, stream->id, stream);
}

static int on_field(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                    const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
    struct sz_slice field = sz_slice(name, name_n), text = sz_slice(value, value_n);
    (void)flags, (void)arg;
    if (stream == NULL)
        return 0;
    if (sz_eq(field, SZ_S(":method")))
        sz_buf_adds(&stream->method, text);
    else if (sz_eq(field, SZ_S(":path")))
        sz_buf_adds(&stream->target, text);
    else if (field.p[0] != ':')
        sz_buf_printf(&stream->head, "%.*s: %.*s\r\n", SZ_FMT(field), SZ_FMT(text));
    return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *arg)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(h2, id);
    (void)flags, (void)arg;
    if (stream != NULL)
        sz_buf_add(&stream->body, bytes, n);
    return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
    struct session *s = arg;
    struct stream *stream = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
    if (stream == NULL || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 || stream->due.us != SZ_NEVER.us)
        return 0;
    sz_buf_add(&stream->head, "\r\n", 3); /* and a NUL */
    struct upstream_request request = {.head = sz_slice(stream->head.p, stream->head.n - 1),
                                       .method = sz_buf_slice(&stream->method),
                                       .target = sz_buf_slice(&stream->target),
                                       .body = sz_buf_slice(&stream->body)};
    provider_answer(s->provider, &request, &stream->answer);
    stream->due = in_time(SZ_MS(stream->answer.script.latency_ms));
    return 0;
}

static int on_closed(nghttp2_session *h2, int32_t id, uint32_t code, void *arg)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(h2, id);
    (void)code;
    if (stream != NULL)
        free_stream(arg, stream);
    return 0;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static ssize_t read_body(nghttp2_session *h2, int32_t id, uint8_t *out, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *arg)
{
    struct stream *stream = source->ptr;
    size_t end = stream->cut ? stream->answer.body.n / 2 : stream->answer.body.n, n = end - stream->sent;
    (void)h2, (void)id, (void)arg;
    if (stream->answer.script.fault == PROVIDER_HUGE || stream->answer.script.fault == PROVIDER_ENDLESS) {
        memset(out, ' ', room);
        return (ssize_t)room;
    }
    if (stream->cut && n == 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM, INTERNAL_ERROR */
    if (n > room)
        n = room;
    memcpy(out, stream->answer.body.p + stream->sent, n);
    stream->sent += n;
    if (stream->sent == end && !stream->cut)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static size_t list_fields(struct provider_answer *answer, char status[4], nghttp2_nv *nv, size_t most)
{
    struct sz_slice rest = sz_buf_slice(&answer->fields), line;
    size_t n = 0;
    snprintf(status, 4, "%03d", answer->status);
    nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t) ":status", (uint8_t *)status, 7, 3, 0};
    while (n < most && sz_split(&rest, '\n', &line)) {
        ptrdiff_t colon = sz_find_byte(line, ':');
        if (colon <= 0)
            continue;
        struct sz_slice value = sz_trim(sz_sub(line, (size_t)colon + 1, line.n - (size_t)colon - 2));
        for (ptrdiff_t i = 0; i < colon; i++)
            if (line.p[i] >= 'A' && line.p[i] <= 'Z')
                ((char *)(uintptr_t)line.p)[i] |= 0x20;
        nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t)line.p, (uint8_t *)(uintptr_t)value.p, (size_t)colon, value.n, 0};
    }
    return n;
}

/* False: the connection ends here. */
static bool say(struct session *s, struct stream *stream)
{
    nghttp2_data_provider body = {.source.ptr = stream, .read_callback = read_body};
    nghttp2_nv nv[16];
    char status[4];
    enum provider_fault fault = stream->answer.script.fault;
    stream->answered = true;
    if (fault == PROVIDER_HANG)
        return true;
    if (fault == PROVIDER_CLOSE || fault == PROVIDER_GARBAGE)
        return false;
    if (fault == PROVIDER_RESET)
        return nghttp2_submit_rst_stream(s->h2, 0, stream->id, NGHTTP2_INTERNAL_ERROR) == 0;
    stream->cut = fault == PROVIDER_TRUNCATE;
    size_t n = list_fields(&stream->answer, status, nv, SZ_COUNT(nv));
    return nghttp2_submit_response(s->h2, stream->id, nv, n, &body) == 0;
}

/* Says what is due; *next is when something will be. */
static bool say_what_is_due(struct session *s, struct sz_mono *next)
{
    struct sz_mono now = sz_mono_read();
    *next = in_time(SZ_SEC(3600));
    for (struct stream *stream = s->streams; stream != NULL; stream = stream->next) {
        if (stream->answered)
            continue;
        if (stream->due.us > now.us)
            *next = sz_earlier(*next, stream->due);
        else if (!say(s, stream))
            return false;
    }
    return true;
}

/* ---- the connection ---------------------------------------------------------------------------------------------- */

static bool send_pending(struct session *s)
{
    const uint8_t *bytes;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(s->h2, &bytes)) > 0)
        if (!wire_send_by(s->wire, sz_slice(bytes, (size_t)n), SZ_NEVER))
            return false;
    return n == 0;
}

static bool receive(struct session *s, struct sz_slice bytes)
{
    return nghttp2_session_mem_recv(s->h2, (const uint8_t *)bytes.p, bytes.n) == (ssize_t)bytes.n;
}

static void run(struct session *s)
{
    char chunk[65536];
    for (;;) {
        struct sz_mono next;
        if (!say_what_is_due(s, &next) || !send_pending(s))
            return;
        if (!nghttp2_session_want_read(s->h2) && !nghttp2_session_want_write(s->h2))
            return;
        ssize_t n = wire_read(s->wire, chunk, sizeof(chunk), next);
        if (n == 0 || (n > 0 && !receive(s, sz_slice(chunk, (size_t)n))))
            return;
    }
}

bool provider_speak_h2(struct wire *w, const struct upstream_request *preface, struct provider *p)
{
    struct session s = {.provider = p, .wire = w};
    nghttp2_session_callbacks *callbacks;
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}};
    SZ_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_closed);
    SZ_ASSERT(nghttp2_session_server_new(&s.h2, callbacks, &s) == 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(s.h2, 0, settings, SZ_COUNT(settings));
    if (receive(&s, preface->head) && receive(&s, sz_buf_slice(preface->unread)))
        run(&s);
    nghttp2_session_del(s.h2);
    while (s.streams != NULL)
        free_stream(&s, s.streams);
    return false;
}
