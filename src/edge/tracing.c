/* See edge/tracing.h. */
#include "edge/tracing.h"

#include <errno.h>
#include <stdlib.h>

#include "edge/thread.h"
#include "subzero/log.h"

#define DRAIN SZ_SEC(2)

struct sz_tracing {
    struct sz_server *server;
    const struct sz_conf_tracing *conf;
    struct sz_tracer *tracer;
    struct sz_dependency *collector;
    struct sz_http_trust *trust;
};

struct sz_tracing *sz_tracing_new(struct sz_server *server)
{
    const struct sz_conf_tracing *conf = &server->boot->conf->tracing;
    if (!conf->on)
        return NULL;
    struct sz_tracing *tracing = sz_xcalloc(1, sizeof(*tracing));
    tracing->server = server;
    tracing->conf = conf;
    tracing->tracer = sz_tracer_new(conf);
    server->gate.tracer = tracing->tracer;
    return tracing;
}

static int start_call(void *arg, const struct sz_http_request *request, struct sz_dependency_call *call)
{
    struct sz_tracing *tracing = arg;
    struct sz_http_request full = *request;
    full.trust = tracing->trust;
    return sz_dependency_start(tracing->collector, tracing->server->service->http, &full, call);
}

int sz_tracing_start(struct sz_tracing *tracing, struct sz_text *why)
{
    const struct sz_trace_wire wire = {tracing, start_call, sz_dependency_cancel, sz_dependency_outcome};
    struct sz_loop *loop = tracing->server->service->loop;
    struct sz_text detail;
    tracing->trust = sz_http_trust_new(tracing->conf->ca_file.p, &detail);
    if (tracing->trust == NULL) {
        sz_text_set(why, "tracing: %s", detail.s);
        return -EINVAL;
    }
    tracing->collector = sz_dependency_get("otlp", &tracing->conf->breaker, sz_loop_now(loop));
    sz_tracer_start(tracing->tracer, loop, &wire);
    sz_log(SZ_LOG_INFO, "tracing", "spans go to %.*s", SZ_FMT(tracing->conf->endpoint));
    return 0;
}

void sz_tracing_drain(struct sz_tracing *tracing, void (*on_done)(void *server))
{
    sz_tracer_drain(tracing->tracer, DRAIN, on_done, tracing->server);
}

void sz_tracing_free(struct sz_tracing **tracingp)
{
    struct sz_tracing *tracing = *tracingp;
    *tracingp = NULL;
    if (tracing == NULL)
        return;
    tracing->server->gate.tracer = NULL;
    sz_tracer_free(&tracing->tracer);
    sz_dependency_put(&tracing->collector);
    sz_http_trust_unref(&tracing->trust);
    free(tracing);
}
