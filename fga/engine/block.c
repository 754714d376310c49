/*
 * Blocks: finding rows, and making the copies that writes publish.
 */
#include <stdlib.h>

#include "fga/engine/pages.h"
#include "fga/engine/store.h"

static size_t payload_words(uint32_t n)
{
    if ((n & SZ_ROW_BIG) != 0)
        return 2;
    return (size_t)(n & SZ_ROW_N) * ((n & SZ_ROW_COND) != 0 ? 2 : 1);
}

static const uint32_t *words_of(const struct sz_block *b)
{
    return (const uint32_t *)(const void *)&b->rows[b->n_rows];
}

static struct sz_big *big_of(const uint32_t *words)
{
    struct sz_big *big;
    memcpy(&big, words, sizeof(big));
    return big;
}

static void make_ref(uint32_t n, const uint32_t *words, struct sz_rowref *out)
{
    out->n = n & SZ_ROW_N;
    out->subjects = words;
    out->conds = (n & SZ_ROW_COND) != 0 ? words + out->n : NULL;
    out->times = NULL;
    out->big = (n & SZ_ROW_BIG) != 0 ? big_of(words) : NULL;
}

void sz_block_row(const struct sz_block *b, uint32_t key, struct sz_rowref *out)
{
    if (b != NULL) {
        const uint32_t *words = words_of(b);
        for (size_t i = 0; i < b->n_rows; words += payload_words(b->rows[i].n), i++)
            if (b->rows[i].key == key) {
                make_ref(b->rows[i].n, words, out);
                return;
            }
    }
    *out = (struct sz_rowref){0};
}

struct sz_rowref sz_block_at(const struct sz_block *b, size_t at)
{
    const uint32_t *words = words_of(b), *times = NULL;
    struct sz_rowref ref = {0};
    size_t before = 0;
    for (size_t i = 0; i < b->n_rows; words += payload_words(b->rows[i].n), i++) {
        if (i == at)
            make_ref(b->rows[i].n, words, &ref);
        if (i < at && (b->rows[i].n & SZ_ROW_BIG) == 0)
            before += b->rows[i].n & SZ_ROW_N;
    }
    times = words; /* behind all payloads */
    if ((b->flags & SZ_BLOCK_TIMES) != 0 && ref.big == NULL)
        ref.times = times + before;
    return ref;
}

bool sz_big_has(const struct sz_big *big, uint32_t subject, uint32_t *cond)
{
    const struct sz_chunk *c = big->chunks[sz_big_hash(subject) >> big->shift];
    uint32_t at;
    if (c->n == 0 || !sz_sorted_find(c->v, c->n, subject, &at))
        return false;
    if (cond != NULL)
        *cond = c->conds != 0 ? c->v[c->n + at] : 0;
    return true;
}

bool sz_row_next(struct sz_rowiter *it)
{
    if (it->row.big == NULL) {
        if (it->at >= it->row.n)
            return false;
        it->subject = it->row.subjects[it->at];
        it->cond = it->row.conds != NULL ? it->row.conds[it->at] : 0;
        it->time = it->row.times != NULL ? it->row.times[it->at] : 0;
        it->at++;
        return true;
    }
    const struct sz_big *big = it->row.big;
    uint32_t chunks = 1U << (32 - big->shift);
    for (; it->chunk < chunks; it->chunk++, it->at = 0) {
        const struct sz_chunk *c = big->chunks[it->chunk];
        if (it->at >= c->n)
            continue;
        it->subject = c->v[it->at];
        it->cond = c->conds != 0 ? c->v[c->n + it->at] : 0;
        it->time = c->v[c->n + c->conds + it->at];
        it->at++;
        return true;
    }
    return false;
}

/* ---- big rows ---- */

static struct sz_chunk *make_chunk(const struct sz_entry_value *v, uint32_t n)
{
    bool cond = false;
    for (uint32_t i = 0; i < n; i++)
        cond |= v[i].cond != 0;
    struct sz_chunk *c = sz_xmalloc(sizeof(*c) + (size_t)n * (cond ? 3 : 2) * sizeof(uint32_t) + sizeof(uint32_t));
    c->n = n;
    c->conds = cond ? n : 0;
    for (uint32_t i = 0; i < n; i++) {
        c->v[i] = v[i].subject;
        if (cond)
            c->v[n + i] = v[i].cond;
        c->v[n + c->conds + i] = v[i].time;
    }
    return c;
}

static int by_chunk(const void *a, const void *b)
{
    const struct sz_entry_value *x = a, *y = b;
    uint32_t hx = sz_big_hash(x->subject), hy = sz_big_hash(y->subject);
    return (hx > hy) - (hx < hy);
}

static int by_subject(const void *a, const void *b)
{
    const struct sz_entry_value *x = a, *y = b;
    return (x->subject > y->subject) - (x->subject < y->subject);
}

static struct sz_big *big_build(const struct sz_entry_value *values, size_t n)
{
    uint32_t bits = 1;
    while (((size_t)SZ_BIG_CHUNK << bits) < n)
        bits++;
    size_t chunks = (size_t)1 << bits;
    struct sz_big *big = sz_xmalloc(sizeof(*big) + chunks * sizeof(struct sz_chunk *));
    struct sz_entry_value *v = sz_xmalloc(n * sizeof(*v));
    memcpy(v, values, n * sizeof(*v));
    qsort(v, n, sizeof(*v), by_chunk);
    *big = (struct sz_big){.n = (uint32_t)n, .shift = 32 - bits};
    size_t at = 0;
    for (size_t c = 0; c < chunks; c++) {
        size_t end = at;
        for (; end < n && sz_big_hash(v[end].subject) >> big->shift == c; end++)
            big->cond |= v[end].cond != 0;
        qsort(v + at, end - at, sizeof(*v), by_subject);
        big->chunks[c] = make_chunk(v + at, (uint32_t)(end - at));
        at = end;
    }
    free(v);
    return big;
}

static void big_free_all(struct sz_big *big)
{
    for (size_t c = 0; c < (size_t)1 << (32 - big->shift); c++)
        free(big->chunks[c]);
    free(big);
}

static void retire_all_chunks(struct sz_store *s, struct sz_big *big)
{
    for (size_t c = 0; c < (size_t)1 << (32 - big->shift); c++)
        sz_retire(s, big->chunks[c], free, NULL);
    sz_retire(s, big, free, NULL);
}

static size_t row_entries(struct sz_rowref row, uint32_t key, uint32_t block_time, struct sz_entry_value *out)
{
    struct sz_rowiter it = {.row = row};
    size_t n = 0;
    while (sz_row_next(&it))
        out[n++] = (struct sz_entry_value){key, it.subject, it.cond, it.time != 0 ? it.time : block_time};
    return n;
}

/* A big row with v added or removed: one chunk and the array of chunks are new. */
static struct sz_big *big_change(struct sz_store *s, struct sz_big *old, struct sz_entry_value v, bool remove)
{
    size_t chunks = (size_t)1 << (32 - old->shift), index = sz_big_hash(v.subject) >> old->shift, n = 0;
    struct sz_chunk *c = old->chunks[index];
    if (!remove && old->n > chunks * SZ_BIG_CHUNK * 2) { /* twice as many chunks */
        struct sz_entry_value *all = sz_xmalloc((old->n + 1) * sizeof(*all));
        n = row_entries((struct sz_rowref){.n = old->n, .big = old}, v.key, 0, all);
        all[n++] = v;
        struct sz_big *grown = big_build(all, n);
        free(all);
        retire_all_chunks(s, old);
        return grown;
    }
    struct sz_big *big = sz_xmalloc(sizeof(*big) + chunks * sizeof(struct sz_chunk *));
    memcpy(big, old, sizeof(*big) + chunks * sizeof(struct sz_chunk *));
    struct sz_entry_value *few = sz_xmalloc((c->n + 1) * sizeof(*few));
    for (uint32_t i = 0; i < c->n; i++)
        if (c->v[i] != v.subject)
            few[n++] =
                (struct sz_entry_value){v.key, c->v[i], c->conds != 0 ? c->v[c->n + i] : 0, c->v[c->n + c->conds + i]};
    if (!remove)
        few[n++] = v;
    qsort(few, n, sizeof(*few), by_subject);
    big->chunks[index] = make_chunk(few, (uint32_t)n);
    big->n = big->n - c->n + (uint32_t)n;
    big->cond |= v.cond != 0 && !remove;
    free(few);
    sz_retire(s, c, free, NULL);
    sz_retire(s, old, free, NULL);
    return big;
}

/* ---- making blocks ---- */

struct row_source { /* a row of the block to be made: as it was, or entries */
    uint32_t key;
    struct sz_big *big;
    const struct sz_entry_value *v;
    size_t n;
};

static uint32_t row_n(const struct row_source *r)
{
    bool cond = false;
    for (size_t i = 0; r->big == NULL && i < r->n; i++)
        cond |= r->v[i].cond != 0;
    return (uint32_t)(r->big != NULL ? r->big->n : r->n) | (r->big != NULL ? SZ_ROW_BIG : 0) | (cond ? SZ_ROW_COND : 0);
}

static void *slab_alloc(struct sz_store *s, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    if (s->n_slabs == 0 || s->slab_used + size > SZ_SLAB) {
        s->slabs = sz_xrealloc(s->slabs, (s->n_slabs + 1) * sizeof(*s->slabs));
        s->slabs[s->n_slabs] = s->n_slabs == 0 ? sz_xmalloc(SZ_SLAB) : sz_pages_alloc(SZ_SLAB);
        s->n_slabs++;
        s->slab_used = 0;
    }
    void *p = s->slabs[s->n_slabs - 1] + s->slab_used;
    s->slab_used += size;
    return p;
}

static struct sz_block *assemble(struct sz_store *s, const struct row_source *rows, size_t n_rows, bool slab)
{
    size_t words = 0, plain = 0;
    uint32_t time = 0;
    bool times = false;
    for (size_t i = 0; i < n_rows; i++) {
        words += payload_words(row_n(&rows[i]));
        for (size_t k = 0; rows[i].big == NULL && k < rows[i].n; k++, plain++) {
            times |= time != 0 && rows[i].v[k].time != time;
            time = rows[i].v[k].time;
        }
    }
    size_t size =
        sizeof(struct sz_block) + n_rows * sizeof(struct sz_row) + (words + (times ? plain : 0)) * sizeof(uint32_t);
    slab = slab && size < SZ_SLAB / 16;
    struct sz_block *b = slab ? slab_alloc(s, size) : sz_xmalloc(size);
    *b = (struct sz_block){.time = time,
                           .n_rows = (uint16_t)n_rows,
                           .flags = (uint16_t)((slab ? SZ_BLOCK_SLAB : 0) | (times ? SZ_BLOCK_TIMES : 0))};
    uint32_t *w = (uint32_t *)(void *)&b->rows[n_rows];
    for (size_t i = 0; i < n_rows; i++) {
        b->rows[i] = (struct sz_row){rows[i].key, row_n(&rows[i])};
        if (rows[i].big != NULL) {
            memcpy(w, &rows[i].big, sizeof(rows[i].big));
            w += 2;
            continue;
        }
        for (size_t k = 0; k < rows[i].n; k++)
            *w++ = rows[i].v[k].subject;
        for (size_t k = 0; (b->rows[i].n & SZ_ROW_COND) != 0 && k < rows[i].n; k++)
            *w++ = rows[i].v[k].cond;
    }
    for (size_t i = 0; times && i < n_rows; i++)
        for (size_t k = 0; rows[i].big == NULL && k < rows[i].n; k++)
            *w++ = rows[i].v[k].time;
    return b;
}

static void retire_block(struct sz_store *s, struct sz_block *old, struct sz_block *new)
{
    if (old != NULL)
        sz_retire(s, (old->flags & SZ_BLOCK_SLAB) != 0 ? NULL : old, free, new);
}

/* The row with v added or removed; `room` holds its entries when it stays small. */
static struct row_source changed_row(struct sz_store *s, struct sz_rowref row, uint32_t block_time,
                                     struct sz_entry_value v, bool remove, struct sz_entry_value *room)
{
    struct row_source out = {.key = v.key, .v = room};
    if (row.big != NULL && row.big->n > SZ_BIG_FROM / 2) {
        out.big = big_change(s, (struct sz_big *)row.big, v, remove);
        return out;
    }
    size_t n = row_entries(row, v.key, block_time, room);
    for (size_t i = 0; i < n; i++)
        if (room[i].subject != v.subject)
            room[out.n++] = room[i];
    if (!remove)
        room[out.n++] = v;
    qsort(room, out.n, sizeof(*room), by_subject);
    if (row.big != NULL)
        retire_all_chunks(s, (struct sz_big *)row.big);
    if (out.n >= SZ_BIG_FROM)
        out.big = big_build(room, out.n);
    return out;
}

static struct sz_block *change(struct sz_store *s, struct sz_block *old, struct sz_entry_value v, uint64_t seq,
                               bool remove)
{
    size_t n_old = old != NULL ? old->n_rows : 0, total = 1, n = 0, used = 0;
    for (size_t i = 0; i < n_old; i++)
        total += (old->rows[i].n & SZ_ROW_BIG) != 0 ? SZ_BIG_FROM : (old->rows[i].n & SZ_ROW_N);
    struct row_source *rows = sz_xmalloc((n_old + 1) * sizeof(*rows));
    struct sz_entry_value *room = sz_xmalloc((total + SZ_BIG_FROM) * sizeof(*room));
    bool placed = false;
    for (size_t i = 0; i <= n_old; i++) {
        if (!placed && (i == n_old || old->rows[i].key >= v.key)) {
            bool there = i < n_old && old->rows[i].key == v.key;
            struct sz_rowref row = there ? sz_block_at(old, i) : (struct sz_rowref){0};
            rows[n] = changed_row(s, row, there ? old->time : 0, v, remove, room + used);
            used += rows[n].n;
            n += rows[n].n > 0 || rows[n].big != NULL;
            placed = true;
            if (there)
                continue;
        }
        if (i == n_old)
            break;
        struct sz_rowref row = sz_block_at(old, i);
        rows[n] = (struct row_source){.key = old->rows[i].key, .big = (struct sz_big *)row.big, .v = room + used};
        if (row.big == NULL)
            rows[n].n = row_entries(row, old->rows[i].key, old->time, room + used);
        used += rows[n].n;
        n++;
    }
    struct sz_block *b = assemble(s, rows, n, false);
    b->seq = seq;
    b->prev = old;
    retire_block(s, old, b);
    free(rows);
    free(room);
    return b;
}

struct sz_block *sz_block_add(struct sz_store *s, struct sz_block *old, struct sz_entry_value v, uint64_t seq)
{
    return change(s, old, v, seq, false);
}

struct sz_block *sz_block_remove(struct sz_store *s, struct sz_block *old, struct sz_entry_value v, uint64_t seq)
{
    return change(s, old, v, seq, true);
}

struct sz_block *sz_block_build(struct sz_store *s, const struct sz_entry_value *v, size_t n)
{
    struct row_source few[16] = {{0}}, *rows = few;
    size_t n_rows = 0, cap = SZ_COUNT(few);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && v[end].key == v[i].key)
            end++;
        if (n_rows == cap) {
            struct row_source *more = sz_xmalloc(cap * 2 * sizeof(*more));
            memcpy(more, rows, cap * sizeof(*more));
            if (rows != few)
                free(rows);
            rows = more;
            cap *= 2;
        }
        rows[n_rows] = (struct row_source){.key = v[i].key, .v = v + i, .n = end - i};
        if (end - i >= SZ_BIG_FROM)
            rows[n_rows].big = big_build(v + i, end - i);
        n_rows++;
        i = end;
    }
    struct sz_block *b = assemble(s, rows, n_rows, true);
    if (rows != few)
        free(rows);
    return b;
}

void sz_block_free(struct sz_block *b)
{
    if (b == NULL)
        return;
    for (size_t i = 0; i < b->n_rows; i++)
        if ((b->rows[i].n & SZ_ROW_BIG) != 0)
            big_free_all((struct sz_big *)sz_block_at(b, i).big);
    if ((b->flags & SZ_BLOCK_SLAB) == 0)
        free(b);
}
