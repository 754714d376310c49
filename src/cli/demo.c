/* The configuration is written as a user would write it, so that the demo shows nothing that a file cannot do. */
#include "cli/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "subzero/crypto.h"
#include "subzero/demo.h"
#include "subzero/fleet.h"
#include "subzero/issuers.h"

static const char yaml[] =
    "listen:\n"
    "  - address: %s\n"
    "admin: {address: %s}\n"
    "user: nobody\n"
    "issuers:\n"
    "  demo:\n"
    "    issuer: " SZ_DEMO_ISSUER "\n"
    "    audiences: [\"" SZ_DEMO_AUDIENCE "\"]\n"
    "    algorithms: [%s]\n"
    "    jwks_file: %s\n"
    "fga:\n"
    "  mode: embedded\n"
    "  model: |\n"
    "    model\n"
    "      schema 1.1\n"
    "    type user\n"
    "    type group\n"
    "      relations\n"
    "        define member: [user]\n"
    "    type folder\n"
    "      relations\n"
    "        define parent: [folder]\n"
    "        define viewer: [user, group#member] or viewer from parent\n"
    "    type document\n"
    "      relations\n"
    "        define parent: [folder]\n"
    "        define owner: [user]\n"
    "        define viewer: [user] or owner or viewer from parent\n"
    "  tuples: |\n"
    "    - {user: \"user:alice\", relation: viewer, object: \"document:roadmap\"}\n"
    "    - {user: \"user:bob\", relation: owner, object: \"document:budget\"}\n"
    "    - {user: \"user:carol\", relation: member, object: \"group:engineering\"}\n"
    "    - {user: \"group:engineering#member\", relation: viewer, object: \"folder:engineering\"}\n"
    "    - {user: \"folder:engineering\", relation: parent, object: \"folder:specs\"}\n"
    "    - {user: \"folder:specs\", relation: parent, object: \"document:api\"}\n"
    "upstreams:\n"
    "  echo:\n"
    "    urls: [\"http://127.0.0.1:%u\"]\n"
    "routes:\n"
    "  - id: hello\n"
    "    match: {path: /public/*}\n"
    "    public: true\n"
    "    upstream: echo\n"
    "  - id: documents.read\n"
    "    match: {methods: [GET], path: \"/documents/{id}\"}\n"
    "    auth: {issuers: [demo], scopes: [\"read:documents\"]}\n"
    "    authorize:\n"
    "      user: \"user:{claims.sub}\"\n"
    "      relation: viewer\n"
    "      object: \"document:{path.id}\"\n"
    "      contextual_tuples:\n"
    "        - {user: \"user:{claims.sub}\", relation: member, object: \"group:{claims.groups[]}\"}\n"
    "    upstream: echo\n";

static const char text[] =
    "\n"
    "Subzero's demo: http://%s (admin on http://%s).  Loopback only; Ctrl-C ends it.\n"
    "\n"
    "  curl -i http://%s/public/hello           # 200, without a token\n"
    "  curl -i http://%s/documents/roadmap      # 401, a token is required\n"
    "\n"
    "  ALICE=$(%s token mint --demo --sub alice --scope \"read:documents\")\n"
    "  BOB=$(%s token mint --demo --sub bob --scope \"read:documents\")\n"
    "  NONE=$(%s token mint --demo --sub alice)\n"
    "  CAROL=$(%s token mint --demo --sub carol --scope \"read:documents\")\n"
    "  DAVE=$(%s token mint --demo --sub dave --scope \"read:documents\" --claim 'groups=[\"engineering\"]')\n"
    "\n"
    "  curl -i -H \"Authorization: Bearer $ALICE\" http://%s/documents/roadmap   # 200, alice is a viewer\n"
    "  curl -i -H \"Authorization: Bearer $BOB\" http://%s/documents/roadmap     # 403 not_permitted\n"
    "  curl -i -H \"Authorization: Bearer $NONE\" http://%s/documents/roadmap    # 403 insufficient_scope\n"
    "\n"
    "The document 'api' lies in the folder specs, that one in engineering, whose viewers are the group's members:\n"
    "\n"
    "  curl -i -H \"Authorization: Bearer $CAROL\" http://%s/documents/api       # 200, carol is a member\n"
    "  curl -i -H \"Authorization: Bearer $DAVE\" http://%s/documents/api        # 200, dave's token says he is\n"
    "  curl -i -H \"Authorization: Bearer $ALICE\" http://%s/documents/api       # 403 not_permitted\n"
    "\n";

static int load_key(struct sz_demo *demo, struct sz_text *why)
{
    struct sz_buf key = {0};
    int rc = sz_demo_key_load(SZ_DEMO_KEY_MAKE, &key, why);
    if (rc == 0) {
        struct sz_signer *signer = sz_signer_new(sz_buf_slice(&key), why);
        rc = signer == NULL ? -EINVAL : sz_signer_jwks(signer, &demo->jwks);
        if (signer != NULL) {
            demo->alg = sz_signer_default_alg(signer);
            sz_signer_free(&signer);
        }
    }
    if (key.p != NULL)
        sz_wipe(key.p, key.n);
    sz_buf_fini(&key);
    return rc;
}

int sz_demo_init(struct sz_demo *demo, const char *address, const char *admin, struct sz_text *why)
{
    struct sz_addr loopback;
    *demo = (struct sz_demo){.address = address != NULL ? address : "127.0.0.1:8080",
                             .admin = admin != NULL ? admin : "127.0.0.1:9901",
                             .upstream = {.kind = SZ_LISTEN_DEMO, .fd = -1}};
    int rc = sz_addr_parse(SZ_S("127.0.0.1"), &loopback);
    if (rc == 0)
        rc = load_key(demo, why);
    return rc != 0 ? rc : sz_listener_bind(&demo->upstream, loopback, 0, why);
}

static int write_keys(struct sz_demo *demo)
{
    snprintf(demo->keys, sizeof(demo->keys), "/tmp/subzero-demo-jwks-XXXXXX");
    int fd = mkstemp(demo->keys), rc = 0;
    if (fd < 0 || write(fd, demo->jwks.p, demo->jwks.n) != (ssize_t)demo->jwks.n)
        rc = -errno;
    if (fd >= 0)
        close(fd);
    return rc;
}

/*
 * The key dies with the process, so another demo on the same Redis shares nothing with it.  The file keeps its name for
 * the life of the process: a reload must not see another configuration.
 */
static int write_fleet_key(struct sz_demo *demo)
{
    uint8_t key[SZ_FLEET_KEY];
    if (demo->fleet[0] == '\0') {
        sz_random(key, sizeof(key));
        demo->fleet[sz_b64_encode(key, sizeof(key), demo->fleet)] = '\0';
        sz_random(key, 8);
        snprintf(demo->fleet_file, sizeof(demo->fleet_file), "/tmp/subzero-demo-fleet-");
        sz_hex_encode(key, 8, demo->fleet_file + strlen(demo->fleet_file));
        sz_wipe(key, sizeof(key));
    }
    int fd = open(demo->fleet_file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), rc = 0;
    size_t n = strlen(demo->fleet);
    if (fd < 0 || write(fd, demo->fleet, n) != (ssize_t)n)
        rc = errno != 0 ? -errno : -EIO;
    if (fd >= 0)
        close(fd);
    return rc;
}

static int write_files(struct sz_demo *demo, const char *redis)
{
    int rc = write_keys(demo);
    return rc == 0 && redis != NULL ? write_fleet_key(demo) : rc;
}

struct sz_conf *sz_demo_load(void *arg, struct sz_mistakes *m)
{
    struct sz_demo *demo = arg;
    struct sz_buf config = {0};

    sz_demo_loaded(demo);
    const char *redis = getenv("REDIS_URL");
    if (redis != NULL && redis[0] == '\0')
        redis = NULL;
    int rc = write_files(demo, redis);
    if (rc != 0) {
        sz_mistakes_add(m, SZ_S("demo"), 0, 0, false, "cannot write the demo's keys to /tmp: %s", strerror(-rc));
        return NULL;
    }
    sz_buf_printf(&config, yaml, demo->address, demo->admin, sz_alg_name(demo->alg), demo->keys, demo->upstream.port);
    if (redis != NULL)
        sz_buf_printf(&config, "redis: {url: \"${REDIS_URL}\", key_file: %s}\n", demo->fleet_file);
    struct sz_conf *conf = sz_conf_load_text(sz_buf_slice(&config), "demo", m);
    sz_buf_fini(&config);
    return conf;
}

void sz_demo_explain(const struct sz_demo *demo)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        n = snprintf(self, sizeof(self), "subzero");
    self[n] = '\0';
    const char *at = demo->address;
    printf(text, at, demo->admin, at, at, self, self, self, self, self, at, at, at, at, at, at);
    fflush(stdout);
}

void sz_demo_loaded(struct sz_demo *demo)
{
    if (demo->keys[0] != '\0')
        unlink(demo->keys);
    demo->keys[0] = '\0';
    if (demo->fleet_file[0] != '\0')
        unlink(demo->fleet_file);
}

void sz_demo_end(struct sz_demo *demo)
{
    sz_demo_loaded(demo);
    sz_buf_fini(&demo->jwks);
    sz_wipe(demo->fleet, sizeof(demo->fleet));
}
