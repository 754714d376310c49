/*
 * authz_header.jsonl through the running gateway, over HTTP/1 and HTTP/2, on a guarded route.  Each vector twice: as it
 * is, where an accepted header ends at its token, which is no JWT; and with its sample token replaced by a good one,
 * where an accepted header gets in and no other does.
 */
#include <stdlib.h>

#include "conformance/vectors.h"
#include "integration/harness.h"

#define SAMPLE "mF_9.B5f-4.1JqM" /* the token of RFC 6750's examples, which the vectors use */

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n"
                           "limits: {request_head: 96KiB}\n" /* so that the longest token is refused for what it is */
                           "log: {access: off}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML
                           "routes: [{id: all, match: {path: \"/*\"}, auth: {issuers: [test]}, upstream: up}]\n";

static struct gateway gateway;
static struct upstream *up;
static char *token;

struct outcome {
    int status;
    char reason[64];
};
typedef struct outcome ask_fn(const struct sz_slice *values, size_t n);

static struct outcome ask_http1(const struct sz_slice *values, size_t n)
{
    struct outcome o = {0};
    struct http1_response r = {0};
    struct sz_buf request = {0};

    sz_buf_printf(&request, "GET /x HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n");
    for (size_t i = 0; i < n; i++) {
        sz_buf_printf(&request, "Authorization: ");
        sz_buf_adds(&request, values[i]);
        sz_buf_printf(&request, "\r\n");
    }
    sz_buf_printf(&request, "\r\n");
    o.status = http1_exchange(gateway.port, sz_buf_slice(&request), &r);
    http1_field(&r, "x-subzero-reason", o.reason, sizeof(o.reason));
    http1_response_fini(&r);
    sz_buf_fini(&request);
    return o;
}

static struct outcome ask_http2(const struct sz_slice *values, size_t n)
{
    struct outcome o = {0};
    struct h2_field fields[8];
    struct http2 c;

    SZ_ASSERT(n <= SZ_COUNT(fields));
    for (size_t i = 0; i < n; i++)
        fields[i] = (struct h2_field){SZ_S("authorization"), values[i]};
    if (h2_open(&c, gateway.port)) {
        const struct h2_response *r = h2_ask(&c, "GET", SZ_S("/x"), NULL, fields, n, SZ_NONE);
        o.status = r == NULL ? 0 : r->status;
        if (r != NULL)
            h2_response_field(r, "x-subzero-reason", o.reason, sizeof(o.reason));
    }
    h2_close(&c);
    return o;
}

static ask_fn *ask;

/* The header field with the sample token replaced; unchanged where it has none. */
static struct sz_slice with_good_token(struct sz_slice value, struct sz_pool *pool, bool *replaced)
{
    const char *at = value.n == 0 ? NULL : memmem(value.p, value.n, SAMPLE, strlen(SAMPLE));
    if (at == NULL)
        return value;
    *replaced = true;
    size_t before = (size_t)(at - value.p);
    struct sz_slice after = sz_from(value, before + strlen(SAMPLE));
    return sz_pool_printf(pool, "%.*s%s%.*s", (int)before, value.p, token, SZ_FMT(after));
}

static bool authz_passes(json_t *v, struct sz_pool *pool, struct sz_text *got)
{
    struct sz_slice values[8], good[8];
    bool either, replaced = false, accept = vector_expects_accept(v, &either);
    size_t i, n = 0;
    json_t *item;

    json_array_foreach(json_object_get(v, "authorization_b64"), i, item)
    {
        cr_assert(n < SZ_COUNT(values));
        values[n] = vector_b64(item, pool);
        good[n] = with_good_token(values[n], pool, &replaced);
        n++;
    }
    struct outcome as_is = ask(values, n), better = ask(good, n);
    size_t arrived = upstream_count(up);
    cr_assert(upstream_wait(up, arrived, SZ_SEC(5)));
    upstream_clear(up);
    sz_text_set(got, "%d %s, with a good token %d %s, %zu arrived", as_is.status, as_is.reason, better.status,
                better.reason, arrived);
    if (!accept)
        return (as_is.status == 400 || as_is.status == 401) && (better.status == 400 || better.status == 401) &&
               arrived == 0;
    return as_is.status == 401 && strcmp(as_is.reason, "malformed_token") == 0 &&
           (replaced ? better.status == 200 && arrived == 1 : arrived == 0);
}

Test(gateway, authz_header, .timeout = 60)
{
    struct issuer issuer;

    if (!vectors_present("authz_header"))
        cr_skip_test("no authz_header vectors in $SUBZERO_CONFORMANCE");
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 600, NULL);
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
    ask = ask_http1;
    vectors_run_as("authz_header over HTTP/1", "authz_header", authz_passes);
    ask = ask_http2;
    vectors_run_as("authz_header over HTTP/2", "authz_header", authz_passes);
    stop_gateway(&gateway);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(token);
    scratch_remove();
}
