/*
 * Names to numbers.  "type:id" strings come from clients, so the hash is keyed (SipHash-1-3, random per
 * store) and the bytes are always compared: a match of fingerprints alone would grant rights.
 * The table is at most 62 % full; it grows by copying, readers keep the one that they began with.
 */
#include <stdlib.h>

#include "fga/engine/pages.h"
#include "fga/engine/store.h"

#define ROTL(x, b) ((x) << (b) | (x) >> (64 - (b)))
#define SIPROUND                \
    do {                        \
        v0 += v1;               \
        v1 = ROTL(v1, 13) ^ v0; \
        v0 = ROTL(v0, 32);      \
        v2 += v3;               \
        v3 = ROTL(v3, 16) ^ v2; \
        v0 += v3;               \
        v3 = ROTL(v3, 21) ^ v0; \
        v2 += v1;               \
        v1 = ROTL(v1, 17) ^ v2; \
        v2 = ROTL(v2, 32);      \
    } while (0)

static inline uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

uint64_t sz_name_hash(const struct sz_store *s, struct sz_slice name)
{
    uint64_t k0 = s->hash_key[0], k1 = s->hash_key[1];
    uint64_t v0 = UINT64_C(0x736f6d6570736575) ^ k0, v1 = UINT64_C(0x646f72616e646f6d) ^ k1;
    uint64_t v2 = UINT64_C(0x6c7967656e657261) ^ k0, v3 = UINT64_C(0x7465646279746573) ^ k1;
    const char *p = name.p;
    size_t left = name.n;
    for (; left >= 8; p += 8, left -= 8) {
        uint64_t m = load64(p);
        v3 ^= m;
        SIPROUND;
        v0 ^= m;
    }
    uint64_t last = (uint64_t)name.n << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)(unsigned char)p[i] << (8 * i);
    v3 ^= last;
    SIPROUND;
    v0 ^= last;
    v2 ^= 0xff;
    SIPROUND;
    SIPROUND;
    SIPROUND;
    return v0 ^ v1 ^ v2 ^ v3;
}

/* A stored name: its length in two bytes, then the bytes. */
static const char *name_bytes(const struct sz_store *s, uint32_t offset)
{
    size_t at = (size_t)offset << 3;
    const char *chunk = atomic_load_explicit(&s->name_chunks[at >> SZ_NAME_CHUNK_BITS], memory_order_acquire);
    return chunk + (at & (((size_t)1 << SZ_NAME_CHUNK_BITS) - 1));
}

static struct sz_slice name_at(const struct sz_store *s, uint32_t offset)
{
    const char *p = name_bytes(s, offset);
    uint16_t n;
    memcpy(&n, p, sizeof(n));
    return sz_slice(p + sizeof(n), n);
}

struct sz_slice sz_node_name(const struct sz_store *s, uint32_t id)
{
    return name_at(s, sz_node(s, id)->name);
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)hash | 1; /* 0 marks an empty slot */
}

void sz_name_prefetch_entry(const struct sz_store *s, const struct sz_names *names, uint64_t hash)
{
    uint32_t tag = tag_of(hash);
    for (uint32_t i = (uint32_t)(hash >> 32) & names->mask;; i = (i + 1) & names->mask) {
        const struct sz_slot *slot = &names->slots[i];
        uint32_t found = __atomic_load_n(&slot->tag, __ATOMIC_ACQUIRE);
        if (found == tag) {
            __builtin_prefetch(name_bytes(s, slot->name));
            __builtin_prefetch(sz_node(s, slot->node));
        }
        if (found == tag || found == 0)
            return;
    }
}

uint32_t sz_name_find(const struct sz_store *s, const struct sz_names *names, struct sz_slice name, uint64_t hash)
{
    uint32_t tag = tag_of(hash);
    for (uint32_t i = (uint32_t)(hash >> 32) & names->mask;; i = (i + 1) & names->mask) {
        const struct sz_slot *slot = &names->slots[i];
        uint32_t found = __atomic_load_n(&slot->tag, __ATOMIC_ACQUIRE);
        if (found == 0)
            return SZ_NO_NODE;
        if (found == tag && sz_eq(name_at(s, slot->name), name))
            return slot->node;
    }
}

static void insert(struct sz_names *names, struct sz_slot slot, uint64_t hash)
{
    uint32_t i = (uint32_t)(hash >> 32) & names->mask;
    while (names->slots[i].tag != 0)
        i = (i + 1) & names->mask;
    names->slots[i].node = slot.node;
    names->slots[i].name = slot.name;
    __atomic_store_n(&names->slots[i].tag, slot.tag, __ATOMIC_RELEASE); /* readers see the rest with it */
}

static size_t names_size(uint32_t slots)
{
    return sizeof(struct sz_names) + (size_t)slots * sizeof(struct sz_slot);
}

struct sz_names *sz_names_new(uint32_t slots)
{
    size_t size = names_size(slots);
    struct sz_names *names = size >= SZ_PAGE_HUGE ? sz_pages_alloc(size) : sz_xcalloc(1, size);
    names->mask = slots - 1;
    return names;
}

void sz_names_free(void *p)
{
    struct sz_names *names = p;
    size_t size = names_size(names->mask + 1);
    if (size >= SZ_PAGE_HUGE)
        sz_pages_free(names, size);
    else
        free(names);
}

static void grow_names(struct sz_store *s)
{
    struct sz_names *old = atomic_load_explicit(&s->names, memory_order_relaxed);
    struct sz_names *new = sz_names_new((old->mask + 1) * 2);
    for (uint32_t i = 0; i <= old->mask; i++)
        if (old->slots[i].tag != 0)
            insert(new, old->slots[i], sz_name_hash(s, name_at(s, old->slots[i].name)));
    atomic_store_explicit(&s->names, new, memory_order_release);
    sz_retire(s, old, sz_names_free, NULL);
}

/* Room for the name; its offset in units of 8. */
static uint32_t store_name(struct sz_store *s, struct sz_slice name)
{
    size_t chunk_size = (size_t)1 << SZ_NAME_CHUNK_BITS, size = (2 + name.n + 7) & ~(size_t)7;
    size_t left = chunk_size - (s->name_at & (chunk_size - 1));
    if (s->name_at == 0 || left < size || left == chunk_size) {
        size_t chunk = s->name_at == 0 ? 0 : (s->name_at + chunk_size - 1) >> SZ_NAME_CHUNK_BITS;
        if (chunk >= SZ_NAME_CHUNKS)
            return UINT32_MAX;
        s->name_at = chunk << SZ_NAME_CHUNK_BITS;
        atomic_store_explicit(&s->name_chunks[chunk], chunk == 0 ? sz_xmalloc(chunk_size) : sz_pages_alloc(chunk_size),
                              memory_order_release);
        if (chunk == 0)
            s->name_at = 8; /* so that "nothing used yet" stays distinct */
    }
    char *p = atomic_load_explicit(&s->name_chunks[s->name_at >> SZ_NAME_CHUNK_BITS], memory_order_relaxed) +
              (s->name_at & (chunk_size - 1));
    uint16_t n = (uint16_t)name.n;
    memcpy(p, &n, sizeof(n));
    memcpy(p + sizeof(n), name.p, name.n);
    uint32_t offset = (uint32_t)(s->name_at >> 3);
    s->name_at += size;
    return offset;
}

uint32_t sz_name_add(struct sz_store *s, struct sz_slice name, uint16_t type, bool wild)
{
    uint64_t hash = sz_name_hash(s, name);
    struct sz_names *names = atomic_load_explicit(&s->names, memory_order_relaxed);
    uint32_t id = sz_name_find(s, names, name, hash);
    if (id != SZ_NO_NODE)
        return id;
    uint32_t offset = s->n_nodes < SZ_NODES_MAX ? store_name(s, name) : UINT32_MAX;
    if (offset == UINT32_MAX)
        return SZ_NO_NODE;
    id = s->n_nodes++;
    if ((id & (SZ_SEGMENT - 1)) == 0)
        atomic_store_explicit(&s->segments[id >> SZ_SEGMENT_BITS],
                              id == 0 ? sz_xcalloc(SZ_SEGMENT, sizeof(struct sz_node_info))
                                      : sz_pages_alloc(SZ_SEGMENT * sizeof(struct sz_node_info)),
                              memory_order_release);
    struct sz_node_info *node = sz_node(s, id);
    node->name = offset;
    node->type = type;
    node->wild = wild;
    if (wild)
        atomic_store_explicit(&s->wildcards[type], id + 1, memory_order_release);
    if ((uint64_t)s->n_nodes * 8 > ((uint64_t)names->mask + 1) * 5) {
        grow_names(s);
        names = atomic_load_explicit(&s->names, memory_order_relaxed);
    }
    insert(names, (struct sz_slot){tag_of(hash), id, offset}, hash);
    return id;
}

/* ---- few names ---- */

uint16_t sz_symbol_find(const struct sz_symbols *t, struct sz_slice name)
{
    for (size_t i = 1; i < t->n; i++)
        if (sz_eq(t->v[i], name))
            return (uint16_t)i;
    return 0;
}

uint16_t sz_symbol_add(struct sz_symbols *t, struct sz_slice name)
{
    uint16_t found = sz_symbol_find(t, name);
    if (found != 0)
        return found;
    if (t->n >= SZ_WILD)
        return 0;
    if (t->n + 1 >= t->cap) {
        t->cap = t->cap == 0 ? 32 : t->cap * 2;
        t->v = sz_xrealloc(t->v, t->cap * sizeof(*t->v));
    }
    if (t->n == 0)
        t->v[t->n++] = SZ_NONE;
    char *copy = sz_xmalloc(name.n + 1);
    memcpy(copy, name.p, name.n);
    t->v[t->n] = sz_slice(copy, name.n);
    return (uint16_t)t->n++;
}

uint16_t sz_form_add(struct sz_store *s, uint16_t type, uint16_t relation)
{
    for (size_t i = 1; i < s->n_forms; i++)
        if (s->forms[i].type == type && s->forms[i].relation == relation)
            return (uint16_t)i;
    if (s->n_forms >= UINT16_MAX)
        return 0;
    if (s->n_forms + 1 >= s->cap_forms) {
        s->cap_forms = s->cap_forms == 0 ? 32 : s->cap_forms * 2;
        s->forms = sz_xrealloc(s->forms, s->cap_forms * sizeof(*s->forms));
    }
    if (s->n_forms == 0)
        s->forms[s->n_forms++] = (struct sz_form){0, 0};
    s->forms[s->n_forms] = (struct sz_form){type, relation};
    return (uint16_t)s->n_forms++;
}
