/* SPDX-License-Identifier: Apache-2.0
 * What algorithms that go by windows share. */
#ifndef TUTTI_ALGORITHMS_WINDOW_H
#define TUTTI_ALGORITHMS_WINDOW_H

#include "algorithms/algorithm.h"

/* Chunks of INPUT with other numbers than this rank's into the window slots of their numbers. */
int tutti_window_lay_out_others(const struct tutti_shape *shape, struct tutti_build *build);

/* What algorithms that go by cells are where there are none. */
extern const struct tutti_algorithm tutti_one_shot_allreduce, tutti_two_shot_allreduce;
extern const struct tutti_algorithm tutti_direct_reduce, tutti_direct_reduce_scatter;
extern const struct tutti_algorithm tutti_direct_broadcast, tutti_direct_allgather;
extern const struct tutti_algorithm tutti_direct_barrier;

#endif
