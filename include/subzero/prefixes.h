/*
 * A set of address ranges, each with a small value: lists of risky, denied or allowed networks.  Built once, then
 * immutable and read by any thread without a lock; a million ranges are 9 (IPv4) or 17 (IPv6) MB and one look-up
 * is 20 ns for a few ranges, 200 ns for a million that come from memory.
 */
#ifndef SUBZERO_PREFIXES_H
#define SUBZERO_PREFIXES_H

#include "subzero/addr.h"

#define SZ_PREFIXES_MAX 1000000 /* ranges in one set */

struct sz_prefixes;

struct sz_prefixes_builder; /* collects, in any order */
struct sz_prefixes_builder *sz_prefixes_builder_new(void);
/* -E2BIG: SZ_PREFIXES_MAX are in it. */
int sz_prefixes_add(struct sz_prefixes_builder *builder, const struct sz_cidr *range, uint8_t value) SZ_MUST_CHECK;
/*
 * One range or address a line; blanks at the ends, empty lines and what follows a '#' do not count.  0, or -EINVAL /
 * -E2BIG with the line's number and what is wrong with it in *why.
 */
int sz_prefixes_read(struct sz_prefixes_builder *builder, struct sz_slice text, uint8_t value,
                     struct sz_text *why) SZ_MUST_CHECK;
/* Takes the builder over.  Where ranges lie in each other the smallest one decides, between equals the one added last.
 */
struct sz_prefixes *sz_prefixes_new(struct sz_prefixes_builder **builder);
void sz_prefixes_builder_free(struct sz_prefixes_builder **builder); /* when it came to nothing */
void sz_prefixes_free(struct sz_prefixes **set);

/* True and the value of the smallest range that holds the address. */
bool sz_prefixes_find(const struct sz_prefixes *set, struct sz_addr addr, uint8_t *value);
size_t sz_prefixes_count(const struct sz_prefixes *set); /* ranges it was made from */
size_t sz_prefixes_bytes(const struct sz_prefixes *set);

#endif
