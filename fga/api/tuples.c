/* Tuples: written, read, and what changed. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "fga/api/durable.h"
#include "fga/engine/cel.h"

enum { OPERATIONS_MAX = 100 };

/* One half of a write: its tuples, and what a tuple that is there already, or is not there, means. */
struct half {
    struct sz_tuple_key *keys;
    size_t n;
    bool ignore;
};

static bool read_half(struct sz_ofga *api, const void *object, const char *name, const char *option, struct half *out)
{
    const void *half, *list;
    struct sz_slice word;
    *out = (struct half){0};
    if (!sz_ofga_sub(api, object, name, &half))
        return false;
    if (half == NULL)
        return true;
    if (!sz_ofga_list(api, half, "tuple_keys", &list) || !sz_ofga_text(api, half, option, &word))
        return false;
    out->ignore = sz_eq(word, SZ_S("ignore"));
    if (!out->ignore && word.n > 0 && !sz_eq(word, SZ_S("error"))) {
        sz_ofga_fail(api, 2000, "invalid %s option: %.*s", option, SZ_FMT(sz_sub(word, 0, 64)));
        return false;
    }
    if (json_array_size(list) == 0) {
        sz_ofga_fail(api, 2000, "invalid %s.TupleKeys: value must contain at least 1 item(s)", name);
        return false;
    }
    if (json_array_size(list) > OPERATIONS_MAX) {
        sz_ofga_fail(api, 2053, "The number of write operations exceeds the allowed limit of %d", OPERATIONS_MAX);
        return false;
    }
    return sz_ofga_keys(api, list, OPERATIONS_MAX, &out->keys, &out->n);
}

/* What an auditor wants to know; the record cuts what is beyond its bound. */
static void describe(struct sz_buf *out, const struct half *writes, const struct half *deletes)
{
    out->limit = 1024;
    for (size_t i = 0; i < deletes->n + writes->n && !out->overflow; i++) {
        const struct sz_tuple_key *k = i < deletes->n ? &deletes->keys[i] : &writes->keys[i - deletes->n];
        sz_buf_printf(out, "%s%c%.*s#%.*s@%.*s", i > 0 ? " " : "", i < deletes->n ? '-' : '+', SZ_FMT(k->object),
                      SZ_FMT(k->relation), SZ_FMT(k->user));
    }
}

static enum sz_ofga_step write_tuples(struct sz_ofga *api, const void *object)
{
    struct half writes, deletes;
    struct sz_fault fault;
    if (!sz_ofga_asked_store(api, object) || !read_half(api, object, "writes", "on_duplicate", &writes) ||
        !read_half(api, object, "deletes", "on_missing", &deletes))
        return SZ_OFGA_DONE;
    describe(&api->detail, &writes, &deletes);
    /* Deletes need no model: what an older one left behind can go. */
    const struct sz_fga_model *model = NULL;
    if (writes.n > 0 && (model = sz_ofga_model(api, object)) == NULL)
        return SZ_OFGA_DONE;
    struct sz_write w = {.writes = writes.keys,
                         .writes_n = writes.n,
                         .deletes = deletes.keys,
                         .deletes_n = deletes.n,
                         .ignore_duplicates = writes.ignore,
                         .ignore_missing = deletes.ignore,
                         .hold = api->hub->journal != NULL,
                         .commit = sz_durable_write,
                         .commit_arg = api->store};
    if (sz_engine_write(api->store->engine, model != NULL ? model->program : NULL, &w, api->hub->clock.wall(),
                        &fault) != 0)
        return sz_ofga_fault(api, &fault);
    api->hold = w.hold;
    sz_buf_printf(&api->out, "{}");
    api->status = 200;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_write(struct sz_ofga *api)
{
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        write_tuples(api, object);
    json_decref(object);
    return SZ_OFGA_DONE;
}

/* ---- read ---- */

struct page {
    struct sz_buf *out;
    size_t n;
};

static int put_tuple(void *arg, const struct sz_tuple_key *key, struct sz_wall written)
{
    struct page *page = arg;
    sz_buf_adds(page->out, page->n++ > 0 ? SZ_S(",{\"key\":") : SZ_S("{\"key\":"));
    sz_ofga_put_key(page->out, key);
    sz_buf_printf(page->out, ",\"timestamp\":");
    sz_ofga_put_time(page->out, written);
    sz_buf_printf(page->out, "}");
    return 0;
}

/* No key at all reads everything; a type alone needs a user beside it. */
static bool filter_of(struct sz_ofga *api, const void *object, struct sz_read_filter *out)
{
    const void *key;
    *out = (struct sz_read_filter){SZ_NONE, SZ_NONE, SZ_NONE};
    if (!sz_ofga_sub(api, object, "tuple_key", &key))
        return false;
    if (key == NULL)
        return true;
    if (!sz_ofga_text(api, key, "user", &out->user) || !sz_ofga_text(api, key, "relation", &out->relation) ||
        !sz_ofga_text(api, key, "object", &out->object))
        return false;
    if ((out->relation.n > 0 && !sz_ofga_word(api, out->relation, 50, "ReadRequestTupleKey.Relation")) ||
        (out->object.n > 0 && !sz_ofga_name(api, out->object, 256, "ReadRequestTupleKey.Object")))
        return false;
    ptrdiff_t colon = sz_find_byte(out->object, ':');
    if (colon > 0 && ((size_t)colon + 1 < out->object.n || out->user.n > 0))
        return true;
    sz_ofga_fail(api, 2000,
                 "the 'tuple_key' field was provided but the object type field is required and both the object id and "
                 "user cannot be empty");
    return false;
}

static enum sz_ofga_step read_tuples(struct sz_ofga *api, const void *object)
{
    struct sz_read_filter filter;
    struct sz_slice token, after, next;
    struct sz_fault fault;
    struct page page = {&api->out, 0};
    char room[SZ_TOKEN_ROOM];
    size_t most;
    if (!sz_ofga_store(api) || !filter_of(api, object, &filter) || !sz_ofga_page_size(api, object, &most) ||
        !sz_ofga_text(api, object, "continuation_token", &token) || !sz_ofga_token(api, token, &after))
        return SZ_OFGA_DONE;
    sz_buf_printf(&api->out, "{\"tuples\":[");
    if (sz_engine_read(api->store->engine, &filter, after, most, put_tuple, &page, room, &next, &fault) != 0)
        return sz_ofga_fault(api, &fault);
    sz_buf_printf(&api->out, "],\"continuation_token\":");
    sz_ofga_put_token(&api->out, next);
    sz_buf_printf(&api->out, "}");
    api->status = 200;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_read(struct sz_ofga *api)
{
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        read_tuples(api, object);
    json_decref(object);
    return SZ_OFGA_DONE;
}

/* ---- changes ---- */

static int put_change(void *arg, const struct sz_tuple_key *key, bool deleted, struct sz_wall when)
{
    struct page *page = arg;
    sz_buf_adds(page->out, page->n++ > 0 ? SZ_S(",{\"tuple_key\":") : SZ_S("{\"tuple_key\":"));
    sz_ofga_put_key(page->out, key);
    sz_buf_printf(page->out, ",\"operation\":\"TUPLE_OPERATION_%s\",\"timestamp\":", deleted ? "DELETE" : "WRITE");
    sz_ofga_put_time(page->out, when);
    sz_buf_printf(page->out, "}");
    return 0;
}

enum sz_ofga_step sz_ofga_changes(struct sz_ofga *api)
{
    struct sz_slice token = sz_ofga_param(api, "continuation_token"), type = sz_ofga_param(api, "type");
    struct sz_slice start = sz_ofga_param(api, "start_time"), after, next;
    struct sz_fault fault;
    struct page page = {&api->out, 0};
    char room[SZ_TOKEN_ROOM], begin[SZ_TOKEN_ROOM];
    size_t most;
    if (!sz_ofga_store(api) || !sz_ofga_page_size(api, NULL, &most) || !sz_ofga_token(api, token, &after))
        return SZ_OFGA_DONE;
    if (type.n == 0)
        type = SZ_NONE;
    if (start.n > 0 && after.n == 0) {
        int64_t seconds;
        int32_t nano;
        if (sz_timestamp_parse(start, &seconds, &nano) != 0)
            return sz_ofga_fail(api, 2000, "parsing field \"start_time\": it is no RFC 3339 time");
        if (seconds > sz_wall_seconds(api->hub->clock.wall()))
            return sz_ofga_fail(api, 2000, "invalid StartTime: value must be less than now");
        after = sz_engine_changes_since(api->store->engine, type, seconds, begin);
    }
    sz_buf_printf(&api->out, "{\"changes\":[");
    if (sz_engine_changes(api->store->engine, type, after, most, put_change, &page, room, &next, &fault) != 0)
        return sz_ofga_fault(api, &fault);
    sz_buf_printf(&api->out, "],\"continuation_token\":");
    sz_ofga_put_token(&api->out, next);
    sz_buf_printf(&api->out, "}");
    api->status = 200;
    return SZ_OFGA_DONE;
}
