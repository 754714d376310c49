/* How the fake upstream reads: HTTP/1 as strictly as can be, keeping the bytes.  One thread, that of the connection. */
#ifndef FAKE_UPSTREAM_READ_H
#define FAKE_UPSTREAM_READ_H

#include "fake/upstream.h"

struct upstream_conn {
    struct wire wire;
    struct sz_buf in;        /* read, not yet part of a request */
    struct sz_buf raw, body; /* of the current request, bounded */
};

void upstream_read_init(struct upstream_conn *c, int fd);
void upstream_read_fini(struct upstream_conn *c);
/* The next head into c->raw.  -EPIPE: closed before its first byte; -EPROTO: closed within it, or no request. */
int upstream_read_head(struct upstream_conn *c);
/* request's head, method and target from c->raw. */
void upstream_read_line(struct upstream_conn *c, struct upstream_request *request);
/* -EPROTO: badly framed or cut short. */
int upstream_read_body(struct upstream_conn *c, struct upstream_request *request);
/* request's raw bytes and body, as far as they came. */
void upstream_read_keep(struct upstream_conn *c, struct upstream_request *request);

#endif
