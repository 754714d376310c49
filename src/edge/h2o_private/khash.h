/*
 * h2o's <h2o/http2_internal.h> wants the hash table of its own source tree, which Debian does not ship.  This gives it
 * the table's layout and no more: we walk the streams of a connection (edge/h2_streams.h), we never look one up.
 */
#ifndef SZ_EDGE_KHASH_H
#define SZ_EDGE_KHASH_H

#include <stdint.h>

typedef uint32_t khiter_t;

#define KHASH_MAP_INIT_INT64(name, type)                     \
    struct kh_##name {                                       \
        uint32_t buckets, size, occupied, bound;             \
        uint32_t *flags; /* two bits a bucket: 0 = in use */ \
        uint64_t *keys;                                      \
        type *values;                                        \
    };
#define khash_t(name)            struct kh_##name
#define kh_end(table)            ((table)->buckets)
#define kh_val(table, at)        ((table)->values[at])
#define kh_get(name, table, key) ((void)(key), kh_end(table)) /* finds nothing: not for use */

#endif
