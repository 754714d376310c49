/*
 * An upstream for tests, in threads of the test's process: it records every request as it came over the wire and
 * answers as its script says, well or badly.  It reads bodies strictly, so a request that a gateway framed wrongly
 * shows as a request too many or as a broken one.
 */
#ifndef FAKE_UPSTREAM_H
#define FAKE_UPSTREAM_H

#include "fake/wire.h"

struct upstream;

struct upstream_request {
    struct sz_slice raw;    /* head and body as they came; of a body the first 256 KiB */
    struct sz_slice head;   /* to the empty line, NUL-terminated behind n */
    struct sz_slice method; /* to the first blank of the request line */
    struct sz_slice target; /* between its first and its last blank */
    struct sz_slice body;   /* decoded, the first 256 KiB */
    uint64_t body_n;        /* decoded, all of it */
    size_t number;          /* which since the start, from 0 */
    unsigned connection;    /* which connection it came on, from 1 */
    bool ended;             /* read to its end, or given up */
    bool broken;            /* no HTTP request, badly framed, or cut short */
    struct sz_buf *unread;  /* while `speak` runs: bytes read already that came behind it */
};

enum upstream_phase {
    UPSTREAM_NEVER,
    UPSTREAM_AT_ACCEPT, /* nothing is read */
    UPSTREAM_AT_HEAD,   /* the request's head is read, its body is not */
    UPSTREAM_AT_ANSWER, /* the whole request is read; `after` bytes of the answer are sent */
};
enum upstream_fault { UPSTREAM_HANG, UPSTREAM_CLOSE, UPSTREAM_RESET };

/* Zeroed: every request is answered with 200, "ok", and the connection kept unless the request asks to close. */
struct upstream_script {
    struct sz_slice answer;       /* raw bytes, which outlive the script; absent: 200, "ok" */
    uint64_t stream;              /* a body of so many bytes; with no `answer`, 200 with that Content-Length */
    enum upstream_phase fault_at; /* where `fault` happens, if anywhere */
    enum upstream_fault fault;
    uint64_t after;
    struct sz_span wait;  /* before the answer */
    size_t drip;          /* the answer goes out so many bytes at a time ... */
    struct sz_span pause; /* ... and this long apart */
    bool close;           /* after the answer */
    bool ignores_body;    /* answers at the head and takes what follows for the next request */
    bool forgets;         /* requests are not recorded: for many of them */
    /* Instead of all that: speaks for itself; false closes the connection. */
    bool (*speak)(struct wire *w, const struct upstream_request *request, void *arg);
    void *arg;
};

struct upstream_tls {
    const char *certificate, *key; /* PEM files */
    const char *client_ca;         /* ask for, and insist on, a client certificate */
    int max_version;
    bool h2; /* agree on HTTP/2 where the client offers it; its preface comes to `speak` as a request of method PRI */
};

/* On a free port of 127.0.0.1; tls NULL: plain. */
struct upstream *upstream_start(const struct upstream_tls *tls);
struct upstream *upstream_start_at(const struct upstream_tls *tls, uint16_t port);
/* On another address of this machine, in IPv4's dots; 0.0.0.0: on all of them. */
struct upstream *upstream_start_on(const struct upstream_tls *tls, const char *address, uint16_t port);
void upstream_stop(struct upstream **u);
uint16_t upstream_port(const struct upstream *u);
/* From the next request (or connection) on; NULL: the zeroed one. */
void upstream_play(struct upstream *u, const struct upstream_script *script);
/* Connections are refused from now on; and accepted again, on the same port. */
void upstream_refuse(struct upstream *u);
void upstream_accept(struct upstream *u);

/* Requests whose head came, since the last clear. */
size_t upstream_count(struct upstream *u);
/* Waits until so many have ended. */
bool upstream_wait(struct upstream *u, size_t n, struct sz_span limit);
/* Since the last clear; NULL: not so many.  Valid until upstream_stop, and stands still once `ended`. */
const struct upstream_request *upstream_at(struct upstream *u, size_t i);
void upstream_clear(struct upstream *u);           /* no request may be on its way */
unsigned upstream_connections(struct upstream *u); /* accepted since the start */
unsigned upstream_open(struct upstream *u);        /* open now */
uint64_t upstream_sent(struct upstream *u);        /* bytes of answers that the kernel took, since the start */

bool upstream_field(const struct upstream_request *request, const char *name, char *out, size_t size);
unsigned upstream_field_count(const struct upstream_request *request, const char *name);

#endif
