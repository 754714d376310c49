/* Side files: loaded where they fit, made again where they do not. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "obs/audit/scan.h"
#include "subzero/log.h"

static bool last_hash(const struct sz_audit_segment *segment, uint64_t size, char *buffer, struct sz_audit_hash *hash)
{
    struct sz_audit_lines lines = {.fd = segment->fd, .end = size, .buffer = buffer};
    struct sz_audit_line line;
    if (sz_audit_lines_previous(&lines, &line) != 1 || !line.whole)
        return false;
    *hash = sz_audit_line_hash(line.text);
    return true;
}

/* NULL when it is damaged: a search then reads the segment, and says so. */
static struct sz_audit_index *make_index(const struct sz_audit_segment *segment, uint64_t size, char *buffer)
{
    struct sz_audit_index *index = sz_audit_index_new(size);
    struct sz_audit_lines lines = {.fd = segment->fd, .end = size, .buffer = buffer};
    struct sz_audit_line line;
    struct sz_audit_hash head, prev;
    bool good = true;
    for (bool first = true; good && sz_audit_lines_next(&lines, &line) == 1; first = false) {
        good = line.whole && sz_audit_line_prev(line.text, &prev) &&
               (first ? sz_audit_line_whole(line.text) : sz_audit_hash_eq(&prev, &head));
        if (!good)
            break;
        head = sz_audit_line_hash(line.text);
        sz_audit_index_add(index, line.text);
    }
    if (!good || lines.begin < lines.end)
        sz_audit_index_free(&index);
    return index;
}

static void index_segment(struct sz_audit_segment *segment, uint64_t size, int dir, bool make, char *buffer)
{
    struct sz_audit_hash last;
    if (!last_hash(segment, size, buffer, &last))
        return;
    struct sz_audit_index *none = NULL, *index = sz_audit_index_load(dir, segment->name, size, &last);
    if (index == NULL && make) {
        index = make_index(segment, size, buffer);
        if (index != NULL && sz_audit_index_save(index, &sz_audit_io_system, dir, segment->name, size, &last) != 0)
            sz_log(SZ_LOG_WARN, "audit", "no side file for %s: it is made again by the next process", segment->name);
    }
    if (index != NULL && !atomic_compare_exchange_strong(&segment->index, &none, index))
        sz_audit_index_free(&index);
}

void sz_audit_view_index(const struct sz_audit_view *view, const char *path, bool make)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return;
    char *buffer = sz_xmalloc(SZ_AUDIT_LINES_BUFFER);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        for (size_t i = 0; i < view->list->n[s]; i++) {
            struct sz_audit_segment *segment = view->list->v[s][i];
            bool ended = i + 1 < view->list->n[s]; /* the last one's is right only where nobody wrote on */
            if (atomic_load(&segment->index) == NULL && view->sizes[s][i] > 0)
                index_segment(segment, view->sizes[s][i], dir, make && ended, buffer);
        }
    }
    free(buffer);
    close(dir);
}
