/* /health: every component in a line of JSON; what is down shows no figures that were true before. */
#include "edge/admin.h"
#include "edge/admin_threat.h"
#include "edge/reload.h"
#include "edge/revoking.h"
#include "edge/server.h"
#include "edge/tls.h"
#include "subzero/issuers.h"
#include "subzero/log.h"

static bool add_config(struct sz_buf *b, const struct sz_server *server)
{
    struct sz_text why;
    bool ok = sz_reload_ok(server->reloader, &why);
    sz_buf_printf(b, "\"config\":{\"status\":\"%s\",\"source\":", ok ? "ok" : "last_reload_failed");
    sz_buf_json(b, server->current->conf->source);
    sz_buf_printf(b, ",\"version\":\"%016llx\"", (unsigned long long)server->current->conf->version);
    if (!ok) {
        sz_buf_printf(b, ",\"error\":");
        sz_buf_json(b, sz_cstr(why.s));
    }
    sz_buf_printf(b, "}");
    return ok;
}

static bool add_issuers(struct sz_buf *b, const struct sz_server *server)
{
    size_t n = server->current->conf->issuers_n;
    bool usable = n == 0 || sz_issuers_usable(server->current->issuers);
    struct sz_buf providers = {0};
    bool well = sz_providers_health(server->providers, &providers);
    sz_buf_printf(b, ",\"issuers\":{\"status\":\"%s\",\"configured\":%zu,\"providers\":{",
                  !usable ? "no_usable_key"
                  : well  ? "ok"
                          : "degraded",
                  n);
    sz_buf_adds(b, sz_buf_slice(&providers));
    sz_buf_printf(b, "}}");
    sz_buf_fini(&providers);
    return usable && well;
}

/* A certificate that ends within a week is worth a look before it is an outage. */
static bool add_tls(struct sz_buf *b, const struct sz_server *server)
{
    struct sz_tls_expiry expiry;
    if (!sz_tls_first_expiry(server->tls, &expiry))
        return true;
    int64_t left = expiry.at - sz_wall_seconds(sz_wall_read());
    bool ok = left > 7 * 86400;
    sz_buf_printf(b, ",\"tls\":{\"status\":\"%s\",\"first_to_end\":", ok ? "ok" : left > 0 ? "ends_soon" : "ended");
    sz_buf_json(b, sz_cstr(expiry.subject));
    sz_buf_printf(b, ",\"seconds_left\":%lld}", (long long)left);
    return ok;
}

static bool add_store(struct sz_buf *b, const char *name, const struct sz_conf_redis *conf,
                      struct sz_redis_shared *shared)
{
    struct sz_redis_look look;
    if (shared == NULL)
        return true;
    sz_redis_shared_look(shared, &look);
    bool ok = look.reachable && look.noeviction;
    sz_buf_printf(b, ",\"%s\":{\"status\":\"%s\",\"server\":", name,
                  !look.reachable    ? "unreachable"
                  : !look.noeviction ? "may_evict"
                                     : "ok");
    sz_buf_json(b, conf->shown);
    sz_buf_printf(b, ",\"connections\":%u,\"max_connections\":%u,\"reconnects\":%llu", look.connections,
                  look.connections_max, (unsigned long long)look.reconnects);
    if (!look.reachable) {
        sz_buf_printf(b, ",\"error\":");
        sz_buf_json(b, sz_cstr(look.why.s));
    }
    sz_buf_printf(b, "}");
    return ok;
}

/*
 * Every upstream with how many urls it has.  Whether they answer each thread knows for itself, from its own calls;
 * /metrics has the sum of them.
 */
static void add_upstreams(struct sz_buf *b, const struct sz_conf *conf)
{
    sz_buf_printf(b, ",\"upstreams\":{\"status\":\"configured\",\"configured\":%zu,\"urls\":{", conf->upstreams_n);
    for (size_t i = 0; i < conf->upstreams_n; i++) {
        sz_buf_printf(b, "%s", i > 0 ? "," : "");
        sz_buf_json(b, conf->upstreams[i].name);
        sz_buf_printf(b, ":%zu", conf->upstreams[i].urls_n);
    }
    sz_buf_printf(b, "}}");
}

static void add_edge(struct sz_buf *b, const struct sz_server *server)
{
    sz_buf_printf(
        b,
        ",\"edge\":{\"status\":\"%s\",\"workers\":%u,\"connections\":%u,\"max_connections\":%u,\"in_flight\":%u,"
        "\"buffered_bodies\":%zu}",
        sz_server_draining(server) ? "draining" : "ok", server->threads_n, atomic_load(&server->connections),
        server->connections_max, atomic_load(&server->gate.in_flight), atomic_load(&server->buffered));
    sz_buf_printf(b, ",\"log\":{\"status\":\"%s\",\"lost\":%llu}", sz_log_lost() == 0 ? "ok" : "lost_lines",
                  (unsigned long long)sz_log_lost());
}

/* The OpenFGA API's stores; not there without fga.listen. */
static bool add_stores(struct sz_buf *b, const struct sz_server *server)
{
    struct sz_fga_health health;
    if (server->boot->conf->fga.listen == NULL)
        return true;
    sz_fga_hub_health(server->fga, &health);
    sz_buf_printf(b, ",\"fga_stores\":{\"status\":\"%s\",\"stores\":%zu,\"durable\":%s,\"log_bytes\":%llu}",
                  health.broken ? "unwritable" : "ok", health.stores, health.durable ? "true" : "false",
                  (unsigned long long)health.log_bytes);
    return !health.broken;
}

static void add_notes(struct sz_buf *b, const struct sz_server *server)
{
    sz_buf_printf(b, ",\"notes\":[");
    for (size_t i = 0; i < server->notes_n; i++) {
        sz_buf_printf(b, "%s", i > 0 ? "," : "");
        sz_buf_json(b, sz_cstr(server->notes[i].s));
    }
    sz_buf_printf(b, "]");
}

void sz_admin_health(struct sz_admin_call *call)
{
    const struct sz_server *server = call->server;
    struct sz_buf parts = {0}, body = {0};

    bool ok = add_config(&parts, server);
    ok = add_issuers(&parts, server) && ok;
    ok = sz_followers_health(server->followers, &parts) && ok;
    ok = add_tls(&parts, server) && ok;
    ok = add_store(&parts, "redis", &server->boot->conf->redis, server->redis) && ok;
    ok = add_store(&parts, "redis_cache", &server->boot->conf->redis_cache, server->redis_cache) && ok;
    ok = sz_revoking_health(call->server, &parts) && ok;
    ok = sz_threat_health(server, &parts) && ok;
    ok = add_stores(&parts, server) && ok;
    add_upstreams(&parts, server->current->conf);
    add_edge(&parts, server);
    sz_buf_printf(&parts, ",");
    ok = sz_audit_health(server->gate.audit, &parts) && ok;
    add_notes(&parts, server);
    sz_buf_printf(&body, "{\"status\":\"%s\",\"version\":\"%s\",\"uptime_seconds\":%lld,", ok ? "ok" : "degraded",
                  SZ_VERSION, (long long)(sz_between(server->started, sz_mono_read()).us / 1000000));
    sz_buf_adds(&body, sz_buf_slice(&parts));
    sz_buf_printf(&body, "}\n");
    sz_admin_send(call, 200, "application/json", sz_buf_slice(&body));
    sz_buf_fini(&parts);
    sz_buf_fini(&body);
}
