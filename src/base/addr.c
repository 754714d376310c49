/*
 * IP addresses in one 16-byte form.  Reading and writing of the text is libc's inet_pton
 * and inet_ntop, which are strict enough (no short forms, no leading zeros, no zones);
 * what is ours is that a mapped address never stays IPv6.
 */
#include "subzero/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

static const uint8_t v4_head[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

static struct sz_addr from_v4(const void *four)
{
    struct sz_addr a;
    memcpy(a.b, v4_head, sizeof(v4_head));
    memcpy(a.b + sizeof(v4_head), four, 4);
    return a;
}

bool sz_addr_is_v4(struct sz_addr a)
{
    return sz_starts_with(sz_slice(a.b, sizeof(a.b)), sz_slice(v4_head, sizeof(v4_head)));
}

bool sz_addr_is_loopback(struct sz_addr a)
{
    static const struct sz_addr six = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    return sz_addr_is_v4(a) ? a.b[12] == 127 : sz_addr_eq(a, six);
}

int sz_addr_parse(struct sz_slice s, struct sz_addr *out)
{
    char text[SZ_ADDR_TEXT];
    if (s.n == 0 || s.n >= sizeof(text) || memchr(s.p, '\0', s.n) != NULL)
        return -EINVAL;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    uint8_t four[4];
    if (inet_pton(AF_INET, text, four) == 1) {
        *out = from_v4(four);
        return 0;
    }
    return inet_pton(AF_INET6, text, out->b) == 1 ? 0 : -EINVAL;
}

int sz_addr_from_sockaddr(const struct sockaddr *sa, size_t len, struct sz_addr *out)
{
    /* memcpy: the caller's storage need not be aligned for the family. */
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    sa_family_t family = AF_UNSPEC;
    if (len >= sizeof(family))
        memcpy(&family, &sa->sa_family, sizeof(family));
    if (family == AF_INET && len >= sizeof(in)) {
        memcpy(&in, sa, sizeof(in));
        *out = from_v4(&in.sin_addr);
        return 0;
    }
    if (family == AF_INET6 && len >= sizeof(in6)) {
        memcpy(&in6, sa, sizeof(in6));
        memcpy(out->b, &in6.sin6_addr, sizeof(out->b));
        return 0;
    }
    return -EAFNOSUPPORT;
}

size_t sz_addr_format(struct sz_addr a, char out[SZ_ADDR_TEXT])
{
    bool v4 = sz_addr_is_v4(a);
    SZ_ASSERT(inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a.b + 12 : a.b, out, SZ_ADDR_TEXT) != NULL);
    return strlen(out);
}

static struct sz_addr keep_bits(struct sz_addr a, unsigned bits)
{
    for (unsigned i = 0; i < sizeof(a.b); i++) {
        unsigned kept = bits > 8 * i ? bits - 8 * i : 0;
        if (kept < 8)
            a.b[i] &= (uint8_t)(0xFF00u >> kept);
    }
    return a;
}

struct sz_addr sz_addr_prefix(struct sz_addr a, unsigned bits)
{
    if (sz_addr_is_v4(a))
        return keep_bits(a, bits < 32 ? 96 + bits : 128);
    return keep_bits(a, bits < 128 ? bits : 128);
}

/* The prefix length behind the slash, in the terms of the 16-byte form. */
static int parse_bits(struct sz_slice s, bool dotted, uint8_t *bits, struct sz_text *why)
{
    uint64_t max = dotted ? 32 : 128;
    uint64_t n;
    if (s.n > 3 || (s.n > 1 && s.p[0] == '0') || sz_parse_u64(s, max, &n) != 0) {
        sz_text_set(why, "\"/%.*s\" is not a prefix length: expected a number from 0 to %u", SZ_FMT(sz_sub(s, 0, 32)),
                    (unsigned)max);
        return -EINVAL;
    }
    *bits = (uint8_t)(dotted ? 96 + n : n);
    return 0;
}

int sz_cidr_parse(struct sz_slice s, struct sz_cidr *out, struct sz_text *why)
{
    ptrdiff_t slash = sz_find_byte(s, '/');
    struct sz_slice address = slash < 0 ? s : sz_sub(s, 0, (size_t)slash);
    struct sz_cidr range = {.bits = 128};
    if (sz_addr_parse(address, &range.net) != 0) {
        sz_text_set(why, "\"%.*s\" is not an IP address: expected a range such as 10.0.0.0/8 or 2001:db8::/32",
                    SZ_FMT(sz_sub(address, 0, 64)));
        return -EINVAL;
    }
    bool dotted = sz_find_byte(address, ':') < 0;
    if (slash >= 0 && parse_bits(sz_from(s, (size_t)slash + 1), dotted, &range.bits, why) != 0)
        return -EINVAL;
    struct sz_cidr net = {keep_bits(range.net, range.bits), range.bits};
    if (!sz_addr_eq(net.net, range.net)) {
        char text[SZ_ADDR_TEXT];
        sz_addr_format(net.net, text);
        sz_text_set(why, "%.*s has bits set behind its prefix: write %s/%u for the network, or the address alone",
                    SZ_FMT(sz_sub(s, 0, 64)), text, sz_cidr_length(&net));
        return -EINVAL;
    }
    *out = range;
    return 0;
}

/* The first `n` of 64 bits, as memory order has them. */
static uint64_t first_bits(unsigned n)
{
    uint64_t bits = n == 0 ? 0 : UINT64_MAX << (64 - n);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(bits) : bits;
}

/* On every request, for each trusted range: two words, no loop over bytes. */
bool sz_cidr_contains(const struct sz_cidr *range, struct sz_addr a)
{
    uint64_t net[2], addr[2];
    unsigned high = range->bits < 64 ? range->bits : 64;
    memcpy(net, range->net.b, sizeof(net));
    memcpy(addr, a.b, sizeof(addr));
    uint64_t differ = ((net[0] ^ addr[0]) & first_bits(high)) | ((net[1] ^ addr[1]) & first_bits(range->bits - high));
    return differ == 0 && sz_cidr_is_v4(range) == sz_addr_is_v4(a);
}
