/* The stages: one function each, called by the driver in txn.c and by nothing else. */
#ifndef SZ_PIPELINE_STAGES_H
#define SZ_PIPELINE_STAGES_H

#include "pipeline/plan.h"
#include "pipeline/txn.h"

#define SZ_STAGE(name, help) enum sz_step sz_stage_##name(struct sz_txn *txn);
#include "subzero/tbl/stages.h"

/* Ends the way with a refusal: decide is next. */
static inline enum sz_step sz_refuse(struct sz_txn *txn, enum sz_reason reason)
{
    txn->refused = true;
    txn->reason = reason;
    txn->stage = SZ_STAGE_decide;
    return SZ_STEP_GO_ON;
}
/* This stage has no objection.  decide allows only what every stage before it has passed. */
static inline enum sz_step sz_pass(struct sz_txn *txn)
{
    txn->passed |= 1u << txn->stage;
    txn->stage++;
    return SZ_STEP_GO_ON;
}
static inline enum sz_step sz_jump(struct sz_txn *txn, enum sz_stage stage)
{
    txn->stage = stage;
    return SZ_STEP_GO_ON;
}
static inline struct sz_route_plan *sz_txn_plan(const struct sz_txn *txn)
{
    const struct sz_snapshot *snapshot = txn->snapshot;
    return txn->match.route == NULL ? &snapshot->plan->unmatched
                                    : &snapshot->plan->routes[txn->match.route - snapshot->conf->routes];
}

/* The issuer of the validated identity; NULL without one. */
static inline const struct sz_conf_issuer *sz_txn_issuer(const struct sz_txn *txn)
{
    const struct sz_snapshot *snapshot = txn->snapshot;
    int index = txn->identity == NULL ? -1 : sz_issuer_index(snapshot->issuers, txn->identity->issuer);
    return index < 0 ? NULL : &snapshot->conf->issuers[index];
}

/*
 * question.c: a check of the route as a question; anything but `allowed` is why it cannot be asked, and txn->detail may
 * say more.
 */
enum sz_reason sz_question(struct sz_txn *txn, const struct sz_conf_check *conf, struct sz_check *check);
/* admit.c: also when the pipeline never ran, so that every answer has an id. */
void sz_request_id(struct sz_txn *txn);
/* admit.c: who asks, the request's id, its deadline and its canonical target; anything but `allowed` refuses it. */
enum sz_reason sz_admit_target(struct sz_txn *txn, const char **why);
/* limit_address.c: what its address has left, before anything else is done; a refused credential counts more. */
enum sz_reason sz_address_share(struct sz_txn *txn);
void sz_address_failed(struct sz_txn *txn);
void sz_address_leave(struct sz_txn *txn);
/* limit.c: the client left; the store's answer is not waited for. */
void sz_limit_cancel(struct sz_txn *txn);
/* The request is let through: a new visitor's cookie goes with the answer. */
void sz_limit_allowed(struct sz_txn *txn);
/* Of a request without a limit `allowed`; of one that a limit let through without its store, why. */
enum sz_reason sz_limit_reason(const struct sz_txn *txn, const struct sz_conf_rate_limit **policy);
/* authorize.c: the client left; what is being asked is not waited for. */
void sz_authorize_cancel(struct sz_txn *txn);
/* commit.c: the client left; and a denial before the pipeline began. */
void sz_commit_cancel(struct sz_txn *txn);
void sz_commit_refusal(struct sz_txn *txn);
/* The same for what an api listener answered. */
void sz_commit_note(struct sz_txn *txn);
/*
 * forward.c: fills txn->forward (proxy listeners) or the identity headers of a decide answer; a claim that must not
 * become a header refuses (claim_mismatch).
 */
enum sz_reason sz_forward_build(struct sz_txn *txn);
/*
 * identity_headers.c: appends the headers that say who this is; with `all`, every one that any route can set, empty
 * where there is no value.
 */
enum sz_reason sz_identity_headers(struct sz_txn *txn, bool all, struct sz_headers *out);
/* assertion.c: signs X-Subzero-Assertion. */
enum sz_reason sz_assertion_add(struct sz_txn *txn, struct sz_headers *out);
/* answer.c */
void sz_answer_problem(struct sz_txn *txn, enum sz_reason reason, const char *detail);
/* With another status than the reason's own. */
void sz_answer_problem_as(struct sz_txn *txn, enum sz_reason reason, unsigned status, const char *detail);
void sz_answer_decide_allow(struct sz_txn *txn);
void sz_answer_json(struct sz_txn *txn, struct sz_slice json);
/* cors.c: Access-Control-* and Vary into txn->respond; the preflight's answer. */
void sz_cors_respond(struct sz_txn *txn, const struct sz_conf_cors *cors, struct sz_slice origin);
void sz_cors_preflight(struct sz_txn *txn);

#endif
