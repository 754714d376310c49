/* A route's CORS rule (Fetch standard).  Origins must be written as browsers send them: they are compared as bytes. */
#include "conf/build.h"

static struct sz_strings lowered(struct sz_builder *b, struct sz_strings list)
{
    struct sz_slice *v = sz_pool_alloc(b->l->pool, list.n * sizeof(*v));
    for (size_t i = 0; i < list.n; i++)
        v[i] = sz_pool_lower(b->l->pool, list.v[i]);
    return (struct sz_strings){v, list.n};
}

/* scheme "://" host [":" port], no path. */
static bool origin_ok(struct sz_slice s)
{
    size_t skip = sz_starts_with(s, SZ_S("https://")) ? 8 : sz_starts_with(s, SZ_S("http://")) ? 7 : 0;
    struct sz_slice rest = sz_from(s, skip);
    for (size_t i = 0; i < rest.n; i++) {
        char c = rest.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c != '\0' && strchr("-._:[]", c) != NULL)))
            return false;
    }
    return skip > 0 && rest.n > 0;
}

static bool header_ok(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return false;
    }
    return s.n > 0;
}

static void header_names(struct sz_builder *b, const struct sz_node *node, const char *key, struct sz_strings list)
{
    for (size_t i = 0; i < list.n; i++) {
        if (!header_ok(list.v[i]))
            sz_mistake(b->l, sz_node_item(node, key, i), "'%.*s' in '%s' is no header name", SZ_FMT(list.v[i]), key);
    }
}

static void origins(struct sz_builder *b, const struct sz_raw_cors *raw, struct sz_conf_cors *out)
{
    const struct sz_node *at = sz_node_get(raw->head.node, "origins");
    for (size_t i = 0; i < out->origins.n; i++) {
        if (sz_eq(out->origins.v[i], SZ_S("*")))
            out->any_origin = true;
        else if (!origin_ok(out->origins.v[i]))
            sz_mistake(
                b->l, at,
                "'%.*s' is no origin; write https://app.example.com, with a port where it has one, without a path",
                SZ_FMT(out->origins.v[i]));
    }
    if (out->any_origin && out->origins.n > 1)
        sz_mistake(b->l, at, "\"*\" already means every origin; remove it or the others");
    if (out->any_origin && raw->credentials)
        sz_mistake(b->l, sz_node_key(raw->head.node, "credentials"),
                   "every origin ([\"*\"]) with credentials would hand each user's data to any site; name the origins");
}

/* What a preflight grants when the file does not say: the route's own methods. */
static struct sz_strings methods(const struct sz_raw_route *route)
{
    static const struct sz_slice all[] = {{"DELETE", 6}, {"GET", 3},  {"HEAD", 4},
                                          {"PATCH", 5},  {"POST", 4}, {"PUT", 3}};
    if (route->cors.methods.n > 0)
        return route->cors.methods;
    return route->match.methods.n > 0 ? route->match.methods : (struct sz_strings){all, SZ_COUNT(all)};
}

void sz_build_cors(struct sz_builder *b, const struct sz_raw_route *route, struct sz_conf_route *out)
{
    const struct sz_raw_cors *raw = &route->cors;
    if (raw->head.node == NULL)
        return;
    out->cors = (struct sz_conf_cors){
        .on = true,
        .credentials = raw->credentials,
        .origins = lowered(b, raw->origins),
        .methods = methods(route),
        .headers = lowered(b, raw->headers),
        .expose = raw->expose,
        .max_age = raw->max_age,
    };
    origins(b, raw, &out->cors);
    header_names(b, raw->head.node, "headers", raw->headers);
    header_names(b, raw->head.node, "expose", raw->expose);
    for (size_t i = 0; i < raw->methods.n; i++) {
        if (!sz_method_ok(raw->methods.v[i]))
            sz_mistake(b->l, sz_node_item(raw->head.node, "methods", i),
                       "'%.*s' is no method; methods are upper-case words, such as GET", SZ_FMT(raw->methods.v[i]));
    }
}
