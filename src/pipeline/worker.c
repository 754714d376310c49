/*
 * The worker: what one loop thread needs to judge requests.  A snapshot is counted twice: atomically
 * once per thread, and without atomics per request of that thread, so that the hot path never
 * touches a counter that another core writes.
 */
#include "pipeline/worker.h"

#include <errno.h>
#include <stdlib.h>

#include "pipeline/decision_l2.h"
#include "pipeline/identify.h"
#include "pipeline/verify_queue.h"
#include "subzero/decision.h"

#define THREAT_CAPACITY 65536 /* where the configuration has no `threat` yet; a reload may bring it */

static struct sz_local_snapshot *hold(struct sz_snapshot *snapshot)
{
    struct sz_local_snapshot *local = sz_xcalloc(1, sizeof(*local));
    sz_snapshot_ref(snapshot);
    local->snapshot = snapshot;
    local->users = 1;
    return local;
}

void sz_local_unref(struct sz_local_snapshot *local)
{
    if (--local->users > 0)
        return;
    sz_snapshot_unref(local->snapshot);
    free(local);
}

void sz_worker_init(struct sz_worker *worker, struct sz_loop *loop, struct sz_gate *gate, struct sz_snapshot *snapshot)
{
    *worker = (struct sz_worker){.loop = loop, .index = sz_loop_index(loop), .gate = gate};
    worker->current = hold(snapshot);
    worker->verify = sz_verify_queue_new(worker, snapshot->conf->limits.verifications_queue);
    worker->audit_port = sz_audit_port_open(gate->audit, loop);
    sz_random(worker->id_seed, sizeof(worker->id_seed));
    sz_random(&worker->trace_ids, sizeof(worker->trace_ids));
    worker->tracer = gate->tracer;
}

void sz_worker_fini(struct sz_worker *worker)
{
    sz_ask_abandon(worker);
    sz_verify_queue_free(&worker->verify);
    sz_audit_port_close(&worker->audit_port);
    sz_local_unref(worker->current);
    worker->current = NULL;
}

void sz_worker_swap(struct sz_worker *worker, struct sz_snapshot *snapshot)
{
    struct sz_local_snapshot *old = worker->current;
    worker->current = hold(snapshot);
    sz_local_unref(old);
}

struct sz_snapshot *sz_worker_snapshot(struct sz_worker *worker)
{
    return worker->current->snapshot;
}

static void register_series(struct sz_gate *gate)
{
    const char *token[] = {"l1", "token"}, *negative[] = {"l1", "negative"};
    gate->series.token_requests = sz_series(SZ_METRIC_cache_requests, token);
    gate->series.token_hits = sz_series(SZ_METRIC_cache_hits, token);
    gate->series.negative_requests = sz_series(SZ_METRIC_cache_requests, negative);
    gate->series.negative_hits = sz_series(SZ_METRIC_cache_hits, negative);
    const char *l2[] = {"l2", "token"};
    gate->series.l2_requests = sz_series(SZ_METRIC_cache_requests, l2);
    gate->series.l2_hits = sz_series(SZ_METRIC_cache_hits, l2);
    gate->series.shed = sz_series(SZ_METRIC_shed, NULL);
    gate->series.coalesced_tokens = sz_series1(SZ_METRIC_coalesced, "token");
    gate->series.coalesced_keys = sz_series1(SZ_METRIC_coalesced, "jwks");
    gate->series.auth = sz_series1(SZ_METRIC_duration, "auth");
    gate->series.authz = sz_series1(SZ_METRIC_duration, "authz");
    gate->series.proxy = sz_series1(SZ_METRIC_duration, "proxy");
    gate->series.decide = sz_series1(SZ_METRIC_duration, "decide");
    for (unsigned r = 0; r < SZ_REASON_COUNT; r++) {
        if (sz_reason_row(r)->component[0] != '\0')
            gate->series.errors[r] = sz_series1(SZ_METRIC_errors, sz_reason_row(r)->component);
    }
}

int sz_gate_init(struct sz_gate *gate, const struct sz_conf *conf)
{
    *gate = (struct sz_gate){.tokens = sz_token_cache_new(conf->cache.capacity)};
    gate->rejects = sz_reject_cache_new(conf->cache.negative_capacity);
    gate->limiter = sz_limiter_new(conf);
    /* Whoever waits is a request in flight: limits.max_in_flight bounds them before these figures do. */
    gate->key_flights =
        sz_flights_new(&(struct sz_flights_conf){.flights = 1024, .waiters = 1000000, .result = 0, .age = SZ_SEC(60)});
    sz_gate_revocations(gate, sz_revocations_new(1024, SZ_NONE, (struct sz_wall){0}, NULL));
    register_series(gate);
    gate->token_flights = sz_flights_new(&(struct sz_flights_conf){
        .flights = 16384, .waiters = 1000000, .result = sizeof(struct sz_identity), .age = SZ_SEC(60)});
    gate->l2 = sz_l2_new(conf);
    gate->l2_decisions = sz_decisions_shared_new(gate->l2);
    bool decisions = conf->cache.decisions.capacity > 0;
    if (decisions)
        gate->decisions = sz_decisions_new(conf->cache.decisions.capacity);
    gate->threat = sz_threat_new(conf->threat.capacity != 0 ? conf->threat.capacity : THREAT_CAPACITY);
    if (gate->tokens != NULL && gate->rejects != NULL && gate->limiter != NULL && gate->threat != NULL &&
        (gate->decisions != NULL || !decisions))
        return 0;
    int error = errno != 0 ? errno : ENOMEM;
    sz_gate_fini(gate);
    return -error;
}

void sz_gate_revocations(struct sz_gate *gate, struct sz_revocations *revocations)
{
    sz_revocations_free(&gate->revocations);
    gate->revocations = revocations;
    gate->news = sz_revocations_news(revocations);
}

void sz_gate_fini(struct sz_gate *gate)
{
    sz_revocations_free(&gate->revocations);
    sz_token_cache_free(&gate->tokens);
    sz_reject_cache_free(&gate->rejects);
    sz_limiter_free(&gate->limiter);
    sz_flights_free(&gate->key_flights);
    sz_flights_free(&gate->token_flights);
    sz_decisions_shared_free(&gate->l2_decisions);
    sz_l2_free(&gate->l2);
    sz_threat_free(&gate->threat);
    sz_decisions_free(&gate->decisions);
}

void sz_gate_adopt(struct sz_gate *gate, struct sz_snapshot *snapshot)
{
    const struct sz_conf *conf = snapshot->conf;
    bool kept = conf->fga.mode == SZ_FGA_EMBEDDED || conf->fga.remote.consistency != SZ_HIGHER_CONSISTENCY;
    if (gate->decisions == NULL || snapshot->authz == NULL || !kept)
        return;
    snapshot->authz =
        sz_decisions_wrap(gate->decisions, snapshot->authz,
                          &(struct sz_decisions_conf){.ttl = conf->cache.decisions.ttl,
                                                      .negative_ttl = conf->cache.decisions.negative_ttl,
                                                      .work = conf->limits.request_timeout,
                                                      .l2 = sz_decisions_shared_face(gate->l2_decisions)});
}
