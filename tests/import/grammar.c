/* SPDX-License-Identifier: Apache-2.0
 * Writes scripts of well-known algorithms. In all of them the channel of an action is a function of
 * the chunk, so that actions on different channels never conflict. */
#include "import/grammar.h"

#include <stdlib.h>

/* Chunk c of a whole buffer of one block. */
#define IN(rank, c)      input_at(script, (rank), (c))
#define OUT(rank, c)     output_at(script, (rank), (c))
#define SCRATCH(rank, c) scratch_at(script, (rank), (c))

/* ---- rings and chains ------------------------------------------------------------------------ */

static void ring_allreduce(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t c = 0; c < p; c++)
            copy(script, IN(rank, c), OUT(rank, c), 1, c % channels);
    for (uint32_t step = 0; step < 2 * (p - 1); step++)
        for (uint32_t c = 0; c < p; c++) {
            uint32_t rank = (c + step) % p, next = (rank + 1) % p;

            if (step < p - 1)
                add_to(script, OUT(rank, c), OUT(next, c), OUT(next, c), 1, c % channels);
            else
                copy(script, OUT(rank, c), OUT(next, c), 1, c % channels);
        }
}

/* The sums of all blocks travel through scratch memory and end at their own ranks. */
static void ring_reduce_scatter(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t step = 0; step < p - 1; step++)
        for (uint32_t c = 0; c < p; c++) {
            uint32_t rank = (c + 1 + step) % p, next = (rank + 1) % p;

            add_to(script, step == 0 ? IN(rank, c) : SCRATCH(rank, c), IN(next, c),
                   step == p - 2 ? OUT(next, 0) : SCRATCH(next, c), 1, c % channels);
        }
}

static void ring_allgather(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t rank = 0; rank < p; rank++)
        copy(script, IN(rank, 0), OUT(rank, rank), 1, rank % channels);
    for (uint32_t step = 0; step < p - 1; step++)
        for (uint32_t c = 0; c < p; c++)
            copy(script, OUT((c + step) % p, c), OUT((c + step + 1) % p, c), 1, c % channels);
}

static void chain_broadcast(struct script *script, uint32_t channels)
{
    for (uint32_t c = 0; c < script->chunks; c++) {
        copy(script, IN(1, c), OUT(1, c), 1, c % channels);
        for (uint32_t step = 0; step < script->nranks - 1; step++)
            copy(script, OUT((1 + step) % script->nranks, c), OUT((2 + step) % script->nranks, c),
                 1, c % channels);
    }
}

static void chain_reduce(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = 0; rank < p - 1; rank++)
            add_to(script, rank == 0 ? IN(rank, c) : SCRATCH(rank, c), IN(rank + 1, c),
                   rank + 1 == p - 1 ? OUT(p - 1, c) : SCRATCH(rank + 1, c), 1, c % channels);
}

static void chain_scan(struct script *script, uint32_t channels)
{
    for (uint32_t c = 0; c < script->chunks; c++) {
        copy(script, IN(0, c), OUT(0, c), 1, c % channels);
        for (uint32_t rank = 0; rank < script->nranks - 1; rank++)
            add_to(script, OUT(rank, c), IN(rank + 1, c), OUT(rank + 1, c), 1, c % channels);
    }
}

static void chain_exclusive_scan(struct script *script, uint32_t channels)
{
    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = 0; rank < script->nranks - 1; rank++) {
            copy(script, rank == 0 ? IN(rank, c) : SCRATCH(rank, c), OUT(rank + 1, c), 1,
                 c % channels);
            if (rank + 2 < script->nranks)
                add_to(script, OUT(rank + 1, c), IN(rank + 1, c), SCRATCH(rank + 1, c), 1,
                       c % channels);
        }
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* Leaves the sums of all ranks in scratch memory of rank 0. */
static void sum_up_tree(struct script *script, uint32_t channels)
{
    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t mask = 1; mask < script->nranks; mask *= 2)
            for (uint32_t rank = 0; rank + mask < script->nranks; rank += 2 * mask) {
                bool is_leaf = mask == 1 || (rank + mask + 1 == script->nranks);

                add_to(script, is_leaf ? IN(rank + mask, c) : SCRATCH(rank + mask, c),
                       mask == 1 ? IN(rank, c) : SCRATCH(rank, c), SCRATCH(rank, c), 1,
                       c % channels);
            }
}

static void pass_down_tree(struct script *script, uint32_t channels)
{
    uint32_t mask = 1;

    while (mask < script->nranks)
        mask *= 2;
    for (; mask > 0; mask /= 2)
        for (uint32_t rank = 0; rank + mask < script->nranks; rank += 2 * mask)
            for (uint32_t c = 0; c < script->chunks; c++)
                copy(script, OUT(rank, c), OUT(rank + mask, c), 1, c % channels);
}

static void tree_allreduce(struct script *script, uint32_t channels)
{
    sum_up_tree(script, channels);
    for (uint32_t c = 0; c < script->chunks; c++)
        copy(script, SCRATCH(0, c), OUT(0, c), 1, c % channels);
    pass_down_tree(script, channels);
}

static void tree_reduce(struct script *script, uint32_t channels)
{
    sum_up_tree(script, channels);
    for (uint32_t c = 0; c < script->chunks; c++)
        copy(script, SCRATCH(0, c), OUT(0, c), 1, c % channels);
}

static void tree_broadcast(struct script *script, uint32_t channels)
{
    for (uint32_t c = 0; c < script->chunks; c++)
        copy(script, IN(0, c), OUT(0, c), 1, c % channels);
    pass_down_tree(script, channels);
}

/* Returns how many blocks a rank of a tree sends, of those from its own block on. */
static uint32_t subtree(const struct script *script, uint32_t rank, uint32_t mask)
{
    return rank + mask <= script->nranks ? mask : script->nranks - rank;
}

static void tree_gather(struct script *script, uint32_t channels)
{
    (void)channels;
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        copy(script, IN(rank, 0), SCRATCH(rank, rank), 1, 0);
    for (uint32_t mask = 1; mask < script->nranks; mask *= 2)
        for (uint32_t rank = 0; rank + mask < script->nranks; rank += 2 * mask) {
            uint32_t from = rank + mask, count = subtree(script, from, mask);

            SCRATCH(rank, from + count - 1); /* the last chunk that the copy writes */
            copy(script, SCRATCH(from, from), SCRATCH(rank, from), count, 0);
        }
    copy(script, SCRATCH(0, 0), OUT(0, 0), script->nranks, 0);
}

static void tree_scatter(struct script *script, uint32_t channels)
{
    uint32_t mask = 1;

    (void)channels;
    SCRATCH(0, script->nranks - 1);
    copy(script, IN(0, 0), SCRATCH(0, 0), script->nranks, 0);
    while (mask < script->nranks)
        mask *= 2;
    for (; mask > 0; mask /= 2)
        for (uint32_t rank = 0; rank + mask < script->nranks; rank += 2 * mask)
            copy(script, SCRATCH(rank, rank + mask), SCRATCH(rank + mask, rank + mask),
                 subtree(script, rank + mask, mask), 0);
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        copy(script, SCRATCH(rank, rank), OUT(rank, 0), 1, 0);
}

/* ---- all pairs ------------------------------------------------------------------------------- */

/* Rank r sums up chunk r: it gets the others' chunks into scratch memory, then adds them. */
static void pairs_allreduce(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t other = 0; other < p; other++)
            if (other != rank)
                copy(script, IN(other, rank), SCRATCH(rank, other), 1, rank % channels);
    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t i = 1; i < p; i++)
            add_to(script, SCRATCH(rank, (rank + i) % p), i == 1 ? IN(rank, rank) : OUT(rank, rank),
                   OUT(rank, rank), 1, rank % channels);
    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t i = 1; i < p; i++)
            copy(script, OUT(rank, rank), OUT((rank + i) % p, rank), 1, rank % channels);
}

static void pairs_reduce(struct script *script, uint32_t channels)
{
    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = 1; rank < script->nranks; rank++)
            add_to(script, IN(rank, c), rank == 1 ? IN(0, c) : OUT(0, c), OUT(0, c), 1,
                   c % channels);
}

static void pairs_broadcast(struct script *script, uint32_t channels)
{
    (void)channels;
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        copy(script, IN(0, 0), OUT(rank, 0), script->chunks, 0);
}

static void pairs_allgather(struct script *script, uint32_t channels)
{
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        for (uint32_t to = 0; to < script->nranks; to++)
            copy(script, IN(rank, 0), OUT(to, rank), 1, rank % channels);
}

static void pairs_reduce_scatter(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t i = 1; i < p; i++)
            add_to(script, IN((rank + i) % p, rank), i == 1 ? IN(rank, rank) : OUT(rank, 0),
                   OUT(rank, 0), 1, rank % channels);
}

static void pairs_alltoall(struct script *script, uint32_t channels)
{
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        for (uint32_t to = 0; to < script->nranks; to++)
            copy(script, IN(rank, to), OUT(to, rank), 1, to % channels);
}

static void pairs_gather(struct script *script, uint32_t channels)
{
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        copy(script, IN(rank, 0), OUT(script->nranks - 1, rank), 1, rank % channels);
}

static void pairs_scatter(struct script *script, uint32_t channels)
{
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        copy(script, IN(script->nranks - 1, rank), OUT(rank, 0), 1, rank % channels);
}

/* ---- hierarchies ----------------------------------------------------------------------------- */

enum { GROUP = 2 };

/* Each rank sums up half of the chunks within its group, the groups' sums are summed up in one
 * pass, and the halves are exchanged within the group. */
static void groups_allreduce(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t c = rank % GROUP; c < script->chunks; c += GROUP)
            add_to(script, IN(rank ^ 1, c), IN(rank, c), SCRATCH(rank, c), 1, c % channels);
    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = c % GROUP; rank < p; rank += GROUP)
            for (uint32_t i = GROUP; i < p; i += GROUP)
                copy(script, SCRATCH((rank + i) % p, c),
                     SCRATCH(rank, i / GROUP * script->chunks + c), 1, c % channels);
    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = c % GROUP; rank < p; rank += GROUP)
            for (uint32_t i = GROUP; i < p; i += GROUP)
                add_to(script, SCRATCH(rank, i / GROUP * script->chunks + c),
                       i == GROUP ? SCRATCH(rank, c) : OUT(rank, c), OUT(rank, c), 1, c % channels);
    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = c % GROUP; rank < p; rank += GROUP)
            copy(script, OUT(rank, c), OUT(rank ^ 1, c), 1, c % channels);
}

static void groups_allgather(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t i = 0; i < p; i += GROUP)
            copy(script, IN(rank, 0), OUT((rank + i) % p, rank), 1, rank % channels);
    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t i = 0; i < p; i += GROUP)
            copy(script, OUT(rank, (rank + i) % p), OUT(rank ^ 1, (rank + i) % p), 1,
                 (rank + i) % p % channels);
}

/* Blocks for another group go to the group member with the receiver's number first. */
static void groups_alltoall(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    (void)channels;
    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t to = 0; to < p; to++)
            copy(script, IN(rank, to),
                 SCRATCH(rank / GROUP * GROUP + to % GROUP, to / GROUP * GROUP + rank % GROUP), 1,
                 0);
    for (uint32_t rank = 0; rank < p; rank++)
        for (uint32_t group = 0; group < p; group += GROUP)
            copy(script, SCRATCH(rank, group), OUT(group + rank % GROUP, rank / GROUP * GROUP),
                 GROUP, 0);
}

/* ---- one pass -------------------------------------------------------------------------------- */

/* Every rank gets all parts and adds them in an order of its own. */
static void one_pass(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = 0; rank < p; rank++)
            for (uint32_t i = 1; i < p; i++)
                copy(script, IN((rank + i) % p, c), SCRATCH(rank, i * script->chunks + c), 1,
                     c % channels);
    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = 0; rank < p; rank++)
            for (uint32_t i = 1; i < p; i++)
                add_to(script, SCRATCH(rank, i * script->chunks + c),
                       i == 1 ? IN(rank, c) : OUT(rank, c), OUT(rank, c), 1, c % channels);
}

/* The parts are added as they arrive. */
static void one_pass_direct(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = 0; rank < p; rank++)
            for (uint32_t i = 1; i < p; i++)
                add_to(script, IN((rank + i) % p, c), i == 1 ? IN(rank, c) : OUT(rank, c),
                       OUT(rank, c), 1, c % channels);
}

/* The parts travel around a ring, in two chunks of scratch memory in turn. */
static void one_pass_ring(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks, half = script->chunks;

    for (uint32_t c = 0; c < script->chunks; c++) {
        for (uint32_t rank = 0; rank < p; rank++)
            copy(script, IN(rank, c), SCRATCH(rank, c), 1, c % channels);
        for (uint32_t step = 0; step < p - 1; step++) {
            for (uint32_t rank = 0; rank < p; rank++)
                copy(script, SCRATCH(rank, step % 2 * half + c),
                     SCRATCH((rank + 1) % p, (step + 1) % 2 * half + c), 1, c % channels);
            for (uint32_t rank = 0; rank < p; rank++)
                add_to(script, SCRATCH(rank, (step + 1) % 2 * half + c),
                       step == 0 ? IN(rank, c) : OUT(rank, c), OUT(rank, c), 1, c % channels);
        }
    }
}

/* The others' parts are added to each other first. */
static void one_pass_aside(struct script *script, uint32_t channels)
{
    uint32_t p = script->nranks;

    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = 0; rank < p; rank++)
            for (uint32_t i = 1; i < p; i++)
                copy(script, IN((rank + i) % p, c), SCRATCH(rank, i * script->chunks + c), 1,
                     c % channels);
    for (uint32_t c = 0; c < script->chunks; c++)
        for (uint32_t rank = 0; rank < p; rank++) {
            struct at sum = SCRATCH(rank, script->chunks + c);

            for (uint32_t i = 2; i < p; i++)
                add_to(script, SCRATCH(rank, i * script->chunks + c), sum, sum, 1, c % channels);
            add_to(script, sum, IN(rank, c), OUT(rank, c), 1, c % channels);
        }
}

/* ---- all of them ----------------------------------------------------------------------------- */

const struct pattern *pattern(size_t index)
{
    static const struct pattern patterns[] = {
        {"ring", TUTTI_ALLREDUCE, 0, true, false, ring_allreduce},
        {"ring", TUTTI_REDUCE_SCATTER, 1, true, false, ring_reduce_scatter},
        {"ring", TUTTI_ALLGATHER, 1, true, false, ring_allgather},
        {"chain", TUTTI_BROADCAST, 3, true, false, chain_broadcast},
        {"chain", TUTTI_REDUCE, 3, true, false, chain_reduce},
        {"chain", TUTTI_SCAN, 2, true, false, chain_scan},
        {"chain", TUTTI_EXCLUSIVE_SCAN, 2, false, false, chain_exclusive_scan},
        {"tree", TUTTI_ALLREDUCE, 2, true, false, tree_allreduce},
        {"tree", TUTTI_REDUCE, 2, true, false, tree_reduce},
        {"tree", TUTTI_BROADCAST, 2, true, false, tree_broadcast},
        {"tree", TUTTI_GATHER, 1, true, false, tree_gather},
        {"tree", TUTTI_SCATTER, 1, true, false, tree_scatter},
        {"pairs", TUTTI_ALLREDUCE, 0, true, false, pairs_allreduce},
        {"pairs", TUTTI_REDUCE, 2, true, false, pairs_reduce},
        {"pairs", TUTTI_BROADCAST, 2, true, false, pairs_broadcast},
        {"pairs", TUTTI_ALLGATHER, 1, true, false, pairs_allgather},
        {"pairs", TUTTI_REDUCE_SCATTER, 1, true, false, pairs_reduce_scatter},
        {"pairs", TUTTI_ALLTOALL, 1, false, false, pairs_alltoall},
        {"pairs", TUTTI_GATHER, 1, true, false, pairs_gather},
        {"pairs", TUTTI_SCATTER, 1, true, false, pairs_scatter},
        {"groups", TUTTI_ALLREDUCE, 2, true, true, groups_allreduce},
        {"groups", TUTTI_ALLGATHER, 1, true, true, groups_allgather},
        {"groups", TUTTI_ALLTOALL, 1, false, true, groups_alltoall},
        {"one pass", TUTTI_ALLREDUCE, 2, true, false, one_pass},
        {"one pass, direct", TUTTI_ALLREDUCE, 2, false, false, one_pass_direct},
        {"one pass, ring", TUTTI_ALLREDUCE, 2, true, false, one_pass_ring},
        {"one pass, aside", TUTTI_ALLREDUCE, 2, true, false, one_pass_aside},
    };

    return index < sizeof patterns / sizeof *patterns ? &patterns[index] : NULL;
}

struct script pattern_script(const struct pattern *pattern, uint32_t nranks, uint32_t channels,
                             bool is_in_place)
{
    struct script script = {.collective = pattern->collective,
                            .nranks = nranks,
                            .chunks = pattern->chunks > 0 ? pattern->chunks : nranks,
                            .is_in_place = is_in_place};

    pattern->write(&script, channels);
    return script;
}
