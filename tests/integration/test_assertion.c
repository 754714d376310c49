/*
 * X-Subzero-Assertion through the real binary: what the upstream gets verifies against what the admin listener
 * publishes, says which request it is for, and survives a rotation of the key.
 */
#include "integration/harness.h"

#include <jansson.h>
#include <signal.h>

static struct gateway gw;
static struct upstream *up;
static struct issuer issuer;
static struct http1_response r;

static const char config[] =
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"
    "admin: {address: \"127.0.0.1:{admin}\"}\n"
    "workers: 1\n"
    "log: {access: off}\n" ISSUER_YAML "assertion: {key_file: \"{dir}/assertion.jwk\", issuer: edge, ttl: 30s}\n"
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
    "routes:\n"
    "  - {id: bare, match: {path: /bare}, auth: {issuers: [test]}, upstream: up}\n"
    "  - id: all\n"
    "    match: {path: /*}\n"
    "    auth: {issuers: [test]}\n"
    "    assertion: {audience: up}\n"
    "    upstream: up\n";

static void write_keys(const struct sz_buf *first, const struct sz_buf *second)
{
    struct sz_buf text = {0};
    sz_buf_adds(&text, sz_buf_slice(first));
    sz_buf_add(&text, "\n", 1);
    if (second != NULL)
        sz_buf_adds(&text, sz_buf_slice(second));
    scratch_write("assertion.jwk", sz_buf_slice(&text));
    sz_buf_fini(&text);
}

/* The assertion that the upstream got for one allowed request; malloc'ed, NULL when there was none. */
static char *assertion_for(const char *target, const char *token)
{
    char value[2048];
    upstream_clear(up);
    cr_assert_eq(http1_ask(gw.port, "GET", target, token, "X-Subzero-Assertion: forged\r\n", NULL, &r), 200);
    cr_assert(upstream_wait(up, 1, SZ_SEC(5)));
    if (!upstream_field(upstream_at(up, 0), "x-subzero-assertion", value, sizeof(value)))
        return NULL;
    cr_assert_eq(upstream_field_count(upstream_at(up, 0), "x-subzero-assertion"), 1);
    return sz_xstrdup(value);
}

/* Verifies as an upstream would: the published keys, the issuer's name, the audience, the type. */
static enum sz_reason verify(const char *assertion, struct sz_identity *id)
{
    struct sz_mistakes m;
    struct sz_verified verified;
    char *keys = gateway_admin(&gw, "/.well-known/jwks.json");
    const char *path = scratch_write("published.json", sz_cstr(raw_body(keys)));
    struct sz_buf text = {0};
    sz_buf_printf(
        &text,
        "listen: [{address: \"127.0.0.1:1\"}]\n"
        "issuers: {edge: {issuer: edge, audiences: [up], algorithms: [ES256], types: [subzero-assertion+jwt], "
        "jwks_file: %s}}\n"
        "upstreams: {up: {urls: [\"http://127.0.0.1:1\"]}}\n"
        "routes: [{id: a, match: {path: /*}, auth: {issuers: [edge]}, upstream: up}]\n",
        path);
    sz_mistakes_init(&m);
    struct sz_conf *conf = sz_conf_load_text(sz_buf_slice(&text), "upstream", &m);
    cr_assert_not_null(conf, "%.*s", SZ_FMT(m.v[0].message));
    struct sz_issuers *issuers = sz_issuers_new(conf, &m);
    cr_assert_not_null(issuers);
    cr_assert_eq(sz_jwt_verify(issuers, sz_cstr(assertion), sz_wall_read(), id, &verified), 0);
    sz_issuers_free(&issuers);
    sz_conf_free(&conf);
    sz_mistakes_fini(&m);
    sz_buf_fini(&text);
    free(keys);
    return verified.reason;
}

/* A member of the payload; "" when it is missing. */
static void member(const char *assertion, const char *name, char *out, size_t size)
{
    struct sz_slice rest = sz_cstr(assertion), segment = SZ_NONE;
    char payload[2048];
    size_t n;
    sz_split(&rest, '.', &segment);
    sz_split(&rest, '.', &segment);
    cr_assert_lt(segment.n, sizeof(payload));
    cr_assert_eq(sz_b64url_decode(segment, payload, &n), 0);
    json_t *claims = json_loadb(payload, n, 0, NULL);
    const char *value = json_string_value(json_object_get(claims, name));
    snprintf(out, size, "%s", value != NULL ? value : "");
    json_decref(claims);
}

static void setup(void)
{
    struct sz_buf key = {0};
    sz_crypto_init();
    up = upstream_start(NULL);
    issuer_init(&issuer);
    cr_assert_eq(sz_key_generate(SZ_ALG_ES256, &key), 0);
    write_keys(&key, NULL);
    sz_buf_fini(&key);
    cr_assert(gateway_start(&gw, config, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gw);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    http1_response_fini(&r);
    scratch_remove();
}

Test(assertion, proves_the_request_to_the_upstream, .init = setup, .fini = teardown, .timeout = 60)
{
    struct sz_identity id;
    char text[128], hash[SZ_B64_LEN(32) + 1] = {0};
    uint8_t digest[32];
    char *token = issuer_token(&issuer, "alice", 60, NULL), *assertion = assertion_for("/docs/a?q=1", token);
    cr_assert_not_null(assertion);
    cr_assert_eq(verify(assertion, &id), SZ_REASON_allowed);
    cr_assert(sz_eq(sz_identity_text(&id, id.subject), SZ_S("alice")));
    cr_assert_leq(id.exp - id.iat, 60);
    member(assertion, "sub_iss", text, sizeof(text));
    cr_expect_str_eq(text, ISSUER_NAME);
    member(assertion, "htm", text, sizeof(text));
    cr_expect_str_eq(text, "GET");
    sz_sha256(SZ_S("/docs/a"), digest);
    sz_b64url_encode(digest, 32, hash);
    member(assertion, "ph", text, sizeof(text));
    cr_expect_str_eq(text, hash);
    free(assertion);
    cr_expect_null(assertion_for("/bare", token), "a route without the option carries the client's or our assertion");
    free(token);
}

Test(assertion, keys_rotate_without_a_gap, .init = setup, .fini = teardown, .timeout = 60)
{
    struct sz_identity id;
    struct sz_buf old = {0}, fresh = {0};
    char *token = issuer_token(&issuer, "alice", 60, NULL);
    cr_assert_eq(sz_key_generate(SZ_ALG_ES256, &old), 0);
    cr_assert_eq(sz_key_generate(SZ_ALG_ES256, &fresh), 0);
    write_keys(&old, NULL);
    cr_assert(gateway_reload(&gw));
    char *before = assertion_for("/a", token);
    write_keys(&fresh, &old);
    cr_assert(gateway_reload(&gw));
    char *after = assertion_for("/a", token);
    cr_expect_eq(verify(before, &id), SZ_REASON_allowed, "an assertion of the old key, while that is published");
    cr_expect_eq(verify(after, &id), SZ_REASON_allowed);
    write_keys(&fresh, NULL);
    cr_assert(gateway_reload(&gw));
    cr_expect_neq(verify(before, &id), SZ_REASON_allowed);
    cr_expect_eq(verify(after, &id), SZ_REASON_allowed);
    sz_buf_fini(&old);
    sz_buf_fini(&fresh);
    free(before);
    free(after);
    free(token);
}
