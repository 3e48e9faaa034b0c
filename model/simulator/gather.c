/* SPDX-License-Identifier: Apache-2.0
 * Joins the messages that an executor sends as one gathered write. These are messages of one lane
 * whose steps are neighbors at both ends of the lane. They occur where a run of blocks wraps around
 * the end of a buffer, or where a round sends scattered blocks.
 *
 * The neighbors are hard to find because schedules are fused (fuse.c): a receive of one round and
 * the send of the next round that passes its data on are one step. Two sends of one round then look
 * unlike each other if only one of them is fused. Two messages of different rounds may look alike:
 *
 *   emitted                                             fused
 *
 *   round 1  recv x from 1
 *   round 2  send y to 2, send x to 2                   [send y] [recv x, send x]
 *
 *   The two messages to rank 2 belong to one round, so they are one write.
 *
 *   round 1  send y to 2, recv x from 1
 *   round 2  send x to 2, recv z from 1                 [send y] [recv x, send x] [recv z]
 *
 *   This is a ring of 3 ranks. The same two steps send to rank 2, but in two rounds, so their
 *   messages are two writes.
 *
 * The steps at the receiving end tell these cases apart. Below, [send] and [recv] are steps that
 * are not fused. The columns show the steps of two consecutive messages of a lane, at the sender
 * and at the receiver:
 *
 *   [send] [fused]    [recv] [fused]     Joined: the blocks of a round. Some are passed on.
 *   [send] [fused]    [fused] [recv]     Separate: two rounds, as in a ring of 3.
 *   [send] [send]     [fused] [fused]    Joined if the receiver passes them on as one message or in
 *                                        two lanes, or if the sender's blocks lie scattered in
 *                                        memory: the blocks of a round. Otherwise separate: a
 *                                        pipeline, whose messages must not wait for each other.
 *
 * The same holds with the two ends exchanged. Other pairs of neighbors are joined, unless the steps
 * at one end are fused as in a pipeline.
 *
 * The third case depends on whether other messages are joined, so the search repeats until there is
 * nothing to join.
 */
#include "simulator/score.h"

/* True if `a` and `b` are messages, not TUTTI_SIM_NONE, of one lane. */
static bool is_same_lane(const struct tutti_sim_score *score, uint32_t a, uint32_t b)
{
    return a != TUTTI_SIM_NONE && b != TUTTI_SIM_NONE &&
           score->messages[a].lane == score->messages[b].lane;
}

/* True if `step` depends directly on the earlier step `on`. */
static bool depends_on(const struct tutti_sim_score *score, uint32_t step, uint32_t on)
{
    const struct tutti_sim_step *earlier = &score->steps[on];

    for (uint32_t i = 0; i < earlier->ndependents; i++)
        if (score->dependents[earlier->dependents + i] == step)
            return true;
    return false;
}

/* True if the step receives and sends. `halves` counts the halves that are still to be played, and
 * nothing has been played yet. */
static bool is_fused(const struct tutti_sim_step *step)
{
    return step->halves == 2;
}

/* True if `step` may be between `first` and `second` only because of fusing. A fused step is placed
 * where its receive was or where its send was, and so may have moved past other steps of its lanes.
 * Let a fused step consist of the receive R and the send S:
 *
 *   emitted   first R step S      S and `step` send in one lane. `second` is the fused step,
 *   fused     first step second   which took the place of S.
 *
 *   emitted   R step S second     R and `step` receive in one lane. `first` is the fused step,
 *   fused     first step second   which took the place of R. */
static bool is_between_by_fusing(const struct tutti_sim_score *score,
                                 const struct tutti_sim_step *step,
                                 const struct tutti_sim_step *first,
                                 const struct tutti_sim_step *second)
{
    bool may_second_have_moved = is_fused(second) && is_same_lane(score, step->out, second->out);
    bool may_first_have_moved = is_fused(first) && is_same_lane(score, step->in, first->in);

    return step->halves == 1 && (may_second_have_moved || may_first_have_moved);
}

/* True if step `second` directly follows step `first` of the same rank, apart from steps that
 * fusing may have put between them, and does not depend on it. */
static bool are_neighbors(const struct tutti_sim_score *score, uint32_t first, uint32_t second)
{
    const struct tutti_sim_step *steps = score->steps;

    for (uint32_t between = first + 1; between < second; between++)
        if (!is_between_by_fusing(score, &steps[between], &steps[first], &steps[second]))
            return false;
    return !depends_on(score, second, first);
}

/* How the steps of two consecutive messages of a lane look at one end of the lane. */
enum pair {
    PAIR_APART,          /* the steps are not neighbors, or the second depends on the first */
    PAIR_PLAIN,          /* neither step is fused */
    PAIR_FIRST_FUSED,    /* only the first step is fused */
    PAIR_SECOND_FUSED,   /* only the second step is fused */
    PAIR_FUSED,          /* both steps are fused, and their other halves belong to one message or to
                          * two lanes: no pipeline */
    PAIR_MAYBE_PIPELINE, /* both steps are fused, and their other halves have two messages of one
                          * lane: blocks of one round, or stages of a pipeline */
};

/* Classifies the steps `first` and `second` of two consecutive messages. `sends` is true at the
 * sending end of the lane, where the other halves of fused steps are receives. */
static enum pair classify_pair(const struct tutti_sim_score *score, uint32_t first, uint32_t second,
                               bool sends)
{
    const struct tutti_sim_step *a = &score->steps[first], *b = &score->steps[second];
    uint32_t other_message_a = sends ? a->in : a->out, other_message_b = sends ? b->in : b->out;

    if (!are_neighbors(score, first, second))
        return PAIR_APART;
    if (!is_fused(a) && !is_fused(b))
        return PAIR_PLAIN;
    if (!is_fused(b))
        return PAIR_FIRST_FUSED;
    if (!is_fused(a))
        return PAIR_SECOND_FUSED;
    return other_message_a != other_message_b &&
                   is_same_lane(score, other_message_a, other_message_b)
               ? PAIR_MAYBE_PIPELINE
               : PAIR_FUSED;
}

/* True if the blocks of two steps are not adjacent. A schedule that needs adjacent blocks in one
 * message sends them in one step, so two steps with adjacent blocks are meant to be separate. */
static bool is_scattered(const struct tutti_sim_score *score, uint32_t first, uint32_t second)
{
    const struct tutti_sim_step *a = &score->steps[first], *b = &score->steps[second];

    return a->end_chunk != b->first_chunk && b->end_chunk != a->first_chunk;
}

/* True if two consecutive messages of a lane belong to one gathered write. The comment at the top
 * of this file gives the reasons. `message` may be gathered already; its last steps count. */
static bool is_one_write(const struct tutti_sim_score *score,
                         const struct tutti_sim_message *message,
                         const struct tutti_sim_message *next)
{
    enum pair sends = classify_pair(score, message->last_sender, next->sender, true);
    enum pair receives = classify_pair(score, message->last_receiver, next->receiver, false);

    if (sends == PAIR_APART || receives == PAIR_APART)
        return false;
    /* A possible pipeline is one round if the blocks at its other end are plain and scattered. */
    if (sends == PAIR_MAYBE_PIPELINE || receives == PAIR_MAYBE_PIPELINE)
        return (receives == PAIR_PLAIN &&
                is_scattered(score, message->last_receiver, next->receiver)) ||
               (sends == PAIR_PLAIN && is_scattered(score, message->last_sender, next->sender));
    /* If different messages are fused at the two ends, the messages belong to two rounds. */
    return !(sends == PAIR_FIRST_FUSED && receives == PAIR_SECOND_FUSED) &&
           !(sends == PAIR_SECOND_FUSED && receives == PAIR_FIRST_FUSED);
}

/* Joins a message with the next one of its lane. This cannot cause a deadlock. At both ends the
 * step of the second message directly follows that of the first and does not depend on it. So the
 * second message waits only for steps that were emitted before those of the first message. None of
 * these waits for the first message. */
static void join(struct tutti_sim_score *score, uint32_t id)
{
    struct tutti_sim_message *message = &score->messages[id];
    struct tutti_sim_message *next = &score->messages[message->next];
    struct tutti_sim_step *steps = score->steps;

    for (uint32_t at = next->sender; at != TUTTI_SIM_NONE; at = steps[at].next_out)
        steps[at].out = id;
    for (uint32_t at = next->receiver; at != TUTTI_SIM_NONE; at = steps[at].next_in)
        steps[at].in = id;
    steps[message->last_sender].next_out = next->sender;
    steps[message->last_receiver].next_in = next->receiver;
    message->last_sender = next->last_sender;
    message->last_receiver = next->last_receiver;
    message->bytes += next->bytes;
    message->unmet += next->unmet - 1; /* `next` no longer waits for `message` */
    message->next = next->next;
    next->is_part = true;
}

void tutti_sim_score_gather(struct tutti_sim_score *score)
{
    bool has_joined = true;

    while (has_joined) {
        has_joined = false;
        for (uint32_t id = 0; id < score->nmessages; id++) {
            struct tutti_sim_message *message = &score->messages[id];

            if (message->is_part)
                continue;
            while (message->next != TUTTI_SIM_NONE &&
                   is_one_write(score, message, &score->messages[message->next])) {
                join(score, id);
                has_joined = true;
            }
        }
    }
}
