/* SPDX-License-Identifier: Apache-2.0
 * Counting what an algorithm costs from the schedules of all ranks.
 *
 * Rounds are counted on ranks with one port in each direction: a rank sends to one peer at a time,
 * in program order, and receives likewise. Neighbouring messages to the same peer share a round
 * if nothing makes the second wait for the first (they are pieces of one that wraps around), but
 * for the segments of a pipeline. Local steps take no time.
 */
#ifndef TUTTI_TESTS_ALGORITHMS_COUNT_H
#define TUTTI_TESTS_ALGORITHMS_COUNT_H

#include "algorithms/algorithm.h"

/* A rank's schedule as emitted, not fused. Options may be 0. */
struct tutti_schedule *emit_rank(const struct tutti_algorithm *algorithm,
                                 const struct tutti_shape *shape);

/* All ranks' schedules as emitted: fused ones cost the same. */
struct world {
    uint32_t nranks;
    bool is_segmented;
    struct tutti_schedule **schedules;
    uint32_t **rounds; /* per rank and step: the round after which it is complete */
};

/* `shape` is of any rank. */
void world_init(struct world *world, const struct tutti_algorithm *algorithm,
                const struct tutti_shape *shape);
void world_fini(struct world *world);

struct count {
    uint32_t rounds;
    uint32_t sent_min, sent_max, received_min, received_max; /* over ranks, in chunks */
};

/* Of a two-sided algorithm. */
struct count count_messages(const struct tutti_algorithm *algorithm,
                            const struct tutti_shape *shape);

#endif
