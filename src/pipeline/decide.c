/*
 * decide: the one place that writes ALLOW.  It does so only when no stage refused *and* every stage before
 * it said that it had no objection, so that a stage that is skipped by mistake denies.
 */
#include "pipeline/revoked.h"
#include "pipeline/stages.h"
#include "pipeline/threat.h"

enum { ALL_STAGES = 1u << SZ_STAGE_admit | 1u << SZ_STAGE_identify | 1u << SZ_STAGE_limit | 1u << SZ_STAGE_authorize };

static void record(struct sz_txn *txn, bool allow, enum sz_reason reason)
{
    const struct sz_conf_rate_limit *limit;
    (void)sz_limit_reason(txn, &limit);
    txn->decision = (struct sz_decision){
        .made = true,
        .allow = allow,
        .reason = reason,
        .route = txn->match.route,
        .token_layer = txn->token_layer,
        .checked = txn->checked,
        .authz_source = txn->authz_source,
        .limit = limit,
    };
}

/* It was let in, and then its credential was refused. */
static bool failed_to_identify(const struct sz_txn *txn, enum sz_reason reason)
{
    return (txn->passed & 1u << SZ_STAGE_admit) != 0 && (txn->passed & 1u << SZ_STAGE_identify) == 0 &&
           reason != SZ_REASON_missing_token && sz_reason_row(reason)->status == 401;
}

static enum sz_step deny(struct sz_txn *txn, enum sz_reason reason)
{
    if (failed_to_identify(txn, reason))
        sz_address_failed(txn);
    record(txn, false, reason);
    sz_threat_observe(txn, reason);
    sz_answer_problem(txn, reason, txn->detail);
    return sz_jump(txn, SZ_STAGE_commit);
}

/* What was revoked while the request waited for its limits or its relations. */
static enum sz_reason revoked_meanwhile(struct sz_txn *txn)
{
    return txn->resumed && txn->identity != NULL ? sz_revoked(txn) : SZ_REASON_allowed;
}

static enum sz_step allow(struct sz_txn *txn)
{
    enum sz_reason late = revoked_meanwhile(txn);
    if (late != SZ_REASON_allowed)
        return deny(txn, late);
    enum sz_reason reason = sz_forward_build(txn); /* a claim that must not become a header still denies */
    if (reason != SZ_REASON_allowed)
        return deny(txn, reason);
    const struct sz_conf_rate_limit *limit;
    record(txn, true, sz_limit_reason(txn, &limit));
    sz_limit_allowed(txn);
    if (txn->req.listener->mode == SZ_MODE_DECIDE)
        sz_answer_decide_allow(txn);
    else
        txn->proxy = true;
    return sz_jump(txn, SZ_STAGE_commit);
}

/* An api listener lets nothing through: what is recorded is what its relations said. */
void sz_txn_reply(struct sz_txn *txn, enum sz_reason reason, struct sz_slice json)
{
    record(txn, reason == SZ_REASON_allowed, reason);
    sz_answer_json(txn, json);
    sz_commit_note(txn);
}

enum sz_step sz_stage_decide(struct sz_txn *txn)
{
    if (txn->preflight && !txn->refused) {
        record(txn, true, SZ_REASON_allowed); /* answered here: nothing goes upstream */
        sz_cors_preflight(txn);
        return sz_jump(txn, SZ_STAGE_commit);
    }
    if (txn->refused)
        return deny(txn, txn->reason);
    if ((txn->passed & ALL_STAGES) != ALL_STAGES)
        return deny(txn, SZ_REASON_not_permitted);
    return allow(txn);
}
