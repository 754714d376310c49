/* /cache: what the caches hold, and emptying them. */
#include "edge/admin.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "subzero/cache.h"
#include "subzero/decision.h"
#include "subzero/log.h"

static void add_stats(struct sz_buf *b, const char *kind, const struct sz_cache_stats *s)
{
    sz_buf_printf(
        b,
        "{\"layer\":\"l1\",\"kind\":\"%s\",\"entries\":%llu,\"capacity\":%llu,\"bytes\":%llu,\"lookups\":%llu,"
        "\"hits\":%llu,\"inserts\":%llu,\"evictions\":%llu,\"expired\":%llu,\"too_large\":%llu,\"busy\":%llu}",
        kind, (unsigned long long)s->entries, (unsigned long long)s->capacity, (unsigned long long)s->bytes,
        (unsigned long long)s->lookups, (unsigned long long)s->hits, (unsigned long long)s->inserts,
        (unsigned long long)s->evictions, (unsigned long long)s->expired, (unsigned long long)s->too_large,
        (unsigned long long)s->busy);
}

void sz_admin_cache_stats(struct sz_admin_call *call)
{
    struct sz_gate *gate = &call->server->gate;
    struct sz_cache_stats tokens, rejects, decisions;
    struct sz_buf body = {0};

    sz_token_cache_stats(gate->tokens, &tokens);
    sz_reject_cache_stats(gate->rejects, &rejects);
    sz_buf_printf(&body, "{\"caches\":[");
    add_stats(&body, "token", &tokens);
    sz_buf_printf(&body, ",");
    add_stats(&body, "negative", &rejects);
    if (gate->decisions != NULL) {
        sz_decisions_stats(gate->decisions, &decisions);
        sz_buf_printf(&body, ",");
        add_stats(&body, "decision", &decisions);
    }
    sz_buf_printf(&body, "]}\n");
    sz_admin_send(call, 200, "application/json", sz_buf_slice(&body));
    sz_buf_fini(&body);
}

/* Layers that do not exist yet are refused rather than silently not flushed. */
void sz_admin_cache_flush(struct sz_admin_call *call)
{
    struct sz_gate *gate = &call->server->gate;

    if (call->query.n > 0 && !sz_eq(call->query, SZ_S("layer=l1")) && !sz_eq(call->query, SZ_S("layer=all"))) {
        sz_respond_problem(call->req, 400, SZ_REASON_bad_request, "layer is l1 or all");
        return;
    }
    sz_token_cache_flush(gate->tokens);
    sz_reject_cache_flush(gate->rejects);
    if (gate->decisions != NULL)
        sz_decisions_flush(gate->decisions);
    sz_admin_record(call, "cache.flush", SZ_S("l1"));
    sz_log(SZ_LOG_INFO, "admin", "caches flushed");
    sz_admin_send(call, 200, "application/json", SZ_S("{\"flushed\":[\"l1\"]}\n"));
}
