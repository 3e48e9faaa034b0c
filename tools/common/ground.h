/* SPDX-License-Identifier: Apache-2.0
 * Calls and machines as the tuner and the simulator see them. Sizes are counted as the perf
 * programs count them: the whole vector, which is the blocks of all ranks together where there are
 * several.
 */
#ifndef TUTTI_TOOLS_GROUND_H
#define TUTTI_TOOLS_GROUND_H

#include "tuner/table.h"
#include "tuner/tuner.h"

/* The bytes of a block; at least one if the collective moves data. */
size_t ground_block_bytes(enum tutti_collective collective, uint32_t nranks, double size_bytes);

/* Bus bandwidth is this factor times size / time. The factor is what the busiest port must carry
 * per byte of the size. */
double ground_bus_factor(enum tutti_collective collective, uint32_t nranks);

/* The tuner's view of a machine. Ranks of one node share memory and one process, so that every
 * algorithm is available. */
void ground_view(const struct tutti_machine *machine, struct tutti_tuner_view *ret_view);

/* A machine of processes on this host, as tutti-run starts them. */
struct ground_host {
    struct tutti_tuner_view view; /* what the communicator of such processes would see */
    struct tutti_machine *machine;
    struct tutti_places places;
    uint32_t *node;
    char fingerprint[TUTTI_FINGERPRINT_BYTES];
};

/* Describes `nranks` processes. TUTTI_TRANSPORTS is honoured. The machine is the one that `policy`
 * (borrowed; NULL: none) got from TUTTI_MACHINE, or else what the library assumes of such a host.
 * ground_host_close accepts a zero-initialized host. */
int ground_host_open(uint32_t nranks, const struct tutti_policy *policy,
                     struct ground_host *ret_host);
void ground_host_close(struct ground_host *host);

/* The number of cores that this process may use. */
uint32_t ground_cores(void);

#endif
