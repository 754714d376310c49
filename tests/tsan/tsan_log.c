/*
 * Threads that log while the writer writes, naps, sleeps and stops: for ThreadSanitizer.
 * The pipe's reader checks that no line is torn and that each thread's lines are in order.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "subzero/log.h"

enum { THREADS = 4, EACH = 20000 };

static int out[2];
static atomic_int refused;

static void *log_row(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        char line[128];
        int n = snprintf(line, sizeof(line), "{\"t\":%d,\"i\":%d,\"pad\":\"%.*s\"}", (int)(intptr_t)arg, i, i % 60,
                         "............................................................");
        while (!sz_log_line(sz_slice(line, (size_t)n)))
            atomic_fetch_add(&refused, 1);
        if (i % 5000 == 0)
            sz_log(SZ_LOG_INFO, "tsan", "thread %d at %d", (int)(intptr_t)arg, i);
    }
    return NULL;
}

static void *read_lines(void *arg)
{
    FILE *in = fdopen(out[0], "r");
    char *line = NULL;
    size_t room = 0;
    int next[THREADS] = {0};
    while (getline(&line, &room, in) > 0) {
        int t, i;
        if (sscanf(line, "{\"t\":%d,\"i\":%d,", &t, &i) == 2) {
            SZ_ASSERT(t >= 0 && t < THREADS && i == next[t]++);
            ++*(int *)arg;
        }
    }
    free(line);
    fclose(in);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS], reader;
    int total = 0;
    SZ_ASSERT(pipe(out) == 0);
    SZ_ASSERT(pthread_create(&reader, NULL, read_lines, &total) == 0);
    SZ_ASSERT(sz_log_start(out[1], SZ_LOG_INFO) == 0);
    for (intptr_t i = 0; i < THREADS; i++)
        SZ_ASSERT(pthread_create(&threads[i], NULL, log_row, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sz_log_stop();
    close(out[1]);
    pthread_join(reader, NULL);
    SZ_ASSERT(total == THREADS * EACH);
    printf("tsan_log: %d lines, %d refused and sent again\n", total, atomic_load(&refused));
    return 0;
}
