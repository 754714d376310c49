/* The process's own buckets: asked at once, in fixed memory, exact under any race. */
#include "subzero/limiter.h"

#include <errno.h>
#include <stdlib.h>

#include "cache/limiter.h"

#define ADDRESS_KEYS 65536 /* while nothing about addresses is configured: a reload may change that */

struct sz_limiter *sz_limiter_new(const struct sz_conf_limits *conf)
{
    struct sz_limiter *limiter = sz_xcalloc(1, sizeof(*limiter));
    limiter->buckets = sz_limit_table_new(conf->rate_limit_keys);
    limiter->addresses = sz_limit_table_new(conf->per_address.keys > 0 ? conf->per_address.keys : ADDRESS_KEYS);
    limiter->in_flight = sz_addr_count_new();
    if (limiter->buckets == NULL || limiter->addresses == NULL) {
        int error = errno;
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
    sz_addr_count_free(&limiter->in_flight);
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

int sz_limiter_ask(struct sz_limiter *limiter, struct sz_loop *loop, const struct sz_limit_question *question,
                   struct sz_mono deadline, struct sz_limit_op *op)
{
    (void)deadline;
    ask_here(limiter, question, sz_loop_now(loop), &op->answer);
    return SZ_LIMITER_ANSWERED;
}
