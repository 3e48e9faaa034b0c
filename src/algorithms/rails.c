/* SPDX-License-Identifier: Apache-2.0
 * Lists the rounds between the nodes of a group as moves.
 */
#include "algorithms/rails.h"

#include "algorithms/ranks.h"

#include <stdlib.h>

int tutti_rails_init(const struct tutti_shape *shape, struct tutti_rails *ret_rails)
{
    struct tutti_rails rails = {.list = NULL};

    TUTTI_TRY(tutti_nodes_init(shape, &rails.nodes));
    *ret_rails = rails;
    return TUTTI_OK;
}

int tutti_rails_reserve(struct tutti_rails *rails, uint32_t most)
{
    rails->list = malloc(most * sizeof(*rails->list));
    if (rails->list == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for messages of %u chunks", most);
    return TUTTI_OK;
}

void tutti_rails_fini(struct tutti_rails *rails)
{
    free(rails->list);
    tutti_nodes_fini(&rails->nodes);
    *rails = (struct tutti_rails){.list = NULL};
}

int tutti_rails_send(struct tutti_rails *rails, uint32_t to)
{
    uint32_t count = rails->count;

    rails->count = 0;
    return tutti_moves_send_set(rails->moves, to, rails->list, count);
}

int tutti_rails_recv(struct tutti_rails *rails, uint32_t from)
{
    uint32_t count = rails->count;

    rails->count = 0;
    return tutti_moves_recv_set(rails->moves, from, rails->list, count);
}

struct tutti_circulant_round tutti_circulant_round(uint32_t count, uint32_t index)
{
    /* Slots held after the round: `count` halved `halvings` times, rounding up. */
    uint32_t halvings = tutti_rounds_of(count) - 1 - index;
    uint32_t held = (uint32_t)(((uint64_t)count + (1ull << halvings) - 1) >> halvings);

    return (struct tutti_circulant_round){.distance = held - held / 2, .first = 0, .end = held / 2};
}

struct tutti_circulant_round tutti_circulant_piece(struct tutti_circulant_round round,
                                                   uint32_t npieces, uint32_t piece)
{
    struct tutti_nodes_parts slots =
        tutti_nodes_share_of(tutti_circulant_slots(round), npieces, piece);

    return (struct tutti_circulant_round){
        .distance = round.distance,
        .first = round.first + slots.first,
        .end = round.first + slots.end,
    };
}

void tutti_rails_add_members(struct tutti_rails *rails, uint32_t part, uint32_t first,
                             uint32_t count)
{
    const struct tutti_homes *groups = &rails->nodes.nodes;
    uint32_t group = rails->nodes.group, size = tutti_homes_size(groups, group);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t member = tutti_rank_after(first % size, i, size);
        struct tutti_nodes_parts seats =
            tutti_nodes_seats_of(&rails->nodes, tutti_homes_item(groups, group, member));

        for (uint32_t seat = seats.first; seat < seats.end; seat++)
            rails->add_seat(rails, part, seat);
    }
}

int tutti_rails_exchange(struct tutti_rails *rails, struct tutti_circulant_round round)
{
    const struct tutti_nodes *nodes = &rails->nodes;
    uint32_t size = tutti_homes_size(&nodes->nodes, nodes->group);
    uint32_t me = nodes->nodes.index[nodes->node];
    const uint32_t *members = &nodes->nodes.items[nodes->nodes.first[nodes->group]];
    uint32_t before = members[tutti_rank_before(me, round.distance, size)];
    uint32_t after = members[tutti_rank_after(me, round.distance, size)];
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(nodes, nodes->me);

    for (uint32_t part = parts.first; part < parts.end; part++) {
        tutti_rails_add_members(rails, part, me + round.first, tutti_circulant_slots(round));
        TUTTI_TRY(tutti_rails_send(rails, tutti_nodes_rank_serving(nodes, before, part)));
        tutti_rails_add_members(rails, part, me + round.distance + round.first,
                                tutti_circulant_slots(round));
        TUTTI_TRY(tutti_rails_recv(rails, tutti_nodes_rank_serving(nodes, after, part)));
    }
    return TUTTI_OK;
}
