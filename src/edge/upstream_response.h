/*
 * The head of an upstream's response, read strictly (RFC 9112, RFC 9110): what can be read in two ways is
 * refused, because the client behind us would read it the other way.  Pure: bytes in, facts out; all slices point
 * into the caller's buffer.
 */
#ifndef SZ_EDGE_UPSTREAM_RESPONSE_H
#define SZ_EDGE_UPSTREAM_RESPONSE_H

#include "subzero/base.h"

#define SZ_RESPONSE_HEAD_MAX   ((size_t)64 * 1024) /* status line and fields of one response */
#define SZ_RESPONSE_FIELDS_MAX 100

enum sz_response_body {
    SZ_BODY_NONE,   /* HEAD, 204, 304, 1xx: ends with the head */
    SZ_BODY_LENGTH, /* Content-Length */
    SZ_BODY_CHUNKED,
    SZ_BODY_UNTIL_CLOSE,
};

struct sz_response_field {
    struct sz_slice name;  /* as sent, or lower-case on request */
    struct sz_slice value; /* blanks at the ends removed; no control characters but HTAB */
};

struct sz_response {
    unsigned status; /* 100..599 */
    struct sz_slice reason;
    enum sz_response_body body;
    bool has_length;
    uint64_t length;        /* Content-Length when has_length (HEAD and 304 too) */
    bool keep_alive;        /* the connection may be used again after a complete response */
    bool event_stream;      /* text/event-stream */
    bool upgrade_websocket; /* Upgrade: websocket, and Connection names it */
    struct sz_slice accept; /* Sec-WebSocket-Accept; SZ_NONE when absent or doubled */
    size_t fields_n;        /* end-to-end fields alone: hop-by-hop ones and those that Connection names are gone,
                             * and so are Content-Length, Date (h2o writes both) and X-Subzero-* (ours) */
    struct sz_response_field fields[SZ_RESPONSE_FIELDS_MAX];
};

/*
 * Is the head complete?  Its length (blank line included), 0 when more bytes are needed, -EPROTO when the bytes cannot
 * become one (no HTTP/1 status line, a bare LF).  *at starts at 0 and carries on between calls, so that a dripped
 * head is looked at once.
 */
ptrdiff_t sz_response_scan(const char *p, size_t n, size_t *at) SZ_MUST_CHECK;

/*
 * Reads a complete head of n bytes.  is_head: the request was HEAD.  lower: field names are made lower-case in place
 * (HTTP/2 wants that; HTTP/1 clients see the upstream's spelling).  -EPROTO with a literal in *why.
 */
int sz_response_parse(struct sz_response *r, char *p, size_t n, bool is_head, bool lower,
                      const char **why) SZ_MUST_CHECK;

#endif
