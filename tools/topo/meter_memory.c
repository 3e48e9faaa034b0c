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

/* Every byte of the buffers has this value. It gives ordinary numbers in every type. Zeros would
 * give wrong times, because some processors store zeros to memory twice as fast. */
enum { FILL = 0x3c };

/* Footprints in bytes, and the size of a buffer for incoming data. The executor reduces a message
 * in parts as they arrive. So the measured reduction reads INCOMING bytes that stay in a cache. */
enum { LEAST = 32 << 10, MOST = 32 << 20, MOST_QUICK = 1 << 20, INCOMING = 32 << 10 };

struct place {
    uint8_t *src, *dst, *incoming, *given;
    size_t size_bytes; /* size of src, and of dst */
    cpu_set_t allowed; /* all allowed cores */
    cpu_set_t others;  /* the allowed cores except the core of the process */
    double store_s;    /* time that the storing thread took, in seconds */
    uint32_t is_stored;
    bool streams;      /* stores bypass the cache, because all buffers together exceed it */
};

static void do_copy(const struct place *place)
{
    tutti_cpu_copy(place->dst, place->src, place->size_bytes, place->streams);
}

static void do_reduce(const struct place *place)
{
    for (size_t at = 0; at < place->size_bytes; at += INCOMING) {
        size_t left = place->size_bytes - at, bytes = left < INCOMING ? left : INCOMING;

        tutti_cpu_reduce2(TUTTI_FLOAT32, TUTTI_SUM, place->dst + at, place->src + at,
                          place->incoming, bytes / sizeof(float));
    }
}

/* Pins the process to its core, and records the other cores for its threads. */
static void stay(struct place *place)
{
    int core = sched_getcpu();
    cpu_set_t here;

    CPU_ZERO(&here);
    CPU_ZERO(&place->others);
    if (core < 0 || sched_getaffinity(0, sizeof place->allowed, &place->allowed) != 0)
        return;
    CPU_SET((size_t)core, &here);
    CPU_XOR(&place->others, &place->allowed, &here);
    sched_setaffinity(0, sizeof here, &here);
}

/* The function of a thread on another core. Stores new data into the memory that the process has
 * loaded before. The process loads the new data afterwards. */
static void *store(void *argument)
{
    struct place *place = argument;
    double begin_s;

    if (CPU_COUNT(&place->others) > 0)
        sched_setaffinity(0, sizeof place->others, &place->others);
    memset(place->given, 3, place->size_bytes); /* brings the data into this core's cache */
    begin_s = timing_now_s();
    tutti_cpu_copy(place->src, place->given, place->size_bytes, false);
    place->store_s = timing_now_s() - begin_s;
    tutti_store_release(&place->is_stored, 1u);
    return NULL;
}

static void run_store(const struct crew *crew, struct place *place)
{
    pthread_t thread;

    tutti_store_relaxed(&place->is_stored, 0u);
    if (pthread_create(&thread, NULL, store, place) != 0)
        crew_must(crew, "starting a thread", tuttiSystemError);
    /* Spin, because sleeping would change the result. An idle core is slow at first, and a sleeping
     * thread may wake up on another core. */
    while (tutti_load_acquire(&place->is_stored) == 0)
        sched_yield();
    pthread_join(thread, NULL);
}

/* Returns the time to move data from one core to another. It is the mean of the time to store the
 * data and the time to load it. */
static double time_load(const struct crew *crew, struct place *place)
{
    double loads[TIMING_BLOCKS], stores[TIMING_BLOCKS];
    int nblocks = timing_blocks(crew);

    stay(place);
    do_copy(place);
    for (int i = 0; i < nblocks; i++) {
        double begin_s;

        run_store(crew, place);
        stores[i] = place->store_s;
        begin_s = timing_now_s();
        do_copy(place);
        loads[i] = timing_now_s() - begin_s;
    }
    if (CPU_COUNT(&place->allowed) > 0)
        sched_setaffinity(0, sizeof place->allowed, &place->allowed);
    return (timing_median(loads, nblocks) + timing_median(stores, nblocks)) / 2;
}

static double time_work(const struct crew *crew, const struct place *place,
                        void (*work)(const struct place *place))
{
    double blocks[TIMING_BLOCKS];
    int nblocks = timing_blocks(crew);
    size_t count = (crew->is_quick ? 1 << 20 : 8 << 20) / place->size_bytes;

    count = count == 0 ? 1 : count;
    work(place);
    for (int i = 0; i < nblocks; i++) {
        double begin_s = timing_now_s();

        for (size_t k = 0; k < count; k++)
            work(place);
        blocks[i] = (timing_now_s() - begin_s) / (double)count;
    }
    return timing_median(blocks, nblocks);
}

static void time_together(struct crew *crew, struct place *place, int mates,
                          struct memory_times *times)
{
    double mine, *all = must_take((size_t)crew->nranks, sizeof *all);

    crew_meet(crew);
    mine = time_work(crew, place, do_copy);
    crew_gather(crew, &mine, sizeof mine, all);
    mine = timing_median(all, crew->nranks);
    samples_add(&times->together, 2.0 * mates * (double)place->size_bytes,
                2.0 * (double)place->size_bytes, mine);
    free(all);
}

void meter_memory(struct crew *crew, int mates, struct memory_times *ret_times)
{
    size_t most = crew->is_quick ? MOST_QUICK : MOST;
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    struct place place = {.src = must_take(MOST / 2, 1), .dst = must_take(MOST / 2, 1),
                          .incoming = must_take(INCOMING, 1),
                          .given = must_take(MOST / 2, 1)};

    *ret_times = (struct memory_times){.copy = {.count = 0}};
    memset(place.src, FILL, MOST / 2);
    memset(place.dst, FILL, MOST / 2);
    for (size_t footprint = LEAST; footprint <= most; footprint *= 2) {
        double bytes = (double)footprint / 2;

        place.size_bytes = footprint / 2;
        place.streams = cache > 0 && (double)footprint * mates > (double)cache;
        timing_show(crew, "memory", footprint);
        time_together(crew, &place, mates, ret_times);
        if (crew->rank == 0) {
            samples_add(&ret_times->copy, bytes, 2 * bytes,
                        time_work(crew, &place, do_copy));
            samples_add(&ret_times->reduce, bytes, 2 * bytes,
                        time_work(crew, &place, do_reduce));
            samples_add(&ret_times->load, bytes, 2 * bytes, time_load(crew, &place));
        }
    }
    crew_meet(crew);
    free(place.src);
    free(place.dst);
    free(place.incoming);
    free(place.given);
}
