/* SPDX-License-Identifier: Apache-2.0
 * The command line, with nccl-tests' letters and names where they mean something here. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "cpus.h"
#include "perf.h"

enum perf_sync {
    PERF_SYNC_END = 0,        /* wait at the end of the loop */
    PERF_SYNC_BARRIER = 1,    /* wait and barrier after each operation, counted */
    PERF_SYNC_EACH = 2,       /* wait after each operation */
    PERF_SYNC_OUTER = 3       /* wait and barrier after each iteration, the barrier not counted */
};

/* Buffers: as the user of -R numbers them. */
enum perf_registration {
    PERF_UNREGISTERED = 0, /* of malloc, or cuMemAlloc */
    PERF_REGISTERED = 1,   /* of tuttiMemAlloc, or cuMemAlloc with tuttiCommRegister */
    PERF_WINDOWS = 2       /* of tuttiMemAlloc, on GPUs, too */
};

enum perf_combine { PERF_RANK0, PERF_MEAN, PERF_LOWEST, PERF_HIGHEST };

struct perf_options {
    int argc;
    char **argv;   /* the command line as given; borrowed */
    int processes; /* forked here; 0: this process is one of the environment's */
    int threads;   /* ranks per process */

    size_t min_bytes, max_bytes;
    size_t step_bytes; /* added to the size, when factor is 0 */
    size_t factor;     /* the size is multiplied by it */

    int iterations, warmups, aggregate, cycles, checks;
    unsigned ops;   /* bit per enum perf_op */
    unsigned types; /* bit per tuttiDataType_t */
    int root;       /* -1: all of them in turn */

    enum perf_sync sync;
    enum perf_combine combine;
    int timeout_seconds; /* per case; 0: none */
    int skip_samples;
    bool use_stream, misalign;
    enum perf_registration registration;
    bool is_out_of_place_only;
    bool use_gpu;
    int gpu;   /* on which all ranks are; -1: rank r is on that of number r, going round */
    int graph; /* operations of a graph; 0: none */
    bool show_samples, show_cpu_time, show_times, show_memory, show_overlap;
    bool show_algorithms;
    int waiting_ms; /* how long to watch what waiting costs; 0: not */
    struct perf_cpus cpus; /* for show_overlap */
    const char *json_path; /* NULL: none */
    const char *tune_path; /* table to write before measuring; NULL: none */
};

/* Returns 0; -1 when help was asked for and given; 2, the exit code, after a line on stderr that
 * says what is wrong with the command line. */
int perf_options_parse(int argc, char **argv, struct perf_options *ret_options);

/* The size that follows `bytes`, or 0 after the last. */
size_t perf_options_next_size(const struct perf_options *options, size_t bytes);

const char *perf_op_name(enum perf_op op);
const char *perf_type_name(tuttiDataType_t type);
size_t perf_type_bytes(tuttiDataType_t type);

#endif
