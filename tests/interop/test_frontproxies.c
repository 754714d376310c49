/*
 * Real front proxies, configured by the files of deploy/examples, that ask a decide listener about every request: what
 * they let through, what they refuse and with which status, what a client can bring along, and that what arrives
 * upstream is what was judged.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "interop/front.h"
#include "subzero/crypto.h"

TestSuite(frontproxies, .fini = scratch_remove, .timeout = 240);

/* Lines of an echoed head that begin with this name; the value of the last is copied. */
static unsigned arrived(const char *echoed, const char *name, char *value, size_t size)
{
    unsigned count = 0;
    size_t n = strlen(name);

    value[0] = '\0';
    for (const char *line = echoed; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncasecmp(line, name, n) == 0 && line[n] == ':') {
            const char *v = line + n + 1;
            v += strspn(v, " ");
            snprintf(value, size, "%.*s", (int)strcspn(v, "\r\n"), v);
            count++;
        }
    }
    return count;
}

static void expect_status(struct front *f, int status, const char *what, char *answer)
{
    cr_expect_eq(raw_status(answer), status, "%s: %d where %d is right:\n%s", what, raw_status(answer), status, answer);
    free(answer);
    (void)f;
}

/* What a client may try: the names of ours, their aliases, and how every dialect describes a request. */
#define FORGED                                                                                                    \
    "X-Subzero-Subject: root\r\nX_Subzero_Subject: root\r\nx-subzero-subject: root\r\nX-Subzero-Tenant: root\r\n" \
    "X-Subzero-Scopes: root\r\n"
#define OTHERS                                                                                                      \
    "X-Original-URI: /public/x\r\nX-Original-URL: /public/x\r\nX-Original-Method: GET\r\nX-Original-Host: root\r\n" \
    "X-Forwarded-Uri: /public/x\r\nX-Forwarded-Method: GET\r\nX-Rewrite-URL: /public/x\r\nX-HTTP-Method-Override: " \
    "GET\r\n"

static void check_decisions(struct front *f)
{
    char *alice = front_token(f, "alice", "read:documents"), *carol = front_token(f, "carol", "write:documents");
    unsigned before = atomic_load(&f->upstream.requests);

    expect_status(f, 401, "no token", front_ask(f, "GET /documents/1 HTTP/1.1\r\n"));
    expect_status(f, 401, "a broken token",
                  front_ask(f, "GET /documents/1 HTTP/1.1\r\nAuthorization: Bearer x%s\r\n", alice));
    expect_status(f, 403, "no scope", front_ask(f, "GET /documents/1 HTTP/1.1\r\nAuthorization: Bearer %s\r\n", carol));
    expect_status(f, 405, "no such method",
                  front_ask(f, "DELETE /documents/1 HTTP/1.1\r\nAuthorization: Bearer %s\r\n", alice));
    expect_status(f, 400, "two readings", front_ask(f, "GET /public/..%%2fdocuments/1 HTTP/1.1\r\n"));
    expect_status(f, 401, "other dialects' headers", front_ask(f, "GET /documents/1 HTTP/1.1\r\n" OTHERS));
    expect_status(f, 405, "other dialects' methods",
                  front_ask(f, "DELETE /documents/1 HTTP/1.1\r\nAuthorization: Bearer %s\r\n" OTHERS, alice));
    cr_expect_eq(atomic_load(&f->upstream.requests), before, "a refused request went upstream");

    expect_status(f, 200, "a public route", front_ask(f, "GET /public/hello HTTP/1.1\r\n"));
    expect_status(f, 200, "alice", front_ask(f, "GET /documents/1 HTTP/1.1\r\nAuthorization: Bearer %s\r\n", alice));
    cr_expect_eq(atomic_load(&f->upstream.requests), before + 2, "an allowed request did not go upstream");
    free(alice);
    free(carol);
}

static void check_challenge(struct front *f)
{
    char value[256];
    char *answer = front_ask(f, "GET /documents/1 HTTP/1.1\r\n");

    cr_expect(raw_header(answer, "www-authenticate", value, sizeof(value)) && strncmp(value, "Bearer ", 7) == 0,
              "a 401 without a challenge:\n%s", answer);
    free(answer);
}

static void check_identity(struct front *f)
{
    char value[512];
    char *alice = front_token(f, "alice", "read:documents");
    char *guarded = front_ask(f, "GET /documents/1 HTTP/1.1\r\nAuthorization: Bearer %s\r\n" FORGED OTHERS, alice);
    char *open = front_ask(f, "GET /public/hello HTTP/1.1\r\n" FORGED OTHERS);

    cr_expect_eq(raw_status(guarded), 200);
    cr_expect_eq(arrived(raw_body(guarded), "x-subzero-subject", value, sizeof(value)), 1, "%s", guarded);
    cr_expect_str_eq(value, "alice");
    arrived(raw_body(guarded), "x-subzero-scopes", value, sizeof(value));
    cr_expect_str_eq(value, "read:documents");
    cr_expect_null(strstr(raw_body(guarded), ": root"), "something forged arrived:\n%s", guarded);
    cr_expect_eq(raw_status(open), 200);
    arrived(raw_body(open), "x-subzero-subject", value, sizeof(value));
    cr_expect_str_eq(value, "", "somebody arrived who never proved it:\n%s", open);
    cr_expect_null(strstr(raw_body(open), ": root"), "something forged arrived:\n%s", open);
    const char *const second_opinions[] = {"x-original-uri", "x-original-url", "x-original-method", "x-rewrite-url",
                                           "x-http-method-override"};
    for (size_t i = 0; i < SZ_COUNT(second_opinions); i++)
        cr_expect_eq(arrived(raw_body(open), second_opinions[i], value, sizeof(value)), 0, "%s arrived",
                     second_opinions[i]);
    free(guarded);
    free(open);
    free(alice);
}

/* Two credentials: whoever of front and gateway sees that first, it is no way in. */
static void check_two_credentials(struct front *f)
{
    char *alice = front_token(f, "alice", "read:documents");
    unsigned before = atomic_load(&f->upstream.requests);
    char *answer =
        front_ask(f, "GET /documents/1 HTTP/1.1\r\nAuthorization: Bearer x\r\nAuthorization: Bearer %s\r\n", alice);

    cr_expect(raw_status(answer) >= 400 && raw_status(answer) < 500, "two credentials: %d", raw_status(answer));
    cr_expect_eq(atomic_load(&f->upstream.requests), before);
    free(answer);
    free(alice);
}

/* Nobody there to ask: an error, never a yes. */
static void check_gateway_gone(struct front *f)
{
    unsigned before = atomic_load(&f->upstream.requests);

    cr_expect(gateway_stop(&f->gateway));
    char *answer = front_ask(f, "GET /public/hello HTTP/1.1\r\n");
    cr_expect_geq(raw_status(answer), 500, "%d without a gateway", raw_status(answer));
    cr_expect_eq(atomic_load(&f->upstream.requests), before);
    free(answer);
}

static void check(const char *dialect)
{
    struct front f;

    front_start(&f, dialect);
    check_decisions(&f);
    check_challenge(&f);
    check_identity(&f);
    check_two_credentials(&f);
    check_gateway_gone(&f);
    front_stop(&f);
}

Test(frontproxies, nginx)
{
    check("nginx");
}

Test(frontproxies, haproxy)
{
    check("haproxy");
}

Test(frontproxies, caddy)
{
    check("caddy");
}

/* ---- what arrives is what was judged -------------------------------------------------------------------- */

/* The judged path of each request by its id, from the gateway's access log. */
static json_t *judged_paths(const char *log)
{
    json_t *paths = json_object();
    char *text = file_read(log, NULL), *rest = text;

    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        json_t *record = json_loads(line, 0, NULL);
        json_t *id = json_object_get(record, "request_id"), *path = json_object_get(record, "path");
        if (id != NULL && path != NULL)
            json_object_set(paths, json_string_value(id), path);
        json_decref(record);
    }
    free(text);
    return paths;
}

/* Sends one vector's target as it is; adds request id and arrived target to `seen` when it went upstream. */
static void send_target(struct front *f, json_t *vector, json_t *seen)
{
    const char *b64 = json_string_value(json_object_get(vector, "target_b64"));
    char target[16384], id[128];
    size_t n = 0;
    struct sz_buf request = {0};

    cr_assert(strlen(b64) < sizeof(target));
    cr_assert_eq(sz_b64_decode(sz_cstr(b64), target, &n), 0);
    sz_buf_printf(&request, "GET ");
    sz_buf_add(&request, target, n);
    sz_buf_printf(&request, " HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n");
    char *answer = raw_exchange(f->port, sz_buf_slice(&request), NULL);
    const char *echoed = raw_body(answer);
    if (raw_status(answer) == 200 && strncmp(echoed, "GET ", 4) == 0) {
        cr_expect_eq(arrived(echoed, "x-request-id", id, sizeof(id)), 1, "no request id arrived:\n%s", echoed);
        json_object_set_new(seen, id, json_stringn(echoed + 4, strcspn(echoed + 4, " ?\r\n")));
    }
    sz_buf_fini(&request);
    free(answer);
}

/* Equal but for the case of hex digits after '%'. */
static bool same_path(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        if (*a != *b)
            return false;
        if (*a == '%' && a[1] != '\0' && a[2] != '\0' && b[1] != '\0' && b[2] != '\0') {
            if (strncasecmp(a + 1, b + 1, 2) != 0)
                return false;
            a += 2;
            b += 2;
        }
    }
    return *a == *b;
}

static void compare(json_t *seen, json_t *judged, unsigned *arrivals)
{
    const char *id;
    json_t *target;

    json_object_foreach(seen, id, target)
    {
        const char *got = json_string_value(target), *wanted = json_string_value(json_object_get(judged, id));
        cr_assert_not_null(wanted, "request %s (%s) arrived but was not judged", id, got);
        cr_expect(same_path(got, wanted), "judged %s, arrived %s", wanted, got);
        cr_expect(strcmp(wanted, "/admin") != 0 && strncmp(wanted, "/admin/", 7) != 0, "%s without a token", wanted);
        (*arrivals)++;
    }
}

static void check_paths(const char *dialect)
{
    struct front f;
    char file[512], line[65536];
    const char *folder = getenv("SUBZERO_CONFORMANCE");
    unsigned sent = 0, arrivals = 0;
    json_t *seen = json_object();

    snprintf(file, sizeof(file), "%s/vectors/path.jsonl",
             folder != NULL ? folder : SZ_SOURCE_DIR "/../shared/conformance");
    FILE *vectors = fopen(file, "r");
    if (vectors == NULL)
        cr_skip_test("no path vectors at %s", file);
    front_start(&f, dialect);
    while (fgets(line, sizeof(line), vectors) != NULL) {
        json_t *vector = json_loads(line, 0, NULL);
        cr_assert_not_null(vector);
        send_target(&f, vector, seen);
        json_decref(vector);
        sent++;
    }
    fclose(vectors);
    front_stop(&f); /* the log is whole once the gateway has ended */
    json_t *judged = judged_paths(f.gateway.proc.log);
    compare(seen, judged, &arrivals);
    fprintf(stderr, "%s: %u targets sent, %u arrived\n", dialect, sent, arrivals);
    cr_expect_gt(arrivals, 0, "nothing arrived at all");
    json_decref(seen);
    json_decref(judged);
}

Test(frontproxies, nginx_paths)
{
    check_paths("nginx");
}

Test(frontproxies, haproxy_paths)
{
    check_paths("haproxy");
}

Test(frontproxies, caddy_paths)
{
    check_paths("caddy");
}
