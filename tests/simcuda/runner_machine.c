/* SPDX-License-Identifier: Apache-2.0
 * Runs kernels on the machine of fibers. */
#include "simcuda/runner.h"
#include "simcuda/sim_kernel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *memory;
static size_t memory_bytes;

bool runner_open(void)
{
    return true;
}

void runner_close(void)
{
    free(memory);
    memory = NULL;
    memory_bytes = 0;
}

uint64_t runner_memory(size_t size_bytes)
{
    if (size_bytes > memory_bytes) {
        free(memory);
        memory_bytes = (size_bytes + 255) / 256 * 256;
        memory = aligned_alloc(256, memory_bytes);
        assert(memory != NULL);
    }
    return (uint64_t)(uintptr_t)memory;
}

void runner_upload(size_t at, const void *from, size_t size_bytes)
{
    memcpy(memory + at, from, size_bytes);
}

void runner_download(void *to, size_t at, size_t size_bytes)
{
    memcpy(to, memory + at, size_bytes);
}

void runner_launch(const char *kernel, uint32_t blocks, uint32_t threads, const void *argument,
                   size_t argument_bytes)
{
    (void)argument_bytes;
    sim_kernel_run(kernel, blocks, threads, argument);
}

uint32_t runner_most_blocks(void)
{
    return 3;
}

uint32_t runner_most_threads(void)
{
    return 96;
}
