/* serve --demo: the five answers that the README promises, with tokens from `token mint --demo`. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/client.h"
#include "fake/process.h"
#include "fake/redis.h"

static struct proc demo;
static char address[32], admin[32];
static uint16_t port;

static void setup(void)
{
    setenv("XDG_RUNTIME_DIR", scratch_path(), 1);
    port = free_port();
    uint16_t admin_port = free_port();
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    snprintf(admin, sizeof(admin), "127.0.0.1:%u", admin_port);
    const char *argv[] = {SZ_BINARY, "serve", "--demo", "--address", address, "--admin", admin, NULL};
    cr_assert(proc_start(&demo, "demo", port, argv));
}

static void teardown(void)
{
    size_t n;
    int status = proc_stop(&demo);
    char *log = file_read(demo.log, &n);
    cr_expect_eq(status, 0, "wait status %#x\n%s", (unsigned)status, log);
    cr_expect_eq(strstr(log, "ERROR: "), NULL, "%s", log);
    free(log);
    scratch_remove();
}

/* A token, alone on stdout. */
static void mint(const char *name, const char *sub, const char *scope, char *out, size_t size)
{
    const char *argv[] = {SZ_BINARY, "token", "mint", "--demo", "--sub", sub, scope != NULL ? "--scope" : NULL,
                          scope,     NULL};
    struct proc p;
    size_t n;
    cr_assert_eq(proc_run(&p, name, 10, argv), 0);
    char *text = file_read(p.log, &n);
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

static int ask(const char *path, const char *token, char *buf, size_t size)
{
    char request[8192], authorization[4096] = "";
    int fd = client_open(port);
    cr_assert_geq(fd, 0);
    if (token != NULL)
        snprintf(authorization, sizeof(authorization), "Authorization: Bearer %s\r\n", token);
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, address, authorization);
    client_send(fd, sz_cstr(request));
    int status = client_response(fd, buf, size, 5000);
    close(fd);
    return status;
}

Test(demo, five_answers, .init = setup, .fini = teardown, .timeout = 60)
{
    char buf[16384], alice[2048], bob[2048], poor[2048];
    mint("alice", "alice", "read:documents", alice, sizeof(alice));
    mint("bob", "bob", "read:documents", bob, sizeof(bob));
    mint("poor", "alice", NULL, poor, sizeof(poor));
    for (int hit = 0; hit < 3; hit++) { /* verified, then from L1 */
        cr_expect_eq(ask("/public/hello", NULL, buf, sizeof(buf)), 200, "%s", buf);
        cr_expect_eq(ask("/documents/roadmap", NULL, buf, sizeof(buf)), 401);
        cr_expect_neq(strstr(buf, "missing_token"), NULL);
        cr_expect_eq(ask("/documents/roadmap", alice, buf, sizeof(buf)), 200, "%s", buf);
        cr_expect_neq(strstr(buf, "\"x-subzero-subject\":\"alice\""), NULL, "%s", buf);
        cr_expect_eq(strstr(buf, "authorization"), NULL, "the token reached the upstream: %s", buf);
        cr_expect_eq(ask("/documents/roadmap", bob, buf, sizeof(buf)), 403);
        cr_expect_neq(strstr(buf, "not_permitted"), NULL, "%s", buf);
        cr_expect_eq(ask("/documents/roadmap", poor, buf, sizeof(buf)), 403);
        cr_expect_neq(strstr(buf, "insufficient_scope"), NULL, "%s", buf);
        cr_expect_eq(ask("/elsewhere", alice, buf, sizeof(buf)), 404);
    }
}

static struct redis_server redis;

static void setup_redis(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    redis = (struct redis_server){.password = "hunter2"};
    cr_assert(redis_start(&redis));
    char url[128];
    snprintf(url, sizeof(url), "redis://:hunter2@127.0.0.1:%u", redis.port);
    setenv("REDIS_URL", url, 1);
    setup();
}

static void teardown_redis(void)
{
    teardown();
    redis_kill(&redis);
}

/* REDIS_URL is all that it takes: the demo draws the fleet's key itself, and leaves no file behind. */
Test(demo, with_redis, .init = setup_redis, .fini = teardown_redis, .timeout = 60)
{
    bool connected = false;
    for (int i = 0; i < 100 && !connected; i++) {
        char *clients = redis_say(&redis, "CLIENT LIST");
        connected = clients != NULL && strstr(clients, "name=subzero") != NULL;
        free(clients);
        usleep(connected ? 0 : 50000);
    }
    cr_expect(connected);
    cr_assert_eq(kill(demo.pid, SIGHUP), 0);
    bool reloaded = false;
    char *log = NULL;
    for (int i = 0; i < 100 && !reloaded; i++) {
        free(log);
        log = file_read(demo.log, NULL);
        reloaded = strstr(log, "reloaded") != NULL || strstr(log, "configuration") != NULL;
        usleep(reloaded ? 0 : 50000);
    }
    cr_expect(reloaded, "%s", log);
    cr_expect_null(strstr(log, "'redis' changed"), "%s", log);
    cr_expect_null(strstr(log, "hunter2"), "%s", log);
    free(log);
}

/* A group's folder, a folder in it, a document in that one: nobody was given the document itself. */
Test(demo, access_is_inherited_through_folders_and_groups, .init = setup, .fini = teardown, .timeout = 60)
{
    char buf[16384], carol[2048], dave[2048], alice[2048];
    struct proc p;
    size_t n;
    const char *argv[] = {SZ_BINARY, "token",   "mint",           "--demo",  "--sub",
                          "dave",    "--scope", "read:documents", "--claim", "groups=[\"engineering\"]",
                          NULL};
    mint("carol", "carol", "read:documents", carol, sizeof(carol));
    mint("alice", "alice", "read:documents", alice, sizeof(alice));
    cr_assert_eq(proc_run(&p, "dave", 10, argv), 0);
    char *text = file_read(p.log, &n);
    snprintf(dave, sizeof(dave), "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
    for (int hit = 0; hit < 2; hit++) {
        cr_expect_eq(ask("/documents/api", carol, buf, sizeof(buf)), 200, "%s", buf);
        cr_expect_eq(ask("/documents/api", dave, buf, sizeof(buf)), 200, "%s", buf);
        cr_expect_eq(ask("/documents/api", alice, buf, sizeof(buf)), 403, "%s", buf);
        cr_expect_eq(ask("/documents/roadmap", dave, buf, sizeof(buf)), 403, "%s", buf);
    }
}

static uid_t owner_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    size_t n;
    char *text = file_read(path, &n), *at = strstr(text, "\nUid:");
    uid_t uid = at == NULL ? 0 : (uid_t)strtoul(at + 5, NULL, 10);
    free(text);
    return uid;
}

Test(demo, root_is_given_up_and_other_addresses_are_refused, .init = setup, .fini = teardown, .timeout = 60)
{
    /* It listens a moment before it gives root up. */
    for (int i = 0; i < 100 && geteuid() == 0 && owner_of(demo.pid) == 0; i++)
        usleep(20000);
    if (geteuid() == 0)
        cr_expect_neq(owner_of(demo.pid), 0, "the demo runs as root");
    const char *argv[] = {SZ_BINARY, "serve", "--demo", "--address", "0.0.0.0:0", NULL};
    struct proc p;
    cr_expect_neq(proc_run(&p, "wide", 10, argv), 0);
}
