/* See the header.  A line that is too long is told once, and stepped over to the newline after it. */
#include "obs/audit/lines.h"

#include <errno.h>
#include <unistd.h>

/* [at, at + n) into the buffer; -ENODATA when the file ends before it should. */
static int fill(struct sz_audit_lines *l, uint64_t at, size_t n)
{
    size_t have = 0;
    while (have < n) {
        ssize_t got = pread(l->fd, l->buffer + have, n - have, (off_t)(at + have));
        if (got == 0)
            return -ENODATA;
        if (got > 0)
            have += (size_t)got;
        else if (errno != EINTR)
            return -errno;
    }
    l->at = at;
    l->have = n;
    return 0;
}

static bool holds(const struct sz_audit_lines *l, uint64_t from, uint64_t to)
{
    return l->have > 0 && from >= l->at && to <= l->at + l->have;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Behind the next newline at or after `from`; the end when there is none. */
static int skip_line(struct sz_audit_lines *l, uint64_t from, uint64_t *to)
{
    while (from < l->end) {
        size_t n = (size_t)smaller(l->end - from, SZ_AUDIT_LINES_BUFFER);
        int rc = fill(l, from, n);
        if (rc != 0)
            return rc;
        const char *newline = memchr(l->buffer, '\n', n);
        if (newline != NULL) {
            *to = from + (uint64_t)(newline - l->buffer) + 1;
            return 0;
        }
        from += n;
    }
    *to = l->end;
    return 0;
}

int sz_audit_lines_next(struct sz_audit_lines *l, struct sz_audit_line *line)
{
    if (l->begin >= l->end)
        return 0;
    uint64_t want = smaller(l->end, l->begin + SZ_AUDIT_LINE_MAX);
    if (!holds(l, l->begin, want)) {
        int rc = fill(l, l->begin, (size_t)smaller(l->end - l->begin, SZ_AUDIT_LINES_BUFFER));
        if (rc != 0)
            return rc;
    }
    const char *p = l->buffer + (l->begin - l->at);
    const char *newline = memchr(p, '\n', (size_t)(want - l->begin));
    line->at = l->begin;
    line->whole = newline != NULL;
    if (newline != NULL) {
        line->text = sz_slice(p, (size_t)(newline - p));
        l->begin += line->text.n + 1;
        return 1;
    }
    line->text = SZ_S("");
    int rc = skip_line(l, want, &l->begin);
    return rc != 0 ? rc : 1;
}

int sz_audit_lines_previous(struct sz_audit_lines *l, struct sz_audit_line *line)
{
    if (l->begin >= l->end)
        return 0;
    uint64_t from = l->end > l->begin + SZ_AUDIT_LINE_MAX ? l->end - SZ_AUDIT_LINE_MAX : l->begin;
    if (!holds(l, from, l->end)) {
        uint64_t at = l->end > l->begin + SZ_AUDIT_LINES_BUFFER ? l->end - SZ_AUDIT_LINES_BUFFER : l->begin;
        int rc = fill(l, at, (size_t)(l->end - at));
        if (rc != 0)
            return rc;
    }
    const char *p = l->buffer + (from - l->at);
    size_t n = (size_t)(l->end - from); /* last byte: this line's newline */
    const char *newline = n < 2 ? NULL : memrchr(p, '\n', n - 1);
    line->whole = p[n - 1] == '\n' && (newline != NULL || from == l->begin);
    const char *start = newline != NULL ? newline + 1 : p;
    line->at = from + (uint64_t)(start - p);
    line->text = sz_slice(start, (size_t)(p + n - start) - (p[n - 1] == '\n'));
    l->end = line->at;
    return 1;
}
