/* HTTP clients: what all of them share, their life, their numbers.  http_client.h shows the parts. */
#include <stdlib.h>

#include "fga/http_client.h"
#include "subzero/crypto.h"

const char *sz_http_result_name(enum sz_http_result result)
{
    static const char *const names[SZ_HTTP_RESULTS] = {
        [SZ_HTTP_ANSWERED] = "answered",   [SZ_HTTP_REFUSED] = "refused",
        [SZ_HTTP_RESOLVE] = "resolve",     [SZ_HTTP_TLS] = "tls",
        [SZ_HTTP_TIMEOUT] = "timeout",     [SZ_HTTP_TRUNCATED] = "truncated",
        [SZ_HTTP_TOO_LARGE] = "too_large", [SZ_HTTP_REDIRECT] = "redirect",
        [SZ_HTTP_MALFORMED] = "malformed", [SZ_HTTP_BUSY] = "busy",
        [SZ_HTTP_CANCELLED] = "cancelled",
    };
    return result < SZ_HTTP_RESULTS ? names[result] : "unknown";
}

static uint32_t share(uint32_t whole, unsigned clients)
{
    return whole / clients != 0 ? whole / clients : 1;
}

struct sz_http_shared *sz_http_shared_new(const struct sz_conf_http *conf, unsigned clients)
{
    SZ_ASSERT(clients != 0);
    struct sz_http_shared *shared = sz_xcalloc(1, sizeof(*shared));
    shared->conf = *conf;
    shared->conf.connections = share(conf->connections, clients);
    shared->conf.per_host = share(conf->per_host, clients);
    if (shared->conf.per_host > shared->conf.connections)
        shared->conf.per_host = shared->conf.connections;
    shared->resolver = sz_resolver_new(conf->dns_ttl, NULL);
    sz_random(&shared->key, sizeof(shared->key));
    return shared;
}

void sz_http_shared_free(struct sz_http_shared **shared)
{
    struct sz_http_shared *s = *shared;
    *shared = NULL;
    if (s == NULL)
        return;
    sz_resolver_free(&s->resolver);
    free(s);
}

static void make_series(struct sz_http *http)
{
    http->m_connections = sz_series1(SZ_METRIC_http_connections, "new");
    http->m_reused = sz_series1(SZ_METRIC_http_connections, "reused");
    http->m_lookups = sz_series1(SZ_METRIC_http_lookups, "found");
    http->m_failed_lookups = sz_series1(SZ_METRIC_http_lookups, "failed");
}

struct sz_http *sz_http_new(struct sz_http_shared *shared, struct sz_loop *loop)
{
    struct sz_http *http = sz_xcalloc(1, sizeof(*http));
    http->shared = shared;
    http->loop = loop;
    http->blocked_last = &http->blocked;
    make_series(http);
    return http;
}

void sz_http_free(struct sz_http **http)
{
    struct sz_http *h = *http;
    if (h == NULL)
        return;
    h->closing = true;
    sz_http_jobs_fini(h);
    sz_http_multi_fini(h);
    sz_http_hosts_fini(h);
    if (h->multi != NULL)
        sz_mailbox_close(&h->mailbox);
    *http = NULL;
    free(h);
}

struct sz_loop *sz_http_loop(const struct sz_http *http)
{
    return http->loop;
}

void sz_http_stats(const struct sz_http *http, struct sz_http_stats *out)
{
    *out = (struct sz_http_stats){
        .connections = http->connections,
        .reused = http->reused,
        .lookups = http->lookups,
        .calls = http->calls,
        .waiting = http->waiting,
    };
}
