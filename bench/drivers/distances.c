/* SPDX-License-Identifier: Apache-2.0
 * Measures the bandwidth of memory for two CPUs, and their distance at the same time: distances
 * DIRECTORY PROCESSES SECONDS MEASURE .... A MEASURE is store, zero (which stores zeros), load or
 * copy; store-alone, by one process; or store-huge, in pages of 2 MiB.
 *
 * It repeats slices of some milliseconds. A slice measures the time of a cache line, every measure
 * once, and the time of the line again. Each slice is a line on standard output: the two times in
 * ns, and GB/s of each measure. The reader decides whether a slice counts. The output is buffered,
 * so that its reader seldom needs a CPU. */
#include "driver.h"
#include "mover.h"
#include "sync.h"

#include <errno.h>
#include <linux/mman.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 64
#define HUGE_BYTES    ((size_t)2 << 20)
/* The memory that all processes together load, and as much to store into. It is far more than the
 * caches hold. A measure uses one window of it, and the next measure uses the next one. */
#define TOTAL_BYTES  ((size_t)128 << 20)
#define WINDOW_BYTES ((size_t)16 << 20)
/* In a batch the line goes there and back LINE_ROUNDS times. The quickest of LINE_BATCHES batches
 * counts, because an interruption makes a batch longer. */
#define LINE_ROUNDS  100
#define LINE_BATCHES 5

#define MEASURES_MAX 8 /* arguments MEASURE */

enum pages { PAGES_SMALL, PAGES_HUGE, PAGES };

struct measure {
    enum { WORK_STORE, WORK_ZERO, WORK_LOAD, WORK_COPY, WORKS } work;
    enum pages pages;
    bool is_alone; /* only process 0 works */
};

struct shared {
    struct {
        alignas(128) _Atomic uint64_t number;
    } lines[2];
    alignas(128) bool is_over; /* set by process 0 before a start, read by all after it */
};

static struct measure measures[MEASURES_MAX];
static int nmeasures;
static struct shared *shared;
static char *memory[PAGES]; /* sources of all processes, then all their destinations */
static struct sync_line *start_line;
static int process, nprocesses;
static size_t share_bytes, window_bytes; /* of each process: its part of TOTAL_ and WINDOW_BYTES */
static size_t position_bytes;            /* of the next window in a share */
static uint64_t line_count; /* rounds of the line so far */

/* ---- memory ---- */

static void *map_shared(size_t size_bytes, int flags)
{
    void *base =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);

    if (base == MAP_FAILED && flags != 0)
        bench_die("the kernel has no %zu free pages of 2 MiB (%s); to reserve them, as root: "
                  "echo %zu > /proc/sys/vm/nr_hugepages",
                  size_bytes / HUGE_BYTES, strerror(errno), size_bytes / HUGE_BYTES);
    if (base == MAP_FAILED)
        bench_die("cannot map %zu bytes of memory: %s", size_bytes, strerror(errno));
    /* This refuses huge pages that the kernel gives without being asked. It fails on kernels that
     * have none, which does not matter. */
    if (flags == 0)
        (void)madvise(base, size_bytes, MADV_NOHUGEPAGE);
    return base;
}

static void map_memory(void)
{
    shared = map_shared(sizeof(*shared), 0);
    memory[PAGES_SMALL] = map_shared(2 * TOTAL_BYTES, 0);
    for (int i = 0; i < nmeasures; i++)
        if (memory[measures[i].pages] == NULL)
            memory[measures[i].pages] = map_shared(2 * TOTAL_BYTES, MAP_HUGETLB | MAP_HUGE_2MB);
}

/* A process loads what the next one has, and stores into its own memory. */
static const char *source(enum pages pages)
{
    return memory[pages] + (size_t)((process + 1) % nprocesses) * share_bytes;
}

static char *dest(enum pages pages)
{
    return memory[pages] + TOTAL_BYTES + (size_t)process * share_bytes;
}

/* Touches all memory of this process, because a first access is slow and must not be measured. */
static void touch(enum pages pages)
{
    memset(memory[pages] + (size_t)process * share_bytes, 1, share_bytes);
    memset(dest(pages), 1, share_bytes);
    sync_line_start(start_line);
    (void)mover_load((const float *)(const void *)source(pages), share_bytes / sizeof(float));
}

/* ---- measuring ---- */

/* Returns the time in which the line goes one way, in ns. Only process 0 uses the result.
 * The waiting process does not pause, because the pause would be measured, too. */
static double time_line(void)
{
    uint64_t best_ns = UINT64_MAX;

    sync_line_start(start_line);
    if (process > 1)
        return 0;
    for (int batch = 0; batch < LINE_BATCHES; batch++) {
        uint64_t start_ns = bench_now_ns(), elapsed_ns;

        for (int i = 0; i < LINE_ROUNDS; i++) {
            line_count++;
            /* release and acquire: pairs with each other; only the number is passed */
            if (process == 0)
                atomic_store_explicit(&shared->lines[0].number, line_count, memory_order_release);
            while (atomic_load_explicit(&shared->lines[1 - process].number, memory_order_acquire) <
                   line_count)
                ;
            if (process == 1)
                atomic_store_explicit(&shared->lines[1].number, line_count, memory_order_release);
        }
        elapsed_ns = bench_now_ns() - start_ns;
        best_ns = elapsed_ns < best_ns ? elapsed_ns : best_ns;
    }
    return (double)best_ns / (2 * LINE_ROUNDS);
}

static void do_work(const struct measure *measure)
{
    const float *from = (const float *)(const void *)(source(measure->pages) + position_bytes);
    float *to = (float *)(void *)(dest(measure->pages) + position_bytes);
    size_t count = window_bytes / sizeof(float);

    switch (measure->work) {
    case WORK_STORE: mover_store(to, count, false); break;
    case WORK_ZERO: mover_store(to, count, true); break;
    case WORK_LOAD: (void)mover_load(from, count); break;
    default: mover_move(MOVER_STREAMING, &from, 1, &to, 1, count); break;
    }
    /* seq_cst: pairs with nothing; the work is over only when its stores have left the core */
    atomic_thread_fence(memory_order_seq_cst);
}

/* Returns the GB/s of all processes that work together, from the common start until the last one is
 * done. */
static double rate_of(const struct measure *measure)
{
    size_t bytes = window_bytes * (measure->work == WORK_COPY ? 2 : 1) *
                   (size_t)(measure->is_alone ? 1 : nprocesses);
    uint64_t start_ns = sync_line_start(start_line);
    double slowest_ns;

    if (process == 0 || !measure->is_alone)
        do_work(measure);
    /* A process without work is done at once. */
    sync_line_tell(start_line, 0, bench_now_ns() - start_ns);
    sync_line_slowest(start_line, 1, &slowest_ns);
    position_bytes = (position_bytes + window_bytes) % share_bytes;
    return (double)bytes / slowest_ns;
}

/* Measures one slice and prints its line. Every other slice goes backwards, so that no measure
 * always comes after the same one. */
static void measure_slice(bool is_backwards)
{
    double before_ns = time_line(), rates[MEASURES_MAX], after_ns;

    for (int i = 0; i < nmeasures; i++) {
        int index = is_backwards ? nmeasures - 1 - i : i;

        rates[index] = rate_of(&measures[index]);
    }
    after_ns = time_line();
    if (process != 0)
        return;
    printf("%.1f %.1f", before_ns, after_ns);
    for (int i = 0; i < nmeasures; i++)
        printf(" %.2f", rates[i]);
    putchar('\n');
}

/* ---- processes ---- */

static void work(const char *directory, double seconds)
{
    uint64_t end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);

    bench_pin(process);
    start_line = sync_line_open(directory, process, nprocesses, bench_is_crowded());
    for (int pages = 0; pages < PAGES; pages++)
        if (memory[pages] != NULL)
            touch((enum pages)pages);
    for (bool is_backwards = false; !shared->is_over; is_backwards = !is_backwards) {
        measure_slice(is_backwards);
        if (process == 0)
            shared->is_over = bench_now_ns() > end_ns;
        sync_line_start(start_line);
    }
}

static struct measure parse(const char *words)
{
    static const char *const works[WORKS] = {"store", "zero", "load", "copy"};
    const char *rest = words + strcspn(words, "-");
    struct measure measure = {.is_alone = strcmp(rest, "-alone") == 0,
                              .pages = strcmp(rest, "-huge") == 0 ? PAGES_HUGE : PAGES_SMALL};

    while (measure.work < WORKS && strncmp(words, works[measure.work], (size_t)(rest - words)) != 0)
        measure.work++;
    if (measure.work == WORKS)
        bench_die("a measure is store, zero, load or copy, with -alone or -huge, not \"%s\"",
                  words);
    return measure;
}

int main(int argc, char **argv)
{
    int status;

    nprocesses = argc > 2 ? atoi(argv[2]) : 0;
    /* With a power of two of processes, each share has a whole number of windows. */
    if (argc < 5 || argc - 4 > MEASURES_MAX || nprocesses < 2 || nprocesses > PROCESSES_MAX ||
        (nprocesses & (nprocesses - 1)) != 0)
        bench_die("usage: distances DIRECTORY PROCESSES SECONDS MEASURE ...; of 2, 4, 8 ... %d "
                  "processes and 1 to %d measures",
                  PROCESSES_MAX, MEASURES_MAX);
    for (; nmeasures < argc - 4; nmeasures++)
        measures[nmeasures] = parse(argv[4 + nmeasures]);
    share_bytes = TOTAL_BYTES / (size_t)nprocesses;
    window_bytes = WINDOW_BYTES / (size_t)nprocesses;
    map_memory();
    for (process = 0; process < nprocesses; process++) {
        pid_t child = fork();

        if (child < 0)
            bench_die("cannot start process %d of %d: %s", process, nprocesses, strerror(errno));
        if (child == 0) {
            /* If one process ended alone, the others would wait for it forever. So all end with
             * their parent, which ends when one has failed. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            work(argv[1], atof(argv[3]));
            return EXIT_SUCCESS;
        }
    }
    while (wait(&status) > 0)
        if (status != 0)
            bench_die("a process ended early, with status %d", status);
    return EXIT_SUCCESS;
}
