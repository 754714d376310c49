/* rediss://: who is believed, and that everything works through it. */
#include "redis_kit.h"

#include <stdio.h>
#include <string.h>

#include "fake/certs.h"

static struct redis_kit k;
static struct redis_server server;
static struct cert ca, other, leaf;
static struct kit_ask ask;
static char port[8];

enum trust { THE_CA, ANOTHER, SYSTEM };

static void start(const char *san, const char *host, enum trust trust)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    cert_ca(&ca, "ca");
    cert_ca(&other, "other");
    cert_leaf(&leaf, "leaf", &ca, san, 30);
    uint16_t number = free_port();
    snprintf(port, sizeof(port), "%u", number);
    server =
        (struct redis_server){.options = {"--tls-port", port, "--tls-cert-file", leaf.file, "--tls-key-file",
                                          leaf.key_file, "--tls-ca-cert-file", ca.file, "--tls-auth-clients", "no"}};
    cr_assert(redis_start(&server));
    kit_init(&k);
    k.places[0] = (struct sz_conf_redis_place){.host = sz_cstr(host), .port = number};
    k.conf.tls = true;
    k.conf.ca_file = trust == THE_CA ? sz_cstr(ca.file) : trust == ANOTHER ? sz_cstr(other.file) : SZ_NONE;
    kit_start(&k);
}

static void expect_refused(const char *why)
{
    struct sz_redis_look look;
    kit_run(&k, 500);
    cr_expect_eq(kit_say(&k, &ask, "GET a"), SZ_REDIS_CONNECTION);
    sz_redis_shared_look(k.shared, &look);
    cr_expect(!look.reachable && strstr(look.why.s, why) != NULL, "%s", look.why.s);
}

static void teardown(void)
{
    kit_stop(&k);
    redis_kill(&server);
    scratch_remove();
}

TestSuite(redis_tls, .fini = teardown, .timeout = 60);

Test(redis_tls, by_address)
{
    static char words[60100];
    start("IP:127.0.0.1", "127.0.0.1", THE_CA);
    snprintf(words, sizeof(words), "SET a %060000d", 7);
    cr_expect_eq(kit_say(&k, &ask, words), SZ_REDIS_ANSWERED);
    cr_expect_eq(kit_say(&k, &ask, "GET a"), SZ_REDIS_ANSWERED);
    cr_expect_eq(ask.text_n, 60000); /* several records of TLS */
    redis_kill(&server);
    kit_run(&k, 100);
    cr_expect_eq(kit_say(&k, &ask, "GET a"), SZ_REDIS_CONNECTION);
    cr_assert(redis_start(&server));
    kit_connected(&k);
    cr_expect_eq(kit_say(&k, &ask, "SET a 1"), SZ_REDIS_ANSWERED);
}

Test(redis_tls, by_name_that_is_looked_up)
{
    start("DNS:localhost", "localhost", THE_CA);
    kit_connected(&k);
    cr_expect_eq(kit_say(&k, &ask, "SET a 1"), SZ_REDIS_ANSWERED);
}

Test(redis_tls, another_address_is_not_believed)
{
    start("IP:127.0.0.2,DNS:redis.example", "127.0.0.1", THE_CA);
    expect_refused("IP address mismatch");
}

Test(redis_tls, another_name_is_not_believed)
{
    start("DNS:redis.example,IP:127.0.0.1", "localhost", THE_CA);
    expect_refused("mismatch");
}

Test(redis_tls, another_authority_is_not_believed)
{
    start("IP:127.0.0.1", "127.0.0.1", ANOTHER);
    expect_refused("not believed");
}

Test(redis_tls, the_system_does_not_know_our_authority)
{
    start("IP:127.0.0.1", "127.0.0.1", SYSTEM);
    expect_refused("not believed");
}

/* Plain words to a TLS port, and TLS to a plain one. */
Test(redis_tls, both_sides_must_speak_it)
{
    start("IP:127.0.0.1", "127.0.0.1", THE_CA);
    kit_stop(&k);
    k.places[0].port = server.port;
    kit_start(&k);
    kit_run(&k, 1200);
    cr_expect_neq(kit_say(&k, &ask, "GET a"), SZ_REDIS_ANSWERED);
}

Test(redis_tls, an_unreadable_authority_is_said)
{
    struct sz_text why;
    start("IP:127.0.0.1", "127.0.0.1", THE_CA);
    k.conf.ca_file = SZ_S("/dev/null");
    cr_expect_null(sz_redis_shared_new(&k.conf, SZ_REDIS_ALL_USES, 1, &why));
    cr_expect(strstr(why.s, "cannot load ca_file /dev/null") != NULL, "%s", why.s);
}
