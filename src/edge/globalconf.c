/*
 * Routing is ours, so that a reload swaps a snapshot and h2o's configuration never changes: one host per kind of
 * listener, one handler in it.  Limits here are those that h2o enforces before a handler runs, which is why they need a
 * restart.
 */
#include "edge/globalconf.h"

#include "edge/admin.h"
#include "edge/demo_upstream.h"
#include "edge/fga_listener.h"
#include "edge/handler.h"
#include "edge/server.h"

#define HANDSHAKE_TIMEOUT_MS 10000

static void add_host(struct sz_server *server, enum sz_listener_kind kind, const char *name,
                     int (*on_req)(h2o_handler_t *handler, h2o_req_t *req))
{
    h2o_hostconf_t *host =
        h2o_config_register_host(&server->globalconf, h2o_iovec_init(name, strlen(name)), (uint16_t)(kind + 1));
    h2o_pathconf_t *path = h2o_config_register_path(host, "/", 0);
    h2o_handler_t *handler = h2o_create_handler(path, sizeof(*handler));
    handler->on_req = on_req;
    path->error_log.emit_request_errors = 0;
    server->hosts[kind][0] = host;
    server->hosts[kind][1] = NULL;
}

static uint64_t to_ms(struct sz_span span)
{
    return (uint64_t)(span.us / 1000);
}

void sz_globalconf_init(struct sz_server *server)
{
    const struct sz_conf_limits *limits = &server->boot->conf->limits;
    h2o_globalconf_t *conf = &server->globalconf;

    h2o_config_init(conf);
    conf->server_name = h2o_iovec_init(NULL, 0);
    conf->max_request_entity_size = (size_t)limits->request_body;
    conf->handshake_timeout = HANDSHAKE_TIMEOUT_MS;
    /* h2o has one HTTP/1 timeout for idleness and the whole request together; edge/sweep.c tells them apart. */
    conf->http1.req_timeout = to_ms(limits->idle_timeout) + to_ms(limits->request_timeout);
    conf->http2.idle_timeout = to_ms(limits->idle_timeout);
    conf->http2.graceful_shutdown_timeout = to_ms(limits->drain);
    conf->http1.upgrade_to_http2 = 1; /* prior knowledge; the upgrade itself is overridden */
    add_host(server, SZ_LISTEN_DATA, "gateway.invalid", sz_handler_on_req);
    add_host(server, SZ_LISTEN_FGA, "fga.invalid", sz_fga_on_req);
    add_host(server, SZ_LISTEN_ADMIN, "admin.invalid", sz_admin_on_req);
    add_host(server, SZ_LISTEN_DEMO, "demo.invalid", sz_demo_upstream_on_req);
}

void sz_globalconf_fini(struct sz_server *server)
{
    h2o_config_dispose(&server->globalconf);
}
