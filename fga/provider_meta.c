/* Metadata and freshness.  Pure: documents and fields in, urls and spans out. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/http_client.h"
#include "fga/provider_impl.h"

#define FRESH_DEFAULT SZ_SEC(600) /* what says nothing, or forbids keeping: keys are no secrets, and change rarely */

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

static struct sz_slice without_slash(struct sz_slice s)
{
    return s.n > 0 && s.p[s.n - 1] == '/' ? sz_sub(s, 0, s.n - 1) : s;
}

struct sz_slice sz_metadata_openid(struct sz_slice issuer, struct sz_pool *pool)
{
    return sz_pool_printf(pool, "%.*s/.well-known/openid-configuration", SZ_FMT(without_slash(issuer)));
}

struct sz_slice sz_metadata_oauth(struct sz_slice issuer, struct sz_pool *pool)
{
    size_t host = 0;
    issuer = without_slash(issuer);
    while (host < issuer.n && issuer.p[host] != ':')
        host++;
    for (host += 3; host < issuer.n && issuer.p[host] != '/';)
        host++;
    return sz_pool_printf(pool, "%.*s/.well-known/oauth-authorization-server%.*s", SZ_FMT(sz_sub(issuer, 0, host)),
                          SZ_FMT(sz_from(issuer, host < issuer.n ? host : issuer.n)));
}

static struct sz_slice text_member(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);
    return json_is_string(value) ? sz_slice(json_string_value(value), json_string_length(value)) : SZ_NONE;
}

int sz_metadata_read(struct sz_slice document, struct sz_slice issuer, bool insecure_http, struct sz_slice *jwks_uri,
                     struct sz_text *why)
{
    json_error_t error;
    struct sz_text url_why;
    size_t at;
    json_t *root = NULL;
    if (sz_json_check(document, 16, &at) == 0)
        root = json_loadb(document.p, document.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    struct sz_slice says = text_member(root, "issuer"), uri = text_member(root, "jwks_uri");
    int rc = -EINVAL;
    if (!json_is_object(root))
        sz_text_set(why, "the metadata is not a JSON object");
    else if (says.p == NULL || !sz_eq(says, issuer))
        sz_text_set(why, "the metadata is another issuer's");
    else if (uri.p == NULL)
        sz_text_set(why, "the metadata has no jwks_uri");
    else if (sz_http_url_check(uri, insecure_http, &url_why) != 0)
        sz_text_set(why, "the metadata's jwks_uri: %s", url_why.s);
    else
        rc = 0;
    if (rc == 0) {
        char *copy = sz_xmalloc(uri.n + 1);
        memcpy(copy, uri.p, uri.n);
        *jwks_uri = sz_slice(copy, uri.n);
    }
    json_decref(root);
    return rc;
}

/* ---- freshness --------------------------------------------------------------------------------------------------- */

/* max-age of a Cache-Control field; -1: it names none, 0 also when it must not be kept. */
static int64_t max_age(struct sz_slice field)
{
    struct sz_slice directive;
    int64_t age = -1;
    while (field.p != NULL && sz_split(&field, ',', &directive)) {
        directive = sz_trim(directive);
        uint64_t seconds;
        if (sz_ieq(directive, SZ_S("no-store")) || sz_ieq(directive, SZ_S("no-cache")))
            return 0;
        if (directive.n > 8 && sz_ieq(sz_sub(directive, 0, 8), SZ_S("max-age=")) &&
            sz_parse_u64(sz_from(directive, 8), UINT32_MAX, &seconds) == 0)
            age = (int64_t)seconds;
    }
    return age;
}

struct sz_span sz_freshness(const struct sz_http_answer *answer, struct sz_wall now, struct sz_span least,
                            struct sz_span most)
{
    struct sz_slice expires = sz_http_answer_field(answer, SZ_S("expires"));
    int64_t age = max_age(sz_http_answer_field(answer, SZ_S("cache-control")));
    uint64_t passed;
    struct sz_span fresh = {0};
    if (age > 0) {
        fresh = SZ_SEC(age);
        if (sz_parse_u64(sz_http_answer_field(answer, SZ_S("age")), UINT32_MAX, &passed) == 0)
            fresh.us -= (int64_t)passed * 1000000;
    } else if (age < 0 && expires.p != NULL) {
        fresh = sz_http_retry_after(expires, now); /* the same grammar and more: seconds, or a date */
    }
    if (fresh.us <= 0)
        fresh = FRESH_DEFAULT;
    if (fresh.us > most.us)
        fresh = most;
    return fresh.us < least.us ? least : fresh;
}

struct sz_span sz_provider_backoff(unsigned failures, uint64_t random)
{
    int64_t seconds = failures > 5 ? 30 : INT64_C(1) << (failures > 0 ? failures - 1 : 0);
    if (seconds > 30)
        seconds = 30;
    int64_t us = seconds * 1000000;
    return (struct sz_span){us - (int64_t)(random % (uint64_t)(us / 5))}; /* a fleet does not come back at once */
}
