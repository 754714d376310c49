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
    double resident; /* bytes that filling it added to the process */
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

/* An ordinary access token's facts: subject and client, 63 bytes of text; `with_claim` adds tenant and a claim, 106
 * bytes. */
static void identity_of(struct sz_identity *id, uint64_t n, bool with_claim)
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
    if (!with_claim)
        return;
    must(sz_identity_add_text(id, SZ_S("org_0123456789abcdef"), &id->tenant));
    must(sz_identity_add_claim(id, 3, SZ_CLAIM_STRING, SZ_S("someone@example.com")));
}

/* Four fifths full, so that nearly every set holds all of its tokens; those that were pushed out are not looked up. */
static void fill(struct table *t, size_t capacity, bool with_claim)
{
    size_t want = capacity / 5 * 4, before = resident_bytes();
    struct sz_fingerprint *all = calloc(want, sizeof(*all));
    struct sz_identity id, out;
    uint64_t seed = capacity;

    t->cache = sz_token_cache_new(capacity);
    t->order = calloc(want, sizeof(*t->order));
    if (t->cache == NULL || all == NULL || t->order == NULL)
        abort();
    for (size_t i = 0; i < want; i++) {
        all[i].h.w[0] = random64(&seed);
        all[i].h.w[1] = random64(&seed);
        identity_of(&id, i, with_claim);
        sz_token_cache_put(t->cache, all[i], &id, NOW, SZ_NEVER);
    }
    for (size_t i = 0; i < want; i++) {
        if (sz_token_cache_get(t->cache, all[i], NOW, WALL, &out))
            t->order[t->n++] = all[i];
    }
    for (size_t i = t->n - 1; i > 0; i--) {
        size_t j = random64(&seed) % (i + 1);
        struct sz_fingerprint swap = t->order[i];
        t->order[i] = t->order[j];
        t->order[j] = swap;
    }
    t->resident = (double)(resident_bytes() - before) - (double)(2 * want * sizeof(*all)); /* without our own lists */
    free(all);
}

/* ns per lookup of the first `among` tokens, in order (they are shuffled), beginning at `from`. */
static double lookups(const struct table *t, size_t from, size_t among, size_t count)
{
    struct sz_identity out;
    double start = cpu_ns();
    size_t hits = 0;

    for (size_t done = 0; done < count; from = 0) {
        size_t run = among - from < count - done ? among - from : count - done;
        for (size_t i = 0; i < run; i++)
            hits += sz_token_cache_get(t->cache, t->order[from + i], NOW, WALL, &out);
        done += run;
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

    identity_of(&id, 1, false);
    start = cpu_ns();
    for (size_t i = 0; i < count; i++) {
        if (!sz_token_cache_put(t->cache, t->order[i % t->n], &id, NOW, SZ_NEVER))
            abort();
    }
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

/* Lookups per CPU second of two threads at once, each over what the same thread does alone on its CPU. */
static double scaling(const struct table *t)
{
    pthread_barrier_t barrier;
    struct runner alone[2] = {{t, NULL, 0, 0, 0}, {t, NULL, t->n / 2, 1, 0}};
    struct runner both[2] = {{t, &barrier, 0, 0, 0}, {t, &barrier, t->n / 2, 1, 0}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        must(pthread_create(&threads[i], NULL, run, &alone[i]));
        pthread_join(threads[i], NULL);
    }
    must(pthread_barrier_init(&barrier, NULL, 2));
    for (int i = 0; i < 2; i++)
        must(pthread_create(&threads[i], NULL, run, &both[i]));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    return alone[0].ns / both[0].ns + alone[1].ns / both[1].ns;
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

#define FIGURES(X)                  \
    X(hit_hot_50000, "ns")          \
    X(hit_cold_50000, "ns")         \
    X(hit_chained_50000, "ns")      \
    X(hit_hot_500000, "ns")         \
    X(hit_cold_500000, "ns")        \
    X(hit_chained_500000, "ns")     \
    X(hit_cold_claims_500000, "ns") \
    X(miss_500000, "ns")            \
    X(put_500000, "ns")             \
    X(two_threads_50000, "ratio")   \
    X(two_threads_500000, "ratio")  \
    X(fingerprint_900_bytes, "ns")  \
    X(memory_50000, "bytes")        \
    X(memory_500000, "bytes")       \
    X(resident_50000, "bytes")

#define AS_ENUM(name, unit) name,
#define AS_ROW(name, unit)  [name] = {#name, unit, {0}, 0},
enum { FIGURES(AS_ENUM) COUNT };
static struct figure figures[] = {FIGURES(AS_ROW)};

static void add(int figure, double value)
{
    struct figure *f = &figures[figure];

    f->value[f->n++] = value;
}

static void measure(const struct table *small, const struct table *large, const struct table *claims)
{
    add(hit_hot_50000, lookups(small, 0, 64, LOOKUPS));
    add(hit_cold_50000, lookups(small, 0, small->n, LOOKUPS));
    add(hit_chained_50000, chained(small, LOOKUPS));
    add(hit_hot_500000, lookups(large, 0, 64, LOOKUPS));
    add(hit_cold_500000, lookups(large, 0, large->n, LOOKUPS));
    add(hit_chained_500000, chained(large, LOOKUPS));
    add(hit_cold_claims_500000, lookups(claims, 0, claims->n, LOOKUPS));
    add(miss_500000, misses(large, LOOKUPS));
    add(put_500000, puts_over(large, LOOKUPS));
    add(two_threads_50000, scaling(small));
    add(two_threads_500000, scaling(large));
    add(fingerprint_900_bytes, fingerprints(900, LOOKUPS / 4));
}

static double bytes_of(const struct table *t)
{
    struct sz_cache_stats stats;

    sz_token_cache_stats(t->cache, &stats);
    return (double)stats.bytes;
}

static void empty(struct table *t)
{
    sz_token_cache_free(&t->cache);
    free(t->order);
}

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 15;
    struct table small = {0}, large = {0}, claims = {0};

    if (repetitions < 1 || repetitions > REPETITIONS_MAX) {
        fprintf(stderr, "micro_l1: repetitions: 1 to %d\n", REPETITIONS_MAX);
        return 2;
    }
    sz_crypto_init();
    fill(&small, 50000, false);
    fill(&large, 500000, false);
    fill(&claims, 500000, true);
    for (int i = 0; i < repetitions; i++)
        measure(&small, &large, &claims);
    add(memory_50000, bytes_of(&small));
    add(memory_500000, bytes_of(&large));
    add(resident_50000, small.resident);
    printf("{\n  \"benchmark\": \"l1\",\n  \"lookups\": %d,\n  \"figures\": [\n", LOOKUPS);
    for (int i = 0; i < COUNT; i++)
        print_figure(&figures[i], i + 1 == COUNT);
    printf("  ]\n}\n");
    empty(&small);
    empty(&large);
    empty(&claims);
    return 0;
}
