/*
 * The word that there is something travels apart from the lines: when the loop has left, it may still be under way
 * while the thread frees all the rest.
 */
#include "fga/api/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct word {
    struct sz_msg msg;
    struct sz_lines *lines; /* the loop's; NULL: it has left */
};

struct sz_lines {
    struct sz_loop *loop;
    void (*on_part)(void *arg);
    void *arg;
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t taken;
    struct sz_buf ready;
    struct word *word; /* under way */
    bool idle, left;
};

struct sz_lines *sz_lines_new(struct sz_loop *loop, void (*on_part)(void *arg), void *arg)
{
    struct sz_lines *lines = sz_xcalloc(1, sizeof(*lines));
    pthread_condattr_t attr;
    lines->loop = loop;
    lines->on_part = on_part;
    lines->arg = arg;
    lines->idle = true;
    pthread_mutex_init(&lines->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* as deadlines are */
    pthread_cond_init(&lines->taken, &attr);
    pthread_condattr_destroy(&attr);
    return lines;
}

void sz_lines_free(struct sz_lines **linesp)
{
    struct sz_lines *lines = *linesp;
    *linesp = NULL;
    if (lines == NULL)
        return;
    SZ_ASSERT(lines->word == NULL);
    pthread_cond_destroy(&lines->taken);
    pthread_mutex_destroy(&lines->lock);
    sz_buf_fini(&lines->ready);
    free(lines);
}

static void on_word(struct sz_msg *msg, struct sz_loop *loop)
{
    struct word *word = SZ_CONTAINER(msg, struct word, msg);
    struct sz_lines *lines = word->lines;
    (void)loop;
    free(word);
    if (lines == NULL)
        return;
    pthread_mutex_lock(&lines->lock);
    lines->word = NULL;
    pthread_mutex_unlock(&lines->lock);
    lines->on_part(lines->arg);
}

static void send_word(struct sz_lines *lines)
{
    struct word *word = sz_xcalloc(1, sizeof(*word));
    word->msg.on_msg = on_word;
    word->lines = lines;
    lines->word = word;
    lines->idle = false;
    sz_loop_post(lines->loop, &word->msg);
}

bool sz_lines_add(struct sz_lines *lines, struct sz_slice line, struct sz_mono deadline)
{
    const struct timespec until = {deadline.us / 1000000, deadline.us % 1000000 * 1000};
    int rc = 0;
    pthread_mutex_lock(&lines->lock);
    if (lines->idle && !lines->left)
        send_word(lines);
    while (lines->ready.n >= SZ_STREAM_AHEAD && !lines->left && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&lines->taken, &lines->lock, &until);
    bool good = !lines->left && lines->ready.n < SZ_STREAM_AHEAD;
    if (good)
        sz_buf_adds(&lines->ready, line);
    pthread_mutex_unlock(&lines->lock);
    return good;
}

bool sz_lines_take(struct sz_lines *lines, struct sz_buf *out)
{
    pthread_mutex_lock(&lines->lock);
    bool some = lines->ready.n > 0;
    sz_buf_adds(out, sz_buf_slice(&lines->ready));
    lines->ready.n = 0;
    lines->idle = !some;
    pthread_cond_signal(&lines->taken);
    pthread_mutex_unlock(&lines->lock);
    return some;
}

void sz_lines_leave(struct sz_lines *lines)
{
    pthread_mutex_lock(&lines->lock);
    lines->left = true;
    if (lines->word != NULL)
        lines->word->lines = NULL;
    lines->word = NULL;
    pthread_cond_signal(&lines->taken);
    pthread_mutex_unlock(&lines->lock);
}
