/* SPDX-License-Identifier: Apache-2.0
 * Shared parts of the algorithms in which ranks read the windows of other ranks (step.h).
 */
#ifndef TUTTI_ALGORITHMS_WINDOW_H
#define TUTTI_ALGORITHMS_WINDOW_H

#include "algorithms/algorithm.h"

/* Emit copies of all chunks of INPUT except number shape->rank into the window slots of the same
 * numbers. */
int tutti_algorithm_lay_out_others(const struct tutti_shape *shape, struct tutti_build *build);

/* The algorithms that those in cells.h fall back to. */
extern const struct tutti_algorithm tutti_one_shot_allreduce, tutti_two_shot_allreduce;
extern const struct tutti_algorithm tutti_direct_reduce, tutti_direct_reduce_scatter;
extern const struct tutti_algorithm tutti_direct_broadcast, tutti_direct_allgather;
extern const struct tutti_algorithm tutti_direct_barrier;

#endif
