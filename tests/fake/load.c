/* See load.h. */
#include "fake/load.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/client.h"
#include "subzero/time.h"

static void note_latency(struct load *load, int64_t us)
{
    if (load->latencies_max == 0)
        return;
    unsigned long at = atomic_fetch_add(&load->latencies_n, 1);
    if (at < load->latencies_max)
        load->latencies_us[at] = (uint32_t)us;
}

/* False: the connection is of no more use. */
static bool one(struct load *load, int fd, unsigned sent)
{
    char buf[16384], connection[32] = "";
    int64_t begun = sz_mono_read().us;
    if (!client_send(fd, sz_cstr(load->request))) {
        atomic_fetch_add(&load->lost, 1);
        return false;
    }
    int status = client_response(fd, buf, sizeof(buf), 20000);
    if (status == 0)
        atomic_fetch_add(&load->lost, 1);
    else if (status == 200)
        atomic_fetch_add(&load->ok, 1);
    else
        atomic_fetch_add(&load->refused, 1);
    if (status == 503)
        atomic_fetch_add(&load->status_503, 1);
    if (status == 200)
        note_latency(load, sz_mono_read().us - begun);
    if (status == 0 ||
        (raw_header(buf, "connection", connection, sizeof(connection)) && strcmp(connection, "close") == 0))
        return false;
    return load->requests_per_connection == 0 || sent < load->requests_per_connection;
}

static void *client_main(void *arg)
{
    struct load *load = arg;
    while (!load->stop) {
        int fd = client_open(load->port);
        if (fd < 0) {
            atomic_fetch_add(&load->unconnected, 1);
            usleep(10000);
            continue;
        }
        unsigned sent = 0;
        while (!load->stop && one(load, fd, ++sent))
            if (load->pause_us != 0)
                usleep(load->pause_us);
        close(fd);
    }
    return NULL;
}

void load_start(struct load *load)
{
    SZ_ASSERT(load->clients <= SZ_COUNT(load->threads));
    if (load->latencies_max != 0)
        load->latencies_us = sz_xcalloc(load->latencies_max, sizeof(uint32_t));
    for (unsigned i = 0; i < load->clients; i++)
        SZ_ASSERT(pthread_create(&load->threads[i], NULL, client_main, load) == 0);
}

void load_end(struct load *load)
{
    load->stop = true;
    for (unsigned i = 0; i < load->clients; i++)
        pthread_join(load->threads[i], NULL);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

uint32_t load_percentile(struct load *load, double p)
{
    size_t n = load->latencies_n < load->latencies_max ? load->latencies_n : load->latencies_max;
    if (n == 0)
        return 0;
    qsort(load->latencies_us, n, sizeof(uint32_t), compare);
    size_t at = (size_t)(p / 100 * (double)n);
    return load->latencies_us[at < n ? at : n - 1];
}
