/*
 * tls.watch: looks every few seconds whether a certificate file was replaced and reloads when it was and has stayed so
 * for one more look (a key and its certificate are rarely written in the same instant).  Service thread; the looking
 * itself happens on a thread of its own, since a file system may block.
 */
#ifndef SZ_EDGE_CERT_WATCH_H
#define SZ_EDGE_CERT_WATCH_H

struct sz_server;

/* From the start, and again whenever a configuration was taken: watches what that one names, if it asks for it. */
void sz_cert_watch_follow(struct sz_server *server);
void sz_cert_watch_end(struct sz_server *server);

#endif
