/*
 * One try as libcurl wants it told, and what came of it.  Handles are used again, so each is reset and told everything
 * anew: nothing of one call can be left in the next.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fga/http_client.h"
#include "subzero/crypto.h"

enum { FIRST_ROOM = 4096, PIN_SECONDS = 60 };

/* libcurl's own would be inherited by programs that are started. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
    struct sz_http_job *job = arg;
    (void)purpose;
    int fd = socket(addr->family, addr->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, addr->protocol);
    if (fd < 0)
        job->starved = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return fd;
}

/* ---- what arrives ------------------------------------------------------------------------------------------------ */

/* As sz_buf_add, but what moves is wiped where it was: answers hold tokens. */
static bool keep(struct sz_buf *buf, const char *bytes, size_t n)
{
    if (n > buf->limit - buf->n)
        return false;
    if (buf->n + n > buf->cap) {
        size_t cap = buf->cap < FIRST_ROOM ? FIRST_ROOM : buf->cap;
        while (cap < buf->n + n)
            cap *= 2;
        char *p = sz_xmalloc(cap);
        if (buf->n != 0) {
            memcpy(p, buf->p, buf->n);
            sz_wipe(buf->p, buf->n);
        }
        free(buf->p);
        buf->p = p;
        buf->cap = cap;
    }
    memcpy(buf->p + buf->n, bytes, n);
    buf->n += n;
    return true;
}

static void clear(struct sz_buf *buf, size_t limit)
{
    if (buf->n != 0)
        sz_wipe(buf->p, buf->n);
    buf->n = 0;
    buf->limit = limit;
}

static size_t on_head(char *line, size_t size, size_t n, void *arg)
{
    struct sz_http_job *job = arg;
    n *= size;
    if (sz_starts_with(sz_slice(line, n), SZ_S("HTTP/"))) {
        clear(&job->head, SZ_HTTP_HEAD_MAX); /* of an answer that was only a 1xx */
        return n;
    }
    job->overflow = !keep(&job->head, line, n);
    return job->overflow ? 0 : n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct sz_http_job *job = arg;
    n *= size;
    job->overflow = !keep(&job->answer_body, bytes, n);
    return job->overflow ? 0 : n;
}

/* The connection stands, and the request is about to be sent. */
static int on_connected(void *arg, char *to, char *from, int to_port, int from_port)
{
    struct sz_http_job *job = arg;
    (void)to, (void)from, (void)to_port, (void)from_port;
    job->connected = true;
    sz_http_host_met(job->host);
    return CURL_PREREQFUNC_OK;
}

/* libcurl is about to look a name up itself.  Addresses are handed to it, so only what needs no look-up comes here. */
static int on_resolve(void *resolver, void *reserved, void *arg)
{
    struct sz_http_job *job = arg;
    (void)resolver, (void)reserved;
    return job->host->url.literal ? 0 : 1;
}

/* ---- a handle ---------------------------------------------------------------------------------------------------- */

void sz_http_easy_basics(struct sz_http *http, CURL *easy)
{
    const struct sz_conf_http *conf = &http->shared->conf;
    sz_curl_set_long(easy, CURLOPT_NOSIGNAL, 1);
    sz_curl_set_pointer(easy, CURLOPT_PROXY, ""); /* whatever the environment says */
    sz_curl_set_long(easy, CURLOPT_MAXAGE_CONN, (long)(conf->idle.us / 1000000));
    sz_curl_set_long(easy, CURLOPT_MAXLIFETIME_CONN, (long)(conf->dns_ttl.us / 1000000));
    sz_curl_set_long(easy, CURLOPT_DNS_CACHE_TIMEOUT, PIN_SECONDS);
    sz_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1); /* should it ever look a name up: never wait for that thread */
}

static void set_security(const struct sz_http_job *job)
{
    CURL *easy = job->easy;
    bool tls = job->host->url.tls;
    sz_curl_set_pointer(easy, CURLOPT_PROTOCOLS_STR, tls ? "https" : "http");
    sz_curl_set_long(easy, CURLOPT_FOLLOWLOCATION, 0); /* http_job.c follows */
    if (!tls)
        return;
    sz_curl_set_long(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    sz_curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 1);
    sz_curl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 2);
    sz_curl_set_pointer(easy, CURLOPT_CAINFO, NULL);
    sz_curl_set_long(easy, CURLOPT_CA_CACHE_TIMEOUT, 0);
    sz_http_trust_apply(job->trust, easy);
}

static void set_request(const struct sz_http_job *job)
{
    CURL *easy = job->easy;
    sz_curl_set_pointer(easy, CURLOPT_URL, job->url);
    sz_curl_set_long(easy, CURLOPT_HTTP_VERSION, job->host->url.tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
    sz_curl_set_pointer(easy, CURLOPT_HTTPHEADER, job->fields);
    sz_curl_set_pointer(easy, CURLOPT_USERAGENT, "subzero/" SZ_VERSION);
    if (job->method == SZ_HTTP_POST) {
        sz_curl_set_long(easy, CURLOPT_POST, 1);
        sz_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, job->body.n);
        sz_curl_set_pointer(easy, CURLOPT_POSTFIELDS, job->body.p);
    }
    if (!job->idempotent) /* over a kept connection that has died, libcurl would send it twice */
        sz_curl_set_long(easy, CURLOPT_FRESH_CONNECT, 1);
    if (job->host->pin.data != NULL)
        sz_curl_set_pointer(easy, CURLOPT_RESOLVE, &job->host->pin);
    if (job->connect.us != 0)
        sz_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)((job->connect.us + 999) / 1000));
}

static void set_callbacks(struct sz_http_job *job)
{
    CURL *easy = job->easy;
    sz_curl_set_pointer(easy, CURLOPT_PRIVATE, job);
    sz_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, job->error);
    sz_curl_set_callback(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    sz_curl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, job);
    sz_curl_set_callback(easy, CURLOPT_RESOLVER_START_FUNCTION, on_resolve);
    sz_curl_set_pointer(easy, CURLOPT_RESOLVER_START_DATA, job);
    sz_curl_set_callback(easy, CURLOPT_PREREQFUNCTION, on_connected);
    sz_curl_set_pointer(easy, CURLOPT_PREREQDATA, job);
    sz_curl_set_callback(easy, CURLOPT_HEADERFUNCTION, on_head);
    sz_curl_set_pointer(easy, CURLOPT_HEADERDATA, job);
    sz_curl_set_callback(easy, CURLOPT_WRITEFUNCTION, on_body);
    sz_curl_set_pointer(easy, CURLOPT_WRITEDATA, job);
    sz_curl_set_size(easy, CURLOPT_MAXFILESIZE_LARGE, job->limit); /* a Content-Length that says so is believed */
}

void sz_http_easy_prepare(struct sz_http_job *job)
{
    job->overflow = job->connected = job->starved = false;
    job->error[0] = '\0';
    clear(&job->head, SZ_HTTP_HEAD_MAX);
    clear(&job->answer_body, job->limit);
    sz_http_easy_basics(job->http, job->easy);
    set_security(job);
    set_request(job);
    set_callbacks(job);
}

/* ---- what came of it --------------------------------------------------------------------------------------------- */

static enum sz_http_result classify(const struct sz_http_job *job, CURLcode code)
{
    if (job->overflow)
        return SZ_HTTP_TOO_LARGE;
    switch ((int)code) {
    case CURLE_OK:
        return SZ_HTTP_ANSWERED;
    case CURLE_COULDNT_RESOLVE_HOST:
        return SZ_HTTP_RESOLVE;
    case CURLE_COULDNT_CONNECT:
        return job->starved ? SZ_HTTP_BUSY : SZ_HTTP_REFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return SZ_HTTP_TIMEOUT;
    case CURLE_FILESIZE_EXCEEDED:
        return SZ_HTTP_TOO_LARGE;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return SZ_HTTP_TLS;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SEND_FAIL_REWIND:
        return job->connected ? SZ_HTTP_TRUNCATED : SZ_HTTP_REFUSED;
    default:
        return SZ_HTTP_MALFORMED;
    }
}

static struct sz_span asked_to_wait(const struct sz_http_job *job)
{
    const struct sz_http_answer *answer = &job->answer;
    if (answer->status != 429 && answer->status != 503)
        return (struct sz_span){0};
    static const char *const resets[] = {"x-ratelimit-reset", "x-rate-limit-reset"};
    struct sz_wall now = sz_loop_wall(job->http->loop);
    struct sz_span wait = sz_http_retry_after(sz_http_answer_field(answer, SZ_S("retry-after")), now);
    for (size_t i = 0; i < SZ_COUNT(resets) && wait.us == 0 && answer->status == 429; i++)
        wait = sz_http_rate_reset(sz_http_answer_field(answer, sz_cstr(resets[i])), now);
    return wait;
}

static void count_connection(struct sz_http_job *job)
{
    struct sz_http *http = job->http;
    long made = 0;
    if (!job->connected)
        return;
    sz_curl.easy_getinfo(job->easy, CURLINFO_NUM_CONNECTS, &made);
    job->answer.reused = made == 0;
    http->connections += made != 0;
    http->reused += made == 0;
    sz_count(sz_loop_index(http->loop), made == 0 ? http->m_reused : http->m_connections, 1);
}

void sz_http_easy_read(struct sz_http_job *job, CURLcode code)
{
    struct sz_http_answer *answer = &job->answer;
    long status = 0;
    sz_curl.easy_getinfo(job->easy, CURLINFO_RESPONSE_CODE, &status);
    answer->result = classify(job, code);
    answer->status = (int)status;
    answer->head = sz_buf_slice(&job->head);
    answer->body = sz_buf_slice(&job->answer_body);
    answer->retry_after = asked_to_wait(job);
    count_connection(job);
    answer->why.s[0] = '\0';
    if (answer->result == SZ_HTTP_TOO_LARGE)
        sz_text_set(&answer->why, "more than %zu bytes",
                    job->answer_body.n != 0 ? job->limit : (size_t)SZ_HTTP_HEAD_MAX);
    else if (answer->result == SZ_HTTP_BUSY)
        sz_text_set(&answer->why, "no descriptor or memory was left for a socket; raise the limit of open files");
    else if (answer->result != SZ_HTTP_ANSWERED)
        sz_text_set(&answer->why, "%s", job->error[0] != '\0' ? job->error : sz_curl.easy_strerror(code));
}
