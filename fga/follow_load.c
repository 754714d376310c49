/*
 * From the pages that were read to an engine.  The tuples wait as length-prefixed text; compiling the model and sorting
 * the tuples may take seconds, so a thread does it, and its end comes to the service loop as a message.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/follow.h"

#define BYTES_MAX ((size_t)2 << 30) /* of text: some twenty million tuples */

enum { PARTS = 5 };

struct sz_fga_load {
    struct sz_msg done;           /* to the service loop */
    struct sz_follower *follower; /* NULL: it has gone */
    struct sz_followers *all;
    struct sz_loop *loop;
    struct sz_model *model;
    struct sz_buf text;
    struct sz_wall now;
    pthread_t thread;
    bool running;
    _Atomic bool settled; /* by whoever comes first: the thread, which will post; or its follower's end, which joins */
    struct sz_fga_load *next; /* orphans of sz_followers */
    struct sz_fga_copy *copy; /* what came of it */
    uint64_t ignored;
    struct sz_text why;
};

void sz_fga_copy_free(struct sz_fga_copy **copy)
{
    if (*copy == NULL)
        return;
    sz_engine_free((*copy)->engine);
    free(*copy);
    *copy = NULL;
}

struct sz_fga_load *sz_fga_load_new(struct sz_follower *f)
{
    struct sz_fga_load *load = sz_xcalloc(1, sizeof(*load));
    load->follower = f;
    load->all = f->all;
    load->loop = f->all->loop;
    load->model = f->model;
    f->model = NULL;
    load->text.limit = BYTES_MAX;
    return load;
}

int sz_fga_load_add(struct sz_fga_load *load, const struct sz_tuple_key *key)
{
    const struct sz_slice parts[PARTS] = {key->user, key->relation, key->object, key->condition,
                                          key->condition_context};
    for (size_t i = 0; i < PARTS; i++) {
        uint32_t n = (uint32_t)parts[i].n;
        sz_buf_add(&load->text, &n, sizeof(n));
        sz_buf_adds(&load->text, parts[i]);
    }
    return load->text.overflow ? -E2BIG : 0;
}

static struct sz_tuple_key next_key(struct sz_slice *rest)
{
    struct sz_slice parts[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        uint32_t n;
        memcpy(&n, rest->p, sizeof(n));
        parts[i] = n == 0 ? SZ_NONE : sz_sub(*rest, sizeof(n), n);
        *rest = sz_from(*rest, sizeof(n) + n);
    }
    return (struct sz_tuple_key){parts[0], parts[1], parts[2], parts[3], parts[4]};
}

static void fill(struct sz_fga_load *load, struct sz_fga_copy *copy)
{
    struct sz_loader *loader = sz_loader_begin(copy->engine, copy->program, load->now);
    struct sz_slice rest = sz_buf_slice(&load->text);
    struct sz_fault fault = {0};
    while (rest.n > 0) {
        struct sz_tuple_key key = next_key(&rest);
        if (sz_loader_add(loader, &key, &fault) != 0)
            load->ignored++; /* the pinned model does not admit it, and would not where it is asked */
    }
    sz_loader_end(loader);
}

static void *run(void *arg)
{
    struct sz_fga_load *load = arg;
    struct sz_fault fault = {0};
    struct sz_fga_copy *copy = sz_xcalloc(1, sizeof(*copy));
    copy->engine = sz_engine_new();
    copy->program = sz_engine_add_model(copy->engine, load->model, &fault);
    sz_random(&copy->instance, sizeof(copy->instance));
    if (copy->program != NULL)
        fill(load, copy);
    else
        sz_fga_copy_free(&copy);
    sz_text_set(&load->why, "its model is not understood here: %s", fault.message.s);
    load->copy = copy;
    if (!atomic_exchange(&load->settled, true))
        sz_loop_post(load->loop, &load->done);
    return NULL;
}

static void free_load(struct sz_fga_load *load)
{
    sz_fga_copy_free(&load->copy);
    sz_model_free(load->model);
    sz_buf_fini(&load->text);
    free(load);
}

static void on_done(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_fga_load *load = SZ_CONTAINER(msg, struct sz_fga_load, done);
    struct sz_follower *f = load->follower;
    (void)loop;
    pthread_join(load->thread, NULL);
    load->running = false;
    if (f == NULL) { /* nobody waits for it any more */
        for (struct sz_fga_load **at = &load->all->orphans; *at != NULL; at = &(*at)->next) {
            if (*at == load) {
                *at = load->next;
                break;
            }
        }
        free_load(load);
        return;
    }
    struct sz_fga_copy *copy = load->copy;
    struct sz_text why = load->why;
    load->copy = NULL;
    f->ignored = load->ignored;
    sz_follower_loaded(f, copy, why);
}

void sz_fga_load_start(struct sz_fga_load *load)
{
    load->done.on_msg = on_done;
    load->now = sz_loop_wall(load->loop);
    load->running = true;
    SZ_ASSERT(pthread_create(&load->thread, NULL, run, load) == 0);
}

void sz_fga_load_free(struct sz_fga_load **loadp)
{
    struct sz_fga_load *load = *loadp;
    *loadp = NULL;
    if (load == NULL)
        return;
    if (!load->running) {
        free_load(load);
        return;
    }
    load->follower = NULL; /* its message will come, and free it */
    load->next = load->all->orphans;
    load->all->orphans = load;
}

void sz_fga_loads_join(struct sz_followers *all)
{
    while (all->orphans != NULL) {
        struct sz_fga_load *load = all->orphans;
        all->orphans = load->next;
        bool posted = atomic_exchange(&load->settled, true);
        pthread_join(load->thread, NULL);
        if (!posted) /* else the loop, which has ended, still holds its message */
            free_load(load);
    }
}
