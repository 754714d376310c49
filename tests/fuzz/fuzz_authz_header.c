/*
 * Authorization fields, Cookie and query credentials: fields are separated by newlines.  An accepted token is a
 * run of the input, of token68 bytes only, and found again after nothing else changed.
 */
#include "pipeline/credential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_token(struct sz_slice token)
{
    SZ_ASSERT(token.n > 0 && token.p[0] != '=');
    for (size_t i = 0; i < token.n; i++)
        SZ_ASSERT((uint8_t)token.p[i] > 0x20 && (uint8_t)token.p[i] < 0x7f && token.p[i] != ',' && token.p[i] != ';');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    struct sz_slice all = sz_pool_dup(&arena.pool, sz_slice(data, size)), rest = all, line, token = SZ_NONE;
    struct sz_headers headers = {0};
    static const char *const names[] = {"authorization", "cookie", "cookie", "authorization"};
    size_t n = 0;
    while (n < SZ_COUNT(names) && sz_split(&rest, '\n', &line)) {
        sz_headers_add(&headers, &arena.pool, sz_cstr(names[n]), line);
        n++;
    }
    struct sz_slice query = rest.p != NULL ? rest : SZ_NONE;
    if (sz_bearer_token(&headers.v[0].value, 1, &token) == SZ_REASON_allowed)
        check_token(token);
    struct sz_conf_route route = {
        .token_from = SZ_FROM_COOKIE | SZ_FROM_QUERY, .cookie_name = SZ_S("token"), .query_name = SZ_S("access_token")};
    if (sz_credential_find(&headers, query, &route, &token) == SZ_REASON_allowed)
        check_token(token);
    struct sz_slice without = sz_query_without(query, route.query_name, &arena.pool);
    SZ_ASSERT(without.n <= query.n);
    struct sz_headers none = {0};
    SZ_ASSERT(sz_credential_find(&none, without, &route, &token) == SZ_REASON_missing_token);
    sz_arena_fini(&arena);
    return 0;
}
