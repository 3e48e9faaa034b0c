/* SPDX-License-Identifier: Apache-2.0
 * Runs the work of streams and graphs. */
#include "simcuda/cuda/work.h"

#include "simcuda/cuda/faults.h"
#include "simcuda/cuda/graph.h"
#include "simcuda/cuda/memory.h"
#include "simcuda/die.h"
#include "simcuda/launch.h"
#include "simcuda/thread.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sim_work *sim_work_create(enum sim_work_kind kind, struct tutti_cu_context *context)
{
    struct sim_work *work = calloc(1, sizeof *work);

    if (work == NULL)
        sim_die("no memory to note what a stream does");
    work->kind = kind;
    work->nrefs = 1;
    work->context = context;
    return work;
}

void sim_work_drop(struct sim_work *work)
{
    if (--work->nrefs > 0)
        return;
    if (work->kind == SIM_WORK_KERNEL)
        free(work->kernel.argument);
    if (work->kind == SIM_WORK_COPY)
        free(work->copy.staged);
    if (work->kind == SIM_WORK_GRAPH)
        sim_exec_drop(work->exec);
    free(work);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* A launch's share of its device's multiprocessors. */
struct share {
    struct sim_device *device;
    const char *kernel;
    const struct sim_need *need;        /* of a block */
    uint32_t multiprocessors;           /* that it may use, from the first one on */
    uint32_t held[SIM_MULTIPROCESSORS]; /* blocks on each */
};

static bool take_place(void *context)
{
    struct share *share = context;
    int multiprocessor = sim_place_take(share->device, share->need,
                                        share->multiprocessors);

    if (multiprocessor < 0)
        return false;
    share->held[multiprocessor]++;
    return true;
}

/* All blocks of a launch are the same, so it is enough that one of its own places becomes free. */
static void give_place(void *context)
{
    struct share *share = context;
    int i = 0;

    while (share->held[i] == 0)
        i++;
    share->held[i]--;
    sim_place_give(share->device, share->need, i);
}

static bool is_lost(void *context)
{
    return sim_device_lost(((const struct share *)context)->device) != 0;
}

static void check(void *context, const void *at, size_t size_bytes, bool is_store)
{
    const struct share *share = context;

    sim_memory_check(share->device, share->kernel, at, size_bytes, is_store);
}

static bool tears(void *context, const void *at)
{
    return sim_memory_tears(((const struct share *)context)->device, at);
}

/* Loses the device if this is the work at which it is to be lost. */
static void count_launch(struct sim_device *device)
{
    uint64_t n = __atomic_add_fetch(&device->nlaunches, 1, __ATOMIC_RELAXED);

    if (device->ordinal == sim_faults.lost_device && n > sim_faults.lost_after)
        sim_device_lose(device, sim_faults.lost_code);
}

static void run_kernel(const struct sim_work *work)
{
    struct sim_device *device = work->context->device;
    struct share share = {.device = device, .kernel = work->kernel.kernel->name,
                          .need = &work->kernel.need,
                          .multiprocessors = work->kernel.multiprocessors};
    struct sim_launch launch = {
        .kernel = work->kernel.kernel, .blocks = work->kernel.blocks,
        .threads = work->kernel.threads, .argument = work->kernel.argument,
        .context = &share, .take_place = take_place, .give_place = give_place,
        .must_end = is_lost, .check = sim_settings.must_check ? check : NULL, .tears = tears,
        .has_watched_warps = sim_settings.has_watched_warps,
        .has_small_crews = sim_settings.has_small_crews, .watchdog_ns = sim_settings.watchdog_ns,
    };

    count_launch(device);
    if (sim_faults.slow_launch_us != 0)
        usleep(sim_faults.slow_launch_us);
    sim_launch_run(&launch);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Words are copied whole, as by devices: kernels may look at them meanwhile. */
static void run_copy(const struct sim_work *work)
{
    enum { LATE_US = 200 };
    uintptr_t places = (uintptr_t)work->copy.to | (uintptr_t)work->copy.from;

    if (work->copy.staged != NULL) {
        usleep(LATE_US);
        memcpy(work->copy.to, work->copy.staged, work->copy.size_bytes);
    } else if (work->copy.size_bytes == sizeof(uint64_t) && places % sizeof(uint64_t) == 0)
        __atomic_store_n((uint64_t *)work->copy.to, *(const uint64_t *)work->copy.from,
                         __ATOMIC_RELAXED);
    else
        memmove(work->copy.to, work->copy.from, work->copy.size_bytes);
    if (work->copy.is_corrupt && work->copy.size_bytes > 0)
        ((unsigned char *)work->copy.to)[work->copy.size_bytes / 2] ^= 1;
}

/* Of a device that is lost none is called. */
static void run_host_function(const struct sim_work *work)
{
    count_launch(work->context->device);
    if (sim_device_lost(work->context->device) != 0)
        return;
    sim_host_function_begins();
    work->host.function(work->host.argument);
    sim_host_function_ends();
}

/* A stream waits for a word of memory; a device that is lost waits for nothing. */
static void run_wait(const struct sim_work *work)
{
    for (;;) {
        uint32_t value = __atomic_load_n(work->wait.at, __ATOMIC_ACQUIRE);

        if (work->wait.flags == TUTTI_CU_WAIT_EQUAL ? value == work->wait.value
                                                    : (int32_t)(value - work->wait.value) >= 0)
            return;
        if (sim_device_lost(work->context->device) != 0)
            return;
        usleep(20);
    }
}

void sim_work_run(const struct sim_work *work)
{
    if (sim_device_lost(work->context->device) != 0)
        return;
    switch (work->kind) {
    case SIM_WORK_NOTHING: break;
    case SIM_WORK_KERNEL: run_kernel(work); break;
    case SIM_WORK_COPY: run_copy(work); break;
    case SIM_WORK_SET: memset(work->set.to, work->set.value, work->set.size_bytes); break;
    case SIM_WORK_HOST: run_host_function(work); break;
    case SIM_WORK_WAIT: run_wait(work); break;
    case SIM_WORK_GRAPH: sim_exec_run(work->exec); break;
    }
}
