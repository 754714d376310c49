/*
 * One lock over everything: names, the queue of those to look up, the mailboxes.  Inside it there are only list steps
 * and one write to an eventfd (four times in a process the start of a thread), so a loop waits for microseconds at
 * most; getaddrinfo runs outside.
 *
 *   name    idle -> queued -> running -> idle; its `asks` wait for it
 *   ask     waits at its name, then in its mailbox, then belongs to its owner again
 *
 * The threads are detached and hold a reference each: one that hangs in getaddrinfo cannot be interrupted, and
 * nobody should wait for it at shutdown.  No thread reads a clock: what was found counts from when it was asked for.
 */
#include "loop/resolver.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { THREADS = 4 };

#define FAILED_FOR SZ_SEC(1) /* how long a failure answers those who ask again */
#define STALE_FOR  SZ_SEC(5) /* how long old addresses are used when the look-up of new ones failed */

enum name_state { IDLE, QUEUED, RUNNING };

struct sz_resolver_name {
    struct sz_resolver_name *next;   /* of all */
    struct sz_resolver_name *queued; /* behind it in the queue */
    enum name_state state;
    int status;
    struct sz_addresses found;
    struct sz_mono asked, until;
    struct sz_ask *asks;
    char host[SZ_HOST_MAX + 1];
};

struct sz_resolver {
    pthread_mutex_t lock;
    pthread_cond_t work;
    sz_lookup_fn lookup;
    struct sz_span ttl;
    unsigned refs, threads, idle, queued; /* idle threads wait for the names that are queued */
    bool closing;
    struct sz_resolver_name *names;
    size_t names_n;
    struct sz_resolver_name *first, **last; /* the queue */
};

/* ---- the system's look-up ---------------------------------------------------------------------------------------- */

static int to_errno(int rc)
{
    switch (rc) {
    case EAI_SYSTEM:
        return errno != 0 ? -errno : -EIO;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_AGAIN:
        return -EAGAIN;
    default:
        return -ENOENT;
    }
}

static bool known(const struct sz_addresses *in, struct sz_addr a)
{
    for (size_t i = 0; i < in->n; i++)
        if (sz_addr_eq(in->v[i], a))
            return true;
    return false;
}

static int system_lookup(const char *host, struct sz_addresses *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *list = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &list);
    if (rc != 0)
        return to_errno(rc);
    for (const struct addrinfo *ai = list; ai != NULL && out->n < SZ_ADDRESSES_MAX; ai = ai->ai_next) {
        struct sz_addr a;
        if (sz_addr_from_sockaddr(ai->ai_addr, ai->ai_addrlen, &a) == 0 && !known(out, a))
            out->v[out->n++] = a;
    }
    freeaddrinfo(list);
    return out->n != 0 ? 0 : -ENOENT;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

struct sz_resolver *sz_resolver_new(struct sz_span ttl, sz_lookup_fn lookup)
{
    struct sz_resolver *r = sz_xcalloc(1, sizeof(*r));
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    r->lookup = lookup != NULL ? lookup : system_lookup;
    r->ttl = ttl;
    r->refs = 1;
    r->last = &r->first;
    return r;
}

/* With the lock, which it gives back. */
static void drop(struct sz_resolver *r)
{
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    while (r->names != NULL) {
        struct sz_resolver_name *name = r->names;
        r->names = name->next;
        free(name);
    }
    pthread_cond_destroy(&r->work);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void sz_resolver_free(struct sz_resolver **resolver)
{
    struct sz_resolver *r = *resolver;
    *resolver = NULL;
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->closing = true;
    pthread_cond_broadcast(&r->work);
    drop(r);
}

/* ---- asks and mailboxes: with the lock --------------------------------------------------------------------------- */

static void leave(struct sz_ask *ask)
{
    if (ask->prev == NULL)
        return;
    if (ask->next != NULL)
        ask->next->prev = ask->prev;
    else if (ask->box->last == &ask->next)
        ask->box->last = ask->prev;
    *ask->prev = ask->next;
    ask->next = NULL;
    ask->prev = NULL;
    ask->name = NULL;
}

static void fill(const struct sz_resolver_name *name, struct sz_ask *ask)
{
    ask->status = name->status;
    ask->found = name->found;
    ask->until = name->until;
}

static void deliver(struct sz_resolver_name *name, struct sz_ask *ask)
{
    struct sz_mailbox *box = ask->box;
    leave(ask);
    fill(name, ask);
    ask->looked_up = true;
    ask->prev = box->last;
    *box->last = ask;
    box->last = &ask->next;
    const uint64_t one = 1;
    (void)!write(box->fd, &one, sizeof(one)); /* fails only when the counter is full: then it is readable anyway */
}

int sz_mailbox_open(struct sz_mailbox *box, struct sz_resolver *resolver)
{
    box->resolver = resolver;
    box->first = NULL;
    box->last = &box->first;
    box->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return box->fd >= 0 ? 0 : -errno;
}

void sz_mailbox_close(struct sz_mailbox *box)
{
    SZ_ASSERT(box->first == NULL);
    close(box->fd);
    box->fd = -1;
}

struct sz_ask *sz_mailbox_take(struct sz_mailbox *box)
{
    pthread_mutex_lock(&box->resolver->lock);
    struct sz_ask *ask = box->first;
    uint64_t count;
    if (ask != NULL)
        leave(ask);
    if (box->first == NULL)
        (void)!read(box->fd, &count, sizeof(count));
    pthread_mutex_unlock(&box->resolver->lock);
    return ask;
}

void sz_resolver_forget(struct sz_mailbox *box, struct sz_ask *ask)
{
    pthread_mutex_lock(&box->resolver->lock);
    leave(ask);
    pthread_mutex_unlock(&box->resolver->lock);
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

static struct sz_resolver_name *next_work(struct sz_resolver *r)
{
    struct sz_resolver_name *name = r->first;
    r->first = name->queued;
    if (r->first == NULL)
        r->last = &r->first;
    name->state = RUNNING;
    r->queued--;
    return name;
}

static void note(struct sz_resolver *r, struct sz_resolver_name *name, int rc, const struct sz_addresses *found)
{
    if (rc == 0) {
        name->status = 0;
        name->found = *found;
        name->until = sz_after(name->asked, r->ttl);
    } else if (name->found.n != 0) {
        name->until = sz_after(name->asked, STALE_FOR);
    } else {
        name->status = rc;
        name->until = sz_after(name->asked, FAILED_FOR);
    }
    name->state = IDLE;
    while (name->asks != NULL)
        deliver(name, name->asks);
}

static void *work(void *arg)
{
    struct sz_resolver *r = arg;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (r->first == NULL && !r->closing) {
            r->idle++;
            pthread_cond_wait(&r->work, &r->lock);
            r->idle--;
        }
        if (r->closing)
            break;
        struct sz_resolver_name *name = next_work(r);
        pthread_mutex_unlock(&r->lock);
        struct sz_addresses found = {.n = 0};
        int rc = r->lookup(name->host, &found);
        pthread_mutex_lock(&r->lock);
        note(r, name, rc, &found);
    }
    drop(r);
    return NULL;
}

/* Without a first thread nothing would ever be looked up; a further one that cannot be had is no loss. */
static bool have_thread(struct sz_resolver *r)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    if (r->queued < r->idle || r->threads == THREADS)
        return true;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    sigfillset(&all); /* signals belong to the threads that handle them */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, &attr, work, r) == 0) {
        pthread_setname_np(thread, "subzero-names");
        r->threads++;
        r->refs++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return r->threads != 0;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Of the names nobody waits for, the one that was asked for longest ago. */
static bool make_room(struct sz_resolver *r)
{
    struct sz_resolver_name **oldest = NULL;
    if (r->names_n < SZ_RESOLVER_NAMES)
        return true;
    for (struct sz_resolver_name **p = &r->names; *p != NULL; p = &(*p)->next)
        if ((*p)->state == IDLE && (oldest == NULL || (*p)->asked.us < (*oldest)->asked.us))
            oldest = p;
    if (oldest == NULL)
        return false;
    struct sz_resolver_name *name = *oldest;
    *oldest = name->next;
    r->names_n--;
    free(name);
    return true;
}

static struct sz_resolver_name *find_or_add(struct sz_resolver *r, const char *host)
{
    size_t n = strlen(host);
    for (struct sz_resolver_name *name = r->names; name != NULL; name = name->next)
        if (strcmp(name->host, host) == 0)
            return name;
    SZ_ASSERT(n <= SZ_HOST_MAX);
    if (!make_room(r))
        return NULL;
    struct sz_resolver_name *name = sz_xcalloc(1, sizeof(*name));
    memcpy(name->host, host, n + 1);
    name->next = r->names;
    r->names = name;
    r->names_n++;
    return name;
}

static int wait_for(struct sz_resolver *r, struct sz_resolver_name *name, struct sz_mono now, struct sz_ask *ask)
{
    if (name->state == IDLE) {
        if (!have_thread(r))
            return SZ_RESOLVER_FULL;
        name->state = QUEUED;
        name->asked = now;
        name->queued = NULL;
        *r->last = name;
        r->last = &name->queued;
        r->queued++;
        pthread_cond_signal(&r->work);
    }
    ask->name = name;
    ask->next = name->asks;
    ask->prev = &name->asks;
    if (ask->next != NULL)
        ask->next->prev = &ask->next;
    name->asks = ask;
    return SZ_RESOLVER_WAIT;
}

int sz_resolver_ask(struct sz_mailbox *box, const char *host, struct sz_mono now, struct sz_ask *ask)
{
    struct sz_resolver *r = box->resolver;
    SZ_ASSERT(ask->prev == NULL);
    pthread_mutex_lock(&r->lock);
    struct sz_resolver_name *name = find_or_add(r, host);
    int rc = SZ_RESOLVER_FULL;
    ask->box = box;
    ask->looked_up = false;
    if (name != NULL && name->until.us > now.us) {
        fill(name, ask);
        rc = 0;
    } else if (name != NULL) {
        rc = wait_for(r, name, now, ask);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}
