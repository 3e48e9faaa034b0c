/* SPDX-License-Identifier: Apache-2.0
 * Sorting halves into lanes, and pairing sends with receives: the k-th of a
 * (sender, receiver, channel) with the k-th, equally many chunks, equal sizes. */
#include "schedule/check_model.h"

#include "base/result.h"

#include <stdlib.h>

#define NONE TUTTI_CHECK_NONE

/* First and last half of every lane while they are sorted. */
struct lane {
    uint32_t first, last;
};

static size_t lane_of(const struct check *check, uint32_t from, uint32_t to, uint32_t channel)
{
    return ((size_t)from * check->nranks + to) * check->nchannels + channel;
}

static void append(struct check *check, struct lane *lane, uint32_t half)
{
    check->lane_before[half] = lane->last;
    if (lane->last == NONE)
        lane->first = half;
    else
        check->lane_after[lane->last] = half;
    lane->last = half;
}

static int sort_local(struct check *check)
{
    uint32_t nsignals = 0;

    TUTTI_TRY(tutti_check_alloc(&check->local_index, check->nsteps, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&check->local_count, check->nranks, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&check->local_last, check->nranks, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&check->signal_first, check->nranks + 1, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&check->signal_steps, check->nsteps, sizeof(uint32_t), 0));
    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        struct lane lane = {NONE, NONE};

        check->signal_first[rank] = nsignals;
        for (uint32_t at = check->first_step[rank]; at < check->first_step[rank + 1]; at++) {
            const struct tutti_step *step = check_step(check, at);

            if (tutti_step_is_two_sided(step))
                continue;
            append(check, &lane, 2 * at);
            check->local_index[at] = check->local_count[rank]++;
            check->local_last[rank] = at;
            if (step->kind == TUTTI_STEP_SIGNAL)
                check->signal_steps[nsignals++] = at;
        }
    }
    check->signal_first[check->nranks] = nsignals;
    return TUTTI_OK;
}

static void sort_two_sided(struct check *check, struct lane *sends, struct lane *recvs)
{
    for (uint32_t at = 0; at < check->nsteps; at++) {
        const struct tutti_step *step = check_step(check, at);
        uint32_t rank = check->step_rank[at];

        if (tutti_access_receives(step))
            append(check, &recvs[lane_of(check, (uint32_t)step->from, rank, step->channel)],
                   2 * at);
        if (tutti_access_sends(step))
            append(check, &sends[lane_of(check, rank, (uint32_t)step->to, step->channel)],
                   2 * at + (check_is_fused(step) ? 1 : 0));
    }
}

static int pair(struct check *check, uint32_t send, uint32_t recv)
{
    struct tutti_span out = tutti_check_sized_span(check, send / 2);
    struct tutti_span in = tutti_check_sized_span(check, recv / 2);
    uint32_t sender = check->step_rank[send / 2], receiver = check->step_rank[recv / 2];
    uint32_t send_step = send / 2 - check->first_step[sender];

    if (out.count != in.count)
        return tutti_check_found(check, receiver, recv / 2,
                                 "receives %u chunks, step %u of rank %u sends %u", in.count,
                                 send_step, sender, out.count);
    for (uint32_t i = 0; i < in.count; i++)
        if (tutti_check_class(check, sender, out.buffer, out.first + i) !=
            tutti_check_class(check, receiver, in.buffer, in.first + i))
            return tutti_check_found(check, receiver, recv / 2,
                                     "receives into %s %u, which may differ in size from %s %u "
                                     "that step %u of rank %u sends",
                                     tutti_buffer_name((enum tutti_buffer)in.buffer), in.first + i,
                                     tutti_buffer_name((enum tutti_buffer)out.buffer),
                                     out.first + i, send_step, sender);
    check->mate[send] = recv;
    check->mate[recv] = send;
    return TUTTI_OK;
}

static int pair_lanes(struct check *check, const struct lane *sends, const struct lane *recvs)
{
    for (size_t lane = 0; lane < lane_of(check, check->nranks, 0, 0); lane++) {
        uint32_t send = sends[lane].first, recv = recvs[lane].first;

        while (send != NONE && recv != NONE) {
            TUTTI_TRY(pair(check, send, recv));
            send = check->lane_after[send];
            recv = check->lane_after[recv];
        }
        if (send != NONE)
            return tutti_check_found(check, check->step_rank[send / 2], send / 2,
                                     "sends to rank %d on channel %u, which receives no more",
                                     check_step(check, send / 2)->to,
                                     check_step(check, send / 2)->channel);
        if (recv != NONE)
            return tutti_check_found(check, check->step_rank[recv / 2], recv / 2,
                                     "receives from rank %d on channel %u, which sends no more",
                                     check_step(check, recv / 2)->from,
                                     check_step(check, recv / 2)->channel);
    }
    return TUTTI_OK;
}

int tutti_check_lanes(struct check *check)
{
    size_t nlanes = lane_of(check, check->nranks, 0, 0);
    struct lane *sends = NULL, *recvs = NULL;
    int rc;

    TUTTI_TRY(tutti_check_alloc(&check->lane_before, 2 * (size_t)check->nsteps, sizeof(uint32_t),
                                0xff));
    TUTTI_TRY(tutti_check_alloc(&check->lane_after, 2 * (size_t)check->nsteps, sizeof(uint32_t),
                                0xff));
    TUTTI_TRY(tutti_check_alloc(&check->mate, 2 * (size_t)check->nsteps, sizeof(uint32_t), 0xff));
    TUTTI_TRY_OR(release, rc, tutti_check_alloc(&sends, nlanes, sizeof(*sends), 0xff));
    TUTTI_TRY_OR(release, rc, tutti_check_alloc(&recvs, nlanes, sizeof(*recvs), 0xff));
    TUTTI_TRY_OR(release, rc, sort_local(check));
    sort_two_sided(check, sends, recvs);
    rc = pair_lanes(check, sends, recvs);

release:
    free(sends);
    free(recvs);
    return rc;
}
