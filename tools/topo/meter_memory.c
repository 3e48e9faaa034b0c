/* SPDX-License-Identifier: Apache-2.0
 * Measures the work of a rank in its memory: copies, reductions, and loads of data that another
 * core has just stored. It uses the functions that the executor uses. A footprint is the size of
 * all buffers together. */
#include "base/atomic.h"
#include "common/memory.h"
#include "device/cpu/cpu.h"
#include "topo/meter.h"
#include "topo/timing.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* All bytes of src and dst have the value FILL at first. The thread that stores new data into src
 * gives them the value NEW. Both give ordinary numbers in every type. Zeros would give wrong times,
 * because some processors store zeros to memory twice as fast. */
enum { FILL = 0x3c, NEW = 3 };

/* Footprints in bytes, and the size of a buffer for incoming data. The executor reduces a message
 * in parts as they arrive. So the measured reduction reads INCOMING bytes that stay in a cache. */
enum { LEAST = 32 << 10, MOST = 32 << 20, MOST_QUICK = 1 << 20, INCOMING = 32 << 10 };

/* The memory that is measured, and what the process and the storing thread share. */
struct buffers {
    uint8_t *src, *dst;
    uint8_t *incoming; /* data that a reduction adds to src; zeros */
    uint8_t *fresh;    /* data that the storing thread copies to src */
    size_t size_bytes; /* size of src, and of dst */
    cpu_set_t allowed; /* all allowed cores */
    cpu_set_t others;  /* the allowed cores except the core of the process */
    double store_s;    /* time that the storing thread took, in seconds */
    uint32_t is_stored;  /* 1 after the storing thread has stored all data; atomic */
    bool bypasses_cache; /* true if stores bypass the cache, because the buffers of all ranks
                          * exceed it */
};

static void do_copy(const struct buffers *buffers)
{
    tutti_cpu_copy(buffers->dst, buffers->src, buffers->size_bytes, buffers->bypasses_cache);
}

static void do_reduce(const struct buffers *buffers)
{
    for (size_t at = 0; at < buffers->size_bytes; at += INCOMING) {
        size_t left = buffers->size_bytes - at, bytes = left < INCOMING ? left : INCOMING;

        tutti_cpu_reduce2(TUTTI_FLOAT32, TUTTI_SUM, buffers->dst + at, buffers->src + at,
                          buffers->incoming, bytes / sizeof(float));
    }
}

/* Pins the process to its core, and records the other cores for its threads. */
static void pin_process(struct buffers *buffers)
{
    int core = sched_getcpu();
    cpu_set_t here;

    CPU_ZERO(&here);
    CPU_ZERO(&buffers->others);
    if (core < 0 || sched_getaffinity(0, sizeof buffers->allowed, &buffers->allowed) != 0)
        return;
    CPU_SET((size_t)core, &here);
    CPU_XOR(&buffers->others, &buffers->allowed, &here);
    sched_setaffinity(0, sizeof here, &here);
}

/* The function of a thread on another core. Stores new data into the memory that the process has
 * loaded before. The process loads the new data afterwards. */
static void *store(void *argument)
{
    struct buffers *buffers = argument;
    double begin_s;

    if (CPU_COUNT(&buffers->others) > 0)
        sched_setaffinity(0, sizeof buffers->others, &buffers->others);
    memset(buffers->fresh, NEW, buffers->size_bytes); /* brings the data into this core's cache */
    begin_s = timing_now_s();
    tutti_cpu_copy(buffers->src, buffers->fresh, buffers->size_bytes, false);
    buffers->store_s = timing_now_s() - begin_s;
    tutti_store_release(&buffers->is_stored, 1u);
    return NULL;
}

/* Runs the storing thread and waits for its end. */
static void run_store(const struct crew *crew, struct buffers *buffers)
{
    pthread_t thread;

    tutti_store_relaxed(&buffers->is_stored, 0u);
    if (pthread_create(&thread, NULL, store, buffers) != 0)
        crew_must(crew, "start a thread", tuttiSystemError);
    /* Spin, because sleeping would change the result. An idle core is slow at first, and a sleeping
     * thread may wake up on another core. */
    while (tutti_load_acquire(&buffers->is_stored) == 0)
        sched_yield();
    pthread_join(thread, NULL);
}

/* Returns the time to move data from one core to another. It is the mean of the time to store the
 * data and the time to load it. */
static double time_load(const struct crew *crew, struct buffers *buffers)
{
    double loads[TIMING_BLOCKS], stores[TIMING_BLOCKS];
    int nblocks = timing_blocks(crew);

    pin_process(buffers);
    do_copy(buffers);
    for (int i = 0; i < nblocks; i++) {
        double begin_s;

        run_store(crew, buffers);
        stores[i] = buffers->store_s;
        begin_s = timing_now_s();
        do_copy(buffers);
        loads[i] = timing_now_s() - begin_s;
    }
    if (CPU_COUNT(&buffers->allowed) > 0)
        sched_setaffinity(0, sizeof buffers->allowed, &buffers->allowed);
    return (timing_median(loads, nblocks) + timing_median(stores, nblocks)) / 2;
}

/* Returns the median time of `work` on the buffers, in seconds. */
static double time_work(const struct crew *crew, const struct buffers *buffers,
                        void (*work)(const struct buffers *buffers))
{
    double blocks[TIMING_BLOCKS];
    int nblocks = timing_blocks(crew);
    size_t count = (crew->is_quick ? 1 << 20 : 8 << 20) / buffers->size_bytes;

    count = count == 0 ? 1 : count;
    work(buffers);
    for (int i = 0; i < nblocks; i++) {
        double begin_s = timing_now_s();

        for (size_t k = 0; k < count; k++)
            work(buffers);
        blocks[i] = (timing_now_s() - begin_s) / (double)count;
    }
    return timing_median(blocks, nblocks);
}

/* Times copies that all ranks make at the same time. */
static void time_together(struct crew *crew, struct buffers *buffers, int node_ranks,
                          struct memory_times *times)
{
    double mine, *all = must_calloc((size_t)crew->nranks, sizeof *all);

    crew_meet(crew);
    mine = time_work(crew, buffers, do_copy);
    crew_gather(crew, &mine, sizeof mine, all);
    mine = timing_median(all, crew->nranks);
    samples_add(&times->together, 2.0 * node_ranks * (double)buffers->size_bytes,
                2.0 * (double)buffers->size_bytes, mine);
    free(all);
}

void meter_memory(struct crew *crew, int node_ranks, struct memory_times *ret_times)
{
    size_t most = crew->is_quick ? MOST_QUICK : MOST;
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    struct buffers buffers = {.src = must_calloc(MOST / 2, 1),
                              .dst = must_calloc(MOST / 2, 1),
                              .incoming = must_calloc(INCOMING, 1),
                              .fresh = must_calloc(MOST / 2, 1)};

    *ret_times = (struct memory_times){.copy = {.count = 0}};
    memset(buffers.src, FILL, MOST / 2);
    memset(buffers.dst, FILL, MOST / 2);
    for (size_t footprint = LEAST; footprint <= most; footprint *= 2) {
        double bytes = (double)footprint / 2;

        buffers.size_bytes = footprint / 2;
        buffers.bypasses_cache = cache > 0 && (double)footprint * node_ranks > (double)cache;
        timing_show(crew, "memory", footprint);
        time_together(crew, &buffers, node_ranks, ret_times);
        if (crew->rank == 0) {
            samples_add(&ret_times->copy, bytes, 2 * bytes, time_work(crew, &buffers, do_copy));
            samples_add(&ret_times->reduce, bytes, 2 * bytes, time_work(crew, &buffers, do_reduce));
            samples_add(&ret_times->load, bytes, 2 * bytes, time_load(crew, &buffers));
        }
    }
    crew_meet(crew);
    free(buffers.src);
    free(buffers.dst);
    free(buffers.incoming);
    free(buffers.fresh);
}
