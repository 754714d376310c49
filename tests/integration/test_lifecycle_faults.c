/* Ends and shortages at bad moments: a stop while a reload reads its files, descriptors that run out. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/certs.h"
#include "fake/client.h"
#include "fake/gateway.h"
#include "subzero/time.h"

#define HEAD                                    \
    "admin: {address: \"127.0.0.1:{admin}\"}\n" \
    "workers: 2\n"                              \
    "limits: {drain: 2s, idle_timeout: 60s}\n"  \
    "log: {access: off}\n"                      \
    "upstreams: {up: {urls: [\"http://127.0.0.1:9\"]}}\n"
#define PLAIN "listen: [{address: \"127.0.0.1:{port}\"}]\n" HEAD
#define ROUTE "routes:\n  - {id: one, match: {path: /one}, public: true, upstream: up}\n"

static struct gateway g;

static double seconds_since(struct sz_mono begun)
{
    return (double)sz_between(begun, sz_mono_read()).us / 1e6;
}

/* ---- a stop while a reload is being built ------------------------------------------------------------------------ */

/* Nobody writes into the pipe that stands where the certificate was: whoever reads it waits for ever. */
Test(lifecycle_faults, a_stop_does_not_wait_for_a_file_that_never_comes, .fini = scratch_remove, .timeout = 60)
{
    struct cert ca, leaf;
    cert_ca(&ca, "ca");
    cert_leaf(&leaf, "a.example", &ca, "DNS:a.example", 90);
    cr_assert(gateway_start(&g,
                            "listen: [{address: \"127.0.0.1:{port}\", tls: {certificate: \"{dir}/a.example.pem\", key: "
                            "\"{dir}/a.example.key\"}}]\n" HEAD ROUTE,
                            0));
    unlink(leaf.file);
    cr_assert_eq(mkfifo(leaf.file, 0600), 0);
    kill(g.proc.pid, SIGHUP);
    usleep(500000);
    int fd = client_open(g.port);
    cr_expect_geq(fd, 0, "nobody accepts while the reload waits");
    close(fd);
    struct sz_mono begun = sz_mono_read();
    cr_expect(gateway_stop(&g));
    cr_expect_lt(seconds_since(begun), 8);
}

static const char *many_routes(unsigned n)
{
    struct sz_buf b = {0};
    sz_buf_printf(&b, PLAIN "routes:\n");
    for (unsigned i = 0; i < n; i++)
        sz_buf_printf(&b, "  - {id: r%u, match: {path: \"/r%u/{x}/*\"}, public: true, upstream: up}\n", i, i);
    sz_buf_add(&b, "", 1);
    return b.p;
}

/* At every moment of it, from before the file is read to after it was taken; and with one more waiting behind. */
Test(lifecycle_faults, a_stop_during_a_long_reload_is_clean, .fini = scratch_remove, .timeout = 120)
{
    const char *long_one = many_routes(4000);
    for (int i = 0; i < 6; i++) {
        cr_assert(gateway_start(&g, PLAIN ROUTE, 0));
        gateway_rewrite(&g, long_one);
        kill(g.proc.pid, SIGHUP);
        usleep((useconds_t)i * 20000);
        kill(g.proc.pid, SIGHUP);
        struct sz_mono begun = sz_mono_read();
        cr_expect(gateway_stop(&g), "round %d", i);
        cr_expect_lt(seconds_since(begun), 10, "round %d", i);
    }
    free((void *)(uintptr_t)long_one);
}

/* ---- descriptors run out ------------------------------------------------------------------------------------------
 */

enum { CLIENTS = 150, ROOM = 80 };

static double cpu_seconds(void)
{
    char path[64];
    unsigned long user = 0, system = 0;
    size_t n;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)g.proc.pid);
    char *stat = file_read(path, &n);
    const char *after = strrchr(stat, ')');
    cr_assert_not_null(after);
    cr_assert_eq(sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    free(stat);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static unsigned said(const char *text)
{
    size_t n;
    unsigned count = 0;
    char *log = file_read(g.proc.log, &n);
    for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
        count++;
    free(log);
    return count;
}

static void limit_files(rlim_t n)
{
    struct rlimit old, now;
    cr_assert_eq(prlimit(g.proc.pid, RLIMIT_NOFILE, NULL, &old), 0);
    now = (struct rlimit){.rlim_cur = n, .rlim_max = old.rlim_max};
    cr_assert_eq(prlimit(g.proc.pid, RLIMIT_NOFILE, &now, NULL), 0);
}

/* 404 is an answer of the gateway's own, for which it needs no further descriptor. */
static int ask(int fd)
{
    char buf[4096];
    client_send(fd, SZ_S("GET /none HTTP/1.1\r\nHost: a\r\n\r\n"));
    return client_response(fd, buf, sizeof(buf), 5000);
}

Test(lifecycle_faults, descriptors_that_run_out_cost_little_and_come_back, .fini = scratch_remove, .timeout = 60)
{
    int fds[CLIENTS];
    unsigned served = 0;

    cr_assert(gateway_start(&g, PLAIN ROUTE, 0));
    limit_files(ROOM);
    for (int i = 0; i < CLIENTS; i++)
        cr_assert_geq(fds[i] = client_open(g.port), 0);
    cr_assert(gateway_logged(&g, "cannot accept connections: Too many open files; raise the limit"));
    double cpu = cpu_seconds();
    unsigned before = said("cannot accept connections");
    sleep(3);
    cpu = cpu_seconds() - cpu;
    cr_expect_lt(cpu, 1.0, "%.2f s of CPU in 3 s", cpu);
    cr_expect_leq(said("cannot accept connections") - before, 4, "said more than once a second");
    cr_expect_eq(ask(fds[0]), 404, "a connection from before the shortage");

    /* Those that leave make room for those that wait. */
    for (int i = 0; i < CLIENTS / 2; i++)
        close(fds[i]);
    for (int i = CLIENTS / 2; i < CLIENTS; i++) {
        if (i >= CLIENTS / 2 + ROOM / 4)
            limit_files(4096);
        served += ask(fds[i]) == 404;
        close(fds[i]);
    }
    cr_expect_eq(served, CLIENTS - CLIENTS / 2);
    cr_expect_gt(gateway_metric(&g, "subzero_connections_refused_total{cause=\"descriptors\"}"), 0);
    fprintf(stderr, "    %.2f s of CPU in 3 s without descriptors\n", cpu);
    cr_expect(gateway_stop(&g));
}
