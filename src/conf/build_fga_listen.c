/* The OpenFGA API on a listener of its own: where, and whose keys. */
#include "conf/build.h"

static void listen_on(struct sz_builder *b, const struct sz_node *node, const struct sz_raw_fga *raw,
                      struct sz_conf_fga *out)
{
    const struct sz_node *at = sz_node_get(node, "listen");
    struct sz_conf_listener *v = sz_pool_zalloc(b->l->pool, sizeof(*v));
    v->address = raw->listen;
    v->request_body = b->raw->limits.out.request_body;
    if (!sz_parse_listen(b->l, at, raw->listen, &v->ip, &v->port))
        return;
    out->listen = v;
    sz_build_tls(b, &raw->tls, &v->tls);
    for (size_t i = 0; i < b->conf->listeners_n; i++) {
        if (sz_listeners_collide(v, &b->conf->listeners[i]))
            sz_mistake(b->l, at, "'%.*s' is also a listener; give the API a port of its own", SZ_FMT(raw->listen));
    }
    struct sz_conf_listener admin = {.ip = b->conf->admin.ip, .port = b->conf->admin.port};
    if (b->conf->admin.on && sz_listeners_collide(v, &admin))
        sz_mistake(b->l, at, "'%.*s' is also the admin address; give the API a port of its own", SZ_FMT(raw->listen));
    if (!sz_addr_is_loopback(v->ip) && sz_node_get(node, "preshared_keys_file") == NULL)
        sz_mistake(b->l, at,
                   "an address that is not loopback needs 'preshared_keys_file': who reaches it could write tuples");
}

/* Of a listener that is not there. */
static void refuse_alone(struct sz_builder *b, const struct sz_node *node, const char *name)
{
    if (sz_node_get(node, name) != NULL)
        sz_mistake(b->l, sz_node_key(node, name), "'%s' belongs to 'listen'", name);
}

void sz_build_fga_listen(struct sz_builder *b)
{
    const struct sz_raw_fga *raw = &b->raw->fga;
    const struct sz_node *node = raw->head.node;
    struct sz_conf_fga *out = &b->conf->fga;
    if (node == NULL || raw->mode != SZ_FGA_EMBEDDED)
        return;
    out->keys = raw->keys.secret;
    if (raw->listen.p != NULL) {
        listen_on(b, node, raw, out);
    } else {
        refuse_alone(b, node, "preshared_keys_file");
        refuse_alone(b, node, "tls");
    }
    if (sz_node_get(node, "tuples") != NULL && sz_node_get(node, "model") == NULL)
        sz_mistake(b->l, sz_node_key(node, "tuples"), "'tuples' need the 'model' that they are for");
}
