/*
 * A route's `auth`: issuers by name, scopes as bits of the vocabulary, claim rules as slots.
 * What is named here must exist; nothing named means nothing checked, so empty lists never get here.
 */
#include "conf/build.h"
#include "subzero/identity.h"

static int issuer_index(const struct sz_builder *b, struct sz_slice name)
{
    for (size_t i = 0; i < b->conf->issuers_n; i++) {
        if (sz_eq(b->conf->issuers[i].name, name))
            return (int)i;
    }
    return -1;
}

static void issuers(struct sz_builder *b, const struct sz_raw_auth *raw, struct sz_conf_route *out)
{
    uint16_t *v = sz_pool_alloc(b->l->pool, raw->issuers.n * sizeof(*v));
    for (size_t i = 0; i < raw->issuers.n; i++) {
        const char *names[256];
        int index = issuer_index(b, raw->issuers.v[i]);
        if (index >= 0) {
            v[out->issuers_n++] = (uint16_t)index;
            continue;
        }
        size_t n = b->conf->issuers_n < SZ_COUNT(names) ? b->conf->issuers_n : SZ_COUNT(names);
        for (size_t k = 0; k < n; k++)
            names[k] = b->conf->issuers[k].name.p;
        const char *meant = sz_suggest(raw->issuers.v[i], names, n);
        sz_mistake(b->l, sz_node_item(raw->head.node, "issuers", i), "no issuer '%.*s'; %s%s%s",
                   SZ_FMT(raw->issuers.v[i]), meant ? "did you mean '" : "add it to 'issuers'", meant ? meant : "",
                   meant ? "'?" : "");
    }
    out->issuers = v;
}

/* RFC 6749 section 3.3: %x21 / %x23-5B / %x5D-7E. */
static bool scope_ok(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x21 || c > 0x7e || c == '"' || c == '\\')
            return false;
    }
    return s.n > 0;
}

static void scopes(struct sz_builder *b, const struct sz_raw_auth *raw, const char *key, struct sz_strings names,
                   uint64_t bits[4])
{
    for (size_t i = 0; i < names.n; i++) {
        const struct sz_node *at = sz_node_item(raw->head.node, key, i);
        if (!scope_ok(names.v[i])) {
            sz_mistake(b->l, at, "'%.*s' is no scope: no blanks, quotes or backslashes (RFC 6749); one list entry each",
                       SZ_FMT(names.v[i]));
            continue;
        }
        int bit = sz_words_add(b, &b->scopes, names.v[i]);
        if (bit < 0)
            sz_mistake(b->l, at, "more than %d different scopes are mentioned; '%.*s' is one too many", SZ_SCOPES_MAX,
                       SZ_FMT(names.v[i]));
        else
            bits[bit / 64] |= 1ull << (bit % 64);
    }
}

static void scope_names(struct sz_builder *b, const struct sz_raw_auth *raw, struct sz_conf_route *out)
{
    struct sz_slice *v = sz_pool_alloc(b->l->pool, (raw->scopes.n + raw->any_scope.n) * sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < raw->scopes.n; i++)
        v[n++] = raw->scopes.v[i];
    for (size_t i = 0; i < raw->any_scope.n; i++)
        v[n++] = raw->any_scope.v[i];
    out->scope_names = (struct sz_strings){v, n};
}

static void claims(struct sz_builder *b, const struct sz_raw_auth *raw, struct sz_conf_route *out)
{
    const struct sz_raw_entry *entries = raw->claims.v;
    struct sz_conf_claim_rule *v = sz_pool_zalloc(b->l->pool, raw->claims.n * sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < raw->claims.n; i++) {
        int slot = sz_claim_slot(b, entries[i].head.node, entries[i].head.name);
        if (slot >= 0)
            v[n++] = (struct sz_conf_claim_rule){(unsigned)slot, entries[i].head.name, entries[i].values};
    }
    out->claims = v;
    out->claims_n = n;
}

/* An issuer with several audiences serves several APIs: each route says which one it is. */
static void audiences(struct sz_builder *b, const struct sz_raw_auth *raw, struct sz_conf_route *out)
{
    out->audiences = raw->audiences;
    for (size_t k = 0; k < out->issuers_n; k++) {
        const struct sz_conf_issuer *issuer = &b->conf->issuers[out->issuers[k]];
        if (raw->audiences.n == 0 && issuer->audiences.n > 1)
            sz_mistake(b->l, raw->head.node,
                       "issuer '%.*s' has several audiences; name those of this route in 'audiences'",
                       SZ_FMT(issuer->name));
        if (raw->audiences.n > 0 && issuer->any_audience)
            sz_mistake(b->l, sz_node_key(raw->head.node, "audiences"),
                       "issuer '%.*s' does not check audiences ([\"*\"]); list them there to use 'audiences' here",
                       SZ_FMT(issuer->name));
        for (size_t i = 0; i < raw->audiences.n && !issuer->any_audience; i++) {
            if (!sz_strings_have(&issuer->audiences, raw->audiences.v[i]))
                sz_mistake(b->l, sz_node_item(raw->head.node, "audiences", i),
                           "issuer '%.*s' does not accept audience '%.*s'; add it there", SZ_FMT(issuer->name),
                           SZ_FMT(raw->audiences.v[i]));
        }
    }
}

static bool token_name_ok(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
              c == '.'))
            return false;
    }
    return s.n > 0;
}

static void sources(struct sz_builder *b, const struct sz_raw_auth *raw, struct sz_conf_route *out)
{
    if (raw->cookie.p != NULL)
        out->token_from |= SZ_FROM_COOKIE;
    if (raw->query.p != NULL)
        out->token_from |= SZ_FROM_QUERY;
    out->cookie_name = raw->cookie;
    out->query_name = raw->query;
    if (raw->cookie.p != NULL && !token_name_ok(raw->cookie))
        sz_mistake(b->l, sz_node_get(raw->head.node, "cookie"),
                   "a cookie's name has letters, digits, '.', '_' and '-'");
    if (raw->query.p != NULL && !token_name_ok(raw->query))
        sz_mistake(b->l, sz_node_get(raw->head.node, "query"),
                   "a parameter's name has letters, digits, '.', '_' and '-'");
}

void sz_build_auth(struct sz_builder *b, const struct sz_raw_route *route, struct sz_conf_route *out)
{
    const struct sz_raw_auth *raw = &route->auth;
    if (raw->head.node == NULL)
        return;
    issuers(b, raw, out);
    scopes(b, raw, "scopes", raw->scopes, out->scopes);
    scopes(b, raw, "any_scope", raw->any_scope, out->any_scope);
    out->has_any_scope = raw->any_scope.n > 0;
    scope_names(b, raw, out);
    claims(b, raw, out);
    audiences(b, raw, out);
    sources(b, raw, out);
    sz_check_opaque(b, raw, out);
}
