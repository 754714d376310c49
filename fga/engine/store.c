/*
 * The store's life, its readers and what is freed after them.
 */
#include "fga/engine/store.h"

#include <jansson.h>
#include <stdlib.h>

#include "fga/engine/condition.h"
#include "fga/engine/pages.h"
#include "subzero/crypto.h"

/* ---- readers ---- */

static atomic_uint reader_bits[SZ_READERS / 32];
static pthread_key_t reader_key;
static pthread_once_t reader_once = PTHREAD_ONCE_INIT;
static _Thread_local int reader_id = -1;

static void release_id(void *p)
{
    unsigned id = (unsigned)((uintptr_t)p - 1);
    atomic_fetch_and(&reader_bits[id / 32], ~(1U << id % 32));
}

static void make_key(void)
{
    SZ_ASSERT(pthread_key_create(&reader_key, release_id) == 0);
}

/* A number of this thread's own, below SZ_READERS; given back when it ends. */
static int claim_id(void)
{
    pthread_once(&reader_once, make_key);
    for (unsigned i = 0; i < SZ_READERS; i++) {
        unsigned bit = 1U << i % 32;
        if ((atomic_fetch_or(&reader_bits[i / 32], bit) & bit) == 0) {
            pthread_setspecific(reader_key, (void *)(uintptr_t)(i + 1));
            return (int)i;
        }
    }
    sz_assert_failed("fewer than 256 threads read an engine", __FILE__, __LINE__);
}

void sz_view_begin(struct sz_store *s, struct sz_view *view)
{
    if (SZ_UNLIKELY(reader_id < 0))
        reader_id = claim_id();
    struct sz_readerslot *slot = &s->readers[reader_id];
    uint64_t seq = atomic_load_explicit(&s->seq, memory_order_acquire);
    if (slot->nested++ == 0) {
        /* Announced before it is used: if the writer moved on in between, it may not have seen us. */
        for (;;) {
            atomic_exchange_explicit(&slot->seq, seq, memory_order_seq_cst);
            uint64_t again = atomic_load_explicit(&s->seq, memory_order_seq_cst);
            if (again == seq)
                break;
            seq = again;
        }
    } else {
        seq = atomic_load_explicit(&slot->seq, memory_order_relaxed); /* one truth per thread */
    }
    *view = (struct sz_view){s, atomic_load_explicit(&s->names, memory_order_acquire), seq, slot};
}

void sz_view_end(struct sz_view *view)
{
    if (--view->slot->nested == 0)
        atomic_store_explicit(&view->slot->seq, 0, memory_order_release);
}

void sz_retire(struct sz_store *s, void *p, void (*fn)(void *), struct sz_block *unlink)
{
    if (s->n_retired == s->cap_retired) {
        s->cap_retired = s->cap_retired == 0 ? 64 : s->cap_retired * 2;
        s->retired = sz_xrealloc(s->retired, s->cap_retired * sizeof(*s->retired));
    }
    s->retired[s->n_retired++] =
        (struct sz_retired){p, fn, atomic_load_explicit(&s->seq, memory_order_relaxed) + 1, unlink};
}

/* In order: a block is unlinked from its successor before the successor itself can be freed. */
void sz_reclaim(struct sz_store *s)
{
    uint64_t oldest = atomic_load_explicit(&s->seq, memory_order_seq_cst);
    for (size_t i = 0; i < SZ_READERS; i++) {
        uint64_t seq = atomic_load_explicit(&s->readers[i].seq, memory_order_seq_cst);
        if (seq != 0 && seq < oldest)
            oldest = seq;
    }
    size_t done = 0;
    for (; done < s->n_retired && s->retired[done].seq <= oldest; done++) {
        if (s->retired[done].unlink != NULL)
            s->retired[done].unlink->prev = NULL;
        if (s->retired[done].p != NULL)
            s->retired[done].free(s->retired[done].p);
    }
    if (done == 0)
        return;
    memmove(s->retired, s->retired + done, (s->n_retired - done) * sizeof(*s->retired));
    s->n_retired -= done;
}

/* ---- conditions of tuples ---- */

static uint32_t cinst_hash(const struct sz_store *s, uint16_t name, struct sz_slice context)
{
    return (uint32_t)sz_name_hash(s, context) ^ (name * 0x9e3779b1U);
}

static void grow_cinsts(struct sz_store *s)
{
    struct sz_cinst **old = atomic_load_explicit(&s->cinsts, memory_order_relaxed);
    uint32_t cap = s->cap_cinsts * 2;
    struct sz_cinst **new = sz_xcalloc(cap, sizeof(struct sz_cinst *));
    memcpy(new, old, s->n_cinsts * sizeof(struct sz_cinst *));
    atomic_store_explicit(&s->cinsts, new, memory_order_release);
    sz_retire(s, old, free, NULL);
    s->cap_cinsts = cap;
    free(s->cinst_table);
    s->cinst_mask = cap * 2 - 1;
    s->cinst_table = sz_xcalloc(cap * 2, sizeof(uint32_t));
    for (uint32_t i = 1; i < s->n_cinsts; i++) {
        uint32_t at = cinst_hash(s, new[i]->name, new[i]->context) & s->cinst_mask;
        while (s->cinst_table[at] != 0)
            at = (at + 1) & s->cinst_mask;
        s->cinst_table[at] = i;
    }
}

uint32_t sz_cinst_add(struct sz_store *s, uint16_t name, struct sz_slice context)
{
    struct sz_cinst **all = atomic_load_explicit(&s->cinsts, memory_order_relaxed);
    uint32_t at = cinst_hash(s, name, context) & s->cinst_mask;
    for (; s->cinst_table[at] != 0; at = (at + 1) & s->cinst_mask) {
        const struct sz_cinst *c = all[s->cinst_table[at]];
        if (c->name == name && sz_eq(c->context, context))
            return s->cinst_table[at];
    }
    if (s->n_cinsts == s->cap_cinsts) {
        grow_cinsts(s);
        return sz_cinst_add(s, name, context);
    }
    struct sz_cinst *c = sz_xcalloc(1, sizeof(*c));
    char *copy = sz_xmalloc(context.n + 1);
    memcpy(copy, context.p != NULL ? context.p : "", context.n);
    c->name = name;
    c->context = sz_slice(copy, context.n);
    c->json = context.n > 0 ? json_loadb(copy, context.n, JSON_ALLOW_NUL, NULL) : NULL;
    all[s->n_cinsts] = c; /* seen by readers only through a block that is published later */
    s->cinst_table[at] = s->n_cinsts;
    return s->n_cinsts++;
}

static void free_cinsts(struct sz_store *s)
{
    struct sz_cinst **all = atomic_load_explicit(&s->cinsts, memory_order_relaxed);
    for (uint32_t i = 1; i < s->n_cinsts; i++) {
        sz_typed_context_free(atomic_load_explicit(&all[i]->typed, memory_order_relaxed));
        json_decref(all[i]->json);
        free((char *)all[i]->context.p);
        free(all[i]);
    }
    free(all);
    free(s->cinst_table);
}

/* ---- life ---- */

void sz_store_init(struct sz_store *s)
{
    memset(s, 0, sizeof(*s));
    sz_random(s->hash_key, sizeof(s->hash_key));
    atomic_init(&s->seq, 1);
    atomic_init(&s->names, sz_names_new(64));
    s->segments = sz_xcalloc(SZ_SEGMENTS, sizeof(*s->segments));
    s->name_chunks = sz_xcalloc(SZ_NAME_CHUNKS, sizeof(*s->name_chunks));
    s->readers = aligned_alloc(SZ_CACHE_LINE, SZ_READERS * sizeof(*s->readers));
    SZ_ASSERT(s->readers != NULL);
    memset(s->readers, 0, SZ_READERS * sizeof(*s->readers));
    s->wildcards = sz_xcalloc(SZ_WILD + 1, sizeof(*s->wildcards));
    s->cap_cinsts = 16;
    s->n_cinsts = 1;
    atomic_init(&s->cinsts, sz_xcalloc(s->cap_cinsts, sizeof(struct sz_cinst *)));
    s->cinst_mask = s->cap_cinsts * 2 - 1;
    s->cinst_table = sz_xcalloc(s->cap_cinsts * 2, sizeof(uint32_t));
}

static void free_symbols(struct sz_symbols *t)
{
    for (size_t i = 1; i < t->n; i++)
        free((char *)t->v[i].p);
    free(t->v);
}

static void free_piece(void *p, size_t index, size_t size)
{
    if (index == 0)
        free(p);
    else
        sz_pages_free(p, size);
}

void sz_store_fini(struct sz_store *s)
{
    sz_reclaim(s); /* nobody reads any more */
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        sz_block_free(atomic_load_explicit(&sz_node(s, i)->fwd, memory_order_relaxed));
        sz_block_free(atomic_load_explicit(&sz_node(s, i)->rev, memory_order_relaxed));
    }
    for (uint32_t i = 0; i << SZ_SEGMENT_BITS < s->n_nodes; i++)
        free_piece(atomic_load_explicit(&s->segments[i], memory_order_relaxed), i,
                   SZ_SEGMENT * sizeof(struct sz_node_info));
    for (size_t i = 0; s->name_chunks[i] != NULL; i++)
        free_piece(atomic_load_explicit(&s->name_chunks[i], memory_order_relaxed), i, (size_t)1 << SZ_NAME_CHUNK_BITS);
    for (size_t i = 0; i < s->n_slabs; i++)
        free_piece(s->slabs[i], i, SZ_SLAB);
    free_cinsts(s);
    free_symbols(&s->types);
    free_symbols(&s->relations);
    free_symbols(&s->conditions);
    sz_names_free(atomic_load_explicit(&s->names, memory_order_relaxed));
    free(s->segments);
    free(s->name_chunks);
    free(s->readers);
    free(s->wildcards);
    free(s->forms);
    free(s->slabs);
    free(s->retired);
}
