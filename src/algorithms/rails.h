/* SPDX-License-Identifier: Apache-2.0
 * Shared parts of the hierarchical algorithms: the rounds in which the nodes of a group exchange
 * data along the rails (nodes.h). They are listed as moves (moves.h).
 */
#ifndef TUTTI_ALGORITHMS_RAILS_H
#define TUTTI_ALGORITHMS_RAILS_H

#include "algorithms/moves.h"
#include "algorithms/nodes.h"

/* A list of moves under construction, message by message. */
struct tutti_rails {
    struct tutti_nodes nodes;
    struct tutti_moves *moves; /* borrowed */
    uint32_t *list, count;     /* chunks of the current message */
    /* Append to `list` the chunks of `part` that come from the node of this group that serves
     * `seat`. */
    void (*add_seat)(struct tutti_rails *rails, uint32_t part, uint32_t seat);
};

/* Begin; the caller then sets `moves` and `add_seat`. Errors are those of tutti_nodes_init. */
int tutti_rails_init(const struct tutti_shape *shape, struct tutti_rails *ret_rails);
/* Allocate `list` for messages of at most `most` chunks. Call it once, before the first message.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_rails_reserve(struct tutti_rails *rails, uint32_t most);
/* Free `list` and `nodes`; a zeroed object is ignored. */
void tutti_rails_fini(struct tutti_rails *rails);

static inline void tutti_rails_add(struct tutti_rails *rails, uint32_t chunk)
{
    rails->list[rails->count++] = chunk;
}

/* Append a move that sends the current message to a peer, or receives it, and begin the next
 * message. An empty message is dropped. TUTTI_ERR_SYSTEM: no memory. */
int tutti_rails_send(struct tutti_rails *rails, uint32_t to);
int tutti_rails_recv(struct tutti_rails *rails, uint32_t from);

/* A round of the circulant all-gather (circulant.c) among `count` members, numbered from 0. Slot i
 * of a member holds the data of the member i places after it on the circle. Slots first .. end - 1
 * go to the member `distance` places before; slots distance + first .. distance + end - 1 come from
 * the member `distance` places after. There are tutti_rounds_of(count) rounds. */
struct tutti_circulant_round {
    uint32_t distance, first, end;
};

struct tutti_circulant_round tutti_circulant_round(uint32_t count, uint32_t index);

static inline uint32_t tutti_circulant_slots(struct tutti_circulant_round round)
{
    return round.end - round.first;
}

/* Slots of the last round, which has the most; 0 with one member, which has no round. */
static inline uint32_t tutti_circulant_most(uint32_t count)
{
    return count / 2;
}

/* Split the slots of a round into `npieces` messages, and return message number `piece`. */
struct tutti_circulant_round tutti_circulant_piece(struct tutti_circulant_round round,
                                                   uint32_t npieces, uint32_t piece);

/* Append to the current message the chunks of `part` that come from `count` nodes of this group:
 * from member `first` on around the circle of the group. */
void tutti_rails_add_members(struct tutti_rails *rails, uint32_t part, uint32_t first,
                             uint32_t count);

/* Append the moves of one round, or of a piece of one, of the all-gather between the nodes of this
 * group. There is one circle for each part that this rank serves. TUTTI_ERR_SYSTEM: no memory. */
int tutti_rails_exchange(struct tutti_rails *rails, struct tutti_circulant_round round);

#endif
