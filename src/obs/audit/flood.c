/* Sets of four, chosen by a keyed hash; an entry with a count that nobody has told yet is not evicted. */
#include "obs/audit/flood.h"

#include <stdlib.h>

#include "subzero/crypto.h"

enum { WAYS = 4, SETS = 1024 };

struct entry {
    struct sz_addr address;
    struct sz_mono since; /* its second began; 0: free */
    uint32_t listed;
    uint64_t counted;
};
struct sz_audit_flood {
    struct sz_key128 key;
    struct entry entries[SETS][WAYS];
    uint64_t others;
    struct sz_mono others_since;
    size_t pending; /* entries with a count, and `others` */
    size_t at;      /* where the walk for due counts goes on */
};

struct sz_audit_flood *sz_audit_flood_new(void)
{
    struct sz_audit_flood *flood = sz_xcalloc(1, sizeof(*flood));
    sz_random(&flood->key, sizeof(flood->key));
    return flood;
}

void sz_audit_flood_free(struct sz_audit_flood **flood)
{
    free(*flood);
    *flood = NULL;
}

static bool over(struct sz_mono since, struct sz_mono now)
{
    return sz_between(since, now).us >= 1000000;
}

/* The address's entry, or one that can become it; NULL: all four have something to tell. */
static struct entry *find(struct sz_audit_flood *flood, const struct sz_addr *address)
{
    struct entry *set = flood->entries[sz_hash64(&flood->key, sz_slice(address->b, sizeof(address->b))) % SETS];
    struct entry *oldest = NULL;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].since.us != 0 && sz_addr_eq(set[i].address, *address))
            return &set[i];
        if (set[i].counted == 0 && (oldest == NULL || set[i].since.us < oldest->since.us))
            oldest = &set[i];
    }
    if (oldest != NULL)
        *oldest = (struct entry){.address = *address};
    return oldest;
}

bool sz_audit_flood_pass(struct sz_audit_flood *flood, const struct sz_addr *address, struct sz_mono now)
{
    struct entry *e = find(flood, address);
    if (e == NULL) {
        flood->pending += flood->others == 0;
        flood->others_since = flood->others == 0 ? now : flood->others_since;
        flood->others++;
        return false;
    }
    if (e->counted == 0 && (e->since.us == 0 || over(e->since, now))) {
        e->since = now;
        e->listed = 0;
    }
    if (e->listed < SZ_AUDIT_FLOOD_MOST) {
        e->listed++;
        return true;
    }
    flood->pending += e->counted == 0;
    e->counted++;
    return false;
}

bool sz_audit_flood_pending(const struct sz_audit_flood *flood)
{
    return flood->pending > 0;
}

bool sz_audit_flood_take(struct sz_audit_flood *flood, struct sz_mono now, bool all, struct sz_audit_flood_count *out)
{
    if (flood->others > 0 && (all || over(flood->others_since, now))) {
        *out = (struct sz_audit_flood_count){.count = flood->others};
        flood->others = 0;
        flood->pending--;
        return true;
    }
    for (size_t i = 0; flood->pending > 0 && i < (size_t)SETS * WAYS; i++) {
        struct entry *e = &flood->entries[0][0] + (flood->at + i) % ((size_t)SETS * WAYS);
        if (e->counted == 0 || !(all || over(e->since, now)))
            continue;
        *out = (struct sz_audit_flood_count){.has_address = true, .address = e->address, .count = e->counted};
        *e = (struct entry){0};
        flood->pending--;
        flood->at = (flood->at + i) % ((size_t)SETS * WAYS);
        return true;
    }
    return false;
}
