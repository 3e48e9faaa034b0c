/* SPDX-License-Identifier: Apache-2.0
 * Implements sync.h. Process 0 sets the start time a little later than the arrival of all. The
 * delay is so long that the others have certainly seen it, and start by the clock and not by the
 * order in which they see it. */
#include "sync.h"

#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAD_NS 1500 /* from the arrival of all to the start */
#define PROCESSES_MAX 64

/* The contents of the file. A rendezvous is a start, or the collection of times. */
struct shared {
    struct {
        alignas(128) _Atomic uint64_t number; /* of the process's last rendezvous */
    } arrived[PROCESSES_MAX];
    alignas(128) _Atomic uint64_t announced; /* the rendezvous for which instant_ns is valid */
    uint64_t instant_ns;                     /* of the start */
    alignas(4096) uint64_t elapsed_ns[PROCESSES_MAX][SYNC_OPS_MAX];
};

struct sync_line {
    struct shared *shared;
    uint64_t number; /* of the last rendezvous */
    int process, nprocesses;
    bool is_crowded;
};

static void relax(const struct sync_line *line)
{
    if (line->is_crowded)
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#elif defined(__aarch64__)
    else
        __asm__ volatile("yield");
#endif
}

struct sync_line *sync_line_open(const char *directory, int process, int nprocesses,
                                 bool is_crowded)
{
    struct sync_line *line = calloc(1, sizeof(*line));
    struct stat status;
    char path[512];
    int fd;

    if (line == NULL || nprocesses > PROCESSES_MAX)
        bench_die("no start line for %d processes; at most %d have one", nprocesses, PROCESSES_MAX);
    snprintf(path, sizeof(path), "%s/start", directory);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        bench_die("cannot open %s: %s", path, strerror(errno));
    if ((size_t)status.st_size < sizeof(struct shared))
        bench_die("%s has %lld bytes, not %zu", path, (long long)status.st_size,
                  sizeof(struct shared));
    line->shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (line->shared == MAP_FAILED)
        bench_die("cannot map %s: %s", path, strerror(errno));
    close(fd);
    line->process = process;
    line->nprocesses = nprocesses;
    line->is_crowded = is_crowded;
    return line;
}

static void arrive(struct sync_line *line)
{
    line->number++;
    /* release: pairs with the acquire in await_all, publishes this process's times */
    atomic_store_explicit(&line->shared->arrived[line->process].number, line->number,
                          memory_order_release);
}

static void await_all(const struct sync_line *line)
{
    for (int process = 0; process < line->nprocesses; process++)
        while (atomic_load_explicit(&line->shared->arrived[process].number,
                                    memory_order_acquire) < line->number)
            relax(line);
}

uint64_t sync_line_start(struct sync_line *line)
{
    struct shared *shared = line->shared;
    uint64_t instant_ns;

    arrive(line);
    if (line->process == 0) {
        await_all(line);
        /* If ranks share CPUs, each of them must have had the CPU once before the start. */
        shared->instant_ns = bench_now_ns() + (uint64_t)(line->is_crowded ? line->nprocesses : 1) *
                                            LEAD_NS;
        /* release: pairs with the acquire below, publishes the instant */
        atomic_store_explicit(&shared->announced, line->number, memory_order_release);
    } else {
        while (atomic_load_explicit(&shared->announced, memory_order_acquire) < line->number)
            relax(line);
    }
    instant_ns = shared->instant_ns;
    while (bench_now_ns() < instant_ns)
        if (line->is_crowded)
            sched_yield();
    return instant_ns;
}

void sync_line_tell(struct sync_line *line, size_t index, uint64_t elapsed_ns)
{
    line->shared->elapsed_ns[line->process][index] = elapsed_ns;
}

void sync_line_slowest(struct sync_line *line, size_t nops, double *ret_ns)
{
    arrive(line);
    await_all(line);
    for (size_t i = 0; i < nops; i++) {
        uint64_t slowest = 0;

        for (int process = 0; process < line->nprocesses; process++)
            if (line->shared->elapsed_ns[process][i] > slowest)
                slowest = line->shared->elapsed_ns[process][i];
        ret_ns[i] = (double)slowest;
    }
}
