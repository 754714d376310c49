/* Snapshots: of the shelf of a running journal, or of a directory as it lies there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "obs/audit/scan.h"

static void take_sizes(struct sz_audit_view *view)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        size_t n = view->list->n[s];
        view->sizes[s] = sz_xcalloc(n + 1, sizeof(uint64_t));
        for (size_t i = 0; i < n; i++)
            view->sizes[s][i] = atomic_load_explicit(&view->list->v[s][i]->size, memory_order_acquire);
    }
}

void sz_audit_view_take(struct sz_audit_view *view, struct sz_audit_shelf *shelf)
{
    *view = (struct sz_audit_view){0};
    view->list = sz_audit_shelf_get(shelf, &view->committed);
    if (view->list == NULL) {
        struct sz_audit_segment *const *const none[SZ_AUDIT_STREAMS] = {NULL, NULL};
        const size_t zero[SZ_AUDIT_STREAMS] = {0, 0};
        view->list = sz_audit_list_new(none, zero);
    }
    take_sizes(view);
}

void sz_audit_view_release(struct sz_audit_view *view)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++)
        free(view->sizes[s]);
    sz_audit_list_unref(view->list);
    *view = (struct sz_audit_view){0};
}

/* ---- a directory ------------------------------------------------------------------------------------------------ */

struct found {
    struct sz_audit_segment **v[SZ_AUDIT_STREAMS];
    size_t n[SZ_AUDIT_STREAMS];
};

static int compare(const void *a, const void *b)
{
    uint64_t x = (*(struct sz_audit_segment *const *)a)->first, y = (*(struct sz_audit_segment *const *)b)->first;
    return x < y ? -1 : x > y;
}

/* One that is gone by now was removed by retention. */
static int add_segment(struct found *found, int dir, const char *name, enum sz_audit_stream stream, uint64_t first)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -EINVAL;
    }
    struct sz_audit_segment *segment = sz_audit_segment_new(fd, stream, first);
    atomic_store(&segment->size, (uint64_t)st.st_size);
    found->v[stream] = sz_xrealloc(found->v[stream], (found->n[stream] + 1) * sizeof(struct sz_audit_segment *));
    found->v[stream][found->n[stream]++] = segment;
    return 0;
}

/* Behind the last newline of a stream's last segment there may be a record that is being written. */
static void cut_unfinished(struct sz_audit_segment *segment)
{
    char bytes[SZ_AUDIT_LINE_MAX];
    uint64_t size = atomic_load(&segment->size), from = size > sizeof(bytes) ? size - sizeof(bytes) : 0;
    ssize_t n = pread(segment->fd, bytes, (size_t)(size - from), (off_t)from);
    const char *newline = n <= 0 ? NULL : memrchr(bytes, '\n', (size_t)n);
    if (newline != NULL)
        atomic_store(&segment->size, from + (uint64_t)(newline - bytes) + 1);
    else if (from == 0)
        atomic_store(&segment->size, 0);
}

static int read_directory(struct found *found, const char *path, enum sz_audit_stream wanted)
{
    DIR *d = opendir(path);
    int rc = 0;
    if (d == NULL)
        return -errno;
    for (const struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        enum sz_audit_stream stream;
        uint64_t first;
        if (sz_audit_segment_parse(e->d_name, &stream, &first) && stream == wanted)
            rc = add_segment(found, dirfd(d), e->d_name, stream, first);
    }
    closedir(d);
    if (found->n[wanted] == 0)
        return rc;
    qsort(found->v[wanted], found->n[wanted], sizeof(struct sz_audit_segment *), compare);
    cut_unfinished(found->v[wanted][found->n[wanted] - 1]);
    return rc;
}

/* ---- what a gateway is writing just now ---------------------------------------------------------------------------
 */

/* Lines of a stream's last segment from its end; false: none, or no record. */
static bool previous(struct sz_audit_lines *lines, uint64_t *seq)
{
    struct sz_audit_line line;
    struct sz_slice time;
    return sz_audit_lines_previous(lines, &line) == 1 && line.whole && sz_audit_line_head(line.text, seq, &time);
}

static struct sz_audit_lines end_of(const struct found *found, enum sz_audit_stream s, char *buffer)
{
    const struct sz_audit_segment *last = found->n[s] == 0 ? NULL : found->v[s][found->n[s] - 1];
    return (struct sz_audit_lines){
        .fd = last == NULL ? -1 : last->fd, .end = last == NULL ? 0 : atomic_load(&last->size), .buffer = buffer};
}

/*
 * A group is written to 'denied' first.  Records of it may be there whose earlier neighbours in 'audit' are not yet:
 * whoever reads on from behind them would never see those.  Numbers of what is committed have no holes, and a group has
 * an end, so the first hole near the end is where to stop.
 */
static uint64_t committed_of(const struct found *found)
{
    enum { NEAR = 4096 /* more than a group holds */ };
    char *buffer = sz_xmalloc(SZ_AUDIT_LINES_BUFFER);
    struct sz_audit_lines lines = end_of(found, SZ_AUDIT_MAIN, buffer);
    uint64_t evidence = 0, seq = 0, expected, bound = UINT64_MAX;
    bool good = found->n[SZ_AUDIT_MAIN] == 0 || previous(&lines, &evidence);
    lines = end_of(found, SZ_AUDIT_DENIED, buffer);
    if (good && previous(&lines, &seq) && seq > evidence) {
        bound = seq;
        expected = seq;
        for (int i = 0; i < NEAR && seq > evidence; i++) {
            if (seq != expected)
                bound = seq;
            expected = seq - 1;
            if (!previous(&lines, &seq))
                break;
        }
        if (seq <= evidence && expected != evidence)
            bound = evidence;
    }
    free(buffer);
    return bound;
}

int sz_audit_view_open(struct sz_audit_view *view, const char *path, struct sz_text *why)
{
    struct found found = {0};
    *view = (struct sz_audit_view){0};
    /* 'audit' first: what it holds then has its neighbours in 'denied'. */
    int rc = read_directory(&found, path, SZ_AUDIT_MAIN);
    if (rc == 0)
        rc = read_directory(&found, path, SZ_AUDIT_DENIED);
    view->committed = committed_of(&found);
    struct sz_audit_segment *const *const v[SZ_AUDIT_STREAMS] = {found.v[0], found.v[1]};
    view->list = sz_audit_list_new(v, found.n);
    take_sizes(view);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        for (size_t i = 0; i < found.n[s]; i++)
            sz_audit_segment_unref(found.v[s][i]);
        free(found.v[s]);
    }
    if (rc == 0)
        return 0;
    sz_text_set(why, "cannot read %s: %s", path, strerror(-rc));
    sz_audit_view_release(view);
    return rc;
}
