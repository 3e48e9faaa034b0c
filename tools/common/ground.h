/* SPDX-License-Identifier: Apache-2.0
 * Describes calls and machines in the form that the tuner and the simulator take.
 *
 * The tools give sizes as the perf programs do: a size is the bytes of the whole vector. If a
 * collective has a block per rank, the vector consists of the blocks of all ranks.
 */
#ifndef TUTTI_TOOLS_GROUND_H
#define TUTTI_TOOLS_GROUND_H

#include "tuner/table.h"
#include "tuner/tuner.h"

/* Returns the bytes of one block of a vector of size_bytes. The result is at least 1 if the
 * collective moves data, and 0 otherwise. */
size_t ground_block_bytes(enum tutti_collective collective, uint32_t nranks, double size_bytes);

/* Returns the factor by which size / time must be multiplied to get the bus bandwidth. The factor
 * is the number of bytes that the busiest port must carry per byte of the size. */
double ground_bus_factor(enum tutti_collective collective, uint32_t nranks);

/* Fills the tuner's view of a machine. Assumes that the ranks of a machine with only one node are
 * threads of one process, so that every algorithm is available. The view borrows the machine. */
void ground_view(const struct tutti_machine *machine, struct tutti_tuner_view *ret_view);

/* This host as a machine whose ranks are processes, as tutti-run starts them. */
struct ground_host {
    struct tutti_tuner_view view; /* the view that a communicator of these processes would have */
    struct tutti_machine *machine;
    struct tutti_placement places;
    uint32_t *node; /* owned; NULL if the machine gives the nodes */
    char fingerprint[TUTTI_FINGERPRINT_BYTES];
};

/* Describes `nranks` processes on this host, with the transports that TUTTI_TRANSPORTS allows. The
 * machine is the one that `policy` took from TUTTI_MACHINE. If there is none, the machine is what
 * the library assumes about such a host. `policy` is borrowed and may be NULL. Returns TUTTI_OK or
 * an error code. The caller releases *ret_host with ground_host_close, which accepts a
 * zero-initialized host. The view points into *ret_host, so the caller must not move *ret_host. */
int ground_host_open(uint32_t nranks, const struct tutti_policy *policy,
                     struct ground_host *ret_host);
void ground_host_close(struct ground_host *host);

/* Returns the number of cores that this process may use. */
uint32_t ground_cores(void);

#endif
