/*
 * Where a question goes: to the process's own bucket, or to the one that all instances share.  And what becomes of it
 * when that one cannot be asked: the table of subzero/limiter.h.
 */
#include "cache/limiter.h"

#include <errno.h>
#include <stdlib.h>

#define ADDRESS_KEYS   65536 /* while nothing about addresses is configured: a reload may change that */
#define EMERGENCY_KEYS 65536

static const char *const table_names[SZ_LIMITER_TABLES] = {"buckets", "addresses", "leases"};

static struct sz_redis_script script_of(const char *name, const char *text)
{
    struct sz_redis_script script = {.name = name, .text = sz_cstr(text)};
    sz_redis_script_prepare(&script);
    return script;
}

static bool share(struct sz_limiter *limiter, const struct sz_conf *conf)
{
    limiter->fleet = sz_fleet_new(conf->redis.key.value, NULL, 0);
    limiter->leases = sz_limit_table_new(conf->limits.rate_limit_keys);
    limiter->scripts[SZ_LIMIT_BUCKET] = script_of("limit_bucket", sz_lua_limit_bucket);
    limiter->scripts[SZ_LIMIT_WINDOW] = script_of("limit_window", sz_lua_limit_window);
    return limiter->fleet != NULL && limiter->leases != NULL;
}

void sz_limiter_report(struct sz_limiter *limiter, unsigned thread)
{
    const struct sz_limit_table *tables[SZ_LIMITER_TABLES] = {limiter->buckets, limiter->addresses, limiter->leases};
    for (size_t i = 0; i < SZ_LIMITER_TABLES; i++) {
        struct sz_limit_table_look look;
        if (tables[i] == NULL)
            continue;
        sz_limit_table_look(tables[i], &look);
        sz_count(thread, limiter->given_up[i].series, look.given_up - limiter->given_up[i].told);
        limiter->given_up[i].told = look.given_up;
    }
}

struct sz_limiter *sz_limiter_new(const struct sz_conf *conf)
{
    const struct sz_conf_limits *limits = &conf->limits;
    struct sz_limiter *limiter = sz_xcalloc(1, sizeof(*limiter));
    limiter->buckets = sz_limit_table_new(limits->rate_limit_keys);
    limiter->addresses = sz_limit_table_new(limits->per_address.keys > 0 ? limits->per_address.keys : ADDRESS_KEYS);
    limiter->emergencies = sz_limit_table_new(EMERGENCY_KEYS);
    limiter->in_flight = sz_addr_count_new();
    limiter->unreadable = sz_series1(SZ_METRIC_errors, "rate_limit_state");
    for (size_t i = 0; i < SZ_LIMITER_TABLES; i++)
        limiter->given_up[i].series = sz_series1(SZ_METRIC_limits_given_up, table_names[i]);
    bool good = limiter->buckets != NULL && limiter->addresses != NULL && limiter->emergencies != NULL;
    if (good && conf->redis.on)
        good = share(limiter, conf);
    if (!good) {
        int error = errno != 0 ? errno : EINVAL;
        sz_limiter_free(&limiter);
        errno = error;
    }
    return limiter;
}

void sz_limiter_free(struct sz_limiter **limiterp)
{
    struct sz_limiter *limiter = *limiterp;
    *limiterp = NULL;
    if (limiter == NULL)
        return;
    sz_limit_table_free(&limiter->buckets);
    sz_limit_table_free(&limiter->addresses);
    sz_limit_table_free(&limiter->emergencies);
    sz_limit_table_free(&limiter->leases);
    sz_addr_count_free(&limiter->in_flight);
    sz_fleet_free(&limiter->fleet);
    free(limiter);
}

void sz_limit_key_head(const struct sz_conf_route_limit *limit, enum sz_limit_by kind, char out[SZ_LIMIT_KEY_HEAD])
{
    memcpy(out, &limit->id, sizeof(limit->id));
    out[8] = (char)kind;
}

static void ask_here(struct sz_limiter *limiter, const struct sz_limit_question *question, struct sz_mono now,
                     struct sz_limit_answer *out)
{
    *out = (struct sz_limit_answer){.seen = true};
    out->allow = sz_limit_table_take(limiter->buckets, question->key, &question->limit->policy->rule, (uint64_t)now.us,
                                     1, &out->view) > 0;
    out->reason = out->allow ? SZ_REASON_allowed : SZ_REASON_rate_limited;
}

void sz_limiter_without_store(struct sz_limiter *limiter, const struct sz_limit_question *question, struct sz_mono now,
                              enum sz_reason why, struct sz_span open, struct sz_limit_answer *out)
{
    const struct sz_conf_rate_limit *policy = question->limit->policy;
    *out = (struct sz_limit_answer){.failed = true, .failure = why};
    if (!policy->fail_open) {
        out->reason = why == SZ_REASON_circuit_open ? SZ_REASON_circuit_open : SZ_REASON_fail_closed;
        out->view.retry = open;
        return;
    }
    struct sz_slice bucket = sz_slice(&question->limit->id, sizeof(question->limit->id));
    out->allow =
        sz_limit_table_take(limiter->emergencies, bucket, &policy->emergency, (uint64_t)now.us, 1, &out->view) > 0;
    out->reason = out->allow ? why : SZ_REASON_emergency_local_limit;
}

int sz_limiter_ask(struct sz_limiter *limiter, struct sz_redis *redis, struct sz_loop *loop,
                   const struct sz_limit_question *question, struct sz_mono deadline, struct sz_limit_op *op)
{
    uint64_t want = 1;
    if (redis == NULL || limiter->fleet == NULL) {
        ask_here(limiter, question, sz_loop_now(loop), &op->answer);
        return SZ_LIMITER_ANSWERED;
    }
    op->limiter = limiter;
    op->client = redis;
    op->loop = loop;
    op->question = *question;
    op->deadline = deadline;
    if (question->limit->policy->lease > 1 && sz_lease_spend(op, &want))
        return SZ_LIMITER_ANSWERED;
    return sz_limiter_ask_redis(op, want);
}

void sz_limiter_cancel(struct sz_limit_op *op)
{
    sz_redis_cancel(&op->redis);
}
