/*
 * Where an issuer's keys are: one slot per source of keys, shared by every configuration that names the same source, so
 * that a reload finds the keys as they are and a fetch reaches requests that began before it.  Also what any thread
 * needs to know about fetching them: whether it is worth while to ask again because of a token.
 */
#ifndef SZ_FGA_KEY_SLOT_H
#define SZ_FGA_KEY_SLOT_H

#include <pthread.h>
#include <stdatomic.h>

#include "fga/jwks.h"
#include "subzero/loop.h"

enum { SZ_SLOT_KIDS = 64 };

struct sz_provider;

struct sz_key_slot {
    _Atomic uint32_t refs;
    uint64_t id;          /* in this process */
    pthread_mutex_t lock; /* guards `keys` and `fetch`; held for a few loads and stores only */
    struct sz_jwks *keys; /* never NULL */
    /*
     * The ids of the keys in `keys`, for sz_issuer_key_alive on every cache hit: read without the lock.  A reader that
     * crosses a swap may miss a key that is in both sets (a cache miss, no more) and sees no key that is in neither.
     */
    _Atomic uint32_t alive_n;
    _Atomic uint32_t alive[SZ_JWKS_KEYS_MAX + 1];

    struct sz_loop *loop; /* the provider's; NULL: nobody fetches.  Set before others see the slot */
    struct {
        bool running, failed; /* now; the last one */
        struct sz_mono next;  /* a token may cause one from then on */
        struct {
            uint64_t kid;
            struct sz_mono until;
        } absent[SZ_SLOT_KIDS]; /* kids that were looked for and not found, the oldest is replaced */
        unsigned at;
    } fetch;
    struct sz_provider *provider; /* its loop's thread alone; NULL: retired */
};

/* One reference; takes over that to the keys. */
struct sz_key_slot *sz_key_slot_new(struct sz_jwks *keys);
struct sz_key_slot *sz_key_slot_ref(struct sz_key_slot *slot);
void sz_key_slot_unref(struct sz_key_slot **slot);

/* The current set with a reference of one's own. */
struct sz_jwks *sz_key_slot_keys(struct sz_key_slot *slot);
/* Swaps the set in; takes over the reference.  The old one goes when its last reader is done.  One writer at a time. */
void sz_key_slot_set(struct sz_key_slot *slot, struct sz_jwks *keys);
bool sz_key_slot_alive(const struct sz_key_slot *slot, uint32_t key_id);
static inline bool sz_key_slot_usable(const struct sz_key_slot *slot)
{
    return atomic_load_explicit(&slot->alive_n, memory_order_acquire) != 0;
}
/* Grows whenever any slot gets other keys than it had. */
uint64_t sz_key_slots_changes(void);

#endif
