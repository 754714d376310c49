#include "cache/threat_blocks.h"

#include <stdlib.h>

void sz_blocks_fini(struct sz_blocks *blocks)
{
    free(blocks->v);
    free(blocks->names);
    *blocks = (struct sz_blocks){0};
}

static bool same_who(const struct sz_threat_record *a, const struct sz_threat_record *b)
{
    return a->is_subject == b->is_subject && sz_addr_eq(a->addr, b->addr) && strcmp(a->issuer, b->issuer) == 0 &&
           strcmp(a->subject, b->subject) == 0;
}

struct sz_block *sz_blocks_find(struct sz_blocks *blocks, uint64_t name, const struct sz_threat_record *who)
{
    for (size_t i = 0; i < blocks->n; i++) {
        if (blocks->names[i] == name && same_who(&blocks->v[i].r, who))
            return &blocks->v[i];
    }
    return NULL;
}

struct sz_block *sz_blocks_by_id(struct sz_blocks *blocks, uint64_t id)
{
    for (size_t i = 0; i < blocks->n; i++) {
        if (id != 0 && blocks->v[i].r.id == id)
            return &blocks->v[i];
    }
    return NULL;
}

static size_t free_slot(struct sz_blocks *blocks)
{
    for (size_t i = 0; i < blocks->n; i++) {
        if (blocks->names[i] == 0)
            return i;
    }
    if (blocks->n == blocks->cap) {
        blocks->cap = blocks->cap == 0 ? 16 : blocks->cap * 2;
        blocks->v = sz_xrealloc(blocks->v, blocks->cap * sizeof(*blocks->v));
        blocks->names = sz_xrealloc(blocks->names, blocks->cap * sizeof(*blocks->names));
    }
    return blocks->n++;
}

struct sz_block *sz_blocks_add(struct sz_blocks *blocks, uint64_t name, const struct sz_threat_record *r)
{
    SZ_ASSERT(name != 0 && r->id != 0 && !r->is_event);
    if (blocks->used[r->by_score] >= SZ_THREAT_RECORDS)
        return NULL;
    size_t at = free_slot(blocks);
    blocks->v[at] = (struct sz_block){.r = *r};
    blocks->names[at] = name;
    blocks->used[r->by_score]++;
    return &blocks->v[at];
}

void sz_blocks_set(struct sz_blocks *blocks, struct sz_block *block, const struct sz_threat_record *r)
{
    blocks->used[block->r.by_score]--;
    blocks->used[r->by_score]++;
    block->r = *r;
}

void sz_blocks_drop(struct sz_blocks *blocks, struct sz_block *block)
{
    SZ_ASSERT(!block->share.publishing);
    blocks->used[block->r.by_score]--;
    blocks->names[block - blocks->v] = 0;
    block->r.id = 0;
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int sz_blocks_compare(const struct sz_threat_record *a, const struct sz_threat_record *b)
{
    int by_time = order(a->made.us, b->made.us), by_lift = (a->until.us == 0) - (b->until.us == 0);
    if (by_time != 0 || by_lift != 0)
        return by_time != 0 ? by_time : by_lift;
    int by_end = order(a->until.us, b->until.us);
    return by_end != 0 ? by_end : (a->id > b->id) - (a->id < b->id);
}

/* ---- sealed ------------------------------------------------------------------------------------------------------
 *
 *   version 1 │ flags 1 │ id 8 │ made 8 │ until 8 │ keep 8 │ address 16 │ issuer, subject, reason: length 1, bytes 255
 *
 * All of one length, little endian, filled up with zeros: not even how long a name is shows.
 */

enum { VERSION = 1, SUBJECT = 1, BY_SCORE = 2, TEXT = 1 + 255 };
static const int64_t WALL_MOST = INT64_C(253402300800) * 1000000; /* the year 10000 */

static void put_u64(struct sz_buf *out, uint64_t v)
{
    char bytes[8];
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (char)(v >> 8 * i);
    sz_buf_add(out, bytes, 8);
}

static void put_text(struct sz_buf *out, const char text[SZ_THREAT_TEXT])
{
    char bytes[TEXT] = {0};
    size_t n = strlen(text);
    bytes[0] = (char)n;
    memcpy(bytes + 1, text, n);
    sz_buf_add(out, bytes, TEXT);
}

void sz_block_encode(const struct sz_threat_record *r, struct sz_buf *plain)
{
    const char head[2] = {VERSION, (char)((r->is_subject ? SUBJECT : 0) | (r->by_score ? BY_SCORE : 0))};
    static const char zeros[SZ_BLOCK_PLAIN];
    sz_buf_add(plain, head, 2);
    put_u64(plain, r->id);
    put_u64(plain, (uint64_t)r->made.us);
    put_u64(plain, (uint64_t)r->until.us);
    put_u64(plain, (uint64_t)r->keep.us);
    sz_buf_add(plain, (const char *)r->addr.b, sizeof(r->addr.b));
    put_text(plain, r->issuer);
    put_text(plain, r->subject);
    put_text(plain, r->reason);
    sz_buf_add(plain, zeros, SZ_BLOCK_PLAIN - plain->n);
}

static uint64_t get_u64(struct sz_slice *in)
{
    uint64_t v = 0;
    for (size_t i = 0; i < 8; i++)
        v |= (uint64_t)(uint8_t)in->p[i] << 8 * i;
    *in = sz_from(*in, 8);
    return v;
}

static bool get_text(struct sz_slice *in, char out[SZ_THREAT_TEXT])
{
    size_t n = (uint8_t)in->p[0];
    memcpy(out, in->p + 1, n);
    out[n] = '\0';
    *in = sz_from(*in, TEXT);
    return strlen(out) == n;
}

static bool sound(const struct sz_threat_record *r)
{
    bool whom = r->is_subject
                    ? r->issuer[0] != '\0' && r->subject[0] != '\0' && sz_addr_eq(r->addr, (struct sz_addr){0})
                    : r->issuer[0] == '\0' && r->subject[0] == '\0';
    return whom && r->id != 0 && r->made.us > 0 && r->made.us < WALL_MOST && r->until.us >= 0 && r->keep.us > 0 &&
           r->keep.us < WALL_MOST && r->until.us <= r->keep.us;
}

bool sz_block_decode(struct sz_slice plain, struct sz_threat_record *r)
{
    if (plain.n != SZ_BLOCK_PLAIN || plain.p[0] != VERSION || (plain.p[1] & ~(SUBJECT | BY_SCORE)) != 0)
        return false;
    *r = (struct sz_threat_record){
        .signal = SZ_SIGNALS, .is_subject = (plain.p[1] & SUBJECT) != 0, .by_score = (plain.p[1] & BY_SCORE) != 0};
    plain = sz_from(plain, 2);
    r->id = get_u64(&plain);
    r->made.us = (int64_t)get_u64(&plain);
    r->until.us = (int64_t)get_u64(&plain);
    r->keep.us = (int64_t)get_u64(&plain);
    memcpy(r->addr.b, plain.p, sizeof(r->addr.b));
    plain = sz_from(plain, sizeof(r->addr.b));
    return get_text(&plain, r->issuer) && get_text(&plain, r->subject) && get_text(&plain, r->reason) && sound(r);
}
