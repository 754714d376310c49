/*
 * The chain.  A record is one line; its last members are always these, 149 bytes with the closing brace:
 *
 *     ...,"prev":"<64 hex: SHA-256 of the line before>","hash":"<64 hex: SHA-256 of this line without that member>"}
 *
 * Both are taken over the bytes of a line without its newline.  The first line of a journal has a `prev` of zeros.
 * Lines begin {"v":1,"seq":N,"time":"2026-11-30T23:00:00.123456000Z", so that what a reader jumps by is read without a
 * parser.
 */
#ifndef SZ_OBS_AUDIT_CHAIN_H
#define SZ_OBS_AUDIT_CHAIN_H

#include "subzero/base.h"

enum { SZ_AUDIT_LINE_MAX = 4096 /* newline included */, SZ_AUDIT_TAIL = 149, SZ_AUDIT_TIME = 30 };

struct sz_audit_hash {
    uint8_t b[32];
};
static inline bool sz_audit_hash_eq(const struct sz_audit_hash *a, const struct sz_audit_hash *b)
{
    return sz_eq(sz_slice(a->b, sizeof(a->b)), sz_slice(b->b, sizeof(b->b)));
}

/* Ends the record that begins at `from` and is open ("{..." without its brace): tail and newline; *head becomes its
 * hash. */
void sz_audit_seal(struct sz_buf *lines, size_t from, struct sz_audit_hash *head);

/* What follows takes one line without its newline. */
struct sz_audit_hash sz_audit_line_hash(struct sz_slice line);
/* `prev` of a line that ends as a record does. */
bool sz_audit_line_prev(struct sz_slice line, struct sz_audit_hash *prev);
/* The line's own hash is right. */
bool sz_audit_line_whole(struct sz_slice line);
/* Sequence number and time from the line's beginning; false when it does not begin as a record does. */
bool sz_audit_line_head(struct sz_slice line, uint64_t *seq, struct sz_slice *time);
/* The whole value of a member with a string, escapes as they are; false when there is none. */
bool sz_audit_line_text(struct sz_slice line, struct sz_slice name, struct sz_slice *value);
/* A number; 0 when there is none. */
uint64_t sz_audit_line_number(struct sz_slice line, struct sz_slice name);
bool sz_audit_hash_parse(struct sz_slice hex, struct sz_audit_hash *out);
/* RFC 3339 as records have it -> microseconds since 1970; false when it is not that. */
bool sz_audit_time_parse(struct sz_slice text, int64_t *us);

#endif
