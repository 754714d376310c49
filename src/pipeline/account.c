/*
 * After the exchange: the metrics and the access line.  What they say comes from the decision record alone.
 */
#include "pipeline/stages.h"
#include "pipeline/trace.h"
#include "subzero/access.h"
#include "subzero/log.h"

static bool wants_line(const struct sz_txn *txn)
{
    const struct sz_conf_log *log = &txn->snapshot->conf->log;
    switch (log->access) {
    case SZ_ACCESS_OFF:
        return false;
    case SZ_ACCESS_SAMPLED:
        return log->sample <= 1 || txn->worker->request_seq % log->sample == 0;
    case SZ_ACCESS_ALL:
        break;
    }
    return true;
}

static struct sz_slice protocol_name(enum sz_protocol protocol)
{
    static const char *const names[] = {[SZ_HTTP_1_0] = "1.0", [SZ_HTTP_1_1] = "1.1", [SZ_HTTP_2] = "2"};
    return sz_cstr(names[protocol]);
}

static void fill_identity(const struct sz_txn *txn, struct sz_access *line)
{
    const struct sz_identity *id = txn->identity;
    const struct sz_conf_issuer *issuer = sz_txn_issuer(txn);
    line->client = txn->caller;
    if (issuer == NULL)
        return;
    line->subject = sz_identity_text(id, id->subject);
    line->client = sz_identity_text(id, id->client);
    line->issuer = issuer->name;
}

static void write_line(const struct sz_txn *txn, const struct sz_completion *completion, struct sz_span duration)
{
    const struct sz_decision *d = &txn->decision;
    char address[SZ_ADDR_TEXT];
    struct sz_wall wall = sz_loop_wall(txn->worker->loop);
    struct sz_access line = {
        .time = {wall.us - duration.us},
        .request_id = txn->request_id,
        .trace_id = sz_trace_id(txn),
        .method = txn->req.method,
        .path = txn->target.path,
        .route = d->route != NULL ? d->route->id : SZ_S("none"),
        .decision = d->allow ? SZ_S("allow") : SZ_S("deny"),
        .reason = sz_cstr(sz_reason_row(d->reason)->name),
        .status = (uint16_t)completion->status,
        .duration = duration,
        .bytes = completion->bytes_out,
        .address = sz_slice(address, sz_addr_format(txn->from.client, address)),
        .protocol = protocol_name(txn->req.protocol),
        .listener = txn->req.listener != NULL ? txn->req.listener->address : SZ_NONE,
    };
    fill_identity(txn, &line);
    struct sz_buf buf = {0};
    sz_access_line(&buf, &line);
    (void)sz_log_line(sz_buf_slice(&buf)); /* a full queue counts its own losses */
    sz_buf_fini(&buf);
}

static void measure(const struct sz_txn *txn, struct sz_span duration)
{
    const struct sz_worker *worker = txn->worker;
    enum sz_listen_mode mode = txn->req.listener != NULL ? txn->req.listener->mode : SZ_MODE_PROXY;
    sz_observe(worker->index,
               mode == SZ_MODE_DECIDE ? worker->gate->series.decide
               : mode == SZ_MODE_API  ? worker->gate->series.authz
                                      : worker->gate->series.proxy,
               duration);
    if (txn->identified.us != 0)
        sz_observe(worker->index, worker->gate->series.auth, sz_between(txn->started, txn->identified));
    if (txn->answered.us != 0)
        sz_observe(worker->index, worker->gate->series.authz,
                   sz_between(txn->identified.us != 0 ? txn->identified : txn->started, txn->answered));
}

void sz_txn_account(struct sz_txn *txn, const struct sz_completion *completion)
{
    const struct sz_decision *d = &txn->decision;
    if (SZ_UNLIKELY(txn->trace != NULL))
        sz_trace_finish(txn, completion->status);
    if (txn->snapshot == NULL || !d->made)
        return;
    struct sz_span duration = sz_between(txn->started, sz_loop_tick(txn->worker->loop));
    sz_count(txn->worker->index, sz_plan_series(sz_txn_plan(txn), d->allow, d->reason), 1);
    measure(txn, duration);
    if (wants_line(txn))
        write_line(txn, completion, duration);
}
