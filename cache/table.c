/*
 * The table's write side and its life.  A put locks its set with one try (a busy set means
 * another fact is on its way in: skipping ours costs one more miss, waiting could cost a loop
 * thread its turn); inside the lock nothing is called, allocated or waited for.  Drops, flushes
 * and ends need no lock: they replace a live descriptor by an ended one in one step.
 */
#include "cache/table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_FROM ((size_t)32 << 20)

_Thread_local unsigned sz_table_shard;

void sz_table_count_shared(struct sz_table *table, enum sz_table_count what)
{
    static _Atomic unsigned taken;

    if (sz_table_shard == 0) {
        unsigned n = atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
        sz_table_shard = n < SZ_TABLE_SHARDS ? n + 1 : SZ_TABLE_SHARDS + 1;
    }
    atomic_fetch_add_explicit(&table->cells[sz_table_shard - 1].n[what], 1, memory_order_relaxed);
}

struct sz_table *sz_table_new(size_t capacity, size_t slot_words)
{
    size_t n_sets = (capacity + SZ_TABLE_WAYS - 1) / SZ_TABLE_WAYS;
    size_t slots_size = n_sets * SZ_TABLE_WAYS * slot_words * sizeof(uint64_t);
    size_t sets_size = n_sets * sizeof(struct sz_table_set);
    struct sz_table *table = NULL;
    char *map;

    SZ_ASSERT(slot_words * sizeof(uint64_t) % SZ_CACHE_LINE == 0);
    if (capacity == 0 || capacity > SZ_TABLE_CAPACITY_MAX) {
        errno = EINVAL;
        return NULL;
    }
    if (posix_memalign((void **)&table, SZ_CACHE_LINE, sizeof(*table)) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    memset(table, 0, sizeof(*table));
    table->map_size = slots_size + sets_size;
    map = mmap(NULL, table->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        free(table);
        return NULL;
    }
    (void)madvise(map, table->map_size, MADV_DONTDUMP); /* subjects and claims; a core file needs none */
    /*
     * Huge pages save a tenth of a cold lookup; a small table stays on small pages, of which only the used ones are
     * resident.  Both are hints: a kernel that cannot follow them gives the same answers.
     */
    if (table->map_size >= HUGE_FROM)
        (void)madvise(map, table->map_size, MADV_HUGEPAGE);
    table->map = map;
    table->n_sets = n_sets;
    table->slot_words = slot_words;
    table->slots = (_Atomic uint64_t *)(void *)map;
    table->sets = (struct sz_table_set *)(void *)(map + slots_size);
    return table;
}

void sz_table_free(struct sz_table *table)
{
    if (table == NULL)
        return;
    munmap(table->map, table->map_size);
    free(table);
}

/* A live descriptor -> an ended one, in one step; false: somebody else ended it first. */
static bool end(struct sz_table *table, _Atomic uint64_t *desc, uint64_t seen, enum sz_table_count why)
{
    uint64_t ended = (seen + 1) & SZ_DESC_VERSION;

    if (!atomic_compare_exchange_strong_explicit(desc, &seen, ended, memory_order_relaxed, memory_order_relaxed))
        return false;
    sz_table_count(table, why);
    return true;
}

bool sz_table_end(struct sz_table *table, const struct sz_table_seat *seat, enum sz_table_count why)
{
    return end(table, &seat->slot[SZ_SLOT_DESC], seat->seen, why);
}

void sz_table_payload(const struct sz_table_seat *seat, size_t slot_words, uint64_t *to)
{
    const _Atomic uint64_t *slot = seat->slot;
    size_t left = sz_desc_words(seat->seen), from = SZ_SLOT_PAYLOAD;

    for (; left > 0; slot += slot_words, from = SZ_SLOT_DESC + 1) {
        for (size_t i = from; i < slot_words && left > 0; i++, left--)
            *to++ = sz_table_word(&slot[i]);
    }
}

/* ---- put ------------------------------------------------------------------------------ */

struct sweep { /* what the writer learned about its set; all under the set's lock */
    struct sz_table *table;
    struct sz_table_set *set;
    _Atomic uint64_t *slots;      /* of this set */
    size_t taken[SZ_TABLE_WAYS];  /* slots that the live record at this way has; 0: none starts here */
    unsigned cost[SZ_TABLE_WAYS]; /* of taking it: 0 free, 1 live, WAYS + 1 live and used since the hand passed */
};

static size_t slots_for(const struct sz_table *table, size_t words)
{
    size_t first = table->slot_words - SZ_SLOT_PAYLOAD, next = table->slot_words - (SZ_SLOT_DESC + 1);

    return words <= first ? 1 : 1 + (words - first + next - 1) / next;
}

static _Atomic uint64_t *slot_of(const struct sweep *s, size_t way)
{
    return s->slots + way * s->table->slot_words;
}

/* Ends what has expired and what stood under the same fingerprint; prices the rest. */
static void sweep_set(struct sweep *s, struct sz_fingerprint fp, struct sz_mono now)
{
    unsigned used = atomic_load_explicit(&s->set->used, memory_order_relaxed);

    for (size_t w = 0; w < SZ_TABLE_WAYS; w++) {
        _Atomic uint64_t *slot = slot_of(s, w);
        uint64_t desc = sz_table_word(&slot[SZ_SLOT_DESC]);

        if (sz_desc_words(desc) == 0)
            continue;
        if (sz_table_word(&slot[SZ_SLOT_FP]) == fp.h.w[0] && sz_table_word(&slot[SZ_SLOT_FP + 1]) == fp.h.w[1]) {
            end(s->table, &slot[SZ_SLOT_DESC], desc, SZ_TABLE_REMOVED);
        } else if ((int64_t)sz_table_word(&slot[SZ_SLOT_UNTIL]) <= now.us) {
            end(s->table, &slot[SZ_SLOT_DESC], desc, SZ_TABLE_EXPIRED);
        } else {
            s->taken[w] = slots_for(s->table, sz_desc_words(desc));
            for (size_t i = w; i < w + s->taken[w]; i++)
                s->cost[i] = (used >> w & 1) != 0 ? SZ_TABLE_WAYS + 1 : 1;
        }
    }
}

/*
 * The run of k slots that is cheapest to take, from the hand on.  A record that was used is spared
 * while there is one that was not; when the hand has to take from used ones, all lose their mark and earn it anew.
 */
static size_t choose(struct sweep *s, size_t k)
{
    size_t starts = SZ_TABLE_WAYS - k + 1, best = 0;
    unsigned least = UINT32_MAX;

    for (size_t i = 0; i < starts; i++) {
        size_t at = (s->set->hand + i) % starts;
        unsigned cost = 0;
        for (size_t w = at; w < at + k; w++)
            cost += s->cost[w];
        if (cost < least) {
            least = cost;
            best = at;
        }
    }
    if (least > SZ_TABLE_WAYS)
        atomic_store_explicit(&s->set->used, 0, memory_order_relaxed);
    if (least > 0)
        s->set->hand = (uint8_t)((best + k) % SZ_TABLE_WAYS);
    return best;
}

/* Ends every record that has a slot in [at, at + k). */
static void evict(struct sweep *s, size_t at, size_t k)
{
    for (size_t w = 0; w < at + k; w++) {
        _Atomic uint64_t *desc = &slot_of(s, w)[SZ_SLOT_DESC];
        uint64_t seen = sz_table_word(desc);
        if (sz_desc_words(seen) != 0 && w + s->taken[w] > at)
            end(s->table, desc, seen, SZ_TABLE_EVICTIONS);
    }
}

/* Release on each word: a reader that sees one of them sees the ended descriptors as well. */
static void store_word(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

/* The rest of the last slot is zeroed: readers copy in quads, and nothing of an older record may come along. */
static void store_record(struct sweep *s, size_t way, struct sz_fingerprint fp, struct sz_mono until,
                         const uint64_t *payload, size_t n)
{
    _Atomic uint64_t *slot = slot_of(s, way);
    size_t from = SZ_SLOT_PAYLOAD, done = 0;

    store_word(&slot[SZ_SLOT_FP], fp.h.w[0]);
    store_word(&slot[SZ_SLOT_FP + 1], fp.h.w[1]);
    store_word(&slot[SZ_SLOT_UNTIL], (uint64_t)until.us);
    for (; done < n; slot += s->table->slot_words, from = SZ_SLOT_DESC + 1) {
        for (size_t i = from; i < s->table->slot_words; i++, done++)
            store_word(&slot[i], done < n ? payload[done] : 0);
    }
}

static void publish(struct sweep *s, size_t way, struct sz_fingerprint fp, size_t n, bool flag)
{
    _Atomic uint64_t *desc = &slot_of(s, way)[SZ_SLOT_DESC];
    uint64_t version = (sz_table_word(desc) + 1) & SZ_DESC_VERSION;
    uint64_t tags = atomic_load_explicit(&s->set->tags, memory_order_relaxed) & ~(UINT64_C(0xff) << (way * 8));
    unsigned used = atomic_load_explicit(&s->set->used, memory_order_relaxed) & ~(1u << way);

    atomic_store_explicit(&s->set->tags, tags | (uint64_t)sz_table_tag(fp) << (way * 8), memory_order_relaxed);
    atomic_store_explicit(&s->set->used, (uint8_t)used, memory_order_relaxed);
    store_word(desc, (flag ? SZ_DESC_FLAG : 0) | (uint64_t)n << SZ_DESC_WORDS_AT | version);
}

bool sz_table_put(struct sz_table *table, struct sz_fingerprint fp, struct sz_mono now, struct sz_mono until,
                  const uint64_t *payload, size_t n, bool flag)
{
    size_t at = sz_table_set_of(table, fp), k = slots_for(table, n), way;
    struct sweep s = {table, &table->sets[at], table->slots + at * SZ_TABLE_WAYS * table->slot_words, {0}, {0}};

    if (until.us <= now.us)
        return false;
    if (k > SZ_TABLE_WAYS || n > SZ_DESC_WORDS_MAX) {
        sz_table_count(table, SZ_TABLE_TOO_LARGE);
        return false;
    }
    if (atomic_exchange_explicit(&s.set->locked, 1, memory_order_acquire) != 0) {
        sz_table_count(table, SZ_TABLE_BUSY);
        return false;
    }
    sweep_set(&s, fp, now);
    way = choose(&s, k);
    evict(&s, way, k);
    store_record(&s, way, fp, until, payload, n);
    publish(&s, way, fp, n, flag);
    atomic_store_explicit(&s.set->locked, 0, memory_order_release);
    sz_table_count(table, SZ_TABLE_INSERTS);
    return true;
}

/* ---- drop, flush, stats ----------------------------------------------------------------- */

void sz_table_drop(struct sz_table *table, struct sz_fingerprint fp)
{
    struct sz_table_seat seat;

    while (sz_table_find(table, table->slot_words, fp, &seat)) /* again only when a writer moved it at this moment */
        sz_table_end(table, &seat, SZ_TABLE_REMOVED);
}

static void flush_set(struct sz_table *table, size_t set)
{
    for (size_t w = 0; w < SZ_TABLE_WAYS; w++) {
        _Atomic uint64_t *desc = &table->slots[(set * SZ_TABLE_WAYS + w) * table->slot_words + SZ_SLOT_DESC];
        uint64_t seen = sz_table_word(desc);
        if (sz_desc_words(seen) != 0)
            end(table, desc, seen, SZ_TABLE_REMOVED);
    }
}

void sz_table_flush(struct sz_table *table)
{
    /* A set without a tag was never used: not even its memory is mapped. */
    for (size_t i = 0; i < table->n_sets; i++) {
        if (atomic_load_explicit(&table->sets[i].tags, memory_order_relaxed) != 0)
            flush_set(table, i);
    }
}

void sz_table_stats(struct sz_table *table, struct sz_cache_stats *out)
{
    uint64_t sum[SZ_TABLE_COUNTS] = {0}, gone;

    for (size_t c = 0; c <= SZ_TABLE_SHARDS; c++) {
        for (size_t i = 0; i < SZ_TABLE_COUNTS; i++)
            sum[i] += atomic_load_explicit(&table->cells[c].n[i], memory_order_relaxed);
    }
    gone = sum[SZ_TABLE_EVICTIONS] + sum[SZ_TABLE_EXPIRED] + sum[SZ_TABLE_REMOVED];
    *out = (struct sz_cache_stats){
        .lookups = sum[SZ_TABLE_HITS] + sum[SZ_TABLE_MISSES],
        .hits = sum[SZ_TABLE_HITS],
        .inserts = sum[SZ_TABLE_INSERTS],
        .evictions = sum[SZ_TABLE_EVICTIONS],
        .expired = sum[SZ_TABLE_EXPIRED],
        .too_large = sum[SZ_TABLE_TOO_LARGE],
        .busy = sum[SZ_TABLE_BUSY],
        .entries = sum[SZ_TABLE_INSERTS] > gone ? sum[SZ_TABLE_INSERTS] - gone : 0, /* cells are read one by one */
        .capacity = table->n_sets * SZ_TABLE_WAYS,
        .bytes = sizeof(*table) + table->map_size,
    };
}
