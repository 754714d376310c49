/* Listeners in mode api: who may ask, what is a question, and what is answered. */
#include <stdio.h>
#include <stdlib.h>

#include "fake/certs.h"
#include "harness.h"

#define KEY  "k-0123456789abcdef0123456789abcdef"
#define JSON "Content-Type: application/json\r\n"
#define FGA                                                                                                      \
    "fga:\n"                                                                                                     \
    "  model: |\n"                                                                                               \
    "    model\n"                                                                                                \
    "      schema 1.1\n"                                                                                         \
    "    type user\n"                                                                                            \
    "    type document\n"                                                                                        \
    "      relations\n"                                                                                          \
    "        define owner: [user]\n"                                                                             \
    "        define viewer: [user, user with at_home] or owner\n"                                                \
    "        define critic: [user with is_admin]\n"                                                              \
    "    condition at_home(ip: ipaddress) {\n"                                                                   \
    "      ip.in_cidr(\"10.0.0.0/8\")\n"                                                                         \
    "    }\n"                                                                                                    \
    "    condition is_admin(subject_role: string, resource_status: string) {\n"                                  \
    "      subject_role == \"admin\" && resource_status == \"open\"\n"                                           \
    "    }\n"                                                                                                    \
    "  tuples: |\n"                                                                                              \
    "    - {user: \"user:alice\", relation: viewer, object: \"document:roadmap\"}\n"                             \
    "    - {user: \"user:bob\", relation: owner, object: \"document:budget\"}\n"                                 \
    "    - {user: \"user:eve%40example.com\", relation: viewer, object: \"document:a%3Ab\"}\n"                   \
    "    - {user: \"user:carol\", relation: viewer, object: \"document:roadmap\", condition: {name: at_home}}\n" \
    "    - {user: \"user:dave\", relation: critic, object: \"document:roadmap\", condition: {name: is_admin}}\n"
#define ROUTES                                                      \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n" \
    "routes:\n  - {id: one, match: {path: /one}, public: true, upstream: up}\n"
#define CHECK(user, relation, document)                                                    \
    "{\"user_id\":\"" user "\",\"resource_type\":\"document\",\"resource_id\":\"" document \
    "\",\"relation\":\"" relation "\"}"

static struct gateway g;

static void setup(void)
{
    scratch_write("keys", SZ_S("# services\n" KEY " billing\n\nanother-key-of-some-length\r\n"));
    cr_assert(gateway_start(&g,
                            "listen:\n"
                            "  - {address: \"127.0.0.1:{port}\", mode: api, keys_file: \"{dir}/keys\"}\n"
                            "  - {address: \"127.0.0.1:{port2}\", mode: api, request_body: 2kB}\n"
                            "  - {address: \"127.0.0.1:{port3}\"}\n"
                            "admin: {address: \"127.0.0.1:{admin}\"}\n"
                            "workers: 2\n" FGA ROUTES,
                            9));
}

static void teardown(void)
{
    stop_gateway(&g);
    scratch_remove();
}

static void answer(const char *path, const char *body, int status, const char *want)
{
    struct http1_response r = {0};
    cr_expect_eq(http1_ask(g.port, "POST", path, KEY, JSON, body, &r), status, "%s: %s", body,
                 r.body.p != NULL ? r.body.p : "");
    cr_expect(r.body.p != NULL && strstr(r.body.p, want) != NULL, "%s: wanted %s, got %s", body, want,
              r.body.p != NULL ? r.body.p : "nothing");
    http1_response_fini(&r);
}

Test(api, strangers_and_nonsense_are_refused, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *method, *target, *token, *fields, *body;
        int status;
        const char *reason;
    } rows[] = {
        {"POST", "/authz/check", NULL, JSON, CHECK("alice", "viewer", "roadmap"), 401, "missing_token"},
        {"POST", "/authz/check", "wrong", JSON, CHECK("alice", "viewer", "roadmap"), 401, "invalid_token"},
        {"POST", "/authz/check", KEY "0", JSON, CHECK("alice", "viewer", "roadmap"), 401, "invalid_token"},
        {"POST", "/authz/check", NULL, JSON "Authorization: Basic " KEY "\r\n", "{}", 401, "malformed_token"},
        {"POST", "/authz/check", KEY, JSON "Authorization: Bearer " KEY "\r\n", "{}", 400, "bad_request"},
        {"GET", "/authz/check", NULL, "", NULL, 401, "missing_token"},
        {"GET", "/nothing", NULL, "", NULL, 401, "missing_token"},
        {"GET", "/nothing", KEY, "", NULL, 404, "no_route"},
        {"GET", "/one", KEY, "", NULL, 404, "no_route"},
        {"GET", "/", KEY, "", NULL, 404, "no_route"},
        {"GET", "/authz/check", KEY, "", NULL, 405, "method_not_allowed"},
        {"PUT", "/authz/check", KEY, JSON, CHECK("alice", "viewer", "roadmap"), 405, "method_not_allowed"},
        {"OPTIONS", "/authz/check", KEY, "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n", NULL,
         405, "method_not_allowed"},
        {"POST", "/authz/check/", KEY, JSON, CHECK("alice", "viewer", "roadmap"), 404, "no_route"},
        {"POST", "/authz/check?x=1", KEY, JSON, CHECK("alice", "viewer", "roadmap"), 400, "bad_request"},
        {"POST", "/authz%2fcheck", KEY, JSON, CHECK("alice", "viewer", "roadmap"), 400, "ambiguous_path"},
        {"POST", "/authz/check", KEY, "", CHECK("alice", "viewer", "roadmap"), 415, "bad_request"},
        {"POST", "/authz/check", KEY, "Content-Type: text/plain\r\n", CHECK("alice", "viewer", "roadmap"), 415,
         "bad_request"},
        {"POST", "/authz/check", KEY, JSON JSON, CHECK("alice", "viewer", "roadmap"), 415, "bad_request"},
        {"POST", "/authz/check", KEY, JSON "Content-Encoding: gzip\r\n", CHECK("alice", "viewer", "roadmap"), 415,
         "bad_request"},
        {"POST", "/authz/check", KEY, JSON, "", 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, "[]", 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, "{", 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, "{} {}", 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, "{\"user_id\":\"alice\",\"user_id\":\"bob\"}", 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, "{\"user_id\":1}", 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("", "viewer", "roadmap"), 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("al\\u0000ice", "viewer", "roadmap"), 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("alice", "viewer\",\"x\":\"y", "roadmap"), 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("alice", "view:er", "roadmap"), 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("alice", "nothing", "roadmap"), 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("robot:r2", "viewer", "roadmap"), 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("user:a b", "viewer", "roadmap"), 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("alice", "viewer", "roadmap\",\"context\":\"x"), 400, "bad_request"},
        {"POST", "/authz/check", KEY, JSON, CHECK("alice", "viewer", "roadmap\",\"consistency\":\"x"), 400,
         "bad_request"},
        {"POST", "/access/v1/evaluation", NULL, JSON, "{}", 401, "missing_token"},
        {"POST", "/access/v1/evaluations", NULL, JSON, "{}", 401, "missing_token"},
        {"GET", "/access/v1/evaluation", KEY, "", NULL, 405, "method_not_allowed"},
        {"POST", "/.well-known/authzen-configuration", KEY, JSON, "{}", 405, "method_not_allowed"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct http1_response r = {0};
        char what[256];
        snprintf(what, sizeof(what), "row %zu, %s %s %.120s", i, rows[i].method, rows[i].target,
                 rows[i].body != NULL ? rows[i].body : "");
        http1_ask(g.port, rows[i].method, rows[i].target, rows[i].token, rows[i].fields, rows[i].body, &r);
        expect_answer(&r, rows[i].status, rows[i].reason, what);
        cr_expect(r.body.p == NULL || strstr(r.body.p, KEY) == NULL, "%s: the key is in the answer", what);
        http1_response_fini(&r);
    }
}

/* Long, deep and oversized bodies. */
Test(api, bodies_are_bounded, .init = setup, .fini = teardown, .timeout = 60)
{
    static char deep[1024], large[300 * 1024];
    struct http1_response r = {0};
    size_t n = 0;
    n += (size_t)snprintf(deep, sizeof(deep), "{\"user_id\":\"a\",\"context\":");
    for (int i = 0; i < 200; i++)
        deep[n++] = '[';
    deep[n] = '\0';
    http1_ask(g.port, "POST", "/authz/check", KEY, JSON, deep, &r);
    expect_answer(&r, 400, "bad_request", "deep");
    memset(large, ' ', sizeof(large) - 1);
    memcpy(large, "{}", 2);
    http1_ask(g.port, "POST", "/authz/check", KEY, JSON, large, &r);
    expect_answer(&r, 413, "body_too_large", "large");
    /* The listener's own bound, of 2 kB. */
    struct sz_buf request = {0};
    sz_buf_printf(&request,
                  "POST /authz/check HTTP/1.1\r\nHost: localhost\r\n" JSON "Content-Length: 3000\r\n\r\n%.3000s",
                  large);
    http1_exchange(g.port2, sz_buf_slice(&request), &r);
    expect_answer(&r, 413, "body_too_large", "request_body");
    sz_buf_fini(&request);
    http1_response_fini(&r);
}

Test(api, a_check_says_yes_or_no_and_where_from, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *body, *want;
    } rows[] = {
        {CHECK("alice", "viewer", "roadmap"), "\"allowed\":true"},
        {CHECK("user:alice", "viewer", "roadmap"), "\"allowed\":true"},
        {CHECK("bob", "viewer", "roadmap"), "\"allowed\":false"},
        {CHECK("bob", "viewer", "budget"), "\"allowed\":true"},
        {CHECK("bob", "viewer", "budget\",\"consistency\":\"higher_consistency"), "\"allowed\":true"},
        {CHECK("*", "viewer", "roadmap"), "\"allowed\":false"},
        {CHECK("eve@example.com", "viewer", "a:b"), "\"allowed\":true"},
        {CHECK("alice", "viewer", "nothing"), "\"allowed\":false"},
        {"{\"user_id\":\"carol\",\"resource_type\":\"document\",\"resource_id\":\"roadmap\",\"relation\":\"viewer\","
         "\"context\":{\"ip\":\"10.1.2.3\"}}",
         "\"allowed\":true"},
        {"{\"user_id\":\"carol\",\"resource_type\":\"document\",\"resource_id\":\"roadmap\",\"relation\":\"viewer\","
         "\"context\":{\"ip\":\"192.0.2.3\",\"other\":[1,{\"a\":null}]}}",
         "\"allowed\":false"},
        {CHECK("alice", "viewer", "roadmap"), "\"source\":\"engine\""},
        {CHECK("alice", "viewer", "roadmap"), "\"cached\":false,\"cache_layer\":null,\"latency_ms\":"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        answer("/authz/check", rows[i].body, 200, rows[i].want);
    /* A condition without its value cannot be decided: the one who asks has left it out. */
    answer("/authz/check", CHECK("carol", "viewer", "roadmap"), 400, "bad_request");
    cr_expect(gateway_logged(&g, "\"client\":\"billing\""));
    cr_expect_not(gateway_logged(&g, KEY));
    cr_expect_gt(gateway_metric(&g, "subzero_request_duration_seconds_count{handler=\"authz\"}"), 0);
}

#define ASK(user, action, document)                                                      \
    "\"subject\":{\"type\":\"user\",\"id\":\"" user "\"},\"action\":{\"name\":\"" action \
    "\"},\"resource\":{\"type\":\"document\",\"id\":\"" document "\"}"

Test(api, authzen_evaluates_one, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *body;
        int status;
        const char *want;
    } rows[] = {
        {"{" ASK("alice", "viewer", "roadmap") "}", 200, "{\"decision\":true}"},
        {"{" ASK("bob", "viewer", "roadmap") "}", 200, "{\"decision\":false}"},
        {"{" ASK("carol", "viewer", "roadmap") ",\"context\":{\"ip\":\"10.9.9.9\"}}", 200, "{\"decision\":true}"},
        {"{" ASK("carol", "viewer", "roadmap") ",\"context\":{\"ip\":\"10.9.9\"}}", 400, "bad_request"},
        {"{\"subject\":{\"type\":\"user\",\"id\":\"dave\",\"properties\":{\"role\":\"admin\"}},\"action\":{\"name\":"
         "\"critic\"},\"resource\":{\"type\":\"document\",\"id\":\"roadmap\",\"properties\":{\"status\":\"open\"}}}",
         200, "{\"decision\":true}"},
        {"{\"subject\":{\"type\":\"user\",\"id\":\"dave\",\"properties\":{\"role\":\"guest\"}},\"action\":{\"name\":"
         "\"critic\"},\"resource\":{\"type\":\"document\",\"id\":\"roadmap\",\"properties\":{\"status\":\"open\"}}}",
         200, "{\"decision\":false}"},
        {"{\"subject\":{\"type\":\"user\",\"id\":\"dave\",\"properties\":{\"role\":\"guest\"}},\"action\":{\"name\":"
         "\"critic\"},\"resource\":{\"type\":\"document\",\"id\":\"roadmap\"},\"context\":{\"subject_role\":\"admin\"}"
         "}",
         400, "in 'context' as well"},
        {"{}", 400, "bad_request"},
        {"{\"subject\":{\"type\":\"user\",\"id\":\"alice\"},\"action\":{\"name\":\"viewer\"}}", 400, "'resource'"},
        {"{" ASK("alice", "viewer", "roadmap") ",\"evaluations\":[]}", 400, "unknown member"},
        {"{\"subject\":{\"type\":\"us:er\",\"id\":\"alice\"},\"action\":{\"name\":\"viewer\"},\"resource\":{\"type\":"
         "\"document\",\"id\":\"roadmap\"}}",
         400, "a type is one word"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        answer("/access/v1/evaluation", rows[i].body, rows[i].status, rows[i].want);
}

#define ALICE "{" ASK("alice", "viewer", "roadmap") "}"
#define BOB   "{" ASK("bob", "viewer", "roadmap") "}"

Test(api, authzen_evaluates_several, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *body;
        int status;
        const char *want;
    } rows[] = {
        {"{\"evaluations\":[" ALICE "," BOB "," ALICE "]}", 200,
         "{\"evaluations\":[{\"decision\":true},{\"decision\":false},{\"decision\":true}]}"},
        {"{\"options\":{\"evaluations_semantic\":\"deny_on_first_deny\"},\"evaluations\":[" ALICE "," BOB "," ALICE
         "]}",
         200, "{\"evaluations\":[{\"decision\":true},{\"decision\":false}]}"},
        {"{\"options\":{\"evaluations_semantic\":\"permit_on_first_permit\"},\"evaluations\":[" BOB "," ALICE "," BOB
         "]}",
         200, "{\"evaluations\":[{\"decision\":false},{\"decision\":true}]}"},
        {"{" ASK("alice", "viewer", "roadmap") "}", 200, "{\"decision\":true}"},
        {"{" ASK("bob", "viewer", "roadmap") ",\"evaluations\":[]}", 200, "{\"decision\":false}"},
        {"{" ASK("bob", "viewer",
                 "roadmap") ",\"evaluations\":[{},{\"resource\":{\"type\":\"document\",\"id\":\"budget\"}}]}",
         200, "{\"evaluations\":[{\"decision\":false},{\"decision\":true}]}"},
        {"{\"evaluations\":[" ALICE ",{}]}", 200, "[{\"decision\":true},{\"decision\":false,\"context\":{\"error\":"},
        {"{\"evaluations\":[" ALICE ",7]}", 200, "[{\"decision\":true},{\"decision\":false,\"context\":{\"error\":"},
        {"{\"evaluations\":7}", 400, "bad_request"},
        {"{\"options\":{\"evaluations_semantic\":\"all\"},\"evaluations\":[" ALICE "]}", 400, "execute_all"},
        {"{\"options\":{\"semantic\":\"execute_all\"},\"evaluations\":[" ALICE "]}", 400, "unknown member"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        answer("/access/v1/evaluations", rows[i].body, rows[i].status, rows[i].want);
    struct sz_buf many = {0};
    sz_buf_printf(&many, "{" ASK("alice", "viewer", "roadmap") ",\"evaluations\":[{}");
    for (int i = 1; i < 50; i++)
        sz_buf_printf(&many, ",{}");
    size_t n = many.n;
    sz_buf_printf(&many, "]}%c", '\0');
    answer("/access/v1/evaluations", many.p, 200, "{\"decision\":true},{\"decision\":true}]}");
    many.n = n;
    sz_buf_printf(&many, ",{}]}%c", '\0');
    answer("/access/v1/evaluations", many.p, 400, "at most 50");
    sz_buf_fini(&many);
}

Test(api, authzen_says_where_it_is_and_echoes_the_request_id, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http1_response r = {0};
    char id[128] = "";
    cr_expect_eq(http1_ask(g.port, "GET", "/.well-known/authzen-configuration", NULL, "", NULL, &r), 200);
    cr_expect(strstr(r.body.p, "/access/v1/evaluations\"") != NULL &&
                  strstr(r.body.p, "\"policy_decision_point\":\"http://"),
              "%s", r.body.p);
    cr_expect_eq(
        http1_ask(g.port, "POST", "/access/v1/evaluation", KEY, JSON "X-Request-ID: bfe9eb29-ab87-4ca3\r\n", ALICE, &r),
        200);
    cr_expect(http1_field(&r, "x-request-id", id, sizeof(id)) && strcmp(id, "bfe9eb29-ab87-4ca3") == 0, "%s", id);
    cr_expect_eq(http1_ask(g.port, "POST", "/access/v1/evaluation", KEY, JSON "X-Request-ID: a b\r\n", ALICE, &r), 200);
    cr_expect(http1_field(&r, "x-request-id", id, sizeof(id)) && strcmp(id, "a b") != 0, "%s", id);
    http1_response_fini(&r);
}

/* Without keys: this machine, and no web page on it. */
Test(api, without_keys_only_this_machine_asks, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *host, *fields;
        int status;
        const char *reason;
    } rows[] = {
        {"localhost", JSON, 200, ""},
        {"127.0.0.1", JSON, 200, ""},
        {"evil.example", JSON, 421, "misdirected"},
        {"localhost", JSON "Origin: http://localhost\r\n", 403, "untrusted_peer"},
        {"localhost", JSON "Sec-Fetch-Site: cross-site\r\n", 403, "untrusted_peer"},
        {"localhost", JSON "Sec-Fetch-Site: same-origin\r\n", 403, "untrusted_peer"},
        {"localhost", "Content-Type: text/plain\r\n", 415, "bad_request"},
    };
    static const char body[] = CHECK("alice", "viewer", "roadmap");
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct http1_response r = {0};
        char request[1024];
        snprintf(request, sizeof(request),
                 "POST /authz/check HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                 rows[i].host, rows[i].fields, sizeof(body) - 1, body);
        http1_exchange(g.port2, sz_cstr(request), &r);
        expect_answer(&r, rows[i].status, rows[i].reason, request);
        http1_response_fini(&r);
    }
}

/* A front proxy would take a 200 of ours for a yes. */
Test(api, other_listeners_have_no_path_of_their_own, .init = setup, .fini = teardown, .timeout = 60)
{
    static const char *const paths[] = {"/authz/check", "/access/v1/evaluation", "/access/v1/evaluations"};
    struct http1_response r = {0};
    for (size_t i = 0; i < SZ_COUNT(paths); i++) {
        http1_ask(g.port3, "POST", paths[i], KEY, JSON, CHECK("alice", "viewer", "roadmap"), &r);
        expect_answer(&r, 404, "no_route", paths[i]);
    }
    http1_ask(g.port3, "GET", "/.well-known/authzen-configuration", KEY, "", NULL, &r);
    expect_answer(&r, 404, "no_route", "discovery");
    http1_response_fini(&r);
}

Test(api, http2_and_many_at_once, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field fields[] = {H2_FIELD("content-type", "application/json")};
    struct http2 c;
    cr_assert(h2_open(&c, g.port));
    for (int i = 0; i < 20; i++) {
        const struct h2_response *r =
            h2_ask(&c, "POST", SZ_S("/authz/check"), KEY, fields, 1, sz_cstr(CHECK("alice", "viewer", "roadmap")));
        expect_h2_answer(r, 200, "", "check");
        cr_expect(strstr(r->body.p, "\"allowed\":true") != NULL);
        r = h2_ask(&c, "POST", SZ_S("/access/v1/evaluations"), KEY, fields, 1,
                   sz_cstr("{\"evaluations\":[" ALICE "," BOB "," ALICE "," BOB "," ALICE "," BOB "," ALICE "," BOB
                           "," ALICE "," BOB "]}"));
        expect_h2_answer(r, 200, "", "evaluations");
        cr_expect(strstr(r->body.p, "\"decision\":false}]}") != NULL, "%s", r->body.p);
    }
    h2_close(&c);
}

/* Keys change with a reload; the listener does not. */
Test(api, keys_are_changed_by_a_reload, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_expect_eq(http1_ask(g.port, "POST", "/authz/check", KEY, JSON, CHECK("alice", "viewer", "roadmap"), NULL), 200);
    scratch_write("keys", SZ_S("a-new-key-of-some-length\n"));
    cr_assert(gateway_reload(&g));
    cr_expect_eq(http1_ask(g.port, "POST", "/authz/check", KEY, JSON, CHECK("alice", "viewer", "roadmap"), NULL), 401);
    cr_expect_eq(http1_ask(g.port, "POST", "/authz/check", "a-new-key-of-some-length", JSON,
                           CHECK("alice", "viewer", "roadmap"), NULL),
                 200);
}

/* ---- a source that cannot be asked ---------------------------------------------------------------------------------
 */

#define REMOTE                                                                                                   \
    "listen:\n  - {address: \"127.0.0.1:{port}\", mode: api, keys_file: \"{dir}/keys\"}\n"                       \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                                                  \
    "workers: 1\n"                                                                                               \
    "limits: {request_timeout: 2s}\n"                                                                            \
    "fga:\n  mode: remote\n  api_url: \"http://127.0.0.1:{upstream}\"\n  store_id: 01H0H015178Y2V4CX10C2KGHF4\n" \
    "  model_id: 01H0H015178Y2V4CX10C2KGHF5\n"

/* Could not ask: never `false`, in none of the three forms. */
Test(api, what_could_not_be_asked_is_503, .timeout = 60)
{
    static const struct {
        const char *path, *body;
    } rows[] = {
        {"/authz/check", CHECK("alice", "viewer", "roadmap")},
        {"/access/v1/evaluation", ALICE},
        {"/access/v1/evaluations", "{\"evaluations\":[" ALICE "," BOB "]}"},
        {"/access/v1/evaluations",
         "{\"options\":{\"evaluations_semantic\":\"deny_on_first_deny\"},\"evaluations\":[" ALICE "," BOB "]}"},
        {"/access/v1/evaluations",
         "{\"options\":{\"evaluations_semantic\":\"permit_on_first_permit\"},\"evaluations\":[" ALICE "," BOB "]}"},
    };
    scratch_write("keys", SZ_S(KEY "\n"));
    cr_assert(gateway_start(&g, REMOTE, 1));
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct http1_response r = {0};
        http1_ask(g.port, "POST", rows[i].path, KEY, JSON, rows[i].body, &r);
        expect_answer(&r, 503, "authz_unavailable", rows[i].body);
        cr_expect(http1_field_count(&r, "retry-after") == 1);
        cr_expect(r.body.p == NULL || strstr(r.body.p, "false") == NULL, "%s", r.body.p);
        http1_response_fini(&r);
    }
    stop_gateway(&g);
    scratch_remove();
}

/* A store that hangs: the deadline answers; a client that leaves takes its questions along. */
Test(api, a_store_that_hangs_and_clients_that_leave, .timeout = 60)
{
    static const struct upstream_script hang = {.fault_at = UPSTREAM_AT_ANSWER, .fault = UPSTREAM_HANG};
    struct upstream *store = upstream_start(NULL);
    struct http1_response r = {0};
    cr_assert_not_null(store);
    upstream_play(store, &hang);
    scratch_write("keys", SZ_S(KEY "\n"));
    cr_assert(gateway_start(&g, REMOTE, upstream_port(store)));
    for (int i = 0; i < 10; i++) {
        static const char several[] = "{\"evaluations\":[" ALICE "," BOB "," ALICE "]}";
        struct http1 c;
        cr_assert(http1_open(&c, g.port));
        http1_printf(&c,
                     "POST /access/v1/evaluations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " KEY "\r\n" JSON
                     "Content-Length: %zu\r\n\r\n%s",
                     sizeof(several) - 1, several);
        if (i == 0)
            cr_expect(upstream_wait(store, 0, SZ_MS(200)));
        http1_close(&c);
    }
    http1_ask(g.port, "POST", "/authz/check", KEY, JSON, CHECK("alice", "viewer", "roadmap"), &r);
    expect_answer(&r, 503, "authz_unavailable", "hangs");
    http1_response_fini(&r);
    stop_gateway(&g);
    upstream_stop(&store);
    scratch_remove();
}

/* TLS as on any listener; and the journal says who asked what. */
Test(api, tls_and_the_journal, .timeout = 60)
{
    struct http1_response r = {0};
    struct http1 c;
    char *log;
    size_t n;
    static struct cert ca, leaf;
    cert_ca(&ca, "ca");
    cert_leaf(&leaf, "a.example", &ca, "DNS:a.example", 90);
    scratch_write("keys", SZ_S(KEY " billing\n"));
    cr_assert(gateway_start(&g,
                            "listen:\n  - {address: \"127.0.0.1:{port}\", mode: api, keys_file: \"{dir}/keys\", tls: "
                            "{certificate: \"{dir}/a.example.pem\", key: \"{dir}/a.example.key\"}}\n"
                            "admin: {address: \"127.0.0.1:{admin}\"}\n"
                            "audit: {path: \"{dir}/audit\", durability: none}\n"
                            "workers: 1\n" FGA,
                            9));
    cr_assert(http1_open_tls(&c, g.port, &(struct wire_tls){.ca = ca.file, .name = "a.example"}));
    http1_printf(&c,
                 "POST /authz/check HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer " KEY "\r\n" JSON
                 "Content-Length: %zu\r\n\r\n%s",
                 strlen(CHECK("bob", "viewer", "roadmap")), CHECK("bob", "viewer", "roadmap"));
    cr_expect_eq(http1_read(&c, "POST", SZ_SEC(10), &r), 0);
    expect_answer(&r, 200, "", "tls");
    http1_close(&c);
    http1_response_fini(&r);
    log = gateway_admin(&g, "/audit?limit=10");
    n = strlen(log);
    cr_expect(n > 0 && strstr(log, "document:roadmap#viewer@user:bob") != NULL && strstr(log, "billing") != NULL, "%s",
              log);
    cr_expect(strstr(log, KEY) == NULL);
    free(log);
    stop_gateway(&g);
    scratch_remove();
}
