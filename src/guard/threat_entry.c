/* The arithmetic of one entry: decay, counting, score. */
#include "guard/threat_entry.h"

#include <math.h>

#define ROTATE 3000 /* ticks: the half-life of every distinct signal */

static const struct sz_signal_row rows[SZ_SIGNALS] = {
#define SZ_COUNTED(name, weight, full, half_life, on, help) \
    [SZ_SIGNAL_##name] = {#name, weight, full, {(half_life)*INT64_C(1000000)}, help},
#define SZ_DISTINCT(name, weight, full, half_life, on, help) \
    [SZ_SIGNAL_##name] = {#name, weight, full, {(half_life)*INT64_C(1000000)}, help},
#include "subzero/tbl/signals.h"
};
#define SZ_DISTINCT(name, weight, full, half_life, on, help) \
    _Static_assert((half_life)*10 == ROTATE, #name ": the bits of all distinct signals turn together");
#include "subzero/tbl/signals.h"

const struct sz_signal_row *sz_signal_row(enum sz_signal signal)
{
    SZ_ASSERT((unsigned)signal < SZ_SIGNALS);
    return &rows[signal];
}

enum sz_signal sz_signal_from(struct sz_slice name)
{
    unsigned i = 0;
    while (i < SZ_SIGNALS && !sz_eq(name, sz_cstr(rows[i].name)))
        i++;
    return (enum sz_signal)i;
}

const char *sz_threat_level_name(enum sz_threat_level level)
{
    static const char *const names[] = {"allow", "monitor", "challenge", "block"};
    SZ_ASSERT((unsigned)level < SZ_COUNT(names));
    return names[level];
}

/* ---- decay ------------------------------------------------------------------------------------------------------- */

static void decay_counts(struct sz_threat_entry *e, uint32_t tick)
{
    float passed = (float)(tick - e->touched) * 1e-6f * SZ_TICK_US;
    for (unsigned i = 0; i < SZ_SIGNALS_COUNTED; i++) {
        if (e->counts[i] > 0)
            e->counts[i] *= exp2f(-passed / ((float)rows[i].half_life.us * 1e-6f));
        if (e->counts[i] < 0.01f)
            e->counts[i] = 0;
    }
}

static void turn_bits(struct sz_threat_entry *e, uint32_t tick)
{
    uint32_t turns = (tick - e->rotated) / ROTATE;
    if (turns == 0)
        return;
    for (unsigned i = 0; i < SZ_BITS; i++)
        e->bits[i] = (struct sz_threat_bits){0, turns == 1 ? e->bits[i].now : 0};
    e->rotated += turns * ROTATE;
}

void sz_threat_entry_age(struct sz_threat_entry *e, uint32_t tick)
{
    if ((int32_t)(tick - e->touched) > 0) {
        decay_counts(e, tick);
        e->touched = tick;
    }
    if ((int32_t)(tick - e->rotated) > 0)
        turn_bits(e, tick);
}

/* ---- amounts ----------------------------------------------------------------------------------------------------- */

void sz_threat_entry_count(struct sz_threat_entry *e, enum sz_signal signal, float amount)
{
    float most = rows[signal].full * 4; /* so that a flood is not remembered for longer than two half-lives */
    e->counts[signal] = fminf(e->counts[signal] + amount, most);
}

void sz_threat_entry_see(struct sz_threat_entry *e, unsigned which, uint64_t hash)
{
    e->bits[which].now |= UINT64_C(1) << (hash & 63);
}

/* How many different things set so many of 64 bits. */
static float distinct(uint64_t bits)
{
    int zeros = 64 - __builtin_popcountll(bits);
    return bits == 0 ? 0 : -64 * logf((zeros > 0 ? (float)zeros : 0.9f) / 64);
}

static float amount(const struct sz_threat_bits *bits, float fresh)
{
    float now = distinct(bits->now);
    return bits->before == 0 ? now : now + (distinct(bits->now | bits->before) - now) * fresh;
}

bool sz_threat_entry_clean(const struct sz_threat_entry *e)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < SZ_SIGNALS_COUNTED; i++) {
        if (e->counts[i] > 0)
            return false;
    }
    for (unsigned i = 0; i < SZ_BITS_GOOD; i++)
        any |= e->bits[i].now | e->bits[i].before;
    return any == 0 && e->blocked_until == 0;
}

float sz_threat_entry_score(const struct sz_threat_entry *e, uint32_t tick, float parts[SZ_SIGNALS])
{
    float fresh = fmaxf(0, 1 - (float)(int32_t)(tick - e->rotated) / ROTATE), sum = 0;
    for (unsigned i = 0; i < SZ_SIGNALS; i++) {
        float n = i < SZ_SIGNALS_COUNTED ? e->counts[i] : amount(&e->bits[i - SZ_SIGNALS_COUNTED], fresh);
        /* Whoever is many behind one address has many good tokens too: when all break at once, they break each other
         * even. */
        if (i == SZ_SIGNAL_bad_tokens && n > 0)
            n = fmaxf(0, n - 2 * amount(&e->bits[SZ_BITS_GOOD], fresh));
        parts[i] = n > 0 ? rows[i].weight * fminf(1, n / rows[i].full) : 0;
        sum += parts[i];
    }
    return fminf(1, sum);
}
