/*
 * All of a breaker's state is one word, so that every step is: load, compute the next word, compare
 * and swap.  The computation is a table, phases by events, and nothing else.
 *
 *   | state:2 | failures:10 | period:12 | until, ms since the breaker was made:40 |
 *
 * `until` is the end of the open time, or of the wait for the probe.  The period grows with
 * every transition; 12 bits are enough to recognise a late outcome as long as no call outlives 4,096
 * transitions, and each second one of those takes an open time.
 */
#include "subzero/breaker.h"

#define UNTIL_MAX   ((UINT64_C(1) << 40) - 1) /* 34 years */
#define PERIOD_MASK 0xfffu

struct unpacked {
    enum sz_breaker_state state;
    uint32_t failures, period;
    uint64_t until;
};

static struct unpacked unpack(uint64_t word)
{
    return (struct unpacked){(enum sz_breaker_state)(word >> 62), (uint32_t)(word >> 52) & 0x3ff,
                             (uint32_t)(word >> 40) & PERIOD_MASK, word & UNTIL_MAX};
}

static uint64_t pack(struct unpacked u)
{
    return (uint64_t)u.state << 62 | (uint64_t)u.failures << 52 | (uint64_t)u.period << 40 | u.until;
}

/* What the table is entered with: the state, and whether its time is over. */
enum phase { CLOSED, OPEN, OPEN_OVER, PROBING, PROBE_LOST, PHASES };
enum event { ASKED, SUCCEEDED, FAILED, GAVE_UP, EVENTS };

enum action {
    NOTHING, /* asked: reject */
    LET,     /* asked: pass */
    SEND,    /* asked: this one is the probe */
    CLOSE,   /* and forget the failures */
    COUNT,   /* one more failure in a row; the last one allowed opens */
    TRIP,
    HAND_ON /* the probe's place is free at once */
};

/* clang-format off */
static const enum action table[PHASES][EVENTS] = {
    /*               asked    succeeded  failed  gave up */
    [CLOSED]     = { LET,     CLOSE,     COUNT,  NOTHING },
    [OPEN]       = { NOTHING, NOTHING,   NOTHING, NOTHING }, /* nobody holds a ticket of this period */
    [OPEN_OVER]  = { SEND,    NOTHING,   NOTHING, NOTHING },
    [PROBING]    = { NOTHING, CLOSE,     TRIP,   HAND_ON },
    [PROBE_LOST] = { SEND,    CLOSE,     TRIP,   HAND_ON },
};
/* clang-format on */

static uint64_t elapsed_us(const struct sz_breaker *b, struct sz_mono now)
{
    return now.us > b->base.us ? (uint64_t)(now.us - b->base.us) : 0;
}

static uint64_t later_ms(const struct sz_breaker *b, struct sz_mono now, struct sz_span span)
{
    uint64_t ms = elapsed_us(b, now) / 1000 + (elapsed_us(b, now) % 1000 != 0) + (uint64_t)span.us / 1000;

    return ms < UNTIL_MAX ? ms : UNTIL_MAX;
}

static enum phase phase_of(const struct sz_breaker *b, struct unpacked u, struct sz_mono now)
{
    bool over = elapsed_us(b, now) >= u.until * 1000;

    if (u.state == SZ_BREAKER_CLOSED)
        return CLOSED;
    if (u.state == SZ_BREAKER_OPEN)
        return over ? OPEN_OVER : OPEN;
    return over ? PROBE_LOST : PROBING;
}

static struct unpacked move(struct unpacked u, enum sz_breaker_state state, uint64_t until)
{
    return (struct unpacked){state, 0, (u.period + 1) & PERIOD_MASK, until};
}

static struct unpacked next(const struct sz_breaker *b, struct unpacked u, enum action action, struct sz_mono now)
{
    switch (action) {
    case NOTHING:
    case LET:
        break;
    case SEND:
        return move(u, SZ_BREAKER_HALF_OPEN, later_ms(b, now, b->probe));
    case CLOSE:
        if (u.state != SZ_BREAKER_CLOSED)
            return move(u, SZ_BREAKER_CLOSED, 0);
        u.failures = 0;
        break;
    case COUNT:
        if (u.failures + 1 >= b->failures)
            return move(u, SZ_BREAKER_OPEN, later_ms(b, now, b->open));
        u.failures++;
        break;
    case TRIP:
        return move(u, SZ_BREAKER_OPEN, later_ms(b, now, b->open));
    case HAND_ON:
        return move(u, SZ_BREAKER_HALF_OPEN, 0);
    }
    return u;
}

/* One step; false: the word had changed meanwhile, *seen is the new one. */
static bool step(struct sz_breaker *b, uint64_t *seen, struct unpacked from, struct unpacked to)
{
    uint64_t word = pack(to);

    if (word == *seen)
        return true;
    if (!atomic_compare_exchange_weak_explicit(&b->word, seen, word, memory_order_relaxed, memory_order_relaxed))
        return false;
    if (to.state != from.state)
        atomic_fetch_add_explicit(&b->moved[to.state], 1, memory_order_relaxed);
    return true;
}

static struct sz_span whole_ms(struct sz_span span)
{
    return (struct sz_span){span.us / 1000 * 1000 + (span.us % 1000 != 0 ? 1000 : 0)};
}

void sz_breaker_init(struct sz_breaker *b, uint32_t failures, struct sz_span open, struct sz_span probe,
                     struct sz_mono now)
{
    SZ_ASSERT(failures >= 1 && failures <= SZ_BREAKER_FAILURES_MAX && open.us > 0 && probe.us > 0);
    memset(b, 0, sizeof(*b));
    b->base = now;
    b->failures = failures;
    b->open = whole_ms(open);
    b->probe = whole_ms(probe);
}

struct sz_breaker_ticket sz_breaker_ask(struct sz_breaker *b, struct sz_mono now)
{
    uint64_t seen = atomic_load_explicit(&b->word, memory_order_relaxed);

    for (;;) {
        struct unpacked from = unpack(seen);
        enum action action = table[phase_of(b, from, now)][ASKED];
        struct unpacked to = next(b, from, action, now);

        if (!step(b, &seen, from, to))
            continue;
        return (struct sz_breaker_ticket){action == LET    ? SZ_BREAKER_PASS
                                          : action == SEND ? SZ_BREAKER_PROBE
                                                           : SZ_BREAKER_REJECT,
                                          to.period};
    }
}

void sz_breaker_tell(struct sz_breaker *b, struct sz_breaker_ticket ticket, enum sz_breaker_outcome outcome,
                     struct sz_mono now)
{
    static const enum event events[] = {
        [SZ_BREAKER_SUCCESS] = SUCCEEDED, [SZ_BREAKER_FAILURE] = FAILED, [SZ_BREAKER_UNKNOWN] = GAVE_UP};
    uint64_t seen = atomic_load_explicit(&b->word, memory_order_relaxed);
    struct unpacked from;

    if (ticket.answer == SZ_BREAKER_REJECT)
        return;
    do {
        from = unpack(seen);
        if (from.period != ticket.period)
            return;
    } while (!step(b, &seen, from, next(b, from, table[phase_of(b, from, now)][events[outcome]], now)));
}

void sz_breaker_look(const struct sz_breaker *b, struct sz_mono now, struct sz_breaker_look *out)
{
    struct unpacked u = unpack(atomic_load_explicit(&b->word, memory_order_relaxed));
    uint64_t at = elapsed_us(b, now), until = u.until * 1000;

    *out = (struct sz_breaker_look){.state = u.state, .failures = u.failures};
    if (u.state != SZ_BREAKER_CLOSED && until > at)
        out->retry.us = (int64_t)(until - at);
    for (size_t i = 0; i < SZ_COUNT(b->moved); i++)
        out->moved[i] = atomic_load_explicit(&b->moved[i], memory_order_relaxed);
}
