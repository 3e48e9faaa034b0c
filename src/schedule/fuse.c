/* SPDX-License-Identifier: Apache-2.0
 * Joins a receive with the send that passes the same chunks on, so that the two are one step. Data
 * then flows through a rank without waiting for the whole message.
 *
 *   before                                  after
 *   0: receive chunks 4-7 from rank 1       0: receive chunks 4-7 from rank 1, store them and send
 *   1: send chunks 4-7 to rank 2               them to rank 2 (RECV_COPY_SEND)
 *
 * A lane is a peer, a direction and a channel (build.h). The messages of a lane run in order, and
 * joining must not change this order. So the joined step takes the place of the receive if the send
 * may move up to it, and otherwise the place of the send if the receive may move down to it:
 *
 *   before                                  after
 *   0: receive x from rank 1                0: send y to rank 2
 *   1: send y to rank 2                     1: receive x from rank 1 and send it to rank 2
 *   2: send x to rank 2                        (in place 0, it would send x before y)
 *
 * ---- why joining cannot cause a deadlock
 *
 * Consider a run in which nothing is buffered. A message is then one event, which its two ranks
 * have in common. This event comes after the message before it in its lane, and after the steps
 * that the send and the receive of the message depend on. A schedule is free of deadlock if and
 * only if no event comes, by some path of "comes after", after itself.
 *
 * Let m be the message received, and m' the message that passes the data on. So m' comes after m.
 * If the joined step also stores the data in memory, m can end before m' does. m' may start earlier
 * than it did before, but still ends only after m. The one change is that a step which waited for
 * the receive or the send now waits for the joined step, that is for both m and m'. So a pair is
 * joined only if every step that waits for the receive waits for the send anyway:
 *
 *  - Until the chunks are overwritten only the send reads them, and the step that overwrites them
 *    waits for the send.
 *  - No step overwrites the source that the receive combines with, except the receive itself.
 *  - No SIGNAL or WAIT is between the two, because a SIGNAL waits for all steps before it, and a
 *    WAIT holds up all steps after it.
 *
 * So joining adds no path between events, whatever other ranks do.
 *
 * ---- dropping the store (is_bold)
 *
 * If no step but the send needs the data, the joined step need not store it (RECV_REDUCE_SEND). But
 * then m ends only when m' ends, so the two are one event. This event comes after itself if a
 * second path leads from m to m'. Such a path may go through other ranks whose own steps look
 * correct:
 *
 *   rank 0      send x to 1 (this is m), x = y, send x to 2
 *   rank 1      receive from 0, add, pass on to 2 (m')
 *   rank 2      receive from 0, receive from 1 and add that
 *
 * Here rank 2 takes m' only after the message from rank 0. That message comes after m, because rank
 * 0 may change x only after it has sent x. So a second path leads from m to m', through rank 2. If
 * m and m' are one event, the event waits for itself.
 *
 * So no rank can decide alone whether it may drop a store. Stores are dropped only if the caller
 * sets is_bold. Such a caller knows that all data goes up one tree (tutti_build_one_tree), or
 * proves the result for all ranks (check.h).
 *
 *  - If all data goes up one tree, dropping stores is correct. Every lane carries one message of
 *    each segment, in the order of the segments, and no segment waits for a later one. Within a
 *    segment all paths go up the tree, and the joined steps are part of one path.
 *  - If the caller proves the result, stores are kept in the two cases that would most likely fail
 *    the proof; see drops_store.
 *
 * If is_bold is set, a pair is also joined if a step after the send overwrites the source that the
 * receive combines with.
 */
#include "schedule/build.h"

#include "base/result.h"
#include "schedule/derive.h"
#include "schedule/chunk_history.h"

#include <stdlib.h>
#include <string.h>

/* Values in place of the index of a step. */
#define NONE    TUTTI_NO_STEP
#define SEVERAL (TUTTI_NO_STEP - 1) /* only in fuse->reader */

/* The schedule that is being fused, and facts about its steps. Steps are named by their indices
 * before fusing. */
struct fuse {
    struct tutti_schedule *schedule;
    struct tutti_chunk_history history; /* used only to fill `reader` and `overwriter` */
    bool is_bold;
    /* Per step: the only step that reads the data that this step stores, and reads all of it before
     * any is overwritten. NONE: no step reads the data. SEVERAL: several steps do, or some of the
     * data is overwritten unread. */
    uint32_t *reader;
    /* Per step: the first other step that overwrites data which this step has read, or NONE. */
    uint32_t *overwriter;
    uint32_t *send_before;    /* per sending step: the step before it in its lane, or NONE */
    uint32_t *recv_after;     /* per receiving step: the step after it in its lane, or NONE */
    uint32_t *signals_before; /* per step: number of SIGNALs and WAITs before it */
    /* Per receive or send that was joined: the index where the joined step is, which is that of the
     * receive or of the send. NONE: the step was not joined. */
    uint32_t *place;
    /* Per lane (index_lanes numbers them): 1 + its last step so far, or 0. */
    uint32_t *lane_last;
};

static void release(struct fuse *fuse)
{
    tutti_chunk_history_fini(&fuse->history);
    free(fuse->reader);
    free(fuse->overwriter);
    free(fuse->send_before);
    free(fuse->recv_after);
    free(fuse->signals_before);
    free(fuse->place);
    free(fuse->lane_last);
}

/* Record that `step` reads the data that the writer of `run` has stored. `run` is a range of
 * chunks with one history (chunk_history.h). */
static void note_reader(struct fuse *fuse, uint32_t step, const struct tutti_chunk_run *run)
{
    uint32_t *reader;

    if (run->writer == NONE)
        return;
    /* The same step may read the writer's data in several runs. */
    reader = &fuse->reader[run->writer];
    if (run->readers == NONE && *reader == NONE)
        *reader = step;
    else if (run->readers != NONE || *reader != step)
        *reader = SEVERAL;
}

/* Record that `step` overwrites the data that the writer of `run` has stored and that the readers
 * of `run` have read. */
static void note_overwriter(struct fuse *fuse, uint32_t step, const struct tutti_chunk_run *run)
{
    const struct tutti_chunk_history *history = &fuse->history;

    if (run->readers == NONE && run->writer != NONE)
        fuse->reader[run->writer] = SEVERAL;
    for (uint32_t r = run->readers; r != NONE; r = history->readers[r].before) {
        uint32_t reader = history->readers[r].step;

        if (reader != step && fuse->overwriter[reader] == NONE)
            fuse->overwriter[reader] = step;
    }
}

/* Fill `reader` and `overwriter`, by going through the steps with a history of the memory. */
static int index_memory(struct fuse *fuse)
{
    struct tutti_chunk_history *history = &fuse->history;
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];

    for (uint32_t step = 0; step < fuse->schedule->nsteps; step++) {
        uint32_t naccesses = tutti_step_accesses(&fuse->schedule->steps[step], accesses);

        for (uint32_t a = 0; a < naccesses; a++) {
            uint32_t at, end;

            if (accesses[a].rank != TUTTI_NO_RANK) /* another rank's memory */
                continue;
            at = tutti_chunk_history_split(history, accesses[a].span, &end);
            for (; at < end; at = tutti_chunk_history_next(history, at))
                if (accesses[a].is_write)
                    note_overwriter(fuse, step, &history->runs[at]);
                else
                    note_reader(fuse, step, &history->runs[at]);
            if (accesses[a].is_write)
                tutti_chunk_history_write(history, step, accesses[a].span);
            else
                TUTTI_TRY(tutti_chunk_history_read(history, step, accesses[a].span));
        }
    }
    return TUTTI_OK;
}

/* Fill `send_before`, `recv_after` and `signals_before`. Each pair of a channel and a peer has two
 * lanes: an even number for sends and the next odd number for receives. */
static void index_lanes(struct fuse *fuse)
{
    const struct tutti_schedule *schedule = fuse->schedule;
    uint32_t nsignals = 0;

    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];

        fuse->signals_before[at] = nsignals;
        if (step->kind == TUTTI_STEP_SIGNAL || step->kind == TUTTI_STEP_WAIT)
            nsignals++;
        if (tutti_access_sends(step)) {
            uint32_t lane = 2 * (step->channel * schedule->nranks + (uint32_t)step->to);

            fuse->send_before[at] = fuse->lane_last[lane] == 0 ? NONE : fuse->lane_last[lane] - 1;
            fuse->lane_last[lane] = at + 1;
        }
        if (tutti_access_receives(step)) {
            uint32_t lane = 2 * (step->channel * schedule->nranks + (uint32_t)step->from) + 1;

            if (fuse->lane_last[lane] != 0)
                fuse->recv_after[fuse->lane_last[lane] - 1] = at;
            fuse->lane_last[lane] = at + 1;
        }
    }
}

/* Allocate and fill in everything but `place`, which is NONE for all steps. The caller calls
 * `release`, on errors too. */
static int prepare(struct fuse *fuse, struct tutti_schedule *schedule, bool is_bold)
{
    size_t nsteps = schedule->nsteps;

    *fuse = (struct fuse){.schedule = schedule, .is_bold = is_bold};
    TUTTI_TRY(tutti_chunk_history_init(&fuse->history, schedule));
    fuse->reader = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->overwriter = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->send_before = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->recv_after = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->signals_before = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->place = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->lane_last = calloc(2 * (size_t)schedule->nranks * schedule->nchannels, sizeof(uint32_t));
    if (fuse->reader == NULL || fuse->overwriter == NULL || fuse->send_before == NULL ||
        fuse->recv_after == NULL || fuse->signals_before == NULL || fuse->place == NULL ||
        fuse->lane_last == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to fuse %zu steps", nsteps);
    /* Bytes of 0xff make each item NONE. */
    memset(fuse->reader, 0xff, nsteps * sizeof(uint32_t));
    memset(fuse->overwriter, 0xff, nsteps * sizeof(uint32_t));
    memset(fuse->recv_after, 0xff, nsteps * sizeof(uint32_t));
    memset(fuse->place, 0xff, nsteps * sizeof(uint32_t));
    TUTTI_TRY(index_memory(fuse));
    index_lanes(fuse);
    return TUTTI_OK;
}

/* Return the send that may be joined with `recv`: the only step that reads the data stored by
 * `recv`, if this step is a send of exactly these chunks on the same channel. Steps in queues
 * (step.h) are not joined. Returns NONE if there is no such send. */
static uint32_t find_send(const struct fuse *fuse, uint32_t recv)
{
    const struct tutti_step *steps = fuse->schedule->steps;
    struct tutti_span dst = steps[recv].dst, src;
    uint32_t send = fuse->reader[recv];

    if (send == NONE || send == SEVERAL)
        return NONE;
    src = steps[send].src;
    if (steps[send].kind != TUTTI_STEP_SEND || steps[send].channel != steps[recv].channel ||
        steps[send].queue != 0 || steps[recv].queue != 0 || src.buffer != dst.buffer ||
        src.first != dst.first || src.count != dst.count)
        return NONE;
    return send;
}

/* Return the index where a step is now, which has changed if the step was joined. */
static uint32_t place_of(const struct fuse *fuse, uint32_t step)
{
    return fuse->place[step] == NONE ? step : fuse->place[step];
}

/* Return the index at which the joined step goes, which is `recv` or `send`; NONE if the two cannot
 * be joined. The head of this file gives the reasons. */
static uint32_t find_place(const struct fuse *fuse, uint32_t recv, uint32_t send)
{
    uint32_t previous_send = fuse->send_before[send], next_recv = fuse->recv_after[recv];
    uint32_t overwriter = fuse->overwriter[recv];

    if (fuse->signals_before[recv] != fuse->signals_before[send])
        return NONE;
    /* `overwriter` overwrites the source that the receive combines with. */
    if (overwriter != NONE && (overwriter < send || !fuse->is_bold))
        return NONE;
    /* The send may move up to the receive if it stays behind the previous send of its lane. */
    if (previous_send == NONE || place_of(fuse, previous_send) < recv)
        return recv;
    /* The receive may move down to the send if it stays ahead of the next receive of its lane. */
    return next_recv == NONE || next_recv > send ? send : NONE;
}

/* True if the joined step of a RECV_REDUCE and a send does not store the data. Only the send reads
 * the data (find_send), but the buffer must be SCRATCH, because the caller sees INPUT and OUTPUT.
 * The store is kept in two cases in which dropping it would likely cause a deadlock. */
static bool drops_store(const struct fuse *fuse, uint32_t recv, uint32_t send)
{
    const struct tutti_step *steps = fuse->schedule->steps, *before;
    uint32_t previous_send = fuse->send_before[send], next_recv = fuse->recv_after[recv];

    if (!fuse->is_bold || steps[recv].dst.buffer != TUTTI_BUF_SCRATCH)
        return false;
    /* Case 1: the next receive of m's lane comes before the send. It would wait for the send. */
    if (next_recv != NONE && next_recv < send)
        return false;
    if (previous_send == NONE)
        return true;
    /* Case 2: the step before the send in its lane stores its data, or receives from another peer.
     * A ring has such steps at all ranks, and would wait for itself. */
    before = &steps[place_of(fuse, previous_send)];
    return before->kind == TUTTI_STEP_RECV_REDUCE_SEND && before->from == steps[recv].from;
}

/* Return the kind of the step that joins a RECV or RECV_REDUCE with a send. */
static enum tutti_step_kind joined_kind(const struct fuse *fuse, uint32_t recv, uint32_t send)
{
    if (fuse->schedule->steps[recv].kind == TUTTI_STEP_RECV)
        return TUTTI_STEP_RECV_COPY_SEND;
    return drops_store(fuse, recv, send) ? TUTTI_STEP_RECV_REDUCE_SEND
                                         : TUTTI_STEP_RECV_REDUCE_COPY_SEND;
}

/* Put the joined step at index `place`, which is `recv` or `send`. The step at the other index
 * stays there until `compact` removes it. */
static void join(struct fuse *fuse, uint32_t recv, uint32_t send, uint32_t place)
{
    struct tutti_step *steps = fuse->schedule->steps, joined = steps[recv];

    tutti_assert(recv < send && (place == recv || place == send));
    tutti_assert(fuse->place[recv] == NONE && fuse->place[send] == NONE);
    tutti_assert(tutti_access_receives(&steps[recv]) && tutti_access_sends(&steps[send]));
    joined.kind = (uint8_t)joined_kind(fuse, recv, send);
    joined.to = steps[send].to;
    if (joined.kind == TUTTI_STEP_RECV_REDUCE_SEND)
        joined.dst = TUTTI_NO_SPAN;
    fuse->place[recv] = place;
    fuse->place[send] = place;
    steps[place] = joined;
}

/* Remove the steps that were joined into others, and the scratch memory if no step uses it any
 * more. */
static void compact(struct fuse *fuse)
{
    struct tutti_schedule *schedule = fuse->schedule;
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t nsteps = 0;
    bool uses_scratch = false;

    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        uint32_t naccesses;

        if (place_of(fuse, at) != at)
            continue;
        naccesses = tutti_step_accesses(&schedule->steps[at], accesses);
        for (uint32_t a = 0; a < naccesses; a++)
            if (accesses[a].span.buffer == TUTTI_BUF_SCRATCH)
                uses_scratch = true;
        schedule->steps[nsteps++] = schedule->steps[at];
    }
    schedule->nsteps = nsteps;
    if (!uses_scratch) {
        schedule->scratch_chunks = 0;
        schedule->scratch_like = TUTTI_SCRATCH_NONE;
    }
}

int tutti_schedule_fuse(struct tutti_schedule *schedule, bool is_bold)
{
    struct fuse fuse;
    int rc;

    tutti_assert(schedule->nsteps < SEVERAL);
    TUTTI_TRY_OR(release_all, rc, prepare(&fuse, schedule, is_bold));
    for (uint32_t recv = 0; recv < schedule->nsteps; recv++) {
        uint8_t kind = schedule->steps[recv].kind;
        uint32_t send, place;

        if (fuse.place[recv] != NONE || (kind != TUTTI_STEP_RECV && kind != TUTTI_STEP_RECV_REDUCE))
            continue;
        send = find_send(&fuse, recv);
        place = send == NONE ? NONE : find_place(&fuse, recv, send);
        if (place != NONE)
            join(&fuse, recv, send, place);
    }
    compact(&fuse);
    rc = tutti_schedule_derive(schedule);

release_all:
    release(&fuse);
    return rc;
}
