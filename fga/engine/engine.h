/*
 * The embedded relationship engine: models and tuples of one store, in memory.
 *
 * Threads: any number of readers (check, list, expand, read, changes) at once with one writer (models, writes,
 * loads are serialised inside).  A reader sees the store as it was when its call began, however long it runs.
 * No I/O, no clock: times are arguments.
 */
#ifndef SZ_ENGINE_ENGINE_H
#define SZ_ENGINE_ENGINE_H

#include "fga/engine/model.h"
#include "subzero/fga.h"
#include "subzero/time.h"

struct sz_engine;
struct sz_program; /* a compiled model; lives as long as its engine */

/* Why a call failed, in OpenFGA's numbers (2000 validation_error, 2002 too complex, 2021 type_not_found ...). */
struct sz_fault {
    int code;
    bool cycle; /* after a check: it met a question that it was answering already, whatever came out */
    struct sz_text message;
};
void sz_fault_set(struct sz_fault *f, int code, const char *fmt, ...) SZ_PRINTF(3, 4);

struct sz_engine *sz_engine_new(void);
void sz_engine_free(struct sz_engine *e); /* NULL is fine; no call may be running */

/* Compiles and keeps a model; `m` is not needed afterwards.  NULL: fault 2056 and what is wrong. */
const struct sz_program *sz_engine_add_model(struct sz_engine *e, const struct sz_model *m, struct sz_fault *fault);

/* ---- questions ---- */

/*
 * Asked each time that steps are used up by a question of this thread: true gives it SZ_PATIENCE_STEPS more.  NULL:
 * what the question was given is all.
 */
enum { SZ_PATIENCE_STEPS = 4096 };
struct sz_patience {
    bool (*more)(void *arg);
    void *arg;
};
void sz_engine_patience(const struct sz_patience *p);

enum { SZ_ENGINE_NO = 0, SZ_ENGINE_YES = 1, SZ_ENGINE_BUDGET = 2 };

/*
 * Check.  *steps is how much may be looked at (a relation of an object, or a tuple walked over, is one step) and is
 * reduced by what was.  SZ_ENGINE_YES, _NO; _BUDGET: the steps are used up, ask again with more elsewhere;
 * -EINVAL: *fault says why.  Any thread; no lock.
 */
int sz_engine_check(struct sz_engine *e, const struct sz_program *p, const struct sz_check *check, uint64_t *steps,
                    struct sz_fault *fault) SZ_MUST_CHECK;

/* Why: the tuples that allowed, or what was looked at in vain, as indented text. */
void sz_engine_explain(struct sz_engine *e, const struct sz_program *p, const struct sz_check *check,
                       struct sz_buf *out);

struct sz_batch_answer {
    int result; /* as sz_engine_check */
    struct sz_fault fault;
};
/* Each question by itself; one budget for all. */
void sz_engine_batch_check(struct sz_engine *e, const struct sz_program *p, const struct sz_check *checks, size_t n,
                           uint64_t *steps, struct sz_batch_answer *answers);

/* What lists share. */
struct sz_list_options {
    struct sz_slice context;
    const struct sz_tuple_key *contextual;
    size_t contextual_n;
    size_t max;      /* results; 0: no bound */
    uint64_t *steps; /* NULL: no bound */
    bool *cut;       /* set when the list was cut short by max or steps; may be NULL */
};

/* Called for each result, in no order, each once; a text valid during the call.  Non-zero ends the list. */
typedef int sz_list_fn(void *arg, struct sz_slice name);

/* Objects of the type that the user has the relation with.  0 or -EINVAL. */
int sz_engine_list_objects(struct sz_engine *e, const struct sz_program *p, struct sz_slice type,
                           struct sz_slice relation, struct sz_slice user, const struct sz_list_options *o,
                           sz_list_fn *fn, void *arg, struct sz_fault *fault) SZ_MUST_CHECK;
/* Users of the filter's type (or userset type#relation when relation.p != NULL): "user:a", "group:g#member", "user:*".
 */
int sz_engine_list_users(struct sz_engine *e, const struct sz_program *p, struct sz_slice object,
                         struct sz_slice relation, struct sz_slice filter_type, struct sz_slice filter_relation,
                         const struct sz_list_options *o, sz_list_fn *fn, void *arg,
                         struct sz_fault *fault) SZ_MUST_CHECK;
/* The API's tree as a new json_t * in *tree. */
int sz_engine_expand(struct sz_engine *e, const struct sz_program *p, struct sz_slice object, struct sz_slice relation,
                     const struct sz_list_options *o, void **tree, struct sz_fault *fault) SZ_MUST_CHECK;

/* ---- tuples ---- */

struct sz_tuple_change {
    struct sz_tuple_key key; /* a condition's context in its canonical form */
    bool deleted;
};
/* What a write is about to change, before it does; non-zero: nothing is changed, and the write's fault is 4000. */
typedef int sz_commit_fn(void *arg, const struct sz_tuple_change *v, size_t n, struct sz_wall now);

struct sz_write {
    const struct sz_tuple_key *writes, *deletes;
    size_t writes_n, deletes_n;
    bool ignore_duplicates, ignore_missing;
    bool hold;            /* later writes see it, readers only after sz_engine_publish */
    sz_commit_fn *commit; /* NULL: none */
    void *commit_arg;
    bool replace; /* with ignore_duplicates: a tuple that is there with another condition gets this one */
};
/* All or nothing; deletes first.  `p` is the model that the writes are checked against.  0 or -EINVAL. */
int sz_engine_write(struct sz_engine *e, const struct sz_program *p, const struct sz_write *w, struct sz_wall now,
                    struct sz_fault *fault) SZ_MUST_CHECK;

/* What was held is there for readers. */
void sz_engine_publish(struct sz_engine *e);

/*
 * Bringing back what was committed, without a model: as tuples, as entries of the change log, or both.  Held.
 * -EINVAL: it cannot follow what is there.  first: the number of the first change that is kept, before any other.
 */
enum { SZ_RESTORE_TUPLES = 1, SZ_RESTORE_CHANGES = 2 };
int sz_engine_restore(struct sz_engine *e, const struct sz_tuple_change *v, size_t n, unsigned what,
                      struct sz_wall when, struct sz_fault *fault) SZ_MUST_CHECK;
void sz_engine_restore_first(struct sz_engine *e, uint64_t first);
uint64_t sz_engine_first_change(struct sz_engine *e);

/* Loading many tuples: begin, add each (checked like a write; one that is there already is skipped), end.  Not in the
 * change log. */
struct sz_loader;
struct sz_loader *sz_loader_begin(struct sz_engine *e, const struct sz_program *p, struct sz_wall now);
int sz_loader_add(struct sz_loader *l, const struct sz_tuple_key *key, struct sz_fault *fault) SZ_MUST_CHECK;
void sz_loader_end(struct sz_loader *l); /* publishes all of them and frees l */

struct sz_read_filter { /* SZ_NONE or parts: object "doc:" (type only) or "doc:1"; relation; user */
    struct sz_slice object, relation, user;
};
typedef int sz_read_fn(void *arg, const struct sz_tuple_key *key, struct sz_wall written);
/*
 * Tuples after `token` (SZ_NONE: from the start), at most n, each to fn; *next gets the token to go on with, empty at
 * the end (written into `room`).  2007: not our token.
 */
#define SZ_TOKEN_ROOM 300
int sz_engine_read(struct sz_engine *e, const struct sz_read_filter *filter, struct sz_slice token, size_t n,
                   sz_read_fn *fn, void *arg, char room[SZ_TOKEN_ROOM], struct sz_slice *next,
                   struct sz_fault *fault) SZ_MUST_CHECK;

typedef int sz_change_fn(void *arg, const struct sz_tuple_key *key, bool deleted, struct sz_wall when);
/*
 * Changes after the token, oldest first, at most n; type.p == NULL: all types.  The token is the sequence number as
 * decimal text; the log keeps the last SZ_CHANGES_KEPT changes, an older token is 2007.
 */
#define SZ_CHANGES_KEPT (1U << 20)
int sz_engine_changes(struct sz_engine *e, struct sz_slice type, struct sz_slice token, size_t n, sz_change_fn *fn,
                      void *arg, char room[SZ_TOKEN_ROOM], struct sz_slice *next, struct sz_fault *fault) SZ_MUST_CHECK;
/* The token to read the changes from that second on (since 1970). */
struct sz_slice sz_engine_changes_since(struct sz_engine *e, struct sz_slice type, int64_t seconds,
                                        char room[SZ_TOKEN_ROOM]);

struct sz_engine_stats {
    size_t tuples, objects; /* objects: distinct names seen */
    uint64_t changes;       /* that the log keeps */
    uint64_t sequence;      /* of the last write */
};
void sz_engine_stats(struct sz_engine *e, struct sz_engine_stats *out);
uint64_t sz_engine_sequence(struct sz_engine *e); /* of the last write; no lock */

/* ---- files ---- */

enum sz_tuple_format { SZ_TUPLES_YAML, SZ_TUPLES_JSON, SZ_TUPLES_JSONL, SZ_TUPLES_CSV };
/* By the name's ending; -EINVAL: none of them. */
int sz_tuple_format(struct sz_slice file_name, enum sz_tuple_format *out) SZ_MUST_CHECK;
/* Each tuple of the text to fn (texts valid during the call); *why says where and what.  fn's non-zero result ends it
 * and is returned. */
typedef int sz_tuple_fn(void *arg, const struct sz_tuple_key *key, size_t line);
int sz_tuples_parse(struct sz_slice text, enum sz_tuple_format format, sz_tuple_fn *fn, void *arg,
                    struct sz_text *why) SZ_MUST_CHECK;

#endif
