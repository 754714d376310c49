/*
 * Loops that count, threads without a loop that count, a reload that adds series and a
 * scraper that reads, all at once: for ThreadSanitizer.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "subzero/metrics.h"

enum { LOOPS = 3, OTHERS = 2, EACH = 50000, NAMES = 3000 };

static atomic_bool done;
static struct sz_series errors, durations;
static _Atomic uint32_t newest; /* a handle passed on without any other ordering */

static void *count(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < EACH; i++) {
        sz_count(thread, errors, 1);
        sz_observe(thread, durations, SZ_US(i));
        sz_count(thread, (struct sz_series){atomic_load_explicit(&newest, memory_order_relaxed)}, 1);
    }
    return NULL;
}

static void *add_series(void *arg)
{
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "dependency-%d", i);
        atomic_store_explicit(&newest, sz_series1(SZ_METRIC_dependency, name).at, memory_order_relaxed);
    }
    return arg;
}

static void *scrape(void *arg)
{
    while (!atomic_load(&done)) {
        struct sz_buf b = {0};
        sz_metrics_expose(&b);
        SZ_ASSERT(b.n > 0);
        sz_buf_fini(&b);
    }
    return arg;
}

int main(void)
{
    pthread_t counters[LOOPS + OTHERS], adder, scraper;
    sz_metrics_init(LOOPS);
    errors = sz_series1(SZ_METRIC_errors, "edge");
    durations = sz_series1(SZ_METRIC_duration, "auth");
    SZ_ASSERT(pthread_create(&scraper, NULL, scrape, NULL) == 0);
    SZ_ASSERT(pthread_create(&adder, NULL, add_series, NULL) == 0);
    for (uintptr_t i = 0; i < LOOPS + OTHERS; i++) {
        uintptr_t thread = i < LOOPS ? i : SZ_NO_LOOP;
        SZ_ASSERT(pthread_create(&counters[i], NULL, count, (void *)thread) == 0);
    }
    for (int i = 0; i < LOOPS + OTHERS; i++)
        pthread_join(counters[i], NULL);
    pthread_join(adder, NULL);
    atomic_store(&done, true);
    pthread_join(scraper, NULL);
    uint64_t total = sz_counter_read(errors);
    SZ_ASSERT(total == (uint64_t)EACH * (LOOPS + OTHERS));
    printf("tsan_metrics: %llu counted\n", (unsigned long long)total);
    sz_metrics_fini();
    return 0;
}
