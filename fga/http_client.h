/*
 * The inside of the HTTP client, shared by fga/http*.c.  A call becomes a job; a job makes tries; a try is one libcurl
 * handle in the loop's multi handle.
 *
 *   http.c        clients: what they share, life, numbers
 *   http_job.c    a call from start to on_done: deadline, tries, redirects
 *   http_host.c   who may send now: addresses, connections per host and in all
 *   http_easy.c   one try as libcurl wants it told, and what came of it
 *   http_multi.c  libcurl on the loop: sockets, its timer, what has ended, idle connections
 *   http_retry.c  whether and when to try again: a calculator
 *   http_url.c, http_fields.c, http_trust.c, http_lib.c (libcurl itself)
 */
#ifndef SZ_FGA_HTTP_CLIENT_H
#define SZ_FGA_HTTP_CLIENT_H

#include "fga/http_lib.h"
#include "loop/resolver.h"
#include "subzero/crypto.h"
#include "subzero/http.h"
#include "subzero/metrics.h"

/* ---- http_url.c -------------------------------------------------------------------------------------------------- */

struct sz_http_url {
    bool tls, literal; /* literal: an address or "localhost", nothing to look up */
    bool loopback;
    char host[SZ_HOST_MAX + 1]; /* lower-case, without brackets */
    uint16_t port;
};
int sz_http_url_parse(struct sz_slice text, struct sz_http_url *out, struct sz_text *why) SZ_MUST_CHECK;

/* ---- http_fields.c ----------------------------------------------------------------------------------------------- */

bool sz_http_field_valid(const struct sz_http_field *field);
/* Seconds or a date (RFC 9110 section 10.2.3), at most a day; 0 for anything else. */
/* The three forms of RFC 9110 section 5.6.7, in seconds of wall time.  -EINVAL: none of them. */
int sz_http_date(struct sz_slice value, int64_t *seconds) SZ_MUST_CHECK;
struct sz_span sz_http_retry_after(struct sz_slice value, struct sz_wall now);
/* X-RateLimit-Reset and its like: seconds, or the UNIX time that Auth0 sends; 0 beyond half an hour. */
struct sz_span sz_http_rate_reset(struct sz_slice value, struct sz_wall now);

/* ---- http_retry.c ------------------------------------------------------------------------------------------------ */

struct sz_http_try {
    enum sz_http_result result;
    int status;
    struct sz_span retry_after;
    unsigned made, allowed; /* tries, this one included; further tries allowed from the start */
    struct sz_mono now, deadline;
};
/* True: try again at *at. */
bool sz_http_retry(const struct sz_http_try *t, uint64_t random, struct sz_mono *at);

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

#define SZ_HTTP_BUCKETS 64

struct sz_http_job;
struct sz_http_queue {
    struct sz_http_job *first, **last;
};

struct sz_http_host {
    struct sz_http *http;
    struct sz_http_host *next; /* in its bucket */
    struct sz_http_url url;
    struct sz_http_queue waiting;
    unsigned jobs;      /* all that name it */
    unsigned flying;    /* tries under way */
    struct sz_mono met; /* until then it is known which HTTP it speaks, for a connection to it stands */
    bool blocked;       /* in the client's ring of those who wait for a connection of the whole client */
    struct sz_http_host *blocked_next, **blocked_prev;
    /* addresses */
    struct sz_ask ask;
    bool asking;
    struct sz_mono until; /* when they are to be looked up again; 0: never were */
    /* CURLOPT_RESOLVE: "+host:port:address,..."; data NULL without addresses.  Read when a try begins, and may by then
     * hold others than when the try was prepared. */
    struct curl_slist pin;
    struct sz_mono used;
};

struct sz_http_shared {
    struct sz_conf_http conf; /* the share of one client */
    struct sz_resolver *resolver;
    struct sz_key128 key; /* for the hosts' buckets */
};

struct sz_http {
    struct sz_http_shared *shared;
    struct sz_loop *loop;
    bool closing;
    /* libcurl */
    CURLM *multi;
    int epoll;
    struct sz_watch *watch;
    struct sz_timer timer; /* libcurl's */
    struct sz_defer defer; /* the same, when it wants to be called at once */
    struct sz_timer sweep;
    CURL *sweeper;
    bool sweeping;
    CURL *spare[16]; /* handles kept for the next try */
    unsigned spares;
    /* jobs */
    struct sz_http_job *jobs;
    unsigned calls, waiting, flying;
    struct sz_mono landed; /* when the last try ended */
    struct sz_mono swept;  /* when the sweeper last went */
    /* hosts */
    struct sz_http_host *hosts[SZ_HTTP_BUCKETS];
    unsigned hosts_n;
    struct sz_http_host *blocked, **blocked_last;
    struct sz_mailbox mailbox;
    /* numbers */
    uint64_t connections, reused, lookups;
    struct sz_series m_connections, m_reused, m_lookups, m_failed_lookups;
};

/* NULL: too many hosts are in use.  Counts the job in; sz_http_host_release counts it out. */
struct sz_http_host *sz_http_host_get(struct sz_http *http, const struct sz_http_url *url);
void sz_http_host_release(struct sz_http_host *host);
/* The job waits for its turn; sz_http_job_fly or sz_http_job_fail_soon is called, maybe at once. */
void sz_http_host_enter(struct sz_http_host *host, struct sz_http_job *job);
void sz_http_host_leave(struct sz_http_host *host, struct sz_http_job *job);                      /* gives up waiting */
void sz_http_host_landed(struct sz_http_host *host, enum sz_http_result result, const char *why); /* a try has ended */
void sz_http_host_met(struct sz_http_host *host); /* a connection stands */
/* False: who waits for it waits for its addresses or its first connection; true: for our own limits. */
bool sz_http_host_reachable(const struct sz_http_host *host);
void sz_http_hosts_turn(struct sz_http *http);     /* after libcurl has returned: who waited for it goes */
void sz_http_hosts_answered(struct sz_http *http); /* the mailbox is readable */
void sz_http_hosts_sweep(struct sz_http *http, struct sz_mono now); /* forgets those not used for long */
void sz_http_hosts_fini(struct sz_http *http);

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

enum sz_http_phase {
    SZ_HTTP_WAITING, /* for addresses or a connection: in its host's queue */
    SZ_HTTP_FLYING,  /* in libcurl's hands */
    SZ_HTTP_PAUSING, /* until the next try */
    SZ_HTTP_ENDING   /* over; told on the next turn */
};

struct sz_http_job {
    struct sz_http *http;
    struct sz_http_call *call;
    struct sz_http_job *next, **prev; /* of the client */
    enum sz_http_phase phase;
    struct sz_http_host *host;
    struct sz_http_job *queue_next, **queue_prev; /* of its host, while WAITING */
    struct sz_timer timer;
    struct sz_mono started, deadline;
    /* the request */
    enum sz_http_method method;
    bool idempotent, insecure_http;
    uint8_t retries, redirects;
    struct sz_span connect, attempt;
    size_t limit;
    struct sz_http_trust *trust;
    char *url;
    struct curl_slist *fields;
    struct sz_slice body; /* ours */
    /* the try under way */
    CURL *easy;
    unsigned tries_here;               /* since the last redirect */
    bool overflow, connected, starved; /* starved: no descriptor left for a socket */
    char error[CURL_ERROR_SIZE];
    struct sz_buf head, answer_body;
    struct sz_http_answer answer;
};

void sz_http_job_fly(struct sz_http_job *job);
/* A try has ended, or never began; may end the job, and with it the caller's callback. */
void sz_http_job_landed(struct sz_http_job *job, CURLcode code);
void sz_http_job_fail_soon(struct sz_http_job *job, enum sz_http_result result, const char *why);
void sz_http_jobs_fini(struct sz_http *http); /* tells all that they are cancelled */

/* ---- http_easy.c ------------------------------------------------------------------------------------------------- */

void sz_http_easy_prepare(struct sz_http_job *job);             /* fills job->easy, clears what the last try left */
void sz_http_easy_read(struct sz_http_job *job, CURLcode code); /* into job->answer */
void sz_http_easy_basics(struct sz_http *http, CURL *easy);     /* what every handle of ours has */

/* ---- http_multi.c ------------------------------------------------------------------------------------------------ */

/* With the first call: a client that is never used holds no descriptor.  Negative errno. */
int sz_http_multi_init(struct sz_http *http) SZ_MUST_CHECK;
void sz_http_multi_fini(struct sz_http *http);
CURL *sz_http_multi_handle(struct sz_http *http);             /* a fresh or spare one */
void sz_http_multi_add(struct sz_http *http, CURL *easy);     /* it starts on this turn */
void sz_http_multi_remove(struct sz_http *http, CURL **easy); /* stops it, keeps or frees it */

/* ---- http_trust.c ------------------------------------------------------------------------------------------------ */

/* Makes the handle believe these and no others. */
void sz_http_trust_apply(struct sz_http_trust *trust, CURL *easy);

#endif
