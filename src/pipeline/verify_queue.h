/*
 * Signature checks cost tens of microseconds; cached requests cost one.  So that a flood of tokens to
 * verify never delays a request that is cached, each loop turn verifies at most SZ_VERIFY_PER_TURN tokens and
 * queues the rest behind the events of the next turns.  A full queue is an answer: 503 overloaded.
 *
 * One: a turn without events costs a microsecond or two, so more would save a few percent of the verifications' time,
 * and a cached request, which needs two or three turns, would wait for each of them.
 */
#ifndef SZ_PIPELINE_VERIFY_QUEUE_H
#define SZ_PIPELINE_VERIFY_QUEUE_H

#include "pipeline/txn.h"

#define SZ_VERIFY_PER_TURN 1

struct sz_verify_queue;
struct sz_verify_queue *sz_verify_queue_new(struct sz_worker *worker, uint32_t limit);
void sz_verify_queue_free(struct sz_verify_queue **queue); /* must be empty */

/*
 * SZ_VERIFY_NOW: verify in place, this turn has room.  SZ_VERIFY_QUEUED: sz_txn_resume will be called when it
 * is this transaction's turn.  SZ_VERIFY_FULL: shed.
 */
enum sz_verify_turn { SZ_VERIFY_NOW, SZ_VERIFY_QUEUED, SZ_VERIFY_FULL };
enum sz_verify_turn sz_verify_queue_enter(struct sz_verify_queue *queue, struct sz_txn *txn);
/* The transaction ended while queued. */
void sz_verify_queue_leave(struct sz_verify_queue *queue, struct sz_txn *txn);

#endif
