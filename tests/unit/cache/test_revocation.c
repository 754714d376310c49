/* The set: bounded, never forgetting too early, never saying "done" before the disk says so. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/revocation.h"
#include "fake/loop.h"
#include "subzero/crypto.h"
#include "subzero/log.h"

static char root[64], path[96];
static struct sz_loop *loop;
static struct sz_revocations *set;

static void setup(void)
{
    sz_crypto_init();
    snprintf(root, sizeof(root), "/tmp/sz-revoke-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/state", root);
    loop = fake_loop_new(0);
}

static void teardown(void)
{
    char command[256];
    sz_revocations_free(&set);
    fake_loop_free(&loop);
    snprintf(command, sizeof(command), "chmod -R u+w %s; rm -rf %s", root, root);
    cr_assert_eq(system(command), 0);
}

TestSuite(revocation, .init = setup, .fini = teardown);

static void open_set(size_t capacity, bool disk)
{
    struct sz_text why = {""};
    set = sz_revocations_new(capacity, disk ? sz_cstr(path) : SZ_NONE, sz_loop_wall(loop), &why);
    cr_assert_not_null(set, "%s", why.s);
    sz_revocations_start(set, loop);
}

static struct sz_revocation subject(const char *name, int64_t before, int64_t expires)
{
    struct sz_revocation r = {.kind = SZ_REVOKE_SUBJECT, .before = before, .expires = expires};
    sz_revocation_digest(SZ_REVOKE_SUBJECT, SZ_S("iss"), sz_cstr(name), r.digest);
    return r;
}

static bool refused(const char *name, int64_t iat)
{
    struct sz_issued issued = {.known = iat >= 0, .iat = iat, .leeway = 10};
    return sz_revocations_cover(set, sz_revocation_name(SZ_REVOKE_SUBJECT, SZ_S("iss"), sz_cstr(name)), &issued);
}

struct asked {
    struct sz_revocation_op op;
    bool done;
    enum sz_revoked result;
};

static void on_done(struct sz_revocation_op *op, enum sz_revoked result)
{
    struct asked *asked = SZ_CONTAINER(op, struct asked, op);
    cr_assert_not(asked->done);
    asked->done = true;
    asked->result = result;
}

static bool is_done(void *arg)
{
    return ((struct asked *)arg)->done;
}

static enum sz_revoked tell(const struct sz_revocation *r)
{
    struct asked asked = {.op = {.on_done = on_done}};
    sz_revocations_add(set, r, &asked.op);
    cr_assert_not(asked.done, "never inside the call");
    cr_assert(fake_loop_run_until(loop, is_done, &asked, 5000));
    return asked.result;
}

Test(revocation, before_is_judged_with_leeway_and_without_iat)
{
    struct sz_revocation r = subject("alice", 1000, INT64_MAX), all = subject("bob", INT64_MAX, INT64_MAX);
    open_set(100, false);
    cr_assert_not(refused("alice", 5));
    cr_assert_eq(tell(&r), SZ_REVOKED_NEW);
    cr_assert_eq(tell(&all), SZ_REVOKED_NEW);
    cr_assert(refused("alice", 1000) && refused("alice", 1010) && refused("alice", 0));
    cr_assert_not(refused("alice", 1011));
    cr_assert(refused("alice", -1), "a token that does not say when it was issued");
    cr_assert(refused("bob", INT64_MAX) && refused("bob", -1));
    cr_assert_not(refused("carol", -1));
}

Test(revocation, the_same_again_stands_and_a_wider_one_widens)
{
    struct sz_revocation r = subject("alice", 1000, 5000), wider = subject("alice", 2000, 4000);
    open_set(100, true);
    cr_assert_eq(tell(&r), SZ_REVOKED_NEW);
    cr_assert_eq(tell(&r), SZ_REVOKED_STOOD);
    cr_assert_eq(tell(&wider), SZ_REVOKED_NEW);
    cr_assert_eq(tell(&r), SZ_REVOKED_STOOD, "a narrower one takes nothing back");
    cr_assert(refused("alice", 2000));
    cr_assert_eq(set->v[0].r.expires, 5000);
    cr_assert_eq(set->n, 1);
}

Test(revocation, full_means_no_and_nothing_is_evicted)
{
    char name[16];
    struct sz_revocations_look look;
    open_set(50, false);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        struct sz_revocation r = subject(name, INT64_MAX, INT64_MAX);
        cr_assert_eq(tell(&r), SZ_REVOKED_NEW);
    }
    struct sz_revocation more = subject("more", INT64_MAX, INT64_MAX), known = subject("s3", INT64_MAX, INT64_MAX);
    cr_assert_eq(tell(&more), SZ_REVOKED_FULL);
    cr_assert_eq(tell(&known), SZ_REVOKED_STOOD);
    cr_assert_not(refused("more", 1));
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        cr_assert(refused(name, 1));
    }
    sz_revocations_look(set, &look);
    cr_assert(look.full && look.n == 50);
}

Test(revocation, ends_are_kept_to_and_make_room)
{
    int64_t now = sz_wall_seconds(sz_loop_wall(loop));
    struct sz_revocation short_one = subject("short", INT64_MAX, now + 60),
                         long_one = subject("long", INT64_MAX, INT64_MAX);
    struct sz_revocation more = subject("more", INT64_MAX, INT64_MAX);
    open_set(2, true);
    cr_assert_eq(tell(&short_one), SZ_REVOKED_NEW);
    cr_assert_eq(tell(&long_one), SZ_REVOKED_NEW);
    fake_loop_run_for(loop, SZ_SEC(1800));
    cr_assert(refused("short", 1), "a little longer than it matters");
    fake_loop_run_for(loop, SZ_SEC(3600));
    cr_assert_not(refused("short", 1));
    cr_assert(refused("long", 1));
    cr_assert_eq(tell(&more), SZ_REVOKED_NEW);
    cr_assert(refused("long", 1) && refused("more", 1));
}

Test(revocation, news_tell_of_every_kind_apart)
{
    open_set(100, false);
    const struct sz_revocation_news *news = sz_revocations_news(set);
    cr_assert_eq(sz_revocation_kinds(news, 0), 0);
    cr_assert_not(sz_revocation_newer(news, 0));
    struct sz_revocation r = subject("alice", 5, INT64_MAX);
    tell(&r);
    uint64_t then = sz_revocation_sequence(news);
    cr_assert_eq(sz_revocation_kinds(news, 0), 1u << SZ_REVOKE_SUBJECT);
    cr_assert_eq(sz_revocation_kinds(news, then), 0);
    r.kind = SZ_REVOKE_JTI;
    r.digest[0]++;
    tell(&r);
    cr_assert_eq(sz_revocation_kinds(news, then), 1u << SZ_REVOKE_JTI);
    cr_assert_eq(sz_revocation_kinds(news, 0), 1u << SZ_REVOKE_JTI | 1u << SZ_REVOKE_SUBJECT);
}

static void reopen(size_t capacity)
{
    sz_revocations_free(&set);
    open_set(capacity, true);
}

Test(revocation, what_was_acknowledged_is_there_after_a_restart)
{
    struct sz_revocation r = subject("alice", 1000, INT64_MAX), wider = subject("alice", 2000, INT64_MAX);
    open_set(100, true);
    cr_assert_eq(tell(&r), SZ_REVOKED_NEW);
    cr_assert_eq(tell(&wider), SZ_REVOKED_NEW);
    for (int i = 0; i < 3; i++) {
        reopen(100);
        cr_assert(refused("alice", 2000));
        cr_assert_not(refused("alice", 2011));
        cr_assert_eq(set->n, 1);
        cr_assert_eq(tell(&wider), SZ_REVOKED_STOOD);
    }
}

Test(revocation, more_on_disk_than_may_be_kept_stops_the_start)
{
    struct sz_text why = {""};
    struct sz_revocation a = subject("a", 1, INT64_MAX), b = subject("b", 1, INT64_MAX);
    open_set(100, true);
    tell(&a);
    tell(&b);
    sz_revocations_free(&set);
    set = sz_revocations_new(1, sz_cstr(path), sz_loop_wall(loop), &why);
    cr_assert_null(set);
    cr_assert_not_null(strstr(why.s, "revocation.capacity"));
}

/* A full or read-only disk: honoured here, not called safe, written as soon as it can be. */
Test(revocation, a_disk_that_refuses_is_no_yes)
{
    char file[128];
    struct sz_revocation a = subject("a", 1000, INT64_MAX), b = subject("b", 1000, INT64_MAX);
    struct sz_revocations_look look;
    struct asked asked = {.op = {.on_done = on_done}};
    open_set(100, true);
    tell(&a);
    set->save.file.broken = true; /* as after a failed sync: the next write makes a new file */
    snprintf(file, sizeof(file), "%s/revocations.new", path);
    cr_assert_eq(mkdir(file, 0700), 0); /* which it cannot */
    sz_revocations_add(set, &b, &asked.op);
    cr_assert(refused("b", 5), "at once");
    for (int i = 0; i < 200 && !asked.done; i++) {
        fake_loop_advance(loop, SZ_MS(20));
        usleep(1000);
        fake_loop_run_once(loop);
    }
    cr_assert(asked.done);
    cr_assert_eq(asked.result, SZ_REVOKED_UNSAFE);
    sz_revocations_look(set, &look);
    cr_assert(look.unsaved > 0 && look.fault.s[0] != '\0');
    cr_assert_eq(rmdir(file), 0);
    for (int i = 0; i < 500 && look.unsaved > 0; i++) {
        fake_loop_advance(loop, SZ_MS(20));
        usleep(1000);
        fake_loop_run_once(loop);
        sz_revocations_look(set, &look);
    }
    cr_assert_eq(look.unsaved, 0);
    cr_assert_str_empty(look.fault.s);
    reopen(100);
    cr_assert(refused("a", 5) && refused("b", 5));
}

Test(revocation, many_at_once_share_writes_and_all_are_told)
{
    enum { N = 500 };
    static struct asked asked[N];
    char name[16];
    open_set(1000, true);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        struct sz_revocation r = subject(name, INT64_MAX, INT64_MAX);
        asked[i] = (struct asked){.op = {.on_done = on_done}};
        sz_revocations_add(set, &r, &asked[i].op);
    }
    for (int i = 0; i < N; i++) {
        cr_assert(fake_loop_run_until(loop, is_done, &asked[i], 5000));
        cr_assert_eq(asked[i].result, SZ_REVOKED_NEW);
    }
    reopen(1000);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        cr_assert(refused(name, 1));
    }
}

Test(revocation_name, no_two_meanings_share_one)
{
    uint8_t digests[8][32];
    char long_value[5000];
    memset(long_value, 'x', sizeof(long_value));
    sz_revocation_digest(SZ_REVOKE_JTI, SZ_S("iss"), SZ_S("a"), digests[0]);
    sz_revocation_digest(SZ_REVOKE_SID, SZ_S("iss"), SZ_S("a"), digests[1]);
    sz_revocation_digest(SZ_REVOKE_JTI, SZ_S("issa"), SZ_S(""), digests[2]);
    sz_revocation_digest(SZ_REVOKE_JTI, SZ_S("is"), SZ_S("sa"), digests[3]);
    sz_revocation_digest(SZ_REVOKE_JTI, SZ_S("iss"), SZ_NONE, digests[4]);
    sz_revocation_digest(SZ_REVOKE_TOKEN, SZ_NONE, sz_slice(long_value, 5000), digests[5]);
    sz_revocation_digest(SZ_REVOKE_TOKEN, SZ_NONE, sz_slice(long_value, 4999), digests[6]);
    uint8_t hash[32];
    sz_sha256(sz_slice(long_value, 5000), hash);
    sz_revocation_digest(SZ_REVOKE_TOKEN, SZ_NONE, sz_slice(hash, 32), digests[7]);
    for (size_t i = 0; i < SZ_COUNT(digests); i++) {
        for (size_t j = 0; j < i; j++)
            cr_assert_arr_neq(digests[i], digests[j], 32, "%zu and %zu", i, j);
    }
}

/* Whoever waits when the process ends hears how far it came: the disk has it by then. */
Test(revocation, what_waits_at_the_end_is_told)
{
    struct asked saved = {.op = {.on_done = on_done}}, left = {.op = {.on_done = on_done}};
    struct sz_revocation alice = subject("alice", INT64_MAX, INT64_MAX), bob = subject("bob", INT64_MAX, INT64_MAX);
    open_set(10, true);
    sz_revocations_add(set, &alice, &saved.op);
    sz_revocations_add(set, &bob, &left.op);
    sz_revocations_cancel(set, &left.op);
    cr_expect_not(saved.done);
    sz_revocations_stop(set);
    cr_expect(saved.done && saved.result == SZ_REVOKED_NEW);
    cr_expect_not(left.done);
    sz_revocations_free(&set);
    open_set(10, true);
    cr_expect(refused("alice", 1) && refused("bob", 1));
}

/* A disk that is gone for long, and somebody who is revoked every second. */
Test(revocation, what_is_to_be_written_again_and_again_is_written_once)
{
    struct sz_revocation alice = subject("alice", 1, INT64_MAX), bob = subject("bob", INT64_MAX, INT64_MAX);
    size_t at;
    open_set(10, true);
    cr_assert_eq(sz_revocation_apply(set, &bob, &at), SZ_CHANGE_DONE);
    for (int i = 1; i < 10000; i++) {
        alice.before = i;
        cr_assert_eq(sz_revocation_apply(set, &alice, &at), SZ_CHANGE_DONE);
    }
    cr_expect_leq(set->dirty.n, 100, "%zu", set->dirty.n);
    sz_revocations_free(&set);
    open_set(10, true);
    cr_expect(refused("alice", 9999) && !refused("alice", 10100) && refused("bob", 1));
}
