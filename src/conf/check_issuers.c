/*
 * Two issuers with one `issuer` string: a token does not say which of them it is from.  That is refused, unless every
 * route that accepts either accepts both and says that their subjects are the same people: then it does not matter.
 */
#include "conf/build.h"

static bool lists(const struct sz_conf_route *route, size_t issuer)
{
    for (size_t i = 0; i < route->issuers_n; i++) {
        if (route->issuers[i] == issuer)
            return true;
    }
    return false;
}

/* The first route that keeps the two apart, or NULL. */
static const struct sz_conf_route *tells_apart(const struct sz_conf *conf, size_t a, size_t b)
{
    for (size_t i = 0; i < conf->routes_n; i++) {
        const struct sz_conf_route *route = &conf->routes[i];
        bool has_a = lists(route, a), has_b = lists(route, b);
        if ((has_a || has_b) && !(has_a && has_b && route->shared_subjects))
            return route;
    }
    return NULL;
}

void sz_check_issuers(struct sz_builder *b)
{
    const struct sz_conf *conf = b->conf;
    const struct sz_raw_issuer *raw = b->raw->issuers.v;
    for (size_t i = 0; i < conf->issuers_n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (conf->issuers[i].issuer.p == NULL || !sz_eq(conf->issuers[i].issuer, conf->issuers[k].issuer))
                continue;
            const struct sz_conf_route *route = tells_apart(conf, k, i);
            if (route != NULL || conf->routes_n == 0)
                sz_mistake(b->l, sz_node_get(raw[i].head.node, "issuer"),
                           "issuers '%.*s' and '%.*s' have the same 'issuer'; a token could not be told apart, keep "
                           "one, or let "
                           "every route with one of them list both and say 'shared_subjects: true'%s%.*s",
                           SZ_FMT(conf->issuers[k].name), SZ_FMT(conf->issuers[i].name),
                           route != NULL ? ": not so " : "", SZ_FMT(route != NULL ? route->id : SZ_NONE));
        }
    }
}
