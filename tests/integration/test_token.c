/* Minting, inspecting and making keys, as a shell sees them: exit codes, streams, what a terminal is shown. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/process.h"

TestSuite(token, .fini = scratch_remove);

/* Runs the binary with up to nine arguments; its output (both streams) is malloc'ed. */
static int run(char **out, const char *const *arguments)
{
    static unsigned runs;
    const char *argv[12] = {SZ_BINARY};
    char name[32];
    struct proc p;
    size_t n;
    for (size_t i = 0; arguments[i] != NULL; i++)
        argv[i + 1] = arguments[i];
    snprintf(name, sizeof(name), "token-%u", runs++);
    int status = proc_run(&p, name, 20, argv);
    *out = file_read(p.log, &n);
    cr_assert_null(strstr(*out, "Sanitizer"), "%s", *out);
    return status;
}

#define RUN(out, ...) run(out, (const char *const[]){__VA_ARGS__, NULL})

/* Runs it, asserts success and writes the output into a file of the scratch folder; returns the path. */
static const char *keep(const char *name, const char *const *arguments)
{
    char *out;
    cr_assert_eq(run(&out, arguments), 0, "%s", out);
    const char *path = scratch_write(name, sz_cstr(out));
    free(out);
    return path;
}

#define KEEP(name, ...) keep(name, (const char *const[]){__VA_ARGS__, NULL})

Test(token, usage_is_exit_code_two)
{
    static const char *const wrong[][5] = {
        {"token"},
        {"token", "steal"},
        {"token", "mint"},
        {"token", "mint", "--key", "k"},
        {"token", "mint", "--demo", "--key", "k"},
        {"token", "mint", "--demo", "--ttl", "5"},
        {"token", "mint", "--demo", "--alg", "none"},
        {"token", "mint", "--demo", "--claim", "x"},
        {"token", "inspect", "a", "b"},
        {"key"},
        {"key", "old"},
        {"key", "new", "--jwk", "none"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *arguments[6] = {wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3], wrong[i][4], NULL};
        char *out;
        cr_expect_eq(run(&out, arguments), 2, "%zu: %s", i, out);
        free(out);
    }
}

Test(token, mint_prints_the_token_alone_and_inspect_says_not_verified)
{
    char *token, *out;
    const char *key = KEEP("key.jwk", "key", "new", "--jwk", "EdDSA");
    cr_assert_eq(RUN(&token, "token", "mint", "--key", key, "--iss", "https://me/", "--sub", "alice"), 0);
    char *end = strchr(token, '\n');
    cr_assert(end != NULL && end[1] == '\0', "one line");
    *end = '\0';
    cr_expect_eq(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."), strlen(token));
    cr_expect_eq(RUN(&out, "token", "inspect", token), 0);
    cr_expect_not_null(strstr(out, "NOT VERIFIED"));
    cr_expect_not_null(strstr(out, "\"sub\": \"alice\""));
    cr_expect_not_null(strstr(out, "\"typ\": \"at+jwt\""));
    free(out);
    free(token);
    cr_expect_eq(RUN(&out, "token", "inspect", "no.jwt.here"), 1);
    free(out);
}

Test(token, inspect_with_a_configuration_judges_as_the_gateway_would)
{
    char *out, *jwk;
    size_t n;
    jwk = file_read(KEEP("key.jwk", "key", "new", "--jwk", "ES256"), &n);
    scratch_printf("jwks.json", "{\"keys\":[%s]}", jwk); /* its private member is not looked at */
    free(jwk);
    const char *config = scratch_printf(
        "gateway.yaml",
        "listen: [{address: 127.0.0.1:8080}]\n"
        "issuers: {me: {issuer: \"https://me/\", audiences: [api], algorithms: [ES256], jwks_file: \"%s/jwks.json\"}}\n"
        "upstreams: {up: {urls: [\"http://127.0.0.1:9000\"]}}\n"
        "routes: [{id: all, match: {path: /*}, auth: {issuers: [me], scopes: [read]}, upstream: up}]\n",
        scratch_path());
    char key[512], token[4096];
    snprintf(key, sizeof(key), "%s/key.jwk", scratch_path());
    static const struct {
        const char *audience, *ttl;
        int status;
        const char *says;
    } rows[] = {
        {"api", "1h", 0, "VERIFIED: issuer 'me'"},
        {"other", "1h", 1, "REFUSED: wrong_audience"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert_eq(RUN(&out, "token", "mint", "--key", key, "--iss", "https://me/", "--aud", rows[i].audience,
                         "--ttl", rows[i].ttl),
                     0);
        snprintf(token, sizeof(token), "%.*s", (int)strcspn(out, "\n"), out);
        free(out);
        cr_expect_eq(RUN(&out, "token", "inspect", "-c", config, token), rows[i].status);
        cr_expect_not_null(strstr(out, rows[i].says), "%s", out);
        cr_expect_null(strstr(out, "NOT VERIFIED"));
        free(out);
    }
    cr_expect_eq(RUN(&out, "token", "inspect", "-c", "/no/such/file", token), 1);
    free(out);
}

Test(token, without_a_demo_the_way_to_one_is_named)
{
    char *out;
    setenv("XDG_RUNTIME_DIR", scratch_path(), 1);
    cr_expect_eq(RUN(&out, "token", "mint", "--demo", "--sub", "alice"), 1);
    cr_expect_not_null(strstr(out, "subzero serve --demo"), "%s", out);
    free(out);
}

Test(token, a_new_secret_is_thirty_two_bytes_of_base64)
{
    char *first, *second;
    cr_expect_eq(RUN(&first, "key", "new"), 0);
    cr_expect_eq(RUN(&second, "key", "new"), 0);
    cr_expect_eq(strlen(first), 45);
    cr_expect_neq(strcmp(first, second), 0);
    free(first);
    free(second);
}
