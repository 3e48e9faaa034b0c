/* SPDX-License-Identifier: Apache-2.0
 * The simulator plays the schedules of all ranks on a modeled machine. It reports how long they
 * take, where the time goes, and a lower bound on that time.
 *
 * It is a deterministic discrete-event simulation. A message waits until it reaches the head of its
 * lane (score.h), until the steps it depends on are done (the receiver's too: nothing is buffered),
 * and until the sender's and the receiver's port (network.h) are free. It then holds both ports for
 * the level's overhead and flows at the rate that max-min fairness gives it on the links it
 * crosses. It arrives `latency` later. Messages of one lane that are neighbors in both ranks'
 * programs are one gathered write and pay the overhead once (gather.c). Fused steps forward slices
 * as they arrive. Ports without overhead are shared. On a torus, and where the machine gives the
 * path of a pair, the links are shared instead of ports, and the overhead occupies no port.
 *
 * A one-sided step crosses the port of the rank that executes it. Where ranks do not share a memory
 * that the machine describes, it also crosses the ports of the ranks that it accesses. Where the
 * machine gives paths, it crosses the links of these paths instead.
 *
 * Where a level has a `core`, the cores of both ranks move messages there, overhead and bytes. Each
 * such core is one more link, shared by everything that its rank does at that time.
 *
 * The arithmetic and local steps of a rank take turns on its core. A rank that gives a signal
 * continues at once; the others see the signal after the overhead and latency of level node.
 *
 * Sources: LogGP (Alexandrov et al. 1995); max-min fair flows by progressive filling (Bertsekas and
 * Gallager, Data Networks, 1992).
 */
#ifndef TUTTI_SIMULATOR_H
#define TUTTI_SIMULATOR_H

#include "schedule/step.h"
#include "topology/machine/machine.h"

#include <stddef.h>

/* The schedules to play. The simulator requests the ranks' schedules one at a time. It returns each
 * schedule before it requests the next, so that not all need to be in memory at once. */
struct tutti_sim_source {
    uint32_t nranks;
    /* Yields the rank's schedule; the simulator returns it with `drop`. A failure is passed on to
     * the caller of tutti_simulate. */
    int (*schedule)(void *context, uint32_t rank, const struct tutti_schedule **ret_schedule);
    void (*drop)(void *context, const struct tutti_schedule *schedule);
    void *context;
    size_t block_count, element_bytes; /* arguments of a uniform call */
    double footprint_bytes; /* of the whole call, if this is a piece of a call; 0: it is no piece */
    /* 0: all ranks are played. Otherwise the result of tutti_sim_find_period: only ranks
     * 0 .. period - 1 are played, and their schedules alone are requested. */
    uint32_t period;
};

struct tutti_sim_link {
    /* "rank 3 out", "trunk 0 in", "memory 1", ..., or what the machine calls it */
    char name[TUTTI_MACHINE_NAME_BYTES];
    uint32_t number;     /* index of the link; links are numbered by kind, then by place */
    /* For cores, bytes are seconds of work and bytes_per_s is seconds of work per second. busy_s is
     * the time during which anything used the link. */
    double bytes, bytes_per_s;
    double busy_s;
};

/* One piece of the critical path. The pieces are listed from the last event back to the start. */
struct tutti_sim_hop {
    uint32_t rank, step;
    double begin_s, end_s;
    /* The reason for the time: "latency", "overhead", "bandwidth", "reduce" or "copy"; or a wait
     * for a turn at a "port", or because a "link" or a "core" was shared. */
    char why[24];
};

struct tutti_sim_report {
    double seconds;
    double *rank_seconds; /* per rank: when its last step was done */
    uint64_t nmessages;
    double bytes;         /* sent by all ranks */
    /* Shares of the critical path: latency and overhead, bandwidth, reduce and copy, waits. They
     * add up to 1, or are all 0 if `seconds` is 0. */
    double latency_share, wire_share, work_share, wait_share;
    /* Those with traffic, the highest bytes / bytes_per_s first. In a play by symmetry, only the
     * links that stand for others. */
    struct tutti_sim_link *links;
    size_t nlinks;
    struct tutti_sim_hop *hops;
    size_t nhops;
};

/* Finds the number of ranks that can stand for all ranks of a call (symmetry.h), or 0. The
 * machine's symmetry is checked in full. That the schedules repeat is checked for a few ranks, so
 * the schedules should be those of one algorithm. TUTTI_ERR_ARGUMENT: machine and schedules do not
 * fit. TUTTI_ERR_SYSTEM: out of memory. Errors of the source are returned as they are. */
int tutti_sim_find_period(const struct tutti_sim_source *source,
                          const struct tutti_machine *machine, uint32_t *ret_period);

/* Plays the schedules on the machine and fills *ret_report, which the caller releases with
 * tutti_sim_report_fini. On an error *ret_report is unchanged. TUTTI_ERR_ARGUMENT: machine and
 * schedules do not fit, or the schedules do not fit each other (they deadlock, or send and receive
 * sizes differ). TUTTI_ERR_SYSTEM: out of memory. Errors of the source are returned as they are. */
int tutti_simulate(const struct tutti_sim_source *source, const struct tutti_machine *machine,
                   struct tutti_sim_report *ret_report);
void tutti_sim_report_fini(struct tutti_sim_report *report);

/* Lower bounds on the time of any schedule: from counting rounds, from bytes over every cut, and
 * their sum. The sum holds only for schedules of synchronous rounds. */
struct tutti_sim_bound {
    double latency_s, bandwidth_s, sum_s;
};

/* Computes the bounds of one call. `root` counts for rooted collectives only. block_bytes is the
 * size of one block of the call (the whole vector of an all-reduce). TUTTI_ERR_ARGUMENT: the
 * machine lacks a bandwidth. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_sim_bound(const struct tutti_machine *machine, enum tutti_collective collective,
                    uint32_t root, double block_bytes, struct tutti_sim_bound *ret_bound);

#endif
