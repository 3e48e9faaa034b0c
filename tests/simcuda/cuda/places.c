/* SPDX-License-Identifier: Apache-2.0
 * Counts the places of blocks on multiprocessors. */
#include "simcuda/cuda/places.h"

#include "base/round.h"
#include "simcuda/cuda/state.h"
#include "simcuda/thread.h"

#include <stddef.h>
#include <string.h>

enum {
    WARP = 32,
    REGISTERS = 65536,        /* of a multiprocessor */
    REGISTER_UNIT = 256,      /* a warp takes a multiple */
    BLOCKS = 32,              /* most at a time */
    SHARED_UNIT = 128,        /* a block takes a multiple */
    SHARED_RESERVED = 1024,   /* of each block, for the system */
    PLAIN_REGISTERS = 32,     /* of kernels that the table does not name */
};

/* From the machine code for compute capability 9.0, as ptxas -v tells. */
static const struct {
    const char *name;
    uint32_t registers, shared_bytes;
} kernels[] = {
    {"tutti_kernel_empty", 4, 0},
    {"tutti_kernel_copy", 70, 0},
    {"tutti_kernel_reduce", 96, 0},
    {"tutti_kernel_convert", 56, 0},
    {"tutti_kernel_test_lines", 35, 0},
    {"tutti_kernel_work_small", 128, 0},
    {"tutti_kernel_work_direct", 128, 4176},
    {"tutti_kernel_group", 128, 22128},
    {"tutti_kernel_meeting", 52, 0},
    {"try_sum", PLAIN_REGISTERS, 8192},
};

/* The sizes that shared memory may have. */
static const uint32_t carveouts_kib[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};
enum { CARVEOUTS = sizeof carveouts_kib / sizeof carveouts_kib[0] };

/* ---- what a block takes ---------------------------------------------------------------------- */

static size_t find(const struct sim_kernel *kernel)
{
    size_t i = 0;

    while (i < sizeof kernels / sizeof kernels[0] && strcmp(kernels[i].name, kernel->name) != 0)
        i++;
    return i;
}

uint32_t sim_kernel_registers(const struct sim_kernel *kernel)
{
    size_t i = find(kernel);

    return i < sizeof kernels / sizeof kernels[0] ? kernels[i].registers : PLAIN_REGISTERS;
}

uint32_t sim_kernel_shared_bytes(const struct sim_kernel *kernel)
{
    size_t i = find(kernel);

    return i < sizeof kernels / sizeof kernels[0] ? kernels[i].shared_bytes : 0;
}

/* Returns the smallest possible size of at least so many bytes, or the largest one. */
static uint32_t carveout_of(uint64_t bytes)
{
    size_t i = 0;

    while (i < CARVEOUTS - 1 && (uint64_t)carveouts_kib[i] << 10 < bytes)
        i++;
    return carveouts_kib[i] << 10;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Returns how many blocks fit if shared memory is no limit. */
static uint32_t most_blocks(const struct sim_need *need)
{
    return least(BLOCKS, least(sim_settings.multiprocessor_threads / need->threads,
                               REGISTERS / need->registers));
}

/* Without a preference, the driver takes as much shared memory as the most blocks need. A
 * preference is a hint: if no block had room, the driver takes more. */
struct sim_need sim_need_of(const struct sim_kernel *kernel, uint32_t threads, int carveout)
{
    uint32_t nwarps = (threads + WARP - 1) / WARP, shared = sim_kernel_shared_bytes(kernel);
    struct sim_need need = {.threads = nwarps * WARP, .has_preference = carveout >= 0};
    uint64_t wanted;

    need.registers = nwarps * (uint32_t)tutti_round_up(sim_kernel_registers(kernel) * WARP,
                                                       REGISTER_UNIT);
    need.shared_bytes =
        shared > 0 ? (uint32_t)tutti_round_up(shared, SHARED_UNIT) + SHARED_RESERVED : 0;
    wanted = need.has_preference ? (uint64_t)carveout * carveout_of(UINT64_MAX) / 100
                                 : (uint64_t)most_blocks(&need) * need.shared_bytes;
    need.carveout_bytes = carveout_of(wanted > need.shared_bytes ? wanted : need.shared_bytes);
    return need;
}

uint32_t sim_need_occupancy(const struct sim_need *need)
{
    uint32_t blocks = most_blocks(need);

    return need->shared_bytes == 0 ? blocks
                                   : least(blocks, need->carveout_bytes / need->shared_bytes);
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool has_room(const struct sim_multiprocessor *at, const struct sim_need *need)
{
    if (at->nblocks == BLOCKS || at->registers + need->registers > REGISTERS ||
        at->threads + need->threads > sim_settings.multiprocessor_threads)
        return false;
    if (at->nblocks == 0)
        return true;
    if (need->has_preference && at->carveout_bytes != need->carveout_bytes)
        return false;
    return at->shared_bytes + need->shared_bytes <= at->carveout_bytes;
}

/* The multiprocessor with the fewest threads. */
int sim_place_take(struct sim_device *device, const struct sim_need *need,
                   uint32_t multiprocessors)
{
    struct sim_multiprocessor *best = NULL, *all = device->multiprocessors;

    pthread_mutex_lock(&device->places_lock);
    for (uint32_t i = 0; i < multiprocessors; i++)
        if (has_room(&all[i], need) && (best == NULL || all[i].threads < best->threads))
            best = &all[i];
    if (best != NULL) {
        if (best->nblocks++ == 0)
            best->carveout_bytes = need->carveout_bytes;
        best->threads += need->threads;
        best->registers += need->registers;
        best->shared_bytes += need->shared_bytes;
    }
    pthread_mutex_unlock(&device->places_lock);
    return best != NULL ? (int)(best - all) : -1;
}

void sim_place_give(struct sim_device *device, const struct sim_need *need, int multiprocessor)
{
    struct sim_multiprocessor *at = &device->multiprocessors[multiprocessor];

    pthread_mutex_lock(&device->places_lock);
    at->nblocks--;
    at->threads -= need->threads;
    at->registers -= need->registers;
    at->shared_bytes -= need->shared_bytes;
    pthread_mutex_unlock(&device->places_lock);
}
