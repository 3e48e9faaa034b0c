/* SPDX-License-Identifier: Apache-2.0
 * One run of a kernel. The threads of its blocks take turns on the calling thread of the CPU. */
#ifndef TUTTI_TESTS_SIMCUDA_LAUNCH_H
#define TUTTI_TESTS_SIMCUDA_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_kernel;

struct sim_launch {
    const struct sim_kernel *kernel;
    uint32_t blocks, threads; /* of the grid; of a block, a positive number */
    const void *argument;     /* the kernel's bytes, aligned to 16; unchanged while it runs */

    /* The owner of the multiprocessors. All members may be NULL; then there is room for all
     * blocks. */
    void *context;
    bool (*take_place)(void *context); /* for one block; never blocks */
    void (*give_place)(void *context);
    bool (*must_end)(void *context);   /* asked now and then: the threads are to be thrown away */
    /* Each access: it does not return from one that is forbidden. */
    void (*check)(void *context, const void *at, size_t size_bytes, bool is_store);
    bool (*tears)(void *context, const void *at); /* true if lines that go there are seen in
                                                     parts */
    bool has_watched_warps; /* for TSan a warp is one thread: faster, but blind to races between its lanes */
    bool has_small_crews; /* one thread of a block copies and combines all its data */
    uint64_t watchdog_ns; /* after this time without progress the process ends with a message; 0:
                             never */
};

/* Returns when all blocks have ended; false: `must_end` said so before. */
bool sim_launch_run(const struct sim_launch *launch);

/* Inside a kernel: true if the address is on a thread's stack, or in the block's shared memory. */
bool sim_is_private(const void *at);

/* NULL: there is none of that name. */
const struct sim_kernel *sim_kernel_find(const char *name);

/* Stores get to others late, and plain loads see old data, as `seed` has it; 0: neither. At first it
 * is what SIMCUDA_WEAK says. For launches that begin afterwards. */
void sim_weak_set(uint64_t seed);
/* Lines are not whole: others may see the end of a line long before the rest of it. */
void sim_lines_set_torn(bool are_torn);

#endif
