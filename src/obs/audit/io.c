/* The system's own calls behind the table. */
#include "obs/audit/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int do_open(int dir, const char *name, int flags, mode_t mode)
{
    return openat(dir, name, flags, mode);
}

static ssize_t do_write(int fd, const void *bytes, size_t n, off_t at)
{
    ssize_t written;
    do {
        written = pwrite(fd, bytes, n, at);
    } while (written < 0 && errno == EINTR);
    return written;
}

static int do_rename(int dir, const char *from, const char *to)
{
    return renameat(dir, from, dir, to);
}

static int do_unlink(int dir, const char *name)
{
    return unlinkat(dir, name, 0);
}

const struct sz_audit_io sz_audit_io_system = {
    .open = do_open,
    .write = do_write,
    .sync = fdatasync,
    .sync_dir = fsync,
    .rename = do_rename,
    .unlink = do_unlink,
    .truncate = ftruncate,
};
