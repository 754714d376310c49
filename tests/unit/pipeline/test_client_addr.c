/* Who is calling: spoofed chains first. */
#include <criterion/criterion.h>

#include "pipeline/client_addr.h"

struct row {
    const char *peer, *lines[3];
    const char *client, *chain;
    bool trusted;
};

/* trusted: 10.0.0.0/8 and fd00::/8 */
static const struct row rows[] = {
    /* an untrusted peer's story is not read */
    {"203.0.113.9", {"10.0.0.1"}, "203.0.113.9", "203.0.113.9", false},
    {"203.0.113.9", {"1.1.1.1, 10.0.0.1"}, "203.0.113.9", "203.0.113.9", false},
    /* what stands left of the first untrusted address is the client's own story */
    {"10.0.0.1", {"6.6.6.6, 198.51.100.7"}, "198.51.100.7", "198.51.100.7, 10.0.0.1", true},
    {"10.0.0.1", {"6.6.6.6", "198.51.100.7"}, "198.51.100.7", "198.51.100.7, 10.0.0.1", true},
    {"10.0.0.1", {"198.51.100.7, 10.0.0.2"}, "198.51.100.7", "198.51.100.7, 10.0.0.2, 10.0.0.1", true},
    /* an entry that cannot be read ends the walk */
    {"10.0.0.1", {"198.51.100.7, unknown"}, "10.0.0.1", "10.0.0.1", true},
    {"10.0.0.1", {"198.51.100.7, , 10.0.0.2"}, "10.0.0.2", "10.0.0.2, 10.0.0.1", true},
    {"10.0.0.1", {"198.51.100.007"}, "10.0.0.1", "10.0.0.1", true},
    {"10.0.0.1", {""}, "10.0.0.1", "10.0.0.1", true},
    {"10.0.0.1", {NULL}, "10.0.0.1", "10.0.0.1", true},
    /* ports, brackets, mapped addresses */
    {"10.0.0.1", {"198.51.100.7:4711"}, "198.51.100.7", "198.51.100.7, 10.0.0.1", true},
    {"10.0.0.1", {"[2001:db8::7]:4711"}, "2001:db8::7", "2001:db8::7, 10.0.0.1", true},
    {"::ffff:10.0.0.1", {"::ffff:198.51.100.7"}, "198.51.100.7", "198.51.100.7, 10.0.0.1", true},
    {"fd00::1", {"2001:db8::7"}, "2001:db8::7", "2001:db8::7, fd00::1", true},
    /* everybody trusted: the leftmost that can be read */
    {"10.0.0.1", {"10.0.0.3, 10.0.0.2"}, "10.0.0.3", "10.0.0.3, 10.0.0.2, 10.0.0.1", true},
};

static void check(const struct row *row, const struct sz_cidrs *trusted)
{
    struct sz_arena arena;
    struct sz_request req = {0};
    struct sz_client_addr out;
    char text[SZ_ADDR_TEXT];
    sz_arena_init(&arena);
    cr_assert_eq(sz_addr_parse(sz_cstr(row->peer), &req.peer), 0);
    for (size_t i = 0; i < SZ_COUNT(row->lines) && row->lines[i] != NULL; i++)
        sz_headers_add(&req.headers, &arena.pool, SZ_S("x-forwarded-for"), sz_cstr(row->lines[i]));
    sz_client_addr(&req, trusted, &out);
    struct sz_slice chain = sz_client_chain(&req, trusted, &arena.pool);
    sz_addr_format(out.client, text);
    cr_assert_str_eq(text, row->client, "peer %s, '%s'", row->peer, row->lines[0]);
    cr_assert(sz_eq(chain, sz_cstr(row->chain)), "chain '%.*s' for peer %s", SZ_FMT(chain), row->peer);
    cr_assert_eq(out.peer_trusted, row->trusted);
    sz_arena_fini(&arena);
}

Test(client_addr, walks_from_the_right)
{
    struct sz_cidr ranges[2];
    struct sz_text why;
    cr_assert_eq(sz_cidr_parse(SZ_S("10.0.0.0/8"), &ranges[0], &why), 0);
    cr_assert_eq(sz_cidr_parse(SZ_S("fd00::/8"), &ranges[1], &why), 0);
    struct sz_cidrs trusted = {ranges, 2};
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        check(&rows[i], &trusted);
}

/* A client that prepends thousands of addresses costs a bounded walk and a bounded header. */
Test(client_addr, is_bounded)
{
    struct sz_arena arena;
    struct sz_cidr range;
    struct sz_text why;
    struct sz_request req = {0};
    struct sz_buf line = {0};
    sz_arena_init(&arena);
    cr_assert_eq(sz_cidr_parse(SZ_S("10.0.0.0/8"), &range, &why), 0);
    cr_assert_eq(sz_addr_parse(SZ_S("10.0.0.1"), &req.peer), 0);
    for (int i = 0; i < 5000; i++)
        sz_buf_printf(&line, "%s10.0.0.2", i > 0 ? ", " : "");
    sz_headers_add(&req.headers, &arena.pool, SZ_S("x-forwarded-for"), sz_buf_slice(&line));
    struct sz_slice chain = sz_client_chain(&req, &(struct sz_cidrs){&range, 1}, &arena.pool);
    cr_assert_lt(chain.n, 32 * 12);
    sz_buf_fini(&line);
    sz_arena_fini(&arena);
}
