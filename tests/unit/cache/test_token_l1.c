/* Identities in and out of L1: exact bytes, exact ends, and the same answers as a plain model under random use. */
#include <criterion/criterion.h>

#include "facts.h"

#define T(us)      ((struct sz_mono){us})
#define W(seconds) ((struct sz_wall){(int64_t)(seconds)*1000000})
#define EXP        2000000000

static struct sz_token_cache *new_cache(size_t capacity)
{
    struct sz_token_cache *cache = sz_token_cache_new(capacity);

    cr_assert_not_null(cache);
    return cache;
}

static struct sz_cache_stats stats_of(struct sz_token_cache *cache)
{
    struct sz_cache_stats stats;

    sz_token_cache_stats(cache, &stats);
    return stats;
}

Test(token_l1, capacity_out_of_range_is_refused)
{
    struct sz_token_cache *none = NULL;

    cr_assert_null(sz_token_cache_new(0));
    cr_assert_null(sz_token_cache_new(500001));
    sz_token_cache_free(&none);
}

Test(token_l1, every_text_length_comes_back_whole_or_is_not_kept)
{
    struct sz_token_cache *cache = new_cache(1);
    size_t kept = 0;

    for (int wide = 0; wide < 2; wide++)
        for (size_t text = 1; text <= SZ_IDENTITY_TEXT; text++) {
            struct sz_fingerprint fp = fact_fp(3, 5, (uint32_t)text);
            struct sz_identity id, out;
            bool hit;

            fact_identity(&id, text, text, wide != 0, EXP);
            memset(&out, 0x5a, sizeof(out));
            hit = sz_token_cache_put(cache, fp, &id, T(1), T(100));
            cr_assert_eq(sz_token_cache_get(cache, fp, T(1), W(1), &out), hit, "text %zu", text);
            cr_assert(!hit || fact_same(&id, &out), "text %zu, wide %d", text, wide);
            kept += hit;
            sz_token_cache_drop(cache, fp); /* the next round has the same fingerprints */
        }
    cr_assert_gt(kept, 2 * 1800); /* all but the very longest */
    cr_assert_eq(kept + stats_of(cache).too_large, 2 * SZ_IDENTITY_TEXT);
    sz_token_cache_free(&cache);
}

Test(token_l1, nothing_of_an_older_record_comes_along)
{
    struct sz_token_cache *cache = new_cache(1);
    struct sz_identity id, out;
    size_t leaked = 0;

    fact_identity(&id, 1, 130, false, EXP);
    cr_assert(sz_token_cache_put(cache, fact_fp(1, 1, 1), &id, T(1), T(2)));
    fact_identity(&id, 2, 9, false, EXP); /* takes the slot of the expired one */
    cr_assert(sz_token_cache_put(cache, fact_fp(1, 1, 2), &id, T(2), T(100)));
    memset(&out, 0, sizeof(out));
    cr_assert(sz_token_cache_get(cache, fact_fp(1, 1, 2), T(2), W(1), &out));
    for (size_t i = out.text_n; i < SZ_IDENTITY_TEXT; i++)
        leaked += out.text[i] != 0;
    cr_assert_eq(leaked, 0);
    sz_token_cache_free(&cache);
}

Test(token_l1, ends_at_the_exact_instant)
{
    const struct {
        int64_t until, exp; /* microseconds, seconds */
        int64_t now, wall;  /* microseconds both */
        bool hit;
    } rows[] = {
        {1000, 50, 999, 1000000, true},
        {1000, 50, 1000, 1000000, false}, /* its deadline */
        {1000, 50, 1001, 1000000, false},
        {INT64_MAX, 50, 999, 49999999, true},
        {INT64_MAX, 50, 999, 50000000, false}, /* its exp: "on or after" ends it */
        {INT64_MAX, 50, 999, 50000001, false},
        {INT64_MAX, 50, 999, INT64_MAX, false},
        {INT64_MAX, 50, 999, -1, true},  /* a wall clock before 1970 is no reason to forget ... */
        {INT64_MAX, -1, 999, -1, false}, /* ... but its seconds round down */
        {INT64_MAX, 0, 999, -1, true},
        {INT64_MAX, 0, 999, 0, false},
        {INT64_MAX, INT64_MAX, 999, INT64_MAX, true},
        {INT64_MAX, INT64_MIN, 999, 0, false},
    };

    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_token_cache *cache = new_cache(8);
        struct sz_identity id, out;
        struct sz_wall wall = {rows[i].wall};

        fact_identity(&id, i, 30, false, rows[i].exp);
        cr_assert(sz_token_cache_put(cache, fact_fp(1, 1, 1), &id, T(1), T(rows[i].until)));
        cr_assert_eq(sz_token_cache_get(cache, fact_fp(1, 1, 1), T(rows[i].now), wall, &out), rows[i].hit, "row %zu",
                     i);
        /* A fact whose own deadline has come stays known; one whose token is over is gone. */
        bool over = rows[i].exp <= sz_wall_seconds(wall);
        cr_assert_eq(sz_token_cache_known(cache, fact_fp(1, 1, 1), wall), !over, "row %zu", i);
        cr_assert_eq(stats_of(cache).expired, over ? 1 : 0, "row %zu", i);
        cr_assert_eq(stats_of(cache).entries, over ? 0 : 1, "row %zu", i);
        sz_token_cache_free(&cache);
    }
}

Test(token_l1, a_step_of_the_wall_clock_stretches_nothing)
{
    struct sz_token_cache *cache = new_cache(8);
    struct sz_identity id, out;

    fact_identity(&id, 1, 30, false, EXP);
    cr_assert(sz_token_cache_put(cache, fact_fp(1, 1, 1), &id, T(1), T(1000)));
    cr_assert(sz_token_cache_get(cache, fact_fp(1, 1, 1), T(999), W(EXP - 3600), &out));
    cr_assert_not(sz_token_cache_get(cache, fact_fp(1, 1, 1), T(1000), W(1), &out)); /* wall back by decades */
    sz_token_cache_free(&cache);
}

Test(token_l1, a_newer_fact_replaces_the_older)
{
    struct sz_token_cache *cache = new_cache(8);
    struct sz_identity old, new, out;

    fact_identity(&old, 1, 30, false, EXP);
    fact_identity(&new, 2, 500, true, EXP);
    old.generation = 1;
    new.generation = 2; /* as after a reload: the caller finds it stale, verifies and puts again */
    cr_assert(sz_token_cache_put(cache, fact_fp(1, 1, 1), &old, T(1), T(100)));
    cr_assert(sz_token_cache_put(cache, fact_fp(1, 1, 1), &new, T(1), T(100)));
    cr_assert(sz_token_cache_get(cache, fact_fp(1, 1, 1), T(1), W(1), &out));
    cr_assert_eq(out.generation, 2);
    cr_assert(fact_same(&new, &out));
    cr_assert_eq(stats_of(cache).entries, 1);
    sz_token_cache_free(&cache);
}

Test(token_l1, counts_lookups_and_hits)
{
    struct sz_token_cache *cache = new_cache(8);
    struct sz_identity id, out;

    fact_identity(&id, 1, 30, false, EXP);
    cr_assert(sz_token_cache_put(cache, fact_fp(1, 1, 1), &id, T(1), T(100)));
    for (int i = 0; i < 3; i++)
        cr_assert(sz_token_cache_get(cache, fact_fp(1, 1, 1), T(1), W(1), &out));
    cr_assert_not(sz_token_cache_get(cache, fact_fp(1, 1, 2), T(1), W(1), &out));
    cr_assert_eq(stats_of(cache).lookups, 4);
    cr_assert_eq(stats_of(cache).hits, 3);
    cr_assert_eq(stats_of(cache).inserts, 1);
    sz_token_cache_flush(cache);
    cr_assert_not(sz_token_cache_get(cache, fact_fp(1, 1, 1), T(1), W(1), &out));
    cr_assert_eq(stats_of(cache).entries, 0);
    sz_token_cache_free(&cache);
}

Test(token_l1, half_a_million_entries)
{
    struct sz_token_cache *cache = new_cache(500000);
    struct sz_identity id, out;
    uint64_t seed = 1, check = 1;
    size_t hits = 0;

    fact_identity(&id, 1, 60, false, EXP);
    for (size_t i = 0; i < 100000; i++) {
        struct sz_fingerprint fp = {{{fact_random(&seed), fact_random(&seed)}}};
        id.jti = fp.h.w[0];
        sz_token_cache_put(cache, fp, &id, T(1), T(100));
    }
    for (size_t i = 0; i < 100000; i++) {
        struct sz_fingerprint fp = {{{fact_random(&check), fact_random(&check)}}};
        if (sz_token_cache_get(cache, fp, T(1), W(1), &out)) {
            cr_assert_eq(out.jti, fp.h.w[0]);
            hits++;
        }
    }
    cr_assert_eq(hits + stats_of(cache).evictions, 100000);
    cr_assert_gt(hits, 99900); /* a fifth full: sets overflow hardly ever */
    sz_token_cache_free(&cache);
}

/* ---- against a plain model ------------------------------------------------------------ */

#define KEYS 400

struct model { /* what a cache of unlimited size would know */
    struct sz_identity id[KEYS];
    int64_t until[KEYS]; /* 0: nothing */
};

struct play {
    struct sz_token_cache *cache;
    struct model *model;
    uint64_t seed;
    int64_t now;
    size_t keys, lost; /* lost: known to the model and not to the cache */
    size_t longest;    /* text */
};

static struct sz_fingerprint key_fp(size_t key)
{
    return fact_fp((uint32_t)key << 23, 1, (uint32_t)key);
}

static void play_get(struct play *p, size_t key)
{
    struct sz_identity out;
    bool known = p->model->until[key] > p->now;
    bool hit = sz_token_cache_get(p->cache, key_fp(key), T(p->now), W(1), &out);

    cr_assert(!hit || known, "a hit that the model does not know");
    cr_assert(!hit || fact_same(&out, &p->model->id[key]), "a hit with other content");
    if (known && !hit) {
        p->model->until[key] = 0; /* evicted */
        p->lost++;
    }
}

static void play_drop(struct play *p, size_t key)
{
    sz_token_cache_drop(p->cache, key_fp(key));
    p->model->until[key] = 0;
}

/* A put that is refused leaves what stood there before: the model does the same. */
static void play_put(struct play *p, size_t key)
{
    uint64_t r = fact_random(&p->seed);
    int64_t until = p->now + (int64_t)(r >> 32) % 60 - 5; /* some are over before they begin */
    struct sz_identity id;

    fact_identity(&id, r, 1 + r % p->longest, (r >> 20 & 7) == 0, EXP);
    if (sz_token_cache_put(p->cache, key_fp(key), &id, T(p->now), T(until))) {
        p->model->id[key] = id;
        p->model->until[key] = until;
    }
}

static void play_step(struct play *p)
{
    uint64_t r = fact_random(&p->seed);
    size_t key = r % p->keys;
    unsigned what = r >> 32 & 15;

    if (what < 9) {
        play_get(p, key);
    } else if (what < 13) {
        play_put(p, key);
    } else if (what < 14) {
        play_drop(p, key);
    } else if (what < 15) {
        p->now += (int64_t)(r >> 40) % 10;
    } else if ((r >> 40) % 500 == 0) {
        sz_token_cache_flush(p->cache);
        memset(p->model->until, 0, sizeof(p->model->until));
    }
}

static void play(struct play *p, size_t capacity, size_t steps)
{
    p->cache = new_cache(capacity);
    p->model = calloc(1, sizeof(*p->model));
    p->now = 1000;
    for (size_t i = 0; i < steps; i++)
        play_step(p);
    free(p->model);
}

Test(token_l1, random_use_with_room_for_all_is_the_model_exactly)
{
    struct play p = {.seed = 42, .keys = 8, .longest = 60}; /* one set holds all eight, wide ones in two slots hardly */

    play(&p, 64, 200000);
    cr_assert_eq(p.lost, 0);
    cr_assert_eq(stats_of(p.cache).evictions, 0);
    sz_token_cache_free(&p.cache);
}

Test(token_l1, random_use_under_pressure_forgets_but_never_lies)
{
    struct play p = {.seed = 43, .keys = KEYS, .longest = SZ_IDENTITY_TEXT};

    play(&p, 64, 200000);
    cr_assert_gt(p.lost, 0);
    cr_assert_leq(p.lost, stats_of(p.cache).evictions);
    cr_assert_leq(stats_of(p.cache).entries, stats_of(p.cache).capacity);
    sz_token_cache_free(&p.cache);
}
