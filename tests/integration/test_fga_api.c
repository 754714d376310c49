/* The OpenFGA API of the real binary: who may ask, what is refused and how, and that routes ask the same store. */
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "fake/certs.h"
#include "integration/harness.h"

#define OWN "00000000000000000000000000"
#define HEAD                                      \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n" \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"   \
    "workers: 2\n"                                \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
#define PUBLIC "routes: [{id: all, match: {path: \"/*\"}, public: true, upstream: up}]\n"
#define OPEN   "fga: {listen: \"127.0.0.1:{port2}\"}\n"
#define READER "0123456789-reader"
#define WRITER "0123456789-writer"
#define KEYED                           \
    "fga:\n"                            \
    "  listen: \"127.0.0.1:{port2}\"\n" \
    "  preshared_keys_file: \"{dir}/keys\"\n"
#define MODEL                                                                                                        \
    "{\"schema_version\":\"1.1\",\"type_definitions\":[{\"type\":\"user\"},{\"type\":\"doc\",\"relations\":{"        \
    "\"viewer\":{\"this\":{}}},\"metadata\":{\"relations\":{\"viewer\":{\"directly_related_user_types\":[{\"type\":" \
    "\"user\"}]}}}}]}"

static struct gateway g;
static char store[32], model[32];

static void teardown(void)
{
    gateway_stop(&g);
    scratch_remove();
}

/* One call on a connection of its own; {s} and {m} in the target and body are the store and the model. */
static int ask_with(const char *key, const char *fields, const char *method, const char *target, const char *body,
                    struct http1_response *r)
{
    struct sz_buf full = {0}, text = {0};
    const char *parts[] = {target, body != NULL ? body : ""};
    struct sz_buf *outs[] = {&text, &full};
    for (size_t i = 0; i < 2; i++)
        for (const char *p = parts[i]; *p != '\0'; p++) {
            bool id = strncmp(p, "{s}", 3) == 0 || strncmp(p, "{m}", 3) == 0;
            if (id)
                sz_buf_printf(outs[i], "%s", p[1] == 's' ? store : model);
            else
                sz_buf_add(outs[i], p, 1);
            p += id ? 2 : 0;
        }
    struct sz_buf request = {0};
    sz_buf_printf(&request, "%s %.*s HTTP/1.1\r\nConnection: close\r\n%s", method, SZ_FMT(sz_buf_slice(&text)), fields);
    if (key != NULL)
        sz_buf_printf(&request, "Authorization: Bearer %s\r\n", key);
    sz_buf_printf(&request, "Content-Length: %zu\r\n\r\n", full.n);
    sz_buf_adds(&request, sz_buf_slice(&full));
    int status = http1_exchange(g.port2, sz_buf_slice(&request), r);
    sz_buf_fini(&request);
    sz_buf_fini(&full);
    sz_buf_fini(&text);
    return status;
}

static int ask(const char *key, const char *method, const char *target, const char *body, struct http1_response *r)
{
    return ask_with(key, "Host: localhost\r\n", method, target, body, r);
}

static void take_id(const struct http1_response *r, const char *member, char out[32])
{
    json_t *v = json_loads(r->body.p, 0, NULL);
    const char *id = json_string_value(json_object_get(v, member));
    cr_assert_not_null(id, "%s", r->body.p);
    snprintf(out, 32, "%s", id);
    json_decref(v);
}

static void make_store(const char *key)
{
    struct http1_response r = {0};
    cr_assert_eq(ask(key, "POST", "/stores", "{\"name\":\"test store\"}", &r), 201);
    take_id(&r, "id", store);
    cr_assert_eq(ask(key, "POST", "/stores/{s}/authorization-models", MODEL, &r), 201);
    take_id(&r, "authorization_model_id", model);
    http1_response_fini(&r);
}

struct row {
    const char *method, *target, *body;
    int status;
    const char *says;
};

static void expect_rows(const char *key, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct http1_response r = {0};
        int status = ask(key, rows[i].method, rows[i].target, rows[i].body, &r);
        const char *body = r.body.p != NULL ? r.body.p : "";
        cr_expect(status == rows[i].status && strstr(body, rows[i].says) != NULL, "%s %s %s: expected %d %s, got %d %s",
                  rows[i].method, rows[i].target, rows[i].body != NULL ? rows[i].body : "", rows[i].status,
                  rows[i].says, status, body);
        http1_response_fini(&r);
    }
}

#define TUPLE(user) "{\"user\":\"" user "\",\"relation\":\"viewer\",\"object\":\"doc:1\"}"
#define KEYS(...)   "{\"tuple_keys\":[" __VA_ARGS__ "]}"

static const struct row calls_about_stores[] = {
    /* what is no call */
    {"GET", "/", NULL, 404, "undefined_endpoint"},
    {"GET", "/stores/", NULL, 400, "validation_error"},
    {"PUT", "/stores/{s}", "{}", 404, "unimplemented"},
    {"PATCH", "/stores/{s}", "{}", 400, "validation_error"},
    {"PATCH", "/stores/{s}", "{\"name\":\"semi;colon\"}", 400, "validation_error"},
    {"PATCH", "/stores/" OWN, "{\"name\":\"another\"}", 400, "the gateway's own"},
    {"PATCH", "/stores/01ARZ3NDEKTSV4RRFFQ69G5FAV", "{\"name\":\"another\"}", 404, "store_id_not_found"},
    {"PATCH", "/stores/{s}", "{\"name\":\"renamed\"}", 200, "\"name\":\"renamed\""},
    {"GET", "/stores?name=renamed", NULL, 200, "\"name\":\"renamed\""},
    {"PATCH", "/stores/{s}", "{\"name\":\"test store\"}", 200, "\"name\":\"test store\""},
    {"POST", "/stores/{s}/check/x", "{}", 404, "undefined_endpoint"},
    {"GET", "/stores/{s}/check", NULL, 404, "unimplemented"},
    {"GET", "/healthz", NULL, 200, "SERVING"},
    {"POST", "/stores/{s}/check", "", 400, "tuple_key_value_not_specified"},
    {"POST", "/stores/{s}/check", "{", 400, "validation_error"},
    {"POST", "/stores/{s}/check", "[]", 400, "validation_error"},
    {"POST", "/stores/{s}/check", "{\"tuple_key\":1}", 400, "validation_error"},
    {"POST", "/stores/{s}/check", "{\"tuple_key\":{\"user\":[]}}", 400, "validation_error"},
    {"POST", "/stores/{s}/check", "{\"a\":1,\"a\":2}", 400, "validation_error"},
    {"POST", "/stores/{s}/check", "{\"tuple_key\":null}", 400, "tuple_key_value_not_specified"},
    {"POST", "/stores", "{\"name\":\"ab\"}", 400, "validation_error"},
    {"POST", "/stores", "{\"name\":\"semi;colon\"}", 400, "validation_error"},
    /* stores and models that are not there */
    {"GET", "/stores/short", NULL, 400, "validation_error"},
    {"GET", "/stores/01ARZ3NDEKTSV4RRFFQ69G5FAV", NULL, 404, "store_id_not_found"},
    {"POST", "/stores/01ARZ3NDEKTSV4RRFFQ69G5FAV/check", "{\"tuple_key\":" TUPLE("user:a") "}", 400,
     "latest_authorization_model_not_found"},
    {"GET", "/stores/{s}/authorization-models/01ARZ3NDEKTSV4RRFFQ69G5FAV", NULL, 400, "authorization_model_not_found"},
    {"POST", "/stores/{s}/check",
     "{\"authorization_model_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"tuple_key\":" TUPLE("user:a") "}", 400,
     "authorization_model_not_found"},
    {"POST", "/stores/{s}/authorization-models", "{}", 400, "type_definitions_too_few_items"},
    {"GET", "/stores/{s}/authorization-models/x", NULL, 400, "validation_error"},
    {"POST", "/stores/{s}/authorization-models",
     "{\"schema_version\":\"1.1\",\"type_definitions\":[{\"type\":\"a\"},{\"type\":\"a\"}]}", 400,
     "invalid_authorization_model"},
    {"GET", "/stores/{s}/authorization-models/{m}", NULL, 200, "\"schema_version\":\"1.1\""},
    {"GET", "/stores/{s}/authorization-models?page_size=1", NULL, 200, "\"continuation_token\":\"\""},
    {"GET", "/stores?page_size=0", NULL, 400, "page_size_invalid"},
    {"GET", "/stores?page_size=101", NULL, 400, "page_size_invalid"},
    {"GET", "/stores?continuation_token=%21", NULL, 400, "validation_error"},
    {"GET", "/stores?continuation_token=abc", NULL, 400, "invalid_continuation_token"},
    {"GET", "/stores?name=test%20store", NULL, 200, "test store"},
    {"GET", "/stores?name=other", NULL, 200, "{\"stores\":[]"},
};

static const struct row calls_about_tuples[] = {
    /* writes */
    {"POST", "/stores/{s}/write", "{}", 400, "invalid_write_input"},
    {"POST", "/stores/{s}/write", "{\"writes\":" KEYS(TUPLE("user:a")) "}", 200, "{}"},
    {"POST", "/stores/{s}/write", "{\"writes\":" KEYS(TUPLE("user:a")) "}", 400, "write_failed_due_to_invalid_input"},
    {"POST", "/stores/{s}/write", "{\"writes\":{\"on_duplicate\":\"ignore\",\"tuple_keys\":[" TUPLE("user:a") "]}}",
     200, "{}"},
    {"POST", "/stores/{s}/write", "{\"writes\":{\"on_duplicate\":\"perhaps\",\"tuple_keys\":[" TUPLE("user:a") "]}}",
     400, "on_duplicate"},
    {"POST", "/stores/{s}/write", "{\"writes\":" KEYS(TUPLE("user:b") "," TUPLE("user:b")) "}", 400,
     "cannot_allow_duplicate_tuples_in_one_request"},
    {"POST", "/stores/{s}/write", "{\"deletes\":" KEYS(TUPLE("user:b")) "}", 400, "write_failed_due_to_invalid_input"},
    {"POST", "/stores/{s}/write", "{\"writes\":" KEYS(TUPLE("group:b")) "}", 400, "Invalid tuple"},
    /* and what is there afterwards */
    {"POST", "/stores/{s}/check", "{\"tuple_key\":" TUPLE("user:a") "}", 200, "\"allowed\":true"},
    {"POST", "/stores/{s}/check", "{\"tupleKey\":" TUPLE("user:b") "}", 200, "\"allowed\":false"},
    {"POST", "/stores/{s}/check", "{\"tuple_key\":" TUPLE("robot:b") "}", 400, "validation_error"},
    {"POST", "/stores/{s}/check", "{\"tuple_key\":" TUPLE("user:b") ",\"contextual_tuples\":" KEYS(TUPLE("user:b")) "}",
     200, "\"allowed\":true"},
    {"POST", "/stores/{s}/read", "{}", 200, "\"user\":\"user:a\""},
    {"POST", "/stores/{s}/read", "{\"tuple_key\":{\"relation\":\"viewer\"}}", 400, "validation_error"},
    {"POST", "/stores/{s}/read", "{\"tuple_key\":{\"object\":\"doc:\"}}", 400, "validation_error"},
    {"POST", "/stores/{s}/read", "{\"continuation_token\":\"AAAA\"}", 400, "invalid_continuation_token"},
    {"GET", "/stores/{s}/changes", NULL, 200, "TUPLE_OPERATION_WRITE"},
    {"GET", "/stores/{s}/changes?start_time=2100-01-01T00%3A00%3A00Z", NULL, 400, "validation_error"},
    {"GET", "/stores/{s}/changes?start_time=2000-01-01T00%3A00%3A00Z", NULL, 200, "TUPLE_OPERATION_WRITE"},
    {"GET", "/stores/{s}/changes?start_time=yesterday", NULL, 400, "validation_error"},
    {"POST", "/stores/{s}/list-objects", "{\"type\":\"doc\",\"relation\":\"viewer\",\"user\":\"user:a\"}", 200,
     "{\"objects\":[\"doc:1\"]}"},
    {"POST", "/stores/{s}/streamed-list-objects", "{\"type\":\"doc\",\"relation\":\"viewer\",\"user\":\"user:a\"}", 200,
     "{\"result\":{\"object\":\"doc:1\"}}\n"},
    {"POST", "/stores/{s}/list-objects", "{\"type\":\"dog\",\"relation\":\"viewer\",\"user\":\"user:a\"}", 400,
     "type_not_found"},
    {"POST", "/stores/{s}/streamed-list-objects", "{\"type\":\"dog\",\"relation\":\"viewer\",\"user\":\"user:a\"}", 400,
     "{\"error\":{\"code\":3,"},
    {"POST", "/stores/{s}/list-users",
     "{\"object\":{\"type\":\"doc\",\"id\":\"1\"},\"relation\":\"viewer\",\"user_filters\":[{\"type\":\"user\"}]}", 200,
     "{\"users\":[{\"object\":{\"type\":\"user\",\"id\":\"a\"}}]}"},
    {"POST", "/stores/{s}/list-users",
     "{\"object\":{\"type\":\"doc\",\"id\":\"1\"},\"relation\":\"viewer\",\"user_filters\":[]}", 400,
     "validation_error"},
    {"POST", "/stores/{s}/expand", "{\"tuple_key\":{\"object\":\"doc:1\",\"relation\":\"viewer\"}}", 200,
     "\"users\":[\"user:a\"]"},
    {"POST", "/stores/{s}/expand", "{\"tuple_key\":{\"object\":\"doc:1\"}}", 400, "invalid_expand_input"},
    {"POST", "/stores/{s}/batch-check", "{\"checks\":[]}", 400, "validation_error"},
    {"POST", "/stores/{s}/batch-check", "{\"checks\":[{\"tuple_key\":" TUPLE("user:a") "}]}", 400,
     "empty correlation id"},
    {"POST", "/stores/{s}/batch-check",
     "{\"checks\":[{\"tuple_key\":" TUPLE("user:a") ",\"correlation_id\":\"x\"},{\"tuple_key\":" TUPLE(
         "robot:a") ",\"correlation_id\":\"y\"}]}",
     200, "{\"x\":{\"allowed\":true},\"y\":{\"error\":{\"input_error\":\"validation_error\""},
    {"PUT", "/stores/{s}/assertions/{m}", "{\"assertions\":[{\"tuple_key\":" TUPLE("user:a") ",\"expectation\":true}]}",
     204, ""},
    {"GET", "/stores/{s}/assertions/{m}", NULL, 200, "\"expectation\":true"},
    {"PUT", "/stores/{s}/assertions/{m}",
     "{\"assertions\":[{\"tuple_key\":" TUPLE("robot:a") ",\"expectation\":true}]}", 400, "validation_error"},
    {"DELETE", "/stores/" OWN, NULL, 400, "the gateway's own"},
    {"DELETE", "/stores/{s}", NULL, 204, ""},
    {"GET", "/stores/{s}", NULL, 404, "store_id_not_found"},
    {"DELETE", "/stores/{s}", NULL, 204, ""},
};

Test(fga_api, calls_and_their_refusals, .fini = teardown, .timeout = 120)
{
    cr_assert(gateway_start(&g, HEAD OPEN PUBLIC, 9));
    make_store(NULL);
    expect_rows(NULL, calls_about_stores, SZ_COUNT(calls_about_stores));
    expect_rows(NULL, calls_about_tuples, SZ_COUNT(calls_about_tuples));
}

Test(fga_api, without_keys_no_page_of_a_browser_may_ask, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, HEAD OPEN PUBLIC, 9));
    cr_expect_eq(ask_with(NULL, "Host: evil.example\r\n", "GET", "/stores", NULL, NULL), 421);
    cr_expect_eq(ask_with(NULL, "Host: localhost\r\nOrigin: http://localhost\r\n", "GET", "/stores", NULL, NULL), 403);
    cr_expect_eq(ask_with(NULL, "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", "GET", "/stores", NULL, NULL),
                 403);
    cr_expect_eq(ask_with(NULL, "Host: localhost\r\nHost: localhost\r\n", "GET", "/stores", NULL, NULL), 400);
    cr_expect_eq(ask_with(NULL, "Host: 127.0.0.1:1\r\n", "GET", "/stores", NULL, NULL), 200);
}

Test(fga_api, a_key_reads_or_writes, .fini = teardown, .timeout = 60)
{
    static const struct row reader[] = {
        {"GET", "/stores", NULL, 200, "test store"},
        {"POST", "/stores/{s}/check", "{\"tuple_key\":" TUPLE("user:a") "}", 200, "false"},
        {"POST", "/stores", "{\"name\":\"mine\"}", 403, "forbidden"},
        {"DELETE", "/stores/{s}", NULL, 403, "forbidden"},
        {"PATCH", "/stores/{s}", "{\"name\":\"mine\"}", 403, "forbidden"},
        {"POST", "/stores/{s}/write", "{\"writes\":" KEYS(TUPLE("user:a")) "}", 403, "forbidden"},
        {"POST", "/stores/{s}/authorization-models", MODEL, 403, "forbidden"},
        {"PUT", "/stores/{s}/assertions/{m}", "{\"assertions\":[]}", 403, "forbidden"},
        {"POST", "/nothing", "{}", 404, "undefined_endpoint"},
    };
    struct http1_response r = {0};
    scratch_write("keys", SZ_S("# who may what\nread " READER " dashboards\n\nwrite " WRITER "\n"));
    cr_assert(gateway_start(&g, HEAD KEYED PUBLIC, 9));
    cr_expect_eq(ask(NULL, "GET", "/stores", NULL, &r), 401);
    cr_expect(strstr(r.body.p, "bearer_token_missing") != NULL);
    cr_expect_eq(http1_field_count(&r, "www-authenticate"), 1);
    cr_expect_eq(ask(READER "x", "GET", "/stores", NULL, &r), 401);
    cr_expect(strstr(r.body.p, "unauthenticated") != NULL);
    cr_expect_eq(ask("x", "GET", "/nothing", NULL, &r), 401, "who may not ask learns nothing");
    cr_expect_eq(ask_with(READER, "Host: a\r\nAuthorization: Bearer " WRITER "\r\n", "GET", "/stores", NULL, &r), 400);
    cr_expect_eq(ask_with(READER, "Host: fga.example\r\n", "GET", "/stores", NULL, &r), 200, "keys suffice");
    make_store(WRITER);
    expect_rows(READER, reader, SZ_COUNT(reader));
    cr_expect_eq(ask(WRITER, "POST", "/stores/{s}/write", "{\"writes\":" KEYS(TUPLE("user:a")) "}", &r), 200);
    http1_response_fini(&r);
}

/* A start that must fail, and its word for why. */
static void expect_refused(const char *fga, const char *says)
{
    struct proc run = {0};
    const char *file = scratch_printf("bad.yaml",
                                      "listen: [{address: \"127.0.0.1:1\"}]\nworkers: 1\nfga: %s\n"
                                      "upstreams: {up: {urls: [\"http://127.0.0.1:9\"]}}\n" PUBLIC,
                                      fga);
    const char *argv[] = {SZ_BINARY, "check", "-c", file, NULL};
    int status = proc_run(&run, "check", 30, argv);
    char *out = file_read(run.log, NULL);
    cr_expect(status == 1 && strstr(out, says) != NULL, "%s: %d %s", fga, status, out);
    free(out);
}

Test(fga_api, what_would_be_open_to_everybody_does_not_start, .fini = scratch_remove, .timeout = 60)
{
    char keyed[512];
    expect_refused("{listen: \"0.0.0.0:8080\"}", "needs 'preshared_keys_file'");
    expect_refused("{listen: \"[::]:8080\"}", "needs 'preshared_keys_file'");
    expect_refused("{listen: \"127.0.0.1:1\"}", "also a listener");
    expect_refused("{model: \"model\\n  schema 1.1\\ntype user\\n\", preshared_keys_file: /etc/hostname}",
                   "belongs to 'listen'");
    expect_refused("{model: \"model\\n  schema 1.1\\ntype user\\n\", tls: {certificate: a, key: b}}",
                   "belongs to 'listen'");
    expect_refused("{listen: \"127.0.0.1:2\", tls: {certificate: a}}", "needs both 'certificate' and 'key'");
    expect_refused("{listen: \"127.0.0.1:2\", tls: {certificate: /etc/hostname, key: /etc/hostname}}", "tls: ");
    expect_refused("{mode: embedded}", "or 'listen', where one can");
    snprintf(keyed, sizeof(keyed), "{listen: \"0.0.0.0:8080\", preshared_keys_file: \"%s\"}",
             scratch_write("k1", SZ_S("write short\n")));
    expect_refused(keyed, "line 1 has a key of fewer than 16");
    snprintf(keyed, sizeof(keyed), "{listen: \"0.0.0.0:8080\", preshared_keys_file: \"%s\"}",
             scratch_write("k2", SZ_S("# none\n")));
    expect_refused(keyed, "there is no key in it");
    snprintf(keyed, sizeof(keyed), "{listen: \"0.0.0.0:8080\", preshared_keys_file: \"%s\"}",
             scratch_write("k3", SZ_S("0123456789abcdefgh\n")));
    expect_refused(keyed, "begins with neither 'read' nor 'write'");
}

#define ANYWHERE                      \
    "fga:\n"                          \
    "  listen: \"0.0.0.0:{port2}\"\n" \
    "  preshared_keys_file: \"{dir}/keys\"\n"

/* The listener stays where it is until a restart; who had no key before has none now. */
Test(fga_api, a_reload_that_takes_the_keys_away_opens_nothing, .fini = teardown, .timeout = 60)
{
    struct http1_response r = {0};
    scratch_write("keys", SZ_S("write " WRITER "\n"));
    cr_assert(gateway_start(&g, HEAD ANYWHERE PUBLIC, 9));
    cr_expect_eq(ask(NULL, "GET", "/stores", NULL, &r), 401);
    gateway_rewrite(&g, HEAD OPEN PUBLIC);
    cr_assert(gateway_reload(&g));
    cr_expect_eq(ask(NULL, "GET", "/stores", NULL, &r), 403);
    cr_expect_eq(ask(NULL, "POST", "/stores", "{\"name\":\"mine\"}", &r), 403);
    cr_expect(gateway_logged(&g, "'fga.listen' changed"));
    http1_response_fini(&r);
}

Test(fga_api, speaks_tls_with_the_keys_of_any_listener, .fini = teardown, .timeout = 60)
{
    struct http1_response r = {0};
    struct http1 c;
    static struct cert ca, leaf;
    cert_ca(&ca, "ca");
    cert_leaf(&leaf, "fga.example", &ca, "DNS:fga.example", 90);
    scratch_write("keys", SZ_S("write " WRITER "\n"));
    cr_assert(gateway_start(&g,
                            HEAD KEYED "  tls: {certificate: \"{dir}/fga.example.pem\", key: "
                                       "\"{dir}/fga.example.key\", watch: true}\n" PUBLIC,
                            9));
    cr_assert(http1_open_tls(&c, g.port2, &(struct wire_tls){.ca = ca.file, .name = "fga.example"}));
    for (int i = 0; i < 2; i++) {
        http1_printf(&c, "GET /stores HTTP/1.1\r\nHost: fga.example\r\nAuthorization: Bearer " WRITER "\r\n\r\n");
        cr_expect_eq(http1_read(&c, "GET", SZ_SEC(10), &r), 0);
        cr_expect_eq(r.status, 200);
    }
    http1_close(&c);
    cr_expect_eq(ask(WRITER, "GET", "/stores", NULL, &r), 0, "no word without TLS");
    http1_response_fini(&r);
}

#define ROUTES                                                                                           \
    ISSUER_YAML "routes:\n"                                                                              \
                "  - {id: docs, match: {path: \"/docs/{id}\"}, auth: {issuers: [test]}, upstream: up,\n" \
                "     authorize: {user: \"user:{claims.sub}\", relation: viewer, object: \"doc:{path.id}\"}}\n"
#define SEEDED                          \
    "fga:\n"                            \
    "  listen: \"127.0.0.1:{port2}\"\n" \
    "  model: |\n"                      \
    "    model\n"                       \
    "      schema 1.1\n"                \
    "    type user\n"                   \
    "    type doc\n"                    \
    "      relations\n"                 \
    "        define viewer: [user]\n"   \
    "  tuples: |\n"                     \
    "    - {user: \"user:alice\", relation: viewer, object: \"doc:plan\"}\n"

Test(fga_api, routes_ask_the_store_that_the_api_writes, .fini = teardown, .timeout = 120)
{
    struct issuer issuer;
    struct upstream *up = upstream_start(NULL);
    struct http1_response r = {0};
    issuer_init(&issuer);
    char *alice = issuer_token(&issuer, "alice", 300, NULL), *bob = issuer_token(&issuer, "bob", 300, NULL);
    cr_assert(gateway_start(&g, HEAD SEEDED ROUTES, upstream_port(up)));
    cr_expect_eq(http1_ask(g.port, "GET", "/docs/plan", alice, NULL, NULL, &r), 200);
    cr_expect_eq(http1_ask(g.port, "GET", "/docs/plan", bob, NULL, NULL, &r), 403);
    snprintf(store, sizeof(store), OWN);
#define BOB "{\"tuple_keys\":[{\"user\":\"user:bob\",\"relation\":\"viewer\",\"object\":\"doc:plan\"}]}"
    cr_expect_eq(ask(NULL, "POST", "/stores/{s}/write", "{\"writes\":" BOB "}", &r), 200);
    cr_expect_eq(http1_ask(g.port, "GET", "/docs/plan", bob, NULL, NULL, &r), 200);
    cr_expect_eq(ask(NULL, "POST", "/stores/{s}/write", "{\"deletes\":" BOB "}", &r), 200);
    cr_expect_eq(http1_ask(g.port, "GET", "/docs/plan", bob, NULL, NULL, &r), 403);
    /* Routes keep the configuration's model, whatever is written beside it. */
    cr_expect_eq(ask(NULL, "POST", "/stores/{s}/authorization-models",
                     "{\"schema_version\":\"1.1\",\"type_definitions\":[{\"type\":\"user\"}]}", &r),
                 201);
    cr_expect_eq(http1_ask(g.port, "GET", "/docs/plan", alice, NULL, NULL, &r), 200);
    http1_response_fini(&r);
    upstream_stop(&up);
    free(alice);
    free(bob);
}

Test(fga_api, changes_go_on_record, .fini = teardown, .timeout = 60)
{
    struct http1_response r = {0};
    char *records = NULL;
    scratch_write("keys", SZ_S("read " READER " dashboards\nwrite " WRITER " billing\n"));
    cr_assert(gateway_start(&g, HEAD "audit: {path: \"{dir}/audit\"}\n" KEYED PUBLIC, 9));
    make_store(WRITER);
    cr_expect_eq(ask(WRITER, "POST", "/stores/{s}/write", "{\"writes\":" KEYS(TUPLE("user:a")) "}", &r), 200);
    cr_expect_eq(ask(READER, "POST", "/stores/{s}/write", "{\"writes\":" KEYS(TUPLE("user:b")) "}", &r), 403);
    for (int i = 0; i < 50 && (records == NULL || strstr(records, "\"dashboards\"") == NULL); i++) {
        free(records);
        usleep(50000);
        records = gateway_admin(&g, "/audit");
    }
    cr_expect(strstr(records, "\"fga.store.create\"") != NULL && strstr(records, "\"fga.model.write\"") != NULL);
    cr_expect(strstr(records, "+doc:1#viewer@user:a") != NULL && strstr(records, "\"billing\"") != NULL, "%s", records);
    cr_expect(strstr(records, "\"dashboards\"") != NULL, "the refusal, too: %s", records);
    cr_expect(strstr(records, WRITER) == NULL, "no key is ever written down");
    free(records);
    http1_response_fini(&r);
}

#define STATE "state_dir: \"{dir}/state\"\n"

/* Writes users from `from` on, one call each, until the gateway is gone: how many were acknowledged. */
struct writer {
    pthread_t thread;
    unsigned from, acknowledged;
};

static void *write_on(void *arg)
{
    struct writer *w = arg;
    struct http1 c = {0};
    struct http1_response r = {0};
    char body[256];
    bool good = http1_open(&c, g.port2);
    while (good) {
        int n = snprintf(body, sizeof(body),
                         "{\"writes\":" KEYS("{\"user\":\"user:%u\",\"relation\":\"viewer\",\"object\":\"doc:1\"}") "}",
                         w->from + w->acknowledged);
        good = http1_printf(&c, "POST /stores/%s/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
                            store, n, body) &&
               http1_read(&c, "POST", SZ_SEC(5), &r) == 0 && r.status == 200;
        w->acknowledged += good;
    }
    http1_response_fini(&r);
    http1_close(&c);
    return NULL;
}

static void expect_written(unsigned from, unsigned n)
{
    struct http1_response r = {0};
    struct sz_buf body = {0};
    for (unsigned i = 0; i < n; i += 50) {
        body.n = 0;
        sz_buf_printf(&body, "{\"checks\":[");
        for (unsigned k = i; k < n && k < i + 50; k++)
            sz_buf_printf(&body,
                          "%s{\"correlation_id\":\"u%u\",\"tuple_key\":{\"user\":\"user:%u\",\"relation\":\"viewer\","
                          "\"object\":\"doc:1\"}}",
                          k > i ? "," : "", k, from + k);
        sz_buf_printf(&body, "]}");
        sz_buf_add(&body, "", 1);
        cr_assert_eq(ask(NULL, "POST", "/stores/{s}/batch-check", body.p, &r), 200);
        cr_expect(strstr(r.body.p, "false") == NULL, "of %u acknowledged from %u on: %s", n, from, r.body.p);
    }
    http1_response_fini(&r);
    sz_buf_fini(&body);
}

Test(fga_api, killed_under_load_it_holds_what_was_acknowledged, .fini = teardown, .timeout = 120)
{
    struct writer writers[8 * 3] = {0};
    size_t n = 0;
    unsigned all = 0;
    cr_assert(gateway_start(&g, HEAD STATE OPEN PUBLIC, 9));
    make_store(NULL);
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 3; i++) {
            struct writer *w = &writers[n + (size_t)i];
            w->from = (unsigned)(n + (size_t)i) * 100000;
            cr_assert_eq(pthread_create(&w->thread, NULL, write_on, w), 0);
        }
        usleep(100000 + (useconds_t)round * 13000);
        kill(g.proc.pid, SIGKILL);
        waitpid(g.proc.pid, NULL, 0);
        for (int i = 0; i < 3; i++)
            pthread_join(writers[n + (size_t)i].thread, NULL);
        n += 3;
        memset(&g, 0, sizeof(g));
        cr_assert(gateway_start(&g, HEAD STATE OPEN PUBLIC, 9), "round %d", round);
    }
    for (size_t i = 0; i < n; i++) {
        expect_written(writers[i].from, writers[i].acknowledged);
        all += writers[i].acknowledged;
    }
    cr_expect_gt(all, 50, "%u writes were acknowledged", all);
}

Test(fga_api, a_damaged_log_refuses_the_start, .fini = scratch_remove, .timeout = 60)
{
    struct proc run = {0};
    char path[512];
    cr_assert(gateway_start(&g, HEAD STATE OPEN PUBLIC, 9));
    make_store(NULL);
    char *health = gateway_admin(&g, "/health");
    cr_expect(strstr(health, "\"fga_stores\":{\"status\":\"ok\",\"stores\":2,\"durable\":true") != NULL, "%s", health);
    free(health);
    stop_gateway(&g);
    snprintf(path, sizeof(path), "%s/state/fga/stores.log", scratch_path());
    FILE *f = fopen(path, "r+b");
    cr_assert_not_null(f);
    fseek(f, 50, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, 50, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
    const char *argv[] = {SZ_BINARY, "serve", "-c", g.config, NULL};
    int status = proc_run(&run, "damaged", 30, argv);
    char *out = file_read(run.log, NULL);
    cr_expect(status == 1 && strstr(out, "stores.log: offset 16:") != NULL, "%d %s", status, out);
    free(out);
}

/* What a command prints on stdout and stderr; free it. */
static char *command(int wanted, const char *const *argv)
{
    static unsigned runs;
    struct proc run = {0};
    char name[32]; /* of a log of its own */
    snprintf(name, sizeof(name), "command-%u", runs++);
    int status = proc_run(&run, name, 60, argv);
    char *out = file_read(run.log, NULL);
    cr_expect_eq(status, wanted, "%s %s: %d %s", argv[1], argv[2], status, out);
    return out;
}

Test(fga_api, import_and_export_carry_a_store_over, .fini = scratch_remove, .timeout = 120)
{
    char from[512], to[512];
    const char *model_file = scratch_write("m.fga", SZ_S("model\n  schema 1.1\ntype user\ntype doc\n  relations\n    "
                                                         "define viewer: [user, user with late]\ncondition late(h: "
                                                         "int) {\n  h > 20\n}\n"));
    const char *tuples = scratch_write(
        "t.jsonl", SZ_S("{\"user\":\"user:a\",\"relation\":\"viewer\",\"object\":\"doc:1\"}\n"
                        "{\"user\":\"user:b\",\"relation\":\"viewer\",\"object\":\"doc:2\",\"condition\":{\"name\":"
                        "\"late\",\"context\":{\"h\":21}}}\n"));
    snprintf(from, sizeof(from), "%s/one", scratch_path());
    snprintf(to, sizeof(to), "%s/two", scratch_path());
    const char *in[] = {SZ_BINARY, "fga",      "import",   "--state-dir", from,
                        "--model", model_file, "--tuples", tuples,        NULL};
    for (int i = 0; i < 2; i++) { /* a second time changes nothing */
        char *said = command(0, in);
        cr_expect(strstr(said, "1 models, 2 tuples") != NULL, "%s", said);
        free(said);
    }
    const char *out[] = {SZ_BINARY, "fga", "export", "--state-dir", from, NULL};
    char *exported = command(0, out);
    const char *model_out[] = {SZ_BINARY, "fga", "export", "--state-dir", from, "--model", NULL};
    char *exported_model = command(0, model_out);
    const char *again[] = {SZ_BINARY,
                           "fga",
                           "import",
                           "--state-dir",
                           to,
                           "--model",
                           scratch_write("m.json", sz_cstr(exported_model)),
                           "--tuples",
                           scratch_write("t2.jsonl", sz_cstr(exported)),
                           NULL};
    free(command(0, again));
    out[4] = to;
    char *twice = command(0, out);
    cr_expect_str_eq(twice, exported);
    cr_expect(strstr(twice, "\"late\"") != NULL, "%s", twice);
    free(twice);
    free(exported);
    free(exported_model);
    const char *unknown[] = {SZ_BINARY, "fga", "export", "--state-dir", from, "--store", "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                             NULL};
    free(command(1, unknown));
}

/* ---- streams ---- */

enum { STREAMED = 60000 };

#define MANY                            \
    "fga:\n"                            \
    "  listen: \"127.0.0.1:{port2}\"\n" \
    "  model: |\n"                      \
    "    model\n"                       \
    "      schema 1.1\n"                \
    "    type user\n"                   \
    "    type doc\n"                    \
    "      relations\n"                 \
    "        define viewer: [user]\n"   \
    "  tuples: \"{dir}/many.jsonl\"\n"

/* More than the sockets between us hold: some twelve megabytes of answer. */
static void write_many(void)
{
    struct sz_buf text = {0};
    char pad[181];
    memset(pad, 'x', 180);
    pad[180] = '\0';
    for (int i = 0; i < STREAMED; i++)
        sz_buf_printf(&text, "{\"object\":\"doc:%d-%s\",\"relation\":\"viewer\",\"user\":\"user:a\"}\n", i, pad);
    scratch_write("many.jsonl", sz_buf_slice(&text));
    sz_buf_fini(&text);
}

static void send_stream_call(struct http1 *c)
{
    static const char body[] = "{\"type\":\"doc\",\"relation\":\"viewer\",\"user\":\"user:a\"}";
    cr_assert(http1_open(c, g.port2));
    cr_assert(http1_printf(c,
                           "POST /stores/" OWN "/streamed-list-objects HTTP/1.1\r\nHost: localhost\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           sizeof(body) - 1, body));
}

static size_t count_lines(struct sz_slice body)
{
    size_t n = 0;
    for (size_t i = 0; i < body.n; i++)
        n += body.p[i] == '\n';
    return n;
}

Test(fga_api, a_stream_goes_out_as_it_is_found, .fini = teardown, .timeout = 120)
{
    struct http1_response r = {0};
    struct http1 c;
    write_many();
    cr_assert(gateway_start(&g, HEAD MANY PUBLIC, 9));
    for (int i = 0; i < 2; i++) { /* and its connection is good for another */
        if (i == 0)
            send_stream_call(&c);
        else
            http1_printf(&c, "GET /stores HTTP/1.1\r\nHost: localhost\r\n\r\n");
        cr_assert_eq(http1_read(&c, "POST", SZ_SEC(30), &r), 0);
        cr_expect_eq(r.status, 200);
        if (i == 0) {
            cr_expect_eq(count_lines(sz_buf_slice(&r.body)), STREAMED);
            cr_expect(strstr(r.body.p, "\"error\"") == NULL);
        }
    }
    http1_close(&c);
    cr_expect_eq(ask(NULL, "POST", "/stores/" OWN "/streamed-list-objects", "{\"type\":\"cat\"}", &r), 400);
    cr_expect(strncmp(r.body.p, "{\"error\":{\"code\":3,", 19) == 0, "%s", r.body.p);
    http1_response_fini(&r);
}

/* Nobody waits for whoever does not read: the stream ends with a word, others go on, and what was not read is not kept.
 */
Test(fga_api, a_stream_that_is_not_taken_ends_and_says_so, .fini = teardown, .timeout = 120)
{
    struct http1_response r = {0};
    struct http1 c[6];
    write_many();
    cr_assert(gateway_start(&g, HEAD MANY PUBLIC, 9));
    for (size_t i = 0; i < SZ_COUNT(c); i++)
        send_stream_call(&c[i]);
    struct sz_mono begun = sz_mono_read();
    while (sz_between(begun, sz_mono_read()).us < 4000000) {
        cr_expect_eq(ask(NULL, "POST", "/stores/" OWN "/list-objects",
                         "{\"type\":\"doc\",\"relation\":\"viewer\",\"user\":\"user:a\"}", &r),
                     200);
        usleep(20000);
    }
    for (size_t i = 0; i < SZ_COUNT(c); i++) {
        if (i % 2 == 1) { /* some leave in the middle */
            http1_close(&c[i]);
            continue;
        }
        cr_expect_eq(http1_read(&c[i], "POST", SZ_SEC(30), &r), 0);
        struct sz_slice body = sz_buf_slice(&r.body);
        cr_expect(r.status == 200 || r.status == 500, "%d", r.status);
        cr_expect_lt(count_lines(body), STREAMED);
        cr_expect(body.n > 0 && strstr(body.p + (body.n > 300 ? body.n - 300 : 0), "{\"error\":{\"code\":13,") != NULL,
                  "%s", body.p + (body.n > 300 ? body.n - 300 : 0));
        http1_close(&c[i]);
    }
    http1_response_fini(&r);
}

/* ---- checks that take long ---- */

#define LONG_MODEL                                                                             \
    "model\n  schema 1.1\ntype user\ntype group\n  relations\n    define banned: [user]\n    " \
    "define member: [user, group#member] but not banned\n"
#define LONG                                                                                     \
    "fga:\n"                                                                                     \
    "  listen: \"127.0.0.1:{port2}\"\n"                                                          \
    "  model: \"{dir}/long.fga\"\n"                                                              \
    "  tuples: \"{dir}/long.jsonl\"\n"                                                           \
    "limits: {request_timeout: 1s}\n" ISSUER_YAML "routes:\n"                                    \
    "  - {id: groups, match: {path: \"/groups/{id}\"}, auth: {issuers: [test]}, upstream: up,\n" \
    "     authorize: {user: \"user:{claims.sub}\", relation: member, object: \"group:{path.id}\"}}\n"

enum { LAYERS = 12, WIDTH = 30 };

/* Layers of groups, each group a member of all of the layer above: WIDTH to the power of LAYERS ways to look at. */
static void write_layers(void)
{
    struct sz_buf text = {0};
    for (int layer = 0; layer + 1 < LAYERS; layer++)
        for (int a = 0; a < WIDTH; a++)
            for (int b = 0; b < WIDTH; b++)
                sz_buf_printf(&text,
                              "{\"object\":\"group:%d-%d\",\"relation\":\"member\",\"user\":\"group:%d-%d#member\"}\n",
                              layer, a, layer + 1, b);
    sz_buf_printf(&text, "{\"object\":\"group:0-0\",\"relation\":\"member\",\"user\":\"user:direct\"}\n");
    sz_buf_printf(&text, "{\"object\":\"group:elsewhere\",\"relation\":\"member\",\"user\":\"user:alice\"}\n");
    scratch_write("long.jsonl", sz_buf_slice(&text));
    scratch_write("long.fga", SZ_S(LONG_MODEL));
    sz_buf_fini(&text);
}

static int member_of(const char *user, const char *group, struct http1_response *r)
{
    char body[256];
    snprintf(body, sizeof(body),
             "{\"tuple_key\":{\"user\":\"user:%s\",\"relation\":\"member\",\"object\":\"group:%s\"}}", user, group);
    return ask(NULL, "POST", "/stores/" OWN "/check", body, r);
}

static void *ask_for_long(void *arg)
{
    struct http1_response *r = arg;
    member_of("alice", "0-0", r);
    return NULL;
}

Test(fga_api, a_long_check_is_no_no_and_keeps_nobody_waiting, .fini = teardown, .timeout = 120)
{
    struct issuer issuer;
    struct http1_response r = {0}, slow[2] = {0};
    pthread_t threads[2];
    unsigned quick = 0;
    issuer_init(&issuer);
    char *alice = issuer_token(&issuer, "alice", 300, NULL);
    write_layers();
    cr_assert(gateway_start(&g, HEAD LONG, 9));
    /* Beyond the loop's steps, within the deadline: the pool's answer. */
    char last[32];
    snprintf(last, sizeof(last), "%d-0", LAYERS - 4);
    cr_expect_eq(member_of("alice", last, &r), 200);
    cr_expect(r.body.p != NULL && strstr(r.body.p, "\"allowed\":false") != NULL, "%s", r.body.p);
    /* Beyond any deadline: two at once hold the whole pool, and others are answered all the while. */
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, ask_for_long, &slow[i]), 0);
    struct sz_mono begun = sz_mono_read();
    for (; sz_between(begun, sz_mono_read()).us < 2000000; quick++) {
        cr_expect_eq(member_of("direct", "0-0", &r), 200);
        cr_expect(strstr(r.body.p, "\"allowed\":true") != NULL, "%s", r.body.p);
    }
    cr_expect_gt(quick, 100, "%u short checks in 2 s beside two long ones", quick);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        cr_expect(slow[i].status == 500 && strstr(slow[i].body.p, "deadline_exceeded") != NULL, "%d %s", slow[i].status,
                  slow[i].body.p);
        http1_response_fini(&slow[i]);
    }
    /* A route's own check: 503, neither yes nor no, at its deadline. */
    begun = sz_mono_read();
    cr_expect_eq(http1_ask(g.port, "GET", "/groups/0-0", alice, NULL, NULL, &r), 503);
    cr_expect_lt(sz_between(begun, sz_mono_read()).us, 5000000);
    http1_response_fini(&r);
    free(alice);
}
