/* What tests of providers share: the gateway in front of an upstream, with the fake provider as its issuer. */
#ifndef INTEGRATION_PROVIDER_KIT_H
#define INTEGRATION_PROVIDER_KIT_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/provider.h"
#include "harness.h"

extern struct gateway kit_gateway;
extern struct upstream *kit_upstream;
extern struct provider *kit_provider; /* plain HTTP on loopback, its issuer its own url */

/* Suite fixtures: upstream and provider; everything is ended, and the gateway must have ended well. */
void provider_kit_init(void);
void provider_kit_fini(void);

/* top: further lines at the top level; issuer: further members of the issuer `idp`, each ", key: value" */
void kit_start(const char *top, const char *issuer);
/* The same without waiting for readiness. */
void kit_start_cold(const char *top, const char *issuer);
/* What kit_start would write: for rewriting before a reload.  malloc'ed. */
char *kit_yaml(const char *top, const char *issuer);

/* GET /x with this token: the status; retry_after and reason may be NULL. */
int kit_ask(const char *token, char reason[64], char retry_after[32]);
void kit_expect(const char *token, int status, const char *reason, const char *what);
/* Waits until the gateway is ready, or not, as wanted: 10 s at most. */
bool kit_ready(bool wanted, unsigned ms);
/* Waits until a sample of /metrics has at least this value. */
bool kit_metric_reaches(const char *sample, double value, unsigned ms);
double kit_now(void); /* seconds, monotonic */
void kit_sleep(unsigned ms);

/* n requests at once, each on a thread and connection of its own. */
struct kit_shot {
    const char *token;
    int status;
    char reason[64], retry_after[32];
    double seconds;
    pthread_t thread;
};
void kit_shoot(struct kit_shot *shots, size_t n);

#endif
