/*
 * The bits of the WebSocket protocol (RFC 6455) that a tunnel needs: the proof in the handshake, where frames begin and
 * end, and a close frame of our own.  Payloads are never looked at.  Pure.
 */
#ifndef SZ_EDGE_WEBSOCKET_H
#define SZ_EDGE_WEBSOCKET_H

#include "subzero/base.h"

#define SZ_WEBSOCKET_ACCEPT 28 /* bytes of a Sec-WebSocket-Accept */
enum { SZ_CLOSE_GOING_AWAY = 1001, SZ_CLOSE_POLICY = 1008 };

/* The Sec-WebSocket-Accept that belongs to a Sec-WebSocket-Key (RFC 6455 4.2.2). */
void sz_websocket_accept(struct sz_slice key, char out[SZ_WEBSOCKET_ACCEPT]);

/*
 * Follows the frames of one direction, so that a frame of ours is put between two of theirs and never into one.
 * Zero-initialise.
 */
struct sz_frames {
    uint64_t payload; /* bytes of the current frame still to come */
    uint8_t head[14]; /* header bytes seen of the next frame */
    uint8_t head_n;
};
/* These n bytes went through. */
void sz_frames_pass(struct sz_frames *f, const void *bytes, size_t n);
/* How many of these n bytes belong to the frame that is under way; 0 between frames. */
size_t sz_frames_rest(const struct sz_frames *f, const void *bytes, size_t n);
static inline bool sz_frames_between(const struct sz_frames *f)
{
    return f->payload == 0 && f->head_n == 0;
}

/* A close frame with this code; masked as a client's must be (towards the upstream).  Returns its length. */
#define SZ_CLOSE_FRAME_MAX 8
size_t sz_websocket_close(unsigned code, bool masked, uint32_t mask, uint8_t out[SZ_CLOSE_FRAME_MAX]);

#endif
