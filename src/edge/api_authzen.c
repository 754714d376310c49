/*
 * AuthZEN Authorization API 1.0: one evaluation, several, and where they are found.
 *
 * A question that makes no sense to the model is answered in its place among several: decision false with its error,
 * as the standard has it.  One that could not be asked makes the whole answer 503: nothing here turns that into a
 * `false`, which somebody would take for a no.
 */
#include "edge/api.h"
#include "edge/api_body.h"
#include "edge/thread.h"

static bool could_not_ask(enum sz_reason reason)
{
    return sz_reason_row(reason)->status == 503;
}

static void add_decision(struct sz_buf *json, const struct sz_api_item *item)
{
    sz_buf_printf(json, "{\"decision\":%s", item->reason == SZ_REASON_allowed ? "true" : "false");
    if (item->reason == SZ_REASON_bad_request) {
        sz_buf_printf(json, ",\"context\":{\"error\":{\"status\":400,\"message\":");
        sz_buf_json(json, sz_cstr(item->wrong));
        sz_buf_printf(json, "}}");
    }
    sz_buf_printf(json, "}");
}

static void on_one(struct sz_api_ask *ask)
{
    const struct sz_api_item *item = &ask->items[0];
    struct sz_buf json = {0};
    if (item->reason != SZ_REASON_allowed && item->reason != SZ_REASON_not_permitted) {
        sz_api_item_problem(ask->x, item);
        return;
    }
    add_decision(&json, item);
    sz_buf_printf(&json, "\n");
    sz_api_reply(ask->x, item->reason, sz_buf_slice(&json));
    sz_buf_fini(&json);
}

static void on_several(struct sz_api_ask *ask)
{
    enum sz_reason all = SZ_REASON_allowed;
    struct sz_buf json = {0};
    sz_buf_printf(&json, "{\"evaluations\":[");
    for (size_t i = 0; i < ask->answered; i++) {
        const struct sz_api_item *item = &ask->items[i];
        if (could_not_ask(item->reason)) {
            sz_api_item_problem(ask->x, item);
            sz_buf_fini(&json);
            return;
        }
        if (item->reason != SZ_REASON_allowed)
            all = SZ_REASON_not_permitted;
        sz_buf_printf(&json, "%s", i > 0 ? "," : "");
        add_decision(&json, item);
    }
    sz_buf_printf(&json, "]}\n");
    sz_api_reply(ask->x, all, sz_buf_slice(&json));
    sz_buf_fini(&json);
}

static void evaluate(struct sz_exchange *x, bool several)
{
    struct sz_api_ask *ask = sz_pool_zalloc(x->txn.pool, sizeof(*ask));
    struct sz_api_evaluations asked;
    const char *why;
    if (!sz_api_read_evaluations(x->txn.req.body, several, x->txn.pool, &asked, &why)) {
        sz_api_problem(x, SZ_REASON_bad_request, why);
        return;
    }
    *ask = (struct sz_api_ask){.x = x,
                               .items = asked.items,
                               .n = asked.n,
                               .until = asked.until,
                               .on_done = asked.several ? on_several : on_one};
    sz_api_ask_start(ask);
}

void sz_api_evaluation(struct sz_exchange *x)
{
    evaluate(x, false);
}

void sz_api_evaluations(struct sz_exchange *x)
{
    evaluate(x, true);
}

static void add_url(struct sz_buf *json, const struct sz_txn *txn, const char *name, const char *path)
{
    sz_buf_printf(json, "\"%s\":", name);
    sz_buf_json(json, sz_pool_printf(txn->pool, "%s://%.*s%s", txn->req.https ? "https" : "http",
                                     SZ_FMT(txn->authority.canonical), path));
}

/* By the name that the one who asks knows us by. */
void sz_api_discovery(struct sz_exchange *x)
{
    struct sz_txn *txn = &x->txn;
    struct sz_buf json = {0};
    if (sz_authority_parse(txn->req.authority, txn->pool, &txn->authority) != 0) {
        sz_api_problem(x, SZ_REASON_bad_request, "the Host is malformed");
        return;
    }
    sz_buf_printf(&json, "{");
    add_url(&json, txn, "policy_decision_point", "");
    sz_buf_printf(&json, ",");
    add_url(&json, txn, "access_evaluation_endpoint", "/access/v1/evaluation");
    sz_buf_printf(&json, ",");
    add_url(&json, txn, "access_evaluations_endpoint", "/access/v1/evaluations");
    sz_buf_printf(&json, "}\n");
    sz_api_reply(x, SZ_REASON_allowed, sz_buf_slice(&json));
    sz_buf_fini(&json);
}
