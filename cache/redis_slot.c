/* Which of a cluster's slots a key belongs to: CRC-16/XMODEM of what is between the first { and the next }, or of all.
 */
#include "cache/redis_client.h"

static uint16_t crc16(struct sz_slice s)
{
    static const uint16_t nibbles[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                         0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    uint16_t crc = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned c = (unsigned char)s.p[i];
        crc = (uint16_t)(crc << 4) ^ nibbles[(crc >> 12) ^ (c >> 4)];
        crc = (uint16_t)(crc << 4) ^ nibbles[(crc >> 12) ^ (c & 15)];
    }
    return crc;
}

unsigned sz_redis_slot(struct sz_slice key)
{
    ptrdiff_t open = sz_find_byte(key, '{');
    if (open >= 0) {
        struct sz_slice rest = sz_from(key, (size_t)open + 1);
        ptrdiff_t close = sz_find_byte(rest, '}');
        if (close > 0)
            key = sz_sub(rest, 0, (size_t)close);
    }
    return crc16(key) % SZ_REDIS_SLOTS;
}
