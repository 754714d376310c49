/* Finding the credential: strict, and exactly one. */
#include "pipeline/credential.h"

#include "subzero/scan.h"

/* What stands behind "Bearer", whatever it is. */
static enum sz_reason locate_bearer(const struct sz_slice *values, size_t n, struct sz_slice *token)
{
    if (n == 0)
        return SZ_REASON_missing_token;
    if (n > 1)
        return SZ_REASON_bad_request;
    size_t scheme_n = 0;
    while (scheme_n < values->n && values->p[scheme_n] != ' ')
        scheme_n++;
    struct sz_slice scheme = sz_sub(*values, 0, scheme_n), rest = sz_from(*values, scheme_n);
    if (sz_ieq(scheme, SZ_S("DPoP")))
        return SZ_REASON_sender_constrained;
    if (!sz_ieq(scheme, SZ_S("Bearer"))) /* "Bearer:x" and "Bearer\tx" are meant as one, and are none */
        return scheme.n > 6 && sz_ieq(sz_sub(scheme, 0, 6), SZ_S("Bearer")) ? SZ_REASON_malformed_token
                                                                            : SZ_REASON_missing_token;
    while (rest.n > 0 && rest.p[0] == ' ')
        rest = sz_from(rest, 1);
    *token = rest;
    return SZ_REASON_allowed;
}

static enum sz_reason scanned(enum sz_reason reason, const struct sz_slice *token)
{
    return reason != SZ_REASON_allowed || sz_scan_b64token(*token) ? reason : SZ_REASON_malformed_token;
}

enum sz_reason sz_bearer_token(const struct sz_slice *values, size_t n, struct sz_slice *token)
{
    return scanned(locate_bearer(values, n, token), token);
}

/*
 * Length of "name=" at the start of the pair, 0 when it is another.  In a query the name may be escaped: whoever reads
 * the query behind us finds the credential under that spelling too.
 */
static size_t match_name(struct sz_slice pair, char sep, struct sz_slice name)
{
    size_t at = 0;
    for (size_t i = 0; i < name.n; i++) {
        if (at >= pair.n)
            return 0;
        char c = pair.p[at++];
        if (c == '%' && sep == '&' && at + 1 < pair.n) {
            c = (char)(sz_hex_digit(pair.p[at]) * 16 + sz_hex_digit(pair.p[at + 1]));
            at += 2;
        }
        if (c != name.p[i])
            return 0;
    }
    return at < pair.n && pair.p[at] == '=' ? at + 1 : 0;
}

/* "name=value" in a list separated by sep; *count grows by the occurrences. */
static struct sz_slice find_pair(struct sz_slice list, char sep, struct sz_slice name, unsigned *count)
{
    struct sz_slice found = SZ_NONE, pair;
    if (list.p == NULL)
        return found;
    while (sz_split(&list, sep, &pair)) {
        pair = sz_trim(pair);
        size_t matched = match_name(pair, sep, name);
        if (matched > 0) {
            found = sz_from(pair, matched);
            ++*count;
        }
    }
    return found;
}

static struct sz_slice list_without(struct sz_slice list, char sep, struct sz_slice name, struct sz_pool *pool)
{
    unsigned count = 0;
    find_pair(list, sep, name, &count);
    if (count == 0)
        return list;
    char *out = sz_pool_alloc(pool, list.n + 1);
    size_t n = 0;
    struct sz_slice pair;
    while (sz_split(&list, sep, &pair)) {
        struct sz_slice bare = sz_trim(pair);
        if (match_name(bare, sep, name) > 0)
            continue;
        if (n > 0)
            out[n++] = sep;
        else
            pair = bare;
        memcpy(out + n, pair.p, pair.n);
        n += pair.n;
    }
    return sz_slice(out, n);
}

struct sz_slice sz_query_without(struct sz_slice query, struct sz_slice name, struct sz_pool *pool)
{
    return query.p == NULL ? query : list_without(query, '&', name, pool);
}

struct sz_slice sz_cookie_without(struct sz_slice cookie, struct sz_slice name, struct sz_pool *pool)
{
    return list_without(cookie, ';', name, pool);
}

struct sz_slice sz_cookie_find(const struct sz_headers *headers, struct sz_slice name, unsigned *count)
{
    struct sz_slice found = SZ_NONE;
    for (size_t i = 0; i < headers->n; i++) {
        if (!sz_eq(headers->v[i].name, SZ_S("cookie")))
            continue;
        struct sz_slice value = find_pair(headers->v[i].value, ';', name, count);
        if (value.p != NULL)
            found = value;
    }
    return found;
}

enum sz_reason sz_credential_locate(const struct sz_headers *headers, struct sz_slice query,
                                    const struct sz_conf_route *route, struct sz_slice *token)
{
    unsigned fields, extras = 0;
    struct sz_slice extra = SZ_NONE, value = sz_headers_get(headers, SZ_S("authorization"), &fields);
    enum sz_reason reason = fields > 1 ? SZ_REASON_bad_request : locate_bearer(&value, fields, token);
    if (route->token_from == 0)
        return reason;
    reason = scanned(reason, token);
    if (reason != SZ_REASON_allowed && reason != SZ_REASON_missing_token)
        return reason;
    if (route->token_from & SZ_FROM_COOKIE)
        extra = sz_cookie_find(headers, route->cookie_name, &extras);
    if (route->token_from & SZ_FROM_QUERY) {
        value = find_pair(query, '&', route->query_name, &extras);
        extra = value.p != NULL ? value : extra;
    }
    if (extras == 0)
        return reason;
    if (extras > 1 || reason == SZ_REASON_allowed)
        return SZ_REASON_bad_request;
    *token = extra;
    return SZ_REASON_allowed;
}

enum sz_reason sz_credential_find(const struct sz_headers *headers, struct sz_slice query,
                                  const struct sz_conf_route *route, struct sz_slice *token)
{
    return scanned(sz_credential_locate(headers, query, route, token), token);
}
