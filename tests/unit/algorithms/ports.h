/* SPDX-License-Identifier: Apache-2.0
 * Computes the costs of the schedules of all ranks: messages, and chunks, that follow one another.
 *
 * Ranks have one port in each direction: a rank sends to one peer at a time, in program order, and
 * receives likewise. Local steps take no time. */
#ifndef TUTTI_TESTS_PORTS_H
#define TUTTI_TESTS_PORTS_H

#include "algorithms/algorithm.h"

struct mate {
    uint32_t rank, step;
};

/* A rank's schedule as emitted, not fused. Options may be 0. */
struct tutti_schedule *emit_rank(const struct tutti_algorithm *algorithm,
                                 const struct tutti_shape *shape);

/* All ranks' schedules as emitted: fused ones cost the same. */
struct world {
    uint32_t nranks;
    bool is_segmented; /* the option "segments" is more than 1 */
    struct tutti_schedule **schedules;
    struct mate **mates; /* per rank and two-sided step: the other end */
};

/* `shape` as tutti_algorithm_schedule takes it; rank is ignored. */
void world_init(struct world *world, const struct tutti_algorithm *algorithm,
                const struct tutti_shape *shape);
void world_fini(struct world *world);

bool is_send(const struct tutti_step *step);
bool is_receive(const struct tutti_step *step);

/* Neighboring messages to the same peer and channel share a round if nothing makes the second wait
 * for the first (they are pieces of one that wraps around), but for the segments of a pipeline. */
uint32_t world_rounds(const struct world *world);

/* The same for chunks: each takes its time, whoever it goes to. */
uint32_t world_chunks(const struct world *world);

struct count {
    uint32_t rounds;
    uint32_t sent_min, sent_max, received_min, received_max; /* over ranks, in chunks */
};

/* Of a two-sided algorithm. */
struct count count_messages(const struct tutti_algorithm *algorithm,
                            const struct tutti_shape *shape);

#endif
