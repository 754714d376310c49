/*
 * JWK Set documents come from a provider and are read as hostile: size and number of keys are
 * bounded, the text must be strict JSON without duplicate names (jansson would otherwise let
 * the last one win), and a key that cannot be used is left out without spoiling its neighbours.
 */
#include "fga/jwks.h"

#include <errno.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "fga/key_registry.h"
#include "subzero/crypto.h"

enum { DEPTH = 8 }; /* {"keys":[{"oth":[{...}]}]} and some room */

/*
 * What makes a key "the same" after a reload: the material, what it may do, and the name that tokens call it by.
 * With any of these changed, a token that verified before might not now.
 */
static void fingerprint(const struct sz_jwk *key, uint8_t out[32])
{
    struct sz_buf b = {0};
    sz_key_field(&b, 't', sz_slice(key->thumbprint, sizeof(key->thumbprint)));
    uint8_t algs[4] = {(uint8_t)key->algs, (uint8_t)(key->algs >> 8), (uint8_t)(key->algs >> 16),
                       (uint8_t)(key->algs >> 24)};
    sz_key_field(&b, 'a', sz_slice(algs, sizeof(algs)));
    sz_key_field(&b, 'k', key->kid);
    sz_sha256(sz_buf_slice(&b), out);
    sz_buf_fini(&b);
}

static void register_key(struct sz_jwks *set, struct sz_jwk *key, uint16_t issuer)
{
    uint8_t print[32];
    uint64_t word;
    fingerprint(key, print);
    key->id = sz_key_take(issuer, print);
    memcpy(&word, print, sizeof(word));
    set->hash += word; /* a sum: the order of the keys does not matter, but how often each is there does */
}

static struct sz_jwks *new_set(size_t room)
{
    struct sz_jwks *set = sz_xcalloc(1, sizeof(*set) + room * sizeof(set->keys[0]));
    atomic_init(&set->refs, 1);
    return set;
}

struct sz_jwks *sz_jwks_empty(void)
{
    return new_set(0);
}

struct sz_jwks *sz_jwks_ref(struct sz_jwks *set)
{
    atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
    return set;
}

void sz_jwks_unref(struct sz_jwks **set)
{
    struct sz_jwks *s = *set;
    *set = NULL;
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < s->n; i++) {
        sz_key_drop(s->keys[i].id);
        sz_jwk_fini(&s->keys[i]);
    }
    free(s);
}

static void skip(struct sz_jwks_notes *notes, size_t index, const char *why)
{
    if (notes != NULL)
        notes->skipped(notes, index, why);
}

static struct sz_jwks *read_keys(json_t *list, uint16_t issuer, enum sz_jwks_kinds kinds, struct sz_jwks_notes *notes)
{
    struct sz_jwks *set = new_set(json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct sz_jwk *key = &set->keys[set->n];
        struct sz_text why;
        if (sz_jwk_init(key, json_array_get(list, i), &why) != 0) {
            skip(notes, i, why.s);
            continue;
        }
        if (key->kty == SZ_KTY_OCT && kinds == SZ_JWKS_PUBLIC) {
            skip(notes, i, "a shared secret does not belong in a key set; use secret_file");
            sz_jwk_fini(key);
            continue;
        }
        key->index = i;
        register_key(set, key, issuer);
        set->n++;
    }
    return set;
}

static int check_list(const json_t *document, struct sz_text *why)
{
    const json_t *list = json_object_get(document, "keys");
    if (!json_is_array(list)) {
        sz_text_set(why, "not a JWK Set: the top level must be an object with a list 'keys'");
        return -EINVAL;
    }
    if (json_array_size(list) > SZ_JWKS_KEYS_MAX) {
        sz_text_set(why, "%zu keys; at most %d are accepted", json_array_size(list), SZ_JWKS_KEYS_MAX);
        return -EINVAL;
    }
    return 0;
}

int sz_jwks_parse(struct sz_slice document, uint16_t issuer, enum sz_jwks_kinds kinds, struct sz_jwks_notes *notes,
                  struct sz_jwks **out, struct sz_text *why)
{
    size_t at;
    *out = NULL;
    if (document.n > SZ_JWKS_BYTES_MAX) {
        sz_text_set(why, "key set of %zu bytes; at most %d are accepted", document.n, SZ_JWKS_BYTES_MAX);
        return -EINVAL;
    }
    if (sz_json_check(document, DEPTH, &at) != 0) {
        sz_text_set(why, "not strict JSON at byte %zu", at);
        return -EINVAL;
    }
    json_error_t error;
    json_t *root = json_loadb(document.p, document.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (root == NULL) {
        sz_text_set(why, "line %d: %s", error.line, error.text);
        return -EINVAL;
    }
    int rc = check_list(root, why);
    if (rc == 0)
        *out = read_keys(json_object_get(root, "keys"), issuer, kinds, notes);
    json_decref(root);
    return rc;
}

int sz_jwks_with_secret(struct sz_jwks **keys, struct sz_slice secret, uint16_t issuer, struct sz_text *why)
{
    struct sz_jwks *old = *keys;
    SZ_ASSERT(atomic_load(&old->refs) == 1); /* still private to its maker: its keys may be moved */
    struct sz_jwks *set = new_set(old->n + 1);
    if (sz_jwk_init_secret(&set->keys[0], secret, why) != 0) {
        free(set);
        return -EINVAL;
    }
    set->hash = old->hash;
    register_key(set, &set->keys[0], issuer);
    memcpy(set->keys + 1, old->keys, old->n * sizeof(old->keys[0]));
    set->n = old->n + 1;
    free(old);
    *keys = set;
    return 0;
}

size_t sz_jwks_find(const struct sz_jwks *set, struct sz_slice kid, enum sz_alg alg, const struct sz_jwk **found,
                    size_t max, bool *known)
{
    size_t n = 0;
    *known = kid.p == NULL;
    for (size_t i = 0; i < set->n; i++) {
        const struct sz_jwk *key = &set->keys[i];
        if (kid.p != NULL && !key->any_kid && (key->kid.p == NULL || !sz_eq(kid, key->kid)))
            continue;
        *known = true;
        if ((key->algs >> alg & 1) == 0)
            continue;
        if (n < max)
            found[n] = key;
        n++;
    }
    return n;
}
