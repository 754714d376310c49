/*
 * What revocations cost a request.  Prints one JSON object: per figure the median of the repetitions and their spread.
 *
 *   micro_revocation [repetitions]
 *
 * "newer" is all that a cached token pays while nothing has been revoked since it was verified.  "subject" and "token"
 * are what it pays while something of that kind has (a name worked out, one look into an index of 100,000); a token
 * has 900 bytes.  "find" is the look alone, for names that are not there, which is the usual case.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cache/revocation_index.h"
#include "subzero/crypto.h"
#include "subzero/revocation.h"

#define REPETITIONS_MAX 101
#define CALLS           200000
#define ENTRIES         100000

static struct sz_revocation_index ix;
static struct sz_revocation_news news;
static char token[900];
static volatile uint64_t sink;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void newer(uint64_t i)
{
    sink += sz_revocation_newer(&news, i | 1);
}

static void find(uint64_t i)
{
    int64_t before;
    sink += sz_revocation_index_find(&ix, i * UINT64_C(0x9e3779b97f4a7c15) | 1, &before);
}

static void subject(uint64_t i)
{
    int64_t before;
    char name[16];
    int n = snprintf(name, sizeof(name), "user-%llu", (unsigned long long)i % 1000);
    uint64_t known = sz_revocation_name(SZ_REVOKE_SUBJECT, SZ_S("https://tenant.example/"), sz_slice(name, (size_t)n));
    sink += sz_revocation_index_find(&ix, known, &before);
}

static void whole_token(uint64_t i)
{
    int64_t before;
    memcpy(token + 100, &i, sizeof(i));
    uint64_t known = sz_revocation_name(SZ_REVOKE_TOKEN, SZ_NONE, sz_slice(token, sizeof(token)));
    sink += sz_revocation_index_find(&ix, known, &before);
}

static const struct {
    const char *name;
    void (*call)(uint64_t i);
} figures[] = {{"newer", newer}, {"find", find}, {"subject", subject}, {"token", whole_token}};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(size_t which, int repetitions)
{
    double value[REPETITIONS_MAX];
    for (int r = 0; r < repetitions; r++) {
        double begun = cpu_ns();
        for (uint64_t i = 0; i < CALLS; i++)
            figures[which].call(i);
        value[r] = (cpu_ns() - begun) / CALLS;
    }
    qsort(value, (size_t)repetitions, sizeof(value[0]), compare);
    printf("%s\"%s_ns\":{\"median\":%.2f,\"min\":%.2f,\"max\":%.2f}", which == 0 ? "" : ",", figures[which].name,
           value[repetitions / 2], value[0], value[repetitions - 1]);
}

int main(int argc, char **argv)
{
    uint64_t repetitions = 11, state = 1;
    if (argc > 1 && (sz_parse_u64(sz_cstr(argv[1]), REPETITIONS_MAX, &repetitions) != 0 || repetitions == 0))
        return 2;
    sz_crypto_init();
    memset(token, 'x', sizeof(token));
    sz_revocation_index_init(&ix, ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sz_revocation_index_put(&ix, state | 1, INT64_MAX);
    }
    printf("{\"entries\":%d,\"repetitions\":%d,", ENTRIES, (int)repetitions);
    for (size_t i = 0; i < SZ_COUNT(figures); i++)
        measure(i, (int)repetitions);
    printf("}\n");
    sz_revocation_index_fini(&ix);
    return 0;
}
