/* SPDX-License-Identifier: Apache-2.0
 * Lists the rounds of swing, and counts what they cost.
 */
#include "algorithms/swing.h"

#include "algorithms/ranks.h"

int64_t tutti_swing_rho(uint32_t round)
{
    int64_t power = INT64_C(1) << (round + 1);

    return (1 - (round % 2 == 0 ? -power : power)) / 3;
}

uint32_t tutti_swing_place(uint32_t x, int64_t distance, uint32_t d)
{
    int64_t sum = ((int64_t)x + (x % 2 == 0 ? distance : -distance)) % d;

    return (uint32_t)(sum < 0 ? sum + d : sum);
}

static void add_stage(struct tutti_swing_stages *stages, uint32_t dim, enum tutti_swing_kind kind,
                      uint32_t round)
{
    tutti_assert(stages->count < TUTTI_SWING_STAGES);
    stages->list[stages->count++] =
        (struct tutti_swing_stage){.dim = dim, .kind = kind, .round = round};
}

void tutti_swing_stages(const struct tutti_torus *torus, uint32_t part,
                        struct tutti_swing_stages *ret_stages)
{
    uint32_t most = 0; /* rounds of an even ring */

    ret_stages->count = 0;
    for (uint32_t i = torus->ndims; i-- > 0;) {
        uint32_t dim = tutti_torus_dim(torus, part, i), d = torus->d[dim];
        uint32_t rounds = tutti_rounds_of(tutti_swing_even(d));

        if (d % 2 == 0) {
            most = rounds > most ? rounds : most;
            continue;
        }
        add_stage(ret_stages, dim, TUTTI_SWING_JOIN, 0);
        for (uint32_t s = rounds; s-- > 0;)
            add_stage(ret_stages, dim, TUTTI_SWING_ROUND, s);
        add_stage(ret_stages, dim, TUTTI_SWING_SERVE, 0);
    }
    for (uint32_t s = most; s-- > 0;)
        for (uint32_t i = torus->ndims; i-- > 0;) {
            uint32_t dim = tutti_torus_dim(torus, part, i), d = torus->d[dim];

            if (d % 2 == 0 && s < tutti_rounds_of(d))
                add_stage(ret_stages, dim, TUTTI_SWING_ROUND, s);
        }
}

/* The links between the partners of a round, on the shorter way around the ring. */
static uint32_t links_of(uint32_t round, uint32_t even)
{
    uint32_t up = tutti_swing_place(0, tutti_swing_rho(round), even);

    return up < even - up ? up : even - up;
}

/* Count one stage. `held` is the number of places that a rank holds of each dimension, without the
 * place that an odd ring leaves out until the stages of the ring are over; it is updated. */
static void count_stage(const struct tutti_torus *torus, const struct tutti_swing_stage *stage,
                        double held[TUTTI_TORUS_DIMS], struct tutti_torus_path *path)
{
    uint32_t dim = stage->dim, d = torus->d[dim], even = tutti_swing_even(d);
    bool is_mirrored_too = torus->nparts > torus->ndims;
    double sent = 1, added = 0, links = 1, box = 1;
    double of_part, of_both; /* messages over a link, of this part and of two */

    for (uint32_t i = 0; i < torus->ndims; i++)
        box *= i == dim ? 1 : held[i];
    if (stage->kind == TUTTI_SWING_ROUND) {
        links = links_of(stage->round, even);
        sent = held[dim] < even - held[dim] ? held[dim] : even - held[dim];
        held[dim] += sent;
        sent += d % 2; /* the block of the place that is left out */
        added = sent;
    } else if (stage->kind == TUTTI_SWING_SERVE) {
        sent = added = even;
        held[dim] = d;
    }
    path->rounds++;
    path->hops += links;
    path->blocks += sent * box;
    path->reduced += added * box;
    /* Half of the places send upwards, so a message shares its links with about half as many others
     * as there are links between the partners. The other half are those of the mirrored part, which
     * sends at the same time. Where both parts have the same pairs, they share a link. */
    if (stage->kind != TUTTI_SWING_ROUND || even == 2) {
        of_part = 1;
        of_both = 2;
    } else {
        of_part = is_mirrored_too ? links / 2 : (links + 1) / 2;
        of_both = links;
    }
    path->busiest += sent * box * (is_mirrored_too ? of_both : of_part);
    for (int way = 0; way < 2; way++)
        path->load[dim][way] += sent * box * of_part;
}

/* Count the path of the busiest rank. In an odd ring this is the rank that serves the rank left
 * out. The serving rank has two more messages, with one block and with d - 1 blocks, and an
 * additional block in each round. In even rings that are not a power of two a few blocks are copied
 * to join partial sums in one message; they are not counted. */
void tutti_swing_cost(const struct tutti_shape *shape, double block_bytes,
                      struct tutti_cost *ret_cost)
{
    struct tutti_torus torus = tutti_torus_of(shape);
    struct tutti_torus_path most = {.rounds = 0}, path = {.rounds = 0};
    struct tutti_swing_stages stages;

    for (uint32_t part = 0; part < torus.nparts; part++) {
        double held[TUTTI_TORUS_DIMS] = {1, 1, 1, 1};

        path.rounds = path.hops = path.blocks = path.reduced = path.busiest = 0;
        tutti_swing_stages(&torus, part, &stages);
        for (uint32_t i = 0; i < stages.count; i++)
            count_stage(&torus, &stages.list[i], held, &path);
        most.blocks += path.blocks / torus.nparts;
        most.reduced += path.reduced / torus.nparts;
        most.busiest = path.busiest > most.busiest ? path.busiest : most.busiest;
    }
    path.blocks = most.blocks;
    path.reduced = most.reduced;
    path.busiest = most.busiest;
    tutti_torus_cost(shape, &torus, &path, block_bytes, ret_cost);
}
