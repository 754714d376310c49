/* identity.c, reason.c: the text area's bounds, damaged records, absence apart from emptiness. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>

#include "subzero/identity.h"
#include "subzero/reason.h"

static struct sz_identity id;

Test(identity, a_damaged_record_never_leads_outside_its_text)
{
    sz_identity_init(&id);
    cr_assert_eq(sz_identity_add_claim(&id, 1, SZ_CLAIM_STRING, SZ_S("one")), 0);
    cr_assert_eq(sz_identity_add_claim(&id, 2, SZ_CLAIM_STRING, SZ_S("two")), 0);
    struct sz_identity good = id;
    for (size_t i = 0; i < id.claims.n; i++) {
        for (unsigned c = 0; c < 256; c++) {
            id = good;
            id.text[id.claims.at + i] = (char)c;
            for (unsigned slot = 0; slot < SZ_CLAIMS_MAX; slot++) {
                struct sz_claim claim = sz_identity_claim(&id, slot);
                cr_assert_leq(claim.text.n, id.claims.n);
                cr_assert(claim.text.p == NULL || claim.text.p + claim.text.n <= id.text + id.text_n);
            }
        }
    }
    id = good;
    id.claims.n = 60000;
    cr_expect_eq(sz_identity_claim(&id, 1).type, SZ_CLAIM_ABSENT);
    id = good;
    id.text_n = 60000;
    cr_expect_eq(sz_identity_claim(&id, 1).type, SZ_CLAIM_ABSENT);
}

Test(identity, damaged_items_end_the_list)
{
    static const char bytes[] = {2, 0, 'o', 'k', 9, 0, 'x'};
    struct sz_slice rest = sz_slice(bytes, sizeof(bytes)), item;
    cr_expect(sz_claim_next(&rest, &item));
    cr_expect(sz_eq(item, SZ_S("ok")));
    cr_expect_not(sz_claim_next(&rest, &item));
    rest = sz_slice(bytes, 1);
    cr_expect_not(sz_claim_next(&rest, &item));
}

Test(identity, text_is_bounded_and_absent_is_not_empty)
{
    char big[SZ_IDENTITY_TEXT];
    memset(big, 'x', sizeof(big));
    sz_identity_init(&id);
    struct sz_text_ref ref;
    cr_expect_eq(sz_identity_add_text(&id, sz_slice(big, SZ_IDENTITY_TEXT), &ref), -E2BIG);
    cr_expect_eq(id.text_n, 1);
    cr_expect_eq(sz_identity_add_text(&id, SZ_NONE, &ref), 0);
    cr_expect_null(sz_identity_text(&id, ref).p);
    cr_expect_eq(sz_identity_add_text(&id, SZ_S(""), &ref), 0);
    cr_expect_not_null(sz_identity_text(&id, ref).p);
    cr_expect_eq(sz_identity_text(&id, ref).n, 0);
    cr_expect_eq(sz_identity_add_text(&id, sz_slice(big, SZ_IDENTITY_TEXT - 1), &ref), 0);
    cr_expect_eq(id.text_n, SZ_IDENTITY_TEXT);
    cr_expect_eq(sz_identity_size(&id), offsetof(struct sz_identity, text) + SZ_IDENTITY_TEXT);
    cr_expect_eq(sz_identity_text(&id, ref).n, SZ_IDENTITY_TEXT - 1);
    cr_expect_eq(sz_identity_add_text(&id, SZ_S("y"), &ref), -E2BIG);
    cr_expect_eq(sz_identity_add_text(&id, SZ_S(""), &ref), 0);
}

Test(identity, claims_are_bounded)
{
    char big[SZ_IDENTITY_TEXT + 1];
    memset(big, 'x', sizeof(big));
    sz_identity_init(&id);
    cr_expect_eq(sz_identity_add_claim(&id, 0, SZ_CLAIM_STRING, sz_slice(big, sizeof(big))), -E2BIG);
    cr_expect_eq(sz_identity_add_claim(&id, 0, SZ_CLAIM_STRING, sz_slice(big, SZ_IDENTITY_TEXT - 4)), -E2BIG);
    cr_expect_eq(id.claims.n, 0);
    cr_expect_eq(sz_identity_add_claim(&id, 0, SZ_CLAIM_STRING, sz_slice(big, SZ_IDENTITY_TEXT - 5)), 0);
    cr_expect_eq(sz_identity_add_claim(&id, 1, SZ_CLAIM_STRING, SZ_S("")), -E2BIG);
    cr_expect_eq(sz_identity_claim(&id, 0).text.n, SZ_IDENTITY_TEXT - 5);
}

Test(identity, every_type_comes_back)
{
    sz_identity_init(&id);
    struct sz_text_ref subject;
    cr_assert_eq(sz_identity_add_text(&id, SZ_S("alice"), &subject), 0);
    struct sz_buf packed = {0};
    sz_claim_pack(&packed, SZ_S("admin"));
    sz_claim_pack(&packed, SZ_S(""));
    sz_claim_pack(&packed, SZ_S("a\0b"));
    cr_assert_eq(sz_identity_add_claim(&id, 3, SZ_CLAIM_STRING, SZ_S("red")), 0);
    cr_assert_eq(sz_identity_add_claim(&id, 4, SZ_CLAIM_INTEGER, sz_slice("\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8)), 0);
    cr_assert_eq(sz_identity_add_claim(&id, 5, SZ_CLAIM_BOOL, sz_slice("\1", 1)), 0);
    cr_assert_eq(sz_identity_add_claim(&id, 6, SZ_CLAIM_STRINGS, sz_buf_slice(&packed)), 0);
    cr_assert_eq(sz_identity_add_claim(&id, 31, SZ_CLAIM_OTHER, SZ_NONE), 0);
    sz_buf_fini(&packed);
    cr_expect(sz_eq(sz_identity_text(&id, subject), SZ_S("alice")));
    cr_expect(sz_eq(sz_identity_claim(&id, 3).text, SZ_S("red")));
    cr_expect_eq(sz_identity_claim(&id, 4).integer, -2);
    cr_expect_eq(sz_identity_claim(&id, 5).integer, 1);
    cr_expect_eq(sz_identity_claim(&id, 31).type, SZ_CLAIM_OTHER);
    cr_expect_eq(sz_identity_claim(&id, 0).type, SZ_CLAIM_ABSENT);
    struct sz_claim list = sz_identity_claim(&id, 6);
    cr_assert_eq(list.type, SZ_CLAIM_STRINGS);
    static const struct sz_slice want[] = {SZ_S("admin"), SZ_S(""), SZ_S("a\0b")};
    struct sz_slice rest = list.text, item;
    for (size_t i = 0; i < SZ_COUNT(want); i++) {
        cr_assert(sz_claim_next(&rest, &item));
        cr_expect(sz_eq(item, want[i]));
    }
    cr_expect_not(sz_claim_next(&rest, &item));
}

Test(identity, an_item_too_long_to_encode_overflows)
{
    char *big = sz_xcalloc(1, 70000);
    struct sz_buf packed = {0};
    sz_claim_pack(&packed, sz_slice(big, 70000));
    cr_expect(packed.overflow);
    cr_expect_eq(packed.n, 0);
    free(big);
}

Test(identity, a_gap_between_claims_is_our_mistake, .signal = SIGABRT)
{
    sz_identity_init(&id);
    struct sz_text_ref ref;
    cr_assert_eq(sz_identity_add_claim(&id, 1, SZ_CLAIM_STRING, SZ_S("one")), 0);
    cr_assert_eq(sz_identity_add_text(&id, SZ_S("gap"), &ref), 0);
    (void)!sz_identity_add_claim(&id, 2, SZ_CLAIM_STRING, SZ_S("two"));
}

Test(reason, rows_are_complete_and_distinct)
{
    for (unsigned i = 0; i < SZ_REASON_COUNT; i++) {
        const struct sz_reason_row *row = sz_reason_row(i);
        cr_expect(row->status >= 200 && row->status < 600);
        cr_expect_gt(strlen(row->title), 0);
        for (const char *p = row->name; *p != '\0'; p++)
            cr_expect((*p >= 'a' && *p <= 'z') || *p == '_', "%s", row->name);
        for (unsigned k = 0; k < i; k++)
            cr_expect_str_neq(row->name, sz_reason_row(k)->name);
    }
    cr_expect_str_eq(sz_reason_row(SZ_REASON_expired_token)->name, "expired_token");
    cr_expect_eq(sz_reason_row(SZ_REASON_method_not_allowed)->status, 405);
}

Test(reason, a_bad_value_is_our_mistake, .signal = SIGABRT)
{
    sz_reason_row(SZ_REASON_COUNT);
}
