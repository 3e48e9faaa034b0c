/* SPDX-License-Identifier: Apache-2.0
 * The parts of an all-gather on a torus, their chunks, and their costs.
 */
#include "algorithms/torus.h"

#include "base/result.h"

#include <stdlib.h>

/* ---- places ------------------------------------------------------------------------------ */

/* Append a dimension of `d` places. Dimensions of one place have no links and are left out. */
static void add_dim(struct tutti_torus *torus, uint32_t d, uint32_t x, uint32_t stride)
{
    if (d == 1)
        return;
    torus->d[torus->ndims] = d;
    torus->x[torus->ndims] = x;
    torus->stride[torus->ndims] = stride;
    torus->ndims++;
}

/* True if the shape has a torus of all ranks. */
static bool has_torus(const struct tutti_shape *shape)
{
    const struct tutti_placement *places = shape->places;
    uint64_t product = 1;

    if (places == NULL || places->ndims == 0 || places->ndims > TUTTI_TORUS_DIMS)
        return false;
    for (uint32_t i = 0; i < places->ndims && product <= shape->nranks; i++)
        product *= places->dims[i];
    return product == shape->nranks;
}

struct tutti_torus tutti_torus_of(const struct tutti_shape *shape)
{
    struct tutti_torus torus = {.is_given = has_torus(shape)};
    uint32_t wanted = shape->options.value[TUTTI_CHANNELS], stride = 1;

    if (!torus.is_given)
        add_dim(&torus, shape->nranks, shape->rank, 1);
    for (uint32_t i = 0; torus.is_given && i < shape->places->ndims; i++) {
        uint32_t d = shape->places->dims[i];

        add_dim(&torus, d, shape->rank / stride % d, stride);
        stride *= d;
    }
    torus.nparts = torus.is_given ? 2 * torus.ndims : 1;
    if (wanted != 0)
        torus.nparts = wanted < 2 * torus.ndims ? wanted : 2 * torus.ndims;
    return torus;
}

/* ---- moves ------------------------------------------------------------------------------- */

bool tutti_torus_is_free(const struct tutti_moves *moves)
{
    return moves->use == TUTTI_MOVES_ALLREDUCE_GATHER ||
           moves->use == TUTTI_MOVES_ALLREDUCE_SCATTER;
}

/* Allocate the lists of a part, and lay its chunks out so that they belong to the right ranks. */
static int init_part(const struct tutti_shape *shape, const struct tutti_torus *torus,
                     uint32_t index, struct tutti_torus_part *ret_part)
{
    struct tutti_torus_part part = {.index = index, .base = index};
    size_t nplaces = 0, n = shape->nranks;
    uint32_t *next;

    for (uint32_t dim = 0; dim < torus->ndims; dim++)
        nplaces += torus->d[dim];
    next = part.memory = malloc((2 * nplaces + 2 * n) * sizeof(*next));
    if (next == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the chunks of %zu ranks", n);
    part.out.chunks = next;
    part.in.chunks = next + n;
    next += 2 * n;
    for (uint32_t dim = 0; dim < torus->ndims; next += 2 * torus->d[dim], dim++) {
        part.weight[dim] = next;
        part.held[dim] = next + torus->d[dim];
        for (uint32_t place = 0; place < torus->d[dim]; place++)
            part.weight[dim][place] = place * torus->stride[dim] * torus->nparts;
        part.held[dim][0] = torus->x[dim];
        part.nheld[dim] = 1;
    }
    *ret_part = part;
    return TUTTI_OK;
}

int tutti_torus_begin(const struct tutti_shape *shape, const struct tutti_torus *torus,
                      struct tutti_moves *moves, struct tutti_torus_part *ret_parts)
{
    for (uint32_t i = 0; i < torus->nparts; i++) {
        int rc = init_part(shape, torus, i, &ret_parts[i]);

        if (rc != TUTTI_OK) {
            while (i-- > 0)
                free(ret_parts[i].memory);
            return rc;
        }
        if (tutti_torus_is_free(moves))
            ret_parts[i].base = i * shape->nranks;
    }
    moves->nchunks = shape->nranks * torus->nparts;
    /* In an all-reduce the sums of a rank's own chunks stay where all other sums are, so no chunks
     * need to be called its own. */
    if (tutti_torus_is_free(moves))
        return TUTTI_OK;
    moves->own_first = shape->rank * torus->nparts;
    moves->own_count = torus->nparts;
    return TUTTI_OK;
}

void tutti_torus_end(const struct tutti_torus *torus, struct tutti_torus_part *parts)
{
    for (uint32_t i = 0; i < torus->nparts; i++)
        free(parts[i].memory);
}

void tutti_torus_append(const struct tutti_torus *torus, const struct tutti_torus_part *part,
                        uint32_t dim, uint32_t place, struct tutti_torus_message *message)
{
    uint32_t *chunks = message->chunks + message->count;
    uint32_t count = 1;

    chunks[0] = part->base + part->weight[dim][place];
    for (uint32_t other = 0; other < torus->ndims; other++) {
        uint32_t nheld = part->nheld[other];

        if (other == dim)
            continue;
        /* Repeat what is there for each place; the first copy overwrites it, so it comes last. */
        for (uint32_t copy = nheld; copy-- > 0;)
            for (uint32_t i = 0; i < count; i++)
                chunks[copy * count + i] = chunks[i] + part->weight[other][part->held[other][copy]];
        count *= nheld;
    }
    message->count += count;
}

/* The rank at this place in this dimension, otherwise at the places of this rank. */
static uint32_t rank_at(const struct tutti_torus *torus, uint32_t dim, uint32_t place)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < torus->ndims; i++)
        rank += (i == dim ? place : torus->x[i]) * torus->stride[i];
    return rank;
}

int tutti_torus_send(const struct tutti_torus *torus, struct tutti_torus_part *part, uint32_t dim,
                     uint32_t place, struct tutti_moves *moves)
{
    uint32_t count = part->out.count;

    part->out.count = 0;
    moves->channel = (uint8_t)part->index;
    return tutti_moves_send_set(moves, rank_at(torus, dim, place), part->out.chunks, count);
}

int tutti_torus_recv(const struct tutti_torus *torus, struct tutti_torus_part *part, uint32_t dim,
                     uint32_t place, struct tutti_moves *moves)
{
    uint32_t count = part->in.count;

    part->in.count = 0;
    moves->channel = (uint8_t)part->index;
    return tutti_moves_recv_set(moves, rank_at(torus, dim, place), part->in.chunks, count);
}

void tutti_torus_hold(struct tutti_torus_part *part, uint32_t dim, uint32_t place)
{
    part->held[dim][part->nheld[dim]++] = place;
}

void tutti_torus_hold_all(const struct tutti_torus *torus, struct tutti_torus_part *part,
                          uint32_t dim)
{
    part->nheld[dim] = 0;
    for (uint32_t by = 0; by < torus->d[dim]; by++)
        tutti_torus_hold(part, dim, (torus->x[dim] + by) % torus->d[dim]);
}

/* ---- costs ------------------------------------------------------------------------------- */

void tutti_torus_cost(const struct tutti_shape *shape, const struct tutti_torus *torus,
                      const struct tutti_torus_path *path, double block_bytes,
                      struct tutti_cost *ret_cost)
{
    bool is_allreduce = shape->collective == TUTTI_ALLREDUCE;
    bool reduces = tutti_collective_reduces(shape->collective);
    double times = is_allreduce ? 2 : 1, busiest = path->busiest;
    double bytes = is_allreduce ? block_bytes / shape->nranks : block_bytes;

    tutti_cost_flat(shape, times * torus->nparts * path->rounds, times * path->blocks * bytes,
                    reduces ? path->reduced * bytes : 0, reduces ? 0 : block_bytes, ret_cost);
    if (!torus->is_given || tutti_level_of_shape(shape) == TUTTI_LEVEL_NODE)
        return;
    for (uint32_t dim = 0; dim < torus->ndims; dim++)
        for (int way = 0; way < 2; way++)
            busiest = path->load[dim][way] > busiest ? path->load[dim][way] : busiest;
    ret_cost->torus.rounds = times * path->rounds;
    ret_cost->torus.hops = times * path->hops;
    ret_cost->torus.bytes = times * busiest * bytes / torus->nparts;
}
