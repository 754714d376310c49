/* Idempotency-Key: the first answer and no other, for a day, within bounds. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "edge/idempotency.h"
#include "subzero/crypto.h"

#define WHAT SZ_S("POST /revocations")

static struct sz_idempotency *store;
static uint64_t ticket;
static unsigned status;
static struct sz_slice answer;

static void setup(void)
{
    sz_crypto_init();
    store = sz_idempotency_new(8);
}

static void teardown(void)
{
    sz_idempotency_free(&store);
}

TestSuite(idempotency, .init = setup, .fini = teardown);

static enum sz_idempotent ask(const char *key, const char *body, int64_t second)
{
    return sz_idempotency_begin(store, WHAT, sz_cstr(key), sz_cstr(body), (struct sz_mono){second * 1000000}, &ticket,
                                &status, &answer);
}

Test(idempotency, keys_that_are_none)
{
    char key[300];
    memset(key, 'k', sizeof(key));
    key[256] = '\0';
    cr_assert_eq(ask(key, "b", 1), SZ_IDEMPOTENT_BAD);
    key[255] = '\0';
    cr_assert_eq(ask(key, "b", 1), SZ_IDEMPOTENT_NEW);
    cr_assert_eq(ask("", "b", 1), SZ_IDEMPOTENT_BAD);
    cr_assert_eq(ask("a b", "b", 1), SZ_IDEMPOTENT_BAD);
    cr_assert_eq(ask("a\tb", "b", 1), SZ_IDEMPOTENT_BAD);
    cr_assert_eq(ask("\xc3\xa4", "b", 1), SZ_IDEMPOTENT_BAD);
}

Test(idempotency, one_answer_for_one_body)
{
    cr_assert_eq(ask("k", "body", 1), SZ_IDEMPOTENT_NEW);
    cr_assert_eq(ask("k", "body", 1), SZ_IDEMPOTENT_BUSY);
    cr_assert_eq(ask("k", "other", 1), SZ_IDEMPOTENT_OTHER);
    sz_idempotency_end(store, ticket, 201, SZ_S("made"));
    cr_assert_eq(ask("k", "body", 2), SZ_IDEMPOTENT_KNOWN);
    cr_assert(status == 201 && sz_eq(answer, SZ_S("made")));
    cr_assert_eq(ask("k", "other", 2), SZ_IDEMPOTENT_OTHER);
    cr_assert_eq(sz_idempotency_begin(store, SZ_S("POST /threat/blocks"), SZ_S("k"), SZ_S("other"),
                                      (struct sz_mono){2000000}, &ticket, &status, &answer),
                 SZ_IDEMPOTENT_NEW, "another place, another key");
}

Test(idempotency, what_may_go_better_next_time_is_not_kept)
{
    char large[SZ_IDEMPOTENT_ANSWER + 2];
    memset(large, 'x', sizeof(large));
    cr_assert_eq(ask("k", "b", 1), SZ_IDEMPOTENT_NEW);
    sz_idempotency_end(store, ticket, 503, SZ_S("later"));
    cr_assert_eq(ask("k", "b", 2), SZ_IDEMPOTENT_NEW);
    sz_idempotency_end(store, ticket, 200, sz_slice(large, sizeof(large)));
    cr_assert_eq(ask("k", "b", 3), SZ_IDEMPOTENT_NEW);
    sz_idempotency_end(store, ticket, 422, SZ_S("no"));
    cr_assert_eq(ask("k", "b", 4), SZ_IDEMPOTENT_KNOWN);
    cr_assert_eq(status, 422);
}

Test(idempotency, a_day_and_so_many)
{
    char key[16];
    for (int i = 0; i < 30; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        cr_assert_eq(ask(key, "b", 1), SZ_IDEMPOTENT_NEW);
        sz_idempotency_end(store, ticket, i % 5 == 4 ? 503 : 200, sz_cstr(key));
    }
    cr_assert_eq(ask("k21", "b", 1), SZ_IDEMPOTENT_NEW, "nine later came eight others");
    sz_idempotency_end(store, ticket, 200, SZ_S("again"));
    cr_assert_eq(ask("k28", "b", 2), SZ_IDEMPOTENT_KNOWN);
    cr_assert(sz_eq(answer, SZ_S("k28")));
    cr_assert_eq(ask("k28", "b", 86400), SZ_IDEMPOTENT_KNOWN);
    cr_assert_eq(ask("k28", "b", 86401), SZ_IDEMPOTENT_NEW);
    sz_idempotency_end(store, ticket + 1000, 200, SZ_S("nobody's"));
}
