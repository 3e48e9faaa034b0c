/* SPDX-License-Identifier: Apache-2.0
 * Plays a call by symmetry: a few ranks stand for all.
 *
 * Let a shift by `period` ranks map the machine onto itself, and let the schedule of rank
 * r + period be that of rank r with all ranks in it shifted. Then both ranks do the same things at
 * the same times. So only ranks 0 .. period - 1 are played. Each link stands for all links to which
 * a shift maps it. What a rank sends to a rank that is not played reaches that rank's
 * representative:
 *
 *   4 nodes of 2 ranks, period 2          0 -> 5 is played as a message of 0 that enters 1;
 *   [0 1] [2 3] [4 5] [6 7]               it stands for 2 -> 7, 4 -> 1 and 6 -> 3 too
 *
 * A link must have as many images as a rank has, n / period. Then each link is used in the play
 * exactly as much as each of its images would be.
 *
 * The result is that of a play of all ranks, except where several messages with different
 * receivers wait for a port. A play of all ranks serves the lowest ranks first, and from then on
 * the ranks may choose differently. In a play by symmetry all ranks make the same choice. */
#ifndef TUTTI_SIMULATOR_SYMMETRY_H
#define TUTTI_SIMULATOR_SYMMETRY_H

#include "simulator/network.h"

/* Checks that a shift by the period, which is not 0, maps the machine onto itself.
 * TUTTI_ERR_ARGUMENT: it does not, or the machine has another number of ranks; TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_sim_period_check(const struct tutti_machine *machine, uint32_t nranks, uint32_t period);
/* Sets network->fold for plays by symmetry, after the check above. TUTTI_ERR_SYSTEM: no memory. */
int tutti_sim_network_fold(struct tutti_sim_network *network, uint32_t period);

/* Returns the representative of a rank; period 0: every rank is its own. */
static inline uint32_t tutti_sim_played_rank(uint32_t period, uint32_t rank)
{
    return period > 0 ? rank % period : rank;
}

#endif
