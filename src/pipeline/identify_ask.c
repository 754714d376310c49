/*
 * Opaque tokens: whose they are is decided before anything is asked, for the token is a credential and goes to one
 * provider alone.  All who present the same one at the same time share one question (P4), which lives on its own and
 * fills the caches when it is answered.
 */
#include <stdlib.h>

#include "pipeline/identify.h"
#include "pipeline/identify_l2.h"
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

/* ---- the question --------------------------------------------------------------------------------------
 *
 *   begin ▸ L2 ▸ there: done
 *            │▲
 *            ▼└─ another instance asks: wait a little ─┐
 *           lease (where configured) ──────────────────┘
 *            ▼
 *           provider ▸ L1, and L2 behind the answer
 */
enum { FROM_L2 = SZ_REASON_COUNT }; /* status of a flight, beside the reasons: allowed, and found in L2 */

#define POLL SZ_MS(20)

struct question { /* the work of one flight; on the loop that began it */
    struct sz_token_op op;
    struct sz_flight *lead;
    struct sz_snapshot *snapshot; /* counted */
    struct sz_gate *gate;
    struct sz_worker *worker;
    struct sz_fingerprint fingerprint;
    uint64_t token_name; /* what revocations know it by */
    int issuer;
    struct sz_mono deadline, patience; /* until then another instance's answer is waited for */
    struct sz_l2_name name;
    struct sz_l2_look look;
    struct sz_l2_lease lease;
    struct sz_timer poll;
    struct question *next, **prev; /* of those that poll */
    size_t token_n;
    char token[]; /* the request may go before the provider is asked */
};

/* Redis is there, and its client not on its way out. */
static bool shares(const struct question *q)
{
    return q->gate->l2 != NULL && q->worker->redis_cache != NULL && !sz_revocation_deaf(q->gate->news);
}

static void end(struct question *q)
{
    q->lease.held &= shares(q);
    sz_l2_lease_drop(&q->lease);
    sz_snapshot_unref(q->snapshot);
    sz_wipe(q->token, q->token_n);
    free(q);
}

static void finish_unavailable(struct question *q, struct sz_span retry)
{
    if (retry.us == 0)
        retry = sz_token_retry(q->snapshot->issuers, q->issuer, sz_loop_now(q->worker->loop));
    sz_flight_finish(&q->lead, SZ_REASON_identity_unavailable, sz_slice(&retry, sizeof(retry)));
}

static void finish_identity(struct sz_flight **lead, int status, const struct sz_identity *id)
{
    sz_flight_finish(lead, status, sz_slice(id, sizeof(*id) - sizeof(id->text) + id->text_n));
}

static void keep_identity(const struct question *q, const struct sz_identity *id)
{
    struct sz_mono now = sz_loop_now(q->worker->loop);
    struct sz_span ttl = sz_fact_ttl(q->gate, &q->snapshot->conf->cache, SZ_CREDENTIAL_OPAQUE);
    struct sz_mono until = sz_fact_end(now, sz_loop_wall(q->worker->loop), ttl, id->exp);
    if (until.us > now.us)
        (void)sz_token_cache_put(q->gate->tokens, q->fingerprint, id, now, until);
}

static void keep_rejection(const struct question *q, enum sz_reason reason)
{
    struct sz_mono now = sz_loop_now(q->worker->loop);
    sz_reject_cache_put(q->gate->rejects, q->fingerprint, sz_issuers_generation(q->snapshot->issuers), reason, now,
                        sz_after(now, q->snapshot->conf->cache.negative_ttl));
}

/* The provider says yes, or did when L2 was told; we may know better. */
static void finish_known(struct question *q, int status, const struct sz_identity *said)
{
    struct sz_identity id;
    uint64_t sequence = sz_revocation_sequence(q->gate->news); /* before the look */
    if (sz_identity_revoked(q->gate, q->snapshot, said, 0, &(struct sz_revoked_names){.token_name = q->token_name})) {
        sz_flight_finish(&q->lead, SZ_REASON_revoked_token, SZ_NONE);
        return;
    }
    memcpy(&id, said, sz_identity_size(said));
    id.revocation = sequence;
    keep_identity(q, &id);
    if (status != FROM_L2 && shares(q))
        sz_l2_identity_put(q->gate, q->snapshot, q->worker->redis_cache, q->worker->loop, &q->name, &id);
    finish_identity(&q->lead, status, &id);
}

static void on_answer(struct sz_token_op *op, const struct sz_token_answer *answer)
{
    struct question *q = SZ_CONTAINER(op, struct question, op);
    if (answer->reason == SZ_REASON_allowed) {
        finish_known(q, SZ_REASON_allowed, answer->identity);
    } else if (answer->reason == SZ_REASON_identity_unavailable) { /* never kept */
        finish_unavailable(q, answer->retry_after);
    } else {
        if (!answer->heals)
            keep_rejection(q, answer->reason);
        sz_flight_finish(&q->lead, (int)answer->reason, SZ_NONE);
    }
    end(q);
}

static void ask_provider(struct question *q)
{
    q->op.on_done = on_answer;
    if (sz_token_ask(q->snapshot->issuers, q->issuer, q->worker->http, q->worker->loop, sz_slice(q->token, q->token_n),
                     q->deadline, &q->op) == 0)
        return;
    finish_unavailable(q, SZ_US(0));
    end(q);
}

static void look(struct question *q);

static void stop_polling(struct question *q)
{
    *q->prev = q->next;
    if (q->next != NULL)
        q->next->prev = q->prev;
    q->prev = NULL;
    sz_timer_cancel(q->worker->loop, &q->poll);
}

static void on_poll(struct sz_timer *timer)
{
    struct question *q = SZ_CONTAINER(timer, struct question, poll);
    stop_polling(q);
    look(q);
}

static void start_polling(struct question *q, struct sz_mono next)
{
    q->next = q->worker->polling;
    if (q->next != NULL)
        q->next->prev = &q->next;
    q->worker->polling = q;
    q->prev = &q->worker->polling;
    q->poll.on_fire = on_poll;
    sz_timer_start(q->worker->loop, &q->poll, next);
}

void sz_ask_abandon(struct sz_worker *worker)
{
    while (worker->polling != NULL) {
        struct question *q = worker->polling;
        stop_polling(q);
        finish_unavailable(q, SZ_SEC(1));
        end(q);
    }
}

static void on_lease(struct sz_l2_lease *lease, bool taken)
{
    struct question *q = SZ_CONTAINER(lease, struct question, lease);
    struct sz_mono next = sz_after(sz_loop_now(q->worker->loop), POLL);
    if (taken) {
        ask_provider(q);
    } else if (next.us < q->patience.us) {
        start_polling(q, next);
    } else {
        ask_provider(q); /* a lease that never ends is none: whoever can write to Redis must lock nobody out */
    }
}

static void not_there(struct question *q)
{
    q->lease.on_done = on_lease;
    if (shares(q) && sz_l2_lease_time(q->gate->l2).us > 0)
        sz_l2_lease_take(q->gate->l2, q->worker->redis_cache, q->worker->loop, &q->name, q->deadline, &q->lease);
    else
        ask_provider(q);
}

static void on_look(struct sz_l2_look *l, struct sz_slice plain)
{
    struct question *q = SZ_CONTAINER(l, struct question, look);
    struct sz_identity id;
    if (!sz_l2_identity(q->snapshot, plain, q->issuer, sz_loop_wall(q->worker->loop), &id)) {
        not_there(q);
        return;
    }
    sz_count(q->worker->index, q->gate->series.l2_hits, 1);
    finish_known(q, FROM_L2, &id);
    end(q);
}

static void look(struct question *q)
{
    q->look.on_done = on_look;
    sz_count(q->worker->index, q->gate->series.l2_requests, 1);
    if (!shares(q) || sz_l2_get(q->gate->l2, q->worker->redis_cache, q->worker->loop, "identity", &q->name, q->deadline,
                                &q->look) != 0)
        ask_provider(q); /* nobody to share with */
}

static void ask(struct sz_txn *txn, int issuer, struct sz_flight *lead)
{
    struct question *q = sz_xcalloc(1, sizeof(*q) + txn->token.n);
    q->lead = lead;
    q->snapshot = txn->snapshot;
    q->worker = txn->worker;
    q->gate = txn->worker->gate;
    q->fingerprint = txn->fingerprint;
    q->token_name = sz_token_name(txn->token);
    q->issuer = issuer;
    q->deadline = sz_after(sz_loop_now(txn->worker->loop), txn->snapshot->conf->limits.request_timeout);
    q->patience = sz_after(sz_loop_now(txn->worker->loop), SZ_US(txn->snapshot->conf->limits.request_timeout.us / 2));
    q->token_n = txn->token.n;
    memcpy(q->token, txn->token.p, txn->token.n);
    sz_snapshot_ref(q->snapshot);
    if (!shares(q)) {
        ask_provider(q);
        return;
    }
    sz_l2_identity_name(q->gate, q->snapshot, issuer, txn->token, &q->name);
    look(q);
}

/* ---- waiting for it ------------------------------------------------------------------------------------ */

static void on_flight(struct sz_flight_wait *wait, int status, struct sz_slice result)
{
    struct sz_txn *txn = SZ_CONTAINER(wait, struct sz_txn, flight);
    struct sz_span retry = {0};
    txn->token_layer = status == FROM_L2 ? 2 : 3;
    txn->flight_status = status == FROM_L2 ? SZ_REASON_allowed : status;
    if (txn->flight_status == SZ_REASON_allowed)
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
        finish_identity(&lead, SZ_REASON_allowed, txn->identity);
    else if (rc == SZ_FLIGHT_LEAD)
        ask(txn, issuer, lead);
    else
        sz_count(txn->worker->index, txn->worker->gate->series.coalesced_tokens, 1);
    txn->identify_at = SZ_IDENTIFY_ASKED;
    return SZ_STEP_PARKED;
}
