/*
 * A frame's header is 2 to 14 bytes: flags and opcode, mask bit and length, a longer length, the mask.  It is collected
 * byte by byte because it may be cut anywhere; the payload is only counted.
 */
#include "edge/websocket.h"

#include <openssl/evp.h>

#include "subzero/crypto.h"

void sz_websocket_accept(struct sz_slice key, char out[SZ_WEBSOCKET_ACCEPT])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char digest[20];
    EVP_MD_CTX *md = EVP_MD_CTX_new();

    SZ_ASSERT(md != NULL && EVP_DigestInit_ex(md, EVP_sha1(), NULL) == 1 && EVP_DigestUpdate(md, key.p, key.n) == 1 &&
              EVP_DigestUpdate(md, guid, sizeof(guid) - 1) == 1 && EVP_DigestFinal_ex(md, digest, NULL) == 1);
    EVP_MD_CTX_free(md);
    sz_b64_encode(digest, sizeof(digest), out);
}

/* Length of the header that begins with these bytes; 2 until the second one is there. */
static size_t header_size(const uint8_t *head, size_t n)
{
    if (n < 2)
        return 2;
    unsigned length = head[1] & 0x7f;
    return 2u + (length == 126 ? 2 : length == 127 ? 8 : 0) + ((head[1] & 0x80) != 0 ? 4 : 0);
}

static uint64_t payload_size(const uint8_t *head)
{
    unsigned length = head[1] & 0x7f, bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
    uint64_t value = bytes == 0 ? length : 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | head[2 + i];
    return value;
}

/* Passes bytes up to the end of the current frame (or header); how many that were. */
static size_t step(struct sz_frames *f, const uint8_t *p, size_t n)
{
    if (f->payload > 0) {
        size_t take = n < f->payload ? n : (size_t)f->payload;
        f->payload -= take;
        return take;
    }
    f->head[f->head_n++] = *p;
    if (f->head_n == header_size(f->head, f->head_n)) {
        f->payload = payload_size(f->head);
        f->head_n = 0;
    }
    return 1;
}

void sz_frames_pass(struct sz_frames *f, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n;)
        at += step(f, (const uint8_t *)bytes + at, n - at);
}

size_t sz_frames_rest(const struct sz_frames *f, const void *bytes, size_t n)
{
    struct sz_frames copy = *f;
    size_t at = 0;
    while (at < n && !sz_frames_between(&copy))
        at += step(&copy, (const uint8_t *)bytes + at, n - at);
    return at;
}

size_t sz_websocket_close(unsigned code, bool masked, uint32_t mask, uint8_t out[SZ_CLOSE_FRAME_MAX])
{
    uint8_t payload[2] = {(uint8_t)(code >> 8), (uint8_t)code};

    out[0] = 0x88; /* FIN, opcode 8 */
    out[1] = (uint8_t)((masked ? 0x80 : 0) | sizeof(payload));
    if (!masked) {
        memcpy(out + 2, payload, sizeof(payload));
        return 4;
    }
    memcpy(out + 2, &mask, 4);
    out[6] = payload[0] ^ out[2];
    out[7] = payload[1] ^ out[3];
    return 8;
}
