/* Reads the call, checks who asks, finds the page. */
#include "edge/api.h"

#include "edge/api_access.h"
#include "edge/connection.h"
#include "edge/logout.h"
#include "edge/thread.h"

enum { BODY_MAX = 256 * 1024 }; /* beyond it a body is no question; it is parsed on the loop */

static const struct sz_api_page pages[] = {
    {"POST", "/authz/check", NULL, SZ_API_KEY, "application/json", sz_api_check},
    {"POST", "/access/v1/evaluation", NULL, SZ_API_KEY, "application/json", sz_api_evaluation},
    {"POST", "/access/v1/evaluations", NULL, SZ_API_KEY, "application/json", sz_api_evaluations},
    {"POST", NULL, sz_logout_owns, SZ_API_OPEN, "application/x-www-form-urlencoded", sz_logout_serve_api},
    {"GET", "/.well-known/authzen-configuration", NULL, SZ_API_OPEN, NULL, sz_api_discovery},
};

static void problem(struct sz_exchange *x, enum sz_reason reason, unsigned status, const char *detail)
{
    sz_txn_problem_as(&x->txn, reason, status, detail);
    x->txn.answer.close = reason == SZ_REASON_body_too_large;
    sz_exchange_answer(x);
}

void sz_api_problem(struct sz_exchange *x, enum sz_reason reason, const char *detail)
{
    problem(x, reason, sz_reason_row(reason)->status, detail);
}

void sz_api_item_problem(struct sz_exchange *x, const struct sz_api_item *item)
{
    x->txn.retry_after = item->op.answer.retry_after;
    sz_api_problem(x, item->reason, item->wrong);
}

void sz_api_reply(struct sz_exchange *x, enum sz_reason reason, struct sz_slice json)
{
    sz_txn_reply(&x->txn, reason, sz_pool_dup(x->txn.pool, json));
    sz_exchange_answer(x);
}

/* The keys that count are those of the snapshot, so that a reload changes them; all else needs a restart. */
static const struct sz_conf_listener *keys_of(const struct sz_exchange *x)
{
    const struct sz_conf *conf = x->txn.snapshot->conf;
    for (size_t i = 0; i < conf->listeners_n; i++) {
        const struct sz_conf_listener *listener = &conf->listeners[i];
        if (listener->mode == SZ_MODE_API && sz_eq(listener->address, x->txn.req.listener->address))
            return listener;
    }
    return x->txn.req.listener;
}

static bool is_at(const struct sz_api_page *page, const struct sz_txn *txn)
{
    struct sz_slice path = txn->target.path;
    return page->owns != NULL ? page->owns(txn->snapshot->conf, path) : sz_eq(path, sz_cstr(page->path));
}

/* The page, or NULL and how a path that exists would be asked. */
static const struct sz_api_page *find(const struct sz_txn *txn, struct sz_slice *allow)
{
    *allow = SZ_NONE;
    for (size_t i = 0; i < SZ_COUNT(pages); i++) {
        if (!is_at(&pages[i], txn))
            continue;
        if (sz_eq(txn->req.method, sz_cstr(pages[i].method)))
            return &pages[i];
        *allow = sz_cstr(pages[i].method);
    }
    return NULL;
}

/* "application/json; charset=utf-8": the media type, without regard to its parameters. */
static bool has_type(const struct sz_request *req, struct sz_slice wanted)
{
    unsigned count;
    struct sz_slice type = sz_headers_get(&req->headers, SZ_S("content-type"), &count), first;
    if (count != 1 || !sz_split(&type, ';', &first))
        return false;
    return sz_ieq(sz_trim(first), wanted);
}

/* The status of a refusal, or 0. */
static unsigned refused(struct sz_exchange *x, const struct sz_api_page *page, const char **why)
{
    const struct sz_request *req = &x->txn.req;
    *why = "this path takes no query";
    if (x->txn.target.query.p != NULL)
        return 400;
    if (page->type == NULL)
        return 0;
    *why = sz_pool_printf(x->txn.pool, "the body must be %s, and content-type say so", page->type).p;
    if (!has_type(req, sz_cstr(page->type)))
        return 415;
    *why = "content-encoding is not understood here";
    if (sz_headers_get(&req->headers, SZ_S("content-encoding"), NULL).p != NULL)
        return 415;
    *why = "the body is too large for a question";
    return req->body.n > BODY_MAX ? 413 : 0;
}

void sz_api_serve(struct sz_exchange *x)
{
    struct sz_txn *txn = &x->txn;
    const char *why = NULL;
    struct sz_slice allow;
    enum sz_reason reason = sz_txn_open(txn, &why);
    const struct sz_api_page *page = reason == SZ_REASON_allowed ? find(txn, &allow) : NULL;

    /* Whether a path exists is told to those who may ask. */
    if (reason == SZ_REASON_allowed && (page == NULL || page->need == SZ_API_KEY))
        reason = sz_api_access(keys_of(x), &txn->req, &txn->caller, &why);
    if (reason == SZ_REASON_allowed && page == NULL)
        reason = allow.p != NULL ? SZ_REASON_method_not_allowed : SZ_REASON_no_route;
    if (reason == SZ_REASON_method_not_allowed)
        txn->match.allow = allow;
    if (reason != SZ_REASON_allowed) {
        sz_api_problem(x, reason, why);
        return;
    }
    x->conn->authenticated = page->need == SZ_API_KEY;
    unsigned status = refused(x, page, &why);
    if (status != 0)
        problem(x, status == 413 ? SZ_REASON_body_too_large : SZ_REASON_bad_request, status, why);
    else
        page->serve(x);
}
