/* TLS of the listeners: who is shown which certificate, who gets in, and what a reload changes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/certs.h"
#include "fake/client.h"
#include "fake/gateway.h"
#include "fake/issuer.h"
#include "fake/upstream.h"
#include "subzero/crypto.h"

#define HEAD                                    \
    "admin: {address: \"127.0.0.1:{admin}\"}\n" \
    "workers: 2\n"                              \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n"
#define PUBLIC "routes:\n  - {id: all, match: {path: \"/*\"}, public: true, upstream: up}\n"
#define CERTS                                                                               \
    "certificates: [{certificate: \"{dir}/a.example.pem\", key: \"{dir}/a.example.key\"}, " \
    "{certificate: \"{dir}/b.example.pem\", key: \"{dir}/b.example.key\"}]"
#define GET(host) "GET /x HTTP/1.1\r\nHost: " host "\r\n\r\n"

static struct cert ca, a, b;
static struct upstream *upstream;
static struct gateway g;
static char buf[65536];

static void setup(void)
{
    upstream = upstream_start(NULL);
    cert_ca(&ca, "ca");
    cert_leaf(&a, "a.example", &ca, "DNS:a.example,DNS:*.a.example,IP:127.0.0.1", 90);
    cert_leaf(&b, "b.example", &ca, "DNS:b.example", 90);
}

static void teardown(void)
{
    cr_expect(gateway_stop(&g));
    upstream_stop(&upstream);
    scratch_remove();
}

static int ask(const struct tls_options *o, uint16_t port, const char *request, char *cn, size_t size)
{
    struct tls_client c;
    int status = -1;
    if (tls_open(&c, port, o)) {
        if (cn != NULL)
            tls_server_name(&c, cn, size);
        status = tls_request(&c, request, buf, sizeof(buf));
    }
    tls_close(&c);
    return status;
}

Test(tls, the_certificate_follows_sni_and_must_cover_the_authority, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *sni, *request, *cn;
        int status;
    } rows[] = {
        {"a.example", GET("a.example"), "a.example", 200},
        {"b.example", GET("b.example"), "b.example", 200},
        {"B.EXAMPLE", GET("B.example:8443"), "b.example", 200},
        {"x.a.example", GET("x.a.example"), "a.example", 200},
        {NULL, GET("127.0.0.1"), "a.example", 200},
        {"unknown.example", GET("unknown.example"), "a.example", 421},
        {"a.example", GET("b.example"), "a.example", 421},
        {"b.example", GET("a.example"), "b.example", 421},
        {"b.example", GET("127.0.0.1"), "b.example", 421},
        {"a.example", GET("x.y.a.example"), "a.example", 421},
    };
    cr_assert(gateway_start(&g, "listen:\n  - {address: \"127.0.0.1:{port}\", tls: {" CERTS "}}\n" HEAD PUBLIC,
                            upstream_port(upstream)));
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        char cn[64] = "";
        cr_expect_eq(ask(&(struct tls_options){.sni = rows[i].sni}, g.port, rows[i].request, cn, sizeof(cn)),
                     rows[i].status, "row %zu", i);
        cr_expect_str_eq(cn, rows[i].cn, "row %zu", i);
    }
}

Test(tls, versions_below_1_2_are_refused_and_alpn_is_answered, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, "listen:\n  - {address: \"127.0.0.1:{port}\", tls: {" CERTS "}}\n" HEAD PUBLIC,
                            upstream_port(upstream)));
    cr_expect_eq(
        ask(&(struct tls_options){.min = TLS1_VERSION, .max = TLS1_1_VERSION}, g.port, GET("a.example"), NULL, 0), -1);
    cr_expect_eq(ask(&(struct tls_options){.max = TLS1_2_VERSION}, g.port, GET("a.example"), NULL, 0), 200);
    cr_expect_eq(ask(&(struct tls_options){.min = TLS1_3_VERSION}, g.port, GET("a.example"), NULL, 0), 200);

    struct tls_client c;
    const unsigned char *alpn;
    unsigned n;
    cr_assert(tls_open(&c, g.port, &(struct tls_options){.alpn = "h2"}));
    SSL_get0_alpn_selected(c.ssl, &alpn, &n);
    cr_expect(sz_eq(sz_slice(alpn, n), SZ_S("h2")));
    tls_close(&c);
    cr_assert(tls_open(&c, g.port, &(struct tls_options){.max = TLS1_2_VERSION}));
    cr_expect_neq(SSL_renegotiate(c.ssl) == 1 && SSL_do_handshake(c.ssl) == 1 && SSL_renegotiate_pending(c.ssl) == 0 &&
                      tls_request(&c, GET("a.example"), buf, sizeof(buf)) == 200,
                  1, "renegotiated");
    tls_close(&c);
}

#define MTLS "tls: {certificate: \"{dir}/a.example.pem\", key: \"{dir}/a.example.key\", client_ca: \"{dir}/ca.pem\""

Test(tls, client_certificates_are_demanded_checked_and_revocable, .init = setup, .fini = teardown, .timeout = 60)
{
    struct cert good, revoked, other_ca, foreign;
    cert_leaf(&good, "good", &ca, NULL, 10);
    cert_leaf(&revoked, "revoked", &ca, NULL, 10);
    cert_ca(&other_ca, "other");
    cert_leaf(&foreign, "foreign", &other_ca, NULL, 10);
    cert_crl("ca.crl", &ca, &revoked);
    cr_assert(gateway_start(&g,
                            "listen:\n"
                            "  - {address: \"127.0.0.1:{port}\", " MTLS ", crl: \"{dir}/ca.crl\"}}\n"
                            "  - {address: \"127.0.0.1:{port2}\", " MTLS ", client_auth: optional}}\n" HEAD PUBLIC,
                            upstream_port(upstream)));
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2; i++) {
        int v = versions[i];
        cr_expect_eq(ask(&(struct tls_options){.min = v, .max = v, .cert = &good}, g.port, GET("a.example"), NULL, 0),
                     200);
        cr_expect_leq(ask(&(struct tls_options){.min = v, .max = v}, g.port, GET("a.example"), NULL, 0), 0);
        cr_expect_leq(
            ask(&(struct tls_options){.min = v, .max = v, .cert = &revoked}, g.port, GET("a.example"), NULL, 0), 0);
        cr_expect_leq(
            ask(&(struct tls_options){.min = v, .max = v, .cert = &foreign}, g.port, GET("a.example"), NULL, 0), 0);
        cr_expect_eq(ask(&(struct tls_options){.min = v, .max = v}, g.port2, GET("a.example"), NULL, 0), 200);
        cr_expect_eq(ask(&(struct tls_options){.min = v, .max = v, .cert = &good}, g.port2, GET("a.example"), NULL, 0),
                     200);
        cr_expect_leq(
            ask(&(struct tls_options){.min = v, .max = v, .cert = &foreign}, g.port2, GET("a.example"), NULL, 0), 0);
    }
}

/* A session from one listener, offered to another: true when it was resumed there. */
static bool resumes(const struct tls_options *first, uint16_t from, const struct tls_options *then, uint16_t to)
{
    struct tls_client c;
    struct tls_options again = *then;
    cr_assert(tls_open(&c, from, first));
    cr_assert_eq(tls_request(&c, GET("a.example"), buf, sizeof(buf)), 200);
    again.session = SSL_get1_session(c.ssl);
    tls_close(&c);
    bool opened = tls_open(&c, to, &again), resumed = opened && SSL_session_reused(c.ssl);
    SSL_SESSION_free(again.session);
    tls_close(&c);
    return resumed;
}

Test(tls, sessions_are_resumed_on_their_own_listener_alone, .init = setup, .fini = teardown, .timeout = 60)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct cert good;
    cert_leaf(&good, "good", &ca, NULL, 10);
    static const char yaml[] = "listen:\n"
                               "  - {address: \"127.0.0.1:{port}\", tls: {certificate: \"{dir}/a.example.pem\", key: "
                               "\"{dir}/a.example.key\"}}\n"
                               "  - {address: \"127.0.0.1:{port2}\", " MTLS ", client_auth: optional}}\n" HEAD PUBLIC;
    cr_assert(gateway_start(&g, yaml, upstream_port(upstream)));
    for (size_t i = 0; i < 2; i++) {
        struct tls_options plain = {.min = versions[i], .max = versions[i]}, with = plain;
        with.cert = &good;
        cr_expect(resumes(&plain, g.port, &plain, g.port), "version %zu", i);
        cr_expect_not(resumes(&plain, g.port, &plain, g.port2), "version %zu", i);
        cr_expect_not(resumes(&with, g.port2, &plain, g.port), "version %zu", i);
    }
    struct tls_client c;
    struct tls_options then = {.cert = &good};
    cr_assert(tls_open(&c, g.port2, &then));
    cr_assert_eq(tls_request(&c, GET("a.example"), buf, sizeof(buf)), 200);
    then.session = SSL_get1_session(c.ssl);
    tls_close(&c);
    struct cert other;
    cert_ca(&other, "other");
    cr_assert_eq(rename(other.file, ca.file), 0);
    cr_assert(gateway_reload(&g));
    usleep(200000);
    cr_expect_not(tls_open(&c, g.port2, &then) && SSL_session_reused(c.ssl), "resumed after client_ca changed");
    SSL_SESSION_free(then.session);
    tls_close(&c);
}

Test(tls, a_reload_changes_the_certificate_and_drops_nobody, .init = setup, .fini = teardown, .timeout = 60)
{
    struct cert renewed, broken;
    struct tls_client open;
    char cn[64];
    cert_leaf(&renewed, "renewed.example", &ca, "DNS:a.example", 90);
    cr_assert(
        gateway_start(&g,
                      "listen:\n  - {address: \"127.0.0.1:{port}\", tls: {certificate: \"{dir}/a.example.pem\", key: "
                      "\"{dir}/a.example.key\"}}\n" HEAD PUBLIC,
                      upstream_port(upstream)));
    cr_assert(tls_open(&open, g.port, &(struct tls_options){.sni = "a.example"}));
    cr_expect_eq(tls_request(&open, GET("a.example"), buf, sizeof(buf)), 200);
    cert_replace(&a, &renewed);
    cr_assert(gateway_reload(&g));
    usleep(200000);
    cr_expect_eq(ask(&(struct tls_options){.sni = "a.example"}, g.port, GET("a.example"), cn, sizeof(cn)), 200);
    cr_expect_str_eq(cn, "renewed.example");
    cr_expect_eq(tls_request(&open, GET("a.example"), buf, sizeof(buf)), 200, "the open connection went");

    /* A key that does not fit: the old one stays. */
    cert_leaf(&broken, "broken", &ca, NULL, 90);
    cr_assert_eq(rename(broken.key_file, a.key_file), 0);
    cr_expect_not(gateway_reload(&g));
    cr_expect_eq(ask(&(struct tls_options){.sni = "a.example"}, g.port, GET("a.example"), cn, sizeof(cn)), 200);
    cr_expect_str_eq(cn, "renewed.example");
    cr_expect_eq(gateway_metric(&g, "subzero_config_last_reload_successful"), 0);
    tls_close(&open);
}

Test(tls, watched_certificates_are_reloaded_by_themselves, .init = setup, .fini = teardown, .timeout = 60)
{
    struct cert renewed;
    char cn[64] = "";
    cert_leaf(&renewed, "renewed.example", &ca, "DNS:a.example", 90);
    cr_assert(
        gateway_start(&g,
                      "listen:\n  - {address: \"127.0.0.1:{port}\", tls: {certificate: \"{dir}/a.example.pem\", key: "
                      "\"{dir}/a.example.key\", watch: true}}\n" HEAD PUBLIC,
                      upstream_port(upstream)));
    cert_replace(&a, &renewed);
    for (int i = 0; i < 60 && strcmp(cn, "renewed.example") != 0; i++) {
        usleep(200000);
        ask(&(struct tls_options){.sni = "a.example"}, g.port, GET("a.example"), cn, sizeof(cn));
    }
    cr_expect_str_eq(cn, "renewed.example");
}

/* It shows no certificate again, and must not be good for longer than the one that it was made with. */
Test(tls, a_session_ends_with_its_client_certificate, .init = setup, .fini = teardown, .timeout = 60)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    cr_assert(gateway_start(&g, "listen:\n  - {address: \"127.0.0.1:{port}\", " MTLS "}}\n" HEAD PUBLIC,
                            upstream_port(upstream)));
    for (size_t i = 0; i < SZ_COUNT(versions); i++) {
        struct cert brief;
        cert_leaf(&brief, "brief", &ca, NULL, 10);
        X509_gmtime_adj(X509_getm_notAfter(brief.x509), 4);
        cr_assert_gt(X509_sign(brief.x509, ca.key, EVP_sha256()), 0);
        struct tls_options o = {.cert = &brief, .min = versions[i], .max = versions[i]};
        struct tls_client c;
        cr_assert(tls_open(&c, g.port, &o));
        cr_expect_eq(tls_request(&c, GET("a.example"), buf, sizeof(buf)), 200);
        struct tls_options again = {.min = versions[i], .max = versions[i], .session = SSL_get1_session(c.ssl)};
        tls_close(&c);
        cr_assert(tls_open(&c, g.port, &again));
        cr_expect(SSL_session_reused(c.ssl), "version %zu: not resumed while the certificate is good", i);
        cr_expect_eq(tls_request(&c, GET("a.example"), buf, sizeof(buf)), 200);
        tls_close(&c);
        sleep(6);
        bool open = tls_open(&c, g.port, &again);
        int status = open ? tls_request(&c, GET("a.example"), buf, sizeof(buf)) : 0;
        cr_expect_neq(status, 200, "version %zu: resumed after the certificate's end", i);
        tls_close(&c);
        SSL_SESSION_free(again.session);
    }
}

static bool comes_to_show(const char *name)
{
    char cn[64] = "";
    for (int i = 0; i < 60 && strcmp(cn, name) != 0; i++) {
        usleep(200000);
        ask(&(struct tls_options){.sni = NULL}, g.port, GET("127.0.0.1"), cn, sizeof(cn));
    }
    return strcmp(cn, name) == 0;
}

#define NAMED(file, watch)                                                                                       \
    "listen:\n  - {address: \"127.0.0.1:{port}\", tls: {certificate: \"{dir}/" file ".pem\", key: \"{dir}/" file \
    ".key\"" watch "}}\n" HEAD PUBLIC

/* Nothing was watched at the start; then what a reload names is, and no longer what an earlier one did. */
Test(tls, a_reload_changes_what_is_watched, .init = setup, .fini = teardown, .timeout = 90)
{
    struct cert first, second, third;
    cert_leaf(&first, "first", &ca, "IP:127.0.0.1", 90);
    cert_leaf(&second, "second", &ca, "IP:127.0.0.1", 90);
    cert_leaf(&third, "third", &ca, "IP:127.0.0.1", 90);
    cr_assert(gateway_start(&g, NAMED("a.example", ""), upstream_port(upstream)));
    gateway_rewrite(&g, NAMED("b.example", ", watch: true"));
    cr_assert(gateway_reload(&g));
    cert_replace(&b, &first);
    cr_expect(comes_to_show("first"), "files that the first reload named are not watched");
    gateway_rewrite(&g, NAMED("a.example", ", watch: true"));
    cr_assert(gateway_reload(&g));
    cert_replace(&a, &second);
    cr_expect(comes_to_show("second"), "files that the second reload named are not watched");

    size_t n;
    char *before = file_read(g.proc.log, &n);
    cert_replace(&b, &third);
    sleep(6); /* three looks */
    char *after = file_read(g.proc.log, &n);
    cr_expect_null(strstr(after + strlen(before), "reload"), "files that nobody names any more are watched");
    free(before);
    free(after);
}

Test(tls, a_bound_token_needs_the_certificate_of_this_connection, .init = setup, .fini = teardown, .timeout = 60)
{
    static struct issuer issuer;
    struct cert mine, other;
    uint8_t digest[32];
    char x5t[64], extra[128], request[4096];

    issuer_init(&issuer);
    cert_leaf(&mine, "mine", &ca, NULL, 10);
    cert_leaf(&other, "other", &ca, NULL, 10);
    cr_assert(gateway_start(&g,
                            "listen:\n  - {address: \"127.0.0.1:{port}\", " MTLS
                            ", client_auth: optional}}\n" HEAD ISSUER_YAML
                            "routes:\n  - {id: all, match: {path: \"/*\"}, auth: {issuers: [test]}, upstream: up}\n",
                            upstream_port(upstream)));
    cert_sha256(&mine, digest);
    x5t[sz_b64url_encode(digest, 32, x5t)] = '\0';
    snprintf(extra, sizeof(extra), "\"cnf\":{\"x5t#S256\":\"%s\"}", x5t);
    char *token = issuer_token(&issuer, "alice", 300, extra);
    snprintf(request, sizeof(request), "GET /x HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer %s\r\n\r\n", token);
    for (int hit = 0; hit < 3; hit++) {
        cr_expect_eq(ask(&(struct tls_options){.cert = &mine}, g.port, request, NULL, 0), 200, "hit %d: %s", hit, buf);
        cr_expect_eq(ask(&(struct tls_options){.cert = &other}, g.port, request, NULL, 0), 401, "hit %d", hit);
        cr_expect_neq(strstr(buf, "sender_constrained"), NULL);
        cr_expect_eq(ask(&(struct tls_options){.sni = NULL}, g.port, request, NULL, 0), 401, "hit %d", hit);
    }
    free(token);
}

Test(tls, health_names_the_first_certificate_to_end, .init = setup, .fini = teardown, .timeout = 60)
{
    cert_leaf(&b, "b.example", &ca, "DNS:b.example", 3);
    cr_assert(gateway_start(&g, "listen:\n  - {address: \"127.0.0.1:{port}\", tls: {" CERTS "}}\n" HEAD PUBLIC,
                            upstream_port(upstream)));
    char *health = gateway_admin(&g, "/health");
    cr_expect_neq(strstr(health, "\"tls\":{\"status\":\"ends_soon\",\"first_to_end\":\"/CN=b.example\""), NULL, "%s",
                  health);
    free(health);
}
