/* SPDX-License-Identifier: Apache-2.0
 * Pairwise all-to-all: each block straight from its sender to its receiver.
 *
 *   shift 1     0 -> 1 -> 2 -> 3 -> 0       In shift i everyone sends to the rank i after it and
 *   shift 2     0 <-> 2   1 <-> 3           receives from the rank i before it, so that no rank is
 *   shift 3     0 <- 1 <- 2 <- 3 <- 0       everybody's target at once.
 *
 * p - 1 messages and least volume; the shifts order the posting, none waits for the one before.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

static int emit_alltoall(const struct tutti_shape *shape, struct tutti_build *build)
{
    for (uint32_t i = 1; i < shape->nranks; i++) {
        uint32_t to = rank_after(shape->rank, i, shape->nranks);
        uint32_t from = rank_before(shape->rank, i, shape->nranks);

        TUTTI_TRY(tutti_build_send(build, to, tutti_span(TUTTI_BUF_INPUT, to, 1)));
        TUTTI_TRY(tutti_build_recv(build, from, tutti_span(TUTTI_BUF_OUTPUT, from, 1)));
    }
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, shape->rank, 1),
                            tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1));
}

const struct tutti_algorithm tutti_pairwise_alltoall = {
    .name = "pairwise",
    .collective = TUTTI_ALLTOALL,
    .serves_vector = true,
    .emit = emit_alltoall,
};
