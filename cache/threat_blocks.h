/*
 * The blocks of a process, and which of two about the same holds:
 *
 *   one made later  ▷  one made before;   made at once: a lift ▷ a block, the longer one ▷ the shorter, by id
 *
 * which every instance sees alike, in whatever order they come.  A lifted one stays as a record for as long as one that
 * it lifts could come back, from an instance that was cut off or from whoever kept a copy of what was in Redis.
 *
 *   v      slots, which do not move: who publishes one knows it by its position      id 0: free
 *   names  of each slot, the engine's keyed hash of whom it is about: what a search reads
 *
 * Plain memory of one thread: no I/O, no clock.
 */
#ifndef SZ_CACHE_THREAT_BLOCKS_H
#define SZ_CACHE_THREAT_BLOCKS_H

#include "cache/share.h"
#include "subzero/threat_store.h"

#define SZ_BLOCK_PLAIN 824 /* bytes of one as it is sealed */

struct sz_block {
    struct sz_threat_record r;
    struct sz_share_item share;
    bool applied; /* the engine has it */
};

struct sz_blocks {
    struct sz_block *v;
    uint64_t *names;
    size_t n, cap;
    size_t used[2]; /* by hand, by score */
};
void sz_blocks_fini(struct sz_blocks *blocks);

static inline bool sz_block_stands(const struct sz_threat_record *r, struct sz_wall now)
{
    return r->until.us > now.us;
}
/* NULL: nothing about it. */
struct sz_block *sz_blocks_find(struct sz_blocks *blocks, uint64_t name, const struct sz_threat_record *who);
struct sz_block *sz_blocks_by_id(struct sz_blocks *blocks, uint64_t id);
/* NULL: SZ_THREAT_RECORDS of its sort are there. */
struct sz_block *sz_blocks_add(struct sz_blocks *blocks, uint64_t name, const struct sz_threat_record *r);
/* Makes it what *r says, whoever of both holds. */
void sz_blocks_set(struct sz_blocks *blocks, struct sz_block *block, const struct sz_threat_record *r);
void sz_blocks_drop(struct sz_blocks *blocks, struct sz_block *block);
/* > 0: a holds; 0: they say the same. */
int sz_blocks_compare(const struct sz_threat_record *a, const struct sz_threat_record *b);

void sz_block_encode(const struct sz_threat_record *r, struct sz_buf *plain);
bool sz_block_decode(struct sz_slice plain, struct sz_threat_record *r); /* false: not one of ours */

#endif
