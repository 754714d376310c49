/*
 * P3: what a lookup in the L1 token cache costs, what the table costs in memory, and whether two
 * threads get twice as much out of it.  Prints one JSON object: per figure the median of the repetitions,
 * their spread, and how many there were.
 *
 *   micro_l1 [repetitions]
 *
 * Times are CPU time of the measuring thread, so that a neighbour on the machine costs less of the
 * truth.  "hot" looks up 64 tokens again and again; "cold" walks all tokens of the table in random order, at
 * 500,000 entries far more memory than any CPU cache here; "chained" makes each lookup wait for the one before,
 * which is the latency a single request sees when its record is in no CPU cache at all.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "subzero/cache.h"

#define REPETITIONS_MAX 101
#define LOOKUPS         400000

static const struct sz_mono NOW = {1000000};
static const struct sz_wall WALL = {1700000000000000};

struct table {
    struct sz_token_cache *cache;
    struct sz_fingerprint *order; /* live tokens, shuffled */
    size_t n;
    double resident; /* bytes per entry that filling it added to the process */
};

struct figure {
    const char *name, *unit;
    double value[REPETITIONS_MAX];
    int n;
};

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t random64(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t resident_bytes(void)
{
    unsigned long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%lu %lu", &total, &resident) != 2)
        resident = 0;
    if (f != NULL)
        fclose(f);
    return resident * 4096;
}

static void must(int result)
{
    if (result != 0)
        abort();
}

/* An ordinary access token's facts: subject, client, tenant and one claim, about 110 bytes of text. */
static void identity_of(struct sz_identity *id, uint64_t n)
{
    char text[64];

    sz_identity_init(id);
    id->kind = SZ_CREDENTIAL_JWT;
    id->generation = 7;
    id->exp = 1700003600;
    id->iat = 1700000000;
    id->flags = SZ_ID_HAS_IAT | SZ_ID_HAS_JTI;
    id->jti = n;
    id->scopes[0] = 5;
    snprintf(text, sizeof(text), "auth0|%024llx", (unsigned long long)n);
    must(sz_identity_add_text(id, sz_cstr(text), &id->subject));
    must(sz_identity_add_text(id, SZ_S("aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"), &id->client));
    must(sz_identity_add_text(id, SZ_S("org_0123456789abcdef"), &id->tenant));
    must(sz_identity_add_claim(id, 3, SZ_CLAIM_STRING, SZ_S("someone@example.com")));
}

/* Four fifths full, so that nearly every set holds all of its tokens; those that were pushed out are not looked up. */
static void fill(struct table *t, size_t capacity)
{
    size_t want = capacity / 5 * 4, before = resident_bytes();
    struct sz_fingerprint *all = calloc(want, sizeof(*all));
    struct sz_identity id, out;
    struct sz_cache_stats stats;
    uint64_t seed = capacity;

    t->cache = sz_token_cache_new(capacity);
    t->order = calloc(want, sizeof(*t->order));
    if (t->cache == NULL || all == NULL || t->order == NULL)
        abort();
    for (size_t i = 0; i < want; i++) {
        all[i].h.w[0] = random64(&seed);
        all[i].h.w[1] = random64(&seed);
        identity_of(&id, i);
        sz_token_cache_put(t->cache, all[i], &id, NOW, SZ_NEVER);
    }
    for (size_t i = 0; i < want; i++)
        if (sz_token_cache_get(t->cache, all[i], NOW, WALL, &out))
            t->order[t->n++] = all[i];
    for (size_t i = t->n - 1; i > 0; i--) {
        size_t j = random64(&seed) % (i + 1);
        struct sz_fingerprint swap = t->order[i];
        t->order[i] = t->order[j];
        t->order[j] = swap;
    }
    sz_token_cache_stats(t->cache, &stats);
    t->resident = ((double)(resident_bytes() - before) - (double)(2 * want * sizeof(*all))) / (double)stats.entries;
    free(all);
}

/* ns per lookup; `among` tokens from `from` on, in order (they are shuffled). */
static double lookups(const struct table *t, size_t from, size_t among, size_t count)
{
    struct sz_identity out;
    double start = cpu_ns();
    size_t hits = 0, at = from % t->n, end = at + among < t->n ? at + among : t->n, first = at;

    for (size_t i = 0; i < count; i++) {
        hits += sz_token_cache_get(t->cache, t->order[at], NOW, WALL, &out);
        if (++at == end)
            at = first;
    }
    if (hits != count)
        abort();
    return (cpu_ns() - start) / (double)count;
}

static double chained(const struct table *t, size_t count)
{
    struct sz_identity out;
    double start = cpu_ns();
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        if (!sz_token_cache_get(t->cache, t->order[at], NOW, WALL, &out))
            abort();
        at += 1 + (out.generation - 7); /* always + 1, but only the record knows */
        if (at >= t->n)
            at = 0;
    }
    return (cpu_ns() - start) / (double)count;
}

static double misses(const struct table *t, size_t count)
{
    struct sz_identity out;
    uint64_t seed = count;
    double start = cpu_ns();

    for (size_t i = 0; i < count; i++) {
        struct sz_fingerprint fp = t->order[i % t->n];
        fp.h.w[1] ^= random64(&seed) | 1;
        if (sz_token_cache_get(t->cache, fp, NOW, WALL, &out))
            abort();
    }
    return (cpu_ns() - start) / (double)count;
}

static double puts_over(const struct table *t, size_t count)
{
    struct sz_identity id;
    double start;

    identity_of(&id, 1);
    start = cpu_ns();
    for (size_t i = 0; i < count; i++)
        if (!sz_token_cache_put(t->cache, t->order[i % t->n], &id, NOW, SZ_NEVER))
            abort();
    return (cpu_ns() - start) / (double)count;
}

/* ---- two threads ---------------------------------------------------------------------- */

struct runner {
    const struct table *table;
    pthread_barrier_t *barrier;
    size_t from, cpu;
    double ns;
};

static void *run(void *arg)
{
    struct runner *r = arg;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(r->cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);              /* where there is only one CPU the figure will say so */
    lookups(r->table, r->from, r->table->n, LOOKUPS / 4); /* this thread's own caches as the other's */
    if (r->barrier != NULL)
        pthread_barrier_wait(r->barrier);
    r->ns = lookups(r->table, r->from, r->table->n, LOOKUPS);
    return NULL;
}

/* Lookups per CPU second of two threads at once, over that of one thread alone. */
static double scaling(const struct table *t)
{
    pthread_barrier_t barrier;
    struct runner one = {t, NULL, 0, 0, 0};
    struct runner two[2] = {{t, &barrier, 0, 0, 0}, {t, &barrier, t->n / 2, 1, 0}};
    pthread_t threads[2];

    must(pthread_create(&threads[0], NULL, run, &one));
    pthread_join(threads[0], NULL);
    must(pthread_barrier_init(&barrier, NULL, 2));
    for (int i = 0; i < 2; i++)
        must(pthread_create(&threads[i], NULL, run, &two[i]));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    return one.ns / two[0].ns + one.ns / two[1].ns;
}

static double fingerprints(size_t size, size_t count)
{
    char token[1024];
    uint64_t sum = 0;
    double start;

    memset(token, 'x', sizeof(token));
    start = cpu_ns();
    for (size_t i = 0; i < count; i++) {
        token[i % size]++;
        sum += sz_fingerprint(SZ_CREDENTIAL_JWT, 0, sz_slice(token, size)).h.w[0];
    }
    if (sum == 1) /* keeps the work alive */
        abort();
    return (cpu_ns() - start) / (double)count;
}

/* ---- report --------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void print_figure(struct figure *f, bool last)
{
    qsort(f->value, (size_t)f->n, sizeof(double), by_value);
    printf("    {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.2f, \"min\": %.2f, \"max\": %.2f, \"n\": %d}%s\n",
           f->name, f->unit, f->value[f->n / 2], f->value[0], f->value[f->n - 1], f->n, last ? "" : ",");
}

static void add(struct figure *f, double value)
{
    f->value[f->n++] = value;
}

int main(int argc, char **argv)
{
    static struct figure f[] = {
        {"hit_hot_50000", "ns", {0}, 0},         {"hit_cold_50000", "ns", {0}, 0},
        {"hit_chained_50000", "ns", {0}, 0},     {"hit_hot_500000", "ns", {0}, 0},
        {"hit_cold_500000", "ns", {0}, 0},       {"hit_chained_500000", "ns", {0}, 0},
        {"miss_500000", "ns", {0}, 0},           {"put_500000", "ns", {0}, 0},
        {"two_threads_50000", "ratio", {0}, 0},  {"two_threads_500000", "ratio", {0}, 0},
        {"fingerprint_900_bytes", "ns", {0}, 0}, {"memory_50000", "bytes", {0}, 0},
        {"memory_500000", "bytes", {0}, 0},      {"resident_per_entry_50000", "bytes", {0}, 0},
    };
    int repetitions = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 15;
    struct table small = {0}, large = {0};
    struct sz_cache_stats stats;

    if (repetitions < 1 || repetitions > REPETITIONS_MAX) {
        fprintf(stderr, "micro_l1: repetitions: 1 to %d\n", REPETITIONS_MAX);
        return 2;
    }
    sz_crypto_init();
    fill(&small, 50000);
    fill(&large, 500000);
    for (int i = 0; i < repetitions; i++) {
        add(&f[0], lookups(&small, 0, 64, LOOKUPS));
        add(&f[1], lookups(&small, 0, small.n, LOOKUPS));
        add(&f[2], chained(&small, LOOKUPS));
        add(&f[3], lookups(&large, 0, 64, LOOKUPS));
        add(&f[4], lookups(&large, 0, large.n, LOOKUPS));
        add(&f[5], chained(&large, LOOKUPS));
        add(&f[6], misses(&large, LOOKUPS));
        add(&f[7], puts_over(&large, LOOKUPS));
        add(&f[8], scaling(&small));
        add(&f[9], scaling(&large));
        add(&f[10], fingerprints(900, LOOKUPS / 4));
    }
    sz_token_cache_stats(small.cache, &stats);
    add(&f[11], (double)stats.bytes);
    add(&f[13], small.resident);
    sz_token_cache_stats(large.cache, &stats);
    add(&f[12], (double)stats.bytes);
    printf("{\n  \"benchmark\": \"l1\",\n  \"lookups\": %d,\n  \"figures\": [\n", LOOKUPS);
    for (size_t i = 0; i < SZ_COUNT(f); i++)
        print_figure(&f[i], i + 1 == SZ_COUNT(f));
    printf("  ]\n}\n");
    sz_token_cache_free(&small.cache);
    sz_token_cache_free(&large.cache);
    free(small.order);
    free(large.order);
    return 0;
}
