#include "edge/admin_access.h"

#include <criterion/criterion.h>
#include <stdio.h>

static enum sz_reason ask(const struct sz_conf_admin *conf, const char *fields, const char *peer,
                          enum sz_admin_need need)
{
    static const struct sz_head_limits limits = {.bytes = 4096, .fields = 32};
    char raw[1024];
    struct sz_head head;
    struct sz_addr addr;
    const char *why = NULL;
    snprintf(raw, sizeof(raw), "GET /x HTTP/1.1\r\n%s\r\n", fields);
    cr_assert_eq(sz_head_check(sz_cstr(raw), &limits, &head, &why), 0, "%s", why);
    cr_assert_eq(sz_addr_parse(sz_cstr(peer), &addr), 0);
    return sz_admin_access(conf, &head, addr, need, &why);
}

static const struct sz_slice hosts[] = {SZ_S("gate.internal")};
static const struct sz_conf_admin open_conf = {.on = true, .hosts = {hosts, 1}};
static const struct sz_conf_admin token_conf = {.on = true, .token = {.value = SZ_S("s3cret"), .set = true}};

Test(admin_access, pages_and_foreign_hosts_are_refused_everywhere)
{
    static const struct {
        const char *fields;
        enum sz_reason reason;
    } rows[] = {
        {"Host: evil.example\r\n", SZ_REASON_misdirected},
        {"Host: localhost.evil.example\r\n", SZ_REASON_misdirected},
        {"Host: 192.0.2.1\r\n", SZ_REASON_misdirected},
        {"Host: localhost\r\nOrigin: http://localhost\r\n", SZ_REASON_untrusted_peer},
        {"Host: localhost\r\nOrigin: null\r\n", SZ_REASON_untrusted_peer},
        {"Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", SZ_REASON_untrusted_peer},
        {"Host: localhost\r\nSec-Fetch-Site: same-site\r\n", SZ_REASON_untrusted_peer},
        {"Host: localhost\r\nSec-Fetch-Site: none\r\n", SZ_REASON_allowed},
        {"Host: LOCALHOST:9901\r\n", SZ_REASON_allowed},
        {"Host: 127.0.0.1:9901\r\n", SZ_REASON_allowed},
        {"Host: [::1]:9901\r\n", SZ_REASON_allowed},
        {"Host: gate.internal\r\n", SZ_REASON_allowed},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        for (int need = SZ_ADMIN_OPEN; need <= SZ_ADMIN_TOKEN; need++)
            cr_expect_eq(ask(&open_conf, rows[i].fields, "127.0.0.1", (enum sz_admin_need)need), rows[i].reason, "%s",
                         rows[i].fields);
}

Test(admin_access, without_a_token_only_loopback_may_ask)
{
    cr_expect_eq(ask(&open_conf, "Host: localhost\r\n", "192.0.2.7", SZ_ADMIN_TOKEN), SZ_REASON_untrusted_peer);
    cr_expect_eq(ask(&open_conf, "Host: localhost\r\n", "192.0.2.7", SZ_ADMIN_METRICS), SZ_REASON_untrusted_peer);
    cr_expect_eq(ask(&open_conf, "Host: localhost\r\n", "192.0.2.7", SZ_ADMIN_OPEN), SZ_REASON_allowed);
    cr_expect_eq(ask(&open_conf, "Host: localhost\r\n", "::1", SZ_ADMIN_TOKEN), SZ_REASON_allowed);
}

Test(admin_access, a_token_is_needed_on_loopback_too)
{
    static const struct {
        const char *fields;
        enum sz_reason reason;
    } rows[] = {
        {"Host: localhost\r\n", SZ_REASON_missing_token},
        {"Host: localhost\r\nAuthorization: Bearer wrong\r\n", SZ_REASON_invalid_token},
        {"Host: localhost\r\nAuthorization: Bearer s3cre\r\n", SZ_REASON_invalid_token},
        {"Host: localhost\r\nAuthorization: Bearer s3cret2\r\n", SZ_REASON_invalid_token},
        {"Host: localhost\r\nAuthorization: Basic s3cret\r\n", SZ_REASON_invalid_token},
        {"Host: localhost\r\nAuthorization: Bearer\r\n", SZ_REASON_invalid_token},
        {"Host: localhost\r\nAuthorization: bearer s3cret\r\n", SZ_REASON_allowed},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        cr_expect_eq(ask(&token_conf, rows[i].fields, "127.0.0.1", SZ_ADMIN_TOKEN), rows[i].reason, "%s",
                     rows[i].fields);
    cr_expect_eq(ask(&token_conf, "Host: localhost\r\n", "127.0.0.1", SZ_ADMIN_OPEN), SZ_REASON_allowed);
    cr_expect_eq(ask(&token_conf, "Host: localhost\r\n", "127.0.0.1", SZ_ADMIN_METRICS), SZ_REASON_missing_token);
    struct sz_conf_admin open_metrics = token_conf;
    open_metrics.open_metrics = true;
    cr_expect_eq(ask(&open_metrics, "Host: localhost\r\n", "127.0.0.1", SZ_ADMIN_METRICS), SZ_REASON_allowed);
}
