/*
 * tls.watch: looks every few seconds whether a certificate file was replaced and reloads when it was and has stayed so
 * for one more look (a key and its certificate are rarely written in the same instant).  Service thread; the looking
 * itself happens on a thread of its own, since a file system may block.
 */
#ifndef SZ_EDGE_CERT_WATCH_H
#define SZ_EDGE_CERT_WATCH_H

struct sz_server;
struct sz_cert_watch;

/* NULL when no listener asks for it. */
struct sz_cert_watch *sz_cert_watch_new(struct sz_server *server);
void sz_cert_watch_free(struct sz_cert_watch **watch);

#endif
