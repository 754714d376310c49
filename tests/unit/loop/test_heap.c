/* heap.c: against a sorted list, under every kind of change. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "loop/heap.h"

enum { TIMERS = 10000 };

static uint32_t random_state = 12345;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525 + 1013904223;
    return random_state >> 8;
}

static struct sz_timer timers[TIMERS];

static void expect_order(struct sz_heap *heap, size_t want)
{
    int64_t last = INT64_MIN;
    size_t n = 0;
    struct sz_timer *timer;
    while ((timer = sz_heap_due(heap, SZ_NEVER)) != NULL) {
        cr_assert_leq(last, timer->at.us);
        cr_assert_not(sz_timer_armed(timer));
        last = timer->at.us;
        n++;
    }
    cr_expect_eq(n, want);
    cr_expect_eq(sz_heap_next(heap).us, SZ_NEVER.us);
}

Test(heap, ten_thousand_come_out_in_order)
{
    struct sz_heap heap = {0};
    for (size_t i = 0; i < TIMERS; i++)
        sz_heap_put(&heap, &timers[i], (struct sz_mono){next_random() % 5000});
    expect_order(&heap, TIMERS);
    sz_heap_fini(&heap);
}

Test(heap, moves_and_cancels_keep_the_order)
{
    struct sz_heap heap = {0};
    for (int round = 0; round < 100000; round++) {
        struct sz_timer *timer = &timers[next_random() % TIMERS];
        if (next_random() % 3 == 0) {
            sz_heap_remove(&heap, timer);
            cr_assert_not(sz_timer_armed(timer));
        } else {
            sz_heap_put(&heap, timer, (struct sz_mono){next_random()});
            cr_assert(sz_timer_armed(timer));
        }
    }
    size_t armed = 0;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < TIMERS; i++) {
        if (sz_timer_armed(&timers[i])) {
            armed++;
            least = timers[i].at.us < least ? timers[i].at.us : least;
        }
    }
    cr_expect_eq(sz_heap_next(&heap).us, least);
    expect_order(&heap, armed);
    sz_heap_fini(&heap);
}

Test(heap, edges)
{
    struct sz_heap heap = {0};
    struct sz_timer a = {0}, b = {0};
    sz_heap_remove(&heap, &a);
    cr_expect_null(sz_heap_due(&heap, SZ_NEVER));
    sz_heap_put(&heap, &a, (struct sz_mono){10});
    cr_expect_null(sz_heap_due(&heap, (struct sz_mono){9}));
    cr_expect_eq(sz_heap_due(&heap, (struct sz_mono){10}), &a);
    sz_heap_put(&heap, &a, (struct sz_mono){10});
    sz_heap_put(&heap, &b, SZ_NEVER);
    sz_heap_fini(&heap);
    cr_expect_not(sz_timer_armed(&a));
    cr_expect_not(sz_timer_armed(&b));
}
