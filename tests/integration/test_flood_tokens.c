/*
 * A flood of tokens that look right and are not: the issuer's own header with its `kid`, good claims, and a signature
 * that only its verification can refuse, each different and from a thousand addresses.  Requests whose token is in the
 * cache go on beside it: none is refused.  How long they take is printed for both; the machine decides that.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake/crowd.h"
#include "fake/load.h"
#include "subzero/crypto.h"

enum { GOOD = 2000, BAD = 10000, ATTACKERS = 1000, LATENCIES = 200000 };

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 2\n"
                           "log: {access: off}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML
                           "routes: [{id: all, match: {path: \"/*\"}, auth: {issuers: [test]}, upstream: up}]\n";

static struct gateway gateway;
static struct upstream *up;
static char *token;
static char request[4096];

/* The good token with another signature: 64 random bytes are 86 characters. */
static void forged(struct crowd *crowd, struct sz_buf *out)
{
    char bytes[64], signature[87] = "";
    const char *end = strrchr(token, '.');

    (void)crowd;
    sz_random(bytes, sizeof(bytes));
    sz_b64url_encode(bytes, sizeof(bytes), signature);
    sz_buf_printf(out, "GET /x HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer %.*s.%s\r\n\r\n",
                  (int)(end - token), token, signature);
}

/* Cached requests back to back, until there are enough and (crowd not NULL) the crowd has had its say. */
static void run_good(struct load *load, struct crowd *crowd)
{
    struct sz_mono end = in_time(SZ_SEC(60));

    *load = (struct load){.port = gateway.port, .request = request, .clients = 2, .latencies_max = LATENCIES};
    load_start(load);
    while (load->ok + load->refused + load->lost < GOOD && sz_mono_read().us < end.us)
        poll(NULL, 0, 10);
    if (crowd != NULL)
        cr_expect(crowd_wait(crowd, BAD, SZ_SEC(60)), "only %lu were answered", (unsigned long)crowd->answered);
    load_end(load);
    cr_expect_geq(load->ok, GOOD);
    cr_expect_eq(load->refused, 0, "%lu refused", (unsigned long)load->refused);
    cr_expect_eq(load->lost, 0, "%lu lost", (unsigned long)load->lost);
}

static void report(const char *what, struct load *load)
{
    fprintf(stderr, "    %-24s p50 %6u us, p99 %6u us, %lu requests\n", what, load_percentile(load, 50),
            load_percentile(load, 99), (unsigned long)load->ok);
    free(load->latencies_us);
}

static void beside_forged_tokens(void)
{
    static struct load load;
    static struct crowd crowd;

    crowd = (struct crowd){.port = gateway.port, .clients = ATTACKERS, .repeat = true, .head = forged};
    crowd_start(&crowd);
    cr_expect(crowd_wait(&crowd, ATTACKERS, SZ_SEC(30)), "the flood stands");
    run_good(&load, &crowd);
    crowd_end(&crowd);
    report("beside forged tokens", &load);
    cr_expect_eq(crowd.answered, crowd.by_status[401] + crowd.by_status[503], "other answers");
    cr_expect_gt(crowd.by_status[401], 0);
    cr_expect_eq(crowd.cut, 0);
    fprintf(stderr, "    %-24s %lu with 401, %lu with 503\n", "", (unsigned long)crowd.by_status[401],
            (unsigned long)crowd.by_status[503]);
}

static void flood(const char *binary)
{
    static struct load calm;

    cr_assert(gateway_start_binary(&gateway, binary, yaml, upstream_port(up)));
    fprintf(stderr, "cached requests through %s\n", binary);
    run_good(&calm, NULL);
    report("alone", &calm);
    beside_forged_tokens();
    stop_gateway(&gateway);
}

Test(flood, forged_tokens_refuse_no_cached_request, .timeout = 240)
{
    struct issuer issuer;

    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 3600, NULL);
    snprintf(request, sizeof(request), "GET /x HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer %s\r\n\r\n",
             token);
    up = upstream_start(NULL);
    flood(SZ_BINARY);
    if (release_binary() != NULL)
        flood(release_binary());
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(token);
    scratch_remove();
}
