/* The PROXY protocol in front of a connection: from trusted peers alone, and the client is who it names. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/client.h"
#include "fake/gateway.h"
#include "fake/upstream.h"

#define YAML                                                               \
    "listen:\n  - {address: \"127.0.0.1:{port}\", proxy_protocol: true}\n" \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                            \
    "workers: 1\n"                                                         \
    "trusted_proxies: [127.0.0.1/32]\n"                                    \
    "limits: {connections_per_address: 2}\n"                               \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n"        \
    "routes:\n  - {id: all, match: {path: \"/*\"}, public: true, upstream: up}\n"
#define GET "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
#define V2  "\r\n\r\n\0\r\nQUIT\n"

static struct gateway g;
static struct upstream *upstream;
static char buf[65536];

static void setup(void)
{
    upstream = upstream_start(NULL);
    cr_assert(gateway_start(&g, YAML, upstream_port(upstream)));
}

static void teardown(void)
{
    cr_expect(gateway_stop(&g));
    upstream_stop(&upstream);
    scratch_remove();
}

Test(proxy_protocol, the_client_is_who_the_balancer_names, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        struct sz_slice greeting;
        const char *client;
    } rows[] = {
        {SZ_S("PROXY TCP4 192.0.2.1 198.51.100.1 4711 443\r\n"), "192.0.2.1"},
        {SZ_S("PROXY TCP6 2001:db8::1 2001:db8::2 4711 443\r\n"), "2001:db8::1"},
        {SZ_S(V2 "\x21\x11\0\x0c"
                 "\xc0\0\2\7\xc6\x33\x64\1\x12\x67\1\xbb"),
         "192.0.2.7"},
        {SZ_S("PROXY UNKNOWN\r\n"), "127.0.0.1"},
        {SZ_S(V2 "\x20\0\0\0"), "127.0.0.1"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        char value[256] = "";
        int fd = client_open(g.port);
        for (size_t k = 0; k < rows[i].greeting.n; k++) /* however it arrives */
            cr_assert(client_send(fd, sz_sub(rows[i].greeting, k, 1)));
        client_send(fd, SZ_S(GET));
        cr_expect_eq(client_response(fd, buf, sizeof(buf), 3000), 200, "row %zu: %s", i, buf);
        close(fd);
        cr_assert_eq(upstream_count(upstream), i + 1);
        cr_expect(upstream_field(upstream_at(upstream, i), "x-forwarded-for", value, sizeof(value)));
        cr_expect_eq(strncmp(value, rows[i].client, strlen(rows[i].client)), 0, "row %zu: %s", i, value);
    }
}

Test(proxy_protocol, without_it_and_from_strangers_connections_are_closed, .init = setup, .fini = teardown,
     .timeout = 60)
{
    int fd = client_open(g.port);
    client_send(fd, SZ_S(GET));
    cr_expect(client_closed_within(fd, 2000));
    close(fd);
    fd = client_open_from("127.0.0.9", g.port);
    client_send(fd, SZ_S("PROXY TCP4 192.0.2.1 198.51.100.1 4711 443\r\n" GET));
    cr_expect(client_closed_within(fd, 2000));
    close(fd);
    cr_expect_eq(upstream_count(upstream), 0);
    cr_expect_eq(gateway_metric(&g, "subzero_connections_refused_total{cause=\"untrusted\"}"), 1);
    cr_expect_eq(gateway_metric(&g, "subzero_connections_refused_total{cause=\"proxy_protocol\"}"), 1);
}

Test(proxy_protocol, the_share_of_an_address_is_the_clients, .init = setup, .fini = teardown, .timeout = 60)
{
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = client_open(g.port);
        client_send(fds[i], i < 3 ? SZ_S("PROXY TCP4 192.0.2.1 198.51.100.1 1 443\r\n" GET)
                                  : SZ_S("PROXY TCP4 192.0.2.2 198.51.100.1 1 443\r\n" GET));
        if (i == 2)
            cr_expect(client_closed_within(fds[i], 2000), "the third of 192.0.2.1");
        else
            cr_expect_eq(client_response(fds[i], buf, sizeof(buf), 3000), 200);
    }
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}
