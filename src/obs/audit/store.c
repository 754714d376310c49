/* Making groups and committing them: see the header. */
#include "obs/audit/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "subzero/log.h"

void sz_audit_tape_push(struct sz_audit_tape *tape, struct sz_audit_segment *segment)
{
    if (tape->n == tape->cap) {
        tape->cap = tape->cap == 0 ? 16 : 2 * tape->cap;
        tape->v = sz_xrealloc(tape->v, tape->cap * sizeof(struct sz_audit_segment *));
    }
    tape->v[tape->n++] = segment;
}

void sz_audit_store_publish(struct sz_audit_store *store)
{
    struct sz_audit_segment *const *v[SZ_AUDIT_STREAMS];
    size_t n[SZ_AUDIT_STREAMS];
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        v[s] = store->tape[s].v;
        n[s] = store->tape[s].n;
    }
    sz_audit_shelf_set(store->shelf, sz_audit_list_new(v, n));
    atomic_store_explicit(&store->shelf->committed, store->seq, memory_order_release);
}

static void drop_segments(struct sz_audit_store *store)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        struct sz_audit_tape *tape = &store->tape[s];
        for (size_t i = 0; i < tape->n; i++)
            sz_audit_segment_unref(tape->v[i]);
        if (tape->ended != NULL)
            sz_audit_segment_unref(tape->ended);
        tape->ended = NULL;
        tape->n = 0;
        tape->size = 0;
        tape->unsynced = tape->dirty = tape->rotate = false;
        tape->leftover[0] = '\0';
    }
}

int sz_audit_store_reopen(struct sz_audit_store *store, struct sz_text *why)
{
    drop_segments(store);
    int rc = sz_audit_recover(store, why);
    if (rc != 0)
        drop_segments(store);
    sz_audit_store_publish(store);
    return rc;
}

int sz_audit_store_open(struct sz_audit_store *store, const struct sz_conf_audit *conf, const struct sz_audit_io *io,
                        struct sz_audit_shelf *shelf, struct sz_text *why)
{
    *store = (struct sz_audit_store){.conf = conf, .io = io, .shelf = shelf, .dir = -1, .lock = -1};
    sz_random(&store->boot, sizeof(store->boot));
    return sz_audit_store_reopen(store, why);
}

void sz_audit_store_close(struct sz_audit_store *store)
{
    drop_segments(store);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        free(store->tape[s].v);
        free(store->tape[s].noted);
        sz_buf_fini(&store->tape[s].group);
    }
    if (store->dir >= 0)
        close(store->dir);
    if (store->lock >= 0)
        close(store->lock);
    store->dir = store->lock = -1;
}

/* ---- a group --------------------------------------------------------------------------------------------- */

static void reset_group(struct sz_audit_store *store)
{
    store->next_seq = store->seq;
    memset(store->kinds, 0, sizeof(store->kinds));
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        struct sz_audit_tape *tape = &store->tape[s];
        tape->group.n = tape->noted_n = 0;
        tape->group_head = tape->head;
        tape->group_front = tape->front;
        tape->group_first = tape->group_last = 0;
        tape->removing = 0;
    }
}

static uint64_t used(const struct sz_audit_tape *tape)
{
    return (tape->rotate || tape->n == 0 ? 0 : tape->size) + tape->group.n;
}

static bool is_done(const struct sz_audit_store *store, const struct sz_audit_tape *tape, struct sz_wall now)
{
    return tape->n > 0 && tape->size > 0 &&
           (tape->size + SZ_AUDIT_LINE_MAX > store->conf->rotate_size ||
            now.us - tape->began.us >= store->conf->rotate_age.us);
}

void sz_audit_store_begin(struct sz_audit_store *store, struct sz_wall now)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        struct sz_audit_tape *tape = &store->tape[s];
        tape->rotate = tape->rotate || tape->n == 0 || is_done(store, tape, now);
    }
    reset_group(store);
    sz_audit_retain_plan(store, now);
}

bool sz_audit_store_room(const struct sz_audit_store *store, enum sz_audit_stream stream)
{
    const struct sz_audit_tape *tape = &store->tape[stream];
    return tape->group.n == 0 || used(tape) + SZ_AUDIT_LINE_MAX <= store->conf->rotate_size;
}

bool sz_audit_store_empty(const struct sz_audit_store *store)
{
    return store->tape[SZ_AUDIT_MAIN].group.n == 0 && store->tape[SZ_AUDIT_DENIED].group.n == 0;
}

static void hex_of(const struct sz_audit_hash *h, char out[65])
{
    sz_hex_encode(h->b, sizeof(h->b), out);
    out[64] = '\0';
}

static struct sz_audit_noted *note_line(struct sz_audit_tape *tape, struct sz_wall time)
{
    if (tape->noted_n == tape->noted_cap) {
        tape->noted_cap = tape->noted_cap == 0 ? 64 : 2 * tape->noted_cap;
        tape->noted = sz_xrealloc(tape->noted, tape->noted_cap * sizeof(*tape->noted));
    }
    struct sz_audit_noted *noted = &tape->noted[tape->noted_n++];
    noted->from = tape->group.n;
    noted->us = time.us;
    return noted;
}

/* An open line of the group; where it begins. */
static size_t open_line(struct sz_audit_store *store, struct sz_audit_tape *tape, const struct sz_audit_event *event,
                        struct sz_slice extra)
{
    struct sz_audit_stamp stamp = {
        .seq = ++store->next_seq,
        .boot = store->boot,
        .pseudonyms = store->conf->pseudonyms ? &store->conf->pseudonym_key : NULL,
        .extra = extra,
        .memo = &store->memo,
    };
    struct sz_audit_noted *noted = note_line(tape, event->time);
    sz_audit_format(&tape->group, event, &stamp, &noted->places);
    if (tape->group_first == 0)
        tape->group_first = stamp.seq;
    tape->group_last = stamp.seq;
    tape->group_newest = event->time.us;
    store->kinds[event->kind]++;
    return noted->from;
}

static void add_line(struct sz_audit_store *store, enum sz_audit_stream stream, const struct sz_audit_event *event,
                     struct sz_slice extra)
{
    struct sz_audit_tape *tape = &store->tape[stream];
    sz_audit_seal(&tape->group, open_line(store, tape, event, extra), &tape->group_head);
}

/* The first record of a segment of evidence says where both streams begin, so that a missing front is told apart. */
static void add_segment_record(struct sz_audit_store *store, struct sz_wall now)
{
    struct sz_audit_event event = {.kind = SZ_AUDIT_SEGMENT, .time = now};
    struct sz_buf extra = {0};
    const struct sz_audit_segment *last = sz_audit_tape_last(&store->tape[SZ_AUDIT_MAIN]);
    char front[SZ_AUDIT_STREAMS][65];
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++)
        hex_of(&store->tape[s].group_front, front[s]);
    if (last != NULL)
        event.text[SZ_AUDIT_OBJECT] = sz_cstr(last->name);
    sz_buf_printf(&extra, ",\"front_audit\":\"%s\",\"front_denied\":\"%s\"", front[SZ_AUDIT_MAIN],
                  front[SZ_AUDIT_DENIED]);
    add_line(store, SZ_AUDIT_MAIN, &event, sz_buf_slice(&extra));
    sz_buf_fini(&extra);
}

void sz_audit_store_add(struct sz_audit_store *store, enum sz_audit_stream stream, const struct sz_audit_event *event,
                        struct sz_slice extra)
{
    struct sz_audit_tape *tape = &store->tape[stream];
    if (stream == SZ_AUDIT_MAIN && tape->rotate && tape->group.n == 0)
        add_segment_record(store, event->time);
    add_line(store, stream, event, extra);
}

/* Signed is the line up to its signature, with `prev` behind it: the key vouches for all that came before. */
static void sign(struct sz_buf *line, size_t from, const struct sz_audit_hash *prev, const struct sz_ed25519 *key)
{
    struct sz_buf message = {0};
    uint8_t public_key[32], signature[64];
    char text[SZ_B64_LEN(64)], hex[65] = "";
    sz_ed25519_public(key, public_key);
    sz_buf_adds(line, SZ_S(",\"key\":\""));
    sz_buf_add(line, text, sz_b64url_encode(public_key, sizeof(public_key), text));
    sz_buf_add(line, "\"", 1);
    hex_of(prev, hex);
    sz_buf_add(&message, line->p + from, line->n - from);
    sz_buf_printf(&message, ",\"prev\":\"%s\"}", hex);
    sz_ed25519_sign(key, sz_buf_slice(&message), signature);
    sz_buf_adds(line, SZ_S(",\"sig\":\""));
    sz_buf_add(line, text, sz_b64url_encode(signature, sizeof(signature), text));
    sz_buf_add(line, "\"", 1);
    sz_buf_fini(&message);
}

void sz_audit_store_add_checkpoint(struct sz_audit_store *store, struct sz_wall now, const struct sz_ed25519 *key,
                                   struct sz_buf *copy)
{
    struct sz_audit_tape *tape = &store->tape[SZ_AUDIT_MAIN], *denied = &store->tape[SZ_AUDIT_DENIED];
    struct sz_audit_event event = {.kind = SZ_AUDIT_CHECKPOINT, .time = now};
    char head[65];
    if (tape->rotate && tape->group.n == 0)
        add_segment_record(store, now);
    size_t from = open_line(store, tape, &event, SZ_NONE);
    hex_of(&denied->group_head, head);
    sz_buf_printf(&tape->group, ",\"head_denied\":\"%s\"", head);
    if (key != NULL)
        sign(&tape->group, from, &tape->group_head, key);
    sz_audit_seal(&tape->group, from, &tape->group_head);
    sz_buf_add(copy, tape->group.p + from, tape->group.n - from - 1);
}

/* ---- committing -------------------------------------------------------------------------------------------- */

static int say(int rc)
{
    return rc >= 0 ? 0 : errno != 0 ? -errno : -EIO;
}

/* What an earlier failure left: gone before anything is written behind it. */
static int tidy(struct sz_audit_store *store, struct sz_audit_tape *tape)
{
    if (tape->leftover[0] != '\0') {
        if (store->io->unlink(store->dir, tape->leftover) != 0 && errno != ENOENT)
            return -errno;
        tape->leftover[0] = '\0';
    }
    if (tape->dirty) {
        int rc = say(store->io->truncate(sz_audit_tape_last(tape)->fd, (off_t)tape->size));
        if (rc != 0)
            return rc;
        tape->dirty = false;
    }
    return 0;
}

static int write_all(struct sz_audit_store *store, int fd, struct sz_slice bytes, uint64_t at)
{
    while (bytes.n > 0) {
        ssize_t n = store->io->write(fd, bytes.p, bytes.n, (off_t)at);
        if (n <= 0)
            return n < 0 ? -errno : -ENOSPC;
        bytes = sz_from(bytes, (size_t)n);
        at += (uint64_t)n;
    }
    return 0;
}

static int sync_file(struct sz_audit_store *store, int fd)
{
    return say(store->io->sync(fd));
}

/* The segment that the group begins; on the tape once it is committed. */
static int new_segment(struct sz_audit_store *store, enum sz_audit_stream stream, struct sz_audit_segment **out)
{
    struct sz_audit_tape *tape = &store->tape[stream];
    struct sz_audit_segment *segment = sz_audit_segment_new(-1, stream, tape->group_first);
    segment->fd = store->io->open(store->dir, segment->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (segment->fd < 0) {
        int rc = -errno;
        sz_audit_segment_unref(segment);
        return rc;
    }
    segment->index = sz_audit_index_new(store->conf->rotate_size);
    *out = segment;
    return 0;
}

/* The rest of the segment that ends here is on disk before the next one begins. */
static int write_new(struct sz_audit_store *store, enum sz_audit_stream stream, struct sz_audit_segment **made)
{
    struct sz_audit_tape *tape = &store->tape[stream];
    const struct sz_audit_segment *last = sz_audit_tape_last(tape);
    bool durable = store->conf->durability != SZ_DURABILITY_NONE;
    int rc = last != NULL && durable && tape->unsynced ? sync_file(store, last->fd) : 0;
    if (rc == 0)
        rc = new_segment(store, stream, made);
    if (rc == 0)
        rc = write_all(store, (*made)->fd, sz_buf_slice(&tape->group), 0);
    if (rc == 0 && durable)
        rc = sync_file(store, (*made)->fd);
    if (rc == 0 && durable)
        rc = say(store->io->sync_dir(store->dir));
    return rc;
}

static int write_on(struct sz_audit_store *store, struct sz_audit_tape *tape)
{
    int fd = sz_audit_tape_last(tape)->fd;
    tape->dirty = true;
    int rc = write_all(store, fd, sz_buf_slice(&tape->group), tape->size);
    if (rc == 0 && store->conf->durability == SZ_DURABILITY_ALWAYS)
        rc = sync_file(store, fd);
    return rc;
}

static int write_tape(struct sz_audit_store *store, enum sz_audit_stream stream, struct sz_audit_segment **made)
{
    struct sz_audit_tape *tape = &store->tape[stream];
    if (tape->group.n == 0)
        return 0;
    int rc = tidy(store, tape);
    if (rc != 0)
        return rc;
    return tape->rotate ? write_new(store, stream, made) : write_on(store, tape);
}

static void index_group(struct sz_audit_segment *segment, const struct sz_audit_tape *tape)
{
    struct sz_audit_index *index = segment->index;
    for (size_t i = 0; index != NULL && i < tape->noted_n; i++) {
        const struct sz_audit_noted *noted = &tape->noted[i];
        sz_audit_index_add_known(index, tape->group.p + noted->from, &noted->places, noted->us);
    }
}

/* Its filter is complete now; the side file is written when there is time. */
static void keep_ended(struct sz_audit_tape *tape)
{
    struct sz_audit_segment *last = sz_audit_tape_last(tape);
    if (tape->ended != NULL)
        sz_audit_segment_unref(tape->ended);
    tape->ended = last;
    tape->ended_hash = tape->head;
    if (last != NULL)
        sz_audit_segment_ref(last);
}

/* The group of one stream is committed: what readers and the next group see. */
static void settle(struct sz_audit_store *store, enum sz_audit_stream stream, struct sz_audit_segment *made)
{
    struct sz_audit_tape *tape = &store->tape[stream];
    if (tape->group.n == 0)
        return;
    if (made != NULL) {
        keep_ended(tape);
        sz_audit_tape_push(tape, made);
        tape->size = 0;
        tape->began = (struct sz_wall){tape->group_newest};
        tape->rotate = false;
    }
    struct sz_audit_segment *segment = sz_audit_tape_last(tape);
    index_group(segment, tape);
    tape->size += tape->group.n;
    tape->head = tape->group_head;
    tape->dirty = false;
    tape->unsynced = store->conf->durability != SZ_DURABILITY_ALWAYS && made == NULL;
    atomic_store_explicit(&segment->newest, tape->group_newest, memory_order_relaxed);
    atomic_store_explicit(&segment->last, tape->group_last, memory_order_relaxed);
    atomic_store_explicit(&segment->size, tape->size, memory_order_release);
}

/* Back to the last committed record, as far as the disk lets us; the rest is done before the next append (tidy). */
static void roll_back(struct sz_audit_store *store, enum sz_audit_stream stream, struct sz_audit_segment *made)
{
    struct sz_audit_tape *tape = &store->tape[stream];
    if (made != NULL) {
        memcpy(tape->leftover, made->name, sizeof(tape->leftover));
        sz_audit_segment_unref(made);
    }
    (void)tidy(store, tape);
}

int sz_audit_store_commit(struct sz_audit_store *store)
{
    struct sz_audit_segment *made[SZ_AUDIT_STREAMS] = {NULL, NULL};
    int rc = write_tape(store, SZ_AUDIT_DENIED, &made[SZ_AUDIT_DENIED]);
    if (rc == 0)
        rc = write_tape(store, SZ_AUDIT_MAIN, &made[SZ_AUDIT_MAIN]);
    if (rc != 0) {
        for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++)
            roll_back(store, (enum sz_audit_stream)s, made[s]);
        return rc;
    }
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++)
        settle(store, (enum sz_audit_stream)s, made[s]);
    store->seq = store->next_seq;
    sz_audit_retain_remove(store);
    if (made[SZ_AUDIT_MAIN] != NULL || made[SZ_AUDIT_DENIED] != NULL)
        sz_audit_store_publish(store);
    atomic_store_explicit(&store->shelf->committed, store->seq, memory_order_release);
    return 0;
}

int sz_audit_store_sync(struct sz_audit_store *store)
{
    int worst = 0;
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        struct sz_audit_tape *tape = &store->tape[s];
        if (!tape->unsynced)
            continue;
        int rc = sync_file(store, sz_audit_tape_last(tape)->fd);
        /* After a failed sync nobody knows what of the file is on disk: nothing more is written behind it. */
        tape->rotate = tape->rotate || rc != 0;
        tape->unsynced = false;
        worst = rc != 0 ? rc : worst;
    }
    return worst;
}

bool sz_audit_store_present(const struct sz_audit_store *store)
{
    struct stat st;
    if (stat(store->conf->path.p, &st) != 0 || (uint64_t)st.st_dev != store->dev || (uint64_t)st.st_ino != store->ino)
        return false;
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        const struct sz_audit_segment *last = sz_audit_tape_last(&store->tape[s]);
        if (last != NULL && (fstat(last->fd, &st) != 0 || st.st_nlink == 0))
            return false;
    }
    return true;
}

static void save_index(struct sz_audit_store *store, const struct sz_audit_segment *segment,
                       const struct sz_audit_hash *last)
{
    const struct sz_audit_index *index = atomic_load(&segment->index);
    if (index != NULL && segment->whole &&
        sz_audit_index_save(index, store->io, store->dir, segment->name, atomic_load(&segment->size), last) != 0)
        sz_log(SZ_LOG_WARN, "audit", "no side file for %s: searches read the segment instead", segment->name);
}

void sz_audit_store_save_ends(struct sz_audit_store *store)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        const struct sz_audit_segment *last = sz_audit_tape_last(&store->tape[s]);
        if (last != NULL && !store->tape[s].dirty)
            save_index(store, last, &store->tape[s].head);
    }
}

void sz_audit_store_idle(struct sz_audit_store *store)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        struct sz_audit_tape *tape = &store->tape[s];
        struct sz_audit_segment *ended = tape->ended;
        if (ended == NULL)
            continue;
        tape->ended = NULL;
        if (tape->n > 0 && tape->v[0]->first <= ended->first) /* not removed meanwhile */
            save_index(store, ended, &tape->ended_hash);
        sz_audit_segment_unref(ended);
    }
}
