/*
 * Sealed values: XChaCha20-Poly1305 under a key of the fleet.  The nonce is random: 192 bits are wide enough for any
 * number of instances to draw theirs without asking each other.
 *
 *   version 1 │ key id 7 │ nonce 24 │ encrypted: plain n, expires 8 │ tag 16         n + 56 bytes
 *   └──── authenticated ───┘
 *
 * Authenticated without being stored: the kind, the Redis key and the generation.  Whoever can write to Redis can
 * hence delete a value or put an older one back under the same key, and nothing else; what an older one may not do is
 * the business of `expires` and of its reader.
 */
#include <sodium.h>

#include "cache/fleet.h"
#include "subzero/crypto.h"

enum { VERSION = 1, ID = 7, HEAD = 1 + ID, NONCE = 24, EXPIRES = 8, TAG = 16 };
_Static_assert(HEAD + NONCE + EXPIRES + TAG == SZ_SEAL_OVERHEAD, "SZ_SEAL_OVERHEAD");
_Static_assert(NONCE == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "nonce");
_Static_assert(TAG == crypto_aead_xchacha20poly1305_ietf_ABYTES, "tag");
_Static_assert(sizeof(((struct sz_seal_key *)0)->key) == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "key");

struct bound { /* associated data */
    uint8_t bytes[HEAD + 8 + 2 * 4 + 64 + SZ_SEAL_NAME_MAX];
    size_t n;
};

static void put_le(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le(const uint8_t *in, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << 8 * i;
    return value;
}

static void bind_field(struct bound *bound, struct sz_slice field)
{
    put_le(bound->bytes + bound->n, field.n, 4);
    bound->n += 4;
    if (field.n != 0)
        memcpy(bound->bytes + bound->n, field.p, field.n);
    bound->n += field.n;
}

static void bind_all(struct bound *bound, const uint8_t head[HEAD], const struct sz_seal_bind *bind)
{
    struct sz_slice kind = sz_cstr(bind->kind);
    SZ_ASSERT(kind.n <= 64 && bind->key.n <= SZ_SEAL_NAME_MAX);
    memcpy(bound->bytes, head, HEAD);
    put_le(bound->bytes + HEAD, bind->generation, 8);
    bound->n = HEAD + 8;
    bind_field(bound, kind);
    bind_field(bound, bind->key);
}

void sz_seal(const struct sz_fleet *fleet, const struct sz_seal_bind *bind, int64_t expires, struct sz_slice plain,
             struct sz_buf *out)
{
    const struct sz_seal_key *seal = &fleet->seals[0];
    uint8_t *at = sz_buf_room(out, plain.n + SZ_SEAL_OVERHEAD);
    if (at == NULL)
        return;
    uint8_t *nonce = at + HEAD, *text = nonce + NONCE, *tag = text + plain.n + EXPIRES;
    struct bound bound;
    at[0] = VERSION;
    memcpy(at + 1, seal->id, ID);
    sz_random(nonce, NONCE);
    if (plain.n != 0)
        memcpy(text, plain.p, plain.n);
    put_le(text + plain.n, (uint64_t)expires, EXPIRES);
    bind_all(&bound, at, bind);
    SZ_ASSERT(crypto_aead_xchacha20poly1305_ietf_encrypt_detached(text, tag, NULL, text, plain.n + EXPIRES, bound.bytes,
                                                                  bound.n, NULL, nonce, seal->key) == 0);
}

/* False: another key's, or altered.  text: where the opened bytes go, as many as are sealed. */
static bool open_with(const struct sz_seal_key *seal, const uint8_t *sealed, const struct bound *bound, uint8_t *text,
                      size_t text_n)
{
    const uint8_t *nonce = sealed + HEAD;
    if (sodium_memcmp(sealed + 1, seal->id, ID) != 0)
        return false;
    return crypto_aead_xchacha20poly1305_ietf_decrypt_detached(text, NULL, nonce + NONCE, text_n,
                                                               nonce + NONCE + text_n, bound->bytes, bound->n, nonce,
                                                               seal->key) == 0;
}

enum sz_unseal sz_unseal(const struct sz_fleet *fleet, const struct sz_seal_bind *bind, int64_t wall_us,
                         struct sz_slice sealed, struct sz_buf *out, int64_t *expires)
{
    const uint8_t *bytes = (const uint8_t *)sealed.p;
    size_t before = out->n;
    bool opened = false;
    struct bound bound;
    if (sealed.n < SZ_SEAL_OVERHEAD || bytes[0] != VERSION)
        return SZ_UNSEAL_BAD;
    size_t text_n = sealed.n - SZ_SEAL_OVERHEAD + EXPIRES;
    uint8_t *text = sz_buf_room(out, text_n);
    if (text == NULL)
        return SZ_UNSEAL_BAD;
    bind_all(&bound, bytes, bind);
    for (size_t i = 0; i < fleet->seals_n && !opened; i++)
        opened = open_with(&fleet->seals[i], bytes, &bound, text, text_n);
    if (!opened) {
        out->n = before;
        return SZ_UNSEAL_BAD;
    }
    *expires = (int64_t)get_le(text + text_n - EXPIRES, EXPIRES);
    if (wall_us >= *expires) {
        sz_wipe(text, text_n);
        out->n = before;
        return SZ_UNSEAL_EXPIRED;
    }
    out->n -= EXPIRES;
    return SZ_UNSEAL_OK;
}
