/*
 * A visitor's cookie as a client sends it: only what was written under the key is believed.  The first byte says which
 * bit of a genuine one is turned; the rest is a cookie of its own.
 */
#include "pipeline/visitor.h"

#include "subzero/crypto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEY SZ_S("0123456789abcdef0123456789abcdef")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    uint8_t id[SZ_VISITOR_ID] = {1}, got[SZ_VISITOR_ID];
    char text[SZ_VISITOR_TEXT];
    if (!ready)
        sz_crypto_init();
    ready = true;
    if (size < 2)
        return 0;
    SZ_ASSERT(!sz_visitor_read(sz_slice(data, size), KEY, SZ_S("id"), 5, got));
    sz_visitor_write(id, 10, KEY, SZ_S("id"), text);
    SZ_ASSERT(sz_visitor_read(sz_slice(text, sizeof(text)), KEY, SZ_S("id"), 5, got));
    text[data[0] % sizeof(text)] ^= (char)(1u << data[1] % 8);
    SZ_ASSERT(!sz_visitor_read(sz_slice(text, sizeof(text)), KEY, SZ_S("id"), 5, got));
    return 0;
}
