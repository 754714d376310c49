/*
 * Key set documents and, behind a first byte '!', private keys.  A key that is kept can do something, is
 * registered, and is found again by what it is called.
 */
#include "fga/jwks.h"

#include "fga/key_registry.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libFuzzer's */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    sz_crypto_init();
    return 0;
}

static void check_set(const struct sz_jwks *keys)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct sz_jwk *key = &keys->keys[i], *found[SZ_JWKS_KEYS_MAX];
        bool known, again = false;
        SZ_ASSERT(key->algs != 0 && key->id != 0 && key->index < SZ_JWKS_KEYS_MAX);
        enum sz_alg alg = (enum sz_alg)__builtin_ctz(key->algs);
        size_t n = sz_jwks_find(keys, key->kid, alg, found, SZ_JWKS_KEYS_MAX, &known);
        for (size_t j = 0; j < n; j++)
            again = again || found[j] == key;
        SZ_ASSERT(known && again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_text why = {""};
    struct sz_slice input = sz_slice(data, size);
    if (size != 0 && data[0] == '!') {
        struct sz_signer *signer = sz_signer_new(sz_from(input, 1), &why);
        SZ_ASSERT(signer != NULL || why.s[0] != '\0');
        sz_signer_free(&signer);
        return 0;
    }
    struct sz_jwks *keys = NULL;
    if (sz_jwks_parse(input, 1, SZ_JWKS_ANY, NULL, &keys, &why) == 0)
        check_set(keys);
    else
        SZ_ASSERT(keys == NULL && why.s[0] != '\0');
    sz_jwks_unref(&keys);
    SZ_ASSERT(sz_keys_count() == 0);
    return 0;
}
