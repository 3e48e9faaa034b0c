/* SPDX-License-Identifier: Apache-2.0
 * Finds kernels by name, and runs them without a driver. */
#include "simcuda/sim_kernel.h"

#include "simcuda/die.h"
#include "simcuda/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct sim_kernel *kernels;

void sim_kernel_register(struct sim_kernel *kernel)
{
    kernel->next = kernels;
    kernels = kernel;
}

const struct sim_kernel *sim_kernel_find(const char *name)
{
    const struct sim_kernel *kernel = kernels;

    while (kernel != NULL && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    return kernel;
}

void sim_kernel_run(const char *name, uint32_t blocks, uint32_t threads, const void *argument)
{
    struct sim_launch launch = {.kernel = sim_kernel_find(name), .blocks = blocks,
                                .threads = threads, .argument = argument};

    if (launch.kernel == NULL)
        sim_die("no kernel is called %s", name);
    if (threads == 0 || threads > launch.kernel->most_threads)
        sim_die("kernel %s with %u threads: it may have %u", name, threads,
                launch.kernel->most_threads);
    sim_launch_run(&launch);
}

static void *run_call(void *argument)
{
    const struct sim_kernel_call *call = argument;

    sim_kernel_run(call->name, call->blocks, call->threads, call->argument);
    return NULL;
}

void sim_kernel_run_all(const struct sim_kernel_call *calls, size_t ncalls)
{
    pthread_t *threads = calloc(ncalls, sizeof *threads);

    if (threads == NULL && ncalls > 0)
        sim_die("no memory for %zu kernels at once", ncalls);
    for (size_t i = 0; i < ncalls; i++)
        if (pthread_create(&threads[i], NULL, run_call, (void *)(uintptr_t)&calls[i]) != 0)
            sim_die("no thread for a kernel");
    for (size_t i = 0; i < ncalls; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}
