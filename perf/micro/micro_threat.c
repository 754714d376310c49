/*
 * What a threat check costs a request: of an address that nothing is known about, of one that is suspect, with the
 * tables full; what noting a forged token costs; finding an address among a million ranges.  Prints one JSON object.
 *
 *   micro_threat [repetitions]
 *
 * Addresses are taken in random order, so that look-ups come from memory.  Times are CPU time of the measuring thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "subzero/prefixes.h"
#include "subzero/threat.h"

#define REPETITIONS_MAX 101
#define OPS             100000
#define ENTRIES         65536

static const struct sz_threat_policy policy = {0.3f, 0.5f, 0.7f, SZ_SEC(60), SZ_SEC(600)};
static struct sz_addr addresses[OPS];
static struct sz_threat *full, *empty;
static struct sz_prefixes *million;
static const struct sz_mono now = {INT64_C(1000000000000)};

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct sz_addr v4(uint32_t n)
{
    return (struct sz_addr){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, (uint8_t)(n >> 24), (uint8_t)(n >> 16),
                             (uint8_t)(n >> 8), (uint8_t)n}};
}

static void forge(struct sz_threat *t, struct sz_addr addr, uint64_t token)
{
    struct sz_threat_view view;
    struct sz_threat_key key = sz_threat_address(t, addr);
    sz_threat_note(t, key, SZ_SIGNAL_failed_auth, 1, now);
    sz_threat_note(t, key, SZ_SIGNAL_bad_tokens, token, now);
    sz_threat_note(t, sz_threat_network(t, addr), SZ_SIGNAL_neighbours, key.hash, now);
    (void)sz_threat_judge(t, key, &policy, now, &view);
}

static void fill(void)
{
    struct sz_prefixes_builder *builder = sz_prefixes_builder_new();
    srand(1);
    full = sz_threat_new(ENTRIES);
    empty = sz_threat_new(ENTRIES);
    for (size_t i = 0; i < OPS; i++)
        addresses[i] = v4((uint32_t)rand() * 2 + 1);
    for (size_t i = 0; i < OPS; i++) {
        for (uint64_t k = 0; k < 3; k++)
            forge(full, addresses[i], i * 7 + k);
    }
    for (uint32_t i = 0; i < SZ_PREFIXES_MAX; i++) {
        struct sz_cidr range = {sz_addr_prefix(v4((uint32_t)rand() * 2), 24), 96 + 24};
        if (sz_prefixes_add(builder, &range, 1) != 0)
            abort();
    }
    million = sz_prefixes_new(&builder);
}

static unsigned sink;

static double ask_unknown(void)
{
    double start = cpu_ns();
    for (size_t i = 0; i < OPS; i++)
        sink += sz_threat_level(empty, sz_threat_address(empty, addresses[i]), &policy, now);
    return (cpu_ns() - start) / OPS;
}

static double ask_suspect(void)
{
    double start = cpu_ns();
    for (size_t i = 0; i < OPS; i++)
        sink += sz_threat_level(full, sz_threat_address(full, addresses[i]), &policy, now);
    return (cpu_ns() - start) / OPS;
}

static double note_forged(void)
{
    double start = cpu_ns();
    for (size_t i = 0; i < OPS; i++)
        forge(full, addresses[i], i);
    return (cpu_ns() - start) / OPS;
}

static double find_range(void)
{
    double start = cpu_ns();
    for (size_t i = 0; i < OPS; i++) {
        uint8_t value;
        sink += sz_prefixes_find(million, addresses[i], &value);
    }
    return (cpu_ns() - start) / OPS;
}

struct figure {
    const char *name;
    double (*measure)(void);
    double value[REPETITIONS_MAX];
};
static struct figure figures[] = {{"ask_unknown", ask_unknown, {0}},
                                  {"ask_suspect_full_table", ask_suspect, {0}},
                                  {"note_forged_token", note_forged, {0}},
                                  {"find_in_million_ranges", find_range, {0}}};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 15;
    struct sz_threat_stats stats;
    if (repetitions < 1 || repetitions > REPETITIONS_MAX) {
        fprintf(stderr, "micro_threat: repetitions: 1 to %d\n", REPETITIONS_MAX);
        return 2;
    }
    sz_crypto_init();
    fill();
    for (int r = 0; r < repetitions; r++) {
        for (size_t f = 0; f < SZ_COUNT(figures); f++)
            figures[f].value[r] = figures[f].measure();
    }
    sz_threat_stats(full, &stats);
    printf("{\n  \"bytes\": %llu, \"bytes_million_ranges\": %zu,\n  \"figures\": [\n", (unsigned long long)stats.bytes,
           sz_prefixes_bytes(million));
    for (size_t f = 0; f < SZ_COUNT(figures); f++) {
        qsort(figures[f].value, (size_t)repetitions, sizeof(double), by_value);
        printf(
            "    {\"name\": \"%s\", \"unit\": \"ns\", \"median\": %.1f, \"min\": %.1f, \"max\": %.1f, \"n\": %d}%s\n",
            figures[f].name, figures[f].value[repetitions / 2], figures[f].value[0], figures[f].value[repetitions - 1],
            repetitions, f + 1 < SZ_COUNT(figures) ? "," : "");
    }
    printf("  ]\n}\n");
    return sink == UINT32_MAX;
}
