/*
 * What the files of this folder share: the hub, its stores and their models, and one call on its way through.
 *
 * Who owns what: the table of stores and their names are under the hub's lock, a store's list of models and their
 * assertions are under the store's.  Both are held for look-ups and single insertions alone, and never together.
 * Everything changes on the writer's thread only (or before the loops run), so that thread may read what it likes
 * without the lock.  A model never changes and lives as long as its store.
 */
#ifndef SZ_FGA_API_HUB_H
#define SZ_FGA_API_HUB_H

#include <pthread.h>
#include <stdatomic.h>

#include "fga/api/errand.h"
#include "fga/api/stream.h"
#include "fga/engine/engine.h"
#include "subzero/fga_api.h"

#define SZ_ULID 26

enum {
    SZ_STORES_MAX = 4096,
    SZ_MODELS_MAX = 1000,     /* of a store */
    SZ_ASSERTIONS_MAX = 100,  /* of a model */
    SZ_BATCH_MAX = 50,        /* checks of a batch */
    SZ_LIST_MAX = 1000,       /* results of a list */
    SZ_STREAM_MAX = 1000000,  /* results of a streamed one */
    SZ_MODEL_BYTES = 1 << 18, /* of a model's JSON */
};

struct sz_fga_model {
    char id[SZ_ULID + 1];
    char *json; /* without the id, compact */
    const struct sz_program *program;
    char *assertions; /* JSON array, NULL: none; under the store's lock */
};

struct sz_fga_store {
    struct sz_errand burial; /* the last one to let go has the writer free it */
    struct sz_fga_hub *hub;  /* NULL: none knows it */
    char id[SZ_ULID + 1];
    char *name; /* this and `updated` under the hub's lock */
    struct sz_wall created, updated;
    struct sz_engine *engine;
    atomic_uint refs;
    pthread_mutex_t lock;
    struct sz_fga_model **models; /* oldest first */
    size_t n_models, cap_models;
};

struct sz_fga_hub {
    struct sz_fga_clock clock;
    struct sz_errands *pool, *streams, *writer;
    pthread_mutex_t lock;
    struct sz_fga_store **stores; /* by id, which is by age */
    size_t n_stores, cap_stores;
    /* the writer's, or of the thread that opens the hub */
    char last_id[SZ_ULID + 1];
    _Atomic uint64_t log_bytes; /* for the health page */
    atomic_bool durable, broken;
    struct sz_audit *audit;            /* NULL: off */
    struct sz_journal *journal;        /* NULL: stores live in memory */
    uint64_t changes, shorten_at;      /* in the log; how many it may have before it is looked at */
    struct sz_ofga *held, **held_last; /* written, to be answered when it is synced */
    uint64_t instance;                 /* random: see the epoch of an authorization source */
};

/* ---- stores (hub.c) ---- */

/* A reference, or NULL.  Any thread. */
struct sz_fga_store *sz_hub_store(struct sz_fga_hub *hub, struct sz_slice id);
void sz_hub_store_ref(struct sz_fga_store *store);
void sz_hub_store_unref(struct sz_fga_store *store); /* NULL is fine; any thread, does not block */
/* The model, or the newest for an absent id; NULL: none.  As long as the store is held. */
const struct sz_fga_model *sz_hub_model(struct sz_fga_store *store, struct sz_slice id);

/* On disk: as sz_fga_hub_open, with what touches the disk. */
struct sz_disk;
int sz_hub_open_on(struct sz_fga_hub *hub, const char *dir, const struct sz_disk *disk,
                   struct sz_text *why) SZ_MUST_CHECK;
/* Writes the log anew, without history that nobody needs.  -errno: the old one goes on. */
int sz_hub_shorten(struct sz_fga_hub *hub) SZ_MUST_CHECK;

/* Runs fn on the writer's thread and waits for it: not from a loop, nor from the writer. */
void sz_hub_on_writer(struct sz_fga_hub *hub, void (*fn)(void *arg), void *arg);
bool sz_hub_in_time(const struct sz_fga_hub *hub, struct sz_mono deadline);
/* Until when an errand of the pool that begins now may run before it gives way to others. */
struct sz_mono sz_hub_quantum(const struct sz_fga_hub *hub, const struct sz_errand *e);
/* The writer's.  A new id, greater than all before it. */
void sz_hub_new_id(struct sz_fga_hub *hub, char out[SZ_ULID + 1]);
/* A store that nobody knows yet; one reference. */
struct sz_fga_store *sz_hub_store_new(struct sz_fga_hub *hub, const char *id, struct sz_slice name, struct sz_wall now);
void sz_hub_store_rename(struct sz_fga_store *store, struct sz_slice name, struct sz_wall now);
/* Into the table, which takes the reference; out of it, which gives it to the caller. */
void sz_hub_store_add(struct sz_fga_store *store);
void sz_hub_store_remove(struct sz_fga_store *store);
/* Compiles; -EINVAL: *fault.  The model is not in the store's list yet. */
struct sz_fga_model *sz_hub_model_new(struct sz_fga_store *store, const char *id, const struct sz_model *m,
                                      struct sz_fault *fault);
char *sz_hub_model_text(const struct sz_model *m); /* a model's JSON as stores keep it; malloc'ed */
/* The newest with this JSON; NULL: none. */
const struct sz_fga_model *sz_hub_model_by_json(struct sz_fga_store *store, const char *json);
void sz_hub_model_free(struct sz_fga_model *model);
void sz_hub_model_add(struct sz_fga_store *store, struct sz_fga_model *model);

bool sz_ulid_valid(struct sz_slice id);

/* ---- a call ---- */

struct sz_ofga_endpoint;

/* One call, from its start to its reply: on the loop's stack while it is short, else a copy as an errand. */
struct sz_ofga {
    struct sz_errand errand;
    struct sz_fga_hub *hub;
    struct sz_fga_reply *asker;
    const struct sz_ofga_endpoint *endpoint;
    struct sz_slice store_id, model_id, query, body;
    /* for the audit */
    struct sz_slice key_name; /* of the key that was shown */
    struct sz_addr peer;
    struct sz_buf detail; /* what was changed */
    struct sz_mono deadline, quantum;
    uint64_t steps;         /* may be spent here */
    bool yields;            /* a call that needs more says SZ_OFGA_LATER, and begins anew where there is more */
    struct sz_lines *lines; /* streamed: what goes out before the end; NULL: all of it in `out` */
    struct sz_arena arena;
    struct sz_fga_store *store;
    bool hold; /* the writer's: answered when it is synced */
    struct sz_ofga *next_held;
    /* the answer */
    unsigned status;
    struct sz_buf out;
};

enum sz_ofga_step { SZ_OFGA_DONE, SZ_OFGA_LATER };
typedef enum sz_ofga_step sz_ofga_fn(struct sz_ofga *api);

enum sz_ofga_where {
    SZ_OFGA_LOOP, /* first here, and on the pool when that is long */
    SZ_OFGA_POOL,
    SZ_OFGA_STREAM, /* on a thread that may wait for its client */
    SZ_OFGA_WRITER
};

struct sz_ofga_endpoint {
    const char *method, *path; /* {s}: a store's id; {m}: a model's */
    enum sz_ofga_where where;
    bool writes; /* needs a key that may write */
    sz_ofga_fn *serve;
    const char *action; /* of the audit; NULL: it changes nothing */
};

sz_ofga_fn sz_ofga_health, sz_ofga_create_store, sz_ofga_list_stores, sz_ofga_get_store, sz_ofga_rename_store,
    sz_ofga_delete_store;
sz_ofga_fn sz_ofga_write_model, sz_ofga_read_model, sz_ofga_read_models;
sz_ofga_fn sz_ofga_write, sz_ofga_read, sz_ofga_changes;
sz_ofga_fn sz_ofga_check, sz_ofga_batch_check, sz_ofga_list_objects, sz_ofga_stream_objects, sz_ofga_list_users,
    sz_ofga_expand;
sz_ofga_fn sz_ofga_read_assertions, sz_ofga_write_assertions;

/* ---- answers (error.c) ---- */

/* {"code", "message"} with the status that the code has.  Returns SZ_OFGA_DONE, as every answer does. */
enum sz_ofga_step sz_ofga_fail(struct sz_ofga *api, int code, const char *fmt, ...) SZ_PRINTF(3, 4);
enum sz_ofga_step sz_ofga_fault(struct sz_ofga *api, const struct sz_fault *fault);
const char *sz_ofga_code_name(int code); /* "validation_error" */
enum { SZ_OFGA_ABORTED = 409, SZ_OFGA_TIMEOUT = 4004, SZ_OFGA_BUSY = 4006 };

/* ---- parts of requests and answers (json.c) ---- */

/* The body as a JSON object (json_t *, the caller's), or NULL: answered with what is wrong. */
void *sz_ofga_object(struct sz_ofga *api);
/* A member under its name, or the camelCase of it, as the protocol's JSON allows; NULL: absent or null. */
const void *sz_ofga_member(const void *object, const char *name);
/* A member of that type.  SZ_NONE, 0 or NULL when absent; false: of another type, and answered. */
bool sz_ofga_text(struct sz_ofga *api, const void *object, const char *name, struct sz_slice *out);
bool sz_ofga_sub(struct sz_ofga *api, const void *object, const char *name, const void **out);
bool sz_ofga_list(struct sz_ofga *api, const void *object, const char *name, const void **out);
/* A member that is a JSON object, as text in the arena; SZ_NONE: absent. */
bool sz_ofga_json(struct sz_ofga *api, const void *object, const char *name, struct sz_slice *out);
/* What the protocol's own patterns refuse, before any model is asked: 1 to most characters without blanks and ":#@"; 2
 * to most without blanks.  False: answered. */
bool sz_ofga_word(struct sz_ofga *api, struct sz_slice s, size_t most, const char *field);
bool sz_ofga_name(struct sz_ofga *api, struct sz_slice s, size_t most, const char *field);
/* A check's own key needs all three. */
bool sz_ofga_check_key(struct sz_ofga *api, const struct sz_tuple_key *key);
/* A tuple key.  Texts live as long as the object; a condition's context is in the arena. */
bool sz_ofga_key(struct sz_ofga *api, const void *object, struct sz_tuple_key *out);
bool sz_ofga_keys(struct sz_ofga *api, const void *list, size_t most, struct sz_tuple_key **out, size_t *n);
/* contextual_tuples: {tuple_keys: [...]}, or the plain list that ListUsers and assertions have. */
bool sz_ofga_contextual(struct sz_ofga *api, const void *object, const struct sz_tuple_key **out, size_t *n);
/* page_size of a body or a query: 1 to 100, 50 when absent. */
bool sz_ofga_page_size(struct sz_ofga *api, const void *object, size_t *out);

/* A parameter of the query, decoded into the arena; SZ_NONE: absent. */
struct sz_slice sz_ofga_param(struct sz_ofga *api, const char *name);

void sz_ofga_put_time(struct sz_buf *out, struct sz_wall t);
void sz_ofga_put_key(struct sz_buf *out, const struct sz_tuple_key *key);
/* Continuation tokens are opaque to clients: base64url of ours. */
void sz_ofga_put_token(struct sz_buf *out, struct sz_slice token);
bool sz_ofga_token(struct sz_ofga *api, struct sz_slice text, struct sz_slice *out);

/* ---- what calls begin with (dispatch.c) ---- */

/* A change, made or refused, to the audit; nothing for calls that change nothing.  Any thread. */
void sz_ofga_record(struct sz_ofga *api);
/* A write that was held: readers see it, or it is answered as a failure and none ever does. */
void sz_hub_settle(struct sz_ofga *api, bool synced);
/* The whole call on this thread, whatever it is, within a loop's steps: where there are no loops. */
void sz_ofga_answer_here(struct sz_fga_hub *hub, const struct sz_fga_call *call, struct sz_fga_reply *reply);
/* api->store; false: there is none, and that is answered. */
bool sz_ofga_store(struct sz_ofga *api);
/* The same for questions: to OpenFGA a store that is not there is one without models. */
bool sz_ofga_asked_store(struct sz_ofga *api, const void *object);
/* The model of the request's authorization_model_id, or the newest; NULL: answered. */
const struct sz_fga_model *sz_ofga_model(struct sz_ofga *api, const void *object);

#endif
