/* SPDX-License-Identifier: Apache-2.0
 * Plays a program, to find an order of its ops, and to find deadlocks and races. The blocks take
 * turns. In its turn a block does its next op if the op need not wait. Sends do not wait, because a
 * queue holds any number of messages.
 *
 * Objects other than barriers have posts and takes. A SEND posts a message to a queue, and a RECV
 * takes it. A POST posts a signal, or a release of a semaphore, and a WAIT takes it. */
#include "import/play.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_IMPORT_NONE

/* One post, an entry of the list of its object. */
struct post {
    uint32_t event;  /* the event of a SEND, or NONE */
    uint32_t *clock; /* the poster's clock after its op; NULL if the op is relaxed */
    uint32_t next;   /* the next post of the object, or NONE */
};

/* The state of an object. */
struct state {
    uint32_t nposts, ntaken; /* posts and takes so far */
    uint32_t first, last;   /* posts not yet taken; of a semaphore, all posts */
    uint32_t total;         /* number of posts in the whole program */
    /* The blocks that post and take in the whole program. NONE: no block; MANY: several blocks. */
    uint32_t poster, taker;
    /* The block that posted last, and the one that took last, with their own times (play.h) after
     * these ops. */
    uint32_t last_poster, last_post_time, last_taker, last_take_time;
    /* Of a barrier: number of blocks that it is for; how many of them have arrived in this round;
     * number of rounds that are over. */
    uint32_t members, arrived, round;
};

#define MANY (UINT32_MAX - 1)

/* The state of a play. */
struct play {
    const struct tutti_import_program *program;
    struct tutti_import_races races;
    struct tutti_import_trace trace;
    struct state *states; /* per object */
    struct post *posts;
    uint32_t nposts, post_capacity;
    uint32_t *done;       /* per block: number of ops done */
    uint32_t *entered;    /* per block: 1 + the round of the barrier that it is in, or 0 */
    uint32_t **op_clocks; /* per op that is awaited: the clock of its block after the op */
    bool *is_awaited;     /* per op: true if other blocks wait for it by an AFTER or for packets */
};

static uint32_t *clock_of(struct play *play, uint32_t block)
{
    return tutti_import_clock(&play->races, block);
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Sets *user to the only block that uses the object, or to MANY. */
static void note_user(uint32_t *user, uint32_t block)
{
    *user = *user == NONE || *user == block ? block : MANY;
}

/* Finds the ops that other blocks wait for, and the blocks that use each object. */
static int survey(struct play *play)
{
    const struct tutti_import_program *program = play->program;

    for (uint32_t b = 0; b < program->nblocks; b++)
        for (uint32_t i = 0; i < program->blocks[b].nops; i++) {
            uint32_t at = program->blocks[b].first_op + i;
            const struct tutti_import_op *op = &program->ops[at];
            const struct tutti_import_ref *dsts = program->refs + op->first_ref + op->nsrcs;

            for (uint32_t d = 0; d < op->ndsts; d++)
                play->is_awaited[at] |= dsts[d].is_packets;
            if (op->kind == TUTTI_IMPORT_AFTER && op->count > 0)
                play->is_awaited[program->blocks[op->object].first_op + op->count - 1] = true;
            if (op->kind == TUTTI_IMPORT_POST) {
                play->states[op->object].total++;
                note_user(&play->states[op->object].poster, b);
            }
            if (op->kind == TUTTI_IMPORT_WAIT)
                note_user(&play->states[op->object].taker, b);
            if (op->kind != TUTTI_IMPORT_BARRIER)
                continue;
            if (play->states[op->object].members > 0 &&
                play->states[op->object].members != op->count)
                return tutti_import_refuse(program, at,
                                           "is for %u threadblocks, and elsewhere for %u",
                                           op->count, play->states[op->object].members);
            play->states[op->object].members = op->count;
        }
    return TUTTI_OK;
}

/* Checks that the previous post to an object, or the previous take from it, is ordered before this
 * one, and records this one as the last. The k-th take gets the k-th post, so without such an order
 * the pairs would depend on timing. */
static int check_order(struct play *play, uint32_t block, uint32_t op, uint32_t time,
                       uint32_t *last, uint32_t *last_time)
{
    const struct tutti_import_block *blocks = play->program->blocks;

    if (*last != NONE && clock_of(play, block)[*last] < *last_time)
        return tutti_import_refuse(play->program, op,
                                   "threadblock %u of gpu %u uses the same channel, and nothing "
                                   "orders the two; give each its own",
                                   blocks[*last].id, blocks[*last].rank);
    *last = block;
    *last_time = time;
    return TUTTI_OK;
}

/* Posts to the object of an op. `event` is that of a SEND, or NONE. */
static int add_post(struct play *play, uint32_t block, uint32_t op, uint32_t event)
{
    uint32_t object = play->program->ops[op].object, index = play->nposts;
    struct state *state = &play->states[object];

    if (play->program->objects[object].kind != TUTTI_IMPORT_SEMAPHORE)
        TUTTI_TRY(check_order(play, block, op, clock_of(play, block)[block], &state->last_poster,
                              &state->last_post_time));
    TUTTI_TRY(TUTTI_ARRAY_ROOM(play->posts, index, play->post_capacity, "messages of a schedule"));
    play->posts[index] = (struct post){.event = event, .next = NONE};
    play->nposts++;
    if (!play->program->ops[op].is_relaxed)
        TUTTI_TRY(tutti_import_clock_copy(&play->races, block, &play->posts[index].clock));
    state->nposts++;
    if (state->first == NONE)
        state->first = index;
    else
        play->posts[state->last].next = index;
    state->last = index;
    return TUTTI_OK;
}

/* Takes the first post that is left, because the k-th take gets the k-th post. Stores the event of
 * a SEND, or NONE. */
static int take(struct play *play, uint32_t block, uint32_t op, uint32_t *ret_event)
{
    struct state *state = &play->states[play->program->ops[op].object];
    struct post *first = &play->posts[state->first];

    /* The op that takes is not over yet, so its time is one later. */
    TUTTI_TRY(check_order(play, block, op, clock_of(play, block)[block] + 1, &state->last_taker,
                          &state->last_take_time));
    if (first->clock != NULL && !play->program->ops[op].is_relaxed)
        tutti_import_clock_join(&play->races, clock_of(play, block), first->clock);
    tutti_import_clock_drop(&play->races, first->clock);
    first->clock = NULL;
    *ret_event = first->event;
    state->first = first->next;
    state->ntaken++;
    return TUTTI_OK;
}

/* Acquires a semaphore: joins the clocks of the releases that must be over before the acquisition
 * can succeed. The k-th acquisition succeeds after k - `initial` releases.
 *
 * - One block releases: its first k - `initial` releases are over.
 * - Several blocks release: it is not known which releases are over, except if all releases of the
 *   program are needed.
 * - Several blocks acquire: this block may have been the first, so only one release is sure, or
 *   none if `initial` is not 0. */
static void acquire(struct play *play, uint32_t block, uint32_t object)
{
    struct state *state = &play->states[object];
    uint32_t initial = play->program->objects[object].initial, needed;
    uint32_t *clock = clock_of(play, block);

    state->ntaken++;
    needed = state->ntaken > initial ? state->ntaken - initial : 0;
    if (state->taker == MANY)
        needed = initial == 0 ? 1 : 0;
    if (state->poster == MANY && needed < state->total)
        needed = 0;
    for (uint32_t i = state->first; needed > 0 && i != NONE; i = play->posts[i].next, needed--)
        tutti_import_clock_join(&play->races, clock, play->posts[i].clock);
}

/* Returns true if the block has arrived at a barrier in its current round. */
static bool is_in_barrier(const struct play *play, uint32_t block, uint32_t barrier)
{
    const struct tutti_import_program *program = play->program;
    uint32_t at = program->blocks[block].first_op + play->done[block]; /* its next op */

    return play->entered[block] == 1 + play->states[barrier].round &&
           program->ops[at].object == barrier;
}

/* Lets a block arrive at a barrier, or leave it. When the last block arrives, the clocks of all
 * members become equal, and all members may continue. Returns true if this block may continue. */
static bool pass_barrier(struct play *play, uint32_t block, const struct tutti_import_op *op)
{
    const struct tutti_import_program *program = play->program;
    struct state *state = &play->states[op->object];

    if (play->entered[block] == 0) {
        play->entered[block] = 1 + state->round;
        if (++state->arrived < op->count)
            return false;
        for (uint32_t other = 0; other < program->nblocks; other++)
            if (other != block && is_in_barrier(play, other, op->object))
                tutti_import_clock_join(&play->races, clock_of(play, block), clock_of(play, other));
        for (uint32_t other = 0; other < program->nblocks; other++)
            if (other != block && is_in_barrier(play, other, op->object))
                tutti_import_clock_join(&play->races, clock_of(play, other), clock_of(play, block));
        state->arrived = 0;
        state->round++;
    }
    if (play->entered[block] == 1 + state->round)
        return false;
    play->entered[block] = 0;
    return true;
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* Returns true if all packets that the op reads have been written. */
static bool has_packets(const struct play *play, const struct tutti_import_op *op)
{
    const struct tutti_import_ref *srcs = play->program->refs + op->first_ref;

    for (uint32_t s = 0; s < op->nsrcs; s++)
        for (uint32_t i = 0; srcs[s].is_packets && i < srcs[s].count; i++)
            if (play->races.cells[tutti_import_ref_cell(play->program, &srcs[s], i)].packets_op ==
                NONE)
                return false;
    return true;
}

/* Joins the clocks of the ops that wrote the packets which the op reads. */
static void join_packets(struct play *play, uint32_t block, const struct tutti_import_op *op)
{
    const struct tutti_import_ref *srcs = play->program->refs + op->first_ref;
    uint32_t last = NONE;

    for (uint32_t s = 0; s < op->nsrcs; s++)
        for (uint32_t i = 0; srcs[s].is_packets && i < srcs[s].count; i++) {
            uint32_t by =
                play->races.cells[tutti_import_ref_cell(play->program, &srcs[s], i)].packets_op;

            if (by != last)
                tutti_import_clock_join(&play->races, clock_of(play, block), play->op_clocks[by]);
            last = by;
        }
}

/* Returns true if the op can run now. For a BARRIER, this call also lets the block arrive at the
 * barrier or leave it. */
static bool try_begin(struct play *play, uint32_t block, const struct tutti_import_op *op)
{
    const struct state *states = play->states; /* of an AFTER, `object` is a block instead */

    switch (op->kind) {
    case TUTTI_IMPORT_MOVE: return has_packets(play, op);
    case TUTTI_IMPORT_RECV: return states[op->object].nposts > states[op->object].ntaken;
    case TUTTI_IMPORT_WAIT:
        return states[op->object].nposts + play->program->objects[op->object].initial >
               states[op->object].ntaken;
    case TUTTI_IMPORT_AFTER: return play->done[op->object] >= op->count;
    case TUTTI_IMPORT_BARRIER: return pass_barrier(play, block, op);
    default: return true;
    }
}

/* Returns true if the data that event `sent` sent are still unchanged in the sender's cells. */
static bool is_kept(const struct play *play, uint32_t sent)
{
    const struct tutti_import_op *send = &play->program->ops[play->trace.events[sent].op];
    const struct tutti_import_ref *src = &play->program->refs[send->first_ref];

    for (uint32_t i = 0; i < src->count; i++) {
        uint32_t by = play->races.cells[tutti_import_ref_cell(play->program, src, i)].event;

        if (by != NONE && by > sent)
            return false;
    }
    return true;
}

/* Takes the message of a RECV, which is op number `at`, and completes its event. */
static int receive(struct play *play, uint32_t block, uint32_t at, struct tutti_import_event *event)
{
    const struct tutti_import_program *program = play->program;
    const struct tutti_import_op *op = &program->ops[at], *send;
    uint32_t own = play->trace.nevents;

    TUTTI_TRY(take(play, block, at, &event->mate));
    play->trace.events[event->mate].mate = own;
    send = &program->ops[play->trace.events[event->mate].op];
    if (program->refs[send->first_ref].count != program->refs[op->first_ref].count)
        return tutti_import_refuse(program, at,
                                   "receives %u chunks where step %u of the sender sends %u",
                                   program->refs[op->first_ref].count, send->step,
                                   program->refs[send->first_ref].count);
    event->is_direct = is_kept(play, event->mate);
    return TUTTI_OK;
}

/* Runs op number `at` of a block, which can begin (try_begin). */
static int run_op(struct play *play, uint32_t block, uint32_t at)
{
    const struct tutti_import_op *op = &play->program->ops[at];
    struct tutti_import_event event = {.op = at, .mate = NONE};
    uint32_t ignored;

    if (op->kind == TUTTI_IMPORT_AFTER && op->count > 0)
        tutti_import_clock_join(
            &play->races, clock_of(play, block),
            play->op_clocks[play->program->blocks[op->object].first_op + op->count - 1]);
    if (op->kind == TUTTI_IMPORT_MOVE)
        join_packets(play, block, op);
    if (op->kind == TUTTI_IMPORT_RECV)
        TUTTI_TRY(receive(play, block, at, &event));
    if (op->kind == TUTTI_IMPORT_WAIT) {
        if (play->program->objects[op->object].kind == TUTTI_IMPORT_SEMAPHORE)
            acquire(play, block, op->object);
        else
            TUTTI_TRY(take(play, block, at, &ignored));
    }
    clock_of(play, block)[block]++;
    if (op->kind <= TUTTI_IMPORT_RECV) {
        TUTTI_TRY(tutti_import_touch(&play->races, block, at, play->trace.nevents));
        if (op->kind == TUTTI_IMPORT_SEND)
            TUTTI_TRY(add_post(play, block, at, play->trace.nevents));
        play->trace.events[play->trace.nevents++] = event;
    }
    if (op->kind == TUTTI_IMPORT_POST)
        TUTTI_TRY(add_post(play, block, at, NONE));
    if (play->is_awaited[at])
        TUTTI_TRY(tutti_import_clock_copy(&play->races, block, &play->op_clocks[at]));
    play->done[block]++;
    return TUTTI_OK;
}

/* ---- the play -------------------------------------------------------------------------------- */

/* Reports that op number `at` waits forever. */
static int report_wait(const struct play *play, uint32_t at)
{
    const struct tutti_import_program *program = play->program;
    const struct tutti_import_op *op = &program->ops[at];

    switch (op->kind) {
    case TUTTI_IMPORT_AFTER:
        return tutti_import_refuse(program, at, "waits forever for threadblock %u",
                                   program->blocks[op->object].id);
    case TUTTI_IMPORT_RECV:
        return tutti_import_refuse(program, at, "waits forever for a message from gpu %u",
                                   program->objects[op->object].key[0]);
    case TUTTI_IMPORT_MOVE: return tutti_import_refuse(program, at, "waits forever for packets");
    case TUTTI_IMPORT_BARRIER:
        return tutti_import_refuse(program, at, "waits forever for other threadblocks");
    default: return tutti_import_refuse(program, at, "waits forever for a signal");
    }
}

/* Reports the first block that is stuck, if any. A block that does not wait for another block of
 * its gpu is preferred, because it is more likely to be the cause. */
static int report_standstill(const struct play *play)
{
    const struct tutti_import_program *program = play->program;
    uint32_t found = NONE;

    for (uint32_t b = 0; b < program->nblocks; b++) {
        uint32_t at = program->blocks[b].first_op + play->done[b];

        if (play->done[b] == program->blocks[b].nops)
            continue;
        found = found == NONE ? at : found;
        if (program->ops[at].kind < TUTTI_IMPORT_BARRIER)
            return report_wait(play, at);
    }
    return found == NONE ? TUTTI_OK : report_wait(play, found);
}

/* Checks that every message has been received. Signals may be left. */
static int check_leftovers(const struct play *play)
{
    const struct tutti_import_program *program = play->program;

    for (uint32_t i = 0; i < program->nobjects; i++)
        if (program->objects[i].kind == TUTTI_IMPORT_QUEUE &&
            play->states[i].nposts > play->states[i].ntaken)
            return tutti_import_refuse(
                program, play->trace.events[play->posts[play->states[i].first].event].op,
                "sends a message that nobody receives");
    return TUTTI_OK;
}

static int play_all(struct play *play)
{
    const struct tutti_import_program *program = play->program;

    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t b = 0; b < program->nblocks; b++) {
            uint32_t at = program->blocks[b].first_op + play->done[b];
            bool moves_data = false;

            /* Each turn moves data with one op only, so the order resembles a concurrent run. */
            while (!moves_data && play->done[b] < program->blocks[b].nops &&
                   try_begin(play, b, &program->ops[at])) {
                moves_data = program->ops[at].kind <= TUTTI_IMPORT_RECV;
                TUTTI_TRY(run_op(play, b, at));
                moved = true;
                at++;
            }
        }
    }
    TUTTI_TRY(report_standstill(play));
    return check_leftovers(play);
}

static int prepare(struct play *play)
{
    const struct tutti_import_program *program = play->program;
    size_t nops = program->nops, nblocks = program->nblocks;

    play->trace.events = calloc(nops + 1, sizeof(*play->trace.events));
    play->states = calloc(program->nobjects + 1, sizeof(*play->states));
    play->done = calloc(nblocks + 1, sizeof(uint32_t));
    play->entered = calloc(nblocks + 1, sizeof(uint32_t));
    play->op_clocks = calloc(nops + 1, sizeof(*play->op_clocks));
    play->is_awaited = calloc(nops + 1, sizeof(bool));
    if (play->trace.events == NULL || play->states == NULL || play->done == NULL ||
        play->entered == NULL || play->op_clocks == NULL || play->is_awaited == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to play %zu operations", nops);
    for (uint32_t i = 0; i < program->nobjects; i++)
        play->states[i] = (struct state){
            .first = NONE, .poster = NONE, .taker = NONE, .last_poster = NONE, .last_taker = NONE};
    TUTTI_TRY(tutti_import_races_init(&play->races, program));
    return survey(play);
}

static void release(struct play *play)
{
    for (uint32_t i = 0; i < play->nposts; i++)
        free(play->posts[i].clock);
    for (uint32_t i = 0; i < play->program->nops && play->op_clocks != NULL; i++)
        free(play->op_clocks[i]);
    tutti_import_races_fini(&play->races);
    free(play->states);
    free(play->posts);
    free(play->done);
    free(play->entered);
    free(play->op_clocks);
    free(play->is_awaited);
}

int tutti_import_play(const struct tutti_import_program *program,
                      struct tutti_import_trace *ret_trace)
{
    struct play play = {.program = program};
    int rc = prepare(&play);

    rc = rc != TUTTI_OK ? rc : play_all(&play);
    release(&play);
    if (rc != TUTTI_OK) {
        tutti_import_trace_fini(&play.trace);
        return rc;
    }
    *ret_trace = play.trace;
    return TUTTI_OK;
}

void tutti_import_trace_fini(struct tutti_import_trace *trace)
{
    free(trace->events);
    *trace = (struct tutti_import_trace){.events = NULL};
}
