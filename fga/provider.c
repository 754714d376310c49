/*
 * Which providers there are.  A configuration about to be used is adopted: an issuer whose source of keys is known gets
 * the slot that this source fills, any other begins a provider of its own; what nobody names any more is retired.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fga/provider_impl.h"
#include "subzero/log.h"

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static void on_scrape(void *arg, struct sz_buf *out)
{
    const struct sz_providers *all = *(struct sz_providers **)arg;
    if (all == NULL || all->first == NULL)
        return;
    struct sz_mono now = sz_loop_now(all->loop);
    const char *name = sz_metrics_head(out, SZ_COLLECTED_jwks_age);
    for (const struct sz_provider *p = all->first; p != NULL; p = p->next) {
        if (p->has_keys)
            sz_buf_printf(out, "%s{issuer=\"%.*s\"} %.3f\n", name, SZ_FMT(p->name),
                          (double)sz_between(p->fetched, now).us / 1e6);
    }
}

static void register_series(struct sz_provider *p)
{
    static const char *const results[SZ_PROVIDER_RESULTS] = {"ok", "unavailable", "unusable"};
    char name[128];
    snprintf(name, sizeof(name), "%.*s", SZ_FMT(p->name));
    for (size_t i = 0; i < SZ_PROVIDER_RESULTS; i++) {
        const char *labels[] = {name, results[i]};
        p->refreshed[i] = sz_series(SZ_METRIC_jwks_refresh, labels);
    }
}

static const char *state(const struct sz_provider *p)
{
    if (p->failures == 0)
        return p->has_keys ? "ok" : "starting";
    return p->has_keys ? "stale" : "down";
}

bool sz_providers_health(struct sz_providers *all, struct sz_buf *out)
{
    struct sz_mono now = sz_loop_now(all->loop);
    bool well = true;
    for (const struct sz_provider *p = all->first; p != NULL; p = p->next) {
        well = well && p->failures == 0 && p->has_keys;
        sz_buf_printf(out, "%s\"%.*s\":{\"status\":\"%s\"", p == all->first ? "" : ",", SZ_FMT(p->name), state(p));
        if (p->has_keys)
            sz_buf_printf(out, ",\"keys\":%u,\"age_seconds\":%lld", atomic_load(&p->slot->alive_n),
                          (long long)(sz_between(p->fetched, now).us / 1000000));
        if (p->failures > 0) {
            sz_buf_printf(out, ",\"failures\":%u,\"error\":", p->failures);
            sz_buf_json(out, sz_cstr(p->why.s));
        }
        sz_buf_printf(out, "}");
    }
    return well;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static struct sz_providers *scraped; /* the process has one */

struct sz_providers *sz_providers_new(struct sz_loop *loop, struct sz_http *http, struct sz_slice state_dir,
                                      struct sz_text *why)
{
    struct sz_providers *all = sz_xcalloc(1, sizeof(*all));
    struct sz_text detail;
    all->loop = loop;
    all->http = http;
    all->dir = -1;
    if (state_dir.p != NULL) {
        all->dir = sz_key_dir_open(state_dir.p, &detail);
        if (all->dir < 0) {
            sz_text_set(why, "state_dir '%.*s': %s", SZ_FMT(state_dir), detail.s);
            sz_providers_free(&all);
            return NULL;
        }
    }
    all->keeper = sz_keeper_new(loop);
    if (all->keeper == NULL) {
        sz_text_set(why, "cannot set up what reads and saves keys: %s", strerror(errno));
        sz_providers_free(&all);
        return NULL;
    }
    if (scraped == NULL) {
        scraped = all;
        sz_metrics_on_scrape(on_scrape, &scraped);
    }
    return all;
}

static void retire(struct sz_provider *p)
{
    sz_provider_stop(p);
    p->slot->provider = NULL;
    p->retired = true;
    p->next = p->all->leaving;
    p->all->leaving = p;
    sz_provider_free(p);
}

void sz_providers_free(struct sz_providers **allp)
{
    struct sz_providers *all = *allp;
    *allp = NULL;
    if (all == NULL)
        return;
    sz_keeper_free(&all->keeper); /* from here on no job is done */
    for (struct sz_provider *p = all->leaving; p != NULL; p = p->next)
        p->parse.busy = p->save.busy = false;
    while (all->leaving != NULL)
        sz_provider_free(all->leaving);
    while (all->first != NULL) {
        struct sz_provider *p = all->first;
        all->first = p->next;
        p->parse.busy = p->save.busy = false;
        retire(p);
    }
    if (all->dir >= 0)
        close(all->dir);
    if (scraped == all)
        scraped = NULL;
    free(all);
}

/* ---- adopting ---------------------------------------------------------------------------------------------------- */

/* What makes it the same provider: all that decides where keys come from, and how long they are used. */
static uint64_t settings_of(const struct sz_conf_issuer *conf)
{
    struct sz_buf k = {0};
    struct {
        int64_t max_stale, cooldown, flags;
    } numbers = {conf->max_stale.us, conf->cooldown.us, conf->insecure_http | conf->discover << 1};
    uint8_t digest[32];
    uint64_t hash;
    sz_key_field(&k, 1, conf->name);
    sz_key_field(&k, 2, conf->issuer);
    sz_key_field(&k, 3, conf->jwks_uri);
    sz_key_field(&k, 4, conf->discovery);
    sz_key_field(&k, 5, conf->ca_file);
    sz_key_field(&k, 6, sz_slice(&numbers, sizeof(numbers)));
    sz_sha256(sz_buf_slice(&k), digest);
    sz_buf_fini(&k);
    memcpy(&hash, digest, sizeof(hash));
    return hash;
}

static struct sz_slice copy(struct sz_provider *p, struct sz_slice s)
{
    return s.p == NULL ? s : sz_slice(sz_pool_strdup(&p->arena.pool, s), s.n);
}

static struct sz_provider *begin(struct sz_providers *all, const struct sz_issuer *issuer, uint64_t settings)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    struct sz_provider *p = sz_xcalloc(1, sizeof(*p));
    p->all = all;
    p->next = all->first;
    all->first = p;
    p->settings = settings;
    p->id = issuer->id;
    sz_arena_init(&p->arena);
    p->name = copy(p, conf->name);
    p->issuer = copy(p, conf->issuer);
    p->jwks_uri = copy(p, conf->jwks_uri);
    p->metadata = copy(p, conf->discovery);
    p->source = p->jwks_uri.p != NULL   ? p->jwks_uri
                : p->metadata.p != NULL ? p->metadata
                                        : sz_metadata_openid(p->issuer, &p->arena.pool);
    p->insecure_http = conf->insecure_http;
    p->max_stale = conf->max_stale;
    p->cooldown = conf->cooldown;
    p->slot = sz_key_slot_ref(issuer->slot);
    p->slot->loop = all->loop;
    p->slot->provider = p;
    register_series(p);
    return p;
}

static struct sz_provider *find(struct sz_providers *all, uint64_t settings)
{
    struct sz_provider *p = all->first;
    while (p != NULL && p->settings != settings)
        p = p->next;
    return p;
}

static void adopt(struct sz_providers *all, struct sz_issuer *issuer, bool first)
{
    uint64_t settings = settings_of(issuer->conf);
    struct sz_provider *p = find(all, settings);
    bool fresh = p == NULL;
    if (fresh) {
        p = begin(all, issuer, settings);
    } else {
        sz_key_slot_unref(&issuer->slot);
        issuer->slot = sz_key_slot_ref(p->slot);
    }
    sz_http_trust_unref(&p->trust); /* the file may hold other certificates by now */
    p->trust = sz_http_trust_ref(issuer->trust);
    p->named = true;
    if (!fresh)
        return;
    if (!first && all->dir >= 0) {
        sz_provider_load_later(p);
    } else {
        (void)sz_provider_load(p);
        sz_provider_parsed(p);
    }
}

static void adopt_dependency(struct sz_providers *all, struct sz_issuer *issuer)
{
    char name[SZ_DEPENDENCY_NAME_MAX];
    snprintf(name, sizeof(name), "issuer:%.*s", SZ_FMT(issuer->conf->name));
    issuer->dependency = sz_dependency_get(name, &issuer->conf->breaker, sz_loop_now(all->loop));
}

void sz_providers_adopt(struct sz_providers *all, struct sz_issuers *issuers, bool first)
{
    for (struct sz_provider *p = all->first; p != NULL; p = p->next)
        p->named = false;
    for (size_t i = 0; i < issuers->n; i++) {
        if (sz_issuer_fetches(issuers->v[i].conf))
            adopt(all, &issuers->v[i], first);
        if (sz_issuer_asks(issuers->v[i].conf))
            adopt_dependency(all, &issuers->v[i]);
    }
    for (struct sz_provider **at = &all->first; *at != NULL;) {
        struct sz_provider *p = *at;
        if (p->named) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        retire(p);
    }
}
