/* One table; a part without a header name is taken from the call itself. */
#include "edge/dialect.h"

#include <errno.h>

#include "edge/head_check.h"
#include "subzero/scan.h"

struct dialect {
    const char *method, *target, *host, *proto; /* NULL: the call's own; proto NULL: not said */
};

static const struct dialect dialects[] = {
    [SZ_DIALECT_NGINX] = {"x-original-method", "x-original-uri", NULL, NULL},
    [SZ_DIALECT_TRAEFIK] = {"x-forwarded-method", "x-forwarded-uri", "x-forwarded-host", "x-forwarded-proto"},
    [SZ_DIALECT_CADDY] = {"x-forwarded-method", "x-forwarded-uri", "x-forwarded-host", "x-forwarded-proto"},
    [SZ_DIALECT_ENVOY] = {NULL, NULL, NULL, NULL},
    [SZ_DIALECT_HAPROXY] = {"x-original-method", "x-original-uri", "x-original-host", NULL},
};

static const char *const owned[] = {
    "x-original-method", "x-original-uri",     "x-original-url",    "x-original-host",
    "x-forwarded-uri",   "x-forwarded-method", "x-forwarded-proto", "x-forwarded-host",
};

bool sz_dialect_owns(struct sz_slice name)
{
    for (size_t i = 0; i < SZ_COUNT(owned); i++) {
        if (sz_eq(name, sz_cstr(owned[i])))
            return true;
    }
    return false;
}

/* The part's one value, or the call's own. */
static bool take(const struct sz_request *call, const char *header, struct sz_slice own, struct sz_slice *out)
{
    unsigned count = 0;
    *out = header == NULL ? own : sz_headers_get(&call->headers, sz_cstr(header), &count);
    return header == NULL || (count == 1 && out->n > 0);
}

static bool take_proto(const struct sz_request *call, const char *header, bool *https)
{
    struct sz_slice proto;
    *https = false;
    if (header == NULL)
        return true;
    if (!take(call, header, SZ_NONE, &proto))
        return false;
    *https = sz_eq(proto, SZ_S("https")) || sz_eq(proto, SZ_S("wss"));
    return *https || sz_eq(proto, SZ_S("http")) || sz_eq(proto, SZ_S("ws"));
}

static bool is_target(struct sz_slice target, struct sz_slice method)
{
    return sz_scan_target(target) &&
           (target.p[0] == '/' || (sz_eq(target, SZ_S("*")) && sz_eq(method, SZ_S("OPTIONS"))));
}

int sz_dialect_parse(enum sz_dialect dialect, const struct sz_request *call, struct sz_dialect_request *out,
                     const char **why)
{
    SZ_ASSERT(dialect > SZ_DIALECT_NONE && (size_t)dialect < SZ_COUNT(dialects));
    const struct dialect *d = &dialects[dialect];

    *why = NULL;
    if (!take(call, d->method, call->method, &out->method) || !sz_scan_token(out->method) || out->method.n > 32)
        *why = "the header with the client's method is missing, doubled or malformed";
    else if (!take(call, d->target, call->target, &out->target) || !is_target(out->target, out->method))
        *why = "the header with the client's target is missing, doubled or malformed";
    else if (!take(call, d->host, call->authority, &out->authority) || !sz_head_authority(out->authority))
        *why = "the header with the client's host is missing, doubled or malformed";
    else if (!take_proto(call, d->proto, &out->https))
        *why = "the header with the client's scheme is missing, doubled or malformed";
    return *why == NULL ? 0 : -EINVAL;
}
