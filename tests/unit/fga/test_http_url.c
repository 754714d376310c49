/* http_url.c: what may be asked, and what both we and libcurl must not read in two ways. */
#include <criterion/criterion.h>

#include "fga/http_client.h"

TestSuite(http_url);

Test(http_url, refused_with_a_reason)
{
    static const struct {
        const char *url, *why;
    } cases[] = {
        {"", "does not begin with"},
        {"https", "does not begin with"},
        {"ftp://idp.example/", "does not begin with"},
        {"file:///etc/passwd", "does not begin with"},
        {"HTTPS:/idp.example/", "does not begin with"},
        {" https://idp.example/", "does not begin with"},
        {"https://", "no host"},
        {"https:///path", "no host"},
        {"https://:443/", "no host"},
        {"https://?x", "no host"},
        {"https://user@idp.example/", "user"},
        {"https://user:word@idp.example/", "user"},
        {"https://idp.example@evil.example/", "user"},
        {"https://idp.example:0/", "port"},
        {"https://idp.example:/", "port"},
        {"https://idp.example:65536/", "port"},
        {"https://idp.example:+443/", "port"},
        {"https://idp.example:44 3/", "port"},
        {"https://idp.example:443:443/", "port"},
        {"https://id p.example/", "host holds"},
        {"https://idp%2eexample/", "host holds"},
        {"https://b\xc3\xbc"
         "cher.example/",
         "xn--"},
        {"https://idp.example\\@evil.example/", "user"},
        {"https://idp.example\\evil/", "host holds"},
        {"https://.idp.example/", "dot"},
        {"https://idp.example./", "dot"},
        {"https://idp..example/", "dot"},
        {"https://127.1/", "not an address"},
        {"https://0x7f.1/", "not an address"},
        {"https://0177.0.0.1/", "not an address"},
        {"https://2130706433/", "not an address"},
        {"https://1.2.3.4.5/", "not an address"},
        {"https://256.1.1.1/", "not an address"},
        {"https://[::1/", "']'"},
        {"https://[127.0.0.1]/", "brackets"},
        {"https://[::1]443/", "after ']'"},
        {"https://[fe80::1%25eth0]/", "not an address"},
        {"https://[idp.example]/", "not an address"},
        {"https://::1/", "port"},
        {"https://idp.example/a b", "blank"},
        {"https://idp.example/a\r\nHost: evil", "blank"},
        {"https://idp.example/\x7f", "blank"},
        {"https://idp.example/\xc3\xa9", "blank"},
        {"https://idp.example/a\\b", "blank"},
        {"https://idp.example/#top", "fragment"},
        {"https://idp.example#top", "fragment"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_text why = {""};
        struct sz_http_url url;
        cr_expect_neq(sz_http_url_parse(sz_cstr(cases[i].url), &url, &why), 0, "%s", cases[i].url);
        cr_expect_not_null(strstr(why.s, cases[i].why), "%s: %s", cases[i].url, why.s);
        cr_expect_neq(sz_http_url_check(sz_cstr(cases[i].url), true, NULL), 0);
    }
}

Test(http_url, bounds_of_length)
{
    char url[SZ_HTTP_URL_MAX + 2];
    struct sz_text why = {""};
    memset(url, 'a', sizeof(url));
    memcpy(url, "https://h/", 10);
    cr_expect_eq(sz_http_url_check(sz_slice(url, SZ_HTTP_URL_MAX), false, &why), 0);
    cr_expect_neq(sz_http_url_check(sz_slice(url, SZ_HTTP_URL_MAX + 1), false, &why), 0);
    cr_expect_neq(sz_http_url_check(sz_slice("https://idp.example/\0", 21), false, &why), 0);
    memset(url, 'a', sizeof(url));
    memcpy(url, "https://", 8);
    url[8 + SZ_HOST_MAX] = '/';
    cr_expect_eq(sz_http_url_check(sz_slice(url, 9 + SZ_HOST_MAX), false, &why), 0);
    url[8 + SZ_HOST_MAX] = 'a';
    url[9 + SZ_HOST_MAX] = '/';
    cr_expect_neq(sz_http_url_check(sz_slice(url, 10 + SZ_HOST_MAX), false, &why), 0);
    cr_expect_not_null(strstr(why.s, "253"));
}

Test(http_url, http_needs_leave_or_loopback)
{
    static const char *const loopback[] = {"http://127.0.0.1/", "http://127.9.9.9:8080/x",
                                           "http://[::1]/",     "http://localhost:1234/",
                                           "http://LOCALHOST/", "http://[::ffff:127.0.0.1]/"};
    static const char *const others[] = {"http://idp.example/",    "http://10.0.0.1/",         "http://128.0.0.1/",
                                         "http://localhost.evil/", "http://a.localhost.evil/", "http://[::2]/"};
    struct sz_text why;
    for (size_t i = 0; i < SZ_COUNT(loopback); i++)
        cr_expect_eq(sz_http_url_check(sz_cstr(loopback[i]), false, &why), 0, "%s: %s", loopback[i], why.s);
    for (size_t i = 0; i < SZ_COUNT(others); i++) {
        cr_expect_neq(sz_http_url_check(sz_cstr(others[i]), false, &why), 0, "%s", others[i]);
        cr_expect_not_null(strstr(why.s, "insecure_http"));
        cr_expect_eq(sz_http_url_check(sz_cstr(others[i]), true, &why), 0, "%s: %s", others[i], why.s);
    }
}

Test(http_url, what_is_read)
{
    static const struct {
        const char *url, *host;
        uint16_t port;
        bool tls, literal;
    } cases[] = {
        {"https://IDP.Example/.well-known/openid-configuration?a=b%20c", "idp.example", 443, true, false},
        {"http://idp.example", "idp.example", 80, false, false},
        {"HTTPS://idp.example?x", "idp.example", 443, true, false},
        {"https://a_b-c.example:8443/", "a_b-c.example", 8443, true, false},
        {"https://10.0.0.1/", "10.0.0.1", 443, true, true},
        {"https://[2001:DB8::1]:444/", "2001:db8::1", 444, true, true},
        {"https://[::1]", "::1", 443, true, true},
        {"https://1a.example/", "1a.example", 443, true, false},
        {"https://localhost/", "localhost", 443, true, true},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_http_url url;
        struct sz_text why = {""};
        cr_expect_eq(sz_http_url_parse(sz_cstr(cases[i].url), &url, &why), 0, "%s: %s", cases[i].url, why.s);
        cr_expect_str_eq(url.host, cases[i].host);
        cr_expect_eq(url.port, cases[i].port);
        cr_expect_eq(url.tls, cases[i].tls);
        cr_expect_eq(url.literal, cases[i].literal, "%s", cases[i].url);
    }
}
