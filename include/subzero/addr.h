/*
 * IP addresses and ranges.  One form for both families: 16 bytes, IPv4 as IPv4-mapped
 * IPv6 (::ffff:a.b.c.d), so that a mapped address *is* its IPv4 address wherever it is
 * compared, hashed, matched or printed.  Plain values; any thread.
 */
#ifndef SUBZERO_ADDR_H
#define SUBZERO_ADDR_H

#include "subzero/base.h"

struct sockaddr; /* <sys/socket.h> */

#define SZ_ADDR_TEXT 46 /* longest text and its NUL */

struct sz_addr {
    uint8_t b[16];
};

static inline bool sz_addr_eq(struct sz_addr a, struct sz_addr b)
{
    return sz_eq(sz_slice(a.b, sizeof(a.b)), sz_slice(b.b, sizeof(b.b)));
}
bool sz_addr_is_v4(struct sz_addr a);
/* 127.0.0.0/8 or ::1. */
bool sz_addr_is_loopback(struct sz_addr a);
/*
 * Whole slice as one address.  -EINVAL for anything else: zone ids, brackets, ports, octets with
 * leading zeros (octal to some), short forms such as 127.1, blanks.
 */
int sz_addr_parse(struct sz_slice s, struct sz_addr *out) SZ_MUST_CHECK;
/* AF_INET and AF_INET6; -EAFNOSUPPORT for the rest (unix sockets).  The zone of link-local IPv6 is dropped. */
int sz_addr_from_sockaddr(const struct sockaddr *sa, size_t len, struct sz_addr *out) SZ_MUST_CHECK;
/* IPv4 dotted, IPv6 as RFC 5952; NUL-terminated, returns the length. */
size_t sz_addr_format(struct sz_addr a, char out[SZ_ADDR_TEXT]);
/* The network of an address: keeps `bits` of it (0..32 for IPv4, 0..128 for IPv6; more keeps all). */
struct sz_addr sz_addr_prefix(struct sz_addr a, unsigned bits);

/*
 * A range.  `bits` counts in the 16-byte form: an IPv4 /n is 96 + n.  An IPv4 address lies in
 * IPv4 ranges alone: ::/0 is all of IPv6 and none of IPv4.
 */
struct sz_cidr {
    struct sz_addr net;
    uint8_t bits;
};
/*
 * "10.0.0.0/8", "2001:db8::/32", "::ffff:10.0.0.0/104" (the same as 10.0.0.0/8), or an address alone.
 * -EINVAL with the reason and the remedy in *why; bits set behind the prefix are such a mistake.
 */
int sz_cidr_parse(struct sz_slice s, struct sz_cidr *out, struct sz_text *why) SZ_MUST_CHECK;
bool sz_cidr_contains(const struct sz_cidr *range, struct sz_addr a);
static inline bool sz_cidr_is_v4(const struct sz_cidr *range)
{
    return range->bits >= 96 && sz_addr_is_v4(range->net);
}
/* The prefix length as people write it: 0..32 for IPv4, 0..128 for IPv6. */
static inline unsigned sz_cidr_length(const struct sz_cidr *range)
{
    return sz_cidr_is_v4(range) ? range->bits - 96u : range->bits;
}

#endif
