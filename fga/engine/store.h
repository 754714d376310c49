/*
 * Inside the engine: how tuples lie in memory.
 *
 *   "document:1" --intern--> node 17 --forward--> block: what is on document:1
 *                                   --reverse--> block: what document:1 is the subject of
 *
 *   block   header | row | row | row | subjects of row 1 | subjects of row 2 | ...
 *   row     (relation, form): all subjects of one form, e.g. viewer by plain users, viewer by group#member
 *   form    (type, 0) a plain object, (type, WILD) everybody, (type, relation) a userset: the subject is then the
 *           userset's object, its relation is in the form
 *
 * A reverse row is (relation, form of the object's type and the subject's relation) -> objects.
 *
 * Blocks never change.  A write makes new ones for the two nodes that it touches, numbered with its sequence,
 * each pointing to the one before; a reader that began earlier steps back until it finds one of its time.  There
 * is one writer (the engine's mutex); readers take no lock and count nothing: they announce their sequence in a
 * slot of their thread, and what was replaced is freed when every announced sequence has passed it.
 */
#ifndef SZ_ENGINE_STORE_H
#define SZ_ENGINE_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "subzero/base.h"
#include "subzero/time.h"

#define SZ_WILD 0xffff /* as a form's relation: type:* */

/* ---- blocks ---- */

#define SZ_ROW_BIG  0x80000000U /* the payload is a pointer to a sz_big */
#define SZ_ROW_COND 0x40000000U /* condition numbers follow the subjects */
#define SZ_ROW_N    0x0fffffffU

struct sz_row {
    uint32_t key; /* relation << 16 | form */
    uint32_t n;   /* and the flags above */
};
struct sz_block {
    struct sz_block *prev; /* of an earlier sequence */
    uint64_t seq;
    uint32_t time; /* seconds since 1970 of every tuple in it, unless SZ_BLOCK_TIMES */
    uint16_t n_rows;
    uint16_t flags;
    struct sz_row rows[]; /* by key; then words: the payloads, then times of the rows that are not big */
};
enum { SZ_BLOCK_SLAB = 1, SZ_BLOCK_TIMES = 2 };
enum { SZ_SLAB = 1 << 21 };

/* A large row: a hash set cut into small sorted chunks, so that a change copies one of them. */
struct sz_chunk {
    uint32_t n;
    uint32_t conds; /* number of condition entries: n or 0 */
    uint32_t v[];   /* subjects, conditions, times */
};
struct sz_big {
    uint32_t n;
    uint32_t shift; /* chunk of a subject: its hash >> shift */
    bool cond;      /* some tuple has a condition */
    struct sz_chunk *chunks[];
};
enum { SZ_BIG_FROM = 129, SZ_BIG_CHUNK = 48 };

static inline uint32_t sz_row_key(uint16_t relation, uint16_t form)
{
    return (uint32_t)relation << 16 | form;
}
static inline uint32_t sz_big_hash(uint32_t subject)
{
    return subject * 0x9e3779b1U;
}

/* A row to read: either big or an array. */
struct sz_rowref {
    uint32_t n;
    const uint32_t *subjects, *conds, *times; /* conds NULL: no conditions; times NULL: the block's time */
    const struct sz_big *big;
};
/* The row with this key into *out; n == 0 when the block (may be NULL) has none. */
void sz_block_row(const struct sz_block *b, uint32_t key, struct sz_rowref *out);
/* The i-th row. */
struct sz_rowref sz_block_at(const struct sz_block *b, size_t i);
static inline bool sz_row_conditional(const struct sz_rowref *row)
{
    return row->big != NULL ? row->big->cond : row->conds != NULL;
}

/* Where x is in a sorted array; no branch to mispredict: the half is chosen by a conditional move. */
static inline bool sz_sorted_find(const uint32_t *v, uint32_t n, uint32_t x, uint32_t *at)
{
    const uint32_t *base = v;
    while (n > 1) {
        uint32_t half = n / 2;
        base = base[half] <= x ? base + half : base;
        n -= half;
    }
    *at = (uint32_t)(base - v);
    return n == 1 && *base == x;
}
bool sz_big_has(const struct sz_big *big, uint32_t subject, uint32_t *cond);
/* Whether the subject is in the row; its condition (0: none) when cond != NULL. */
static inline bool sz_row_has(const struct sz_rowref *row, uint32_t subject, uint32_t *cond)
{
    uint32_t at;
    if (SZ_UNLIKELY(row->big != NULL))
        return sz_big_has(row->big, subject, cond);
    if (row->n == 0 || !sz_sorted_find(row->subjects, row->n, subject, &at))
        return false;
    if (cond != NULL)
        *cond = row->conds != NULL ? row->conds[at] : 0;
    return true;
}

/* Walks a row in no particular order. */
struct sz_rowiter {
    struct sz_rowref row;
    uint32_t chunk, at;
    uint32_t subject, cond, time; /* the current one; time 0: the block's */
};
/* Begins behind a row that was put into it->row. */
static inline void sz_row_begin(struct sz_rowiter *it)
{
    it->chunk = it->at = 0;
}
bool sz_row_next(struct sz_rowiter *it);

struct sz_entry_value { /* one tuple as a block stores it */
    uint32_t key, subject, cond, time;
};

struct sz_store;
/* A copy with one tuple more (replacing the same one) or one less; what it replaces inside is retired. */
struct sz_block *sz_block_add(struct sz_store *s, struct sz_block *old, struct sz_entry_value v, uint64_t seq);
struct sz_block *sz_block_remove(struct sz_store *s, struct sz_block *old, struct sz_entry_value v, uint64_t seq);
/* From sorted (key, subject), distinct entries; small ones in the store's slabs. */
struct sz_block *sz_block_build(struct sz_store *s, const struct sz_entry_value *v, size_t n);
void sz_block_free(struct sz_block *b);

/* ---- nodes and names ---- */

struct sz_node_info { /* two to a cache line */
    _Atomic(struct sz_block *) fwd, rev;
    uint32_t name; /* in the name chunks, units of 8 bytes */
    uint16_t type;
    uint16_t wild; /* it is type:* */
    uint64_t spare;
};

struct sz_slot { /* of the table of names */
    uint32_t tag, node, name;
};
struct sz_names {
    uint32_t mask; /* slots - 1 */
    struct sz_slot slots[];
};

enum { SZ_SEGMENT_BITS = 16, SZ_SEGMENT = 1 << SZ_SEGMENT_BITS, SZ_SEGMENTS = 1 << 14, SZ_NODES_MAX = 1 << 30 };
enum { SZ_NAME_CHUNK_BITS = 21, SZ_NAME_CHUNKS = 1 << 14 }; /* bytes per chunk; a name's offset is chunk, then place */
enum { SZ_READERS = 256 };

struct sz_retired {
    void *p;
    void (*free)(void *p);
    uint64_t seq;            /* no reader of an earlier sequence may run */
    struct sz_block *unlink; /* its prev is cleared before */
};

struct sz_readerslot {
    _Alignas(SZ_CACHE_LINE) _Atomic uint64_t seq; /* 0: not reading */
    uint32_t nested;                              /* the slot's thread only */
};

struct sz_symbols {     /* names of types, relations, conditions: few, never forgotten */
    struct sz_slice *v; /* number -> name; 0 is unused */
    size_t n, cap;
};
struct sz_form {
    uint16_t type, relation;
};

struct sz_cinst { /* a tuple's condition: name and context; shared by all tuples that have the same */
    uint16_t name;
    struct sz_slice context;                  /* JSON text */
    void *json;                               /* json_t *, never touched after it is made */
    _Atomic(struct sz_typed_context *) typed; /* the context as one model's parameters; see condition.c */
};

struct sz_store {
    /* readers and the writer */
    _Atomic uint64_t seq;
    _Atomic(struct sz_names *) names;
    _Atomic(struct sz_node_info *) *segments;
    _Atomic(char *) *name_chunks;
    _Atomic(struct sz_cinst **) cinsts; /* array of cap_cinsts; grown by copying */
    struct sz_readerslot *readers;      /* SZ_READERS */
    _Atomic uint32_t *wildcards;        /* by type: the node of type:* + 1, 0: never seen */
    uint64_t hash_key[2];

    /* the writer, under the engine's mutex */
    uint32_t n_nodes, n_names_used;
    size_t name_at; /* bytes used of all name chunks */
    struct sz_symbols types, relations, conditions;
    struct sz_form *forms;
    size_t n_forms, cap_forms;
    uint32_t n_cinsts, cap_cinsts;
    uint32_t *cinst_table; /* open addressing over cinsts */
    uint32_t cinst_mask;
    struct sz_retired *retired;
    size_t n_retired, cap_retired;
    char **slabs;
    size_t n_slabs, slab_used;
    size_t n_tuples, bytes; /* bytes: blocks made and not yet freed, slabs included */
};

void sz_store_init(struct sz_store *s);
void sz_store_fini(struct sz_store *s);

static inline struct sz_node_info *sz_node(const struct sz_store *s, uint32_t id)
{
    struct sz_node_info *segment = atomic_load_explicit(&s->segments[id >> SZ_SEGMENT_BITS], memory_order_acquire);
    return &segment[id & (SZ_SEGMENT - 1)];
}
struct sz_slice sz_node_name(const struct sz_store *s, uint32_t id);

#define SZ_NO_NODE UINT32_MAX
static inline uint32_t sz_wildcard_node(const struct sz_store *s, uint16_t type)
{
    return atomic_load_explicit(&s->wildcards[type], memory_order_acquire) - 1;
}
uint64_t sz_name_hash(const struct sz_store *s, struct sz_slice name);
static inline void sz_name_prefetch(const struct sz_names *names, uint64_t hash)
{
    __builtin_prefetch(&names->slots[(uint32_t)(hash >> 32) & names->mask]);
}
/* Where the name probably is: its bytes and its node are on their way afterwards. */
void sz_name_prefetch_entry(const struct sz_store *s, const struct sz_names *names, uint64_t hash);
/* SZ_NO_NODE when the name is not there. */
uint32_t sz_name_find(const struct sz_store *s, const struct sz_names *names, struct sz_slice name, uint64_t hash);
/* The writer: finds or makes the node.  SZ_NO_NODE: there are too many. */
uint32_t sz_name_add(struct sz_store *s, struct sz_slice name, uint16_t type, bool wild);
struct sz_names *sz_names_new(uint32_t slots); /* a power of two */
void sz_names_free(void *names);

/* Number of a name from 1; 0: absent (find), too many (add). */
uint16_t sz_symbol_find(const struct sz_symbols *t, struct sz_slice name);
uint16_t sz_symbol_add(struct sz_symbols *t, struct sz_slice name);
/* The writer.  0 is the form of nothing. */
uint16_t sz_form_add(struct sz_store *s, uint16_t type, uint16_t relation);
uint32_t sz_cinst_add(struct sz_store *s, uint16_t name, struct sz_slice context);
static inline const struct sz_cinst *sz_cinst(const struct sz_store *s, uint32_t id)
{
    return atomic_load_explicit(&s->cinsts, memory_order_acquire)[id];
}

/* ---- readers ---- */

/* What a reader sees until sz_view_end.  Nests on a thread; keep it short: what it sees cannot be freed. */
struct sz_view {
    const struct sz_store *store;
    const struct sz_names *names;
    uint64_t seq;
    struct sz_readerslot *slot;
};
void sz_view_begin(struct sz_store *s, struct sz_view *view);
void sz_view_end(struct sz_view *view);

static inline const struct sz_block *sz_view_block(const struct sz_view *v, _Atomic(struct sz_block *) *head)
{
    const struct sz_block *b = atomic_load_explicit(head, memory_order_acquire);
    while (b != NULL && SZ_UNLIKELY(b->seq > v->seq))
        b = b->prev;
    return b;
}

/* The writer: frees p (by `fn`) once no reader of an earlier sequence than the next one runs. */
void sz_retire(struct sz_store *s, void *p, void (*fn)(void *), struct sz_block *unlink);
void sz_reclaim(struct sz_store *s);

#endif
