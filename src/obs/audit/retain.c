/*
 * Retention: the oldest segments of a stream go, and the record that names them is committed before they do.  Decided
 * where a segment ends, so that record, removal and the new segment share one sync; by age also in between.
 */
#include <stdio.h>

#include "obs/audit/lines.h"
#include "obs/audit/store.h"

enum { NAMES = 16 /* in one record */ };

static bool over(const struct sz_conf_retain *most, const struct sz_audit_tape *tape, size_t gone, uint64_t bytes,
                 struct sz_wall now)
{
    size_t files = tape->n - gone + (tape->rotate ? 1 : 0);
    int64_t newest = atomic_load_explicit(&tape->v[gone]->newest, memory_order_relaxed);
    return files > most->files || bytes > most->size || now.us - newest > most->age.us;
}

/* How many of the oldest go; the one being written stays, unless it ends now. */
static size_t count(const struct sz_audit_store *store, enum sz_audit_stream stream, struct sz_wall now)
{
    const struct sz_audit_tape *tape = &store->tape[stream];
    const struct sz_conf_retain *most = stream == SZ_AUDIT_MAIN ? &store->conf->retain : &store->conf->denied;
    size_t removable = tape->n == 0 ? 0 : tape->rotate ? tape->n : tape->n - 1, gone = 0;
    uint64_t bytes = tape->rotate ? store->conf->rotate_size : 0; /* what the new one may come to */
    for (size_t i = 0; i < tape->n; i++)
        bytes += atomic_load_explicit(&tape->v[i]->size, memory_order_relaxed);
    while (gone < removable && gone < NAMES && over(most, tape, gone, bytes, now)) {
        bytes -= atomic_load_explicit(&tape->v[gone]->size, memory_order_relaxed);
        gone++;
    }
    return gone;
}

static struct sz_audit_hash last_hash(const struct sz_audit_tape *tape, size_t gone)
{
    struct sz_audit_hash hash = tape->head;
    if (gone == tape->n)
        return hash;
    /* The next one's first record carries it. */
    char bytes[SZ_AUDIT_LINES_BUFFER];
    struct sz_audit_segment *next = tape->v[gone];
    struct sz_audit_lines lines = {.fd = next->fd, .end = atomic_load(&next->size), .buffer = bytes};
    struct sz_audit_line line;
    if (sz_audit_lines_next(&lines, &line) != 1 || !sz_audit_line_prev(line.text, &hash))
        memset(&hash, 0xff, sizeof(hash)); /* damaged: no record has this hash, and verify says so */
    return hash;
}

static void add_record(struct sz_audit_store *store, enum sz_audit_stream stream, struct sz_wall now)
{
    struct sz_audit_tape *tape = &store->tape[stream];
    struct sz_audit_event event = {.kind = SZ_AUDIT_RETENTION, .time = now};
    struct sz_buf extra = {0};
    char hex[65] = "";
    sz_hex_encode(tape->group_front.b, sizeof(tape->group_front.b), hex);
    sz_buf_printf(&extra, ",\"stream\":\"%s\",\"last_hash\":\"%s\",\"removed\":[", sz_audit_stream_name(stream), hex);
    for (size_t i = 0; i < tape->removing; i++)
        sz_buf_printf(&extra, "%s\"%s\"", i > 0 ? "," : "", tape->v[i]->name);
    sz_buf_printf(&extra, "]");
    sz_audit_store_add(store, SZ_AUDIT_MAIN, &event, sz_buf_slice(&extra));
    sz_buf_fini(&extra);
}

void sz_audit_retain_plan(struct sz_audit_store *store, struct sz_wall now)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        struct sz_audit_tape *tape = &store->tape[s];
        tape->removing = count(store, (enum sz_audit_stream)s, now);
        if (tape->removing > 0)
            tape->group_front = last_hash(tape, tape->removing);
    }
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        if (store->tape[s].removing > 0)
            add_record(store, (enum sz_audit_stream)s, now);
    }
}

static void remove_file(struct sz_audit_store *store, const struct sz_audit_segment *segment)
{
    char name[64];
    /* What cannot be removed now is found at the next start, over the limit, and named once more. */
    (void)store->io->unlink(store->dir, segment->name);
    snprintf(name, sizeof(name), "%s.idx", segment->name);
    (void)store->io->unlink(store->dir, name);
}

void sz_audit_retain_remove(struct sz_audit_store *store)
{
    bool any = false;
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        struct sz_audit_tape *tape = &store->tape[s];
        size_t gone = tape->removing;
        tape->removing = 0;
        for (size_t i = 0; i < gone; i++) {
            remove_file(store, tape->v[i]);
            sz_audit_segment_unref(tape->v[i]);
        }
        if (gone == 0)
            continue;
        tape->front = tape->group_front;
        memmove(tape->v, tape->v + gone, (tape->n - gone) * sizeof(struct sz_audit_segment *));
        tape->n -= gone;
        any = true;
    }
    if (any)
        sz_audit_store_publish(store);
}
