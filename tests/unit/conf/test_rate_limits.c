/* Rate limits: what is made of good ones, and the mistakes that are particular to them. */
#include "conf_test.h"

#define ROUTE(limit) \
    "  - {id: r, match: {path: \"/r/{id}\"}, auth: {issuers: [main]}, upstream: up, rate_limit: " limit "}\n"
#define OPEN(limit) "  - {id: r, match: {path: \"/r/{id}\"}, public: true, upstream: up, rate_limit: " limit "}\n"
#define BUCKET      "algorithm: token_bucket, capacity: 100, refill: 100/60s, on_store_failure: closed"
#define WINDOW      "algorithm: sliding_window, limit: 100, window: 60s, on_store_failure: closed"

static void load(struct conf_try *t, const char *limits, const char *route)
{
    struct sz_buf text = {0};
    sz_buf_printf(&text, "rate_limits: {%s}\n", limits);
    sz_buf_add(&text, "", 1);
    char *yaml = conf_base(text.p, route);
    conf_try(t, yaml);
    free(yaml);
    sz_buf_fini(&text);
}

Test(rate_limits, a_route_gets_its_policies_in_order)
{
    struct conf_try t;
    load(&t, "one: {" BUCKET "}, two: {" WINDOW ", key: \"{claims.plan}-{path.id}\", policy_version: 7, dry_run: true}",
         ROUTE("[two, one]"));
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    const struct sz_conf_route *route = &t.conf->routes[0];
    cr_assert_eq(route->limits_n, 2);
    const struct sz_conf_rate_limit *two = route->limits[0].policy, *one = route->limits[1].policy;
    cr_expect(sz_eq(two->name, SZ_S("two")) && two->by == SZ_BY_TEMPLATE && two->version == 7 && two->dry_run);
    cr_expect_eq(route->limits[0].key.n, 3);
    cr_expect_eq(two->quota, 100);
    cr_expect_eq(two->quota_seconds, 60);
    cr_expect(sz_eq(one->name, SZ_S("one")) && one->by == SZ_BY_TENANT && !one->fail_open && one->lease == 1);
    cr_expect_eq(one->rule.n, 5);
    cr_expect_eq(one->rule.d, 3);
    cr_expect_eq(one->quota_seconds, 60);
    cr_expect_neq(route->limits[0].id, route->limits[1].id);
    conf_done(&t);
}

Test(rate_limits, one_policy_needs_no_list_and_open_has_its_own_rate_in_an_emergency)
{
    struct conf_try t;
    load(&t,
         "one: {algorithm: token_bucket, capacity: 100, refill: 2/s, cost: 3, on_store_failure: open},"
         "two: {algorithm: sliding_window, limit: 60, window: 60s, on_store_failure: open, emergency: 10/s}",
         ROUTE("one"));
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_assert_eq(t.conf->routes[0].limits_n, 1);
    const struct sz_conf_rate_limit *one = t.conf->routes[0].limits[0].policy, *two = one + 1;
    cr_expect(one->fail_open);
    cr_expect_eq(one->emergency.capacity, 3 * SZ_LIMIT_TOKEN, "at least one request");
    cr_expect_eq(one->emergency.n * 1000000 / one->emergency.d, 2 * SZ_LIMIT_TOKEN);
    cr_expect_eq(two->emergency.capacity, 10 * SZ_LIMIT_TOKEN);
    conf_done(&t);
}

Test(rate_limits, mistakes_name_their_remedy)
{
    static const struct {
        const char *limit, *route, *message;
    } cases[] = {
        {"one: {algorithm: token_bucket, capacity: 1, refill: 1/s}", ROUTE("one"), "needs 'on_store_failure'"},
        {"one: {capacity: 1, refill: 1/s, on_store_failure: open}", ROUTE("one"), "needs 'algorithm'"},
        {"one: {algorithm: token_bucket, refill: 1/s, on_store_failure: open}", ROUTE("one"), "needs 'capacity'"},
        {"one: {algorithm: token_bucket, capacity: 1, on_store_failure: open}", ROUTE("one"), "needs 'refill'"},
        {"one: {algorithm: sliding_window, limit: 1, on_store_failure: open}", ROUTE("one"), "needs 'window'"},
        {"one: {" BUCKET ", window: 1s}", ROUTE("one"), "has no 'window'; remove it"},
        {"one: {" WINDOW ", refill: 1/s}", ROUTE("one"), "has no 'refill'; remove it"},
        {"one: {" BUCKET ", emergency: 1/s}", ROUTE("one"), "'emergency' is for 'on_store_failure: open'"},
        {"one: {" BUCKET ", cost: 101}", ROUTE("one"), "nothing would ever pass"},
        {"one: {" WINDOW ", cost: 101}", ROUTE("one"), "nothing would ever pass"},
        {"one: {" BUCKET ", lease: 101}", ROUTE("one"), "more at once than the whole limit"},
        {"one: {" BUCKET ", key: tennant}", ROUTE("one"), "it takes tenant, client, address"},
        {"one: {" BUCKET ", key: \"{path.other}\"}", ROUTE("one"), "the route's path has no {other}"},
        {"one: {" BUCKET ", key: \"{now}-{client.ip}\"}", ROUTE("one"), "another bucket each second"},
        {"one: {" BUCKET ", key: \"{claims.sub}\"}", OPEN("one"), "nobody is known"},
        {"one: {" BUCKET ", key: cookie}", ROUTE("one"), "'anonymous'"},
        {"one: {algorithm: token_bucket, capacity: 1, refill: 1, on_store_failure: open}", ROUTE("one"), "100/60s"},
        {"one: {algorithm: token_bucket, capacity: 1, refill: 1/0s, on_store_failure: open}", ROUTE("one"), "100/60s"},
        {"one: {algorithm: token_bucket, capacity: 1, refill: /1s, on_store_failure: open}", ROUTE("one"), "100/60s"},
        {"one: {algorithm: token_bucket, capacity: 1, refill: 1/60, on_store_failure: open}", ROUTE("one"), "no unit"},
        {"one: {algorithm: token_bucket, capacity: 1, refill: -1/1s, on_store_failure: open}", ROUTE("one"), "100/60s"},
        {"one: {algorithm: token_bucket, capacity: 1, refill: 0/1s, on_store_failure: open}", ROUTE("one"),
         "needs 'emergency'"},
        {"one: {algorithm: token_bucket, capacity: 1000000000, refill: 1/1d, on_store_failure: closed}", ROUTE("one"),
         "2^52"},
        {"one: {algorithm: sliding_window, limit: 1000000000, window: 1d, on_store_failure: closed}", ROUTE("one"),
         "2^52"},
        {"one: {" BUCKET "}", ROUTE("tow"), "no rate limit 'tow'"},
        {"standard: {" BUCKET "}", ROUTE("standrad"), "did you mean 'standard'?"},
        {"one: {" BUCKET "}", ROUTE("[one, one]"), "twice"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        load(&t, cases[i].limit, cases[i].route);
        cr_expect_null(t.conf, "accepted: %s", cases[i].limit);
        cr_expect(conf_has(&t, 0, 0, cases[i].message), "%s\nwanted %s\ngot%s", cases[i].limit, cases[i].message,
                  conf_messages(&t));
        conf_done(&t);
    }
}

Test(rate_limits, what_lets_a_client_choose_its_bucket_is_warned_about)
{
    struct conf_try t;
    load(&t, "one: {" BUCKET ", key: \"{header.x-key}\"}", ROUTE("one"));
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect(conf_has(&t, 0, 0, "the same client has another bucket"));
    conf_done(&t);
    load(&t, "one: {algorithm: token_bucket, capacity: 1, refill: 0/1s, on_store_failure: closed}", ROUTE("one"));
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect(conf_has(&t, 0, 0, "stays in the store for good"));
    conf_done(&t);
}

Test(rate_limits, per_address)
{
    static const struct {
        const char *limits, *message; /* NULL: good */
    } cases[] = {
        {"{per_address: {rate: 50/1s}}", NULL},
        {"{per_address: {rate: 1000/1m, burst: 2000, failure_cost: 100, in_flight: 64}}", NULL},
        {"{per_address: {burst: 3}}", "needs 'rate'"},
        {"{per_address: {rate: 0/1s}}", "out for good"},
        {"{per_address: {rate: 1/1s, burst: 5}}", "'failure_cost' is more than 'burst'"},
        {"{per_address: {rate: 50}}", "100/60s"},
        {"{per_address: {rate: 1000000000/1s}}", "2^52"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        struct sz_buf text = {0};
        sz_buf_printf(&text, "limits: %s\n%c", cases[i].limits, 0);
        char *yaml = conf_base(text.p, "  - {id: r, match: {path: /r}, public: true, upstream: up}\n");
        conf_try(&t, yaml);
        cr_expect_eq(t.conf != NULL, cases[i].message == NULL, "%s%s", cases[i].limits, conf_messages(&t));
        if (cases[i].message != NULL)
            cr_expect(conf_has(&t, 0, 0, cases[i].message), "%s%s", cases[i].limits, conf_messages(&t));
        else
            cr_expect(t.conf->limits.per_address.on &&
                      t.conf->limits.per_address.wide.capacity == 16 * t.conf->limits.per_address.rule.capacity);
        conf_done(&t);
        free(yaml);
        sz_buf_fini(&text);
    }
}

Test(rate_limits, visitors)
{
    static const struct {
        const char *anonymous, *key, *route, *message; /* NULL: good */
    } cases[] = {
        {"ttl: 1h", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", OPEN("[c, a]"), NULL},
        {"cookie: \"a b\"", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", OPEN("[c, a]"), "a cookie's name"},
        {"ttl: 1h", "short", OPEN("[c, a]"), "holds no key"},
        {"ttl: 1h", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", ROUTE("[c, a]"), "the subject is known"},
        {"ttl: 1h", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", OPEN("c"), "keeps no cookie is never limited"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        struct sz_buf text = {0};
        const char *path = conf_write("visitors", cases[i].key, 0600);
        sz_buf_printf(&text,
                      "anonymous: {key_file: %s, %s}\n"
                      "rate_limits: {c: {" BUCKET ", key: cookie}, a: {" BUCKET ", key: address}}\n%c",
                      path, cases[i].anonymous, 0);
        char *yaml = conf_base(text.p, cases[i].route);
        conf_try(&t, yaml);
        bool only_warns = i + 1 == SZ_COUNT(cases);
        cr_expect_eq(t.conf != NULL, cases[i].message == NULL || only_warns, "%zu%s", i, conf_messages(&t));
        if (cases[i].message != NULL)
            cr_expect(conf_has(&t, 0, 0, cases[i].message), "%zu%s", i, conf_messages(&t));
        conf_done(&t);
        free(yaml);
        sz_buf_fini(&text);
    }
}
