/*
 * Scopes: `scope` and `scp`, each a string of words or a list, and the issuer's permissions claim.  They end as bits
 * over the scopes that the configuration mentions; the others are of no use to any rule.
 *
 * Every word must be a scope-token of RFC 6749 section 3.3, known or not: one that holds a quote, a
 * control character or a blank of another alphabet will be cut differently by the next reader.
 */
#include "fga/jwt_claims.h"

/* %x21 / %x23-5B / %x5D-7E */
static bool is_scope_token(struct sz_slice word)
{
    for (size_t i = 0; i < word.n; i++) {
        unsigned char c = (unsigned char)word.p[i];
        if (c < 0x21 || c > 0x7e || c == '"' || c == '\\')
            return false;
    }
    return word.n != 0;
}

static bool add_word(const struct sz_claims_in *in, struct sz_slice word, struct sz_identity *id)
{
    if (!is_scope_token(word))
        return false;
    int bit = sz_names_find(&in->issuers->scopes, word);
    if (bit >= 0)
        id->scopes[bit / 64] |= UINT64_C(1) << (bit % 64);
    return true;
}

static bool add_value(const struct sz_claims_in *in, const struct sz_json_node *value, struct sz_identity *id)
{
    struct sz_slice rest, word;
    if (value->type == SZ_JSON_STRING) {
        rest = sz_json_slice(in->tree, value);
        if (rest.n == 0)
            return true; /* no scopes; some issuers write it so */
        while (sz_split(&rest, ' ', &word)) {
            if (!add_word(in, word, id))
                return false;
        }
        return true;
    }
    if (value->type != SZ_JSON_ARRAY)
        return false;
    for (const struct sz_json_node *item = NULL; (item = sz_json_next(in->tree, value, item)) != NULL;) {
        if (item->type != SZ_JSON_STRING || !add_word(in, sz_json_slice(in->tree, item), id))
            return false;
    }
    return true;
}

bool sz_jwt_scopes(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    struct sz_slice names[] = {SZ_S("scope"), SZ_S("scp"), in->issuer->conf->permissions_claim};
    for (size_t i = 0; i < SZ_COUNT(names); i++) {
        const struct sz_json_node *value = names[i].p == NULL ? NULL : sz_claim(in, names[i]);
        if (value != NULL && !add_value(in, value, id))
            return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%.*s' holds something that is no scope (RFC 6749 3.3)",
                               SZ_FMT(names[i]));
    }
    return true;
}
