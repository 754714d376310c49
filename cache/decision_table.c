/* See cache/decision_table.h. */
#include "cache/decision_table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "subzero/decision.h"

#define WAYS      5
#define SHARDS    64 /* threads that count in cells of their own; all others share one */
#define HUGE_FROM ((size_t)16 << 20)

#define SOURCE  UINT64_C(3)
#define ALLOWED UINT64_C(4)
#define LIVE    UINT64_C(8)
#define END_AT  24
#define END_MAX ((INT64_C(1) << (64 - END_AT)) - 1)

struct entry {
    _Atomic uint64_t a, b, m;
};

struct set {
    struct entry way[WAYS];
    _Atomic uint8_t used;   /* bit w: hit since the hand passed */
    _Atomic uint8_t locked; /* one writer a set; nobody waits for it */
    uint8_t hand;           /* the lock's */
    uint8_t pad[5];
};
_Static_assert(sizeof(struct set) == 2 * (size_t)SZ_CACHE_LINE, "a set is two lines: at most 32 bytes an entry");

enum count { HITS, MISSES, INSERTS, EVICTIONS, EXPIRED, REMOVED, BUSY, COUNTS };

struct cell {
    _Alignas(SZ_CACHE_LINE) _Atomic uint64_t n[COUNTS];
};

struct sz_decision_table {
    size_t n_sets;
    struct set *sets;
    struct cell cells[SHARDS + 1];
};

struct sz_decision_table *sz_decision_table_new(size_t capacity)
{
    struct sz_decision_table *table = NULL;
    size_t n_sets = (capacity + WAYS - 1) / WAYS, size = n_sets * sizeof(struct set);

    if (capacity == 0 || capacity > SZ_DECISIONS_MAX) {
        errno = EINVAL;
        return NULL;
    }
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (size >= HUGE_FROM) /* a hint; a small table stays on small pages, of which only the used ones are resident */
        (void)madvise(map, size, MADV_HUGEPAGE);
    if (posix_memalign((void **)&table, SZ_CACHE_LINE, sizeof(*table)) != 0) {
        munmap(map, size);
        errno = ENOMEM;
        return NULL;
    }
    memset(table, 0, sizeof(*table));
    table->n_sets = n_sets;
    table->sets = map;
    return table;
}

void sz_decision_table_free(struct sz_decision_table **table)
{
    if (*table == NULL)
        return;
    munmap((*table)->sets, (*table)->n_sets * sizeof(struct set));
    free(*table);
    *table = NULL;
}

static void count(struct sz_decision_table *table, unsigned thread, enum count what)
{
    _Atomic uint64_t *n = &table->cells[thread < SHARDS ? thread : SHARDS].n[what];
    if (SZ_LIKELY(thread < SHARDS)) /* nobody else writes this cell */
        atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

static inline struct set *set_of(const struct sz_decision_table *table, struct sz_hash128 key)
{
    return &table->sets[(size_t)(((unsigned __int128)key.w[0] * table->n_sets) >> 64)];
}

static inline uint64_t turned(uint64_t m)
{
    return m << 32 | m >> 32;
}

static inline uint64_t word(const _Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

/* What is known under this key here; 0: nothing. */
static inline uint64_t look(const struct entry *e, struct sz_hash128 key)
{
    uint64_t m = word(&e->m);
    uint64_t differs = (word(&e->a) ^ m ^ key.w[0]) | (word(&e->b) ^ turned(m) ^ key.w[1]);
    return differs == 0 && (m & LIVE) != 0 ? m : 0;
}

static inline bool is_over(uint64_t m, struct sz_mono now)
{
    return (int64_t)(m >> END_AT) <= now.us / 1000;
}

bool sz_decision_table_get(struct sz_decision_table *table, unsigned thread, struct sz_hash128 key, struct sz_mono now,
                           struct sz_decision *out)
{
    struct set *set = set_of(table, key);

    for (unsigned w = 0; w < WAYS; w++) {
        uint64_t m = look(&set->way[w], key);
        if (m == 0)
            continue;
        if (is_over(m, now))
            break; /* its place is taken by the answer that the caller is about to get */
        uint8_t used = atomic_load_explicit(&set->used, memory_order_relaxed), bit = (uint8_t)(1U << w);
        if (SZ_UNLIKELY((used & bit) == 0)) /* a hot entry's line is not written to by every hit */
            atomic_store_explicit(&set->used, used | bit, memory_order_relaxed);
        count(table, thread, HITS);
        *out = (struct sz_decision){(m & ALLOWED) != 0, (enum sz_authz_source)(m & SOURCE)};
        return true;
    }
    count(table, thread, MISSES);
    return false;
}

/* ---- put, flush, stats ------------------------------------------------------------------------------------------- */

static void store(struct entry *e, struct sz_hash128 key, uint64_t m)
{
    atomic_store_explicit(&e->m, m, memory_order_relaxed);
    atomic_store_explicit(&e->a, key.w[0] ^ m, memory_order_relaxed);
    atomic_store_explicit(&e->b, key.w[1] ^ turned(m), memory_order_relaxed);
}

/* The same key's, else one that is free or over, else the first from the hand on that was not used of late. */
static unsigned choose(struct set *set, struct sz_hash128 key, struct sz_mono now, enum count *why)
{
    unsigned over = WAYS, unused = WAYS, used = atomic_load_explicit(&set->used, memory_order_relaxed);

    for (unsigned i = 0; i < WAYS; i++) {
        unsigned w = (set->hand + i) % WAYS;
        uint64_t m = word(&set->way[w].m);
        if (look(&set->way[w], key) != 0) {
            *why = REMOVED;
            return w;
        }
        if (over == WAYS && ((m & LIVE) == 0 || is_over(m, now)))
            over = w;
        if (unused == WAYS && (used >> w & 1) == 0)
            unused = w;
    }
    if (over < WAYS) {
        *why = (word(&set->way[over].m) & LIVE) != 0 ? EXPIRED : COUNTS;
        return over;
    }
    if (unused == WAYS) { /* all were: all lose their mark, and earn it anew */
        atomic_store_explicit(&set->used, 0, memory_order_relaxed);
        unused = set->hand;
    }
    set->hand = (uint8_t)((unused + 1) % WAYS);
    *why = EVICTIONS;
    return unused;
}

bool sz_decision_table_put(struct sz_decision_table *table, unsigned thread, struct sz_hash128 key, struct sz_mono now,
                           struct sz_mono until, struct sz_decision decision)
{
    struct set *set = set_of(table, key);
    int64_t end = until.us / 1000;
    enum count why;

    if (end <= now.us / 1000)
        return false;
    if (atomic_exchange_explicit(&set->locked, 1, memory_order_acquire) != 0) {
        count(table, thread, BUSY);
        return false;
    }
    unsigned w = choose(set, key, now, &why);
    uint64_t m = (uint64_t)(end > END_MAX ? END_MAX : end) << END_AT | LIVE | (decision.allowed ? ALLOWED : 0) |
                 (uint64_t)decision.source;
    store(&set->way[w], key, m);
    uint8_t used = atomic_load_explicit(&set->used, memory_order_relaxed);
    atomic_store_explicit(&set->used, (uint8_t)(used & ~(1U << w)), memory_order_relaxed);
    atomic_store_explicit(&set->locked, 0, memory_order_release);
    count(table, thread, INSERTS);
    if (why != COUNTS)
        count(table, thread, why);
    return true;
}

/* A put that runs at the same moment can win; whoever flushes because of a change changes the epoch first. */
void sz_decision_table_flush(struct sz_decision_table *table)
{
    for (size_t i = 0; i < table->n_sets; i++) {
        for (unsigned w = 0; w < WAYS; w++) {
            _Atomic uint64_t *m = &table->sets[i].way[w].m;
            if ((word(m) & LIVE) != 0 && (atomic_exchange_explicit(m, 0, memory_order_relaxed) & LIVE) != 0)
                count(table, UINT32_MAX, REMOVED);
        }
    }
}

void sz_decision_table_stats(struct sz_decision_table *table, struct sz_cache_stats *out)
{
    uint64_t sum[COUNTS] = {0}, gone;

    for (size_t c = 0; c <= SHARDS; c++) {
        for (size_t i = 0; i < COUNTS; i++)
            sum[i] += word(&table->cells[c].n[i]);
    }
    gone = sum[EVICTIONS] + sum[EXPIRED] + sum[REMOVED];
    *out = (struct sz_cache_stats){
        .lookups = sum[HITS] + sum[MISSES],
        .hits = sum[HITS],
        .inserts = sum[INSERTS],
        .evictions = sum[EVICTIONS],
        .expired = sum[EXPIRED],
        .busy = sum[BUSY],
        .entries = sum[INSERTS] > gone ? sum[INSERTS] - gone : 0, /* cells are read one by one */
        .capacity = table->n_sets * WAYS,
        .bytes = sizeof(*table) + table->n_sets * sizeof(struct set),
    };
}
