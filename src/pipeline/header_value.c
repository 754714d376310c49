/* Claim to header field value. */
#include "pipeline/header_value.h"

static bool is_control(uint8_t c)
{
    return c < 0x20 || c == 0x7f;
}

bool sz_header_value(struct sz_slice raw, struct sz_pool *pool, struct sz_slice *out)
{
    size_t grow = 0;
    for (size_t i = 0; i < raw.n; i++) {
        uint8_t c = (uint8_t)raw.p[i];
        if (is_control(c))
            return false;
        grow += c > 0x7e || (c == ' ' && (i == 0 || i + 1 == raw.n));
    }
    *out = raw.p != NULL ? raw : sz_slice("", 0);
    if (grow == 0)
        return true;
    static const char digits[] = "0123456789ABCDEF";
    char *p = sz_pool_alloc(pool, raw.n + 2 * grow);
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        uint8_t c = (uint8_t)raw.p[i];
        if (c > 0x7e || (c == ' ' && (i == 0 || i + 1 == raw.n))) {
            p[n++] = '%';
            p[n++] = digits[c >> 4];
            p[n++] = digits[c & 15];
        } else {
            p[n++] = (char)c;
        }
    }
    *out = sz_slice(p, n);
    return true;
}
