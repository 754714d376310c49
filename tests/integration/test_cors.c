/* CORS beside an upstream that has opinions of its own: our fields replace its, but what its answer varies by stays. */
#include "integration/harness.h"

Test(cors, what_the_upstream_varies_by_stays, .timeout = 60)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nVary: Accept-Encoding\r\n"
                                 "Access-Control-Allow-Origin: https://upstream.example\r\n\r\nok";
    struct gateway g;
    struct http1_response r = {0};
    char origin[64] = "";
    sz_crypto_init();
    struct upstream *up = upstream_start(NULL);
    upstream_play(up, &(struct upstream_script){.answer = SZ_S(answer)});
    cr_assert(gateway_start(&g,
                            "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                            "admin: {address: \"127.0.0.1:{admin}\"}\n"
                            "workers: 1\n"
                            "log: {access: off}\n"
                            "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                            "routes:\n"
                            "  - {id: all, match: {methods: [GET], path: '/*'}, public: true, upstream: up,\n"
                            "     cors: {origins: ['https://app.example']}}\n",
                            upstream_port(up)));
    cr_expect_eq(http1_ask(g.port, "GET", "/", NULL, "Origin: https://app.example\r\n", NULL, &r), 200);
    cr_expect(http1_field(&r, "access-control-allow-origin", origin, sizeof(origin)));
    cr_expect_str_eq(origin, "https://app.example");
    cr_expect_eq(http1_field_count(&r, "access-control-allow-origin"), 1);
    cr_expect_eq(http1_field_count(&r, "vary"), 2, "%s", r.head.p);
    cr_expect_not_null(strstr(r.head.p, "Accept-Encoding"));
    http1_response_fini(&r);
    stop_gateway(&g);
    upstream_stop(&up);
    scratch_remove();
}
