/*
 * The format: a head of 80 bytes, then records of 80.
 *
 *   head    "subzero revocations 1\n", spaces, "\n"
 *   record  digest 32 │ before 8 │ expires 8 │ made 8 │ kind 1 │ within 2 │ zero 5 │ first 16 bytes of its SHA-256
 *
 * Records are only ever added; of two with one digest the wider counts.  A batch is acknowledged when it is synced, so
 * what a crash may leave torn, in any order, is the last batch, and nobody was told of it.  Each record says how far
 * into its batch it is, hence where the batches before it ended: a bad record there is something else, damage, and
 * stops the start.  Going on would let in whom somebody shut out.
 */
#include "cache/revocation_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "subzero/crypto.h"
#include "subzero/state_dir.h"

enum { VERSION = 1, HEAD = SZ_REVOCATION_BYTES, SUM = SZ_REVOCATION_BYTES - SZ_REVOCATION_PLAIN };
#define NAME  "revocations"
#define FRESH "revocations.new"
#define LOCK  "revocations.lock"
#define MAGIC "subzero revocations "

static ssize_t system_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return pwrite(fd, bytes, n, at);
}

static int system_rename(int dir, const char *from, const char *to)
{
    return renameat(dir, from, dir, to);
}

const struct sz_revocation_calls sz_revocation_system = {system_pwrite, fsync, system_rename};

static int failed(struct sz_text *why, int error, const char *what)
{
    sz_text_set(why, "%s: %s", what, strerror(error));
    return -error;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static void put64(uint8_t *out, int64_t value)
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)((uint64_t)value >> 8 * i);
}

static int64_t get64(const uint8_t *in)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 8; i++)
        value |= (uint64_t)in[i] << 8 * i;
    return (int64_t)value;
}

void sz_revocation_encode(const struct sz_revocation *r, size_t within, struct sz_buf *out)
{
    SZ_ASSERT(within < SZ_REVOCATION_BATCH);
    uint8_t bytes[SZ_REVOCATION_PLAIN + 32] = {0};
    memcpy(bytes, r->digest, 32);
    put64(bytes + 32, r->before);
    put64(bytes + 40, r->expires);
    put64(bytes + 48, r->made);
    bytes[56] = r->kind;
    bytes[57] = (uint8_t)within;
    bytes[58] = (uint8_t)(within >> 8);
    sz_sha256(sz_slice(bytes, SZ_REVOCATION_PLAIN), bytes + SZ_REVOCATION_PLAIN);
    sz_buf_add(out, bytes, SZ_REVOCATION_BYTES);
}

static bool sum_right(const uint8_t bytes[SZ_REVOCATION_BYTES])
{
    uint8_t sum[32];
    sz_sha256(sz_slice(bytes, SZ_REVOCATION_PLAIN), sum);
    return sz_eq(sz_slice(sum, SUM), sz_slice(bytes + SZ_REVOCATION_PLAIN, SUM));
}

bool sz_revocation_decode(struct sz_slice text, struct sz_revocation *r, size_t *within)
{
    static const uint8_t zero[5];
    const uint8_t *bytes = (const uint8_t *)text.p;
    if (text.n != SZ_REVOCATION_PLAIN && (text.n != SZ_REVOCATION_BYTES || !sum_right(bytes)))
        return false;
    memcpy(r->digest, bytes, 32);
    r->before = get64(bytes + 32);
    r->expires = get64(bytes + 40);
    r->made = get64(bytes + 48);
    r->kind = bytes[56];
    *within = (size_t)bytes[57] | (size_t)bytes[58] << 8;
    return r->kind < SZ_REVOKE_KINDS && sz_eq(sz_slice(bytes + 59, 5), sz_slice(zero, 5));
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void write_head(struct sz_buf *out)
{
    char head[HEAD];
    memset(head, ' ', sizeof(head));
    int n = snprintf(head, sizeof(head), MAGIC "%d\n", VERSION);
    head[n] = ' ';
    head[HEAD - 1] = '\n';
    sz_buf_add(out, head, HEAD);
}

static int check_head(struct sz_slice head, struct sz_text *why)
{
    struct sz_slice line;
    uint64_t version = 0;
    if (!sz_split(&head, '\n', &line) || !sz_starts_with(line, SZ_S(MAGIC)) ||
        sz_parse_u64(sz_from(line, sizeof(MAGIC) - 1), UINT32_MAX, &version) != 0 || version == 0) {
        sz_text_set(why, NAME " is not a file of revocations");
        return -EBADMSG;
    }
    if (version <= VERSION)
        return 0;
    sz_text_set(why, NAME " was written by a newer version, which knows what is revoked; run that version");
    return -EPROTONOSUPPORT;
}

/* Fills buf as far as the file goes. */
static ssize_t read_some(int fd, uint8_t *buf, size_t n, off_t at)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = pread(fd, buf + got, n - got, at + (off_t)got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

static int damaged(off_t at, struct sz_text *why)
{
    sz_text_set(why,
                NAME " is damaged at byte %lld: restore it from a backup, or remove it and revoke again what it held",
                (long long)at);
    return -EBADMSG;
}

/* One record at `at`.  False: there is a gap in what had been synced before it. */
static bool take_record(struct sz_slice bytes, off_t at, off_t *good,
                        void (*on_record)(void *arg, const struct sz_revocation *r), void *arg)
{
    struct sz_revocation r;
    size_t within;
    if (!sz_revocation_decode(bytes, &r, &within))
        return true;
    if (*good < at - (off_t)(within * SZ_REVOCATION_BYTES))
        return false;
    if (*good != at)
        return true; /* of a torn batch, behind the tear */
    on_record(arg, &r);
    *good += SZ_REVOCATION_BYTES;
    return true;
}

static int read_records(struct sz_revocation_file *file, void (*on_record)(void *arg, const struct sz_revocation *r),
                        void *arg, struct sz_text *why)
{
    uint8_t chunk[SZ_REVOCATION_BYTES * 256];
    off_t at = HEAD, good = HEAD;
    for (;;) {
        ssize_t n = read_some(file->fd, chunk, sizeof(chunk), at);
        if (n < 0)
            return failed(why, (int)-n, NAME);
        for (ssize_t i = 0; i + SZ_REVOCATION_BYTES <= n; i += SZ_REVOCATION_BYTES) {
            if (!take_record(sz_slice(chunk + i, SZ_REVOCATION_BYTES), at + i, &good, on_record, arg))
                return damaged(good, why);
        }
        if ((size_t)n < sizeof(chunk))
            break;
        at += n;
    }
    file->size = good;
    return ftruncate(file->fd, good) != 0 ? failed(why, errno, "cannot cut the torn end of " NAME) : 0;
}

static int lock(struct sz_revocation_file *file, struct sz_text *why)
{
    file->lock = openat(file->dir, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->lock < 0)
        return failed(why, errno, "cannot open " LOCK);
    if (flock(file->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return failed(why, errno, "cannot lock " LOCK);
    sz_text_set(why, "another process uses it; give each instance a state_dir of its own");
    return -EBUSY;
}

static int open_there(struct sz_revocation_file *file, struct sz_text *why)
{
    uint8_t head[HEAD];
    struct stat st;
    file->fd = openat(file->dir, NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0)
        return errno == ENOENT ? -ENOENT : failed(why, errno, "cannot open " NAME);
    if (fstat(file->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return failed(why, EINVAL, NAME " is not a regular file");
    ssize_t n = read_some(file->fd, head, sizeof(head), 0);
    if (n < 0)
        return failed(why, (int)-n, NAME);
    return check_head(sz_slice(head, (size_t)n), why);
}

int sz_revocation_file_open(struct sz_revocation_file *file, const char *state_dir,
                            void (*on_record)(void *arg, const struct sz_revocation *r), void *arg, struct sz_text *why)
{
    *file = (struct sz_revocation_file){.dir = -1, .lock = -1, .fd = -1};
    file->dir = sz_state_dir_open(state_dir, why);
    int rc = file->dir < 0 ? file->dir : lock(file, why);
    if (rc == 0)
        rc = open_there(file, why);
    if (rc == 0)
        rc = read_records(file, on_record, arg, why);
    if (rc == -ENOENT && file->lock >= 0)
        rc = sz_revocation_file_replace(file, SZ_S(""), &sz_revocation_system, why);
    if (rc != 0)
        sz_revocation_file_close(file);
    return rc;
}

void sz_revocation_file_close(struct sz_revocation_file *file)
{
    int *fds[] = {&file->fd, &file->lock, &file->dir};
    for (size_t i = 0; i < SZ_COUNT(fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_all(int fd, struct sz_slice bytes, off_t at, const struct sz_revocation_calls *calls)
{
    while (bytes.n > 0) {
        ssize_t n = calls->pwrite(fd, bytes.p, bytes.n, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        bytes = sz_from(bytes, (size_t)n);
        at += n;
    }
    return 0;
}

/* After a failed sync the kernel may have forgotten what it could not write: the same pages are not trusted again. */
int sz_revocation_file_append(struct sz_revocation_file *file, struct sz_slice records,
                              const struct sz_revocation_calls *calls, struct sz_text *why)
{
    SZ_ASSERT(!file->broken && records.n % SZ_REVOCATION_BYTES == 0);
    int rc = write_all(file->fd, records, file->size, calls);
    if (rc != 0)
        failed(why, -rc, "cannot write " NAME);
    else if (calls->fsync(file->fd) != 0)
        rc = failed(why, errno, "cannot sync " NAME);
    if (rc == 0)
        file->size += (off_t)records.n;
    file->broken = rc != 0;
    return rc;
}

static int write_fresh(struct sz_revocation_file *file, struct sz_slice records, int *out,
                       const struct sz_revocation_calls *calls, struct sz_text *why)
{
    struct sz_buf head = {0};
    (void)unlinkat(file->dir, FRESH, 0); /* left over from a process that died */
    int fd = openat(file->dir, FRESH, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(why, errno, "cannot create " FRESH);
    write_head(&head);
    int rc = write_all(fd, sz_buf_slice(&head), 0, calls);
    sz_buf_fini(&head);
    if (rc == 0)
        rc = write_all(fd, records, HEAD, calls);
    if (rc != 0)
        failed(why, -rc, "cannot write " FRESH);
    else if (calls->fsync(fd) != 0)
        rc = failed(why, errno, "cannot sync " FRESH);
    if (rc == 0 && calls->rename(file->dir, FRESH, NAME) != 0)
        rc = failed(why, errno, "cannot rename " FRESH);
    if (rc == 0) {
        *out = fd;
        return 0;
    }
    close(fd);
    (void)unlinkat(file->dir, FRESH, 0);
    return rc;
}

int sz_revocation_file_replace(struct sz_revocation_file *file, struct sz_slice records,
                               const struct sz_revocation_calls *calls, struct sz_text *why)
{
    int fd;
    int rc = write_fresh(file, records, &fd, calls, why);
    if (rc != 0)
        return rc;
    if (file->fd >= 0)
        close(file->fd);
    file->fd = fd;
    file->size = HEAD + (off_t)records.n;
    file->broken = calls->fsync(file->dir) != 0; /* either of the two may be there after a crash: once more */
    return file->broken ? failed(why, errno, "cannot sync the directory") : 0;
}
