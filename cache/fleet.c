/*
 * The keys that instances of one fleet share.  One secret goes in; what is used is derived from it by HKDF-SHA-256
 * (RFC 5869), one key for each use, so that no name says anything about a seal and a key that seals is never the one
 * that an operator keeps in a file.
 *
 *   key file ──HKDF──┬─ "names"  ─▶ naming key
 *                    └─ "seals"  ─▶ sealing key          (without seal_keys_file)
 *   each seal key ──HKDF── "seals" ─▶ sealing key        (with it: the first seals, all open)
 */
#include <stdlib.h>

#include "cache/fleet.h"

/* RFC 5869 with one block of output: the salt names us, `info` the use. */
static void derive(struct sz_slice secret, struct sz_slice info, uint8_t out[32])
{
    uint8_t extracted[32];
    char block[64];
    SZ_ASSERT(info.n < sizeof(block));
    sz_hmac_sha256(SZ_S("subzero fleet 1"), secret, extracted);
    memcpy(block, info.p, info.n);
    block[info.n] = 1; /* the counter of the first block */
    sz_hmac_sha256(sz_slice(extracted, sizeof(extracted)), sz_slice(block, info.n + 1), out);
    sz_wipe(extracted, sizeof(extracted));
}

static void add_seal(struct sz_fleet *fleet, struct sz_slice secret)
{
    struct sz_seal_key *seal = &fleet->seals[fleet->seals_n++];
    uint8_t id[32];
    derive(secret, SZ_S("seals"), seal->key);
    derive(secret, SZ_S("seal id"), id);
    memcpy(seal->id, id, sizeof(seal->id));
}

struct sz_fleet *sz_fleet_new(struct sz_slice key, const struct sz_slice *seal_keys, size_t seal_keys_n)
{
    if (key.n != SZ_FLEET_KEY || seal_keys_n > SZ_SEAL_KEYS_MAX)
        return NULL;
    for (size_t i = 0; i < seal_keys_n; i++) {
        if (seal_keys[i].n != SZ_FLEET_KEY)
            return NULL;
    }
    struct sz_fleet *fleet = sz_xcalloc(1, sizeof(*fleet));
    uint8_t naming[32];
    derive(key, SZ_S("names"), naming);
    sz_hmac_key_set(&fleet->naming, sz_slice(naming, sizeof(naming)));
    sz_wipe(naming, sizeof(naming));
    for (size_t i = 0; i < seal_keys_n; i++)
        add_seal(fleet, seal_keys[i]);
    if (seal_keys_n == 0)
        add_seal(fleet, key);
    return fleet;
}

struct sz_fleet *sz_fleet_draw(void)
{
    uint8_t key[SZ_FLEET_KEY];
    sz_random(key, sizeof(key));
    struct sz_fleet *fleet = sz_fleet_new(sz_slice(key, sizeof(key)), NULL, 0);
    sz_wipe(key, sizeof(key));
    return fleet;
}

void sz_fleet_free(struct sz_fleet **fleet)
{
    if (*fleet == NULL)
        return;
    sz_wipe(*fleet, sizeof(**fleet));
    free(*fleet);
    *fleet = NULL;
}

/* The kind derives a key of its own instead of standing in front of the fields, which may hold a whole token: no copy.
 */
void sz_fleet_namer(const struct sz_fleet *fleet, const char *kind, struct sz_hmac_key *namer)
{
    uint8_t of_kind[32];
    sz_hmac_with(&fleet->naming, sz_cstr(kind), of_kind);
    sz_hmac_key_set(namer, sz_slice(of_kind, sizeof(of_kind)));
    sz_wipe(of_kind, sizeof(of_kind));
}

void sz_fleet_name(const struct sz_fleet *fleet, const char *kind, struct sz_slice fields, uint8_t out[32])
{
    struct sz_hmac_key namer;
    sz_fleet_namer(fleet, kind, &namer);
    sz_hmac_with(&namer, fields, out);
    sz_wipe(&namer, sizeof(namer));
}
