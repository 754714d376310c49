/*
 * Blocks as a set that instances share: which of two holds, in whatever order they come; the record; seals that end
 * and are made anew; what is over; bounds.  Across a real Redis, with a wall clock that the test moves.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/threat_store.h"
#include "redis_kit.h"
#include "subzero/crypto.h"

static struct redis_server server = {.name = "blocks"};
static struct sz_fleet *fleet;

struct instance {
    struct redis_kit kit;
    struct sz_threat *threat;
    struct sz_threat_store *store;
};
static struct instance one, two;

static void open_store(struct instance *in)
{
    struct sz_text why = {""};
    in->threat = sz_threat_new(1024);
    in->store = sz_threat_store_new(in->kit.loop, in->threat, SZ_NONE, sz_loop_now(in->kit.loop),
                                    sz_loop_wall(in->kit.loop), &why);
    cr_assert_not_null(in->store, "%s", why.s);
}

static void open_instance(struct instance *in)
{
    kit_init(&in->kit);
    kit_at(&in->kit, server.port);
    kit_start(&in->kit);
    fake_loop_set_wall(in->kit.loop, sz_wall_read());
    open_store(in);
    sz_threat_store_share(in->store, in->kit.redis, fleet);
}

static void close_instance(struct instance *in)
{
    if (in->store == NULL)
        return;
    sz_threat_store_stop(in->store);
    kit_stop(&in->kit);
    sz_threat_store_free(&in->store);
    sz_threat_free(&in->threat);
}

static void setup(void)
{
    static const uint8_t key[SZ_FLEET_KEY] = "the key of this fleet, 32 bytes";
    if (!redis_available())
        cr_skip_test("no redis-server here");
    sz_crypto_init();
    sz_metrics_init(1);
    cr_assert(redis_start(&server));
    fleet = sz_fleet_new(sz_slice(key, sizeof(key)), NULL, 0);
}

static void teardown(void)
{
    close_instance(&one);
    close_instance(&two);
    redis_stop(&server);
    sz_fleet_free(&fleet);
    scratch_remove();
}

TestSuite(threat_share, .init = setup, .fini = teardown, .timeout = 120);

static void later(struct instance *in, int64_t seconds)
{
    struct sz_wall wall = sz_loop_wall(in->kit.loop);
    wall.us += seconds * 1000000;
    fake_loop_set_wall(in->kit.loop, wall);
}

static bool current(void *arg)
{
    struct instance *in = arg;
    return in->store->share->current && in->store->share->untold_n == 0 && in->store->share->publishing == 0;
}

static void settle(struct instance *in)
{
    cr_assert(kit_until(&in->kit, current, in, 10000));
    kit_run(&in->kit, 300); /* a poll and what follows of it */
    cr_assert(kit_until(&in->kit, current, in, 10000));
}

static struct sz_addr address(unsigned n)
{
    return (struct sz_addr){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, (uint8_t)(n >> 8), (uint8_t)n}};
}

static bool blocked(const struct instance *in, unsigned n)
{
    static const struct sz_threat_policy policy = {0.3f, 0.5f, 0.7f, SZ_SEC(60), SZ_SEC(600)};
    return sz_threat_level(in->threat, sz_threat_address(in->threat, address(n)), &policy, sz_loop_now(in->kit.loop)) ==
           SZ_THREAT_BLOCK;
}

static enum sz_threat_saved last;
static void on_done(struct sz_threat_op *op, enum sz_threat_saved result)
{
    (void)op;
    last = result;
}

static uint64_t block(struct instance *in, unsigned n, int64_t seconds)
{
    struct sz_threat_op op = {.on_done = on_done};
    struct sz_threat_record r = {.addr = address(n), .made = sz_loop_wall(in->kit.loop), .reason = "test"};
    r.until.us = r.made.us + seconds * 1000000;
    sz_threat_store_add(in->store, &r, &op);
    fake_loop_run_once(in->kit.loop);
    return op.id;
}

static void lift(struct instance *in, uint64_t id)
{
    struct sz_threat_op op = {.on_done = on_done};
    sz_threat_store_lift(in->store, id, &op);
    fake_loop_run_once(in->kit.loop);
}

static uint64_t counted(const char *event)
{
    return sz_counter_read(sz_series1(SZ_METRIC_threat_blocks, event));
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static struct sz_threat_record some(unsigned seed)
{
    struct sz_threat_record r = {.id = 1 + seed % 3, .signal = SZ_SIGNALS, .addr = address(seed % 2)};
    r.made.us = 1000 + seed / 3 % 3;
    r.until.us = seed % 5 == 0 ? 0 : 5000 + seed / 9 % 3;
    r.keep.us = 9000;
    return r;
}

Test(threat_blocks, of_two_one_holds_whoever_asks)
{
    for (unsigned i = 0; i < 81; i++) {
        for (unsigned j = 0; j < 81; j++) {
            struct sz_threat_record x = some(i), y = some(j);
            int order = sz_blocks_compare(&x, &y);
            cr_assert_eq(order, -sz_blocks_compare(&y, &x));
            if (order == 0)
                cr_assert(x.made.us == y.made.us && x.until.us == y.until.us && x.id == y.id);
            for (unsigned k = 0; k < 81; k += 7) {
                struct sz_threat_record z = some(k);
                if (order > 0 && sz_blocks_compare(&y, &z) > 0)
                    cr_assert_gt(sz_blocks_compare(&x, &z), 0, "of three the order is one");
            }
        }
    }
}

Test(threat_blocks, a_record_is_what_it_was)
{
    struct sz_threat_record r = {.id = 7, .is_subject = true, .by_score = true}, back;
    struct sz_buf plain = {0};
    r.made.us = 1767225600000000;
    r.until.us = r.keep.us = r.made.us + 1;
    memset(r.issuer, 'i', 255);
    memset(r.subject, 's', 255);
    memset(r.reason, 'r', 255);
    sz_block_encode(&r, &plain);
    cr_assert_eq(plain.n, SZ_BLOCK_PLAIN);
    cr_assert(sz_block_decode(sz_buf_slice(&plain), &back));
    cr_expect(back.id == 7 && back.is_subject && back.by_score && strcmp(back.issuer, r.issuer) == 0 &&
              strcmp(back.subject, r.subject) == 0 && strcmp(back.reason, r.reason) == 0 && back.made.us == r.made.us &&
              back.keep.us == r.keep.us);
    /* No bytes that decode say what cannot be. */
    for (size_t i = 0; i < plain.n; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            plain.p[i] ^= (char)(1u << bit);
            if (sz_block_decode(sz_buf_slice(&plain), &back))
                cr_assert(back.id != 0 && back.until.us <= back.keep.us && strlen(back.subject) > 0);
            plain.p[i] ^= (char)(1u << bit);
        }
    }
    cr_expect_not(sz_block_decode(sz_sub(sz_buf_slice(&plain), 0, plain.n - 1), &back));
    sz_buf_fini(&plain);
}

/* ---- seals ------------------------------------------------------------------------------------------------------- */

Test(threat_share, an_instance_that_is_new_believes_what_is_fresh)
{
    open_instance(&one);
    settle(&one);
    (void)block(&one, 1, 3600);
    settle(&one);
    open_instance(&two);
    settle(&two);
    cr_expect(blocked(&two, 1));
    close_instance(&two);
    /* Nobody is left who holds it: what lies in Redis is a copy that anybody may have kept. */
    close_instance(&one);
    kit_init(&two.kit);
    kit_at(&two.kit, server.port);
    kit_start(&two.kit);
    fake_loop_set_wall(two.kit.loop, (struct sz_wall){sz_wall_read().us + SZ_THREAT_FRESH.us + 1000000});
    open_store(&two);
    sz_threat_store_share(two.store, two.kit.redis, fleet);
    settle(&two);
    cr_expect_not(blocked(&two, 1));
    cr_expect_geq(counted("stale"), 1);
}

Test(threat_share, who_holds_it_seals_it_anew)
{
    open_instance(&one);
    settle(&one);
    (void)block(&one, 1, 7200);
    settle(&one);
    for (int i = 0; i < 3; i++) {
        later(&one, SZ_THREAT_FRESH.us / 1000000 * 2 / 3);
        one.store->ticked = (struct sz_mono){0};
        kit_run(&one.kit, 1200); /* a tick */
        settle(&one);
    }
    open_instance(&two);
    later(&two, 2 * SZ_THREAT_FRESH.us / 1000000);
    settle(&two);
    cr_expect(blocked(&two, 1));
    /* Its end is inside the seal and nobody renews it beyond. */
    later(&one, 7200);
    later(&two, 7200);
    kit_run(&one.kit, 1200);
    kit_run(&two.kit, 1200);
    cr_expect_eq(one.store->blocks.used[0], 0);
    cr_expect_eq(two.store->blocks.used[0], 0);
    kit_run(&one.kit, 500);
    cr_expect(redis_says(&server, "DBSIZE", ":1"), "the hash itself");
}

/* b was lifted while one was away for longer than seals live; one comes back and says that it stands. */
Test(threat_share, who_was_cut_off_brings_nothing_back)
{
    open_instance(&one);
    open_instance(&two);
    settle(&one);
    settle(&two);
    uint64_t id = block(&one, 1, 7200);
    settle(&one);
    settle(&two);
    cr_assert(blocked(&two, 1));
    lift(&two, id);
    cr_assert_eq(last, SZ_THREAT_SAVED);
    settle(&two);
    free(redis_say(&server, "FLUSHALL"));
    /* One has heard nothing of it: it did not run.  All that is left of the lift is what two remembers. */
    later(&one, 1200);
    later(&two, 1200);
    settle(&one);
    settle(&two);
    settle(&one);
    cr_expect_not(blocked(&one, 1));
    cr_expect_not(blocked(&two, 1));
}

/* A block, its lift, a shorter block: when that has ended the first one must not come back. */
Test(threat_share, a_shorter_block_remembers_the_longer_one)
{
    open_instance(&one);
    settle(&one);
    lift(&one, block(&one, 1, 7200));
    (void)block(&one, 1, 60);
    cr_assert_eq(last, SZ_THREAT_SAVED);
    cr_expect_eq(one.store->blocks.n, 1);
    cr_expect_geq(one.store->blocks.v[0].r.keep.us, sz_loop_wall(one.kit.loop).us + INT64_C(7000000000));
    later(&one, 120);
    kit_run(&one.kit, 1200);
    cr_expect_eq(one.store->blocks.used[0], 1, "it stands no more, and is remembered");
    struct sz_threat_store_look look;
    sz_threat_store_look(one.store, &look);
    cr_expect_eq(look.by_hand, 0);
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

Test(threat_share, what_the_engine_finds_never_keeps_an_operator_out, .timeout = 120)
{
    kit_init(&one.kit);
    kit_at(&one.kit, server.port);
    kit_start(&one.kit);
    open_store(&one);
    struct sz_wall until = {sz_loop_wall(one.kit.loop).us + INT64_C(3600000000)};
    for (unsigned n = 0; n < SZ_THREAT_RECORDS + 100; n++) {
        sz_threat_store_found(one.store, address(n), until);
        if (n % 200 == 0)
            fake_loop_run_once(one.kit.loop);
    }
    fake_loop_run_once(one.kit.loop);
    cr_expect_eq(one.store->blocks.used[1], SZ_THREAT_RECORDS);
    cr_expect_geq(counted("dropped"), 100);
    (void)block(&one, 60000, 60);
    cr_expect_eq(last, SZ_THREAT_SAVED);
    /* More at once than the loop takes: counted with the next tick, and nothing waits. */
    uint64_t before = counted("dropped");
    for (unsigned n = 0; n < SZ_FOUND_MAX + 50; n++)
        sz_threat_store_found(one.store, address(n), until);
    kit_run(&one.kit, 1200);
    cr_expect_geq(counted("dropped"), before + 50);
}

Test(threat_share, ten_thousand_by_hand_are_the_most_and_lifting_makes_room)
{
    kit_init(&one.kit);
    kit_at(&one.kit, server.port);
    kit_start(&one.kit);
    struct sz_text why = {""};
    one.threat = sz_threat_new(65536);
    one.store = sz_threat_store_new(one.kit.loop, one.threat, SZ_NONE, sz_loop_now(one.kit.loop),
                                    sz_loop_wall(one.kit.loop), &why);
    uint64_t id = 0;
    for (unsigned n = 0; n < SZ_THREAT_RECORDS; n++) {
        id = block(&one, n, 3600);
        cr_assert_eq(last, SZ_THREAT_SAVED, "%u", n);
    }
    (void)block(&one, 20000, 3600);
    cr_expect_eq(last, SZ_THREAT_FULL);
    lift(&one, id);
    cr_expect_eq(last, SZ_THREAT_SAVED);
    (void)block(&one, 20000, 3600);
    cr_expect_eq(last, SZ_THREAT_SAVED);
}
