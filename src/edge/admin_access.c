/* The checks in the order in which they cost and tell least. */
#include "edge/admin_access.h"

#include "subzero/crypto.h"

static struct sz_slice field(const struct sz_head *head, struct sz_slice name)
{
    for (size_t i = 0; i < head->fields_n; i++) {
        if (sz_ieq(head->fields[i].name, name))
            return head->fields[i].value;
    }
    return SZ_NONE;
}

static bool is_our_host(const struct sz_conf_admin *conf, struct sz_slice authority)
{
    struct sz_slice host = sz_head_host(authority);
    struct sz_addr addr;
    if (sz_ieq(host, SZ_S("localhost")) || (sz_addr_parse(host, &addr) == 0 && sz_addr_is_loopback(addr)))
        return true;
    for (size_t i = 0; i < conf->hosts.n; i++) {
        if (sz_ieq(host, conf->hosts.v[i]))
            return true;
    }
    return false;
}

static bool has_token(const struct sz_conf_admin *conf, struct sz_slice authorization)
{
    static const char scheme[] = "Bearer ";
    size_t n = sizeof(scheme) - 1;
    if (!sz_ieq(sz_sub(authorization, 0, n), sz_slice(scheme, n)))
        return false;
    return sz_secret_eq(sz_trim(sz_from(authorization, n)), conf->token.value);
}

static enum sz_reason token(const struct sz_conf_admin *conf, const struct sz_head *head, struct sz_addr peer,
                            enum sz_admin_need need, const char **why)
{
    if (need == SZ_ADMIN_OPEN || (need == SZ_ADMIN_METRICS && conf->open_metrics))
        return SZ_REASON_allowed;
    if (!conf->token.set) {
        *why = "without admin.token_file only loopback may ask";
        return sz_addr_is_loopback(peer) ? SZ_REASON_allowed : SZ_REASON_untrusted_peer;
    }
    struct sz_slice authorization = field(head, SZ_S("authorization"));
    *why = "admin.token_file holds the bearer token";
    if (authorization.p == NULL)
        return SZ_REASON_missing_token;
    return has_token(conf, authorization) ? SZ_REASON_allowed : SZ_REASON_invalid_token;
}

enum sz_reason sz_admin_access(const struct sz_conf_admin *conf, const struct sz_head *head, struct sz_addr peer,
                               enum sz_admin_need need, const char **why)
{
    struct sz_slice site = field(head, SZ_S("sec-fetch-site"));

    if (!is_our_host(conf, head->authority)) {
        *why = "Host is neither loopback nor in admin.hosts";
        return SZ_REASON_misdirected;
    }
    if (field(head, SZ_S("origin")).p != NULL) {
        *why = "requests of web pages are refused";
        return SZ_REASON_untrusted_peer;
    }
    if (site.p != NULL && !sz_eq(site, SZ_S("none")) && !sz_eq(site, SZ_S("same-origin"))) {
        *why = "cross-site requests are refused";
        return SZ_REASON_untrusted_peer;
    }
    return token(conf, head, peer, need, why);
}
