/*
 * Signature checks cost tens of microseconds; cached requests cost one.  So that a flood of tokens to verify never
 * delays a request that is cached, a loop turn verifies at most one of them and queues the rest.  There are two queues:
 *
 *   known     tokens that were verified before, whose fact has ended (every cache.l1.ttl): one each turn, before the
 * others. They cannot be made up, since only the issuer signs them, and there is one such check a token and ttl.
 *   strange   all others: one a turn in which few requests have begun; where there are none such, every
 *             SZ_VERIFY_EVERY.
 *
 * A full queue is an answer: 503 overloaded.
 *
 * One a turn: a turn without events costs a microsecond or two, so more would save a few percent of the verifications'
 * time, and a cached request, which needs two or three turns, would wait for each of them.
 */
#ifndef SZ_PIPELINE_VERIFY_QUEUE_H
#define SZ_PIPELINE_VERIFY_QUEUE_H

#include "pipeline/txn.h"

#define SZ_VERIFY_EVERY SZ_US(500)
#define SZ_VERIFY_QUIET 2 /* requests begun in a turn; none would cost each verification a turn without any */

struct sz_verify_queue;
struct sz_verify_queue *sz_verify_queue_new(struct sz_worker *worker, uint32_t limit);
void sz_verify_queue_free(struct sz_verify_queue **queue); /* must be empty */

/*
 * SZ_VERIFY_NOW: verify in place, this turn has room.  SZ_VERIFY_QUEUED: sz_txn_resume will be called when it
 * is this transaction's turn.  SZ_VERIFY_FULL: shed.
 */
enum sz_verify_turn { SZ_VERIFY_NOW, SZ_VERIFY_QUEUED, SZ_VERIFY_FULL };
enum sz_verify_turn sz_verify_queue_enter(struct sz_verify_queue *queue, struct sz_txn *txn, bool known);
/* The transaction ended while queued. */
void sz_verify_queue_leave(struct sz_verify_queue *queue, struct sz_txn *txn);

#endif
