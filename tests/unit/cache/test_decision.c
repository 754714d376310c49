/* The decision cache in front of a source that is told what to say: what is asked, what is kept, for how long. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "fake/loop.h"
#include "subzero/decision.h"

struct source { /* answers now or, when `slow`, on say() */
    struct sz_authz authz;
    struct sz_authz_answer answer;
    bool slow, broken, cheap;
    uint64_t epoch;
    unsigned asked, cancelled, freed;
    struct sz_authz_op *ops[16];
    size_t ops_n;
};

struct caller {
    struct sz_authz_op op;
    unsigned told;
};

static struct source source;
static struct sz_decisions *decisions;
static struct sz_authz *cached;
static struct sz_loop *one, *two;

static int start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    (void)loop;
    (void)check;
    (void)deadline;
    s->asked++;
    if (s->broken)
        return -1;
    op->answer = s->answer;
    if (!s->slow)
        return 1;
    cr_assert_lt(s->ops_n, SZ_COUNT(s->ops));
    s->ops[s->ops_n++] = op;
    return 0;
}

static void cancel(struct sz_authz *authz, struct sz_authz_op *op)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    s->cancelled++;
    for (size_t i = 0; i < s->ops_n; i++) {
        if (s->ops[i] == op)
            s->ops[i] = s->ops[--s->ops_n];
    }
}

static void count_free(struct sz_authz *authz)
{
    SZ_CONTAINER(authz, struct source, authz)->freed++;
}

static int quick(struct sz_authz *authz, const struct sz_check *check, struct sz_authz_op *op)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    (void)check;
    op->answer = s->answer;
    return s->cheap ? 1 : 0;
}

static uint64_t epoch(struct sz_authz *authz)
{
    return SZ_CONTAINER(authz, struct source, authz)->epoch;
}

static void say(enum sz_authz_outcome outcome)
{
    struct sz_authz_op *ops[SZ_COUNT(source.ops)];
    size_t n = source.ops_n;
    memcpy(ops, source.ops, sizeof(ops));
    source.ops_n = 0;
    for (size_t i = 0; i < n; i++) {
        ops[i]->answer = source.answer;
        ops[i]->answer.outcome = outcome;
        ops[i]->on_done(ops[i]);
    }
    fake_loop_settle(one);
    fake_loop_settle(two);
}

static void set_up(void)
{
    const struct sz_decisions_conf conf = {.ttl = SZ_SEC(10), .negative_ttl = SZ_SEC(2), .work = SZ_SEC(5)};
    source =
        (struct source){.authz = {.start = start, .cancel = cancel, .free = count_free, .quick = quick, .epoch = epoch},
                        .answer = {.outcome = SZ_AUTHZ_ALLOWED, .source = SZ_AUTHZ_FROM_OPENFGA}};
    sz_crypto_init();
    decisions = sz_decisions_new(1000);
    cached = sz_decisions_wrap(decisions, &source.authz, &conf);
    one = fake_loop_new(0);
    two = fake_loop_new(1);
}

static void tear_down(void)
{
    cached->free(cached);
    cr_assert_eq(source.freed, 1);
    fake_loop_free(&one);
    fake_loop_free(&two);
    sz_decisions_free(&decisions);
}

TestSuite(decision, .init = set_up, .fini = tear_down);

static void on_done(struct sz_authz_op *op)
{
    SZ_CONTAINER(op, struct caller, op)->told++;
}

static struct sz_check question(const char *object)
{
    return (struct sz_check){.key = {SZ_S("user:anne"), SZ_S("viewer"), sz_cstr(object), SZ_NONE, SZ_NONE},
                             .context = SZ_NONE};
}

static int ask_with(struct caller *caller, struct sz_loop *loop, const struct sz_check *check)
{
    *caller = (struct caller){.op = {.on_done = on_done}};
    return sz_authz_start(cached, loop, check, sz_after(sz_loop_now(loop), SZ_SEC(3)), &caller->op);
}

static int ask(struct caller *caller, struct sz_loop *loop, const char *object)
{
    struct sz_check check = question(object);
    return ask_with(caller, loop, &check);
}

static int ask_sure(struct caller *caller, struct sz_loop *loop, const char *object)
{
    struct sz_check check = question(object);
    check.consistency = SZ_HIGHER_CONSISTENCY;
    return ask_with(caller, loop, &check);
}

static void later(struct sz_span by)
{
    fake_loop_advance(one, by);
    fake_loop_advance(two, by);
}

Test(decision, a_yes_is_kept_for_its_ttl_and_a_no_for_its_own)
{
    struct caller c;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(c.op.answer.layer, SZ_AUTHZ_ASKED);
    later(SZ_MS(9999));
    cr_assert_eq(ask(&c, two, "doc:1"), 1);
    cr_assert_eq(c.op.answer.outcome, SZ_AUTHZ_ALLOWED);
    cr_assert_eq(c.op.answer.source, SZ_AUTHZ_FROM_OPENFGA);
    cr_assert_eq(c.op.answer.layer, SZ_AUTHZ_L1);
    cr_assert_eq(source.asked, 1);
    later(SZ_MS(2));
    source.answer.outcome = SZ_AUTHZ_DENIED;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(c.op.answer.outcome, SZ_AUTHZ_DENIED);
    cr_assert_eq(source.asked, 2);
    later(SZ_MS(1999));
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(source.asked, 2);
    later(SZ_MS(2));
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(source.asked, 3);
}

Test(decision, the_ttl_counts_from_the_question)
{
    struct caller c;
    source.slow = true;
    cr_assert_eq(ask(&c, one, "doc:1"), 0);
    later(SZ_MS(2500));
    say(SZ_AUTHZ_DENIED); /* true 2.5 s ago: too old to be kept for 2 s */
    cr_assert_eq(c.told, 1);
    cr_assert_eq(ask(&c, one, "doc:1"), 0);
    cr_assert_eq(source.asked, 2);
    say(SZ_AUTHZ_DENIED);
}

Test(decision, errors_outages_and_cycles_are_not_kept)
{
    struct caller c;
    const enum sz_authz_outcome outcomes[] = {SZ_AUTHZ_ERROR, SZ_AUTHZ_UNAVAILABLE};
    for (size_t i = 0; i < SZ_COUNT(outcomes); i++) {
        source.answer.outcome = outcomes[i];
        source.answer.code = 2000;
        for (unsigned n = 1; n <= 3; n++) {
            cr_assert_eq(ask(&c, one, "doc:1"), 1);
            cr_assert_eq(c.op.answer.outcome, outcomes[i]);
            cr_assert_eq(source.asked, i * 3 + n);
        }
    }
    source.answer = (struct sz_authz_answer){.outcome = SZ_AUTHZ_DENIED, .met_cycle = true};
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(source.asked, 8);
    source.broken = true;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(c.op.answer.outcome, SZ_AUTHZ_UNAVAILABLE);
}

Test(decision, a_change_ends_what_was_known_before)
{
    struct caller c;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    source.epoch++;
    source.answer.outcome = SZ_AUTHZ_DENIED;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(c.op.answer.outcome, SZ_AUTHZ_DENIED);
    cr_assert_eq(source.asked, 2);
}

Test(decision, an_answer_from_before_a_change_is_not_kept_for_after_it)
{
    struct caller before, after;
    source.slow = true;
    cr_assert_eq(ask(&before, one, "doc:1"), 0);
    source.epoch++;
    cr_assert_eq(ask(&after, one, "doc:1"), 0, "it does not join the flight that began before the change");
    cr_assert_eq(source.asked, 2);
    say(SZ_AUTHZ_ALLOWED);
    cr_assert_eq(before.told + after.told, 2);
}

Test(decision, one_question_for_all_who_ask_the_same)
{
    struct caller callers[100];
    source.slow = true;
    for (size_t i = 0; i < SZ_COUNT(callers); i++)
        cr_assert_eq(ask(&callers[i], i % 2 ? one : two, "doc:1"), 0);
    cr_assert_eq(source.asked, 1);
    say(SZ_AUTHZ_DENIED);
    for (size_t i = 0; i < SZ_COUNT(callers); i++) {
        cr_assert_eq(callers[i].told, 1);
        cr_assert_eq(callers[i].op.answer.outcome, SZ_AUTHZ_DENIED);
    }
    cr_assert_eq(ask(&callers[0], one, "doc:1"), 1);
    cr_assert_eq(source.asked, 1);
}

Test(decision, who_leaves_is_not_told_and_the_answer_is_kept_all_the_same)
{
    struct caller c;
    source.slow = true;
    cr_assert_eq(ask(&c, one, "doc:1"), 0);
    cached->cancel(cached, &c.op);
    say(SZ_AUTHZ_ALLOWED);
    cr_assert_eq(c.told, 0);
    cr_assert_eq(source.cancelled, 0);
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(source.asked, 1);
}

Test(decision, a_deadline_is_not_a_no)
{
    struct caller c;
    source.slow = true;
    cr_assert_eq(ask(&c, one, "doc:1"), 0);
    fake_loop_run_for(one, SZ_SEC(4));
    cr_assert_eq(c.told, 1);
    cr_assert_eq(c.op.answer.outcome, SZ_AUTHZ_UNAVAILABLE);
    say(SZ_AUTHZ_ALLOWED);
    cr_assert_eq(c.told, 1);
}

Test(decision, higher_consistency_reads_nothing_and_joins_nobody)
{
    struct caller old, sure, next;
    cr_assert_eq(ask(&old, one, "doc:1"), 1);
    source.answer.outcome = SZ_AUTHZ_DENIED;
    cr_assert_eq(ask_sure(&sure, one, "doc:1"), 1);
    cr_assert_eq(sure.op.answer.outcome, SZ_AUTHZ_DENIED);
    cr_assert_eq(sure.op.answer.layer, SZ_AUTHZ_ASKED);
    cr_assert_eq(source.asked, 2);
    cr_assert_eq(ask(&next, one, "doc:1"), 1);
    cr_assert_eq(next.op.answer.outcome, SZ_AUTHZ_DENIED, "what it learnt replaces what was kept");

    source.slow = true;
    cr_assert_eq(ask(&old, one, "doc:2"), 0);
    cr_assert_eq(ask_sure(&sure, two, "doc:2"), 0);
    cr_assert_eq(source.asked, 4);
    cached->cancel(cached, &sure.op);
    cr_assert_eq(source.cancelled, 1);
    say(SZ_AUTHZ_ALLOWED);
    cr_assert_eq(old.told, 1);
    cr_assert_eq(sure.told, 0);
}

Test(decision, what_is_as_cheap_as_the_cache_is_not_kept)
{
    struct caller c;
    source.cheap = true;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    source.answer.outcome = SZ_AUTHZ_DENIED;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(c.op.answer.outcome, SZ_AUTHZ_DENIED);
    cr_assert_eq(source.asked, 0);
    struct sz_cache_stats s;
    sz_decisions_stats(decisions, &s);
    cr_assert_eq(s.lookups, 0);
}

Test(decision, flushed_is_asked_again)
{
    struct caller c;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    sz_decisions_flush(decisions);
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(source.asked, 2);
}

Test(decision, a_source_lives_as_long_as_its_questions)
{
    struct caller c;
    struct source *other = sz_xcalloc(1, sizeof(*other));
    const struct sz_decisions_conf conf = {.ttl = SZ_SEC(1), .negative_ttl = SZ_SEC(1), .work = SZ_SEC(5)};
    *other = source;
    other->slow = true;
    struct sz_authz *second = sz_decisions_wrap(decisions, &other->authz, &conf);
    struct sz_check check = question("doc:9");
    c = (struct caller){.op = {.on_done = on_done}};
    cr_assert_eq(sz_authz_start(second, one, &check, sz_after(sz_loop_now(one), SZ_SEC(3)), &c.op), 0);
    second->free(second);
    cr_assert_eq(other->freed, 0);
    other->ops[0]->on_done(other->ops[0]);
    fake_loop_settle(one);
    cr_assert_eq(c.told, 1);
    cr_assert_eq(other->freed, 1);
    free(other);
}

/* ---- L2 ---------------------------------------------------------------------------------------------------------- */

static struct {
    struct sz_decision_l2 l2;
    struct sz_decision_l2_op *op;
    bool down;
    unsigned gets, puts;
    bool put_allowed;
    struct sz_span put_age, put_left;
    char fields[1024];
    size_t fields_n;
} second;

static bool l2_get(struct sz_decision_l2 *l2, struct sz_loop *loop, struct sz_slice fields,
                   struct sz_decision_l2_op *op)
{
    (void)l2;
    (void)loop;
    second.gets++;
    second.fields_n = fields.n;
    memcpy(second.fields, fields.p, fields.n);
    second.op = op;
    return !second.down;
}

static void l2_put(struct sz_decision_l2 *l2, struct sz_loop *loop, struct sz_slice fields, bool allowed,
                   struct sz_span age, struct sz_span left)
{
    (void)l2;
    (void)loop;
    second.puts++;
    second.put_allowed = allowed;
    second.put_age = age;
    second.put_left = left;
    cr_assert(sz_eq(fields, sz_slice(second.fields, second.fields_n)));
}

static void set_up_l2(void)
{
    set_up();
    memset(&second, 0, sizeof(second));
    second.l2 = (struct sz_decision_l2){l2_get, l2_put};
    source.authz.shared = true;
    cached->free(cached);
    cr_assert_eq(source.freed, 1);
    source.freed = 0;
    cached = sz_decisions_wrap(
        decisions, &source.authz,
        &(struct sz_decisions_conf){.ttl = SZ_SEC(10), .negative_ttl = SZ_SEC(2), .work = SZ_SEC(5), .l2 = &second.l2});
}

TestSuite(decision_l2, .init = set_up_l2, .fini = tear_down);

Test(decision_l2, found_there_it_is_as_old_here)
{
    struct caller c, d;
    cr_assert_eq(ask(&c, one, "doc:1"), 0);
    cr_assert_eq(ask(&d, two, "doc:1"), 0);
    cr_assert_eq(second.gets, 1);
    second.op->on_done(second.op, true, true, SZ_SEC(9));
    fake_loop_settle(one);
    fake_loop_settle(two);
    cr_assert_eq(c.told + d.told, 2);
    cr_assert_eq(c.op.answer.outcome, SZ_AUTHZ_ALLOWED);
    cr_assert_eq(c.op.answer.layer, SZ_AUTHZ_L2);
    cr_assert_eq(source.asked, 0);
    cr_assert_eq(second.puts, 0);
    later(SZ_MS(900));
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    later(SZ_MS(200));
    cr_assert_eq(ask(&c, one, "doc:1"), 0, "10 s after it was asked, wherever");
    second.op->on_done(second.op, true, true, SZ_SEC(10)); /* too old: no */
    fake_loop_settle(one);
    cr_assert_eq(source.asked, 1);
}

Test(decision_l2, not_found_the_source_is_asked_and_tells_it)
{
    struct caller c;
    cr_assert_eq(ask(&c, one, "doc:1"), 0);
    source.answer.outcome = SZ_AUTHZ_DENIED;
    later(SZ_MS(500));
    second.op->on_done(second.op, false, false, (struct sz_span){0});
    fake_loop_settle(one);
    cr_assert_eq(c.told, 1);
    cr_assert_eq(c.op.answer.outcome, SZ_AUTHZ_DENIED);
    cr_assert_eq(second.puts, 1);
    cr_assert_not(second.put_allowed);
    cr_assert_eq(second.put_age.us, 500000, "as old there as it is here");
    cr_assert_eq(second.put_left.us, 1500000);
}

Test(decision_l2, without_it_all_goes_on)
{
    struct caller c;
    second.down = true;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    cr_assert_eq(source.asked, 1);
    cr_assert_eq(second.puts, 1);
    source.answer.outcome = SZ_AUTHZ_ERROR;
    cr_assert_eq(ask(&c, one, "doc:2"), 1);
    cr_assert_eq(second.puts, 1, "an error is nobody's to know");
}

Test(decision_l2, a_source_whose_epoch_is_its_own_keeps_to_itself)
{
    struct caller c;
    source.authz.shared = false;
    cr_assert_eq(ask(&c, one, "doc:1"), 1);
    struct sz_check sure = question("doc:1");
    sure.consistency = SZ_HIGHER_CONSISTENCY;
    cr_assert_eq(ask_with(&c, one, &sure), 1);
    cr_assert_eq(second.gets + second.puts, 0);
}
