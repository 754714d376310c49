/*
 * An HTTP/1 client for tests: raw bytes out, whole responses in.  It judges nothing that it sends, and is strict about
 * what it reads: a response that is framed in two ways or breaks off is an error of its own.
 */
#ifndef FAKE_HTTP1_H
#define FAKE_HTTP1_H

#include "fake/wire.h"

struct http1 {
    struct wire wire;
    struct sz_buf in; /* read, not yet part of a response */
};

struct http1_response {
    int status;         /* 0: none came */
    struct sz_buf head; /* status line to the empty line, NUL-terminated behind n */
    struct sz_buf body; /* decoded, NUL-terminated behind n */
    bool closes;        /* ended by, or announced, the end of the connection */
};

bool http1_open(struct http1 *c, uint16_t port);
bool http1_open_from(struct http1 *c, const char *address, uint16_t port);
bool http1_open_tls(struct http1 *c, uint16_t port, const struct wire_tls *tls);
void http1_close(struct http1 *c);

bool http1_send(struct http1 *c, struct sz_slice bytes);
bool http1_printf(struct http1 *c, const char *fmt, ...) SZ_PRINTF(2, 3);

/*
 * The next final response (1xx other than 101 are passed over) to a request of this method; `*r` starts zeroed or from
 * an earlier response, and is ended by http1_response_fini.  0; -ETIMEDOUT; -EPIPE: closed before the response was
 * whole (what there is of it is in *r); -EPROTO: not HTTP.
 */
int http1_read(struct http1 *c, const char *method, struct sz_span limit, struct http1_response *r);
void http1_response_fini(struct http1_response *r);
/* Copy of a field's value; false when absent. */
bool http1_field(const struct http1_response *r, const char *name, char *out, size_t size);
/* How often a field occurs. */
unsigned http1_field_count(const struct http1_response *r, const char *name);

/*
 * One request on a connection of its own: the status, 0 when no whole response came within 10 s.  token and body may be
 * NULL; fields: further lines, each with its CRLF, or NULL.
 */
int http1_ask(uint16_t port, const char *method, const char *target, const char *token, const char *fields,
              const char *body, struct http1_response *r);
/* The same as bytes; r may be NULL. */
int http1_exchange(uint16_t port, struct sz_slice request, struct http1_response *r);

#endif
