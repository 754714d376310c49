/*
 * The gateway's own binary under test: a configuration from a template, free ports, started and waited for until it is
 * ready, ended by SIGTERM.  A sanitizer's report in its output is a failure.
 *
 * In the template: {port} {port2} {port3} data listeners, {admin} the admin listener, {upstream} whatever the test
 * gave, {dir} the test's scratch folder.
 */
#ifndef FAKE_GATEWAY_H
#define FAKE_GATEWAY_H

#include "fake/process.h"

struct gateway {
    struct proc proc;
    uint16_t port, port2, port3, admin, upstream;
    const char *config; /* path of the file */
    char name[32];      /* of its file and log */
    const char *binary;
};

/* $SUBZERO_BINARY, when set, is started instead.  False: it did not become ready; its output is on stderr. */
bool gateway_start_binary(struct gateway *g, const char *binary, const char *yaml, uint16_t upstream);
#define gateway_start(g, yaml, upstream) gateway_start_binary(g, SZ_BINARY, yaml, upstream)
/* Started and listening, ready or not. */
bool gateway_launch_binary(struct gateway *g, const char *binary, const char *yaml, uint16_t upstream);
#define gateway_start_cold(g, yaml, upstream) gateway_launch_binary(g, SZ_BINARY, yaml, upstream)
/* One of several: its file and log have this name. */
bool gateway_start_named(struct gateway *g, const char *name, const char *binary, const char *yaml, uint16_t upstream);
#define gateway_start_as(g, name, yaml, upstream) gateway_start_named(g, name, SZ_BINARY, yaml, upstream)
/* SIGKILL, and waits for it to be gone. */
void gateway_kill(struct gateway *g);
/* After it ended: the same ports and configuration. */
bool gateway_again(struct gateway *g);
/* The same ports, another configuration in the file; the caller sends SIGHUP. */
void gateway_rewrite(struct gateway *g, const char *yaml);
/* Sends SIGHUP and waits until the log says that it was obeyed or refused; true: obeyed. */
bool gateway_reload(struct gateway *g);
/* SIGTERM.  True: exit status 0 and no sanitizer's report (which is then on stderr). */
bool gateway_stop(struct gateway *g);
/* True when the log has the text, or has it within 2 s. */
bool gateway_logged(struct gateway *g, const char *text);
/* GET of the admin listener: the whole raw answer, malloc'ed. */
char *gateway_admin(struct gateway *g, const char *path);
/* One value of /metrics, by the sample's text up to the blank ("name{labels}"); -1 when it is not there. */
double gateway_metric(struct gateway *g, const char *sample);
/* Kilobytes of a field of /proc/PID/status, e.g. "VmHWM". */
long gateway_status_kb(struct gateway *g, const char *field);

#endif
