/*
 * Addresses before anything is known about who is behind them.  An IPv6 client has a /64 to choose addresses from, and
 * its provider a /48 of those: both have a bucket, the wider one 16 times as large.
 */
#include "cache/limiter.h"

struct key {
    char bytes[17];
};

static struct sz_slice key_of(struct sz_addr client, unsigned bits, struct key *out)
{
    struct sz_addr net = sz_addr_is_v4(client) ? client : sz_addr_prefix(client, bits);
    memcpy(out->bytes, net.b, sizeof(net.b));
    out->bytes[16] = (char)bits;
    return sz_slice(out->bytes, sizeof(out->bytes));
}

/* How long it has to wait is worked out for those alone that have to: a denial changes nothing, and is asked twice. */
static bool take(struct sz_limiter *limiter, struct sz_slice key, const struct sz_limit_rule *rule, uint64_t now,
                 struct sz_span *retry)
{
    struct sz_limit_view view;
    if (SZ_LIKELY(sz_limit_table_take(limiter->addresses, key, rule, now, 1, NULL) > 0))
        return true;
    bool good = sz_limit_table_take(limiter->addresses, key, rule, now, 1, &view) > 0;
    *retry = view.retry;
    return good;
}

bool sz_limiter_address(struct sz_limiter *limiter, const struct sz_conf_limits *conf, struct sz_addr client,
                        struct sz_mono now, struct sz_span *retry)
{
    struct key key;
    uint64_t us = (uint64_t)now.us;
    bool good = take(limiter, key_of(client, 64, &key), &conf->per_address.rule, us, retry);
    if (good && !sz_addr_is_v4(client))
        good = take(limiter, key_of(client, 48, &key), &conf->per_address.wide, us, retry);
    return good;
}

void sz_limiter_address_failed(struct sz_limiter *limiter, const struct sz_conf_limits *conf, struct sz_addr client,
                               struct sz_mono now)
{
    struct key key;
    uint64_t us = (uint64_t)now.us, more = conf->per_address.failure_cost - 1; /* one was taken when it came */
    if (more == 0)
        return;
    (void)sz_limit_table_take(limiter->addresses, key_of(client, 64, &key), &conf->per_address.rule, us, more, NULL);
    if (!sz_addr_is_v4(client))
        (void)sz_limit_table_take(limiter->addresses, key_of(client, 48, &key), &conf->per_address.wide, us, more,
                                  NULL);
}

bool sz_limiter_enter(struct sz_limiter *limiter, struct sz_addr client, uint32_t most)
{
    return sz_addr_count_enter(limiter->in_flight, client, most);
}

void sz_limiter_leave(struct sz_limiter *limiter, struct sz_addr client)
{
    sz_addr_count_leave(limiter->in_flight, client);
}
