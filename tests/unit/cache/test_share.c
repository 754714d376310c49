/* What waits to be told takes no more room than there are records, however long nothing can be told. */
#include "redis_kit.h"

#include "cache/revocation.h"
#include "subzero/crypto.h"

static struct redis_kit k;
static struct sz_revocations *set;
static struct sz_fleet *fleet;

static void setup(void)
{
    static const char key[32] = "0123456789abcdef0123456789abcdef";
    struct sz_text why;
    kit_init(&k);
    kit_at(&k, 1); /* nobody is there */
    kit_start(&k);
    fleet = sz_fleet_new(sz_slice(key, sizeof(key)), NULL, 0);
    cr_assert_not_null(fleet);
    set = sz_revocations_new(1000, SZ_NONE, sz_loop_wall(k.loop), &why);
    cr_assert_not_null(set);
    sz_revocations_start(set, k.loop);
    sz_revocations_follow(set, k.redis, fleet, NULL, NULL);
}

static void teardown(void)
{
    sz_revocations_free(&set);
    kit_stop(&k);
    sz_fleet_free(&fleet);
}

TestSuite(share, .init = setup, .fini = teardown, .timeout = 60);

/* Somebody with access to Redis can have an old record heard again and again while writing fails. */
Test(share, what_is_to_be_told_again_and_again_is_to_be_told_once)
{
    enum { RECORDS = 100, TIMES = 200000 };
    size_t at;
    for (int i = 0; i < RECORDS; i++) {
        struct sz_revocation r = {.kind = SZ_REVOKE_JTI, .before = INT64_MAX, .expires = INT64_MAX};
        sz_random(r.digest, sizeof(r.digest));
        cr_assert_eq(sz_revocation_apply(set, &r, &at), SZ_CHANGE_DONE);
    }
    for (size_t i = 0; i < TIMES; i++)
        sz_revocation_untold(set, i % 7 == 0 ? i % RECORDS : RECORDS / 2);
    cr_expect_leq(set->share->untold_room, 4 * RECORDS + 128, "%zu", set->share->untold_room);
    bool waits[RECORDS] = {false};
    for (size_t i = 0; i < set->share->untold_n; i++)
        waits[set->share->untold[i]] = true;
    for (size_t i = 0; i < RECORDS; i++)
        cr_expect(waits[i], "%zu has been forgotten", i);
}
