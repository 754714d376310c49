/* Slots: counted, swapped whole, looked at without the lock on every cache hit. */
#include "fga/key_slot.h"

#include <stdlib.h>

#include "fga/issuer.h"

static _Atomic uint64_t ids, changes;

static void publish(struct sz_key_slot *slot, const struct sz_jwks *keys)
{
    SZ_ASSERT(keys->n <= SZ_COUNT(slot->alive));
    for (size_t i = 0; i < keys->n; i++)
        atomic_store_explicit(&slot->alive[i], keys->keys[i].id, memory_order_relaxed);
    atomic_store_explicit(&slot->alive_n, (uint32_t)keys->n, memory_order_release);
}

struct sz_key_slot *sz_key_slot_new(struct sz_jwks *keys)
{
    struct sz_key_slot *slot = sz_xcalloc(1, sizeof(*slot));
    atomic_init(&slot->refs, 1);
    slot->id = atomic_fetch_add(&ids, 1) + 1;
    pthread_mutex_init(&slot->lock, NULL);
    slot->keys = keys;
    publish(slot, keys);
    return slot;
}

struct sz_key_slot *sz_key_slot_ref(struct sz_key_slot *slot)
{
    atomic_fetch_add_explicit(&slot->refs, 1, memory_order_relaxed);
    return slot;
}

void sz_key_slot_unref(struct sz_key_slot **slotp)
{
    struct sz_key_slot *slot = *slotp;
    *slotp = NULL;
    if (slot == NULL || atomic_fetch_sub_explicit(&slot->refs, 1, memory_order_acq_rel) != 1)
        return;
    sz_jwks_unref(&slot->keys);
    pthread_mutex_destroy(&slot->lock);
    free(slot);
}

struct sz_jwks *sz_key_slot_keys(struct sz_key_slot *slot)
{
    pthread_mutex_lock(&slot->lock);
    struct sz_jwks *keys = sz_jwks_ref(slot->keys);
    pthread_mutex_unlock(&slot->lock);
    return keys;
}

void sz_key_slot_set(struct sz_key_slot *slot, struct sz_jwks *keys)
{
    pthread_mutex_lock(&slot->lock);
    struct sz_jwks *old = slot->keys;
    slot->keys = keys;
    pthread_mutex_unlock(&slot->lock);
    publish(slot, keys);
    if (old->hash != keys->hash || old->n != keys->n)
        atomic_fetch_add_explicit(&changes, 1, memory_order_release);
    sz_jwks_unref(&old);
}

bool sz_key_slot_alive(const struct sz_key_slot *slot, uint32_t key_id)
{
    uint32_t n = atomic_load_explicit(&slot->alive_n, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&slot->alive[i], memory_order_relaxed) == key_id)
            return true;
    }
    return false;
}

uint64_t sz_key_slots_changes(void)
{
    return atomic_load_explicit(&changes, memory_order_acquire);
}

/* ---- whether to ask because of a token --------------------------------------------------------------------------- */

static struct sz_key_slot *slot_of(const struct sz_issuers *issuers, int index)
{
    SZ_ASSERT(index >= 0 && (size_t)index < issuers->n);
    return issuers->v[index].slot;
}

/* Under the lock. */
static bool absent(const struct sz_key_slot *slot, uint64_t kid, struct sz_mono now, struct sz_mono *until)
{
    for (size_t i = 0; i < SZ_SLOT_KIDS; i++) {
        if (kid != 0 && slot->fetch.absent[i].kid == kid && now.us < slot->fetch.absent[i].until.us) {
            *until = slot->fetch.absent[i].until;
            return true;
        }
    }
    return false;
}

void sz_keys_look(const struct sz_issuers *issuers, int index, uint64_t kid, struct sz_mono now,
                  struct sz_keys_look *out)
{
    struct sz_key_slot *slot = slot_of(issuers, index);
    *out = (struct sz_keys_look){.answer = SZ_KEYS_FINAL, .again = SZ_NEVER};
    if (slot->loop == NULL) {
        if (sz_issuer_fetches(issuers->v[index].conf)) /* before anybody fetches: could not ask */
            out->answer = SZ_KEYS_DOWN;
        return;
    }
    pthread_mutex_lock(&slot->lock);
    bool cold = slot->keys->n == 0;
    if (!cold && absent(slot, kid, now, &out->again)) {
        out->answer = SZ_KEYS_FINAL;
    } else if (slot->fetch.running || now.us >= slot->fetch.next.us) {
        out->answer = SZ_KEYS_ASK;
    } else {
        out->answer = cold || slot->fetch.failed ? SZ_KEYS_DOWN : SZ_KEYS_FINAL;
        out->again = slot->fetch.next;
    }
    pthread_mutex_unlock(&slot->lock);
}

void sz_keys_absent(const struct sz_issuers *issuers, int index, uint64_t kid, struct sz_mono now)
{
    struct sz_key_slot *slot = slot_of(issuers, index);
    struct sz_mono until = sz_after(now, (struct sz_span){3 * issuers->v[index].conf->cooldown.us}), old;
    if (kid == 0)
        return;
    pthread_mutex_lock(&slot->lock);
    if (!absent(slot, kid, now, &old)) {
        unsigned at = slot->fetch.at++ % SZ_SLOT_KIDS;
        slot->fetch.absent[at].kid = kid;
        slot->fetch.absent[at].until = until;
    }
    pthread_mutex_unlock(&slot->lock);
}

uint64_t sz_keys_source(const struct sz_issuers *issuers, int index)
{
    return slot_of(issuers, index)->id;
}
