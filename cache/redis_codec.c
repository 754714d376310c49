/*
 * Commands to bytes, and bytes to replies.  hiredis's reader finds the ends of things; what it finds goes into a tree
 * of ours, so that a peer can neither make us allocate for a billion items it never sends nor hold more bytes than the
 * command's limit.
 *
 *   reader->fed      bytes since the connection began
 *   reader->begun    where the reply that is being read began: fed - begun bytes of it, at most, are held
 *
 * The items of a tree live in chunks that are used again for the next reply.
 */
#include <hiredis/read.h>
#include <stdlib.h>

#include "cache/redis_client.h"

enum { CHUNK = 8192, ITEM_LEAST = 4 /* bytes of the shortest item on the wire, ":1\r\n" */ };

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

struct node { /* what hiredis hands around: a reply, and whether it is an error */
    struct sz_redis_reply reply;
    bool error;
};

struct sz_redis_reader {
    redisReader *hiredis;
    uint64_t fed, begun;
    size_t limit;
    size_t items;         /* that arrays of this reply have promised */
    struct chunk *chunks; /* the newest first; the last one stays */
    bool broken;
};

void sz_redis_encode(struct sz_buf *out, const struct sz_slice *args, size_t args_n)
{
    sz_buf_adds(out, SZ_S("*"));
    sz_buf_u64(out, args_n);
    for (size_t i = 0; i < args_n; i++) {
        sz_buf_adds(out, SZ_S("\r\n$"));
        sz_buf_u64(out, args[i].n);
        sz_buf_adds(out, SZ_S("\r\n"));
        sz_buf_adds(out, args[i]);
    }
    sz_buf_adds(out, SZ_S("\r\n"));
}

/* ---- memory of a reply ------------------------------------------------------------------------------------------- */

static struct chunk *chunk_new(size_t size, struct chunk *next)
{
    struct chunk *c = sz_xmalloc(sizeof(*c) + size);
    *c = (struct chunk){.next = next, .size = size};
    return c;
}

static void *take(struct sz_redis_reader *r, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (r->chunks->size - r->chunks->used < n)
        r->chunks = chunk_new(n > CHUNK ? n : CHUNK, r->chunks);
    void *p = r->chunks->bytes + r->chunks->used;
    r->chunks->used += n;
    return p;
}

static void forget(struct sz_redis_reader *r)
{
    while (r->chunks->next != NULL) {
        struct chunk *c = r->chunks;
        r->chunks = c->next;
        free(c);
    }
    r->chunks->used = 0;
    r->items = 0;
}

/* ---- what hiredis calls ------------------------------------------------------------------------------------------ */

/* Into its parent's array, too. */
static void *settle(const redisReadTask *task, struct node *node)
{
    if (task->parent != NULL) {
        struct node *parent = task->parent->obj;
        ((struct sz_redis_reply *)(uintptr_t)parent->reply.items)[task->idx] = node->reply;
    }
    return node;
}

static void *on_string(const redisReadTask *task, char *text, size_t n)
{
    struct node *node = take(task->privdata, sizeof(*node));
    char *copy = take(task->privdata, n + 1);
    memcpy(copy, text, n);
    copy[n] = '\0';
    *node = (struct node){.reply = {.type = task->type == REDIS_REPLY_STATUS ? SZ_REDIS_STATUS : SZ_REDIS_STRING,
                                    .text = sz_slice(copy, n)},
                          .error = task->type == REDIS_REPLY_ERROR};
    return settle(task, node);
}

/* NULL stops the reader for good. */
static void *on_array(const redisReadTask *task, int n)
{
    struct sz_redis_reader *r = task->privdata;
    if (n < 0 || (size_t)n > r->limit / ITEM_LEAST - r->items)
        return NULL;
    r->items += (size_t)n;
    struct node *node = take(task->privdata, sizeof(*node));
    struct sz_redis_reply *items = take(r, (size_t)n * sizeof(*items));
    memset(items, 0, (size_t)n * sizeof(*items));
    *node = (struct node){.reply = {.type = SZ_REDIS_ARRAY, .items = items, .items_n = (size_t)n}};
    return settle(task, node);
}

static void *on_integer(const redisReadTask *task, long long value)
{
    struct node *node = take(task->privdata, sizeof(*node));
    *node = (struct node){.reply = {.type = SZ_REDIS_INTEGER, .integer = value}};
    return settle(task, node);
}

static void *on_nil(const redisReadTask *task)
{
    struct node *node = take(task->privdata, sizeof(*node));
    *node = (struct node){.reply = {.type = SZ_REDIS_NIL}};
    return settle(task, node);
}

static void on_free(void *object)
{
    (void)object; /* with its chunk */
}

static redisReplyObjectFunctions functions = {.createString = on_string,
                                              .createArray = on_array,
                                              .createInteger = on_integer,
                                              .createNil = on_nil,
                                              .freeObject = on_free};

/* ---- the reader -------------------------------------------------------------------------------------------------- */

struct sz_redis_reader *sz_redis_reader_new(void)
{
    struct sz_redis_reader *r = sz_xcalloc(1, sizeof(*r));
    r->hiredis = redisReaderCreateWithFunctions(&functions);
    SZ_ASSERT(r->hiredis != NULL);
    r->hiredis->privdata = r;
    r->chunks = chunk_new(CHUNK, NULL);
    return r;
}

void sz_redis_reader_free(struct sz_redis_reader **reader)
{
    struct sz_redis_reader *r = *reader;
    *reader = NULL;
    if (r == NULL)
        return;
    redisReaderFree(r->hiredis);
    forget(r);
    free(r->chunks);
    free(r);
}

bool sz_redis_reader_feed(struct sz_redis_reader *r, const void *bytes, size_t n)
{
    r->broken = r->broken || redisReaderFeed(r->hiredis, bytes, n) != REDIS_OK;
    r->fed += n;
    return !r->broken;
}

enum sz_redis_read sz_redis_reader_next(struct sz_redis_reader *r, size_t limit, const struct sz_redis_reply **reply,
                                        struct sz_slice *error)
{
    void *found = NULL;
    *error = SZ_NONE;
    *reply = NULL;
    if (r->broken)
        return SZ_REDIS_READ_BAD;
    if (r->hiredis->reply == NULL && r->hiredis->ridx <= 0)
        forget(r); /* the one before is over */
    r->limit = limit;
    if (redisReaderGetReply(r->hiredis, &found) != REDIS_OK) {
        r->broken = true;
        return SZ_REDIS_READ_BAD;
    }
    uint64_t rest = r->hiredis->len - r->hiredis->pos;
    if (found == NULL) {
        if (r->fed - r->begun <= limit)
            return SZ_REDIS_READ_MORE;
        r->broken = true;
        return SZ_REDIS_READ_BAD;
    }
    bool large = r->fed - rest - r->begun > limit;
    r->begun = r->fed - rest;
    r->broken = large;
    if (large)
        return SZ_REDIS_READ_BAD;
    const struct node *node = found;
    if (node->error)
        *error = node->reply.text;
    else
        *reply = &node->reply;
    return SZ_REDIS_READ_REPLY;
}
