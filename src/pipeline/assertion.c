/*
 * X-Subzero-Assertion: proof for the upstream that this request, with this method and path, was allowed
 * for this subject by this gateway: a JWT of at most a minute, verified with the keys that the admin
 * listener publishes.
 */
#include "pipeline/stages.h"

static void add_member(struct sz_buf *buf, const char *name, struct sz_slice value)
{
    sz_buf_printf(buf, "%s\"%s\":", buf->n > 1 ? "," : "", name);
    sz_buf_json(buf, value);
}

/* {"iss","aud","sub","sub_iss","htm","ph","rid","iat","exp"}; ph = base64url(SHA-256(path)). */
static void build_claims(struct sz_txn *txn, struct sz_buf *buf)
{
    const struct sz_conf *conf = txn->snapshot->conf;
    const struct sz_conf_route *route = txn->match.route;
    uint8_t digest[32];
    char hash[SZ_B64_LEN(32)];
    int64_t now = sz_wall_seconds(sz_loop_wall(txn->worker->loop));
    sz_sha256(txn->target.path, digest);
    sz_b64url_encode(digest, sizeof(digest), hash);
    sz_buf_add(buf, "{", 1);
    add_member(buf, "iss", conf->assertion.issuer);
    add_member(buf, "aud", route->assertion_audience.n > 0 ? route->assertion_audience : route->upstream->name);
    if (txn->identity != NULL) {
        add_member(buf, "sub", sz_identity_text(txn->identity, txn->identity->subject));
        add_member(buf, "sub_iss", sz_txn_issuer(txn)->issuer);
    }
    add_member(buf, "htm", txn->req.method);
    add_member(buf, "ph", sz_slice(hash, sizeof(hash)));
    add_member(buf, "rid", txn->request_id);
    sz_buf_printf(buf, ",\"iat\":%lld,\"exp\":%lld}", (long long)now,
                  (long long)(now + conf->assertion.ttl.us / 1000000));
}

enum sz_reason sz_assertion_add(struct sz_txn *txn, struct sz_headers *out)
{
    struct sz_signer *signer = txn->snapshot->assertion;
    struct sz_slice token;
    struct sz_buf claims = {0};
    build_claims(txn, &claims);
    int rc = sz_signer_sign(signer, sz_signer_default_alg(signer), "subzero-assertion+jwt", sz_buf_slice(&claims),
                            txn->pool, &token);
    sz_buf_fini(&claims);
    if (rc != 0)
        return SZ_REASON_identity_unavailable;
    sz_headers_add(out, txn->pool, SZ_S("x-subzero-assertion"), token);
    return SZ_REASON_allowed;
}
