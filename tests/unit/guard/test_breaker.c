/* The breaker as scripts: lines of events with the time of each, and what it has to answer.  Late and lost things too.
 */
#include <criterion/criterion.h>

#include "subzero/breaker.h"

#define FAILURES 3
#define OPEN_MS  1000
#define PROBE_MS 200
#define TICKETS  8

enum what { PASS, PROBE, REJECT, YES, NO, GONE }; /* ask and expect; or tell */

struct line {
    int64_t ms;
    enum what what;
    int ticket;                  /* which is taken or told */
    enum sz_breaker_state state; /* after it */
    int64_t retry_ms;            /* after it */
};

#define C SZ_BREAKER_CLOSED
#define O SZ_BREAKER_OPEN
#define H SZ_BREAKER_HALF_OPEN

static struct sz_mono at_ms(int64_t ms)
{
    return (struct sz_mono){7777777 + ms * 1000};
}

static void init(struct sz_breaker *b)
{
    sz_breaker_init(b, FAILURES, SZ_MS(OPEN_MS), SZ_MS(PROBE_MS), at_ms(0));
}

static void play(const struct line *lines, size_t n)
{
    struct sz_breaker_ticket tickets[TICKETS] = {0};
    struct sz_breaker_look look;
    struct sz_breaker b;

    init(&b);
    for (size_t i = 0; i < n; i++) {
        const struct line *l = &lines[i];
        if (l->what <= REJECT) {
            tickets[l->ticket] = sz_breaker_ask(&b, at_ms(l->ms));
            cr_assert_eq((int)tickets[l->ticket].answer, (int)l->what, "line %zu: answered %d", i,
                         (int)tickets[l->ticket].answer);
        } else {
            sz_breaker_tell(&b, tickets[l->ticket], (enum sz_breaker_outcome)(l->what - YES), at_ms(l->ms));
        }
        sz_breaker_look(&b, at_ms(l->ms), &look);
        cr_assert_eq(look.state, l->state, "line %zu: state %d", i, (int)look.state);
        cr_assert_eq(look.retry.us, l->retry_ms * 1000, "line %zu: retry %lld us", i, (long long)look.retry.us);
    }
}

#define PLAY(...) play((const struct line[]){__VA_ARGS__}, SZ_COUNT(((const struct line[]){__VA_ARGS__})))
#define TRIP                                                \
    {0, PASS, 0, C, 0}, {0, NO, 0, C, 0}, {0, NO, 0, C, 0}, \
    {                                                       \
        0, NO, 0, O, OPEN_MS                                \
    }

Test(breaker, outcomes_from_before_it_opened_change_nothing)
{
    PLAY({0, PASS, 1, C, 0}, TRIP, {5, YES, 1, O, OPEN_MS - 5}, {5, NO, 1, O, OPEN_MS - 5},
         {5, REJECT, 2, O, OPEN_MS - 5}, {OPEN_MS, YES, 1, O, 0}, {OPEN_MS, PROBE, 2, H, PROBE_MS},
         {OPEN_MS, YES, 1, H, PROBE_MS}, {OPEN_MS, NO, 1, H, PROBE_MS}, {OPEN_MS, YES, 2, C, 0}, {OPEN_MS, NO, 1, C, 0},
         {OPEN_MS, NO, 1, C, 0}, {OPEN_MS, NO, 1, C, 0}, {OPEN_MS, PASS, 3, C, 0});
}

Test(breaker, only_one_probe_at_the_exact_instant)
{
    PLAY(TRIP, {OPEN_MS - 1, REJECT, 1, O, 1}, {OPEN_MS, PROBE, 1, H, PROBE_MS}, {OPEN_MS, REJECT, 2, H, PROBE_MS},
         {OPEN_MS + PROBE_MS - 1, REJECT, 2, H, 1}, {OPEN_MS + PROBE_MS - 1, YES, 1, C, 0},
         {OPEN_MS + PROBE_MS, PASS, 2, C, 0});
}

Test(breaker, a_failed_probe_opens_for_the_whole_time_again)
{
    PLAY(TRIP, {OPEN_MS, PROBE, 1, H, PROBE_MS}, {OPEN_MS + 9, NO, 1, O, OPEN_MS},
         {OPEN_MS + 10, REJECT, 2, O, OPEN_MS - 1}, {2 * OPEN_MS + 9, PROBE, 2, H, PROBE_MS},
         {2 * OPEN_MS + 9, YES, 2, C, 0});
}

Test(breaker, a_lost_probe_is_replaced_and_its_late_outcome_ignored)
{
    PLAY(TRIP, {OPEN_MS, PROBE, 1, H, PROBE_MS}, {OPEN_MS + PROBE_MS, PROBE, 2, H, PROBE_MS},
         {OPEN_MS + PROBE_MS, REJECT, 3, H, PROBE_MS}, {OPEN_MS + PROBE_MS, NO, 1, H, PROBE_MS},
         {OPEN_MS + PROBE_MS, YES, 1, H, PROBE_MS}, {OPEN_MS + PROBE_MS + 1, YES, 2, C, 0});
}

Test(breaker, a_late_probe_that_nobody_replaced_still_counts)
{
    PLAY(TRIP, {OPEN_MS, PROBE, 1, H, PROBE_MS}, {OPEN_MS + 5 * PROBE_MS, YES, 1, C, 0});
    PLAY(TRIP, {OPEN_MS, PROBE, 1, H, PROBE_MS}, {3 * OPEN_MS, NO, 1, O, OPEN_MS});
}

Test(breaker, a_probe_that_was_given_up_hands_its_place_on)
{
    PLAY(TRIP, {OPEN_MS, PROBE, 1, H, PROBE_MS}, {OPEN_MS + 1, GONE, 1, H, 0}, {OPEN_MS + 1, YES, 1, H, 0},
         {OPEN_MS + 1, PROBE, 2, H, PROBE_MS}, {OPEN_MS + 2, REJECT, 3, H, PROBE_MS - 1}, {OPEN_MS + 2, YES, 2, C, 0});
}

Test(breaker, only_failures_in_a_row_open_it)
{
    PLAY({0, PASS, 0, C, 0}, {1, NO, 0, C, 0}, {2, NO, 0, C, 0}, {3, YES, 0, C, 0}, {4, NO, 0, C, 0},
         {5, GONE, 0, C, 0}, {6, NO, 0, C, 0}, {7, PASS, 0, C, 0}, {8, NO, 0, O, OPEN_MS});
}

Test(breaker, a_rejected_call_has_nothing_to_tell)
{
    PLAY(TRIP, {1, REJECT, 1, O, OPEN_MS - 1}, {1, YES, 1, O, OPEN_MS - 1}, {1, NO, 1, O, OPEN_MS - 1},
         {1, GONE, 1, O, OPEN_MS - 1});
}

Test(breaker, a_clock_before_its_beginning_is_its_beginning)
{
    PLAY({-5000, PASS, 0, C, 0}, TRIP, {-5000, REJECT, 1, O, OPEN_MS}, {OPEN_MS, PROBE, 1, H, PROBE_MS});
}

Test(breaker, never_early_when_the_times_are_no_whole_milliseconds)
{
    struct sz_breaker_ticket t;
    struct sz_breaker b;

    sz_breaker_init(&b, 1, SZ_US(1), SZ_US(1500), (struct sz_mono){1});
    t = sz_breaker_ask(&b, (struct sz_mono){501});
    sz_breaker_tell(&b, t, SZ_BREAKER_FAILURE, (struct sz_mono){501}); /* 0.5 ms after the base: open until 2 ms */
    cr_assert_eq(sz_breaker_ask(&b, (struct sz_mono){2000}).answer, SZ_BREAKER_REJECT);
    cr_assert_eq(sz_breaker_ask(&b, (struct sz_mono){2001}).answer, SZ_BREAKER_PROBE); /* until 4 ms */
    cr_assert_eq(sz_breaker_ask(&b, (struct sz_mono){4000}).answer, SZ_BREAKER_REJECT);
    cr_assert_eq(sz_breaker_ask(&b, (struct sz_mono){4001}).answer, SZ_BREAKER_PROBE);
}

Test(breaker, an_open_time_beyond_all_measure_does_not_wrap)
{
    struct sz_breaker_ticket t;
    struct sz_breaker b;

    sz_breaker_init(&b, 1, (struct sz_span){INT64_MAX / 2}, SZ_SEC(1), at_ms(0));
    t = sz_breaker_ask(&b, at_ms(0));
    sz_breaker_tell(&b, t, SZ_BREAKER_FAILURE, at_ms(0));
    cr_assert_eq(sz_breaker_ask(&b, at_ms(INT64_C(1000) * 3600 * 24 * 365 * 30)).answer, SZ_BREAKER_REJECT);
}

Test(breaker, every_number_of_failures_up_to_the_most)
{
    for (uint32_t n = 1; n <= SZ_BREAKER_FAILURES_MAX; n++) {
        struct sz_breaker b;
        struct sz_breaker_ticket t;
        sz_breaker_init(&b, n, SZ_SEC(1), SZ_SEC(1), at_ms(0));
        t = sz_breaker_ask(&b, at_ms(0));
        for (uint32_t i = 1; i < n; i++)
            sz_breaker_tell(&b, t, SZ_BREAKER_FAILURE, at_ms(0));
        cr_assert_eq(sz_breaker_ask(&b, at_ms(0)).answer, SZ_BREAKER_PASS, "%u", n);
        sz_breaker_tell(&b, t, SZ_BREAKER_FAILURE, at_ms(0));
        cr_assert_eq(sz_breaker_ask(&b, at_ms(0)).answer, SZ_BREAKER_REJECT, "%u", n);
    }
}

Test(breaker, counts_what_it_moved_to)
{
    struct sz_breaker_look look;
    struct sz_breaker_ticket t;
    struct sz_breaker b;

    init(&b);
    for (int round = 0; round < 5000; round++) { /* more than the periods that the word can tell apart */
        int64_t ms = round * 2 * OPEN_MS;
        for (int i = 0; i < FAILURES; i++) {
            t = sz_breaker_ask(&b, at_ms(ms));
            sz_breaker_tell(&b, t, SZ_BREAKER_FAILURE, at_ms(ms));
        }
        t = sz_breaker_ask(&b, at_ms(ms + OPEN_MS));
        cr_assert_eq(t.answer, SZ_BREAKER_PROBE);
        sz_breaker_tell(&b, t, SZ_BREAKER_SUCCESS, at_ms(ms + OPEN_MS));
    }
    sz_breaker_look(&b, at_ms(0), &look);
    for (int s = C; s <= H; s++)
        cr_assert_eq(look.moved[s], 5000);
}
