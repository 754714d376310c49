/*
 * The other side of the Redis client: real servers, alone or as a cluster, to be killed, stopped and started again; and
 * one that answers what a test tells it to.  Servers keep nothing on disk and end with the test.
 */
#ifndef FAKE_REDIS_H
#define FAKE_REDIS_H

#include <pthread.h>
#include <stdatomic.h>

#include "fake/process.h"

#define REDIS_OPTIONS_MAX 16

struct redis_server {
    struct proc proc;
    uint16_t port;
    char path[108];                             /* its unix socket */
    char url[160];                              /* redis://ADDRESS:PORT */
    const char *password;                       /* NULL: none */
    const char *options[REDIS_OPTIONS_MAX + 1]; /* further ones of its command line; NULL ends them */
    char name[32];
    /* One that others on its network reach: where, and the network namespace of its host (fake/netns.h).  NULL, 0:
     * it is at 127.0.0.1 alone, where the test is. */
    const char *address;
    int ns;
};

/* redis-server is here; else the test is skipped by its caller. */
bool redis_available(void);
/*
 * On a free port (or the port of a server that has ended).  Set `options` and `password` before: e.g. {"--maxmemory",
 * "2mb", "--maxmemory-policy", "noeviction"}.  False: it did not come up.
 */
bool redis_start(struct redis_server *r);
void redis_stop(struct redis_server *r);     /* SIGTERM; no-op when it does not run */
void redis_kill(struct redis_server *r);     /* SIGKILL, and waits for it to be gone */
void redis_pause(struct redis_server *r);    /* SIGSTOP */
void redis_continue(struct redis_server *r); /* SIGCONT */

/*
 * One command on a connection of its own, waited for at most 5 s: the reply's bytes as they came ("+OK\r\n"),
 * malloc'ed, NUL-terminated; NULL: no answer.  The first takes blank-separated words; the second is binary safe.
 */
char *redis_say(const struct redis_server *r, const char *fmt, ...) SZ_PRINTF(2, 3);
char *redis_ask(const struct redis_server *r, const struct sz_slice *args, size_t args_n, size_t *n);
/* The same, for the reply's number or -1; and whether the reply begins so. */
int64_t redis_number(const struct redis_server *r, const char *command);
bool redis_says(const struct redis_server *r, const char *command, const char *begins);

/* ---- a cluster --------------------------------------------------------------------------------------------------- */

#define REDIS_CLUSTER_MASTERS 3
struct redis_cluster {
    struct {
        char conf[32], bus[8];
    } texts[2 * REDIS_CLUSTER_MASTERS];
    struct redis_server nodes[2 * REDIS_CLUSTER_MASTERS]; /* masters, then a replica of each */
};
/*
 * Three masters with a replica each, all slots held, failover after a second or so.  Their address and ns may be set
 * before.  False: it did not form.
 */
bool redis_cluster_start(struct redis_cluster *c);
void redis_cluster_stop(struct redis_cluster *c);
/* cluster_state:ok at every node that runs, within so many ms. */
bool redis_cluster_ok(struct redis_cluster *c, int ms);

/* ---- one that says what it is told to ---------------------------------------------------------------------------- */

enum fake_redis_mode {
    FAKE_REDIS_REPLY,  /* `reply` to each command */
    FAKE_REDIS_SILENT, /* nothing */
    FAKE_REDIS_CUT,    /* `reply`, then the connection is closed */
    FAKE_REDIS_FLOOD   /* `reply`, then bytes without end */
};
struct fake_redis {
    uint16_t port;
    char url[64];
    /* counted; any thread */
    atomic_uint accepted, commands;
    atomic_ullong flooded; /* bytes of a flood that were taken */
    /* private */
    pthread_t thread;
    pthread_mutex_t lock;
    enum fake_redis_mode mode;
    bool logins; /* answer AUTH, SELECT, CLIENT, CONFIG and PING as Redis does, whatever the mode */
    struct sz_buf reply, last;
    int listener;
    atomic_bool ending;
};
void fake_redis_start(struct fake_redis *f);
void fake_redis_start_at(struct fake_redis *f, uint16_t port); /* in the place of a server that has ended */
void fake_redis_stop(struct fake_redis *f);
/* From now on; `logins` false: the mode is for them, too. */
void fake_redis_set(struct fake_redis *f, enum fake_redis_mode mode, struct sz_slice reply, bool logins);
/* The last command that was no login, its words separated by blanks; malloc'ed. */
char *fake_redis_last(struct fake_redis *f);

#endif
