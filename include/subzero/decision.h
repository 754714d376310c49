/*
 * Answers of the authorization source, kept for a few seconds: the decision cache.  It stands in front of a source and
 * looks like one (subzero/fga.h).  What it keeps are facts about the relations, "this user has this relation to that
 * object", under a name that covers everything which can change the answer (Z5); never an error, never "could not ask",
 * never an answer that met a cycle.
 *
 *     quick ─▶ L1 ─▶ one flight per question: L1 once more ─▶ L2 ─▶ the source ─▶ fills L2, L1
 *
 * What the source answers as cheaply as a look into the cache costs (sz_authz.quick) is not kept at all.
 *
 * How old an answer may be: its ttl, counted from when the question was asked, not from when the answer came.  A source
 * that follows changes ends all its earlier answers with each of them (sz_authz.epoch).  A check with
 * HIGHER_CONSISTENCY reads nothing that was kept, and joins no flight.
 */
#ifndef SUBZERO_DECISION_H
#define SUBZERO_DECISION_H

#include "subzero/cache.h"
#include "subzero/fga.h"

#define SZ_DECISIONS_MAX 1000000

/* L1 and the flights: one for the process, kept across reloads. */
struct sz_decisions;
/* capacity 1..SZ_DECISIONS_MAX; 26 bytes each, mapped at once and touched as it fills.  NULL: errno. */
struct sz_decisions *sz_decisions_new(size_t capacity);
/* After every loop that asked. */
void sz_decisions_free(struct sz_decisions **decisions);
void sz_decisions_flush(struct sz_decisions *decisions); /* any thread */
void sz_decisions_stats(struct sz_decisions *decisions, struct sz_cache_stats *out);

/*
 * L2: decisions that others of the fleet have learnt.  Implemented elsewhere; on the asking loop.  `fields` name the
 * question (sz_key_field by sz_key_field, the same bytes on every instance that asks the same source) and are borrowed
 * for the call; `http` as in sz_authz_op.
 */
struct sz_decision_l2_op {
    /* Once, later, unless get said no.  found: `allowed` is it, and it was asked `age` ago (at most its ttl). */
    void (*on_done)(struct sz_decision_l2_op *op, bool found, bool allowed, struct sz_span age);
    void *impl; /* L2's */
};
struct sz_decision_l2 {
    /* False: nothing will be called (no L2 at this moment): go on to the source. */
    bool (*get)(struct sz_decision_l2 *l2, struct sz_loop *loop, struct sz_slice fields, struct sz_decision_l2_op *op);
    /* Fire and forget.  It was asked `age` ago, and counts for `left` from now on. */
    void (*put)(struct sz_decision_l2 *l2, struct sz_loop *loop, struct sz_slice fields, bool allowed,
                struct sz_span age, struct sz_span left);
};

struct sz_decisions_conf {
    struct sz_span ttl, negative_ttl; /* of a yes, of a no; 0: not kept */
    struct sz_span work;              /* how long the source is given for one question, whoever waits for it */
    struct sz_decision_l2 *l2;        /* NULL: none; outlives every source that is wrapped */
};
/* Wraps `inner` and owns it from then on; freed (sz_authz.free) when the last question has been answered. */
struct sz_authz *sz_decisions_wrap(struct sz_decisions *decisions, struct sz_authz *inner,
                                   const struct sz_decisions_conf *conf);

#endif
