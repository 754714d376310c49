/* The key of checkpoints: an Ed25519 JWK, with `d` where it signs and `x` where it verifies. */
#include "subzero/audit.h"

#include <errno.h>
#include <jansson.h>

#include "subzero/crypto.h"

static bool member32(const json_t *root, const char *name, uint8_t out[32])
{
    const json_t *value = json_object_get(root, name);
    struct sz_slice text = sz_slice(json_string_value(value), json_string_length(value));
    size_t n = 0;
    return json_is_string(value) && text.n == SZ_B64_LEN(32) && sz_b64url_decode(text, out, &n) == 0 && n == 32;
}

static json_t *load(struct sz_slice text, struct sz_text *why)
{
    json_error_t error;
    json_t *root = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &error);
    const char *kty = json_string_value(json_object_get(root, "kty"));
    const char *crv = json_string_value(json_object_get(root, "crv"));
    if (kty != NULL && crv != NULL && strcmp(kty, "OKP") == 0 && strcmp(crv, "Ed25519") == 0)
        return root;
    json_decref(root);
    sz_text_set(why, "it is no Ed25519 key in JWK form; 'subzero key new --jwk EdDSA' makes one");
    return NULL;
}

int sz_audit_key_read(struct sz_slice jwk, struct sz_ed25519 *key, struct sz_text *why)
{
    uint8_t seed[32], told[32], made[32];
    json_t *root = load(jwk, why);
    if (root == NULL)
        return -EINVAL;
    bool good = member32(root, "d", seed);
    if (good) {
        sz_ed25519_from_seed(seed, key);
        sz_ed25519_public(key, made);
        good = json_object_get(root, "x") == NULL ||
               (member32(root, "x", told) && sz_eq(sz_slice(told, 32), sz_slice(made, 32)));
    }
    sz_wipe(seed, sizeof(seed));
    json_decref(root);
    if (good)
        return 0;
    sz_wipe(key, sizeof(*key));
    sz_text_set(why, "the JWK has no private part, or its halves do not fit; 'subzero key new --jwk EdDSA' makes one");
    return -EINVAL;
}

int sz_audit_key_public(struct sz_slice jwk, uint8_t out[32], struct sz_text *why)
{
    json_t *root = load(jwk, why);
    if (root == NULL)
        return -EINVAL;
    bool good = member32(root, "x", out);
    json_decref(root);
    if (good)
        return 0;
    sz_text_set(why, "the JWK has no 'x' of 32 bytes");
    return -EINVAL;
}
