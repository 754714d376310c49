/*
 * Questions out, answers in.  The engine answers inside the start; after a few such answers the loop gets its turn, so
 * that a batch of heavy checks does not stand in everybody's way (Z8).
 */
#include "edge/api_ask.h"

#include "edge/thread.h"

enum { AT_ONCE = 4 };

/* What the one who asks did wrong; what is wrong with our store or model is not theirs (400 against 503). */
static bool is_askers_fault(int code)
{
    switch (code) {
    case 2000: /* validation_error */
    case 2021: /* type_not_found */
    case 2022: /* relation_not_found */
    case 2027: /* invalid_tuple */
        return true;
    default:
        return false;
    }
}

static void record(struct sz_api_item *item)
{
    const struct sz_authz_answer *answer = &item->op.answer;
    sz_txn_asked(&item->ask->x->txn, &item->check.key, answer->source);
    switch (answer->outcome) {
    case SZ_AUTHZ_ALLOWED:
        item->reason = SZ_REASON_allowed;
        break;
    case SZ_AUTHZ_DENIED:
        item->reason = SZ_REASON_not_permitted;
        break;
    case SZ_AUTHZ_ERROR:
        item->reason = is_askers_fault(answer->code) ? SZ_REASON_bad_request : SZ_REASON_authz_error;
        item->wrong = answer->message.s;
        break;
    case SZ_AUTHZ_UNAVAILABLE:
        item->reason = SZ_REASON_authz_unavailable;
        item->wrong = answer->message.s[0] != '\0' ? answer->message.s : NULL;
        break;
    }
}

static void go_on(struct sz_api_ask *ask);

static void answered(struct sz_api_item *item)
{
    struct sz_api_ask *ask = item->ask;
    bool yes = item->reason == SZ_REASON_allowed;
    ask->answered++;
    if ((ask->until == SZ_API_FIRST_DENY && !yes) || (ask->until == SZ_API_FIRST_PERMIT && yes))
        ask->next = ask->n;
}

static void on_answer(struct sz_authz_op *op)
{
    struct sz_api_item *item = SZ_CONTAINER(op, struct sz_api_item, op);
    item->under_way = false;
    item->ask->under_way--;
    record(item);
    answered(item);
    if (!item->ask->hop.prev)
        go_on(item->ask);
}

static void ask_one(struct sz_api_ask *ask, struct sz_api_item *item)
{
    struct sz_txn *txn = &ask->x->txn;
    struct sz_authz *authz = txn->snapshot->authz;
    item->ask = ask;
    if (item->wrong != NULL) {
        item->reason = SZ_REASON_bad_request;
        answered(item);
        return;
    }
    item->op = (struct sz_authz_op){.on_done = on_answer, .http = txn->worker->http};
    int rc = authz == NULL ? -1 : sz_authz_start(authz, txn->worker->loop, &item->check, txn->deadline, &item->op);
    if (rc == 0) {
        item->under_way = true;
        ask->under_way++;
        return;
    }
    if (rc < 0)
        item->op.answer.outcome = SZ_AUTHZ_UNAVAILABLE;
    record(item);
    ask->at_once++;
    answered(item);
}

static void on_hop(struct sz_defer *defer)
{
    struct sz_api_ask *ask = SZ_CONTAINER(defer, struct sz_api_ask, hop);
    ask->at_once = 0;
    go_on(ask);
}

static void go_on(struct sz_api_ask *ask)
{
    while (ask->next < ask->n && (ask->until == SZ_API_ALL || ask->under_way == 0)) {
        if (ask->at_once >= AT_ONCE) {
            ask->hop.on_run = on_hop;
            sz_defer_start(ask->x->txn.worker->loop, &ask->hop);
            return;
        }
        ask_one(ask, &ask->items[ask->next++]);
    }
    if (ask->under_way > 0 || ask->next < ask->n)
        return;
    ask->x->asking = NULL;
    ask->on_done(ask);
}

void sz_api_ask_start(struct sz_api_ask *ask)
{
    ask->x->asking = ask;
    go_on(ask);
}

void sz_api_ask_cancel(struct sz_api_ask *ask)
{
    struct sz_authz *authz = ask->x->txn.snapshot->authz;
    ask->x->asking = NULL;
    sz_defer_cancel(&ask->hop);
    for (size_t i = 0; i < ask->n; i++) {
        if (ask->items[i].under_way)
            authz->cancel(authz, &ask->items[i].op);
        ask->items[i].under_way = false;
    }
}
