/*
 * Revocations on disk: a file that grows by what is new, and is written whole now and then.  Blocking: not on a loop.
 */
#ifndef SZ_CACHE_REVOCATION_FILE_H
#define SZ_CACHE_REVOCATION_FILE_H

#include <sys/types.h>

#include "subzero/revocation.h"

#define SZ_REVOCATION_BYTES 80 /* of one record on disk; 64 of them, without the checksum, in Redis */
#define SZ_REVOCATION_PLAIN 64

#define SZ_REVOCATION_BATCH 1000 /* records that are appended and synced together, at most */

/* 80 bytes.  `within`: its place in the batch that is appended with it; 0 where there is none. */
void sz_revocation_encode(const struct sz_revocation *r, size_t within, struct sz_buf *out);
/* 64 bytes or 80.  False: not one of ours. */
bool sz_revocation_decode(struct sz_slice bytes, struct sz_revocation *r, size_t *within);

/* What writing does to the disk, to be replaced by a test; each as the system call, -1 and errno. */
struct sz_revocation_calls {
    ssize_t (*pwrite)(int fd, const void *bytes, size_t n, off_t at);
    int (*fsync)(int fd);
    int (*rename)(int dir, const char *from, const char *to);
};
extern const struct sz_revocation_calls sz_revocation_system;

struct sz_revocation_file {
    int dir, lock, fd; /* -1: none */
    off_t size;        /* what is known to be good of it */
    bool broken;       /* a write failed: nothing is appended any more, the next one replaces */
};

/*
 * Opens (makes) the file and hands each record to on_record.  A torn end, of a write that nobody was told had
 * succeeded, is cut off.  Negative errno and *why: not ours alone, in use by another process, of a newer version,
 * damaged before its end.
 */
int sz_revocation_file_open(struct sz_revocation_file *file, const char *state_dir,
                            void (*on_record)(void *arg, const struct sz_revocation *r), void *arg,
                            struct sz_text *why) SZ_MUST_CHECK;
void sz_revocation_file_close(struct sz_revocation_file *file);
/* Whole records.  On 0 they are on the disk; on failure what was there before still is. */
int sz_revocation_file_append(struct sz_revocation_file *file, struct sz_slice records,
                              const struct sz_revocation_calls *calls, struct sz_text *why) SZ_MUST_CHECK;
int sz_revocation_file_replace(struct sz_revocation_file *file, struct sz_slice records,
                               const struct sz_revocation_calls *calls, struct sz_text *why) SZ_MUST_CHECK;

#endif
