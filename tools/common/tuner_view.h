/* SPDX-License-Identifier: Apache-2.0
 * Describes calls and machines in the form that the tuner and the simulator take. A struct
 * tutti_tuner_view is the machine as a communicator on it would describe it to the tuner.
 *
 * The tools give sizes as the perf programs do: a size is the bytes of the whole vector. If a
 * collective has a block per rank, the vector consists of the blocks of all ranks.
 */
#ifndef TUTTI_TOOLS_TUNER_VIEW_H
#define TUTTI_TOOLS_TUNER_VIEW_H

#include "tuner/table.h"
#include "tuner/tuner.h"

/* Returns the bytes of one block of a vector of size_bytes, rounded down. The result is at least 1
 * if the collective moves data, and 0 otherwise. */
size_t vector_block_bytes(enum tutti_collective collective, uint32_t nranks, double size_bytes);

/* Returns the factor by which size / time must be multiplied to get the bus bandwidth. The factor
 * is the number of bytes that the busiest port must carry per byte of the size. */
double vector_bus_factor(enum tutti_collective collective, uint32_t nranks);

/* Describes the ranks of a machine to the tuner. Assumes that the ranks of a machine with only one
 * node are threads of one process, so that every algorithm is available. The view borrows the
 * machine. */
void tuner_view_init(const struct tutti_machine *machine, struct tutti_tuner_view *ret_view);

/* This host as a machine whose ranks are processes, as tutti-run starts them. `view` points to the
 * other members. */
struct host_view {
    struct tutti_tuner_view view;
    struct tutti_machine *machine; /* owned */
    struct tutti_placement places; /* the places of `machine`, for the requested number of ranks */
    uint32_t *node;                /* the node of each rank; owned; NULL if `machine` has them */
    char fingerprint[TUTTI_FINGERPRINT_BYTES]; /* names this kind of machine in tuning tables */
};

/* Describes `nranks` processes on this host, with the transports that TUTTI_TRANSPORTS allows. The
 * machine is the one that `policy` took from TUTTI_MACHINE. If there is none, the machine is what
 * the library assumes about such a host. `policy` is borrowed and may be NULL. Returns TUTTI_OK or
 * an error code. In both cases the caller releases *ret_host with host_view_close, which accepts a
 * zero-initialized host. The view points into *ret_host, so the caller must not move *ret_host. */
int host_view_open(uint32_t nranks, const struct tutti_policy *policy, struct host_view *ret_host);
void host_view_close(struct host_view *host);

/* Makes the machine of `nranks` processes on this host: the one of TUTTI_MACHINE, or else what the
 * library assumes about such a host. *ret_is_given tells which. The caller destroys the machine.
 * TUTTI_ERR_USAGE, TUTTI_ERR_ARGUMENT: TUTTI_MACHINE or another variable of the tuner is wrong.
 * TUTTI_ERR_SYSTEM: no memory. */
int host_machine_load(uint32_t nranks, struct tutti_machine **ret_machine, bool *ret_is_given);

/* Returns the number of cores that this process may use. */
uint32_t usable_cores(void);

#endif
