/* Addresses and prefixes. */
#include <arpa/inet.h>
#include <errno.h>

#include "fga/engine/cel.h"

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Without unmapping. */
static int parse(struct sz_slice s, struct sz_ip *out)
{
    char text[INET6_ADDRSTRLEN + 1];
    memset(out, 0, sizeof(*out));
    ptrdiff_t zone = sz_find_byte(s, '%');
    if (zone >= 0) {
        out->zone = sz_from(s, (size_t)zone + 1);
        s.n = (size_t)zone;
        if (out->zone.n == 0)
            return -EINVAL;
    }
    if (s.n >= sizeof(text) || sz_find_byte(s, '\0') >= 0)
        return -EINVAL;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    out->v6 = sz_find_byte(s, ':') >= 0;
    if (zone >= 0 && !out->v6)
        return -EINVAL;
    return inet_pton(out->v6 ? AF_INET6 : AF_INET, text, out->b) == 1 ? 0 : -EINVAL;
}

static bool unmap(struct sz_ip *ip)
{
    if (!ip->v6 || !sz_eq(sz_slice(ip->b, 12), sz_slice(mapped, 12)))
        return false;
    memmove(ip->b, ip->b + 12, 4);
    memset(ip->b + 4, 0, 12);
    ip->v6 = false;
    ip->zone = SZ_NONE;
    return true;
}

int sz_ip_parse(struct sz_slice s, struct sz_ip *out)
{
    int err = parse(s, out);
    if (err == 0)
        unmap(out);
    return err;
}

int sz_ip_in_cidr(const struct sz_ip *ip, struct sz_slice cidr)
{
    struct sz_ip net;
    uint64_t bits;
    ptrdiff_t slash = sz_find_byte(cidr, '/');
    struct sz_slice length = slash < 0 ? SZ_NONE : sz_from(cidr, (size_t)slash + 1);
    if (length.n == 0 || length.n > 3 || (length.n > 1 && length.p[0] == '0') ||
        parse(sz_sub(cidr, 0, (size_t)slash), &net) != 0 || net.zone.p != NULL ||
        sz_parse_u64(length, net.v6 ? 128 : 32, &bits) != 0)
        return -EINVAL;
    if (bits >= 96 && unmap(&net))
        bits -= 96;
    if (net.v6 != ip->v6 || ip->zone.p != NULL)
        return 0;
    for (size_t i = 0; i < bits; i++)
        if (((net.b[i / 8] ^ ip->b[i / 8]) >> (7 - i % 8) & 1) != 0)
            return 0;
    return 1;
}
