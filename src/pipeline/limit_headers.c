/*
 * RateLimit and RateLimit-Policy: draft-ietf-httpapi-ratelimit-headers, one item a policy.  A limit that refuses
 * nothing (dry_run), or whose bucket could not be looked at, says nothing.
 */
#include <inttypes.h>

#include "pipeline/limit.h"

static bool shows(const struct sz_conf_rate_limit *policy, const struct sz_limit_answer *answer)
{
    return answer->seen && !policy->dry_run;
}

static void add_item(struct sz_buf *out, const struct sz_conf_rate_limit *policy, const struct sz_limit_view *view)
{
    sz_buf_printf(out, "%s\"%.*s\";r=%" PRIu64, out->n > 0 ? ", " : "", SZ_FMT(policy->name), view->left);
    if (view->reset.us != INT64_MAX)
        sz_buf_printf(out, ";t=%" PRId64, (view->reset.us + 999999) / 1000000);
}

static void add_header(struct sz_txn *txn, struct sz_slice name, struct sz_buf *value)
{
    if (value->n > 0)
        sz_headers_add(&txn->respond, txn->pool, name, sz_pool_dup(txn->pool, sz_buf_slice(value)));
    sz_buf_fini(value);
}

void sz_limit_headers(struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    const struct sz_limit_run *run = txn->limits;
    struct sz_buf states = {0}, policies = {0};
    for (size_t i = 0; i < route->limits_n && i <= run->at; i++) {
        const struct sz_conf_rate_limit *policy = route->limits[i].policy;
        if (!shows(policy, &run->answers[i]))
            continue;
        struct sz_slice item = txn->snapshot->plan->limits[policy - txn->snapshot->conf->rate_limits].policy;
        add_item(&states, policy, &run->answers[i].view);
        sz_buf_printf(&policies, "%s%.*s", policies.n > 0 ? ", " : "", SZ_FMT(item));
    }
    add_header(txn, SZ_S("ratelimit"), &states);
    add_header(txn, SZ_S("ratelimit-policy"), &policies);
}
