/* The keys of a fleet, as fleet.c makes them and seal.c uses them. */
#ifndef SZ_CACHE_FLEET_H
#define SZ_CACHE_FLEET_H

#include "subzero/crypto.h"
#include "subzero/fleet.h"

struct sz_seal_key {
    uint8_t id[7]; /* says which key sealed; a hash of the key, no secret */
    uint8_t key[32];
};

struct sz_fleet {
    struct sz_hmac_key naming;
    struct sz_seal_key seals[SZ_SEAL_KEYS_MAX]; /* the first seals, all open */
    size_t seals_n;
};

#endif
