/* The commands around a configuration, as a shell sees them: exit codes, streams, places of mistakes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/process.h"

static const char *const good = "listen: [{address: 127.0.0.1:8080}]\n"
                                "upstreams: {up: {urls: [\"http://127.0.0.1:9000\"]}}\n"
                                "routes:\n"
                                "  - {id: all, match: {path: /*}, public: true, upstream: up}\n";

static const char *const bad = "listen: [{address: 127.0.0.1:8080, mod: proxy}]\n"
                               "limits: {drain: 10}\n"
                               "routes:\n"
                               "  - {id: all, match: {path: /*}}\n";

/* Runs the binary; its output is malloc'ed. */
static int run(char **out, const char *a, const char *b, const char *c, const char *d)
{
    const char *argv[] = {SZ_BINARY, a, b, c, d, NULL};
    static unsigned runs; /* a log of its own for each: logs are appended to */
    char name[32];
    struct proc p;
    size_t n;
    snprintf(name, sizeof(name), "subzero-%u", runs++);
    int status = proc_run(&p, name, 20, argv);
    *out = file_read(p.log, &n);
    cr_assert_null(strstr(*out, "Sanitizer"), "%s", *out);
    return status;
}

Test(check, exit_codes)
{
    char *out;
    const char *file = scratch_write("good.yaml", sz_cstr(good));
    static const char *const usages[][4] = {{"check"},  {"check", "-x"},    {"check", "-c"},
                                            {"config"}, {"config", "dump"}, {"config", "other"}};
    cr_expect_eq(run(&out, "check", "-c", file, NULL), 0);
    cr_expect_not_null(strstr(out, "1 routes, 0 issuers, 1 upstreams: good"), "%s", out);
    free(out);
    cr_expect_eq(run(&out, "check", "-q", "--config", file), 0);
    cr_expect_str_eq(out, "");
    free(out);
    cr_expect_eq(run(&out, "check", "-c", "/no/such/file", NULL), 1);
    cr_expect_str_eq(out, "/no/such/file: cannot read '/no/such/file': No such file or directory\n");
    free(out);
    for (size_t i = 0; i < SZ_COUNT(usages); i++) {
        cr_expect_eq(run(&out, usages[i][0], usages[i][1], usages[i][2], usages[i][3]), 2);
        cr_expect_not_null(strstr(out, "usage: subzero"), "%s", out);
        free(out);
    }
    cr_expect_eq(run(&out, "check", "--help", NULL, NULL), 0);
    free(out);
    scratch_remove();
}

Test(check, every_mistake_with_its_place)
{
    char *out, want[1024];
    const char *file = scratch_write("bad.yaml", sz_cstr(bad));
    snprintf(want, sizeof(want),
             "%s:1:36: unknown key 'mod' in a listener; did you mean 'mode'?\n"
             "%s:2:17: 'drain': '10' has no unit; write for example 10s or 20ms\n"
             "%s:4:6: route 'all' has no 'auth'; add it, or say 'public: true'\n"
             "%s:4:6: route 'all' needs 'upstream': a listener in mode 'proxy' serves it\n",
             file, file, file, file);
    cr_expect_eq(run(&out, "check", "-c", file, NULL), 1);
    cr_expect_str_eq(out, want);
    free(out);
    scratch_remove();
}

/* Files that are there and hold nonsense: a start would refuse them, so the check does. */
Test(check, what_the_files_hold)
{
    char *out, yaml[2048];
    const char *keys = strdup(scratch_write("keys.json", SZ_S("{}")));
    const char *model = strdup(scratch_write("model.fga", SZ_S("nonsense\n")));
    const char *pem = strdup(scratch_write("cert.pem", SZ_S("no certificate\n")));
    snprintf(yaml, sizeof(yaml),
             "listen: [{address: 127.0.0.1:8080, tls: {certificate: %s, key: %s}}]\n"
             "fga: {mode: embedded, model: %s}\n"
             "issuers: {one: {issuer: 'https://one', audiences: [api], jwks_file: %s}}\n"
             "upstreams: {up: {urls: ['https://127.0.0.1:9000'], tls: {ca_file: %s}}}\n"
             "routes: [{id: all, match: {path: /*}, auth: {issuers: [one]}, upstream: up,\n"
             "          authorize: {user: 'user:{claims.sub}', relation: viewer, object: 'document:1'}}]\n",
             pem, pem, model, keys, pem);
    cr_expect_eq(run(&out, "check", "-c", scratch_write("files.yaml", sz_cstr(yaml)), NULL), 1);
    cr_expect_not_null(strstr(out, "files.yaml:1:9: listener 127.0.0.1:8080: tls: cannot use the certificate"), "%s",
                       out);
    cr_expect_not_null(strstr(out, "files.yaml:2:6: fga: "), "%s", out);
    cr_expect_not_null(strstr(out, "keys.json: issuer 'one': "), "%s", out);
    cr_expect_not_null(strstr(out, "upstream 'up': cannot load tls.ca_file"), "%s", out);
    free(out);
    free((void *)(uintptr_t)keys);
    free((void *)(uintptr_t)model);
    free((void *)(uintptr_t)pem);
    scratch_remove();
}

#define EXAMPLE(name) SZ_SOURCE_DIR "/deploy/examples/" name

Test(check, the_examples_are_good)
{
    char *out;
    cr_expect_eq(run(&out, "check", "-c", EXAMPLE("subzero.yaml"), NULL), 0, "%s", out);
    free(out);
    cr_expect_eq(run(&out, "check", "-c", EXAMPLE("documents.yaml"), NULL), 0, "%s", out);
    free(out);
    cr_expect_eq(run(&out, "fga", "test", EXAMPLE("documents.fga.yaml"), NULL), 0, "%s", out);
    free(out);
}

/* What a dump says reads back as the same: values of conditions with their types, tuples, consistency. */
Test(config, dump_keeps_what_a_check_brings)
{
    char *first, *second;
    struct sz_buf yaml = {0};
    sz_buf_printf(
        &yaml,
        "listen:\n  - {address: \"127.0.0.1:1\"}\n"
        "fga: {model: \"%s/documents.fga\"}\n"
        "issuers:\n  a: {issuer: x, audiences: [a], jwks_file: \"%s/jwks.json\"}\n"
        "upstreams:\n  up: {urls: [\"http://127.0.0.1:1\"]}\n"
        "routes:\n  - id: r\n    match: {path: /r}\n    auth: {issuers: [a]}\n    upstream: up\n"
        "    authorize:\n      user: \"user:{claims.sub}\"\n      relation: can_view\n      object: \"document:x\"\n"
        "      context: {n: 5, neg: -0.5, yes: true, text: \"5\", word: true-ish, claim: \"{claims.level}\"}\n"
        "      contextual_tuples: [{user: \"user:{claims.sub}\", relation: member, object: \"group:{claims.g[]}\"}]\n"
        "      consistency: higher_consistency\n",
        EXAMPLE(""), EXAMPLE(""));
    const char *file = scratch_write("brings.yaml", sz_buf_slice(&yaml));
    cr_assert_eq(run(&first, "config", "dump", "-c", file), 0, "%s", first);
    cr_expect(strstr(first, "\"n\": 5\n") != NULL && strstr(first, "\"neg\": -0.5\n") != NULL &&
                  strstr(first, "\"yes\": true\n") != NULL && strstr(first, "\"text\": \"5\"\n") != NULL,
              "%s", first);
    file = scratch_write("brings2.yaml", sz_cstr(first));
    cr_assert_eq(run(&second, "config", "dump", "-c", file), 0, "%s", second);
    cr_expect_str_eq(first, second);
    free(first);
    free(second);
    sz_buf_fini(&yaml);
    scratch_remove();
}

Test(config, dump_is_a_configuration)
{
    char *first, *second;
    const char *file = scratch_write("good.yaml", sz_cstr(good));
    cr_assert_eq(run(&first, "config", "dump", "-c", file), 0);
    file = scratch_write("dump.yaml", sz_cstr(first));
    cr_assert_eq(run(&second, "config", "dump", "-c", file), 0);
    cr_expect_str_eq(first, second);
    free(first);
    free(second);
    scratch_remove();
}

Test(config, schema_and_reference)
{
    char *out;
    cr_expect_eq(run(&out, "config", "schema", NULL, NULL), 0);
    cr_expect_eq(strncmp(out, "{\n  \"$schema\"", 13), 0);
    free(out);
    cr_expect_eq(run(&out, "config", "reference", NULL, NULL), 0);
    cr_expect_eq(strncmp(out, "# Configuration\n", 16), 0);
    free(out);
}
