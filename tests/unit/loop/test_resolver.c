/* resolver.c: one look-up for all who ask, old addresses on failure, bounds. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/resolver.h"

static atomic_uint lookups, running, peak;
static atomic_int status;
static sem_t gate; /* posted: one look-up may end */
static struct sz_resolver *resolver;
static struct sz_mailbox box;
static struct sz_mono now = {1000000};

static int lookup(const char *host, struct sz_addresses *out)
{
    unsigned at_once = atomic_fetch_add(&running, 1) + 1;
    lookups++;
    if (at_once > peak)
        peak = at_once;
    while (sem_wait(&gate) != 0)
        ;
    running--;
    char last = host[strlen(host) - 1];
    for (size_t i = 0; i < 2; i++)
        out->v[out->n++] =
            (struct sz_addr){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, (uint8_t)last, (uint8_t)i}};
    return status;
}

static void setup(void)
{
    sem_init(&gate, 0, 0);
    resolver = sz_resolver_new(SZ_SEC(300), lookup);
    cr_assert_eq(sz_mailbox_open(&box, resolver), 0);
}

static void teardown(void)
{
    sz_mailbox_close(&box);
    sz_resolver_free(&resolver);
}

TestSuite(resolver, .init = setup, .fini = teardown, .timeout = 30);

static void let(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sem_post(&gate);
}

static struct sz_ask *take(void)
{
    struct pollfd p = {.fd = box.fd, .events = POLLIN};
    cr_assert_eq(poll(&p, 1, 10000), 1);
    return sz_mailbox_take(&box);
}

Test(resolver, one_look_up_answers_all_who_wait)
{
    struct sz_ask asks[20] = {{0}};
    for (size_t i = 0; i < SZ_COUNT(asks); i++)
        cr_assert_eq(sz_resolver_ask(&box, "a", now, &asks[i]), SZ_RESOLVER_WAIT);
    cr_expect_null(sz_mailbox_take(&box));
    let(1);
    for (size_t i = 0; i < SZ_COUNT(asks); i++) {
        struct sz_ask *ask = take();
        cr_assert_not_null(ask);
        cr_expect_eq(ask->status, 0);
        cr_expect_eq(ask->found.n, 2);
        cr_expect(ask->looked_up);
        cr_expect_eq(ask->until.us, now.us + SZ_SEC(300).us);
    }
    cr_expect_null(sz_mailbox_take(&box));
    cr_expect_eq(lookups, 1);
    struct pollfd p = {.fd = box.fd, .events = POLLIN};
    cr_expect_eq(poll(&p, 1, 0), 0);
    cr_expect_eq(sz_resolver_ask(&box, "a", sz_after(now, SZ_SEC(299)), &asks[0]), 0);
    cr_expect(!asks[0].looked_up && asks[0].found.n == 2);
    cr_expect_eq(sz_resolver_ask(&box, "a", sz_after(now, SZ_SEC(300)), &asks[0]), SZ_RESOLVER_WAIT);
    let(1);
    cr_expect_eq(take(), &asks[0]);
    cr_expect_eq(lookups, 2);
}

Test(resolver, a_failure_is_kept_for_a_second_and_old_addresses_on)
{
    struct sz_ask ask = {0};
    status = -ENOENT;
    let(10);
    cr_assert_eq(sz_resolver_ask(&box, "a", now, &ask), SZ_RESOLVER_WAIT);
    cr_assert_eq(take(), &ask);
    cr_expect_eq(ask.status, -ENOENT);
    cr_expect_eq(sz_resolver_ask(&box, "a", sz_after(now, SZ_MS(999)), &ask), 0);
    cr_expect_eq(ask.status, -ENOENT);
    status = 0;
    cr_assert_eq(sz_resolver_ask(&box, "a", sz_after(now, SZ_SEC(1)), &ask), SZ_RESOLVER_WAIT);
    cr_assert_eq(take(), &ask);
    cr_expect_eq(ask.status, 0);
    status = -EAGAIN;
    struct sz_mono later = sz_after(now, SZ_SEC(400));
    cr_assert_eq(sz_resolver_ask(&box, "a", later, &ask), SZ_RESOLVER_WAIT);
    cr_assert_eq(take(), &ask);
    cr_expect_eq(ask.status, 0);
    cr_expect_eq(ask.found.n, 2);
    cr_expect_eq(ask.until.us, later.us + SZ_SEC(5).us);
}

Test(resolver, look_ups_at_once_are_bounded)
{
    static struct sz_ask asks[40];
    char host[8];
    for (size_t i = 0; i < SZ_COUNT(asks); i++) {
        snprintf(host, sizeof(host), "h%zu", i);
        cr_assert_eq(sz_resolver_ask(&box, host, now, &asks[i]), SZ_RESOLVER_WAIT);
    }
    while (running < 4)
        usleep(1000);
    let(40);
    for (size_t i = 0; i < SZ_COUNT(asks); i++)
        cr_expect_not_null(take());
    cr_expect_leq(peak, 4);
    cr_expect_eq(lookups, 40);
}

Test(resolver, one_that_hangs_holds_up_no_other)
{
    struct sz_ask asks[3] = {{0}};
    cr_assert_eq(sz_resolver_ask(&box, "first", now, &asks[0]), SZ_RESOLVER_WAIT);
    let(1);
    cr_assert_eq(take(), &asks[0]);
    usleep(50000); /* its thread waits for work, and is enough for one name, not for two */
    cr_assert_eq(sz_resolver_ask(&box, "hangs", now, &asks[1]), SZ_RESOLVER_WAIT);
    cr_assert_eq(sz_resolver_ask(&box, "other", now, &asks[2]), SZ_RESOLVER_WAIT);
    while (running < 2)
        usleep(1000);
    let(2);
    cr_expect_not_null(take());
    cr_expect_not_null(take());
}

Test(resolver, names_are_bounded_and_busy_ones_stay)
{
    static struct sz_ask asks[SZ_RESOLVER_NAMES + 1];
    char host[8];
    for (size_t i = 0; i < SZ_COUNT(asks); i++) {
        snprintf(host, sizeof(host), "h%zu", i);
        cr_assert_eq(sz_resolver_ask(&box, host, now, &asks[i]),
                     i < SZ_RESOLVER_NAMES ? SZ_RESOLVER_WAIT : SZ_RESOLVER_FULL);
    }
    let(SZ_RESOLVER_NAMES + 2);
    for (size_t i = 0; i < SZ_RESOLVER_NAMES; i++)
        cr_assert_not_null(take());
    cr_expect_eq(sz_resolver_ask(&box, "new", sz_after(now, SZ_US(1)), &asks[0]), SZ_RESOLVER_WAIT);
    cr_expect_eq(take(), &asks[0]);
    cr_expect_eq(sz_resolver_ask(&box, "new", now, &asks[0]), 0);
}

Test(resolver, who_forgets_hears_nothing)
{
    struct sz_ask gone = {0}, stays = {0}, done = {0};
    cr_assert_eq(sz_resolver_ask(&box, "a", now, &gone), SZ_RESOLVER_WAIT);
    cr_assert_eq(sz_resolver_ask(&box, "a", now, &stays), SZ_RESOLVER_WAIT);
    sz_resolver_forget(&box, &gone);
    sz_resolver_forget(&box, &gone);
    memset(&gone, 0x5a, sizeof(gone));
    let(1);
    cr_expect_eq(take(), &stays);
    cr_expect_null(sz_mailbox_take(&box));
    cr_assert_eq(sz_resolver_ask(&box, "b", now, &done), SZ_RESOLVER_WAIT);
    let(1);
    struct pollfd p = {.fd = box.fd, .events = POLLIN};
    cr_assert_eq(poll(&p, 1, 10000), 1);
    sz_resolver_forget(&box, &done); /* answered, not yet taken */
    cr_expect_null(sz_mailbox_take(&box));
    cr_expect_eq(poll(&p, 1, 0), 0);
}

Test(resolver, the_system_knows_this_machine)
{
    struct sz_resolver *real = sz_resolver_new(SZ_SEC(300), NULL);
    struct sz_mailbox its;
    struct sz_ask ask = {0};
    cr_assert_eq(sz_mailbox_open(&its, real), 0);
    cr_assert_eq(sz_resolver_ask(&its, "localhost", now, &ask), SZ_RESOLVER_WAIT);
    struct pollfd p = {.fd = its.fd, .events = POLLIN};
    cr_assert_eq(poll(&p, 1, 20000), 1);
    cr_assert_eq(sz_mailbox_take(&its), &ask);
    cr_expect_eq(ask.status, 0);
    cr_expect(ask.found.n >= 1 && sz_addr_is_loopback(ask.found.v[0]));
    sz_mailbox_close(&its);
    sz_resolver_free(&real);
}
