/*
 * The client's side of a call: its patience with what it was sent.
 *
 * h2o has no limit for a client that takes nothing: what is in flight is looked at once a second, and whoever made no
 * progress for the upstream's idle timeout is cut.
 */
#include <linux/tcp.h>
#include <sys/socket.h>

#include "edge/connection.h"
#include "edge/h2_streams.h"
#include "edge/proxy_call.h"
#include "edge/thread.h"

#define LOOK_EVERY SZ_SEC(1)

static struct sz_proxy_call *call_of(struct sz_in_flight *f)
{
    return SZ_CONTAINER(f, struct sz_proxy_call, in_flight);
}

static void append(struct sz_proxy_pools *pools, struct sz_in_flight *f, struct sz_mono now)
{
    f->since = now;
    f->next = NULL;
    f->prev = pools->in_flight_end;
    *f->prev = f;
    pools->in_flight_end = &f->next;
}

static void leave(struct sz_proxy_pools *pools, struct sz_in_flight *f)
{
    if (f->prev == NULL)
        return;
    *f->prev = f->next;
    if (f->next != NULL)
        f->next->prev = f->prev;
    else
        pools->in_flight_end = f->prev;
    f->prev = NULL;
}

/* A number that moves when the client takes something. */
static uint64_t progress(const struct sz_proxy_call *call)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof(info);

    if (call->x->req->version >= 0x200)
        return call->x->req->bytes_sent; /* counted as frames are made, which needs the stream's window */
    if (getsockopt(h2o_socket_get_fd(call->x->conn->sock), IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
        return 0;
    return info.tcpi_bytes_acked;
}

/*
 * HTTP/1: h2o meets the error at its write and disposes; the reset spares the kernel what the client would not read.
 * HTTP/2: that stream alone; it may be disposed of in here.
 */
static void cut(struct sz_proxy_call *call)
{
    h2o_req_t *req = call->x->req;
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    if (req->version < 0x200) {
        setsockopt(h2o_socket_get_fd(call->x->conn->sock), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        shutdown(h2o_socket_get_fd(call->x->conn->sock), SHUT_RDWR);
        return;
    }
    h2o_http2_stream_t *stream = H2O_STRUCT_FROM_MEMBER(h2o_http2_stream_t, req, req);
    h2o_http2_conn_t *conn = (h2o_http2_conn_t *)req->conn;
    h2o_http2_encode_rst_stream_frame(&conn->_write.buf, stream->stream_id, -H2O_HTTP2_ERROR_CANCEL);
    h2o_http2_conn_request_write(conn);
    h2o_http2_stream_reset(conn, stream);
}

static void on_look(struct sz_timer *timer)
{
    struct sz_proxy_pools *pools = SZ_CONTAINER(timer, struct sz_proxy_pools, stalled);
    struct sz_mono now = sz_loop_now(pools->loop);
    struct sz_in_flight *f, *next;

    for (f = pools->in_flight; f != NULL && sz_between(f->since, now).us >= LOOK_EVERY.us; f = next) {
        struct sz_proxy_call *call = call_of(f);
        uint64_t mark = progress(call);
        next = f->next;
        if (!f->marked || f->mark != mark) {
            f->marked = true;
            f->mark = mark;
            leave(pools, f);
            append(pools, f, now);
        } else if (sz_between(f->since, now).us >= call->upstream->idle.us) {
            leave(pools, f);
            cut(call);
        }
    }
    if (pools->in_flight != NULL)
        sz_timer_start(pools->loop, timer, sz_after(now, LOOK_EVERY));
}

void sz_client_sending(struct sz_proxy_call *call)
{
    struct sz_proxy_pools *pools = call->pools;
    struct sz_mono now = sz_loop_now(pools->loop);

    call->in_flight.marked = false;
    append(pools, &call->in_flight, now);
    if (!sz_timer_armed(&pools->stalled)) {
        pools->stalled.on_fire = on_look;
        sz_timer_start(pools->loop, &pools->stalled, sz_after(now, LOOK_EVERY));
    }
}

void sz_client_drained(struct sz_proxy_call *call)
{
    leave(call->pools, &call->in_flight);
}
