/* SPDX-License-Identifier: Apache-2.0
 * Rounds between nodes, as moves (moves.h): what hierarchical algorithms have in common.
 */
#ifndef TUTTI_ALGORITHMS_RAILS_H
#define TUTTI_ALGORITHMS_RAILS_H

#include "algorithms/moves.h"
#include "algorithms/nodes.h"

/* A list of moves that is being written, message by message. */
struct rails {
    struct nodes nodes;
    struct moves *moves;    /* borrowed */
    uint32_t *list, count;  /* chunks of the message at hand */
    /* Add to that the chunks of this part that the node with this seat of this group owns. */
    void (*add_seat)(struct rails *rails, uint32_t part, uint32_t seat);
};

int tutti_rails_init(const struct tutti_shape *shape, struct rails *ret_rails);
/* Messages have at most `most` chunks. Before the first one; once. */
int tutti_rails_reserve(struct rails *rails, uint32_t most);
/* A zeroed object is ignored. */
void tutti_rails_fini(struct rails *rails);

static inline void rails_add(struct rails *rails, uint32_t chunk)
{
    rails->list[rails->count++] = chunk;
}

/* The message at hand goes to or comes from `peer`, unless it is empty. */
int tutti_rails_send(struct rails *rails, uint32_t to);
int tutti_rails_recv(struct rails *rails, uint32_t from);

/* A round of the circulant all-gather (circulant.c) of `count` members, counted from 0: with
 * slots counted from a member on, slots first .. end - 1 go to the member h before, and slots h +
 * first .. h + end - 1 come from the one h after. There are rounds_of(count). */
struct circulant_round {
    uint32_t h, first, end;
};

struct circulant_round circulant_round(uint32_t count, uint32_t index);

static inline uint32_t circulant_slots(struct circulant_round round)
{
    return round.end - round.first;
}

/* Slots of the last round, which has the most; with one member there is no round. */
static inline uint32_t circulant_most(uint32_t count)
{
    return count / 2;
}

/* Piece `piece` of as many messages in place of the round's one. */
struct circulant_round circulant_piece(struct circulant_round round, uint32_t npieces,
                                       uint32_t piece);

/* Add what `count` nodes of this group own, from member `first` on around their circle. */
void tutti_rails_add_members(struct rails *rails, uint32_t part, uint32_t first, uint32_t count);

/* One round, or a piece of one, of the all-gather between the nodes of this group: a circle for
 * each part that this rank serves. */
int tutti_rails_exchange(struct rails *rails, struct circulant_round round);

#endif
