/*
 * Every call by which the journal changes something on disk, in one table, so that a test can let any of them fail.
 * Each behaves as the system's own: -1 and errno.
 */
#ifndef SZ_OBS_AUDIT_IO_H
#define SZ_OBS_AUDIT_IO_H

#include <sys/types.h>

struct sz_audit_io {
    int (*open)(int dir, const char *name, int flags, mode_t mode);
    ssize_t (*write)(int fd, const void *bytes, size_t n, off_t at);
    int (*sync)(int fd);     /* the data of a file */
    int (*sync_dir)(int fd); /* a directory's entries */
    int (*rename)(int dir, const char *from, const char *to);
    int (*unlink)(int dir, const char *name);
    int (*truncate)(int fd, off_t size);
};
extern const struct sz_audit_io sz_audit_io_system;

#endif
