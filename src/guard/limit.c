/*
 * Token bucket and sliding window on two words of state.  What looks clumsy is exactness: products before divisions,
 * divisions that round towards the stricter side, and no step that the scripts in Redis could not take with doubles.
 */
#include "subzero/limit.h"

#include <errno.h>

#define NEVER INT64_MAX

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Most rates are whole micro-tokens a microsecond, and a division takes as long as all the rest. */
static uint64_t divide(uint64_t x, uint64_t by)
{
    return by == 1 ? x : x / by;
}

static uint64_t round_up(uint64_t x, uint64_t by)
{
    return x == 0 ? 0 : (x - 1) / by + 1;
}

/* n/d, and what it takes to fill the capacity with it. */
static int set_refill(struct sz_limit_rule *rule, uint64_t tokens, struct sz_span per)
{
    uint64_t micro = tokens * SZ_LIMIT_TOKEN, by = gcd(micro, (uint64_t)per.us);
    rule->n = micro / by;
    rule->d = (uint64_t)per.us / by;
    if (rule->capacity == 0) /* one second of it */
        rule->capacity = rule->n < UINT64_MAX / 1000000 ? 1000000 * rule->n / rule->d : UINT64_MAX;
    if (rule->capacity < rule->cost)
        rule->capacity = rule->cost;
    if (rule->n == 0)
        return 0;
    /* elapsed x n, where elapsed is at most what fills: less than capacity x d + n */
    rule->largest = UINT64_MAX;
    if (rule->n >= SZ_LIMIT_PRODUCT_MAX || rule->capacity > (SZ_LIMIT_PRODUCT_MAX - 1 - rule->n) / rule->d)
        return -ERANGE;
    rule->fill = round_up(rule->capacity * rule->d, rule->n);
    rule->largest = rule->fill * rule->n;
    return 0;
}

int sz_limit_bucket(uint64_t capacity, uint64_t tokens, struct sz_span per, uint64_t cost, struct sz_limit_rule *out)
{
    SZ_ASSERT(capacity >= 1 && capacity <= SZ_LIMIT_COUNT_MAX && tokens <= SZ_LIMIT_COUNT_MAX && per.us > 0);
    SZ_ASSERT(cost >= 1 && cost <= capacity);
    *out = (struct sz_limit_rule){
        .kind = SZ_LIMIT_BUCKET, .capacity = capacity * SZ_LIMIT_TOKEN, .cost = cost * SZ_LIMIT_TOKEN};
    return set_refill(out, tokens, per);
}

int sz_limit_emergency(uint64_t tokens, struct sz_span per, uint64_t cost, struct sz_limit_rule *out)
{
    SZ_ASSERT(tokens >= 1 && tokens <= SZ_LIMIT_COUNT_MAX && per.us > 0 && cost >= 1 && cost <= SZ_LIMIT_COUNT_MAX);
    *out = (struct sz_limit_rule){.kind = SZ_LIMIT_BUCKET, .cost = cost * SZ_LIMIT_TOKEN};
    return set_refill(out, tokens, per);
}

int sz_limit_window(uint64_t limit, struct sz_span window, uint64_t cost, struct sz_limit_rule *out)
{
    SZ_ASSERT(limit >= 1 && limit <= SZ_LIMIT_COUNT_MAX && window.us >= 1000 && cost >= 1 && cost <= limit);
    *out = (struct sz_limit_rule){
        .kind = SZ_LIMIT_WINDOW, .capacity = limit, .cost = cost, .window = (uint64_t)window.us / 1000};
    /* (current + cost - 1) x W, where current is at most the limit */
    uint64_t most = limit + cost - 1;
    out->largest = most > UINT64_MAX / out->window ? UINT64_MAX : most * out->window;
    return out->largest < SZ_LIMIT_PRODUCT_MAX ? 0 : -ERANGE;
}

/* ---- the bucket -------------------------------------------------------------------------------------------------- */

static uint64_t elapsed(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t now)
{
    uint64_t us = now > state->b ? now - state->b : 0;
    return us < rule->fill ? us : rule->fill;
}

static uint64_t tokens_at(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t now)
{
    uint64_t tokens = state->a + divide(elapsed(rule, state, now) * rule->n, rule->d);
    return tokens < rule->capacity ? tokens : rule->capacity;
}

static uint64_t bucket_take(const struct sz_limit_rule *rule, struct sz_limit_state *state, uint64_t now, uint64_t want)
{
    uint64_t tokens = tokens_at(rule, state, now);
    if (tokens < rule->cost)
        return 0;
    uint64_t fits = want == 1 ? 1 : tokens / rule->cost;
    if (fits > want)
        fits = want;
    state->a = tokens - fits * rule->cost;
    if (now > state->b) /* a clock that went back must not let the same time count twice */
        state->b = now;
    return fits;
}

/* From the state's own instant until the bucket holds `tokens`; UINT64_MAX: never. */
static uint64_t us_until(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t tokens)
{
    if (state->a >= tokens)
        return 0;
    return rule->n == 0 ? UINT64_MAX : round_up((tokens - state->a) * rule->d, rule->n);
}

static struct sz_span rest(uint64_t us, uint64_t from, uint64_t now)
{
    if (us == 0)
        return (struct sz_span){0};
    if (us > NEVER || from > (uint64_t)NEVER - us)
        return (struct sz_span){NEVER};
    return (struct sz_span){from + us > now ? (int64_t)(from + us - now) : 0};
}

static void bucket_look(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t now,
                        struct sz_limit_view *out)
{
    out->left = tokens_at(rule, state, now) / SZ_LIMIT_TOKEN;
    out->reset = rest(us_until(rule, state, rule->capacity), state->b, now);
    out->retry = rest(us_until(rule, state, rule->cost), state->b, now);
}

/* ---- the window -------------------------------------------------------------------------------------------------- */

struct window { /* as it stands at some instant */
    uint64_t number, elapsed, current, previous;
};

static uint64_t at_most(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

static struct window window_at(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t now)
{
    uint64_t ms = now / 1000;
    struct window w = {.number = ms / rule->window};
    w.elapsed = ms - w.number * rule->window;
    if (w.number < state->a) { /* the clock went back */
        w.number = state->a;
        w.elapsed = 0;
    }
    if (w.number == state->a) {
        w.current = at_most(state->b >> 32, rule->capacity); /* the limit may have been lowered since */
        w.previous = at_most(state->b & UINT32_MAX, rule->capacity);
    } else if (w.number == state->a + 1) {
        w.previous = at_most(state->b >> 32, rule->capacity);
    }
    return w;
}

/* How much of the window is free, rounded up: what fits is below it by a cost of 1. */
static uint64_t room(const struct sz_limit_rule *rule, const struct window *w)
{
    uint64_t old = w->previous * (rule->window - w->elapsed), all = rule->capacity * rule->window;
    uint64_t most = old < all ? round_up(all - old, rule->window) : 0;
    return most > w->current ? most - w->current : 0;
}

static bool window_fits(const struct sz_limit_rule *rule, const struct window *w)
{
    return (w->current + rule->cost - 1) * rule->window + w->previous * (rule->window - w->elapsed) <
           rule->capacity * rule->window;
}

static uint64_t window_take(const struct sz_limit_rule *rule, struct sz_limit_state *state, uint64_t now, uint64_t want)
{
    struct window w = window_at(rule, state, now);
    if (!window_fits(rule, &w))
        return 0;
    uint64_t fits = want == 1 ? 1 : room(rule, &w) / rule->cost;
    if (fits > want)
        fits = want;
    *state = (struct sz_limit_state){w.number, (w.current + fits * rule->cost) << 32 | w.previous};
    return fits;
}

/* Milliseconds into a window after which `old` of the window before leaves room for `free` more (free >= 1). */
static uint64_t room_from(const struct sz_limit_rule *rule, uint64_t old, uint64_t free)
{
    if (old == 0)
        return 0;
    uint64_t most = round_up(free * rule->window, old) - 1; /* of W - elapsed */
    return most >= rule->window ? 0 : rule->window - most;
}

static void window_look(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t now,
                        struct sz_limit_view *out)
{
    struct window w = window_at(rule, state, now);
    uint64_t at = rule->window * 2; /* ms from the window's beginning */
    out->left = room(rule, &w);
    out->reset = rest((w.number + (w.current > 0 ? 2 : 1)) * rule->window * 1000, 0, now);
    if (w.current == 0 && w.previous == 0)
        out->reset.us = 0;
    if (w.current + rule->cost <= rule->capacity)
        at = room_from(rule, w.previous, rule->capacity - w.current - rule->cost + 1);
    if (at >= rule->window)
        at = rule->window + room_from(rule, w.current, rule->capacity - rule->cost + 1);
    out->retry = at <= w.elapsed ? (struct sz_span){0} : rest((w.number * rule->window + at) * 1000, 0, now);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

struct sz_limit_state sz_limit_fresh(const struct sz_limit_rule *rule, uint64_t now)
{
    if (rule->kind == SZ_LIMIT_WINDOW)
        return (struct sz_limit_state){0, 0};
    return (struct sz_limit_state){rule->capacity, now};
}

uint64_t sz_limit_take(const struct sz_limit_rule *rule, struct sz_limit_state *state, uint64_t now, uint64_t want)
{
    return rule->kind == SZ_LIMIT_BUCKET ? bucket_take(rule, state, now, want) : window_take(rule, state, now, want);
}

uint64_t sz_limit_over(const struct sz_limit_rule *rule, const struct sz_limit_state *state)
{
    if (rule->kind == SZ_LIMIT_WINDOW)
        return (state->a + 2) * rule->window * 1000;
    uint64_t us = us_until(rule, state, rule->capacity);
    return us > UINT64_MAX - state->b ? UINT64_MAX : state->b + us;
}

void sz_limit_look(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t now,
                   struct sz_limit_view *out)
{
    if (rule->kind == SZ_LIMIT_BUCKET)
        bucket_look(rule, state, now, out);
    else
        window_look(rule, state, now, out);
}
