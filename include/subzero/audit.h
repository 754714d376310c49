/*
 * The audit journal: who was let in, who was not, why, and who changed the gateway; on disk, in order, chained.
 *
 *   loops ──event──▶ bounded queue ──▶ one writer thread: formats, chains, groups, commits, rotates, removes
 *                                          │ tells the loops that wait (required: true)
 *
 * To record something that was done (an admin action, a revocation, a reload, a block, a write to a store):
 *
 *     struct sz_audit_event e = {.kind = SZ_AUDIT_REVOCATION, .effect = SZ_EFFECT_CREATED};
 *     e.text[SZ_AUDIT_ACTION] = SZ_S("revocation.add");
 *     e.text[SZ_AUDIT_SUBJECT] = subject;
 *     e.text[SZ_AUDIT_REQUEST_ID] = request_id;
 *     sz_audit_note(audit, &e);                        // audit NULL: the journal is off, nothing happens
 *
 * No secret may be passed in any field: no token, key, cookie, header, query string or body.  Texts are copied at the
 * call; one longer than its bound in tbl/audit.h is cut and marked.  Control characters are escaped.
 *
 * An admin request that must not be answered before its record is where the configuration wants it uses
 * sz_audit_commit with a wait; a request that only wants to be on record uses sz_audit_note.
 */
#ifndef SUBZERO_AUDIT_H
#define SUBZERO_AUDIT_H

#include "subzero/addr.h"
#include "subzero/base.h"
#include "subzero/loop.h"
#include "subzero/reason.h"
#include "subzero/time.h"

enum sz_audit_kind {
#define SZ_AUDIT_KIND(id, name, help) SZ_AUDIT_##id,
#include "subzero/tbl/audit.h"
    SZ_AUDIT_KINDS
};
enum sz_audit_text {
#define SZ_AUDIT_TEXT(id, name, bytes) SZ_AUDIT_##id,
#include "subzero/tbl/audit.h"
    SZ_AUDIT_TEXTS
};

/* What a change came to: the same write a second time changes nothing. */
enum sz_audit_effect { SZ_EFFECT_NONE, SZ_EFFECT_CREATED, SZ_EFFECT_UNCHANGED, SZ_EFFECT_DELETED, SZ_EFFECT_REFUSED };

/* One thing that happened.  Zero-initialise; fields that do not apply stay absent from the record. */
struct sz_audit_event {
    enum sz_audit_kind kind; /* DECISION to WRITE; the later ones are the journal's own */
    enum sz_audit_effect effect;
    struct sz_wall time; /* 0: now */
    /* DECISION */
    bool allow;
    bool authenticated; /* a validated identity was known: other denials are counted together when there are too many */
    enum sz_reason reason;
    uint16_t status; /* what the gateway answers itself; 200 for what is allowed */
    uint64_t config; /* version of the configuration; 0: absent */
    struct sz_span auth, authz,
        total; /* time until the identity, for the relation checks, until the decision; 0: none */
    /* all kinds */
    bool has_address;
    struct sz_addr address;
    struct sz_slice text[SZ_AUDIT_TEXTS]; /* borrowed for the call; SZ_NONE: absent */
};

struct sz_audit;

/* ---- recording: any thread, no lock, no wait --------------------------------------------------------------- */

/* False: could not be queued, counted as lost.  audit NULL: true, nothing happens. */
bool sz_audit_note(struct sz_audit *audit, const struct sz_audit_event *event);

/*
 * Waiting for a record (audit.required).  Each loop that waits has a port, opened by its thread and closed by it.  A
 * wait is embedded in whoever waits, zero-initialised.
 */
struct sz_audit_port;
struct sz_audit_wait {
    void (*on_done)(struct sz_audit_wait *wait, bool committed); /* on the loop, never inside the call that armed it */
    struct sz_audit_port *port;                                  /* NULL: not waiting */
    uint64_t place;
};
/* NULL when the journal is off. */
struct sz_audit_port *sz_audit_port_open(struct sz_audit *audit, struct sz_loop *loop);
void sz_audit_port_close(struct sz_audit_port **port); /* what still waits is never called */
/*
 * 0: handed over, nothing to wait for (off, or not required).
 * SZ_AUDIT_PENDING: handed over and wait->on_done follows once it is committed, or could not be.
 * -EAGAIN: the queue is full; -EIO: the disk refuses.  Counted; with `required` the caller answers 503
 * audit_unavailable, otherwise it goes on.
 */
enum { SZ_AUDIT_PENDING = 1 };
int sz_audit_commit(struct sz_audit *audit, struct sz_audit_port *port, const struct sz_audit_event *event,
                    struct sz_audit_wait *wait) SZ_MUST_CHECK;
/* Whoever waited has left: on_done will not run.  No-op when not waiting. */
void sz_audit_wait_cancel(struct sz_audit_wait *wait);
bool sz_audit_required(const struct sz_audit *audit); /* false for NULL */
/* An address as the journal writes it, for an object that holds one: itself, or its pseudonym.  Its length. */
enum { SZ_AUDIT_ADDRESS = 64 };
size_t sz_audit_address(const struct sz_audit *audit, struct sz_addr address, char out[SZ_AUDIT_ADDRESS]);

/* ---- reading: a loop asks, two threads read ------------------------------------------------------------------ */

/*
 * A page, or an export piece by piece.  One that is started waits for sz_audit_read_next; on_piece follows on the loop,
 * never inside the call, with what `body` holds until the next call.
 */
enum sz_audit_outcome {
    SZ_AUDIT_MORE,    /* of an export: ask for the next piece */
    SZ_AUDIT_END,     /* all there was */
    SZ_AUDIT_DAMAGED, /* the journal is: `why` says file and line; nothing of what follows is told */
    SZ_AUDIT_BUSY,    /* waited for too long */
    SZ_AUDIT_FAILED
};
struct sz_audit_read;
typedef void sz_audit_piece_fn(void *arg, enum sz_audit_outcome outcome, struct sz_slice body, const char *why);
/* NULL: the query string is wrong, *why says how. */
struct sz_audit_read *sz_audit_read_start(struct sz_audit *audit, struct sz_loop *loop, struct sz_slice query,
                                          bool whole, sz_audit_piece_fn *on_piece, void *arg, struct sz_text *why);
bool sz_audit_read_is_csv(const struct sz_audit_read *read);
/* False: 64 are waiting already. */
bool sz_audit_read_next(struct sz_audit_read *read) SZ_MUST_CHECK;
/* Whoever asked has left; on_piece will not run. */
void sz_audit_read_free(struct sz_audit_read **read);
/* The loop ends: nobody reads any more. */
void sz_audit_stop_reading(struct sz_audit *audit);

/* ---- keys: any thread --------------------------------------------------------------------------------------- */

struct sz_ed25519;
/* A private Ed25519 JWK; -EINVAL and *why.  *key is a secret. */
int sz_audit_key_read(struct sz_slice jwk, struct sz_ed25519 *key, struct sz_text *why) SZ_MUST_CHECK;
/* The public half of a private or public one. */
int sz_audit_key_public(struct sz_slice jwk, uint8_t out[32], struct sz_text *why) SZ_MUST_CHECK;

/* ---- the journal: main thread ------------------------------------------------------------------------------- */

struct sz_conf_audit;
/*
 * Opens (or makes) the directory, recovers what a crash left, starts the writer.  *audit NULL when conf->path is
 * absent. Blocking.  -errno and *why: another process holds it, a symbolic link, a foreign owner, loose permissions ...
 */
int sz_audit_open(const struct sz_conf_audit *conf, struct sz_audit **audit, struct sz_text *why) SZ_MUST_CHECK;
/* Writes what is queued (at most a few seconds on a disk that hangs), then the stop record; frees.  Ports are closed.
 */
void sz_audit_close(struct sz_audit **audit);
/* The process ends at once: what is queued is written within a second, and nothing is freed.  Blocking. */
void sz_audit_flush(struct sz_audit *audit);
/* SIGHUP: the directory and its files are opened anew.  Any thread, does not wait.  NULL is fine. */
void sz_audit_reopen(struct sz_audit *audit);

/* Appends "audit":{...}, how it is; false when it is not well.  NULL: {"status":"off"}, which is well. */
bool sz_audit_health(struct sz_audit *audit, struct sz_buf *out);

#endif
