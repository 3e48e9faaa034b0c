/* SPDX-License-Identifier: Apache-2.0
 * Joining a receive with the send that passes the same chunks on.
 *
 * A pair is joined only where that send is the one step that reads what was
 * received before it is overwritten. Then nobody else waits for the receive,
 * and the joined step makes nobody wait longer than before: its receive half
 * runs ahead into memory, its send half only starts earlier. So a schedule
 * that cannot deadlock still cannot. The joined step takes the receive's place
 * in the program, or the send's, whichever keeps the order of both lanes.
 *
 * Without the store (recv_reduce_send) the receive half waits for the send
 * half. Where an earlier send of ours is before it in the send lane, a ring of
 * such ranks would wait for itself; so the store is dropped only where all that
 * is before it in the send lane is of the same kind and from the same peer. And
 * where a later receive of the same lane is before the send in the program, the
 * peer that gets our send may be waiting for what depends on that receive, as we
 * for it; so the store is dropped only where the next receive comes after the send.
 */
#include "schedule/build.h"

#include "base/result.h"
#include "schedule/derive.h"
#include "schedule/pieces.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct touch {
    uint32_t step;
    bool is_write;
};

struct fuse {
    struct tutti_schedule *schedule;
    struct tutti_pieces pieces;
    uint32_t *touch_first; /* per piece: its touches, in program order */
    struct touch *touches;
    uint32_t *send_before; /* per sending step: the one before it in its lane, or NONE */
    uint32_t *recv_after;  /* per receiving step: the one after it in its lane, or NONE */
    uint32_t *signals;     /* per step: SIGNALs and WAITs before it */
    uint32_t *place;       /* per step: where it went; NONE: where it was */
    uint32_t *lane_last;
};

static void release(struct fuse *fuse)
{
    tutti_pieces_fini(&fuse->pieces);
    free(fuse->touch_first);
    free(fuse->touches);
    free(fuse->send_before);
    free(fuse->recv_after);
    free(fuse->signals);
    free(fuse->place);
    free(fuse->lane_last);
}

/* Count the touches of each piece into touch_first[piece + 1], or, when `list`, write them down. */
static void walk_touches(struct fuse *fuse, bool list)
{
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];

    for (uint32_t at = 0; at < fuse->schedule->nsteps; at++) {
        uint32_t naccesses = tutti_step_accesses(&fuse->schedule->steps[at], accesses);

        for (uint32_t a = 0; a < naccesses; a++) {
            uint32_t first, count;

            if (accesses[a].rank != TUTTI_NO_RANK)
                continue;
            count = tutti_pieces_of(&fuse->pieces, accesses[a].span, &first);
            for (uint32_t piece = first; piece < first + count; piece++) {
                if (list)
                    fuse->touches[fuse->touch_first[piece]++] =
                        (struct touch){.step = at, .is_write = accesses[a].is_write};
                else
                    fuse->touch_first[piece + 1]++;
            }
        }
    }
}

static int index_touches(struct fuse *fuse)
{
    uint32_t npieces = fuse->pieces.count;

    walk_touches(fuse, false);
    for (uint32_t piece = 0; piece < npieces; piece++)
        fuse->touch_first[piece + 1] += fuse->touch_first[piece];
    fuse->touches = malloc((fuse->touch_first[npieces] + 1) * sizeof(*fuse->touches));
    if (fuse->touches == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to fuse %u steps", fuse->schedule->nsteps);

    /* Writing down moves each start to the next one's; move them back. */
    walk_touches(fuse, true);
    memmove(fuse->touch_first + 1, fuse->touch_first, npieces * sizeof(uint32_t));
    fuse->touch_first[0] = 0;
    return TUTTI_OK;
}

static void index_lanes(struct fuse *fuse)
{
    const struct tutti_schedule *schedule = fuse->schedule;
    uint32_t nlanes = 2 * schedule->nranks * schedule->nchannels, nsignals = 0;

    memset(fuse->lane_last, 0xff, nlanes * sizeof(uint32_t));
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];

        fuse->signals[at] = nsignals;
        if (step->kind == TUTTI_STEP_SIGNAL || step->kind == TUTTI_STEP_WAIT)
            nsignals++;
        if (tutti_access_sends(step)) {
            uint32_t lane = 2 * (step->channel * schedule->nranks + (uint32_t)step->to);

            fuse->send_before[at] = fuse->lane_last[lane];
            fuse->lane_last[lane] = at;
        }
        if (tutti_access_receives(step)) {
            uint32_t lane = 2 * (step->channel * schedule->nranks + (uint32_t)step->from) + 1;

            if (fuse->lane_last[lane] != NONE)
                fuse->recv_after[fuse->lane_last[lane]] = at;
            fuse->lane_last[lane] = at;
        }
    }
}

static int prepare(struct fuse *fuse, struct tutti_schedule *schedule)
{
    size_t nsteps = schedule->nsteps;

    *fuse = (struct fuse){.schedule = schedule};
    TUTTI_TRY(tutti_pieces_init(&fuse->pieces, schedule));
    fuse->touch_first = calloc((size_t)fuse->pieces.count + 2, sizeof(uint32_t));
    fuse->send_before = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->recv_after = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->signals = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->place = malloc((nsteps + 1) * sizeof(uint32_t));
    fuse->lane_last = malloc(2 * (size_t)schedule->nranks * schedule->nchannels * sizeof(uint32_t));
    if (fuse->touch_first == NULL || fuse->send_before == NULL || fuse->recv_after == NULL ||
        fuse->signals == NULL || fuse->place == NULL || fuse->lane_last == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to fuse %zu steps", nsteps);
    memset(fuse->recv_after, 0xff, nsteps * sizeof(uint32_t));
    memset(fuse->place, 0xff, nsteps * sizeof(uint32_t));
    TUTTI_TRY(index_touches(fuse));
    index_lanes(fuse);
    return TUTTI_OK;
}

/* The touch of a piece by which `step` writes it; there is one. */
static uint32_t find_write(const struct fuse *fuse, uint32_t piece, uint32_t step)
{
    uint32_t low = fuse->touch_first[piece], high = fuse->touch_first[piece + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct touch *touch = &fuse->touches[middle];

        if (touch->step < step || (touch->step == step && !touch->is_write))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The only step that reads what `recv` stored, if it is a send of exactly that; else NONE. */
static uint32_t find_send(const struct fuse *fuse, uint32_t recv)
{
    const struct tutti_step *steps = fuse->schedule->steps;
    struct tutti_span dst = steps[recv].dst, src;
    uint32_t send = NONE, first, count = tutti_pieces_of(&fuse->pieces, dst, &first);

    for (uint32_t piece = first; piece < first + count; piece++) {
        uint32_t end = fuse->touch_first[piece + 1], next = find_write(fuse, piece, recv) + 1;

        if (next >= end || fuse->touches[next].is_write)
            return NONE;
        if (send != NONE && fuse->touches[next].step != send)
            return NONE;
        send = fuse->touches[next].step;
        /* A step that reads and then writes this piece is no send. */
        if (next + 1 < end && !fuse->touches[next + 1].is_write)
            return NONE;
    }
    src = steps[send].src;
    if (steps[send].kind != TUTTI_STEP_SEND || steps[send].channel != steps[recv].channel ||
        steps[send].queue != 0 || steps[recv].queue != 0 ||
        src.buffer != dst.buffer || src.first != dst.first || src.count != dst.count)
        return NONE;
    return send;
}

/* Does a step between `recv` and `send` write what the receive combines with? */
static bool is_source_kept(const struct fuse *fuse, uint32_t recv, uint32_t send)
{
    const struct tutti_step *step = &fuse->schedule->steps[recv];
    uint32_t first, count;

    if (step->kind != TUTTI_STEP_RECV_REDUCE)
        return true;
    count = tutti_pieces_of(&fuse->pieces, step->src, &first);
    for (uint32_t piece = first; piece < first + count; piece++)
        for (uint32_t t = fuse->touch_first[piece]; t < fuse->touch_first[piece + 1]; t++)
            if (fuse->touches[t].is_write && fuse->touches[t].step > recv &&
                fuse->touches[t].step < send)
                return false;
    return true;
}

static uint32_t place_of(const struct fuse *fuse, uint32_t step)
{
    return fuse->place[step] == NONE ? step : fuse->place[step];
}

/* Where the joined step goes; NONE if nowhere. */
static uint32_t find_place(const struct fuse *fuse, uint32_t recv, uint32_t send)
{
    uint32_t before = fuse->send_before[send], after = fuse->recv_after[recv];

    if (fuse->signals[recv] != fuse->signals[send])
        return NONE;
    if (before == NONE || place_of(fuse, before) < recv)
        return recv;
    if ((after == NONE || after > send) && is_source_kept(fuse, recv, send))
        return send;
    return NONE;
}

static enum tutti_step_kind joined_kind(const struct fuse *fuse, uint32_t recv, uint32_t send)
{
    const struct tutti_step *steps = fuse->schedule->steps;
    uint32_t before = fuse->send_before[send], after = fuse->recv_after[recv];

    if (steps[recv].kind == TUTTI_STEP_RECV)
        return TUTTI_STEP_RECV_COPY_SEND;
    if (steps[recv].dst.buffer != TUTTI_BUF_SCRATCH || (after != NONE && after < send))
        return TUTTI_STEP_RECV_REDUCE_COPY_SEND;
    if (before == NONE)
        return TUTTI_STEP_RECV_REDUCE_SEND;
    before = place_of(fuse, before);
    if (steps[before].kind == TUTTI_STEP_RECV_REDUCE_SEND && steps[before].from == steps[recv].from)
        return TUTTI_STEP_RECV_REDUCE_SEND;
    return TUTTI_STEP_RECV_REDUCE_COPY_SEND;
}

static void join(struct fuse *fuse, uint32_t recv, uint32_t send, uint32_t place)
{
    struct tutti_step *steps = fuse->schedule->steps, joined = steps[recv];

    joined.kind = (uint8_t)joined_kind(fuse, recv, send);
    joined.to = steps[send].to;
    if (joined.kind == TUTTI_STEP_RECV_REDUCE_SEND)
        joined.dst = TUTTI_NO_SPAN;
    fuse->place[recv] = place;
    fuse->place[send] = place;
    steps[place] = joined;
}

/* Remove the steps that were joined into others, and scratch memory that nobody uses any more. */
static void compact(struct fuse *fuse)
{
    struct tutti_schedule *schedule = fuse->schedule;
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t nsteps = 0;
    bool uses_scratch = false;

    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        uint32_t naccesses;

        if (fuse->place[at] != NONE && fuse->place[at] != at)
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

int tutti_schedule_fuse(struct tutti_schedule *schedule)
{
    struct fuse fuse;
    int rc;

    TUTTI_TRY_OR(release_all, rc, prepare(&fuse, schedule));
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
