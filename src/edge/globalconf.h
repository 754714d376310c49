/* h2o's own configuration: one catch-all path for each kind of listener and the limits that h2o enforces for us. */
#ifndef SZ_EDGE_GLOBALCONF_H
#define SZ_EDGE_GLOBALCONF_H

struct sz_server;

/* From server->boot; before the threads. */
void sz_globalconf_init(struct sz_server *server);
void sz_globalconf_fini(struct sz_server *server);

#endif
