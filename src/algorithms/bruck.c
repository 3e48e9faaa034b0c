/* SPDX-License-Identifier: Apache-2.0
 * Bruck's all-to-all, radix 2: ceil(log2 p) messages per rank instead of p - 1, for tiny blocks.
 *
 * The block for the rank j after us travels in slot j: in round i everyone sends all slots with
 * bit i set, in one message, to the rank 2^i after it. So a block hops along the set bits of its
 * distance, and about half of all blocks are sent in each round.
 *
 *   p = 5        slot 1    2    3    4          > sent on to the rank 2^i after us, which
 *   i = 0             >         >                 keeps it in the same slot
 *   i = 1                  >    >
 *   i = 2                            >
 *
 * Slots of one message are packed side by side in the PACK part of SCRATCH and arrive in its
 * ARRIVED part. From there a block goes straight to OUTPUT at the end of its way, into the next
 * message's PACK, or else into its own place in the KEPT part: one copy for each hop.
 *
 * Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
 * communications in multiport message-passing systems", 1997.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* The parts of SCRATCH: PACK lies at 0, then come the others. At most half of the slots have a
 * given bit set. */
static uint32_t arrived_at(uint32_t nranks, uint32_t index)
{
    return nranks / 2 + index;
}

static uint32_t kept_at(uint32_t nranks, uint32_t slot)
{
    return nranks / 2 * 2 + slot;
}

static uint32_t low_bits(uint32_t slot, uint32_t count)
{
    return slot & ((1u << count) - 1);
}

/* How many slots below `slot` have this bit set: its index in the message of that round. */
static uint32_t message_index(uint32_t slot, uint32_t bit)
{
    uint32_t below = low_bits(slot, bit);
    uint32_t whole = (slot >> (bit + 1)) << bit;

    return slot >> bit & 1 ? whole + below : whole;
}

/* Where the block of this slot lies before round `round`. */
static struct tutti_span slot_span(const struct tutti_shape *shape, uint32_t slot, uint32_t round)
{
    uint32_t n = shape->nranks;

    if (low_bits(slot, round) == 0)
        return tutti_span(TUTTI_BUF_INPUT, rank_after(shape->rank, slot, n), 1);
    if (slot >> (round - 1) & 1)
        return tutti_span(TUTTI_BUF_SCRATCH, arrived_at(n, message_index(slot, round - 1)), 1);
    return tutti_span(TUTTI_BUF_SCRATCH, kept_at(n, slot), 1);
}

/* Clear the ARRIVED part of the round before for the next message. */
static int unpack(const struct tutti_shape *shape, struct tutti_build *build, uint32_t round)
{
    uint32_t n = shape->nranks;

    for (uint32_t slot = 1; slot < n; slot++) {
        struct tutti_span dst = tutti_span(TUTTI_BUF_SCRATCH, kept_at(n, slot), 1);

        if (!(slot >> (round - 1) & 1) || slot >> round & 1)
            continue;
        if (slot >> round == 0)
            dst = tutti_span(TUTTI_BUF_OUTPUT, rank_before(shape->rank, slot, n), 1);
        TUTTI_TRY(tutti_build_copy(build, slot_span(shape, slot, round), dst));
    }
    return TUTTI_OK;
}

static int emit_alltoall(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t n = shape->nranks;
    uint32_t rounds = rounds_of(n);

    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, kept_at(n, n));
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, shape->rank, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t count = message_index(n, round);

        for (uint32_t slot = 1; slot < n; slot++) {
            uint32_t at = message_index(slot, round);

            if (slot >> round & 1)
                TUTTI_TRY(tutti_build_copy(build, slot_span(shape, slot, round),
                                           tutti_span(TUTTI_BUF_SCRATCH, at, 1)));
        }
        TUTTI_TRY(tutti_build_send(build, rank_after(shape->rank, 1u << round, n),
                                   tutti_span(TUTTI_BUF_SCRATCH, 0, count)));
        if (round > 0)
            TUTTI_TRY(unpack(shape, build, round));
        TUTTI_TRY(tutti_build_recv(build, rank_before(shape->rank, 1u << round, n),
                                   tutti_span(TUTTI_BUF_SCRATCH, arrived_at(n, 0), count)));
    }
    return unpack(shape, build, rounds);
}

const struct tutti_algorithm tutti_bruck_alltoall = {
    .name = "bruck",
    .collective = TUTTI_ALLTOALL,
    .emit = emit_alltoall,
};
