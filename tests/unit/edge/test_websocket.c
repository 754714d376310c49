/* Frames cut anywhere, and a close frame that any peer accepts. */
#include <criterion/criterion.h>

#include "edge/websocket.h"

Test(websocket, accept_of_the_rfc)
{
    char out[SZ_WEBSOCKET_ACCEPT];
    sz_websocket_accept(SZ_S("dGhlIHNhbXBsZSBub25jZQ=="), out);
    cr_assert(sz_eq(sz_slice(out, sizeof(out)), SZ_S("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
}

/* Header of a frame with this payload length; its size. */
static size_t put_head(uint8_t *p, uint64_t length, bool masked)
{
    unsigned bytes = length < 126 ? 0 : length < 65536 ? 2 : 8;
    size_t n = 0;

    p[n++] = 0x82;
    p[n++] = (uint8_t)((masked ? 0x80 : 0) | (bytes == 0 ? length : bytes == 2 ? 126 : 127));
    for (unsigned i = bytes; i > 0; i--)
        p[n++] = (uint8_t)(length >> 8 * (i - 1));
    for (int i = 0; masked && i < 4; i++)
        p[n++] = 0xaa;
    return n;
}

static const uint64_t lengths[] = {0, 1, 125, 126, 127, 65535, 65536, 70000};

/* Fed whole, in single bytes and in odd pieces, the tracker is between frames exactly at their ends. */
Test(websocket, follows_frames_cut_anywhere)
{
    static uint8_t bytes[300000];

    for (int masked = 0; masked < 2; masked++) {
        for (size_t piece = 1; piece < 100000; piece = piece * 7 + 1) {
            size_t n = 0, ends[SZ_COUNT(lengths)], seen = 0;
            for (size_t i = 0; i < SZ_COUNT(lengths); i++) {
                n += put_head(bytes + n, lengths[i], masked) + lengths[i];
                ends[i] = n;
            }
            struct sz_frames f = {0};
            for (size_t at = 0; at < n;) {
                size_t take = n - at < piece ? n - at : piece;
                for (size_t left = take; left > 0;) {
                    /* a piece in two steps: to the frame's end, then the rest */
                    size_t rest = sz_frames_rest(&f, bytes + at, left);
                    size_t step = rest == 0 ? 1 : rest;
                    sz_frames_pass(&f, bytes + at, step);
                    at += step;
                    left -= step;
                    while (seen < SZ_COUNT(ends) && ends[seen] < at)
                        seen++;
                    bool end = seen < SZ_COUNT(ends) && ends[seen] == at;
                    cr_assert_eq(sz_frames_between(&f), end, "piece %zu at %zu", piece, at);
                }
            }
        }
    }
}

Test(websocket, a_64_bit_length_does_not_wrap)
{
    struct sz_frames f = {0};
    uint8_t head[14], body[100] = {0};

    sz_frames_pass(&f, head, put_head(head, UINT64_MAX >> 1, false));
    for (int i = 0; i < 1000; i++)
        sz_frames_pass(&f, body, sizeof(body));
    cr_assert_not(sz_frames_between(&f));
    cr_assert_eq(sz_frames_rest(&f, body, sizeof(body)), sizeof(body));
}

Test(websocket, close_frames)
{
    uint8_t out[SZ_CLOSE_FRAME_MAX];
    const uint8_t plain[] = {0x88, 0x02, 0x03, 0xf0};

    cr_assert_eq(sz_websocket_close(SZ_CLOSE_POLICY, false, 0, out), sizeof(plain));
    cr_assert_arr_eq(out, plain, sizeof(plain));
    cr_assert_eq(sz_websocket_close(SZ_CLOSE_GOING_AWAY, true, 0x04030201, out), 8);
    cr_assert_eq(out[0], 0x88);
    cr_assert_eq(out[1], 0x82);
    cr_assert_eq((out[6] ^ out[2]) << 8 | (out[7] ^ out[3]), 1001);
}
