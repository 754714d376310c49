/*
 * Streams that outlive their request: listed per thread, so that a drain ends them, and timed, so that none lives
 * longer than the token (or the route's max_lifetime) that opened it.
 */
#include "edge/proxy_call.h"

void sz_stream_link(struct sz_proxy_pools *pools, struct sz_stream *stream)
{
    stream->next = pools->streams;
    stream->prev = &pools->streams;
    if (stream->next != NULL)
        stream->next->prev = &stream->next;
    pools->streams = stream;
}

void sz_stream_unlink(struct sz_stream *stream)
{
    if (stream->prev == NULL)
        return;
    *stream->prev = stream->next;
    if (stream->next != NULL)
        stream->next->prev = stream->prev;
    stream->prev = NULL;
}

/* Taken off the list first: ending one may dispose of it. */
void sz_streams_drain(struct sz_proxy_pools *pools)
{
    struct sz_stream *all = pools->streams;

    pools->streams = NULL;
    if (all != NULL)
        all->prev = &all;
    while (all != NULL) {
        struct sz_stream *stream = all;
        sz_stream_unlink(stream);
        sz_stream_link(pools, stream);
        stream->on_drain(stream);
    }
}

void sz_streams_abort(struct sz_proxy_pools *pools)
{
    while (pools->streams != NULL) {
        struct sz_stream *stream = pools->streams;
        sz_stream_unlink(stream);
        stream->on_abort(stream);
    }
}

static void end_events(struct sz_proxy_call *call)
{
    sz_call_unwatch_events(call);
    sz_call_end_body(call, true);
}

static void on_expiry(struct sz_timer *timer)
{
    end_events(SZ_CONTAINER(timer, struct sz_proxy_call, expiry));
}

static void on_end(struct sz_stream *stream)
{
    end_events(SZ_CONTAINER(stream, struct sz_proxy_call, stream));
}

void sz_call_watch_events(struct sz_proxy_call *call)
{
    struct sz_mono until = call->x->txn.forward.stream_until;

    call->stream.on_drain = on_end;
    call->stream.on_abort = on_end;
    sz_stream_link(call->pools, &call->stream);
    sz_stream_hold(&call->stream, call->x, on_end);
    call->expiry.on_fire = on_expiry;
    if (until.us != SZ_NEVER.us)
        sz_timer_start(call->pools->loop, &call->expiry, until);
}

void sz_call_unwatch_events(struct sz_proxy_call *call)
{
    if (call->stream.prev == NULL)
        return;
    sz_stream_unlink(&call->stream);
    sz_stream_release(&call->stream);
    sz_timer_cancel(call->pools->loop, &call->expiry);
}
