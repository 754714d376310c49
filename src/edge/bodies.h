/*
 * The request bytes that the whole process holds in buffers.  h2o buffers a body before any handler runs, so a client
 * without a token can make the process hold what it likes; over HTTP/2 it holds a hundred heads as well.  This is the
 * bound (limits.buffered_bodies).  Past it the largest connection that has shown no valid credential is cut, then the
 * largest of all.
 */
#ifndef SZ_EDGE_BODIES_H
#define SZ_EDGE_BODIES_H

#include "edge/connection.h"

/* After a read: counts what the connection holds now; false: the bound is passed and this is the one to cut. */
bool sz_bodies_account(struct sz_conn *conn) SZ_MUST_CHECK;
/* A header list of an HTTP/2 request was decoded into so many bytes of its pool; false: its connection must end. */
bool sz_bodies_head(h2o_req_t *req, size_t size) SZ_MUST_CHECK;
/* A request of it is over: what HTTP/1 held goes with it, HTTP/2 holds what its other streams do. */
void sz_bodies_release(struct sz_conn *conn);
/* HTTP/1 begins to read a request: what came behind the one before is there already. */
void sz_bodies_begin(struct sz_conn *conn);
/* The connection is over: nothing of h2o's is looked at. */
void sz_bodies_forget(struct sz_conn *conn);
extern const char sz_bodies_at_limit[]; /* why a connection is cut */

/* h2o's private read callbacks, as the self-test found them: they tell the protocols apart. */
void sz_bodies_learn(h2o_socket_cb http1, h2o_socket_cb http2);

enum sz_conn_protocol { SZ_CONN_OTHER, SZ_CONN_HTTP1, SZ_CONN_HTTP2 };
/* Which of them reads on this connection now; OTHER: a handshake, a PROXY header, a tunnel. */
enum sz_conn_protocol sz_bodies_protocol(const struct sz_conn *conn);

struct sz_edge_thread;
/* Asked by another thread: the process is past its bound and this thread holds the most. */
void sz_bodies_relieve(struct sz_edge_thread *thread);

#endif
