/*
 * OpenFGA 1.22.1 itself, with its store in memory: the remote client's whole path, following its changes as a replica
 * while somebody writes at random, and the same random questions to it and to the embedded engine.
 */
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "fga/openfga.h"
#include "integration/harness.h"

#define KEY   "a-preshared-key"
#define ASKER "k-0123456789abcdef0123456789abcdef" /* of the gateway */
#define JSON  "Content-Type: application/json\r\n"

static struct {
    struct proc proc;
    uint16_t port, grpc;
    char program[512], store[32], model[32];
} fga;
static struct gateway gateway;

static const char model_text[] = "model\n"
                                 "  schema 1.1\n"
                                 "type user\n"
                                 "type group\n"
                                 "  relations\n"
                                 "    define member: [user, user:*, group#member]\n"
                                 "type folder\n"
                                 "  relations\n"
                                 "    define parent: [folder]\n"
                                 "    define viewer: [user, group#member, user with at] or viewer from parent\n"
                                 "type doc\n"
                                 "  relations\n"
                                 "    define parent: [folder]\n"
                                 "    define owner: [user, group#member]\n"
                                 "    define banned: [user, user:*, group#member]\n"
                                 "    define editor: [user, user with at, group#member with at] or owner\n"
                                 "    define viewer: [user, user:*] or editor or viewer from parent\n"
                                 "    define reader: viewer but not banned\n"
                                 "    define both: viewer and editor\n"
                                 "    define odd: (viewer and owner) or (editor but not banned)\n"
                                 "condition at(x: int) {\n"
                                 "  x > 1\n"
                                 "}\n";

static void end_all(void)
{
    if (gateway.config != NULL)
        stop_gateway(&gateway);
    proc_stop(&fga.proc);
    scratch_remove();
}

TestSuite(openfga, .fini = end_all, .timeout = 180);

/* ---- the server -------------------------------------------------------------------------------------------------- */

static json_t *tell(const char *method, const char *path, const char *body, int status)
{
    struct http1_response r = {0};
    int got = http1_ask(fga.port, method, path, KEY, JSON, body, &r);
    cr_assert_eq(got, status, "%s %s %s: expected %d, got %d\n%s", method, path, body != NULL ? body : "", status, got,
                 r.body.p != NULL ? r.body.p : "");
    json_t *answer = json_loadb(r.body.p != NULL ? r.body.p : "", r.body.n, 0, NULL);
    http1_response_fini(&r);
    return answer;
}

static json_t *tell_store(const char *what, const char *body, int status)
{
    char path[256];
    snprintf(path, sizeof(path), "/stores/%s/%s", fga.store, what);
    return tell("POST", path, body, status);
}

static struct sz_model *parse_model(void)
{
    struct sz_problems problems;
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(sz_cstr(model_text), &problems);
    cr_assert_not_null(m);
    sz_problems_fini(&problems);
    return m;
}

static void make_store(void)
{
    struct sz_model *m = parse_model();
    json_t *json = sz_model_json_write(m), *answer;
    char *text = json_dumps(json, JSON_COMPACT);
    answer = tell("POST", "/stores", "{\"name\":\"interop\"}", 201);
    snprintf(fga.store, sizeof(fga.store), "%s", json_string_value(json_object_get(answer, "id")));
    json_decref(answer);
    answer = tell_store("authorization-models", text, 201);
    snprintf(fga.model, sizeof(fga.model), "%s", json_string_value(json_object_get(answer, "authorization_model_id")));
    json_decref(answer);
    json_decref(json);
    free(text);
    sz_model_free(m);
}

static void start_server(void)
{
    const char *found = program_find("openfga");
    char http[32], grpc[32];
    if (found == NULL)
        cr_skip_test("no openfga here: script/peers builds it");
    snprintf(fga.program, sizeof(fga.program), "%s", found);
    fga.port = free_port();
    fga.grpc = free_port();
    snprintf(http, sizeof(http), "127.0.0.1:%u", (unsigned)fga.port);
    snprintf(grpc, sizeof(grpc), "127.0.0.1:%u", (unsigned)fga.grpc);
    const char *const argv[] = {fga.program,
                                "run",
                                "--datastore-engine=memory",
                                "--http-addr",
                                http,
                                "--grpc-addr",
                                grpc,
                                "--playground-enabled=false",
                                "--metrics-enabled=false",
                                "--log-level=none",
                                "--authn-method=preshared",
                                "--authn-preshared-keys=" KEY,
                                NULL};
    cr_assert(proc_start(&fga.proc, "openfga", fga.port, argv));
    for (int i = 0, status = 0; i < 500 && status != 200; i++) {
        status = http1_ask(fga.port, "GET", "/healthz", NULL, NULL, NULL, NULL);
        usleep(20 * 1000);
    }
    make_store();
}

static void write_tuple(const char *user, const char *relation, const char *object, const char *condition, bool delete)
{
    char body[1024], with[256] = "";
    if (condition != NULL)
        snprintf(with, sizeof(with), ",\"condition\":{\"name\":\"at\",\"context\":%s}", condition);
    snprintf(body, sizeof(body),
             "{\"%s\":{\"tuple_keys\":[{\"user\":\"%s\",\"relation\":\"%s\",\"object\":\"%s\"%s}],\"%s\":\"ignore\"}}",
             delete ? "deletes" : "writes", user, relation, object, with, delete ? "on_missing" : "on_duplicate");
    json_decref(tell_store("write", body, 200));
}

/* 1, 0; an error fails the test. */
static int ask_server(const char *user, const char *relation, const char *object)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"tuple_key\":{\"user\":\"%s\",\"relation\":\"%s\",\"object\":\"%s\"},"
             "\"authorization_model_id\":\"%s\",\"context\":{\"x\":2},\"consistency\":\"HIGHER_CONSISTENCY\"}",
             user, relation, object, fga.model);
    json_t *answer = tell_store("check", body, 200);
    int allowed = json_is_true(json_object_get(answer, "allowed"));
    json_decref(answer);
    return allowed;
}

/* ---- the gateway in front of it ---------------------------------------------------------------------------------- */

static void start_gateway(const char *mode, const char *key, const char *top)
{
    char *yaml;
    scratch_write("key", sz_cstr(key));
    scratch_write("askers", SZ_S(ASKER "\n"));
    cr_assert(asprintf(&yaml,
                       "listen: [{address: \"127.0.0.1:{port}\", mode: api, keys_file: \"{dir}/askers\"}]\n"
                       "admin: {address: \"127.0.0.1:{admin}\"}\n"
                       "workers: 2\n%s"
                       "fga:\n"
                       "  mode: %s\n"
                       "  api_url: \"http://127.0.0.1:%u\"\n"
                       "  store_id: %s\n"
                       "  model_id: %s\n"
                       "  token_file: \"{dir}/key\"\n"
                       "upstreams: {up: {urls: [\"http://127.0.0.1:9\"]}}\n"
                       "routes: [{id: nothing, match: {path: /nothing}, public: true, upstream: up}]\n",
                       top, mode, (unsigned)fga.port, fga.store, fga.model) > 0);
    cr_assert(gateway_start(&gateway, yaml, 9));
    free(yaml);
}

/* 1, 0, or minus the status; source may be NULL. */
static int ask_gateway(const char *user, const char *relation, const char *type, const char *id, char source[16])
{
    char body[512];
    struct http1_response r = {0};
    snprintf(body, sizeof(body),
             "{\"user_id\":\"%s\",\"resource_type\":\"%s\",\"resource_id\":\"%s\",\"relation\":\"%s\","
             "\"context\":{\"x\":2}}",
             user, type, id, relation);
    int status = http1_ask(gateway.port, "POST", "/authz/check", ASKER, JSON, body, &r);
    json_t *answer = json_loadb(r.body.p != NULL ? r.body.p : "", r.body.n, 0, NULL);
    const json_t *allowed = json_object_get(answer, "allowed");
    const char *from = json_string_value(json_object_get(answer, "source"));
    if (source != NULL)
        snprintf(source, 16, "%s", from != NULL ? from : "");
    int result = status == 200 && json_is_boolean(allowed) ? json_is_true(allowed) : -status;
    json_decref(answer);
    http1_response_fini(&r);
    return result;
}

static void expect(const char *user, const char *relation, const char *id, int want, const char *what)
{
    int got = ask_gateway(user, relation, "doc", id, NULL);
    cr_expect_eq(got, want, "%s: %s %s doc:%s: expected %d, got %d", what, user, relation, id, want, got);
}

#define NO_CACHE "cache: {decisions: {capacity: 0}}\n"

Test(openfga, a_remote_store_from_end_to_end)
{
    start_server();
    write_tuple("group:g#member", "owner", "doc:1", NULL, false);
    write_tuple("user:anne", "member", "group:g", NULL, false);
    write_tuple("user:*", "viewer", "doc:2", NULL, false);
    write_tuple("user:bob", "banned", "doc:2", NULL, false);
    write_tuple("user:carl", "editor", "doc:2", "{}", false);
    start_gateway("remote", KEY, "");
    for (int i = 0; i < 2; i++) { /* asked, and kept */
        expect("anne", "reader", "1", 1, "through a group");
        expect("bob", "reader", "1", 0, "nobody there");
        expect("anne", "reader", "2", 1, "everybody");
        expect("bob", "reader", "2", 0, "but not he");
        expect("carl", "editor", "2", 1, "a condition and the context");
        expect("anne", "no_such", "1", -400, "a relation that is not there");
    }
    char source[16];
    cr_expect_eq(ask_gateway("anne", "owner", "doc", "1", source), 1);
    cr_expect_str_eq(source, "openfga");
}

Test(openfga, a_wrong_key_or_model_is_503)
{
    start_server();
    start_gateway("remote", "a-wrong-key", NO_CACHE);
    expect("anne", "reader", "1", -503, "the key");
    stop_gateway(&gateway);
    snprintf(fga.model, sizeof(fga.model), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    start_gateway("remote", KEY, NO_CACHE);
    int got = ask_gateway("anne", "reader", "doc", "1", NULL);
    cr_expect(got == -503 || got == -400, "the model: %d", got);
    stop_gateway(&gateway);
    proc_stop(&fga.proc);
    gateway.config = NULL;
}

Test(openfga, a_server_that_dies_and_comes_back)
{
    start_server();
    write_tuple("user:anne", "viewer", "doc:1", NULL, false);
    start_gateway("remote", KEY, "cache: {decisions: {ttl: 1ms, negative_ttl: 1ms}}\n");
    expect("anne", "viewer", "1", 1, "alive");
    kill(fga.proc.pid, SIGSTOP);
    expect("anne", "viewer", "2", -503, "hung");
    kill(fga.proc.pid, SIGCONT);
    bool again = false;
    for (int i = 0; i < 100 && !again; i++) {
        usleep(100 * 1000);
        again = ask_gateway("anne", "viewer", "doc", "1", NULL) == 1;
    }
    cr_expect(again, "it goes on again");
}

/* ---- a replica --------------------------------------------------------------------------------------------------- */

enum { USERS = 6, GROUPS = 4, FOLDERS = 4, DOCS = 6 };

static unsigned random_below(uint64_t *state, unsigned n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (unsigned)((*state >> 11) % n);
}

struct tuple {
    char user[32], relation[16], object[32];
    const char *condition; /* its context, NULL: none */
};

static void random_grantee(uint64_t *state, char out[32], bool everybody)
{
    unsigned which = random_below(state, 8);
    if (which < 5)
        snprintf(out, 32, "user:u%u", random_below(state, USERS));
    else if (which == 5 && everybody)
        snprintf(out, 32, "user:*");
    else
        snprintf(out, 32, "group:g%u#member", random_below(state, GROUPS));
}

/* One that the model admits; groups and folders lead upwards only, for nothing is told of cycles here. */
static struct tuple random_tuple(uint64_t *state)
{
    struct tuple t = {.condition = NULL};
    unsigned which = random_below(state, 10), low;
    switch (which) {
    case 0:
    case 1:
        low = random_below(state, GROUPS);
        snprintf(t.relation, sizeof(t.relation), "member");
        snprintf(t.object, sizeof(t.object), "group:g%u", low);
        if (low + 1 < GROUPS && random_below(state, 2) == 0)
            snprintf(t.user, sizeof(t.user), "group:g%u#member", low + 1 + random_below(state, GROUPS - low - 1));
        else
            snprintf(t.user, sizeof(t.user), random_below(state, 9) == 0 ? "user:*" : "user:u%u",
                     random_below(state, USERS));
        break;
    case 2:
        low = random_below(state, FOLDERS - 1);
        snprintf(t.relation, sizeof(t.relation), "parent");
        snprintf(t.object, sizeof(t.object), "folder:f%u", low);
        snprintf(t.user, sizeof(t.user), "folder:f%u", low + 1 + random_below(state, FOLDERS - low - 1));
        break;
    case 3:
        snprintf(t.relation, sizeof(t.relation), "viewer");
        snprintf(t.object, sizeof(t.object), "folder:f%u", random_below(state, FOLDERS));
        random_grantee(state, t.user, false);
        if (strncmp(t.user, "user:", 5) == 0 && random_below(state, 2) == 0)
            t.condition = random_below(state, 2) == 0 ? "{}" : random_below(state, 2) == 0 ? "{\"x\":1}" : "{\"x\":2}";
        break;
    case 4:
        snprintf(t.relation, sizeof(t.relation), "parent");
        snprintf(t.object, sizeof(t.object), "doc:d%u", random_below(state, DOCS));
        snprintf(t.user, sizeof(t.user), "folder:f%u", random_below(state, FOLDERS));
        break;
    case 5:
        snprintf(t.relation, sizeof(t.relation), "owner");
        snprintf(t.object, sizeof(t.object), "doc:d%u", random_below(state, DOCS));
        random_grantee(state, t.user, false);
        break;
    case 6:
        snprintf(t.relation, sizeof(t.relation), "banned");
        snprintf(t.object, sizeof(t.object), "doc:d%u", random_below(state, DOCS));
        random_grantee(state, t.user, true);
        break;
    case 7:
    case 8:
        snprintf(t.relation, sizeof(t.relation), "editor");
        snprintf(t.object, sizeof(t.object), "doc:d%u", random_below(state, DOCS));
        random_grantee(state, t.user, false);
        if (t.user[0] == 'g' || random_below(state, 2) == 0)
            t.condition = random_below(state, 2) == 0 ? "{}" : "{\"x\":3}";
        break;
    default:
        snprintf(t.relation, sizeof(t.relation), "viewer");
        snprintf(t.object, sizeof(t.object), "doc:d%u", random_below(state, DOCS));
        if (random_below(state, 5) == 0)
            snprintf(t.user, sizeof(t.user), "user:*");
        else
            snprintf(t.user, sizeof(t.user), "user:u%u", random_below(state, USERS));
    }
    return t;
}

static atomic_bool writing;
static atomic_uint written;

/* Deletes half of what it names; a tuple that is there with another condition is a conflict, and none of our business.
 */
static void *write_at_random(void *arg)
{
    uint64_t state = *(uint64_t *)arg;
    while (atomic_load(&writing)) {
        struct tuple t = random_tuple(&state);
        char body[512], with[128] = "", path[128];
        bool delete = random_below(&state, 2) == 0;
        if (t.condition != NULL && !delete)
            snprintf(with, sizeof(with), ",\"condition\":{\"name\":\"at\",\"context\":%s}", t.condition);
        snprintf(
            body, sizeof(body),
            "{\"%s\":{\"tuple_keys\":[{\"user\":\"%s\",\"relation\":\"%s\",\"object\":\"%s\"%s}],\"%s\":\"ignore\"}"
            "}",
            delete ? "deletes" : "writes", t.user, t.relation, t.object, with, delete ? "on_missing" : "on_duplicate");
        snprintf(path, sizeof(path), "/stores/%s/write", fga.store);
        (void)http1_ask(fga.port, "POST", path, KEY, JSON, body, NULL);
        atomic_fetch_add(&written, 1);
    }
    return NULL;
}

static void compare_everything(const char *what)
{
    static const char *const relations[] = {"owner", "editor", "viewer", "banned", "reader", "both", "odd"};
    char source[16];
    unsigned yes = 0;
    for (unsigned d = 0; d < DOCS; d++) {
        for (unsigned u = 0; u < USERS; u++) {
            const char *relation = relations[(d + u) % SZ_COUNT(relations)];
            char user[32], id[32], object[40];
            snprintf(user, sizeof(user), "user:u%u", u);
            snprintf(id, sizeof(id), "d%u", d);
            snprintf(object, sizeof(object), "doc:%s", id);
            int want = ask_server(user, relation, object), got = ask_gateway(user, relation, "doc", id, source);
            cr_expect_eq(got, want, "%s: %s %s %s: the store says %d, the replica %d", what, user, relation, object,
                         want, got);
            cr_expect_str_eq(source, "replica", "%s", what);
            yes += want == 1;
        }
    }
    cr_log_info("%s: %u of %u are a yes", what, yes, DOCS * USERS);
}

static bool loaded(void)
{
    return gateway_logged(&gateway, "the store is copied");
}

Test(openfga, a_replica_follows_a_random_writer)
{
    static uint64_t seeds[2] = {UINT64_C(0x1234567), UINT64_C(0x89abcdef0)};
    pthread_t writers[2];
    start_server();
    for (unsigned i = 0; i < 350; i++) { /* several pages */
        char object[32];
        snprintf(object, sizeof(object), "doc:filler%u", i);
        write_tuple("user:anne", "viewer", object, NULL, false);
    }
    write_tuple("user:anne", "viewer", "doc:steady", NULL, false);
    write_tuple("user:bob", "banned", "doc:steady", NULL, false);
    atomic_store(&writing, true);
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&writers[i], NULL, write_at_random, &seeds[i]), 0);
    start_gateway("replica\n  changes: {poll: 100ms, max_lag: 5s}", KEY, NO_CACHE);
    bool by_wire = false, by_copy = false;
    for (int i = 0; i < 300 && !by_copy; i++) { /* whoever answers, before, during and after the load: the same */
        char source[16];
        cr_expect_eq(ask_gateway("anne", "reader", "doc", "steady", source), 1, "from %s", source);
        by_wire |= strcmp(source, "openfga") == 0;
        by_copy = strcmp(source, "replica") == 0;
        expect("bob", "reader", "steady", 0, "steady");
    }
    cr_expect(by_copy, "it is loaded in the end (asked by wire before: %d)", by_wire);
    cr_expect(loaded());
    for (int round = 0; round < 4; round++) {
        usleep(1500 * 1000);
        atomic_store(&writing, false);
        for (size_t i = 0; i < 2; i++)
            pthread_join(writers[i], NULL);
        usleep(600 * 1000); /* the stated staleness, and then some */
        char what[64];
        snprintf(what, sizeof(what), "round %d, %u writes", round, atomic_load(&written));
        compare_everything(what);
        atomic_store(&writing, true);
        for (size_t i = 0; i < 2; i++) {
            seeds[i] += 0x9e3779b9;
            cr_assert_eq(pthread_create(&writers[i], NULL, write_at_random, &seeds[i]), 0);
        }
    }
    atomic_store(&writing, false);
    for (size_t i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    cr_expect_gt(atomic_load(&written), 500);
}

Test(openfga, a_replica_that_hears_nothing_asks_the_store)
{
    char source[16];
    start_server();
    write_tuple("user:anne", "viewer", "doc:1", NULL, false);
    start_gateway("replica\n  timeout: 300ms\n  retries: 0\n  changes: {poll: 50ms, max_lag: 500ms}", KEY, NO_CACHE);
    cr_assert(loaded());
    cr_expect_eq(ask_gateway("anne", "viewer", "doc", "1", source), 1);
    cr_expect_str_eq(source, "replica");
    kill(fga.proc.pid, SIGSTOP);
    usleep(100 * 1000);
    cr_expect_eq(ask_gateway("anne", "viewer", "doc", "1", source), 1, "fresh enough");
    usleep(900 * 1000);
    cr_expect_eq(ask_gateway("anne", "viewer", "doc", "1", source), -503, "too old to be believed, and nobody to ask");
    kill(fga.proc.pid, SIGCONT);
    bool again = false;
    for (int i = 0; i < 200 && !again; i++) {
        usleep(100 * 1000);
        again = ask_gateway("anne", "viewer", "doc", "1", source) == 1 && strcmp(source, "replica") == 0;
    }
    cr_expect(again, "it has caught up");
}

Test(openfga, followed_changes_end_what_was_kept)
{
    start_server();
    write_tuple("user:anne", "viewer", "doc:1", NULL, false);
    start_gateway("remote\n  changes: {poll: 100ms}", KEY, "cache: {decisions: {ttl: 1h, negative_ttl: 1h}}\n");
    usleep(500 * 1000);
    expect("anne", "viewer", "1", 1, "granted");
    expect("bob", "viewer", "1", 0, "not granted");
    write_tuple("user:anne", "viewer", "doc:1", NULL, true);
    write_tuple("user:bob", "viewer", "doc:1", NULL, false);
    usleep(800 * 1000);
    expect("anne", "viewer", "1", 0, "taken away");
    expect("bob", "viewer", "1", 1, "granted since");
}

/* ---- the same questions to both engines -------------------------------------------------------------------------- */

struct question {
    char user[32], relation[16], object[32], context[32];
    struct tuple contextual[2];
    struct sz_tuple_key keys[2];
    struct sz_check check;
};

static struct sz_tuple_key key_of(const struct tuple *t)
{
    return (struct sz_tuple_key){sz_cstr(t->user), sz_cstr(t->relation), sz_cstr(t->object),
                                 t->condition != NULL ? SZ_S("at") : SZ_NONE, sz_cstr(t->condition)};
}

static void random_question(uint64_t *state, struct question *q)
{
    static const char *const relations[] = {"owner", "editor", "viewer", "banned", "reader",
                                            "both",  "odd",    "parent", "member", "nope"};
    static const char *const contexts[] = {"", "{}", "{\"x\":1}", "{\"x\":5}", "{\"x\":\"a\"}", "{\"y\":1}"};
    unsigned kind = random_below(state, 12);
    random_grantee(state, q->user, true);
    if (random_below(state, 40) == 0)
        snprintf(q->user, sizeof(q->user), "stranger:s");
    snprintf(q->relation, sizeof(q->relation), "%s", relations[random_below(state, kind > 9 ? 10 : 7)]);
    if (kind < 10)
        snprintf(q->object, sizeof(q->object), "doc:d%u", random_below(state, DOCS));
    else
        snprintf(q->object, sizeof(q->object), kind == 10 ? "folder:f%u" : "group:g%u", random_below(state, FOLDERS));
    snprintf(q->context, sizeof(q->context), "%s", contexts[random_below(state, SZ_COUNT(contexts))]);
    q->check = (struct sz_check){.key = {sz_cstr(q->user), sz_cstr(q->relation), sz_cstr(q->object), SZ_NONE, SZ_NONE},
                                 .context = q->context[0] != '\0' ? sz_cstr(q->context) : SZ_NONE,
                                 .contextual = q->keys,
                                 .contextual_n = random_below(state, 3)};
    for (size_t i = 0; i < q->check.contextual_n; i++) {
        q->contextual[i] = random_tuple(state);
        if (random_below(state, 30) == 0) /* one that the model does not admit */
            snprintf(q->contextual[i].relation, sizeof(q->contextual[i].relation), "reader");
        q->keys[i] = key_of(&q->contextual[i]);
    }
}

/* Both stores get the same tuples. */
static void fill(struct sz_engine *e, const struct sz_program *p, uint64_t *state, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct tuple t = random_tuple(state);
        struct sz_tuple_key key = key_of(&t);
        struct sz_fault fault;
        struct sz_write w = {.writes = &key, .writes_n = 1};
        if (sz_engine_write(e, p, &w, sz_wall_read(), &fault) == 0)
            write_tuple(t.user, t.relation, t.object, t.condition, false);
    }
}

static void ask_batch(const struct question *q, size_t n, struct sz_authz_answer *answers)
{
    struct sz_buf body = {0};
    struct http1_response r = {0};
    char path[128];
    sz_buf_printf(&body, "{\"authorization_model_id\":\"%s\",\"checks\":[", fga.model);
    for (size_t i = 0; i < n; i++) {
        sz_buf_printf(&body, "%s{", i > 0 ? "," : "");
        cr_assert_eq(sz_fga_write_question(&body, &q[i].check), 0);
        sz_buf_printf(&body, ",\"correlation_id\":\"%zu\"}", i);
    }
    sz_buf_printf(&body, "]}");
    snprintf(path, sizeof(path), "/stores/%s/batch-check", fga.store);
    int status = http1_ask(fga.port, "POST", path, KEY, JSON, body.p, &r);
    cr_assert_eq(status, 200, "%d %s\n%s", status, r.body.p, body.p);
    cr_assert_eq(sz_fga_read_batch(200, sz_slice(r.body.p, r.body.n), answers, n), SZ_BREAKER_SUCCESS);
    http1_response_fini(&r);
    sz_buf_fini(&body);
}

static const char *name_of(enum sz_authz_outcome outcome)
{
    return outcome == SZ_AUTHZ_ALLOWED  ? "yes"
           : outcome == SZ_AUTHZ_DENIED ? "no"
           : outcome == SZ_AUTHZ_ERROR  ? "error"
                                        : "unavailable";
}

static void compare(struct sz_engine *e, const struct sz_program *p, const struct question *q,
                    const struct sz_authz_answer *theirs)
{
    struct sz_fault fault = {0};
    uint64_t steps = 1000000;
    int result = sz_engine_check(e, p, &q->check, &steps, &fault);
    enum sz_authz_outcome ours = result == SZ_ENGINE_YES  ? SZ_AUTHZ_ALLOWED
                                 : result == SZ_ENGINE_NO ? SZ_AUTHZ_DENIED
                                                          : SZ_AUTHZ_ERROR;
    struct sz_buf text = {0};
    cr_assert_eq(sz_fga_write_question(&text, &q->check), 0);
    cr_expect(ours == theirs->outcome && (ours != SZ_AUTHZ_ERROR || fault.code == theirs->code),
              "%s\n  OpenFGA: %s %d %s\n  engine: %s %d %s", text.p, name_of(theirs->outcome), theirs->code,
              theirs->message.s, name_of(ours), ours == SZ_AUTHZ_ERROR ? fault.code : 0,
              ours == SZ_AUTHZ_ERROR ? fault.message.s : "");
    sz_buf_fini(&text);
}

Test(openfga, both_engines_give_the_same_answers_and_codes)
{
    enum { ROUNDS = 12, BATCHES = 6, N = 50 };
    static struct question q[N];
    static struct sz_authz_answer answers[N];
    const char *seed = getenv("SUBZERO_SEED");
    uint64_t state = seed != NULL ? strtoull(seed, NULL, 10) : UINT64_C(0x5eed0f0fa);
    unsigned outcomes[4] = {0};
    start_server();
    for (int round = 0; round < ROUNDS; round++) {
        struct sz_model *m = parse_model();
        struct sz_engine *e = sz_engine_new();
        struct sz_fault fault;
        const struct sz_program *p = sz_engine_add_model(e, m, &fault);
        cr_assert_not_null(p);
        make_store();
        fill(e, p, &state, 30);
        for (int batch = 0; batch < BATCHES; batch++) {
            for (size_t i = 0; i < N; i++)
                random_question(&state, &q[i]);
            ask_batch(q, N, answers);
            for (size_t i = 0; i < N; i++) {
                compare(e, p, &q[i], &answers[i]);
                outcomes[answers[i].outcome]++;
            }
        }
        sz_engine_free(e);
        sz_model_free(m);
    }
    cr_log_info("%u yes, %u no, %u errors", outcomes[0], outcomes[1], outcomes[2]);
    cr_expect(outcomes[0] > 200 && outcomes[1] > 200 && outcomes[2] > 200, "%u yes, %u no, %u errors", outcomes[0],
              outcomes[1], outcomes[2]);
}
