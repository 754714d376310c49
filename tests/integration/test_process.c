/*
 * The process as the kernel sees it, and what it writes about requests: not dumpable, no core, no new privileges; one
 * access line a request, whatever a client put into it.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct gateway gw;
static struct upstream *up;
static struct issuer issuer;
static struct http1_response r;

#define HEAD                                      \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n" \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"   \
    "workers: 1\n" ISSUER_YAML "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
#define ROUTES                                                               \
    "routes:\n"                                                              \
    "  - {id: open, match: {path: '/open/*'}, public: true, upstream: up}\n" \
    "  - {id: all, match: {path: '/*'}, auth: {issuers: [test]}, upstream: up}\n"

static void start(const char *yaml)
{
    sz_crypto_init();
    up = upstream_start(NULL);
    issuer_init(&issuer);
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gw);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    http1_response_fini(&r);
    scratch_remove();
}

static char *proc_file(const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)gw.proc.pid, name);
    return file_read(path, NULL);
}

Test(process, is_closed_to_its_neighbours, .fini = teardown, .timeout = 60)
{
    start(HEAD "log: {access: off}\n" ROUTES);
    char *status = proc_file("status"), *limits = proc_file("limits");
    cr_expect_not_null(strstr(status, "NoNewPrivs:\t1"), "%s", status);
    const char *core = strstr(limits, "Max core file size");
    cr_assert_not_null(core);
    unsigned long soft = 1, hard = 1;
    cr_assert_eq(sscanf(core, "Max core file size %lu %lu", &soft, &hard), 2);
    cr_expect(soft == 0 && hard == 0);
    /* A process that is not dumpable belongs to root in /proc, whoever it runs as. */
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)gw.proc.pid);
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_eq(st.st_uid, 0);
    if (geteuid() == 0) {
        char *health = gateway_admin(&gw, "/health");
        cr_expect_not_null(strstr(health, "root"), "no word of root in /health: %s", health);
        cr_expect(gateway_logged(&gw, "running as root"));
        free(health);
    }
    free(status);
    free(limits);
}

/* Lines of the gateway's output that are access lines. */
static unsigned count_lines(const char *log, const char *needle)
{
    unsigned n = 0;
    for (const char *at = log; (at = strstr(at, needle)) != NULL; at++)
        n++;
    return n;
}

static bool has_lines(unsigned want, const char *needle, char **log)
{
    for (int i = 0; i < 200; i++) { /* the writer thread is asynchronous: at most 4 s */
        free(*log);
        *log = file_read(gw.proc.log, NULL);
        if (count_lines(*log, needle) >= want)
            return true;
        usleep(20000);
    }
    return false;
}

Test(process, one_line_a_request_and_no_secret_in_it, .fini = teardown, .timeout = 60)
{
    char *log = NULL;
    start(HEAD "log: {access: all}\n" ROUTES);
    char *token = issuer_token(&issuer, "al\\u001bice\\nx", 60, NULL);
    cr_expect_eq(http1_ask(gw.port, "GET", "/open/a?access_token=secret1", NULL, NULL, NULL, &r), 200);
    cr_expect_eq(http1_ask(gw.port, "GET", "/b", "secret2", NULL, NULL, &r), 401);
    http1_ask(gw.port, "GET", "/c", token, "Cookie: session=secret3\r\n", NULL, &r);
    cr_assert(has_lines(3, "\"request_id\"", &log), "%s", log);
    cr_expect_eq(count_lines(log, "\"path\":\"/open/a\""), 1);
    cr_expect_null(strstr(log, "secret"), "%s", log);
    cr_expect_null(strstr(log, token), "a token stands in the log");
    cr_expect_null(strchr(log, '\x1b'), "a raw escape character in the log");
    cr_expect_not_null(strstr(log, "\"reason\":\"malformed_token\""), "%s", log);
    free(token);
    free(log);
}

Test(process, access_lines_can_be_sampled_or_off, .fini = teardown, .timeout = 60)
{
    char *log = NULL;
    start(HEAD "log: {access: sampled, sample: 10}\n" ROUTES);
    for (int i = 0; i < 100; i++)
        cr_expect_eq(http1_ask(gw.port, "GET", "/open/a", NULL, NULL, NULL, &r), 200);
    cr_assert(has_lines(10, "\"request_id\"", &log));
    cr_expect_leq(count_lines(log, "\"request_id\""), 11);
    gateway_rewrite(&gw, HEAD "log: {access: off}\n" ROUTES);
    cr_assert(gateway_reload(&gw));
    unsigned before = count_lines(log, "\"request_id\"");
    for (int i = 0; i < 50; i++)
        http1_ask(gw.port, "GET", "/open/a", NULL, NULL, NULL, &r);
    cr_assert(has_lines(before, "\"request_id\"", &log));
    cr_expect_eq(count_lines(log, "\"request_id\""), before);
    free(log);
}

/* Entries of L1 by the admin listener's count. */
static double entries(void)
{
    char *page = gateway_admin(&gw, "/cache");
    const char *at = strstr(page, "\"entries\":");
    double n = at != NULL ? strtod(at + 10, NULL) : -1;
    free(page);
    return n;
}

Test(process, a_shorter_ttl_ends_what_is_cached, .fini = teardown, .timeout = 60)
{
    start(HEAD "log: {access: off}\ncache: {l1: {ttl: 5m}}\n" ROUTES);
    char *token = issuer_token(&issuer, "alice", 600, NULL);
    cr_expect_eq(http1_ask(gw.port, "GET", "/a", token, NULL, NULL, &r), 200);
    cr_expect_eq(entries(), 1);
    gateway_rewrite(&gw, HEAD "log: {access: off}\ncache: {l1: {ttl: 10m}}\n" ROUTES);
    cr_assert(gateway_reload(&gw));
    cr_expect_eq(entries(), 1, "a longer ttl leaves the entries alone");
    gateway_rewrite(&gw, HEAD "log: {access: off}\ncache: {l1: {ttl: 1s}}\n" ROUTES);
    cr_assert(gateway_reload(&gw));
    cr_expect_eq(entries(), 0);
    free(token);
}
