/* SPDX-License-Identifier: Apache-2.0
 * Parses the command line of the perf programs. Options that nccl-tests also has use its letters
 * and names. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "cpus.h"
#include "perf.h"

/* The option -z: when a rank waits for its calls, and whether the barrier is timed. */
enum perf_sync {
    PERF_SYNC_END = 0,        /* wait at the end of the loop */
    PERF_SYNC_BARRIER = 1,    /* wait and barrier after each operation; the barrier is timed */
    PERF_SYNC_EACH = 2,       /* wait after each operation */
    PERF_SYNC_OUTER = 3       /* wait and barrier after each iteration; the barrier is not
                               * timed */
};

/* The memory of the buffers, numbered as the values of the option -R. */
enum perf_registration {
    PERF_UNREGISTERED = 0, /* malloc, or cuMemAlloc */
    PERF_REGISTERED = 1,   /* tuttiMemAlloc, or cuMemAlloc with tuttiCommRegister */
    PERF_WINDOWS = 2       /* tuttiMemAlloc, on GPUs too */
};

/* The time that the table shows, of the times of all ranks: the values of the option -a. */
enum perf_combine { PERF_RANK0, PERF_MEAN, PERF_LOWEST, PERF_HIGHEST };

struct perf_options {
    int argc;
    char **argv;   /* the command line as given; borrowed */
    int processes; /* number of processes to fork; 0: none, a launcher may have started this one */
    int threads;   /* ranks per process */

    size_t min_bytes, max_bytes; /* the range of sizes to measure */
    size_t step_bytes; /* the next size is this much larger, if factor is 0 */
    size_t factor;     /* the next size is this many times as large; 0: use step_bytes */

    int iterations; /* timed iterations; measure.c tells how blocks share them */
    int warmups;    /* iterations before the timed ones */
    int aggregate;  /* calls per iteration, as one group if there are several */
    int cycles;     /* how often the whole table is measured; 0: without end */
    int checks;     /* calls on fresh data that are checked; 0: nothing is checked at all */
    unsigned ops;   /* bit per enum perf_op */
    unsigned types; /* bit per tuttiDataType_t */
    int root;       /* -1: all roots in turn */

    enum perf_sync sync;
    enum perf_combine combine;
    int timeout_seconds; /* per row of the table; 0: no limit */
    int skip_samples;    /* number of first samples that the statistics leave out */
    bool use_stream;
    bool misalign; /* buffers start one element past an aligned address */
    enum perf_registration registration;
    bool is_out_of_place_only; /* measure no calls in place */
    bool use_gpu;              /* --device gpu; false: ranks are on the host */
    int gpu;   /* CUDA index for all ranks; -1: rank r is on GPU r modulo the number of GPUs */
    int graph; /* operations per graph; 0: no graph */
    bool show_samples;  /* time every iteration, and show statistics of these times */
    bool show_cpu_time; /* measure CPU time in place of elapsed time */
    bool show_times;    /* begin each row with the time of day */
    bool show_memory, show_overlap, show_algorithms;
    int waiting_ms; /* how long to measure the CPU use of waiting ranks; 0: not at all */
    struct perf_cpus cpus; /* used only if show_overlap is set */
    const char *json_path; /* file for the results; NULL: none */
    const char *tune_path; /* file for the tuning table, made before measuring; NULL: none */
};

/* Parses the command line. Returns 0 and fills *ret_options. Returns -1 after it has printed the
 * help or the version. Returns 2, the exit code, after it has printed the error on stderr. The
 * options borrow texts from argv. */
int perf_options_parse(int argc, char **argv, struct perf_options *ret_options);

/* Returns the size after `bytes`, or 0 after the last size. */
size_t perf_options_next_size(const struct perf_options *options, size_t bytes);

#endif
