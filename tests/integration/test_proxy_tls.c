/* TLS to upstreams, on 1.2 and 1.3: only the right name or address under the right CA gets to see a request. */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake/certs.h"

static const struct row {
    const char *name; /* also the route, and the upstream's key in the configuration */
    const char *host; /* of the url */
    const char *san;
    const char *server_name; /* NULL: not set */
    bool other_ca;           /* the configuration trusts another one */
    bool asks;               /* the upstream insists on a client certificate */
    bool has_certificate;    /* and the configuration has one */
    bool good;
} rows[] = {
    {"wrong-name", "localhost", "DNS:other.example", NULL, false, false, false, false},
    {"wrong-ip", "127.0.0.1", "IP:127.0.0.9", NULL, false, false, false, false},
    {"name-for-ip", "127.0.0.1", "DNS:localhost", NULL, false, false, false, false},
    {"ip-for-name", "localhost", "IP:127.0.0.1", NULL, false, false, false, false},
    {"ip-as-dns", "127.0.0.1", "DNS:127.0.0.1", NULL, false, false, false, false},
    {"no-name", "localhost", NULL, NULL, false, false, false, false},
    {"partial-wildcard", "localhost", "DNS:local*", NULL, false, false, false, false},
    {"wrong-ca", "localhost", "DNS:localhost", NULL, true, false, false, false},
    {"wrong-server-name", "localhost", "DNS:localhost", "other.example", false, false, false, false},
    {"no-certificate", "localhost", "DNS:localhost", NULL, false, true, false, false},
    {"name", "localhost", "DNS:localhost", NULL, false, false, false, true},
    {"ip", "127.0.0.1", "IP:127.0.0.1", NULL, false, false, false, true},
    {"server-name", "127.0.0.1", "DNS:api.example", "api.example", false, false, false, true},
    {"certificate", "localhost", "DNS:localhost", NULL, false, true, true, true},
};

static struct upstream *ups[SZ_COUNT(rows)];
static struct gateway gw;

static void start_upstreams(const struct cert *ca, int version)
{
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        char name[60];
        struct cert leaf;
        snprintf(name, sizeof(name), "up-%s", rows[i].name);
        cert_leaf(&leaf, name, ca, rows[i].san, 30);
        struct upstream_tls tls = {.certificate = leaf.file,
                                   .key = leaf.key_file,
                                   .client_ca = rows[i].asks ? ca->file : NULL,
                                   .max_version = version};
        ups[i] = upstream_start(&tls);
    }
}

static void put_upstream(struct sz_buf *b, size_t i, const struct cert *ca, const struct cert *other,
                         const struct cert *client)
{
    const struct row *row = &rows[i];
    sz_buf_printf(b, "  %s:\n    urls: [\"https://%s:%u\"]\n    tls:\n      ca_file: \"%s\"\n", row->name, row->host,
                  upstream_port(ups[i]), row->other_ca ? other->file : ca->file);
    if (row->server_name != NULL)
        sz_buf_printf(b, "      server_name: %s\n", row->server_name);
    if (row->has_certificate)
        sz_buf_printf(b, "      certificate: \"%s\"\n      key: \"%s\"\n", client->file, client->key_file);
}

static void start(int version)
{
    struct cert ca, other, client;
    struct sz_buf b = {0};

    cert_ca(&ca, "ca");
    cert_ca(&other, "other-ca");
    cert_leaf(&client, "client", &ca, "DNS:client", 30);
    start_upstreams(&ca, version);
    sz_buf_adds(&b, SZ_S("listen: [{address: \"127.0.0.1:{port}\"}]\nadmin: {address: \"127.0.0.1:{admin}\"}\n"
                         "workers: 1\nlog: {access: off}\nupstreams:\n"));
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        put_upstream(&b, i, &ca, &other, &client);
    sz_buf_adds(&b, SZ_S("routes:\n"));
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        sz_buf_printf(&b, "  - {id: %s, match: {path: /%s}, public: true, upstream: %s}\n", rows[i].name, rows[i].name,
                      rows[i].name);
    sz_buf_add(&b, "", 1);
    cr_assert(gateway_start(&gw, b.p, 0));
    sz_buf_fini(&b);
}

static void stop(void)
{
    stop_gateway(&gw);
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        upstream_stop(&ups[i]);
    scratch_remove();
}

/* The refused ones must not have seen a byte of a request; the good ones keep their connection. */
static void check(int version)
{
    struct http1_response r = {0};
    char target[60];

    start(version);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        snprintf(target, sizeof(target), "/%s", rows[i].name);
        for (int k = 0; k < 3; k++) {
            int status = http1_ask(gw.port, "GET", target, NULL, NULL, NULL, &r);
            cr_expect_eq(status, rows[i].good ? 200 : 502, "%s: %d", target, status);
        }
        cr_expect_eq(upstream_count(ups[i]), rows[i].good ? 3 : 0, "%s: %zu", target, upstream_count(ups[i]));
        if (rows[i].good)
            cr_expect_eq(upstream_connections(ups[i]), 1, "%s: %u connections", target, upstream_connections(ups[i]));
    }
    http1_response_fini(&r);
}

Test(proxy_tls, names_addresses_and_issuers_on_tls_1_2, .fini = stop, .timeout = 60)
{
    check(TLS1_2_VERSION);
}

Test(proxy_tls, names_addresses_and_issuers_on_tls_1_3, .fini = stop, .timeout = 60)
{
    check(TLS1_3_VERSION);
}

/* Large both ways: records, partial writes, back-pressure under TLS. */
Test(proxy_tls, large_bodies, .fini = stop, .timeout = 60)
{
    static const struct upstream_script script = {.stream = 50000000};
    struct http1_response r = {0};
    char *body = malloc(900001);

    memset(body, 'b', 900000);
    body[900000] = '\0';
    start(TLS1_3_VERSION);
    size_t at = 10;
    cr_assert_str_eq(rows[at].name, "name");
    upstream_play(ups[at], &script);
    cr_expect_eq(http1_ask(gw.port, "POST", "/name", NULL, NULL, body, &r), 200);
    cr_expect_eq(r.body.n, 50000000);
    cr_expect_eq(upstream_at(ups[at], 0)->body_n, 900000);
    http1_response_fini(&r);
    free(body);
}
