/*
 * Version 1 is a line of text, version 2 a binary block behind a fixed signature.  A listener that expects the header
 * refuses a connection without it: otherwise whoever reaches the port directly would choose what address he has.
 */
#include "edge/proxy_header.h"

#include <errno.h>

#define V1_MAX  107 /* longest line with its CRLF */
#define V2_HEAD 16

static const char v2_signature[] = {0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};

static int v1_line(struct sz_slice line, struct sz_proxy_header *out)
{
    struct sz_slice rest = line, field[6], more;
    uint64_t port;

    if (sz_starts_with(line, SZ_S("PROXY UNKNOWN")) && (line.n == 13 || line.p[13] == ' '))
        return 0;
    for (size_t i = 0; i < SZ_COUNT(field); i++) {
        if (!sz_split(&rest, ' ', &field[i]))
            return -EINVAL;
    }
    bool v4 = sz_eq(field[1], SZ_S("TCP4"));
    if (sz_split(&rest, ' ', &more) || !sz_eq(field[0], SZ_S("PROXY")) || (!v4 && !sz_eq(field[1], SZ_S("TCP6"))))
        return -EINVAL;
    struct sz_addr destination;
    if (sz_addr_parse(field[2], &out->client) != 0 || sz_addr_parse(field[3], &destination) != 0 ||
        sz_addr_is_v4(out->client) != v4 || sz_parse_u64(field[4], 65535, &port) != 0)
        return -EINVAL;
    out->port = (uint16_t)port;
    out->has_client = true;
    return sz_parse_u64(field[5], 65535, &port) == 0 ? 0 : -EINVAL;
}

static int parse_v1(struct sz_slice bytes, struct sz_proxy_header *out)
{
    ptrdiff_t lf = sz_find_byte(sz_sub(bytes, 0, V1_MAX), '\n');
    if (lf < 0)
        return bytes.n < V1_MAX ? SZ_PROXY_HEADER_MORE : -EINVAL;
    if (lf < 1 || bytes.p[lf - 1] != '\r')
        return -EINVAL;
    out->length = (size_t)lf + 1;
    return v1_line(sz_sub(bytes, 0, (size_t)lf - 1), out);
}

static int v2_address(const unsigned char *p, size_t n, unsigned family, struct sz_proxy_header *out)
{
    if (family == 1 && n >= 12) {
        memcpy(out->client.b, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
        memcpy(out->client.b + 12, p, 4);
        out->port = (uint16_t)(p[8] << 8 | p[9]);
    } else if (family == 2 && n >= 36) {
        memcpy(out->client.b, p, 16);
        out->port = (uint16_t)(p[32] << 8 | p[33]);
    } else {
        return family == 0 || family == 3 ? 0 : -EINVAL; /* unspecified or a unix socket: no address of use */
    }
    out->has_client = true;
    return 0;
}

static int parse_v2(struct sz_slice bytes, struct sz_proxy_header *out)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    if (bytes.n < V2_HEAD)
        return SZ_PROXY_HEADER_MORE;
    size_t n = (size_t)p[14] << 8 | p[15];
    unsigned version = p[12] >> 4, command = p[12] & 15, family = p[13] >> 4, transport = p[13] & 15;
    if (version != 2 || command > 1 || V2_HEAD + n > SZ_PROXY_HEADER_MAX)
        return -EINVAL;
    if (bytes.n < V2_HEAD + n)
        return SZ_PROXY_HEADER_MORE;
    out->length = V2_HEAD + n;
    if (command == 0)
        return 0;
    if (transport > 1)
        return -EINVAL;
    return v2_address(p + V2_HEAD, n, family, out);
}

int sz_proxy_header_parse(struct sz_slice bytes, struct sz_proxy_header *out)
{
    *out = (struct sz_proxy_header){.length = 0};
    struct sz_slice v2 = sz_slice(v2_signature, sizeof(v2_signature)), v1 = SZ_S("PROXY ");
    if (bytes.n == 0)
        return SZ_PROXY_HEADER_MORE;
    if (sz_eq(sz_sub(bytes, 0, v2.n), sz_sub(v2, 0, bytes.n)))
        return parse_v2(bytes, out);
    if (sz_eq(sz_sub(bytes, 0, v1.n), sz_sub(v1, 0, bytes.n)))
        return parse_v1(bytes, out);
    return -EINVAL;
}
