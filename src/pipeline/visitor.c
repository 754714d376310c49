/* Signed, not sealed: an id that was drawn at random tells its holder nothing. */
#include "pipeline/visitor.h"

#include "subzero/crypto.h"

enum { END = SZ_VISITOR_ID, MAC = END + 8, ALL = MAC + 32 };

static void mac_of(const uint8_t *bytes, struct sz_slice key, struct sz_slice cookie, uint8_t out[32])
{
    struct sz_buf text = {0};
    sz_key_field(&text, 1, SZ_S("subzero visitor"));
    sz_key_field(&text, 2, cookie);
    sz_key_field(&text, 3, sz_slice(bytes, MAC));
    sz_hmac_sha256(key, sz_buf_slice(&text), out);
    sz_buf_fini(&text);
}

static int64_t end_of(const uint8_t *bytes)
{
    uint64_t end = 0;
    for (int i = 0; i < 8; i++)
        end = end << 8 | bytes[END + i];
    return (int64_t)end;
}

bool sz_visitor_read(struct sz_slice text, struct sz_slice key, struct sz_slice cookie, int64_t now,
                     uint8_t id[SZ_VISITOR_ID])
{
    uint8_t bytes[SZ_B64_BYTES(SZ_VISITOR_TEXT)], mac[32];
    size_t n;
    if (text.n != SZ_VISITOR_TEXT || sz_b64url_decode(text, bytes, &n) != 0 || n != ALL)
        return false;
    mac_of(bytes, key, cookie, mac);
    if (!sz_secret_eq(sz_slice(mac, sizeof(mac)), sz_slice(bytes + MAC, sizeof(mac))) || end_of(bytes) <= now)
        return false;
    memcpy(id, bytes, SZ_VISITOR_ID);
    return true;
}

void sz_visitor_write(const uint8_t id[SZ_VISITOR_ID], int64_t end, struct sz_slice key, struct sz_slice cookie,
                      char out[SZ_VISITOR_TEXT])
{
    uint8_t bytes[ALL];
    memcpy(bytes, id, SZ_VISITOR_ID);
    for (int i = 0; i < 8; i++)
        bytes[END + i] = (uint8_t)((uint64_t)end >> (56 - 8 * i));
    mac_of(bytes, key, cookie, bytes + MAC);
    sz_b64url_encode(bytes, sizeof(bytes), out);
}
