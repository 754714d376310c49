/*
 * h2spec's 145 tests of HTTP/2, over TLS, over cleartext HTTP/2, on a listener that speaks both versions in the clear,
 * and again through a proxied route.  The mixed listener has one known exception: a connection preface that is neither
 * version is answered as broken HTTP/1, with a 400, which h2spec cannot read.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/echo.h"
#include "fake/gateway.h"

#define CASES 145

/* %s is a listener's own.  "/" is answered by the gateway itself, "/app" by the upstream. */
static const char configuration[] = "listen: [{address: \"127.0.0.1:{port}\"%s}]\n"
                                    "admin: {address: \"127.0.0.1:{admin}\"}\n"
                                    "upstreams:\n"
                                    "  app: {urls: [\"http://127.0.0.1:{upstream}\"]}\n"
                                    "routes:\n"
                                    "  - {id: app, match: {path: /app}, public: true, upstream: app}\n";

#define TLS ", tls: {certificate: \"{dir}/cert.pem\", key: \"{dir}/key.pem\"}"
#define H2C ", protocol: h2c"

static void make_certificate(void)
{
    char key[256], certificate[256];
    struct proc p;

    snprintf(key, sizeof(key), "%s/key.pem", scratch_path());
    snprintf(certificate, sizeof(certificate), "%s/cert.pem", scratch_path());
    const char *const argv[] = {"/usr/bin/openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:P-256",
                                "-nodes",
                                "-keyout",
                                key,
                                "-out",
                                certificate,
                                "-days",
                                "2",
                                "-subj",
                                "/CN=localhost",
                                "-addext",
                                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                                NULL};
    cr_assert_eq(proc_run(&p, "openssl", 20, argv), 0);
}

/* The next "<testcase ...>...</testcase>" of a JUnit report; false at the end. */
static bool next_case(const char **at, char *name, size_t size, bool *failed)
{
    const char *start = strstr(*at, "<testcase package=\""), *end = start == NULL ? NULL : strstr(start, "</testcase>");

    if (end == NULL)
        return false;
    start += strlen("<testcase package=\"");
    const char *title = strstr(start, "classname=\"") + strlen("classname=\"");
    snprintf(name, size, "%.*s: %.*s", (int)strcspn(start, "\""), start, (int)strcspn(title, "\""), title);
    const char *failure = strstr(start, "<failure"), *error = strstr(start, "<error");
    *failed = (failure != NULL && failure < end) || (error != NULL && error < end);
    *at = end;
    return true;
}

static void judge(const char *report, const char *except)
{
    unsigned total = 0, bad = 0;
    char name[256];
    bool failed;
    char *text = file_read(report, NULL);

    for (const char *at = text; next_case(&at, name, sizeof(name), &failed); total++) {
        if (failed && (except == NULL || strcmp(name, except) != 0)) {
            bad++;
            fprintf(stderr, "h2spec: %s\n", name);
        }
    }
    free(text);
    cr_expect_eq(total, CASES, "%u tests in the report", total);
    cr_assert_eq(bad, 0, "%u of %u failed", bad, total);
}

static void run(const char *listener, bool tls, const char *path, const char *except)
{
    struct gateway g;
    struct echo upstream = {0};
    struct proc p;
    char yaml[2048], port[8], report[256];
    const char *found = program_find("h2spec");

    if (found == NULL)
        cr_skip_test("no h2spec: script/peers builds it where there is Go");
    char *program = strdup(found);
    make_certificate();
    echo_start(&upstream, 0);
    snprintf(yaml, sizeof(yaml), configuration, listener);
    cr_assert(gateway_start(&g, yaml, upstream.port));
    snprintf(port, sizeof(port), "%u", (unsigned)g.port);
    snprintf(report, sizeof(report), "%s/report.xml", scratch_path());
    const char *const argv[] = {program,           "-p", port, "-P", path, "-j", report, "-o", "5",
                                tls ? "-t" : "-v", "-k", NULL};
    proc_run(&p, "h2spec", 240, argv);
    cr_expect(gateway_stop(&g));
    free(program);
    judge(report, except);
}

TestSuite(h2spec, .fini = scratch_remove, .timeout = 300);

Test(h2spec, tls)
{
    run(TLS, true, "/", NULL);
}

Test(h2spec, cleartext_http2)
{
    run(H2C, false, "/", NULL);
}

Test(h2spec, mixed_cleartext)
{
    run("", false, "/", "http2/3.5: Sends invalid connection preface");
}

Test(h2spec, proxied_over_tls)
{
    run(TLS, true, "/app", NULL);
}

Test(h2spec, proxied_over_cleartext_http2)
{
    run(H2C, false, "/app", NULL);
}
