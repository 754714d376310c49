/*
 * Lines of a file, from one offset to another, forwards or backwards, through a buffer of fixed size.  Nothing is
 * mapped: a file that somebody cuts must not kill the reader.
 */
#ifndef SZ_OBS_AUDIT_LINES_H
#define SZ_OBS_AUDIT_LINES_H

#include "obs/audit/chain.h"

enum { SZ_AUDIT_LINES_BUFFER = 128 * 1024 };

struct sz_audit_lines {
    int fd;
    uint64_t begin, end; /* what is left: [begin, end) */
    char *buffer;        /* SZ_AUDIT_LINES_BUFFER, the caller's */
    uint64_t at;         /* file offset of buffer[0] */
    size_t have;
};
struct sz_audit_line {
    struct sz_slice text; /* without its newline; in the buffer until the next call */
    uint64_t at;          /* offset in the file */
    bool whole;           /* false: longer than a record may be, or without a newline */
};
/* Both 1: a line; 0: none left; -errno. */
int sz_audit_lines_next(struct sz_audit_lines *lines, struct sz_audit_line *line);
int sz_audit_lines_previous(struct sz_audit_lines *lines, struct sz_audit_line *line);

#endif
