/*
 * L1 for identities: the table, with struct sz_identity packed into its words.
 *
 * Packing drops what is nearly always zero, the scope words beyond the first and the certificate
 * thumbprint (7 of the 17 words of the head), and the unused text.  Most tokens then fit one slot of 256 bytes:
 * 32 of them the table's, 84 the head, which leaves 140 for subject, client, tenant and claims.
 * Which of the two layouts a record has is in its descriptor, so the copy's length and shape are
 * known before the record's memory has arrived.
 */
#include "cache/table.h"

#define SLOT_WORDS     32
#define WORD(field)    (offsetof(struct sz_identity, field) / sizeof(uint64_t))
#define GAP_FROM       (WORD(scopes) + 1) /* narrow: these words are zero and not kept ... */
#define GAP_TO         WORD(subject)
#define GAP            (GAP_TO - GAP_FROM)
#define IDENTITY_WORDS (sizeof(struct sz_identity) / sizeof(uint64_t))
#define ONE_SLOT       (SLOT_WORDS - SZ_SLOT_PAYLOAD)
#define TRIES          4 /* a lookup that meets so many writers on one record is a miss */

_Static_assert(offsetof(struct sz_identity, scopes) % sizeof(uint64_t) == 0, "scopes start a word");
_Static_assert(offsetof(struct sz_identity, x5t) == offsetof(struct sz_identity, scopes) + SZ_SCOPES_MAX / 8,
               "x5t follows scopes: the gap holds nothing else");
_Static_assert(offsetof(struct sz_identity, subject) == offsetof(struct sz_identity, x5t) + 32, "and ends with x5t");
_Static_assert(offsetof(struct sz_identity, subject) % sizeof(uint64_t) == 0, "what follows the gap starts a word");
_Static_assert(GAP_FROM % 4 == 0 && ONE_SLOT % 4 == 0, "both parts of a slot are copied in quads");
_Static_assert(sizeof(struct sz_identity) % sizeof(uint64_t) == 0, "whole words");
_Static_assert(SZ_DESC_WORDS_MAX + GAP <= IDENTITY_WORDS, "no kept record is longer than what it is copied to");

struct sz_token_cache { /* the table under a name of its own */
    struct sz_table table;
};

struct sz_token_cache *sz_token_cache_new(size_t capacity)
{
    return (struct sz_token_cache *)sz_table_new(capacity, SLOT_WORDS);
}

void sz_token_cache_free(struct sz_token_cache **cache)
{
    sz_table_free((struct sz_table *)*cache);
    *cache = NULL;
}

/* ---- read ----------------------------------------------------------------------------- */

static inline void copy_quads(uint64_t *to, const _Atomic uint64_t *from, size_t begin, size_t end)
{
#pragma GCC unroll 8
    for (size_t i = begin; i < end; i += 4)
        sz_table_quad(to + i, from + i);
}

/*
 * The usual record: narrow, in one slot.  Copied with its unused words, which are zero, and with one branch for the
 * slot's last line: the length comes from memory together with the rest, and a loop on it would be a
 * mispredicted branch at the worst place.
 */
static inline void unpack(const struct sz_table_seat *seat, struct sz_identity *out)
{
    uint64_t *to = (uint64_t *)(void *)out;
    const _Atomic uint64_t *from = seat->slot + SZ_SLOT_PAYLOAD;

    copy_quads(to, from, 0, GAP_FROM);
    memset(to + GAP_FROM, 0, GAP * sizeof(*to));
    copy_quads(to + GAP, from, GAP_FROM, ONE_SLOT - 8);
    if (sz_desc_words(seat->seen) > ONE_SLOT - 8)
        copy_quads(to + GAP, from, ONE_SLOT - 8, ONE_SLOT);
}

/* Wide, long, or both. */
static void unpack_other(const struct sz_table_seat *seat, struct sz_identity *out)
{
    uint64_t *to = (uint64_t *)(void *)out;
    size_t n = sz_desc_words(seat->seen);

    sz_table_payload(seat, SLOT_WORDS, to);
    if (!(seat->seen & SZ_DESC_FLAG)) {
        memmove(to + GAP_TO, to + GAP_FROM, (n - GAP_FROM) * sizeof(*to));
        memset(to + GAP_FROM, 0, GAP * sizeof(*to));
    }
}

static inline bool is_usual(const struct sz_table_seat *seat) /* no flag, one slot: one comparison */
{
    return seat->seen >> SZ_DESC_WORDS_AT <= ONE_SLOT;
}

static inline bool token_is_over(const struct sz_table_seat *seat, struct sz_wall wall)
{
    int64_t exp = (int64_t)sz_table_word(&seat->slot[SZ_SLOT_PAYLOAD + WORD(exp)]);

    return exp <= sz_wall_seconds(wall);
}

static inline bool is_over(const struct sz_table_seat *seat, struct sz_mono now, struct sz_wall wall)
{
    return sz_table_until(seat).us <= now.us || token_is_over(seat, wall);
}

/*
 * The usual hit, start to end without a call: no register to save, which counts, because how many lookups the CPU
 * overlaps is a matter of its store queue.  False: anything else; nothing was counted or changed.
 */
static inline bool get_usual(struct sz_table *table, struct sz_fingerprint fp, struct sz_mono now, struct sz_wall wall,
                             struct sz_identity *out)
{
    struct sz_table_seat seat;

    if (!sz_table_find(table, SLOT_WORDS, fp, &seat) || !is_usual(&seat) || is_over(&seat, now, wall))
        return false;
    unpack(&seat, out);
    if (!sz_table_same(&seat))
        return false;
    sz_table_touch(&seat);
    sz_table_count(table, SZ_TABLE_HITS);
    return true;
}

static bool __attribute__((noinline)) get_other(struct sz_table *table, struct sz_fingerprint fp, struct sz_mono now,
                                                struct sz_wall wall, struct sz_identity *out)
{
    struct sz_table_seat seat;

    for (unsigned tries = 0; tries < TRIES && sz_table_find(table, SLOT_WORDS, fp, &seat); tries++) {
        if (token_is_over(&seat, wall)) {
            sz_table_end(table, &seat, SZ_TABLE_EXPIRED); /* fails if it was not this record's end that was read */
            continue;
        }
        if (sz_table_until(&seat).us <= now.us)
            break; /* stays, for sz_token_cache_known, until its place is wanted */
        if (is_usual(&seat))
            unpack(&seat, out);
        else
            unpack_other(&seat, out);
        if (sz_table_same(&seat)) {
            sz_table_touch(&seat);
            sz_table_count(table, SZ_TABLE_HITS);
            return true;
        }
    }
    sz_table_count(table, SZ_TABLE_MISSES);
    return false;
}

bool sz_token_cache_get(struct sz_token_cache *cache, struct sz_fingerprint fp, struct sz_mono now, struct sz_wall wall,
                        struct sz_identity *out)
{
    return SZ_LIKELY(get_usual(&cache->table, fp, now, wall, out)) || get_other(&cache->table, fp, now, wall, out);
}

bool sz_token_cache_known(struct sz_token_cache *cache, struct sz_fingerprint fp, struct sz_wall wall)
{
    struct sz_table_seat seat;

    return sz_table_find(&cache->table, SLOT_WORDS, fp, &seat) && !token_is_over(&seat, wall) && sz_table_same(&seat);
}

/* ---- write ---------------------------------------------------------------------------- */

static bool gap_is_zero(const uint64_t *words)
{
    uint64_t any = 0;

    for (size_t i = GAP_FROM; i < GAP_TO; i++)
        any |= words[i];
    return any == 0;
}

bool sz_token_cache_put(struct sz_token_cache *cache, struct sz_fingerprint fp, const struct sz_identity *id,
                        struct sz_mono now, struct sz_mono until)
{
    uint64_t words[IDENTITY_WORDS];
    size_t size = sz_identity_size(id), n = (size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    bool wide;

    SZ_ASSERT(id->text_n <= SZ_IDENTITY_TEXT);
    words[n - 1] = 0; /* what follows the text in its last word is not ours to keep */
    memcpy(words, id, size);
    wide = !gap_is_zero(words);
    if (!wide) {
        memmove(words + GAP_FROM, words + GAP_TO, (n - GAP_TO) * sizeof(*words));
        n -= GAP;
    }
    return sz_table_put(&cache->table, fp, now, until, words, n, wide);
}

void sz_token_cache_drop(struct sz_token_cache *cache, struct sz_fingerprint fp)
{
    sz_table_drop(&cache->table, fp);
}

void sz_token_cache_flush(struct sz_token_cache *cache)
{
    sz_table_flush(&cache->table);
}

void sz_token_cache_stats(struct sz_token_cache *cache, struct sz_cache_stats *out)
{
    sz_table_stats(&cache->table, out);
}
