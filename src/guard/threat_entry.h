/*
 * One entry of the threat tables: what speaks against one key, as amounts that decay.  Plain values; the table
 * (threat_table.c) copies entries in and out.
 *
 *   DISTINCT amounts are linear counting: a bit of 64 is set per thing, and ln(zeros) says how many there were, up to
 *   about 270.  Two generations of bits stand for the decay: when one half-life is over, the current ones become the
 *   previous ones, which count less the longer ago they were.
 */
#ifndef SZ_GUARD_THREAT_ENTRY_H
#define SZ_GUARD_THREAT_ENTRY_H

#include "subzero/threat.h"

enum {
    SZ_BITS_GOOD = SZ_SIGNALS - SZ_SIGNALS_COUNTED, /* the good tokens, behind the distinct signals */
    SZ_BITS
};
struct sz_threat_bits {
    uint64_t now, before;
};

struct sz_threat_entry {
    uint64_t key;           /* 0: free */
    uint32_t touched;       /* ticks: when the counts were right */
    uint32_t rotated;       /* when the bits were */
    uint32_t blocked_until; /* 0: not blocked */
    uint32_t blocked_last;  /* when it was, last */
    uint16_t blocks;
    uint8_t kind, unused[5];
    struct sz_addr addr;
    float counts[SZ_SIGNALS_COUNTED];
    struct sz_threat_bits bits[SZ_BITS];
};

/*
 * Time in ticks of 100 ms on the monotonic clock: 32 bits of them last for 13 years.  It never goes back within an
 * entry; what seems to is taken as "now".
 */
#define SZ_TICK_US 100000
static inline uint32_t sz_tick(struct sz_mono now)
{
    return (uint32_t)(now.us / SZ_TICK_US);
}
void sz_threat_entry_age(struct sz_threat_entry *e, uint32_t tick);
void sz_threat_entry_count(struct sz_threat_entry *e, enum sz_signal signal, float amount);
void sz_threat_entry_see(struct sz_threat_entry *e, unsigned which, uint64_t hash);
/* Of an entry that has been aged. */
float sz_threat_entry_score(const struct sz_threat_entry *e, uint32_t tick, float parts[SZ_SIGNALS]);
/* Cheap: nothing at all speaks against it. */
bool sz_threat_entry_clean(const struct sz_threat_entry *e);

#endif
