/* SPDX-License-Identifier: Apache-2.0
 * Which CPUs compute and which carry streams while overlap is measured. */
#ifndef PERF_CPUS_H
#define PERF_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { PERF_CPUS_MOST = 256, PERF_CPUS_TEXT_BYTES = 128 };

struct perf_cpus {
    int count;                   /* ranks 0 .. count - 1 compute, the others only call */
    bool is_given;               /* false: the kernel places all threads */
    int compute[PERF_CPUS_MOST]; /* rank r on this CPU */
    cpu_set_t streams;           /* of all streams, and of the ranks that only call */
};

/* "any", "any:N", or CPU lists "COMPUTE/STREAMS" such as "0-3/4,5". */
bool perf_cpus_parse(const char *text, struct perf_cpus *ret_cpus);

/* Put the calling thread, which is about to make its stream, where streams run: the stream's
 * thread inherits that. Then, with `settle`, where rank `rank` itself runs. Returns 0 or errno. */
int perf_cpus_bind_for_stream(const struct perf_cpus *cpus);
int perf_cpus_settle(const struct perf_cpus *cpus, int rank);

/* Does the rank compute? */
bool perf_cpus_computes(const struct perf_cpus *cpus, int rank);

/* "rank 0 computes on CPU 0, rank 1 on CPU 1, streams run on CPU 2 3". */
void perf_cpus_describe(const struct perf_cpus *cpus, int nranks,
                        char ret_text[PERF_CPUS_TEXT_BYTES]);

#endif
