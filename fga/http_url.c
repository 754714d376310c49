/*
 * URLs that may be asked.  Strict on purpose: what is refused here is never handed to libcurl, whose own reading is
 * wider (users, fragments, octal addresses, international names), so that both can only mean the same host.
 */
#include <errno.h>

#include "fga/http_client.h"

static int bad(struct sz_text *why, const char *what)
{
    if (why != NULL)
        sz_text_set(why, "%s", what);
    return -EINVAL;
}

static bool host_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

/* A last label that begins with a digit is an address to some (0x7f.1, 127.1): then it must be a whole one. */
static bool looks_numeric(struct sz_slice host)
{
    size_t at = host.n;
    while (at > 0 && host.p[at - 1] != '.')
        at--;
    return at < host.n && host.p[at] >= '0' && host.p[at] <= '9';
}

static int check_name(struct sz_slice host, struct sz_text *why)
{
    if (host.n > SZ_HOST_MAX)
        return bad(why, "the host name is longer than 253 bytes");
    for (size_t i = 0; i < host.n; i++) {
        if (!host_byte(host.p[i]))
            return bad(why, "the host holds a byte other than letters, digits, '-', '_' and '.'; write an "
                            "international name in its xn-- form");
        if (host.p[i] == '.' && (i == 0 || i + 1 == host.n || host.p[i - 1] == '.'))
            return bad(why, "the host begins or ends with a dot, or has two in a row");
    }
    return 0;
}

static int set_host(struct sz_slice host, bool bracketed, struct sz_http_url *out, struct sz_text *why)
{
    struct sz_addr addr;
    if (host.n == 0)
        return bad(why, "there is no host");
    if (!bracketed && check_name(host, why) != 0)
        return -EINVAL;
    out->literal = sz_addr_parse(host, &addr) == 0;
    if (out->literal && bracketed != (sz_find_byte(host, ':') >= 0))
        return bad(why, "an IPv6 address stands in brackets, an IPv4 address does not");
    if (!out->literal && (bracketed || looks_numeric(host)))
        return bad(why, "the host is not an address, though written like one");
    out->loopback = out->literal && sz_addr_is_loopback(addr);
    if (sz_ieq(host, SZ_S("localhost")))
        out->literal = out->loopback = true; /* libcurl knows it without asking */
    for (size_t i = 0; i < host.n; i++)
        out->host[i] = (char)(host.p[i] >= 'A' && host.p[i] <= 'Z' ? host.p[i] + ('a' - 'A') : host.p[i]);
    out->host[host.n] = '\0';
    return 0;
}

static int split_authority(struct sz_slice authority, struct sz_http_url *out, struct sz_text *why)
{
    struct sz_slice host = authority, port = SZ_NONE;
    uint64_t number = out->tls ? 443 : 80;
    bool bracketed = authority.n != 0 && authority.p[0] == '[';
    if (sz_find_byte(authority, '@') >= 0)
        return bad(why, "it names a user; credentials have keys of their own");
    if (bracketed) {
        ptrdiff_t close = sz_find_byte(authority, ']');
        if (close < 0)
            return bad(why, "']' is missing");
        host = sz_sub(authority, 1, (size_t)close - 1);
        port = sz_from(authority, (size_t)close + 1);
        if (port.n != 0 && port.p[0] != ':')
            return bad(why, "after ']' comes a ':' and the port, or nothing");
    } else if (sz_find_byte(authority, ':') >= 0) {
        host = sz_sub(authority, 0, (size_t)sz_find_byte(authority, ':'));
        port = sz_from(authority, host.n);
    }
    if (port.n != 0 && (sz_parse_u64(sz_from(port, 1), 65535, &number) != 0 || number == 0))
        return bad(why, "the port is not a number from 1 to 65535");
    out->port = (uint16_t)number;
    return set_host(host, bracketed, out, why);
}

static int check_rest(struct sz_slice rest, struct sz_text *why)
{
    for (size_t i = 0; i < rest.n; i++) {
        unsigned char c = (unsigned char)rest.p[i];
        if (c <= ' ' || c >= 0x7f || c == '\\' || c == '"' || c == '<' || c == '>')
            return bad(why, "path or query hold a blank, a control, or another byte that must be escaped");
        if (c == '#')
            return bad(why, "it has a fragment ('#...')");
    }
    return 0;
}

int sz_http_url_parse(struct sz_slice text, struct sz_http_url *out, struct sz_text *why)
{
    memset(out, 0, sizeof(*out));
    if (text.n > SZ_HTTP_URL_MAX)
        return bad(why, "it is longer than 2048 bytes");
    struct sz_slice scheme = sz_sub(text, 0, 8);
    out->tls = sz_ieq(scheme, SZ_S("https://"));
    if (!out->tls && !sz_ieq(sz_sub(text, 0, 7), SZ_S("http://")))
        return bad(why, "it does not begin with https:// or http://");
    struct sz_slice rest = sz_from(text, out->tls ? 8 : 7);
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        n++;
    int rc = check_rest(sz_from(rest, n), why);
    return rc != 0 ? rc : split_authority(sz_sub(rest, 0, n), out, why);
}

int sz_http_url_check(struct sz_slice url, bool insecure_http, struct sz_text *why)
{
    struct sz_http_url parsed;
    int rc = sz_http_url_parse(url, &parsed, why);
    if (rc == 0 && !parsed.tls && !parsed.loopback && !insecure_http)
        rc = bad(why, "it is http:// to another host; use https://, or allow it with insecure_http: true");
    return rc;
}
