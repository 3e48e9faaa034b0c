/* SPDX-License-Identifier: Apache-2.0
 * Chooses the CPUs that compute and the CPUs that run streams while overlap is measured. */
#ifndef PERF_CPUS_H
#define PERF_CPUS_H

#include <sched.h>
#include <stdbool.h>

enum {
    PERF_CPUS_MOST = 256,       /* CPUs in one list */
    PERF_CPUS_TEXT_BYTES = 128, /* of perf_cpus_describe */
};

struct perf_cpus {
    /* Ranks 0 .. count - 1 compute. The other ranks only make calls. INT_MAX: all ranks compute. */
    int count;
    bool is_given;               /* CPUs were given; false: the kernel places all threads */
    int compute[PERF_CPUS_MOST]; /* the CPU of each computing rank */
    cpu_set_t streams;           /* the CPUs of all streams, and of the ranks that do not compute */
};

/* Parses the text. "any" lets all ranks compute, and "any:N" the first N ranks; neither binds a
 * thread. CPU lists "COMPUTE/STREAMS", such as "0-3/4,5", bind the threads to these CPUs. Returns
 * false if the text has none of these forms. */
bool perf_cpus_parse(const char *text, struct perf_cpus *ret_cpus);

/* perf_cpus_bind_for_stream binds the calling thread to the CPUs of streams. Call this function
 * before the stream is created, because the stream's thread inherits the CPUs. After that,
 * perf_cpus_settle binds the calling thread to the CPU on which rank `rank` computes. A rank that
 * does not compute stays on the CPUs of streams. Both functions return 0 or an error number of
 * errno.h, and do nothing if no CPUs were given. */
int perf_cpus_bind_for_stream(const struct perf_cpus *cpus);
int perf_cpus_settle(const struct perf_cpus *cpus, int rank);

/* Returns true if the rank computes. */
bool perf_cpus_computes(const struct perf_cpus *cpus, int rank);

/* Describes the placement in one line, for instance "rank 0 computes on CPU 0, rank 1 on CPU 1,
 * streams run on CPU 2 3". Cuts off a text that is too long. */
void perf_cpus_describe(const struct perf_cpus *cpus, int nranks,
                        char ret_text[PERF_CPUS_TEXT_BYTES]);

#endif
