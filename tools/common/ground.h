/* SPDX-License-Identifier: Apache-2.0
 * What a call and a machine look like to the tuner and the simulator. Sizes are counted as the perf
 * programs count them: the whole vector, which is all ranks' blocks together where there are many.
 */
#ifndef TUTTI_TOOLS_GROUND_H
#define TUTTI_TOOLS_GROUND_H

#include "tuner/table.h"
#include "tuner/tuner.h"

/* Bytes of a block; at least one where anything moves. */
size_t ground_block_bytes(enum tutti_collective collective, uint32_t nranks, double size_bytes);

/* Bus bandwidth is this times size / time: what the busiest port must carry of each byte. */
double ground_bus_factor(enum tutti_collective collective, uint32_t nranks);

/* Ranks of one node share memory and one process, so that every algorithm can serve. */
void ground_view(const struct tutti_machine *machine, struct tutti_tuner_view *ret_view);

/* Processes of this host, as tutti-run starts them. */
struct ground_host {
    struct tutti_tuner_view view; /* what the communicator of such processes would look at */
    struct tutti_machine *machine;
    struct tutti_places places;
    uint32_t *node;
    char fingerprint[TUTTI_FINGERPRINT_BYTES];
};

/* `nranks` of them. TUTTI_TRANSPORTS counts, and of `policy` (borrowed, NULL: none) the machine
 * that TUTTI_MACHINE describes; without that, the machine is what the library assumes of such a
 * host. Closing accepts a zeroed host. */
int ground_host_open(uint32_t nranks, const struct tutti_policy *policy,
                     struct ground_host *ret_host);
void ground_host_close(struct ground_host *host);

/* Cores that this process may use. */
uint32_t ground_cores(void);

#endif
