/*
 * Cache on is cache off, for decisions: random questions with contexts and contextual tuples, asked through the cache
 * and of the engine itself, while the store is written to.  The source names its state, so not one answer may be old.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "fake/loop.h"
#include "fga/engine/engine.h"
#include "subzero/decision.h"

static const char model_text[] = "model\n  schema 1.1\ntype user\ntype group\n  relations\n"
                                 "    define member: [user, group#member]\ntype doc\n  relations\n"
                                 "    define viewer: [user, user:*, group#member, user with at]\n"
                                 "    define banned: [user, group#member]\n"
                                 "    define reader: viewer but not banned\n"
                                 "condition at(x: int) {\n  x > 1\n}\n";

static struct truth {
    struct sz_authz authz;
    struct sz_engine *engine;
    const struct sz_program *program;
    unsigned asked;
} truth;

static uint64_t state = UINT64_C(0x5eed);

static unsigned dice(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 11) % n);
}

static void answer(const struct sz_check *check, struct sz_authz_answer *out)
{
    struct sz_fault fault = {0};
    uint64_t steps = 1000000;
    int result = sz_engine_check(truth.engine, truth.program, check, &steps, &fault);
    memset(out, 0, sizeof(*out));
    out->outcome = result == SZ_ENGINE_YES  ? SZ_AUTHZ_ALLOWED
                   : result == SZ_ENGINE_NO ? SZ_AUTHZ_DENIED
                                            : SZ_AUTHZ_ERROR;
    out->code = result < 0 ? fault.code : 0;
    out->met_cycle = fault.cycle;
}

static int start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op)
{
    (void)authz;
    (void)loop;
    (void)deadline;
    truth.asked++;
    answer(check, &op->answer);
    return 1;
}

static uint64_t epoch(struct sz_authz *authz)
{
    (void)authz;
    return sz_engine_sequence(truth.engine);
}

static void leave(struct sz_authz *authz)
{
    (void)authz;
}

struct names {
    char user[24], object[24];
    struct sz_tuple_key key;
};

static void random_user(char out[24])
{
    unsigned which = dice(7);
    if (which < 4)
        snprintf(out, 24, "user:u%u", dice(3));
    else if (which < 6)
        snprintf(out, 24, "group:g%u#member", dice(3));
    else
        snprintf(out, 24, "user:*");
}

/* Of the model or not: what it does not admit is refused by the store, and an error as a contextual tuple. */
static void random_tuple(struct names *t)
{
    static const char *const relations[] = {"viewer", "viewer", "banned", "member", "reader"};
    const char *relation = relations[dice(SZ_COUNT(relations))];
    random_user(t->user);
    snprintf(t->object, sizeof(t->object), relation[0] == 'm' ? "group:g%u" : "doc:d%u", dice(3));
    t->key = (struct sz_tuple_key){sz_cstr(t->user), sz_cstr(relation), sz_cstr(t->object), SZ_NONE, SZ_NONE};
    if (relation[0] == 'v' && dice(3) == 0) {
        t->key.condition = SZ_S("at");
        t->key.condition_context = dice(2) ? SZ_S("{}") : dice(2) ? SZ_S("{\"x\":1}") : SZ_S("{\"x\":2}");
    }
}

static void random_write(void)
{
    struct names t;
    struct sz_fault fault;
    random_tuple(&t);
    struct sz_write w = {.ignore_duplicates = true, .ignore_missing = true, .replace = true};
    if (dice(2)) {
        w.writes = &t.key;
        w.writes_n = 1;
    } else {
        t.key.condition = t.key.condition_context = SZ_NONE;
        w.deletes = &t.key;
        w.deletes_n = 1;
    }
    (void)!sz_engine_write(truth.engine, truth.program, &w, (struct sz_wall){0}, &fault);
}

static void ask_both(struct sz_authz *cached, struct sz_loop *loop, unsigned n)
{
    static const char *const contexts[] = {"", "{}", "{\"x\":1}", "{ \"x\" : 2 }", "{\"x\":2}", "{\"x\":\"y\"}"};
    static const char *const relations[] = {"viewer", "reader", "reader", "banned"};
    struct names q, extra[2];
    struct sz_tuple_key contextual[2];
    const char *context = contexts[dice(SZ_COUNT(contexts))];
    struct sz_check check = {.context = context[0] != '\0' ? sz_cstr(context) : SZ_NONE, .contextual = contextual};
    random_user(q.user);
    snprintf(q.object, sizeof(q.object), "doc:d%u", dice(3));
    check.key =
        (struct sz_tuple_key){sz_cstr(q.user), sz_cstr(relations[dice(4)]), sz_cstr(q.object), SZ_NONE, SZ_NONE};
    check.contextual_n = dice(4) == 0 ? 1 + dice(2) : 0;
    for (size_t i = 0; i < check.contextual_n; i++) {
        random_tuple(&extra[i]);
        contextual[i] = extra[i].key;
    }
    struct sz_authz_op op = {.on_done = NULL};
    struct sz_authz_answer fresh;
    answer(&check, &fresh);
    cr_assert_eq(sz_authz_start(cached, loop, &check, SZ_NEVER, &op), 1);
    cr_assert(op.answer.outcome == fresh.outcome && op.answer.code == fresh.code,
              "question %u: %s %.*s %s %s, %zu contextual: cached %d %d, fresh %d %d", n, q.user,
              SZ_FMT(check.key.relation), q.object, context, check.contextual_n, op.answer.outcome, op.answer.code,
              fresh.outcome, fresh.code);
}

Test(decision_differential, cache_on_is_cache_off, .timeout = 120)
{
    enum { QUESTIONS = 60000 };
    struct sz_problems problems;
    struct sz_fault fault;
    struct sz_cache_stats stats;
    sz_crypto_init();
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(sz_cstr(model_text), &problems);
    truth.authz = (struct sz_authz){.start = start, .free = leave, .epoch = epoch};
    truth.engine = sz_engine_new();
    truth.program = sz_engine_add_model(truth.engine, m, &fault);
    cr_assert_not_null(truth.program);
    struct sz_decisions *decisions = sz_decisions_new(500); /* small: much is evicted */
    struct sz_authz *cached = sz_decisions_wrap(
        decisions, &truth.authz,
        &(struct sz_decisions_conf){.ttl = SZ_SEC(60), .negative_ttl = SZ_SEC(60), .work = SZ_SEC(5)});
    struct sz_loop *loop = fake_loop_new(0);
    for (unsigned n = 0; n < QUESTIONS; n++) {
        if (dice(100) == 0)
            random_write();
        ask_both(cached, loop, n);
        if (n % 64 == 0)
            fake_loop_settle(loop);
    }
    fake_loop_settle(loop);
    sz_decisions_stats(decisions, &stats);
    cr_log_info("%u questions, %u asked, %lu hits", QUESTIONS, truth.asked, (unsigned long)stats.hits);
    cr_expect_gt(stats.hits, QUESTIONS / 10);
    cr_expect_gt(stats.evictions + stats.expired, 0);
    cached->free(cached);
    fake_loop_free(&loop);
    sz_decisions_free(&decisions);
    sz_engine_free(truth.engine);
    sz_model_free(m);
    sz_problems_fini(&problems);
}
