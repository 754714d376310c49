/* A decision as L2 keeps it: version 1, yes or no, and when it was asked (unix microseconds, 8 bytes little-endian). */
#include "pipeline/decision_l2.h"

#include <stdlib.h>

#define KIND      "decision"
#define LOOPS_MAX 512 /* workers, and the service loop */

enum { VERSION = 1, BYTES = 10 };

struct sz_decisions_shared {
    struct sz_decision_l2 face;
    struct sz_l2 *l2;
    struct sz_redis *redis[LOOPS_MAX]; /* each written and read by its own thread */
};

struct look {
    struct sz_l2_look look;
    struct sz_decision_l2_op *op;
};

static struct sz_redis *redis_of(const struct sz_decisions_shared *shared, const struct sz_loop *loop)
{
    unsigned index = sz_loop_index(loop);
    return index < LOOPS_MAX ? shared->redis[index] : NULL;
}

static void on_done(struct sz_l2_look *l2_look, struct sz_slice plain)
{
    struct look *look = SZ_CONTAINER(l2_look, struct look, look);
    struct sz_decision_l2_op *op = look->op;
    int64_t now = sz_loop_wall(l2_look->loop).us;
    uint64_t asked = 0;
    bool found = plain.n == BYTES && plain.p[0] == VERSION && (plain.p[1] == 0 || plain.p[1] == 1), allowed = false;
    for (size_t i = 0; found && i < 8; i++)
        asked |= (uint64_t)(uint8_t)plain.p[2 + i] << 8 * i;
    if (found)
        allowed = plain.p[1] == 1;
    struct sz_span age = {(int64_t)asked < now ? now - (int64_t)asked : 0};
    free(look);
    op->on_done(op, found, allowed, age);
}

static bool get(struct sz_decision_l2 *face, struct sz_loop *loop, struct sz_slice fields, struct sz_decision_l2_op *op)
{
    struct sz_decisions_shared *shared = SZ_CONTAINER(face, struct sz_decisions_shared, face);
    struct sz_redis *redis = redis_of(shared, loop);
    struct sz_l2_name name;
    if (redis == NULL)
        return false;
    struct look *look = sz_xcalloc(1, sizeof(*look));
    look->look.on_done = on_done;
    look->op = op;
    sz_l2_name(shared->l2, KIND, &fields, 1, &name);
    if (sz_l2_get(shared->l2, redis, loop, KIND, &name, SZ_NEVER, &look->look) == 0)
        return true;
    free(look);
    return false;
}

static void put(struct sz_decision_l2 *face, struct sz_loop *loop, struct sz_slice fields, bool allowed,
                struct sz_span age, struct sz_span left)
{
    struct sz_decisions_shared *shared = SZ_CONTAINER(face, struct sz_decisions_shared, face);
    struct sz_redis *redis = redis_of(shared, loop);
    int64_t now = sz_loop_wall(loop).us, asked = now - age.us;
    struct sz_l2_name name;
    char plain[BYTES] = {VERSION, (char)allowed};
    if (redis == NULL)
        return;
    for (size_t i = 0; i < 8; i++)
        plain[2 + i] = (char)((uint64_t)asked >> 8 * i);
    sz_l2_name(shared->l2, KIND, &fields, 1, &name);
    sz_l2_put(shared->l2, redis, loop, KIND, &name, sz_slice(plain, sizeof(plain)), (struct sz_wall){now + left.us});
}

struct sz_decisions_shared *sz_decisions_shared_new(struct sz_l2 *l2)
{
    if (l2 == NULL)
        return NULL;
    struct sz_decisions_shared *shared = sz_xcalloc(1, sizeof(*shared));
    shared->face = (struct sz_decision_l2){.get = get, .put = put};
    shared->l2 = l2;
    return shared;
}

void sz_decisions_shared_free(struct sz_decisions_shared **shared)
{
    free(*shared);
    *shared = NULL;
}

void sz_decisions_shared_loop(struct sz_decisions_shared *shared, struct sz_loop *loop, struct sz_redis *redis)
{
    unsigned index = sz_loop_index(loop);
    if (shared != NULL && index < LOOPS_MAX)
        shared->redis[index] = redis;
}

struct sz_decision_l2 *sz_decisions_shared_face(struct sz_decisions_shared *shared)
{
    return shared == NULL ? NULL : &shared->face;
}
