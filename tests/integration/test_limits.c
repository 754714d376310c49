/* Connections, sizes, times and load beyond what was configured. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake/client.h"
#include "fake/gateway.h"
#include "fake/load.h"
#include "fake/upstream.h"
#include "subzero/time.h"

#define YAML(limits)                                                                          \
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n"                                          \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                               \
    "workers: 2\n"                                                                            \
    "log: {access: off}\n"                                                                    \
    "limits: {" limits "}\n"                                                                  \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"], timeouts: {connect: 10s}}\n" \
    "routes:\n  - {id: all, match: {path: \"/*\"}, public: true, upstream: up}\n"
#define GET "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"

static struct gateway g;
static struct upstream *upstream;
static char buf[65536];

static void setup(void)
{
    upstream = upstream_start(NULL);
}

static void teardown(void)
{
    cr_expect(gateway_stop(&g));
    upstream_stop(&upstream);
    scratch_remove();
}

static int ask(int fd)
{
    client_send(fd, SZ_S(GET));
    return client_response(fd, buf, sizeof(buf), 5000);
}

/* Milliseconds of CPU that the gateway has used. */
static long cpu_ms(void)
{
    char path[64];
    size_t n;
    unsigned long user, system;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)g.proc.pid);
    char *text = file_read(path, &n), *after = strrchr(text, ')');
    cr_assert_eq(sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    free(text);
    return (long)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

Test(limits, an_address_beyond_its_share_is_closed_and_others_are_not, .init = setup, .fini = teardown, .timeout = 60)
{
    int fds[5];
    cr_assert(gateway_start(&g, YAML("connections_per_address: 4"), upstream_port(upstream)));
    for (int i = 0; i < 4; i++) {
        fds[i] = client_open_from("127.0.0.5", g.port);
        cr_expect_eq(ask(fds[i]), 200);
    }
    fds[4] = client_open_from("127.0.0.5", g.port);
    cr_expect(client_closed_within(fds[4], 2000));
    close(fds[4]);
    fds[4] = client_open_from("127.0.0.6", g.port);
    cr_expect_eq(ask(fds[4]), 200);
    close(fds[4]);
    cr_expect_eq(gateway_metric(&g, "subzero_connections_refused_total{cause=\"address\"}"), 1);
    close(fds[0]);
    usleep(100000);
    fds[0] = client_open_from("127.0.0.5", g.port);
    cr_expect_eq(ask(fds[0]), 200, "a place became free");
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

Test(limits, at_the_limit_connections_wait_and_nobody_spins, .init = setup, .fini = teardown, .timeout = 60)
{
    int fds[4];
    cr_assert(gateway_start(&g, YAML("max_connections: 3"), upstream_port(upstream)));
    for (int i = 0; i < 3; i++) {
        fds[i] = client_open(g.port);
        cr_expect_eq(ask(fds[i]), 200);
    }
    fds[3] = client_open(g.port); /* in the kernel's queue */
    client_send(fds[3], SZ_S(GET));
    long before = cpu_ms();
    cr_expect_eq(client_response(fds[3], buf, sizeof(buf), 1500), 0, "waits");
    cr_expect_lt(cpu_ms() - before, 300, "%ld ms of CPU while waiting", cpu_ms() - before);
    close(fds[0]);
    cr_expect_eq(client_response(fds[3], buf, sizeof(buf), 2000), 200, "its turn has come");
    for (int i = 1; i < 4; i++)
        close(fds[i]);
}

/* The text with a run of `size` digits in place of '#'. */
static int send_head(const char *text, int size)
{
    struct sz_buf request = {0};
    int fd = client_open(g.port), split = (int)(strchr(text, '#') - text);
    sz_buf_printf(&request, "%.*s%0*d%s", split, text, size, 0, text + split + 1);
    client_send(fd, sz_buf_slice(&request));
    int status = client_response(fd, buf, sizeof(buf), 3000);
    sz_buf_fini(&request);
    close(fd);
    return status;
}

Test(limits, heads_and_bodies_have_their_statuses, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, YAML("request_head: 4KiB, headers: 10, request_body: 1kB"), upstream_port(upstream)));
    cr_expect_eq(send_head("GET / HTTP/1.1\r\nHost: a\r\nX: #\r\n\r\n", 3900), 200);
    cr_expect_eq(send_head("GET / HTTP/1.1\r\nHost: a\r\nX: #\r\n\r\n", 4200), 431);
    cr_expect_neq(strstr(buf, "headers_too_large"), NULL);
    cr_expect_eq(
        send_head("GET / HTTP/1.1\r\nHost: a\r\n1:1\r\n2:2\r\n3:3\r\n4:4\r\n5:5\r\n6:6\r\n7:7\r\n8:8\r\n9:#\r\n\r\n",
                  1),
        200);
    cr_expect_eq(send_head("GET / HTTP/1.1\r\nHost: "
                           "a\r\n1:1\r\n2:2\r\n3:3\r\n4:4\r\n5:5\r\n6:6\r\n7:7\r\n8:8\r\n9:9\r\n10:#\r\n\r\n",
                           1),
                 431);
    cr_expect_eq(send_head("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n#", 1000), 200);
    cr_expect_eq(send_head("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n#", 1001), 413);
    cr_expect_neq(strstr(buf, "application/problem+json"), NULL, "%s", buf);
    cr_expect_eq(
        send_head("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n#\r\n0\r\n\r\n", 5000), 413);
    cr_expect_eq(send_head("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n#\r\n0\r\n\r\n", 1),
                 400);
    cr_expect_eq(send_head("POST / HTTP/1.1\r\nHost: a\r\nExpect: the-unexpected\r\nContent-Length: 1\r\n\r\n#", 1),
                 417);
}

Test(limits, slow_requests_and_idle_connections_end, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, YAML("request_timeout: 1s, idle_timeout: 2s"), upstream_port(upstream)));
    int head = client_open(g.port), body = client_open(g.port), idle = client_open(g.port), fresh = client_open(g.port);
    cr_expect_eq(ask(idle), 200);
    struct sz_mono begun = sz_mono_read();
    bool gone = false;
    client_send(body, SZ_S("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"));
    client_send(head, SZ_S("GET / HTTP/1.1\r\nX: "));
    for (int i = 0; i < 30 && !gone; i++) { /* a byte now and then does not buy time */
        usleep(100000);
        gone = !client_send(head, SZ_S("x")) || !client_send(body, SZ_S("x"));
    }
    cr_expect(client_closed_within(head, 500));
    cr_expect(client_closed_within(body, 500));
    cr_expect_lt(sz_between(begun, sz_mono_read()).us, 3500000);
    cr_expect(client_closed_within(idle, 3500));
    cr_expect(client_closed_within(fresh, 500));
    close(head);
    close(body);
    close(idle);
    close(fresh);
}

#ifdef __SANITIZE_ADDRESS__
#define SLACK_US 1000000
#else
#define SLACK_US 50000
#endif

Test(limits, beyond_max_in_flight_requests_are_refused_and_the_accepted_keep_their_time, .init = setup,
     .fini = teardown, .timeout = 120)
{
    static struct load calm, storm;
    upstream_play(upstream, &(struct upstream_script){.wait = SZ_MS(100)});
    cr_assert(gateway_start(&g, YAML("max_in_flight: 10"), upstream_port(upstream)));
    calm = (struct load){.port = g.port, .request = GET, .clients = 8, .latencies_max = 100000};
    load_start(&calm);
    usleep(2500000);
    load_end(&calm);
    storm = (struct load){.port = g.port, .request = GET, .clients = 40, .latencies_max = 100000};
    load_start(&storm);
    usleep(2500000);
    char *live = gateway_admin(&g, "/livez");
    cr_expect_eq(raw_status(live), 200, "the admin listener is exempt");
    free(live);
    load_end(&storm);
    cr_expect_eq(calm.refused, 0);
    cr_expect_gt(storm.status_503, 10);
    cr_expect_eq(storm.refused, storm.status_503);
    cr_expect_eq(storm.lost, 0);
    uint32_t before = load_percentile(&calm, 99), under = load_percentile(&storm, 99);
    cr_expect_lt(under, 2 * before + SLACK_US, "p99 of the accepted: %u us, calm %u us", under, before);
    free(calm.latencies_us);
    free(storm.latencies_us);

    int fd = client_open(g.port);
    upstream_play(upstream, &(struct upstream_script){.wait = SZ_MS(1000)});
    int busy[10];
    for (int i = 0; i < 10; i++) {
        busy[i] = client_open(g.port);
        client_send(busy[i], SZ_S(GET));
    }
    usleep(300000);
    char retry[16];
    cr_expect_eq(ask(fd), 503);
    cr_expect(raw_header(buf, "retry-after", retry, sizeof(retry)));
    cr_expect_neq(strstr(buf, "overloaded"), NULL);
    for (int i = 0; i < 10; i++)
        close(busy[i]);
    close(fd);
}

/*
 * 2,000 clients without a token push what they can; good requests are answered and memory stays bounded.  Under a
 * sanitizer everything is slower and larger: fewer clients against a lower bound.
 */
#ifdef __SANITIZE_ADDRESS__
enum { CLIENTS = 300, ROUNDS = 20, PEAK_KB = 768 * 1024 };
#define BUFFERED "16MB"
#else
enum { CLIENTS = 2000, ROUNDS = 60, PEAK_KB = 256 * 1024 };
#define BUFFERED "64MB"
#endif

static void flood(const char *head, bool chunked, struct load *good)
{
    enum { PIECE = 16384 };
    static char piece[PIECE + 16];
    static int fds[CLIENTS];
    if (chunked) {
        int n = snprintf(piece, sizeof(piece), "%x\r\n", PIECE - 32);
        memset(piece + n, 'x', PIECE - 32);
        memcpy(piece + n + PIECE - 32, "\r\n", 3);
    } else {
        memset(piece, 'x', PIECE);
    }
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_open(g.port);
        cr_assert_geq(fds[i], 0);
        client_send(fds[i], sz_cstr(head));
    }
    load_start(good);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++)
            (void)!send(fds[i], piece, strlen(piece), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    for (int i = 0; i < 100 && good->ok <= 20; i++)
        usleep(50000);
    load_end(good);
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
}

static void flood_and_judge(const char *head, bool chunked)
{
    static struct load good;
    cr_assert(gateway_start(&g, YAML("request_body: 10MB, buffered_bodies: " BUFFERED ", request_timeout: 30s"),
                            upstream_port(upstream)));
    good = (struct load){.port = g.port, .request = GET, .clients = 2};
    flood(head, chunked, &good);
    long peak = gateway_status_kb(&g, "VmHWM");
    cr_expect_gt(good.ok, 20);
    cr_expect_eq(good.lost, 0);
    cr_expect_eq(good.refused, 0);
    cr_expect_gt(gateway_metric(&g, "subzero_connections_refused_total{cause=\"buffered_bodies\"}"), 50);
    cr_expect_lt(peak, PEAK_KB, "peak %ld kB", peak);
}

Test(limits, buffered_bodies_of_announced_length_are_bounded, .init = setup, .fini = teardown, .timeout = 120)
{
    flood_and_judge("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n", false);
}

Test(limits, buffered_bodies_in_chunks_are_bounded, .init = setup, .fini = teardown, .timeout = 120)
{
    flood_and_judge("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", true);
}
