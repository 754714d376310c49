/*
 * Opening a directory: it is ours and nobody else's, nobody else writes into it, and its ends are whole.
 *
 * What a crash may leave is an unfinished end of the last segment: bytes behind the last whole record.  They are copied
 * to NAME.torn, the segment is cut back, and a record says so.  Bad bytes with good records behind them are something
 * else: nothing is cut, the segment stays as it is, and the journal goes on in a new one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "obs/audit/lines.h"
#include "obs/audit/store.h"
#include "subzero/log.h"

/* ---- the directory ------------------------------------------------------------------------------------------ */

static int is_ours(int fd, const char *what, const char *name, mode_t kind, struct sz_text *why)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if ((st.st_mode & S_IFMT) != kind)
        sz_text_set(why, "%s %s is not %s", what, name, kind == S_IFDIR ? "a directory" : "a regular file");
    else if (st.st_uid != geteuid())
        sz_text_set(why, "%s %s belongs to user %u, not to the one the gateway runs as (%u)", what, name, st.st_uid,
                    geteuid());
    else if ((st.st_mode & 077) != 0)
        sz_text_set(why, "%s %s can be opened by others (mode %03o); chmod it to %s", what, name, st.st_mode & 0777,
                    kind == S_IFDIR ? "0700" : "0600");
    else
        return 0;
    return -EPERM;
}

static int open_directory(struct sz_audit_store *store, int *out, struct sz_text *why)
{
    const char *path = store->conf->path.p;
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        int rc = -errno;
        sz_text_set(why, "cannot make the directory %s: %s", path, strerror(-rc));
        return rc;
    }
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        sz_text_set(why, "%s is a symbolic link; name the directory itself", path);
        return -ELOOP;
    }
    int fd = store->io->open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) {
        int rc = -errno;
        sz_text_set(why, "cannot open %s: %s", path, strerror(-rc));
        return rc;
    }
    int rc = is_ours(fd, "the directory", path, S_IFDIR, why);
    if (rc != 0)
        close(fd);
    else
        *out = fd;
    return rc;
}

static void say_holder(int fd, const char *path, struct sz_text *why)
{
    char holder[64] = "";
    ssize_t n = pread(fd, holder, sizeof(holder) - 1, 0);
    struct sz_slice told = sz_slice(holder, n > 0 ? (size_t)n : 0);
    ptrdiff_t end = sz_find_byte(told, '\n');
    sz_text_set(why, "%s is written by another gateway (process %.*s); one writer per directory", path,
                SZ_FMT(end > 0 ? sz_sub(told, 0, (size_t)end) : SZ_S("unknown")));
}

static int take_lock(struct sz_audit_store *store, int dir, int *out, struct sz_text *why)
{
    char text[32];
    int fd = store->io->open(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : is_ours(fd, "the file", "lock", S_IFREG, why);
    if (rc == 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        rc = -errno;
        if (rc == -EWOULDBLOCK)
            say_holder(fd, store->conf->path.p, why);
    }
    if (rc != 0) {
        if (why->s[0] == '\0')
            sz_text_set(why, "cannot lock %s: %s", store->conf->path.p, strerror(-rc));
        if (fd >= 0)
            close(fd);
        return rc;
    }
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    /* For people alone: a full disk must not keep the gateway down. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
        sz_log(SZ_LOG_WARN, "audit", "the lock does not say who holds it: %s", strerror(errno));
    *out = fd;
    return 0;
}

/* The directory and its lock; an old lock is kept while it is the same directory. */
static int take_directory(struct sz_audit_store *store, struct sz_text *why)
{
    struct stat st;
    int dir = -1, lock = -1;
    int rc = open_directory(store, &dir, why);
    if (rc != 0)
        return rc;
    if (fstat(dir, &st) != 0) {
        rc = -errno;
        close(dir);
        return rc;
    }
    bool same = store->lock >= 0 && store->dev == (uint64_t)st.st_dev && store->ino == (uint64_t)st.st_ino;
    if (!same)
        rc = take_lock(store, dir, &lock, why);
    if (rc != 0) {
        close(dir);
        return rc;
    }
    if (store->dir >= 0)
        close(store->dir);
    if (!same) {
        if (store->lock >= 0)
            close(store->lock);
        store->lock = lock;
    }
    store->dir = dir;
    store->dev = (uint64_t)st.st_dev;
    store->ino = (uint64_t)st.st_ino;
    return 0;
}

/* ---- the segments ---------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    uint64_t x = (*(struct sz_audit_segment *const *)a)->first, y = (*(struct sz_audit_segment *const *)b)->first;
    return x < y ? -1 : x > y;
}

static int open_segment(struct sz_audit_store *store, const char *name, enum sz_audit_stream stream, uint64_t first,
                        struct sz_text *why)
{
    struct stat st;
    int fd = store->io->open(store->dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) {
        int rc = -errno;
        sz_text_set(why, rc == -ELOOP ? "%s/%s is a symbolic link: %s" : "cannot open %s/%s: %s", store->conf->path.p,
                    name, strerror(-rc));
        return rc;
    }
    int rc = is_ours(fd, "the segment", name, S_IFREG, why);
    if (rc == 0 && fstat(fd, &st) != 0)
        rc = -errno;
    if (rc != 0) {
        close(fd);
        return rc;
    }
    struct sz_audit_segment *segment = sz_audit_segment_new(fd, stream, first);
    atomic_store(&segment->size, (uint64_t)st.st_size);
    atomic_store(&segment->newest, (int64_t)st.st_mtime * 1000000);
    sz_audit_tape_push(&store->tape[stream], segment);
    return 0;
}

static int find_segments(struct sz_audit_store *store, struct sz_text *why)
{
    int copy = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (d == NULL) {
        rc = -errno;
        if (copy >= 0)
            close(copy);
        return rc;
    }
    for (const struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        enum sz_audit_stream stream;
        uint64_t first;
        if (sz_audit_segment_parse(e->d_name, &stream, &first))
            rc = open_segment(store, e->d_name, stream, first, why);
    }
    closedir(d);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        if (store->tape[s].n > 1)
            qsort(store->tape[s].v, store->tape[s].n, sizeof(struct sz_audit_segment *), compare);
    }
    return rc;
}

/* Number and time of a closed segment's last record. */
static void look_at_end(struct sz_audit_segment *segment, char *buffer)
{
    struct sz_audit_lines lines = {.fd = segment->fd, .end = atomic_load(&segment->size), .buffer = buffer};
    struct sz_audit_line line;
    struct sz_slice time;
    uint64_t seq;
    int64_t us;
    if (sz_audit_lines_previous(&lines, &line) != 1 || !line.whole || !sz_audit_line_head(line.text, &seq, &time))
        return;
    atomic_store(&segment->last, seq);
    if (sz_audit_time_parse(time, &us))
        atomic_store(&segment->newest, us);
}

/* ---- the end of a stream ----------------------------------------------------------------------------------------- */

struct end { /* what a walk through the last segment found */
    struct sz_audit_hash head;
    uint64_t good; /* bytes up to the last good record in an unbroken run from the start */
    uint64_t seq;  /* highest of a good record */
    int64_t newest;
    unsigned long line; /* of the first bad one */
    bool broken, good_behind;
};

static int walk(const struct sz_audit_segment *segment, struct sz_audit_index *index, char *buffer, struct end *end)
{
    struct sz_audit_lines lines = {.fd = segment->fd, .end = atomic_load(&segment->size), .buffer = buffer};
    struct sz_audit_line line;
    struct sz_audit_hash prev;
    unsigned long number = 0;
    int rc;
    while ((rc = sz_audit_lines_next(&lines, &line)) == 1) {
        struct sz_slice time;
        uint64_t seq;
        bool good = line.whole && sz_audit_line_whole(line.text) && sz_audit_line_head(line.text, &seq, &time);
        number++;
        bool follows =
            good && (number == 1 || (sz_audit_line_prev(line.text, &prev) && sz_audit_hash_eq(&prev, &end->head)));
        if (!end->broken && !follows) {
            end->broken = true;
            end->line = number;
        }
        if (!good)
            continue;
        end->good_behind = end->broken;
        end->head = sz_audit_line_hash(line.text);
        end->seq = seq > end->seq ? seq : end->seq;
        (void)sz_audit_time_parse(time, &end->newest);
        if (!end->broken)
            end->good = line.at + line.text.n + 1;
        sz_audit_index_add(index, line.text);
    }
    return rc;
}

static void note(struct sz_audit_store *store, enum sz_audit_kind kind, const char *object, const char *fmt, ...)
    SZ_PRINTF(4, 5);
static void note(struct sz_audit_store *store, enum sz_audit_kind kind, const char *object, const char *fmt, ...)
{
    if (store->findings_n == SZ_COUNT(store->findings))
        return;
    struct sz_audit_finding *f = &store->findings[store->findings_n++];
    va_list args;
    f->kind = kind;
    sz_text_set(&f->object, "%s", object);
    va_start(args, fmt);
    vsnprintf(f->detail.s, sizeof(f->detail.s), fmt, args);
    va_end(args);
}

static int create_torn(struct sz_audit_store *store, const struct sz_audit_segment *segment, char name[64])
{
    for (unsigned i = 0; i < 1000; i++) {
        if (i == 0)
            snprintf(name, 64, "%s.torn", segment->name);
        else
            snprintf(name, 64, "%s.torn.%u", segment->name, i);
        int fd = store->io->open(store->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
    }
    return -EEXIST;
}

static int copy_tail(struct sz_audit_store *store, const struct sz_audit_segment *segment, int to, uint64_t from)
{
    char bytes[16384];
    for (off_t at = 0;;) {
        ssize_t n = pread(segment->fd, bytes, sizeof(bytes), (off_t)from + at);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (store->io->write(to, bytes, (size_t)n, at) != n)
            return errno != 0 ? -errno : -EIO;
        at += n;
    }
}

/* The bytes behind the last whole record go into a file of their own, on disk before they are cut off. */
static int move_torn(struct sz_audit_store *store, struct sz_audit_segment *segment, uint64_t good)
{
    char name[64];
    uint64_t torn = atomic_load(&segment->size) - good;
    int fd = create_torn(store, segment, name);
    if (fd < 0)
        return fd;
    int rc = copy_tail(store, segment, fd, good);
    if (rc == 0 && (store->io->sync(fd) != 0 || store->io->sync_dir(store->dir) != 0 ||
                    store->io->truncate(segment->fd, (off_t)good) != 0 || store->io->sync(segment->fd) != 0))
        rc = errno != 0 ? -errno : -EIO;
    close(fd);
    if (rc != 0)
        return rc;
    atomic_store(&segment->size, good);
    note(store, SZ_AUDIT_TORN, segment->name, "%llu bytes of an unfinished end were moved to %s",
         (unsigned long long)torn, name);
    return 0;
}

/* An empty file is a segment that was begun and never written. */
static void drop_empty(struct sz_audit_store *store, struct sz_audit_tape *tape)
{
    while (tape->n > 0 && atomic_load(&sz_audit_tape_last(tape)->size) == 0) {
        struct sz_audit_segment *segment = tape->v[--tape->n];
        (void)store->io->unlink(store->dir, segment->name);
        sz_audit_segment_unref(segment);
    }
}

static int settle_end(struct sz_audit_store *store, struct sz_audit_tape *tape, struct sz_audit_segment *segment,
                      const struct end *end)
{
    int rc = 0;
    if (end->broken && end->good_behind) {
        segment->whole = false;
        tape->rotate = true;
        note(store, SZ_AUDIT_DAMAGE, segment->name, "damaged at line %lu; nothing in it was changed", end->line);
    } else if (end->good < atomic_load(&segment->size)) {
        rc = move_torn(store, segment, end->good);
    }
    tape->size = atomic_load(&segment->size);
    tape->began = (struct sz_wall){end->newest};
    if (end->seq > 0) {
        tape->head = end->head;
        atomic_store(&segment->last, end->seq);
        atomic_store(&segment->newest, end->newest);
    }
    return rc;
}

static int check_end(struct sz_audit_store *store, struct sz_audit_tape *tape, char *buffer)
{
    int rc = 0;
    drop_empty(store, tape);
    while (rc == 0 && tape->n > 0) {
        struct sz_audit_segment *segment = sz_audit_tape_last(tape);
        struct end end = {.newest = atomic_load(&segment->newest)};
        segment->index = sz_audit_index_new(store->conf->rotate_size);
        rc = walk(segment, segment->index, buffer, &end);
        if (rc == 0)
            rc = settle_end(store, tape, segment, &end);
        if (rc != 0 || tape->size > 0)
            break;
        drop_empty(store, tape); /* all of it was torn: the one before is the last */
    }
    return rc;
}

static void read_front(struct sz_audit_tape *tape, char *buffer)
{
    struct sz_audit_lines lines = {.fd = tape->v[0]->fd, .end = atomic_load(&tape->v[0]->size), .buffer = buffer};
    struct sz_audit_line line;
    if (sz_audit_lines_next(&lines, &line) == 1)
        (void)sz_audit_line_prev(line.text, &tape->front);
}

static int settle_tape(struct sz_audit_store *store, struct sz_audit_tape *tape, char *buffer)
{
    struct sz_audit_hash carried = tape->head;
    int rc = check_end(store, tape, buffer);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i + 1 < tape->n; i++)
        look_at_end(tape->v[i], buffer);
    for (size_t i = 0; i < tape->n; i++) {
        uint64_t last = atomic_load(&tape->v[i]->last);
        store->seq = last > store->seq ? last : store->seq;
        store->seq = tape->v[i]->first > store->seq && i + 1 < tape->n ? tape->v[i]->first : store->seq;
    }
    tape->front = tape->n == 0 ? carried : tape->front;
    if (tape->n > 0)
        read_front(tape, buffer);
    return 0;
}

int sz_audit_recover(struct sz_audit_store *store, struct sz_text *why)
{
    int rc = take_directory(store, why);
    if (rc == 0)
        rc = find_segments(store, why);
    char *buffer = sz_xmalloc(SZ_AUDIT_LINES_BUFFER);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS && rc == 0; s++)
        rc = settle_tape(store, &store->tape[s], buffer);
    free(buffer);
    if (rc != 0 && why->s[0] == '\0')
        sz_text_set(why, "cannot read the journal in %s: %s", store->conf->path.p, strerror(-rc));
    return rc;
}
