/*
 * The OpenFGA API's hub from several loops at once: checks on the loops, lists on the pool, writes and deleted stores
 * on the writer, streams that are taken part by part, and clients that leave in the middle of any of them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/conf.h"
#include "subzero/crypto.h"
#include "subzero/fga_api.h"

enum { LOOPS = 3, CALLS = 600, DOCS = 3000 };

#define OWN "/stores/" SZ_FGA_OWN_STORE

static struct sz_fga_hub *hub;
static atomic_ulong answered, cancelled, failed, parts;

static const struct {
    const char *method, *target, *body;
} calls[] = {
    {"POST", OWN "/check", "{\"tuple_key\":{\"user\":\"user:a\",\"relation\":\"viewer\",\"object\":\"doc:1\"}}"},
    {"POST", OWN "/write",
     "{\"writes\":{\"on_duplicate\":\"ignore\",\"tuple_keys\":[{\"user\":\"user:b\",\"relation\":\"viewer\",\"object\":"
     "\"doc:1\"}]}}"},
    {"POST", OWN "/list-objects", "{\"type\":\"doc\",\"relation\":\"viewer\",\"user\":\"user:b\"}"},
    {"POST", OWN "/write",
     "{\"deletes\":{\"on_missing\":\"ignore\",\"tuple_keys\":[{\"user\":\"user:b\",\"relation\":\"viewer\",\"object\":"
     "\"doc:1\"}]}}"},
    {"GET", OWN "/changes", ""},
    {"POST", "/stores", "{\"name\":\"another\"}"},
    {"GET", "/stores", ""},
    {"POST", OWN "/authorization-models",
     "{\"schema_version\":\"1.1\",\"type_definitions\":[{\"type\":\"user\"},{\"type\":\"doc\",\"relations\":{"
     "\"viewer\":{\"this\":{}}},\"metadata\":{\"relations\":{\"viewer\":{\"directly_related_user_types\":[{\"type\":"
     "\"user\"}]}}}}]}"},
    {"POST", OWN "/read", "{}"},
    {"POST", OWN "/streamed-list-objects", "{\"type\":\"doc\",\"relation\":\"viewer\",\"user\":\"user:all\"}"},
};

struct client {
    struct sz_loop *loop;
    struct sz_fga_reply reply;
    struct sz_timer next, leave;
    unsigned n, i;
    char gone[64]; /* a store to delete */
};

static void go_on(struct client *c)
{
    sz_timer_start(c->loop, &c->next, sz_loop_now(c->loop));
}

static void on_done(struct sz_fga_reply *reply)
{
    struct client *c = SZ_CONTAINER(reply, struct client, reply);
    sz_timer_cancel(c->loop, &c->leave);
    atomic_fetch_add(&answered, 1);
    if (reply->status >= 500)
        atomic_fetch_add(&failed, 1);
    if (reply->status == 201 && reply->body.n > 33 && reply->body.p[1] == '"' && reply->body.p[2] == 'i')
        snprintf(c->gone, sizeof(c->gone), "/stores/%.26s", reply->body.p + 7);
    sz_buf_fini(&reply->body);
    go_on(c);
}

static void on_part(struct sz_fga_reply *reply)
{
    do {
        atomic_fetch_add(&parts, 1);
        sz_buf_fini(&reply->body);
    } while (sz_fga_api_next(reply));
}

static void on_leave(struct sz_timer *timer)
{
    struct client *c = SZ_CONTAINER(timer, struct client, leave);
    sz_fga_api_cancel(&c->reply);
    atomic_fetch_add(&cancelled, 1);
    go_on(c);
}

static void on_next(struct sz_timer *timer)
{
    struct client *c = SZ_CONTAINER(timer, struct client, next);
    size_t which = (c->n * 7 + c->i) % (sizeof(calls) / sizeof(calls[0]));
    if (c->n++ == CALLS) {
        sz_loop_stop(c->loop);
        return;
    }
    struct sz_fga_call call = {.method = sz_cstr(calls[which].method),
                               .target = sz_cstr(calls[which].target),
                               .body = sz_cstr(calls[which].body),
                               .authorization = SZ_NONE};
    if (c->gone[0] != '\0') {
        call = (struct sz_fga_call){.method = SZ_S("DELETE"), .target = sz_cstr(c->gone), .authorization = SZ_NONE};
        c->gone[0] = '\0';
    }
    c->reply = (struct sz_fga_reply){.on_done = on_done, .on_part = on_part};
    struct sz_mono now = sz_loop_now(c->loop);
    if (sz_fga_api_start(hub, c->loop, &call, sz_after(now, SZ_SEC(20)), &c->reply) != 0)
        on_done(&c->reply);
    else if (c->n % 5 == 0)
        sz_timer_start(c->loop, &c->leave, now);
}

static void *run(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;
    struct client c = {.loop = sz_loop_new(i), .i = i};
    c.next.on_fire = on_next;
    c.leave.on_fire = on_leave;
    go_on(&c);
    sz_loop_run(c.loop);
    sz_loop_free(&c.loop);
    return NULL;
}

int main(void)
{
    pthread_t threads[LOOPS];
    sz_crypto_init();
    hub = sz_fga_hub_new(&(struct sz_fga_clock){sz_mono_read, sz_wall_read});
    struct sz_text why;
    struct sz_buf tuples = {0};
    sz_buf_printf(&tuples, "- {user: \"user:a\", relation: viewer, object: \"doc:1\"}\n");
    for (int i = 0; i < DOCS; i++)
        sz_buf_printf(&tuples, "- {user: \"user:all\", relation: viewer, object: \"doc:of-all-%d\"}\n", i);
    const struct sz_conf_fga conf = {
        .on = true,
        .model_text = SZ_S("model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user]\n"),
        .tuples_text = sz_buf_slice(&tuples)};
    struct sz_fga_seed *seed = sz_fga_seed_read(&conf, &why);
    if (seed == NULL || sz_fga_seed_apply(seed, hub, &why) != 0) {
        fprintf(stderr, "%s\n", why.s);
        return 1;
    }
    sz_fga_seed_free(&seed);
    sz_buf_fini(&tuples);
    for (size_t i = 0; i < LOOPS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i) != 0)
            return 1;
    for (size_t i = 0; i < LOOPS; i++)
        pthread_join(threads[i], NULL);
    sz_fga_hub_free(&hub);
    printf("%lu answered, %lu left, %lu failed, %lu parts\n", answered, cancelled, failed, parts);
    return failed != 0 || cancelled == 0 || parts == 0 || answered < LOOPS * CALLS / 2;
}
