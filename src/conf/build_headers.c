/*
 * Headers that a route sets, and those that it removes besides the usual ones.  A name that has a
 * meaning for the connection, or that is ours, cannot be set: it would end in a desync or a
 * forged identity.
 */
#include "conf/build.h"

static bool name_ok(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    return s.n > 0 && s.n <= 64;
}

/* NULL: may be set. */
static const char *refused(struct sz_slice name)
{
    static const char *const connection[] = {"connection",
                                             "content-length",
                                             "expect",
                                             "host",
                                             "keep-alive",
                                             "te",
                                             "proxy-authorization",
                                             "trailer",
                                             "upgrade",
                                             "transfer-encoding",
                                             "http2-settings",
                                             "proxy-connection",
                                             "proxy-authenticate",
                                             "date"};
    static const char *const ours[] = {"x-request-id", "traceparent", "tracestate", "forwarded", "via"};
    for (size_t i = 0; i < SZ_COUNT(connection); i++) {
        if (sz_eq(name, sz_cstr(connection[i])))
            return "it belongs to the connection";
    }
    for (size_t i = 0; i < SZ_COUNT(ours); i++) {
        if (sz_eq(name, sz_cstr(ours[i])))
            return "the gateway writes it";
    }
    if (sz_starts_with(name, SZ_S("x-subzero-")) || sz_starts_with(name, SZ_S("x-forwarded-")))
        return "the gateway writes it";
    return NULL;
}

static void set_one(struct sz_builder *b, const struct sz_raw_entry *entry, const struct sz_pattern *pattern,
                    struct sz_conf_route *route, struct sz_conf_header *out)
{
    const struct sz_node where = {.line = entry->head.node->line,
                                  .column = entry->head.node->column,
                                  .expanded = entry->expanded}; /* the key's place, the value's origin */
    const struct sz_node *at = &where;
    out->name = sz_pool_lower(b->l->pool, entry->head.name);
    const char *why = refused(out->name);
    if (!name_ok(out->name))
        sz_mistake(b->l, at, "header name '%.*s': letters, digits and '-' alone", SZ_FMT(entry->head.name));
    else if (why != NULL)
        sz_mistake(b->l, at, "header '%.*s' cannot be set: %s", SZ_FMT(entry->head.name), why);
    if (sz_eq(entry->values.v[0], SZ_S("***")))
        sz_mistake(b->l, at, "'***' stands where a dump keeps a value back; write the value");
    if (!sz_template_parse(b, at, pattern, entry->values.v[0], &out->value))
        return;
    for (size_t i = 0; i < out->value.n; i++) {
        if (route->is_public && (out->value.parts[i].var == SZ_VAR_CLAIM || out->value.parts[i].var == SZ_VAR_ISSUER))
            sz_mistake(b->l, at, "{claims...} and {issuer} on a public route: nobody is known there; add 'auth'");
    }
    if (route->issuers_n > 1 && !route->shared_subjects && sz_template_uses(&out->value, SZ_VAR_CLAIM, SZ_SLOT_SUB) &&
        !sz_template_uses(&out->value, SZ_VAR_ISSUER, 0))
        sz_mistake(b->l, at,
                   "several issuers, and the same 'sub' of two is two people: put {issuer} into the value, or say "
                   "'shared_subjects: true'");
}

void sz_build_headers(struct sz_builder *b, const struct sz_raw_route *raw, const struct sz_pattern *pattern,
                      struct sz_conf_route *out)
{
    const struct sz_raw_entry *entries = raw->set_headers.v;
    struct sz_conf_header *v = sz_pool_zalloc(b->l->pool, raw->set_headers.n * sizeof(*v));
    for (size_t i = 0; i < raw->set_headers.n; i++) {
        set_one(b, &entries[i], pattern, out, &v[i]);
        for (size_t k = 0; k < i; k++) {
            if (sz_eq(v[i].name, v[k].name))
                sz_mistake(b->l, entries[i].head.node, "header '%.*s' is set twice; names differ in more than case",
                           SZ_FMT(entries[i].head.name));
        }
    }
    out->headers = v;
    out->headers_n = raw->set_headers.n;
    struct sz_slice *strip = sz_pool_alloc(b->l->pool, raw->strip_request_headers.n * sizeof(*strip));
    for (size_t i = 0; i < raw->strip_request_headers.n; i++) {
        strip[i] = sz_pool_lower(b->l->pool, raw->strip_request_headers.v[i]);
        if (!name_ok(strip[i]))
            sz_mistake(b->l, sz_node_item(raw->head.node, "strip_request_headers", i),
                       "header name '%.*s': letters, digits and '-' alone", SZ_FMT(raw->strip_request_headers.v[i]));
    }
    out->strip_headers = (struct sz_strings){strip, raw->strip_request_headers.n};
}
