/* Mappings aligned by hand: what sticks out on both sides goes back at once. */
#include "fga/engine/pages.h"

#include <stdint.h>
#include <sys/mman.h>

#include "subzero/base.h"

static size_t rounded(size_t size)
{
    return (size + SZ_PAGE_HUGE - 1) & ~(SZ_PAGE_HUGE - 1);
}

void *sz_pages_alloc(size_t size)
{
    size = rounded(size);
    char *p = mmap(NULL, size + SZ_PAGE_HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SZ_ASSERT(p != MAP_FAILED);
    size_t lead = (SZ_PAGE_HUGE - ((uintptr_t)p & (SZ_PAGE_HUGE - 1))) & (SZ_PAGE_HUGE - 1);
    if (lead > 0)
        munmap(p, lead);
    munmap(p + lead + size, SZ_PAGE_HUGE - lead);
    madvise(p + lead, size, MADV_HUGEPAGE); /* only advice: without it the store is as right, and slower */
    return p + lead;
}

void sz_pages_free(void *p, size_t size)
{
    if (p != NULL)
        munmap(p, rounded(size));
}
