/* The small pages: alive, ready, metrics, configuration. */
#include "edge/admin.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/breakers.h"
#include "subzero/issuers.h"
#include "subzero/limiter.h"
#include "subzero/metrics.h"

void sz_admin_livez(struct sz_admin_call *call)
{
    sz_admin_send(call, 200, "text/plain; charset=utf-8", SZ_S("ok\n"));
}

/*
 * A configuration that names issuers cannot serve before one of them has a key.  Afterwards a provider's outage is for
 * /health and the metrics: every instance would leave service at once, and cached tokens with it.
 */
static bool keys_usable(struct sz_server *server)
{
    if (server->current->conf->issuers_n == 0 || sz_issuers_usable(server->current->issuers))
        server->keys_seen = true;
    return server->keys_seen;
}

void sz_admin_readyz(struct sz_admin_call *call)
{
    bool draining = sz_server_draining(call->server), keys = keys_usable(call->server);
    unsigned status = !draining && keys ? 200 : 503;
    struct sz_buf body = {0};

    if (call->query.n > 0)
        sz_buf_printf(&body, "configuration: ok\nkeys: %s\ndraining: %s\n", keys ? "ok" : "no issuer has a usable key",
                      draining ? "yes" : "no");
    sz_buf_printf(&body, "%s\n", status == 200 ? "ready" : "not ready");
    sz_admin_send(call, status, "text/plain; charset=utf-8", sz_buf_slice(&body));
    sz_buf_fini(&body);
}

void sz_admin_metrics(struct sz_admin_call *call)
{
    struct sz_buf body = {0};
    sz_limiter_report(call->server->gate.limiter, call->server->service->index);
    sz_metrics_expose(&body);
    sz_admin_send(call, 200, "text/plain; version=0.0.4; charset=utf-8", sz_buf_slice(&body));
    sz_buf_fini(&body);
}

/* The public keys of X-Subzero-Assertion, for the upstreams: no secret, and whoever fetches them has no token. */
void sz_admin_jwks(struct sz_admin_call *call)
{
    struct sz_signer *signer = call->server->current->assertion;
    struct sz_buf body = {0};
    if (signer == NULL)
        sz_respond_problem(call->req, 404, SZ_REASON_no_route, "no assertion key is configured");
    else if (sz_signer_jwks(signer, &body) != 0)
        sz_respond_problem(call->req, 503, SZ_REASON_identity_unavailable, NULL);
    else
        sz_admin_send(call, 200, "application/jwk-set+json", sz_buf_slice(&body));
    sz_buf_fini(&body);
}

void sz_admin_config(struct sz_admin_call *call)
{
    struct sz_buf body = {0};
    sz_conf_dump(call->server->current->conf, &body);
    sz_admin_send(call, 200, "application/yaml", sz_buf_slice(&body));
    sz_buf_fini(&body);
}

static void add_breaker(void *arg, const char *dependency, const struct sz_breaker_look *look)
{
    struct sz_buf *body = arg;
    sz_buf_printf(body, "%s{\"dependency\":", body->p[body->n - 1] == '[' ? "" : ",");
    sz_buf_json(body, sz_cstr(dependency));
    sz_buf_printf(body, ",\"state\":\"%s\",\"failures\":%u,\"retry_after_ms\":%lld,\"opened\":%llu}",
                  sz_breaker_state_name(look->state), look->failures, (long long)((look->retry.us + 999) / 1000),
                  (unsigned long long)look->moved[SZ_BREAKER_OPEN]);
}

/* What subzero_breaker_state shows, for people: also how far the next one is from opening, and when it is tried again.
 */
void sz_admin_breakers(struct sz_admin_call *call)
{
    struct sz_buf body = {0};
    sz_buf_printf(&body, "{\"breakers\":[");
    sz_breakers_each(sz_mono_read(), add_breaker, &body);
    sz_buf_printf(&body, "]}\n");
    sz_admin_send(call, 200, "application/json", sz_buf_slice(&body));
    sz_buf_fini(&body);
}
