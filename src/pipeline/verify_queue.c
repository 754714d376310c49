/*
 * A ring of transactions per worker, served from a deferred call at the end of each turn.  A slot whose
 * transaction left is emptied in place, which keeps leaving O(1).
 */
#include "pipeline/verify_queue.h"

#include <stdlib.h>

struct sz_verify_queue {
    struct sz_worker *worker;
    struct sz_defer serve;
    uint64_t turn; /* the loop turn that `spent` belongs to */
    unsigned spent;
    uint32_t limit, head, n;
    struct sz_txn **ring;
};

static void on_serve(struct sz_defer *defer);

struct sz_verify_queue *sz_verify_queue_new(struct sz_worker *worker, uint32_t limit)
{
    struct sz_verify_queue *queue = sz_xcalloc(1, sizeof(*queue));
    queue->worker = worker;
    queue->limit = limit > 0 ? limit : 1;
    queue->ring = sz_xcalloc(queue->limit, sizeof(struct sz_txn *));
    queue->serve.on_run = on_serve;
    return queue;
}

void sz_verify_queue_free(struct sz_verify_queue **queue)
{
    if (*queue == NULL)
        return;
    sz_defer_cancel(&(*queue)->serve);
    free((*queue)->ring);
    free(*queue);
    *queue = NULL;
}

static bool turn_has_room(struct sz_verify_queue *queue)
{
    uint64_t turn = sz_loop_turn(queue->worker->loop);
    if (queue->turn != turn) {
        queue->turn = turn;
        queue->spent = 0;
    }
    if (queue->spent >= SZ_VERIFY_PER_TURN)
        return false;
    queue->spent++;
    return true;
}

enum sz_verify_turn sz_verify_queue_enter(struct sz_verify_queue *queue, struct sz_txn *txn)
{
    if (queue->n == 0 && turn_has_room(queue))
        return SZ_VERIFY_NOW;
    if (queue->n == queue->limit)
        return SZ_VERIFY_FULL;
    uint32_t at = (queue->head + queue->n++) % queue->limit;
    queue->ring[at] = txn;
    txn->verify_at = at + 1;
    if (queue->serve.prev == NULL)
        sz_defer_start(queue->worker->loop, &queue->serve);
    return SZ_VERIFY_QUEUED;
}

void sz_verify_queue_leave(struct sz_verify_queue *queue, struct sz_txn *txn)
{
    if (txn->verify_at == 0)
        return;
    SZ_ASSERT(queue->ring[txn->verify_at - 1] == txn);
    queue->ring[txn->verify_at - 1] = NULL;
    txn->verify_at = 0;
}

static void on_serve(struct sz_defer *defer)
{
    struct sz_verify_queue *queue = SZ_CONTAINER(defer, struct sz_verify_queue, serve);
    while (queue->n > 0 && turn_has_room(queue)) {
        struct sz_txn *txn = queue->ring[queue->head];
        queue->head = (queue->head + 1) % queue->limit;
        queue->n--;
        if (txn == NULL) {
            queue->spent--; /* nobody is waiting any more: not a verification */
            continue;
        }
        txn->verify_at = 0;
        sz_txn_resume(txn);
    }
    if (queue->n > 0 && queue->serve.prev == NULL)
        sz_defer_start(queue->worker->loop, &queue->serve);
}
