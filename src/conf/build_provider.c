/*
 * What is asked over the network about an issuer's tokens: where its keys are, who tells about opaque tokens.  Urls are
 * https, and a route never leaves open which provider a token is sent to: it is a credential.
 */
#include "conf/build.h"

static bool loopback(struct sz_slice rest)
{
    size_t n = 0;
    struct sz_addr ip;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != ':' && rest.p[n] != '?' && rest.p[n] != '[')
        n++;
    if (rest.n > 0 && rest.p[0] == '[')
        return sz_starts_with(rest, SZ_S("[::1]"));
    struct sz_slice host = sz_sub(rest, 0, n);
    return sz_ieq(host, SZ_S("localhost")) || (sz_starts_with(host, SZ_S("127.")) && sz_addr_parse(host, &ip) == 0);
}

static bool clean(struct sz_slice rest)
{
    size_t host = 0;
    while (host < rest.n && rest.p[host] != '/' && rest.p[host] != '?')
        host++;
    for (size_t i = 0; i < rest.n; i++) {
        unsigned char c = (unsigned char)rest.p[i];
        if (c <= ' ' || c >= 0x7f || c == '#' || c == '\\' || (c == '@' && i < host))
            return false;
    }
    return host > 0;
}

bool sz_provider_url(struct sz_builder *b, const struct sz_node *at, const char *name, struct sz_slice url,
                     bool insecure_http)
{
    bool tls = sz_starts_with(url, SZ_S("https://")), plain = sz_starts_with(url, SZ_S("http://"));
    struct sz_slice rest = sz_from(url, tls ? 8 : plain ? 7 : url.n);
    if ((!tls && !plain) || !clean(rest))
        sz_mistake(b->l, at, "'%s' is '%.*s'; write a url: https://host/path, without user and fragment", name,
                   SZ_FMT(url));
    else if (plain && !insecure_http && !loopback(rest))
        sz_mistake(b->l, at,
                   "'%s' is not https; whoever is on the way could answer. Use https, or say 'insecure_http: "
                   "true' beside it",
                   name);
    else
        return true;
    return false;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static bool named(const struct sz_raw_issuer *raw, const char *key)
{
    return sz_node_get(raw->head.node, key) != NULL;
}

/* The issuer itself is where its metadata is found. */
static void discovery(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out)
{
    const struct sz_node *node = raw->head.node;
    bool nothing = !named(raw, "jwks_file") && !named(raw, "jwks_uri") && !named(raw, "secret_file") &&
                   !named(raw, "introspection") && !named(raw, "userinfo");
    out->discover = nothing || raw->discovery.p != NULL;
    if (!out->discover || out->issuer.p == NULL)
        return;
    if (raw->discovery.p != NULL && !sz_eq(raw->discovery, SZ_S("auto"))) {
        out->discovery = raw->discovery;
        sz_provider_url(b, sz_node_get(node, "discovery"), "discovery", raw->discovery, out->insecure_http);
    } else if (!sz_starts_with(out->issuer, SZ_S("https://")) && !sz_starts_with(out->issuer, SZ_S("http://"))) {
        sz_mistake(b->l, raw->discovery.p != NULL ? sz_node_get(node, "discovery") : sz_node_key(node, "issuer"),
                   "issuer '%.*s' has no keys, and its 'issuer' is no url where they could be found: give it "
                   "'jwks_uri', 'jwks_file', 'secret_file' (HS algorithms) or 'introspection'",
                   SZ_FMT(raw->head.name));
    } else {
        sz_provider_url(b, sz_node_get(node, "issuer"), "issuer", out->issuer, out->insecure_http);
    }
}

static void jwks_uri(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out)
{
    const struct sz_node *node = raw->head.node, *at = sz_node_get(node, "jwks_uri");
    if (out->jwks_uri.p != NULL)
        sz_provider_url(b, at, "jwks_uri", out->jwks_uri, out->insecure_http);
    if (out->jwks_uri.p != NULL && named(raw, "jwks_file"))
        sz_mistake(b->l, sz_node_key(node, "jwks_uri"),
                   "'jwks_uri' beside 'jwks_file': one source of keys; remove one");
    if (named(raw, "secret_file") && (raw->discovery.p != NULL || out->jwks_uri.p != NULL))
        sz_mistake(b->l, sz_node_key(node, "secret_file"),
                   "'secret_file' beside keys that are fetched: tokens are signed one way or the other; remove one");
    if (raw->discovery.p != NULL && (named(raw, "jwks_file") || named(raw, "jwks_uri")))
        sz_mistake(b->l, sz_node_key(node, "discovery"),
                   "'discovery' beside 'jwks_file' or 'jwks_uri': one source of keys; remove one");
}

/* ---- opaque tokens ----------------------------------------------------------------------------------------------- */

static void introspection(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out)
{
    const struct sz_raw_introspection *in = &raw->introspection;
    const struct sz_node *node = in->head.node;
    if (node == NULL)
        return;
    bool by_key = in->auth == SZ_PROVIDER_AUTH_KEY;
    out->introspection.on = true;
    out->introspection.endpoint = in->endpoint;
    out->introspection.client_id = in->client_id;
    out->introspection.auth = (enum sz_provider_auth)in->auth;
    out->introspection.secret = in->secret.secret;
    out->introspection.key = in->key.secret;
    if (in->endpoint.p != NULL)
        sz_provider_url(b, sz_node_get(node, "endpoint"), "endpoint", in->endpoint, out->insecure_http);
    if (by_key != (sz_node_get(node, "key_file") != NULL))
        sz_mistake(b->l, sz_node_key(node, by_key ? "auth" : "key_file"),
                   "'auth: private_key_jwt' and 'key_file' belong together");
    if (!by_key != (sz_node_get(node, "client_secret_file") != NULL))
        sz_mistake(b->l, sz_node_key(node, by_key ? "client_secret_file" : "auth"),
                   by_key ? "'private_key_jwt' needs no secret; remove 'client_secret_file'"
                          : "introspection needs 'client_secret_file', or 'auth: private_key_jwt' with 'key_file'");
}

static void userinfo(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out)
{
    const struct sz_raw_userinfo *in = &raw->userinfo;
    const struct sz_node *node = in->head.node;
    if (node == NULL)
        return;
    out->userinfo.on = true;
    out->userinfo.endpoint = in->endpoint;
    if (!in->accept_any_audience)
        sz_mistake(b->l, sz_node_key(raw->head.node, "userinfo"),
                   "the userinfo endpoint does not say whom a token is for: any token of the provider would do. Use "
                   "'introspection', or say 'userinfo: {accept_any_audience: true}'");
    if (named(raw, "introspection"))
        sz_mistake(b->l, sz_node_key(raw->head.node, "userinfo"),
                   "'userinfo' beside 'introspection': the latter says more; remove one");
    if (in->endpoint.p == NULL && out->issuer.p != NULL) {
        bool slash = out->issuer.n > 0 && out->issuer.p[out->issuer.n - 1] == '/';
        out->userinfo.endpoint = sz_pool_printf(b->l->pool, "%.*s%suserinfo", SZ_FMT(out->issuer), slash ? "" : "/");
    }
    if (out->userinfo.endpoint.p != NULL)
        sz_provider_url(
            b, in->endpoint.p != NULL ? sz_node_get(node, "endpoint") : sz_node_key(raw->head.node, "userinfo"),
            "endpoint", out->userinfo.endpoint, out->insecure_http);
}

void sz_build_provider(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out)
{
    out->breaker = raw->breaker.out;
    jwks_uri(b, raw, out);
    discovery(b, raw, out);
    introspection(b, raw, out);
    userinfo(b, raw, out);
    if (out->token_prefix.p != NULL && !sz_issuer_asks(out))
        sz_mistake(b->l, sz_node_key(raw->head.node, "token_prefix"),
                   "'token_prefix' without 'introspection' or 'userinfo'; remove it or add one");
}

/* ---- a route's opaque tokens ------------------------------------------------------------------------------------- */

static bool undecided(const struct sz_conf_issuer *a, const struct sz_conf_issuer *c)
{
    if (a->token_prefix.p == NULL || c->token_prefix.p == NULL)
        return a->token_prefix.p == NULL && c->token_prefix.p == NULL;
    return sz_starts_with(a->token_prefix, c->token_prefix) || sz_starts_with(c->token_prefix, a->token_prefix);
}

void sz_check_opaque(struct sz_builder *b, const struct sz_raw_auth *raw, const struct sz_conf_route *route)
{
    for (size_t i = 0; i < route->issuers_n; i++) {
        const struct sz_conf_issuer *issuer = &b->conf->issuers[route->issuers[i]];
        const struct sz_node *at = sz_node_item(raw->head.node, "issuers", i);
        if (issuer->userinfo.on && (raw->scopes.n > 0 || raw->any_scope.n > 0))
            sz_mistake(b->l, at,
                       "issuer '%.*s' is asked at its userinfo endpoint, which tells no scopes; use "
                       "'introspection' there, or no 'scopes' here",
                       SZ_FMT(issuer->name));
        if (issuer->userinfo.on && raw->audiences.n > 0)
            sz_mistake(b->l, at,
                       "issuer '%.*s' is asked at its userinfo endpoint, which tells no audience; use "
                       "'introspection' there, or no 'audiences' here",
                       SZ_FMT(issuer->name));
        for (size_t k = 0; k < i && sz_issuer_asks(issuer); k++) {
            const struct sz_conf_issuer *other = &b->conf->issuers[route->issuers[k]];
            if (sz_issuer_asks(other) && undecided(other, issuer))
                sz_mistake(b->l, at,
                           "an opaque token could belong to '%.*s' or to '%.*s', and would have to be shown "
                           "to both; give them a 'token_prefix' each that tells them apart, or split the route",
                           SZ_FMT(other->name), SZ_FMT(issuer->name));
        }
    }
}
