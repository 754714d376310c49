/*
 * A thread's upstreams.  Each configuration makes a generation that names its upstreams; an upstream whose settings
 * (and certificate files) did not change is carried over with its idle connections, the others are retired: what is in
 * flight on them ends normally, nothing is kept.  A request holds the generation that it began with, so that reloads in
 * between, however many, change nothing for it.
 */
#include <stdlib.h>

#include "edge/proxy.h"
#include "edge/proxy_call.h"
#include "edge/upstream.h"
#include "edge/upstream_response.h"

struct sz_proxy_pools *sz_proxy_pools_new(h2o_context_t *ctx, struct sz_loop *loop)
{
    struct sz_proxy_pools *pools = sz_xcalloc(1, sizeof(*pools));
    pools->ctx = ctx;
    pools->loop = loop;
    pools->thread = sz_loop_index(loop);
    pools->in_flight_end = &pools->in_flight;
    pools->scratch = sz_xmalloc(SZ_SCRATCH);
    pools->response = sz_xmalloc(sizeof(*pools->response));
    return pools;
}

/* ---- upstreams -------------------------------------------------------------------------------------------- */

static void add_number(struct sz_buf *b, uint64_t number)
{
    sz_key_field(b, 'n', sz_slice(&number, sizeof(number)));
}

/* Two upstreams with the same bytes are one: every setting is in here. */
static void settings_of(struct sz_buf *b, const struct sz_conf_upstream *conf, const struct sz_upstream_shared *shared)
{
    const struct sz_slice texts[] = {conf->name, conf->tls.ca_file, conf->tls.certificate, conf->tls.key,
                                     conf->tls.server_name};
    const int64_t numbers[] = {conf->connect.us, conf->first_byte.us, conf->idle.us,       conf->keepalive.us,
                               conf->max_idle,   conf->reuse,         conf->preserve_host, (int64_t)conf->urls_n};

    for (size_t i = 0; i < SZ_COUNT(texts); i++)
        sz_key_field(b, 's', texts[i]);
    for (size_t i = 0; i < SZ_COUNT(numbers); i++)
        add_number(b, (uint64_t)numbers[i]);
    for (size_t i = 0; i < conf->urls_n; i++) {
        sz_key_field(b, 's', conf->urls[i].host);
        sz_key_field(b, 's', conf->urls[i].authority);
        add_number(b, (uint64_t)conf->urls[i].port << 1 | conf->urls[i].tls);
    }
    sz_key_field(b, 'd', sz_slice(shared->digest, sizeof(shared->digest)));
}

static char *copy(struct sz_slice s)
{
    char *text = sz_xmalloc(s.n + 1);
    if (s.n > 0)
        memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    return text;
}

static struct sz_upstream *upstream_new(struct sz_proxy_pools *pools, const struct sz_conf_upstream *conf,
                                        struct sz_upstream_shared *shared)
{
    struct sz_upstream *upstream = sz_xcalloc(1, sizeof(*upstream) + conf->urls_n * sizeof(upstream->urls[0]));
    struct sz_buf label = {0};

    upstream->pools = pools;
    upstream->shared = shared;
    sz_upstream_shared_ref(shared);
    upstream->name = copy(conf->name);
    upstream->server_name = conf->tls.server_name.n > 0 ? copy(conf->tls.server_name) : NULL;
    settings_of(&upstream->settings, conf, shared);
    upstream->connect = conf->connect;
    upstream->first_byte = conf->first_byte;
    upstream->idle = conf->idle;
    upstream->keepalive = conf->keepalive;
    upstream->max_idle = conf->reuse == SZ_REUSE_NEVER ? 0 : conf->max_idle;
    upstream->preserve_host = conf->preserve_host;
    upstream->turn = pools->thread; /* threads begin at different urls */
    sz_buf_printf(&label, "upstream:%s%c", upstream->name, '\0');
    upstream->latency = sz_series1(SZ_METRIC_dependency, label.p);
    sz_buf_fini(&label);
    upstream->urls_n = conf->urls_n;
    for (size_t i = 0; i < conf->urls_n; i++) {
        struct sz_upstream_url *url = &upstream->urls[i];
        url->upstream = upstream;
        url->at = i;
        url->host = copy(conf->urls[i].host);
        url->authority = copy(conf->urls[i].authority);
        url->port = conf->urls[i].port;
        url->tls = conf->urls[i].tls;
        sz_resolve_init(url);
    }
    return upstream;
}

static void upstream_free(struct sz_upstream *upstream)
{
    for (size_t i = 0; i < upstream->urls_n; i++) {
        struct sz_upstream_url *url = &upstream->urls[i];
        sz_resolve_fini(url);
        SSL_SESSION_free(url->session);
        free(url->host);
        free(url->authority);
    }
    sz_upstream_shared_unref(upstream->shared);
    sz_buf_fini(&upstream->settings);
    free(upstream->name);
    free(upstream->server_name);
    free(upstream);
}

void sz_upstream_unref(struct sz_upstream *upstream)
{
    if (--upstream->refs == 0)
        upstream_free(upstream);
}

static void close_idle(struct sz_upstream *upstream)
{
    upstream->refs++; /* the last connection may hold the last reference */
    for (size_t i = 0; i < upstream->urls_n; i++) {
        while (upstream->urls[i].idle != NULL)
            sz_upconn_close(upstream->urls[i].idle);
    }
    sz_upstream_unref(upstream);
}

/* ---- generations ------------------------------------------------------------------------------------------ */

static struct sz_upstream *find_equal(const struct sz_generation *generation, const struct sz_conf_upstream *conf,
                                      const struct sz_upstream_shared *shared)
{
    struct sz_buf settings = {0};
    struct sz_upstream *found = NULL;

    settings_of(&settings, conf, shared);
    for (size_t i = 0; generation != NULL && found == NULL && i < generation->upstreams_n; i++) {
        if (sz_eq(sz_buf_slice(&generation->upstreams[i]->settings), sz_buf_slice(&settings)))
            found = generation->upstreams[i];
    }
    sz_buf_fini(&settings);
    return found;
}

static void generation_free(struct sz_generation *generation)
{
    for (size_t i = 0; i < generation->upstreams_n; i++)
        sz_upstream_unref(generation->upstreams[i]);
    free(generation);
}

/* Those of the older generations that the newest one does not name. */
static void retire_others(struct sz_proxy_pools *pools)
{
    struct sz_generation *newest = pools->generations;

    for (struct sz_generation *old = newest->next; old != NULL; old = old->next) {
        for (size_t i = 0; i < old->upstreams_n; i++)
            old->upstreams[i]->retired = true;
    }
    for (size_t i = 0; i < newest->upstreams_n; i++)
        newest->upstreams[i]->retired = false;
    for (struct sz_generation *old = newest->next; old != NULL; old = old->next) {
        for (size_t i = 0; i < old->upstreams_n; i++) {
            if (old->upstreams[i]->retired)
                close_idle(old->upstreams[i]);
        }
    }
}

/* All but the newest that no request holds. */
static void drop_unused(struct sz_proxy_pools *pools)
{
    struct sz_generation **at = &pools->generations->next;
    while (*at != NULL) {
        struct sz_generation *old = *at;
        if (old->users > 0) {
            at = &old->next;
            continue;
        }
        *at = old->next;
        generation_free(old);
    }
}

void sz_proxy_pools_configure(struct sz_proxy_pools *pools, const struct sz_conf *conf, struct sz_upstream_tls *tls)
{
    struct sz_generation *generation =
        sz_xcalloc(1, sizeof(*generation) + conf->upstreams_n * sizeof(generation->upstreams[0]));

    SZ_ASSERT(tls->n == conf->upstreams_n);
    generation->upstreams_n = conf->upstreams_n;
    for (size_t i = 0; i < conf->upstreams_n; i++) {
        struct sz_upstream *upstream = find_equal(pools->generations, &conf->upstreams[i], tls->v[i]);
        if (upstream == NULL)
            upstream = upstream_new(pools, &conf->upstreams[i], tls->v[i]);
        upstream->refs++;
        generation->upstreams[i] = upstream;
    }
    generation->next = pools->generations;
    pools->generations = generation;
    retire_others(pools);
    drop_unused(pools);
}

struct sz_generation *sz_pools_hold(struct sz_proxy_pools *pools)
{
    pools->generations->users++;
    return pools->generations;
}

void sz_pools_release(struct sz_proxy_pools *pools, struct sz_generation *generation)
{
    if (--generation->users == 0 && generation != pools->generations)
        drop_unused(pools);
}

/* ---- blocks ----------------------------------------------------------------------------------------------- */

struct sz_block *sz_block_get(struct sz_proxy_pools *pools)
{
    struct sz_block *block = pools->blocks;
    if (block == NULL)
        return sz_xmalloc(sizeof(*block) + SZ_BLOCK);
    pools->blocks = block->next;
    pools->blocks_n--;
    return block;
}

void sz_block_put(struct sz_proxy_pools *pools, struct sz_block *block)
{
    if (pools->blocks_n >= SZ_BLOCKS_KEPT) {
        free(block);
        return;
    }
    block->next = pools->blocks;
    pools->blocks = block;
    pools->blocks_n++;
}

/* ---- the end ---------------------------------------------------------------------------------------------- */

void sz_proxy_pools_drain(struct sz_proxy_pools *pools)
{
    pools->draining = true;
    for (struct sz_generation *g = pools->generations; g != NULL; g = g->next) {
        for (size_t i = 0; i < g->upstreams_n; i++)
            close_idle(g->upstreams[i]);
    }
    sz_streams_drain(pools);
}

void sz_proxy_pools_free(struct sz_proxy_pools **pools)
{
    struct sz_proxy_pools *self = *pools;
    if (self == NULL)
        return;
    *pools = NULL;
    sz_proxy_pools_drain(self);
    sz_streams_abort(self);
    sz_timer_cancel(self->loop, &self->stalled);
    while (self->generations != NULL) {
        struct sz_generation *next = self->generations->next;
        generation_free(self->generations);
        self->generations = next;
    }
    while (self->blocks != NULL) {
        struct sz_block *next = self->blocks->next;
        free(self->blocks);
        self->blocks = next;
    }
    free(self->scratch);
    free(self->response);
    free(self);
}
