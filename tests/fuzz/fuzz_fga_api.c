/*
 * Bodies and queries of the OpenFGA API: the first byte chooses the call, the rest is its body, or its query for those
 * that have none.  Every answer is whole JSON with a status, whatever came in.
 */
#include <jansson.h>
#include <stdint.h>

#include "fga/api/hub.h"
#include "subzero/crypto.h"

#define OWN "/stores/" SZ_FGA_OWN_STORE

static const struct {
    const char *method, *path;
} calls[] = {
    {"POST", OWN "/check"},
    {"POST", OWN "/batch-check"},
    {"POST", OWN "/list-objects"},
    {"POST", OWN "/streamed-list-objects"},
    {"POST", OWN "/list-users"},
    {"POST", OWN "/expand"},
    {"POST", OWN "/read"},
    {"POST", OWN "/write"},
    {"POST", OWN "/authorization-models"},
    {"PUT", OWN "/assertions/" SZ_FGA_OWN_STORE},
    {"POST", "/stores"},
    {"GET", OWN "/changes?"},
    {"GET", OWN "/authorization-models?"},
    {"GET", "/stores?"},
    {"GET", ""}, /* the target itself */
};

static const char model_text[] =
    "model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user, user:*, "
    "group#member, user with c]\ntype doc\n  relations\n    define parent: [doc]\n    define "
    "viewer: [user, group#member with c] or viewer from parent\n    define blocked: [user]\n"
    "    define reader: viewer but not blocked\ncondition c(x: int, s: list<string>) {\n  x > 1 "
    "|| \"a\" in s\n}\n";

static struct sz_mono no_time(void)
{
    return (struct sz_mono){1};
}

static struct sz_wall day_one(void)
{
    return (struct sz_wall){1000000};
}

/* A store as the gateway's own is: with a model whose id is known. */
static void make_store(struct sz_fga_hub *hub)
{
    struct sz_problems problems;
    struct sz_fault fault;
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(sz_cstr(model_text), &problems);
    struct sz_fga_store *store =
        sz_hub_store_new(hub, SZ_FGA_OWN_STORE, SZ_S(SZ_FGA_OWN_STORE_NAME), (struct sz_wall){0});
    struct sz_fga_model *model = sz_hub_model_new(store, SZ_FGA_OWN_STORE, m, &fault);
    SZ_ASSERT(model != NULL);
    sz_hub_model_add(store, model);
    sz_hub_store_add(store);
    sz_model_free(m);
    sz_problems_fini(&problems);
}

static void drop_stores(struct sz_fga_hub *hub)
{
    while (hub->n_stores > 0) {
        struct sz_fga_store *store = hub->stores[0];
        sz_hub_store_remove(store);
        sz_hub_store_unref(store);
    }
}

static void judge(const struct sz_fga_reply *reply, bool lines)
{
    size_t at;
    if (reply->status < 200 || reply->status > 599)
        __builtin_trap();
    if (reply->status == 204 || (lines && reply->status == 200))
        return;
    if (sz_json_check(sz_buf_slice(&reply->body), 2048, &at) != 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct sz_fga_hub *hub;
    struct sz_fga_reply reply = {0};
    struct sz_buf target = {0};
    if (n < 1 || n > 65536)
        return 0;
    sz_crypto_init();
    size_t which = data[0] % SZ_COUNT(calls);
    struct sz_slice rest = sz_slice(data + 1, n - 1), path = sz_cstr(calls[which].path);
    bool query = calls[which].method[0] == 'G';
    if (hub == NULL)
        hub = sz_fga_hub_new(&(struct sz_fga_clock){no_time, day_one});
    make_store(hub);
    sz_buf_adds(&target, path);
    if (query)
        sz_buf_adds(&target, rest);
    struct sz_fga_call call = {.method = sz_cstr(calls[which].method),
                               .target = sz_buf_slice(&target),
                               .authorization = SZ_NONE,
                               .body = query ? SZ_NONE : rest};
    for (int i = 0; i < 2; i++) { /* a write that is there already, a second model */
        sz_ofga_answer_here(hub, &call, &reply);
        judge(&reply, which == 3);
        sz_buf_fini(&reply.body);
    }
    sz_buf_fini(&target);
    drop_stores(hub);
    return 0;
}
