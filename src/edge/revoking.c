/* The set's life in the process, and what has to happen when it goes deaf. */
#include "edge/revoking.h"

#include <errno.h>
#include <stdlib.h>

#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/fleet.h"
#include "subzero/log.h"

struct sz_revoking {
    struct sz_server *server;
    struct sz_fleet *fleet;
    struct sz_timer flush;
};

/* After the privileges were dropped: state_dir is ours then. */
int sz_revoking_open(struct sz_server *server, struct sz_text *why)
{
    const struct sz_conf *conf = server->boot->conf;
    struct sz_revocations *set = sz_revocations_new(conf->revocation.capacity, conf->state_dir, sz_wall_read(), why);
    if (set == NULL)
        return -EINVAL;
    sz_gate_revocations(&server->gate, set);
    return 0;
}

/* Whatever was cached before the cut is asked about again; what comes now is kept for ttl_degraded at most. */
static void on_flush(struct sz_timer *timer)
{
    struct sz_revoking *r = SZ_CONTAINER(timer, struct sz_revoking, flush);
    if (atomic_load(&r->server->gate.news->deaf))
        sz_token_cache_flush(r->server->gate.tokens);
}

static void on_deaf(void *arg, bool deaf)
{
    struct sz_revoking *r = arg;
    struct sz_loop *loop = r->server->service->loop;
    if (deaf)
        sz_timer_start(loop, &r->flush, sz_after(sz_loop_now(loop), r->server->current->conf->cache.ttl_degraded));
    else
        sz_timer_cancel(loop, &r->flush);
}

int sz_revoking_start(struct sz_server *server)
{
    const struct sz_conf_redis *redis = &server->boot->conf->redis;
    struct sz_revoking *r = sz_xcalloc(1, sizeof(*r));
    r->server = server;
    r->flush.on_fire = on_flush;
    server->revoking = r;
    sz_revocations_start(server->gate.revocations, server->service->loop);
    if (server->redis == NULL)
        return 0;
    r->fleet = sz_fleet_new(redis->key.value, NULL, 0);
    if (r->fleet == NULL)
        return -EINVAL;
    sz_revocations_follow(server->gate.revocations, server->service->redis, r->fleet, on_deaf, r);
    return 0;
}

void sz_revoking_stop(struct sz_server *server)
{
    struct sz_revoking *r = server->revoking;
    if (r == NULL)
        return;
    sz_revocations_stop(server->gate.revocations);
    sz_timer_cancel(server->service->loop, &r->flush);
    sz_fleet_free(&r->fleet);
    free(r);
    server->revoking = NULL;
}

int64_t sz_revoking_until(const struct sz_conf_issuer *issuer, int64_t last)
{
    if (issuer == NULL || issuer->max_lifetime.us == 0)
        return INT64_MAX;
    int64_t more = (issuer->max_lifetime.us + 2 * issuer->leeway.us) / 1000000 + 1;
    return last > INT64_MAX - more ? INT64_MAX : last + more;
}

bool sz_revoking_health(struct sz_server *server, struct sz_buf *out)
{
    struct sz_revocations_look look;
    sz_revocations_look(server->gate.revocations, &look);
    const char *status = look.full ? "full" : look.deaf ? "cut_off" : look.fault.s[0] != '\0' ? "degraded" : "ok";
    sz_buf_printf(out,
                  ",\"revocations\":{\"status\":\"%s\",\"entries\":%zu,\"capacity\":%zu,\"unsaved\":%zu,"
                  "\"unpublished\":%zu,\"shared\":%s",
                  status, look.n, look.capacity, look.unsaved, look.unpublished, look.shared ? "true" : "false");
    if (look.fault.s[0] != '\0') {
        sz_buf_printf(out, ",\"error\":");
        sz_buf_json(out, sz_cstr(look.fault.s));
    }
    sz_buf_printf(out, "}");
    return strcmp(status, "ok") == 0;
}
