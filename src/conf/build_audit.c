/* The audit journal: what it records, and options that make sense only together. */
#include "conf/build.h"

static void allowed(struct sz_builder *b, const struct sz_raw_audit *raw, struct sz_conf_audit *out)
{
    uint64_t n = 0;
    out->sample = 1;
    if (raw->allowed.p == NULL || sz_eq(raw->allowed, SZ_S("all")))
        return;
    out->sample = 0;
    if (sz_eq(raw->allowed, SZ_S("none")))
        return;
    if (sz_starts_with(raw->allowed, SZ_S("1/")) && sz_parse_u64(sz_from(raw->allowed, 2), 1000000, &n) == 0 && n > 0)
        out->sample = (uint32_t)n;
    else
        sz_mistake(b->l, sz_node_key(raw->head.node, "allowed"), "'allowed' is '%.*s'; write all, none or 1/N",
                   SZ_FMT(raw->allowed));
}

/* An option that would do nothing is a mistake: whoever wrote it relies on it. */
static void needs_path(struct sz_builder *b, const struct sz_raw_audit *raw)
{
    const struct {
        const char *key;
        bool set;
    } keys[] = {
        {"required", raw->required},       {"key_file", raw->key.secret.set},
        {"anchor", raw->anchor.p != NULL}, {"anchor_command", raw->anchor_command.p != NULL},
        {"pseudonyms", raw->pseudonyms},   {"stdout", raw->to_stdout},
        {"syslog", raw->syslog.p != NULL},
    };
    for (size_t i = 0; i < SZ_COUNT(keys); i++) {
        if (keys[i].set)
            sz_mistake(b->l, sz_node_key(raw->head.node, keys[i].key), "'%s' without 'path': there is no journal",
                       keys[i].key);
    }
}

static void check(struct sz_builder *b, const struct sz_raw_audit *raw, const struct sz_conf_audit *out)
{
    const struct sz_node *node = raw->head.node;
    if (out->required && out->sample != 1)
        sz_mistake(b->l, sz_node_key(node, "required"),
                   "'required' wants a record of every allowed request; write 'allowed: all'");
    if (out->pseudonyms != out->pseudonym_key.set)
        sz_mistake(b->l, sz_node_key(node, out->pseudonyms ? "pseudonyms" : "pseudonym_key_file"),
                   "'pseudonyms: true' and 'pseudonym_key_file' go together");
    if (out->retain.size < out->rotate_size || out->denied.size < out->rotate_size)
        sz_mistake(b->l, sz_node_key(node, "retain"), "'retain' holds less than one segment of 'rotate.size'");
}

void sz_build_audit(struct sz_builder *b)
{
    const struct sz_raw_audit *raw = &b->raw->audit;
    struct sz_conf_audit *out = &b->conf->audit;
    *out = (struct sz_conf_audit){
        .required = raw->required,
        .paths = raw->paths,
        .durability = (enum sz_durability)raw->durability,
        .sync_interval = raw->sync_interval,
        .rotate_size = raw->rotate.size,
        .rotate_age = raw->rotate.age,
        .retain = raw->retain.out,
        .denied = raw->retain.denied.out,
        .key = raw->key.secret,
        .checkpoint_records = raw->checkpoint.records,
        .checkpoint_interval = raw->checkpoint.interval,
        .anchor_command = raw->anchor_command,
        .pseudonyms = raw->pseudonyms,
        .pseudonym_key = raw->pseudonym_key.secret,
        .free_space = raw->free_space,
        .to_stdout = raw->to_stdout,
        .syslog = raw->syslog,
        .scan_bytes = raw->query.scan_bytes,
    };
    allowed(b, raw, out);
    if (raw->path.p == NULL) {
        needs_path(b, raw);
        return;
    }
    out->path = sz_path_resolve(b->l, raw->path);
    if (raw->anchor.p != NULL)
        out->anchor = sz_path_resolve(b->l, raw->anchor);
    check(b, raw, out);
    if (raw->syslog.p != NULL && raw->syslog.p[0] != '/')
        (void)sz_parse_listen(b->l, sz_node_key(raw->head.node, "syslog"), raw->syslog, &out->syslog_ip,
                              &out->syslog_port);
}
