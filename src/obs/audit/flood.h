/*
 * Denials without a validated identity, by address: beyond a number within a second they are counted and not listed.
 * A table of fixed size; the writer's.
 */
#ifndef SZ_OBS_AUDIT_FLOOD_H
#define SZ_OBS_AUDIT_FLOOD_H

#include "subzero/addr.h"
#include "subzero/time.h"

enum { SZ_AUDIT_FLOOD_MOST = 100 /* a second and address */ };

struct sz_audit_flood;
struct sz_audit_flood *sz_audit_flood_new(void);
void sz_audit_flood_free(struct sz_audit_flood **flood);

/* True: to be listed.  False: counted. */
bool sz_audit_flood_pass(struct sz_audit_flood *flood, const struct sz_addr *address, struct sz_mono now);
struct sz_audit_flood_count {
    bool has_address; /* false: of addresses for which there was no room */
    struct sz_addr address;
    uint64_t count;
};
/* The next count that is due (all: whether due or not), which is thereby taken; false: none. */
bool sz_audit_flood_take(struct sz_audit_flood *flood, struct sz_mono now, bool all, struct sz_audit_flood_count *out);
bool sz_audit_flood_pending(const struct sz_audit_flood *flood);

#endif
