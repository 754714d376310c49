/*
 * Streams whose token is revoked end within the bound of revocations.  While a thread has streams it looks 20 times a
 * second whether anything was revoked at all, which is one load; only then at each stream, and at the kinds that are
 * newer than the last look.
 */
#include <stdlib.h>

#include "edge/proxy_call.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "pipeline/revoked.h"

static const struct sz_span EVERY = {50 * 1000};

static bool revoked(const struct sz_edge_thread *thread, struct sz_stream *stream, uint64_t sequence)
{
    struct sz_worker *worker = (struct sz_worker *)&thread->worker;
    struct sz_identity *id = stream->identity;
    if (id == NULL)
        return false;
    bool answer = sz_identity_revoked(worker->gate, sz_worker_snapshot(worker), id, id->revocation, &stream->names);
    id->revocation = sequence;
    return answer;
}

/* Taken off the list first: ending one may dispose of it. */
static void look_at_all(struct sz_edge_thread *thread, uint64_t sequence)
{
    struct sz_proxy_pools *pools = thread->pools;
    struct sz_stream *all = pools->streams;

    pools->streams = NULL;
    if (all != NULL)
        all->prev = &all;
    while (all != NULL) {
        struct sz_stream *stream = all;
        sz_stream_unlink(stream);
        sz_stream_link(pools, stream);
        if (revoked(thread, stream, sequence))
            stream->on_revoked(stream);
    }
}

static void on_look(struct sz_timer *timer)
{
    struct sz_edge_thread *thread = SZ_CONTAINER(timer, struct sz_edge_thread, revoked);
    uint64_t sequence = sz_revocation_sequence(thread->worker.gate->news);
    if (sequence != thread->revoked_seen)
        look_at_all(thread, sequence);
    thread->revoked_seen = sequence;
    if (thread->pools->streams != NULL)
        sz_timer_start(thread->loop, timer, sz_after(sz_loop_now(thread->loop), EVERY));
}

void sz_stream_hold(struct sz_stream *stream, struct sz_exchange *x, void (*on_revoked)(struct sz_stream *stream))
{
    struct sz_edge_thread *thread = x->thread;
    const struct sz_identity *id = x->txn.identity;
    stream->on_revoked = on_revoked;
    if (id == NULL)
        return;
    stream->identity = sz_xmalloc(sizeof(*id) - sizeof(id->text) + id->text_n);
    memcpy(stream->identity, id, sz_identity_size(id));
    stream->names = sz_revoked_remember(x->txn.snapshot, id, x->txn.token);
    if (sz_timer_armed(&thread->revoked))
        return;
    thread->revoked_seen = 0; /* what was revoked since this one was let through counts */
    thread->revoked.on_fire = on_look;
    sz_timer_start(thread->loop, &thread->revoked, sz_after(sz_loop_now(thread->loop), EVERY));
}

void sz_stream_release(struct sz_stream *stream)
{
    free(stream->identity);
    stream->identity = NULL;
}
