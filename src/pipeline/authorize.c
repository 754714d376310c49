/*
 * authorize: the route's scope and claim rules on the facts, then its relation checks, one after the other.
 * "No" and "could not ask" stay apart: `all` is denied by the first no, `any` allowed by the first yes; where that
 * does not decide, a check that could not be asked makes it 503, never a yes and never a no.
 */
#include <stdio.h>

#include "pipeline/stages.h"

/* ---- rules on the facts -------------------------------------------------------------------------- */

static bool scopes_suffice(const struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    const uint64_t *have = txn->identity->scopes;
    bool any = !route->has_any_scope;
    for (size_t i = 0; i < SZ_COUNT(route->scopes); i++) {
        if ((route->scopes[i] & ~have[i]) != 0)
            return false;
        any |= (route->any_scope[i] & have[i]) != 0;
    }
    return any;
}

static struct sz_claim builtin_claim(const struct sz_txn *txn, unsigned slot)
{
    const struct sz_identity *id = txn->identity;
    struct sz_slice text = slot == SZ_SLOT_SUB      ? sz_identity_text(id, id->subject)
                           : slot == SZ_SLOT_CLIENT ? sz_identity_text(id, id->client)
                           : slot == SZ_SLOT_TENANT ? sz_identity_text(id, id->tenant)
                                                    : sz_txn_issuer(txn)->issuer;
    return (struct sz_claim){text.p == NULL ? SZ_CLAIM_ABSENT : SZ_CLAIM_STRING, text, 0};
}

static bool claim_matches(const struct sz_txn *txn, const struct sz_conf_claim_rule *rule)
{
    struct sz_claim claim =
        rule->slot >= SZ_SLOT_SUB ? builtin_claim(txn, rule->slot) : sz_identity_claim(txn->identity, rule->slot);
    struct sz_slice item, rest = claim.text;
    char digits[24];
    switch (claim.type) {
    case SZ_CLAIM_STRING:
        return sz_strings_have(&rule->values, claim.text);
    case SZ_CLAIM_INTEGER:
        return sz_strings_have(&rule->values, sz_slice(digits, (size_t)snprintf(digits, sizeof(digits), "%lld",
                                                                                (long long)claim.integer)));
    case SZ_CLAIM_BOOL:
        return sz_strings_have(&rule->values, claim.integer != 0 ? SZ_S("true") : SZ_S("false"));
    case SZ_CLAIM_STRINGS:
        while (sz_claim_next(&rest, &item)) {
            if (sz_strings_have(&rule->values, item))
                return true;
        }
        return false;
    case SZ_CLAIM_ABSENT:
    case SZ_CLAIM_OTHER:
        return false;
    }
    return false;
}

static enum sz_reason check_rules(const struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    if (!scopes_suffice(txn))
        return SZ_REASON_insufficient_scope;
    for (size_t i = 0; i < route->claims_n; i++) {
        if (!claim_matches(txn, &route->claims[i]))
            return SZ_REASON_claim_mismatch;
    }
    return SZ_REASON_allowed;
}

/* ---- relation checks -------------------------------------------------------------------------------- */

/*
 * When one check has to be waited for, those behind it are asked as well: a remote store then gets all of a request's
 * checks in one call, and the request waits once.
 */
struct sz_ahead {
    struct sz_authz_op op;
    struct sz_txn *txn;
    struct sz_tuple_key key; /* for the journal */
    enum { NOT_ASKED, ASKED, ANSWERED } state;
};

static void on_done(struct sz_authz_op *op)
{
    struct sz_txn *txn = SZ_CONTAINER(op, struct sz_txn, op);
    txn->op_started = false;
    txn->op_answered = true;
    sz_txn_resume(txn);
}

static void on_ahead(struct sz_authz_op *op)
{
    struct sz_ahead *ahead = SZ_CONTAINER(op, struct sz_ahead, op);
    struct sz_txn *txn = ahead->txn;
    ahead->state = ANSWERED;
    if (&txn->ahead[txn->check_at] != ahead || txn->op_started)
        return; /* its turn will come */
    txn->op.answer = op->answer;
    txn->op_answered = true;
    sz_txn_resume(txn);
}

static void cancel_ahead(struct sz_txn *txn)
{
    struct sz_authz *authz = txn->snapshot->authz;
    for (size_t i = 0; txn->ahead != NULL && i < txn->match.route->checks_n; i++) {
        if (txn->ahead[i].state == ASKED)
            authz->cancel(authz, &txn->ahead[i].op);
        txn->ahead[i].state = NOT_ASKED;
    }
}

void sz_authorize_cancel(struct sz_txn *txn)
{
    cancel_ahead(txn);
    if (!txn->op_started)
        return;
    txn->op_started = false;
    txn->snapshot->authz->cancel(txn->snapshot->authz, &txn->op);
}

static enum sz_reason reason_of(const struct sz_authz_answer *answer)
{
    switch (answer->outcome) {
    case SZ_AUTHZ_ALLOWED:
        return SZ_REASON_allowed;
    case SZ_AUTHZ_DENIED:
        return SZ_REASON_not_permitted;
    case SZ_AUTHZ_ERROR:
        return SZ_REASON_authz_error;
    case SZ_AUTHZ_UNAVAILABLE:
        break;
    }
    return SZ_REASON_authz_unavailable;
}

/* For the journal alone.  With pseudonyms the user stays out of it. */
static void remember(struct sz_txn *txn, const struct sz_tuple_key *key)
{
    if (txn->worker->gate->audit == NULL)
        return;
    txn->relation = sz_pool_printf(txn->pool, "%.*s#%.*s@%.*s", SZ_FMT(key->object), SZ_FMT(key->relation),
                                   SZ_FMT(txn->snapshot->conf->audit.pseudonyms ? SZ_S("*") : key->user));
}

void sz_txn_asked(struct sz_txn *txn, const struct sz_tuple_key *key, enum sz_authz_source source)
{
    txn->checked = true;
    txn->authz_source = source;
    remember(txn, key);
}

static void ask_ahead(struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    struct sz_check check;
    if (txn->check_at + 1 == route->checks_n)
        return;
    if (txn->ahead == NULL)
        txn->ahead = sz_pool_zalloc(txn->pool, route->checks_n * sizeof(*txn->ahead));
    for (size_t i = txn->check_at + 1; i < route->checks_n; i++) {
        struct sz_ahead *ahead = &txn->ahead[i];
        const char *detail = txn->detail;
        bool askable = ahead->state == NOT_ASKED && sz_question(txn, &route->checks[i], &check) == SZ_REASON_allowed;
        txn->detail = detail;
        if (!askable)
            continue; /* what is wrong with the question is said when its turn comes */
        ahead->op = (struct sz_authz_op){.on_done = on_ahead, .http = txn->worker->http};
        ahead->txn = txn;
        ahead->key = check.key;
        int rc = sz_authz_start(txn->snapshot->authz, txn->worker->loop, &check, txn->deadline, &ahead->op);
        ahead->state = rc < 0 ? NOT_ASKED : rc == 0 ? ASKED : ANSWERED;
    }
}

/* check_at was asked before its turn.  False: parked until on_ahead. */
static bool take_ahead(struct sz_txn *txn, enum sz_reason *reason)
{
    struct sz_ahead *ahead = &txn->ahead[txn->check_at];
    remember(txn, &ahead->key);
    if (ahead->state == ASKED)
        return false;
    txn->op.answer = ahead->op.answer;
    *reason = reason_of(&txn->op.answer);
    return true;
}

/* Asks check_at.  False: parked until on_done. */
static bool ask(struct sz_txn *txn, enum sz_reason *reason)
{
    struct sz_check check;
    if (txn->ahead != NULL && txn->ahead[txn->check_at].state != NOT_ASKED)
        return take_ahead(txn, reason);
    *reason = sz_question(txn, &txn->match.route->checks[txn->check_at], &check);
    if (*reason != SZ_REASON_allowed)
        return true;
    txn->checked = true;
    remember(txn, &check.key);
    txn->op = (struct sz_authz_op){.on_done = on_done, .http = txn->worker->http};
    int rc = sz_authz_start(txn->snapshot->authz, txn->worker->loop, &check, txn->deadline, &txn->op);
    txn->op_started = rc == 0;
    if (rc == 0) {
        ask_ahead(txn);
        return false;
    }
    *reason = rc > 0 ? reason_of(&txn->op.answer) : SZ_REASON_authz_unavailable;
    return true;
}

/* One answer more: true when the outcome of all checks is known, in *verdict. */
static bool weigh(struct sz_txn *txn, enum sz_reason reason, enum sz_reason *verdict)
{
    const struct sz_conf_route *route = txn->match.route;
    bool any = route->authorize == SZ_AUTHORIZE_ANY;
    txn->authz_source = txn->op.answer.source;
    *verdict = reason;
    if (reason == SZ_REASON_bad_request || reason == (any ? SZ_REASON_allowed : SZ_REASON_not_permitted))
        return true;
    if (reason == SZ_REASON_authz_error || reason == SZ_REASON_authz_unavailable) {
        txn->check_fault = reason;
        txn->retry_after = txn->op.answer.retry_after;
    }
    if (++txn->check_at < route->checks_n)
        return false;
    *verdict = txn->check_fault != SZ_REASON_allowed ? txn->check_fault
               : any                                 ? SZ_REASON_not_permitted
                                                     : SZ_REASON_allowed;
    return true;
}

static enum sz_step run_checks(struct sz_txn *txn)
{
    enum sz_reason reason = SZ_REASON_allowed, verdict;
    do {
        if (txn->op_answered)
            reason = reason_of(&txn->op.answer);
        else if (!ask(txn, &reason))
            return SZ_STEP_PARKED;
        txn->op_answered = false;
    } while (!weigh(txn, reason, &verdict));
    cancel_ahead(txn);
    txn->answered = sz_loop_tick(txn->worker->loop);
    return verdict == SZ_REASON_allowed ? sz_pass(txn) : sz_refuse(txn, verdict);
}

enum sz_step sz_stage_authorize(struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    if (txn->op_answered)
        return run_checks(txn);
    if (!route->is_public) {
        enum sz_reason reason = check_rules(txn);
        if (reason != SZ_REASON_allowed)
            return sz_refuse(txn, reason);
    }
    return route->authorize == SZ_AUTHORIZE_NONE ? sz_pass(txn) : run_checks(txn);
}
