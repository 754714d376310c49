/*
 * The audit journal of a running gateway: what is recorded, what is read, what survives kill -9, what a disk that is
 * full does to requests, and that no secret gets in.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "harness.h"
#include "subzero/audit_read.h"

#define GATEWAY(audit)                                                                 \
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n"                                   \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                        \
    "workers: 2\n"                                                                     \
    "log: {access: off}\n" ISSUER_YAML "audit: {path: \"{dir}/journal\", " audit "}\n" \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n"                    \
    "routes:\n"                                                                        \
    "  - {id: open, match: {path: \"/public/*\"}, public: true, upstream: up}\n"       \
    "  - {id: mine, match: {path: \"/mine/*\"}, auth: {issuers: [test]}, upstream: up}\n"

static struct gateway g;
static struct issuer issuer;
static struct upstream *upstream;

static void setup(void)
{
    sz_crypto_init();
    issuer_init(&issuer);
    upstream = upstream_start(NULL);
    cr_assert_not_null(upstream);
}
static void teardown(void)
{
    upstream_stop(&upstream);
    scratch_remove();
}
TestSuite(audit, .init = setup, .fini = teardown, .timeout = 240);

static const char *journal(void)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/journal", scratch_path());
    return path;
}

static void expect_verified(void)
{
    struct sz_audit_verdict verdict;
    cr_assert_eq(sz_audit_verify(journal(), NULL, NULL, &verdict), 0, "%s", verdict.what.s);
    cr_expect(verdict.good, "%s", verdict.what.s);
}

static int collect(void *arg, struct sz_slice bytes)
{
    sz_buf_adds(arg, bytes);
    return 0;
}

/* Every record, oldest first, NUL-terminated. */
static struct sz_buf everything(void)
{
    struct sz_buf out = {0};
    struct sz_text why = {""};
    struct sz_audit_param asc = {"order", "asc"};
    cr_assert_eq(sz_audit_dir_export(journal(), &asc, 1, collect, &out, NULL, &why), 0, "%s", why.s);
    sz_buf_add(&out, "", 1);
    return out;
}

static int get(const char *target, const char *token, struct http1_response *r)
{
    return http1_ask(g.port, "GET", target, token, NULL, NULL, r);
}

/* Status of the admin listener's answer. */
static int admin(const char *line)
{
    char request[300];
    size_t n;
    snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", line);
    char *answer = raw_exchange(g.admin, sz_cstr(request), &n);
    int status = answer == NULL ? 0 : raw_status(answer);
    free(answer);
    return status;
}

/* ---- recording and reading --------------------------------------------------------------------------------------- */

Test(audit, decisions_and_changes_are_recorded_and_read)
{
    char *token = issuer_token(&issuer, "alice", 60, NULL);
    cr_assert(gateway_start(&g, GATEWAY("durability: none"), upstream_port(upstream)));
    cr_expect_eq(get("/public/x?secret=query", NULL, NULL), 200);
    cr_expect_eq(get("/mine/x", token, NULL), 200);
    cr_expect_eq(get("/mine/y", NULL, NULL), 401);
    cr_expect_eq(get("/mine/y", "nonsense", NULL), 401);
    cr_expect_eq(get("/nowhere", token, NULL), 404);
    cr_expect_eq(admin("DELETE /cache"), 200);
    char *page = gateway_admin(&g, "/audit?limit=50&order=asc");
    cr_expect_not_null(strstr(page, "\"decision\":\"allow\",\"reason\":\"allowed\",\"status\":200"), "%s", page);
    cr_expect_not_null(strstr(page, "\"subject\":\"alice\""));
    cr_expect_not_null(strstr(page, "\"reason\":\"missing_token\",\"status\":401"));
    cr_expect_not_null(strstr(page, "\"reason\":\"no_route\",\"status\":404"));
    cr_expect_not_null(strstr(page, "\"action\":\"cache.flush\""));
    cr_expect_not_null(strstr(page, "\"complete\":true"));
    cr_expect_null(strstr(page, "secret=query"));
    cr_expect_null(strstr(page, token));
    cr_expect_null(strstr(page, "nonsense"));
    free(page);
    page = gateway_admin(&g, "/audit?subject=alice&decision=allow");
    cr_expect_not_null(strstr(page, "\"path\":\"/mine/x\""), "%s", page);
    cr_expect_null(strstr(page, "/public/x"));
    free(page);
    page = gateway_admin(&g, "/audit/export?format=csv&decision=deny");
    cr_expect_not_null(strstr(page, "text/csv"));
    cr_expect_not_null(strstr(page, "\"missing_token\""), "%s", page);
    free(page);
    cr_expect_eq(admin("GET /audit?subjekt=x"), 400);
    cr_expect_eq(admin("GET /audit?limit=1001"), 400);
    cr_expect_eq(admin("GET /audit?cursor=AAAAAAAAAAAAAAAAAAAAAAAA"), 400);
    cr_expect_gt(gateway_metric(&g, "subzero_audit_records_total{kind=\"decision\"}"), 4);
    stop_gateway(&g);
    expect_verified();
    free(token);
}

Test(audit, off_is_said)
{
    cr_assert(gateway_start(&g,
                            "listen:\n  - {address: \"127.0.0.1:{port}\"}\nadmin: {address: \"127.0.0.1:{admin}\"}\n"
                            "upstreams:\n  up: {urls: [\"http://127.0.0.1:9\"]}\n"
                            "routes:\n  - {id: open, match: {path: \"/*\"}, public: true, upstream: up}\n",
                            0));
    cr_expect(gateway_logged(&g, "the audit journal is off"));
    char *health = gateway_admin(&g, "/health");
    cr_expect_not_null(strstr(health, "\"audit\":{\"status\":\"off\"}"));
    free(health);
    cr_expect_eq(admin("GET /audit"), 404);
    stop_gateway(&g);
}

/* A reload opens the directory anew; a journal that was moved away is not written any more. */
Test(audit, sighup_reopens)
{
    char moved[320];
    cr_assert(gateway_start(&g, GATEWAY("durability: none"), upstream_port(upstream)));
    cr_expect_eq(get("/public/before", NULL, NULL), 200);
    snprintf(moved, sizeof(moved), "%s.moved", journal());
    poll(NULL, 0, 100);
    cr_assert_eq(rename(journal(), moved), 0);
    cr_expect(gateway_reload(&g));
    poll(NULL, 0, 300);
    cr_expect_eq(get("/public/after", NULL, NULL), 200);
    stop_gateway(&g);
    struct sz_buf all = everything();
    cr_expect_not_null(strstr(all.p, "/public/after"));
    cr_expect_null(strstr(all.p, "/public/before"));
    sz_buf_fini(&all);
    expect_verified();
}

/* ---- kill -9
 * --------------------------------------------------------------------------------------------------------- */

struct killer {
    pid_t pid;
    unsigned after_ms;
};
static void *kill_later(void *arg)
{
    struct killer *k = arg;
    poll(NULL, 0, (int)k->after_ms);
    kill(k->pid, SIGKILL);
    return NULL;
}

#define KILLED "required: true, durability: always, rotate: {size: 64KiB}, retain: {files: 1000}"

/* SUBZERO_AUDIT_KILLS: how often; every record that was acknowledged is there afterwards, and the chain holds. */
Test(audit, killed_at_any_time)
{
    const char *knob = getenv("SUBZERO_AUDIT_KILLS");
    unsigned kills = knob != NULL ? (unsigned)strtoul(knob, NULL, 10) : 12, asked = 0;
    struct sz_buf acknowledged = {0};
    srand((unsigned)getpid());
    for (unsigned i = 0; i < kills; i++) {
        pthread_t thread;
        cr_assert(i > 0 ? gateway_again(&g) : gateway_start(&g, GATEWAY(KILLED), upstream_port(upstream)));
        struct killer k = {g.proc.pid, 20 + (unsigned)rand() % 300};
        cr_assert_eq(pthread_create(&thread, NULL, kill_later, &k), 0);
        for (;;) {
            char target[64];
            snprintf(target, sizeof(target), "/public/k-%u-", ++asked);
            int status = get(target, NULL, NULL);
            if (status != 200)
                break;
            sz_buf_printf(&acknowledged, "%s\n", target);
        }
        pthread_join(thread, NULL);
        waitpid(g.proc.pid, NULL, 0);
        g.proc.pid = 0;
    }
    cr_assert(gateway_again(&g));
    stop_gateway(&g);
    expect_verified();
    struct sz_buf all = everything();
    struct sz_slice rest = sz_buf_slice(&acknowledged), target;
    size_t n = 0;
    while (acknowledged.n > 0 && sz_split(&rest, '\n', &target)) {
        if (target.n == 0)
            continue;
        cr_expect_not_null(memmem(all.p, all.n, target.p, target.n), "%.*s was acknowledged and is not there",
                           SZ_FMT(target));
        n++;
    }
    cr_expect_gt(n, kills / 2);
    sz_buf_fini(&all);
    sz_buf_fini(&acknowledged);
}

/* ---- a disk that is full, read-only, and well again -----------------------------------------------------------------
 */

static bool eventually(int status, const char *target)
{
    for (int i = 0; i < 100; i++) {
        if (get(target, NULL, NULL) == status)
            return true;
        poll(NULL, 0, 50);
    }
    return false;
}

Test(audit, a_disk_that_is_full_and_read_only)
{
    char fill[340];
    mkdir(journal(), 0700);
    if (geteuid() != 0 || mount("tmpfs", journal(), "tmpfs", MS_NOSUID, "size=1m,mode=0700") != 0)
        cr_skip_test("no tmpfs can be mounted here");
    cr_assert(
        gateway_start(&g, GATEWAY("required: true, durability: always, free_space: 64KiB"), upstream_port(upstream)));
    cr_expect_eq(get("/public/well", NULL, NULL), 200);
    snprintf(fill, sizeof(fill), "head -c 2M /dev/zero > %s/fill 2>/dev/null", journal());
    cr_expect_neq(system(fill), 0);
    cr_expect(eventually(503, "/public/full"), "allowed on a full disk");
    for (int i = 0; i < 50; i++)
        cr_expect_eq(get("/public/full", NULL, NULL), 503);
    char *health = gateway_admin(&g, "/health");
    cr_expect_not_null(strstr(health, "\"audit\":{\"status\":\"failing\""), "%s", health);
    free(health);
    snprintf(fill, sizeof(fill), "%s/fill", journal());
    unlink(fill);
    cr_expect(eventually(200, "/public/freed"), "it did not recover");
    stop_gateway(&g);
    /* Not while a file is open for writing: the kernel would not do it. */
    cr_assert_eq(mount(NULL, journal(), NULL, MS_REMOUNT | MS_RDONLY, "size=1m"), 0);
    cr_assert(
        gateway_start(&g, GATEWAY("required: true, durability: always, free_space: 64KiB"), upstream_port(upstream)));
    cr_expect(eventually(503, "/public/readonly"), "allowed on a read-only disk");
    cr_assert_eq(mount(NULL, journal(), NULL, MS_REMOUNT, "size=1m"), 0);
    cr_expect(eventually(200, "/public/again"), "it did not recover");
    stop_gateway(&g);
    expect_verified();
    struct sz_buf all = everything();
    cr_expect_not_null(strstr(all.p, "/public/again"));
    cr_expect_not_null(strstr(all.p, "\"kind\":\"gap\""));
    sz_buf_fini(&all);
    umount(journal());
}

/* ---- readers that do not read
 * ---------------------------------------------------------------------------------------- */

/* Clients that ask for an export and take nothing hold up neither requests, rotation nor retention. */
Test(audit, a_reader_that_does_not_read)
{
    struct http1 idle[4];
    cr_assert(gateway_start(&g, GATEWAY("durability: none, rotate: {size: 64KiB}, retain: {files: 3}"),
                            upstream_port(upstream)));
    struct http1 c;
    struct http1_response r = {0};
    cr_assert(http1_open(&c, g.port));
    for (int i = 0; i < 3000; i++) {
        if (i == 1000) {
            for (size_t k = 0; k < SZ_COUNT(idle); k++) {
                cr_assert(http1_open(&idle[k], g.admin));
                cr_assert(http1_printf(&idle[k], "GET /audit/export?order=asc HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            }
        }
        cr_assert(http1_printf(&c, "GET /public/n%d HTTP/1.1\r\nHost: a\r\n\r\n", i));
        cr_assert_eq(http1_read(&c, "GET", SZ_SEC(10), &r), 0);
        cr_assert_eq(r.status, 200);
    }
    poll(NULL, 0, 1300); /* the gauges are set once a second */
    cr_expect_leq(gateway_metric(&g, "subzero_audit_segments{stream=\"audit\"}"), 3);
    for (size_t k = 0; k < SZ_COUNT(idle); k++) {
        struct http1_response whole = {0};
        cr_expect_eq(http1_read(&idle[k], "GET", SZ_SEC(20), &whole), 0, "the export was not finished");
        cr_expect_eq(whole.status, 200);
        http1_response_fini(&whole);
        http1_close(&idle[k]);
    }
    http1_response_fini(&r);
    http1_close(&c);
    stop_gateway(&g);
    expect_verified();
}

/* ---- a write that is asked for again ---- */

static atomic_int created, stood, others;
static void *revoke_again(void *arg)
{
    static const char body[] = "{\"kind\":\"jti\",\"value\":\"sixty-four\"}";
    struct http1 c;
    struct http1_response r = {0};
    (void)arg;
    cr_assert(http1_open(&c, g.admin));
    for (int i = 0; i < 4; i++) {
        cr_assert(http1_printf(&c,
                               "POST /revocations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               "Idempotency-Key: one\r\nContent-Length: %zu\r\n\r\n%s",
                               sizeof(body) - 1, body));
        cr_assert_eq(http1_read(&c, "POST", SZ_SEC(10), &r), 0);
        atomic_fetch_add(r.status == 201 ? &created : r.status == 200 ? &stood : &others, 1);
    }
    http1_response_fini(&r);
    http1_close(&c);
    return NULL;
}

static int count(const struct sz_buf *all, const char *text)
{
    int n = 0;
    for (const char *p = all->p; (p = strstr(p, text)) != NULL; p++)
        n++;
    return n;
}

Test(audit, the_same_write_64_times_is_one_effect_and_64_records)
{
    pthread_t threads[16];
    cr_assert(gateway_start(&g, GATEWAY("durability: none"), upstream_port(upstream)));
    for (size_t i = 0; i < SZ_COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, revoke_again, NULL), 0);
    for (size_t i = 0; i < SZ_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(created, 1, "%d", created);
    cr_expect_eq(stood, 63, "%d", stood);
    cr_expect_eq(others, 0, "%d", others);
    stop_gateway(&g);
    struct sz_buf all = everything();
    cr_expect_eq(count(&all, "\"path\":\"/revocations\""), 64);
    cr_expect_eq(count(&all, "\"effect\":\"created\""), 1);
    cr_expect_eq(count(&all, "\"effect\":\"unchanged\""), 63);
    sz_buf_fini(&all);
}

/* ---- the commands
 * ------------------------------------------------------------------------------------------------------ */

Test(audit, commands_without_a_gateway)
{
    struct proc p;
    cr_assert(gateway_start(&g, GATEWAY("durability: none"), upstream_port(upstream)));
    for (int i = 0; i < 5; i++)
        cr_expect_eq(get("/public/x", NULL, NULL), 200);
    stop_gateway(&g);
    const char *verify[] = {SZ_BINARY, "audit", "verify", journal(), NULL};
    cr_expect_eq(proc_run(&p, "verify", 20, verify), 0);
    const char *stats[] = {SZ_BINARY, "audit", "stats", journal(), NULL};
    cr_expect_eq(proc_run(&p, "stats", 20, stats), 0);
    size_t n;
    char *out = file_read(p.log, &n);
    cr_expect_not_null(strstr(out, "\"allowed\":5"), "%s", out);
    free(out);
    const char *tail[] = {SZ_BINARY, "audit", "tail", "-n", "2", journal(), NULL};
    cr_expect_eq(proc_run(&p, "tail", 20, tail), 0);
    out = file_read(p.log, &n);
    cr_expect_not_null(strstr(out, "\"kind\":\"checkpoint\""), "%s", out);
    free(out);
    const char *wrong[] = {SZ_BINARY, "audit", "query", "--since", "yesterday", journal(), NULL};
    cr_expect_eq(proc_run(&p, "wrong", 20, wrong), 2);
    const char *missing[] = {SZ_BINARY, "audit", "stats", "/nowhere/at/all", NULL};
    cr_expect_eq(proc_run(&p, "missing", 20, missing), 3);
    /* One digit changed. */
    char command[800];
    snprintf(command, sizeof(command), "sed -i 's/\"status\":200/\"status\":201/' %s/audit-*.jsonl", journal());
    cr_assert_eq(system(command), 0);
    cr_expect_eq(proc_run(&p, "verify2", 20, verify), 1);
    const char *export[] = {SZ_BINARY, "audit", "export", journal(), NULL};
    cr_expect_eq(proc_run(&p, "export", 20, export), 1);
}

Test(audit, sent_to_a_collector_at_least_once)
{
    struct proc p;
    char url[64], cursor[320];
    cr_assert(gateway_start(&g, GATEWAY("durability: none"), upstream_port(upstream)));
    for (int i = 0; i < 20; i++)
        cr_expect_eq(get("/public/x", NULL, NULL), 200);
    stop_gateway(&g);
    struct upstream *collector = upstream_start(NULL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/ingest", upstream_port(collector));
    snprintf(cursor, sizeof(cursor), "%s/cursor", scratch_path());
    const char *send[] = {SZ_BINARY, "audit", "send", "--to", url, "--cursor", cursor, journal(), NULL};
    cr_expect_eq(proc_run(&p, "send", 30, send), 0);
    cr_expect_eq(proc_run(&p, "again", 30, send), 0);
    cr_expect_eq(upstream_count(collector), 1, "sent again, or not at all");
    upstream_stop(&collector);
    unlink(cursor);
    cr_expect_eq(proc_run(&p, "nobody", 90, send), 3);
    cr_expect_neq(access(cursor, F_OK), 0, "the cursor was saved without an answer");
}
