/*
 * Sets of seven keys.  The first line of a set holds its lock and the keys, the three behind it their states:
 *
 *   | lock, 7 keys | 7 x (a, b, over) |
 *
 * A look-up touches the first line and one other.  The lock is a word that spins: what it guards takes less time than
 * waking somebody up; the holder of a lock may lose its processor, though, and then spinning gives way.
 */
#include "guard/limit_table.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WAYS  7
#define SPINS 64

struct sz_limit_set {
    _Alignas(SZ_CACHE_LINE) _Atomic uint64_t lock;
    uint64_t keys[WAYS]; /* 0: free */
    struct sz_limit_slot slots[WAYS];
};

struct sz_limit_table {
    struct sz_limit_set *sets;
    size_t sets_n;
    struct sz_key128 key;
    _Atomic uint64_t given_up;
};

struct sz_limit_table *sz_limit_table_new(size_t keys)
{
    struct sz_limit_table *table = sz_xcalloc(1, sizeof(*table));
    table->sets_n = (keys + WAYS - 1) / WAYS;
    sz_random(&table->key, sizeof(table->key));
    table->sets = mmap(NULL, table->sets_n * sizeof(*table->sets), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table->sets == MAP_FAILED) {
        int error = errno;
        free(table);
        errno = error;
        return NULL;
    }
    return table;
}

void sz_limit_table_free(struct sz_limit_table **tablep)
{
    struct sz_limit_table *table = *tablep;
    *tablep = NULL;
    if (table == NULL)
        return;
    munmap(table->sets, table->sets_n * sizeof(*table->sets));
    free(table);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void lock(struct sz_limit_set *set)
{
    for (unsigned spins = 0; atomic_exchange_explicit(&set->lock, 1, memory_order_acquire) != 0;) {
        while (atomic_load_explicit(&set->lock, memory_order_relaxed) != 0) {
            if (++spins % SPINS == 0)
                sched_yield();
            else
                pause_briefly();
        }
    }
}

void sz_limit_slot_giveback(struct sz_limit_set *set)
{
    atomic_store_explicit(&set->lock, 0, memory_order_release);
}

/* A place for a new key: a free one, one that is over, or else the one nearest to it. */
static unsigned place(struct sz_limit_table *table, const struct sz_limit_set *set, uint64_t now)
{
    unsigned best = 0;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set->keys[i] == 0)
            return i;
        if (set->slots[i].over < set->slots[best].over)
            best = i;
    }
    if (set->slots[best].over > now)
        atomic_fetch_add_explicit(&table->given_up, 1, memory_order_relaxed);
    return best;
}

struct sz_hash128 sz_limit_table_hash(const struct sz_limit_table *table, struct sz_slice key)
{
    return sz_hash128(&table->key, key);
}

struct sz_limit_slot *sz_limit_slot_borrow(struct sz_limit_table *table, struct sz_hash128 key, uint64_t now,
                                           bool *fresh, struct sz_limit_set **set)
{
    uint64_t tag = key.w[1] != 0 ? key.w[1] : 1;
    struct sz_limit_set *at = &table->sets[(size_t)((unsigned __int128)key.w[0] * table->sets_n >> 64)];
    unsigned i = 0;
    *set = at;
    lock(at);
    while (i < WAYS && at->keys[i] != tag)
        i++;
    *fresh = i == WAYS || at->slots[i].over <= now;
    if (i == WAYS) {
        i = place(table, at, now);
        at->keys[i] = tag;
    }
    return &at->slots[i];
}

uint64_t sz_limit_table_take(struct sz_limit_table *table, struct sz_slice key, const struct sz_limit_rule *rule,
                             uint64_t now, uint64_t want, struct sz_limit_view *view)
{
    bool fresh;
    struct sz_limit_set *set;
    struct sz_limit_slot *slot = sz_limit_slot_borrow(table, sz_limit_table_hash(table, key), now, &fresh, &set);
    if (fresh)
        slot->state = sz_limit_fresh(rule, now);
    uint64_t fits = sz_limit_take(rule, &slot->state, now, want);
    slot->over = sz_limit_over(rule, &slot->state);
    struct sz_limit_state state = slot->state;
    sz_limit_slot_giveback(set);
    if (view != NULL)
        sz_limit_look(rule, &state, now, view);
    return fits;
}

void sz_limit_table_look(const struct sz_limit_table *table, struct sz_limit_table_look *out)
{
    out->keys = table->sets_n * WAYS;
    out->bytes = table->sets_n * sizeof(*table->sets);
    out->given_up = atomic_load_explicit(&table->given_up, memory_order_relaxed);
}
