/* A bare TCP descriptor with time limits, for tests of connections; http1.h for those of what is said on them. */
#ifndef FAKE_CLIENT_H
#define FAKE_CLIENT_H

#include "fake/process.h"

/* Connected to 127.0.0.1:port from 127.0.0.1, or -1. */
int client_open(uint16_t port);
/* From another loopback address, e.g. "127.0.0.2". */
int client_open_from(const char *address, uint16_t port);
/* Everything within 10 s. */
bool client_send(int fd, struct sz_slice bytes);
/*
 * Reads until the other side closes, `quiet_ms` pass without a byte, or the buffer is full.  NUL-terminated; *closed
 * (may be NULL): the other side closed or reset.
 */
size_t client_read(int fd, char *buf, size_t size, int quiet_ms, bool *closed);
/* Reads one whole HTTP/1 response (by its Content-Length); its status, 0 when there was none. body may be NULL. */
int client_response(int fd, char *buf, size_t size, int timeout_ms);
/* The other side closes within so many ms; what comes before is dropped. */
bool client_closed_within(int fd, int ms);
void client_reset(int fd); /* closes with RST */

#endif
