/* SPDX-License-Identifier: Apache-2.0
 * Finds the messages that are one gathered write: messages of a lane whose steps are neighbors at
 * both ends. They occur where a run of blocks wraps around the end of a buffer, or where a round
 * sends scattered blocks.
 *
 * Fusing hides some of them. It joins a receive of one round with a send of the next and puts both
 * in one place, so that a neighbor of one half becomes a neighbor of the other. Pipelines look
 * much the same, but their messages are meant to be separate. These patterns tell them apart:
 *
 *   sends  [send] [fused]   receives  [recv] [fused]    a round's blocks, some passed on
 *   sends  [send] [fused]   receives  [fused] [recv]    a ring of 3: in turns
 *   sends  [send] [send]    receives  [fused] [fused]   a round's blocks if they are passed on as
 *                                                       one, or to two ranks, or lie scattered in
 *                                                       memory; else a pipeline
 *
 * The last case depends on other messages, so the search repeats until there is nothing to join.
 */
#include "simulator/score.h"

static bool is_same_lane(const struct tutti_sim_score *score, uint32_t a, uint32_t b)
{
    return a != SIM_NONE && b != SIM_NONE && score->messages[a].lane == score->messages[b].lane;
}

static bool depends(const struct tutti_sim_score *score, uint32_t on, uint32_t step)
{
    const struct tutti_sim_step *before = &score->steps[on];

    for (uint32_t i = 0; i < before->ndependents; i++)
        if (score->dependents[before->dependents + i] == step)
            return true;
    return false;
}

/* Fusing moves a receive to the send that forwards its data, behind other steps of that send's
 * lane; or it moves the send to the receive, before other steps of that receive's lane. True if
 * `step` has been overtaken in this way. */
static bool is_overtaken(const struct tutti_sim_score *score, const struct tutti_sim_step *step,
                         const struct tutti_sim_step *before, const struct tutti_sim_step *after)
{
    return step->halves == 1 &&
           ((after->halves > 1 && is_same_lane(score, step->out, after->out)) ||
            (before->halves > 1 && is_same_lane(score, step->in, before->in)));
}

/* True if one step directly follows the other and does not depend on it. */
static bool follows(const struct tutti_sim_score *score, uint32_t last, uint32_t next)
{
    const struct tutti_sim_step *steps = score->steps;

    for (uint32_t between = last + 1; between < next; between++)
        if (!is_overtaken(score, &steps[between], &steps[last], &steps[next]))
            return false;
    return !depends(score, last, next);
}

/* How one end of a lane sees two consecutive messages. */
enum end_view { BOTH_PLAIN, FIRST_FUSED, SECOND_FUSED, BOTH_FUSED, IN_TURN, APART };

/* For the other halves of two fused steps: true if they are one message, or of two lanes. */
static bool is_one_round(const struct tutti_sim_score *score, uint32_t a, uint32_t b)
{
    return a == b || !is_same_lane(score, a, b);
}

static enum end_view view(const struct tutti_sim_score *score, uint32_t last, uint32_t next,
                          bool sends)
{
    const struct tutti_sim_step *a = &score->steps[last], *b = &score->steps[next];

    if (!follows(score, last, next))
        return APART;
    if (a->halves > 1 && b->halves > 1)
        return is_one_round(score, sends ? a->in : a->out, sends ? b->in : b->out) ? BOTH_FUSED
                                                                                   : IN_TURN;
    return a->halves > 1 ? FIRST_FUSED : b->halves > 1 ? SECOND_FUSED : BOTH_PLAIN;
}

/* Scattered blocks become one message only here: a schedule that wants adjacent blocks in one
 * message already sends them as one. */
static bool is_scattered(const struct tutti_sim_score *score, uint32_t last, uint32_t next)
{
    const struct tutti_sim_step *a = &score->steps[last], *b = &score->steps[next];

    return a->end_chunk != b->first_chunk && b->end_chunk != a->first_chunk;
}

static bool are_one(const struct tutti_sim_score *score, const struct tutti_sim_message *message,
                    const struct tutti_sim_message *next)
{
    enum end_view sender = view(score, message->last_sender, next->sender, true);
    enum end_view receiver = view(score, message->last_receiver, next->receiver, false);

    if (sender == APART || receiver == APART)
        return false;
    if (sender == IN_TURN || receiver == IN_TURN)
        return (receiver == BOTH_PLAIN &&
                is_scattered(score, message->last_receiver, next->receiver)) ||
               (sender == BOTH_PLAIN && is_scattered(score, message->last_sender, next->sender));
    return !(sender == FIRST_FUSED && receiver == SECOND_FUSED) &&
           !(sender == SECOND_FUSED && receiver == FIRST_FUSED);
}

/* Joins a message with the next one of its lane. Everything that the second message waits for was
 * emitted before the first one's steps, so none of it waits for the first message. */
static void join(struct tutti_sim_score *score, uint32_t id)
{
    struct tutti_sim_message *message = &score->messages[id];
    struct tutti_sim_message *next = &score->messages[message->next];
    struct tutti_sim_step *steps = score->steps;

    for (uint32_t at = next->sender; at != SIM_NONE; at = steps[at].next_out)
        steps[at].out = id;
    for (uint32_t at = next->receiver; at != SIM_NONE; at = steps[at].next_in)
        steps[at].in = id;
    steps[message->last_sender].next_out = next->sender;
    steps[message->last_receiver].next_in = next->receiver;
    message->last_sender = next->last_sender;
    message->last_receiver = next->last_receiver;
    message->bytes += next->bytes;
    message->unmet += next->unmet - 1; /* the second inherits the first one's turn in the lane */
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
            while (message->next != SIM_NONE &&
                   are_one(score, message, &score->messages[message->next])) {
                join(score, id);
                has_joined = true;
            }
        }
    }
}
