/* SPDX-License-Identifier: Apache-2.0
 * All-gather, all-to-all, broadcast, gather and scatter on user buffers that peers can read. The
 * receiver copies from the sender's INPUT to its own OUTPUT, once.
 *
 *   rank 0   signal | wait for 1 | get 1's | wait for 2 | get 2's | signal | wait for all
 *   rank 1   signal | wait for 2 | get 2's | wait for 0 | get 0's | signal | wait for all
 *   rank 2   signal | wait for 0 | get 0's | wait for 1 | get 1's | signal | wait for all
 *
 * The first signal of a rank means that its buffer is ready, the second that it has read the
 * buffers of the others. A rank whose buffer is read waits for the second signals before it
 * returns. With a root each rank only reads or is only read, and gives one signal.
 *
 * If peers can also store to each other's buffers, two of these have further forms. In the stored
 * all-gather each rank puts its block everywhere, so the block is loaded once instead of once per
 * rank. The shared broadcast uses all cores: each receiver gets all parts but one, and the root
 * meanwhile puts that one everywhere. The stored broadcast uses all links: each receiver gets one
 * part, and puts it into the outputs of all other receivers.
 *
 * An all-to-all of blocks of different sizes is not served, because the receiver does not know
 * where in the sender's buffer its block begins.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* Get INPUT block `block` of rank `from` into OUTPUT block `dst` once that rank is ready. */
static int take(struct tutti_build *build, uint32_t from, uint32_t block, uint32_t dst)
{
    TUTTI_TRY(tutti_build_wait(build, (int32_t)from, 1));
    return tutti_build_get(build, from, tutti_span(TUTTI_BUF_INPUT, block, 1),
                           tutti_span(TUTTI_BUF_OUTPUT, dst, 1));
}

/* Get one block from each other rank, beginning with the next rank. */
static int take_from_all(const struct tutti_shape *shape, struct tutti_build *build, uint32_t block)
{
    for (uint32_t i = 1; i < shape->nranks; i++) {
        uint32_t from = tutti_rank_after(shape->rank, i, shape->nranks);

        TUTTI_TRY(take(build, from, block, from));
    }
    return TUTTI_OK;
}

/* Give this rank's signal number `signal`, and wait for those of all other ranks. */
static int meet(struct tutti_build *build, uint32_t signal)
{
    TUTTI_TRY(tutti_build_signal(build));
    return tutti_build_wait(build, TUTTI_ALL_RANKS, signal);
}

/* All-gather and all-to-all: get a block from each other rank, and copy this rank's own. */
static int emit_exchange(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t own = tutti_input_is_per_rank(shape->collective) ? shape->rank : 0;

    tutti_build_signals(build, 2);
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, own, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    TUTTI_TRY(take_from_all(shape, build, own));
    return meet(build, 2);
}

static int emit_stored_allgather(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span block = tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1);

    tutti_build_signals(build, 2);
    TUTTI_TRY(meet(build, 1));
    TUTTI_TRY(tutti_build_put_all(build, tutti_span(TUTTI_BUF_INPUT, 0, 1), block, block));
    return meet(build, 2);
}

/* Broadcast and scatter: each rank gets its block of the root's INPUT. */
static int emit_from_root(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t block = tutti_input_is_per_rank(shape->collective) ? shape->rank : 0;

    tutti_build_signals(build, 1);
    if (shape->rank != shape->root) {
        TUTTI_TRY(take(build, shape->root, block, 0));
        return tutti_build_signal(build);
    }
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, block, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, 0, 1)));
    return tutti_build_wait(build, TUTTI_ALL_RANKS, 1);
}

/* The vector has a part for each rank. The root puts the part of its own number to all others; they
 * get all other parts from it. */
static int emit_shared_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t root = shape->root, above = root + 1;
    struct tutti_span part = tutti_span(TUTTI_BUF_OUTPUT, root, 1);

    tutti_build_chunks(build, shape->nranks);
    tutti_build_signals(build, 2);
    TUTTI_TRY(meet(build, 1));
    if (shape->rank == root) {
        for (uint32_t i = 1; i < shape->nranks; i++)
            TUTTI_TRY(tutti_build_put(build, tutti_rank_after(root, i, shape->nranks),
                                      tutti_span(TUTTI_BUF_INPUT, root, 1), part));
        TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, shape->nranks),
                                   tutti_span(TUTTI_BUF_OUTPUT, 0, shape->nranks)));
    } else {
        TUTTI_TRY(tutti_build_get(build, root, tutti_span(TUTTI_BUF_INPUT, 0, root),
                                  tutti_span(TUTTI_BUF_OUTPUT, 0, root)));
        TUTTI_TRY(tutti_build_get(build, root,
                                  tutti_span(TUTTI_BUF_INPUT, above, shape->nranks - above),
                                  tutti_span(TUTTI_BUF_OUTPUT, above, shape->nranks - above)));
    }
    return meet(build, 2);
}

/* The same parts. Each rank gets its own from the root, and puts it to all others but the root,
 * which copies its input by itself. */
static int emit_stored_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    bool is_root = shape->rank == shape->root;
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, shape->rank, 1);
    struct tutti_span part = tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1);

    tutti_build_chunks(build, shape->nranks);
    tutti_build_signals(build, 2);
    TUTTI_TRY(meet(build, 1));
    if (!is_root)
        TUTTI_TRY(tutti_build_get(build, shape->root, input, part));
    for (uint32_t i = 1; i < shape->nranks; i++) {
        uint32_t to = tutti_rank_after(shape->rank, i, shape->nranks);

        if (to != shape->root)
            TUTTI_TRY(tutti_build_put(build, to, is_root ? input : part, part));
    }
    if (is_root)
        TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, shape->nranks),
                                   tutti_span(TUTTI_BUF_OUTPUT, 0, shape->nranks)));
    return meet(build, 2);
}

static int emit_gather(const struct tutti_shape *shape, struct tutti_build *build)
{
    tutti_build_signals(build, 1);
    if (shape->rank != shape->root) {
        TUTTI_TRY(tutti_build_signal(build));
        return tutti_build_wait(build, (int32_t)shape->root, 1);
    }
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    TUTTI_TRY(take_from_all(shape, build, 0));
    return tutti_build_signal(build);
}

/* `memory` counts the bytes that all ranks load and store. An all-to-all moves as many blocks as an
 * all-gather, though different ones. */
static void cost_exchange(const struct tutti_shape *shape, double block_bytes,
                          struct tutti_cost *ret_cost)
{
    double p = shape->nranks;

    tutti_cost_flat(shape, 2, (p - 1) * block_bytes, 0, block_bytes, ret_cost);
    ret_cost->memory = 2 * p * p * block_bytes;
}

/* Each block is loaded once, and stored everywhere by its rank. */
static void cost_stored_allgather(const struct tutti_shape *shape, double block_bytes,
                                  struct tutti_cost *ret_cost)
{
    double p = shape->nranks;

    tutti_cost_flat(shape, 2, (p - 1) * block_bytes, 0, 0, ret_cost);
    ret_cost->memory = p * (p + 1) * block_bytes;
}

/* Rooted: the root gets one block from each other rank, or each of them gets one from the root.
 * Every rank's block is loaded and stored, and no rank may go on before the other side is done. */
static void cost_rooted(const struct tutti_shape *shape, double bytes, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    tutti_cost_flat(shape, 2, bytes, 0, block_bytes, ret_cost);
    ret_cost->memory = 2.0 * shape->nranks * block_bytes;
}

static void cost_from_root(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    cost_rooted(shape, block_bytes, block_bytes, ret_cost);
    ret_cost->served = (shape->nranks - 1) * block_bytes;
}

/* The receivers share the work with the root. */
static void cost_shared_broadcast(const struct tutti_shape *shape, double block_bytes,
                                  struct tutti_cost *ret_cost)
{
    double p = shape->nranks;

    tutti_cost_flat(shape, 2, (p - 1) / p * block_bytes, 0, block_bytes, ret_cost);
    ret_cost->memory = 2 * p * block_bytes;
    ret_cost->served = (p - 1) * block_bytes;
}

/* The root gives each receiver two parts: one that the receiver gets, and one that the root puts. A
 * receiver puts its part to as many ranks as get the root's, but for itself and the root. */
static void cost_stored_broadcast(const struct tutti_shape *shape, double block_bytes,
                                  struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) / p * block_bytes;

    tutti_cost_flat(shape, 2, others, 0, block_bytes, ret_cost);
    ret_cost->memory = 2 * p * block_bytes;
    ret_cost->served = 2 * others;
}

static void cost_gather(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    cost_rooted(shape, (shape->nranks - 1) * block_bytes, block_bytes, ret_cost);
}

const struct tutti_algorithm tutti_mapped_allgather = {
    .name = "mapped",
    .collective = TUTTI_ALLGATHER,
    .needs = TUTTI_NEEDS_PEER_READ,
    .serves_vector = true,
    .emit = emit_exchange,
    .cost = cost_exchange,
};

/* Not for the v-form, in which the layout of OUTPUT may differ from rank to rank. */
const struct tutti_algorithm tutti_stored_allgather = {
    .name = "stored",
    .collective = TUTTI_ALLGATHER,
    .needs = TUTTI_NEEDS_PEER_STORE,
    .emit = emit_stored_allgather,
    .cost = cost_stored_allgather,
};

const struct tutti_algorithm tutti_mapped_alltoall = {
    .name = "mapped",
    .collective = TUTTI_ALLTOALL,
    .needs = TUTTI_NEEDS_PEER_READ,
    .emit = emit_exchange,
    .cost = cost_exchange,
};

const struct tutti_algorithm tutti_mapped_broadcast = {
    .name = "mapped",
    .collective = TUTTI_BROADCAST,
    .needs = TUTTI_NEEDS_PEER_READ,
    .emit = emit_from_root,
    .cost = cost_from_root,
};

const struct tutti_algorithm tutti_shared_broadcast = {
    .name = "shared",
    .collective = TUTTI_BROADCAST,
    .needs = TUTTI_NEEDS_PEER_STORE,
    .emit = emit_shared_broadcast,
    .cost = cost_shared_broadcast,
};

const struct tutti_algorithm tutti_stored_broadcast = {
    .name = "stored",
    .collective = TUTTI_BROADCAST,
    .needs = TUTTI_NEEDS_PEER_STORE,
    .emit = emit_stored_broadcast,
    .cost = cost_stored_broadcast,
};

const struct tutti_algorithm tutti_mapped_gather = {
    .name = "mapped",
    .collective = TUTTI_GATHER,
    .needs = TUTTI_NEEDS_PEER_READ,
    .emit = emit_gather,
    .cost = cost_gather,
};

const struct tutti_algorithm tutti_mapped_scatter = {
    .name = "mapped",
    .collective = TUTTI_SCATTER,
    .needs = TUTTI_NEEDS_PEER_READ,
    .emit = emit_from_root,
    .cost = cost_from_root,
};
