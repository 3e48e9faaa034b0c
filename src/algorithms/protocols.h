/* SPDX-License-Identifier: Apache-2.0
 * Protocols: the ways in which ranks on GPUs run an algorithm. Any algorithm runs step by step. For
 * some algorithms there are kernels that run the whole collective, and copies of the driver. They
 * move the same bytes between the same ranks as the schedule of that algorithm, which is called
 * their form. So the form is what is proved, played and priced. tests/gpu/test_gpu_forms.c compares
 * the bytes of kernels and copies with those of their forms, for each pair of ranks.
 */
#ifndef TUTTI_ALGORITHMS_PROTOCOLS_H
#define TUTTI_ALGORITHMS_PROTOCOLS_H

#include "algorithms/algorithm.h"

enum tutti_protocol {
    TUTTI_PROTOCOL_STEPS,  /* a schedule step by step, on CPUs or in a kernel */
    TUTTI_PROTOCOL_LL,     /* data travel in words with flags (device/cuda/ll.cuh) */
    TUTTI_PROTOCOL_LL128,  /* the same, in lines of 128 bytes with one flag each */
    TUTTI_PROTOCOL_DIRECT, /* ranks access each other's buffers (device/cuda/direct.cuh) */
    TUTTI_PROTOCOL_COPIES, /* the driver copies; kernels only meet in between */
    TUTTI_PROTOCOL_COUNT
};

/* Returns the name of a protocol in rules and logs: "steps", "ll", "ll128", "direct", "copies". */
const char *tutti_protocol_name(enum tutti_protocol protocol);

/* Returns the algorithm of the collective that the protocol runs as a whole, or NULL if there is
 * none. NULL for TUTTI_PROTOCOL_STEPS, which runs all. */
const struct tutti_algorithm *tutti_protocol_form(enum tutti_protocol protocol,
                                                  enum tutti_collective collective);

/* Returns the algorithm that TUTTI_PROTOCOL_DIRECT runs for the collective if ranks cannot use each
 * other's buffers, so that all data goes through windows. NULL: there is none. */
const struct tutti_algorithm *tutti_protocol_window_form(enum tutti_collective collective);

/* What a protocol adds to the cost of its form on GPUs. */
struct tutti_protocol_cost {
    double bytes;   /* bytes on a link per byte of data */
    double flights; /* latencies of a link, one after the other: of the whole call, or of each round
                       with TUTTI_PROTOCOL_STEPS */
};

/* Returns the cost of a protocol. The sizes of lines are those of device/cuda. LL needs one flight,
 * LL128 also a barrier of its block, and direct a post, a signal and an acknowledgement. Copies
 * have two meetings, of two flights each. A round step by step needs a flight, barriers of its
 * block and a scan of its lanes. No GPU has measured the flights. */
struct tutti_protocol_cost tutti_protocol_cost(enum tutti_protocol protocol);

#endif
