/* Claims on their way into a header: no value changes the number of header lines, and blanks at the ends survive. */
#include "pipeline/header_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_arena arena;
    struct sz_slice out;
    sz_arena_init(&arena);
    struct sz_slice raw = sz_pool_dup(&arena.pool, sz_slice(data, size));
    if (sz_header_value(raw, &arena.pool, &out)) {
        for (size_t i = 0; i < out.n; i++)
            SZ_ASSERT((uint8_t)out.p[i] >= 0x20 && (uint8_t)out.p[i] <= 0x7e);
        SZ_ASSERT(sz_eq(sz_trim(out), out));
    }
    sz_arena_fini(&arena);
    return 0;
}
