/* pool.c: alignment, large pieces, absence. */
#include <criterion/criterion.h>

#include "subzero/base.h"

Test(pool, every_piece_is_aligned_and_its_own)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    char *pieces[400];
    size_t sizes[400];
    for (size_t i = 0; i < SZ_COUNT(pieces); i++) {
        sizes[i] = i % 7 == 0 ? i * 97 : i; /* up to 38 kB, and 0 */
        pieces[i] = sz_pool_alloc(&arena.pool, sizes[i]);
        cr_assert_eq((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)(i & 0xFF), sizes[i]);
    }
    for (size_t i = 0; i < SZ_COUNT(pieces); i++)
        for (size_t k = 0; k < sizes[i]; k++)
            cr_assert_eq((unsigned char)pieces[i][k], i & 0xFF);
    sz_arena_fini(&arena);
    cr_expect_not_null(sz_pool_alloc(&arena.pool, 1)); /* usable again */
    sz_arena_fini(&arena);
}

Test(pool, a_large_piece_does_not_waste_the_current_chunk)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    char *a = sz_pool_alloc(&arena.pool, 16);
    sz_pool_alloc(&arena.pool, 100000);
    char *b = sz_pool_alloc(&arena.pool, 16);
    cr_expect_eq(b, a + 16);
    sz_arena_fini(&arena);
}

Test(pool, copies)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    cr_expect_null(sz_pool_dup(&arena.pool, SZ_NONE).p);
    struct sz_slice empty = sz_pool_dup(&arena.pool, SZ_S(""));
    cr_expect(empty.p != NULL && empty.n == 0);
    cr_expect(sz_eq(sz_pool_dup(&arena.pool, SZ_S("a\0b")), SZ_S("a\0b")));
    cr_expect_str_eq(sz_pool_strdup(&arena.pool, SZ_S("abc")), "abc");
    cr_expect_str_eq(sz_pool_strdup(&arena.pool, SZ_NONE), "");
    struct sz_slice text = sz_pool_printf(&arena.pool, "%s-%d", "x", 42);
    cr_expect(sz_eq(text, SZ_S("x-42")));
    char *zero = sz_pool_zalloc(&arena.pool, 64);
    for (int i = 0; i < 64; i++)
        cr_expect_eq(zero[i], 0);
    sz_arena_fini(&arena);
}

Test(pool, lower_folds_ascii_alone)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    struct sz_slice lower = sz_pool_lower(&arena.pool, SZ_S("AZaz@[\xc3\x84 1"));
    cr_expect(sz_eq(lower, SZ_S("azaz@[\xc3\x84 1")));
    cr_expect_eq(lower.p[lower.n], '\0');
    sz_arena_fini(&arena);
}
