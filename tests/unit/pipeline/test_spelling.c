/*
 * Z4 by trial: one resource, spelled in random ways that upstreams read alike, is judged by one route or refused.  What
 * goes upstream is the path that was judged.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "unit/pipeline/kit.h"

static struct kit kit;
static uint64_t state = 0x853c49e6748fea9bu;

static unsigned dice(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % n;
}

/* What a segment is made of: as patterns write it. */
static const char *const letters[] = {"a", "b", "~", ":", "@", "+", "%2A", "%20", "!"};

static void random_routes(struct sz_buf *out)
{
    for (unsigned i = 0; i < 12; i++) {
        unsigned n = 1 + dice(3);
        sz_buf_printf(out, "  - {id: r%u, match: {path: \"/r%u", i, dice(2));
        for (unsigned k = 0; k < n; k++) {
            unsigned kind = dice(8);
            sz_buf_printf(out, "/");
            if (kind < 2)
                sz_buf_printf(out, "{p%u}", k);
            else if (kind < 3 && k + 1 == n)
                sz_buf_printf(out, "*");
            else
                sz_buf_printf(out, "%s%s", letters[dice(SZ_COUNT(letters))], dice(2) ? "" : letters[dice(3)]);
        }
        /* Patterns may come twice: the methods tell them apart. */
        sz_buf_printf(out, "\", methods: [M%c]}, public: true, upstream: up}\n", 'A' + (char)i);
    }
}

static void spell_octet(struct sz_buf *out, unsigned char c)
{
    static const char upper[] = "0123456789ABCDEF", lower[] = "0123456789abcdef";
    const char *digits = dice(2) ? upper : lower;
    bool must = c == ' ', may = dice(3) == 0;
    if (must || may)
        sz_buf_printf(out, "%%%c%c", digits[c >> 4], digits[c & 15]);
    else
        sz_buf_printf(out, "%c", c);
}

/* Two spellings of one random path: as the upstream decodes it, and with everything that it makes no difference of. */
static void random_paths(struct sz_buf *plain, struct sz_buf *odd)
{
    static const char octets[] = "aab~:@+* !";
    unsigned n = 1 + dice(3), first = dice(2);
    sz_buf_printf(plain, "/r%u", first);
    sz_buf_printf(odd, "%s/%sr%u", dice(8) ? "" : "/x/..", dice(8) ? "" : "./", first);
    for (unsigned i = 0; i < n; i++) {
        unsigned length = 1 + dice(2);
        sz_buf_printf(plain, "/");
        sz_buf_printf(odd, "/%s", dice(8) ? "" : "/");
        for (unsigned k = 0; k < length; k++) {
            char c = octets[dice(sizeof(octets) - 1)];
            sz_buf_printf(plain, c == ' ' ? "%%20" : c == '*' ? "%%2A" : "%c", c);
            spell_octet(odd, (unsigned char)c);
        }
        if (dice(8) == 0)
            sz_buf_printf(odd, "%s", dice(2) ? ";x=1" : "%3b.css");
    }
}

/* The route that takes the method, or any of the pattern. */
static const struct sz_conf_route *route_of(const struct sz_buf *path, struct sz_slice method, enum sz_reason *reason)
{
    struct kit_request r = {.method = sz_pool_strdup(&kit.arena.pool, method),
                            .target = sz_pool_strdup(&kit.arena.pool, sz_buf_slice(path))};
    struct sz_txn *txn = kit_run(&kit, &r);
    const struct sz_conf_route *route = txn->match.route != NULL ? txn->match.route : txn->match.sibling;
    *reason = txn->decision.reason;
    cr_assert(!txn->proxy || sz_eq(txn->forward.target, txn->target.path));
    kit_end(txn);
    return route;
}

static struct sz_slice id_of(const struct sz_conf_route *route)
{
    return route != NULL ? route->id : SZ_S("none");
}

static bool ask(void)
{
    struct sz_buf plain = {0}, odd = {0};
    enum sz_reason reason;
    random_paths(&plain, &odd);
    const struct sz_conf_route *one = route_of(&plain, SZ_S("M"), &reason), *taken = route_of(&odd, SZ_S("M"), &reason);
    if (taken != NULL) {
        (void)route_of(&odd, taken->match.methods.v[0], &reason);
        cr_assert(taken == one || reason != SZ_REASON_allowed, "%.*s is %.*s, %.*s passes as %.*s",
                  SZ_FMT(sz_buf_slice(&plain)), SZ_FMT(id_of(one)), SZ_FMT(sz_buf_slice(&odd)), SZ_FMT(id_of(taken)));
    }
    sz_buf_fini(&plain);
    sz_buf_fini(&odd);
    return one != NULL && reason == SZ_REASON_allowed;
}

Test(spelling, one_resource_has_one_route, .timeout = 60)
{
    unsigned routed = 0;
    for (unsigned round = 0; round < 40; round++) {
        struct sz_buf routes = {0};
        random_routes(&routes);
        sz_buf_add(&routes, "", 1);
        kit_open(&kit, routes.p);
        for (unsigned i = 0; i < 300; i++)
            routed += ask();
        kit_close(&kit);
        sz_buf_fini(&routes);
    }
    cr_assert_gt(routed, 200, "only %u passed", routed);
}
