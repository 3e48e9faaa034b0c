/* SPDX-License-Identifier: Apache-2.0
 * Broadcast as a binomial scatter and a circulant all-gather: 2 ceil(log2 p) rounds, and no rank
 * sends much more than twice the vector.
 *
 * Chunk i belongs to place i, counted from the root. The scatter leaves place v with the chunks of
 * its whole subtree, from v on. The all-gather sends each place only what it lacks, and sends the
 * root nothing.
 *
 *   p = 5, place     0        1        2        3        4
 *   scattered        01234    1        23       3        4
 *   gathered (h=1)   .        1+2      23       3+4      4+0       + : from the place h after
 *   (h=2)            .        12+3     23+4     34+0     40+1
 *   (h=3)            .        123+40   234+01   340+12   401+23
 *
 * Source: Barnett, Shuler, Gupta, Payne, van de Geijn and Watts, "Building a high-performance
 * collective communication library", 1994.
 */
#include "algorithms/algorithm.h"
#include "algorithms/circulant.h"
#include "algorithms/knomial.h"

#define RADIX 2

static uint32_t scattered_size(uint32_t place, uint32_t nranks)
{
    return tutti_knomial_size(place, nranks, RADIX);
}

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t n = shape->nranks;
    uint32_t place = tutti_rank_relative(shape, shape->rank);
    enum tutti_buffer source = place == 0 ? TUTTI_BUF_INPUT : TUTTI_BUF_OUTPUT;
    uint32_t nchildren = tutti_knomial_children(place, n, RADIX);

    tutti_build_chunks(build, n);
    if (place != 0)
        TUTTI_TRY(tutti_build_recv(
            build, tutti_rank_absolute(shape, tutti_knomial_parent(place, n, RADIX)),
            tutti_span(TUTTI_BUF_OUTPUT, place, scattered_size(place, n))));
    for (uint32_t i = 0; i < nchildren; i++) {
        uint32_t child = tutti_knomial_child(place, n, RADIX, i);

        TUTTI_TRY(tutti_build_send(build, tutti_rank_absolute(shape, child),
                                   tutti_span(source, child, scattered_size(child, n))));
    }
    TUTTI_TRY(tutti_circulant_gather(n, place, shape->root, source, scattered_size, build));
    if (place != 0)
        return TUTTI_OK;
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, n),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, n));
}

/* The leaf that the root serves last still lacks all chunks but its own. With two ranks the root
 * sends both its messages to the same rank, one after the other. */
static void cost_broadcast(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    double part = (shape->nranks - 1) * block_bytes / shape->nranks;

    if (shape->nranks == 2)
        tutti_cost_flat(shape, 1, block_bytes, 0, block_bytes, ret_cost);
    else
        tutti_cost_flat(shape, 2 * tutti_rounds_of(shape->nranks), 2 * part, 0, block_bytes,
                        ret_cost);
}

const struct tutti_algorithm tutti_scatter_allgather_broadcast = {
    .name = "scatter_allgather",
    .collective = TUTTI_BROADCAST,
    .is_lean = true,
    .emit = emit_broadcast,
    .cost = cost_broadcast,
};
