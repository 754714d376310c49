/*
 * The bounds first: they cost one pass over lengths and keep an expanded header list from being copied anywhere.
 */
#include "edge/h2_check.h"

#include "edge/iovec.h"
#include "subzero/scan.h"

static bool fits(const h2o_req_t *req, const struct sz_head_limits *limits)
{
    size_t bytes = req->input.method.len + req->input.path.len + req->input.authority.len;
    if (req->headers.size > limits->fields)
        return false;
    for (size_t i = 0; i < req->headers.size && bytes <= limits->bytes; i++)
        bytes += req->headers.entries[i].name->len + req->headers.entries[i].value.len + 4;
    return bytes <= limits->bytes;
}

static const char *pseudo(const h2o_req_t *req)
{
    struct sz_slice method = sz_iovec(req->input.method), path = sz_iovec(req->input.path);
    if (!sz_scan_token(method) || method.n > 32)
        return "the method is not a token";
    if (!sz_scan_target(path))
        return "the path is empty or holds a blank or a control character";
    if (path.p[0] != '/' && !(sz_eq(path, SZ_S("*")) && sz_eq(method, SZ_S("OPTIONS"))))
        return "the path is not absolute";
    /* Without :authority h2o puts its own configuration's name there. */
    if (req->hostconf != NULL && req->input.authority.base == req->hostconf->authority.hostport.base)
        return "the authority is missing";
    return sz_head_authority(sz_iovec(req->input.authority)) ? NULL : "the authority is missing or malformed";
}

/* RFC 9113 8.2: lower-case names. */
static bool is_name(struct sz_slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] >= 'A' && name.p[i] <= 'Z')
            return false;
    }
    return sz_scan_token(name);
}

static const char *field(struct sz_slice name, struct sz_slice value, unsigned *authorizations)
{
    if (!is_name(name))
        return "a header name is not a token";
    if (!sz_scan_field_value(value))
        return "a header value holds a control character";
    if (sz_eq(name, SZ_S("authorization")) && ++*authorizations > 1)
        return "Authorization appears twice";
    if (sz_eq(name, SZ_S("connection")) || sz_eq(name, SZ_S("transfer-encoding")) || sz_eq(name, SZ_S("upgrade")))
        return "a header of HTTP/1 connections appears in HTTP/2";
    return NULL;
}

int sz_h2_check(const h2o_req_t *req, const struct sz_head_limits *limits, const char **why)
{
    unsigned authorizations = 0;

    *why = "the request head is too large";
    if (!fits(req, limits))
        return SZ_HEAD_TOO_LARGE;
    *why = pseudo(req);
    for (size_t i = 0; i < req->headers.size && *why == NULL; i++) {
        const h2o_header_t *h = &req->headers.entries[i];
        *why = field(sz_iovec(*h->name), sz_iovec(h->value), &authorizations);
    }
    return *why == NULL ? 0 : SZ_HEAD_BAD;
}
