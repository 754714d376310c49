/* Lists of a configuration, asked for one of their members.  They are short: a scan beats any index. */
#include "subzero/conf.h"

bool sz_cidrs_contain(const struct sz_cidrs *ranges, struct sz_addr addr)
{
    for (size_t i = 0; i < ranges->n; i++) {
        if (sz_cidr_contains(&ranges->v[i], addr))
            return true;
    }
    return false;
}

bool sz_strings_have(const struct sz_strings *strings, struct sz_slice s)
{
    for (size_t i = 0; i < strings->n; i++) {
        if (sz_eq(strings->v[i], s))
            return true;
    }
    return false;
}
