/* Traces: where they go, which are recorded, and the fields that a collector wants to see. */
#include "conf/build.h"
#include "subzero/trace_context.h"

enum { HEADERS_MAX = 15 }; /* beside content-type */

/* ---- sample -------------------------------------------------------------------------------------------------------
 */

/* "0.05": at most 12 digits behind the point.  Integers alone: the same everywhere. */
static bool parse_share(struct sz_slice s, uint64_t *share)
{
    uint64_t digits = 0, scale = 1;
    if (s.n < 3 || s.n > 14 || s.p[0] != '0' || s.p[1] != '.')
        return false;
    for (size_t i = 2; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        digits = digits * 10 + (uint64_t)(s.p[i] - '0');
        scale *= 10;
    }
    *share = (uint64_t)((unsigned __int128)digits * SZ_TRACE_ALL / scale);
    return true;
}

static bool parse_sample(struct sz_slice s, uint64_t *share)
{
    uint64_t n;
    *share = SZ_TRACE_ALL;
    if (sz_eq(s, SZ_S("all")) || sz_eq(s, SZ_S("1")) || sz_eq(s, SZ_S("1.0")))
        return true;
    *share = 0;
    if (sz_eq(s, SZ_S("none")) || sz_eq(s, SZ_S("0")))
        return true;
    if (sz_starts_with(s, SZ_S("1/")) && sz_parse_u64(sz_from(s, 2), 1000000000, &n) == 0 && n > 0) {
        *share = SZ_TRACE_ALL / n;
        return true;
    }
    return parse_share(s, share);
}

/* ---- headers_file -------------------------------------------------------------------------------------------------
 */

static bool is_token(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return s.n > 0;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* False: what is there cannot be a field's value. */
static bool decode(struct sz_builder *b, struct sz_slice s, struct sz_slice *out)
{
    char *text = sz_pool_alloc(b->l->pool, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%') {
            if (i + 2 >= s.n || hex(s.p[i + 1]) < 0 || hex(s.p[i + 2]) < 0)
                return false;
            c = (char)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2]));
            i += 2;
        }
        if (c < ' ' || c > '~')
            return false;
        text[n++] = c;
    }
    *out = sz_slice(text, n);
    sz_secret_note(b->l, *out);
    return n > 0;
}

/* Ours, or the framing's: a collector's key is none of these. */
static bool is_reserved(struct sz_slice name)
{
    static const char *const names[] = {"content-type", "content-length", "content-encoding",
                                        "host",         "connection",     "transfer-encoding"};
    for (size_t i = 0; i < SZ_COUNT(names); i++) {
        if (sz_ieq(name, sz_cstr(names[i])))
            return true;
    }
    return false;
}

static bool add_header(struct sz_builder *b, struct sz_slice text, struct sz_conf_pair *pairs, size_t *n)
{
    ptrdiff_t equals = sz_find_byte(text, '=');
    struct sz_slice name = sz_trim(sz_sub(text, 0, equals > 0 ? (size_t)equals : 0)), value;
    if (*n == HEADERS_MAX || !is_token(name) || is_reserved(name) ||
        !decode(b, sz_trim(sz_from(text, (size_t)equals + 1)), &value))
        return false;
    pairs[(*n)++] = (struct sz_conf_pair){name, value};
    return true;
}

/* Messages name the entry's number, never what stands in it. */
static void headers(struct sz_builder *b, const struct sz_raw_tracing *raw, struct sz_conf_tracing *out)
{
    struct sz_conf_pair *pairs = sz_pool_zalloc(b->l->pool, HEADERS_MAX * sizeof(*pairs));
    struct sz_slice rest = raw->headers.secret.value, line, entry;
    unsigned number = 0;
    while (rest.n > 0 && sz_split(&rest, '\n', &line)) {
        while (line.n > 0 && sz_split(&line, ',', &entry)) {
            entry = sz_trim(entry);
            number += entry.n > 0;
            if (entry.n > 0 && !add_header(b, entry, pairs, &out->headers_n)) {
                sz_mistake(
                    b->l, sz_node_key(raw->head.node, "headers_file"),
                    "'headers_file' entry %u: write name=value, the value percent-encoded, at most %d of them, and "
                    "none that HTTP itself needs",
                    number, HEADERS_MAX);
                return;
            }
        }
    }
    out->headers = pairs;
}

/* ---- the section ---------------------------------------------------------------------------------------------------
 */

static void endpoint(struct sz_builder *b, const struct sz_raw_tracing *raw, struct sz_conf_tracing *out)
{
    const struct sz_node *at = sz_node_get(raw->head.node, "endpoint");
    struct sz_slice url = raw->endpoint;
    if (!sz_provider_url(b, at, "endpoint", url, raw->insecure_http))
        return;
    struct sz_slice rest = sz_from(url, sz_starts_with(url, SZ_S("https://")) ? 8 : 7);
    ptrdiff_t slash = sz_find_byte(rest, '/');
    if (slash < 0 || (size_t)slash + 1 == rest.n)
        url = sz_pool_printf(b->l->pool, "%.*s/v1/traces", SZ_FMT(sz_sub(url, 0, url.n - (slash >= 0))));
    out->endpoint = url;
    out->on = true;
}

static void resource(struct sz_builder *b, const struct sz_raw_tracing *raw, struct sz_conf_tracing *out)
{
    const struct sz_raw_entry *entries = raw->resource.v;
    struct sz_conf_pair *pairs = sz_pool_zalloc(b->l->pool, (raw->resource.n + 1) * sizeof(*pairs));
    for (size_t i = 0; i < raw->resource.n; i++) {
        if (sz_eq(entries[i].head.name, SZ_S("service.name")))
            sz_mistake(b->l, sz_node_key(raw->head.node, "resource"),
                       "'resource' holds service.name; say 'service_name'");
        pairs[i] = (struct sz_conf_pair){entries[i].head.name, entries[i].values.v[0]};
    }
    out->resource = pairs;
    out->resource_n = raw->resource.n;
}

/* An option that would do nothing is a mistake: whoever wrote it relies on it. */
static void needs_endpoint(struct sz_builder *b, const struct sz_raw_tracing *raw, const struct sz_conf_tracing *out)
{
    const struct {
        const char *key;
        bool set;
    } keys[] = {
        {"sample", out->sample != SZ_TRACE_ALL},
        {"context", out->trusted_alone},
        {"paths", out->paths},
        {"resource", raw->resource.n > 0},
        {"headers_file", raw->headers.secret.set},
        {"ca_file", raw->ca_file.p != NULL},
    };
    for (size_t i = 0; i < SZ_COUNT(keys); i++) {
        if (keys[i].set)
            sz_mistake(b->l, sz_node_key(raw->head.node, keys[i].key), "'%s' without 'endpoint': nothing is traced",
                       keys[i].key);
    }
}

void sz_build_tracing(struct sz_builder *b)
{
    const struct sz_raw_tracing *raw = &b->raw->tracing;
    struct sz_conf_tracing *out = &b->conf->tracing;
    *out = (struct sz_conf_tracing){
        .insecure_http = raw->insecure_http,
        .ca_file = raw->ca_file,
        .service_name = raw->service_name,
        .parent_based = raw->parent_based,
        .trusted_alone = raw->context == 1,
        .paths = raw->paths,
        .queue = raw->queue,
        .timeout = raw->timeout,
        .breaker = raw->breaker.out,
    };
    if (!parse_sample(raw->sample, &out->sample))
        sz_mistake(b->l, sz_node_key(raw->head.node, "sample"),
                   "'sample' is '%.*s'; write all, none, 1/N or a share between 0 and 1 such as 0.05",
                   SZ_FMT(raw->sample));
    if (raw->endpoint.p == NULL) {
        needs_endpoint(b, raw, out);
        return;
    }
    endpoint(b, raw, out);
    headers(b, raw, out);
    resource(b, raw, out);
}
