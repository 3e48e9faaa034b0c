/* SPDX-License-Identifier: Apache-2.0
 * Joins the messages that an executor sends as one gathered write. These are messages of one lane
 * whose steps are neighbors at both ends. They occur where a run of blocks wraps around the end of
 * a buffer, or where a round sends scattered blocks.
 *
 * Fused steps hide some of these messages. Fusing joins a receive of one round with a send of the
 * next round, so that a neighbor of one half becomes a neighbor of the other half. Pipelines have
 * similar patterns, but their messages must stay separate. The two steps at each end of the lane
 * tell the cases apart:
 *
 *   sends  [send] [fused]   receives  [recv] [fused]    joined: the blocks of a round, of which
 *                                                       some are passed on
 *   sends  [send] [fused]   receives  [fused] [recv]    separate: two rounds of a ring of 3
 *   sends  [send] [send]    receives  [fused] [fused]   joined: the blocks of a round, if they are
 *                                                       passed on as one message, or in two lanes,
 *                                                       or lie scattered in memory
 *                                                       separate: a pipeline, in all other cases
 *
 * The last case depends on other messages, so the search repeats until there is nothing to join.
 */
#include "simulator/score.h"

static bool is_same_lane(const struct tutti_sim_score *score, uint32_t a, uint32_t b)
{
    return a != TUTTI_SIM_NONE && b != TUTTI_SIM_NONE &&
           score->messages[a].lane == score->messages[b].lane;
}

/* True if `step` depends directly on step `on`. */
static bool depends(const struct tutti_sim_score *score, uint32_t on, uint32_t step)
{
    const struct tutti_sim_step *before = &score->steps[on];

    for (uint32_t i = 0; i < before->ndependents; i++)
        if (score->dependents[before->dependents + i] == step)
            return true;
    return false;
}

/* True if the step receives and sends. Before the play begins, no half of a step is over. */
static bool is_fused(const struct tutti_sim_step *step)
{
    return step->halves == 2;
}

/* Fusing joins a receive and the send that forwards its data into one step. The step may be where
 * the send was. Then the receive comes after other steps of the send's lane. Or the step may be
 * where the receive was. Then the send comes before other steps of the receive's lane. True if a
 * move of this kind may have put `step` between `before` and `after`. */
static bool is_overtaken(const struct tutti_sim_score *score, const struct tutti_sim_step *step,
                         const struct tutti_sim_step *before, const struct tutti_sim_step *after)
{
    return step->halves == 1 && ((is_fused(after) && is_same_lane(score, step->out, after->out)) ||
                                 (is_fused(before) && is_same_lane(score, step->in, before->in)));
}

/* True if step `next` directly follows step `last` and does not depend on it. */
static bool follows(const struct tutti_sim_score *score, uint32_t last, uint32_t next)
{
    const struct tutti_sim_step *steps = score->steps;

    for (uint32_t between = last + 1; between < next; between++)
        if (!is_overtaken(score, &steps[between], &steps[last], &steps[next]))
            return false;
    return !depends(score, last, next);
}

/* The steps of two consecutive messages of a lane at one of its ends. IN_TURN: both steps are
 * fused, and their other halves have two messages of one lane. APART: the steps are not neighbors,
 * or the second step depends on the first. */
enum end_view { BOTH_PLAIN, FIRST_FUSED, SECOND_FUSED, BOTH_FUSED, IN_TURN, APART };

/* Takes the messages of the other halves of two fused steps. True if these are one message, or
 * belong to two lanes. */
static bool is_one_round(const struct tutti_sim_score *score, uint32_t a, uint32_t b)
{
    return a == b || !is_same_lane(score, a, b);
}

/* Looks at the steps `last` and `next` of two consecutive messages. `sends` is true at the sending
 * end of the lane. */
static enum end_view view_end(const struct tutti_sim_score *score, uint32_t last, uint32_t next,
                              bool sends)
{
    const struct tutti_sim_step *a = &score->steps[last], *b = &score->steps[next];

    if (!follows(score, last, next))
        return APART;
    if (is_fused(a) && is_fused(b))
        return is_one_round(score, sends ? a->in : a->out, sends ? b->in : b->out) ? BOTH_FUSED
                                                                                   : IN_TURN;
    return is_fused(a) ? FIRST_FUSED : is_fused(b) ? SECOND_FUSED : BOTH_PLAIN;
}

/* True if the blocks of two steps are not adjacent. A schedule that needs adjacent blocks in one
 * message sends them in one step, so two steps with adjacent blocks are meant to be separate. */
static bool is_scattered(const struct tutti_sim_score *score, uint32_t last, uint32_t next)
{
    const struct tutti_sim_step *a = &score->steps[last], *b = &score->steps[next];

    return a->end_chunk != b->first_chunk && b->end_chunk != a->first_chunk;
}

/* True if two consecutive messages of a lane belong to one gathered write. */
static bool is_one_write(const struct tutti_sim_score *score,
                         const struct tutti_sim_message *message,
                         const struct tutti_sim_message *next)
{
    enum end_view sender = view_end(score, message->last_sender, next->sender, true);
    enum end_view receiver = view_end(score, message->last_receiver, next->receiver, false);

    if (sender == APART || receiver == APART)
        return false;
    if (sender == IN_TURN || receiver == IN_TURN)
        return (receiver == BOTH_PLAIN &&
                is_scattered(score, message->last_receiver, next->receiver)) ||
               (sender == BOTH_PLAIN && is_scattered(score, message->last_sender, next->sender));
    return !(sender == FIRST_FUSED && receiver == SECOND_FUSED) &&
           !(sender == SECOND_FUSED && receiver == FIRST_FUSED);
}

/* Joins a message with the next one of its lane. This cannot deadlock. Everything that the second
 * message waits for was emitted before the steps of the first message, so none of it waits for the
 * first message. */
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
    message->unmet += next->unmet - 1; /* the second no longer waits for its turn in the lane */
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
