/*
 * Fingerprint of a credential: keyed, 128 bits wide (Z7).
 *
 * The key is drawn once per process and never leaves it.  Kind and scope do not go in front of the token, which would
 * mean copying it: they derive a key of their own, SipHash-2-4-128(process key, kind and scope in fixed width), and
 * that key hashes the token.  Same guarantee as one typed buffer, since the derived keys are independent of each other.
 * Each thread remembers the last key that it derived, so that the usual token costs one hash.
 */
#include <pthread.h>

#include "subzero/cache.h"

static pthread_once_t drawn = PTHREAD_ONCE_INIT;
static struct sz_key128 process_key; /* written once by draw_key, read-only after */

static _Thread_local struct {
    bool set;
    enum sz_credential_kind kind;
    uint32_t scope_id;
    struct sz_key128 key;
} last;

static void draw_key(void)
{
    sz_random(process_key.b, sizeof(process_key.b));
}

static void derive(enum sz_credential_kind kind, uint32_t scope_id)
{
    const uint8_t field[5] = {(uint8_t)kind, (uint8_t)scope_id, (uint8_t)(scope_id >> 8), (uint8_t)(scope_id >> 16),
                              (uint8_t)(scope_id >> 24)};
    struct sz_hash128 derived;

    pthread_once(&drawn, draw_key);
    derived = sz_hash128(&process_key, sz_slice(field, sizeof(field)));
    memcpy(last.key.b, &derived, sizeof(last.key.b));
    last.kind = kind;
    last.scope_id = scope_id;
    last.set = true;
}

struct sz_fingerprint sz_fingerprint(enum sz_credential_kind kind, uint32_t scope_id, struct sz_slice token)
{
    if (SZ_UNLIKELY(!last.set || last.kind != kind || last.scope_id != scope_id))
        derive(kind, scope_id);
    return (struct sz_fingerprint){sz_hash128(&last.key, token)};
}
