/*
 * Leases: SET NX PX with a random owner.  Renewed at half its time by a script that looks whether it is still ours;
 * given back the same way, so that a slow holder never ends somebody else's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/l2.h"
#include "subzero/crypto.h"

const char sz_l2_lease_script[] = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\n"
                                  "if ARGV[2] == '0' then return redis.call('DEL', KEYS[1]) end\n"
                                  "return redis.call('PEXPIRE', KEYS[1], ARGV[2])\n";

static void on_renew(struct sz_timer *timer);

struct sz_span sz_l2_lease_time(const struct sz_l2 *l2)
{
    return l2->lease;
}

static void arm(struct sz_l2_lease *lease)
{
    lease->renew.on_fire = on_renew;
    sz_timer_start(lease->loop, &lease->renew, sz_after(sz_loop_now(lease->loop), SZ_US(lease->l2->lease.us / 2)));
}

static enum sz_breaker_outcome on_taken(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct sz_l2_lease *lease = SZ_CONTAINER(op, struct sz_l2_lease, op);
    enum sz_breaker_outcome outcome = sz_redis_outcome(answer);
    lease->held = answer->result == SZ_REDIS_ANSWERED && answer->reply->type == SZ_REDIS_STATUS;
    if (lease->held)
        arm(lease);
    /* Nobody to agree with: ask oneself. */
    lease->on_done(lease, lease->held || answer->result != SZ_REDIS_ANSWERED);
    return outcome;
}

/* Redis was not even asked. */
static void on_alone(struct sz_defer *defer)
{
    struct sz_l2_lease *lease = SZ_CONTAINER(defer, struct sz_l2_lease, alone);
    lease->on_done(lease, true);
}

static enum sz_breaker_outcome on_renewed(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct sz_l2_lease *lease = SZ_CONTAINER(op, struct sz_l2_lease, op);
    if (lease->held)
        arm(lease);
    return sz_redis_outcome(answer);
}

static void run(struct sz_l2_lease *lease, int64_t ms)
{
    char text[24];
    size_t n = (size_t)snprintf(text, sizeof(text), "%lld", (long long)ms);
    struct sz_slice args[] = {sz_cstr(lease->owner), sz_slice(text, n)};
    lease->op.on_done = on_renewed;
    if (sz_redis_eval(lease->redis, SZ_REDIS_CACHE, &lease->l2->renew, sz_slice(lease->name.text, lease->name.n), args,
                      SZ_COUNT(args), SZ_NEVER, &lease->op) != 0)
        arm(lease); /* tried again while there is a lease to renew */
}

static void on_renew(struct sz_timer *timer)
{
    struct sz_l2_lease *lease = SZ_CONTAINER(timer, struct sz_l2_lease, renew);
    run(lease, lease->l2->lease.us / 1000);
}

void sz_l2_lease_take(struct sz_l2 *l2, struct sz_redis *redis, struct sz_loop *loop, const struct sz_l2_name *name,
                      struct sz_mono deadline, struct sz_l2_lease *lease)
{
    uint8_t owner[16];
    char ms[24];
    size_t n = (size_t)snprintf(ms, sizeof(ms), "%lld", (long long)(l2->lease.us / 1000));
    sz_random(owner, sizeof(owner));
    sz_hex_encode(owner, sizeof(owner), lease->owner);
    lease->owner[32] = '\0';
    lease->l2 = l2;
    lease->redis = redis;
    lease->loop = loop;
    lease->held = false;
    lease->name.n =
        (size_t)snprintf(lease->name.text, sizeof(lease->name.text), "%.*s:lease", (int)name->n, name->text);
    SZ_ASSERT(lease->name.n < sizeof(lease->name.text));
    struct sz_slice args[] = {
        SZ_S("SET"),    sz_slice(lease->name.text, lease->name.n), sz_cstr(lease->owner), SZ_S("NX"), SZ_S("PX"),
        sz_slice(ms, n)};
    struct sz_redis_command command = {.args = args, .args_n = SZ_COUNT(args), .key = 1, .deadline = deadline};
    lease->op.on_done = on_taken;
    lease->alone.on_run = on_alone;
    if (sz_redis_start(redis, SZ_REDIS_CACHE, &command, &lease->op) != 0)
        sz_defer_start(loop, &lease->alone);
}

/* ---- giving back: nobody waits for it ---------------------------------------------------------------------------- */

static enum sz_breaker_outcome on_released(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    enum sz_breaker_outcome outcome = sz_redis_outcome(answer);
    free(op);
    return outcome;
}

static void release(struct sz_l2_lease *lease)
{
    struct sz_slice args[] = {sz_cstr(lease->owner), SZ_S("0")};
    struct sz_redis_op *op = sz_xcalloc(1, sizeof(*op));
    op->on_done = on_released;
    if (sz_redis_eval(lease->redis, SZ_REDIS_CACHE, &lease->l2->renew, sz_slice(lease->name.text, lease->name.n), args,
                      SZ_COUNT(args), SZ_NEVER, op) != 0)
        free(op); /* it ends by itself */
}

void sz_l2_lease_drop(struct sz_l2_lease *lease)
{
    if (lease->l2 == NULL)
        return;
    sz_redis_cancel(&lease->op);
    sz_timer_cancel(lease->loop, &lease->renew);
    sz_defer_cancel(&lease->alone);
    if (lease->held)
        release(lease);
    lease->held = false;
}
