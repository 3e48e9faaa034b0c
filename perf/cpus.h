/* SPDX-License-Identifier: Apache-2.0
 * Which CPUs compute and which run streams while overlap is measured. */
#ifndef PERF_CPUS_H
#define PERF_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { PERF_CPUS_MOST = 256, PERF_CPUS_TEXT_BYTES = 128 };

struct perf_cpus {
    int count;                   /* ranks 0 .. count - 1 compute, the others only make calls */
    bool is_given;               /* true if CPUs were given; false: the kernel places all threads */
    int compute[PERF_CPUS_MOST]; /* the CPU of each computing rank */
    cpu_set_t streams;           /* the CPUs of all streams, and of the ranks that do not compute */
};

/* Parses "any", "any:N", or CPU lists "COMPUTE/STREAMS" such as "0-3/4,5". False if the text is
 * neither. */
bool perf_cpus_parse(const char *text, struct perf_cpus *ret_cpus);

/* perf_cpus_bind_for_stream moves the calling thread to the CPUs of streams. Call it before making
 * a stream, whose thread inherits the CPUs. perf_cpus_settle then moves the thread to where rank
 * `rank` itself runs. Both return 0 or errno. */
int perf_cpus_bind_for_stream(const struct perf_cpus *cpus);
int perf_cpus_settle(const struct perf_cpus *cpus, int rank);

/* True if the rank computes. */
bool perf_cpus_computes(const struct perf_cpus *cpus, int rank);

/* Describes the placement, for instance "rank 0 computes on CPU 0, rank 1 on CPU 1, streams run on
 * CPU 2 3". A text that is too long is cut off. */
void perf_cpus_describe(const struct perf_cpus *cpus, int nranks,
                        char ret_text[PERF_CPUS_TEXT_BYTES]);

#endif
