/* Where tokens come from, and that there is exactly one. */
#include <criterion/criterion.h>

#include "pipeline/credential.h"

struct row {
    const char *authorization, *cookie, *query;
    unsigned from;
    enum sz_reason reason;
    const char *token;
};

enum { BOTH = SZ_FROM_COOKIE | SZ_FROM_QUERY };

static const struct row rows[] = {
    {NULL, NULL, NULL, 0, SZ_REASON_missing_token, NULL},
    {"Bearer", NULL, NULL, 0, SZ_REASON_malformed_token, NULL},
    {"Bearer ", NULL, NULL, 0, SZ_REASON_malformed_token, NULL},
    {"Bearer a b", NULL, NULL, 0, SZ_REASON_malformed_token, NULL},
    {"Bearer a,b", NULL, NULL, 0, SZ_REASON_malformed_token, NULL},
    {"Bearer ==", NULL, NULL, 0, SZ_REASON_malformed_token, NULL},
    {"Bearer a=b", NULL, NULL, 0, SZ_REASON_malformed_token, NULL},
    {"Bearer\ta", NULL, NULL, 0, SZ_REASON_malformed_token, NULL},
    {"Basic abc", NULL, NULL, 0, SZ_REASON_missing_token, NULL},
    {"DPoP abc", NULL, NULL, 0, SZ_REASON_sender_constrained, NULL},
    {"bEARER abc.d-e_f~g+h/i==", NULL, NULL, 0, SZ_REASON_allowed, "abc.d-e_f~g+h/i=="},
    {"Bearer   abc", NULL, NULL, 0, SZ_REASON_allowed, "abc"},
    /* cookie and query count only where the route says so */
    {NULL, "token=abc", "access_token=def", 0, SZ_REASON_missing_token, NULL},
    {NULL, "token=abc", "access_token=def", SZ_FROM_COOKIE, SZ_REASON_allowed, "abc"},
    {NULL, "token=abc", "access_token=def", SZ_FROM_QUERY, SZ_REASON_allowed, "def"},
    {NULL, "a=1; token=abc; b=2", NULL, BOTH, SZ_REASON_allowed, "abc"},
    {NULL, "xtoken=abc; token2=def", "xaccess_token=1", BOTH, SZ_REASON_missing_token, NULL},
    {NULL, "token=a,b", NULL, BOTH, SZ_REASON_malformed_token, NULL},
    /* two credentials are one too many, wherever they are */
    {NULL, "token=abc", "access_token=def", BOTH, SZ_REASON_bad_request, NULL},
    {NULL, "token=abc; token=abc", NULL, BOTH, SZ_REASON_bad_request, NULL},
    {NULL, NULL, "access_token=a&access_token=a", BOTH, SZ_REASON_bad_request, NULL},
    {"Bearer abc", "token=abc", NULL, BOTH, SZ_REASON_bad_request, NULL},
    {"Bearer abc", NULL, "access_token=abc", BOTH, SZ_REASON_bad_request, NULL},
    {"Basic abc", NULL, "access_token=abc", BOTH, SZ_REASON_allowed, "abc"},
    {"Bearer a b", NULL, "access_token=abc", BOTH, SZ_REASON_malformed_token, NULL},
};

Test(credential, comes_from_one_place)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        struct sz_headers headers = {0};
        struct sz_conf_route route = {
            .token_from = row->from, .cookie_name = SZ_S("token"), .query_name = SZ_S("access_token")};
        struct sz_slice token = SZ_NONE;
        if (row->authorization != NULL)
            sz_headers_add(&headers, &arena.pool, SZ_S("authorization"), sz_cstr(row->authorization));
        if (row->cookie != NULL)
            sz_headers_add(&headers, &arena.pool, SZ_S("cookie"), sz_cstr(row->cookie));
        enum sz_reason reason = sz_credential_find(&headers, sz_cstr(row->query), &route, &token);
        cr_assert_eq(reason, row->reason, "row %zu: %s", i, sz_reason_row(reason)->name);
        cr_assert(row->token == NULL || sz_eq(token, sz_cstr(row->token)), "row %zu: '%.*s'", i, SZ_FMT(token));
    }
    sz_arena_fini(&arena);
}

Test(credential, two_authorization_fields_are_refused)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    struct sz_headers headers = {0};
    struct sz_conf_route route = {0};
    struct sz_slice token;
    sz_headers_add(&headers, &arena.pool, SZ_S("authorization"), SZ_S("Bearer a"));
    sz_headers_add(&headers, &arena.pool, SZ_S("authorization"), SZ_S("Bearer a"));
    cr_assert_eq(sz_credential_find(&headers, SZ_NONE, &route, &token), SZ_REASON_bad_request);
    sz_arena_fini(&arena);
}

Test(credential, is_taken_out_of_what_goes_on)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    static const struct {
        const char *in, *out;
    } queries[] = {{"access_token=x", ""},
                   {"a=1&access_token=x&b=2", "a=1&b=2"},
                   {"access_token=x&b=2", "b=2"},
                   {"a=1&access_token=x", "a=1"},
                   {"a=1", "a=1"},
                   {"a=1&access_token=x&access_token=y", "a=1"},
                   {"a=1&access%5Ftoken=x", "a=1"},
                   {"%61ccess%5ftoke%6E=x&a=1", "a=1"},
                   {"access%255Ftoken=x", "access%255Ftoken=x"},
                   {"access%5=x&access%zztoken=x&access%", "access%5=x&access%zztoken=x&access%"},
                   {"access_token%3Dx", "access_token%3Dx"}};
    for (size_t i = 0; i < SZ_COUNT(queries); i++) {
        struct sz_slice out = sz_query_without(sz_cstr(queries[i].in), SZ_S("access_token"), &arena.pool);
        cr_assert(sz_eq(out, sz_cstr(queries[i].out)), "'%s' became '%.*s'", queries[i].in, SZ_FMT(out));
    }
    struct sz_slice cookie = sz_cookie_without(SZ_S("a=1; token=x; b=2"), SZ_S("token"), &arena.pool);
    cr_assert(sz_eq(cookie, SZ_S("a=1; b=2")), "'%.*s'", SZ_FMT(cookie));
    sz_arena_fini(&arena);
}
