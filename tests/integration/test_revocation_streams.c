/* What is open when its token is revoked ends, and a provider's logout does the same. */
#include <stdio.h>
#include <stdlib.h>

#include "integration/revoke_kit.h"

#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static const char yaml[] =
    "listen:\n"
    "  - {address: \"127.0.0.1:{port}\"}\n"
    "  - {address: \"127.0.0.1:{port2}\", mode: api}\n"
    "admin: {address: \"127.0.0.1:{admin}\"}\n"
    "workers: 2\n"
    "fga: {model: \"{dir}/model.fga\"}\n"
    "issuers:\n"
    "  test:\n"
    "    issuer: " ISSUER_NAME "\n"
    "    audiences: [api]\n"
    "    algorithms: [ES256]\n"
    "    jwks_file: \"{dir}/jwks.json\"\n"
    "    backchannel_logout: {path: /backchannel-logout, client_ids: [rp]}\n"
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
    "routes:\n"
    "  - {id: open, match: {path: /open}, public: true, websocket: true, upstream: up}\n"
    "  - {id: all, match: {path: '/*'}, auth: {issuers: [test]}, websocket: true, upstream: up}\n";

static struct gateway gw;
static struct issuer issuer;
static struct upstream *up;

static void setup(void)
{
    issuer_init(&issuer);
    scratch_write("model.fga", SZ_S("model\n  schema 1.1\ntype user\n"));
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gw);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    scratch_remove();
}

TestSuite(revocation_streams, .init = setup, .fini = teardown, .timeout = 60);

static bool speak_events(struct wire *w, const struct upstream_request *request, void *arg)
{
    (void)request;
    (void)arg;
    if (!wire_send(w, SZ_S("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")))
        return false;
    for (int i = 0; i < 100 && wire_send(w, SZ_S("data: x\n\n")); i++)
        poll(NULL, 0, 100);
    return false;
}

static bool speak_tunnel(struct wire *w, const struct upstream_request *request, void *arg)
{
    char bytes[256];
    (void)request;
    (void)arg;
    if (!wire_send(w,
                   SZ_S("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT
                        "\r\n\r\n")))
        return false;
    while (wire_read(w, bytes, sizeof(bytes), in_time(SZ_SEC(8))) > 0)
        ;
    return false;
}

static void open_stream(struct wire *w, const char *target, const char *token, const char *fields)
{
    char text[3000], answer[512];
    size_t n = (size_t)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n%s%s%s%s\r\n", target, fields,
                                token != NULL ? "Authorization: Bearer " : "", token != NULL ? token : "",
                                token != NULL ? "\r\n" : "");
    cr_assert(wire_open(w, NULL, gw.port));
    cr_assert(wire_send(w, sz_slice(text, n)));
    cr_assert_gt(wire_read(w, answer, sizeof(answer), in_time(SZ_SEC(5))), 0);
}

/* Until the other side ends it: ms, -1 when it did not within `most`. */
static int64_t ends_within(struct wire *w, int most, struct sz_buf *out)
{
    struct sz_mono begun = sz_mono_read();
    char bytes[4096];
    ssize_t n = 1;
    while (n > 0 && sz_between(begun, sz_mono_read()).us < (int64_t)most * 1000) {
        n = wire_read(w, bytes, sizeof(bytes), in_time(SZ_MS(most)));
        if (n > 0)
            sz_buf_add(out, bytes, (size_t)n);
        if (out->n >= 5 && memcmp(out->p + out->n - 5, "0\r\n\r\n", 5) == 0)
            n = 0;
    }
    return n == 0 ? sz_between(begun, sz_mono_read()).us / 1000 : -1;
}

#define UPGRADE                                                                  \
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static void expect_end(const char *fields, bool (*speak)(struct wire *, const struct upstream_request *, void *),
                       const char *sub)
{
    const struct upstream_script script = {.speak = speak};
    struct sz_buf got = {0};
    struct wire mine, other, nobodys;
    char *token = issuer_token(&issuer, sub, 300, "\"sid\":\"s1\""), *bob = issuer_token(&issuer, "bob", 300, NULL);
    upstream_play(up, &script);
    open_stream(&mine, "/s", token, fields);
    open_stream(&other, "/s", bob, fields);
    open_stream(&nobodys, "/open", NULL, fields);
    cr_expect_lt(ends_within(&mine, 300, &got), 0, "it goes on");
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"subject\",\"value\":\"%s\"}", sub), 201);
    int64_t took = ends_within(&mine, 3000, &got);
    cr_expect(took >= 0 && took < 1500, "%lld ms", (long long)took);
    got.n = 0;
    cr_expect_lt(ends_within(&other, 300, &got), 0, "another one's goes on");
    cr_expect_lt(ends_within(&nobodys, 300, &got), 0, "and nobody's");
    wire_close(&mine);
    wire_close(&other);
    wire_close(&nobodys);
    sz_buf_fini(&got);
    free(token);
    free(bob);
}

Test(revocation_streams, an_event_stream_ends)
{
    expect_end("", speak_events, "alice");
}

Test(revocation_streams, a_websocket_ends)
{
    expect_end(UPGRADE, speak_tunnel, "alice");
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

/* Of the one key of the set that was written last. */
static void read_kid(char kid[128])
{
    char path[256];
    snprintf(path, sizeof(path), "%s/jwks.json", scratch_path());
    char *set = file_read(path, NULL), *at = strstr(set, "\"kid\":\"");
    cr_assert_not_null(at);
    snprintf(kid, 128, "%.*s", (int)strcspn(at + 7, "\""), at + 7);
    free(set);
}

/* Rotated away first and revoked then, as after a theft: new tokens of it are refused anyway, open streams are not. */
static void expect_end_by_key(const char *fields, bool (*speak)(struct wire *, const struct upstream_request *, void *))
{
    const struct upstream_script script = {.speak = speak};
    struct issuer next;
    struct sz_buf got = {0};
    struct wire old, new;
    char kid[128], next_kid[128];
    char *token = issuer_token(&issuer, "alice", 300, NULL);
    read_kid(kid);
    upstream_play(up, &script);
    open_stream(&old, "/s", token, fields);
    issuer_init(&next);
    read_kid(next_kid);
    cr_assert_str_neq(kid, next_kid);
    cr_assert(gateway_reload(&gw));
    char *later = issuer_token(&next, "alice", 300, NULL);
    open_stream(&new, "/s", later, fields);
    cr_expect_lt(ends_within(&old, 300, &got), 0, "its key has left, which says nothing against it");
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"kid\",\"value\":\"another\"}"), 201);
    cr_expect_lt(ends_within(&old, 300, &got), 0, "it goes on");
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"kid\",\"value\":\"%s\"}", kid), 201);
    int64_t took = ends_within(&old, 3000, &got);
    cr_expect(took >= 0 && took < 1500, "%lld ms", (long long)took);
    got.n = 0;
    cr_expect_lt(ends_within(&new, 300, &got), 0, "that of the key that stays goes on");
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"kid\",\"value\":\"%s\"}", next_kid), 201);
    cr_expect_geq(ends_within(&new, 3000, &got), 0, "of a key that is there");
    wire_close(&old);
    wire_close(&new);
    sz_buf_fini(&got);
    sz_signer_free(&next.signer);
    free(token);
    free(later);
}

Test(revocation_streams, a_key_that_has_left_ends_an_event_stream)
{
    expect_end_by_key("", speak_events);
}

Test(revocation_streams, a_key_that_has_left_ends_a_websocket)
{
    expect_end_by_key(UPGRADE, speak_tunnel);
}

/* ---- logout ------------------------------------------------------------------------------------------------------ */

static char *logout_token(const char *claims, const char *aud)
{
    struct sz_arena arena;
    struct sz_slice token;
    long now = (long)sz_wall_seconds(sz_wall_read());
    sz_arena_init(&arena);
    struct sz_slice text =
        sz_pool_printf(&arena.pool,
                       "{\"iss\":\"" ISSUER_NAME "\",\"aud\":\"%s\",\"iat\":%ld,\"exp\":%ld,\"events\":{"
                       "\"http://schemas.openid.net/event/backchannel-logout\":{}},%s}",
                       aud, now, now + 120, claims);
    cr_assert_eq(sz_signer_sign(issuer.signer, SZ_ALG_ES256, "logout+jwt", text, &arena.pool, &token), 0);
    char *copy = strndup(token.p, token.n);
    sz_arena_fini(&arena);
    return copy;
}

static int post_logout(uint16_t port, const char *token)
{
    struct sz_buf request = {0};
    sz_buf_printf(&request,
                  "POST /backchannel-logout HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\nlogout_token=%s",
                  strlen(token) + 13, token);
    int status = http1_exchange(port, sz_buf_slice(&request), NULL);
    sz_buf_fini(&request);
    return status;
}

Test(revocation_streams, a_logout_ends_the_session_or_the_user)
{
    char *session = issuer_token(&issuer, "alice", 300, "\"sid\":\"s1\""),
         *other = issuer_token(&issuer, "alice", 300, "\"sid\":\"s2\""), *bob = issuer_token(&issuer, "bob", 300, NULL);
    cr_expect_eq(revoke_get(&gw, session), 200);
    cr_expect_eq(revoke_get(&gw, other), 200);
    char *out = logout_token("\"jti\":\"1\",\"sub\":\"alice\",\"sid\":\"s1\"", "rp");
    cr_expect_eq(post_logout(gw.port2, out), 200);
    cr_expect_eq(revoke_get(&gw, session), 401);
    cr_expect_eq(revoke_get(&gw, other), 200);
    cr_expect_eq(post_logout(gw.port2, out), 400, "used");
    cr_expect_eq(post_logout(gw.admin, out), 400, "used");
    free(out);
    out = logout_token("\"jti\":\"2\",\"sub\":\"bob\"", "rp");
    cr_expect_eq(post_logout(gw.admin, out), 200, "on the admin listener as well");
    cr_expect_eq(revoke_get(&gw, bob), 401);
    free(out);
    out = logout_token("\"jti\":\"3\",\"sid\":\"s2\"", "api");
    cr_expect_eq(post_logout(gw.port2, out), 400, "for somebody else");
    cr_expect_eq(post_logout(gw.port2, other), 400, "an access token");
    cr_expect_eq(post_logout(gw.port2, "x"), 400);
    cr_expect_eq(post_logout(gw.port2, ""), 400);
    cr_expect_eq(revoke_get(&gw, other), 200);
    cr_expect_eq(post_logout(gw.port, out), 401, "not on a proxy listener: a route like any other");
    free(out);
    free(session);
    free(other);
    free(bob);
}
