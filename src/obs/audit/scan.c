/*
 * Both streams have a line in hand; the one that comes first in the order asked for is looked at, and its stream moves
 * on. So there is one position for both, and a cursor is a number.
 */
#include "obs/audit/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void sz_audit_scan_init(struct sz_audit_scan *scan, const struct sz_audit_view *view,
                        const struct sz_audit_query *query)
{
    *scan = (struct sz_audit_scan){.view = view, .query = query};
    scan->from = query->has_cursor ? query->from : query->ascending ? 1 : view->committed;
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        struct sz_audit_track *track = &scan->track[s];
        track->lines.buffer = sz_xmalloc(SZ_AUDIT_LINES_BUFFER);
        track->done = view->list->n[s] == 0;
        track->at = query->ascending || track->done ? 0 : view->list->n[s] - 1;
    }
}

void sz_audit_scan_fini(struct sz_audit_scan *scan)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++)
        free(scan->track[s].lines.buffer);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static unsigned long line_number(int fd, uint64_t at)
{
    char bytes[16384];
    unsigned long number = 1;
    for (uint64_t from = 0; from < at;) {
        size_t n = at - from < sizeof(bytes) ? (size_t)(at - from) : sizeof(bytes);
        ssize_t got = pread(fd, bytes, n, (off_t)from);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++)
            number += bytes[i] == '\n';
        from += (uint64_t)got;
    }
    return number;
}

static int damaged(struct sz_audit_scan *scan, unsigned s, const char *what)
{
    const struct sz_audit_track *track = &scan->track[s];
    const struct sz_audit_segment *segment = scan->view->list->v[s][track->at];
    sz_text_set(&scan->damage, "%s:%lu: %s", segment->name, line_number(segment->fd, track->line.at), what);
    return -EBADMSG;
}

static int check_link(struct sz_audit_scan *scan, unsigned s)
{
    struct sz_audit_track *track = &scan->track[s];
    struct sz_slice text = track->line.text, time;
    struct sz_audit_hash prev;
    uint64_t seq;
    if (!track->line.whole || !sz_audit_line_head(text, &seq, &time) || !sz_audit_line_prev(text, &prev))
        return damaged(scan, s, "this is no record");
    struct sz_audit_hash own = sz_audit_line_hash(text);
    bool up = scan->query->ascending;
    /* Downwards the record after it vouches for this one; upwards only its own hash does before it is told. */
    bool good = (track->linked && !up) || sz_audit_line_whole(text);
    if (good && track->linked)
        good = sz_audit_hash_eq(&track->link, up ? &prev : &own);
    if (!good)
        return damaged(scan, s, "the chain is broken here");
    track->link = up ? own : prev;
    track->linked = true;
    track->seq = seq;
    return 0;
}

/* ---- one stream ----------------------------------------------------------------------------------------------------
 */

/* The number of the first record behind `at`, or UINT64_MAX; *start: where it begins. */
static uint64_t probe(int fd, uint64_t at, uint64_t size, uint64_t *start)
{
    char bytes[2 * SZ_AUDIT_LINE_MAX];
    struct sz_slice time;
    uint64_t seq = UINT64_MAX;
    size_t n = size - at < sizeof(bytes) ? (size_t)(size - at) : sizeof(bytes);
    ssize_t got = pread(fd, bytes, n, (off_t)at);
    const char *p = got <= 0 ? NULL : at == 0 ? bytes : memchr(bytes, '\n', (size_t)got);
    p = p != NULL && at > 0 ? p + 1 : p;
    *start = size;
    if (p == NULL || p == bytes + got)
        return UINT64_MAX;
    *start = at + (uint64_t)(p - bytes);
    return sz_audit_line_head(sz_slice(p, (size_t)(bytes + got - p)), &seq, &time) ? seq : UINT64_MAX;
}

/* Offset of the first record whose number is at least `from`: records are in order, so halving finds it. */
static uint64_t find_from(int fd, uint64_t size, uint64_t from)
{
    uint64_t low = 0, high = size, start;
    if (size == 0 || probe(fd, 0, size, &start) >= from)
        return 0;
    while (high - low > 1) { /* the record that begins behind low is below `from`; the one behind high is not */
        uint64_t middle = low + (high - low) / 2;
        if (probe(fd, middle, size, &start) >= from)
            high = middle;
        else
            low = middle;
    }
    (void)probe(fd, high, size, &start);
    return high >= size ? size : start;
}

static bool is_on_side(const struct sz_audit_line *line, uint64_t from, bool above)
{
    struct sz_slice time;
    uint64_t seq;
    return line->whole && sz_audit_line_whole(line->text) && sz_audit_line_head(line->text, &seq, &time) &&
           (seq >= from) == above;
}

/* A number that was changed must not lead the search astray: both neighbours of the place found are whole and in order.
 */
static int seek(struct sz_audit_scan *scan, unsigned s, uint64_t size, uint64_t from, uint64_t *at)
{
    struct sz_audit_track *track = &scan->track[s];
    struct sz_audit_lines lines = {
        .fd = scan->view->list->v[s][track->at]->fd, .end = size, .buffer = track->lines.buffer};
    *at = find_from(lines.fd, size, from);
    lines.begin = *at;
    if (*at < size && (sz_audit_lines_next(&lines, &track->line) != 1 || !is_on_side(&track->line, from, true)))
        return damaged(scan, s, "the chain is broken here");
    lines = (struct sz_audit_lines){.fd = lines.fd, .end = *at, .buffer = lines.buffer};
    if (*at > 0 && (sz_audit_lines_previous(&lines, &track->line) != 1 || !is_on_side(&track->line, from, false)))
        return damaged(scan, s, "the chain is broken here");
    return 0;
}

static bool skips(const struct sz_audit_scan *scan, const struct sz_audit_segment *segment)
{
    const struct sz_audit_index *index = atomic_load_explicit(&segment->index, memory_order_acquire);
    return index != NULL && !sz_audit_query_may_match(scan->query, index);
}

/* Opens the segment at hand where the scan begins.  1; 0: nothing of it is wanted; -EBADMSG. */
static int open_segment(struct sz_audit_scan *scan, unsigned s)
{
    struct sz_audit_track *track = &scan->track[s];
    const struct sz_audit_segment *segment = scan->view->list->v[s][track->at];
    const struct sz_audit_segment *next =
        track->at + 1 < scan->view->list->n[s] ? scan->view->list->v[s][track->at + 1] : NULL;
    uint64_t size = scan->view->sizes[s][track->at], last = atomic_load(&segment->last);
    bool up = scan->query->ascending;
    bool outside = up ? next != NULL && next->first <= scan->from : segment->first > scan->from;
    int rc = 0;
    if (outside || size == 0 || skips(scan, segment)) {
        scan->skipped += outside ? 0 : size;
        track->linked = false;
        return 0;
    }
    uint64_t begin = 0, end = size;
    if (up && segment->first < scan->from)
        rc = seek(scan, s, size, scan->from, &begin);
    else if (!up && (last < segment->first || last > scan->from) && scan->from < scan->view->committed)
        rc = seek(scan, s, size, scan->from + 1, &end);
    track->lines =
        (struct sz_audit_lines){.fd = segment->fd, .begin = begin, .end = end, .buffer = track->lines.buffer};
    track->linked = track->linked && begin == 0 && end == size;
    track->open = true;
    return rc != 0 ? rc : 1;
}

static void close_segment(struct sz_audit_scan *scan, unsigned s)
{
    struct sz_audit_track *track = &scan->track[s];
    track->open = false;
    if (scan->query->ascending ? track->at + 1 < scan->view->list->n[s] : track->at > 0)
        track->at += scan->query->ascending ? 1 : (size_t)-1;
    else
        track->done = true;
}

/* The stream's next line in hand, unless there is none. */
static int advance(struct sz_audit_scan *scan, unsigned s)
{
    struct sz_audit_track *track = &scan->track[s];
    bool up = scan->query->ascending;
    while (!track->done && !track->has) {
        int rc = track->open ? 1 : open_segment(scan, s);
        if (rc < 0)
            return rc;
        if (rc == 0) {
            close_segment(scan, s);
            continue;
        }
        rc = up ? sz_audit_lines_next(&track->lines, &track->line)
                : sz_audit_lines_previous(&track->lines, &track->line);
        if (rc == -ENODATA)
            return damaged(scan, s, "the file is shorter than it was");
        if (rc < 0)
            return rc;
        if (rc == 0) {
            close_segment(scan, s);
            continue;
        }
        rc = check_link(scan, s);
        if (rc != 0)
            return rc;
        scan->scanned += track->line.text.n + 1;
        track->has = track->seq <= scan->view->committed;
        track->done = up && !track->has;
    }
    return 0;
}

/* ---- both ----------------------------------------------------------------------------------------------------------
 */

static struct sz_audit_track *first_of(struct sz_audit_scan *scan)
{
    struct sz_audit_track *a = &scan->track[0], *b = &scan->track[1];
    if (!a->has || !b->has)
        return a->has ? a : b->has ? b : NULL;
    return (a->seq < b->seq) == scan->query->ascending ? a : b;
}

int sz_audit_scan_next(struct sz_audit_scan *scan, uint64_t most, struct sz_slice *line)
{
    for (;;) {
        for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
            int rc = advance(scan, s);
            if (rc != 0)
                return rc;
        }
        struct sz_audit_track *track = first_of(scan);
        if (track == NULL)
            return 0;
        if (scan->scanned >= most)
            return SZ_AUDIT_SPENT;
        track->has = false;
        scan->from = scan->query->ascending ? track->seq + 1 : track->seq - 1;
        if (sz_audit_query_matches(scan->query, track->line.text)) {
            *line = track->line.text;
            return 1;
        }
    }
}

uint64_t sz_audit_scan_position(const struct sz_audit_scan *scan)
{
    return scan->from;
}
