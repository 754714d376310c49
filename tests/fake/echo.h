/*
 * An upstream that answers every request with what arrived: 200, and the raw request head as its body.  So a test
 * sees in the answer itself what went upstream, without a record that two threads share.  Every connection
 * ends after its answer.
 */
#ifndef FAKE_ECHO_H
#define FAKE_ECHO_H

#include <stdatomic.h>
#include <stdint.h>

struct echo {
    uint16_t port;
    int listener;
    atomic_uint requests; /* heads seen so far */
};

/* Starts a thread of this process, which ends with it.  Port 0: a free one.  Asserts on trouble. */
void echo_start(struct echo *echo, uint16_t port);

#endif
