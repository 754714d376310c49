/*
 * Two rings of transactions per worker, served from a deferred call at the end of each turn.  A slot whose transaction
 * left is emptied in place, which keeps leaving O(1).
 */
#include "pipeline/verify_queue.h"

#include <stdlib.h>

struct lane {
    uint32_t head, n;
    struct sz_txn **ring;
};

struct sz_verify_queue {
    struct sz_worker *worker;
    struct sz_defer serve;
    uint32_t limit; /* of each lane */
    struct lane known, strange;
    uint64_t turn;         /* the loop turn in which the last one was verified */
    struct sz_mono served; /* when the last strange one was */
    uint64_t begun;        /* requests of the worker, when the queue was last served */
};

static void on_serve(struct sz_defer *defer);

struct sz_verify_queue *sz_verify_queue_new(struct sz_worker *worker, uint32_t limit)
{
    struct sz_verify_queue *queue = sz_xcalloc(1, sizeof(*queue));
    queue->worker = worker;
    queue->limit = limit > 0 ? limit : 1;
    queue->known.ring = sz_xcalloc(queue->limit, sizeof(struct sz_txn *));
    queue->strange.ring = sz_xcalloc(queue->limit, sizeof(struct sz_txn *));
    queue->serve.on_run = on_serve;
    queue->turn = UINT64_MAX;
    return queue;
}

void sz_verify_queue_free(struct sz_verify_queue **queue)
{
    if (*queue == NULL)
        return;
    sz_defer_cancel(&(*queue)->serve);
    free((*queue)->known.ring);
    free((*queue)->strange.ring);
    free(*queue);
    *queue = NULL;
}

/* The turn's one verification, unless it had it. */
static bool take_turn(struct sz_verify_queue *queue)
{
    uint64_t turn = sz_loop_turn(queue->worker->loop);
    if (queue->turn == turn)
        return false;
    queue->turn = turn;
    return true;
}

static void serve_later(struct sz_verify_queue *queue)
{
    if (queue->known.n + queue->strange.n > 0)
        sz_defer_start(queue->worker->loop, &queue->serve);
}

enum sz_verify_turn sz_verify_queue_enter(struct sz_verify_queue *queue, struct sz_txn *txn, bool known)
{
    struct lane *lane = known ? &queue->known : &queue->strange;
    if (queue->known.n == 0 && (known || queue->strange.n == 0) && take_turn(queue))
        return SZ_VERIFY_NOW;
    if (lane->n == queue->limit)
        return SZ_VERIFY_FULL;
    uint32_t at = (lane->head + lane->n++) % queue->limit;
    lane->ring[at] = txn;
    txn->verify_at = at + 1;
    txn->verify_known = known;
    serve_later(queue);
    return SZ_VERIFY_QUEUED;
}

void sz_verify_queue_leave(struct sz_verify_queue *queue, struct sz_txn *txn)
{
    struct lane *lane = txn->verify_known ? &queue->known : &queue->strange;
    if (txn->verify_at == 0)
        return;
    SZ_ASSERT(lane->ring[txn->verify_at - 1] == txn);
    lane->ring[txn->verify_at - 1] = NULL;
    txn->verify_at = 0;
}

/* The first that still waits; NULL: nobody does. */
static struct sz_txn *take(struct sz_verify_queue *queue, struct lane *lane)
{
    struct sz_txn *txn = NULL;
    while (lane->n > 0 && txn == NULL) {
        txn = lane->ring[lane->head];
        lane->head = (lane->head + 1) % queue->limit;
        lane->n--;
    }
    if (txn != NULL)
        txn->verify_at = 0;
    return txn;
}

/* Little else to do in this turn, or strangers have waited for such a turn long enough. */
static bool may_serve_strange(struct sz_verify_queue *queue)
{
    bool quiet = queue->worker->request_seq - queue->begun <= SZ_VERIFY_QUIET;
    struct sz_mono now = sz_loop_now(queue->worker->loop);
    queue->begun = queue->worker->request_seq;
    if (!quiet && sz_between(queue->served, now).us < SZ_VERIFY_EVERY.us)
        return false;
    queue->served = now;
    return true;
}

static void on_serve(struct sz_defer *defer)
{
    struct sz_verify_queue *queue = SZ_CONTAINER(defer, struct sz_verify_queue, serve);
    struct sz_txn *txn = NULL;
    bool strange = may_serve_strange(queue);
    if (sz_loop_turn(queue->worker->loop) != queue->turn) {
        txn = take(queue, &queue->known);
        if (txn == NULL && strange)
            txn = take(queue, &queue->strange);
    }
    if (txn != NULL) {
        (void)take_turn(queue);
        sz_txn_resume(txn);
    }
    serve_later(queue);
}
