/* Looking and writing: one GET, one SET with a lifetime; the seal decides what is believed. */
#include "subzero/l2.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/l2.h"
#include "subzero/log.h"
#include "subzero/metrics.h"

#define PAUSE SZ_SEC(10) /* after Redis said that it is full */

static void count(_Atomic uint64_t *n)
{
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

struct sz_l2 *sz_l2_new(const struct sz_conf *conf)
{
    if (!conf->redis.on || conf->cache.l2.ttl.us == 0)
        return NULL;
    struct sz_l2 *l2 = sz_xcalloc(1, sizeof(*l2));
    l2->fleet = sz_fleet_new(conf->redis.key.value, conf->cache.l2.seal_keys, conf->cache.l2.seal_keys_n);
    SZ_ASSERT(l2->fleet != NULL); /* checked when the configuration was built */
    l2->namers[0].kind = "identity";
    l2->namers[1].kind = "decision";
    for (size_t i = 0; i < SZ_COUNT(l2->namers); i++)
        sz_fleet_namer(l2->fleet, l2->namers[i].kind, &l2->namers[i].key);
    l2->ttl = conf->cache.l2.ttl;
    l2->lease = conf->cache.l2.lease;
    l2->bad_series = sz_series(SZ_METRIC_l2_bad, NULL);
    l2->renew = (struct sz_redis_script){.name = "l2_lease", .text = sz_cstr(sz_l2_lease_script)};
    sz_redis_script_prepare(&l2->renew);
    return l2;
}

void sz_l2_free(struct sz_l2 **l2p)
{
    struct sz_l2 *l2 = *l2p;
    *l2p = NULL;
    if (l2 == NULL)
        return;
    sz_fleet_free(&l2->fleet);
    sz_wipe(l2->namers, sizeof(l2->namers));
    free(l2);
}

static const struct sz_hmac_key *namer_of(const struct sz_l2 *l2, const char *kind)
{
    size_t i = 0;
    while (i < SZ_COUNT(l2->namers) && strcmp(l2->namers[i].kind, kind) != 0)
        i++;
    SZ_ASSERT(i < SZ_COUNT(l2->namers));
    return &l2->namers[i].key;
}

static void add(struct sz_l2_name *name, struct sz_slice s)
{
    SZ_ASSERT(s.n < sizeof(name->text) - name->n);
    memcpy(name->text + name->n, s.p, s.n);
    name->n += s.n;
}

void sz_l2_name(const struct sz_l2 *l2, const char *kind, const struct sz_slice *fields, size_t fields_n,
                struct sz_l2_name *out)
{
    uint8_t mac[32];
    char hex[64];
    sz_hmac_pieces(namer_of(l2, kind), fields, fields_n, mac);
    sz_hex_encode(mac, sizeof(mac), hex);
    out->n = 0;
    add(out, SZ_S("subzero:l2:v1:"));
    add(out, sz_cstr(kind));
    add(out, SZ_S(":{"));
    add(out, sz_slice(hex, sizeof(hex)));
    add(out, SZ_S("}"));
    out->text[out->n] = '\0';
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static void count_bad(struct sz_l2 *l2, bool expired)
{
    count(expired ? &l2->expired : &l2->bad);
    if (!expired)
        sz_count(SZ_NO_LOOP, l2->bad_series, 1);
}

static enum sz_breaker_outcome on_value(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct sz_l2_look *look = SZ_CONTAINER(op, struct sz_l2_look, op);
    struct sz_l2 *l2 = look->l2;
    char room[SZ_L2_VALUE_MAX + SZ_SEAL_OVERHEAD]; /* no longer value was asked for */
    struct sz_buf plain = SZ_BUF_ON(room);
    struct sz_seal_bind bind = {look->kind, {look->name.text, look->name.n}, 0};
    int64_t expires;
    bool there = answer->result == SZ_REDIS_ANSWERED && answer->reply->type == SZ_REDIS_STRING, hit = false;
    if (there) {
        enum sz_unseal rc =
            sz_unseal(l2->fleet, &bind, sz_loop_wall(look->loop).us, answer->reply->text, &plain, &expires);
        hit = rc == SZ_UNSEAL_OK;
        if (!hit)
            count_bad(l2, rc == SZ_UNSEAL_EXPIRED);
    } else if (answer->result == SZ_REDIS_ANSWERED && answer->reply->type != SZ_REDIS_NIL) {
        count_bad(l2, false);
    } else if (answer->result == SZ_REDIS_ERROR) {
        count_bad(l2, false); /* WRONGTYPE: somebody put something else there */
    }
    if (hit)
        count(&l2->hits);
    look->on_done(look, hit ? sz_buf_slice(&plain) : SZ_NONE);
    sz_wipe(plain.p, plain.n);
    /* An error about this key alone says nothing about the server. */
    return answer->result == SZ_REDIS_ERROR ? SZ_BREAKER_SUCCESS : sz_redis_outcome(answer);
}

int sz_l2_get(struct sz_l2 *l2, struct sz_redis *redis, struct sz_loop *loop, const char *kind,
              const struct sz_l2_name *name, struct sz_mono deadline, struct sz_l2_look *look)
{
    struct sz_slice args[] = {SZ_S("GET"), sz_slice(name->text, name->n)};
    struct sz_redis_command command = {
        .args = args, .args_n = 2, .key = 1, .limit = SZ_L2_VALUE_MAX + SZ_SEAL_OVERHEAD, .deadline = deadline};
    count(&l2->looks);
    look->l2 = l2;
    look->loop = loop;
    look->kind = kind;
    look->name = *name;
    look->op.on_done = on_value;
    return sz_redis_start(redis, SZ_REDIS_CACHE, &command, &look->op) == 0 ? 0 : 1;
}

void sz_l2_cancel(struct sz_l2_look *look)
{
    sz_redis_cancel(&look->op);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct write { /* of its own: nobody waits for it */
    struct sz_redis_op op;
    struct sz_l2 *l2;
    struct sz_loop *loop;
};

static void pause_writes(struct sz_l2 *l2, struct sz_mono now)
{
    int64_t until = atomic_load_explicit(&l2->paused_until, memory_order_relaxed);
    if (until <= now.us)
        sz_log(SZ_LOG_WARN, "l2",
               "Redis is full: no facts are written for 10 s; raise maxmemory, or give the cache a "
               "Redis of its own (cache.l2.redis)");
    atomic_store_explicit(&l2->paused_until, sz_after(now, PAUSE).us, memory_order_relaxed);
}

static enum sz_breaker_outcome on_written(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct write *w = SZ_CONTAINER(op, struct write, op);
    struct sz_l2 *l2 = w->l2;
    enum sz_breaker_outcome outcome = sz_redis_outcome(answer);
    atomic_fetch_sub_explicit(&l2->under_way, 1, memory_order_relaxed);
    if (answer->result == SZ_REDIS_OOM) {
        pause_writes(l2, sz_loop_now(w->loop));
        outcome = SZ_BREAKER_UNKNOWN; /* it answers: what is there can still be read */
    }
    count(answer->result == SZ_REDIS_ANSWERED ? &l2->writes : &l2->refused);
    free(w);
    return outcome;
}

static bool may_write(struct sz_l2 *l2, struct sz_mono now)
{
    if (now.us < atomic_load_explicit(&l2->paused_until, memory_order_relaxed))
        return false;
    if (atomic_fetch_add_explicit(&l2->under_way, 1, memory_order_relaxed) < SZ_L2_WRITES)
        return true;
    atomic_fetch_sub_explicit(&l2->under_way, 1, memory_order_relaxed);
    return false;
}

void sz_l2_put(struct sz_l2 *l2, struct sz_redis *redis, struct sz_loop *loop, const char *kind,
               const struct sz_l2_name *name, struct sz_slice plain, struct sz_wall expires)
{
    struct sz_wall wall = sz_loop_wall(loop);
    struct sz_buf sealed = {0};
    struct sz_seal_bind bind = {kind, {name->text, name->n}, 0};
    int64_t until = wall.us + l2->ttl.us < expires.us ? wall.us + l2->ttl.us : expires.us;
    char ms[24];
    if (until - wall.us < 1000 || plain.n > SZ_L2_VALUE_MAX || !may_write(l2, sz_loop_now(loop))) {
        count(&l2->refused);
        return;
    }
    sz_seal(l2->fleet, &bind, until, plain, &sealed);
    size_t digits = (size_t)snprintf(ms, sizeof(ms), "%lld", (long long)((until - wall.us) / 1000));
    struct sz_slice args[] = {SZ_S("SET"), sz_slice(name->text, name->n), sz_buf_slice(&sealed), SZ_S("PX"),
                              sz_slice(ms, digits)};
    struct sz_redis_command command = {.args = args, .args_n = SZ_COUNT(args), .key = 1, .deadline = SZ_NEVER};
    struct write *w = sz_xcalloc(1, sizeof(*w));
    w->op.on_done = on_written;
    w->l2 = l2;
    w->loop = loop;
    if (sz_redis_start(redis, SZ_REDIS_CACHE, &command, &w->op) != 0) {
        atomic_fetch_sub_explicit(&l2->under_way, 1, memory_order_relaxed);
        count(&l2->refused);
        free(w);
    }
    sz_buf_fini(&sealed);
}

void sz_l2_stats(const struct sz_l2 *l2, struct sz_mono now, struct sz_l2_stats *out)
{
    *out = (struct sz_l2_stats){
        .looks = atomic_load_explicit(&l2->looks, memory_order_relaxed),
        .hits = atomic_load_explicit(&l2->hits, memory_order_relaxed),
        .bad = atomic_load_explicit(&l2->bad, memory_order_relaxed),
        .expired = atomic_load_explicit(&l2->expired, memory_order_relaxed),
        .writes = atomic_load_explicit(&l2->writes, memory_order_relaxed),
        .refused = atomic_load_explicit(&l2->refused, memory_order_relaxed),
        .paused = now.us < atomic_load_explicit(&l2->paused_until, memory_order_relaxed),
    };
}
