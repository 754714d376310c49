/*
 * An HTTP/2 client for tests that keeps none of the protocol's rules by itself: header lists go out as they are given
 * (only HPACK is nghttp2's), and any frame can be written.  It answers SETTINGS and PING, gives the peer all the
 * window that there is, and collects what comes back per stream.
 */
#ifndef FAKE_HTTP2_H
#define FAKE_HTTP2_H

#include "fake/wire.h"

enum {
    H2_DATA,
    H2_HEADERS,
    H2_PRIORITY,
    H2_RST_STREAM,
    H2_SETTINGS,
    H2_PUSH_PROMISE,
    H2_PING,
    H2_GOAWAY,
    H2_WINDOW_UPDATE,
    H2_CONTINUATION
};
enum { H2_END_STREAM = 1, H2_ACK = 1, H2_END_HEADERS = 4, H2_PADDED = 8, H2_HAS_PRIORITY = 32 };
enum { H2_STREAMS_MAX = 4096 }; /* streams of one connection whose responses are kept */

struct h2_field {
    struct sz_slice name, value;
};
#define H2_FIELD(name, value)        \
    {                                \
        {name, sizeof(name) - 1},    \
        {                            \
            value, sizeof(value) - 1 \
        }                            \
    }

struct h2_response {
    int status;         /* 0: none came */
    struct sz_buf head; /* "name: value\r\n" for each field but :status, NUL-terminated behind n */
    struct sz_buf body; /* NUL-terminated behind n once it has ended */
    bool ended;         /* END_STREAM came */
    bool reset;         /* RST_STREAM came, with `code` */
    uint32_t code;
};

struct http2 {
    struct wire wire;
    struct sz_buf in;
    struct nghttp2_hd_deflater *deflater;
    struct nghttp2_hd_inflater *inflater;
    uint32_t next;                 /* stream of the next request */
    struct sz_buf block;           /* header block that CONTINUATION goes on */
    struct h2_response *responses; /* by stream / 2 */
    bool closed, goaway, settled;  /* the peer: closed; sent GOAWAY with `code`; has acknowledged our SETTINGS */
    uint32_t code, last;
    unsigned pongs;
    uint64_t window; /* what the peer lets us send over the connection, beyond the first 65,535 */
};

/* Connection preface and SETTINGS sent; nothing awaited. */
bool h2_open(struct http2 *c, uint16_t port);
bool h2_open_from(struct http2 *c, const char *address, uint16_t port);
/* tls->alpn is set to "h2". */
bool h2_open_tls(struct http2 *c, uint16_t port, const struct wire_tls *tls);
void h2_close(struct http2 *c);

/* One frame as it is told; false: the connection is gone. */
bool h2_frame(struct http2 *c, uint8_t type, uint8_t flags, uint32_t stream, struct sz_slice payload);
/* For a peer that may not read: `end` instead of 10 s. */
bool h2_frame_by(struct http2 *c, uint8_t type, uint8_t flags, uint32_t stream, struct sz_slice payload,
                 struct sz_mono end);
/* The header list as HEADERS (and CONTINUATION where it is long); `flags`: H2_END_STREAM or 0.  The stream, 0: gone. */
uint32_t h2_headers(struct http2 *c, const struct h2_field *fields, size_t n, uint8_t flags);
bool h2_data(struct http2 *c, uint32_t stream, struct sz_slice bytes, uint8_t flags);
bool h2_reset(struct http2 *c, uint32_t stream, uint32_t code);
/* The encoded header list, for frames made by hand; freed by the caller. */
void h2_encode(struct http2 *c, const struct h2_field *fields, size_t n, struct sz_buf *block);

/* Reads until the stream has ended or was reset, the connection closed, or time is up; NULL: none of its own. */
const struct h2_response *h2_wait(struct http2 *c, uint32_t stream, struct sz_span limit);
/* Reads what is there for so long, or until the peer closes. */
void h2_read(struct http2 *c, struct sz_span limit);
bool h2_closed_within(struct http2 *c, struct sz_span limit);
/* A round trip: everything sent before has been read by the peer.  False: the connection is gone. */
bool h2_ping(struct http2 *c, struct sz_span limit);
bool h2_response_field(const struct h2_response *r, const char *name, char *out, size_t size);

/*
 * A whole request: method, scheme http(s), authority "gateway.test", path, the Bearer token (NULL: none), further
 * fields, body (absent: END_STREAM on the headers).  The response after at most 10 s, or NULL.
 */
const struct h2_response *h2_ask(struct http2 *c, const char *method, struct sz_slice path, const char *token,
                                 const struct h2_field *fields, size_t n, struct sz_slice body);

#endif
