/*
 * Threat scores: how much speaks against an address, a network, a token or a subject.  A pure calculator over fixed
 * memory: no I/O, no clock, no configuration of its own, no allocation after the start.
 *
 *   what happened ─▶ sz_threat_note ─▶ amounts that decay ─▶ sz_threat_look ─▶ score 0..1 ─▶ allow, monitor,
 *                                                                                           challenge, block
 *
 * The signals with their weights are rows of subzero/tbl/signals.h.  A signal sticks to a subject only when a verified
 * credential, or the provider, named it: forged tokens that name alice say nothing about alice.
 *
 * Every function: any thread, no lock to wait for.  A note that meets another one of the same entry tries a few times
 * and is then dropped and counted; a look never waits.
 */
#ifndef SUBZERO_THREAT_H
#define SUBZERO_THREAT_H

#include "subzero/addr.h"
#include "subzero/crypto.h"
#include "subzero/time.h"

enum sz_signal {
#define SZ_COUNTED(name, ...) SZ_SIGNAL_##name,
#include "subzero/tbl/signals.h"
    SZ_SIGNALS_COUNTED,
    SZ_SIGNALS_BEFORE_DISTINCT = SZ_SIGNALS_COUNTED - 1,
#define SZ_DISTINCT(name, ...) SZ_SIGNAL_##name,
#include "subzero/tbl/signals.h"
    SZ_SIGNALS
};

struct sz_signal_row {
    const char *name;
    float weight, full;
    struct sz_span half_life;
    const char *help;
};
const struct sz_signal_row *sz_signal_row(enum sz_signal signal);
/* SZ_SIGNALS when unknown. */
enum sz_signal sz_signal_from(struct sz_slice name);

enum sz_threat_level { SZ_THREAT_ALLOW, SZ_THREAT_MONITOR, SZ_THREAT_CHALLENGE, SZ_THREAT_BLOCK };
const char *sz_threat_level_name(enum sz_threat_level level); /* "allow", "monitor" ... */

/* What speaks of whom: the kinds never meet, whatever their bytes. */
enum sz_threat_kind { SZ_THREAT_ADDRESS = 1, SZ_THREAT_NETWORK, SZ_THREAT_TOKEN, SZ_THREAT_SUBJECT };

struct sz_threat_key {
    uint64_t hash; /* keyed, never 0 */
    enum sz_threat_kind kind;
    struct sz_addr addr; /* ADDRESS, NETWORK: to be shown; zero otherwise */
};

/* Where the levels begin, and how long a block lasts: the first, doubling to the longest. */
struct sz_threat_policy {
    float monitor, challenge, block;
    struct sz_span first, longest;
};

struct sz_threat;
/* entries 1,024..1,000,000 in each of two tables (addresses with networks; tokens with subjects), 192 bytes each. */
struct sz_threat *sz_threat_new(size_t entries); /* NULL: errno */
void sz_threat_free(struct sz_threat **threat);

/* IPv4 addresses are keyed whole, IPv6 ones by their /64: whoever has one of those has all of it. */
struct sz_threat_key sz_threat_address(const struct sz_threat *threat, struct sz_addr addr);
/* The /24 or /48 around it. */
struct sz_threat_key sz_threat_network(const struct sz_threat *threat, struct sz_addr addr);
struct sz_threat_key sz_threat_token(const struct sz_threat *threat, struct sz_hash128 fingerprint);
/* issuer: its `iss`; a subject is (issuer, sub) wherever it is a key. */
struct sz_threat_key sz_threat_subject(const struct sz_threat *threat, struct sz_slice issuer, struct sz_slice sub);

/*
 * Notes that it happened.  COUNTED: `amount` times.  DISTINCT: with the thing whose hash is `amount` (keyed by
 * sz_threat_hash, so that nobody chooses what collides).
 */
void sz_threat_note(struct sz_threat *threat, struct sz_threat_key key, enum sz_signal signal, uint64_t amount,
                    struct sz_mono now);
uint64_t sz_threat_hash(const struct sz_threat *threat, struct sz_slice s);
/* A token that was verified came from there: as many bad ones are forgiven. */
void sz_threat_good(struct sz_threat *threat, struct sz_threat_key address, uint64_t token_hash, struct sz_mono now);

struct sz_threat_view {
    float score;
    float parts[SZ_SIGNALS]; /* what each signal contributes; they sum to the score, before it is cut at 1 */
    enum sz_threat_level level;
    struct sz_mono blocked_until; /* 0: not blocked */
    unsigned blocks;              /* how often it was blocked lately */
};
/* False: nothing is known, *out is zero.  Reads only. */
bool sz_threat_look(const struct sz_threat *threat, struct sz_threat_key key, const struct sz_threat_policy *policy,
                    struct sz_mono now, struct sz_threat_view *out);
/* The level alone: what a request asks.  Costs one look into memory where nothing is known. */
enum sz_threat_level sz_threat_level(const struct sz_threat *threat, struct sz_threat_key key,
                                     const struct sz_threat_policy *policy, struct sz_mono now);
/*
 * After a note: blocks the key if its score has come to policy->block and it is not blocked yet.  Each block lasts
 * twice as long as the one before, up to the longest; the count is halved each day without one.  True: blocked by this
 * call.  *view is how it stands then, in every case.
 */
bool sz_threat_judge(struct sz_threat *threat, struct sz_threat_key key, const struct sz_threat_policy *policy,
                     struct sz_mono now, struct sz_threat_view *view);
/* Blocks it whatever its score.  False: no room among other blocks (eight in one place), or another thread held it. */
bool sz_threat_block(struct sz_threat *threat, struct sz_threat_key key, struct sz_mono now, struct sz_mono until);
/*
 * True while no token or subject can have come to a challenge or a block: then none needs to be looked for.  One load.
 */
bool sz_threat_quiet(const struct sz_threat *threat, struct sz_mono now);
/* Lifts a block and forgets what led to it.  False: there was none. */
bool sz_threat_lift(struct sz_threat *threat, struct sz_threat_key key, struct sz_mono now);

/* All entries of a kind that score at least `least`; for operators, walks the tables. */
void sz_threat_each(const struct sz_threat *threat, enum sz_threat_kind kind, const struct sz_threat_policy *policy,
                    float least, struct sz_mono now,
                    void (*see)(void *arg, const struct sz_threat_key *key, const struct sz_threat_view *view),
                    void *arg);

struct sz_threat_stats {
    uint64_t entries, capacity, bytes;
    uint64_t notes, dropped; /* dropped: another thread held the entry */
    uint64_t evicted;        /* entries that made room while something spoke against them */
};
void sz_threat_stats(const struct sz_threat *threat, struct sz_threat_stats *out);

#endif
