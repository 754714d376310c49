/* ring.c: full, wrapping at every offset, damaged by nothing. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "obs/ring.h"

static struct sz_ring ring;

static void setup(void)
{
    cr_assert_eq(sz_ring_map(&ring), 0);
    cr_assert_eq(sz_ring_map(&ring), 0);
}

TestSuite(ring, .init = setup);

static char record[SZ_RING_SIZE / 4];

Test(ring, full_refuses_and_keeps_what_is_there)
{
    size_t n = 0;
    memset(record, 'x', sizeof(record));
    while (sz_ring_push(&ring, sz_slice(record, 4095)))
        n++;
    cr_expect_eq(n, SZ_RING_SIZE / (4096 + 8));
    cr_expect_not(sz_ring_push(&ring, sz_slice(record, 4095)));
    struct iovec iov[16];
    size_t seen = 0;
    struct sz_ring_view view;
    while ((view = sz_ring_peek(&ring, iov, 16)).pieces != 0) {
        seen += view.records;
        sz_ring_release(&ring, &view);
    }
    cr_expect_eq(seen, n);
    cr_expect_eq(sz_ring_used(&ring), 0);
    cr_expect(sz_ring_push(&ring, sz_slice(record, 4095)));
}

Test(ring, can_be_filled_to_the_last_byte)
{
    while (sz_ring_push(&ring, sz_slice(record, SZ_RING_SIZE / 4 - 8))) {
    }
    cr_expect_eq(sz_ring_used(&ring), SZ_RING_SIZE);
    cr_expect_not(sz_ring_push(&ring, sz_slice(record, 1)));
    struct iovec iov[64];
    struct sz_ring_view view = sz_ring_peek(&ring, iov, 64);
    cr_expect_eq(view.records, 4); /* does not go round and count itself again */
    sz_ring_release(&ring, &view);
    cr_expect_eq(sz_ring_peek(&ring, iov, 64).pieces, 0);
}

/* Records of many lengths, several rounds: every byte comes back, in order, also across the end of the memory. */
Test(ring, records_come_back_whole_across_the_end)
{
    uint32_t next_in = 0, next_out = 0;
    for (int round = 0; round < 12000; round++) {
        for (int i = 0; i < 3; i++) {
            size_t n = 5 + (next_in * 7919u) % 3000;
            memset(record, (int)('a' + next_in % 26), n);
            memcpy(record, &next_in, 4);
            cr_assert(sz_ring_push(&ring, sz_slice(record, n)));
            next_in++;
        }
        struct iovec iov[8];
        struct sz_ring_view view = sz_ring_peek(&ring, iov, 8);
        cr_assert_geq(view.records, 3);
        unsigned piece = 0;
        for (size_t r = 0; r < view.records; r++) {
            size_t n = 5 + (next_out * 7919u) % 3000, have = 0;
            char *out = record;
            while (have < n) {
                memcpy(out + have, iov[piece].iov_base, iov[piece].iov_len);
                have += iov[piece++].iov_len;
            }
            cr_assert_eq(have, n);
            cr_assert_eq(memcmp(out, &next_out, 4), 0);
            for (size_t i = 4; i < n; i++)
                cr_assert_eq(out[i], (char)('a' + next_out % 26));
            next_out++;
        }
        sz_ring_release(&ring, &view);
    }
    cr_expect_eq(next_in, next_out);
}

Test(ring, a_view_goes_on_and_gives_back_when_it_is_told)
{
    struct sz_ring_view view = sz_ring_view(&ring);
    struct iovec iov[2];
    cr_expect_eq(sz_ring_next(&ring, &view, iov), 0);
    for (int i = 0; i < 3; i++)
        cr_assert(sz_ring_push(&ring, SZ_S("one record")));
    size_t used = sz_ring_used(&ring);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(sz_ring_next(&ring, &view, iov), 1);
        cr_expect(sz_eq(sz_slice(iov[0].iov_base, iov[0].iov_len), SZ_S("one record")));
    }
    cr_expect_eq(sz_ring_next(&ring, &view, iov), 0);
    cr_expect_eq(sz_ring_used(&ring), used);
    sz_ring_release(&ring, &view);
    cr_expect_eq(sz_ring_used(&ring), 0);
    view = sz_ring_view(&ring);
    cr_expect_eq(sz_ring_next(&ring, &view, iov), 0);
    cr_expect(sz_ring_push(&ring, SZ_S("x")));
    cr_expect_eq(sz_ring_next(&ring, &view, iov), 1);
    cr_expect_eq(view.records, 1);
}

/* Never more than a corner of the queue is in use, so nobody may be told that it is full; nor a byte be another's. */
enum { WRITERS = 4, EACH = 60000, CORNER = 1000 };
static _Atomic unsigned under_way;

static void *write_all(void *arg)
{
    char text[64];
    for (uint32_t i = 0; i < EACH; i++) {
        while (atomic_load(&under_way) > CORNER)
            sched_yield();
        atomic_fetch_add(&under_way, 1);
        memset(text, *(const char *)arg, sizeof(text));
        cr_assert(sz_ring_push(&ring, sz_slice(text, 20 + i % 44)));
    }
    return NULL;
}

Test(ring, many_writers_are_never_told_that_it_is_full_when_it_is_not)
{
    pthread_t threads[WRITERS];
    static char names[WRITERS] = {'a', 'b', 'c', 'd'};
    size_t seen = 0;
    for (int i = 0; i < WRITERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, write_all, &names[i]), 0);
    while (seen < (size_t)WRITERS * EACH) {
        struct sz_ring_view view = sz_ring_view(&ring);
        struct iovec iov[2];
        for (unsigned pieces; (pieces = sz_ring_next(&ring, &view, iov)) != 0;) {
            const char *first = iov[0].iov_base;
            for (unsigned p = 0; p < pieces; p++)
                for (size_t i = 0; i < iov[p].iov_len; i++)
                    cr_assert_eq(((const char *)iov[p].iov_base)[i], *first);
        }
        seen += view.records;
        sz_ring_release(&ring, &view);
        atomic_fetch_sub(&under_way, (unsigned)view.records);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(sz_ring_used(&ring), 0);
}
