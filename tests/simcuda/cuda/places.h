/* SPDX-License-Identifier: Apache-2.0
 * Places of blocks on the multiprocessors of a device: threads, registers and shared memory, as a
 * GPU of compute capability 9.0 has them. */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_PLACES_H
#define TUTTI_TESTS_SIMCUDA_CUDA_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct sim_device;
struct sim_kernel;

enum { SIM_ANY_CARVEOUT = -1 }; /* the function has no preference */

/* The resources that a block takes. */
struct sim_need {
    uint32_t threads;  /* in whole warps */
    uint32_t registers;
    uint32_t shared_bytes;
    uint32_t carveout_bytes; /* the part of the first-level cache that is to be shared memory */
    bool has_preference;     /* it wants just this part */
};

struct sim_multiprocessor {
    uint32_t nblocks, threads, registers, shared_bytes; /* taken */
    uint32_t carveout_bytes; /* changes only while there are no blocks */
};

/* For a kernel with blocks of so many threads. `carveout` is in percent of the shared memory. */
struct sim_need sim_need_of(const struct sim_kernel *kernel, uint32_t threads, int carveout);
/* Returns the registers of a thread, or the bytes of shared memory of a block. */
uint32_t sim_kernel_registers(const struct sim_kernel *kernel);
uint32_t sim_kernel_shared_bytes(const struct sim_kernel *kernel);
/* Returns how many such blocks an empty multiprocessor has room for. */
uint32_t sim_need_occupancy(const struct sim_need *need);

/* Takes a place for one block on the first `multiprocessors` and returns which one has it; -1: there
 * is none now. */
int sim_place_take(struct sim_device *device, const struct sim_need *need,
                   uint32_t multiprocessors);
void sim_place_give(struct sim_device *device, const struct sim_need *need, int multiprocessor);

#endif
