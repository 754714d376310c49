/* Questions as JSON.  Every name is written as a string; what is JSON already is checked to be one object. */
#include <errno.h>

#include "fga/openfga.h"
#include "subzero/crypto.h"

#define CONTEXT_DEPTH 64

static bool is_object(struct sz_slice json)
{
    size_t at;
    struct sz_slice s = json;
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t' || s.p[0] == '\n' || s.p[0] == '\r'))
        s = sz_from(s, 1);
    return s.n > 0 && s.p[0] == '{' && sz_json_check(json, CONTEXT_DEPTH, &at) == 0;
}

static void add_member(struct sz_buf *out, const char *name, struct sz_slice value)
{
    sz_buf_printf(out, "%s:", name);
    sz_buf_json(out, value);
}

static int add_key(struct sz_buf *out, const struct sz_tuple_key *key)
{
    sz_buf_printf(out, "{");
    add_member(out, "\"user\"", key->user);
    add_member(out, ",\"relation\"", key->relation);
    add_member(out, ",\"object\"", key->object);
    if (key->condition.n > 0) {
        add_member(out, ",\"condition\":{\"name\"", key->condition);
        if (key->condition_context.n > 0) {
            if (!is_object(key->condition_context))
                return -EINVAL;
            sz_buf_printf(out, ",\"context\":");
            sz_buf_adds(out, key->condition_context);
        }
        sz_buf_printf(out, "}");
    }
    sz_buf_printf(out, "}");
    return 0;
}

int sz_fga_write_question(struct sz_buf *out, const struct sz_check *check)
{
    sz_buf_printf(out, "\"tuple_key\":");
    int rc = add_key(out, &check->key);
    if (check->contextual_n > 0)
        sz_buf_printf(out, ",\"contextual_tuples\":{\"tuple_keys\":[");
    for (size_t i = 0; i < check->contextual_n && rc == 0; i++) {
        sz_buf_printf(out, "%s", i > 0 ? "," : "");
        rc = add_key(out, &check->contextual[i]);
    }
    if (check->contextual_n > 0)
        sz_buf_printf(out, "]}");
    if (rc == 0 && check->context.n > 0) {
        if (!is_object(check->context))
            return -EINVAL;
        sz_buf_printf(out, ",\"context\":");
        sz_buf_adds(out, check->context);
    }
    return rc;
}

static void add_settings(struct sz_buf *out, const struct sz_fga_client *client, enum sz_consistency consistency)
{
    add_member(out, ",\"authorization_model_id\"", client->model_id);
    sz_buf_printf(out, ",\"consistency\":\"%s\"",
                  consistency == SZ_HIGHER_CONSISTENCY ? "HIGHER_CONSISTENCY" : "MINIMIZE_LATENCY");
}

void sz_fga_write_check(struct sz_buf *out, const struct sz_fga_client *client, struct sz_slice question,
                        enum sz_consistency consistency)
{
    sz_buf_printf(out, "{");
    sz_buf_adds(out, question);
    add_settings(out, client, consistency);
    sz_buf_printf(out, "}");
}

void sz_fga_write_batch(struct sz_buf *out, const struct sz_fga_client *client, struct sz_fga_item *first,
                        enum sz_consistency consistency)
{
    unsigned n = 0;
    sz_buf_printf(out, "{\"checks\":[");
    for (struct sz_fga_item *item = first; item != NULL; item = item->next) {
        item->number = n++;
        sz_buf_printf(out, "%s{", item->number > 0 ? "," : "");
        sz_buf_adds(out, sz_buf_slice(&item->question));
        sz_buf_printf(out, ",\"correlation_id\":\"%u\"}", item->number);
    }
    sz_buf_printf(out, "]");
    add_settings(out, client, consistency);
    sz_buf_printf(out, "}");
}
