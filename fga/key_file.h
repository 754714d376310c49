/*
 * Key sets on disk, so that a start needs no provider.  One file per source of keys in a directory that is ours alone;
 * each says whose keys it holds, from where and since when.  Blocking: not on a loop.
 */
#ifndef SZ_FGA_KEY_FILE_H
#define SZ_FGA_KEY_FILE_H

#include <sys/types.h>

#include "subzero/base.h"

struct sz_key_record {
    struct sz_slice issuer, source; /* `iss`; the url that was configured */
    int64_t fetched;                /* unix seconds */
    int64_t lifetime;               /* seconds, as the provider wished */
    struct sz_slice document;       /* the JWK Set as it came */
};

/* state_dir, as subzero/state_dir.h opens it. */
int sz_key_dir_open(const char *path, struct sz_text *why) SZ_MUST_CHECK;

/*
 * The record saved for record->issuer and record->source; the rest is filled in, the document from `room`.  -ENOENT:
 * none; -EPROTONOSUPPORT: a newer version wrote it, it is left alone; -EINVAL, -EBADMSG: not what was saved for these
 * two; other negative errno.  *why says which.
 */
int sz_key_file_load(int dir, struct sz_key_record *record, struct sz_buf *room, struct sz_text *why) SZ_MUST_CHECK;

/* What saving does to the disk, to be replaced by a test; each as the system call, -1 and errno. */
struct sz_key_file_calls {
    ssize_t (*write)(int fd, const void *bytes, size_t n);
    int (*fsync)(int fd);
    int (*rename)(int dir, const char *from, const char *to);
};
extern const struct sz_key_file_calls sz_key_file_system;

/*
 * Replaces the file as a whole: written beside, synced, renamed, the directory synced.  On failure the old one is as
 * it was (or, after a failed sync of the directory, either) and *why names the step.
 */
int sz_key_file_save(int dir, const struct sz_key_record *record, const struct sz_key_file_calls *calls,
                     struct sz_text *why) SZ_MUST_CHECK;

#endif
