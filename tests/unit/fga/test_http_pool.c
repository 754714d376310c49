/*
 * http*.c, what calls share: connections and how they are shared out, TLS and whom it believes, HTTP/2, names.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake/certs.h"
#include "http_kit.h"

static struct http_kit k;

static void teardown(void)
{
    kit_stop(&k);
}

TestSuite(http_pool, .fini = teardown, .timeout = 90);

static void begin_many(struct kit_call *calls, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++) {
        struct sz_http_request r = kit_get(&k, path);
        kit_begin(&k, &calls[i], &r);
    }
}

static void end_many(struct kit_call *calls, size_t n, enum sz_http_result result)
{
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(calls[i].answer.result, result, "%zu: %s, %s", i, sz_http_result_name(calls[i].answer.result),
                     calls[i].answer.why.s);
        kit_end(&calls[i]);
    }
}

static void latency(enum provider_endpoint endpoint, unsigned ms)
{
    struct provider_script script = {.latency_ms = ms};
    provider_play(k.provider, endpoint, &script);
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

Test(http_pool, tls_believes_its_own_authorities_alone)
{
    kit_start(&k, &(struct provider_options){.tls = true});
    struct kit_call c;
    struct cert stranger;
    struct sz_text why;
    cert_ca(&stranger, "stranger");
    struct sz_http_trust *other = sz_http_trust_new(stranger.file, &why), *mine = k.trust;
    cr_assert_not_null(other);
    cr_expect_eq(kit_ask_url(&k, &c, "/x")->result, SZ_HTTP_ANSWERED, "%s", c.answer.why.s);
    kit_end(&c);
    k.trust = other; /* the connection that stands was verified by somebody else */
    cr_expect_eq(kit_ask_url(&k, &c, "/x")->result, SZ_HTTP_TLS, "%s", c.answer.why.s);
    cr_expect_not_null(strstr(c.answer.why.s, "certificate"), "%s", c.answer.why.s);
    kit_end(&c);
    k.trust = mine;
    cr_expect(kit_ask_url(&k, &c, "/x")->reused);
    kit_end(&c);
    sz_http_trust_unref(&other);
}

Test(http_pool, a_certificate_for_another_name)
{
    kit_start(&k, &(struct provider_options){.tls = true, .san = "DNS:idp.example"});
    struct kit_call c;
    cr_expect_eq(kit_ask_url(&k, &c, "/x")->result, SZ_HTTP_TLS);
    cr_expect_eq(provider_calls(k.provider, PROVIDER_OTHER), 0);
    kit_end(&c);
}

Test(http_pool, plain_text_where_tls_is_expected)
{
    kit_start(&k, NULL);
    struct cert ca;
    struct sz_text why;
    struct kit_call c;
    char url[64];
    cert_ca(&ca, "ca");
    k.trust = sz_http_trust_new(ca.file, &why);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/x", provider_port(k.provider));
    struct sz_http_request r = kit_get(&k, url);
    r.deadline = sz_after(sz_loop_now(k.loop), SZ_MS(500));
    kit_ask(&k, &c, &r); /* the provider waits for the end of a head that never comes */
    cr_expect(c.answer.result == SZ_HTTP_TLS || c.answer.result == SZ_HTTP_TIMEOUT, "%s", c.answer.why.s);
    kit_end(&c);
}

Test(http_pool, authorities_that_cannot_be_read)
{
    kit_start(&k, NULL);
    struct sz_text why = {""};
    cr_expect_null(sz_http_trust_new("/nonexistent.pem", &why));
    cr_expect_not_null(strstr(why.s, "/nonexistent.pem"));
    cr_expect_null(sz_http_trust_new(scratch_write("empty.pem", SZ_S("")), &why));
    cr_expect_null(sz_http_trust_new(scratch_write("text.pem", SZ_S("not a certificate\n")), &why));
    struct sz_http_trust *system = sz_http_trust_new(NULL, &why);
    cr_expect_not_null(system, "%s", why.s);
    sz_http_trust_unref(&system);
}

Test(http_pool, trust_may_go_while_the_call_is_under_way)
{
    kit_start(&k, &(struct provider_options){.tls = true});
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/x");
    kit_begin(&k, &c, &r);
    sz_http_trust_unref(&k.trust);
    kit_run_until(&k, 1);
    cr_expect_eq(c.answer.result, SZ_HTTP_ANSWERED, "%s", c.answer.why.s);
    kit_end(&c);
}

/* ---- HTTP/2 ------------------------------------------------------------------------------------------------------ */

Test(http_pool, a_hundred_calls_at_a_cold_start_share_one_connection)
{
    enum { N = 100 };
    static struct kit_call calls[N];
    kit_start(&k, &(struct provider_options){.tls = true, .h2 = true});
    latency(PROVIDER_OTHER, 50);
    begin_many(calls, N, "/x");
    kit_run_until(&k, N);
    end_many(calls, N, SZ_HTTP_ANSWERED);
    cr_expect_eq(provider_connections(k.provider), 1);
    cr_expect_eq(provider_calls(k.provider, PROVIDER_OTHER), N);
}

Test(http_pool, faults_of_one_stream_are_its_own)
{
    static const struct {
        enum provider_fault fault;
        enum sz_http_result result;
    } cases[] = {{PROVIDER_TRUNCATE, SZ_HTTP_TRUNCATED},
                 {PROVIDER_RESET, SZ_HTTP_TRUNCATED},
                 {PROVIDER_HUGE, SZ_HTTP_TOO_LARGE},
                 {PROVIDER_ENDLESS, SZ_HTTP_TOO_LARGE},
                 {PROVIDER_HANG, SZ_HTTP_TIMEOUT}};
    kit_start(&k, &(struct provider_options){.tls = true, .h2 = true});
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct kit_call good, bad;
        struct sz_http_request r = kit_get(&k, "/jwks"), plain = kit_get(&k, "/x");
        provider_fault(k.provider, PROVIDER_JWKS, cases[i].fault);
        latency(PROVIDER_OTHER, 100);
        if (cases[i].result == SZ_HTTP_TIMEOUT)
            r.deadline = sz_after(sz_loop_now(k.loop), SZ_MS(300));
        int before = kit_done;
        kit_begin(&k, &bad, &r);
        kit_begin(&k, &good, &plain);
        kit_run_until(&k, before + 2);
        cr_expect_eq(bad.answer.result, cases[i].result, "%zu: %s, %s", i, sz_http_result_name(bad.answer.result),
                     bad.answer.why.s);
        cr_expect_eq(good.answer.result, SZ_HTTP_ANSWERED, "%zu: %s", i, good.answer.why.s);
        kit_end(&bad);
        kit_end(&good);
    }
}

Test(http_pool, who_waits_for_the_first_connection_hears_that_there_is_none)
{
    enum { N = 20 };
    static struct kit_call calls[N];
    kit_start(&k, &(struct provider_options){.tls = true});
    provider_refuse(k.provider);
    begin_many(calls, N, "/x");
    kit_run_until(&k, N);
    end_many(calls, N, SZ_HTTP_REFUSED);
    provider_accept(k.provider);
    begin_many(calls, N, "/x");
    kit_run_until(&k, 2 * N);
    end_many(calls, N, SZ_HTTP_ANSWERED);
}

Test(http_pool, the_first_call_may_leave)
{
    enum { N = 5 };
    static struct kit_call calls[N];
    kit_start(&k, &(struct provider_options){.tls = true});
    begin_many(calls, N, "/x");
    sz_http_cancel(&calls[0].call);
    kit_run_until(&k, N - 1);
    end_many(calls + 1, N - 1, SZ_HTTP_ANSWERED);
}

/* ---- connections are kept ---------------------------------------------------------------------------------------- */

static void steady(unsigned rounds, unsigned at_once)
{
    static struct kit_call calls[16];
    struct sz_http_stats stats;
    for (unsigned i = 0; i < rounds; i++) {
        begin_many(calls, at_once, "/x");
        kit_run_until(&k, kit_done + (int)at_once);
        end_many(calls, at_once, SZ_HTTP_ANSWERED);
    }
    sz_http_stats(k.http, &stats);
    cr_expect_eq(stats.connections + stats.reused, rounds * at_once);
    cr_expect_geq((double)stats.reused, 0.95 * (double)(rounds * at_once), "%u new", (unsigned)stats.connections);
    cr_expect_leq((double)stats.lookups, 0.01 * (double)(rounds * at_once));
}

Test(http_pool, reuse_under_steady_load)
{
    kit_start(&k, NULL);
    steady(100, 8);
    cr_expect_leq(provider_connections(k.provider), 8);
}

Test(http_pool, reuse_under_steady_load_with_tls)
{
    kit_start(&k, &(struct provider_options){.tls = true});
    steady(60, 8);
}

Test(http_pool, a_kept_connection_that_died_is_no_failure)
{
    kit_start(&k, NULL);
    struct kit_call c;
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(kit_ask_url(&k, &c, "/x")->result, SZ_HTTP_ANSWERED, "%s", c.answer.why.s);
        kit_end(&c);
        provider_refuse(k.provider); /* closes what is open */
        provider_accept(k.provider);
    }
}

Test(http_pool, what_may_not_be_sent_twice_has_its_own_connection)
{
    kit_start(&k, NULL);
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/introspect");
    r.method = SZ_HTTP_POST;
    r.body = SZ_S("token=x");
    for (int i = 0; i < 3; i++) {
        r.idempotent = i == 0;
        kit_ask(&k, &c, &r);
        cr_expect_eq(c.answer.result, SZ_HTTP_ANSWERED);
        cr_expect(!c.answer.reused);
        kit_end(&c);
    }
}

Test(http_pool, idle_and_dead_connections_are_closed)
{
    kit_conf.idle = SZ_SEC(1);
    kit_start(&k, NULL);
    static struct kit_call calls[10];
    latency(PROVIDER_OTHER, 20);
    begin_many(calls, 10, "/x");
    kit_run_until(&k, 10);
    end_many(calls, 10, SZ_HTTP_ANSWERED);
    cr_expect_eq(provider_open(k.provider), 10);
    kit_run_for(&k, SZ_MS(6000)); /* nobody asks for anything */
    cr_expect_eq(provider_open(k.provider), 0);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

Test(http_pool, connections_that_the_peer_closed_do_not_linger)
{
    kit_conf.idle = SZ_SEC(8); /* swept every two seconds */
    kit_start(&k, NULL);
    struct kit_call c;
    kit_ask_url(&k, &c, "/x");
    kit_end(&c);
    unsigned before = descriptors();
    provider_refuse(k.provider);
    kit_run_for(&k, SZ_MS(4500));
    cr_expect_lt(descriptors(), before, "%u of %u", descriptors(), before); /* less the listener and our end */
    cr_expect_leq(descriptors(), before - 3);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

Test(http_pool, no_more_than_per_host_at_once)
{
    enum { N = 30 };
    static struct kit_call calls[N];
    kit_conf.per_host = 3;
    kit_start(&k, NULL);
    latency(PROVIDER_OTHER, 10);
    begin_many(calls, N, "/x");
    struct sz_http_stats stats;
    sz_http_stats(k.http, &stats);
    cr_expect_eq(stats.calls, N);
    cr_expect_eq(stats.waiting, N - 3);
    kit_run_until(&k, N);
    end_many(calls, N, SZ_HTTP_ANSWERED);
    cr_expect_leq(provider_connections(k.provider), 3);
}

Test(http_pool, a_host_that_hangs_holds_up_nobody_else)
{
    enum { N = 10 };
    static struct kit_call hanging[N], calls[N];
    kit_conf.per_host = 2;
    kit_conf.connections = 4;
    kit_start(&k, NULL);
    struct provider *other = provider_start(NULL);
    char url[128];
    provider_fault(k.provider, PROVIDER_OTHER, PROVIDER_HANG);
    begin_many(hanging, N, "/x");
    snprintf(url, sizeof(url), "%s/x", provider_url(other));
    kit_run_for(&k, SZ_MS(50));
    struct sz_mono start = sz_loop_tick(k.loop);
    begin_many(calls, N, url);
    kit_run_until(&k, N);
    cr_expect_lt(sz_between(start, sz_loop_tick(k.loop)).us, SZ_SEC(4).us);
    end_many(calls, N, SZ_HTTP_ANSWERED);
    for (size_t i = 0; i < N; i++)
        sz_http_cancel(&hanging[i].call);
    provider_stop(&other);
}

Test(http_pool, hosts_take_turns_at_the_limit_of_all)
{
    enum { N = 20 };
    static struct kit_call first[N], second[N];
    kit_conf.per_host = 2;
    kit_conf.connections = 2;
    kit_start(&k, NULL);
    struct provider *other = provider_start(NULL);
    struct provider_script script = {.latency_ms = 10};
    char url[128];
    latency(PROVIDER_OTHER, 10);
    provider_play(other, PROVIDER_OTHER, &script);
    begin_many(first, N, "/x");
    snprintf(url, sizeof(url), "%s/x", provider_url(other));
    begin_many(second, N, url);
    kit_run_until(&k, N);
    unsigned done = 0;
    for (size_t i = 0; i < N; i++)
        done += (unsigned)second[i].done;
    cr_expect(done >= N / 4 && done <= N * 3 / 4, "%u of the second host's among the first %d", done, N);
    kit_run_until(&k, 2 * N);
    end_many(first, N, SZ_HTTP_ANSWERED);
    end_many(second, N, SZ_HTTP_ANSWERED);
    provider_stop(&other);
}

Test(http_pool, who_never_got_a_connection_was_not_refused_by_the_provider)
{
    struct kit_call holder, waiter;
    kit_conf.per_host = 1;
    kit_start(&k, NULL);
    provider_fault(k.provider, PROVIDER_JWKS, PROVIDER_HANG);
    struct sz_http_request hold = kit_get(&k, "/jwks"), wait = kit_get(&k, "/x");
    wait.deadline = sz_after(sz_loop_now(k.loop), SZ_MS(50));
    kit_begin(&k, &holder, &hold);
    kit_ask(&k, &waiter, &wait);
    cr_expect_eq(waiter.answer.result, SZ_HTTP_BUSY);
    cr_expect_eq(waiter.answer.tries, 0);
    kit_end(&waiter);
    sz_http_cancel(&holder.call);
    wait.deadline = sz_after(sz_loop_tick(k.loop), SZ_SEC(5));
    kit_ask(&k, &waiter, &wait);
    cr_expect_eq(waiter.answer.result, SZ_HTTP_ANSWERED);
    kit_end(&waiter);
}

Test(http_pool, calls_are_bounded)
{
    static struct kit_call calls[SZ_HTTP_CALLS_MAX];
    kit_conf.per_host = 1;
    kit_start(&k, NULL);
    struct sz_http_call one_more = {.on_done = (void (*)(struct sz_http_call *, const struct sz_http_answer *))abort};
    struct sz_http_request r = kit_get(&k, "/x");
    begin_many(calls, SZ_HTTP_CALLS_MAX, "/x");
    cr_expect_eq(sz_http_start(k.http, &r, &one_more), SZ_HTTP_FULL);
    sz_http_cancel(&calls[0].call);
    for (size_t i = 1; i < SZ_HTTP_CALLS_MAX; i++)
        sz_http_cancel(&calls[i].call);
    struct kit_call c;
    cr_expect_eq(kit_ask_url(&k, &c, "/x")->result, SZ_HTTP_ANSWERED);
    kit_end(&c);
}

Test(http_pool, clients_share_the_limits)
{
    struct sz_conf_http conf = {.connections = 10, .per_host = 100, .dns_ttl = SZ_SEC(1), .idle = SZ_SEC(1)};
    kit_start(&k, NULL);
    struct sz_http_shared *shared = sz_http_shared_new(&conf, 4);
    cr_expect_eq(shared->conf.connections, 2);
    cr_expect_eq(shared->conf.per_host, 2);
    sz_http_shared_free(&shared);
    shared = sz_http_shared_new(&conf, 64);
    cr_expect_eq(shared->conf.connections, 1);
    cr_expect_eq(shared->conf.per_host, 1);
    sz_http_shared_free(&shared);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static atomic_uint lookups;
static atomic_int lookup_fails;
static atomic_uint lookup_ms;

static int lookup(const char *host, struct sz_addresses *out)
{
    lookups++;
    if (lookup_ms != 0)
        usleep(lookup_ms * 1000);
    if (lookup_fails != 0 || strcmp(host, "idp.test") != 0)
        return -ENOENT;
    cr_assert_eq(sz_addr_parse(SZ_S("127.0.0.1"), &out->v[out->n++]), 0);
    return 0;
}

static char named[128];

static void start_named(struct sz_span ttl)
{
    kit_conf.dns_ttl = ttl;
    kit_start(&k, NULL);
    sz_http_free(&k.http);
    sz_resolver_free(&k.shared->resolver);
    k.shared->resolver = sz_resolver_new(ttl, lookup);
    k.http = sz_http_new(k.shared, k.loop);
    snprintf(named, sizeof(named), "http://idp.test:%u/x", provider_port(k.provider));
}

static enum sz_http_result ask_named(struct kit_call *c, struct sz_span within)
{
    struct sz_http_request r = kit_get(&k, named);
    r.insecure_http = true;
    r.deadline = sz_after(sz_loop_now(k.loop), within);
    kit_ask(&k, c, &r);
    enum sz_http_result result = c->answer.result;
    kit_end(c);
    return result;
}

Test(http_pool, a_name_is_looked_up_once)
{
    enum { N = 50 };
    static struct kit_call calls[N];
    struct sz_http_stats stats;
    start_named(SZ_SEC(300));
    lookup_ms = 20;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < N; i++) {
            struct sz_http_request r = kit_get(&k, named);
            r.insecure_http = true;
            kit_begin(&k, &calls[i], &r);
        }
        kit_run_until(&k, (round + 1) * N);
        end_many(calls, N, SZ_HTTP_ANSWERED);
    }
    cr_expect_eq(lookups, 1);
    sz_http_stats(k.http, &stats);
    cr_expect_eq(stats.lookups, 1);
    cr_expect_geq((double)stats.reused, 0.6 * 3 * N);
}

Test(http_pool, a_name_without_an_address)
{
    struct kit_call c;
    start_named(SZ_SEC(300));
    lookup_fails = 1;
    cr_expect_eq(ask_named(&c, SZ_SEC(5)), SZ_HTTP_RESOLVE);
    cr_expect_eq(ask_named(&c, SZ_SEC(5)), SZ_HTTP_RESOLVE);
    cr_expect_eq(lookups, 1); /* a failure is remembered for a second */
    cr_expect_lt(c.answer.took.us, SZ_MS(900).us);
    lookup_fails = 0;
    kit_run_for(&k, SZ_MS(1100));
    cr_expect_eq(ask_named(&c, SZ_SEC(5)), SZ_HTTP_ANSWERED);
}

Test(http_pool, old_addresses_outlive_the_name_servers)
{
    struct kit_call c;
    start_named(SZ_SEC(1));
    cr_expect_eq(ask_named(&c, SZ_SEC(5)), SZ_HTTP_ANSWERED);
    lookup_fails = 1;
    lookup_ms = 2000;
    kit_run_for(&k, SZ_MS(1100));
    cr_expect_eq(ask_named(&c, SZ_MS(1500)), SZ_HTTP_ANSWERED); /* does not wait for the look-up */
    kit_run_for(&k, SZ_MS(2500));
    cr_expect_eq(ask_named(&c, SZ_MS(1500)), SZ_HTTP_ANSWERED);
    cr_expect_eq(lookups, 2);
}

Test(http_pool, addresses_may_change_under_a_call_that_has_just_started)
{
    struct kit_call c;
    start_named(SZ_SEC(1));
    cr_expect_eq(ask_named(&c, SZ_SEC(5)), SZ_HTTP_ANSWERED);
    kit_run_for(&k, SZ_MS(1100));
    struct sz_http_request r = kit_get(&k, named);
    r.insecure_http = true;
    kit_begin(&k, &c, &r); /* with the old ones; libcurl has not looked at them yet */
    usleep(200000);
    sz_http_hosts_answered(k.http);
    kit_run_until(&k, kit_done + 1);
    cr_expect_eq(c.answer.result, SZ_HTTP_ANSWERED);
    cr_expect_eq(lookups, 2);
    kit_end(&c);
}

static struct rlimit before;

static void take_all_descriptors(struct sz_defer *defer)
{
    int top = dup(0);
    struct rlimit none = {.rlim_cur = (rlim_t)top, .rlim_max = before.rlim_max};
    (void)defer;
    close(top); /* the lowest free one, so none is free below it */
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
}

Test(http_pool, no_descriptor_left_is_our_own_shortage)
{
    struct kit_call c;
    struct sz_defer defer = {.on_run = take_all_descriptors};
    kit_start(&k, NULL);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    sz_defer_start(k.loop, &defer);
    enum sz_http_result result = kit_ask_url(&k, &c, "/x")->result;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    cr_expect_eq(result, SZ_HTTP_BUSY, "%s: %s", sz_http_result_name(result), c.answer.why.s);
    cr_expect_not_null(strstr(c.answer.why.s, "descriptor"), "%s", c.answer.why.s);
    kit_end(&c);
    cr_expect_eq(kit_ask_url(&k, &c, "/x")->result, SZ_HTTP_ANSWERED);
    kit_end(&c);
}

Test(http_pool, a_look_up_that_hangs_blocks_neither_the_loop_nor_the_end)
{
    struct kit_call c, other;
    start_named(SZ_SEC(300));
    lookup_ms = 2000;
    struct sz_http_request r = kit_get(&k, named), plain = kit_get(&k, "/x");
    r.insecure_http = true;
    r.deadline = sz_after(sz_loop_now(k.loop), SZ_MS(100));
    kit_begin(&k, &c, &r);
    kit_ask(&k, &other, &plain);
    cr_expect_eq(other.answer.result, SZ_HTTP_ANSWERED);
    cr_expect_lt(other.answer.took.us, SZ_MS(1500).us);
    kit_run_until(&k, 2);
    cr_expect_eq(c.answer.result, SZ_HTTP_TIMEOUT); /* the provider could not be found in time: not our limit */
    kit_end(&c);
    kit_end(&other);
    struct sz_mono start = sz_mono_read();
    sz_http_free(&k.http);
    sz_resolver_free(&k.shared->resolver);
    cr_expect_lt(sz_between(start, sz_mono_read()).us, SZ_SEC(1).us);
    usleep(2200000); /* its thread ends by itself, into memory that is still there */
}
