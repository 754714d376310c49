/*
 * Authorities: host and optional port, nothing else.  The form that is matched is the form that
 * is forwarded, so what cannot be written in one way (userinfo, blanks, escapes, empty labels) is refused.
 */
#include "pipeline/target.h"
#include "subzero/addr.h"

#include <errno.h>

/* reg-name of RFC 3986 without percent-encoding, and without the comma, by which proxies join two Host fields. */
static bool host_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           (c != 0 && strchr("_~!$&'()*+;=", c) != NULL);
}

/* Splits off ":port"; an empty port ("host:") is the same as none. */
static int split_port(struct sz_slice *host, struct sz_slice *port, size_t from)
{
    *port = SZ_NONE;
    ptrdiff_t colon = sz_find_byte(sz_from(*host, from), ':');
    if (colon < 0)
        return host->n > from ? -EINVAL : 0;
    *port = sz_from(*host, from + (size_t)colon + 1);
    *host = sz_sub(*host, 0, from + (size_t)colon);
    uint64_t value;
    if (port->n == 0)
        *port = SZ_NONE;
    else if (port->n > 5 || sz_parse_u64(*port, 65535, &value) != 0)
        return -EINVAL;
    return 0;
}

static int parse_name(struct sz_slice authority, struct sz_pool *pool, struct sz_slice *host, struct sz_slice *port)
{
    ptrdiff_t colon = sz_find_byte(authority, ':');
    *host = authority;
    *port = SZ_NONE;
    if (colon >= 0 && split_port(host, port, (size_t)colon) != 0)
        return -EINVAL;
    if (host->n > 1 && host->p[host->n - 1] == '.')
        host->n--;
    if (host->n == 0 || host->n > 253)
        return -EINVAL;
    bool upper = false;
    for (size_t i = 0; i < host->n; i++) {
        uint8_t c = (uint8_t)host->p[i];
        if (!host_byte(c) || (c == '.' && (i == 0 || host->p[i - 1] == '.')))
            return -EINVAL;
        upper |= c >= 'A' && c <= 'Z';
    }
    if (host->p[host->n - 1] == '.')
        return -EINVAL;
    if (upper)
        *host = sz_pool_lower(pool, *host);
    return 0;
}

static int parse_literal(struct sz_slice authority, struct sz_pool *pool, struct sz_slice *host, struct sz_slice *port)
{
    ptrdiff_t close = sz_find_byte(authority, ']');
    struct sz_addr addr;
    if (close < 3)
        return -EINVAL;
    *host = authority;
    *port = SZ_NONE;
    if ((size_t)close + 1 < authority.n &&
        (authority.p[close + 1] != ':' || split_port(host, port, (size_t)close + 1) != 0))
        return -EINVAL;
    if (sz_addr_parse(sz_sub(authority, 1, (size_t)close - 1), &addr) != 0 || sz_addr_is_v4(addr))
        return -EINVAL;
    char text[SZ_ADDR_TEXT];
    sz_addr_format(addr, text);
    *host = sz_pool_dup(pool, sz_cstr(text));
    return 0;
}

int sz_authority_parse(struct sz_slice authority, struct sz_pool *pool, struct sz_authority *out)
{
    struct sz_slice host, port;
    bool literal = authority.n > 0 && authority.p[0] == '[';
    int rc = literal ? parse_literal(authority, pool, &host, &port) : parse_name(authority, pool, &host, &port);
    if (rc != 0)
        return rc;
    out->host = host;
    if (!literal && host.p == authority.p && host.n + (port.n > 0 ? port.n + 1 : 0) == authority.n)
        out->canonical = authority;
    else
        out->canonical = sz_pool_printf(pool, "%s%.*s%s%s%.*s", literal ? "[" : "", SZ_FMT(host), literal ? "]" : "",
                                        port.n > 0 ? ":" : "", SZ_FMT(port));
    return 0;
}
