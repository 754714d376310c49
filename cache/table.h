/*
 * The table below the caches: fingerprint -> a short run of 64-bit words, with an end.
 *
 * Fixed memory, set-associative.  The fingerprint is a keyed hash, so a client cannot choose
 * a set; its first word picks the set, its second gives the tag, and the slot holds both.
 *
 *   sets      16 bytes a set                        dense: stays in the CPU's own cache
 *             | tag x 8 | used:8 | lock | hand |
 *   slots     8 slots a set, slot_words words each  the part that comes from memory
 *             | desc | fp 0 | fp 1 | until | payload ...
 *               desc: | flag:1 | words:8 | version:55 |
 *
 * The tags say which slot, and all that a lookup needs to know begins in the slot's first line: one wait for
 * memory per lookup.
 *
 * A payload that is longer than its slot runs on into the next ones of its set, behind their
 * descriptors, which are then not live.  So short records cost one slot each, long ones are cached all
 * the same, and the memory is the same whatever comes.  What is longer than a set is not kept, and counted.
 *
 * Readers take no lock: the descriptor is the version.  A writer first ends the descriptors whose
 * slots it is about to use, then stores the words, then publishes; versions only grow.  A reader
 * loads the descriptor, copies the words, and believes them only when the descriptor is still the
 * same.  Words are stored with release and loaded with acquire (plain moves on x86): whoever has
 * seen a new word sees the ended descriptor too.  Fences would say the same, but ThreadSanitizer
 * does not know them.
 */
#ifndef CACHE_TABLE_H
#define CACHE_TABLE_H

#include <stdatomic.h>

#include "subzero/cache.h"

#define SZ_TABLE_WAYS         8
#define SZ_TABLE_CAPACITY_MAX 500000
#define SZ_TABLE_SHARDS       64 /* threads that count in cells of their own; further ones share one cell */

enum { SZ_SLOT_DESC, SZ_SLOT_FP, SZ_SLOT_UNTIL = SZ_SLOT_FP + 2, SZ_SLOT_PAYLOAD }; /* words of a slot */

/* Descriptor.  A slot that is free, or the continuation of another, has no words. */
#define SZ_DESC_WORDS_AT  55
#define SZ_DESC_VERSION   ((UINT64_C(1) << SZ_DESC_WORDS_AT) - 1)
#define SZ_DESC_WORDS_MAX 255
#define SZ_DESC_FLAG      (UINT64_C(1) << 63) /* the caller's: which of two layouts the payload has */

struct sz_table_set {
    _Atomic uint64_t tags;  /* byte w: way w's; the writer's, may be of an ended record, 0 where none ever was */
    _Atomic uint8_t used;   /* bit w: hit since the hand passed; set by readers, cleared by the writer */
    _Atomic uint8_t locked; /* one writer a set; nobody waits for it */
    uint8_t hand;           /* where the search for a victim starts; the lock's */
};

enum sz_table_count {
    SZ_TABLE_HITS,
    SZ_TABLE_MISSES,
    SZ_TABLE_INSERTS,
    SZ_TABLE_EVICTIONS,
    SZ_TABLE_EXPIRED, /* removed because their end had come */
    SZ_TABLE_REMOVED, /* replaced under the same fingerprint, dropped or flushed */
    SZ_TABLE_TOO_LARGE,
    SZ_TABLE_BUSY, /* puts that met another writer */
    SZ_TABLE_COUNTS
};

struct sz_table_cell { /* one line a thread: counting shares nothing */
    _Alignas(SZ_CACHE_LINE) _Atomic uint64_t n[SZ_TABLE_COUNTS];
};

struct sz_table {
    uint64_t n_sets;
    size_t slot_words;
    struct sz_table_set *sets;
    _Atomic uint64_t *slots;
    void *map; /* both, one mapping; pages cost memory from their first use on */
    size_t map_size;
    struct sz_table_cell cells[SZ_TABLE_SHARDS + 1];
};

/* capacity in slots, 1 to 500,000, rounded up to whole sets; slot_words per slot, whole lines.  NULL: errno. */
struct sz_table *sz_table_new(size_t capacity, size_t slot_words);
void sz_table_free(struct sz_table *table);

/*
 * Any thread.  Keeps n > 0 payload words until `until`; replaces what stood under this fingerprint.
 * False: not kept, and counted: longer than a set, or another writer is in this set.  Also when `until` has come.
 */
bool sz_table_put(struct sz_table *table, struct sz_fingerprint fp, struct sz_mono now, struct sz_mono until,
                  const uint64_t *payload, size_t n, bool flag);
/* Any thread, no lock: always does what it says; only a put that runs at the same moment can win against it. */
void sz_table_drop(struct sz_table *table, struct sz_fingerprint fp);
void sz_table_flush(struct sz_table *table);
void sz_table_stats(struct sz_table *table, struct sz_cache_stats *out);

/* ---- the read path, inline: see sz_table_find --------------------------------------------- */

struct sz_table_seat { /* what a reader found; its words may be in motion until sz_table_same */
    struct sz_table_set *set;
    _Atomic uint64_t *slot;
    uint64_t seen; /* its descriptor */
    unsigned way;
};

extern _Thread_local unsigned sz_table_shard; /* the calling thread's cell + 1; 0: none yet */
void sz_table_count_shared(struct sz_table *table, enum sz_table_count what) SZ_COLD; /* also takes a cell */

static inline void sz_table_count(struct sz_table *table, enum sz_table_count what)
{
    unsigned cell = sz_table_shard - 1;

    if (SZ_LIKELY(cell < SZ_TABLE_SHARDS)) { /* nobody else writes this cell: no locked instruction */
        _Atomic uint64_t *n = &table->cells[cell].n[what];
        atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
    } else {
        sz_table_count_shared(table, what);
    }
}

static inline size_t sz_table_set_of(const struct sz_table *table, struct sz_fingerprint fp)
{
    return (size_t)(((unsigned __int128)fp.h.w[0] * table->n_sets) >> 64); /* any number of sets, no division */
}

static inline uint8_t sz_table_tag(struct sz_fingerprint fp) /* never 0 */
{
    uint8_t low = (uint8_t)fp.h.w[1];

    return (uint8_t)(low + (low == 0));
}

static inline size_t sz_desc_words(uint64_t desc)
{
    return (desc >> SZ_DESC_WORDS_AT) & SZ_DESC_WORDS_MAX;
}

static inline uint64_t sz_table_word(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

/* Bit 8w + 7 set: byte w of tags equals tag.  Exact, no false neighbours. */
static inline uint64_t sz_table_match(uint64_t tags, uint8_t tag)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t differs = tags ^ (UINT64_C(0x0101010101010101) * tag);

    return ~(((differs & low) + low) | differs | low);
}

/*
 * Any thread.  True: *seat is a live slot whose whole fingerprint is `fp`, whatever its end.  The caller copies
 * words with sz_table_word and then asks sz_table_same; false there: what was copied means nothing, look again.
 * slot_words: the table's, as a constant for the compiler.
 */
static inline bool sz_table_find(const struct sz_table *table, size_t slot_words, struct sz_fingerprint fp,
                                 struct sz_table_seat *seat)
{
    size_t at = sz_table_set_of(table, fp);
    struct sz_table_set *set = &table->sets[at];
    uint64_t match = sz_table_match(atomic_load_explicit(&set->tags, memory_order_relaxed), sz_table_tag(fp));

    for (; match != 0; match &= match - 1) {
        unsigned way = (unsigned)__builtin_ctzll(match) / 8;
        _Atomic uint64_t *slot = table->slots + (at * SZ_TABLE_WAYS + way) * slot_words;
        uint64_t seen = sz_table_word(&slot[SZ_SLOT_DESC]);

        if (SZ_LIKELY(sz_desc_words(seen) != 0 && sz_table_word(&slot[SZ_SLOT_FP]) == fp.h.w[0] &&
                      sz_table_word(&slot[SZ_SLOT_FP + 1]) == fp.h.w[1])) {
            *seat = (struct sz_table_seat){set, slot, seen, way};
            return true;
        }
    }
    return false;
}

/* The words loaded from this seat before were of one record, and it still stands. */
static inline bool sz_table_same(const struct sz_table_seat *seat)
{
    atomic_signal_fence(memory_order_acquire); /* for the compiler: the vector loads of sz_table_quad are no atomics */
    return atomic_load_explicit(&seat->slot[SZ_SLOT_DESC], memory_order_relaxed) == seat->seen;
}

static inline struct sz_mono sz_table_until(const struct sz_table_seat *seat)
{
    return (struct sz_mono){(int64_t)sz_table_word(&seat->slot[SZ_SLOT_UNTIL])};
}

/*
 * After a hit.  Stores only when the mark is not there yet, so that hot entries are not passed between the CPUs.
 * Two readers can overwrite each other's mark; a lost one costs a second chance, a locked instruction would cost each
 * hit.
 */
static inline void sz_table_touch(const struct sz_table_seat *seat)
{
    uint8_t used = atomic_load_explicit(&seat->set->used, memory_order_relaxed), bit = (uint8_t)(1u << seat->way);

    if (SZ_UNLIKELY((used & bit) == 0))
        atomic_store_explicit(&seat->set->used, used | bit, memory_order_relaxed);
}

/*
 * Four words.  x86 keeps the order of loads whatever their width, and each aligned half of a vector load is whole, so
 * two vector moves do what four acquire loads say, with half the instructions: a third of a cold lookup's time.
 * ThreadSanitizer and other CPUs get the four.
 */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
typedef uint64_t sz_word_pair __attribute__((vector_size(16), aligned(8), may_alias));

static inline void sz_table_quad(uint64_t *to, const _Atomic uint64_t *from)
{
    sz_word_pair a = *(const volatile sz_word_pair *)(const volatile void *)&from[0];
    sz_word_pair b = *(const volatile sz_word_pair *)(const volatile void *)&from[2];

    *(sz_word_pair *)&to[0] = a;
    *(sz_word_pair *)&to[2] = b;
}
#else
static inline void sz_table_quad(uint64_t *to, const _Atomic uint64_t *from)
{
    for (size_t i = 0; i < 4; i++)
        to[i] = sz_table_word(&from[i]);
}
#endif

/* All payload words of the record, also of one that runs on over several slots; `to` has room for 255. */
void sz_table_payload(const struct sz_table_seat *seat, size_t slot_words, uint64_t *to);

/* Any thread, no lock: ends the record of this seat if it still stands, and counts it under `why`. */
bool sz_table_end(struct sz_table *table, const struct sz_table_seat *seat, enum sz_table_count why) SZ_COLD;

#endif
