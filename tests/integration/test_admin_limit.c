/* The admin port takes nothing away from the data ports, whoever reaches it. */
#include "integration/harness.h"

#include <errno.h>

/* Connections beyond a bound wait, so that they cannot use up the gateway's descriptors. */
Test(admin_limit, connections_beyond_the_bound_wait, .timeout = 60)
{
    static struct http1 held[300];
    struct gateway g;
    struct http1 late;
    struct http1_response r = {0};
    size_t open = 0;
    sz_crypto_init();
    cr_assert(gateway_start(&g,
                            "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                            "admin: {address: \"127.0.0.1:{admin}\"}\n"
                            "workers: 1\n"
                            "log: {access: off}\n"
                            "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                            "routes: [{id: all, match: {path: '/*'}, public: true, upstream: up}]\n",
                            free_port()));
    while (open < SZ_COUNT(held) && http1_open(&held[open], g.admin))
        open++;
    cr_assert_eq(open, SZ_COUNT(held), "the kernel's queue takes what the gateway does not");
    cr_assert(http1_open(&late, g.admin));
    cr_assert(http1_printf(&late, "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
    cr_expect_eq(http1_read(&late, "GET", SZ_MS(500), &r), -ETIMEDOUT, "a connection beyond the bound was served");
    cr_expect_eq(http1_ask(g.port, "GET", "/", NULL, NULL, NULL, &r), 502, "data connections are others");
    for (size_t i = 0; i < open; i++)
        http1_close(&held[i]);
    cr_expect_eq(http1_read(&late, "GET", SZ_SEC(10), &r), 0);
    cr_expect_eq(r.status, 200);
    http1_close(&late);
    http1_response_fini(&r);
    stop_gateway(&g);
    scratch_remove();
}
