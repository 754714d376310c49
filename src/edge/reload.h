/*
 * Reloading (SIGHUP, or a changed certificate): everything that blocks happens on a thread of its own, then the new
 * snapshot goes to the workers by message.  A bad file changes nothing and is said in the log, in /health and in
 * subzero_config_last_reload_successful.
 */
#ifndef SZ_EDGE_RELOAD_H
#define SZ_EDGE_RELOAD_H

#include "subzero/base.h"
#include "subzero/time.h"

struct sz_server;
struct sz_reloader;

struct sz_reloader *sz_reloader_new(struct sz_server *server);
void sz_reloader_free(struct sz_reloader **reloader); /* none may be running */

/* Service thread.  While one is running another is remembered and follows. */
void sz_reload_start(struct sz_reloader *reloader);
/*
 * After the service loop: waits for a reload that runs, and drops what it made.  False: it still runs at `end` (a file
 * system that does not answer), and uses the server.
 */
bool sz_reload_wait(struct sz_reloader *reloader, struct sz_mono end) SZ_MUST_CHECK;
/* Service thread, for /health: false with *why when the last one failed. */
bool sz_reload_ok(const struct sz_reloader *reloader, struct sz_text *why);
/* Logs every mistake of m. */
struct sz_mistakes;
void sz_mistakes_log(const struct sz_mistakes *m);

#endif
