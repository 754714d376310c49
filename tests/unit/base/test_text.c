/* text.c, panic.c: messages stay bounded, NUL-terminated and whole characters. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>

#include "subzero/base.h"

Test(text, too_long_is_cut_with_dots)
{
    char big[1000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    struct sz_text t;
    sz_text_set(&t, "%s", big);
    cr_expect_eq(strlen(t.s), sizeof(t.s) - 1);
    cr_expect_str_eq(t.s + sizeof(t.s) - 4, "...");
    sz_text_add(&t, "more");
    cr_expect_eq(strlen(t.s), sizeof(t.s) - 1);
    cr_expect_str_eq(t.s + sizeof(t.s) - 4, "...");
}

Test(text, exactly_full_is_not_cut)
{
    struct sz_text t;
    sz_text_set(&t, "%0255d", 0);
    cr_expect_eq(strlen(t.s), 255);
    cr_expect_str_eq(t.s + 252, "000");
}

Test(text, never_cuts_inside_a_character)
{
    for (int lead = 0; lead < 4; lead++) {
        struct sz_text t;
        sz_text_set(&t, "%.*s", lead, "abc");
        for (int i = 0; i < 100; i++)
            sz_text_add(&t, "\xF0\x9F\x94\x92");
        cr_expect(sz_utf8_valid(sz_cstr(t.s)), "lead %d", lead);
        cr_expect_str_eq(t.s + strlen(t.s) - 3, "...");
    }
}

Test(text, add_appends)
{
    struct sz_text t;
    sz_text_set(&t, "a%d", 1);
    sz_text_add(&t, ", b%d", 2);
    cr_expect_str_eq(t.s, "a1, b2");
    sz_text_set(&t, "c");
    cr_expect_str_eq(t.s, "c");
}

Test(panic, a_broken_invariant_aborts, .signal = SIGABRT)
{
    SZ_ASSERT(1 + 1 == 3);
}

Test(panic, zero_sizes_give_real_pointers)
{
    void *a = sz_xmalloc(0), *b = sz_xcalloc(0, 8), *c = sz_xrealloc(NULL, 0);
    char *d = sz_xstrdup("");
    cr_expect(a != NULL && b != NULL && c != NULL);
    cr_expect_str_eq(d, "");
    free(a);
    free(b);
    free(c);
    free(d);
}
