/*
 * Names of upstreams to addresses.  h2o's resolver thread does the waiting; what it found is kept per thread and url.
 * Answers older than 30 s are asked for again in the background while the old ones serve: only the first
 * request of all waits, and a name server that is down changes nothing for urls that were known.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#include "edge/upstream.h"
#include "subzero/log.h"

#define FRESH         SZ_SEC(30)
#define FRESH_FAILURE SZ_SEC(1)

static struct sz_mono now_of(const struct sz_upstream_url *url)
{
    return sz_loop_now(url->upstream->pools->loop);
}

static bool add(struct sz_upstream_url *url, size_t *n, const struct sockaddr *any)
{
    union sz_upstream_address *address = &url->addresses[*n];
    if (*n == SZ_URL_ADDRESSES)
        return false;
    if (any->sa_family == AF_INET) {
        memcpy(&address->v4, any, sizeof(address->v4));
        address->v4.sin_port = htons(url->port);
    } else if (any->sa_family == AF_INET6) {
        memcpy(&address->v6, any, sizeof(address->v6));
        address->v6.sin6_port = htons(url->port);
    } else {
        return true;
    }
    ++*n;
    return true;
}

void sz_resolve_init(struct sz_upstream_url *url)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, url->host, &v4.sin_addr) == 1)
        url->literal = add(url, &url->addresses_n, (struct sockaddr *)&v4);
    else if (inet_pton(AF_INET6, url->host, &v6.sin6_addr) == 1)
        url->literal = add(url, &url->addresses_n, (struct sockaddr *)&v6);
}

void sz_resolve_fini(struct sz_upstream_url *url)
{
    if (url->lookup != NULL)
        h2o_hostinfo_getaddr_cancel(url->lookup);
    url->lookup = NULL;
}

static void on_answer(h2o_hostinfo_getaddr_req_t *lookup, const char *err, struct addrinfo *found, void *arg)
{
    struct sz_upstream_url *url = arg;
    size_t n = 0;

    (void)lookup;
    url->lookup = NULL;
    url->resolved = now_of(url);
    for (const struct addrinfo *at = found; err == NULL && at != NULL && add(url, &n, at->ai_addr); at = at->ai_next)
        continue;
    if (n > 0) {
        url->addresses_n = n;
        url->address_at = 0;
    } else {
        sz_log(SZ_LOG_WARN, "proxy", "cannot resolve upstream host %s: %s", url->host,
               err != NULL ? err : "no address");
    }
    while (url->waiting != NULL)
        sz_upconn_resolved(url->waiting, url->addresses_n > 0 ? 0 : EHOSTUNREACH);
}

static void look_up(struct sz_upstream_url *url)
{
    char service[8];
    int n = snprintf(service, sizeof(service), "%u", url->port);

    if (url->lookup != NULL)
        return;
    url->lookup = h2o_hostinfo_getaddr(&url->upstream->pools->ctx->receivers.hostinfo_getaddr,
                                       h2o_iovec_init(url->host, strlen(url->host)), h2o_iovec_init(service, (size_t)n),
                                       AF_UNSPEC, SOCK_STREAM, IPPROTO_TCP, AI_NUMERICSERV, on_answer, url);
}

int sz_resolve(struct sz_upstream_url *url)
{
    if (url->literal)
        return 0;
    int64_t age = url->resolved.us == 0 ? INT64_MAX : sz_between(url->resolved, now_of(url)).us;
    if (url->addresses_n == 0 && age < FRESH_FAILURE.us)
        return -EHOSTUNREACH;
    if (age >= FRESH.us || url->addresses_n == 0)
        look_up(url);
    return url->addresses_n > 0 ? 0 : SZ_RESOLVE_WAIT;
}
