/* See http2.h.  Frames are RFC 9113 section 4.1: 24 bits length, type, flags, 31 bits stream. */
#include "fake/http2.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { FRAME_HEAD = 9, FRAME_MAX = 16384, FIELDS_MAX = 4096 };

static const char ping_data[8] = "subzero?";

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void put32(char *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (char)(v >> (24 - 8 * i));
}

static uint32_t get32(const char *in)
{
    const unsigned char *p = (const unsigned char *)in;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void add_frame(struct sz_buf *out, uint8_t type, uint8_t flags, uint32_t stream, struct sz_slice payload)
{
    char head[FRAME_HEAD];

    put32(head, (uint32_t)payload.n << 8 | type);
    head[4] = (char)flags;
    put32(head + 5, stream);
    sz_buf_add(out, head, sizeof(head));
    sz_buf_adds(out, payload);
}

static bool send_buf_by(struct http2 *c, struct sz_buf *out, struct sz_mono end)
{
    bool sent = !c->closed && wire_send_by(&c->wire, sz_buf_slice(out), end);

    sz_buf_fini(out);
    return sent;
}

static bool send_buf(struct http2 *c, struct sz_buf *out)
{
    return send_buf_by(c, out, in_time(SZ_SEC(10)));
}

bool h2_frame_by(struct http2 *c, uint8_t type, uint8_t flags, uint32_t stream, struct sz_slice payload,
                 struct sz_mono end)
{
    struct sz_buf out = {0};

    add_frame(&out, type, flags, stream, payload);
    return send_buf_by(c, &out, end);
}

bool h2_frame(struct http2 *c, uint8_t type, uint8_t flags, uint32_t stream, struct sz_slice payload)
{
    return h2_frame_by(c, type, flags, stream, payload, in_time(SZ_SEC(10)));
}

void h2_encode(struct http2 *c, const struct h2_field *fields, size_t n, struct sz_buf *block)
{
    nghttp2_nv *list = sz_xcalloc(n + 1, sizeof(*list));

    SZ_ASSERT(n <= FIELDS_MAX);
    for (size_t i = 0; i < n; i++) {
        list[i] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)fields[i].name.p,
                               .namelen = fields[i].name.n,
                               .value = (uint8_t *)(uintptr_t)fields[i].value.p,
                               .valuelen = fields[i].value.n};
    }
    size_t room = nghttp2_hd_deflate_bound(c->deflater, list, n);
    uint8_t *bytes = sz_xmalloc(room + 1);
    ssize_t got = nghttp2_hd_deflate_hd(c->deflater, bytes, room, list, n);
    SZ_ASSERT(got >= 0);
    sz_buf_add(block, bytes, (size_t)got);
    free(bytes);
    free(list);
}

uint32_t h2_headers(struct http2 *c, const struct h2_field *fields, size_t n, uint8_t flags)
{
    struct sz_buf block = {0}, out = {0};
    uint32_t stream = c->next;

    c->next += 2;
    h2_encode(c, fields, n, &block);
    struct sz_slice rest = sz_buf_slice(&block);
    uint8_t type = H2_HEADERS;
    do {
        struct sz_slice part = sz_sub(rest, 0, FRAME_MAX);
        rest = sz_from(rest, part.n);
        add_frame(&out, type, (uint8_t)(flags | (rest.n == 0 ? H2_END_HEADERS : 0)), stream, part);
        type = H2_CONTINUATION;
        flags = 0;
    } while (rest.n > 0);
    sz_buf_fini(&block);
    return send_buf(c, &out) ? stream : 0;
}

bool h2_data(struct http2 *c, uint32_t stream, struct sz_slice bytes, uint8_t flags)
{
    struct sz_buf out = {0};

    do {
        struct sz_slice part = sz_sub(bytes, 0, FRAME_MAX);
        bytes = sz_from(bytes, part.n);
        add_frame(&out, H2_DATA, bytes.n == 0 ? flags : 0, stream, part);
    } while (bytes.n > 0);
    return send_buf(c, &out);
}

bool h2_reset(struct http2 *c, uint32_t stream, uint32_t code)
{
    char payload[4];

    put32(payload, code);
    return h2_frame(c, H2_RST_STREAM, 0, stream, sz_slice(payload, sizeof(payload)));
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool start(struct http2 *c)
{
    /* INITIAL_WINDOW_SIZE 2^31-1, and as much for the connection. */
    static const char settings[] = "\0\4\x7f\xff\xff\xff", window[] = "\x7f\xff\0\0";
    struct sz_buf out = {0};

    c->next = 1;
    c->responses = sz_xcalloc(H2_STREAMS_MAX, sizeof(*c->responses));
    SZ_ASSERT(nghttp2_hd_deflate_new(&c->deflater, 4096) == 0 && nghttp2_hd_inflate_new(&c->inflater) == 0);
    sz_buf_adds(&out, sz_cstr("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    add_frame(&out, H2_SETTINGS, 0, 0, sz_slice(settings, 6));
    add_frame(&out, H2_WINDOW_UPDATE, 0, 0, sz_slice(window, 4));
    return send_buf(c, &out);
}

bool h2_open_from(struct http2 *c, const char *address, uint16_t port)
{
    *c = (struct http2){.wire.fd = -1};
    return wire_open(&c->wire, address, port) && start(c);
}

bool h2_open(struct http2 *c, uint16_t port)
{
    return h2_open_from(c, NULL, port);
}

bool h2_open_tls(struct http2 *c, uint16_t port, const struct wire_tls *tls)
{
    struct wire_tls with = *tls;

    with.alpn = "h2";
    *c = (struct http2){.wire.fd = -1};
    return wire_open(&c->wire, NULL, port) && wire_start_tls(&c->wire, &with) && start(c);
}

void h2_close(struct http2 *c)
{
    wire_close(&c->wire);
    for (size_t i = 0; c->responses != NULL && i < H2_STREAMS_MAX; i++) {
        sz_buf_fini(&c->responses[i].head);
        sz_buf_fini(&c->responses[i].body);
    }
    free(c->responses);
    sz_buf_fini(&c->in);
    sz_buf_fini(&c->block);
    if (c->deflater != NULL)
        nghttp2_hd_deflate_del(c->deflater);
    if (c->inflater != NULL)
        nghttp2_hd_inflate_del(c->inflater);
    c->responses = NULL;
    c->deflater = NULL;
    c->inflater = NULL;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static struct h2_response *response_of(struct http2 *c, uint32_t stream)
{
    return stream % 2 == 1 && stream / 2 < H2_STREAMS_MAX ? &c->responses[stream / 2] : NULL;
}

static void terminate(struct sz_buf *b)
{
    sz_buf_add(b, "", 1);
    b->n--;
}

/* Also for streams that are not kept: the table must follow. */
static void on_block(struct http2 *c, struct h2_response *r)
{
    const uint8_t *p = (const uint8_t *)c->block.p;
    size_t left = c->block.n;

    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(c->inflater, &nv, &flags, p, left, 1);
        SZ_ASSERT(n >= 0);
        p += n;
        left -= (size_t)n;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0 && r != NULL) {
            if (sz_eq(sz_slice(nv.name, nv.namelen), SZ_S(":status")))
                r->status = (int)strtol((const char *)nv.value, NULL, 10);
            else
                sz_buf_printf(&r->head, "%.*s: %.*s\r\n", (int)nv.namelen, (const char *)nv.name, (int)nv.valuelen,
                              (const char *)nv.value);
        }
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0)
            break;
    }
    nghttp2_hd_inflate_end_headers(c->inflater);
    c->block.n = 0;
    if (r != NULL)
        terminate(&r->head);
}

static void on_headers(struct http2 *c, uint8_t type, uint8_t flags, struct h2_response *r, struct sz_slice payload)
{
    if (type == H2_HEADERS && (flags & H2_PADDED) != 0)
        payload = sz_sub(payload, 1, payload.n - 1 - (unsigned char)payload.p[0]);
    if (type == H2_HEADERS && (flags & H2_HAS_PRIORITY) != 0)
        payload = sz_from(payload, 5);
    sz_buf_adds(&c->block, payload);
    if ((flags & H2_END_HEADERS) != 0)
        on_block(c, r);
    if (type == H2_HEADERS && (flags & H2_END_STREAM) != 0 && r != NULL) {
        terminate(&r->body);
        r->ended = true;
    }
}

static void on_data(struct http2 *c, uint8_t flags, uint32_t stream, struct h2_response *r, struct sz_slice payload)
{
    char more[4];

    put32(more, (uint32_t)payload.n);
    if (payload.n > 0) /* what came is granted again: a long response never runs dry */
        (void)h2_frame(c, H2_WINDOW_UPDATE, 0, 0, sz_slice(more, 4));
    if (payload.n > 0 && (flags & H2_END_STREAM) == 0)
        (void)h2_frame(c, H2_WINDOW_UPDATE, 0, stream, sz_slice(more, 4));
    if ((flags & H2_PADDED) != 0)
        payload = sz_sub(payload, 1, payload.n - 1 - (unsigned char)payload.p[0]);
    if (r == NULL)
        return;
    sz_buf_adds(&r->body, payload);
    terminate(&r->body);
    r->ended |= (flags & H2_END_STREAM) != 0;
}

static void on_frame(struct http2 *c, uint8_t type, uint8_t flags, uint32_t stream, struct sz_slice payload)
{
    struct h2_response *r = response_of(c, stream);

    switch (type) {
    case H2_DATA:
        on_data(c, flags, stream, r, payload);
        break;
    case H2_HEADERS:
    case H2_CONTINUATION:
        on_headers(c, type, flags, r, payload);
        break;
    case H2_RST_STREAM:
        if (r != NULL && payload.n == 4) {
            r->reset = true;
            r->code = get32(payload.p);
        }
        break;
    case H2_SETTINGS:
        if ((flags & H2_ACK) != 0)
            c->settled = true;
        else
            (void)h2_frame(c, H2_SETTINGS, H2_ACK, 0, SZ_NONE);
        break;
    case H2_PING:
        if ((flags & H2_ACK) == 0)
            (void)h2_frame(c, H2_PING, H2_ACK, 0, payload);
        else
            c->pongs++;
        break;
    case H2_GOAWAY:
        c->goaway = true;
        c->last = get32(payload.p);
        c->code = get32(payload.p + 4);
        break;
    case H2_WINDOW_UPDATE:
        if (stream == 0)
            c->window += get32(payload.p);
        break;
    default:
        break;
    }
}

/* Reads and handles whole frames once; false: nothing more by then, or the peer closed. */
static bool read_some(struct http2 *c, struct sz_mono end)
{
    char chunk[65536];
    ssize_t n = c->closed ? 0 : wire_read(&c->wire, chunk, sizeof(chunk), end);
    size_t at = 0;

    c->closed |= n == 0;
    if (n <= 0)
        return false;
    sz_buf_add(&c->in, chunk, (size_t)n);
    while (c->in.n - at >= FRAME_HEAD) {
        const char *p = c->in.p + at;
        size_t length = get32(p) >> 8;
        if (c->in.n - at < FRAME_HEAD + length)
            break;
        at += FRAME_HEAD + length;
        on_frame(c, (uint8_t)p[3], (uint8_t)p[4], get32(p + 5) & 0x7fffffff, sz_slice(p + FRAME_HEAD, length));
    }
    memmove(c->in.p, c->in.p + at, c->in.n - at);
    c->in.n -= at;
    return true;
}

const struct h2_response *h2_wait(struct http2 *c, uint32_t stream, struct sz_span limit)
{
    struct h2_response *r = response_of(c, stream);
    struct sz_mono end = in_time(limit);

    while (r != NULL && !r->ended && !r->reset && read_some(c, end))
        ;
    return r;
}

void h2_read(struct http2 *c, struct sz_span limit)
{
    struct sz_mono end = in_time(limit);

    while (read_some(c, end))
        ;
}

bool h2_closed_within(struct http2 *c, struct sz_span limit)
{
    h2_read(c, limit);
    return c->closed;
}

bool h2_ping(struct http2 *c, struct sz_span limit)
{
    struct sz_mono end = in_time(limit);
    unsigned before = c->pongs;

    if (!h2_frame(c, H2_PING, 0, 0, sz_slice(ping_data, sizeof(ping_data))))
        return false;
    while (c->pongs == before && read_some(c, end))
        ;
    return c->pongs != before;
}

bool h2_response_field(const struct h2_response *r, const char *name, char *out, size_t size)
{
    size_t n = strlen(name);

    for (const char *line = r->head.p; line != NULL && *line != '\0'; line = strstr(line, "\r\n") + 2) {
        if (strncasecmp(line, name, n) == 0 && strncmp(line + n, ": ", 2) == 0) {
            snprintf(out, size, "%.*s", (int)strcspn(line + n + 2, "\r"), line + n + 2);
            return true;
        }
    }
    return false;
}

const struct h2_response *h2_ask(struct http2 *c, const char *method, struct sz_slice path, const char *token,
                                 const struct h2_field *fields, size_t n, struct sz_slice body)
{
    struct h2_field list[128] = {{SZ_S(":method"), sz_cstr(method)},
                                 {SZ_S(":scheme"), c->wire.ssl != NULL ? SZ_S("https") : SZ_S("http")},
                                 {SZ_S(":authority"), SZ_S("gateway.test")},
                                 {SZ_S(":path"), path}};
    struct sz_buf bearer = {0};
    size_t count = 4;

    if (token != NULL) {
        sz_buf_printf(&bearer, "Bearer %s", token);
        list[count++] = (struct h2_field){SZ_S("authorization"), sz_buf_slice(&bearer)};
    }
    SZ_ASSERT(count + n <= SZ_COUNT(list));
    for (size_t i = 0; i < n; i++)
        list[count++] = fields[i];
    uint32_t stream = h2_headers(c, list, count, body.p == NULL ? H2_END_STREAM : 0);
    sz_buf_fini(&bearer);
    if (stream == 0 || (body.p != NULL && !h2_data(c, stream, body, H2_END_STREAM)))
        return NULL;
    return h2_wait(c, stream, SZ_SEC(10));
}
