/*
 * The body on its way to the client: one block at a time.  What was read is decoded in place and handed to h2o, and the
 * upstream is not read again before h2o has passed it on, so a slow client slows its upstream and costs one block.
 * A fast client drains within the same turn of the loop and nothing is ever paused.
 *
 *   readable ─▶ read ─▶ decode ─▶ h2o_send ─▶ in flight ─▶ proceed ─▶ readable again
 *                                                │ readable meanwhile: stop reading
 */
#include <errno.h>
#include <stdio.h>

#include "edge/proxy_call.h"

#define BARREN_MAX ((size_t)64 * 1024) /* chunk extensions and trailers without a byte of data */

static int decode_chunked(struct sz_proxy_call *call, char *bytes, size_t n, struct sz_piece *piece)
{
    size_t size = n;
    ssize_t rest = phr_decode_chunked(&call->chunks, bytes, &size);

    call->barren = size > 0 ? 0 : call->barren + n;
    if (rest == -1 || call->barren > BARREN_MAX)
        return -EPROTO;
    *piece = (struct sz_piece){bytes, size, rest >= 0};
    call->surplus = rest > 0;
    return 0;
}

int sz_call_decode(struct sz_proxy_call *call, char *bytes, size_t n, struct sz_piece *piece)
{
    size_t take;

    switch (call->body) {
    case SZ_BODY_CHUNKED:
        *piece = (struct sz_piece){bytes, 0, false};
        return n > 0 ? decode_chunked(call, bytes, n, piece) : 0;
    case SZ_BODY_UNTIL_CLOSE:
        *piece = (struct sz_piece){bytes, n, false};
        return 0;
    case SZ_BODY_NONE:
    case SZ_BODY_LENGTH:
        break;
    }
    take = n < call->left ? n : (size_t)call->left;
    call->left -= take;
    call->surplus = n > take;
    *piece = (struct sz_piece){bytes, take, call->left == 0};
    return 0;
}

static size_t put_chunk(struct sz_proxy_call *call, const struct sz_piece *piece, h2o_iovec_t *bufs)
{
    size_t n = 0;
    if (piece->n > 0) {
        int line = snprintf(call->chunk_line, sizeof(call->chunk_line), "%zx\r\n", piece->n);
        bufs[n++] = h2o_iovec_init(call->chunk_line, (size_t)line);
        bufs[n++] = h2o_iovec_init(piece->data, piece->n);
        bufs[n++] = piece->ended ? h2o_iovec_init(H2O_STRLIT("\r\n0\r\n\r\n")) : h2o_iovec_init(H2O_STRLIT("\r\n"));
    } else if (piece->ended) {
        bufs[n++] = h2o_iovec_init(H2O_STRLIT("0\r\n\r\n"));
    }
    return n;
}

void sz_call_emit(struct sz_proxy_call *call, const struct sz_piece *piece)
{
    h2o_req_t *req = call->x->req;
    h2o_iovec_t bufs[3];
    size_t n = 0;

    if (call->chunked_out) {
        n = put_chunk(call, piece, bufs);
        req->bytes_sent += piece->n;
    } else if (piece->n > 0) {
        bufs[n++] = h2o_iovec_init(piece->data, piece->n);
    }
    if (piece->ended) {
        call->state = SZ_CALL_DONE;
        call->x->complete = true;
        sz_call_unwatch_events(call);
        sz_call_let_go(call); /* others may use the connection: what we still need is in our block */
    }
    sz_client_sending(call);
    h2o_send(req, bufs, n, piece->ended ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

/* h2o tells an HTTP/1 client by closing (a body without its end), an HTTP/2 one by RST_STREAM. */
static void cut_off(struct sz_proxy_call *call)
{
    call->state = SZ_CALL_DONE;
    call->x->cut = true;
    sz_count(call->pools->thread, call->x->txn.worker->gate->series.errors[SZ_REASON_upstream_error], 1);
    sz_call_unwatch_events(call); /* over HTTP/2 the request lives on until the reset is written */
    h2o_send(call->x->req, NULL, 0, H2O_SEND_STATE_ERROR);
}

void sz_call_end_body(struct sz_proxy_call *call, bool orderly)
{
    static const struct sz_piece last = {NULL, 0, true};

    if (call->user.conn != NULL)
        sz_upconn_close(call->user.conn);
    orderly = orderly && (call->body == SZ_BODY_CHUNKED || call->body == SZ_BODY_UNTIL_CLOSE);
    call->x->cut = !orderly;
    if (sz_call_in_flight(call))
        call->end = orderly ? SZ_END_ORDERLY : SZ_END_CUT;
    else if (orderly)
        sz_call_emit(call, &last);
    else
        cut_off(call);
}

void sz_call_read_body(struct sz_proxy_call *call)
{
    struct sz_upconn *conn = call->user.conn;
    struct sz_piece piece;

    if (sz_call_in_flight(call)) {
        sz_upconn_read_stop(conn);
        return;
    }
    if (call->block == NULL)
        call->block = sz_block_get(call->pools);
    ssize_t n = sz_upconn_read(conn, call->block->bytes, SZ_BLOCK);
    if (n == -EAGAIN)
        return;
    if (n <= 0) {
        sz_call_end_body(call, n == 0 && call->body == SZ_BODY_UNTIL_CLOSE);
        return;
    }
    sz_upconn_deadline(conn, sz_after(sz_loop_now(call->pools->loop), call->upstream->idle));
    if (sz_call_decode(call, call->block->bytes, (size_t)n, &piece) != 0)
        sz_call_end_body(call, false);
    else if (piece.n > 0 || piece.ended)
        sz_call_emit(call, &piece);
}

/* While bytes are in flight the upstream is waiting for us, not we for it; the client has its own limit. */
void sz_call_body_timeout(struct sz_proxy_call *call)
{
    if (sz_call_in_flight(call))
        sz_upconn_deadline(call->user.conn, sz_after(sz_loop_now(call->pools->loop), call->upstream->idle));
    else
        sz_call_end_body(call, false);
}

void sz_call_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct sz_proxy_call *call = SZ_CONTAINER(generator, struct sz_proxy_call, generator);
    struct sz_upconn *conn = call->user.conn;

    (void)req;
    sz_client_drained(call);
    if (call->end != SZ_END_NONE) {
        sz_call_end_body(call, call->end == SZ_END_ORDERLY);
        return;
    }
    sz_upconn_deadline(conn, sz_after(sz_loop_now(call->pools->loop), call->upstream->idle));
    if (sz_upconn_has_pending(conn)) {
        sz_call_read_body(call);
        return;
    }
    if (call->block != NULL) { /* a stream that is silent for long holds nothing */
        sz_block_put(call->pools, call->block);
        call->block = NULL;
    }
    sz_upconn_read_start(conn);
}
