/*
 * A Redis's bytes.  Whatever comes, however it is cut into pieces: the same replies, all inside what was held, never
 * more than the limit allows.  First byte: the size of the pieces; second: the limit, in units of 16.
 */
#include <stdlib.h>

#include "cache/redis_client.h"

static size_t walk(const struct sz_redis_reply *r, unsigned depth, struct sz_buf *out)
{
    size_t items = 1;
    SZ_ASSERT(depth < 10);
    sz_buf_printf(out, "%d %lld %zu|", (int)r->type, (long long)r->integer, r->text.n);
    sz_buf_adds(out, r->text);
    for (size_t i = 0; i < r->items_n; i++)
        items += walk(&r->items[i], depth + 1, out);
    return items;
}

static void look_at_error(struct sz_slice error)
{
    bool ask;
    unsigned slot;
    struct sz_slice host;
    uint16_t port;
    enum sz_redis_result result = sz_redis_classify(error);
    SZ_ASSERT(result > 0 && result < SZ_REDIS_RESULTS);
    if (sz_redis_redirect(error, &ask, &slot, &host, &port))
        SZ_ASSERT(slot < SZ_REDIS_SLOTS && port != 0 && host.p >= error.p && host.p + host.n <= error.p + error.n);
    SZ_ASSERT(sz_redis_slot(error) < SZ_REDIS_SLOTS);
}

/* What comes out, until it is bad. */
static void read_all(struct sz_slice wire, size_t piece, size_t limit, struct sz_buf *out)
{
    struct sz_redis_reader *reader = sz_redis_reader_new();
    enum sz_redis_read rc = SZ_REDIS_READ_MORE;
    for (size_t at = 0; rc != SZ_REDIS_READ_BAD && at < wire.n; at += piece) {
        struct sz_slice part = sz_sub(wire, at, piece);
        const struct sz_redis_reply *reply;
        struct sz_slice error;
        if (!sz_redis_reader_feed(reader, part.p, part.n))
            break;
        while ((rc = sz_redis_reader_next(reader, limit, &reply, &error)) == SZ_REDIS_READ_REPLY) {
            SZ_ASSERT((reply == NULL) == (error.p != NULL));
            if (reply != NULL)
                SZ_ASSERT(walk(reply, 0, out) <= limit + 1);
            else
                look_at_error(error);
            sz_buf_adds(out, error);
        }
    }
    sz_buf_printf(out, "%d", (int)rc);
    sz_redis_reader_free(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_buf whole = {0}, pieces = {0};
    if (size < 2)
        return 0;
    struct sz_slice wire = sz_slice(data + 2, size - 2);
    size_t limit = ((size_t)data[1] + 1) * 16;
    read_all(wire, 1, limit, &whole);
    read_all(wire, (size_t)data[0] + 1, limit, &pieces);
    SZ_ASSERT(sz_eq(sz_buf_slice(&whole), sz_buf_slice(&pieces)));
    sz_buf_fini(&whole);
    sz_buf_fini(&pieces);
    return 0;
}
