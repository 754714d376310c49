/*
 * commit: the audit record is handed over, and where the journal is required an allowed request waits until its record
 * is committed.  What cannot be recorded is not allowed: 503 audit_unavailable, also when the request's deadline comes
 * first.  A denial waits for nothing.
 */
#include "pipeline/stages.h"
#include "pipeline/trace.h"

/* ---- the record ------------------------------------------------------------------------------------------ */

static struct sz_slice source_name(enum sz_authz_source source)
{
    switch (source) {
    case SZ_AUTHZ_FROM_ENGINE:
        return SZ_S("engine");
    case SZ_AUTHZ_FROM_OPENFGA:
        return SZ_S("openfga");
    case SZ_AUTHZ_FROM_REPLICA:
        return SZ_S("replica");
    }
    return SZ_NONE;
}

static void fill_identity(const struct sz_txn *txn, struct sz_audit_event *e)
{
    const struct sz_identity *id = txn->identity;
    const struct sz_conf_issuer *issuer = sz_txn_issuer(txn);
    e->text[SZ_AUDIT_CLIENT] = txn->caller;
    if (issuer == NULL)
        return;
    e->authenticated = true;
    e->text[SZ_AUDIT_SUBJECT] = sz_identity_text(id, id->subject);
    e->text[SZ_AUDIT_CLIENT] = sz_identity_text(id, id->client);
    e->text[SZ_AUDIT_TENANT] = sz_identity_text(id, id->tenant);
    e->text[SZ_AUDIT_ISSUER] = issuer->name;
}

static void fill_times(const struct sz_txn *txn, struct sz_audit_event *e)
{
    struct sz_mono known = txn->identified.us != 0 ? txn->identified : txn->started;
    if (txn->identified.us != 0)
        e->auth = sz_between(txn->started, txn->identified);
    if (txn->answered.us != 0)
        e->authz = sz_between(known, txn->answered);
    e->total = sz_between(txn->started, sz_loop_now(txn->worker->loop));
}

static void fill(const struct sz_txn *txn, struct sz_audit_event *e)
{
    const struct sz_decision *d = &txn->decision;
    *e = (struct sz_audit_event){
        .kind = SZ_AUDIT_DECISION,
        .time = sz_loop_wall(txn->worker->loop),
        .allow = d->allow,
        .reason = d->reason,
        .status = d->allow ? 200 : sz_reason_row(d->reason)->status,
        .config = txn->snapshot->conf->version,
        .has_address = true,
        .address = txn->from.client,
    };
    e->text[SZ_AUDIT_REQUEST_ID] = txn->request_id;
    e->text[SZ_AUDIT_TRACE_ID] = sz_trace_id(txn);
    e->text[SZ_AUDIT_ROUTE] = d->route != NULL ? d->route->id : SZ_S("none");
    e->text[SZ_AUDIT_METHOD] = txn->req.method;
    if (txn->snapshot->conf->audit.paths)
        e->text[SZ_AUDIT_PATH] = txn->target.path;
    if (d->checked) {
        e->text[SZ_AUDIT_RELATION] = txn->relation;
        e->text[SZ_AUDIT_SOURCE] = source_name(d->authz_source);
    }
    fill_identity(txn, e);
    fill_times(txn, e);
}

static bool wanted(const struct sz_txn *txn)
{
    uint32_t sample = txn->snapshot->conf->audit.sample;
    if (txn->worker->gate->audit == NULL)
        return false;
    if (!txn->decision.allow || sz_audit_required(txn->worker->gate->audit))
        return true;
    return sample == 1 || (sample != 0 && txn->worker->request_seq % sample == 0);
}

void sz_commit_refusal(struct sz_txn *txn)
{
    struct sz_audit_event event;
    if (txn->worker->gate->audit == NULL)
        return;
    fill(txn, &event);
    if (event.address.b[0] == 0 && event.address.b[15] == 0)
        event.address = txn->req.peer; /* refused before anybody looked whom a proxy speaks for */
    (void)sz_audit_note(txn->worker->gate->audit, &event);
}

/* An api listener answers a question and lets nothing through: its record is noted, and not waited for. */
void sz_commit_note(struct sz_txn *txn)
{
    struct sz_audit_event event;
    if (!wanted(txn))
        return;
    fill(txn, &event);
    (void)sz_audit_note(txn->worker->gate->audit, &event);
}

/* ---- waiting for it --------------------------------------------------------------------------------------- */

static void on_committed(struct sz_audit_wait *wait, bool committed)
{
    struct sz_txn *txn = SZ_CONTAINER(wait, struct sz_txn, audit_wait);
    sz_timer_cancel(txn->worker->loop, &txn->audit_end);
    txn->audit_committed = committed;
    sz_txn_resume(txn);
}

static void on_deadline(struct sz_timer *timer)
{
    struct sz_txn *txn = SZ_CONTAINER(timer, struct sz_txn, audit_end);
    sz_audit_wait_cancel(&txn->audit_wait);
    txn->audit_committed = false;
    sz_txn_resume(txn);
}

void sz_commit_cancel(struct sz_txn *txn)
{
    sz_audit_wait_cancel(&txn->audit_wait);
    sz_timer_cancel(txn->worker->loop, &txn->audit_end);
}

static enum sz_step refuse(struct sz_txn *txn)
{
    txn->decision.allow = false;
    txn->decision.reason = SZ_REASON_audit_unavailable;
    txn->proxy = false;
    txn->answer = (struct sz_answer){0};
    sz_answer_problem(txn, SZ_REASON_audit_unavailable, NULL);
    return sz_jump(txn, SZ_STAGE_done);
}

static enum sz_step hand_over_and_wait(struct sz_txn *txn, const struct sz_audit_event *event)
{
    txn->audit_asked = true;
    txn->audit_wait.on_done = on_committed;
    int rc = sz_audit_commit(txn->worker->gate->audit, txn->worker->audit_port, event, &txn->audit_wait);
    if (rc < 0)
        return refuse(txn);
    if (rc != SZ_AUDIT_PENDING)
        return sz_jump(txn, SZ_STAGE_done);
    txn->audit_end.on_fire = on_deadline;
    sz_timer_start(txn->worker->loop, &txn->audit_end, txn->deadline);
    return SZ_STEP_PARKED;
}

enum sz_step sz_stage_commit(struct sz_txn *txn)
{
    struct sz_audit *audit = txn->worker->gate->audit;
    struct sz_audit_event event;
    if (txn->audit_asked)
        return txn->audit_committed ? sz_jump(txn, SZ_STAGE_done) : refuse(txn);
    if (!wanted(txn))
        return sz_jump(txn, SZ_STAGE_done);
    fill(txn, &event);
    if (event.allow && sz_audit_required(audit))
        return hand_over_and_wait(txn, &event);
    (void)sz_audit_note(audit, &event); /* a full queue counts its own losses */
    return sz_jump(txn, SZ_STAGE_done);
}

enum sz_step sz_stage_done(struct sz_txn *txn)
{
    (void)txn;
    return SZ_STEP_FINISHED;
}
