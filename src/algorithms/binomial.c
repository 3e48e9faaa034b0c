/* SPDX-License-Identifier: Apache-2.0
 * Binomial trees: broadcast, reduce, gather and scatter in ceil(log2 p) rounds.
 *
 * Places count from the root (place 0). The parent of a place is the place with its lowest set bit
 * cleared; a subtree is a run of places, so that what belongs to it lies together.
 *
 *              0                        p = 8
 *        4     |   2     1              broadcast and scatter serve the largest subtree
 *      6   5   |   3                    first, reduce and gather take the smallest first:
 *      7                                it is the first to be ready
 *
 * Inner places of gather and scatter keep the blocks of their subtree in SCRATCH, in the order of
 * places. Only the root sees them by rank: there a subtree may wrap around the end, and makes two
 * messages.
 *
 * Source: the classic, as in Chan, Heimlich, Purkayastha and van de Geijn, "Collective
 * communication: theory, practice, and experience", 2007.
 */
#include "algorithms/algorithm.h"
#include "algorithms/binomial.h"

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t place = from_root(shape, shape->rank);
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    struct tutti_span source = place == 0 ? tutti_span(TUTTI_BUF_INPUT, 0, 1) : output;

    if (place != 0)
        TUTTI_TRY(tutti_build_recv(build, to_rank(shape, binomial_parent(place)), output));
    for (uint32_t i = binomial_levels(place, shape->nranks); i-- > 0;) {
        uint32_t child = place + (1u << i);

        if (child < shape->nranks)
            TUTTI_TRY(tutti_build_send(build, to_rank(shape, child), source));
    }
    return place == 0 ? tutti_build_copy(build, source, output) : TUTTI_OK;
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t place = from_root(shape, shape->rank);
    uint32_t levels = binomial_levels(place, shape->nranks);
    enum tutti_buffer kept = place == 0 ? TUTTI_BUF_OUTPUT : TUTTI_BUF_SCRATCH;
    struct tutti_span sum = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    if (place != 0 && binomial_size(place, shape->nranks) > 1)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    for (uint32_t i = 0; i < levels && place + (1u << i) < shape->nranks; i++) {
        struct tutti_span next = tutti_span(kept, 0, 1);

        TUTTI_TRY(tutti_build_recv_reduce(build, to_rank(shape, place + (1u << i)), sum, next));
        sum = next;
    }
    return place == 0 ? TUTTI_OK
                      : tutti_build_send(build, to_rank(shape, binomial_parent(place)), sum);
}

/* Where this place keeps the blocks of `count` places from `first` on: the root by rank, others
 * from their own on. What a child of the root sends must be cut like what the root receives. */
static struct wrapped kept_blocks(const struct tutti_shape *shape, enum tutti_buffer roots,
                                  uint32_t first, uint32_t count, bool is_with_root)
{
    uint32_t place = from_root(shape, shape->rank);
    struct wrapped blocks = wrapped_span(roots, to_rank(shape, first), count, shape->nranks);

    if (place == 0)
        return blocks;
    if (!is_with_root)
        blocks = (struct wrapped){.upper = {.count = count}};
    blocks.upper.buffer = TUTTI_BUF_SCRATCH;
    blocks.upper.first = first - place;
    blocks.lower.buffer = TUTTI_BUF_SCRATCH;
    blocks.lower.first = first - place + blocks.upper.count;
    return blocks;
}

static int emit_gather(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t n = shape->nranks;
    uint32_t place = from_root(shape, shape->rank);
    uint32_t size = binomial_size(place, n);
    uint32_t levels = binomial_levels(place, n);
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    if (size == 1)
        return tutti_build_send(build, to_rank(shape, binomial_parent(place)), own);

    if (place != 0)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, size);
    TUTTI_TRY(tutti_build_copy(build, own,
                               kept_blocks(shape, TUTTI_BUF_OUTPUT, place, 1, false).upper));
    for (uint32_t i = 0; i < levels && place + (1u << i) < n; i++) {
        uint32_t child = place + (1u << i);

        TUTTI_TRY(recv_wrapped(build, to_rank(shape, child),
                               kept_blocks(shape, TUTTI_BUF_OUTPUT, child, binomial_size(child, n),
                                           place == 0)));
    }
    if (place == 0)
        return TUTTI_OK;
    return send_wrapped(build, to_rank(shape, binomial_parent(place)),
                        kept_blocks(shape, TUTTI_BUF_OUTPUT, place, size,
                                    binomial_parent(place) == 0));
}

static int emit_scatter(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t n = shape->nranks;
    uint32_t place = from_root(shape, shape->rank);
    uint32_t size = binomial_size(place, n);
    uint32_t levels = binomial_levels(place, n);
    struct tutti_span own = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);

    if (size == 1)
        return tutti_build_recv(build, to_rank(shape, binomial_parent(place)), own);

    if (place != 0) {
        uint32_t parent = binomial_parent(place);

        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, size);
        TUTTI_TRY(recv_wrapped(build, to_rank(shape, parent),
                               kept_blocks(shape, TUTTI_BUF_INPUT, place, size, parent == 0)));
    }
    for (uint32_t i = levels; i-- > 0;) {
        uint32_t child = place + (1u << i);

        if (child < n)
            TUTTI_TRY(send_wrapped(build, to_rank(shape, child),
                                   kept_blocks(shape, TUTTI_BUF_INPUT, child,
                                               binomial_size(child, n), place == 0)));
    }
    return tutti_build_copy(build, kept_blocks(shape, TUTTI_BUF_INPUT, place, 1, false).upper, own);
}

const struct tutti_algorithm tutti_binomial_broadcast = {
    .name = "binomial",
    .collective = TUTTI_BROADCAST,
    .emit = emit_broadcast,
};

const struct tutti_algorithm tutti_binomial_reduce = {
    .name = "binomial",
    .collective = TUTTI_REDUCE,
    .emit = emit_reduce,
};

const struct tutti_algorithm tutti_binomial_gather = {
    .name = "binomial",
    .collective = TUTTI_GATHER,
    .emit = emit_gather,
};

const struct tutti_algorithm tutti_binomial_scatter = {
    .name = "binomial",
    .collective = TUTTI_SCATTER,
    .emit = emit_scatter,
};
