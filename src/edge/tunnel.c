/*
 * A WebSocket tunnel: bytes both ways, and a side that does not take stops the other.  The upgrade's request is gone by
 * then; the tunnel owns both connections and hangs on the thread's list of streams.
 *
 *   client socket (h2o's, maybe TLS) ◀── down ──  tunnel  ── up ──▶ upstream connection (ours)
 *
 * It ends with the token or its revocation (close frame 1008), with the drain or after the upstream's idle timeout
 * without a byte (1001), or when either side ends.  A close frame of ours goes between two frames: what is under way in
 * that direction is let through to its end first, within the half second that closing takes at most.
 */
#include <errno.h>
#include <h2o.h>
#include <h2o/http1.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "edge/connection.h"
#include "edge/proxy_call.h"
#include "edge/websocket.h"
#include "subzero/crypto.h"

#define CLOSING       SZ_MS(500)       /* from the decision to close to the end of both connections: well within 1 s */
#define CLIENT_BUFFER ((int)64 * 1024) /* of the kernel: h2o reads all that is there */

struct tunnel {
    struct sz_upconn_user user;
    struct sz_stream stream;
    struct sz_proxy_pools *pools;
    struct sz_upstream *upstream;
    int client_fd;        /* of h2o's connection, until the 101 is written */
    h2o_socket_t *client; /* then ours */
    struct sz_timer timer;
    struct sz_mono until, active; /* the token's end; the last byte in either direction */
    unsigned closing;             /* our close code; 0 = open */
    struct sz_frames up, down;
    bool up_closed, down_closed; /* our close frame was written in that direction: nothing may follow it */
    bool client_ended, upstream_ended;
    struct sz_block *block;   /* from the upstream: being written to the client */
    size_t block_at, block_n; /* read and not yet handed to the client's socket */
    uint8_t close_up[SZ_CLOSE_FRAME_MAX], close_down[SZ_CLOSE_FRAME_MAX];
};

static void pump_up(struct tunnel *t);
static void pump_down(struct tunnel *t);

static struct sz_mono now_of(const struct tunnel *t)
{
    return sz_loop_now(t->pools->loop);
}

static void tunnel_free(struct tunnel *t)
{
    sz_stream_unlink(&t->stream);
    sz_stream_release(&t->stream);
    sz_timer_cancel(t->pools->loop, &t->timer);
    if (t->user.conn != NULL)
        sz_upconn_close(t->user.conn);
    if (t->client != NULL) {
        sz_conn_closing(sz_conn_of(t->client), now_of(t));
        h2o_socket_close(t->client);
    }
    if (t->block != NULL)
        sz_block_put(t->pools, t->block);
    sz_upstream_unref(t->upstream);
    free(t);
}

/* Nothing more can come or go: what h2o still holds (before the 101 is out) reports back and frees the tunnel. */
static void end(struct tunnel *t)
{
    if (t->client_fd >= 0)
        shutdown(t->client_fd, SHUT_RDWR);
    else
        tunnel_free(t);
}

/* ---- the clock -------------------------------------------------------------------------------------------- */

static void arm(struct tunnel *t)
{
    struct sz_mono idle = sz_after(t->active, t->upstream->idle);
    sz_timer_start(t->pools->loop, &t->timer, sz_earlier(idle, t->until));
}

static void start_closing(struct tunnel *t, unsigned code)
{
    if (t->closing != 0)
        return;
    t->closing = code;
    sz_timer_start(t->pools->loop, &t->timer, sz_after(now_of(t), CLOSING));
    if (t->client == NULL)
        return; /* on_upgraded goes on from here */
    pump_up(t);
    pump_down(t);
}

static void on_timer(struct sz_timer *timer)
{
    struct tunnel *t = SZ_CONTAINER(timer, struct tunnel, timer);
    struct sz_mono now = now_of(t);

    if (t->closing != 0)
        end(t);
    else if (t->until.us <= now.us)
        start_closing(t, SZ_CLOSE_POLICY);
    else if (sz_after(t->active, t->upstream->idle).us <= now.us)
        start_closing(t, SZ_CLOSE_GOING_AWAY);
    else
        arm(t);
}

/* ---- client to upstream ----------------------------------------------------------------------------------- */

/* How much of these bytes may go: all, or while closing what completes the frame that is under way. */
static size_t allowed(const struct tunnel *t, const struct sz_frames *frames, bool closed, const char *bytes, size_t n)
{
    if (closed)
        return 0;
    return t->closing == 0 ? n : sz_frames_rest(frames, bytes, n);
}

/* The upstream's socket takes 8 bytes whole or not at all, but for the rarest case, and then closing was in vain. */
static void close_up(struct tunnel *t)
{
    uint32_t mask;
    sz_random(&mask, sizeof(mask));
    struct iovec iov = {t->close_up, sz_websocket_close(t->closing, true, mask, t->close_up)};
    ssize_t n = sz_upconn_write(t->user.conn, &iov, 1);
    if (n == -EAGAIN)
        sz_upconn_want_write(t->user.conn);
    else
        t->up_closed = true;
}

static void on_client_read(h2o_socket_t *sock, const char *err)
{
    struct tunnel *t = sock->data;

    t->active = now_of(t);
    if (err != NULL) {
        t->client_ended = true;
        h2o_socket_read_stop(sock);
    }
    pump_up(t);
}

static void watch_client(struct tunnel *t)
{
    if (!t->client_ended && !h2o_socket_is_reading(t->client))
        h2o_socket_read_start(t->client, on_client_read);
}

/* May free the tunnel only from the loop: nothing uses it after pump_up or pump_down in their callers' last lines. */
static void end_later(struct tunnel *t)
{
    t->closing = t->closing != 0 ? t->closing : SZ_CLOSE_GOING_AWAY;
    sz_timer_start(t->pools->loop, &t->timer, now_of(t));
}

static void pump_up(struct tunnel *t)
{
    h2o_buffer_t **input = &t->client->input;

    for (;;) {
        size_t n = allowed(t, &t->up, t->up_closed, (*input)->bytes, (*input)->size);
        if (n == 0)
            break;
        struct iovec iov = {(*input)->bytes, n};
        ssize_t sent = sz_upconn_write(t->user.conn, &iov, 1);
        if (sent == -EAGAIN) {
            h2o_socket_read_stop(t->client);
            sz_upconn_want_write(t->user.conn);
            return;
        }
        if (sent < 0) {
            end_later(t);
            return;
        }
        sz_frames_pass(&t->up, (*input)->bytes, (size_t)sent);
        h2o_buffer_consume(input, (size_t)sent);
    }
    if (t->closing != 0 && !t->up_closed && sz_frames_between(&t->up))
        close_up(t);
    if (t->up_closed)
        h2o_buffer_consume(input, (*input)->size); /* what comes after our close frame goes nowhere */
    if (t->client_ended)
        end_later(t);
    else
        watch_client(t);
}

static void on_writable(struct sz_upconn_user *user)
{
    pump_up(SZ_CONTAINER(user, struct tunnel, user));
}

/* ---- upstream to client ----------------------------------------------------------------------------------- */

static void on_client_written(h2o_socket_t *sock, const char *err)
{
    struct tunnel *t = sock->data;

    t->active = now_of(t);
    if (err != NULL)
        end(t);
    else
        pump_down(t);
}

/* false: nothing there, or the end. */
static bool read_down(struct tunnel *t)
{
    if (t->block_n > 0)
        return true;
    if (t->upstream_ended)
        return false;
    if (t->block == NULL)
        t->block = sz_block_get(t->pools);
    ssize_t n = sz_upconn_read(t->user.conn, t->block->bytes, SZ_BLOCK);
    if (n == -EAGAIN)
        return false;
    t->block_at = 0;
    t->block_n = n > 0 ? (size_t)n : 0;
    if (n <= 0) {
        t->upstream_ended = true;
        sz_upconn_read_stop(t->user.conn);
    }
    t->active = now_of(t);
    return n > 0;
}

static size_t take_down(struct tunnel *t, h2o_iovec_t *bufs)
{
    const char *bytes = t->block != NULL ? t->block->bytes + t->block_at : NULL;
    size_t n = allowed(t, &t->down, t->down_closed, bytes, t->block_n), bufs_n = 0;

    if (n > 0) {
        sz_frames_pass(&t->down, bytes, n);
        bufs[bufs_n++] = h2o_iovec_init(bytes, n);
    }
    t->block_n = t->closing == 0 ? t->block_n - n : 0; /* while closing the rest goes nowhere */
    if (t->closing != 0 && !t->down_closed && sz_frames_between(&t->down)) {
        bufs[bufs_n++] = h2o_iovec_init(t->close_down, sz_websocket_close(t->closing, false, 0, t->close_down));
        t->down_closed = true;
    }
    return bufs_n;
}

static void pump_down(struct tunnel *t)
{
    h2o_iovec_t bufs[2];

    if (h2o_socket_is_writing(t->client)) {
        sz_upconn_read_stop(t->user.conn); /* on_client_written goes on */
        return;
    }
    bool more = read_down(t);
    size_t n = more || t->closing != 0 ? take_down(t, bufs) : 0;
    if (n > 0) {
        h2o_socket_write(t->client, bufs, n, on_client_written);
        return;
    }
    if (t->upstream_ended) {
        end_later(t);
        return;
    }
    if (t->block != NULL) { /* a silent tunnel holds nothing */
        sz_block_put(t->pools, t->block);
        t->block = NULL;
    }
    sz_upconn_read_start(t->user.conn);
}

static void on_readable(struct sz_upconn_user *user)
{
    struct tunnel *t = SZ_CONTAINER(user, struct tunnel, user);
    if (t->client == NULL)
        sz_upconn_read_stop(user->conn); /* until the 101 is out */
    else
        pump_down(t);
}

static void on_timeout(struct sz_upconn_user *user)
{
    sz_upconn_deadline(user->conn, SZ_NEVER); /* the tunnel's own timer rules */
}

static const struct sz_upconn_ops ops = {
    .on_readable = on_readable,
    .on_writable = on_writable,
    .on_timeout = on_timeout,
};

/* ---- from the call to the tunnel -------------------------------------------------------------------------- */

static void on_drain(struct sz_stream *stream)
{
    start_closing(SZ_CONTAINER(stream, struct tunnel, stream), SZ_CLOSE_GOING_AWAY);
}

static void on_revoked(struct sz_stream *stream)
{
    start_closing(SZ_CONTAINER(stream, struct tunnel, stream), SZ_CLOSE_POLICY);
}

static void on_abort(struct sz_stream *stream)
{
    end(SZ_CONTAINER(stream, struct tunnel, stream));
}

/* The request is disposed of; what the client sent behind it are its first frames. */
static void on_upgraded(void *arg, h2o_socket_t *sock, size_t request_n)
{
    struct tunnel *t = arg;
    int size = CLIENT_BUFFER;

    t->client_fd = -1;
    if (sock == NULL) {
        tunnel_free(t);
        return;
    }
    t->client = sock;
    sock->data = t;
    setsockopt(h2o_socket_get_fd(sock), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    h2o_buffer_consume(&sock->input, request_n);
    pump_up(t);
    pump_down(t);
}

void sz_tunnel_start(struct sz_proxy_call *call, size_t head_n)
{
    h2o_req_t *req = call->x->req;
    struct tunnel *t = sz_xcalloc(1, sizeof(*t));

    t->user.ops = &ops;
    t->pools = call->pools;
    t->upstream = call->upstream;
    t->upstream->refs++;
    t->until = call->x->txn.forward.stream_until;
    t->active = now_of(t);
    t->stream.on_drain = on_drain;
    t->stream.on_abort = on_abort;
    sz_stream_link(t->pools, &t->stream);
    sz_stream_hold(&t->stream, call->x, on_revoked);
    t->timer.on_fire = on_timer;
    arm(t);
    sz_upconn_hand_over(call->user.conn, &t->user);
    sz_upconn_deadline(t->user.conn, SZ_NEVER);
    t->block = call->block;
    t->block_at = head_n;
    t->block_n = call->have - head_n;
    call->block = NULL;
    call->state = SZ_CALL_DONE;
    call->x->complete = true;
    t->client_fd = h2o_socket_get_fd(req->conn->callbacks->get_socket(req->conn));
    if (t->pools->draining)
        start_closing(t, SZ_CLOSE_GOING_AWAY);
    h2o_http1_upgrade(req, NULL, 0, on_upgraded, t);
}
