/*
 * Large memory in huge pages where the system has them: a walk through a big store misses the address translation as
 * often as the cache.  The first piece of each kind is ordinary memory, so that a small store stays small.
 */
#ifndef SZ_ENGINE_PAGES_H
#define SZ_ENGINE_PAGES_H

#include <stddef.h>

#define SZ_PAGE_HUGE ((size_t)1 << 21)

/* `size` zeroed bytes, aligned to a huge page; aborts on exhaustion. */
void *sz_pages_alloc(size_t size);
void sz_pages_free(void *p, size_t size);

#endif
