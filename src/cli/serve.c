/*
 * serve: from a configuration to a running gateway.  Everything that needs root or blocks happens here, in this order:
 * harden, read, bind, drop, run.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/demo.h"
#include "cli/mistakes.h"
#include "cli/process.h"
#include "edge/overrides.h"
#include "edge/reload.h"
#include "edge/server.h"
#include "subzero/crypto.h"
#include "subzero/log.h"

struct options {
    const char *file, *address, *admin;
    bool demo, help;
};

struct serve {
    struct options options;
    struct sz_demo demo;
    struct sz_server *server;
    struct sz_fga_hub *fga;
};
static struct serve serve;

static const char usage_text[] =
    "usage: subzero serve [-c FILE]\n"
    "       subzero serve --demo [--address 127.0.0.1:8080] [--admin 127.0.0.1:9901]\n"
    "\n"
    "Runs the gateway.  Without -c and --demo the configuration comes from the environment\n"
    "('subzero config reference' names the variables).  SIGHUP reloads, SIGTERM drains.\n"
    "\n"
    "  -c FILE    configuration in YAML; 'subzero check -c FILE' looks at it without serving\n"
    "  --demo     an issuer, an engine and an upstream inside the process, on loopback\n";

static const char *contradiction(const struct options *o)
{
    if (o->demo && o->file != NULL)
        return "give either -c or --demo";
    if (!o->demo && (o->address != NULL || o->admin != NULL))
        return "--address and --admin are the demo's; elsewhere the configuration names them";
    return NULL;
}

/* False: what is wrong has been said. */
static bool parse(int argc, char **argv, struct options *o)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},  {"demo", no_argument, NULL, 'd'},
        {"address", required_argument, NULL, 'l'}, {"admin", required_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    *o = (struct options){0};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            o->file = optarg;
            break;
        case 'd':
            o->demo = true;
            break;
        case 'l':
            o->address = optarg;
            break;
        case 'a':
            o->admin = optarg;
            break;
        case 'h':
            o->help = true;
            break;
        default:
            return false;
        }
    }
    const char *wrong = optind < argc ? "takes options alone" : contradiction(o);
    if (wrong != NULL)
        fprintf(stderr, "subzero serve: %s\n", wrong);
    return wrong == NULL;
}

static struct sz_conf *load_file(void *arg, struct sz_mistakes *m)
{
    return sz_conf_load_file(arg, m);
}

static struct sz_conf *load_environment(void *arg, struct sz_mistakes *m)
{
    (void)arg;
    return sz_conf_load_environment(m);
}

static struct sz_conf_source source_of(struct serve *s)
{
    if (s->options.demo)
        return (struct sz_conf_source){sz_demo_load, &s->demo};
    if (s->options.file != NULL)
        return (struct sz_conf_source){load_file, (void *)(uintptr_t)s->options.file};
    return (struct sz_conf_source){load_environment, NULL};
}

static int fail(const char *why)
{
    fprintf(stderr, "subzero: %s\n", why);
    return SZ_EXIT_NO;
}

/* The demo is for the machine it runs on. */
static bool loopback_only(const struct sz_conf *conf)
{
    for (size_t i = 0; i < conf->listeners_n; i++) {
        if (!sz_addr_is_loopback(conf->listeners[i].ip))
            return false;
    }
    return sz_addr_is_loopback(conf->admin.ip);
}

static struct sz_snapshot *load(struct serve *s, struct sz_conf_source source)
{
    struct sz_mistakes mistakes;
    struct sz_snapshot *snapshot = NULL;

    sz_mistakes_init(&mistakes);
    struct sz_conf *conf = source.load(source.arg, &mistakes);
    if (conf != NULL && s->options.demo && !loopback_only(conf)) {
        sz_mistakes_add(&mistakes, SZ_S("demo"), 0, 0, false, "the demo listens on loopback alone");
        sz_conf_free(&conf);
    }
    if (conf != NULL) {
        sz_metrics_init(conf->workers + 1);
        s->fga = sz_fga_hub_new(&(struct sz_fga_clock){sz_mono_read, sz_wall_read});
        snapshot = sz_snapshot_new(conf, s->fga, &mistakes);
    }
    sz_demo_loaded(&s->demo);
    sz_cli_print_mistakes(&mistakes, stderr);
    sz_mistakes_fini(&mistakes);
    return snapshot;
}

/* A limit of open files that does not fit is met under load, when it is too late. */
static void note_files(struct sz_server *server, const struct sz_conf *conf)
{
    uint64_t wanted = 2 * (uint64_t)conf->limits.max_connections + 128, got = sz_process_raise_files(wanted);
    if (got < wanted)
        sz_server_note(
            server,
            "limits.max_connections of %u needs %llu open files (a client and an upstream connection each), the "
            "limit is %llu; raise it (ulimit -n, LimitNOFILE) or lower limits.max_connections",
            conf->limits.max_connections, (unsigned long long)wanted, (unsigned long long)got);
}

static int drop(struct sz_server *server, const struct sz_conf *conf, struct sz_text *why)
{
    int rc = sz_process_drop(conf->user, why);
    if (rc == SZ_PROCESS_STILL_ROOT)
        sz_server_note(server,
                       "running as root: set 'user' so that the gateway gives root up after it has bound its ports");
    return rc < 0 ? rc : 0;
}

/* After the process is whom it will be: the directory must be that user's. */
static int open_audit(struct sz_server *server, const struct sz_conf *conf, struct sz_text *why)
{
    if (conf->audit.path.p == NULL)
        sz_log(SZ_LOG_INFO, "audit", "the audit journal is off: 'audit.path' turns it on");
    return sz_audit_open(&conf->audit, &server->gate.audit, why);
}

/* After the privileges were dropped: state_dir is ours then. */
static int open_stores(struct serve *s, struct sz_snapshot *snapshot, struct sz_text *why)
{
    const struct sz_conf *conf = snapshot->conf;
    struct sz_mistakes mistakes;
    if (conf->fga.listen == NULL)
        return 0;
    int rc = conf->state_dir.p == NULL ? 0 : sz_fga_hub_open(s->fga, conf->state_dir.p, why);
    if (rc != 0)
        return rc;
    sz_mistakes_init(&mistakes);
    rc = sz_snapshot_seed(snapshot, s->fga, &mistakes);
    sz_cli_print_mistakes(&mistakes, stderr);
    sz_mistakes_fini(&mistakes);
    if (rc != 0)
        sz_text_set(why, "the stores cannot be filled: see the mistake above");
    else
        sz_fga_hub_audit(s->fga, s->server->gate.audit);
    return rc;
}

static void on_ready(struct sz_server *server)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        const struct sz_listener *listener = &server->listeners[i];
        if (listener->kind == SZ_LISTEN_DATA)
            sz_log(SZ_LOG_INFO, "edge", "listening on %.*s", SZ_FMT(listener->conf->address));
        if (listener->kind == SZ_LISTEN_FGA)
            sz_log(SZ_LOG_INFO, "edge", "OpenFGA API on %.*s", SZ_FMT(listener->conf->address));
    }
    sz_log(SZ_LOG_INFO, "edge", "subzero %s is ready: %u workers", SZ_VERSION, server->threads_n);
    if (serve.options.demo)
        sz_demo_explain(&serve.demo);
}

static int run(struct serve *s, struct sz_snapshot *snapshot, struct sz_conf_source source)
{
    const struct sz_conf *conf = snapshot->conf;
    struct sz_text why = {""};

    if (sz_log_start(1, conf->log.level) != 0)
        return fail("cannot start the log's thread");
    s->server = sz_server_new(snapshot, source, &why);
    if (s->server == NULL)
        return fail(why.s);
    s->server->fga = s->fga;
    note_files(s->server, conf);
    int rc = sz_server_bind(s->server, s->options.demo ? &s->demo.upstream : NULL, &why);
    if (rc == 0)
        rc = drop(s->server, conf, &why);
    if (rc == 0)
        rc = open_audit(s->server, conf, &why);
    if (rc == 0)
        rc = open_stores(s, snapshot, &why);
    if (rc == 0)
        rc = sz_server_run(s->server, on_ready, &why);
    sz_log_stop();
    if (rc != 0)
        return fail(why.s); /* the process ends: what is half built is not taken down */
    sz_server_free(&s->server);
    sz_fga_hub_free(&s->fga);
    sz_metrics_fini();
    return SZ_EXIT_OK;
}

int sz_cmd_serve(int argc, char **argv)
{
    struct serve *s = &serve;
    struct sz_text why = {""};

    if (!parse(argc, argv, &s->options)) {
        fputs(usage_text, stderr);
        return SZ_EXIT_USAGE;
    }
    if (s->options.help) {
        fputs(usage_text, stdout);
        return SZ_EXIT_OK;
    }
    sz_crypto_init();
    signal(SIGPIPE, SIG_IGN);
    if (sz_process_harden(&why) != 0 || sz_overrides_self_test(&why) != 0)
        return fail(why.s);
    if (s->options.demo && sz_demo_init(&s->demo, s->options.address, s->options.admin, &why) != 0)
        return fail(why.s);
    struct sz_conf_source source = source_of(s);
    struct sz_snapshot *snapshot = load(s, source);
    int rc = snapshot == NULL ? SZ_EXIT_NO : run(s, snapshot, source);
    sz_demo_end(&s->demo);
    sz_process_end();
    return rc;
}
