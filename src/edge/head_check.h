/*
 * The strict reading of an HTTP/1 request head.  h2o accepts what two parsers can read in two ways (Content-Length
 * beside Transfer-Encoding, folded lines, bare LF, several Hosts ...) and hides the framing fields from its header
 * list; so the gateway reads the raw head again, and this reading alone is what the pipeline judges.
 *
 * Pure functions over bytes: no I/O, no memory, any thread.  All slices of the result are borrowed from the input.
 */
#ifndef SZ_EDGE_HEAD_CHECK_H
#define SZ_EDGE_HEAD_CHECK_H

#include "pipeline/request.h"

#define SZ_HEAD_HEADERS_MAX 100 /* h2o's own compiled-in limit */

struct sz_head_limits {
    size_t bytes;  /* request line to the empty line, both included */
    size_t fields; /* header lines; at most SZ_HEAD_HEADERS_MAX */
};

struct sz_head {
    struct sz_slice method;
    struct sz_slice target;    /* origin-form or "*"; of an absolute-form its path and query, "/" when both are empty,
                                  "?query" when the path alone is */
    struct sz_slice authority; /* absolute-form's, else Host; empty only on HTTP/1.0 */
    bool http_1_0, absolute;
    bool has_length, chunked;
    uint64_t content_length;
    struct sz_slice upgrade; /* SZ_NONE when absent */
    size_t length;           /* bytes of the head */
    size_t fields_n;
    struct sz_header fields[SZ_HEAD_HEADERS_MAX]; /* all lines in order, values trimmed of blanks */
};

/*
 * Reads one complete head at the start of `bytes` (what follows is ignored).  0: *head is filled.  SZ_HEAD_BAD: refuse
 * with 400 and close, *why is a literal.  SZ_HEAD_TOO_LARGE: 431.
 */
enum { SZ_HEAD_BAD = 1, SZ_HEAD_TOO_LARGE = 2 };
int sz_head_check(struct sz_slice bytes, const struct sz_head_limits *limits, struct sz_head *head,
                  const char **why) SZ_MUST_CHECK;

/*
 * True when the head is a WebSocket handshake as RFC 6455 4.2.1 wants it: GET over HTTP/1.1 without a body, Upgrade
 * "websocket", Connection naming it, version 13 and a key of 16 bytes.
 */
bool sz_head_is_websocket(const struct sz_head *head);

/* ---- shared with the HTTP/2 check --------------------------------------------------------------------- */

bool sz_head_authority(struct sz_slice s); /* uri-host [":" port], not empty, no user information */
/* The host of such an authority, without port and brackets. */
struct sz_slice sz_head_host(struct sz_slice authority);

#endif
