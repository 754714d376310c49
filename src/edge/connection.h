/*
 * A client connection: what the gateway knows of it beside h2o's own structure.  Reached from the socket's close hook,
 * which h2o keeps through TLS, HTTP/2 and WebSocket.  Everything on the connection's own thread.
 */
#ifndef SZ_EDGE_CONNECTION_H
#define SZ_EDGE_CONNECTION_H

#include <h2o.h>

#include "subzero/addr.h"
#include "subzero/base.h"
#include "subzero/time.h"

struct sz_edge_thread;
struct sz_listener;

struct sz_conn {
    struct sz_conn *next, **prev; /* the thread's list */
    struct sz_edge_thread *thread;
    const struct sz_listener *listener;
    h2o_socket_t *sock;
    struct sz_addr peer;    /* after the PROXY protocol */
    bool counted;           /* peer takes part in the limit per address */
    bool authenticated;     /* a request on it was allowed with an identity */
    bool certificate_known; /* cert_sha256 has been looked up */
    bool has_certificate;
    uint8_t cert_sha256[32];
    char covered[256];         /* TLS: the host that our certificate was last found to cover */
    size_t buffered;           /* request bytes held for it, as last counted */
    size_t heads;              /* HTTP/2: bytes of the decoded heads of its streams, but for small ones */
    bool reading;              /* HTTP/1: the first byte of a request is in */
    struct sz_mono since;      /* it is so since then */
    struct sz_mono answered;   /* HTTP/1: an answer of our own waits to be taken since then; 0: none */
    bool closing;              /* nothing reads from it any more since `since` */
    unsigned open;             /* requests between their head and their last byte */
    unsigned requests, resets; /* HTTP/2: requests in all, and those that left before an answer */
    h2o_socket_cb read;        /* h2o's read callback behind ours */
};

/* Takes the socket over; counted from here until the socket closes, whoever closes it. */
struct sz_conn *sz_conn_new(struct sz_edge_thread *thread, const struct sz_listener *listener, h2o_socket_t *sock,
                            struct sz_addr peer, bool counted);
/* NULL for a socket that is not a client connection of ours. */
struct sz_conn *sz_conn_of(h2o_socket_t *sock);
struct sz_conn *sz_conn_of_req(h2o_req_t *req);
/* Ends the connection from outside its protocol: h2o notices at its next read or write and cleans up. */
void sz_conn_cut(struct sz_conn *conn);
/*
 * The same at once, with everything that it holds, where h2o waits for more to read; `why` is static.  Not from within
 * one of its own callbacks; it may be gone afterwards.
 */
void sz_conn_drop(struct sz_conn *conn, const char *why);
/* Its tunnel or call has ended: TLS may wait for the client to take the goodbye, and is not waited for without end. */
void sz_conn_closing(struct sz_conn *conn, struct sz_mono now);
/* An HTTP/2 stream left before its answer; cuts the connection when it does so too often (rapid reset). */
void sz_conn_count_reset(struct sz_conn *conn);

/* For the override of h2o_socket_read_start: the callback to register instead of `cb`. */
h2o_socket_cb sz_conn_wrap_read(h2o_socket_t *sock, h2o_socket_cb cb);

#endif
