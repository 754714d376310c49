/*
 * Decisions of a remote store in L2, behind the face that the decision cache asks.  For that source alone: the embedded
 * engine and a replica answer faster than Redis does, and what they answered says nothing about what another instance
 * has loaded.
 */
#ifndef SZ_PIPELINE_DECISION_L2_H
#define SZ_PIPELINE_DECISION_L2_H

#include "subzero/decision.h"
#include "subzero/l2.h"

struct sz_decisions_shared;
/* l2 outlives it.  NULL where l2 is. */
struct sz_decisions_shared *sz_decisions_shared_new(struct sz_l2 *l2);
void sz_decisions_shared_free(struct sz_decisions_shared **shared);
/* This loop's way to Redis, on its own thread, before it asks; NULL again before it goes. */
void sz_decisions_shared_loop(struct sz_decisions_shared *shared, struct sz_loop *loop, struct sz_redis *redis);
struct sz_decision_l2 *sz_decisions_shared_face(struct sz_decisions_shared *shared);

#endif
