/* Configurations come and go: which upstreams are carried over, which are retired, whom a request finds. */
#include <criterion/criterion.h>

#include "edge/proxy.h"
#include "edge/upstream.h"

static h2o_globalconf_t globalconf;
static h2o_context_t ctx;
static struct sz_loop *loop;
static struct sz_proxy_pools *pools;

static void setup(void)
{
    sz_metrics_init(1);
    h2o_config_init(&globalconf);
    h2o_config_register_host(&globalconf, h2o_iovec_init(H2O_STRLIT("h")), 65535);
    loop = sz_loop_new(0);
    h2o_context_init(&ctx, sz_loop_native(loop), &globalconf);
    pools = sz_proxy_pools_new(&ctx, loop);
}

static void teardown(void)
{
    sz_proxy_pools_free(&pools);
    cr_assert_null(pools);
    h2o_context_dispose(&ctx);
    sz_loop_free(&loop);
    h2o_config_dispose(&globalconf);
    sz_metrics_fini();
}

static const struct sz_conf_url urls[] = {
    {.host = {"127.0.0.1", 9}, .port = 1, .authority = {"127.0.0.1:1", 11}},
    {.host = {"::1", 3}, .port = 2, .authority = {"[::1]:2", 7}},
    {.host = {"localhost", 9}, .port = 3, .authority = {"localhost:3", 11}},
};

static struct sz_conf_upstream upstream(const char *name)
{
    return (struct sz_conf_upstream){.name = sz_cstr(name),
                                     .urls = urls,
                                     .urls_n = SZ_COUNT(urls),
                                     .connect = SZ_SEC(1),
                                     .first_byte = SZ_SEC(1),
                                     .idle = SZ_SEC(1),
                                     .keepalive = SZ_SEC(4),
                                     .max_idle = 8,
                                     .preserve_host = true};
}

static void configure(uint64_t version, const struct sz_conf_upstream *v, size_t n)
{
    struct sz_conf conf = {.version = version, .upstreams = v, .upstreams_n = n, .source = SZ_S("test")};
    struct sz_mistakes m;

    sz_mistakes_init(&m);
    struct sz_upstream_tls *tls = sz_upstream_tls_new(&conf, &m);
    cr_assert(tls != NULL && m.errors == 0);
    sz_proxy_pools_configure(pools, &conf, tls);
    sz_upstream_tls_unref(tls);
    sz_mistakes_fini(&m);
}

static struct sz_upstream *now(size_t at)
{
    return pools->generations->upstreams[at];
}

Test(upstream_pool, addresses_are_known_at_once, .init = setup, .fini = teardown)
{
    struct sz_conf_upstream v[] = {upstream("a")};

    configure(1, v, 1);
    struct sz_upstream *a = now(0);
    cr_assert(a->urls[0].literal && a->urls[0].addresses[0].v4.sin_port == htons(1));
    cr_assert(a->urls[1].literal && a->urls[1].addresses[0].v6.sin6_port == htons(2));
    cr_assert(!a->urls[2].literal && a->urls[2].addresses_n == 0);
}

Test(upstream_pool, equal_settings_are_carried_over, .init = setup, .fini = teardown)
{
    struct sz_conf_upstream v1[] = {upstream("a"), upstream("b")}, v2[] = {upstream("b"), upstream("a")};

    configure(1, v1, 2);
    struct sz_upstream *a = now(0), *b = now(1);
    struct sz_generation *held = sz_pools_hold(pools);
    v2[1].idle = SZ_SEC(2);
    configure(2, v2, 2);
    cr_assert_eq(now(0), b, "wherever it stands in the list");
    cr_assert_neq(now(1), a);
    cr_assert_eq(held->upstreams[0], a, "requests that began before have theirs");
    cr_assert(a->retired && !b->retired);
    configure(3, v1, 2);
    cr_assert_eq(now(1), b);
    cr_assert(a->retired, "back again, but only the newest one is carried over");
    cr_assert(!now(0)->retired);
    sz_pools_release(pools, held);
}

Test(upstream_pool, every_setting_counts, .init = setup, .fini = teardown)
{
    struct sz_conf_url other[SZ_COUNT(urls)];
    memcpy(other, urls, sizeof(urls));
    other[2].port = 4;

    for (int i = 0; i < 9; i++) {
        struct sz_conf_upstream v[] = {upstream("a")};
        configure((uint64_t)i * 2 + 1, v, 1);
        struct sz_upstream *before = now(0);
        struct sz_generation *held = sz_pools_hold(pools);
        switch (i) {
        case 0:
            v[0].connect = SZ_SEC(9);
            break;
        case 1:
            v[0].first_byte = SZ_SEC(9);
            break;
        case 2:
            v[0].keepalive = SZ_SEC(9);
            break;
        case 3:
            v[0].max_idle = 9;
            break;
        case 4:
            v[0].reuse = SZ_REUSE_NEVER;
            break;
        case 5:
            v[0].preserve_host = false;
            break;
        case 6:
            v[0].tls.server_name = SZ_S("x");
            break;
        case 7:
            v[0].urls = other;
            break;
        default:
            v[0].urls_n = 2;
            break;
        }
        configure((uint64_t)i * 2 + 2, v, 1);
        cr_assert_neq(now(0), before, "setting %d", i);
        sz_pools_release(pools, held);
    }
}

static size_t generations(void)
{
    size_t n = 0;
    for (struct sz_generation *g = pools->generations; g != NULL; g = g->next)
        n++;
    return n;
}

/* However many come after it, and whatever goes in between. */
Test(upstream_pool, a_generation_lives_as_long_as_its_requests, .init = setup, .fini = teardown)
{
    struct sz_generation *held[20];
    for (uint64_t version = 1; version <= 20; version++) {
        struct sz_conf_upstream v[] = {upstream("a")};
        v[0].idle = SZ_MS((int64_t)version);
        configure(version, v, 1);
        held[version - 1] = sz_pools_hold(pools);
        if (version % 2 == 0)
            sz_pools_release(pools, held[version - 1]);
    }
    cr_assert_eq(generations(), 11, "ten with a request, and the newest");
    for (uint64_t version = 1; version <= 20; version += 2) {
        cr_assert_eq(held[version - 1]->upstreams[0]->idle.us, (int64_t)version * 1000);
        sz_pools_release(pools, held[version - 1]);
    }
    cr_assert_eq(generations(), 1);
}

Test(upstream_pool, too_many_urls_are_a_mistake, .init = setup, .fini = teardown)
{
    struct sz_conf_url many[SZ_URLS_MAX + 1];
    struct sz_conf_upstream v[] = {upstream("a")};
    struct sz_conf conf = {.upstreams = v, .upstreams_n = 1, .source = SZ_S("test")};
    struct sz_mistakes m;

    for (size_t i = 0; i < SZ_COUNT(many); i++)
        many[i] = urls[0];
    v[0].urls = many;
    v[0].urls_n = SZ_COUNT(many);
    sz_mistakes_init(&m);
    cr_assert_null(sz_upstream_tls_new(&conf, &m));
    cr_assert_eq(m.errors, 1);
    sz_mistakes_fini(&m);
}
