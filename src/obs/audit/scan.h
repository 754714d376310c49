/*
 * Reading: records of both streams in the order of their numbers, up or down, each checked against the chain as it is
 * read.  A snapshot is what was committed when it was taken; the writer goes on, rotates and removes meanwhile.
 */
#ifndef SZ_OBS_AUDIT_SCAN_H
#define SZ_OBS_AUDIT_SCAN_H

#include "obs/audit/lines.h"
#include "obs/audit/query.h"
#include "obs/audit/segment.h"

struct sz_audit_view {
    struct sz_audit_list *list; /* counted */
    uint64_t committed;
    uint64_t *sizes[SZ_AUDIT_STREAMS]; /* of the segments, when it was taken */
};
/* Of a running journal. */
void sz_audit_view_take(struct sz_audit_view *view, struct sz_audit_shelf *shelf);
/* Of a directory, whoever writes it.  -errno and *why. */
int sz_audit_view_open(struct sz_audit_view *view, const char *path, struct sz_text *why) SZ_MUST_CHECK;
/*
 * The side files of segments that have ended, where they are not known yet; `make`: those that are missing are made
 * again from the segment, and written.  Searches may run meanwhile.
 */
void sz_audit_view_index(const struct sz_audit_view *view, const char *path, bool make);
void sz_audit_view_release(struct sz_audit_view *view);

struct sz_audit_track { /* one stream of a scan */
    size_t at;          /* segment */
    bool open, done, linked, has;
    struct sz_audit_lines lines;
    struct sz_audit_line line; /* the one that is looked at next, when has */
    uint64_t seq;
    struct sz_audit_hash link; /* up: hash of the line before; down: `prev` of the line after */
};
struct sz_audit_scan {
    const struct sz_audit_view *view;
    const struct sz_audit_query *query;
    struct sz_audit_track track[SZ_AUDIT_STREAMS];
    uint64_t from, scanned, skipped; /* bytes */
    struct sz_text damage;           /* file and line */
};
void sz_audit_scan_init(struct sz_audit_scan *scan, const struct sz_audit_view *view,
                        const struct sz_audit_query *query);
void sz_audit_scan_fini(struct sz_audit_scan *scan);
/*
 * 1: a record that matches, in *line until the next call; 0: the end; SZ_AUDIT_SPENT: `most` bytes were read and the
 * rest is not looked at; -EBADMSG: damaged, scan->damage says where; -errno.
 */
enum { SZ_AUDIT_SPENT = 2 };
int sz_audit_scan_next(struct sz_audit_scan *scan, uint64_t most, struct sz_slice *line) SZ_MUST_CHECK;
/* The first number that has not been looked at, for a cursor. */
uint64_t sz_audit_scan_position(const struct sz_audit_scan *scan);

#endif
