/* The PROXY header: what is taken is whole, within its bound, and the same when more bytes follow. */
#include "edge/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_proxy_header out, cut;
    struct sz_slice bytes = sz_slice(data, size);
    int rc = sz_proxy_header_parse(bytes, &out);
    SZ_ASSERT(rc != SZ_PROXY_HEADER_MORE || size < SZ_PROXY_HEADER_MAX);
    if (rc != 0)
        return 0;
    SZ_ASSERT(out.length > 0 && out.length <= size && out.length <= SZ_PROXY_HEADER_MAX);
    SZ_ASSERT(sz_proxy_header_parse(sz_sub(bytes, 0, out.length), &cut) == 0 && cut.length == out.length);
    SZ_ASSERT(sz_proxy_header_parse(sz_sub(bytes, 0, out.length - 1), &cut) == SZ_PROXY_HEADER_MORE);
    return 0;
}
