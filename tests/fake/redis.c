/* See redis.h. */
#include "fake/redis.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/netns.h"
#include "fake/wire.h"

/* ---- real servers ------------------------------------------------------------------------------------------------ */

bool redis_available(void)
{
    return program_find("redis-server") != NULL;
}

static const char *address_of(const struct redis_server *r)
{
    return r->address != NULL ? r->address : "127.0.0.1";
}

static bool start_here(struct redis_server *r)
{
    static unsigned started;
    char port[8], program[512];
    const char *argv[48] = {0};
    size_t n = 0;

    if (r->port == 0) {
        r->port = free_port();
        snprintf(r->name, sizeof(r->name), "redis-%u", started++);
        snprintf(r->path, sizeof(r->path), "%s/%s.sock", scratch_path(), r->name);
        snprintf(r->url, sizeof(r->url), "redis://%s:%u", address_of(r), r->port);
    }
    const char *found = program_find("redis-server");
    SZ_ASSERT(found != NULL);
    snprintf(program, sizeof(program), "%s", found);
    snprintf(port, sizeof(port), "%u", r->port);
    const char *const usual[] = {program,        "--port",       port,    "--bind",       "127.0.0.1", "--unixsocket",
                                 r->path,        "--save",       "",      "--appendonly", "no",        "--dir",
                                 scratch_path(), "--dbfilename", r->name, "--daemonize",  "no"};
    for (size_t i = 0; i < SZ_COUNT(usual); i++)
        argv[n++] = usual[i];
    if (r->address != NULL) {
        const char *const more[] = {"--bind", "127.0.0.1", r->address, "--protected-mode", "no"};
        for (size_t i = 0; i < SZ_COUNT(more); i++)
            argv[n++] = more[i];
    }
    if (r->password != NULL) {
        argv[n++] = "--requirepass";
        argv[n++] = r->password;
    }
    for (size_t i = 0; i < REDIS_OPTIONS_MAX && r->options[i] != NULL; i++)
        argv[n++] = r->options[i];
    return proc_start(&r->proc, r->name, r->port, argv);
}

bool redis_start(struct redis_server *r)
{
    int before = netns_enter(r->ns);
    bool ok = start_here(r);
    netns_leave(before);
    return ok;
}

void redis_stop(struct redis_server *r)
{
    if (r->proc.pid > 0)
        kill(r->proc.pid, SIGCONT);
    proc_stop(&r->proc);
}

void redis_kill(struct redis_server *r)
{
    if (r->proc.pid <= 0)
        return;
    kill(r->proc.pid, SIGKILL);
    waitpid(r->proc.pid, NULL, 0);
    r->proc.pid = 0;
}

void redis_pause(struct redis_server *r)
{
    kill(r->proc.pid, SIGSTOP);
}

void redis_continue(struct redis_server *r)
{
    kill(r->proc.pid, SIGCONT);
}

static void add_args(struct sz_buf *out, const struct sz_slice *args, size_t n)
{
    sz_buf_printf(out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        sz_buf_printf(out, "$%zu\r\n", args[i].n);
        sz_buf_adds(out, args[i]);
        sz_buf_adds(out, SZ_S("\r\n"));
    }
}

/* QUIT makes the server close when it has answered; its own "+OK" is cut off again. */
static char *ask_here(const struct redis_server *r, const struct sz_slice *args, size_t args_n, size_t *n)
{
    struct sz_buf out = {0}, in = {0};
    struct wire w;
    size_t skip = 0;

    if (!wire_open(&w, NULL, r->port))
        return NULL;
    if (r->password != NULL) {
        add_args(&out, (struct sz_slice[]){SZ_S("AUTH"), sz_cstr(r->password)}, 2);
        skip = 5;
    }
    add_args(&out, args, args_n);
    add_args(&out, &(struct sz_slice){"QUIT", 4}, 1);
    bool ok = wire_send(&w, sz_buf_slice(&out)) && wire_read_all(&w, &in, SZ_SEC(5));
    wire_close(&w);
    sz_buf_fini(&out);
    if (!ok || in.n < skip + 5) {
        sz_buf_fini(&in);
        return NULL;
    }
    in.n -= skip + 5;
    memmove(in.p, in.p + skip, in.n);
    if (n != NULL)
        *n = in.n;
    sz_buf_add(&in, "", 1);
    return in.p;
}

char *redis_ask(const struct redis_server *r, const struct sz_slice *args, size_t args_n, size_t *n)
{
    int before = netns_enter(r->ns);
    char *reply = ask_here(r, args, args_n, n);
    netns_leave(before);
    return reply;
}

char *redis_say(const struct redis_server *r, const char *fmt, ...)
{
    struct sz_slice args[64];
    size_t n = 0;
    char *text = NULL;
    va_list list;

    va_start(list, fmt);
    SZ_ASSERT(vasprintf(&text, fmt, list) >= 0);
    va_end(list);
    for (char *rest = text, *word; (word = strsep(&rest, " ")) != NULL && n < SZ_COUNT(args);)
        if (*word != '\0')
            args[n++] = sz_cstr(word);
    char *reply = redis_ask(r, args, n, NULL);
    free(text);
    return reply;
}

int64_t redis_number(const struct redis_server *r, const char *command)
{
    char *reply = redis_say(r, "%s", command);
    int64_t value = reply != NULL && reply[0] == ':' ? strtoll(reply + 1, NULL, 10) : -1;
    free(reply);
    return value;
}

bool redis_says(const struct redis_server *r, const char *command, const char *begins)
{
    char *reply = redis_say(r, "%s", command);
    bool so = reply != NULL && strncmp(reply, begins, strlen(begins)) == 0;
    free(reply);
    return so;
}

/* ---- a cluster --------------------------------------------------------------------------------------------------- */

/* The bus has a port of its own choosing: Redis would take one that outgoing connections may hold. */
static bool start_node(struct redis_cluster *c, size_t i)
{
    struct redis_server *r = &c->nodes[i];
    snprintf(c->texts[i].conf, sizeof(c->texts[i].conf), "nodes-%zu.conf", i);
    snprintf(c->texts[i].bus, sizeof(c->texts[i].bus), "%u", free_port());
    const char *const options[] = {"--cluster-enabled",
                                   "yes",
                                   "--cluster-config-file",
                                   c->texts[i].conf,
                                   "--cluster-port",
                                   c->texts[i].bus,
                                   "--cluster-node-timeout",
                                   "1000",
                                   "--cluster-replica-validity-factor",
                                   "0",
                                   "--repl-diskless-sync-delay",
                                   "0",
                                   "--cluster-announce-ip",
                                   address_of(r)};
    for (size_t k = 0; k < SZ_COUNT(options); k++)
        r->options[k] = options[k];
    return redis_start(r);
}

static bool all_meet(struct redis_cluster *c)
{
    bool ok = true;
    for (size_t i = 1; i < SZ_COUNT(c->nodes); i++) {
        char *reply = redis_say(&c->nodes[0], "CLUSTER MEET %s %u %s", address_of(&c->nodes[i]), c->nodes[i].port,
                                c->texts[i].bus);
        ok = ok && reply != NULL && reply[0] == '+';
        free(reply);
    }
    return ok;
}

static bool share_slots(struct redis_cluster *c)
{
    bool ok = true;
    for (unsigned i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        unsigned from = i * 16384 / REDIS_CLUSTER_MASTERS, to = (i + 1) * 16384 / REDIS_CLUSTER_MASTERS - 1;
        char *reply = redis_say(&c->nodes[i], "CLUSTER ADDSLOTSRANGE %u %u", from, to);
        ok = ok && reply != NULL && reply[0] == '+';
        free(reply);
    }
    return ok;
}

/* Refused until the master is known there. */
static bool follow(struct redis_cluster *c, unsigned i)
{
    char *id = redis_say(&c->nodes[i], "CLUSTER MYID");
    bool ok = false;
    for (int tries = 0; id != NULL && !ok && tries < 200; tries++) {
        char *reply = redis_say(&c->nodes[REDIS_CLUSTER_MASTERS + i], "CLUSTER REPLICATE %.40s", strchr(id, '\n') + 1);
        ok = reply != NULL && reply[0] == '+';
        free(reply);
        if (!ok)
            poll(NULL, 0, 50);
    }
    free(id);
    return ok;
}

bool redis_cluster_ok(struct redis_cluster *c, int ms)
{
    struct sz_mono end = in_time(SZ_MS(ms));
    while (sz_mono_read().us < end.us) {
        bool ok = true;
        for (size_t i = 0; ok && i < SZ_COUNT(c->nodes); i++) {
            char *info = c->nodes[i].proc.pid > 0 ? redis_say(&c->nodes[i], "CLUSTER INFO") : NULL;
            if (c->nodes[i].proc.pid > 0)
                ok = info != NULL && strstr(info, "cluster_state:ok") != NULL;
            free(info);
        }
        if (ok)
            return true;
        poll(NULL, 0, 50);
    }
    return false;
}

static bool replicas_follow(struct redis_cluster *c)
{
    struct sz_mono end = in_time(SZ_SEC(20));
    for (unsigned i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        bool ok = false;
        while (!ok && sz_mono_read().us < end.us) {
            char *info = redis_say(&c->nodes[REDIS_CLUSTER_MASTERS + i], "INFO replication");
            ok = info != NULL && strstr(info, "master_link_status:up") != NULL;
            free(info);
            poll(NULL, 0, ok ? 0 : 50);
        }
        if (!ok)
            return false;
    }
    return true;
}

static const char *form(struct redis_cluster *c)
{
    for (size_t i = 0; i < SZ_COUNT(c->nodes); i++)
        if (!start_node(c, i))
            return "a node does not start";
    if (!all_meet(c))
        return "the nodes do not meet";
    if (!share_slots(c))
        return "the slots are not taken";
    for (unsigned i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        if (!follow(c, i))
            return "a replica knows no master";
    if (!redis_cluster_ok(c, 30000))
        return "the state is not ok";
    return replicas_follow(c) ? NULL : "a replica has no link";
}

bool redis_cluster_start(struct redis_cluster *c)
{
    const char *why = form(c);
    if (why != NULL)
        fprintf(stderr, "no cluster: %s\n", why);
    return why == NULL;
}

void redis_cluster_stop(struct redis_cluster *c)
{
    for (size_t i = 0; i < SZ_COUNT(c->nodes); i++)
        redis_kill(&c->nodes[i]);
}

/* ---- one that says what it is told to ---------------------------------------------------------------------------- */

enum { PEERS = 64 };

struct peer {
    struct wire wire;
    struct sz_buf in;
    bool flooding;
};

/* The whole commands at the front of `in`: their words into `words`; bytes they take, 0 for none. */
static size_t parse_command(struct sz_slice in, struct sz_buf *words)
{
    char *end;
    size_t at = 1;
    if (in.n < 4 || in.p[0] != '*' || memchr(in.p, '\n', in.n) == NULL)
        return 0;
    long n = strtol(in.p + 1, &end, 10);
    at = (size_t)(end - in.p) + 2;
    words->n = 0;
    for (long i = 0; i < n; i++) {
        if (at >= in.n || memchr(in.p + at, '\n', in.n - at) == NULL)
            return 0;
        size_t size = (size_t)strtol(in.p + at + 1, &end, 10);
        at = (size_t)(end - in.p) + 2;
        if (in.n < at + size + 2)
            return 0;
        if (i > 0)
            sz_buf_adds(words, SZ_S(" "));
        sz_buf_add(words, in.p + at, size);
        at += size + 2;
    }
    return at;
}

static const char *login_reply(struct sz_slice words)
{
    if (sz_eq(words, SZ_S("PING")))
        return "+PONG\r\n";
    if (sz_starts_with(words, SZ_S("CONFIG GET")))
        return "*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n";
    if (sz_starts_with(words, SZ_S("AUTH ")) || sz_starts_with(words, SZ_S("SELECT ")) ||
        sz_starts_with(words, SZ_S("CLIENT ")))
        return "+OK\r\n";
    return NULL;
}

/* False: the connection is to be closed. */
static bool answer(struct fake_redis *f, struct peer *p, struct sz_slice words)
{
    const char *login = login_reply(words);
    bool keep = true;
    pthread_mutex_lock(&f->lock);
    if (login != NULL && f->logins) {
        keep = wire_send(&p->wire, sz_cstr(login));
    } else {
        atomic_fetch_add(&f->commands, 1);
        f->last.n = 0;
        sz_buf_adds(&f->last, words);
        if (f->mode != FAKE_REDIS_SILENT)
            keep = wire_send(&p->wire, sz_buf_slice(&f->reply));
        keep = keep && f->mode != FAKE_REDIS_CUT;
        p->flooding = f->mode == FAKE_REDIS_FLOOD;
    }
    pthread_mutex_unlock(&f->lock);
    return keep;
}

static bool serve(struct fake_redis *f, struct peer *p)
{
    char chunk[16384];
    struct sz_buf words = {0};
    bool keep = true;
    ssize_t n = recv(p->wire.fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        return false;
    if (n > 0)
        sz_buf_add(&p->in, chunk, (size_t)n);
    for (size_t used; keep && !p->flooding && (used = parse_command(sz_buf_slice(&p->in), &words)) > 0;) {
        keep = answer(f, p, sz_buf_slice(&words));
        memmove(p->in.p, p->in.p + used, p->in.n - used);
        p->in.n -= used;
    }
    sz_buf_fini(&words);
    return keep;
}

static bool flood(struct fake_redis *f, struct peer *p)
{
    static const char zeros[65536];
    ssize_t n = send(p->wire.fd, zeros, sizeof(zeros), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        atomic_fetch_add(&f->flooded, (unsigned long long)n);
    return n > 0 || errno == EAGAIN;
}

static void leave(struct peer *p)
{
    wire_close(&p->wire);
    sz_buf_fini(&p->in);
    *p = (struct peer){.wire = {.fd = -1}};
}

static void welcome(struct fake_redis *f, struct peer *peers)
{
    int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < PEERS; i++) {
        if (peers[i].wire.fd >= 0)
            continue;
        peers[i].wire.fd = fd;
        atomic_fetch_add(&f->accepted, 1);
        return;
    }
    if (fd >= 0)
        close(fd);
}

static void *fake_main(void *arg)
{
    struct fake_redis *f = arg;
    struct peer peers[PEERS];
    for (size_t i = 0; i < PEERS; i++)
        peers[i] = (struct peer){.wire = {.fd = -1}};
    while (!atomic_load(&f->ending)) {
        struct pollfd fds[PEERS + 1] = {{.fd = f->listener, .events = POLLIN}};
        for (size_t i = 0; i < PEERS; i++)
            fds[i + 1] =
                (struct pollfd){.fd = peers[i].wire.fd, .events = (short)(peers[i].flooding ? POLLOUT : POLLIN)};
        poll(fds, PEERS + 1, 20);
        for (size_t i = 0; i < PEERS; i++)
            if (fds[i + 1].fd >= 0 && fds[i + 1].revents != 0 &&
                !(peers[i].flooding ? flood(f, &peers[i]) : serve(f, &peers[i])))
                leave(&peers[i]);
        if (fds[0].revents != 0)
            welcome(f, peers);
    }
    for (size_t i = 0; i < PEERS; i++)
        leave(&peers[i]);
    return NULL;
}

void fake_redis_set(struct fake_redis *f, enum fake_redis_mode mode, struct sz_slice reply, bool logins)
{
    pthread_mutex_lock(&f->lock);
    f->mode = mode;
    f->logins = logins;
    f->reply.n = 0;
    sz_buf_adds(&f->reply, reply);
    pthread_mutex_unlock(&f->lock);
}

static int listen_at(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    SZ_ASSERT(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 128) == 0);
    return fd;
}

void fake_redis_start(struct fake_redis *f)
{
    fake_redis_start_at(f, free_port());
}

void fake_redis_start_at(struct fake_redis *f, uint16_t port)
{
    *f = (struct fake_redis){.mode = FAKE_REDIS_REPLY, .logins = true};
    pthread_mutex_init(&f->lock, NULL);
    sz_buf_adds(&f->reply, SZ_S("+OK\r\n"));
    f->port = port;
    snprintf(f->url, sizeof(f->url), "redis://127.0.0.1:%u", f->port);
    f->listener = listen_at(f->port);
    SZ_ASSERT(pthread_create(&f->thread, NULL, fake_main, f) == 0);
}

void fake_redis_stop(struct fake_redis *f)
{
    atomic_store(&f->ending, true);
    pthread_join(f->thread, NULL);
    close(f->listener);
    sz_buf_fini(&f->reply);
    sz_buf_fini(&f->last);
    pthread_mutex_destroy(&f->lock);
}

char *fake_redis_last(struct fake_redis *f)
{
    pthread_mutex_lock(&f->lock);
    char *copy = strndup(f->last.p != NULL ? f->last.p : "", f->last.n);
    pthread_mutex_unlock(&f->lock);
    return copy;
}
