/* What a snapshot keeps per route. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "pipeline/plan.h"

enum { ROUTES = 10000 };

struct counting_pool {
    struct sz_pool pool;
    struct sz_arena arena;
    size_t bytes;
};

static void *count(struct sz_pool *pool, size_t size)
{
    struct counting_pool *c = SZ_CONTAINER(pool, struct counting_pool, pool);
    c->bytes += size;
    return sz_pool_alloc(&c->arena.pool, size);
}

Test(plan, routes_share_what_they_strip_alike)
{
    static struct sz_conf_route routes[ROUTES];
    static const struct sz_slice more[] = {{"x-old", 5}};
    struct sz_conf conf = {.routes = routes, .routes_n = ROUTES};
    struct counting_pool pool = {.pool = {count}};
    sz_arena_init(&pool.arena);
    for (size_t i = 0; i < ROUTES; i++)
        routes[i].id = SZ_S("route");
    routes[1].keep_authorization = true;
    routes[2].strip_headers = (struct sz_strings){more, 1};
    struct sz_plan *plan = sz_plan_new(&conf, &pool.pool);
    cr_assert_lt(pool.bytes, ROUTES * (sizeof(struct sz_route_plan) + 64), "%zu bytes a route", pool.bytes / ROUTES);
    cr_expect(sz_nameset_has(&plan->routes[0].strip, SZ_S("authorization")));
    cr_expect_not(sz_nameset_has(&plan->routes[1].strip, SZ_S("authorization")));
    cr_expect_not(sz_nameset_has(&plan->routes[0].strip, SZ_S("x-old")));
    cr_expect(sz_nameset_has(&plan->routes[2].strip, SZ_S("x-old")));
    cr_expect_not(sz_nameset_has(&plan->unmatched.strip, SZ_S("authorization")));
    for (size_t i = 0; i < 3; i++)
        cr_expect(sz_nameset_has(&plan->routes[i].strip, SZ_S("x-subzero-subject")));
    sz_arena_fini(&pool.arena);
}
