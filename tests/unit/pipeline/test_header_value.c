/* Claims on their way into header fields. */
#include <criterion/criterion.h>

#include "pipeline/header_value.h"

Test(header_value, refuses_controls)
{
    struct sz_arena arena;
    struct sz_slice out;
    sz_arena_init(&arena);
    for (unsigned c = 0; c < 0x20; c++) {
        char text[3] = {'a', (char)c, 'b'};
        cr_assert_not(sz_header_value(sz_slice(text, 3), &arena.pool, &out), "0x%02x", c);
    }
    cr_assert_not(sz_header_value(SZ_S("a\x7f"), &arena.pool, &out));
    sz_arena_fini(&arena);
}

Test(header_value, encodes_what_a_header_loses)
{
    static const struct {
        const char *in, *out;
    } rows[] = {{"alice", "alice"},           {"", ""},        {" a ", "%20a%20"}, {" ", "%20"}, {"a b", "a b"},
                {"caf\xc3\xa9", "caf%C3%A9"}, {"100%", "100%"}};
    struct sz_arena arena;
    sz_arena_init(&arena);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_slice out;
        cr_assert(sz_header_value(sz_cstr(rows[i].in), &arena.pool, &out));
        cr_assert(sz_eq(out, sz_cstr(rows[i].out)), "'%s' became '%.*s'", rows[i].in, SZ_FMT(out));
    }
    sz_arena_fini(&arena);
}

Test(header_value, a_list_is_one_value)
{
    const struct sz_slice words[] = {SZ_S("GET"), SZ_S("PUT")};
    const struct sz_strings none = {NULL, 0}, one = {words, 1}, two = {words, 2};
    struct sz_arena arena;
    sz_arena_init(&arena);
    cr_expect(sz_eq(sz_header_list(&none, ", ", &arena.pool), SZ_S("")));
    cr_expect(sz_eq(sz_header_list(&one, ", ", &arena.pool), SZ_S("GET")));
    cr_expect(sz_eq(sz_header_list(&two, ", ", &arena.pool), SZ_S("GET, PUT")));
    sz_arena_fini(&arena);
}
