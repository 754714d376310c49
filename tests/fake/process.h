/*
 * Real programs around a test: the gateway's own binary, nginx, HAProxy, h2spec.  Each is started with its output in
 * a file of the test's scratch folder, waited for until it listens, and ended by its own pid; a test that
 * dies takes its programs with it.
 */
#ifndef FAKE_PROCESS_H
#define FAKE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "subzero/base.h"

/* This test's own folder, made when first asked for; readable by all, since programs may drop their privileges. */
const char *scratch_path(void);
void scratch_remove(void);
/* Writes a file into it; the path is kept until scratch_remove.  Asserts on trouble. */
const char *scratch_write(const char *name, struct sz_slice content);
const char *scratch_printf(const char *name, const char *fmt, ...) SZ_PRINTF(2, 3);

/* A port of 127.0.0.1 that nobody holds now, and that no outgoing connection can be given. */
uint16_t free_port(void);

/* Path of a program: $SUBZERO_PEERS, then PATH and the sbin folders; NULL when it is not here. Valid until the next
 * call. */
const char *program_find(const char *name);

struct proc {
    pid_t pid;
    uint16_t port;
    char log[256]; /* file with its stdout and stderr */
};
/*
 * Starts argv[0] (a path) and waits, at most 20 s, until 127.0.0.1:port accepts; port 0: does not wait.
 * False: it ended or never listened; its output is then on stderr.
 */
bool proc_start(struct proc *p, const char *name, uint16_t port, const char *const *argv);
/* SIGTERM, 15 s, SIGKILL.  The wait status; 0 when it was not running. */
int proc_stop(struct proc *p);
/* Runs to the end, at most `seconds`: its exit status (-1: killed or not started); output in the log. */
int proc_run(struct proc *p, const char *name, unsigned seconds, const char *const *argv);
/* Whole file, malloc'ed, NUL-terminated; empty when there is none. */
char *file_read(const char *path, size_t *n);

/*
 * One raw exchange with 127.0.0.1:port: sends all, reads until the other side closes (or 10 s of silence).
 * The answer is NUL-terminated and malloc'ed; NULL when nothing accepted.  Ask for "Connection: close".
 */
char *raw_exchange(uint16_t port, struct sz_slice request, size_t *n);
/* Status of a raw HTTP answer, 0 when it is none. */
int raw_status(const char *answer);
/* Value of a field of a raw answer's head (case-insensitive), copied into out; false when absent. */
bool raw_header(const char *answer, const char *name, char *out, size_t size);
/* The bytes after the head. */
const char *raw_body(const char *answer);

#endif
