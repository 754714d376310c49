/* The file: framing, replay, appending, writing anew.  What the records say is none of its business. */
#include "fga/api/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "subzero/crypto.h"

#define MAGIC      0x315a5346u /* "FSZ1" */
#define HEAD       24          /* of a record */
#define FILE_HEAD  16
#define RECORD_MAX (64u << 20)
#define NEW_FILE   SZ_JOURNAL_FILE ".new"

static const char file_magic[8] = {'S', 'Z', 'F', 'G', 'A', 'L', 'O', 'G'};

struct sz_journal {
    const struct sz_disk *disk;
    char *path; /* of the directory, for messages */
    int dir, lock, fd;
    uint64_t size; /* good bytes of the log */
    bool broken;
    int fresh; /* the one being written; -1: none */
    uint64_t fresh_size;
    struct sz_buf pending; /* of the fresh one */
};

static int rename_at(int dir, const char *from, const char *to)
{
    return renameat(dir, from, dir, to);
}

const struct sz_disk sz_disk_real = {write, fdatasync, ftruncate, rename_at};

/* ---- framing ---- */

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static void put64(uint8_t *p, uint64_t v)
{
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t get32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* Bound to the offset: a block of the disk that turns up elsewhere is no record. */
static uint64_t check_of(struct sz_slice bytes, uint64_t offset)
{
    struct sz_key128 key = {{'s', 't', 'o', 'r', 'e'}};
    put64(key.b + 8, offset);
    return sz_hash64(&key, bytes);
}

static void frame(uint8_t head[HEAD], struct sz_slice payload, uint64_t offset)
{
    put32(head, MAGIC);
    put32(head + 4, (uint32_t)payload.n);
    put64(head + 8, check_of(sz_slice(head, 8), offset));
    put64(head + 16, check_of(payload, offset));
}

static int write_all(struct sz_journal *j, int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t wrote = j->disk->write(fd, p, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? -errno : -EIO;
        p += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

/* ---- replay ---- */

static bool all_zero(const uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

enum { WHOLE, TORN, BAD };

/*
 * The record at `at`.  TORN: the file ends within it.  Its length is believed only with the head's own check, so that a
 * flipped bit in the length cannot make whole records behind it look like a torn end.
 */
static int look(const uint8_t *file, uint64_t size, uint64_t at, struct sz_slice *payload, const char **why)
{
    const uint8_t *head = file + at;
    *why = "a record's head is damaged";
    if (all_zero(head, size - at) || size - at < HEAD)
        return TORN;
    if (get32(head) != MAGIC || get64(head + 8) != check_of(sz_slice(head, 8), at))
        return BAD;
    uint32_t n = get32(head + 4);
    if (n > size - at - HEAD)
        return TORN;
    *payload = sz_slice(head + HEAD, n);
    *why = "a record's content is damaged";
    return get64(head + 16) == check_of(*payload, at) ? WHOLE : BAD;
}

static int replay(struct sz_journal *j, const uint8_t *file, uint64_t size, sz_replay_fn *fn, void *arg,
                  struct sz_text *why)
{
    uint64_t at = FILE_HEAD;
    while (at < size) {
        struct sz_slice payload;
        struct sz_text detail = {""};
        const char *wrong;
        int kind = look(file, size, at, &payload, &wrong);
        if (kind == TORN)
            break;
        if (kind == WHOLE && fn(arg, payload, &detail) == 0) {
            at += HEAD + payload.n;
            continue;
        }
        sz_text_set(why, "%s/" SZ_JOURNAL_FILE ": offset %llu: %s; restore the file from a backup", j->path,
                    (unsigned long long)at, kind == WHOLE ? detail.s : wrong);
        return -EINVAL;
    }
    j->size = at;
    return 0;
}

static int check_file_head(const struct sz_journal *j, const uint8_t *file, uint64_t size, struct sz_text *why)
{
    if (size < FILE_HEAD || !sz_eq(sz_slice(file, sizeof(file_magic)), sz_slice(file_magic, sizeof(file_magic)))) {
        sz_text_set(why, "%s/" SZ_JOURNAL_FILE ": offset 0: this is no log of stores", j->path);
        return -EINVAL;
    }
    uint32_t version = get32(file + 8);
    if (version == SZ_JOURNAL_VERSION)
        return 0;
    sz_text_set(why,
                "%s/" SZ_JOURNAL_FILE ": offset 8: version %u of the format, and this program knows %d; run the one "
                "that wrote it",
                j->path, version, SZ_JOURNAL_VERSION);
    return -EINVAL;
}

/* What the file ends with in the middle of a record, into a file of its own, before it is cut off. */
static int move_torn(struct sz_journal *j, const uint8_t *file, uint64_t size, struct sz_text *moved)
{
    char name[64];
    snprintf(name, sizeof(name), SZ_JOURNAL_FILE ".torn-%llu", (unsigned long long)j->size);
    int fd = openat(j->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = write_all(j, fd, file + j->size, size - j->size);
    if (rc == 0 && j->disk->sync(fd) != 0)
        rc = -errno;
    close(fd);
    if (rc == 0 && (j->disk->truncate(j->fd, (off_t)j->size) != 0 || j->disk->sync(j->fd) != 0))
        rc = -errno;
    if (rc == 0)
        sz_text_set(moved,
                    "%s/" SZ_JOURNAL_FILE ": its last record was incomplete: %llu bytes from offset %llu, which nobody "
                    "was told are stored, are now in %s",
                    j->path, (unsigned long long)(size - j->size), (unsigned long long)j->size, name);
    return rc;
}

static int read_log(struct sz_journal *j, sz_replay_fn *fn, void *arg, struct sz_text *moved, struct sz_text *why)
{
    struct stat st;
    if (fstat(j->fd, &st) != 0) {
        sz_text_set(why, "%s/" SZ_JOURNAL_FILE ": %s", j->path, strerror(errno));
        return -errno;
    }
    uint64_t size = (uint64_t)st.st_size;
    void *file = size == 0 ? NULL : mmap(NULL, size, PROT_READ, MAP_PRIVATE, j->fd, 0);
    if (file == MAP_FAILED) {
        sz_text_set(why, "%s/" SZ_JOURNAL_FILE ": %s", j->path, strerror(errno));
        return -errno;
    }
    int rc = check_file_head(j, file, size, why);
    if (rc == 0)
        rc = replay(j, file, size, fn, arg, why);
    if (rc == 0 && j->size < size && (rc = move_torn(j, file, size, moved)) != 0)
        sz_text_set(why, "%s/" SZ_JOURNAL_FILE ": its incomplete last record cannot be moved aside: %s", j->path,
                    strerror(-rc));
    if (file != NULL)
        munmap(file, size);
    return rc;
}

/* ---- the folder ---- */

static int open_dir(struct sz_journal *j, struct sz_text *why)
{
    if (mkdir(j->path, 0700) != 0 && errno != EEXIST) {
        sz_text_set(why, "%s: %s", j->path, strerror(errno));
        return -errno;
    }
    j->dir = open(j->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    j->lock = j->dir < 0 ? -1 : openat(j->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (j->lock < 0) {
        sz_text_set(why, "%s: %s", j->path, strerror(errno));
        return -errno;
    }
    if (flock(j->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    sz_text_set(why, "%s: another process has these stores open; stop it, or give this one a state_dir of its own",
                j->path);
    return -EBUSY;
}

/* The folder's own entry for the file is what a rename changes. */
static int sync_dir(struct sz_journal *j)
{
    return fsync(j->dir) == 0 ? 0 : -errno;
}

static int make_log(struct sz_journal *j, struct sz_text *why)
{
    int rc = sz_journal_rewrite_begin(j);
    if (rc == 0)
        rc = sz_journal_rewrite_end(j);
    if (rc != 0)
        sz_text_set(why, "%s: a new log cannot be made: %s", j->path, strerror(-rc));
    return rc;
}

struct sz_journal *sz_journal_open(const char *dir, const struct sz_disk *disk, sz_replay_fn *fn, void *arg,
                                   struct sz_text *moved, struct sz_text *why)
{
    struct sz_journal *j = sz_xcalloc(1, sizeof(*j));
    j->disk = disk;
    j->path = sz_xstrdup(dir);
    j->dir = j->lock = j->fd = j->fresh = -1;
    moved->s[0] = '\0';
    int rc = open_dir(j, why);
    if (rc == 0) {
        (void)unlinkat(j->dir, NEW_FILE, 0); /* one that was never finished */
        j->fd = openat(j->dir, SZ_JOURNAL_FILE, O_RDWR | O_APPEND | O_CLOEXEC);
        if (j->fd >= 0)
            rc = read_log(j, fn, arg, moved, why);
        else if (errno == ENOENT)
            rc = make_log(j, why);
        else
            sz_text_set(why, "%s/" SZ_JOURNAL_FILE ": %s", dir, strerror(errno)), rc = -EIO;
    }
    if (rc == 0)
        return j;
    sz_journal_free(&j);
    return NULL;
}

void sz_journal_free(struct sz_journal **jp)
{
    struct sz_journal *j = *jp;
    *jp = NULL;
    if (j == NULL)
        return;
    const int fds[] = {j->fresh, j->fd, j->lock, j->dir};
    for (size_t i = 0; i < SZ_COUNT(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    sz_buf_fini(&j->pending);
    free(j->path);
    free(j);
}

/* ---- appending ---- */

/* Half a record in the middle would be damage: when it cannot be taken back, the log ends here. */
static int take_back(struct sz_journal *j, int rc)
{
    if (j->disk->truncate(j->fd, (off_t)j->size) != 0)
        j->broken = true;
    return rc;
}

int sz_journal_append(struct sz_journal *j, struct sz_slice payload)
{
    uint8_t head[HEAD];
    struct sz_buf record = {0};
    if (j->broken)
        return -EIO;
    if (payload.n > RECORD_MAX)
        return -E2BIG;
    frame(head, payload, j->size);
    sz_buf_add(&record, head, HEAD);
    sz_buf_adds(&record, payload);
    int rc = write_all(j, j->fd, record.p, record.n);
    if (rc == 0)
        j->size += record.n;
    else
        rc = take_back(j, rc);
    sz_buf_fini(&record);
    return rc;
}

/* After a sync that failed the kernel may have dropped what it could not write: a later one would say nothing of it. */
int sz_journal_sync(struct sz_journal *j)
{
    if (j->broken)
        return -EIO;
    if (j->disk->sync(j->fd) == 0)
        return 0;
    j->broken = true;
    return -errno;
}

bool sz_journal_broken(const struct sz_journal *j)
{
    return j->broken;
}

uint64_t sz_journal_size(const struct sz_journal *j)
{
    return j->size;
}

/* ---- writing anew ---- */

static int give_up(struct sz_journal *j, int rc)
{
    if (j->fresh >= 0)
        close(j->fresh);
    j->fresh = -1;
    j->pending.n = 0;
    (void)unlinkat(j->dir, NEW_FILE, 0);
    return rc;
}

static int flush(struct sz_journal *j)
{
    int rc = write_all(j, j->fresh, j->pending.p, j->pending.n);
    j->fresh_size += j->pending.n;
    j->pending.n = 0;
    return rc;
}

int sz_journal_rewrite_begin(struct sz_journal *j)
{
    uint8_t head[FILE_HEAD] = {0};
    if (j->broken)
        return -EIO;
    j->fresh = openat(j->dir, NEW_FILE, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (j->fresh < 0)
        return -errno;
    j->fresh_size = 0;
    memcpy(head, file_magic, sizeof(file_magic));
    put32(head + 8, SZ_JOURNAL_VERSION);
    j->pending.n = 0;
    sz_buf_add(&j->pending, head, FILE_HEAD);
    return 0;
}

int sz_journal_rewrite_add(struct sz_journal *j, struct sz_slice payload)
{
    uint8_t head[HEAD];
    if (payload.n > RECORD_MAX)
        return give_up(j, -E2BIG);
    frame(head, payload, j->fresh_size + j->pending.n);
    sz_buf_add(&j->pending, head, HEAD);
    sz_buf_adds(&j->pending, payload);
    int rc = j->pending.n < 1 << 16 ? 0 : flush(j);
    return rc == 0 ? 0 : give_up(j, rc);
}

int sz_journal_rewrite_end(struct sz_journal *j)
{
    int rc = flush(j);
    if (rc == 0 && j->disk->sync(j->fresh) != 0)
        rc = -errno;
    if (rc == 0 && j->disk->rename(j->dir, NEW_FILE, SZ_JOURNAL_FILE) != 0)
        rc = -errno;
    if (rc != 0)
        return give_up(j, rc);
    if (j->fd >= 0)
        close(j->fd);
    j->fd = j->fresh;
    j->size = j->fresh_size;
    j->fresh = -1;
    rc = sync_dir(j);
    if (rc != 0)
        j->broken = true; /* which of the two a restart finds is not known */
    return rc;
}
