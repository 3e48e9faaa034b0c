/* SPDX-License-Identifier: Apache-2.0
 * Scans of small vectors by doubling: in each round every rank sends what it has combined to the
 * rank `skip` places after it, and combines it with what arrives from the rank `skip` places before
 * it. The operators are commutative, so either operand of a step may be the first.
 *
 * Inclusive: the skips are 1, 2, 4, ... Before the round of skip s a rank has combined the inputs
 * of s ranks, itself and those just before it, or of all ranks up to itself if there are fewer. So
 * there are ceil(log2 p) rounds, each with one combination.
 *
 *   p = 5       rank 0     1     2     3     4       numbers: the ranks combined
 *   skip 1           0    01    12    23    34
 *   skip 2           0    01   012  0123  1234
 *   skip 4           0    01   012  0123 01234
 *
 * Exclusive: the skips are 1, 2, 3, 6, 12, ... A rank keeps the inputs of ranks before it, without
 * its own. In the round of skip 1 it sends its own input. In the round of skip 2 it sends what it
 * keeps, combined with its own input. In later rounds it sends what it keeps: the inputs of the 3,
 * 6, 12, ... ranks before it, or of all ranks before it if there are fewer. Rank 0 sends only in
 * the first two rounds. So there are ceil(log2(p - 1) + log2(4/3)) rounds. Each but the first has
 * one combination for the result. The round of skip 2 has another one for its message.
 *
 *   p = 6       rank 0     1     2     3     4     5
 *   skip 1           -     0     1     2     3     4
 *   skip 2           -     0    01   012   123   234
 *   skip 3           -     0    01   012  0123 01234
 *
 * A rank that received into the memory that it sends would wait for its own send, and thus for all
 * ranks after it. So sums are kept in two chunks of SCRATCH in turn, and only the last one in
 * OUTPUT. OUTPUT may be the memory of INPUT, which is sent in the first round. So what arrives in
 * that round always goes to SCRATCH. Rank 1, for which it is the result, copies it.
 *
 * Sources: Hillis and Steele, "Data parallel algorithms", 1986; Träff, "Communication round and
 * computation efficient exclusive prefix-sums algorithms (for MPI_Exscan)", arXiv 2507.04785, 2025.
 */
#include "algorithms/algorithm.h"

#include "algorithms/ranks.h"
#include "base/result.h"

enum { BOTH = 2 }; /* chunk of SCRATCH for the second message of an exclusive scan */

/* The progress of a rank. `kept` is the memory with the inputs that it has combined so far. */
struct scan {
    struct tutti_build *build;
    bool is_exclusive;
    uint32_t nranks, rank;
    uint32_t nreceives, received; /* messages that this rank receives in all, and has received */
    struct tutti_span kept;
};

static uint32_t next_skip(const struct scan *scan, uint32_t skip)
{
    return scan->is_exclusive && skip == 2 ? 3 : 2 * skip;
}

/* True if this rank receives in the round of that skip. In an exclusive scan rank 0 has nothing to
 * give after the first two rounds. */
static bool receives(const struct scan *scan, uint32_t skip)
{
    return scan->rank >= skip + (scan->is_exclusive && skip > 2 ? 1 : 0);
}

static bool sends(const struct scan *scan, uint32_t skip)
{
    return scan->rank + skip < scan->nranks &&
           (!scan->is_exclusive || skip <= 2 || scan->rank > 0);
}

static struct scan scan_of(const struct tutti_shape *shape, uint32_t rank,
                           struct tutti_build *build)
{
    struct scan scan = {.build = build, .nranks = shape->nranks, .rank = rank,
                        .is_exclusive = shape->collective == TUTTI_EXCLUSIVE_SCAN,
                        .kept = tutti_span(TUTTI_BUF_INPUT, 0, 1)};

    for (uint32_t skip = 1; skip < shape->nranks; skip = next_skip(&scan, skip))
        scan.nreceives += receives(&scan, skip);
    return scan;
}

/* Receive what the rank `skip` places before has combined, and combine it with what is kept. */
static int receive(struct scan *scan, uint32_t skip)
{
    uint32_t from = scan->rank - skip;
    bool is_last = scan->received + 1 == scan->nreceives && scan->received > 0;
    struct tutti_span to = tutti_span(is_last ? TUTTI_BUF_OUTPUT : TUTTI_BUF_SCRATCH,
                                      is_last ? 0 : scan->received % 2, 1);

    if (scan->is_exclusive && scan->received == 0)
        TUTTI_TRY(tutti_build_recv(scan->build, from, to));
    else
        TUTTI_TRY(tutti_build_recv_reduce(scan->build, from, scan->kept, to));
    scan->received++;
    scan->kept = to;
    return TUTTI_OK;
}

/* The message of an exclusive scan in the round of skip 2: what is kept and the own input. */
static int send_both(struct scan *scan)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1), both = own;

    if (scan->rank > 0) {
        both = tutti_span(TUTTI_BUF_SCRATCH, BOTH, 1);
        TUTTI_TRY(tutti_build_copy(scan->build, own, both));
        TUTTI_TRY(tutti_build_reduce(scan->build, scan->kept, both));
    }
    return tutti_build_send(scan->build, scan->rank + 2, both);
}

static int emit(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct scan scan = scan_of(shape, shape->rank, build);
    struct tutti_span result = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);

    if (scan.nreceives > 0)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, BOTH + (scan.is_exclusive ? 1 : 0));
    for (uint32_t skip = 1; skip < shape->nranks; skip = next_skip(&scan, skip)) {
        if (sends(&scan, skip) && scan.is_exclusive && skip == 2)
            TUTTI_TRY(send_both(&scan));
        else if (sends(&scan, skip))
            TUTTI_TRY(tutti_build_send(build, shape->rank + skip, scan.kept));
        if (receives(&scan, skip))
            TUTTI_TRY(receive(&scan, skip));
    }
    if (scan.nreceives > 1 ||
        !tutti_collective_has_output(shape->collective, shape->rank, shape->root))
        return TUTTI_OK;
    return tutti_build_copy(build, scan.kept, result);
}

/* The last rank receives in every round. In an exclusive scan the last rank with a second message
 * may combine more, as it combines that message too. Rank 1 copies its input for that message, and
 * its result. */
static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    struct scan last = scan_of(shape, shape->nranks - 1, NULL), before;
    bool has_second = last.is_exclusive && shape->nranks > 3;
    uint32_t rounds = last.nreceives, combined = rounds - (last.is_exclusive ? 1 : 0);

    if (has_second) {
        before = scan_of(shape, shape->nranks - 3, NULL);
        combined = before.nreceives > combined ? before.nreceives : combined;
    }
    tutti_cost_flat(shape, rounds, rounds * block_bytes, combined * block_bytes,
                    (has_second ? 2 : 1) * block_bytes, ret_cost);
}

const struct tutti_algorithm tutti_doubling_scan = {
    .name = "doubling",
    .collective = TUTTI_SCAN,
    .emit = emit,
    .cost = cost,
};

const struct tutti_algorithm tutti_doubling_exclusive_scan = {
    .name = "doubling",
    .collective = TUTTI_EXCLUSIVE_SCAN,
    .emit = emit,
    .cost = cost,
};
