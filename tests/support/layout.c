/* SPDX-License-Identifier: Apache-2.0
 * Lists the blocks that each call of the API reads and writes. */
#include "support/layout.h"

#include <stdlib.h>

/* Keys of what is broadcast or gathered name no receiver. */
enum { ANYBODY = 999 };

static uint64_t key_of(int from, int to)
{
    return (uint64_t)from * 1000 + (uint64_t)to;
}

bool layout_has_output(const struct member *member, const struct trial *trial)
{
    bool is_at_root = trial->act == REDUCE || trial->act == GATHER || trial->act == GATHER_V;

    if (trial->act == EXCLUSIVE_SCAN)
        return member->rank > 0;
    return !is_at_root || member->rank == trial->root;
}

/* ---- v-forms -------------------------------------------------------------------------------- */

/* The elements of block `index` by the trial's law. */
static size_t law(const struct trial *trial, int index, int nranks)
{
    switch (trial->counts) {
    case COUNTS_NONE: return 0;
    case COUNTS_SOME_ZERO: return index % 2 ? 0 : trial->count;
    case COUNTS_ONE_BIG: return index == nranks / 2 ? trial->count * 3 + 1 : index == 0 ? 1 : 0;
    case COUNTS_RAMP: return trial->count * (size_t)((index * 5 + 2) % 7) / 3 + (size_t)index;
    default: return trial->count;
    }
}

/* The number of elements that `from` sends to `to`. With some laws whole rows and columns are
 * empty. */
static size_t pair_law(const struct trial *trial, int from, int to, int nranks)
{
    /* In place both counts of a pair are the same. */
    if (trial->counts == COUNTS_SOME_ZERO &&
        (from == 1 || to == (trial->in_place ? 1 : nranks - 1)))
        return 0;
    return law(trial, trial->in_place ? (from + to) % nranks : (from * 3 + to) % nranks, nranks);
}

static void place(const struct trial *trial, const struct member *member, const size_t *counts,
                  size_t *displs)
{
    size_t at = trial->places == PLACES_PACKED ? 0 : 1;

    for (int i = 0; i < member->nranks; i++) {
        int block = trial->places == PLACES_REVERSED ? member->nranks - 1 - i : i;

        displs[block] = at;
        at += counts[block];
        if (trial->places != PLACES_PACKED)
            at += 1 + (size_t)(i + member->rank) % 3;
    }
}

/* Send counts, their places, receive counts, their places. */
static void fill_arrays(struct attempt *attempt)
{
    const struct trial *trial = &attempt->trial;
    const struct member *member = attempt->member;
    size_t n = (size_t)member->nranks, *at;

    at = attempt->arrays = calloc(4 * n, sizeof *at);
    if (at == NULL)
        abort();
    for (int i = 0; i < member->nranks; i++) {
        bool by_pair = trial->act == ALLTOALL_V;

        at[i] = by_pair ? pair_law(trial, member->rank, i, member->nranks)
                        : law(trial, i, member->nranks);
        at[2 * n + (size_t)i] = by_pair ? pair_law(trial, i, member->rank, member->nranks)
                                        : law(trial, i, member->nranks);
    }
    place(trial, member, at, at + n);
    place(trial, member, at + 2 * n, at + 3 * n);
}

/* Only the arrays of the root are read. Other ranks pass NULL or an address that nobody may
 * read. */
static struct layout_arrays unread_arrays(const struct member *member, const struct trial *trial,
                                          const size_t *arrays)
{
    const size_t *unread = trial->count % 2 ? NULL : (const size_t *)(uintptr_t)8;

    return (struct layout_arrays){.send_counts = unread, .send_displs = unread,
                                  .recv_counts = unread, .recv_displs = unread,
                                  .own_count = arrays[member->rank]};
}

struct layout_arrays layout_arrays(const struct member *member, const struct trial *trial,
                                   const size_t *arrays)
{
    size_t n = (size_t)member->nranks;
    bool is_packed = trial->places == PLACES_PACKED;

    if (arrays == NULL)
        return (struct layout_arrays){.send_counts = NULL};
    if (act_has_root(trial->act) && member->rank != trial->root)
        return unread_arrays(member, trial, arrays);
    return (struct layout_arrays){.send_counts = arrays,
                                  .send_displs = is_packed ? NULL : arrays + n,
                                  .recv_counts = arrays + 2 * n,
                                  .recv_displs = is_packed ? NULL : arrays + 3 * n,
                                  .own_count = arrays[member->rank]};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void give(struct attempt *attempt, size_t at, size_t count, uint64_t key, int peer)
{
    attempt->input_blocks[attempt->inputs++] =
        (struct block){.at = at, .count = count, .key = key, .peer = peer};
}

static void get(struct attempt *attempt, size_t at, size_t count, uint64_t key, int peer)
{
    attempt->output_blocks[attempt->outputs++] =
        (struct block){.at = at, .count = count, .key = key, .peer = peer,
                       .summands = attempt->member->nranks};
}

/* The result over the first `summands` ranks. */
static void get_scan(struct attempt *attempt, int summands)
{
    give(attempt, 0, attempt->trial.count, 0, 0);
    if (summands == 0)
        return;
    get(attempt, 0, attempt->trial.count, 0, 0);
    attempt->output_blocks[0].summands = summands;
}

static void one_block(struct attempt *attempt)
{
    const struct trial *trial = &attempt->trial;
    int rank = attempt->member->rank;
    bool is_root = rank == trial->root;
    size_t count = trial->count;

    switch (trial->act) {
    case ALL_REDUCE:
        give(attempt, 0, count, 0, 0);
        get(attempt, 0, count, 0, 0);
        break;
    case REDUCE:
        give(attempt, 0, count, 0, 0);
        if (is_root)
            get(attempt, 0, count, 0, 0);
        break;
    case BROADCAST:
        if (is_root)
            give(attempt, 0, count, key_of(trial->root, ANYBODY), 0);
        get(attempt, 0, count, key_of(trial->root, ANYBODY), 0);
        break;
    case SCAN: get_scan(attempt, rank + 1); break;
    case EXCLUSIVE_SCAN: get_scan(attempt, rank); break;
    default: break;
    }
}

static void a_block_per_rank(struct attempt *attempt)
{
    const struct trial *trial = &attempt->trial;
    int rank = attempt->member->rank, nranks = attempt->member->nranks;
    bool is_root = rank == trial->root;
    size_t count = trial->count;

    for (int i = 0; i < nranks; i++) {
        size_t at = (size_t)i * count;

        switch (trial->act) {
        case ALL_GATHER: get(attempt, at, count, key_of(i, ANYBODY), i); break;
        case REDUCE_SCATTER: give(attempt, at, count, at, i); break;
        case GATHER:
            if (is_root)
                get(attempt, at, count, key_of(i, ANYBODY), i);
            break;
        case SCATTER:
            if (is_root)
                give(attempt, at, count, key_of(rank, i), i);
            break;
        default: /* ALLTOALL, ALL_EXCHANGE */
            give(attempt, at, count, key_of(rank, i), i);
            get(attempt, at, count, key_of(i, rank), i);
            break;
        }
    }
    /* The other side is one block, which in place is the rank's own among all of them. */
    if (trial->act == ALL_GATHER || trial->act == GATHER)
        give(attempt, trial->in_place ? (size_t)rank * count : 0, count, key_of(rank, ANYBODY), 0);
    if (trial->act == REDUCE_SCATTER)
        get(attempt, trial->in_place ? (size_t)rank * count : 0, count, (size_t)rank * count, 0);
    if (trial->act == SCATTER)
        get(attempt, trial->in_place ? (size_t)rank * count : 0, count, key_of(trial->root, rank),
            0);
}

static void a_vector_of_blocks(struct attempt *attempt)
{
    const struct trial *trial = &attempt->trial;
    int rank = attempt->member->rank, nranks = attempt->member->nranks;
    size_t n = (size_t)nranks, mine = (size_t)rank, first = 0, own_at;
    bool is_root = rank == trial->root;
    const size_t *counts, *displs;

    fill_arrays(attempt);
    counts = attempt->arrays;
    displs = counts + n;
    own_at = trial->in_place ? displs[mine] : 0;
    for (int i = 0; i < nranks; i++) {
        if (trial->act == ALL_GATHER_V)
            get(attempt, displs[i], counts[i], key_of(i, ANYBODY), i);
        if (trial->act == REDUCE_SCATTER_V) {
            give(attempt, displs[i], counts[i], first, i);
            if (i == rank)
                get(attempt, own_at, counts[i], first, 0);
        }
        if (trial->act == GATHER_V && is_root)
            get(attempt, displs[i], counts[i], key_of(i, ANYBODY), i);
        if (trial->act == SCATTER_V && is_root)
            give(attempt, displs[i], counts[i], key_of(rank, i), i);
        if (trial->act == ALLTOALL_V) {
            give(attempt, displs[i], counts[i], key_of(rank, i), i);
            get(attempt, counts[3 * n + (size_t)i], counts[2 * n + (size_t)i], key_of(i, rank), i);
        }
        first += counts[i];
    }
    if (trial->act == ALL_GATHER_V || trial->act == GATHER_V)
        give(attempt, own_at, counts[mine], key_of(rank, ANYBODY), 0);
    if (trial->act == SCATTER_V)
        get(attempt, own_at, counts[mine], key_of(trial->root, rank), 0);
}

static void an_exchange(struct attempt *attempt)
{
    const struct trial *trial = &attempt->trial;
    int rank = attempt->member->rank, nranks = attempt->member->nranks;
    int next = (rank + 1) % nranks, before = (rank + nranks - 1) % nranks;

    if (trial->act == RING_EXCHANGE || rank + 1 < nranks)
        give(attempt, 0, trial->count, key_of(rank, next), next);
    if (trial->act == RING_EXCHANGE || rank > 0)
        get(attempt, 0, trial->count, key_of(before, rank), before);
}

void layout_blocks(struct attempt *attempt)
{
    size_t most = (size_t)attempt->member->nranks;

    attempt->input_blocks = calloc(most, sizeof *attempt->input_blocks);
    attempt->output_blocks = calloc(most, sizeof *attempt->output_blocks);
    if (attempt->input_blocks == NULL || attempt->output_blocks == NULL)
        abort();
    switch (attempt->trial.act) {
    case ALL_REDUCE:
    case REDUCE:
    case BROADCAST:
    case SCAN:
    case EXCLUSIVE_SCAN: one_block(attempt); break;
    case ALL_GATHER_V:
    case REDUCE_SCATTER_V:
    case ALLTOALL_V:
    case GATHER_V:
    case SCATTER_V: a_vector_of_blocks(attempt); break;
    case BARRIER: break;
    case RING_EXCHANGE:
    case PASS_ON: an_exchange(attempt); break;
    default: a_block_per_rank(attempt); break;
    }
}

void layout_in_place(const struct attempt *attempt, const uint8_t **send, uint8_t **recv)
{
    const struct trial *trial = &attempt->trial;
    size_t size = value_size(trial->type);

    /* A list of one block is the small side. */
    switch (trial->act) {
    case ALL_GATHER:
    case ALL_GATHER_V:
    case GATHER:
    case GATHER_V: *send += attempt->input_blocks[0].at * size; break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_V:
    case SCATTER:
    case SCATTER_V: *recv += attempt->output_blocks[0].at * size; break;
    default: break;
    }
}
