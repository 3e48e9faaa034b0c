/* SPDX-License-Identifier: Apache-2.0
 * The simulator: plays the schedules of all ranks on a machine and says how long they take, where
 * the time goes, and how far that is from the least possible.
 *
 * Deterministic discrete events. A message waits for its turn on its lane, for the steps it
 * depends on (the receiver's too: nothing is buffered), for the sender's and the receiver's port;
 * then it holds both for the level's overhead and flows at the rate that max-min fairness gives it
 * on the links it crosses; `latency` later it has arrived. Messages of one lane that are neighbours
 * in both ranks' programs are one gathered write and pay the overhead once (gather.c). Slices of
 * fused steps flow through as they come. Ports without overhead are shared; on a torus, and where
 * the machine gives the path of a pair, the links are, and the overhead holds nobody.
 *
 * One-sided steps pass the port of the rank that makes them and, where ranks do not share a memory
 * that the machine describes, those of the ranks that they reach; or the links of the paths to and
 * from these.
 *
 * Where a level has a `core`, messages there are moved by the cores of both ranks, overhead and
 * bytes: that core is one more link, shared by all that the rank does at a time.
 *
 * Arithmetic and local steps of a rank take turns on its core. Whoever gives a signal goes on;
 * the others see it overhead and latency of level node later.
 *
 * Sources: LogGP (Alexandrov et al. 1995); max-min fair flows by progressive filling (Bertsekas and
 * Gallager, Data Networks, 1992).
 */
#ifndef TUTTI_SIMULATOR_H
#define TUTTI_SIMULATOR_H

#include "schedule/step.h"
#include "topology/machine/machine.h"

#include <stddef.h>

/* What is played: schedules of all ranks, one after the other asked for and given back, so that
 * not all need be in memory at once. */
struct tutti_sim_source {
    uint32_t nranks;
    /* Rank's schedule, the caller's to give back with `drop`. */
    int (*schedule)(void *context, uint32_t rank, const struct tutti_schedule **ret_schedule);
    void (*drop)(void *context, const struct tutti_schedule *schedule);
    void *context;
    size_t block_count, element_bytes; /* of a uniform call */
    double footprint_bytes; /* of a call of which this is a piece; 0: this is all of it */
};

struct tutti_sim_link {
    /* "rank 3 out", "trunk 0 in", "memory 1", ..., or what the machine calls it */
    char name[TUTTI_MACHINE_NAME_BYTES];
    uint32_t number;     /* in the order of kinds and places */
    /* Of cores, both are seconds of work. busy_s: while anybody used it. */
    double bytes, bytes_per_s;
    double busy_s;
};

/* A piece of the longest path, from the last event back. */
struct tutti_sim_hop {
    uint32_t rank, step;
    double begin_s, end_s;
    /* "latency", "overhead", "bandwidth", "reduce", "copy"; or it waits: for its turn at a "port",
     * because it shares a "link" or a "core" */
    char why[24];
};

struct tutti_sim_report {
    double seconds;
    double *rank_seconds; /* per rank: when it was done */
    uint64_t nmessages;
    double bytes;         /* sent by all */
    /* Of the longest path: latency and overhead, bandwidth, reduce and copy, waits. They add up
     * to 1. */
    double latency_share, wire_share, work_share, wait_share;
    struct tutti_sim_link *links; /* those with any traffic, the busiest first */
    size_t nlinks;
    struct tutti_sim_hop *hops;
    size_t nhops;
};

/* TUTTI_ERR_ARGUMENT: machine and schedules do not fit, or the schedules each other: they wait for
 * ever, or what is sent is not what is received. TUTTI_ERR_SYSTEM: no memory. What the source
 * returns. */
int tutti_simulate(const struct tutti_sim_source *source, const struct tutti_machine *machine,
                   struct tutti_sim_report *ret_report);
void tutti_sim_report_fini(struct tutti_sim_report *report);

/* The least time any schedule could take: by counting rounds, and bytes over every cut, and their
 * sum, which holds for schedules of synchronous rounds. */
struct tutti_sim_bound {
    double latency_s, bandwidth_s, sum_s;
};

int tutti_sim_bound(const struct tutti_machine *machine, enum tutti_collective collective,
                    uint32_t root, double block_bytes, struct tutti_sim_bound *ret_bound);

#endif
