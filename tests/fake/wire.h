/*
 * A test's end of a TCP connection, plain or TLS.  Every call has a deadline, so a peer that says nothing fails a test
 * instead of hanging it; what the test writes is what goes over the wire.
 */
#ifndef FAKE_WIRE_H
#define FAKE_WIRE_H

#include "subzero/base.h"
#include "subzero/time.h"

#include <sys/types.h>

struct ssl_st;
struct ssl_ctx_st;

struct wire {
    int fd; /* -1: closed */
    struct ssl_st *ssl;
};

/* Connects to 127.0.0.1:port; `from` (NULL: any) is another loopback address to come from.  False: refused. */
bool wire_open(struct wire *w, const char *from, uint16_t port);
void wire_close(struct wire *w);
void wire_reset(struct wire *w); /* closes with RST */

/* How a client speaks TLS; NULL and 0 are "nothing special".  Files are PEM. */
struct wire_tls {
    const char *ca;                /* verify the server against it; NULL: do not verify */
    const char *name;              /* SNI, and with `ca` the name that the certificate must have */
    const char *certificate, *key; /* the client's own */
    const char *alpn;              /* one protocol, for example "h2" */
    int max_version;               /* TLS1_2_VERSION ... */
};
/* Handshake over an open connection, at most 10 s.  False: refused; the connection is closed. */
bool wire_start_tls(struct wire *w, const struct wire_tls *tls);
/* The server's side of it, for a fake upstream. */
bool wire_accept_tls(struct wire *w, struct ssl_ctx_st *ctx);

/* Everything, or false (the peer closed, or 10 s passed). */
bool wire_send(struct wire *w, struct sz_slice bytes);
bool wire_send_by(struct wire *w, struct sz_slice bytes, struct sz_mono end);
/* Some bytes before `end`: their number; 0: the peer closed or reset; -ETIMEDOUT. */
ssize_t wire_read(struct wire *w, void *out, size_t size, struct sz_mono end);
/* Appends until the peer closes, nothing comes for `quiet` or the deadline; true: the peer closed. */
bool wire_read_all(struct wire *w, struct sz_buf *out, struct sz_span quiet);
/* The peer closes within that time; what comes before is dropped. */
bool wire_closed_within(struct wire *w, struct sz_span limit);

static inline struct sz_mono in_time(struct sz_span span)
{
    return sz_after(sz_mono_read(), span);
}

#endif
