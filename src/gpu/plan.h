/* SPDX-License-Identifier: Apache-2.0
 * The machine on which the ranks of a communicator on GPUs run: rings and trees along the links of
 * their hosts, and the rates of these links. While the communicator forms, each rank describes its
 * host. The ranks exchange the descriptions, each distinct one once, and compute the same machine
 * (topology/cluster/cluster.h).
 */
#ifndef TUTTI_GPU_PLAN_H
#define TUTTI_GPU_PLAN_H

#include "topology/cluster/cluster.h"
#include "topology/machine/machine.h"

struct tutti_comm;
struct tutti_batch;

struct tutti_gpu_plan {
    struct tutti_cluster *cluster;      /* NULL: the machine is not known, or not yet */
    struct tutti_cluster_orders orders; /* of the cluster */
    struct tutti_machine *machine;      /* with a rank for each rank; NULL: several domains */

    /* Forming. */
    int phase;                  /* enum of plan.c */
    struct tutti_batch *batch;  /* the exchange under way; NULL: none */
    struct tutti_cluster_record record, *records; /* own; [nranks] of all ranks */
    char *text;                 /* this rank's description */
    char *received;             /* the description under way */
    uint32_t next_text;         /* to be broadcast next */
    char why_not[160];          /* "": the host could be described */
};

/* Makes the plan. All ranks must have a GPU, and all must call this function. The engine of the
 * communicator must run. TUTTI_AGAIN: call again. A host that cannot be described is no error: then
 * no rank has a plan, and rank 0 logs why. */
int tutti_gpu_plan_form(struct tutti_comm *comm);
/* Returns the ranks below 64 between whose GPUs and that of this rank there are only NVLinks: bit r
 * for rank r. 0 without a plan. */
uint64_t tutti_gpu_plan_nvlinked(const struct tutti_comm *comm);
/* Returns the name of the network port that the plan deals out to the GPU of this rank: that of a
 * network interface or of an RDMA device. NULL: there is none. It belongs to the plan. */
const char *tutti_gpu_plan_port(const struct tutti_comm *comm);
enum { TUTTI_GPU_PLAN_NAME_BYTES = 24 };
/* Writes the name of the kinds of hosts that the ranks are on, for tuning tables: "gpu-1f2e3d4c",
 * or "gpu" without a plan. It is the same on all ranks, and for hosts with equal descriptions. */
void tutti_gpu_plan_name(const struct tutti_gpu_plan *plan,
                         char ret_name[TUTTI_GPU_PLAN_NAME_BYTES]);
/* Frees what the plan holds. */
void tutti_gpu_plan_fini(struct tutti_gpu_plan *plan);
/* Returns the bytes of heap memory that the plan holds, for the memory report. */
size_t tutti_gpu_plan_bytes(const struct tutti_gpu_plan *plan);

#endif
