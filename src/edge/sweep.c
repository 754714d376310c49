/*
 * Time limits that h2o lacks or folds into one: how long a connection may be idle, and how long a whole request may
 * take to arrive, head and body, over HTTP/1 and HTTP/2.  One look a second over the thread's connections costs less
 * than two timers for each of them, and a second is precise enough for both.
 */
#include "edge/sweep.h"

#include "edge/bodies.h"
#include "edge/connection.h"
#include "edge/h2_streams.h"
#include "edge/overrides.h"
#include "edge/server.h"
#include "edge/thread.h"

#define EVERY SZ_SEC(1)

static bool longer(struct sz_mono since, struct sz_mono now, struct sz_span most)
{
    return sz_between(since, now).us > most.us;
}

static bool http1_overdue(const struct sz_conn *conn, struct sz_mono now, const struct sz_conf_limits *limits)
{
    if (conn->open > 0)
        return false; /* being answered: the pipeline and the proxy have their own deadlines */
    return longer(conn->since, now, conn->reading ? limits->request_timeout : limits->idle_timeout);
}

/* A stream whose request is still arriving (h2o's idle timer is pushed on by every frame of it). */
static bool http2_overdue(h2o_http2_conn_t *h2, struct sz_span most)
{
    uint32_t at = 0;

    if (h2->num_streams.pull.open == h2->num_streams.pull.half_closed)
        return false;
    int64_t now = sz_h2o_now_us();
    for (h2o_http2_stream_t *stream; (stream = sz_h2_next_stream(h2, &at)) != NULL;) {
        const struct timeval *begun = &stream->req.timestamps.request_begin_at;
        int64_t since = (int64_t)begun->tv_sec * 1000000 + begun->tv_usec;
        if (stream->state < H2O_HTTP2_STREAM_STATE_REQ_PENDING && since != 0 && now - since > most.us)
            return true;
    }
    return false;
}

static void on_sweep(struct sz_timer *timer)
{
    struct sz_edge_thread *thread = SZ_CONTAINER(timer, struct sz_edge_thread, sweep);
    const struct sz_conf_limits *limits = &thread->server->boot->conf->limits; /* as h2o's own: from the start */
    struct sz_mono now = sz_loop_now(thread->loop);

    for (struct sz_conn *conn = thread->conns; conn != NULL; conn = conn->next) {
        enum sz_conn_protocol protocol = sz_bodies_protocol(conn);
        if (protocol == SZ_CONN_HTTP1
                ? http1_overdue(conn, now, limits)
                : protocol == SZ_CONN_HTTP2 && http2_overdue(conn->sock->data, limits->request_timeout))
            sz_conn_cut(conn);
    }
    sz_timer_start(thread->loop, timer, sz_after(now, EVERY));
}

void sz_sweep_start(struct sz_edge_thread *thread)
{
    thread->sweep.on_fire = on_sweep;
    sz_timer_start(thread->loop, &thread->sweep, sz_after(sz_loop_now(thread->loop), EVERY));
}
