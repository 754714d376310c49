/* Import and export, as the commands use them: the hub of a gateway that does not run. */
#include <stdlib.h>

#include "fga/api/hub.h"
#include "fga/api/seed.h"
#include "subzero/conf.h"
#include "subzero/fga_tools.h"

static int say(struct sz_buf *out, const struct sz_text *why)
{
    out->n = 0;
    sz_buf_printf(out, "error: %s\n", why->s);
    return 1;
}

/* Nothing that runs here has a deadline; imported tuples are written now. */
static struct sz_mono no_deadline(void)
{
    return (struct sz_mono){1};
}

static struct sz_fga_hub *open_hub(const struct sz_fga_files *files, struct sz_wall (*wall)(void), struct sz_text *why)
{
    struct sz_fga_hub *hub = sz_fga_hub_new(&(struct sz_fga_clock){no_deadline, wall});
    if (sz_fga_hub_open(hub, files->state_dir, why) != 0)
        sz_fga_hub_free(&hub);
    return hub;
}

int sz_fga_import(const struct sz_fga_files *files, struct sz_wall (*wall)(void), struct sz_buf *out)
{
    struct sz_conf_fga conf = {.on = true, .model = sz_cstr(files->model), .tuples = sz_cstr(files->tuples)};
    struct sz_text why = {""};
    struct sz_fga_seed *seed = sz_fga_seed_read(&conf, &why);
    if (seed == NULL)
        return say(out, &why);
    struct sz_fga_hub *hub = open_hub(files, wall, &why);
    int rc = hub == NULL ? 1 : sz_seed_into(seed, hub, sz_cstr(files->store), &why);
    if (rc == 0) {
        struct sz_fga_store *store =
            sz_hub_store(hub, files->store != NULL ? sz_cstr(files->store) : SZ_S(SZ_FGA_OWN_STORE));
        struct sz_engine_stats stats;
        sz_engine_stats(store->engine, &stats);
        sz_buf_printf(out, "store %s (%s): %zu models, %zu tuples\n", store->id, store->name, store->n_models,
                      stats.tuples);
        sz_hub_store_unref(store);
    }
    sz_fga_hub_free(&hub);
    sz_fga_seed_free(&seed);
    return rc == 0 ? 0 : say(out, &why);
}

static int put_tuple(void *arg, const struct sz_tuple_key *key, struct sz_wall written)
{
    struct sz_buf *out = arg;
    (void)written;
    sz_buf_printf(out, "{\"user\":");
    sz_buf_json(out, key->user);
    sz_buf_printf(out, ",\"relation\":");
    sz_buf_json(out, key->relation);
    sz_buf_printf(out, ",\"object\":");
    sz_buf_json(out, key->object);
    if (key->condition.n > 0) {
        sz_buf_printf(out, ",\"condition\":{\"name\":");
        sz_buf_json(out, key->condition);
        sz_buf_printf(out, ",\"context\":");
        sz_buf_adds(out, key->condition_context.n > 0 ? key->condition_context : SZ_S("{}"));
        sz_buf_printf(out, "}");
    }
    sz_buf_printf(out, "}\n");
    return 0;
}

static int export_tuples(struct sz_fga_store *store, struct sz_buf *out, struct sz_text *why)
{
    struct sz_read_filter all = {SZ_NONE, SZ_NONE, SZ_NONE};
    char room[SZ_TOKEN_ROOM];
    struct sz_slice next;
    struct sz_fault fault;
    if (sz_engine_read(store->engine, &all, SZ_NONE, SIZE_MAX, put_tuple, out, room, &next, &fault) == 0)
        return 0;
    *why = fault.message;
    return 1;
}

static int put_model(const struct sz_fga_model *model, struct sz_buf *out)
{
    sz_buf_adds(out, sz_cstr(model->json));
    sz_buf_printf(out, "\n");
    return 0;
}

int sz_fga_export(const struct sz_fga_files *files, struct sz_buf *out)
{
    struct sz_text why = {""};
    struct sz_fga_hub *hub = open_hub(files, NULL, &why);
    if (hub == NULL)
        return say(out, &why);
    struct sz_fga_store *store =
        sz_hub_store(hub, files->store != NULL ? sz_cstr(files->store) : SZ_S(SZ_FGA_OWN_STORE));
    const struct sz_fga_model *model = store != NULL ? sz_hub_model(store, SZ_NONE) : NULL;
    int rc = 1;
    sz_text_set(&why, "%s", store == NULL ? "there is no such store" : "the store has no model");
    if (store != NULL && !files->export_model)
        rc = export_tuples(store, out, &why);
    else if (model != NULL)
        rc = put_model(model, out);
    sz_hub_store_unref(store);
    sz_fga_hub_free(&hub);
    return rc == 0 ? 0 : say(out, &why);
}
