/* Threat scores: thresholds in order, ranges that are ranges. */
#include "conf/build.h"

/* "0.35": 0 to 1 with at most three decimals. */
static bool fraction(struct sz_slice s, float *out)
{
    uint64_t whole = 0, decimals = 0;
    ptrdiff_t dot = sz_find_byte(s, '.');
    struct sz_slice before = dot < 0 ? s : sz_sub(s, 0, (size_t)dot),
                    after = dot < 0 ? SZ_S("0") : sz_from(s, (size_t)dot + 1);
    if (before.n == 0 || after.n == 0 || after.n > 3 || sz_parse_u64(before, 1, &whole) != 0 ||
        sz_parse_u64(after, 999, &decimals) != 0)
        return false;
    for (size_t i = after.n; i < 3; i++)
        decimals *= 10;
    *out = (float)(whole * 1000 + decimals) / 1000;
    return *out <= 1;
}

static void threshold(struct sz_builder *b, const char *key, struct sz_slice text, float above, float *out)
{
    const struct sz_node *node = b->raw->threat.thresholds.head.node;
    const struct sz_node *at = node == NULL ? b->raw->threat.head.node : sz_node_key(node, key);
    if (!fraction(text, out))
        sz_mistake(b->l, at, "'%s' is '%.*s'; write a number from 0 to 1, such as 0.7", key, SZ_FMT(text));
    else if (*out <= above)
        sz_mistake(b->l, at, "'%s' must lie above the threshold before it (monitor < challenge < block), and above 0",
                   key);
}

static void ranges(struct sz_builder *b, struct sz_strings list)
{
    for (size_t i = 0; i < list.n; i++) {
        struct sz_text why;
        struct sz_cidr range;
        if (sz_cidr_parse(list.v[i], &range, &why) != 0)
            sz_mistake(b->l, sz_node_item(b->raw->threat.head.node, "allow", i), "'%.*s': %s", SZ_FMT(list.v[i]),
                       why.s);
    }
}

static void lists(struct sz_builder *b, const struct sz_raw_threat *raw, struct sz_conf_threat *out)
{
    const struct sz_raw_threat_list *in = raw->lists.v;
    struct sz_conf_threat_list *v = sz_pool_alloc(b->l->pool, raw->lists.n * sizeof(*v));
    for (size_t i = 0; i < raw->lists.n; i++)
        v[i] = (struct sz_conf_threat_list){in[i].file, (enum sz_threat_list)in[i].action};
    out->lists = v;
    out->lists_n = raw->lists.n;
}

static void step_up(struct sz_builder *b, const struct sz_raw_threat *raw, struct sz_conf_threat *out)
{
    const struct sz_node *at = raw->head.node;
    int acr = sz_claim_slot(b, at, SZ_S("acr")), auth_time = sz_claim_slot(b, at, SZ_S("auth_time"));
    out->step_up_status = (unsigned)raw->step_up.status;
    out->acr_values = raw->step_up.acr_values;
    out->max_age = raw->step_up.max_age;
    out->acr_slot = (unsigned)acr; /* negative: too many claims, a mistake already */
    out->auth_time_slot = (unsigned)auth_time;
}

void sz_build_threat(struct sz_builder *b)
{
    const struct sz_raw_threat *raw = &b->raw->threat;
    struct sz_conf_threat *out = &b->conf->threat;
    if (raw->head.node == NULL)
        return;
    *out = (struct sz_conf_threat){
        .mode = (enum sz_threat_mode)raw->mode,
        .first = raw->blocks.first,
        .longest = raw->blocks.longest,
        .capacity = raw->capacity,
        .allow = raw->allow,
        .events_key = raw->events_key.secret,
        .share = raw->share,
    };
    threshold(b, "monitor", raw->thresholds.monitor, 0, &out->monitor);
    threshold(b, "challenge", raw->thresholds.challenge, out->monitor, &out->challenge);
    threshold(b, "block", raw->thresholds.block, out->challenge, &out->block);
    if (out->longest.us < out->first.us)
        sz_mistake(b->l, sz_node_key(raw->blocks.head.node, "longest"),
                   "the longest block would be shorter than the first one");
    if (out->share && b->raw->redis.head.node == NULL)
        sz_mistake(b->l, sz_node_key(raw->head.node, "share"),
                   "blocks are shared through Redis: 'share' needs 'redis' with its 'key_file'");
    ranges(b, raw->allow);
    lists(b, raw, out);
    step_up(b, raw, out);
}
