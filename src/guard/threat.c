/*
 * The tables of threat entries.
 *
 *   keys      one line a set: | key x 8 |              a look that finds nothing ends here
 *   entries   8 a set, 24 words each: | version | struct sz_threat_entry |
 *
 * A reader copies an entry's words and believes them when the version was even and is the same afterwards.  Writers of
 * a set take its lock with a few tries; inside nothing is called but arithmetic.
 *
 * A set that is full gives way at its lightest entry: one that nothing speaks against first (the longest untouched of
 * them), then the lowest score, blocked ones last.  So whoever sprays from a million addresses pushes out others who
 * have done as little, never the few that have done much.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "guard/threat_entry.h"

#define WAYS        8
#define WORDS       24 /* 192 bytes: three lines */
#define ENTRY_WORDS (sizeof(struct sz_threat_entry) / 8)
#define LOCK_TRIES  64
#define DAY         (UINT32_C(86400) * 10) /* ticks */
#define BLOCKS_MAX  30                     /* doublings that can still matter */

_Static_assert(offsetof(struct sz_threat_entry, blocked_until) / 8 * 8 + 8 >=
                   offsetof(struct sz_threat_entry, blocked_until) + 4,
               "until when it is blocked is within one word: see read_entry");
_Static_assert(sizeof(struct sz_threat_entry) % 8 == 0 && ENTRY_WORDS + 1 <= WORDS, "an entry fits its words");

struct set {
    _Atomic uint64_t keys[WAYS];
};

struct table {
    struct set *sets;
    _Atomic uint64_t *words;
    _Atomic uint8_t *locks;
    size_t sets_n; /* a power of two */
    void *map;
    size_t map_size;
};

struct sz_threat {
    struct table addresses, credentials;
    struct sz_key128 secret;
    _Atomic int64_t suspect_until; /* us: until then a token or a subject may be challenged or blocked */
    _Atomic uint64_t notes, dropped, evicted, entries;
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int open_table(struct table *t, size_t entries)
{
    size_t sets = 1;
    while (sets * WAYS < entries)
        sets *= 2;
    t->sets_n = sets;
    t->map_size = sets * (sizeof(struct set) + WAYS * WORDS * 8 + 1);
    t->map = mmap(NULL, t->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t->map == MAP_FAILED) {
        t->map = NULL;
        return -errno;
    }
    t->sets = t->map;
    t->words = (_Atomic uint64_t *)(void *)(t->sets + sets);
    t->locks = (_Atomic uint8_t *)(t->words + sets * WAYS * WORDS);
    return 0;
}

static void close_table(struct table *t)
{
    if (t->map != NULL)
        munmap(t->map, t->map_size);
}

struct sz_threat *sz_threat_new(size_t entries)
{
    struct sz_threat *threat = sz_xcalloc(1, sizeof(*threat));
    int rc = open_table(&threat->addresses, entries);
    if (rc == 0)
        rc = open_table(&threat->credentials, entries);
    sz_random(&threat->secret, sizeof(threat->secret));
    if (rc != 0) {
        sz_threat_free(&threat);
        errno = -rc;
    }
    return threat;
}

void sz_threat_free(struct sz_threat **threatp)
{
    struct sz_threat *threat = *threatp;
    *threatp = NULL;
    if (threat == NULL)
        return;
    close_table(&threat->addresses);
    close_table(&threat->credentials);
    sz_wipe(&threat->secret, sizeof(threat->secret));
    free(threat);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static struct sz_threat_key key_of(const struct sz_threat *threat, enum sz_threat_kind kind, const void *bytes,
                                   size_t n)
{
    char buf[33];
    SZ_ASSERT(n < sizeof(buf));
    buf[0] = (char)kind;
    memcpy(buf + 1, bytes, n);
    uint64_t hash = sz_hash64(&threat->secret, sz_slice(buf, n + 1));
    return (struct sz_threat_key){.hash = hash + (hash == 0), .kind = kind};
}

struct sz_threat_key sz_threat_address(const struct sz_threat *threat, struct sz_addr addr)
{
    struct sz_addr net = sz_addr_is_v4(addr) ? addr : sz_addr_prefix(addr, 64);
    struct sz_threat_key key = key_of(threat, SZ_THREAT_ADDRESS, net.b, sizeof(net.b));
    key.addr = net;
    return key;
}

struct sz_threat_key sz_threat_network(const struct sz_threat *threat, struct sz_addr addr)
{
    struct sz_addr net = sz_addr_prefix(addr, sz_addr_is_v4(addr) ? 24 : 48);
    struct sz_threat_key key = key_of(threat, SZ_THREAT_NETWORK, net.b, sizeof(net.b));
    key.addr = net;
    return key;
}

struct sz_threat_key sz_threat_token(const struct sz_threat *threat, struct sz_hash128 fingerprint)
{
    return key_of(threat, SZ_THREAT_TOKEN, fingerprint.w, sizeof(fingerprint.w));
}

struct sz_threat_key sz_threat_subject(const struct sz_threat *threat, struct sz_slice issuer, struct sz_slice sub)
{
    uint64_t parts[2] = {sz_threat_hash(threat, issuer), sz_threat_hash(threat, sub)};
    return key_of(threat, SZ_THREAT_SUBJECT, parts, sizeof(parts));
}

uint64_t sz_threat_hash(const struct sz_threat *threat, struct sz_slice s)
{
    return sz_hash64(&threat->secret, s);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static struct table *table_of(struct sz_threat *threat, enum sz_threat_kind kind)
{
    return kind == SZ_THREAT_ADDRESS || kind == SZ_THREAT_NETWORK ? &threat->addresses : &threat->credentials;
}

static size_t set_of(const struct table *t, uint64_t hash)
{
    return (size_t)(hash >> 32) & (t->sets_n - 1);
}

static _Atomic uint64_t *words_of(const struct table *t, size_t set, unsigned way)
{
    return t->words + (set * WAYS + way) * WORDS;
}

static int find(const struct table *t, size_t set, uint64_t hash)
{
    for (int way = 0; way < WAYS; way++) {
        if (atomic_load_explicit(&t->sets[set].keys[way], memory_order_acquire) == hash)
            return way;
    }
    return -1;
}

/*
 * Words are stored with release and loaded with acquire, as cache/table.h does and says why.  False: a writer was in
 * the middle of it each time; *e has the words of more than one moment.
 */
static bool copy_out(const _Atomic uint64_t *words, struct sz_threat_entry *e)
{
    uint64_t copy[ENTRY_WORDS];
    for (int tries = 0; tries < 8; tries++) {
        uint64_t version = atomic_load_explicit(&words[0], memory_order_acquire);
        for (size_t i = 0; i < ENTRY_WORDS; i++)
            copy[i] = atomic_load_explicit(&words[i + 1], memory_order_acquire);
        if ((version & 1) == 0 && atomic_load_explicit(&words[0], memory_order_relaxed) == version) {
            memcpy(e, copy, sizeof(*e));
            return true;
        }
    }
    memcpy(e, copy, sizeof(*e));
    return false;
}

static void copy_in(_Atomic uint64_t *words, const struct sz_threat_entry *e)
{
    uint64_t copy[ENTRY_WORDS], version = atomic_load_explicit(&words[0], memory_order_relaxed);
    memcpy(copy, e, sizeof(copy));
    atomic_store_explicit(&words[0], version + 1, memory_order_relaxed);
    for (size_t i = 0; i < ENTRY_WORDS; i++)
        atomic_store_explicit(&words[i + 1], copy[i], memory_order_release);
    atomic_store_explicit(&words[0], version + 2, memory_order_release);
}

static bool lock(struct table *t, size_t set)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        if (atomic_exchange_explicit(&t->locks[set], 1, memory_order_acquire) == 0)
            return true;
    }
    return false;
}

static void unlock(struct table *t, size_t set)
{
    atomic_store_explicit(&t->locks[set], 0, memory_order_release);
}

/* ---- writing: under the set's lock ------------------------------------------------------------------------------- */

struct seat {
    struct table *table;
    size_t set;
    unsigned way;
    struct sz_threat_entry entry;
};

/* What an entry weighs when room is needed; the lightest goes. */
static float weight_of(struct sz_threat_entry *e, uint32_t tick)
{
    float parts[SZ_SIGNALS];
    sz_threat_entry_age(e, tick);
    if (e->blocked_until > tick)
        return 2 + (float)(e->blocked_until - tick);
    if (sz_threat_entry_clean(e))
        return -1 - (float)(tick - e->rotated);
    return sz_threat_entry_score(e, tick, parts);
}

/* *evicted: somebody had to go whom something speaks against. */
static unsigned make_room(struct table *t, size_t set, uint32_t tick, bool *evicted)
{
    float least = 0;
    unsigned way = WAYS;
    for (unsigned i = 0; i < WAYS; i++) {
        struct sz_threat_entry e;
        if (atomic_load_explicit(&t->sets[set].keys[i], memory_order_relaxed) == 0)
            return i;
        if (!copy_out(words_of(t, set, i), &e)) /* cannot be: the lock is ours */
            continue;
        float weight = weight_of(&e, tick);
        if (way == WAYS || weight < least) {
            least = weight;
            way = i;
        }
    }
    *evicted = least >= 0;
    return least >= 2 ? WAYS : way; /* nobody who is blocked goes for somebody else */
}

static void fresh_entry(struct seat *seat, const struct sz_threat_key *key, uint32_t tick)
{
    seat->entry = (struct sz_threat_entry){
        .key = key->hash, .touched = tick, .rotated = tick, .kind = (uint8_t)key->kind, .addr = key->addr};
}

/* Takes the set's lock.  False: not taken (busy, or with `must` unset no room among those who weigh more). */
static bool sit(struct sz_threat *threat, const struct sz_threat_key *key, uint32_t tick, bool create, bool must,
                struct seat *seat)
{
    bool evicted = false;
    seat->table = table_of(threat, key->kind);
    seat->set = set_of(seat->table, key->hash);
    if (!lock(seat->table, seat->set)) {
        atomic_fetch_add_explicit(&threat->dropped, 1, memory_order_relaxed);
        return false;
    }
    int way = find(seat->table, seat->set, key->hash);
    if (way >= 0 && copy_out(words_of(seat->table, seat->set, (unsigned)way), &seat->entry)) {
        seat->way = (unsigned)way;
        sz_threat_entry_age(&seat->entry, tick);
        return true;
    }
    if (create) {
        seat->way = make_room(seat->table, seat->set, tick, &evicted);
        if (seat->way < WAYS && (must || !evicted)) {
            bool taken = atomic_load_explicit(&seat->table->sets[seat->set].keys[seat->way], memory_order_relaxed) != 0;
            atomic_fetch_add_explicit(taken ? &threat->evicted : &threat->entries, !taken || evicted,
                                      memory_order_relaxed);
            fresh_entry(seat, key, tick);
            return true;
        }
    }
    unlock(seat->table, seat->set);
    return false;
}

/* Stores the entry and gives the lock back. */
static void rise(struct seat *seat)
{
    _Atomic uint64_t *key = &seat->table->sets[seat->set].keys[seat->way];
    if (atomic_load_explicit(key, memory_order_relaxed) != seat->entry.key)
        atomic_store_explicit(key, 0, memory_order_relaxed); /* readers of the old one see it end first */
    copy_in(words_of(seat->table, seat->set, seat->way), &seat->entry);
    atomic_store_explicit(key, seat->entry.key, memory_order_release);
    unlock(seat->table, seat->set);
}

/* The longest that a token or subject can stay suspect: its amounts are of days at most, a block says itself. */
static void suspect(struct sz_threat *threat, struct sz_mono now, struct sz_mono blocked_until)
{
    int64_t until = now.us + SZ_SEC(3 * 86400).us;
    if (blocked_until.us > until)
        until = blocked_until.us;
    int64_t known = atomic_load_explicit(&threat->suspect_until, memory_order_relaxed);
    while (until > known && !atomic_compare_exchange_weak_explicit(&threat->suspect_until, &known, until,
                                                                   memory_order_relaxed, memory_order_relaxed))
        continue;
}

void sz_threat_note(struct sz_threat *threat, struct sz_threat_key key, enum sz_signal signal, uint64_t amount,
                    struct sz_mono now)
{
    struct seat seat;
    atomic_fetch_add_explicit(&threat->notes, 1, memory_order_relaxed);
    if (!sit(threat, &key, sz_tick(now), true, true, &seat))
        return;
    if (signal < SZ_SIGNALS_COUNTED)
        sz_threat_entry_count(&seat.entry, signal, (float)amount);
    else
        sz_threat_entry_see(&seat.entry, signal - SZ_SIGNALS_COUNTED, amount);
    rise(&seat);
    if (key.kind == SZ_THREAT_SUBJECT) /* only what was told about it comes here */
        suspect(threat, now, now);
}

void sz_threat_good(struct sz_threat *threat, struct sz_threat_key address, uint64_t token_hash, struct sz_mono now)
{
    struct seat seat;
    if (!sit(threat, &address, sz_tick(now), true, false, &seat))
        return;
    sz_threat_entry_see(&seat.entry, SZ_BITS_GOOD, token_hash);
    rise(&seat);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/*
 * A writer that is interrupted in the middle of an entry must not let go whom it is about: then words of two moments
 * are believed.  Of the same key they are one note apart: each amount is the one before or the one after, and until
 * when it is blocked is one word.  That it is the same key the set says, whose word is cleared before an entry of
 * another key is written: whoever has read a word of that one sees it cleared.
 */
static bool read_entry(const struct sz_threat *threat, const struct sz_threat_key *key, struct sz_threat_entry *e)
{
    const struct table *t = table_of((struct sz_threat *)threat, key->kind);
    size_t set = set_of(t, key->hash);
    int way = find(t, set, key->hash);
    if (way < 0)
        return false;
    return (copy_out(words_of(t, set, (unsigned)way), e) ||
            atomic_load_explicit(&t->sets[set].keys[way], memory_order_acquire) == key->hash) &&
           e->key == key->hash;
}

static enum sz_threat_level level_of(float score, const struct sz_threat_policy *policy)
{
    return score >= policy->block       ? SZ_THREAT_BLOCK
           : score >= policy->challenge ? SZ_THREAT_CHALLENGE
           : score >= policy->monitor   ? SZ_THREAT_MONITOR
                                        : SZ_THREAT_ALLOW;
}

/* What the address's network adds, and only to an address that has done something itself. */
static void add_neighbours(const struct sz_threat *threat, const struct sz_threat_entry *e, uint32_t tick,
                           struct sz_threat_view *view)
{
    struct sz_threat_key key = sz_threat_network(threat, e->addr);
    struct sz_threat_entry network;
    float parts[SZ_SIGNALS];
    if (view->score <= 0 || !read_entry(threat, &key, &network))
        return;
    sz_threat_entry_age(&network, tick);
    (void)sz_threat_entry_score(&network, tick, parts);
    view->parts[SZ_SIGNAL_neighbours] = parts[SZ_SIGNAL_neighbours];
    view->score = view->score + parts[SZ_SIGNAL_neighbours] > 1 ? 1 : view->score + parts[SZ_SIGNAL_neighbours];
}

/* The entry is aged by this. */
static void view_entry(const struct sz_threat *threat, struct sz_threat_entry *e, const struct sz_threat_policy *policy,
                       uint32_t tick, struct sz_threat_view *view)
{
    sz_threat_entry_age(e, tick);
    view->score = sz_threat_entry_score(e, tick, view->parts);
    if (e->kind == SZ_THREAT_ADDRESS)
        add_neighbours(threat, e, tick, view);
    view->blocks = e->blocks;
    view->level = level_of(view->score, policy);
    view->blocked_until = (struct sz_mono){0};
    if (e->blocked_until > tick) {
        view->blocked_until = (struct sz_mono){(int64_t)e->blocked_until * SZ_TICK_US};
        view->level = SZ_THREAT_BLOCK;
    } else if (view->level == SZ_THREAT_BLOCK) {
        view->level = SZ_THREAT_CHALLENGE; /* a block is judged, once, when something happens: sz_threat_judge */
    }
}

bool sz_threat_look(const struct sz_threat *threat, struct sz_threat_key key, const struct sz_threat_policy *policy,
                    struct sz_mono now, struct sz_threat_view *out)
{
    struct sz_threat_entry e;
    *out = (struct sz_threat_view){0};
    if (!read_entry(threat, &key, &e))
        return false;
    view_entry(threat, &e, policy, sz_tick(now), out);
    return true;
}

enum sz_threat_level sz_threat_level(const struct sz_threat *threat, struct sz_threat_key key,
                                     const struct sz_threat_policy *policy, struct sz_mono now)
{
    struct sz_threat_view view;
    struct sz_threat_entry e;
    if (!read_entry(threat, &key, &e) || sz_threat_entry_clean(&e))
        return SZ_THREAT_ALLOW;
    view_entry(threat, &e, policy, sz_tick(now), &view);
    return view.level;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* After a day without a block half of them are forgotten, and so on. */
static void forget_blocks(struct sz_threat_entry *e, uint32_t tick)
{
    uint32_t days = e->blocks == 0 ? 0 : (tick - e->blocked_last) / DAY;
    e->blocks = days >= 16 ? 0 : (uint16_t)(e->blocks >> days);
}

static uint32_t block_ticks(const struct sz_threat_policy *policy, unsigned before)
{
    int64_t us = policy->first.us;
    for (unsigned i = 0; i < before && us < policy->longest.us; i++)
        us *= 2;
    us = us < policy->longest.us ? us : policy->longest.us;
    return (uint32_t)((us + SZ_TICK_US - 1) / SZ_TICK_US);
}

bool sz_threat_quiet(const struct sz_threat *threat, struct sz_mono now)
{
    return now.us >= atomic_load_explicit(&threat->suspect_until, memory_order_relaxed);
}

static void block_until(struct sz_threat_entry *e, uint32_t until)
{
    e->blocked_until = until;
    e->blocked_last = until;
    e->blocks = (uint16_t)(e->blocks < BLOCKS_MAX ? e->blocks + 1 : BLOCKS_MAX);
}

bool sz_threat_judge(struct sz_threat *threat, struct sz_threat_key key, const struct sz_threat_policy *policy,
                     struct sz_mono now, struct sz_threat_view *view)
{
    struct seat seat;
    uint32_t tick = sz_tick(now);
    *view = (struct sz_threat_view){0};
    if (!sit(threat, &key, tick, false, false, &seat))
        return false;
    view_entry(threat, &seat.entry, policy, tick, view);
    bool blocks = view->score >= policy->block && seat.entry.blocked_until <= tick;
    if (blocks) {
        forget_blocks(&seat.entry, tick);
        block_until(&seat.entry, tick + block_ticks(policy, seat.entry.blocks));
        view->level = SZ_THREAT_BLOCK;
        view->blocked_until = (struct sz_mono){(int64_t)seat.entry.blocked_until * SZ_TICK_US};
    }
    rise(&seat);
    if (key.kind >= SZ_THREAT_TOKEN && view->level >= SZ_THREAT_CHALLENGE)
        suspect(threat, now, view->blocked_until);
    return blocks;
}

bool sz_threat_block(struct sz_threat *threat, struct sz_threat_key key, struct sz_mono now, struct sz_mono until)
{
    struct seat seat;
    uint32_t tick = sz_tick(now);
    if (!sit(threat, &key, tick, true, true, &seat))
        return false;
    if (sz_tick(until) > seat.entry.blocked_until) /* a shorter one takes nothing back */
        block_until(&seat.entry, sz_tick(until));
    rise(&seat);
    if (key.kind >= SZ_THREAT_TOKEN)
        suspect(threat, now, until);
    return true;
}

bool sz_threat_lift(struct sz_threat *threat, struct sz_threat_key key, struct sz_mono now)
{
    struct seat seat;
    uint32_t tick = sz_tick(now);
    if (!sit(threat, &key, tick, false, false, &seat))
        return false;
    bool was = seat.entry.blocked_until > tick;
    fresh_entry(&seat, &key, tick);
    rise(&seat);
    return was;
}

/* ---- for operators ----------------------------------------------------------------------------------------------- */

void sz_threat_each(const struct sz_threat *threat, enum sz_threat_kind kind, const struct sz_threat_policy *policy,
                    float least, struct sz_mono now,
                    void (*see)(void *arg, const struct sz_threat_key *key, const struct sz_threat_view *view),
                    void *arg)
{
    const struct table *t = table_of((struct sz_threat *)threat, kind);
    for (size_t i = 0; i < t->sets_n * WAYS; i++) {
        struct sz_threat_view view = {0};
        struct sz_threat_entry e;
        uint64_t hash = atomic_load_explicit(&t->sets[i / WAYS].keys[i % WAYS], memory_order_acquire);
        if (hash == 0 || !copy_out(words_of(t, i / WAYS, i % WAYS), &e) || e.key != hash || e.kind != kind)
            continue;
        view_entry(threat, &e, policy, sz_tick(now), &view);
        if (view.score >= least || view.blocked_until.us != 0)
            see(arg, &(struct sz_threat_key){e.key, kind, e.addr}, &view);
    }
}

void sz_threat_stats(const struct sz_threat *threat, struct sz_threat_stats *out)
{
    *out = (struct sz_threat_stats){
        .entries = atomic_load_explicit(&threat->entries, memory_order_relaxed),
        .capacity = (threat->addresses.sets_n + threat->credentials.sets_n) * WAYS,
        .bytes = sizeof(*threat) + threat->addresses.map_size + threat->credentials.map_size,
        .notes = atomic_load_explicit(&threat->notes, memory_order_relaxed),
        .dropped = atomic_load_explicit(&threat->dropped, memory_order_relaxed),
        .evicted = atomic_load_explicit(&threat->evicted, memory_order_relaxed),
    };
}
