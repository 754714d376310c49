/*
 * Leases.  Tokens that were taken from Redis are spent here, and nowhere twice: Redis has forgotten them, and what is
 * not spent when the process ends is lost, never granted again.  What one key of this instance can hold at any time
 * is `lease` - 1 requests' worth, so within any span of time a fleet admits at most what the policy allows plus
 * instances x (lease - 1).
 *
 * One asker at a time takes a lease; whoever comes meanwhile asks for a single one, or else each of them would bring
 * back a whole lease.  A slot is one of these until its time is over:
 *
 *   held      `left` requests' worth to spend
 *   empty     Redis said so: nothing can be there before
 *   fetching  somebody is asking
 */
#include "cache/limiter.h"

enum kind { NOTHING, HELD, EMPTY, FETCHING };

#define REST_BITS 46
#define REST_MAX  ((UINT64_C(1) << REST_BITS) - 1)
#define LEFT_MAX  UINT64_C(0xffff)

struct lease { /* slot->state.a: | kind:2 | left:16 | rest in Redis:46 |; slot->over: until when */
    enum kind kind;
    uint64_t left, rest;
};

static struct lease lease_of(const struct sz_limit_slot *slot, bool fresh)
{
    uint64_t a = fresh ? 0 : slot->state.a;
    return (struct lease){(enum kind)(a >> 62), a >> REST_BITS & LEFT_MAX, a & REST_MAX};
}

static void put(struct sz_limit_slot *slot, struct lease l, uint64_t until)
{
    slot->state.a = (uint64_t)l.kind << 62 | l.left << REST_BITS | l.rest;
    slot->over = until;
}

static struct sz_limit_slot *borrow(struct sz_limit_op *op, struct lease *lease, struct sz_limit_set **set)
{
    struct sz_limit_table *table = op->limiter->leases;
    bool fresh;
    struct sz_limit_slot *slot = sz_limit_slot_borrow(table, sz_limit_table_hash(table, op->question.key),
                                                      (uint64_t)sz_loop_now(op->loop).us, &fresh, set);
    *lease = lease_of(slot, fresh);
    return slot;
}

/* From now on; what never ends ends with the slot. */
static uint64_t until(const struct sz_limit_op *op, struct sz_span span)
{
    uint64_t now = (uint64_t)sz_loop_now(op->loop).us;
    return span.us == INT64_MAX ? UINT64_MAX : now + (uint64_t)span.us;
}

static struct sz_span rest_of(const struct sz_limit_op *op, uint64_t over)
{
    uint64_t now = (uint64_t)sz_loop_now(op->loop).us;
    return (struct sz_span){over == UINT64_MAX ? INT64_MAX : (int64_t)(over - now)};
}

/* One of those that are held. */
static void spend(struct sz_limit_op *op, struct sz_limit_slot *slot, struct lease lease)
{
    const struct sz_conf_rate_limit *policy = op->question.limit->policy;
    uint64_t unit = policy->rule.kind == SZ_LIMIT_BUCKET ? SZ_LIMIT_TOKEN : 1, over = slot->over;
    lease.left--;
    op->answer = (struct sz_limit_answer){.allow = true, .seen = true, .reason = SZ_REASON_allowed};
    op->answer.view.left = lease.rest + lease.left * (policy->rule.cost / unit);
    op->answer.view.reset = rest_of(op, over);
    if (lease.left == 0)
        put(slot, (struct lease){.kind = NOTHING}, 0);
    else
        put(slot, lease, over);
}

static void refuse(struct sz_limit_op *op, const struct sz_limit_slot *slot)
{
    op->answer = (struct sz_limit_answer){.seen = true, .reason = SZ_REASON_rate_limited};
    op->answer.view.retry = op->answer.view.reset = rest_of(op, slot->over);
}

bool sz_lease_spend(struct sz_limit_op *op, uint64_t *want)
{
    struct lease lease;
    struct sz_limit_set *set;
    struct sz_limit_slot *slot = borrow(op, &lease, &set);
    bool answered = lease.kind == HELD || lease.kind == EMPTY;
    if (lease.kind == HELD) {
        spend(op, slot, lease);
    } else if (lease.kind == EMPTY) {
        refuse(op, slot);
    } else if (lease.kind == NOTHING) {
        *want = op->question.limit->policy->lease;
        put(slot, (struct lease){.kind = FETCHING}, until(op, SZ_SEC(1))); /* longer than any command takes */
    }
    sz_limit_slot_giveback(set);
    return answered;
}

/* Beyond what one instance may hold nothing is kept: it is lost rather than too much. */
static void keep(struct sz_limit_op *op, struct sz_limit_slot *slot, struct lease lease, uint64_t more)
{
    uint64_t most = op->question.limit->policy->lease - 1;
    uint64_t left = (lease.kind == HELD ? lease.left : 0) + more;
    lease = (struct lease){HELD, left < most ? left : most, op->answer.view.left};
    if (lease.rest > REST_MAX)
        lease.rest = REST_MAX;
    put(slot, lease, until(op, op->answer.view.reset));
}

void sz_lease_granted(struct sz_limit_op *op, uint64_t granted)
{
    struct lease lease;
    struct sz_limit_set *set;
    struct sz_limit_slot *slot = borrow(op, &lease, &set);
    struct sz_span most = SZ_SEC(60), retry = op->answer.view.retry;
    if (granted > 1)
        keep(op, slot, lease, granted - 1);
    else if (granted == 0 && lease.kind == HELD)
        spend(op, slot, lease); /* taken meanwhile by somebody who asked before */
    else if (granted == 0)
        put(slot, (struct lease){.kind = EMPTY}, until(op, retry.us < most.us ? retry : most));
    else if (op->want > 1 && lease.kind == FETCHING)
        put(slot, (struct lease){.kind = NOTHING}, 0);
    sz_limit_slot_giveback(set);
}

void sz_lease_failed(struct sz_limit_op *op)
{
    struct lease lease;
    struct sz_limit_set *set;
    struct sz_limit_slot *slot = borrow(op, &lease, &set);
    if (op->want > 1 && lease.kind == FETCHING)
        put(slot, (struct lease){.kind = NOTHING}, 0);
    sz_limit_slot_giveback(set);
}
