/*
 * Request targets: whatever is accepted is in canonical form (parsing it again changes nothing), holds no octet
 * another decoder would act on, and never climbs.
 */
#include <stdlib.h>

#include "pipeline/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(struct sz_slice path)
{
    SZ_ASSERT(path.n > 0 && path.p[0] == '/');
    for (size_t i = 0; i < path.n; i++) {
        uint8_t c = (uint8_t)path.p[i];
        SZ_ASSERT(c > 0x20 && c < 0x7f && c != '\\' && c != '#' && c != '?');
        SZ_ASSERT(i == 0 || c != '/' || path.p[i - 1] != '/');
    }
    struct sz_slice rest = path, segment;
    while (sz_split(&rest, '/', &segment))
        SZ_ASSERT(!sz_eq(segment, SZ_S(".")) && !sz_eq(segment, SZ_S("..")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_arena arena;
    struct sz_target once, twice;
    struct sz_authority authority;
    const char *why = NULL;
    sz_arena_init(&arena);
    struct sz_slice raw = sz_pool_dup(&arena.pool, sz_slice(data, size));
    if (sz_target_parse(raw, &arena.pool, &once, &why) == 0 && !once.asterisk) {
        check_path(once.path);
        SZ_ASSERT(sz_target_parse(once.path, &arena.pool, &twice, &why) == 0);
        SZ_ASSERT(sz_eq(once.path, twice.path) && twice.was_canonical);
    }
    if (sz_authority_parse(raw, &arena.pool, &authority) == 0) {
        struct sz_authority again;
        SZ_ASSERT(sz_authority_parse(authority.canonical, &arena.pool, &again) == 0);
        SZ_ASSERT(sz_eq(again.host, authority.host) && sz_eq(again.canonical, authority.canonical));
    }
    sz_arena_fini(&arena);
    return 0;
}
