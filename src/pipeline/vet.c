/* Each rule as an example, with "x" wherever a request would put something. */
#include "pipeline/vet.h"

struct vet {
    const struct sz_conf *conf;
    struct sz_authz *authz;
    struct sz_mistakes *m;
    struct sz_arena arena;
    bool good;
};

static struct sz_slice example(struct vet *v, const struct sz_template *tpl)
{
    struct sz_buf buf = {0};
    for (size_t i = 0; i < tpl->n; i++)
        sz_buf_adds(&buf, tpl->parts[i].var == SZ_VAR_LITERAL ? tpl->parts[i].text : SZ_S("x"));
    struct sz_slice text = sz_pool_dup(&v->arena.pool, sz_buf_slice(&buf));
    sz_buf_fini(&buf);
    return text;
}

static void look(struct vet *v, const struct sz_tuple_key *key, bool tuple, const char *where)
{
    struct sz_text why = {""};
    if (v->authz->vet(v->authz, key, tuple, &why))
        return;
    v->good = false;
    sz_conf_mistake(v->conf, where, v->m, "the model does not take this%s: %s", tuple ? " tuple" : "", why.s);
}

static void vet_check(struct vet *v, const struct sz_conf_check *check)
{
    struct sz_tuple_key key = {.user = example(v, &check->user),
                               .relation = example(v, &check->relation),
                               .object = example(v, &check->object),
                               .condition = SZ_NONE,
                               .condition_context = SZ_NONE};
    look(v, &key, false, check->where);
    for (size_t i = 0; i < check->tuples_n; i++) {
        const struct sz_conf_tuple *tuple = &check->tuples[i];
        key = (struct sz_tuple_key){.user = example(v, &tuple->user),
                                    .relation = tuple->relation,
                                    .object = example(v, &tuple->object),
                                    .condition = tuple->condition,
                                    .condition_context = SZ_NONE};
        look(v, &key, true, sz_pool_printf(&v->arena.pool, "%s.contextual_tuples.%zu", check->where, i).p);
    }
}

bool sz_vet_routes(const struct sz_conf *conf, struct sz_authz *authz, struct sz_mistakes *m)
{
    struct vet v = {.conf = conf, .authz = authz, .m = m, .good = true};
    if (authz->vet == NULL)
        return true;
    sz_arena_init(&v.arena);
    for (size_t i = 0; i < conf->routes_n; i++) {
        for (size_t k = 0; k < conf->routes[i].checks_n; k++)
            vet_check(&v, &conf->routes[i].checks[k]);
    }
    sz_arena_fini(&v.arena);
    return v.good;
}
