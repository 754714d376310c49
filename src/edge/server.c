/*
 * Making the process's structure, and what its threads share about connections.  Running it is edge/run.c.
 */
#include "edge/server.h"

#include <stdlib.h>
#include <unistd.h>

#include "edge/globalconf.h"
#include "edge/idempotency.h"
#include "edge/logout.h"
#include "edge/reload.h"
#include "edge/tls.h"
#include "edge/tracing.h"
#include "subzero/log.h"
#include "subzero/metrics.h"

static void register_series(struct sz_server_series *series)
{
    series->resets = sz_series(SZ_METRIC_resets, NULL);
    series->refused_limit = sz_series1(SZ_METRIC_conn_refused, "descriptors");
    series->refused_address = sz_series1(SZ_METRIC_conn_refused, "address");
    series->refused_proxy = sz_series1(SZ_METRIC_conn_refused, "proxy_protocol");
    series->refused_untrusted = sz_series1(SZ_METRIC_conn_refused, "untrusted");
    series->refused_bodies = sz_series1(SZ_METRIC_conn_refused, "buffered_bodies");
    series->admin_duration = sz_series1(SZ_METRIC_duration, "admin");
    series->fga_duration = sz_series1(SZ_METRIC_duration, "fga");
    series->reload_ok = sz_series(SZ_METRIC_reload_ok, NULL);
    series->in_progress = sz_series(SZ_METRIC_in_progress, NULL);
}

struct sz_server *sz_server_new(struct sz_snapshot *snapshot, struct sz_conf_source source, struct sz_text *why)
{
    struct sz_server *server = sz_xcalloc(1, sizeof(*server));
    const struct sz_conf *conf = snapshot->conf;

    server->source = source;
    server->boot = snapshot;
    server->current = snapshot;
    sz_snapshot_ref(snapshot); /* boot and current */
    server->started = sz_mono_read();
    server->threads_n = conf->workers;
    server->connections_max = conf->limits.max_connections;
    server->buffered_max = (size_t)conf->limits.buffered_bodies;
    register_series(&server->series);
    sz_gauge_set(server->series.reload_ok, 1);
    int rc = sz_gate_init(&server->gate, conf);
    if (rc != 0) {
        sz_text_set(why, "cannot set up the caches: %s", strerror(-rc));
        sz_server_free(&server);
        return NULL;
    }
    sz_gate_adopt(&server->gate, snapshot);
    sz_metrics_on_scrape(sz_gate_collect, &server->gate);
    sz_metrics_on_scrape(sz_tls_collect, server);
    server->tracing = sz_tracing_new(server);
    server->addresses = sz_addr_count_new();
    server->idempotency = sz_idempotency_new(SZ_IDEMPOTENT_MAX);
    server->logouts = sz_logouts_new(server);
    server->reloader = sz_reloader_new(server);
    sz_globalconf_init(server);
    return server;
}

void sz_server_free(struct sz_server **serverp)
{
    struct sz_server *server = *serverp;
    *serverp = NULL;
    for (size_t i = 0; i < server->listeners_n; i++) {
        if (server->listeners[i].fd >= 0)
            close(server->listeners[i].fd);
    }
    free(server->listeners);
    sz_tracing_free(&server->tracing);
    if (server->addresses != NULL) {
        sz_globalconf_fini(server);
        sz_reloader_free(&server->reloader);
        sz_idempotency_free(&server->idempotency);
        sz_logouts_free(&server->logouts);
        sz_addr_count_free(&server->addresses);
        sz_gate_fini(&server->gate);
        sz_audit_close(&server->gate.audit); /* after everybody who records, before the configuration it reads */
    }
    sz_tls_set_unref(server->tls);
    sz_snapshot_unref(server->current);
    sz_snapshot_unref(server->boot);
    free(server);
}

static struct sz_listener *add_listener(struct sz_server *server, enum sz_listener_kind kind, struct sz_slice label)
{
    struct sz_listener *listener = &server->listeners[server->listeners_n++];
    char name[128];
    snprintf(name, sizeof(name), "%.*s", SZ_FMT(label));
    listener->kind = kind;
    listener->fd = -1;
    listener->gauge = sz_series1(SZ_METRIC_connections, name);
    return listener;
}

int sz_server_bind(struct sz_server *server, const struct sz_listener *demo, struct sz_text *why)
{
    const struct sz_conf *conf = server->boot->conf;
    int rc = 0;

    server->listeners = sz_xcalloc(conf->listeners_n + 3, sizeof(*server->listeners));
    for (size_t i = 0; i < conf->listeners_n && rc == 0; i++) {
        struct sz_listener *listener = add_listener(server, SZ_LISTEN_DATA, conf->listeners[i].address);
        listener->conf = &conf->listeners[i];
        rc = sz_listener_bind(listener, listener->conf->ip, listener->conf->port, why);
    }
    if (rc == 0 && conf->fga.listen != NULL) {
        struct sz_listener *listener = add_listener(server, SZ_LISTEN_FGA, SZ_S("fga"));
        listener->conf = conf->fga.listen;
        rc = sz_listener_bind(listener, conf->fga.listen->ip, conf->fga.listen->port, why);
    }
    if (rc == 0 && conf->admin.on) {
        struct sz_listener *listener = add_listener(server, SZ_LISTEN_ADMIN, SZ_S("admin"));
        rc = sz_listener_bind(listener, conf->admin.ip, conf->admin.port, why);
    }
    if (rc == 0 && demo != NULL) {
        struct sz_listener *listener = add_listener(server, SZ_LISTEN_DEMO, SZ_S("demo"));
        listener->fd = demo->fd;
        listener->port = demo->port;
    }
    return rc;
}

void sz_server_note(struct sz_server *server, const char *fmt, ...)
{
    if (server->notes_n == SZ_NOTES_MAX)
        return;
    struct sz_text *note = &server->notes[server->notes_n++];
    va_list args;
    va_start(args, fmt);
    vsnprintf(note->s, sizeof(note->s), fmt, args);
    va_end(args);
    sz_log(SZ_LOG_WARN, "edge", "%s", note->s);
}

bool sz_server_conn_open(struct sz_server *server)
{
    if (atomic_fetch_add_explicit(&server->connections, 1, memory_order_relaxed) < server->connections_max)
        return true;
    atomic_fetch_sub_explicit(&server->connections, 1, memory_order_relaxed);
    return false;
}

void sz_server_conn_closed(struct sz_server *server, const struct sz_addr *addr)
{
    atomic_fetch_sub_explicit(&server->connections, 1, memory_order_relaxed);
    if (addr != NULL)
        sz_addr_count_leave(server->addresses, *addr);
}

/* Once a second is enough to know. */
void sz_server_accept_failed(struct sz_server *server, int err)
{
    int64_t now = sz_mono_read().us, last = atomic_load(&server->accept_failed_at);
    sz_count(SZ_NO_LOOP, server->series.refused_limit, 1);
    if (now - last < 1000000 || !atomic_compare_exchange_strong(&server->accept_failed_at, &last, now))
        return;
    sz_log(SZ_LOG_ERROR, "edge",
           "cannot accept connections: %s; raise the limit of open files (ulimit -n) or lower "
           "limits.max_connections",
           strerror(err));
}

bool sz_server_draining(const struct sz_server *server)
{
    return atomic_load_explicit(&server->gate.draining, memory_order_relaxed);
}
