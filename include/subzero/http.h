/*
 * HTTP calls to what stands outside: identity providers, a remote FGA, collectors.  Asynchronous, one client per
 * loop; connections are kept and shared by all calls of a loop, HTTP/2 where the server speaks it.
 *
 * A call is one question with one deadline.  Inside it the client may wait for a connection, look a name up, try again
 * or follow a redirect; the caller hears once, when it is over.  What it hears tells "it answered" (any status) from
 * "it could not be asked" and says which way it could not.
 *
 * https only, unless a request allows otherwise; certificates and names are always verified; proxy
 * variables, cookies, netrc and response compression are not used.  Whatever holds a request or an answer
 * is wiped before it is freed, libcurl's own copies included.
 *
 * Threads: sz_http_shared and sz_http_trust belong to the process; a client and its calls to their loop's thread.
 */
#ifndef SUBZERO_HTTP_H
#define SUBZERO_HTTP_H

#include "subzero/conf.h"
#include "subzero/loop.h"

/* ---- what all clients share: limits, names already looked up ----------------------------------------------------- */

struct sz_http_shared;

/*
 * `clients` (>= 1) will use it: each gets its even share of conf->connections and conf->per_host, at least 1.  Before
 * other threads run.  Names are looked up on up to four threads of its own, started when first needed.
 */
struct sz_http_shared *sz_http_shared_new(const struct sz_conf_http *conf, unsigned clients);
/* After the last client.  Does not wait for look-ups under way. */
void sz_http_shared_free(struct sz_http_shared **shared);

/* ---- whom to believe --------------------------------------------------------------------------------------------- */

/*
 * Loads libcurl, once in the process: blocking, any thread.  By whoever reads a configuration that names something to
 * be asked, before the first start.  -ELIBACC: *why.
 */
int sz_http_prepare(struct sz_text *why) SZ_MUST_CHECK;

/* Certificates of authorities, read once; counted, any thread. */
struct sz_http_trust;

/*
 * From a PEM file, or the system's store (NULL).  Prepares, too.  Blocking.  NULL: *why says what is wrong with which
 * file.
 */
struct sz_http_trust *sz_http_trust_new(const char *ca_file, struct sz_text *why);
struct sz_http_trust *sz_http_trust_ref(struct sz_http_trust *trust);
void sz_http_trust_unref(struct sz_http_trust **trust);

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum sz_http_result {
    SZ_HTTP_ANSWERED,  /* a whole answer arrived: status, fields, body */
    SZ_HTTP_REFUSED,   /* nobody listens there, or the network does not lead there */
    SZ_HTTP_RESOLVE,   /* the name has no address */
    SZ_HTTP_TLS,       /* no handshake, or a certificate that is not believed */
    SZ_HTTP_TIMEOUT,   /* asked, and not (wholly) answered in time */
    SZ_HTTP_TRUNCATED, /* the connection ended before the answer did */
    SZ_HTTP_TOO_LARGE, /* the answer exceeds the request's limit */
    SZ_HTTP_REDIRECT,  /* a redirect that may not be followed; status and Location are there */
    SZ_HTTP_MALFORMED, /* that was not HTTP */
    SZ_HTTP_BUSY,      /* our own limit: no connection or descriptor was free in time; never asked */
    SZ_HTTP_CANCELLED, /* the client was freed */
    SZ_HTTP_RESULTS
};
const char *sz_http_result_name(enum sz_http_result result); /* "answered", "refused" ...: for logs and labels */

enum sz_http_method { SZ_HTTP_GET, SZ_HTTP_POST };

struct sz_http_field {
    struct sz_slice name, value;
};

/* Everything in it is copied when the call starts. */
struct sz_http_request {
    enum sz_http_method method;
    struct sz_slice url;         /* as sz_http_url_check wants it */
    struct sz_http_trust *trust; /* https; a reference is taken */
    bool insecure_http;          /* allow http:// to others than loopback */
    const struct sz_http_field *fields;
    size_t fields_n; /* at most SZ_HTTP_FIELDS_MAX */
    struct sz_slice body;
    bool credentials; /* fields or body hold a secret: `redirects` must be 0 */
    /*
     * It may be sent twice, by `retries` and also when a kept connection turns out to have died.  Others go over a
     * connection of their own and are tried once.
     */
    bool idempotent;
    uint8_t retries;   /* further tries after a failure that may pass: no connection, cut off, timeout, 429, 5xx */
    uint8_t redirects; /* how many a GET follows: 301, 302, 303, 307, 308, never from https to http */
    struct sz_mono deadline; /* of the whole call */
    struct sz_span connect;  /* bound on making a connection, TLS included; 0: none but the deadline */
    struct sz_span attempt;  /* bound on each try; 0: none but the deadline */
    size_t limit;            /* bytes of an answer's body; 0: SZ_HTTP_BODY_DEFAULT */
};
#define SZ_HTTP_FIELDS_MAX   16
#define SZ_HTTP_URL_MAX      2048
#define SZ_HTTP_BODY_DEFAULT (1024 * 1024)
#define SZ_HTTP_HEAD_MAX     (32 * 1024) /* an answer's fields; more is TOO_LARGE */

/* Borrowed: valid during on_done. */
struct sz_http_answer {
    enum sz_http_result result;
    int status;                 /* 0: none arrived; with TRUNCATED and the like it may have */
    struct sz_slice body;       /* what arrived of it */
    struct sz_slice head;       /* the fields as they came, for sz_http_answer_field */
    struct sz_span retry_after; /* asked for by the server with a 429 or 503, at most a day; 0: not */
    struct sz_span took;        /* start to end, all tries */
    unsigned tries;             /* requests sent, or at least attempted; 0: never left this process */
    bool reused;                /* the last try went over a kept connection */
    struct sz_text why;         /* not ANSWERED: for the log.  Names host and port, never a secret */
};
/* The first field of that name (any case), trimmed; SZ_NONE when absent. */
struct sz_slice sz_http_answer_field(const struct sz_http_answer *answer, struct sz_slice name);

/* Embedded in the caller's struct; zero-initialise, set on_done. */
struct sz_http_call {
    void (*on_done)(struct sz_http_call *call, const struct sz_http_answer *answer);
    struct sz_http_job *job; /* NULL: not under way */
};

struct sz_http;

/*
 * One per loop; created, used and freed on the loop's thread (or while the loop does not run).  Costs nothing until its
 * first call.
 */
struct sz_http *sz_http_new(struct sz_http_shared *shared, struct sz_loop *loop);
/* Calls under way are told CANCELLED, from inside; starts then give -ECANCELED.  Never inside a callback of its own. */
void sz_http_free(struct sz_http **http);

struct sz_loop *sz_http_loop(const struct sz_http *http);

enum { SZ_HTTP_FULL = 1 };
#define SZ_HTTP_CALLS_MAX 8192 /* under way in one client, waiting ones included */
/*
 * 0: on_done runs exactly once, never inside this call, at the latest one turn after the deadline, unless the call is
 * cancelled before.  SZ_HTTP_FULL: SZ_HTTP_CALLS_MAX are under way.  -EINVAL: a URL, field or combination that this
 * header does not allow.  -ECANCELED: the client is being freed.  -ELIBACC: nobody has called sz_http_prepare.  -EMFILE
 * and the like: no descriptor for the client itself.  Otherwise than with 0, on_done does not run.
 */
int sz_http_start(struct sz_http *http, const struct sz_http_request *request, struct sz_http_call *call) SZ_MUST_CHECK;
/* At once; on_done will not run and `call` may go.  No-op when it is not under way. */
void sz_http_cancel(struct sz_http_call *call);

/*
 * A URL that may be asked: https (or http when `insecure_http`, or to a loopback address or "localhost"), a host
 * of ASCII letters, digits, '-', '_', '.' or an address literal, a port, a path and query without blanks or controls;
 * no user, no fragment, at most SZ_HTTP_URL_MAX bytes.  -EINVAL: *why (may be NULL) says what is wrong.
 */
int sz_http_url_check(struct sz_slice url, bool insecure_http, struct sz_text *why) SZ_MUST_CHECK;

struct sz_http_stats {            /* of one client, on its thread */
    uint64_t connections, reused; /* tries over a new connection, over a kept one */
    uint64_t lookups;             /* names asked of the system; answers from memory do not count */
    unsigned calls, waiting;      /* now: under way; of these without a connection yet */
};
void sz_http_stats(const struct sz_http *http, struct sz_http_stats *out);

#endif
