/* Canonical targets: hostile forms first, then what must stay as it is. */
#include <criterion/criterion.h>

#include "pipeline/target.h"

struct row {
    const char *raw, *path, *query; /* path NULL: refused */
};

static const struct row refused[] = {
    {"", NULL, NULL},
    {"admin", NULL, NULL},
    {"..", NULL, NULL},
    {"/a%2fb", NULL, NULL},
    {"/a%2Fb", NULL, NULL},
    {"/a%5cb", NULL, NULL},
    {"/a\\b", NULL, NULL},
    {"/%00", NULL, NULL},
    {"/a%0a", NULL, NULL},
    {"/a%7f", NULL, NULL},
    {"/a\x7f", NULL, NULL},
    {"/a\x80", NULL, NULL},
    {"/a b", NULL, NULL},
    {"/a#b", NULL, NULL},
    {"/a?x#b", NULL, NULL},
    {"/a?x y", NULL, NULL},
    {"/a%", NULL, NULL},
    {"/a%1", NULL, NULL},
    {"/a%zz", NULL, NULL},
    {"/a%%32%65", NULL, NULL},
    {"/%252e%252e/b", NULL, NULL},
    {"/%25%32e/b", NULL, NULL},
    {"/%25%32%65/b", NULL, NULL},
    {"/%252fb", NULL, NULL},
    {"/%2500", NULL, NULL},
    {"/%25252e", NULL, NULL},
    {"/..", NULL, NULL},
    {"/a/../../b", NULL, NULL},
    {"/a//../../b", NULL, NULL},
    {"/%2e%2e/b", NULL, NULL},
    {"/..;/b", NULL, NULL},
    {"/.;x/b", NULL, NULL},
    {"/a/..%3b/b", NULL, NULL},
    {"/;/b", NULL, NULL},
    {"/a/;x=y/b", NULL, NULL},
    {"/%3b/b", NULL, NULL},
    {"/%c0%af", NULL, NULL},
    {"/%ff", NULL, NULL},
    {"/%c3", NULL, NULL},
    {"/%f5%80%80%80", NULL, NULL},
    {"/a<b", NULL, NULL},
    {"/a|b", NULL, NULL},
    {"/a[b]", NULL, NULL},
};

static const struct row kept[] = {
    {"/", "/", NULL},
    {"/a", "/a", NULL},
    {"/a/", "/a/", NULL},
    {"/a?", "/a", ""},
    {"/a??", "/a", "?"},
    {"/a?x=/../b", "/a", "x=/../b"},
    {"/a..", "/a..", NULL},
    {"/.hidden", "/.hidden", NULL},
    {"/a.b/.c", "/a.b/.c", NULL},
    {"/a;x=y", "/a;x=y", NULL},
    {"/a:b@c", "/a:b@c", NULL},
    {"/caf%C3%A9", "/caf%C3%A9", NULL},
    {"/caf%c3%a9", "/caf%C3%A9", NULL},
    {"/a%20", "/a%20", NULL},
    {"/%2561dmin", "/%2561dmin", NULL},
};

static const struct row changed[] = {
    {"//", "/", NULL},
    {"//a", "/a", NULL},
    {"/a//b", "/a/b", NULL},
    {"/a/./b", "/a/b", NULL},
    {"/a/.", "/a/", NULL},
    {"/a/..", "/", NULL},
    {"/a/b/..", "/a/", NULL},
    {"/a/b/../", "/a/", NULL},
    {"/a/b/../../c", "/c", NULL},
    {"/a/%2e%2e/b", "/b", NULL},
    {"/a/.%2e/b?q", "/b", "q"},
    {"/%7Eu", "/~u", NULL},
    {"/%70ublic/a", "/public/a", NULL},
    {"/a//../b", "/b", NULL},
    {"/..a", "/..a", NULL},
    {"/%2e%2eadmin", "/..admin", NULL},
};

static void check(const struct row *row, bool canonical)
{
    struct sz_arena arena;
    struct sz_target target;
    const char *why = NULL;
    sz_arena_init(&arena);
    /* An exact heap copy, so that a read past the end shows. */
    struct sz_slice raw = sz_pool_dup(&arena.pool, sz_cstr(row->raw));
    int rc = sz_target_parse(raw, &arena.pool, &target, &why);
    if (row->path == NULL) {
        cr_assert(rc > 0, "'%s' was accepted as '%.*s'", row->raw, SZ_FMT(target.path));
        cr_assert_not_null(why);
    } else {
        cr_assert_eq(rc, 0, "'%s' was refused: %s", row->raw, why);
        cr_assert(sz_eq(target.path, sz_cstr(row->path)), "'%s' became '%.*s'", row->raw, SZ_FMT(target.path));
        cr_assert_eq(target.query.p == NULL, row->query == NULL, "'%s': query", row->raw);
        cr_assert(row->query == NULL || sz_eq(target.query, sz_cstr(row->query)));
        cr_assert_eq(target.was_canonical, canonical, "'%s': was_canonical", row->raw);
    }
    sz_arena_fini(&arena);
}

Test(target, refuses_what_two_parsers_read_differently)
{
    for (size_t i = 0; i < SZ_COUNT(refused); i++)
        check(&refused[i], false);
}

Test(target, keeps_canonical_forms)
{
    for (size_t i = 0; i < SZ_COUNT(kept); i++)
        check(&kept[i], true);
}

Test(target, canonicalises_once)
{
    for (size_t i = 0; i < SZ_COUNT(changed); i++)
        check(&changed[i], strcmp(changed[i].raw, "/..a") == 0);
}

/* The canonical form of a canonical form is itself: what was matched is what is forwarded. */
Test(target, is_idempotent)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    for (size_t i = 0; i < SZ_COUNT(changed); i++) {
        struct sz_target once, twice;
        const char *why;
        cr_assert_eq(sz_target_parse(sz_cstr(changed[i].raw), &arena.pool, &once, &why), 0);
        cr_assert_eq(sz_target_parse(once.path, &arena.pool, &twice, &why), 0);
        cr_assert(sz_eq(once.path, twice.path) && twice.was_canonical);
    }
    sz_arena_fini(&arena);
}

struct authority_row {
    const char *raw, *host, *canonical; /* host NULL: refused */
};

static const struct authority_row authorities[] = {
    {"a@b", NULL, NULL},
    {"a b", NULL, NULL},
    {"a/b", NULL, NULL},
    {"a:b", NULL, NULL},
    {"a:65536", NULL, NULL},
    {"a:1:2", NULL, NULL},
    {"a..b", NULL, NULL},
    {".a", NULL, NULL},
    {"a%41", NULL, NULL},
    {"[::1", NULL, NULL},
    {"[::1]x", NULL, NULL},
    {"[]", NULL, NULL},
    {"[127.0.0.1]", NULL, NULL},
    {"::1", NULL, NULL},
    {":80", NULL, NULL},
    {"API.Example.com", "api.example.com", "api.example.com"},
    {"api.example.com.", "api.example.com", "api.example.com"},
    {"api.example.com:", "api.example.com", "api.example.com"},
    {"api.example.com:8443", "api.example.com", "api.example.com:8443"},
    {"127.0.0.1:80", "127.0.0.1", "127.0.0.1:80"},
    {"[2001:DB8::1]:443", "2001:db8::1", "[2001:db8::1]:443"},
    {"[::1]", "::1", "[::1]"},
};

Test(target, authorities)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    for (size_t i = 0; i < SZ_COUNT(authorities); i++) {
        const struct authority_row *row = &authorities[i];
        struct sz_authority out;
        int rc = sz_authority_parse(sz_pool_dup(&arena.pool, sz_cstr(row->raw)), &arena.pool, &out);
        cr_assert_eq(rc == 0, row->host != NULL, "'%s': %d", row->raw, rc);
        if (rc != 0)
            continue;
        cr_assert(sz_eq(out.host, sz_cstr(row->host)), "'%s': '%.*s'", row->raw, SZ_FMT(out.host));
        cr_assert(sz_eq(out.canonical, sz_cstr(row->canonical)), "'%s': '%.*s'", row->raw, SZ_FMT(out.canonical));
    }
    sz_arena_fini(&arena);
}
