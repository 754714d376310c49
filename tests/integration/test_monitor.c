/*
 * Whoever reads along at Redis learns of nobody: MONITOR while two instances share all that they can share, identities
 * of both kinds, decisions, leases, limits by every kind of key, revocations of every kind, suspects and blocks.  What
 * it shows is searched for each token, name and address, in clear, encoded, and hashed in each way that needs no key of
 * ours, so that a guess could be tried.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/client.h"
#include "fake/openfga.h"
#include "fake/provider.h"
#include "fake/redis.h"
#include "integration/revoke_kit.h"
#include "subzero/crypto.h"
#include "subzero/revocation.h"

#define ADDRESS  "127.0.0.77"
#define ATTACKER "127.0.0.78"

static struct gateway one, two;
static struct redis_server redis;
static struct provider *provider;
static struct openfga fga;
static struct issuer issuer;
static struct upstream *up;
static struct proc monitor;

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

#define LIMIT(name, key, more)                                                                                \
    "  " name ": {algorithm: token_bucket, capacity: 1000, refill: 1000/1s, key: " key ", on_store_failure: " \
    "closed" more "}\n"

static char *make_yaml(void)
{
    struct sz_buf out = {0};
    sz_buf_printf(&out,
                  "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                  "admin: {address: \"127.0.0.1:{admin}\"}\n"
                  "workers: 1\n"
                  "threat: {mode: enforce, capacity: 4096}\n"
                  "cache: {l1: {ttl: 1ms, ttl_opaque: 1ms}, decisions: {ttl: 50ms}, l2: {jwt: true, lease: 1s}}\n"
                  "redis: {url: \"%s\", key_file: \"{dir}/fleet.key\", timeout: 1s}\n"
                  "anonymous: {key_file: \"{dir}/cookie.key\"}\n"
                  "issuers:\n"
                  "  test: {issuer: " ISSUER_NAME ", audiences: [api], algorithms: [ES256], tenant_claim: tenant, "
                  "jwks_file: \"{dir}/jwks.json\"}\n"
                  "  idp: {issuer: \"%s\", audiences: [api], introspection: {endpoint: \"%s/introspect\", client_id: "
                  "gateway, client_secret_file: \"{dir}/secret\"}}\n"
                  "%s",
                  redis.url, provider_url(provider), provider_url(provider), openfga_yaml(&fga));
    sz_buf_printf(
        &out,
        "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
        "rate_limits:\n" LIMIT("tenant", "tenant", "") LIMIT("client", "client", "")
            LIMIT("address", "address", ", lease: 3") LIMIT("cookie", "cookie", "") LIMIT(
                "plan", "\"{claims.plan}-{client.ip}\"",
                "") "  window: {algorithm: sliding_window, limit: 1000, window: 1m, on_store_failure: closed}\n"
                    "routes:\n"
                    "  - {id: open, match: {path: /open}, public: true, upstream: up, rate_limit: [cookie, address]}\n"
                    "  - {id: opaque, match: {path: '/opaque/*'}, auth: {issuers: [idp]}, upstream: up, rate_limit: "
                    "[tenant, window]}\n"
                    "  - {id: doc, match: {path: '/doc/{id}'}, auth: {issuers: [test], scopes: [read-the-books]}, "
                    "upstream: up, rate_limit: [tenant, client, address, plan, window],\n"
                    "     authorize: {user: \"user:{claims.sub}\", relation: viewer, object: "
                    "\"document:{path.id}\"}}\n"
                    "  - {id: all, match: {path: '/*'}, auth: {issuers: [test]}, upstream: up}\n");
    sz_buf_add(&out, "", 1);
    return out.p;
}

static void start_monitor(void)
{
    char port[16], *cli = strdup(program_find("redis-cli"));
    snprintf(port, sizeof(port), "%u", redis.port);
    const char *argv[] = {cli, "-p", port, "monitor", NULL};
    cr_assert(proc_start(&monitor, "monitor", 0, argv));
    for (bool on = false; !on; poll(NULL, 0, 20)) {
        char *log = file_read(monitor.log, NULL);
        on = strstr(log, "OK") != NULL;
        free(log);
    }
    free(cli);
}

static void setup(void)
{
    if (!redis_available() || program_find("redis-cli") == NULL)
        cr_skip_test("no redis-server here");
    sz_crypto_init();
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    scratch_write("cookie.key", SZ_S("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"));
    scratch_write("secret", SZ_S(PROVIDER_SECRET));
    redis = (struct redis_server){0};
    cr_assert(redis_start(&redis));
    provider = provider_start(NULL);
    openfga_init(&fga);
    issuer_init(&issuer);
    up = upstream_start(NULL);
    start_monitor();
    char *yaml = make_yaml();
    cr_assert(gateway_start_as(&one, "one", yaml, upstream_port(up)));
    cr_assert(gateway_start_as(&two, "two", yaml, upstream_port(up)));
    free(yaml);
    cr_assert(revoke_health(&one, "\"revocations\":{\"status\":\"ok\"") &&
              revoke_health(&two, "\"revocations\":{\"status\":\"ok\""));
}

static void teardown(void)
{
    stop_gateway(&one);
    stop_gateway(&two);
    openfga_fini(&fga);
    provider_stop(&provider);
    redis_stop(&redis);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    scratch_remove();
}

TestSuite(monitor, .init = setup, .fini = teardown, .timeout = 120);

/* ---- what must not be found -------------------------------------------------------------------------------------- */

static struct sz_slice said, lower; /* by MONITOR, its escapes undone; and the same in small letters */

static bool in(struct sz_slice hay, struct sz_slice needle)
{
    return needle.n > 0 && memmem(hay.p, hay.n, needle.p, needle.n) != NULL;
}

static char *base64_of(struct sz_slice s)
{
    char *out = sz_xmalloc(s.n * 4 / 3 + 8);
    EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)s.p, (int)s.n);
    return out;
}

/* `digits` of what it looks like as hex and both base64s: enough to tell it from chance. */
static const char *encoded(struct sz_slice s, size_t digits)
{
    char *hex = sz_xmalloc(s.n * 2 + 1), *base64 = base64_of(s);
    size_t n64 = s.n * 4 / 3 < digits ? s.n * 4 / 3 : digits; /* whole digits alone: what follows them may differ */
    const char *found = NULL;
    sz_hex_encode(s.p, s.n, hex);
    if (in(lower, sz_slice(hex, s.n * 2 < digits ? s.n * 2 : digits)))
        found = "hex";
    if (in(said, sz_slice(base64, n64)))
        found = "base64";
    for (size_t i = 0; i < n64; i++)
        base64[i] = base64[i] == '+' ? '-' : base64[i] == '/' ? '_' : base64[i];
    if (found == NULL && in(said, sz_slice(base64, n64)))
        found = "base64url";
    free(hex);
    free(base64);
    return found;
}

/* How it is there; NULL: not at all. */
static const char *shown_as(struct sz_slice secret)
{
    static char how[64];
    static const char *const digests[] = {"MD5", "SHA1", "SHA256", "SHA512", "SHA3-256", "BLAKE2s256", "BLAKE2b512"};
    const char *encoding;
    if (in(said, secret))
        return "in clear";
    if (secret.n >= 6 && (encoding = encoded(secret, SIZE_MAX)) != NULL)
        return encoding;
    for (size_t i = 0; i < SZ_COUNT(digests); i++) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        size_t n;
        cr_assert_eq(EVP_Q_digest(NULL, digests[i], NULL, secret.p, secret.n, digest, &n), 1, "%s", digests[i]);
        struct sz_slice hash = sz_slice((const char *)digest, n);
        encoding = in(said, sz_sub(hash, 0, 6)) ? "bytes" : encoded(hash, 12);
        if (encoding == NULL)
            continue;
        snprintf(how, sizeof(how), "%s as %s", digests[i], encoding);
        return how;
    }
    return NULL;
}

static void expect_hidden(struct sz_slice secret, const char *what)
{
    const char *how = shown_as(secret);
    cr_expect_null(how, "%s is shown: %s", what, how);
}

/* What redis-cli prints: quoted strings with \n, \", \xHH ... */
static void read_monitor(void)
{
    size_t n, k = 0;
    char *log = file_read(monitor.log, &n), *out = sz_xmalloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        int high, low;
        if (log[i] != '\\' || i + 1 == n) {
            out[k++] = log[i];
        } else if (log[i + 1] == 'x' && i + 3 < n && (high = sz_hex_digit(log[i + 2])) >= 0 &&
                   (low = sz_hex_digit(log[i + 3])) >= 0) {
            out[k++] = (char)(high * 16 + low);
            i += 3;
        } else {
            static const char from[] = "nrtab", to[] = "\n\r\t\a\b";
            const char *at = strchr(from, log[++i]);
            out[k++] = at != NULL ? to[at - from] : log[i];
        }
    }
    free(log);
    char *small = sz_xmalloc(k + 1);
    for (size_t i = 0; i < k; i++)
        small[i] = out[i] >= 'A' && out[i] <= 'Z' ? (char)(out[i] | 0x20) : out[i];
    said = sz_slice(out, k);
    lower = sz_slice(small, k);
}

/* What is looked for would be found: each form of a word that nothing else says. */
static void plant(void)
{
    static const char word[] = "the-canary-in-the-mine";
    unsigned char digest[EVP_MAX_MD_SIZE];
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    size_t n;
    free(redis_say(&redis, "SET planted %s-clear", word));
    cr_assert_eq(EVP_Q_digest(NULL, "SHA256", NULL, "canary-1", 8, digest, &n), 1);
    struct sz_slice raw[] = {SZ_S("SET"), SZ_S("planted"), sz_slice((const char *)digest, n)};
    free(redis_ask(&redis, raw, 3, NULL));
    cr_assert_eq(EVP_Q_digest(NULL, "MD5", NULL, "canary-2", 8, digest, &n), 1);
    sz_hex_encode(digest, n, hex);
    for (size_t i = 0; i < 2 * n; i++)
        hex[i] = (char)(hex[i] >= 'a' ? hex[i] - 32 : hex[i]);
    free(redis_say(&redis, "SET planted %.*s", (int)(2 * n), hex));
    cr_assert_eq(EVP_Q_digest(NULL, "SHA1", NULL, "canary-3", 8, digest, &n), 1);
    char *base64 = base64_of(sz_slice((const char *)digest, n));
    free(redis_say(&redis, "SET planted %s", base64));
    free(base64);
}

static void expect_planted(void)
{
    static const struct {
        const char *word, *how;
    } rows[] = {{"the-canary-in-the-mine", "in clear"},
                {"canary-1", "SHA256 as bytes"},
                {"canary-2", "MD5 as hex"},
                {"canary-3", "SHA1 as base64"}};
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        const char *how = shown_as(sz_cstr(rows[i].word));
        cr_assert(how != NULL && strcmp(how, rows[i].how) == 0, "%s: %s", rows[i].word, how != NULL ? how : "unseen");
    }
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static char answer[16384];

static int ask_as(struct gateway *g, const char *from, const char *path, const char *token, const char *fields)
{
    struct sz_buf request = {0};
    int fd = client_open_from(from, g->port);
    cr_assert_geq(fd, 0);
    sz_buf_printf(&request, "GET %s HTTP/1.1\r\nHost: a\r\n%s%s%s%s\r\n", path, fields,
                  token != NULL ? "Authorization: Bearer " : "", token != NULL ? token : "",
                  token != NULL ? "\r\n" : "");
    client_send(fd, sz_buf_slice(&request));
    int status = client_response(fd, answer, sizeof(answer), 10000);
    close(fd);
    sz_buf_fini(&request);
    return status;
}

/* One visitor, with the cookie that it was given. */
static void visit(char cookie[256])
{
    char fields[300];
    cr_expect_eq(ask_as(&one, ADDRESS, "/open", NULL, ""), 200);
    const char *at = strcasestr(answer, "subzero_id=");
    cr_assert_not_null(at);
    snprintf(cookie, 256, "%.*s", (int)strcspn(at + 11, ";\r"), at + 11);
    snprintf(fields, sizeof(fields), "Cookie: subzero_id=%s\r\n", cookie);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ask_as(i % 2 == 0 ? &one : &two, ADDRESS, "/open", NULL, fields), 200);
}

static void suspect(const char *jwt)
{
    char *forged = strdup(jwt);
    forged[strlen(forged) - 9] ^= 1;
    for (int i = 0; i < 20; i++)
        (void)ask_as(&one, ATTACKER, "/doc/secret-plan", forged, "");
    free(forged);
    static const char block[] = "{\"issuer\":\"test\",\"subject\":\"mallory-the-third\",\"ttl\":\"1h\"}";
    char request[512];
    snprintf(request, sizeof(request),
             "POST /threat/blocks HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", strlen(block), block);
    int status = http1_exchange(one.admin, sz_cstr(request), NULL);
    cr_expect(status == 201 || status == 503, "%d", status);
}

static void revoke_each(const char *jwt, const char *opaque)
{
    cr_expect_eq(revoke_by(&one, "{\"kind\":\"jti\",\"issuer\":\"test\",\"value\":\"jti-0001-x\"}"), 201);
    cr_expect_eq(revoke_by(&one, "{\"kind\":\"sid\",\"issuer\":\"test\",\"value\":\"sid-0001-x\"}"), 201);
    cr_expect_eq(revoke_by(&one, "{\"kind\":\"subject\",\"issuer\":\"test\",\"value\":\"alice\"}"), 201);
    cr_expect_eq(revoke_by(&one, "{\"kind\":\"client\",\"issuer\":\"test\",\"value\":\"client-web-77\"}"), 201);
    cr_expect_eq(revoke_by(&one, "{\"kind\":\"kid\",\"issuer\":\"test\",\"value\":\"kid-of-old\"}"), 201);
    cr_expect_eq(revoke_by(&one, "{\"kind\":\"token\",\"value\":\"%s\"}", jwt), 201);
    cr_expect_eq(revoke_by(&one, "{\"kind\":\"token\",\"value\":\"%s\"}", opaque), 201);
    cr_expect_eq(revoke_by(&one, "{\"kind\":\"issuer\",\"issuer\":\"test\"}"), 201);
}

static void expect_names_hidden(const char *jwt)
{
    static const struct {
        enum sz_revocation_kind kind;
        const char *value;
    } rows[] = {{SZ_REVOKE_JTI, "jti-0001-x"},       {SZ_REVOKE_SID, "sid-0001-x"}, {SZ_REVOKE_SUBJECT, "alice"},
                {SZ_REVOKE_CLIENT, "client-web-77"}, {SZ_REVOKE_KID, "kid-of-old"}, {SZ_REVOKE_ISSUER, ""}};
    uint8_t digest[32];
    for (size_t i = 0; i < SZ_COUNT(rows); i++) { /* what we know it by can be computed by everybody */
        sz_revocation_digest(rows[i].kind, SZ_S(ISSUER_NAME), sz_cstr(rows[i].value), digest);
        expect_hidden(sz_slice((const char *)digest, 8), sz_revocation_kind_name(rows[i].kind));
    }
    sz_revocation_digest(SZ_REVOKE_TOKEN, SZ_NONE, sz_token_signed(sz_cstr(jwt)), digest);
    expect_hidden(sz_slice((const char *)digest, 8), "token");
}

static void expect_all_hidden(const char *jwt, const char *opaque, const char *cookie)
{
    static const char *const words[] = {"bob-the-builder",
                                        "mallory-the-third",
                                        "tenant-of-alice",
                                        "client-web-77",
                                        "read-the-books",
                                        "jti-0001-x",
                                        "sid-0001-x",
                                        "kid-of-old",
                                        "plan-platinum",
                                        "plan-platinum-" ADDRESS,
                                        "secret-plan",
                                        "document:secret-plan",
                                        "user:alice",
                                        ISSUER_NAME,
                                        ISSUER_NAME "alice",
                                        ADDRESS,
                                        ATTACKER};
    static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 77};
    struct sz_slice parts = sz_cstr(jwt), part;
    for (size_t i = 0; i < SZ_COUNT(words); i++)
        expect_hidden(sz_cstr(words[i]), words[i]);
    expect_hidden(sz_slice((const char *)mapped, 16), "an address as 16 bytes");
    expect_hidden(sz_cstr(jwt), "a JWT");
    while (sz_split(&parts, '.', &part))
        expect_hidden(part, "a part of a JWT");
    expect_hidden(sz_token_signed(sz_cstr(jwt)), "what of a JWT is signed");
    expect_hidden(sz_cstr(opaque), "an opaque token");
    expect_hidden(sz_cstr(cookie), "a cookie");
    const char *alice = shown_as(SZ_S("alice")); /* too short for some encodings to mean anything */
    cr_expect_null(alice, "alice is shown: %s", alice);
    expect_names_hidden(jwt);
}

Test(monitor, shows_nobody_and_nothing_that_could_be_guessed)
{
    char cookie[256];
    char *jwt =
             issuer_token(&issuer, "alice", 600,
                          "\"scope\":\"read-the-books\",\"tenant\":\"tenant-of-alice\",\"client_id\":\"client-web-77\","
                          "\"jti\":\"jti-0001-x\",\"sid\":\"sid-0001-x\",\"plan\":\"plan-platinum\""),
         *opaque = provider_opaque(provider, "bob-the-builder", 600, "\"scope\":\"read-the-books\"");
    plant();
    for (int i = 0; i < 4; i++) {
        struct gateway *g = i % 2 == 0 ? &one : &two;
        int status = ask_as(g, ADDRESS, "/doc/secret-plan", jwt, "");
        cr_expect_eq(status, 200, "%s", answer);
        cr_expect_eq(ask_as(g, ADDRESS, "/opaque/x", opaque, ""), 200, "%s", answer);
        poll(NULL, 0, 100);
    }
    visit(cookie);
    suspect(jwt);
    revoke_each(jwt, opaque);
    cr_expect_geq(revoke_becomes(&two, jwt, 401, 5000), 0);
    poll(NULL, 0, 300);
    proc_stop(&monitor);
    read_monitor();
    static const char *const kinds[] = {"subzero:l2:v1:identity:", "subzero:l2:v1:decision:", ":lease",
                                        "subzero:rl:v1:", ":revocations"};
    for (size_t i = 0; i < SZ_COUNT(kinds); i++)
        cr_assert(in(said, sz_cstr(kinds[i])), "%s: it was listened to", kinds[i]);
    expect_planted();
    expect_all_hidden(jwt, opaque, cookie);
    free((void *)(uintptr_t)said.p);
    free((void *)(uintptr_t)lower.p);
    free(jwt);
    free(opaque);
}
