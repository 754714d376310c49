/*
 * http1.jsonl through the running gateway: each vector's bytes go to a fresh connection, and a recording upstream
 * behind it shows what became of them.  Of a refused stream nothing may arrive from the offending request on; an
 * accepted one must arrive as exactly the listed requests.
 */
#include "integration/harness.h"

#include <errno.h>

#include "conformance/vectors.h"

static struct gateway gateway;
static struct upstream *up;

/* The short request_timeout is what ends the vectors that never become a request. */
static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n"
                           "limits: {request_timeout: 700ms, idle_timeout: 1s}\n"
                           "log: {access: off}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                           "routes: [{id: all, match: {path: \"/*\"}, public: true, upstream: up}]\n";

/* ---- what may arrive of a refused stream
 * ----------------------------------------------------------------------------- */

/* "Name: value" of this name, NULL-terminated behind; counts them. */
static unsigned plain_field(struct sz_slice head, const char *name, struct sz_slice *value)
{
    struct sz_slice line;
    unsigned n = 0;
    while (sz_split(&head, '\n', &line)) {
        ptrdiff_t colon = sz_find_byte(line, ':');
        if (colon > 0 && sz_ieq(sz_sub(line, 0, (size_t)colon), sz_cstr(name))) {
            struct sz_slice rest = sz_from(line, (size_t)colon + 1);
            *value = sz_trim(sz_sub(rest, 0, rest.n - (rest.n > 0)));
            n++;
        }
    }
    return n;
}

/* Only lines of printable ASCII that end in CRLF. */
static bool plain_lines(struct sz_slice head)
{
    for (size_t i = 0; i < head.n; i++) {
        unsigned char c = (unsigned char)head.p[i];
        bool end = c == '\r' && i + 1 < head.n && head.p[i + 1] == '\n';
        if (!(end || (c == '\n' && i > 0 && head.p[i - 1] == '\r') || (c >= 0x20 && c < 0x7f)))
            return false;
    }
    return true;
}

/*
 * Length of the request in front, 0 unless it is whole and leaves nothing to argue about.  What a gateway reads
 * differently from this plain reader is what the vectors are about.
 */
static size_t plain_request(struct sz_slice raw)
{
    const char *end = memmem(raw.p, raw.n, "\r\n\r\n", 4);
    if (end == NULL)
        return 0;
    struct sz_slice head = sz_sub(raw, 0, (size_t)(end - raw.p) + 4), length = SZ_NONE, value;
    bool old = memmem(head.p, head.n, " HTTP/1.0\r\n", 11) != NULL;
    unsigned lengths = plain_field(head, "Content-Length", &length);
    unsigned codings = plain_field(head, "Transfer-Encoding", &value);
    uint64_t body = 0;
    if (!plain_lines(head) || lengths + codings > 1 || (plain_field(head, "Host", &value) != 1 && !old))
        return 0;
    if (codings == 1) { /* without trailers, and with nothing in its data that looks like the last chunk */
        const char *last = memmem(raw.p + head.n, raw.n - head.n, "0\r\n\r\n", 5);
        return last == NULL || old ? 0 : (size_t)(last - raw.p) + 5;
    }
    if (lengths == 1 && sz_parse_u64(length, raw.n, &body) != 0)
        return 0;
    return head.n + body <= raw.n ? head.n + (size_t)body : 0;
}

/* Whole requests before the offending one, which is the last one where nothing follows. */
static size_t requests_before(struct sz_slice raw)
{
    size_t n = 0, length;
    while ((length = plain_request(raw)) > 0) {
        raw = sz_from(raw, length);
        n++;
    }
    return n > 0 && raw.n == 0 ? n - 1 : n;
}

/* ---- one vector -------------------------------------------------------------------------------------------------- */

/* What the upstream sees of a target: absolute-form without scheme and authority. */
static struct sz_slice origin_form(struct sz_slice target)
{
    if (!sz_starts_with(target, SZ_S("http://")))
        return target;
    struct sz_slice rest = sz_from(target, 7);
    ptrdiff_t slash = sz_find_byte(rest, '/');
    return slash < 0 ? SZ_S("/") : sz_from(rest, (size_t)slash);
}

static bool arrived_as(const struct upstream_request *request, json_t *want, struct sz_text *got)
{
    struct sz_slice target = origin_form(sz_cstr(vector_text(want, "target")));
    uint64_t body = (uint64_t)json_integer_value(json_object_get(want, "body_len"));
    if (request != NULL && !request->broken && sz_eq(request->method, sz_cstr(vector_text(want, "method"))) &&
        sz_eq(request->target, target) && request->body_n == body)
        return true;
    if (request == NULL)
        sz_text_add(got, "; %s did not arrive", vector_text(want, "target"));
    else
        sz_text_add(got, "; arrived: %.*s %.*s, %llu bytes%s", SZ_FMT(request->method), SZ_FMT(request->target),
                    (unsigned long long)request->body_n, request->broken ? ", broken" : "");
    return false;
}

static bool forwarded_is(json_t *forward, struct sz_text *got)
{
    size_t i, n = upstream_count(up);
    json_t *want;
    bool same = n == json_array_size(forward);
    if (!same)
        sz_text_add(got, "; %zu requests arrived", n);
    json_array_foreach(forward, i, want)
    {
        same = same && arrived_as(upstream_at(up, i), want, got);
    }
    return same;
}

static bool stripped(json_t *names, struct sz_text *got)
{
    size_t i;
    json_t *name;
    bool ok = true;
    json_array_foreach(names, i, name)
    {
        if (upstream_at(up, 0) != NULL && upstream_field_count(upstream_at(up, 0), json_string_value(name)) > 0) {
            sz_text_add(got, "; %s arrived", json_string_value(name));
            ok = false;
        }
    }
    return ok;
}

/* As many answers as requests were forwarded; a surplus request would be answered too. */
static bool accepted(struct http1 *c, json_t *v, struct sz_text *got)
{
    json_t *forward = json_object_get(v, "forward"), *want;
    struct http1_response r = {0};
    bool ok = true;
    size_t i;
    json_array_foreach(forward, i, want)
    {
        int rc = http1_read(c, vector_text(want, "method"), SZ_SEC(5), &r);
        sz_text_add(got, "%d %s", r.status, rc != 0 ? strerror(-rc) : "");
        ok = ok && rc == 0 && r.status == 200;
    }
    int rc = r.closes ? -EPIPE : http1_read(c, "GET", SZ_MS(20), &r);
    if (rc != -EPIPE && rc != -ETIMEDOUT) {
        sz_text_add(got, "; then %d", r.status);
        ok = false;
    }
    http1_response_fini(&r);
    return forwarded_is(forward, got) && stripped(json_object_get(v, "must_strip"), got) && ok;
}

/* The connection ends; before that at most the whole requests in front are served, then an error is said, or nothing.
 */
static bool refused(struct http1 *c, struct sz_slice raw, struct sz_text *got)
{
    size_t allowed = requests_before(raw), served = 0;
    struct http1_response r = {0};
    int rc;
    bool more = true;
    while (more && (rc = http1_read(c, "GET", SZ_SEC(5), &r)) == 0) {
        sz_text_add(got, "%d ", r.status);
        served += r.status < 400;
        more = r.status < 400;
    }
    /* After the preface the peer speaks HTTP/2: no HTTP/1 response, and no request either. */
    bool closed = rc == -EPIPE || wire_closed_within(&c->wire, SZ_SEC(5));
    http1_response_fini(&r);
    sz_text_add(got, "%s", closed ? "closed" : "stays open");
    if (upstream_count(up) > 0)
        sz_text_add(got, "; %zu requests arrived, %zu allowed", upstream_count(up), allowed);
    return closed && served <= allowed && upstream_count(up) <= allowed;
}

static bool http1_passes(json_t *v, struct sz_pool *pool, struct sz_text *got)
{
    struct sz_slice raw = vector_bytes(v, "raw_b64", pool);
    struct http1 c;
    bool either;

    cr_assert(http1_open(&c, gateway.port));
    (void)http1_send(&c, raw); /* the gateway may hang up first */
    bool ok = vector_expects_accept(v, &either) ? accepted(&c, v, got) : refused(&c, raw, got);
    http1_close(&c);
    cr_assert(upstream_wait(up, upstream_count(up), SZ_SEC(5)));
    upstream_clear(up);
    return ok;
}

Test(gateway, http1, .timeout = 300)
{
    if (!vectors_present("http1"))
        cr_skip_test("no http1 vectors in $SUBZERO_CONFORMANCE");
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
    vectors_run_as("http1 through the gateway", "http1", http1_passes);
    stop_gateway(&gateway);
    upstream_stop(&up);
    scratch_remove();
}
