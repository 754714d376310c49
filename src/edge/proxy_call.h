/*
 * One request on its way to an upstream and its response on the way back.  Lives on the request's pool; the exchange's
 * dispose hook detaches it, whatever state it is in.
 *
 *   OPENING ─▶ HEAD ─────────────▶ BODY ─▶ DONE         proxy.c       opening, retry, failures
 *                │ (also sending)    │                   proxy_send.c  the request
 *                └─▶ DONE, a tunnel  └─ in flight ◀─▶    proxy_head.c  the response's head
 *                                       reading          proxy_body.c  its body, with back-pressure
 *                                                        proxy_client.c  what happens at the client's socket
 *                                                        tunnel.c      WebSocket
 */
#ifndef SZ_EDGE_PROXY_CALL_H
#define SZ_EDGE_PROXY_CALL_H

#include "edge/chunked.h"
#include "edge/proxy.h"
#include "edge/upstream.h"
#include "edge/upstream_response.h"
#include "pipeline/revoked.h"

enum sz_call_state { SZ_CALL_OPENING, SZ_CALL_HEAD, SZ_CALL_BODY, SZ_CALL_DONE };

/* What outlives its request and must not outlive its token: event streams and tunnels.  In pools->streams. */
struct sz_stream {
    struct sz_stream *next, **prev;             /* prev NULL: not listed */
    void (*on_drain)(struct sz_stream *stream); /* end in an orderly way, now or soon */
    void (*on_abort)(struct sz_stream *stream); /* the thread ends: close */
    /* edge/stream_revoked.c */
    void (*on_revoked)(struct sz_stream *stream);
    struct sz_identity *identity; /* of whoever opened it; heap; NULL: nobody */
    struct sz_revoked_names names;
};
struct sz_exchange;
/* Remembers who opened it: when that is revoked, on_revoked ends it. */
void sz_stream_hold(struct sz_stream *stream, struct sz_exchange *x, void (*on_revoked)(struct sz_stream *stream));
void sz_stream_release(struct sz_stream *stream);

/* Bytes handed to h2o that the client has not taken yet.  In pools->in_flight, the longest without progress first. */
struct sz_in_flight {
    struct sz_in_flight *next, **prev; /* prev NULL: nothing in flight */
    struct sz_mono since;              /* of the last progress that was seen */
    uint64_t mark;                     /* progress when last looked at */
    bool marked;
};

struct sz_proxy_call {
    h2o_generator_t generator;
    struct sz_upconn_user user;
    struct sz_exchange *x;
    struct sz_proxy_pools *pools;
    struct sz_upstream *upstream;
    struct sz_upstream_url *url;
    uint64_t tried; /* urls that could not be reached, a bit each */
    enum sz_call_state state;
    struct sz_mono started;
    struct sz_defer later; /* a failure inside sz_proxy_start is told from the loop */
    const char *later_detail;

    /* request */
    struct iovec out[2]; /* what is still to be written: head, body */
    size_t out_n;
    bool any_written, retried;

    /* response */
    struct sz_block *block;
    size_t have;    /* bytes in it */
    size_t scanned; /* sz_response_scan's position */
    unsigned informational;
    enum sz_response_body body;
    uint64_t left; /* of a body with a length */
    struct phr_chunked_decoder chunks;
    size_t barren; /* bytes since the last one of data: extensions and trailers are bounded */
    bool keep_alive, surplus;
    bool chunked_out; /* towards an HTTP/1.1 client: we write the chunks ourselves */
    char chunk_line[20];

    /* client */
    struct sz_in_flight in_flight;
    enum { SZ_END_NONE, SZ_END_ORDERLY, SZ_END_CUT } end; /* how to end as soon as h2o takes more */

    /* event stream */
    struct sz_stream stream;
    struct sz_timer expiry;
};

static inline bool sz_call_in_flight(const struct sz_proxy_call *call)
{
    return call->in_flight.prev != NULL;
}

/* proxy.c */
/* Closes the connection and answers with our own document, before a response was started.  The call may be gone. */
void sz_call_fail(struct sz_proxy_call *call, enum sz_reason reason, const char *detail);
/* The connection died before a complete head: once more where that is safe, else upstream_error. */
void sz_call_lost(struct sz_proxy_call *call, ssize_t status);
/* The response is complete (or will not be): gives the connection back or closes it. */
void sz_call_let_go(struct sz_proxy_call *call);

/* proxy_send.c */
/* Writes the request; false when the connection is dead and not a byte was taken. */
bool sz_call_send(struct sz_proxy_call *call) SZ_MUST_CHECK;
void sz_call_on_writable(struct sz_proxy_call *call);

/* proxy_head.c */
void sz_call_read_head(struct sz_proxy_call *call);

/* proxy_body.c */
/* What was made of bytes of the body: its data (in place), and whether it is complete. */
struct sz_piece {
    char *data;
    size_t n;
    bool ended;
};
/* -EPROTO: malformed.  Moves data within the bytes. */
int sz_call_decode(struct sz_proxy_call *call, char *bytes, size_t n, struct sz_piece *piece) SZ_MUST_CHECK;
/* Hands a piece to h2o.  When it is the last one, the call may be gone afterwards. */
void sz_call_emit(struct sz_proxy_call *call, const struct sz_piece *piece);
void sz_call_read_body(struct sz_proxy_call *call);
void sz_call_body_timeout(struct sz_proxy_call *call);
/* The client gets no more: orderly (a complete body) where the framing allows it, else cut off.  The call may be gone.
 */
void sz_call_end_body(struct sz_proxy_call *call, bool orderly);
void sz_call_proceed(h2o_generator_t *generator, h2o_req_t *req);

/* proxy_client.c */
void sz_client_sending(struct sz_proxy_call *call); /* h2o is being given bytes */
void sz_client_drained(struct sz_proxy_call *call); /* and has passed them on, or the call ends */

/* proxy_stream.c */
void sz_stream_link(struct sz_proxy_pools *pools, struct sz_stream *stream);
void sz_stream_unlink(struct sz_stream *stream);
void sz_streams_drain(struct sz_proxy_pools *pools);
void sz_streams_abort(struct sz_proxy_pools *pools);
/* An event stream begins: it ends at forward.stream_until or with the drain. */
void sz_call_watch_events(struct sz_proxy_call *call);
void sz_call_unwatch_events(struct sz_proxy_call *call);

/* tunnel.c */
/* A 101 whose proof is right, in call->block: the connection and what follows the head become a tunnel's. */
void sz_tunnel_start(struct sz_proxy_call *call, size_t head_n);

#endif
