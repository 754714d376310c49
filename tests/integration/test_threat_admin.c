/* /threat: blocks by hand, events of the provider, and what is left of them after kill -9. */
#include "integration/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define EVENTS_KEY "the-provider-alone-knows-this"

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "state_dir: \"{dir}/state\"\n"
                           "log: {access: off}\n"
                           "trusted_proxies: [127.0.0.1/32]\n"
                           "threat: {mode: enforce, events_key_file: \"{dir}/events.key\"}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML
                           "routes: [{id: doc, match: {path: \"/doc/*\"}, auth: {issuers: [test]}, upstream: up}]\n";

static struct gateway gateway;
static struct upstream *up;
static struct issuer issuer;
static char *alice, *bob;

static void setup(void)
{
    up = upstream_start(NULL);
    issuer_init(&issuer);
    (void)scratch_printf("events.key", "%s\n", EVENTS_KEY);
    alice = issuer_token(&issuer, "alice", 3600, NULL);
    bob = issuer_token(&issuer, "bob", 3600, NULL);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gateway);
    upstream_stop(&up);
    free(alice);
    free(bob);
    scratch_remove();
}

static void expect(const char *from, const char *token, int status, const char *reason)
{
    struct http1_response r = {0};
    char field[80];
    snprintf(field, sizeof(field), "X-Forwarded-For: %s\r\n", from);
    (void)http1_ask(gateway.port, "GET", "/doc/1", token, field, NULL, &r);
    expect_answer(&r, status, reason, from);
    http1_response_fini(&r);
}

static int admin(const char *method, const char *path, const char *key, const char *body, char id[17])
{
    struct http1_response r = {0};
    struct sz_buf request = {0};
    sz_buf_printf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", method, path);
    if (key != NULL)
        sz_buf_printf(&request, "Authorization: Bearer %s\r\n", key);
    sz_buf_printf(&request, "Content-Length: %zu\r\n\r\n%s", body != NULL ? strlen(body) : 0, body != NULL ? body : "");
    int status = http1_exchange(gateway.admin, sz_buf_slice(&request), &r);
    sz_buf_fini(&request);
    const char *at = r.body.p == NULL ? NULL : strstr(r.body.p, "\"id\":\"");
    if (id != NULL)
        snprintf(id, 17, "%.16s", at != NULL ? at + 6 : "");
    http1_response_fini(&r);
    return status;
}

static void kill_and_restart(void)
{
    cr_assert_eq(kill(gateway.proc.pid, SIGKILL), 0);
    cr_assert_eq(waitpid(gateway.proc.pid, NULL, 0), gateway.proc.pid);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
}

Test(threat_admin, a_block_by_hand_outlives_kill_9, .init = setup, .fini = teardown, .timeout = 60)
{
    char first[17], again[17], other[17];
    cr_expect_eq(admin("POST", "/threat/blocks", NULL,
                       "{\"address\":\"203.0.113.5\",\"ttl\":\"1h\",\"reason\":\"abuse\"}", first),
                 201);
    cr_expect_eq(admin("POST", "/threat/blocks", NULL, "{\"address\":\"203.0.113.5\",\"ttl\":60}", again), 200);
    cr_expect_str_eq(first, again, "the block that stands");
    cr_expect_eq(admin("POST", "/threat/blocks", NULL, "{\"subject\":\"bob\",\"ttl\":\"1d\"}", other), 201);
    kill_and_restart();
    expect("203.0.113.5", alice, 403, "threat_blocked");
    expect("203.0.113.6", bob, 403, "threat_blocked");
    expect("203.0.113.6", alice, 200, "");
    char path[64];
    snprintf(path, sizeof(path), "/threat/blocks/%s", first);
    cr_expect_eq(admin("DELETE", path, NULL, NULL, NULL), 200);
    cr_expect_eq(admin("DELETE", path, NULL, NULL, NULL), 404);
    kill_and_restart();
    expect("203.0.113.5", alice, 200, "");
    expect("203.0.113.6", bob, 403, "threat_blocked");
}

/* A journal of pseudonyms has an address nowhere in clear: not where it is from, and not in what was done to it. */
Test(threat_admin, a_journal_of_pseudonyms_names_no_blocked_address, .timeout = 60)
{
    static const char audited[] =
        "listen: [{address: \"127.0.0.1:{port}\"}]\n"
        "admin: {address: \"127.0.0.1:{admin}\"}\n"
        "log: {access: off}\n"
        "threat: {mode: enforce}\n"
        "audit: {path: \"{dir}/audit\", pseudonyms: true, pseudonym_key_file: \"{dir}/names.key\"}\n"
        "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
        "routes: [{id: doc, match: {path: \"/doc/*\"}, public: true, upstream: up}]\n";
    struct http1_response r = {0};
    (void)scratch_printf("names.key", "%s\n", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    cr_assert(gateway_start(&gateway, audited, 9));
    cr_expect_eq(admin("POST", "/threat/blocks", NULL, "{\"address\":\"203.0.113.5\",\"ttl\":60}", NULL), 201);
    cr_expect_eq(http1_exchange(gateway.admin,
                                SZ_S("GET /audit?limit=100 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                                &r),
                 200);
    cr_expect(r.body.p != NULL && strstr(r.body.p, "threat.block") != NULL && strstr(r.body.p, " of p-") != NULL, "%s",
              r.body.p);
    cr_expect(r.body.p != NULL && strstr(r.body.p, "203.0.113") == NULL, "%s", r.body.p);
    http1_response_fini(&r);
    stop_gateway(&gateway);
    scratch_remove();
}

Test(threat_admin, events_of_the_provider_raise_a_subject, .init = setup, .fini = teardown, .timeout = 60)
{
    const char event[] = "{\"type\":\"mfa_push\",\"subject\":\"alice\"}";
    cr_expect_eq(admin("POST", "/threat/events", NULL, event, NULL), 401, "no key");
    cr_expect_eq(admin("POST", "/threat/events", "something-else-altogether", event, NULL), 401, "another key");
    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(admin("POST", "/threat/events", EVENTS_KEY, event, NULL), 202);
    expect("203.0.113.5", alice, 401, "threat_challenge");
    expect("203.0.113.5", bob, 200, "");
    kill_and_restart();
    expect("203.0.113.5", alice, 401, "threat_challenge");
    expect("203.0.113.5", bob, 200, "");
    char *threat = gateway_admin(&gateway, "/threat");
    cr_expect_not_null(strstr(threat, "\"mfa_push\":0."), "%s", threat);
    free(threat);
}

Test(threat_admin, bad_calls_change_nothing, .init = setup, .fini = teardown, .timeout = 60)
{
    static const char *const bodies[] = {
        "",
        "[]",
        "{",
        "{\"address\":\"203.0.113.5\"}",
        "{\"address\":\"203.0.113.500\",\"ttl\":60}",
        "{\"address\":\"203.0.113.5\",\"subject\":\"alice\",\"ttl\":60}",
        "{\"ttl\":60}",
        "{\"address\":\"203.0.113.5\",\"ttl\":0}",
        "{\"address\":\"203.0.113.5\",\"ttl\":-5}",
        "{\"address\":\"203.0.113.5\",\"ttl\":\"10\"}",
        "{\"address\":\"203.0.113.5\",\"ttl\":\"10x\"}",
        "{\"address\":\"203.0.113.5\",\"ttl\":\"999999d\"}",
        "{\"address\":\"203.0.113.5\",\"ttl\":60,\"tll\":60}",
        "{\"address\":\"203.0.113.5\",\"ttl\":60,\"ttl\":60}",
        "{\"address\":[\"203.0.113.5\"],\"ttl\":60}",
        "{\"subject\":\"\",\"ttl\":60}",
    };
    for (size_t i = 0; i < SZ_COUNT(bodies); i++)
        cr_expect_eq(admin("POST", "/threat/blocks", NULL, bodies[i], NULL), 400, "%s", bodies[i]);
    static const char *const events[] = {
        "{\"type\":\"bad_tokens\",\"subject\":\"alice\"}",
        "{\"type\":\"mfa_push\"}",
        "{\"type\":\"mfa_push\",\"subject\":\"alice\",\"time\":\"2099-01-01T00:00:00Z\"}",
        "{\"type\":\"mfa_push\",\"subject\":\"alice\",\"time\":\"yesterday\"}",
        "{\"type\":\"mfa_push\",\"subject\":\"alice\",\"time\":12}",
    };
    for (size_t i = 0; i < SZ_COUNT(events); i++)
        cr_expect_eq(admin("POST", "/threat/events", EVENTS_KEY, events[i], NULL), 400, "%s", events[i]);
    cr_expect_eq(admin("DELETE", "/threat/blocks/", NULL, NULL, NULL), 404);
    cr_expect_eq(admin("DELETE", "/threat/blocks/zzzzzzzzzzzzzzzz", NULL, NULL, NULL), 404);
    cr_expect_eq(admin("PUT", "/threat/blocks", NULL, "{}", NULL), 405);
    expect("203.0.113.5", alice, 200, "");
}

/* fields: further lines, each with its CRLF.  The body is r's until the next call. */
static int ask(const char *method, const char *path, const char *fields, const char *body, struct http1_response *r)
{
    struct sz_buf request = {0};
    sz_buf_printf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
                  method, path, fields, strlen(body), body);
    http1_response_fini(r);
    *r = (struct http1_response){0};
    int status = http1_exchange(gateway.admin, sz_buf_slice(&request), r);
    sz_buf_fini(&request);
    return status;
}

Test(threat_admin, a_write_that_is_sent_again_gets_the_first_answer, .init = setup, .fini = teardown, .timeout = 60)
{
    static const char key[] = "Idempotency-Key: 7f0c\r\n", block[] = "{\"address\":\"203.0.113.5\",\"ttl\":60}";
    static const char event[] = "{\"type\":\"mfa_push\",\"subject\":\"alice\"}";
    struct http1_response r = {0};
    char fields[160], first[17], path[64];
    cr_expect_eq(ask("POST", "/threat/blocks", key, block, &r), 201);
    snprintf(first, sizeof(first), "%.16s", strstr(r.body.p, "\"id\":\"") + 6);
    cr_expect_eq(ask("POST", "/threat/blocks", key, block, &r), 200);
    cr_expect_not_null(strstr(r.body.p, first));
    cr_expect_eq(ask("POST", "/threat/blocks", key, "{\"address\":\"203.0.113.6\",\"ttl\":60}", &r), 422);
    snprintf(path, sizeof(path), "/threat/blocks/%s", first);
    cr_expect_eq(ask("DELETE", path, key, "", &r), 200, "a key is one for each method and path");
    cr_expect_eq(ask("DELETE", path, key, "", &r), 200, "lifted, as was said");
    cr_expect_eq(ask("DELETE", path, "", "", &r), 404);
    cr_expect_eq(ask("POST", "/threat/blocks", "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", block, &r), 400);
    expect("203.0.113.5", alice, 200, "");
    /* An event counts each time it happens, and not each time it is told. */
    snprintf(fields, sizeof(fields), "Authorization: Bearer " EVENTS_KEY "\r\n%s", key);
    for (int i = 0; i < 20; i++)
        cr_expect_eq(ask("POST", "/threat/events", fields, event, &r), 202);
    expect("203.0.113.5", alice, 200, "");
    cr_expect_eq(ask("POST", "/threat/events", key, event, &r), 401, "the key of an answer opens nothing");
    http1_response_fini(&r);
}

Test(threat_admin, blocks_are_listed_page_by_page, .init = setup, .fini = teardown, .timeout = 60)
{
    static const char *const bad[] = {"?limit=0", "?limit=1001",           "?limit=x", "?cursor=-1", "?limit=1&limit=2",
                                      "?x=1",     "?cursor=99999999999999"};
    struct http1_response r = {0};
    char body[96], path[64] = "/threat/blocks?limit=7";
    unsigned pages = 0, blocks = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(body, sizeof(body), "{\"address\":\"203.0.113.%d\",\"ttl\":60}", i);
        cr_assert_eq(ask("POST", "/threat/blocks", "", body, &r), 201);
    }
    for (const char *next = ""; next != NULL && pages < 10; pages++) {
        cr_assert_eq(ask("GET", path, "", "", &r), 200);
        for (const char *at = r.body.p; (at = strstr(at, "\"id\"")) != NULL; at++)
            blocks++;
        next = strstr(r.body.p, "\"next_cursor\":\"");
        if (next != NULL)
            snprintf(path, sizeof(path), "/threat/blocks?limit=7&cursor=%.*s", (int)strcspn(next + 15, "\""),
                     next + 15);
    }
    cr_expect_eq(pages, 3);
    cr_expect_eq(blocks, 20);
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        snprintf(path, sizeof(path), "/threat/blocks%s", bad[i]);
        cr_expect_eq(ask("GET", path, "", "", &r), 400, "%s", bad[i]);
    }
    http1_response_fini(&r);
}

Test(threat_admin, what_a_path_does_not_take_says_what_it_takes, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http1_response r = {0};
    char allow[64];
    cr_expect_eq(ask("GET", "/revocations", "", "", &r), 405);
    cr_expect(http1_field(&r, "allow", allow, sizeof(allow)) && strcmp(allow, "POST") == 0);
    cr_expect_not_null(strstr(r.body.p, "not listed"), "%s", r.body.p);
    cr_expect_eq(ask("PUT", "/threat/blocks", "", "", &r), 405);
    cr_expect(http1_field(&r, "allow", allow, sizeof(allow)) && strcmp(allow, "GET, POST") == 0);
    http1_response_fini(&r);
}

/* The disk refuses: it counts here, says that it is not safe, and is safe once the disk is well again. */
Test(threat_admin, a_block_that_the_disk_refuses_says_so, .init = setup, .fini = teardown, .timeout = 60)
{
    char path[256], blocked[300];
    snprintf(path, sizeof(path), "%s/state/threat.jsonl", scratch_path());
    snprintf(blocked, sizeof(blocked), "%s.new", path);
    cr_assert_eq(mkdir(blocked, 0700), 0, "in the way of the file that is to be written");
    cr_expect_eq(admin("POST", "/threat/blocks", NULL, "{\"address\":\"203.0.113.5\",\"ttl\":3600}", NULL), 503);
    expect("203.0.113.5", alice, 403, "threat_blocked");
    cr_assert_eq(rmdir(blocked), 0);
    for (unsigned i = 0; i < 50 && access(path, F_OK) != 0; i++)
        usleep(100000);
    kill_and_restart();
    expect("203.0.113.5", alice, 403, "threat_blocked");
}

Test(threat_admin, a_damaged_file_refuses_the_start, .init = setup, .fini = teardown, .timeout = 60)
{
    char path[256];
    cr_expect_eq(admin("POST", "/threat/blocks", NULL, "{\"address\":\"203.0.113.5\",\"ttl\":3600}", NULL), 201);
    snprintf(path, sizeof(path), "%s/state/threat.jsonl", scratch_path());
    size_t n;
    char *text = file_read(path, &n);
    text[n / 2] ^= 1;
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fwrite(text, 1, n, file) == n && fclose(file) == 0);
    cr_assert_eq(kill(gateway.proc.pid, SIGKILL), 0);
    cr_assert_eq(waitpid(gateway.proc.pid, NULL, 0), gateway.proc.pid);
    cr_expect_not(gateway_start(&gateway, yaml, upstream_port(up)));
    cr_expect(gateway_logged(&gateway, "damaged"), "it says why");
    text[n / 2] ^= 1;
    file = fopen(path, "w");
    cr_assert(file != NULL && fwrite(text, 1, n, file) == n && fclose(file) == 0);
    free(text);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
    expect("203.0.113.5", alice, 403, "threat_blocked");
}

Test(threat_admin, where_it_is_off_no_block_is_promised, .init = setup, .fini = teardown, .timeout = 60)
{
    struct sz_buf off = {0};
    const char *from = strstr(yaml, "threat:"), *to = strchr(from, '\n') + 1;
    sz_buf_printf(&off, "%.*s%s", (int)(from - yaml), yaml, to);
    stop_gateway(&gateway);
    sz_buf_add(&off, "", 1);
    cr_assert(gateway_start(&gateway, off.p, upstream_port(up)));
    sz_buf_fini(&off);
    cr_expect_eq(admin("POST", "/threat/blocks", NULL, "{\"address\":\"203.0.113.5\",\"ttl\":60}", NULL), 503);
}
