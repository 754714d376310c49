/* A Redis client on a loop that runs in real time, and commands whose answers a test looks at. */
#ifndef REDIS_KIT_H
#define REDIS_KIT_H

#include <criterion/criterion.h>

#include "fake/loop.h"
#include "fake/redis.h"
#include "fake/wire.h"
#include "subzero/redis.h"

struct redis_kit {
    struct sz_conf_redis conf;
    struct sz_conf_redis_place places[8];
    struct sz_redis_shared *shared;
    struct sz_redis *redis;
    struct sz_loop *loop;
};

/* conf and places are filled in; timeout 1 s (machines under test are slow) unless set, breaker 5 and 30 s. */
void kit_init(struct redis_kit *k);
void kit_at(struct redis_kit *k, uint16_t port); /* 127.0.0.1:port */
void kit_start(struct redis_kit *k);
void kit_stop(struct redis_kit *k);
/* Runs the loop until done(arg) or so many real milliseconds have passed. */
bool kit_until(struct redis_kit *k, bool (*done)(void *arg), void *arg, int ms);
void kit_run(struct redis_kit *k, int ms);
/* A connection is up within 5 s. */
void kit_connected(struct redis_kit *k);

struct kit_ask {
    struct sz_redis_op op;
    struct redis_kit *kit;
    unsigned done;
    enum sz_redis_result result;
    enum sz_redis_type type;
    int64_t integer;
    char text[128]; /* of a string, a status or an error; of an array "[N]" */
    size_t text_n;
    struct sz_mono at; /* when it was done */
};
/* Words separated by blanks; the first key is word `key` (0: none).  What sz_redis_start returned. */
int kit_begin(struct redis_kit *k, struct kit_ask *ask, enum sz_redis_use use, unsigned key, const char *words);
/* One command to its end: its result, which may be one of those that sz_redis_start returns. */
int kit_say(struct redis_kit *k, struct kit_ask *ask, const char *words);
/* Its text; "" unless it was answered. */
const char *kit_text(struct redis_kit *k, const char *words);

#endif
