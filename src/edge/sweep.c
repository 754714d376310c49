/*
 * Time limits that h2o lacks or folds into one: how long a connection may be idle, and how long a whole request may
 * take to arrive, head and body, over HTTP/1 and HTTP/2; how long an answer may wait for its client.  One look a second
 * over the thread's connections costs less than two timers for each of them, and a second is precise enough for both.
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

/* Being answered: the pipeline and the proxy have their own deadlines; what we said ourselves must be taken. */
static bool http1_overdue(const struct sz_conn *conn, struct sz_mono now, const struct sz_conf_limits *limits)
{
    if (conn->open > 0)
        return conn->answered.us != 0 && longer(conn->answered, now, limits->idle_timeout);
    return longer(conn->since, now, conn->reading ? limits->request_timeout : limits->idle_timeout);
}

static bool older(const struct timeval *tv, int64_t now, struct sz_span most)
{
    int64_t since = (int64_t)tv->tv_sec * 1000000 + tv->tv_usec;
    return since != 0 && now - since > most.us;
}

/*
 * Streams whose request is still arriving (h2o's idle timer is pushed on by every frame of it), and streams whose last
 * bytes are not taken (h2o has no limit for that).  response_end_at is h2o's from the moment on at which it has written
 * the last byte; before that it is ours to note since when the answer is complete.
 */
static bool http2_overdue(h2o_http2_conn_t *h2, const struct sz_conf_limits *limits)
{
    uint32_t at = 0;
    int64_t now = sz_h2o_now_us();

    for (h2o_http2_stream_t *stream; (stream = sz_h2_next_stream(h2, &at)) != NULL;) {
        struct timeval *ended = &stream->req.timestamps.response_end_at;
        if (stream->state < H2O_HTTP2_STREAM_STATE_REQ_PENDING) {
            if (older(&stream->req.timestamps.request_begin_at, now, limits->request_timeout))
                return true;
        } else if (stream->state >= H2O_HTTP2_STREAM_STATE_SEND_BODY_IS_FINAL) {
            if (older(ended, now, limits->idle_timeout))
                return true;
            if (ended->tv_sec == 0)
                *ended = (struct timeval){.tv_sec = now / 1000000, .tv_usec = now % 1000000};
        }
    }
    return false;
}

/*
 * A TLS socket outlives its protocol's structure until the client has taken the goodbye; it reads nothing then, and has
 * no request.  (A living HTTP/2 connection looks like that too while its client takes no acknowledgements.)
 */
static bool overdue(const struct sz_conn *conn, struct sz_mono now, const struct sz_conf_limits *limits)
{
    enum sz_conn_protocol protocol = sz_bodies_protocol(conn);

    if (protocol == SZ_CONN_HTTP2 && (conn->open > 0 || h2o_socket_is_reading(conn->sock)))
        return http2_overdue(conn->sock->data, limits);
    if (protocol == SZ_CONN_OTHER && conn->open == 0)
        return conn->closing && longer(conn->since, now, limits->idle_timeout);
    return http1_overdue(conn, now, limits);
}

static void on_sweep(struct sz_timer *timer)
{
    struct sz_edge_thread *thread = SZ_CONTAINER(timer, struct sz_edge_thread, sweep);
    const struct sz_conf_limits *limits = &thread->server->boot->conf->limits; /* as h2o's own: from the start */
    struct sz_mono now = sz_loop_now(thread->loop);

    for (struct sz_conn *conn = thread->conns; conn != NULL; conn = conn->next) {
        if (overdue(conn, now, limits))
            sz_conn_cut(conn);
    }
    sz_timer_start(thread->loop, timer, sz_after(now, EVERY));
}

void sz_sweep_start(struct sz_edge_thread *thread)
{
    thread->sweep.on_fire = on_sweep;
    sz_timer_start(thread->loop, &thread->sweep, sz_after(sz_loop_now(thread->loop), EVERY));
}
