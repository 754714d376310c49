/*
 * The log that stores live in: one file, only ever appended to, and written anew as a whole when most of it is history.
 *
 *   file    "SZFGALOG" | version u32 | 0 u32 | record | record | ...
 *   record  magic u32 | length u32 | check of these two and the offset u64 | check of payload and offset u64 | payload
 *
 * All little-endian.  A record that ends before the file does must be whole: anything else is damage, and what came
 * behind it would be history without its middle, so the start is refused.  Only the last record may be incomplete
 * (the process or the machine went down while it was written; nobody was told that it is there): it is moved aside.
 *
 * One thread at a time.
 */
#ifndef SZ_FGA_API_JOURNAL_H
#define SZ_FGA_API_JOURNAL_H

#include <sys/types.h>

#include "subzero/base.h"

#define SZ_JOURNAL_VERSION 1
#define SZ_JOURNAL_FILE    "stores.log"

/* What touches the disk, so that a test can let it fail at each step.  As the system's own. */
struct sz_disk {
    ssize_t (*write)(int fd, const void *p, size_t n);
    int (*sync)(int fd);
    int (*truncate)(int fd, off_t size);
    int (*rename)(int dir, const char *from, const char *to);
};
extern const struct sz_disk sz_disk_real;

struct sz_journal;

/* Each record of the file, oldest first; a negative result refuses the start, with *why. */
typedef int sz_replay_fn(void *arg, struct sz_slice payload, struct sz_text *why);

/*
 * Opens or makes DIR and the log in it, and replays it.  The directory is locked against other processes.  NULL: *why,
 * with file and offset. *moved: what was moved aside and where to, empty when nothing was.
 */
struct sz_journal *sz_journal_open(const char *dir, const struct sz_disk *disk, sz_replay_fn *replay, void *arg,
                                   struct sz_text *moved, struct sz_text *why);
void sz_journal_free(struct sz_journal **j);

/* Appended, not yet synced.  -errno: it is not there (or the journal is broken, see below). */
int sz_journal_append(struct sz_journal *j, struct sz_slice payload) SZ_MUST_CHECK;
/* All that was appended is on the disk.  -errno: that is not known, and never will be: nothing is appended any more. */
int sz_journal_sync(struct sz_journal *j) SZ_MUST_CHECK;
bool sz_journal_broken(const struct sz_journal *j);
uint64_t sz_journal_size(const struct sz_journal *j);

/*
 * Writing the log anew: begin, add every record of the new one, end.  Until the end succeeded the old one is the log.
 * -errno: given up, the old one goes on.
 */
int sz_journal_rewrite_begin(struct sz_journal *j) SZ_MUST_CHECK;
int sz_journal_rewrite_add(struct sz_journal *j, struct sz_slice payload) SZ_MUST_CHECK;
int sz_journal_rewrite_end(struct sz_journal *j) SZ_MUST_CHECK;

#endif
