/*
 * Readers during writes: every answer is one of a state that was whole.  Two tuples always change together, so a reader
 * that sees one without the other has seen half a write.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "subzero/crypto.h"

static const char model_text[] =
    "model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define a: [user]\n    define b: "
    "[user]\n    define both: a and b\n    define one: a or b\n";

static struct sz_engine *engine;
static const struct sz_program *program;
static atomic_bool done;
static atomic_ulong asked, halves;

static int ask(const char *object, const char *relation)
{
    struct sz_check c = {.key = {.object = sz_cstr(object), .relation = sz_cstr(relation), .user = SZ_S("user:u")}};
    struct sz_fault fault;
    uint64_t steps = 100;
    return sz_engine_check(engine, program, &c, &steps, &fault);
}

static int count(void *arg, struct sz_slice name)
{
    (void)name;
    ++*(size_t *)arg;
    return 0;
}

static void *reader(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&done)) {
        char object[16];
        struct sz_batch_answer answers[2];
        struct sz_fault fault;
        uint64_t steps = 1000;
        size_t n = 0;
        snprintf(object, sizeof(object), "doc:%u", i++ % 4);
        struct sz_check pair[2] = {
            {.key = {.object = sz_cstr(object), .relation = SZ_S("both"), .user = SZ_S("user:u")}},
            {.key = {.object = sz_cstr(object), .relation = SZ_S("one"), .user = SZ_S("user:u")}}};
        sz_engine_batch_check(engine, program, pair, 2, &steps, answers); /* one state for both */
        if (answers[0].result != answers[1].result)
            atomic_fetch_add(&halves, 1);
        struct sz_list_options o = {0};
        if (i % 8 == 0 && sz_engine_list_objects(engine, program, SZ_S("doc"), SZ_S("one"), SZ_S("user:u"), &o, count,
                                                 &n, &fault) != 0)
            atomic_fetch_add(&halves, 1);
        (void)ask("doc:new", "a");
        atomic_fetch_add(&asked, 1);
    }
    return NULL;
}

static void write_pair(unsigned i, bool remove)
{
    char object[16], other[32];
    struct sz_fault fault;
    snprintf(object, sizeof(object), "doc:%u", i % 4);
    snprintf(other, sizeof(other), "doc:other%u", i);
    struct sz_tuple_key keys[3] = {{.object = sz_cstr(object), .relation = SZ_S("a"), .user = SZ_S("user:u")},
                                   {.object = sz_cstr(object), .relation = SZ_S("b"), .user = SZ_S("user:u")},
                                   {.object = sz_cstr(other), .relation = SZ_S("b"), .user = SZ_S("user:v")}};
    struct sz_write w = {.writes = keys, .writes_n = 3};
    if (remove)
        w = (struct sz_write){.deletes = keys, .deletes_n = 2};
    if (sz_engine_write(engine, program, &w, (struct sz_wall){0}, &fault) != 0) {
        fprintf(stderr, "%s\n", fault.message.s);
        exit(1);
    }
}

int main(void)
{
    enum { READERS = 3, WRITES = 3000 };
    pthread_t threads[READERS];
    struct sz_problems problems;
    struct sz_fault fault;
    sz_crypto_init();
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(sz_cstr(model_text), &problems);
    engine = sz_engine_new();
    program = sz_engine_add_model(engine, m, &fault);
    for (uintptr_t i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, reader, (void *)i);
    for (unsigned i = 0; i < WRITES; i++) {
        write_pair(i, false);
        write_pair(i, true);
    }
    atomic_store(&done, true);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    printf("%lu questions during %d writes, %lu halves seen\n", atomic_load(&asked), 2 * WRITES, atomic_load(&halves));
    sz_engine_free(engine);
    sz_model_free(m);
    sz_problems_fini(&problems);
    return atomic_load(&halves) == 0 ? 0 : 1;
}
