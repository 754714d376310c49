/*
 * Ranges become a line of stretches: where each begins, and which value holds from there on.  What lies inside what is
 * worked out once, when the set is made; a look-up is one index by the leading 16 bits and a short binary search.
 *
 *   ranges    |-------- 10.0.0.0/8 = 1 --------|           |- 11/8 = 3 -|
 *                   |- 10.1.0.0/16 = 2 -|
 *   stretches 1     2                   1      none        3            none
 *
 * IPv4 and IPv6 have a line each: 4-byte and 16-byte beginnings.
 */
#include "subzero/prefixes.h"

#include <errno.h>
#include <stdlib.h>

#define NONE  0x100 /* no range: beside the 256 values */
#define INDEX 65536 /* by the leading 16 bits ... */
#define SMALL 512   /* ... which so few stretches do without */

struct range {
    unsigned __int128 first, last; /* IPv4 in the low 32 bits */
    uint32_t order;
    uint8_t value;
};

struct pile {
    struct range *v;
    size_t n, cap;
};

struct sz_prefixes_builder {
    struct pile v4, v6;
    uint32_t added;
};

struct line4 {
    uint32_t *at;
    uint16_t *value;
    size_t n;
    uint32_t *index; /* INDEX + 1: first stretch that begins at or after these 16 bits; NULL: few */
};
struct line6 {
    unsigned __int128 *at;
    uint16_t *value;
    size_t n;
    uint32_t *index;
};

struct sz_prefixes {
    struct line4 v4;
    struct line6 v6;
    size_t count;
};

/* ---- collecting -------------------------------------------------------------------------------------------------- */

struct sz_prefixes_builder *sz_prefixes_builder_new(void)
{
    return sz_xcalloc(1, sizeof(struct sz_prefixes_builder));
}

void sz_prefixes_builder_free(struct sz_prefixes_builder **builderp)
{
    struct sz_prefixes_builder *builder = *builderp;
    *builderp = NULL;
    if (builder == NULL)
        return;
    free(builder->v4.v);
    free(builder->v6.v);
    free(builder);
}

static unsigned __int128 number(struct sz_addr addr)
{
    unsigned __int128 n = 0;
    for (unsigned i = 0; i < sizeof(addr.b); i++)
        n = n << 8 | addr.b[i];
    return n;
}

int sz_prefixes_add(struct sz_prefixes_builder *builder, const struct sz_cidr *range, uint8_t value)
{
    bool v4 = sz_cidr_is_v4(range);
    struct pile *pile = v4 ? &builder->v4 : &builder->v6;
    unsigned __int128 first = number(range->net), span = range->bits == 0
                                                             ? ~(unsigned __int128)0
                                                             : ((unsigned __int128)1 << (128 - range->bits)) - 1;
    if (builder->added == SZ_PREFIXES_MAX)
        return -E2BIG;
    if (v4)
        first &= UINT32_MAX;
    if (pile->n == pile->cap) {
        pile->cap = pile->cap == 0 ? 64 : pile->cap * 2;
        pile->v = sz_xrealloc(pile->v, pile->cap * sizeof(*pile->v));
    }
    pile->v[pile->n++] = (struct range){first, first + span, builder->added++, value};
    return 0;
}

int sz_prefixes_read(struct sz_prefixes_builder *builder, struct sz_slice text, uint8_t value, struct sz_text *why)
{
    struct sz_slice rest = text, line;
    for (unsigned n = 1; sz_split(&rest, '\n', &line); n++) {
        struct sz_text reason = {""};
        struct sz_cidr range;
        ptrdiff_t comment = sz_find_byte(line, '#');
        if (comment >= 0)
            line = sz_sub(line, 0, (size_t)comment);
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        line = sz_trim(line);
        if (line.n == 0)
            continue;
        if (sz_cidr_parse(line, &range, &reason) != 0) {
            sz_text_set(why, "line %u: %s", n, reason.s);
            return -EINVAL;
        }
        if (sz_prefixes_add(builder, &range, value) != 0) {
            sz_text_set(why, "line %u: more than %d ranges", n, SZ_PREFIXES_MAX);
            return -E2BIG;
        }
    }
    return 0;
}

/* ---- making the lines -------------------------------------------------------------------------------------------- */

/* By beginning; of those that begin together the widest first, so that the narrower lies on top; then as they came. */
static int by_place(const void *pa, const void *pb)
{
    const struct range *a = pa, *b = pb;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (a->last != b->last)
        return a->last > b->last ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

struct sweep { /* goes over the ranges from the left with those it is inside of, prefixes never cross */
    unsigned __int128 *at;
    uint16_t *value;
    size_t n;
    const struct range *open[130]; /* prefixes nest at most 129 deep, once equal ones have been merged */
    size_t depth;
};

static void stretch(struct sweep *s, unsigned __int128 at, uint16_t value)
{
    if (s->n > 0 && s->at[s->n - 1] == at)
        s->n--; /* nothing lay between */
    if ((s->n == 0 && value == NONE) || (s->n > 0 && s->value[s->n - 1] == value))
        return;
    s->at[s->n] = at;
    s->value[s->n++] = value;
}

/* Ends what ends before `at`; most: the last address of the family. */
static void close_until(struct sweep *s, unsigned __int128 at, bool all, unsigned __int128 most)
{
    while (s->depth > 0 && (all || s->open[s->depth - 1]->last < at)) {
        unsigned __int128 last = s->open[--s->depth]->last;
        if (last != most)
            stretch(s, last + 1, s->depth > 0 ? s->open[s->depth - 1]->value : NONE);
    }
}

static void sweep(struct pile *pile, unsigned __int128 most, struct sweep *s)
{
    size_t room = pile->n * 2 + 1;
    *s = (struct sweep){.at = sz_xcalloc(room, sizeof(*s->at)), .value = sz_xcalloc(room, sizeof(*s->value))};
    if (pile->n > 0)
        qsort(pile->v, pile->n, sizeof(*pile->v), by_place);
    for (size_t i = 0; i < pile->n; i++) {
        const struct range *r = &pile->v[i];
        if (i + 1 < pile->n && pile->v[i + 1].first == r->first && pile->v[i + 1].last == r->last)
            continue; /* the later one decides */
        close_until(s, r->first, false, most);
        stretch(s, r->first, r->value);
        s->open[s->depth++] = r;
    }
    close_until(s, 0, true, most);
}

static uint32_t *index_line(const struct sweep *s, unsigned shift)
{
    uint32_t *index = s->n < SMALL ? NULL : sz_xcalloc(INDEX + 1, sizeof(*index));
    size_t i = 0;
    if (index == NULL)
        return NULL;
    for (unsigned __int128 top = 0; top <= INDEX; top++) {
        while (i < s->n && s->at[i] >> shift < top)
            i++;
        index[top] = (uint32_t)i;
    }
    return index;
}

struct sz_prefixes *sz_prefixes_new(struct sz_prefixes_builder **builder)
{
    struct sz_prefixes *set = sz_xcalloc(1, sizeof(*set));
    struct sweep s;

    set->count = (*builder)->added;
    sweep(&(*builder)->v4, UINT32_MAX, &s);
    set->v4.n = s.n;
    set->v4.value = s.value;
    set->v4.at = sz_xcalloc(s.n + 1, sizeof(*set->v4.at));
    for (size_t i = 0; i < s.n; i++)
        set->v4.at[i] = (uint32_t)s.at[i];
    set->v4.index = index_line(&s, 16);
    free(s.at);
    sweep(&(*builder)->v6, ~(unsigned __int128)0, &s);
    set->v6.n = s.n;
    set->v6.value = s.value;
    set->v6.at = s.at;
    set->v6.index = index_line(&s, 112);
    sz_prefixes_builder_free(builder);
    return set;
}

void sz_prefixes_free(struct sz_prefixes **setp)
{
    struct sz_prefixes *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    free(set->v4.at);
    free(set->v4.value);
    free(set->v4.index);
    free(set->v6.at);
    free(set->v6.value);
    free(set->v6.index);
    free(set);
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

/* How many stretches begin at or before the address: the last of them holds it. */
static size_t find4(const struct line4 *line, uint32_t addr)
{
    size_t low = line->index == NULL ? 0 : line->index[addr >> 16],
           high = line->index == NULL ? line->n : line->index[(addr >> 16) + 1];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (line->at[middle] <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t find6(const struct line6 *line, unsigned __int128 addr)
{
    size_t top = (size_t)(addr >> 112), low = line->index == NULL ? 0 : line->index[top],
           high = line->index == NULL ? line->n : line->index[top + 1];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (line->at[middle] <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool sz_prefixes_find(const struct sz_prefixes *set, struct sz_addr addr, uint8_t *value)
{
    bool v4 = sz_addr_is_v4(addr);
    size_t n = v4 ? find4(&set->v4, (uint32_t)number(addr)) : find6(&set->v6, number(addr));
    uint16_t found = n == 0 ? NONE : v4 ? set->v4.value[n - 1] : set->v6.value[n - 1];
    *value = (uint8_t)found;
    return found != NONE;
}

size_t sz_prefixes_count(const struct sz_prefixes *set)
{
    return set->count;
}

size_t sz_prefixes_bytes(const struct sz_prefixes *set)
{
    size_t indices = (size_t)(set->v4.index != NULL) + (size_t)(set->v6.index != NULL);
    return sizeof(*set) + set->v4.n * 6 + set->v6.n * 18 + indices * (INDEX + 1) * sizeof(uint32_t);
}
