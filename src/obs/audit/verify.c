/*
 * First both chains from end to end, with notes of what records claim: where the streams begin (retention, segment),
 * where the heads were (checkpoint).  Then the claims: the front is one that was named, the heads are there.  What the
 * anchor holds is claims from outside, which whoever cut the journal could not cut.
 */
#include "subzero/audit_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "obs/audit/lines.h"
#include "obs/audit/scan.h"
#include "subzero/crypto.h"

struct claim {
    struct sz_audit_hash hash;
    enum sz_audit_stream stream;
    bool front; /* a beginning; otherwise a head that must be there */
    struct sz_text where;
};
struct state {
    struct sz_audit_verdict *verdict;
    const uint8_t *key;
    bool written; /* by a gateway, meanwhile */
    struct claim *claims;
    size_t claims_n, claims_cap;
    struct sz_audit_hash *hashes[SZ_AUDIT_STREAMS]; /* of every line, sorted in the end */
    size_t hashes_n[SZ_AUDIT_STREAMS], hashes_cap[SZ_AUDIT_STREAMS];
    struct sz_audit_hash front[SZ_AUDIT_STREAMS];
    uint64_t first[SZ_AUDIT_STREAMS], last[SZ_AUDIT_STREAMS];
    struct sz_text front_at[SZ_AUDIT_STREAMS];
};

static void fault(struct state *state, const char *file, unsigned long line, const char *what)
{
    if (!state->verdict->good)
        return;
    state->verdict->good = false;
    sz_text_set(&state->verdict->what, "%s:%lu: %s", file, line, what);
}

static void claim(struct state *state, enum sz_audit_stream stream, bool front, struct sz_slice hex, const char *file,
                  unsigned long line)
{
    struct claim c = {.stream = stream, .front = front};
    if (!sz_audit_hash_parse(hex, &c.hash))
        return;
    if (state->claims_n == state->claims_cap) {
        state->claims_cap = state->claims_cap == 0 ? 64 : 2 * state->claims_cap;
        state->claims = sz_xrealloc(state->claims, state->claims_cap * sizeof(*state->claims));
    }
    sz_text_set(&c.where, "%s:%lu", file, line);
    state->claims[state->claims_n++] = c;
}

static void keep_hash(struct state *state, enum sz_audit_stream s, const struct sz_audit_hash *hash)
{
    if (state->hashes_n[s] == state->hashes_cap[s]) {
        state->hashes_cap[s] = state->hashes_cap[s] == 0 ? 1024 : 2 * state->hashes_cap[s];
        state->hashes[s] = sz_xrealloc(state->hashes[s], state->hashes_cap[s] * sizeof(*hash));
    }
    state->hashes[s][state->hashes_n[s]++] = *hash;
}

/* ---- one line --------------------------------------------------------------------------------------------------- */

static bool signature_good(struct sz_slice line, const uint8_t *key)
{
    struct sz_slice sig, prev;
    uint8_t bytes[64];
    size_t n = 0;
    const char *at = memmem(line.p, line.n, ",\"sig\":\"", 8);
    if (at == NULL || !sz_audit_line_text(line, SZ_S("sig"), &sig) || !sz_audit_line_text(line, SZ_S("prev"), &prev) ||
        sig.n != SZ_B64_LEN(64) || sz_b64url_decode(sig, bytes, &n) != 0)
        return false;
    struct sz_buf message = {0};
    sz_buf_add(&message, line.p, (size_t)(at - line.p));
    sz_buf_printf(&message, ",\"prev\":\"%.*s\"}", SZ_FMT(prev));
    bool good = sz_ed25519_verify(key, sz_buf_slice(&message), bytes);
    sz_buf_fini(&message);
    return good;
}

static void read_claims(struct state *state, struct sz_slice line, const char *file, unsigned long number)
{
    struct sz_slice kind, value, stream;
    if (!sz_audit_line_text(line, SZ_S("kind"), &kind))
        return;
    if (sz_eq(kind, SZ_S("segment"))) {
        if (sz_audit_line_text(line, SZ_S("front_audit"), &value))
            claim(state, SZ_AUDIT_MAIN, true, value, file, number);
        if (sz_audit_line_text(line, SZ_S("front_denied"), &value))
            claim(state, SZ_AUDIT_DENIED, true, value, file, number);
    } else if (sz_eq(kind, SZ_S("retention"))) {
        if (sz_audit_line_text(line, SZ_S("stream"), &stream) && sz_audit_line_text(line, SZ_S("last_hash"), &value))
            claim(state, sz_eq(stream, SZ_S("denied")) ? SZ_AUDIT_DENIED : SZ_AUDIT_MAIN, true, value, file, number);
    } else if (sz_eq(kind, SZ_S("checkpoint"))) {
        state->verdict->checkpoints++;
        if (sz_audit_line_text(line, SZ_S("head_denied"), &value))
            claim(state, SZ_AUDIT_DENIED, false, value, file, number);
        bool is_signed = sz_audit_line_text(line, SZ_S("sig"), &value);
        state->verdict->signed_checkpoints += is_signed;
        if (state->key != NULL && !signature_good(line, state->key))
            fault(state, file, number,
                  is_signed ? "the checkpoint's signature is not this key's" : "the checkpoint is not signed");
    }
}

static const char *judge(const struct state *state, enum sz_audit_stream s, const struct sz_audit_line *line,
                         bool first, const struct sz_audit_hash *head, uint64_t *seq)
{
    struct sz_audit_hash prev;
    struct sz_slice time;
    if (!line->whole)
        return "an unfinished record: the end was cut";
    if (!sz_audit_line_head(line->text, seq, &time) || !sz_audit_line_prev(line->text, &prev))
        return "this is no record";
    if (!first && !sz_audit_hash_eq(&prev, head))
        return sz_audit_line_whole(line->text)
                   ? "it does not follow the record before: changed, removed, inserted or reordered here or just before"
                   : "the record was changed";
    if (!sz_audit_line_whole(line->text))
        return "the record was changed";
    return state->hashes_n[s] > 0 && *seq <= state->last[s] ? "its number is not above the one before" : NULL;
}

/* ---- a stream
 * --------------------------------------------------------------------------------------------------------- */

static int walk_segment(struct state *state, const struct sz_audit_segment *segment, uint64_t size, char *buffer,
                        struct sz_audit_hash *head)
{
    enum sz_audit_stream s = segment->stream;
    struct sz_audit_lines lines = {.fd = segment->fd, .end = size, .buffer = buffer};
    struct sz_audit_line line;
    unsigned long number = 0;
    int rc;
    while (state->verdict->good && (rc = sz_audit_lines_next(&lines, &line)) != 0) {
        uint64_t seq = 0;
        bool first = state->hashes_n[s] == 0;
        if (rc < 0)
            return rc;
        number++;
        const char *wrong = judge(state, s, &line, first, head, &seq);
        if (wrong == NULL && number == 1 && seq != segment->first)
            wrong = "the file's name is not its first record's number";
        if (wrong != NULL) {
            fault(state, segment->name, number, wrong);
            break;
        }
        if (first) {
            (void)sz_audit_line_prev(line.text, &state->front[s]);
            sz_text_set(&state->front_at[s], "%s:1", segment->name);
            state->first[s] = seq;
        }
        *head = sz_audit_line_hash(line.text);
        keep_hash(state, s, head);
        state->last[s] = seq;
        state->verdict->records++;
        read_claims(state, line.text, segment->name, number);
    }
    return 0;
}

/* A gateway that runs holds the lock; what it is writing just now is no damage. */
static bool is_written(const char *path)
{
    char name[4200];
    snprintf(name, sizeof(name), "%s/lock", path);
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

static int walk_stream(struct state *state, const struct sz_audit_view *view, enum sz_audit_stream s, char *buffer)
{
    struct sz_audit_hash head;
    struct stat st;
    int rc = 0;
    memset(&head, 0, sizeof(head));
    for (size_t i = 0; i < view->list->n[s] && rc == 0; i++) {
        /* What a view leaves out of the last segment is an end without a newline: nobody may have written half a
         * record. */
        uint64_t size = view->sizes[s][i];
        if (!state->written && fstat(view->list->v[s][i]->fd, &st) == 0 && (uint64_t)st.st_size > size)
            size = (uint64_t)st.st_size;
        rc = walk_segment(state, view->list->v[s][i], size, buffer, &head);
        state->verdict->segments++;
    }
    return rc;
}

/* ---- the claims
 * ---------------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return sz_cmp(sz_slice(a, sizeof(struct sz_audit_hash)), sz_slice(b, sizeof(struct sz_audit_hash)));
}

static bool is_zero(const struct sz_audit_hash *hash)
{
    static const struct sz_audit_hash zero;
    return sz_audit_hash_eq(hash, &zero);
}

static bool has_hash(const struct state *state, enum sz_audit_stream s, const struct sz_audit_hash *hash)
{
    return state->hashes_n[s] > 0 &&
           bsearch(hash, state->hashes[s], state->hashes_n[s], sizeof(*hash), compare) != NULL;
}

/* Heads that were there when retention removed them are among the fronts that records name, or older than the first. */
static void check_heads(struct state *state)
{
    bool reached[SZ_AUDIT_STREAMS] = {false, false};
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++)
        reached[s] = is_zero(&state->front[s]) && state->hashes_n[s] > 0;
    for (size_t i = 0; i < state->claims_n; i++) {
        const struct claim *c = &state->claims[i];
        if (c->front || is_zero(&c->hash))
            continue;
        if (has_hash(state, c->stream, &c->hash)) {
            reached[c->stream] = true; /* heads come in order: from here on all of them are in what is left */
        } else if (reached[c->stream] || !sz_audit_hash_eq(&c->hash, &state->front[c->stream])) {
            bool older = !reached[c->stream] && !is_zero(&state->front[c->stream]) && state->hashes_n[c->stream] > 0;
            if (!older && state->verdict->good) {
                state->verdict->good = false;
                sz_text_set(&state->verdict->what,
                            "%s: the head of '%s' that it names is not in the journal: its end was cut", c->where.s,
                            sz_audit_stream_name(c->stream));
            }
        }
    }
}

static void check_fronts(struct state *state)
{
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        bool named = state->hashes_n[s] == 0 || is_zero(&state->front[s]);
        for (size_t i = 0; i < state->claims_n && !named; i++) {
            const struct claim *c = &state->claims[i];
            named = c->front && c->stream == (enum sz_audit_stream)s && sz_audit_hash_eq(&c->hash, &state->front[s]);
        }
        if (named || !state->verdict->good)
            continue;
        state->verdict->good = false;
        sz_text_set(&state->verdict->what, "%s: records before it are missing, and retention did not remove them",
                    state->front_at[s].s);
    }
}

/* ---- the anchor
 * ------------------------------------------------------------------------------------------------------------- */

static int check_anchor(struct state *state, const char *path, char *buffer)
{
    struct stat st;
    struct sz_audit_line line;
    unsigned long number = 0;
    int rc = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        sz_text_set(&state->verdict->what, "cannot read %s: %s", path, strerror(-rc));
        return rc;
    }
    struct sz_audit_lines lines = {.fd = fd, .end = (uint64_t)st.st_size, .buffer = buffer};
    while (state->verdict->good && (rc = sz_audit_lines_next(&lines, &line)) == 1) {
        struct sz_audit_hash hash = sz_audit_line_hash(line.text);
        struct sz_slice time;
        uint64_t seq;
        number++;
        if (!line.whole || !sz_audit_line_whole(line.text) || !sz_audit_line_head(line.text, &seq, &time))
            fault(state, path, number, "this is no checkpoint");
        else if (state->key != NULL && !signature_good(line.text, state->key))
            fault(state, path, number, "the checkpoint's signature is not this key's");
        else if (!has_hash(state, SZ_AUDIT_MAIN, &hash) &&
                 (seq >= state->first[SZ_AUDIT_MAIN] || state->hashes_n[SZ_AUDIT_MAIN] == 0))
            fault(state, path, number,
                  seq > state->last[SZ_AUDIT_MAIN]
                      ? "this checkpoint is not in the journal: its end was cut"
                      : "this checkpoint is not in the journal: it was changed or replaced");
    }
    close(fd);
    return rc < 0 ? rc : 0;
}

static int verify(struct state *state, const struct sz_audit_view *view, const char *anchor)
{
    char *buffer = sz_xmalloc(SZ_AUDIT_LINES_BUFFER);
    int rc = 0;
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS && rc == 0; s++)
        rc = walk_stream(state, view, (enum sz_audit_stream)s, buffer);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        if (state->hashes_n[s] > 0)
            qsort(state->hashes[s], state->hashes_n[s], sizeof(struct sz_audit_hash), compare);
    }
    check_fronts(state);
    check_heads(state);
    if (rc == 0 && anchor != NULL)
        rc = check_anchor(state, anchor, buffer);
    if (rc == 0 && state->key != NULL && state->verdict->good && state->verdict->signed_checkpoints == 0)
        fault(state, "journal", 1, "no checkpoint is signed");
    free(buffer);
    return rc;
}

int sz_audit_verify(const char *path, const uint8_t *key, const char *anchor, struct sz_audit_verdict *verdict)
{
    struct sz_audit_view view;
    *verdict = (struct sz_audit_verdict){.good = true};
    struct state state = {.verdict = verdict, .key = key, .written = is_written(path)};
    int rc = sz_audit_view_open(&view, path, &verdict->what);
    if (rc != 0)
        return rc;
    rc = verify(&state, &view, anchor);
    verdict->first = state.first[SZ_AUDIT_MAIN];
    verdict->last = state.last[0] > state.last[1] ? state.last[0] : state.last[1];
    if (rc < 0 && verdict->what.s[0] == '\0')
        sz_text_set(&verdict->what, "cannot read %s: %s", path, strerror(-rc));
    free(state.claims);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++)
        free(state.hashes[s]);
    sz_audit_view_release(&view);
    return rc;
}
