/*
 * Issuers: which tokens are believed.  Every gap here is a hole, so a list that is empty, an
 * algorithm without its key and a key without its algorithm all refuse the start.
 */
#include "conf/build.h"

#define HS_MASK (1u << SZ_ALG_HS256 | 1u << SZ_ALG_HS384 | 1u << SZ_ALG_HS512)

static void algorithms(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out)
{
    for (size_t i = 0; i < raw->algorithms.n; i++) {
        struct sz_slice name = raw->algorithms.v[i];
        enum sz_alg alg = sz_alg_from(name);
        if (alg == SZ_ALG_COUNT)
            sz_mistake(b->l, sz_node_item(raw->head.node, "algorithms", i),
                       "'%.*s' is no accepted algorithm; there are HS, RS, PS and ES with 256, 384, 512, and EdDSA",
                       SZ_FMT(name));
        else
            out->algorithms |= 1u << alg;
    }
    if (sz_node_get(raw->head.node, "algorithms") != NULL)
        return;
    bool secret_alone = sz_node_get(raw->head.node, "secret_file") != NULL &&
                        sz_node_get(raw->head.node, "jwks_file") == NULL && !sz_issuer_fetches(out);
    out->algorithms = 1u << (secret_alone ? SZ_ALG_HS256 : SZ_ALG_RS256);
}

static void keys(struct sz_builder *b, const struct sz_raw_issuer *raw, const struct sz_conf_issuer *out)
{
    const struct sz_node *node = raw->head.node, *at = sz_node_key(node, "algorithms");
    bool public = sz_node_get(node, "jwks_file") != NULL || sz_issuer_fetches(out);
    bool secret = sz_node_get(node, "secret_file") != NULL;
    bool hs = (out->algorithms & HS_MASK) != 0, others = (out->algorithms & ~HS_MASK) != 0;
    if (!hs && !others)
        return; /* said already */
    if (!public && !secret)
        return; /* asked about every token */
    if (hs && !secret)
        sz_mistake(b->l, at, "HS algorithms need 'secret_file'");
    else if (others && !public)
        sz_mistake(b->l, at, "algorithms other than HS need 'jwks_file', 'jwks_uri' or 'discovery'");
    else if (secret && !hs)
        sz_mistake(b->l, sz_node_key(node, "secret_file"),
                   "a secret without an HS algorithm; name one in 'algorithms' or remove it");
    else if (public && !others)
        sz_mistake(b->l, sz_node_key(node, sz_node_get(node, "jwks_file") != NULL ? "jwks_file" : "algorithms"),
                   "keys that no algorithm uses; name one in 'algorithms' or remove them");
}

static void audiences(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out)
{
    for (size_t i = 0; i < out->audiences.n; i++)
        out->any_audience |= sz_eq(out->audiences.v[i], SZ_S("*"));
    if (out->any_audience && out->audiences.n > 1)
        sz_mistake(b->l, sz_node_key(raw->head.node, "audiences"),
                   "\"*\" switches the audience check off and stands alone; remove it or the others");
}

static void add_texts(struct sz_buf *k, uint8_t type, struct sz_strings strings)
{
    for (size_t i = 0; i < strings.n; i++)
        sz_key_field(k, type, strings.v[i]);
}

/* What decides whether a token is accepted, keys aside: they are followed one by one where they are used. */
static uint64_t settings_hash(const struct sz_conf_issuer *issuer)
{
    struct sz_buf k = {0};
    struct {
        uint64_t algorithms, leeway, max_lifetime, ignore_cnf;
    } numbers = {issuer->algorithms, (uint64_t)issuer->leeway.us, (uint64_t)issuer->max_lifetime.us,
                 issuer->ignore_cnf};
    uint8_t digest[32];
    uint64_t hash;
    sz_key_field(&k, 1, issuer->issuer);
    sz_key_field(&k, 2, issuer->name);
    add_texts(&k, 3, issuer->audiences);
    sz_key_field(&k, 4, sz_slice(&numbers, sizeof(numbers)));
    add_texts(&k, 5, issuer->required_claims);
    add_texts(&k, 6, issuer->types);
    sz_key_field(&k, 7, issuer->tenant_claim);
    sz_key_field(&k, 8, issuer->permissions_claim);
    sz_key_field(&k, 9, issuer->introspection.endpoint);
    sz_key_field(&k, 10, issuer->introspection.client_id);
    sz_key_field(&k, 11, issuer->userinfo.endpoint);
    sz_sha256(sz_buf_slice(&k), digest);
    sz_buf_fini(&k);
    memcpy(&hash, digest, sizeof(hash));
    return hash;
}

/* The path is compared with the request target byte for byte, so it is written as it will be sent. */
static bool plain_path(struct sz_slice path)
{
    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '-' ||
              c == '_' || c == '.' || c == '~'))
            return false;
    }
    return path.n > 1 && path.p[0] == '/';
}

static void logout(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out)
{
    const struct sz_raw_logout *in = &raw->logout;
    if (in->head.node == NULL || in->path.p == NULL)
        return;
    out->logout.path = in->path;
    if (!plain_path(in->path))
        sz_mistake(b->l, sz_node_get(in->head.node, "path"),
                   "'path' is '%.*s'; write a path of letters, digits and -_.~ such as /backchannel-logout",
                   SZ_FMT(in->path));
    if (!sz_issuer_verifies(out))
        sz_mistake(b->l, sz_node_key(raw->head.node, "backchannel_logout"),
                   "logout tokens are signed, and this issuer has no keys; add 'jwks_uri', 'discovery' or 'jwks_file'");
    out->logout.client_ids = in->client_ids;
    if (in->client_ids.n > 0)
        return;
    struct sz_slice *own = sz_pool_alloc(b->l->pool, sizeof(*own));
    *own = out->introspection.client_id;
    out->logout.client_ids =
        out->introspection.client_id.p != NULL ? (struct sz_strings){.v = own, .n = 1} : out->audiences;
    if (out->any_audience && out->introspection.client_id.p == NULL)
        sz_mistake(b->l, sz_node_key(raw->head.node, "backchannel_logout"),
                   "whose logout tokens are meant is not said; add 'client_ids' with the client's id at the provider");
}

void sz_build_issuers(struct sz_builder *b)
{
    const struct sz_raw_issuer *raw = b->raw->issuers.v;
    size_t n = b->raw->issuers.n;
    struct sz_conf_issuer *issuers = sz_pool_alloc(b->l->pool, n * sizeof(*issuers));
    for (size_t i = 0; i < n; i++) {
        issuers[i] = raw[i].out;
        issuers[i].name = raw[i].head.name;
        issuers[i].secret = raw[i].secret.secret;
        if (raw[i].head.node == NULL)
            continue;
        sz_build_provider(b, &raw[i], &issuers[i]);
        algorithms(b, &raw[i], &issuers[i]);
        keys(b, &raw[i], &issuers[i]);
        audiences(b, &raw[i], &issuers[i]);
        logout(b, &raw[i], &issuers[i]);
        issuers[i].settings = settings_hash(&issuers[i]);
    }
    b->conf->issuers = issuers;
    b->conf->issuers_n = n;
}
