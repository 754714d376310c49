/* A counting sketch of two rows; see the header.  128 KiB in all, about 0.3 connections a cell at 10,000. */
#include "subzero/addr_count.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "subzero/crypto.h"

#define CELLS 16384 /* a row; a power of two */

struct sz_addr_count {
    struct sz_key128 key;
    atomic_uint cells[2][CELLS];
};

struct sz_addr_count *sz_addr_count_new(void)
{
    struct sz_addr_count *table = sz_xcalloc(1, sizeof(*table));
    sz_random(&table->key, sizeof(table->key));
    return table;
}

void sz_addr_count_free(struct sz_addr_count **table)
{
    free(*table);
    *table = NULL;
}

static void cells_of(struct sz_addr_count *table, struct sz_addr addr, atomic_uint *cells[2])
{
    struct sz_addr net = sz_addr_is_v4(addr) ? addr : sz_addr_prefix(addr, 64);
    struct sz_hash128 h = sz_hash128(&table->key, sz_slice(net.b, sizeof(net.b)));
    cells[0] = &table->cells[0][h.w[0] % CELLS];
    cells[1] = &table->cells[1][h.w[1] % CELLS];
}

bool sz_addr_count_enter(struct sz_addr_count *table, struct sz_addr addr, uint32_t most)
{
    atomic_uint *cells[2];
    cells_of(table, addr, cells);
    unsigned a = atomic_fetch_add(cells[0], 1), b = atomic_fetch_add(cells[1], 1);
    if ((a < b ? a : b) < most)
        return true;
    atomic_fetch_sub(cells[0], 1);
    atomic_fetch_sub(cells[1], 1);
    return false;
}

void sz_addr_count_leave(struct sz_addr_count *table, struct sz_addr addr)
{
    atomic_uint *cells[2];
    cells_of(table, addr, cells);
    atomic_fetch_sub(cells[0], 1);
    atomic_fetch_sub(cells[1], 1);
}
