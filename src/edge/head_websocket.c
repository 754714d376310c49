/*
 * Is this head a WebSocket handshake?  Only a whole, unambiguous one counts (RFC 6455 4.2.1): half of one would let a
 * client talk the upstream into a tunnel that the gateway never judged.  Any other Upgrade is ignored.
 */
#include "edge/head_check.h"

#include "subzero/crypto.h"

/* The single value of a field, SZ_NONE when it is absent or repeated. */
static struct sz_slice single(const struct sz_head *head, struct sz_slice name)
{
    struct sz_slice found = SZ_NONE;
    for (size_t i = 0; i < head->fields_n; i++) {
        if (!sz_ieq(head->fields[i].name, name))
            continue;
        if (found.p != NULL)
            return SZ_NONE;
        found = head->fields[i].value;
    }
    return found;
}

static bool connection_names_upgrade(const struct sz_head *head)
{
    for (size_t i = 0; i < head->fields_n; i++) {
        struct sz_slice rest = head->fields[i].value, option;
        if (!sz_ieq(head->fields[i].name, SZ_S("connection")))
            continue;
        while (sz_split(&rest, ',', &option)) {
            if (sz_ieq(sz_trim(option), SZ_S("upgrade")))
                return true;
        }
    }
    return false;
}

/* base64 of 16 bytes: 22 characters and "==". */
static bool is_key(struct sz_slice key)
{
    uint8_t nonce[18];
    size_t n;
    return key.n == 24 && sz_b64_decode(key, nonce, &n) == 0 && n == 16;
}

bool sz_head_is_websocket(const struct sz_head *head)
{
    return !head->http_1_0 && !head->chunked && !head->has_length && sz_eq(head->method, SZ_S("GET")) &&
           sz_ieq(head->upgrade, SZ_S("websocket")) && connection_names_upgrade(head) &&
           sz_eq(single(head, SZ_S("sec-websocket-version")), SZ_S("13")) &&
           is_key(single(head, SZ_S("sec-websocket-key")));
}
