/* SPDX-License-Identifier: Apache-2.0
 * Bruck's all-to-all: few messages per rank instead of p - 1, for tiny blocks.
 *
 * The block for the rank j after us travels in slot j. With j written to base r, the radix, round i
 * carries the slots whose digit i is not 0: all those with digit z go in one message to the rank
 * z r^i after it. So a block hops once for each nonzero digit of its distance. Radix 2 has the
 * fewest messages, ceil(log2 p), and moves about half of all blocks in each; a larger radix has
 * r - 1 messages at a time and moves a block less often.
 *
 *   p = 8, r = 3   slot 1    2    3    4    5    6    7     > to the rank r^i after us, >> to the
 *   i = 0               >    >>        >    >>        >       one 2 r^i after us, which keeps it
 *   i = 1                         >    >    >    >>   >>      in the same slot
 *
 * Slots of one message are packed side by side in the PACK part of SCRATCH and arrive in its
 * ARRIVED part. From there a block goes straight to OUTPUT at the end of its way, into the next
 * round's PACK, or else into its own place in the KEPT part: one copy for each hop.
 *
 * Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
 * communications in multiport message-passing systems", 1997.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* One round: the digit of this weight, r^i. */
struct round {
    uint32_t nranks, radix;
    uint64_t weight;
};

static uint32_t digit(const struct round *round, uint32_t slot)
{
    return (uint32_t)(slot / round->weight % round->radix);
}

/* Slots below `end` with digit z. */
static uint32_t slots_with(const struct round *round, uint32_t end, uint32_t z)
{
    uint64_t period = round->weight * round->radix;
    uint64_t whole = end / period * round->weight, rest = end % period;
    uint64_t from = z * round->weight;
    uint64_t more = rest < from ? 0 : rest - from;

    return (uint32_t)(whole + (more < round->weight ? more : round->weight));
}

/* Slots below `end` that the round carries. */
static uint32_t slots_carried(const struct round *round, uint32_t end)
{
    return end - slots_with(round, end, 0);
}

/* Where the message of digit z begins in PACK and ARRIVED. */
static uint32_t message_first(const struct round *round, uint32_t z)
{
    uint32_t first = 0;

    for (uint32_t below = 1; below < z; below++)
        first += slots_with(round, round->nranks, below);
    return first;
}

/* Where this slot lies in PACK and ARRIVED. */
static uint32_t message_index(const struct round *round, uint32_t slot)
{
    uint32_t z = digit(round, slot);

    return message_first(round, z) + slots_with(round, slot, z);
}

/* The parts of SCRATCH: PACK lies at 0, then come the others. No round carries more than the first:
 * the slots whose last digit is not 0. */
static uint32_t pack_size(const struct round *round)
{
    struct round first = {.nranks = round->nranks, .radix = round->radix, .weight = 1};

    return slots_carried(&first, round->nranks);
}

static uint32_t arrived_at(const struct round *round, uint32_t index)
{
    return pack_size(round) + index;
}

static uint32_t kept_at(const struct round *round, uint32_t slot)
{
    return 2 * pack_size(round) + slot;
}

static struct round round_before(const struct round *round)
{
    return (struct round){.nranks = round->nranks, .radix = round->radix,
                          .weight = round->weight / round->radix};
}

/* How many slots from this one on lie side by side before a round, and have the same digit in it:
 * those that the round before carried, or left, together. What has not moved yet lies in INPUT, among
 * such as have. */
static uint32_t slots_alike(const struct round *round, uint32_t slot)
{
    uint64_t together = round->weight / round->radix, count;

    if (slot % round->weight == 0)
        return 1;
    count = together - slot % together;
    return count < round->nranks - slot ? (uint32_t)count : round->nranks - slot;
}

/* Where the blocks of these slots, which are alike, lie before a round. */
static struct tutti_span slot_span(const struct tutti_shape *shape, const struct round *round,
                                   uint32_t slot, uint32_t count)
{
    struct round before = round_before(round);

    if (slot % round->weight == 0)
        return tutti_span(TUTTI_BUF_INPUT, rank_after(shape->rank, slot, shape->nranks), 1);
    if (digit(&before, slot) != 0)
        return tutti_span(TUTTI_BUF_SCRATCH, arrived_at(round, message_index(&before, slot)),
                          count);
    return tutti_span(TUTTI_BUF_SCRATCH, kept_at(round, slot), count);
}

/* A copy that grows as long as the next slots' follows on both sides. */
struct run {
    struct tutti_span src, dst;
};

static bool follows(struct tutti_span span, struct tutti_span next)
{
    return span.buffer == next.buffer && span.first + span.count == next.first;
}

static int add_copy(struct tutti_build *build, struct run *run, struct tutti_span src,
                    struct tutti_span dst)
{
    if (follows(run->src, src) && follows(run->dst, dst)) {
        run->src.count += src.count;
        run->dst.count += dst.count;
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti_build_copy(build, run->src, run->dst));
    *run = (struct run){.src = src, .dst = dst};
    return TUTTI_OK;
}

static int pack(const struct tutti_shape *shape, struct tutti_build *build,
                const struct round *round)
{
    struct run run = {.src = TUTTI_NO_SPAN, .dst = TUTTI_NO_SPAN};

    for (uint32_t slot = 1, count; slot < shape->nranks; slot += count) {
        count = slots_alike(round, slot);
        if (digit(round, slot) != 0)
            TUTTI_TRY(add_copy(build, &run, slot_span(shape, round, slot, count),
                               tutti_span(TUTTI_BUF_SCRATCH, message_index(round, slot), count)));
    }
    return tutti_build_copy(build, run.src, run.dst);
}

/* Clear what the round before brought to ARRIVED for the next messages. */
static int unpack(const struct tutti_shape *shape, struct tutti_build *build,
                  const struct round *round)
{
    uint32_t n = shape->nranks;
    struct round before = round_before(round);
    struct run run = {.src = TUTTI_NO_SPAN, .dst = TUTTI_NO_SPAN};

    for (uint32_t slot = 1, count; slot < n; slot += count) {
        struct tutti_span dst;

        count = slots_alike(round, slot);
        if (digit(&before, slot) == 0 || digit(round, slot) != 0)
            continue;
        /* Where they end, one slot's block lies before the last one's. */
        if (slot < round->weight)
            count = 1;
        dst = tutti_span(TUTTI_BUF_SCRATCH, kept_at(round, slot), count);
        if (slot < round->weight)
            dst = tutti_span(TUTTI_BUF_OUTPUT, rank_before(shape->rank, slot, n), 1);
        TUTTI_TRY(add_copy(build, &run, slot_span(shape, round, slot, count), dst));
    }
    return tutti_build_copy(build, run.src, run.dst);
}

static int exchange(const struct tutti_shape *shape, struct tutti_build *build,
                    const struct round *round, bool is_sending)
{
    uint32_t n = shape->nranks;

    for (uint32_t z = 1; z < round->radix && z * round->weight < n; z++) {
        uint32_t by = (uint32_t)(z * round->weight);
        uint32_t first = message_first(round, z), count = slots_with(round, n, z);

        if (is_sending)
            TUTTI_TRY(tutti_build_send(build, rank_after(shape->rank, by, n),
                                       tutti_span(TUTTI_BUF_SCRATCH, first, count)));
        else
            TUTTI_TRY(tutti_build_recv(
                build, rank_before(shape->rank, by, n),
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

/* What the round brings is unpacked unless the next one carries it on: digits z and, next, 0. */
static uint32_t slots_unpacked(const struct round *round)
{
    struct round both = {.nranks = round->nranks, .radix = round->radix * round->radix,
                         .weight = round->weight};
    uint32_t count = 0;

    for (uint32_t z = 1; z < round->radix; z++)
        count += slots_with(&both, round->nranks, z);
    return count;
}

/* Messages of a round go to different ranks, through one port one after the other. */
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
    ret_cost->level[tutti_shape_level(shape)].posted = posted;
}

const struct tutti_algorithm tutti_bruck_alltoall = {
    .name = "bruck",
    .collective = TUTTI_ALLTOALL,
    .options = {[TUTTI_RADIX] = {.least = 2, .most = 64, .usual = 2}},
    .emit = emit_alltoall,
    .cost = cost_alltoall,
};
