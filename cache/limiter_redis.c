/*
 * A bucket in Redis: its name, the script that takes from it, and what its answer is worth.  Redis's clock decides and
 * its numbers come back as they stand; how long to wait is computed from them by the code of the local buckets.  A
 * script that timed out is never sent again: its token may be spent.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cache/limiter.h"
#include "cache/redis_client.h"
#include "subzero/crypto.h"

#define KEY_MAX 400
#define BASE    (UINT64_C(1) << 52) /* microseconds and windows are counted from here, so that none is negative */

/* subzero:rl:v1:{name}:endpoint:policy.version.  The braces put a bucket into one slot, by its name alone. */
static struct sz_slice key_of(const struct sz_limit_op *op, char out[KEY_MAX])
{
    static const char *const kinds[] = {[SZ_BY_TENANT] = "tenant",
                                        [SZ_BY_CLIENT] = "client",
                                        [SZ_BY_ADDRESS] = "address",
                                        [SZ_BY_COOKIE] = "cookie",
                                        [SZ_BY_TEMPLATE] = "template"};
    const struct sz_limit_question *q = &op->question;
    const struct sz_conf_rate_limit *policy = q->limit->policy;
    uint8_t name[32];
    char text[SZ_B64_LEN(sizeof(name))];
    sz_fleet_name(op->limiter->fleet, kinds[q->kind], sz_from(q->key, SZ_LIMIT_KEY_HEAD), name);
    sz_b64url_encode(name, sizeof(name), text);
    int n = snprintf(out, KEY_MAX, "subzero:rl:v1:{%.*s}:%.*s:%.*s.%" PRIu64, (int)sizeof(text), text,
                     SZ_FMT(q->endpoint), SZ_FMT(policy->name), policy->version);
    SZ_ASSERT(n > 0 && n < KEY_MAX);
    return sz_slice(out, (size_t)n);
}

static enum sz_reason class_of(enum sz_redis_result result)
{
    switch (result) {
    case SZ_REDIS_TIMEOUT:
        return SZ_REASON_redis_timeout;
    case SZ_REDIS_NOSCRIPT:
        return SZ_REASON_redis_noscript_retry;
    case SZ_REDIS_OPEN:
        return SZ_REASON_circuit_open;
    case SZ_REDIS_ANSWERED:
    case SZ_REDIS_ERROR:
    case SZ_REDIS_OOM:
    case SZ_REDIS_NOT_READY:
    case SZ_REDIS_CONNECTION:
    case SZ_REDIS_FULL:
    case SZ_REDIS_RESULTS:
        break;
    }
    return SZ_REASON_redis_connection_error;
}

static void fail(struct sz_limit_op *op, enum sz_redis_result result)
{
    struct sz_mono now = sz_loop_now(op->loop);
    struct sz_span open = {0};
    if (result == SZ_REDIS_OPEN)
        open = sz_redis_breaker_look(op->client->shared, SZ_REDIS_LIMITS, now).retry;
    if (op->question.limit->policy->lease > 1)
        sz_lease_failed(op);
    sz_limiter_without_store(op->limiter, &op->question, now, class_of(result), open, &op->answer);
}

/* ---- answers -------------------------------------------------------------------------------------------------------
 */

static bool integers(const struct sz_redis_reply *reply, size_t n)
{
    if (reply->type != SZ_REDIS_ARRAY || reply->items_n != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (reply->items[i].type != SZ_REDIS_INTEGER)
            return false;
    }
    return true;
}

static bool within(int64_t value, int64_t least, uint64_t most)
{
    return value >= least && value <= (int64_t)most;
}

/* The state that the script saw, on a clock of ours. */
static bool bucket_state(const struct sz_limit_rule *rule, const struct sz_redis_reply *reply,
                         struct sz_limit_state *state, uint64_t *now)
{
    const int64_t most = INT64_C(1) << 51;
    if (!integers(reply, 4) || !within(reply->items[1].integer, 0, SZ_LIMIT_PRODUCT_MAX) ||
        !within(reply->items[2].integer, -most, (uint64_t)most))
        return false;
    *state = (struct sz_limit_state){(uint64_t)reply->items[1].integer, BASE};
    if (state->a > rule->capacity)
        state->a = rule->capacity;
    *now = (uint64_t)((int64_t)BASE + reply->items[2].integer);
    return true;
}

static bool window_state(const struct sz_limit_rule *rule, const struct sz_redis_reply *reply,
                         struct sz_limit_state *state, uint64_t *now)
{
    const uint64_t number = 1000;
    if (!integers(reply, 5) || !within(reply->items[1].integer, 0, rule->capacity) ||
        !within(reply->items[2].integer, 0, rule->capacity) || !within(reply->items[3].integer, 0, rule->window - 1))
        return false;
    *state =
        (struct sz_limit_state){number, (uint64_t)reply->items[1].integer << 32 | (uint64_t)reply->items[2].integer};
    *now = (number * rule->window + (uint64_t)reply->items[3].integer) * 1000;
    return true;
}

/* False: what came is no answer of this script. */
static bool read_reply(struct sz_limit_op *op, const struct sz_redis_reply *reply, uint64_t *granted)
{
    const struct sz_limit_rule *rule = &op->question.limit->policy->rule;
    struct sz_limit_state state;
    uint64_t now;
    bool good = rule->kind == SZ_LIMIT_WINDOW ? window_state(rule, reply, &state, &now)
                                              : bucket_state(rule, reply, &state, &now);
    if (!good || !within(reply->items[0].integer, 0, op->want))
        return false;
    *granted = (uint64_t)reply->items[0].integer;
    if (reply->items[reply->items_n - 1].integer != 0)
        sz_count(sz_loop_index(op->loop), op->limiter->unreadable, 1);
    op->answer = (struct sz_limit_answer){.allow = *granted > 0, .seen = true};
    op->answer.reason = op->answer.allow ? SZ_REASON_allowed : SZ_REASON_rate_limited;
    sz_limit_look(rule, &state, now, &op->answer.view);
    return true;
}

static enum sz_breaker_outcome on_done(struct sz_redis_op *redis, const struct sz_redis_answer *answer)
{
    struct sz_limit_op *op = SZ_CONTAINER(redis, struct sz_limit_op, redis);
    enum sz_breaker_outcome outcome = sz_redis_outcome(answer);
    uint64_t granted;
    if (answer->result != SZ_REDIS_ANSWERED) {
        fail(op, answer->result);
    } else if (!read_reply(op, answer->reply, &granted)) {
        outcome = SZ_BREAKER_FAILURE;
        fail(op, SZ_REDIS_ERROR);
    } else if (op->question.limit->policy->lease > 1) {
        sz_lease_granted(op, granted);
    }
    op->on_done(op);
    return outcome;
}

int sz_limiter_ask_redis(struct sz_limit_op *op, uint64_t want)
{
    const struct sz_conf_rate_limit *policy = op->question.limit->policy;
    struct sz_slice args[SZ_COUNT(policy->args) + 1];
    char key[KEY_MAX], number[24];
    for (size_t i = 0; i < policy->args_n; i++)
        args[i] = policy->args[i];
    args[policy->args_n] =
        want == 1 ? SZ_S("1") : sz_slice(number, (size_t)snprintf(number, sizeof(number), "%" PRIu64, want));
    op->want = want;
    op->redis = (struct sz_redis_op){.on_done = on_done};
    int rc = sz_redis_eval(op->client, SZ_REDIS_LIMITS, &op->limiter->scripts[policy->rule.kind], key_of(op, key), args,
                           policy->args_n + 1, op->deadline, &op->redis);
    if (rc == 0)
        return 0;
    fail(op, (enum sz_redis_result)rc);
    return SZ_LIMITER_ANSWERED;
}
