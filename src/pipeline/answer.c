/*
 * Answers of our own: problem documents (RFC 9457) with the challenges of RFC 6750, and the yes of decide
 * listeners.  Nothing from a token or an upstream's error text gets in here.
 */
#include "pipeline/stages.h"

static void add(struct sz_txn *txn, struct sz_slice name, struct sz_slice value)
{
    sz_headers_add(&txn->answer.headers, txn->pool, name, value);
}

/* RFC 9470 3: what a token needs that passes. */
static struct sz_slice step_up(struct sz_txn *txn)
{
    const struct sz_conf_threat *conf = &txn->snapshot->conf->threat;
    struct sz_buf text = {0};
    sz_buf_printf(&text, "Bearer realm=\"subzero\", error=\"insufficient_user_authentication\", "
                         "error_description=\"A stronger or more recent login is required\"");
    for (size_t i = 0; i < conf->acr_values.n; i++)
        sz_buf_printf(&text, "%s%.*s", i == 0 ? ", acr_values=\"" : " ", SZ_FMT(conf->acr_values.v[i]));
    if (conf->acr_values.n > 0)
        sz_buf_printf(&text, "\"");
    if (conf->max_age.us > 0)
        sz_buf_printf(&text, ", max_age=\"%lld\"", (long long)(conf->max_age.us / 1000000));
    struct sz_slice value = sz_pool_dup(txn->pool, sz_buf_slice(&text));
    sz_buf_fini(&text);
    return value;
}

static struct sz_slice challenge(struct sz_txn *txn, enum sz_reason reason)
{
    switch (reason) {
    case SZ_REASON_missing_token: /* RFC 6750 3.1: no error code where no credential was given */
        return SZ_S("Bearer realm=\"subzero\"");
    case SZ_REASON_insufficient_scope:
        return sz_pool_printf(txn->pool, "Bearer realm=\"subzero\", error=\"insufficient_scope\", scope=\"%.*s\"",
                              SZ_FMT(sz_txn_plan(txn)->scope_list));
    case SZ_REASON_threat_challenge:
        return step_up(txn);
    default:
        return sz_pool_printf(txn->pool, "Bearer realm=\"subzero\", error=\"invalid_token\", error_description=\"%s\"",
                              sz_reason_row(reason)->title);
    }
}

static bool wants_challenge(enum sz_reason reason, unsigned status)
{
    return status == 401 || reason == SZ_REASON_insufficient_scope;
}

/* That of the table, where the configuration has no say. */
static unsigned status_of(const struct sz_txn *txn, enum sz_reason reason)
{
    return reason == SZ_REASON_threat_challenge ? txn->snapshot->conf->threat.step_up_status
                                                : sz_reason_row(reason)->status;
}

static struct sz_slice problem_body(struct sz_txn *txn, const struct sz_reason_row *row, unsigned status,
                                    const char *detail)
{
    struct sz_buf buf = {0};
    sz_buf_printf(&buf, "{\"type\":\"urn:subzero:problem:%s\",\"title\":\"%s\",\"status\":%u,\"reason\":\"%s\"",
                  row->name, row->title, status, row->name);
    if (detail != NULL) {
        sz_buf_printf(&buf, ",\"detail\":");
        sz_buf_json(&buf, sz_cstr(detail));
    }
    sz_buf_printf(&buf, ",\"request_id\":\"%.*s\"}\n", SZ_FMT(txn->request_id));
    struct sz_slice body = sz_pool_dup(txn->pool, sz_buf_slice(&buf));
    sz_buf_fini(&buf);
    return body;
}

/* In whole seconds, at least one. */
static struct sz_slice retry_after(struct sz_txn *txn)
{
    int64_t us = txn->retry_after.us, most = INT64_C(86400) * 1000000;
    int64_t seconds = ((us < most ? us : most) + 999999) / 1000000;
    return seconds <= 1 ? SZ_S("1") : sz_pool_printf(txn->pool, "%lld", (long long)seconds);
}

/* nginx's auth_request makes a 500 of everything but 2xx, 401 and 403: it gets a 403, and the real status beside it. */
static unsigned dialect_status(struct sz_txn *txn, unsigned status)
{
    const struct sz_conf_listener *listener = txn->req.listener;
    if (listener == NULL || listener->mode != SZ_MODE_DECIDE || listener->dialect != SZ_DIALECT_NGINX)
        return status;
    add(txn, SZ_S("x-subzero-status"), sz_pool_printf(txn->pool, "%u", status));
    return status == 401 || status == 403 ? status : 403;
}

/* What a limit said when it let the request through is not what it ends with. */
static void drop_reason(struct sz_headers *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (!sz_eq(h->v[i].name, SZ_S("x-subzero-reason")))
            h->v[n++] = h->v[i];
    }
    h->n = n;
}

void sz_answer_problem_as(struct sz_txn *txn, enum sz_reason reason, unsigned status, const char *detail)
{
    const struct sz_reason_row *row = sz_reason_row(reason);
    sz_count(txn->worker->index, txn->worker->gate->series.errors[reason], 1);
    txn->answer = (struct sz_answer){.status = status};
    add(txn, SZ_S("content-type"), SZ_S("application/problem+json"));
    add(txn, SZ_S("cache-control"), SZ_S("no-store"));
    drop_reason(&txn->respond);
    add(txn, SZ_S("x-subzero-reason"), sz_cstr(row->name));
    if (wants_challenge(reason, status))
        add(txn, SZ_S("www-authenticate"), challenge(txn, reason));
    if (status == 503 || status == 429)
        add(txn, SZ_S("retry-after"), retry_after(txn));
    if (reason == SZ_REASON_method_not_allowed)
        add(txn, SZ_S("allow"), txn->match.allow);
    txn->answer.body = problem_body(txn, row, status, detail);
    txn->answer.status = dialect_status(txn, status);
    /* After these the bytes on the connection may not mean what they seem to mean. */
    txn->answer.close =
        reason == SZ_REASON_bad_request || reason == SZ_REASON_headers_too_large || reason == SZ_REASON_body_too_large;
}

void sz_answer_problem(struct sz_txn *txn, enum sz_reason reason, const char *detail)
{
    sz_answer_problem_as(txn, reason, status_of(txn, reason), detail);
}

void sz_answer_json(struct sz_txn *txn, struct sz_slice json)
{
    txn->answer = (struct sz_answer){.status = 200, .body = json};
    add(txn, SZ_S("content-type"), SZ_S("application/json"));
    add(txn, SZ_S("cache-control"), SZ_S("no-store"));
}

void sz_answer_decide_allow(struct sz_txn *txn)
{
    txn->answer = (struct sz_answer){.status = 200, .headers = txn->forward.headers, .body = SZ_NONE};
}
