/*
 * Two loops that post to each other, four threads that post to both, stops from outside:
 * for ThreadSanitizer, hence a plain program (Criterion does not run under it).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/loop.h"

enum { SENDERS = 4, EACH = 5000, BOUNCES = 6 };

struct ball {
    struct sz_msg msg;
    int bounces;
    uint64_t payload[4]; /* plain memory: handed over by the post alone */
};

static struct sz_loop *loops[2];
static atomic_int landed;

static void on_ball(struct sz_msg *msg, struct sz_loop *to)
{
    struct ball *ball = SZ_CONTAINER(msg, struct ball, msg);
    SZ_ASSERT(sz_loop_current() == to);
    for (int i = 0; i < 4; i++) {
        SZ_ASSERT(ball->payload[i] == (uint64_t)ball->bounces);
        ball->payload[i]++;
    }
    if (++ball->bounces < BOUNCES) {
        sz_loop_post(loops[1 - sz_loop_index(to)], msg);
        return;
    }
    free(ball);
    if (atomic_fetch_add(&landed, 1) + 1 == SENDERS * EACH) {
        sz_loop_stop(loops[0]);
        sz_loop_stop(loops[1]);
    }
}

static void *send_balls(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        struct ball *ball = sz_xcalloc(1, sizeof(*ball));
        ball->msg.on_msg = on_ball;
        sz_loop_post(loops[(i + (int)(intptr_t)arg) % 2], &ball->msg);
    }
    return NULL;
}

static void *run(void *arg)
{
    struct sz_loop **loop = arg;
    sz_loop_run(*loop);
    return NULL;
}

int main(void)
{
    pthread_t runners[2], senders[SENDERS];
    for (unsigned i = 0; i < 2; i++) {
        loops[i] = sz_loop_new(i);
        SZ_ASSERT(loops[i] != NULL);
    }
    for (int i = 0; i < 2; i++)
        SZ_ASSERT(pthread_create(&runners[i], NULL, run, &loops[i]) == 0);
    for (intptr_t i = 0; i < SENDERS; i++)
        SZ_ASSERT(pthread_create(&senders[i], NULL, send_balls, (void *)i) == 0);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(senders[i], NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(runners[i], NULL);
        sz_loop_free(&loops[i]);
    }
    printf("tsan_loop: %d messages, %d hops each\n", atomic_load(&landed), BOUNCES);
    return 0;
}
