/* All keys are compared whatever the first one says, so that the time tells nothing about their order. */
#include "edge/api_access.h"

#include "edge/head_check.h"
#include "subzero/crypto.h"

static const struct sz_api_key *holder(const struct sz_conf_listener *listener, struct sz_slice key)
{
    const struct sz_api_key *found = NULL;
    for (size_t i = 0; i < listener->keys_n; i++) {
        if (sz_secret_eq(listener->keys[i].key, key))
            found = &listener->keys[i];
    }
    return found;
}

static enum sz_reason by_key(const struct sz_conf_listener *listener, const struct sz_request *req,
                             struct sz_slice *caller, const char **why)
{
    static const char scheme[] = "Bearer ";
    unsigned count;
    struct sz_slice given = sz_headers_get(&req->headers, SZ_S("authorization"), &count);
    size_t n = sizeof(scheme) - 1;

    *why = "keys_file of the listener holds the bearer keys";
    if (count == 0)
        return SZ_REASON_missing_token;
    if (count > 1 || !sz_ieq(sz_sub(given, 0, n), sz_slice(scheme, n)))
        return SZ_REASON_malformed_token;
    const struct sz_api_key *key = holder(listener, sz_trim(sz_from(given, n)));
    if (key == NULL)
        return SZ_REASON_invalid_token;
    *caller = key->name;
    return SZ_REASON_allowed;
}

static bool is_loopback_host(struct sz_slice authority)
{
    struct sz_slice host = sz_head_host(authority);
    struct sz_addr addr;
    return sz_ieq(host, SZ_S("localhost")) || (sz_addr_parse(host, &addr) == 0 && sz_addr_is_loopback(addr));
}

static enum sz_reason by_place(const struct sz_request *req, const char **why)
{
    struct sz_slice site = sz_headers_get(&req->headers, SZ_S("sec-fetch-site"), NULL);

    *why = "without keys_file only loopback may ask";
    if (!sz_addr_is_loopback(req->peer))
        return SZ_REASON_untrusted_peer;
    *why = "without keys_file the Host must be a loopback name";
    if (!is_loopback_host(req->authority))
        return SZ_REASON_misdirected;
    *why = "without keys_file requests of web pages are refused";
    bool page =
        sz_headers_get(&req->headers, SZ_S("origin"), NULL).p != NULL || (site.p != NULL && !sz_eq(site, SZ_S("none")));
    return page ? SZ_REASON_untrusted_peer : SZ_REASON_allowed;
}

enum sz_reason sz_api_access(const struct sz_conf_listener *listener, const struct sz_request *req,
                             struct sz_slice *caller, const char **why)
{
    *caller = SZ_NONE;
    return listener->keys_n > 0 ? by_key(listener, req, caller, why) : by_place(req, why);
}
