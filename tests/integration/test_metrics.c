/*
 * /metrics of the running gateway against the table it is documented by: every metric is in the table, has just the
 * labels that the table says, and no client can add a series.  promtool, where there is one, finds nothing to say.
 */
#include "integration/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/exposition.h"

#define CONFIG                                                                                           \
    "listen:\n"                                                                                          \
    "  - {address: \"127.0.0.1:{port}\"}\n"                                                              \
    "  - {address: \"127.0.0.1:{port2}\", mode: decide, dialect: nginx}\n"                               \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                                          \
    "workers: 2\n"                                                                                       \
    "log: {access: off}\n"                                                                               \
    "trusted_proxies: [127.0.0.1/32]\n"                                                                  \
    "threat: {mode: dry_run}\n"                                                                          \
    "audit: {path: \"{dir}/audit\"}\n"                                                                   \
    "rate_limits:\n"                                                                                     \
    "  few: {algorithm: token_bucket, capacity: 100000, refill: 100000/1s, on_store_failure: closed}\n"  \
    "upstreams:\n"                                                                                       \
    "  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n"                                                  \
    "  gone: {urls: [\"http://127.0.0.1:9\"]}\n" ISSUER_YAML "routes:\n"                                 \
    "  - {id: doc, match: {path: \"/doc/*\"}, auth: {issuers: [test]}, upstream: up, rate_limit: few}\n" \
    "  - {id: pub, match: {path: \"/pub/*\"}, public: true, upstream: up}\n"                             \
    "  - {id: gone, match: {path: \"/gone/*\"}, public: true, upstream: gone}\n"

struct row {
    const char *name, *labels;
    bool histogram;
};
static const struct row rows[] = {
#define SZ_COUNTER(id, name, labels, help, watch)         {name, labels, false},
#define SZ_GAUGE(id, name, labels, help, watch)           {name, labels, false},
#define SZ_HISTOGRAM(id, name, labels, help, watch)       {name, labels, true},
#define SZ_COLLECTED(id, kind, name, labels, help, watch) {name, labels, false},
#include "subzero/tbl/metrics.h"
};

static struct gateway gateway;
static struct upstream *up;
static struct issuer issuer;
static char *token;

static void setup(void)
{
    up = upstream_start(NULL);
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 3600, NULL);
    cr_assert(gateway_start(&gateway, CONFIG, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gateway);
    upstream_stop(&up);
    free(token);
    scratch_remove();
}

TestSuite(metrics, .init = setup, .fini = teardown, .timeout = 120);

static int ask(const char *method, const char *target, const char *bearer, const char *fields)
{
    struct http1_response r = {0};
    int status = http1_ask(gateway.port, method, target, bearer, fields, NULL, &r);
    http1_response_fini(&r);
    return status;
}

/* Some of everything: allowed, refused in several ways, decided for a proxy, an upstream that is gone. */
static void traffic(void)
{
    struct http1_response r = {0};
    cr_expect_eq(ask("GET", "/doc/1", token, NULL), 200);
    cr_expect_eq(ask("GET", "/doc/1", token, NULL), 200);
    cr_expect_eq(ask("GET", "/doc/1", NULL, NULL), 401);
    cr_expect_eq(ask("GET", "/doc/1", "a.b.c", NULL), 401);
    cr_expect_eq(ask("GET", "/pub/1", NULL, NULL), 200);
    cr_expect_eq(ask("GET", "/nowhere", NULL, NULL), 404);
    cr_expect_eq(ask("GET", "/gone/1", NULL, NULL), 502);
    http1_ask(gateway.port2, "GET", "/", token, "X-Original-URI: /doc/1\r\nX-Original-Method: GET\r\n", NULL, &r);
    cr_expect_eq(r.status, 200);
    http1_response_fini(&r);
}

static char *scrape(void)
{
    struct sz_text why;
    /* A request is counted when its answer has been sent, which its client may know before. */
    for (int i = 0; i < 500 && gateway_metric(&gateway, "subzero_requests_in_progress") != 0; i++)
        usleep(10000);
    char *answer = gateway_admin(&gateway, "/metrics");
    cr_assert_not_null(answer);
    char *text = strdup(raw_body(answer));
    free(answer);
    cr_assert(exposition_valid(sz_cstr(text), &why), "%s", why.s);
    return text;
}

static bool takes(const struct row *row, struct sz_slice name)
{
    struct sz_slice rest = name;
    if (!sz_starts_with(rest, sz_cstr(row->name)))
        return false;
    rest = sz_from(rest, strlen(row->name));
    return rest.n == 0 || (row->histogram &&
                           (sz_eq(rest, SZ_S("_bucket")) || sz_eq(rest, SZ_S("_sum")) || sz_eq(rest, SZ_S("_count"))));
}

/* The label names of a sample as the table writes them; le, which is every histogram's, left out. */
static void label_names(struct sz_slice labels, struct sz_buf *out)
{
    bool quoted = false, name = true;
    size_t from = 0;
    for (size_t i = 0; i < labels.n; i++) {
        char c = labels.p[i];
        if (quoted && c == '\\') {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && c == '=' && name) {
            struct sz_slice got = sz_sub(labels, from, i - from);
            if (!sz_eq(got, SZ_S("le")))
                sz_buf_printf(out, "%s%.*s", out->n > 0 ? "," : "", SZ_FMT(got));
            name = false;
        } else if (!quoted && c == ',') {
            from = i + 1;
            name = true;
        }
    }
}

static void check_sample(struct sz_slice line)
{
    ptrdiff_t brace = sz_find_byte(line, '{'), blank = sz_find_byte(line, ' ');
    size_t name_n = (size_t)(brace >= 0 && brace < blank ? brace : blank);
    struct sz_slice name = sz_sub(line, 0, name_n);
    struct sz_buf got = {0};
    if (line.p[name_n] == '{') {
        size_t end = line.n;
        while (line.p[end - 1] != '}')
            end--;
        label_names(sz_sub(line, name_n + 1, end - name_n - 2), &got);
    }
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        if (!takes(&rows[i], name))
            continue;
        cr_expect(sz_eq(sz_buf_slice(&got), sz_cstr(rows[i].labels)), "%.*s: labels %.*s, the table says %s",
                  SZ_FMT(name), SZ_FMT(sz_buf_slice(&got)), rows[i].labels);
        sz_buf_fini(&got);
        return;
    }
    cr_expect(false, "%.*s is in no row of tbl/metrics.h", SZ_FMT(name));
    sz_buf_fini(&got);
}

static size_t each_sample(const char *text, void (*see)(struct sz_slice line))
{
    struct sz_slice rest = sz_cstr(text), line;
    size_t n = 0;
    while (rest.n > 0 && sz_split(&rest, '\n', &line)) {
        if (line.n == 0 || line.p[0] == '#')
            continue;
        n++;
        if (see != NULL)
            see(line);
    }
    return n;
}

/* Every series of `after` was there before. */
static void expect_same_series(const char *before, const char *after)
{
    struct sz_slice rest = sz_cstr(after), line;
    while (rest.n > 0 && sz_split(&rest, '\n', &line)) {
        size_t n = line.n;
        while (n > 0 && line.p[n - 1] != ' ')
            n--;
        char series[512];
        snprintf(series, sizeof(series), "\n%.*s", (int)n, line.p);
        cr_expect(line.n == 0 || line.p[0] == '#' || strstr(before, series) != NULL, "a new series: %.*s",
                  SZ_FMT(line));
    }
}

static void expect_value(const char *text, const char *series, double least)
{
    double value = exposition_value(sz_cstr(text), series);
    cr_expect(!isnan(value) && value >= least, "%s is %g", series, value);
}

Test(metrics, are_what_the_table_says)
{
    traffic();
    char *text = scrape();
    cr_expect_gt(each_sample(text, check_sample), 100);
    expect_value(text, "subzero_requests_total{route=\"doc\",decision=\"allow\",reason=\"allowed\"}", 3);
    expect_value(text, "subzero_requests_total{route=\"none\",decision=\"deny\",reason=\"no_route\"}", 1);
    expect_value(text, "subzero_request_duration_seconds_count{handler=\"proxy\"}", 7);
    expect_value(text, "subzero_request_duration_seconds_count{handler=\"decide\"}", 1);
    expect_value(text, "subzero_request_duration_seconds_count{handler=\"auth\"}", 3);
    expect_value(text, "subzero_errors_total{component=\"upstream\"}", 1);
    expect_value(text, "subzero_cache_entries{layer=\"l1\",kind=\"token\"}", 1);
    expect_value(text, "subzero_cache_capacity{layer=\"l1\",kind=\"token\"}", 50000);
    expect_value(text, "subzero_cache_evictions_total{layer=\"l1\",kind=\"token\"}", 0);
    expect_value(text, "subzero_cache_hits_total{layer=\"l1\",kind=\"token\"}", 1);
    expect_value(text, "subzero_ratelimit_decisions_total{policy=\"few\",reason=\"allowed\",decision=\"allow\"}", 3);
    expect_value(text, "subzero_audit_records_total{kind=\"decision\"}", 0);
    expect_value(text, "process_resident_memory_bytes", 1000000);
    free(text);
}

/* Names that nobody has used before, wherever a client can put one. */
static void storm(int from)
{
    for (int i = from; i < from + 60; i++) {
        char target[64], fields[200];
        snprintf(target, sizeof(target), i % 2 == 0 ? "/doc/x%d" : "/nowhere/x%d", i);
        snprintf(fields, sizeof(fields), "X-Request-Id: r%d\r\nUser-Agent: u%d\r\nX-Forwarded-For: 192.0.2.%d\r\n", i,
                 i, i);
        char *other = issuer_token(&issuer, target, 60, NULL);
        ask(i % 3 == 0 ? "GET" : "BREW", target, i % 5 == 0 ? target : other, fields);
        free(other);
    }
}

/* Z9: the label sets are bounded by the configuration.  The first storm brings the ways of refusing, the second none.
 */
Test(metrics, no_client_adds_a_series)
{
    traffic();
    storm(0);
    char *before = scrape();
    storm(60);
    char *after = scrape();
    expect_same_series(before, after);
    free(before);
    free(after);
}

Test(metrics, promtool_has_nothing_to_say)
{
    const char *promtool = program_find("promtool");
    struct proc proc;
    if (promtool == NULL)
        cr_skip_test("no promtool: it is in Debian's package prometheus");
    traffic();
    char *text = scrape();
    const char *file = scratch_write("metrics.txt", sz_cstr(text));
    const char *script = scratch_printf("check.sh", "exec '%s' check metrics <'%s'\n", promtool, file);
    const char *argv[] = {"/bin/sh", script, NULL};
    int status = proc_run(&proc, "promtool", 30, argv);
    char *said = file_read(proc.log, NULL);
    cr_expect(status == 0 && said[0] == '\0', "exit %d\n%s", status, said);
    free(said);
    free(text);
}
