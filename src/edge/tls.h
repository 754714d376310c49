/*
 * TLS of the listeners: one SSL_CTX per certificate, one outer one per listener that chooses by SNI.  Built from files
 * off the loops, immutable, counted; replaced whole by a reload.
 */
#ifndef SZ_EDGE_TLS_H
#define SZ_EDGE_TLS_H

#include "subzero/conf.h"

struct sz_server;
struct sz_edge_thread;
struct sz_tls_set;

/*
 * For the server's TLS listeners, from the listeners of `conf` with the same addresses (a listener that conf no longer
 * has keeps what the process started with).  Blocking.  NULL: mistakes in m.
 */
struct sz_tls_set *sz_tls_set_new(struct sz_server *server, const struct sz_conf *conf, struct sz_mistakes *m);
/* Reads the files of every TLS listener, as a start would.  Blocking.  False: mistakes in m. */
bool sz_tls_check(const struct sz_conf *conf, struct sz_mistakes *m);
void sz_tls_set_ref(struct sz_tls_set *set);
void sz_tls_set_unref(struct sz_tls_set *set); /* NULL is fine; any thread */

/*
 * Own thread: new connections use it.  h2o keeps the bare pointer of a connection's SSL_CTX until its handshake
 * starts, so the old set is held for longer than a handshake may take.
 */
void sz_tls_thread_swap(struct sz_edge_thread *thread, struct sz_tls_set *set);
void sz_tls_thread_fini(struct sz_edge_thread *thread);

/* The certificate that ends first, for /health.  False without TLS. */
struct sz_tls_expiry {
    int64_t at; /* unix seconds */
    char subject[128];
};
bool sz_tls_first_expiry(const struct sz_tls_set *set, struct sz_tls_expiry *out);
/* The same for a scrape; arg: the struct sz_server. */
void sz_tls_collect(void *arg, struct sz_buf *out);

/*
 * Hash over the metadata of the watched files of which sz_tls_set_new would make a set: changes when one is replaced.
 * Blocking.
 */
uint64_t sz_tls_files_state(const struct sz_server *server, const struct sz_conf *conf);
/* That hash as it was just before the set's files were read: what is different now has not been loaded. */
uint64_t sz_tls_set_files(const struct sz_tls_set *set);
/* True when any listener has tls.watch. */
bool sz_tls_wants_watch(const struct sz_conf *conf);

#endif
