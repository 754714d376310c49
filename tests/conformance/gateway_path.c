/*
 * path.jsonl through the running gateway, over HTTP/1 and HTTP/2: what arrives at the upstream is the canonical form
 * that the routes were matched against; and under a public prefix, a guarded one and nothing else, no spelling gets a
 * target served that its class forbids.
 */
#include <stdlib.h>

#include "conformance/vectors.h"
#include "integration/harness.h"

#define HEAD                                      \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n" \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"   \
    "workers: 1\n"                                \
    "log: {access: off}\n"                        \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"

static const char open_yaml[] = HEAD "routes: [{id: all, match: {path: \"/*\"}, public: true, upstream: up}]\n";
static const char guarded_yaml[] = HEAD ISSUER_YAML
    "routes:\n"
    "  - {id: public, match: {path: \"/public/*\"}, public: true, upstream: up}\n"
    "  - {id: admin, match: {path: \"/admin/*\"}, auth: {issuers: [test], scopes: [admin]}, upstream: up}\n";

static struct gateway gateway;
static struct upstream *up;
static struct issuer issuer;
static char *admin_token, *user_token;

/* ---- one request, either way ------------------------------------------------------------------------------------- */

struct target {
    struct sz_slice authority, path; /* of an absolute-form; else "gateway.test" and all of it */
    bool absolute;
};

static struct target split(struct sz_slice target)
{
    struct target t = {SZ_S("gateway.test"), target, false};
    if (!sz_starts_with(target, SZ_S("http://")))
        return t;
    struct sz_slice rest = sz_from(target, 7);
    size_t end = 0;
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    return (struct target){sz_sub(rest, 0, end), sz_from(rest, end), true};
}

/* A status; 0: no answer, which is a refusal too. */
typedef int ask_fn(struct sz_slice target, const char *token, struct sz_pool *pool);

static int ask_http1(struct sz_slice target, const char *token, struct sz_pool *pool)
{
    return http1_exchange(gateway.port,
                          sz_pool_printf(pool,
                                         "GET %.*s HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n%s%s%s\r\n",
                                         SZ_FMT(target), token != NULL ? "Authorization: Bearer " : "",
                                         token != NULL ? token : "", token != NULL ? "\r\n" : ""),
                          NULL);
}

/* HTTP/2 has no absolute-form: its parts are pseudo-header fields of their own, and an empty path is "/". */
static int ask_http2(struct sz_slice target, const char *token, struct sz_pool *pool)
{
    struct target t = split(target);
    struct h2_field fields[5] = {H2_FIELD(":method", "GET"), H2_FIELD(":scheme", "http")};
    struct http2 c;
    int status = 0;

    if (t.absolute && (t.path.n == 0 || t.path.p[0] == '?'))
        t.path = sz_pool_printf(pool, "/%.*s", SZ_FMT(t.path));
    fields[2] = (struct h2_field){SZ_S(":authority"), t.authority};
    fields[3] = (struct h2_field){SZ_S(":path"), t.path};
    if (token != NULL)
        fields[4] = (struct h2_field){SZ_S("authorization"), sz_pool_printf(pool, "Bearer %s", token)};
    if (h2_open(&c, gateway.port)) {
        uint32_t stream = h2_headers(&c, fields, token != NULL ? 5 : 4, H2_END_STREAM);
        const struct h2_response *r = stream == 0 ? NULL : h2_wait(&c, stream, SZ_SEC(10));
        status = r == NULL || !r->ended ? 0 : r->status;
    }
    h2_close(&c);
    return status;
}

static ask_fn *ask;

static void forget(void)
{
    cr_assert(upstream_wait(up, upstream_count(up), SZ_SEC(5)));
    upstream_clear(up);
}

/* ---- what arrives ------------------------------------------------------------------------------------------------ */

static bool in_list(json_t *list, struct sz_slice s)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (sz_eq(s, sz_slice(json_string_value(item), json_string_length(item))))
            return true;
    }
    return false;
}

static bool arrives_canonical(json_t *v, struct sz_pool *pool, struct sz_text *got)
{
    struct sz_slice target = vector_bytes(v, "target_b64", pool), path, query;
    json_t *want = json_object_get(v, "policy_path");
    int status = ask(target, NULL, pool);
    const struct upstream_request *request = upstream_at(up, 0);

    sz_text_set(got, "%d, %zu arrived", status, upstream_count(up));
    if (request == NULL) {
        forget();
        return status != 200 && (json_is_null(want) || json_is_true(json_object_get(v, "reject_ok")));
    }
    struct sz_slice rest = request->target, sent = split(target).path;
    sz_split(&rest, '?', &path);
    query = rest;
    ptrdiff_t mark = sz_find_byte(sent, '?');
    bool same_query = mark < 0 ? query.p == NULL : sz_eq(query, sz_from(sent, (size_t)mark + 1));
    bool ok = status == 200 && upstream_count(up) == 1 && !request->broken && same_query &&
              !in_list(json_object_get(v, "never"), path) &&
              ((json_is_string(want) && sz_eq(path, sz_cstr(json_string_value(want)))) ||
               in_list(json_object_get(v, "also_ok"), path));
    sz_text_add(got, ": '%.*s'", SZ_FMT(request->target));
    forget();
    return ok;
}

/* ---- who gets in ------------------------------------------------------------------------------------------------- */

/* The status and whether it arrived, in one number: 200 means both, anything else neither. */
static int served(struct sz_slice target, const char *token, struct sz_pool *pool)
{
    int status = ask(target, token, pool);
    bool arrived = upstream_count(up) > 0;
    forget();
    return arrived != (status == 200) ? -1 : status;
}

static bool class_is_kept(json_t *v, struct sz_pool *pool, struct sz_text *got)
{
    struct sz_slice target = vector_bytes(v, "target_b64", pool);
    const char *class = json_string_value(json_object_get(v, "policy_class"));
    bool may_refuse = json_is_true(json_object_get(v, "reject_ok"));
    int anonymous = served(target, NULL, pool), user = served(target, user_token, pool),
        admin = served(target, admin_token, pool);

    sz_text_set(got, "%d anonymous, %d user, %d admin", anonymous, user, admin);
    bool refused = anonymous == user && user == admin && (anonymous == 400 || anonymous == 0);
    if (class == NULL || (may_refuse && refused))
        return refused;
    if (strcmp(class, "public") == 0)
        return anonymous == 200 && user == 200 && admin == 200;
    if (strcmp(class, "admin") == 0)
        return anonymous == 401 && user == 403 && admin == 200;
    return anonymous == 404 && user == 404 && admin == 404;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void run(const char *yaml, const char *what, vector_fn *passes)
{
    char label[96];

    if (!vectors_present("path"))
        cr_skip_test("no path vectors in $SUBZERO_CONFORMANCE");
    issuer_init(&issuer);
    user_token = issuer_token(&issuer, "user", 600, NULL);
    admin_token = issuer_token(&issuer, "admin", 600, "\"scope\":\"admin\"");
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
    snprintf(label, sizeof(label), "path, %s, over HTTP/1", what);
    ask = ask_http1;
    vectors_run_as(label, "path", passes);
    snprintf(label, sizeof(label), "path, %s, over HTTP/2", what);
    ask = ask_http2;
    vectors_run_as(label, "path", passes);
    stop_gateway(&gateway);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(user_token);
    free(admin_token);
    scratch_remove();
}

Test(gateway, path_arrives_as_it_was_judged, .timeout = 120)
{
    run(open_yaml, "what arrives", arrives_canonical);
}

Test(gateway, path_keeps_its_class, .timeout = 120)
{
    run(guarded_yaml, "who gets in", class_is_kept);
}
