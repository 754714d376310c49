/*
 * Who this is, for the upstream: X-Subzero-* and what the route sets.  Values come from validated facts
 * alone; a value that cannot be one header line ends the request.
 */
#include "pipeline/header_value.h"
#include "pipeline/stages.h"
#include "pipeline/template.h"

#define HEADER_MAX 4096

/* The scopes that the configuration knows, in its order. */
static struct sz_slice scopes_text(struct sz_txn *txn)
{
    const struct sz_strings *known = &txn->snapshot->conf->vocabulary.scopes;
    size_t room = 0, n = 0;
    for (size_t i = 0; i < known->n; i++) {
        if (sz_identity_has_scope(txn->identity, (unsigned)i))
            room += known->v[i].n + 1;
    }
    char *text = sz_pool_alloc(txn->pool, room + 1);
    for (size_t i = 0; i < known->n; i++) {
        if (!sz_identity_has_scope(txn->identity, (unsigned)i))
            continue;
        if (n > 0)
            text[n++] = ' ';
        memcpy(text + n, known->v[i].p, known->v[i].n);
        n += known->v[i].n;
    }
    return sz_slice(text, n);
}

/* In the order of sz_own_headers. */
static struct sz_slice own_value(struct sz_txn *txn, size_t i)
{
    const struct sz_identity *id = txn->identity;
    if (id == NULL)
        return SZ_NONE;
    switch (i) {
    case 0:
        return sz_identity_text(id, id->subject);
    case 1:
        return sz_identity_text(id, id->client);
    case 2:
        return scopes_text(txn);
    case 3:
        return sz_txn_issuer(txn)->issuer;
    default:
        return sz_identity_text(id, id->tenant);
    }
}

/* False: a control character. */
static bool put(struct sz_txn *txn, struct sz_headers *out, struct sz_slice name, struct sz_slice raw, bool always)
{
    struct sz_slice value;
    if (raw.p == NULL && !always)
        return true;
    if (!sz_header_value(raw, txn->pool, &value))
        return false;
    sz_headers_add(out, txn->pool, name, value);
    return true;
}

static const struct sz_conf_header *route_header(const struct sz_conf_route *route, struct sz_slice name)
{
    for (size_t i = 0; i < route->headers_n; i++) {
        if (sz_eq(route->headers[i].name, name))
            return &route->headers[i];
    }
    return NULL;
}

static enum sz_reason put_route_header(struct sz_txn *txn, const struct sz_conf_header *header, bool always,
                                       struct sz_slice name, struct sz_headers *out)
{
    struct sz_slice raw = SZ_NONE;
    enum sz_render rc = header == NULL ? SZ_RENDER_ABSENT : sz_template_text(txn, &header->value, HEADER_MAX, &raw);
    if (rc == SZ_RENDER_AMBIGUOUS)
        return SZ_REASON_bad_request;
    if (rc == SZ_RENDER_TOO_LONG || !put(txn, out, name, raw, always))
        return SZ_REASON_claim_mismatch;
    return SZ_REASON_allowed;
}

enum sz_reason sz_identity_headers(struct sz_txn *txn, bool all, struct sz_headers *out)
{
    const struct sz_conf_route *route = txn->match.route;
    const struct sz_strings *names = &txn->snapshot->plan->identity;
    for (size_t i = 0; i < SZ_OWN_IDENTITY; i++) {
        if (!put(txn, out, sz_own_headers[i], own_value(txn, i), all))
            return SZ_REASON_claim_mismatch;
    }
    size_t n = all ? names->n - SZ_OWN_IDENTITY : route->headers_n;
    for (size_t i = 0; i < n; i++) {
        struct sz_slice name = all ? names->v[SZ_OWN_IDENTITY + i] : route->headers[i].name;
        enum sz_reason reason = put_route_header(txn, route_header(route, name), all, name, out);
        if (reason != SZ_REASON_allowed)
            return reason;
    }
    return SZ_REASON_allowed;
}
