/* Ed25519 on libsodium: what signs the checkpoints of the audit journal, and checks them. */
#include <sodium.h>

#include "subzero/crypto.h"

_Static_assert(sizeof(struct sz_ed25519) == crypto_sign_ed25519_SECRETKEYBYTES, "Ed25519 key");

void sz_ed25519_from_seed(const uint8_t seed[32], struct sz_ed25519 *key)
{
    uint8_t public_key[crypto_sign_ed25519_PUBLICKEYBYTES];
    SZ_ASSERT(crypto_sign_ed25519_seed_keypair(public_key, key->seed_and_public, seed) == 0);
}

void sz_ed25519_public(const struct sz_ed25519 *key, uint8_t out[32])
{
    memcpy(out, key->seed_and_public + 32, 32);
}

void sz_ed25519_sign(const struct sz_ed25519 *key, struct sz_slice s, uint8_t out[64])
{
    SZ_ASSERT(crypto_sign_ed25519_detached(out, NULL, (const unsigned char *)s.p, s.n, key->seed_and_public) == 0);
}

bool sz_ed25519_verify(const uint8_t public_key[32], struct sz_slice s, const uint8_t signature[64])
{
    return crypto_sign_ed25519_verify_detached(signature, (const unsigned char *)s.p, s.n, public_key) == 0;
}
