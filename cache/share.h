/*
 * A set that the instances of a fleet share through Redis: revocations, blocks.  What the records say and how two of
 * one are made one is the set's business (struct sz_share_face); this is how they come to the others and stay there.
 *
 *   one hash, so that a script sees all of it and a cluster keeps it in one place
 *   subzero:{TAG}:NAME       e      which hash this is: drawn when it is made, so that one that was flushed and made
 * again is known for another s      the last number N      a sealed record, as many as are in force
 *   subzero:{TAG}:CHANNEL    "N sealed", announced when it is written
 *
 *   share_hear.c   hearing and reading what others say         share_tell.c   telling them
 *
 * TAG is a name under the fleet's key.  Numbers, `e` and `s` are hints: whoever can write to Redis can make instances
 * read all of it again, or nothing at all.  What a record says is sealed; instances keep what they have heard of and
 * write again what Redis has lost.  All of it on the loop's thread.
 */
#ifndef SZ_CACHE_SHARE_H
#define SZ_CACHE_SHARE_H

#include "subzero/fleet.h"
#include "subzero/metrics.h"
#include "subzero/redis.h"

#define SZ_SHARE_PUBLISHES 16 /* under way at once */
#define SZ_SHARE_FORGETS   24 /* numbers given up by one command */

/* What is known of one record's place in Redis; part of the owner's record. */
struct sz_share_item {
    bool published;       /* Redis has it as it is here */
    bool publishing;      /* under way */
    uint32_t version;     /* the owner's: another one each time that the record changes */
    uint32_t sync;        /* the last whole look at Redis that saw it */
    uint64_t number;      /* under which Redis has it; 0: unknown */
    int64_t sealed_until; /* unix microseconds: when what Redis has of it opens no more */
};

enum sz_share_heard {
    SZ_HEARD_BAD,  /* opened, and says nothing that this version understands */
    SZ_HEARD_FULL, /* no room here; the owner says so */
    SZ_HEARD_OLD,  /* nothing new */
    SZ_HEARD_NEWS
};

struct sz_share;
struct sz_share_face {            /* static */
    const char *name, *channel;   /* of the keys in Redis */
    const char *kind;             /* of the seals: struct sz_seal_bind */
    const char *component, *what; /* for the log: "revocation", "revocations" */
    size_t sealed;                /* bytes of a sealed record: all have the same */
    unsigned page;                /* records read at once: page x sealed is well below SZ_REDIS_REPLY_DEFAULT */
    enum sz_redis_use use;
    enum sz_metric events; /* heard, forged, stale, republished */

    /* Positions are 0 .. count - 1.  NULL: nothing is there (any more).  A record that is publishing does not move. */
    size_t (*count)(void *owner);
    struct sz_share_item *(*item)(void *owner, size_t at);
    /* The record at `at`, `sealed - SZ_SEAL_OVERHEAD` bytes; *expires: when its seal ends, unix microseconds. */
    void (*encode)(void *owner, size_t at, struct sz_buf *plain, int64_t *expires);
    /*
     * What was heard, opened: it becomes part of the set.  OLD, NEWS: *at is where, *stands whether the record that is
     * there now says no more than this one.
     */
    enum sz_share_heard (*hear)(void *owner, struct sz_slice plain, size_t *at, bool *stands);
    void (*on_change)(void *owner); /* something was heard, or told: whoever waits may go on */
    /* Nothing can be heard any more, or again. */
    void (*on_deaf)(void *owner, bool deaf);
};

struct sz_share_publish {
    struct sz_redis_op op;
    struct sz_share *share;
    bool busy;
    size_t at;
    uint32_t version;
    int64_t sealed_until;
    uint64_t replaced; /* the number it had */
};

enum sz_share_reading { SZ_READING_NOTHING, SZ_READING_TAIL, SZ_READING_ALL };

struct sz_share {
    const struct sz_share_face *face;
    void *owner;
    struct sz_loop *loop;
    struct sz_redis *redis;
    const struct sz_fleet *fleet;
    char key[64], channel[64];
    struct sz_redis_listener listener;
    bool up;      /* announcements are heard */
    bool current; /* and everything before them has been read */
    bool deaf;

    char epoch[17];
    uint64_t last;   /* everything up to this number has been seen */
    uint64_t newest; /* the last number there was when the whole look began */
    uint32_t sync;   /* counts whole looks */
    size_t numbered; /* records with a number */
    char cursor[24];
    bool all_wanted, tail_wanted;
    enum sz_share_reading reading;
    struct sz_redis_op read;
    struct sz_timer poll;
    struct sz_mono all_at; /* the next whole look */
    unsigned failures;

    uint32_t
        *untold; /* positions of records to be told, in any order, some perhaps twice; at most some four for each */
    size_t untold_n, untold_room;
    struct sz_share_publish publish[SZ_SHARE_PUBLISHES];
    size_t publishing;
    struct sz_mono publish_at; /* not before */
    struct sz_text fault;

    uint64_t forget[SZ_SHARE_FORGETS];
    size_t forget_n;
    struct sz_redis_op forgetting;

    struct sz_series heard, forged, stale, republished;
};

/* Everything that is there counts as not told.  Redis and fleet outlive the stop.  Deaf until it is connected. */
struct sz_share *sz_share_new(const struct sz_share_face *face, void *owner, struct sz_loop *loop,
                              struct sz_redis *redis, const struct sz_fleet *fleet);
void sz_share_free(struct sz_share **share); /* NULL is fine; nothing is called any more */

/* The record changed, or is new: Redis is to be told.  Takes effect with the next kick. */
void sz_share_tell(struct sz_share *share, size_t at);
void sz_share_kick(struct sz_share *share);
/* Positions have changed, or will: what was to be told is told again by its owner. */
void sz_share_untell_all(struct sz_share *share);
/* The record is gone: Redis need not keep what it has under this number. */
void sz_share_forget(struct sz_share *share, struct sz_share_item *item);

/* ---- between the two files --------------------------------------------------------------------------------------- */

/* Redis has it under this number, as it is here. */
void sz_share_numbered(struct sz_share *share, struct sz_share_item *item, uint64_t number);
/* Everything, and then what of ours was not there is written again. */
void sz_share_read_all(struct sz_share *share);
void sz_share_bind(const struct sz_share *share, struct sz_seal_bind *bind);
void sz_share_forget_number(struct sz_share *share, uint64_t number);
bool sz_share_number(struct sz_slice text, uint64_t *number);

#endif
