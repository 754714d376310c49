/*
 * Opaque tokens: whose they are is decided before anything is asked, for the token is a credential and goes to one
 * provider alone.  All who present the same one at the same time share one question (P4), which lives on its own and
 * fills the caches when it is answered.
 */
#include <stdlib.h>

#include "pipeline/identify.h"
#include "pipeline/revoked.h"

int sz_opaque_issuer(const struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    int plain = -1;
    for (size_t i = 0; i < route->issuers_n; i++) {
        const struct sz_conf_issuer *issuer = &txn->snapshot->conf->issuers[route->issuers[i]];
        if (!sz_issuer_asks(issuer))
            continue;
        if (issuer->token_prefix.p == NULL)
            plain = route->issuers[i];
        else if (sz_starts_with(txn->token, issuer->token_prefix))
            return route->issuers[i];
    }
    return plain;
}

/* ---- the question -------------------------------------------------------------------------------------- */

struct question { /* the work of one flight; on the loop that began it */
    struct sz_token_op op;
    struct sz_flight *lead;
    struct sz_snapshot *snapshot; /* counted */
    struct sz_gate *gate;
    struct sz_fingerprint fingerprint;
    uint64_t token_name; /* what revocations know it by */
    int issuer;
};

static void finish_unavailable(struct sz_flight **lead, struct sz_span retry)
{
    sz_flight_finish(lead, SZ_REASON_identity_unavailable, sz_slice(&retry, sizeof(retry)));
}

static void finish_identity(struct sz_flight **lead, const struct sz_identity *id)
{
    sz_flight_finish(lead, SZ_REASON_allowed, sz_slice(id, sizeof(*id) - sizeof(id->text) + id->text_n));
}

static void keep_identity(const struct question *q, const struct sz_identity *id)
{
    struct sz_mono now = sz_loop_now(q->op.loop);
    struct sz_span ttl = sz_fact_ttl(q->gate, &q->snapshot->conf->cache, SZ_CREDENTIAL_OPAQUE);
    struct sz_mono until = sz_fact_end(now, sz_loop_wall(q->op.loop), ttl, id->exp);
    if (until.us > now.us)
        (void)sz_token_cache_put(q->gate->tokens, q->fingerprint, id, now, until);
}

static void keep_rejection(const struct question *q, enum sz_reason reason)
{
    struct sz_mono now = sz_loop_now(q->op.loop);
    sz_reject_cache_put(q->gate->rejects, q->fingerprint, sz_issuers_generation(q->snapshot->issuers), reason, now,
                        sz_after(now, q->snapshot->conf->cache.negative_ttl));
}

/* The provider says yes; we may know better. */
static void finish_known(struct question *q, const struct sz_identity *said)
{
    struct sz_identity id;
    uint64_t sequence = sz_revocation_sequence(q->gate->news); /* before the look */
    if (sz_identity_revoked(q->gate, q->snapshot, said, 0, SZ_NONE, q->token_name)) {
        sz_flight_finish(&q->lead, SZ_REASON_revoked_token, SZ_NONE);
        return;
    }
    memcpy(&id, said, sz_identity_size(said));
    id.revocation = sequence;
    keep_identity(q, &id);
    finish_identity(&q->lead, &id);
}

static void on_answer(struct sz_token_op *op, const struct sz_token_answer *answer)
{
    struct question *q = SZ_CONTAINER(op, struct question, op);
    if (answer->reason == SZ_REASON_allowed) {
        finish_known(q, answer->identity);
    } else if (answer->reason == SZ_REASON_identity_unavailable) { /* never kept */
        struct sz_span retry = answer->retry_after;
        if (retry.us == 0)
            retry = sz_token_retry(q->snapshot->issuers, q->issuer, sz_loop_now(op->loop));
        finish_unavailable(&q->lead, retry);
    } else {
        if (!answer->heals)
            keep_rejection(q, answer->reason);
        sz_flight_finish(&q->lead, (int)answer->reason, SZ_NONE);
    }
    sz_snapshot_unref(q->snapshot);
    free(q);
}

static void ask(struct sz_txn *txn, int issuer, struct sz_flight *lead)
{
    struct sz_loop *loop = txn->worker->loop;
    struct sz_mono now = sz_loop_now(loop);
    struct question *q = sz_xcalloc(1, sizeof(*q));
    q->op.on_done = on_answer;
    q->lead = lead;
    q->snapshot = txn->snapshot;
    q->gate = txn->worker->gate;
    q->fingerprint = txn->fingerprint;
    q->token_name = sz_token_name(txn->token);
    q->issuer = issuer;
    sz_snapshot_ref(q->snapshot);
    struct sz_mono deadline = sz_after(now, txn->snapshot->conf->limits.request_timeout);
    if (sz_token_ask(txn->snapshot->issuers, issuer, txn->worker->http, loop, txn->token, deadline, &q->op) == 0)
        return;
    finish_unavailable(&q->lead, sz_token_retry(txn->snapshot->issuers, issuer, now));
    sz_snapshot_unref(q->snapshot);
    free(q);
}

/* ---- waiting for it ------------------------------------------------------------------------------------ */

static void on_flight(struct sz_flight_wait *wait, int status, struct sz_slice result)
{
    struct sz_txn *txn = SZ_CONTAINER(wait, struct sz_txn, flight);
    struct sz_span retry = {0};
    txn->flight_status = status;
    if (status == SZ_REASON_allowed)
        memcpy(txn->identity, result.p, result.n);
    else if (status == SZ_REASON_identity_unavailable && result.n == sizeof(retry))
        memcpy(&retry, result.p, sizeof(retry));
    txn->retry_after = retry;
    sz_txn_resume(txn);
}

/* The same token under the same settings of the same issuer. */
static struct sz_hash128 flight_key(const struct sz_txn *txn, int issuer)
{
    struct sz_hash128 key = txn->fingerprint.h;
    key.w[1] ^= sz_issuer_generation(txn->snapshot->issuers, sz_issuer_id(txn->snapshot->issuers, (size_t)issuer));
    return key;
}

/* A question may have been answered between this request's look into the cache and now. */
static bool answered_meanwhile(struct sz_txn *txn)
{
    struct sz_loop *loop = txn->worker->loop;
    if (sz_token_cache_get(txn->worker->gate->tokens, txn->fingerprint, sz_loop_now(loop), sz_loop_wall(loop),
                           txn->identity) &&
        txn->identity->generation == sz_issuer_generation(txn->snapshot->issuers, txn->identity->issuer))
        return true;
    sz_identity_init(txn->identity); /* a miss leaves anything in it */
    return false;
}

enum sz_step sz_ask_about_token(struct sz_txn *txn, int issuer)
{
    struct sz_flight *lead;
    txn->flight.on_done = on_flight;
    int rc = sz_flight_join(txn->worker->gate->token_flights, flight_key(txn, issuer), txn->worker->loop, txn->deadline,
                            &txn->flight, &lead);
    if (rc == SZ_FLIGHT_FULL) {
        txn->identity = NULL;
        return sz_refuse(txn, SZ_REASON_overloaded);
    }
    if (rc == SZ_FLIGHT_LEAD && answered_meanwhile(txn))
        finish_identity(&lead, txn->identity);
    else if (rc == SZ_FLIGHT_LEAD)
        ask(txn, issuer, lead);
    else
        sz_count(txn->worker->index, txn->worker->gate->series.coalesced_tokens, 1);
    txn->identify_at = SZ_IDENTIFY_ASKED;
    return SZ_STEP_PARKED;
}
