/* POST /authz/check: one question, and where its answer came from. */
#include "edge/api.h"
#include "edge/api_body.h"
#include "edge/thread.h"

static const char *source_name(enum sz_authz_source source)
{
    switch (source) {
    case SZ_AUTHZ_FROM_ENGINE:
        return "engine";
    case SZ_AUTHZ_FROM_OPENFGA:
        return "openfga";
    case SZ_AUTHZ_FROM_REPLICA:
        return "replica";
    }
    return "";
}

static const char *layer_json(enum sz_authz_layer layer)
{
    switch (layer) {
    case SZ_AUTHZ_ASKED:
        return "null";
    case SZ_AUTHZ_L1:
        return "\"l1\"";
    case SZ_AUTHZ_L2:
        return "\"l2\"";
    }
    return "null";
}

static void on_done(struct sz_api_ask *ask)
{
    struct sz_exchange *x = ask->x;
    struct sz_api_item *item = &ask->items[0];
    const struct sz_authz_answer *answer = &item->op.answer;
    struct sz_span took = sz_between(x->txn.started, sz_loop_tick(x->txn.worker->loop));
    struct sz_buf json = {0};

    if (item->reason != SZ_REASON_allowed && item->reason != SZ_REASON_not_permitted) {
        sz_api_item_problem(x, item);
        return;
    }
    sz_buf_printf(&json,
                  "{\"allowed\":%s,\"source\":\"%s\",\"cached\":%s,\"cache_layer\":%s,\"latency_ms\":%lld.%03lld}\n",
                  item->reason == SZ_REASON_allowed ? "true" : "false", source_name(answer->source),
                  answer->layer == SZ_AUTHZ_ASKED ? "false" : "true", layer_json(answer->layer),
                  (long long)(took.us / 1000), (long long)(took.us % 1000));
    sz_api_reply(x, item->reason, sz_buf_slice(&json));
    sz_buf_fini(&json);
}

void sz_api_check(struct sz_exchange *x)
{
    struct {
        struct sz_api_ask ask;
        struct sz_api_item item;
    } *call = sz_pool_zalloc(x->txn.pool, sizeof(*call));
    const char *why;

    if (!sz_api_read_check(x->txn.req.body, x->txn.pool, &call->item.check, &why)) {
        sz_api_problem(x, SZ_REASON_bad_request, why);
        return;
    }
    call->ask = (struct sz_api_ask){.x = x, .items = &call->item, .n = 1, .on_done = on_done};
    sz_api_ask_start(&call->ask);
}
