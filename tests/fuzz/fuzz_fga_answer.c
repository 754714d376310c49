/*
 * What an OpenFGA server answers: to a check, to a batch, with an error, with a page of tuples or of changes.  Whatever
 * comes, only a 200 can be a yes or a no, and a page is taken whole or not at all.
 */
#include <stdlib.h>

#include "fga/follow.h"

static struct sz_followers all;
static struct sz_fga_news news;
static struct sz_fga_copy copy;

static void set_up(void)
{
    static const char text[] = "model\n  schema 1.1\ntype user\ntype doc\n  relations\n"
                               "    define viewer: [user, user:*, user with c]\ncondition c(x: int) {\n  x > 1\n}\n";
    struct sz_problems problems;
    struct sz_fault fault;
    if (all.loop != NULL)
        return;
    sz_crypto_init();
    all.loop = sz_loop_new(0);
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(sz_cstr(text), &problems);
    copy.engine = sz_engine_new();
    copy.program = sz_engine_add_model(copy.engine, m, &fault);
    sz_model_free(m);
    sz_problems_fini(&problems);
    SZ_ASSERT(copy.program != NULL);
}

static void check_answer(int status, const struct sz_authz_answer *answer)
{
    bool clear = answer->outcome == SZ_AUTHZ_ALLOWED || answer->outcome == SZ_AUTHZ_DENIED;
    SZ_ASSERT(!clear || status == 200);
    SZ_ASSERT((answer->outcome == SZ_AUTHZ_ERROR) == (answer->code != 0));
}

static void pages(struct sz_slice body)
{
    struct sz_follower f = {.all = &all, .news = &news};
    struct sz_buf next = {0};
    size_t n;
    f.load = sz_fga_load_new(&f);
    (void)!sz_follower_read_page(&f, body, &next);
    sz_fga_load_free(&f.load);
    next.n = 0;
    f.fresh = &copy;
    (void)!sz_follower_changes_page(&f, body, &n, &next);
    sz_buf_fini(&next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 400, 401, 404, 422, 429, 500, 503};
    struct sz_authz_answer answers[3] = {{0}};
    struct sz_text message;
    int number;
    set_up();
    if (size == 0)
        return 0;
    int status = statuses[data[0] % SZ_COUNT(statuses)];
    struct sz_slice body = sz_slice(data + 1, size - 1);
    (void)sz_fga_read_check(status, body, &answers[0]);
    check_answer(status, &answers[0]);
    (void)sz_fga_read_batch(status, body, answers, SZ_COUNT(answers));
    for (size_t i = 0; i < SZ_COUNT(answers); i++)
        check_answer(status, &answers[i]);
    sz_fga_read_error(status, body, &number, &message);
    pages(body);
    return 0;
}
