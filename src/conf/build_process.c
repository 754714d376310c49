/* What concerns the process as a whole: threads, user, whom to trust, bounds, caches, log. */
#include <pwd.h>
#include <unistd.h>

#include "conf/build.h"
#include "conf/cpus.h"

static void workers(struct sz_builder *b)
{
    const struct sz_node *at = sz_node_get(b->raw->head.node, "workers");
    uint64_t n = 0;
    if (sz_eq(b->raw->workers, SZ_S("auto")))
        b->conf->workers = sz_cpus_allowed("");
    else if (sz_parse_u64(b->raw->workers, 256, &n) == 0 && n > 0)
        b->conf->workers = (unsigned)n;
    else
        sz_mistake(b->l, at, "'workers' is '%.*s'; write auto or a number from 1 to 256", SZ_FMT(b->raw->workers));
}

static void user(struct sz_builder *b)
{
    struct passwd pw, *found = NULL;
    char room[4096];
    b->conf->user = b->raw->user;
    if (b->raw->user.p == NULL)
        return;
    int rc = getpwnam_r(b->raw->user.p, &pw, room, sizeof(room), &found);
    if (found == NULL)
        sz_mistake(b->l, sz_node_get(b->raw->head.node, "user"),
                   "no user '%.*s' on this system%s%s; create it or name another", SZ_FMT(b->raw->user),
                   rc != 0 ? ": " : "", rc != 0 ? strerror(rc) : "");
    else if (pw.pw_uid == 0)
        sz_mistake(b->l, sz_node_get(b->raw->head.node, "user"),
                   "'user' is there to stop being root; name another than '%.*s'", SZ_FMT(b->raw->user));
}

static void trusted_proxies(struct sz_builder *b)
{
    struct sz_strings raw = b->raw->trusted_proxies;
    struct sz_cidr *v = sz_pool_alloc(b->l->pool, raw.n * sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        const struct sz_node *at = sz_node_item(b->raw->head.node, "trusted_proxies", i);
        struct sz_text why;
        if (sz_cidr_parse(raw.v[i], &v[n], &why) != 0)
            sz_mistake(b->l, at, "'%.*s': %s", SZ_FMT(raw.v[i]), why.s);
        else if (sz_cidr_length(&v[n]) < 7)
            sz_mistake(b->l, at, "'%.*s' is wider than /7: half the world could claim any address; name the proxies",
                       SZ_FMT(raw.v[i]));
        else
            n++;
    }
    b->conf->trusted_proxies = (struct sz_cidrs){v, n};
}

static void limits(struct sz_builder *b)
{
    const struct sz_conf_limits *in = &b->raw->limits.out;
    const struct sz_node *node = b->raw->limits.head.node;
    b->conf->limits = *in;
    if (in->request_body > in->buffered_bodies)
        sz_mistake(b->l, sz_node_key(node, "request_body"),
                   "'request_body' is larger than 'buffered_bodies', what the whole process may hold; raise that one");
    sz_build_per_address(b);
}

void sz_build_process(struct sz_builder *b)
{
    const struct sz_raw_conf *raw = b->raw;
    workers(b);
    user(b);
    trusted_proxies(b);
    limits(b);
    b->conf->http = raw->http.out;
    if (raw->state_dir.p != NULL)
        b->conf->state_dir = sz_path_resolve(b->l, raw->state_dir);
    b->conf->cache = (struct sz_conf_cache){
        .capacity = raw->cache.l1.capacity,
        .ttl = raw->cache.l1.ttl,
        .ttl_opaque = raw->cache.l1.ttl_opaque,
        .ttl_degraded = raw->cache.l1.ttl_degraded,
        .negative_capacity = raw->cache.negative.capacity,
        .decisions = {raw->cache.decisions.capacity, raw->cache.decisions.ttl, raw->cache.decisions.negative_ttl},
        .negative_ttl = raw->cache.negative.ttl,
    };
    b->conf->revocation = (struct sz_conf_revocation){.capacity = raw->revocation.capacity,
                                                      .closed = raw->revocation.on_store_failure != 0};
    b->conf->log = (struct sz_conf_log){
        .access = (enum sz_access_log)raw->log.access, .sample = raw->log.sample, .level = raw->log.level};
    if (raw->assertion.head.node != NULL) {
        b->conf->assertion.on = true;
        b->conf->assertion.key = raw->assertion.key.secret;
        b->conf->assertion.ttl = raw->assertion.ttl;
        b->conf->assertion.issuer = raw->assertion.issuer;
    }
}
