/* SPDX-License-Identifier: Apache-2.0
 * Bruck's all-to-all: a few messages per rank instead of p - 1, for tiny blocks.
 *
 * The block for the rank j before this one travels in slot j. Write j in base r, the radix. Round i
 * moves the slots whose digit i is not 0: those with digit z go in one message to the rank z r^i
 * before. So a block hops once for each nonzero digit of its distance. Radix 2 has the fewest
 * messages, ceil(log2 p), and moves about half of all blocks in each. A larger radix sends r - 1
 * messages at a time and moves a block less often.
 *
 *   p = 8, r = 3   slot 1    2    3    4    5    6    7     > to the rank r^i before, >> to the
 *   i = 0               >    >>        >    >>        >       one 2 r^i before, which keeps it
 *   i = 1                         >    >    >    >>   >>      in the same slot
 *
 * The slots of one message are packed side by side in the PACK part of SCRATCH and arrive in its
 * ARRIVED part. From there each hop copies a block once: to OUTPUT if the block has reached its
 * destination, to PACK if the next round moves it, else to its own place in the KEPT part. Slots
 * with consecutive numbers hold blocks of consecutive ranks and arrive side by side. So one copy
 * takes a run of slots whose digits agree, from the position of the previous round up. Only blocks
 * that have not moved yet are copied from INPUT one by one:
 *
 *   p = 16, r = 2, i = 2, slots   4      5      6    7      and 12 .. 15 likewise
 *   are packed from             INPUT  KEPT  ARRIVED ----
 *   and of what arrived, slots    2 3     are done, slots 10 11 are kept
 *
 * Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
 * communications in multiport message-passing systems", 1997.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* One round, which looks at the digit of this weight, r^i. */
struct round {
    uint32_t nranks, radix;
    uint64_t weight;
};

/* Number of slots below `end` with digit z. */
static uint32_t slots_with(const struct round *round, uint32_t end, uint32_t z)
{
    uint64_t period = round->weight * round->radix;
    uint64_t whole = end / period * round->weight, rest = end % period;
    uint64_t from = z * round->weight;
    uint64_t more = rest < from ? 0 : rest - from;

    return (uint32_t)(whole + (more < round->weight ? more : round->weight));
}

/* Number of slots below `end` that the round moves. */
static uint32_t slots_carried(const struct round *round, uint32_t end)
{
    return end - slots_with(round, end, 0);
}

/* Index in PACK and ARRIVED at which the message of digit z begins. */
static uint32_t message_first(const struct round *round, uint32_t z)
{
    uint32_t first = 0;

    for (uint32_t below = 1; below < z; below++)
        first += slots_with(round, round->nranks, below);
    return first;
}

/* The parts of SCRATCH: PACK at 0, then ARRIVED, then KEPT. The first round moves the most slots,
 * those whose last digit is not 0, so it sets the size of PACK and ARRIVED. */
static uint32_t pack_size(const struct round *round)
{
    struct round first = {.nranks = round->nranks, .radix = round->radix, .weight = 1};

    return slots_carried(&first, round->nranks);
}

static uint32_t arrived_at(const struct round *round, uint32_t index)
{
    return pack_size(round) + index;
}

static uint32_t kept_at(const struct round *round, uint64_t slot)
{
    return 2 * pack_size(round) + (uint32_t)slot;
}

/* The previous round. Of the first round it has weight 0. */
static struct round round_before(const struct round *round)
{
    return (struct round){.nranks = round->nranks, .radix = round->radix,
                          .weight = round->weight / round->radix};
}

/* The number of slots slot .. slot + count - 1 that exist. */
static uint32_t clip(const struct round *round, uint64_t slot, uint64_t count)
{
    uint64_t left = slot < round->nranks ? round->nranks - slot : 0;

    return (uint32_t)(count < left ? count : left);
}

/* The blocks that the previous round delivered in slots `slot`, slot + 1, ... In the position of
 * that round, `slot` has digit z; its lower digits are 0. */
static struct tutti_span arrived_span(const struct round *round, uint64_t slot, uint32_t z)
{
    struct round before = round_before(round);
    uint32_t index = message_first(&before, z) + (uint32_t)(slot / round->weight * before.weight);

    return tutti_span(TUTTI_BUF_SCRATCH, arrived_at(round, index),
                      clip(round, slot, before.weight));
}

/* Copy slots slot .. slot + weight - 1, which have the same digit, to PACK from *index on. */
static int pack_group(const struct tutti_shape *shape, struct tutti_build *build,
                      const struct round *round, uint64_t slot, uint32_t *index)
{
    uint64_t before = round_before(round).weight;
    uint32_t own = tutti_rank_before(shape->rank, (uint32_t)slot, shape->nranks);
    uint32_t kept = before > 1 ? clip(round, slot + 1, before - 1) : 0;

    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, own, 1),
                               tutti_span(TUTTI_BUF_SCRATCH, *index, 1)));
    TUTTI_TRY(tutti_build_copy(build,
                               tutti_span(TUTTI_BUF_SCRATCH, kept_at(round, slot + 1), kept),
                               tutti_span(TUTTI_BUF_SCRATCH, *index + 1, kept)));
    *index += 1 + kept;
    for (uint32_t z = 1; z < round->radix && before > 0; z++) {
        struct tutti_span src = arrived_span(round, slot + z * before, z);

        TUTTI_TRY(tutti_build_copy(build, src,
                                   tutti_span(TUTTI_BUF_SCRATCH, *index, src.count)));
        *index += src.count;
    }
    return TUTTI_OK;
}

static int pack(const struct tutti_shape *shape, struct tutti_build *build,
                const struct round *round)
{
    uint32_t index = 0;

    for (uint32_t z = 1; z < round->radix; z++)
        for (uint64_t slot = z * round->weight; slot < round->nranks;
             slot += round->weight * round->radix)
            TUTTI_TRY(pack_group(shape, build, round, slot, &index));
    return TUTTI_OK;
}

/* Copy the blocks of slots from `slot` on, which have reached this rank, to OUTPUT. The block of
 * slot j comes from the rank j after this one. */
static int deliver(const struct tutti_shape *shape, struct tutti_build *build, uint64_t slot,
                   struct tutti_span src)
{
    struct tutti_wrapped dst = tutti_wrapped_span(TUTTI_BUF_OUTPUT, shape->rank + (uint32_t)slot,
                                                  src.count, shape->nranks);

    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_SCRATCH, src.first, dst.upper.count),
                               dst.upper));
    return tutti_build_copy(
        build, tutti_span(TUTTI_BUF_SCRATCH, src.first + dst.upper.count, dst.lower.count),
        dst.lower);
}

/* Free ARRIVED for the next messages. Of the blocks that the previous round brought, deliver or
 * keep those that this round does not move on. */
static int unpack(const struct tutti_shape *shape, struct tutti_build *build,
                  const struct round *round)
{
    uint64_t before = round_before(round).weight;

    for (uint64_t group = 0; group < shape->nranks; group += round->weight * round->radix)
        for (uint32_t z = 1; z < round->radix; z++) {
            uint64_t slot = group + z * before;
            struct tutti_span src = arrived_span(round, slot, z);

            if (group == 0)
                TUTTI_TRY(deliver(shape, build, slot, src));
            else
                TUTTI_TRY(tutti_build_copy(build, src,
                                           tutti_span(TUTTI_BUF_SCRATCH, kept_at(round, slot),
                                                      src.count)));
        }
    return TUTTI_OK;
}

static int exchange(const struct tutti_shape *shape, struct tutti_build *build,
                    const struct round *round, bool is_sending)
{
    uint32_t n = shape->nranks;

    for (uint32_t z = 1; z < round->radix && z * round->weight < n; z++) {
        uint32_t by = (uint32_t)(z * round->weight);
        uint32_t first = message_first(round, z), count = slots_with(round, n, z);

        if (is_sending)
            TUTTI_TRY(tutti_build_send(build, tutti_rank_before(shape->rank, by, n),
                                       tutti_span(TUTTI_BUF_SCRATCH, first, count)));
        else
            TUTTI_TRY(
                tutti_build_recv(build, tutti_rank_after(shape->rank, by, n),
                                 tutti_span(TUTTI_BUF_SCRATCH, arrived_at(round, first), count)));
    }
    return TUTTI_OK;
}

static int emit_alltoall(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct round round = {.nranks = shape->nranks, .radix = shape->options.value[TUTTI_RADIX],
                          .weight = 1};

    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, kept_at(&round, shape->nranks));
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, shape->rank, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    for (; round.weight < shape->nranks; round.weight *= round.radix) {
        TUTTI_TRY(pack(shape, build, &round));
        TUTTI_TRY(exchange(shape, build, &round, true));
        if (round.weight > 1)
            TUTTI_TRY(unpack(shape, build, &round));
        TUTTI_TRY(exchange(shape, build, &round, false));
    }
    return unpack(shape, build, &round);
}

/* Slots that a round delivers and the next one does not move on: those with a nonzero digit here
 * and digit 0 in the next position. */
static uint32_t slots_unpacked(const struct round *round)
{
    struct round both = {.nranks = round->nranks, .radix = round->radix * round->radix,
                         .weight = round->weight};
    uint32_t count = 0;

    for (uint32_t z = 1; z < round->radix; z++)
        count += slots_with(&both, round->nranks, z);
    return count;
}

/* The messages of a round go to different ranks, but leave one after the other through one port. */
static void cost_alltoall(const struct tutti_shape *shape, double block_bytes,
                          struct tutti_cost *ret_cost)
{
    struct round round = {.nranks = shape->nranks, .radix = shape->options.value[TUTTI_RADIX],
                          .weight = 1};
    double rounds = 0, posted = 0, hops = 0, copied = 1;

    for (; round.weight < shape->nranks; round.weight *= round.radix) {
        hops += slots_carried(&round, shape->nranks);
        copied += slots_carried(&round, shape->nranks) + slots_unpacked(&round);
        rounds++;
        for (uint32_t z = 2; z < round.radix && z * round.weight < shape->nranks; z++)
            posted++;
    }
    tutti_cost_flat(shape, rounds, hops * block_bytes, 0, copied * block_bytes, ret_cost);
    ret_cost->level[tutti_level_of_shape(shape)].posted = posted;
}

const struct tutti_algorithm tutti_bruck_alltoall = {
    .name = "bruck",
    .collective = TUTTI_ALLTOALL,
    .options = {[TUTTI_RADIX] = {.least = 2, .most = 64, .usual = 2}},
    .emit = emit_alltoall,
    .cost = cost_alltoall,
};
