/* The admin listener: what it says, and to whom. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "fake/client.h"
#include "fake/gateway.h"
#include "fake/issuer.h"

#define COMMON                                       \
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n" \
    "workers: 1\n"                                   \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:9\"]}\n"
#define ADMIN  "admin: {address: \"127.0.0.1:{admin}\"}\n"
#define PUBLIC "routes:\n  - {id: all, match: {path: \"/*\"}, public: true, upstream: up}\n"

static struct gateway g;

static void teardown(void)
{
    cr_expect(gateway_stop(&g));
    scratch_remove();
}

static int ask(const char *line, const char *fields, char **answer)
{
    char request[1024];
    size_t n;
    snprintf(request, sizeof(request), "%s HTTP/1.1\r\n%sConnection: close\r\n\r\n", line, fields);
    char *got = raw_exchange(g.admin, sz_cstr(request), &n);
    int status = got == NULL ? 0 : raw_status(got);
    if (answer != NULL)
        *answer = got;
    else
        free(got);
    return status;
}

Test(admin, pages_answer_and_strangers_are_refused, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *line, *fields;
        int status;
    } rows[] = {
        {"GET /livez", "Host: localhost\r\n", 200},
        {"HEAD /livez", "Host: localhost\r\n", 200},
        {"GET /readyz", "Host: localhost\r\n", 200},
        {"GET /readyz?verbose", "Host: localhost\r\n", 200},
        {"GET /health", "Host: 127.0.0.1\r\n", 200},
        {"GET /metrics", "Host: [::1]\r\n", 200},
        {"GET /config", "Host: localhost\r\n", 200},
        {"GET /cache", "Host: localhost\r\n", 200},
        {"GET /breakers", "Host: localhost\r\n", 200},
        {"POST /breakers", "Host: localhost\r\n", 405},
        {"DELETE /cache", "Host: localhost\r\n", 200},
        {"DELETE /cache?layer=l1", "Host: localhost\r\n", 200},
        {"DELETE /cache?layer=l9", "Host: localhost\r\n", 400},
        {"POST /cache", "Host: localhost\r\n", 405},
        {"POST /livez", "Host: localhost\r\n", 405},
        {"GET /", "Host: localhost\r\n", 404},
        {"GET /livez/", "Host: localhost\r\n", 404},
        {"GET /.well-known/jwks.json", "Host: localhost\r\n", 404},
        {"GET /livez", "Host: evil.example\r\n", 421},
        {"GET /metrics", "Host: evil.example\r\n", 421},
        {"DELETE /cache", "Host: localhost\r\nOrigin: http://localhost:9901\r\n", 403},
        {"GET /metrics", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"GET /livez", "", 400},
        {"GET /livez", "Host: localhost\r\nHost: localhost\r\n", 400},
    };
    cr_assert(gateway_start(&g, COMMON ADMIN PUBLIC, 0));
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        cr_expect_eq(ask(rows[i].line, rows[i].fields, NULL), rows[i].status, "%s, %s", rows[i].line, rows[i].fields);
}

Test(admin, the_token_is_needed_on_loopback_too, .fini = teardown, .timeout = 60)
{
#define TOKEN "Authorization: Bearer s3cret\r\n"
    static const struct {
        const char *line, *fields;
        int status;
    } rows[] = {
        {"GET /livez", "", 200},
        {"GET /readyz", "", 200},
        {"GET /readyz?verbose", "", 401},
        {"GET /readyz?verbose", TOKEN, 200},
        {"GET /metrics", "", 401},
        {"GET /health", "", 401},
        {"GET /health", "Authorization: Bearer s3cre\r\n", 401},
        {"GET /health", TOKEN, 200},
        {"DELETE /cache", "", 401},
        {"DELETE /cache", TOKEN, 200},
        {"GET /nothing", "", 401},
    };
    scratch_write("admin.token", SZ_S("s3cret\n"));
    cr_assert(gateway_start(
        &g, COMMON "admin: {address: \"127.0.0.1:{admin}\", token_file: \"{dir}/admin.token\"}\n" PUBLIC, 0));
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        char fields[256];
        snprintf(fields, sizeof(fields), "Host: localhost\r\n%s", rows[i].fields);
        cr_expect_eq(ask(rows[i].line, fields, NULL), rows[i].status, "%s, %s", rows[i].line, rows[i].fields);
    }
    char *config;
    cr_expect_eq(ask("GET /config", "Host: localhost\r\n" TOKEN, &config), 200);
    cr_expect_eq(strstr(config, "s3cret"), NULL, "the token is in /config");
    free(config);
}

Test(admin, it_is_not_ready_without_a_usable_key, .fini = teardown, .timeout = 60)
{
    static struct issuer issuer;
    issuer_init(&issuer);
    cr_assert(gateway_start(&g,
                            COMMON ADMIN ISSUER_YAML
                            "routes:\n  - {id: all, match: {path: \"/*\"}, auth: {issuers: [test]}, upstream: up}\n",
                            0));
    cr_expect_eq(ask("GET /readyz", "Host: localhost\r\n", NULL), 200);
    const char *argv[] = {SZ_BINARY, "healthcheck", "--admin", NULL, NULL};
    char address[32];
    struct proc check;
    snprintf(address, sizeof(address), "127.0.0.1:%u", g.admin);
    argv[3] = address;
    cr_expect_eq(proc_run(&check, "healthcheck", 10, argv), 0);
    argv[3] = "127.0.0.1:9";
    cr_expect_eq(proc_run(&check, "healthcheck", 10, argv), 3);
}

Test(admin, a_reload_with_mistakes_keeps_the_old_and_says_so, .fini = teardown, .timeout = 60)
{
    char *health;
    cr_assert(gateway_start(&g, COMMON ADMIN PUBLIC, 0));
    gateway_rewrite(&g, COMMON ADMIN "routes:\n  - {id: all, match: {path: \"/*\"}, pubic: true, upstream: up}\n");
    cr_expect_not(gateway_reload(&g));
    cr_expect_eq(gateway_metric(&g, "subzero_config_last_reload_successful"), 0);
    cr_expect_eq(ask("GET /health", "Host: localhost\r\n", &health), 200);
    cr_expect_neq(strstr(health, "last_reload_failed"), NULL);
    cr_expect_neq(strstr(health, "route 'all'"), NULL, "%s", health);
    free(health);
    size_t n;
    char *answer = raw_exchange(g.port, SZ_S("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), &n);
    cr_expect_eq(raw_status(answer), 502, "the old route still stands");
    free(answer);
    gateway_rewrite(&g, COMMON ADMIN "routes:\n  - {id: one, match: {path: /one}, public: true, upstream: up}\n");
    cr_expect(gateway_reload(&g));
    cr_expect_eq(gateway_metric(&g, "subzero_config_last_reload_successful"), 1);
    answer = raw_exchange(g.port, SZ_S("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), &n);
    cr_expect_eq(raw_status(answer), 404);
    free(answer);
}

/* Whoever asks sees all of them, and none twice. */
Test(admin, health_names_a_hundred_upstreams, .fini = teardown, .timeout = 60)
{
    enum { MANY = 100 };
    char configuration[16384], *health, entry[32];
    size_t n = (size_t)snprintf(configuration, sizeof(configuration), "%s", ADMIN COMMON);
    for (int i = 1; i < MANY; i++)
        n += (size_t)snprintf(configuration + n, sizeof(configuration) - n,
                              "  up%d: {urls: [\"http://127.0.0.1:9\", \"http://127.0.0.1:10\"]}\n", i);
    snprintf(configuration + n, sizeof(configuration) - n, "%s", PUBLIC);
    cr_assert(gateway_start(&g, configuration, 0));
    cr_assert_eq(ask("GET /health", "Host: localhost\r\n", &health), 200);
    cr_expect_neq(strstr(health, "\"configured\":100,\"urls\":{\"up\":1,"), NULL, "%s", health);
    for (int i = 1; i < MANY; i++) {
        snprintf(entry, sizeof(entry), "\"up%d\":2", i);
        char *first = strstr(health, entry);
        cr_assert_neq(first, NULL, "%s is missing", entry);
        cr_expect_eq(strstr(first + 1, entry), NULL, "%s stands there twice", entry);
    }
    free(health);
}
