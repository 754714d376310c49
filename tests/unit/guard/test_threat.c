/* Threat scores: who is found after how much, who never is, what decays, what stays when memory is full. */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "subzero/threat.h"

static const struct sz_threat_policy policy = {0.3f, 0.5f, 0.7f, SZ_SEC(60), SZ_SEC(600)};

static struct sz_mono at(int64_t seconds)
{
    return (struct sz_mono){INT64_C(5000000000) + seconds * 1000000};
}

static struct sz_addr v4(unsigned n)
{
    struct sz_addr a = {
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}};
    return a;
}

static uint64_t thing(const struct sz_threat *t, unsigned n)
{
    return sz_threat_hash(t, sz_slice(&n, sizeof(n)));
}

static float score(struct sz_threat *t, struct sz_threat_key key, int64_t seconds)
{
    struct sz_threat_view view;
    (void)sz_threat_look(t, key, &policy, at(seconds), &view);
    return view.score;
}

/* One forged token more, as the pipeline notes it. */
static void forge(struct sz_threat *t, struct sz_threat_key key, unsigned token, int64_t seconds)
{
    sz_threat_note(t, key, SZ_SIGNAL_failed_auth, 1, at(seconds));
    sz_threat_note(t, key, SZ_SIGNAL_bad_tokens, thing(t, token), at(seconds));
}

Test(threat, rows_are_named_once)
{
    for (unsigned i = 0; i < SZ_SIGNALS; i++) {
        const struct sz_signal_row *row = sz_signal_row((enum sz_signal)i);
        cr_assert_eq((unsigned)sz_signal_from(sz_cstr(row->name)), i, "%s", row->name);
        cr_assert(row->weight > 0 && row->weight < 1 && row->full > 0, "%s", row->name);
    }
    cr_assert_eq((unsigned)sz_signal_from(SZ_S("nothing")), (unsigned)SZ_SIGNALS);
}

Test(threat, nobody_known_is_nobody_suspected)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_view view;
    cr_assert_not(sz_threat_look(t, sz_threat_address(t, v4(1)), &policy, at(0), &view));
    cr_assert_eq(view.score, 0);
    cr_assert_eq((int)sz_threat_level(t, sz_threat_address(t, v4(1)), &policy, at(0)), SZ_THREAT_ALLOW);
    cr_assert_not(sz_threat_lift(t, sz_threat_address(t, v4(1)), at(0)));
    sz_threat_free(&t);
}

static unsigned forged_until_blocked(struct sz_threat *t, struct sz_threat_key key)
{
    struct sz_threat_view view;
    for (unsigned n = 1; n <= 100; n++) {
        forge(t, key, n, 0);
        if (sz_threat_judge(t, key, &policy, at(0), &view))
            return n;
    }
    return 0;
}

Test(threat, different_forged_tokens_block_within_twenty)
{
    struct sz_threat *t = sz_threat_new(4096);
    for (unsigned i = 0; i < 50; i++) {
        unsigned n = forged_until_blocked(t, sz_threat_address(t, v4(i * 256)));
        cr_assert(n >= 5 && n <= 20, "after %u", n);
    }
    sz_threat_free(&t);
}

Test(threat, one_bad_token_again_and_again_blocks_nobody)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_key key = sz_threat_address(t, v4(1));
    struct sz_threat_view view;
    for (unsigned i = 0; i < 100000; i++)
        forge(t, key, 7, i / 1000);
    cr_assert_not(sz_threat_judge(t, key, &policy, at(100), &view));
    cr_assert_lt(score(t, key, 100), 0.5f);
    sz_threat_free(&t);
}

/* 500 people behind one address; a release breaks their tokens, all at once, for an hour. */
Test(threat, a_broken_release_behind_a_nat_blocks_nobody)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_key key = sz_threat_address(t, v4(1));
    struct sz_threat_view view;
    for (unsigned i = 0; i < 500; i++)
        sz_threat_good(t, key, thing(t, 1000 + i), at(0));
    for (unsigned i = 0; i < 500; i++) {
        forge(t, key, 1000 + i, 10);
        cr_assert_not(sz_threat_judge(t, key, &policy, at(10), &view), "at token %u", i);
    }
    sz_threat_free(&t);
}

Test(threat, good_tokens_alone_never_count_against)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_key key = sz_threat_address(t, v4(1));
    for (unsigned i = 0; i < 100000; i++)
        sz_threat_good(t, key, thing(t, i), at(i / 1000));
    cr_assert_eq(score(t, key, 100), 0);
    cr_assert_eq((int)sz_threat_level(t, key, &policy, at(100)), SZ_THREAT_ALLOW);
    sz_threat_free(&t);
}

Test(threat, an_address_is_not_its_neighbours)
{
    struct sz_threat *t = sz_threat_new(4096);
    struct sz_threat_key network = sz_threat_network(t, v4(5));
    for (unsigned i = 0; i < 200; i++) {
        sz_threat_note(t, network, SZ_SIGNAL_neighbours, thing(t, i), at(0));
        forge(t, sz_threat_address(t, v4(i)), i, 0);
    }
    cr_assert_eq(score(t, sz_threat_address(t, v4(250)), 0), 0, "has done nothing itself");
    struct sz_threat_view view;
    cr_assert(sz_threat_look(t, sz_threat_address(t, v4(5)), &policy, at(0), &view));
    cr_assert_float_eq(view.parts[SZ_SIGNAL_neighbours], 0.2f, 0.01f);
    cr_assert_lt(view.score, 0.5f, "one forged token and bad neighbours: %f", (double)view.score);
    sz_threat_free(&t);
}

Test(threat, amounts_halve_and_bits_turn)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_key key = sz_threat_address(t, v4(1));
    sz_threat_note(t, key, SZ_SIGNAL_malformed, 30, at(0));
    cr_assert_float_eq(score(t, key, 0), 0.55f, 0.01f);
    cr_assert_float_eq(score(t, key, 120), 0.275f, 0.01f);
    cr_assert_float_eq(score(t, key, 240), 0.1375f, 0.01f);
    struct sz_threat_key other = sz_threat_address(t, v4(2));
    for (unsigned i = 0; i < 10; i++)
        sz_threat_note(t, other, SZ_SIGNAL_scanning, thing(t, i), at(0));
    float first = score(t, other, 1);
    cr_assert_gt(first, 0.25f);
    cr_assert_lt(score(t, other, 450), first * 0.6f);
    cr_assert_eq(score(t, other, 620), 0);
    sz_threat_free(&t);
}

Test(threat, blocks_double_up_to_the_longest_and_are_forgotten)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_key key = sz_threat_address(t, v4(1));
    struct sz_threat_view view;
    int64_t now = 0, expected[] = {60, 120, 240, 480, 600, 600};
    for (unsigned i = 0; i < SZ_COUNT(expected); i++) {
        for (unsigned n = 0; n < 64; n++)
            forge(t, key, n, now);
        cr_assert(sz_threat_judge(t, key, &policy, at(now), &view));
        int64_t lasts = view.blocked_until.us - at(now).us;
        cr_assert_eq(lasts, expected[i] * 1000000, "block %u lasts %lld", i, (long long)lasts);
        cr_assert_not(sz_threat_judge(t, key, &policy, at(now), &view), "it is blocked already");
        cr_assert(sz_threat_look(t, key, &policy, at(now + expected[i] - 1), &view));
        cr_assert_eq((int)view.level, SZ_THREAT_BLOCK);
        now += expected[i];
        cr_assert(sz_threat_look(t, key, &policy, at(now), &view));
        cr_assert_neq((int)view.level, SZ_THREAT_BLOCK, "over by itself");
    }
    now += 5 * 86400;
    for (unsigned n = 0; n < 64; n++)
        forge(t, key, n, now);
    cr_assert(sz_threat_judge(t, key, &policy, at(now), &view));
    cr_assert_eq(view.blocked_until.us, at(now + 60).us, "six blocks, five days ago: forgotten");
    sz_threat_free(&t);
}

Test(threat, lifting_forgets)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_key key = sz_threat_address(t, v4(1));
    cr_assert_gt(forged_until_blocked(t, key), 0);
    cr_assert(sz_threat_lift(t, key, at(1)));
    cr_assert_eq(score(t, key, 1), 0);
    cr_assert_not(sz_threat_lift(t, key, at(1)));
    sz_threat_free(&t);
}

Test(threat, an_operators_block_needs_no_score)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_key key = sz_threat_subject(t, SZ_S("https://idp.example/"), SZ_S("alice"));
    cr_assert(sz_threat_quiet(t, at(0)));
    cr_assert(sz_threat_block(t, key, at(0), at(3600)));
    cr_assert_not(sz_threat_quiet(t, at(0)));
    cr_assert_eq((int)sz_threat_level(t, key, &policy, at(3599)), SZ_THREAT_BLOCK);
    cr_assert_eq((int)sz_threat_level(t, key, &policy, at(3600)), SZ_THREAT_ALLOW);
    sz_threat_free(&t);
}

Test(threat, a_shorter_block_takes_nothing_back)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_key key = sz_threat_address(t, v4(1));
    cr_assert(sz_threat_block(t, key, at(0), at(3600)) && sz_threat_block(t, key, at(0), at(60)));
    cr_assert_eq((int)sz_threat_level(t, key, &policy, at(3599)), SZ_THREAT_BLOCK);
    sz_threat_free(&t);
}

Test(threat, who_is_blocked_makes_room_for_nobody)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_threat_view view;
    unsigned refused = 0, kept = 0, n = 3000;
    bool placed[3000];
    for (unsigned i = 0; i < n; i++) {
        placed[i] = sz_threat_block(t, sz_threat_address(t, v4(i)), at(0), at(100 + i));
        refused += !placed[i];
    }
    for (unsigned i = 0; i < n; i++)
        kept += sz_threat_look(t, sz_threat_address(t, v4(i)), &policy, at(1), &view) && view.level == SZ_THREAT_BLOCK;
    cr_assert_gt(refused, 0);
    cr_assert_eq(kept, n - refused);
    sz_threat_free(&t);
}

Test(threat, kinds_never_meet)
{
    struct sz_threat *t = sz_threat_new(1024);
    struct sz_addr host = v4(0), host64 = sz_addr_prefix(v4(0), 128);
    cr_assert_neq(sz_threat_address(t, host).hash, sz_threat_network(t, host64).hash);
    cr_assert_neq(sz_threat_subject(t, SZ_S("a"), SZ_S("bc")).hash, sz_threat_subject(t, SZ_S("ab"), SZ_S("c")).hash);
    struct sz_addr six = {{0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8}}, same = six;
    same.b[15] = 99;
    cr_assert_eq(sz_threat_address(t, six).hash, sz_threat_address(t, same).hash, "one /64 is one client");
    same.b[7] = 99;
    cr_assert_neq(sz_threat_address(t, six).hash, sz_threat_address(t, same).hash);
    cr_assert_eq(sz_threat_network(t, six).hash, sz_threat_network(t, same).hash, "one /48");
    sz_threat_free(&t);
}

/* A million addresses of one offence each push out none of the hundred that are blocked. */
Test(threat, spraying_evicts_none_of_the_worst)
{
    struct sz_threat *t = sz_threat_new(4096);
    struct sz_threat_stats before, after;
    struct sz_threat_view view;
    unsigned kept = 0;
    for (unsigned i = 0; i < 100; i++)
        cr_assert_gt(forged_until_blocked(t, sz_threat_address(t, v4(i * 256))), 0);
    sz_threat_stats(t, &before);
    for (unsigned i = 0; i < 1000000; i++)
        forge(t, sz_threat_address(t, v4(0x800000 + i)), i, 1);
    sz_threat_stats(t, &after);
    for (unsigned i = 0; i < 100; i++)
        kept += sz_threat_look(t, sz_threat_address(t, v4(i * 256)), &policy, at(2), &view) &&
                view.level == SZ_THREAT_BLOCK;
    cr_assert_eq(kept, 100);
    cr_assert_eq(before.bytes, after.bytes);
    cr_assert_leq(after.entries, after.capacity);
    cr_assert_eq(after.dropped, 0);
    sz_threat_free(&t);
}

static void count_one(void *arg, const struct sz_threat_key *key, const struct sz_threat_view *view)
{
    unsigned *n = arg;
    cr_assert(key->kind == SZ_THREAT_ADDRESS && view->score >= 0.3f);
    (*n)++;
}

Test(threat, operators_see_the_worst)
{
    struct sz_threat *t = sz_threat_new(1024);
    unsigned n = 0;
    for (unsigned i = 0; i < 10; i++)
        (void)forged_until_blocked(t, sz_threat_address(t, v4(i * 256)));
    for (unsigned i = 100; i < 200; i++)
        forge(t, sz_threat_address(t, v4(i * 256)), i, 0);
    sz_threat_each(t, SZ_THREAT_ADDRESS, &policy, 0.3f, at(0), count_one, &n);
    cr_assert_eq(n, 10);
    sz_threat_free(&t);
}

/* ---- looks that meet notes --------------------------------------------------------------------------------------- */

static struct sz_threat *busy;
static struct sz_threat_key busy_key;
static _Atomic bool busy_end;

static void *busy_writer(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !busy_end; i++)
        sz_threat_note(busy, busy_key, SZ_SIGNAL_failed_auth, 1, at(i & 1));
    return NULL;
}

/* Whoever is blocked and goes on asking has its entry written all the time: no look finds it free meanwhile. */
Test(threat, who_is_blocked_is_blocked_while_it_is_written, .timeout = 120)
{
    pthread_t writers[2];
    unsigned free_looks = 0;
    busy = sz_threat_new(1024);
    busy_key = sz_threat_address(busy, v4(1));
    cr_assert(sz_threat_block(busy, busy_key, at(0), at(3600)));
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&writers[i], NULL, busy_writer, NULL), 0);
    for (unsigned i = 0; i < 2000000; i++)
        free_looks += sz_threat_level(busy, busy_key, &policy, at(1)) != SZ_THREAT_BLOCK;
    busy_end = true;
    for (size_t i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    cr_expect_eq(free_looks, 0);
    sz_threat_free(&busy);
}
