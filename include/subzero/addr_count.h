/*
 * How many of something (connections, requests) an address holds, for all threads together, in fixed memory: two rows
 * of counters, an address counts in one cell of each, and its count is the smaller one.  The cells are chosen by a
 * keyed hash, so nobody can aim at another's cell; the count is never too low, and too high only when both cells are
 * shared.  IPv6 counts by /64, which is what one customer gets.  Any thread, no lock.
 */
#ifndef SUBZERO_ADDR_COUNT_H
#define SUBZERO_ADDR_COUNT_H

#include "subzero/addr.h"

struct sz_addr_count;
struct sz_addr_count *sz_addr_count_new(void);
void sz_addr_count_free(struct sz_addr_count **table);
/* Counts one more unless that would be more than `most`; false: not counted. */
bool sz_addr_count_enter(struct sz_addr_count *table, struct sz_addr addr, uint32_t most) SZ_MUST_CHECK;
void sz_addr_count_leave(struct sz_addr_count *table, struct sz_addr addr);

#endif
