/* SPDX-License-Identifier: Apache-2.0
 * What a call and a machine look like to the tuner and the simulator. Sizes are counted as the perf
 * programs count them: the whole vector, which is all ranks' blocks together where there are many.
 */
#ifndef TUTTI_TOOLS_GROUND_H
#define TUTTI_TOOLS_GROUND_H

#include "tuner/tuner.h"

/* Bytes of a block; at least one where anything moves. */
size_t ground_block_bytes(enum tutti_collective collective, uint32_t nranks, double size_bytes);

/* Bus bandwidth is this times size / time: what the busiest port must carry of each byte. */
double ground_bus_factor(enum tutti_collective collective, uint32_t nranks);

/* Ranks of one node share memory and one process, so that every algorithm can serve. */
void ground_view(const struct tutti_machine *machine, struct tutti_tuner_view *ret_view);

#endif
