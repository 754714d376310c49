/*
 * What a client address may ask before anybody has said who it is: so many requests, so many at once, and a refused
 * credential counts as several, so that a flood of bad tokens soon costs no verification.  A trusted proxy's own
 * address stands for everybody behind it and is never held against them.
 */
#include "pipeline/stages.h"

static const struct sz_conf_limits *limits_of(const struct sz_txn *txn)
{
    return &txn->snapshot->conf->limits;
}

enum sz_reason sz_address_share(struct sz_txn *txn)
{
    const struct sz_conf_limits *limits = limits_of(txn);
    struct sz_limiter *limiter = txn->worker->gate->limiter;
    if (SZ_LIKELY(!limits->per_address.on) || txn->from.is_proxy)
        return SZ_REASON_allowed;
    if (!sz_limiter_address(limiter, limits, txn->from.client, sz_loop_now(txn->worker->loop), &txn->retry_after))
        return SZ_REASON_rate_limited;
    if (limits->per_address.in_flight == 0)
        return SZ_REASON_allowed;
    txn->entered = sz_limiter_enter(limiter, txn->from.client, limits->per_address.in_flight);
    return txn->entered ? SZ_REASON_allowed : SZ_REASON_concurrency_limited;
}

void sz_address_failed(struct sz_txn *txn)
{
    if (limits_of(txn)->per_address.on && !txn->from.is_proxy)
        sz_limiter_address_failed(txn->worker->gate->limiter, limits_of(txn), txn->from.client,
                                  sz_loop_now(txn->worker->loop));
}

void sz_address_leave(struct sz_txn *txn)
{
    if (txn->entered)
        sz_limiter_leave(txn->worker->gate->limiter, txn->from.client);
    txn->entered = false;
}
