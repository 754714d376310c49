/* Stores: made, listed, looked at, renamed, deleted. */
#include <ctype.h>
#include <jansson.h>

#include "fga/api/durable.h"

enum { NAME_MIN = 3, NAME_MAX_ = 64 };

static bool name_valid(struct sz_slice name)
{
    if (name.n < NAME_MIN || name.n > NAME_MAX_)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && strchr(" \t\n\v\f\r.-/^_&@", c) == NULL)
            return false;
    }
    return memchr(name.p, '\0', name.n) == NULL;
}

static void put_store(struct sz_buf *out, const struct sz_fga_store *store)
{
    struct sz_fga_hub *hub = store->hub;
    sz_buf_printf(out, "{\"id\":\"%s\",\"name\":", store->id);
    pthread_mutex_lock(&hub->lock);
    sz_buf_json(out, sz_cstr(store->name));
    struct sz_wall updated = store->updated;
    pthread_mutex_unlock(&hub->lock);
    sz_buf_printf(out, ",\"created_at\":");
    sz_ofga_put_time(out, store->created);
    sz_buf_printf(out, ",\"updated_at\":");
    sz_ofga_put_time(out, updated);
}

/* False: answered. */
static bool read_name(struct sz_ofga *api, const void *object, const char *call, struct sz_slice *name)
{
    if (!sz_ofga_text(api, object, "name", name))
        return false;
    if (name_valid(*name))
        return true;
    sz_ofga_fail(api, 2000, "invalid %sRequest.Name: 3 to 64 letters, digits, blanks or any of .-/^_&@", call);
    return false;
}

static enum sz_ofga_step create(struct sz_ofga *api, const void *object)
{
    struct sz_fga_hub *hub = api->hub;
    struct sz_slice name;
    char id[SZ_ULID + 1];
    if (!read_name(api, object, "CreateStore", &name))
        return SZ_OFGA_DONE;
    if (hub->n_stores >= SZ_STORES_MAX)
        return sz_ofga_fail(api, 2053, "The number of stores exceeds the allowed limit of %d", SZ_STORES_MAX);
    sz_hub_new_id(hub, id);
    struct sz_fga_store *store = sz_hub_store_new(hub, id, name, hub->clock.wall());
    if (sz_durable_store(store) != 0) {
        sz_hub_store_unref(store);
        return sz_ofga_fail(api, 4000, "the store could not be stored");
    }
    sz_hub_store_add(store);
    put_store(&api->out, store);
    sz_buf_printf(&api->out, "}");
    api->status = 201;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_create_store(struct sz_ofga *api)
{
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        create(api, object);
    json_decref(object);
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_get_store(struct sz_ofga *api)
{
    if (!sz_ofga_store(api))
        return SZ_OFGA_DONE;
    put_store(&api->out, api->store);
    sz_buf_printf(&api->out, ",\"deleted_at\":null}");
    api->status = 200;
    return SZ_OFGA_DONE;
}

static enum sz_ofga_step rename_store(struct sz_ofga *api, const void *object)
{
    struct sz_slice name;
    if (!sz_ofga_store(api) || !read_name(api, object, "UpdateStore", &name))
        return SZ_OFGA_DONE;
    if (strcmp(api->store->id, SZ_FGA_OWN_STORE) == 0)
        return sz_ofga_fail(api, 2000, "this store is the gateway's own: its name stays");
    struct sz_wall now = api->hub->clock.wall();
    if (sz_durable_rename(api->store, name, now) != 0)
        return sz_ofga_fail(api, 4000, "the name could not be stored");
    sz_hub_store_rename(api->store, name, now);
    put_store(&api->out, api->store);
    sz_buf_printf(&api->out, "}");
    api->status = 200;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_rename_store(struct sz_ofga *api)
{
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        rename_store(api, object);
    json_decref(object);
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_delete_store(struct sz_ofga *api)
{
    if (!sz_ofga_store(api)) {
        if (api->status == 404) { /* gone is gone, however often it is said */
            api->out.n = 0;
            api->status = 204;
        }
        return SZ_OFGA_DONE;
    }
    if (strcmp(api->store->id, SZ_FGA_OWN_STORE) == 0)
        return sz_ofga_fail(api, 2000, "this store is the gateway's own: its routes ask it");
    if (sz_durable_delete(api->store) != 0)
        return sz_ofga_fail(api, 4000, "the deletion could not be stored");
    sz_hub_store_remove(api->store);
    sz_hub_store_unref(api->store); /* the table's; the call still has its own */
    api->status = 204;
    return SZ_OFGA_DONE;
}

/* References to the stores of one page, taken under the lock; more: there are others behind them. */
static size_t take_page(struct sz_fga_hub *hub, struct sz_slice after, struct sz_slice name, size_t most,
                        struct sz_fga_store **page, bool *more)
{
    size_t n = 0;
    *more = false;
    pthread_mutex_lock(&hub->lock);
    for (size_t i = 0; i < hub->n_stores && !*more; i++) {
        struct sz_fga_store *store = hub->stores[i];
        if (after.n > 0 && sz_cmp(sz_slice(store->id, SZ_ULID), after) <= 0)
            continue;
        if (name.n > 0 && !sz_eq(sz_cstr(store->name), name))
            continue;
        if (n == most) {
            *more = true;
        } else {
            sz_hub_store_ref(store);
            page[n++] = store;
        }
    }
    pthread_mutex_unlock(&hub->lock);
    return n;
}

enum sz_ofga_step sz_ofga_list_stores(struct sz_ofga *api)
{
    struct sz_fga_store *page[100];
    struct sz_slice token, name = sz_ofga_param(api, "name"), after;
    size_t most;
    bool more;
    token = sz_ofga_param(api, "continuation_token");
    if (!sz_ofga_page_size(api, NULL, &most) || !sz_ofga_token(api, token, &after))
        return SZ_OFGA_DONE;
    if (after.n > 0 && !sz_ulid_valid(after))
        return sz_ofga_fail(api, 2007, "Invalid continuation token");
    size_t n = take_page(api->hub, after, name, most, page, &more);
    sz_buf_printf(&api->out, "{\"stores\":[");
    for (size_t i = 0; i < n; i++) {
        sz_buf_adds(&api->out, i > 0 ? SZ_S(",") : SZ_S(""));
        put_store(&api->out, page[i]);
        sz_buf_printf(&api->out, ",\"deleted_at\":null}");
    }
    sz_buf_printf(&api->out, "],\"continuation_token\":");
    sz_ofga_put_token(&api->out, more ? sz_slice(page[n - 1]->id, SZ_ULID) : SZ_NONE);
    sz_buf_printf(&api->out, "}");
    for (size_t i = 0; i < n; i++)
        sz_hub_store_unref(page[i]);
    api->status = 200;
    return SZ_OFGA_DONE;
}
