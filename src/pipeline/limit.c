/*
 * limit: the route's rate limits, one after the other, all of which must allow: what an earlier one refuses costs a
 * later one nothing.  When the store could not be asked, no further bucket is: the policy of that limit decides, and
 * a later one that says `closed` still refuses.
 */
#include "pipeline/limit.h"

static void count(struct sz_txn *txn, const struct sz_conf_rate_limit *policy, const struct sz_limit_answer *answer)
{
    struct sz_limit_plan *plan = &txn->snapshot->plan->limits[policy - txn->snapshot->conf->rate_limits];
    sz_count(txn->worker->index, sz_plan_limit_series(plan, answer->allow, answer->reason), 1);
}

static void on_done(struct sz_limit_op *op)
{
    struct sz_limit_run *run = SZ_CONTAINER(op, struct sz_limit_run, op);
    sz_txn_resume(run->txn);
}

/* Nobody is known here, and the policy is about people: the address stands for them, and then the visitor's cookie. */
static bool is_anonymous(const struct sz_txn *txn, const struct sz_conf_rate_limit *policy)
{
    return txn->identity == NULL && (policy->by == SZ_BY_TENANT || policy->by == SZ_BY_CLIENT);
}

static enum sz_limit_by kind_of(const struct sz_txn *txn, const struct sz_conf_rate_limit *policy)
{
    if (!is_anonymous(txn, policy))
        return policy->by;
    return txn->limits->second ? SZ_BY_COOKIE : SZ_BY_ADDRESS;
}

/* Asks limit `at`.  *parked: until on_done. */
static enum sz_reason ask(struct sz_txn *txn, bool *parked)
{
    struct sz_limit_run *run = txn->limits;
    const struct sz_conf_route *route = txn->match.route;
    struct sz_limit_question question = {.limit = &route->limits[run->at], .endpoint = route->id};
    question.kind = kind_of(txn, question.limit->policy);
    run->op = (struct sz_limit_op){.on_done = on_done};
    if (question.kind == SZ_BY_ADDRESS && txn->from.is_proxy) { /* everybody's address is nobody's */
        run->op.answer = (struct sz_limit_answer){.allow = true, .reason = SZ_REASON_allowed};
        return SZ_REASON_allowed;
    }
    enum sz_reason reason = sz_limit_key(txn, question.limit, question.kind, &question.key);
    if (reason != SZ_REASON_allowed)
        return reason;
    if (run->failure != SZ_REASON_allowed) { /* it has failed this request once: nobody waits for it twice */
        sz_limiter_without_store(txn->worker->gate->limiter, &question, sz_loop_now(txn->worker->loop), run->failure,
                                 run->open, &run->op.answer);
        return SZ_REASON_allowed;
    }
    run->under_way = sz_limiter_ask(txn->worker->gate->limiter, txn->worker->redis, txn->worker->loop, &question,
                                    txn->deadline, &run->op) == 0;
    *parked = run->under_way;
    return SZ_REASON_allowed;
}

/* A limit of those not asked any more that refuses without its store. */
static const struct sz_conf_rate_limit *closed_one(const struct sz_conf_route *route, size_t from)
{
    for (size_t i = from; i < route->limits_n; i++) {
        if (!route->limits[i].policy->fail_open && !route->limits[i].policy->dry_run)
            return route->limits[i].policy;
    }
    return NULL;
}

static enum sz_step finish(struct sz_txn *txn, enum sz_reason reason, const struct sz_conf_rate_limit *whose,
                           bool allow)
{
    txn->limits->reason = reason;
    txn->limits->whose = whose;
    sz_limit_headers(txn);
    if (allow && reason != SZ_REASON_allowed) /* without its store: said to the client, too */
        sz_headers_add(&txn->respond, txn->pool, SZ_S("x-subzero-reason"), sz_cstr(sz_reason_row(reason)->name));
    return allow ? sz_pass(txn) : sz_refuse(txn, reason);
}

/* It is not asked, since another one's question has just failed; that one was `open`, and this one is not. */
static enum sz_step refuse_unasked(struct sz_txn *txn, const struct sz_conf_rate_limit *policy,
                                   const struct sz_limit_answer *failure)
{
    struct sz_limit_answer answer = {.failed = true, .reason = SZ_REASON_fail_closed};
    if (failure->reason == SZ_REASON_circuit_open)
        answer.reason = SZ_REASON_circuit_open;
    count(txn, policy, &answer);
    return finish(txn, answer.reason, policy, false);
}

/* An anonymous request has two buckets.  True: the visitor's is still to be asked. */
static bool one_more(struct sz_txn *txn, const struct sz_conf_rate_limit *policy)
{
    struct sz_limit_run *run = txn->limits;
    struct sz_limit_answer *kept = &run->answers[run->at];
    bool two = txn->snapshot->conf->anonymous.on && is_anonymous(txn, policy);
    if (two && !run->second && run->op.answer.allow && !run->op.answer.failed) {
        *kept = run->op.answer;
        run->second = true;
        return true;
    }
    if (run->second && run->op.answer.allow && run->op.answer.seen && kept->seen &&
        kept->view.left < run->op.answer.view.left)
        run->op.answer.view = kept->view; /* the client is told of the one that has less */
    run->second = false;
    return false;
}

/* Takes the answer of limit `at`.  True: it decides them all, and *step is the request's. */
static bool weigh(struct sz_txn *txn, enum sz_step *step)
{
    struct sz_limit_run *run = txn->limits;
    const struct sz_conf_route *route = txn->match.route;
    const struct sz_conf_rate_limit *policy = route->limits[run->at].policy, *closed;
    const struct sz_limit_answer *answer = &run->op.answer;
    run->answers[run->at] = *answer;
    count(txn, policy, answer);
    if (policy->dry_run) {
        if (answer->failed) {
            run->failure = answer->failure;
            run->open = answer->view.retry;
        }
        return false;
    }
    if (!answer->allow) {
        txn->retry_after = answer->view.retry;
        *step = finish(txn, answer->reason, policy, false);
        return true;
    }
    if (!answer->failed)
        return false;
    txn->retry_after = answer->view.retry;
    closed = closed_one(route, run->at + 1);
    *step = closed != NULL ? refuse_unasked(txn, closed, answer) : finish(txn, answer->reason, policy, true);
    return true;
}

static struct sz_limit_run *begin(struct sz_txn *txn)
{
    struct sz_limit_run *run = sz_pool_zalloc(txn->pool, sizeof(*run));
    run->txn = txn;
    run->reason = run->failure = SZ_REASON_allowed;
    run->answers = sz_pool_zalloc(txn->pool, txn->match.route->limits_n * sizeof(*run->answers));
    return run;
}

enum sz_step sz_stage_limit(struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    enum sz_step step;
    if (route->limits_n == 0)
        return sz_pass(txn);
    if (txn->limits == NULL)
        txn->limits = begin(txn);
    for (struct sz_limit_run *run = txn->limits; run->at < route->limits_n;) {
        bool answered = run->under_way, parked = false;
        run->under_way = false;
        enum sz_reason reason = answered ? SZ_REASON_allowed : ask(txn, &parked);
        if (reason != SZ_REASON_allowed)
            return sz_refuse(txn, reason);
        if (parked)
            return SZ_STEP_PARKED;
        if (one_more(txn, route->limits[run->at].policy))
            continue;
        if (weigh(txn, &step))
            return step;
        run->at++;
    }
    return finish(txn, SZ_REASON_allowed, NULL, true);
}

enum sz_reason sz_limit_reason(const struct sz_txn *txn, const struct sz_conf_rate_limit **policy)
{
    *policy = txn->limits != NULL ? txn->limits->whose : NULL;
    return txn->limits != NULL ? txn->limits->reason : SZ_REASON_allowed;
}

void sz_limit_cancel(struct sz_txn *txn)
{
    if (txn->limits != NULL && txn->limits->under_way)
        sz_limiter_cancel(&txn->limits->op);
}
