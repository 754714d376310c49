/*
 * identify: from the credential to a validated identity.
 *
 *   find the token ▸ L1 ▸ (rejected before?) ▸ verify now or queued ▸ fill L1 ▸ judge
 *                                                │    ▲
 *                                   a key missing └────┘ fetched: waited for (identify_wait.c)
 *   an opaque token ▸ whose? ▸ L1 ▸ (rejected before?) ▸ L2, then its provider is asked (identify_ask.c) ▸ judge
 *
 * JWTs look into L2 only where the configuration says so.
 *
 * The cache holds the fact; what this route makes of it is judged on every request, hit or miss.
 */
#include "pipeline/identify.h"
#include "pipeline/credential.h"
#include "pipeline/identify_l2.h"
#include "pipeline/revoked.h"
#include "pipeline/stages.h"
#include "pipeline/threat.h"
#include "pipeline/verify_queue.h"
#include "subzero/scan.h"

static void count(struct sz_txn *txn, struct sz_series series)
{
    sz_count(txn->worker->index, series, 1);
}

/* ---- judging: the route's view of the fact, on hit and miss alike -------------------------------- */

static bool issuer_accepted(const struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    int index = sz_issuer_index(txn->snapshot->issuers, txn->identity->issuer);
    for (size_t i = 0; i < route->issuers_n; i++) {
        if (route->issuers[i] == index)
            return true;
    }
    return false;
}

static bool audience_accepted(const struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    const struct sz_conf_issuer *issuer =
        &txn->snapshot->conf->issuers[sz_issuer_index(txn->snapshot->issuers, txn->identity->issuer)];
    if (route->audiences.n == 0)
        return true; /* verification already required one of the issuer's */
    for (size_t i = 0; i < route->audiences.n; i++) {
        for (size_t j = 0; j < issuer->audiences.n && j < 8; j++) {
            if ((txn->identity->audiences >> j & 1) != 0 && sz_eq(route->audiences.v[i], issuer->audiences.v[j]))
                return true;
        }
    }
    return false;
}

/* A bound token counts only with the proof in this very request (RFC 8705 3.1). */
static bool sender_proven(const struct sz_txn *txn)
{
    const struct sz_identity *id = txn->identity;
    if ((id->flags & SZ_ID_SENDER_BOUND) == 0)
        return true;
    if (txn->snapshot->conf->issuers[sz_issuer_index(txn->snapshot->issuers, id->issuer)].ignore_cnf)
        return true;
    if ((id->flags & SZ_ID_CNF_OTHER) != 0 || (id->flags & SZ_ID_HAS_X5T) == 0 || txn->req.client_cert_sha256 == NULL)
        return false;
    return sz_secret_eq(sz_slice(id->x5t, 32), sz_slice(txn->req.client_cert_sha256, 32));
}

/* Who it was does not matter any more, or cannot be said. */
static enum sz_step refuse_known(struct sz_txn *txn, enum sz_reason reason)
{
    txn->identity = NULL;
    return sz_refuse(txn, reason);
}

static enum sz_step judge(struct sz_txn *txn)
{
    /* A hit takes less than the clock is worth reading for: it counts with the turn's time. */
    txn->identified = txn->token_layer == 1 || txn->token_layer == 2 ? sz_loop_now(txn->worker->loop)
                                                                     : sz_loop_tick(txn->worker->loop);
    enum sz_reason reason = sz_revoked(txn);
    if (SZ_UNLIKELY(reason != SZ_REASON_allowed))
        return refuse_known(txn, reason);
    if (!issuer_accepted(txn))
        return sz_refuse(txn, SZ_REASON_wrong_issuer);
    if (!audience_accepted(txn))
        return sz_refuse(txn, SZ_REASON_wrong_audience);
    if (!sender_proven(txn))
        return sz_refuse(txn, SZ_REASON_sender_constrained);
    enum sz_reason threat = sz_threat_identified(txn);
    return threat == SZ_REASON_allowed ? sz_pass(txn) : sz_refuse(txn, threat);
}

/* ---- verifying ------------------------------------------------------------------------------------- */

/*
 * What only new keys can heal is kept until they come: their generation ends it, or `again`, when they may be asked
 * for.  What the wall clock decides is not kept, too early and too late alike: a clock that is set right would have to
 * wait for the entry, and only the issuer can sign such tokens.
 */
static enum sz_step reject(struct sz_txn *txn, const struct sz_verified *verified, struct sz_mono again)
{
    struct sz_mono now = sz_loop_now(txn->worker->loop);
    struct sz_mono until = sz_earlier(again, sz_after(now, txn->snapshot->conf->cache.negative_ttl));
    bool time_decides = (verified->heals && verified->heals_at > 0) || verified->reason == SZ_REASON_expired_token;
    txn->identity = NULL;
    if (sz_reason_row(verified->reason)->status == 401 && !time_decides &&
        until.us > now.us) /* never "could not ask" */
        sz_reject_cache_put(txn->worker->gate->rejects, txn->fingerprint, sz_issuers_generation(txn->snapshot->issuers),
                            verified->reason, now, until);
    return sz_refuse(txn, verified->reason);
}

static enum sz_step missing_key(struct sz_txn *txn, const struct sz_verified *verified)
{
    const struct sz_issuers *issuers = txn->snapshot->issuers;
    struct sz_mono now = sz_loop_now(txn->worker->loop);
    struct sz_keys_look look;
    if (txn->keys_waited && verified->reason != SZ_REASON_identity_unavailable)
        sz_keys_absent(issuers, verified->issuer, verified->kid, now);
    sz_keys_look(issuers, verified->issuer, verified->kid, now, &look);
    if (look.answer == SZ_KEYS_ASK && !txn->keys_waited)
        return sz_wait_for_keys(txn, verified->issuer);
    if (look.answer == SZ_KEYS_FINAL)
        return reject(txn, verified, look.again);
    if (look.answer == SZ_KEYS_ASK && verified->reason != SZ_REASON_identity_unavailable)
        return reject(txn, verified, now); /* it was just looked for */
    return sz_identity_unavailable(txn, look.answer == SZ_KEYS_DOWN ? look.again : now);
}

/* A JWT of an issuer whose keys are not here.  What this route would refuse anyway is shown to nobody. */
static enum sz_step ask_if_accepted(struct sz_txn *txn, int issuer)
{
    const struct sz_conf_route *route = txn->match.route;
    for (size_t i = 0; i < route->issuers_n; i++) {
        if (route->issuers[i] == issuer)
            return sz_ask_about_token(txn, issuer);
    }
    txn->identity = NULL;
    return sz_refuse(txn, SZ_REASON_wrong_issuer);
}

/* Whether JWTs are shared through Redis: an option, see docs/performance.md for what it costs and saves. */
static bool asks_l2(const struct sz_txn *txn)
{
    return txn->worker->gate->l2 != NULL && txn->snapshot->conf->cache.l2.jwt && txn->worker->redis_cache != NULL &&
           !sz_revocation_deaf(txn->worker->gate->news);
}

/* Revoked facts are not kept: what revokes them may come to an end before they do. */
static enum sz_step keep(struct sz_txn *txn, struct sz_wall wall)
{
    const struct sz_gate *gate = txn->worker->gate;
    struct sz_mono now = sz_loop_now(txn->worker->loop);
    struct sz_span ttl = sz_fact_ttl(gate, &txn->snapshot->conf->cache, SZ_CREDENTIAL_JWT);
    struct sz_mono until = sz_fact_end(now, wall, ttl, txn->identity->exp);
    uint64_t sequence = sz_revocation_sequence(gate->news); /* before the look */
    txn->identity->revocation = 0;
    if (sz_identity_revoked(gate, txn->snapshot, txn->identity, 0, &(struct sz_revoked_names){.token = txn->token}))
        return refuse_known(txn, SZ_REASON_revoked_token);
    txn->identity->revocation = sequence;
    if (until.us > now.us)
        (void)sz_token_cache_put(gate->tokens, txn->fingerprint, txn->identity, now, until);
    if (txn->token_layer == 3 && asks_l2(txn))
        sz_l2_identity_put(gate, txn->snapshot, txn->worker->redis_cache, txn->worker->loop, &txn->l2.name,
                           txn->identity);
    return judge(txn);
}

static enum sz_step verify(struct sz_txn *txn)
{
    struct sz_verified verified;
    struct sz_wall wall = sz_loop_wall(txn->worker->loop);
    if (sz_jwt_verify(txn->snapshot->issuers, txn->token, wall, txn->identity, &verified) != 0)
        return sz_refuse(txn, SZ_REASON_identity_unavailable);
    if (verified.ask)
        return ask_if_accepted(txn, verified.issuer);
    if (verified.missing_key)
        return missing_key(txn, &verified);
    if (verified.reason != SZ_REASON_allowed)
        return reject(txn, &verified, SZ_NEVER);
    txn->token_layer = 3;
    return keep(txn, wall);
}

static enum sz_step verify_in_turn(struct sz_txn *txn)
{
    bool known = sz_token_cache_known(txn->worker->gate->tokens, txn->fingerprint, sz_loop_wall(txn->worker->loop));
    switch (sz_verify_queue_enter(txn->worker->verify, txn, known)) {
    case SZ_VERIFY_NOW:
        return verify(txn);
    case SZ_VERIFY_QUEUED:
        txn->identify_at = SZ_IDENTIFY_QUEUED;
        return SZ_STEP_PARKED;
    case SZ_VERIFY_FULL:
        count(txn, txn->worker->gate->series.shed);
        break;
    }
    txn->identity = NULL;
    return sz_refuse(txn, SZ_REASON_overloaded);
}

/* The keys that were waited for have come, or could not be asked for. */
static enum sz_step keys_came(struct sz_txn *txn)
{
    txn->keys_waited = true;
    if (txn->flight_status == 0)
        return verify_in_turn(txn);
    return sz_identity_unavailable(txn, sz_after(sz_loop_now(txn->worker->loop), SZ_SEC(1)));
}

/* The provider has been asked about the token, or could not be. */
static enum sz_step provider_said(struct sz_txn *txn)
{
    if (txn->flight_status == SZ_REASON_allowed)
        return judge(txn); /* which layer it came from is known: identify_ask.c */
    if (txn->flight_status < 0 || txn->flight_status == SZ_REASON_identity_unavailable)
        return sz_identity_unavailable(txn, sz_after(sz_loop_now(txn->worker->loop), txn->retry_after));
    txn->identity = NULL;
    return sz_refuse(txn, (enum sz_reason)txn->flight_status);
}

/* ---- looking up --------------------------------------------------------------------------------------- */

/* A cached fact is good while its issuer's settings and the key that verified it (if one did) stand. */
static bool still_stands(const struct sz_txn *txn)
{
    const struct sz_identity *id = txn->identity;
    return id->generation == sz_issuer_generation(txn->snapshot->issuers, id->issuer) &&
           (id->kind == SZ_CREDENTIAL_OPAQUE || sz_issuer_key_alive(txn->snapshot->issuers, id->issuer, id->key_id));
}

static bool cached(struct sz_txn *txn)
{
    struct sz_loop *loop = txn->worker->loop;
    count(txn, txn->worker->gate->series.token_requests);
    if (!sz_token_cache_get(txn->worker->gate->tokens, txn->fingerprint, sz_loop_now(loop), sz_loop_wall(loop),
                            txn->identity) ||
        !still_stands(txn))
        return false;
    count(txn, txn->worker->gate->series.token_hits);
    txn->token_layer = 1;
    return true;
}

/* Many ask with the same token: what the first of them in the queue found out is there for the others. */
static enum sz_step verify_after_waiting(struct sz_txn *txn)
{
    struct sz_loop *loop = txn->worker->loop;
    if (sz_token_cache_get(txn->worker->gate->tokens, txn->fingerprint, sz_loop_now(loop), sz_loop_wall(loop),
                           txn->identity) &&
        still_stands(txn)) {
        txn->token_layer = 1;
        return judge(txn);
    }
    sz_identity_init(txn->identity);
    return verify(txn);
}

static bool rejected_before(struct sz_txn *txn, enum sz_reason *reason)
{
    count(txn, txn->worker->gate->series.negative_requests);
    if (!sz_reject_cache_get(txn->worker->gate->rejects, txn->fingerprint,
                             sz_issuers_generation(txn->snapshot->issuers), sz_loop_now(txn->worker->loop), reason))
        return false;
    count(txn, txn->worker->gate->series.negative_hits);
    return true;
}

/*
 * From L1, or a rejection that still holds; *done: there was one, and the step is that of the request.  Only a token
 * that is not in L1 is scanned: what is there was verified, and hence scanned, when it came.
 */
static enum sz_step look_up(struct sz_txn *txn, bool *done)
{
    enum sz_reason reason;
    txn->identity = sz_pool_alloc(txn->pool, sizeof(*txn->identity));
    *done = true;
    if (cached(txn))
        return judge(txn);
    if (!sz_scan_b64token(txn->token))
        return refuse_known(txn, SZ_REASON_malformed_token);
    if (rejected_before(txn, &reason))
        return refuse_known(txn, reason);
    sz_identity_init(txn->identity);
    *done = false;
    return SZ_STEP_GO_ON;
}

static void on_l2(struct sz_l2_look *look, struct sz_slice plain)
{
    struct sz_txn *txn = SZ_CONTAINER(look, struct sz_txn, l2);
    bool hit = sz_l2_identity(txn->snapshot, plain, -1, sz_loop_wall(txn->worker->loop), txn->identity);
    txn->token_layer = hit ? 2 : 0;
    if (hit)
        count(txn, txn->worker->gate->series.l2_hits);
    else
        sz_identity_init(txn->identity);
    sz_txn_resume(txn);
}

static enum sz_step look_into_l2(struct sz_txn *txn)
{
    const struct sz_gate *gate = txn->worker->gate;
    sz_l2_identity_name(gate, txn->snapshot, -1, txn->token, &txn->l2.name);
    txn->l2.on_done = on_l2;
    count(txn, gate->series.l2_requests);
    if (sz_l2_get(gate->l2, txn->worker->redis_cache, txn->worker->loop, "identity", &txn->l2.name, txn->deadline,
                  &txn->l2) != 0)
        return verify_in_turn(txn);
    txn->identify_at = SZ_IDENTIFY_L2;
    return SZ_STEP_PARKED;
}

static enum sz_step l2_said(struct sz_txn *txn)
{
    return txn->token_layer == 2 ? keep(txn, sz_loop_wall(txn->worker->loop)) : verify_in_turn(txn);
}

static enum sz_step identify_jwt(struct sz_txn *txn)
{
    bool done;
    txn->credential = SZ_CREDENTIAL_JWT;
    txn->fingerprint = sz_fingerprint(SZ_CREDENTIAL_JWT, 0, txn->token); /* its issuer is inside */
    enum sz_step step = look_up(txn, &done);
    return done ? step : asks_l2(txn) ? look_into_l2(txn) : verify_in_turn(txn);
}

static enum sz_step identify_opaque(struct sz_txn *txn)
{
    bool done;
    int issuer = sz_opaque_issuer(txn);
    txn->credential = SZ_CREDENTIAL_OPAQUE;
    if (issuer < 0)
        return sz_refuse(txn, sz_scan_b64token(txn->token) ? SZ_REASON_invalid_token : SZ_REASON_malformed_token);
    txn->fingerprint =
        sz_fingerprint(SZ_CREDENTIAL_OPAQUE, sz_issuer_id(txn->snapshot->issuers, (size_t)issuer) + 1, txn->token);
    enum sz_step step = look_up(txn, &done);
    return done ? step : sz_ask_about_token(txn, issuer);
}

/* Where nobody is asked, whatever is no JWT is malformed, and no time is spent on the difference. */
static bool route_asks(const struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    for (size_t i = 0; i < route->issuers_n; i++) {
        if (sz_issuer_asks(&txn->snapshot->conf->issuers[route->issuers[i]]))
            return true;
    }
    return false;
}

enum sz_step sz_stage_identify(struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    switch (txn->identify_at) {
    case SZ_IDENTIFY_L2:
        return l2_said(txn);
    case SZ_IDENTIFY_QUEUED:
        return verify_after_waiting(txn);
    case SZ_IDENTIFY_KEYS:
        return keys_came(txn);
    case SZ_IDENTIFY_ASKED:
        return provider_said(txn);
    case SZ_IDENTIFY_BEGIN:
        break;
    }
    if (route->is_public)
        return sz_pass(txn);
    enum sz_reason reason = sz_credential_locate(&txn->req.headers, txn->target.query, route, &txn->token);
    if (reason != SZ_REASON_allowed)
        return sz_refuse(txn, reason);
    if (txn->token.n > SZ_TOKEN_MAX)
        return sz_refuse(txn, SZ_REASON_malformed_token);
    if (route_asks(txn) && sz_credential_kind(txn->token) == SZ_CREDENTIAL_OPAQUE)
        return identify_opaque(txn);
    return identify_jwt(txn);
}
