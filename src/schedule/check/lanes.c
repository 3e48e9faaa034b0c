/* SPDX-License-Identifier: Apache-2.0
 * Sorts halves into lanes and pairs sends with receives: the k-th send of a (sender, receiver,
 * channel) with its k-th receive. The two must have the same number of chunks and equal sizes.
 */
#include "schedule/check/model.h"

#include "base/result.h"

#include <stdlib.h>

#define NONE TUTTI_CHECK_NONE

/* The messages from one rank to another on one channel: halves that send, and halves that
 * receive. */
struct lane {
    uint32_t from, to, channel;
    uint32_t first_send, last_send, first_recv, last_recv; /* halves, or NONE */
};

/* Lanes by (from, to, channel), in the order in which steps first use them. */
struct lanes {
    struct lane *lanes;
    uint32_t count;
    uint32_t *table; /* hash table with open addressing: index in `lanes` + 1, or 0 if free */
    size_t table_size; /* a power of two, at least twice the number of lanes */
};

/* Find a lane, or add it. */
static struct lane *find_lane(struct lanes *lanes, uint32_t from, uint32_t to, uint32_t channel)
{
    uint64_t hash = (((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15u + channel) *
                    0xbf58476d1ce4e5b9u;
    size_t at = (size_t)(hash >> 20) & (lanes->table_size - 1);

    for (;; at = (at + 1) & (lanes->table_size - 1)) {
        struct lane *lane;

        if (lanes->table[at] == 0) {
            lanes->table[at] = ++lanes->count;
            lane = &lanes->lanes[lanes->count - 1];
            *lane = (struct lane){from, to, channel, NONE, NONE, NONE, NONE};
            return lane;
        }
        lane = &lanes->lanes[lanes->table[at] - 1];
        if (lane->from == from && lane->to == to && lane->channel == channel)
            return lane;
    }
}

/* Append a half to the list of halves *first .. *last. */
static void append(struct tutti_check *check, uint32_t *first, uint32_t *last, uint32_t half)
{
    check->lane_before[half] = *last;
    if (*last == NONE)
        *first = half;
    else
        check->lane_after[*last] = half;
    *last = half;
}

/* Fill in the local lanes and the lists of signals. */
static int sort_local(struct tutti_check *check)
{
    uint32_t nsignals = 0;

    TUTTI_TRY(tutti_check_alloc(&check->local_index, check->nsteps, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&check->local_count, check->nranks, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&check->local_last, check->nranks, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&check->signal_first, check->nranks + 1, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&check->signal_steps, check->nsteps, sizeof(uint32_t), 0));
    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        uint32_t first = NONE, last = NONE;

        check->signal_first[rank] = nsignals;
        for (uint32_t at = check->first_step[rank]; at < check->first_step[rank + 1]; at++) {
            const struct tutti_step *step = tutti_check_step(check, at);

            if (tutti_step_is_two_sided(step))
                continue;
            append(check, &first, &last, 2 * at);
            check->local_last[rank] = at;
            check->local_index[at] = check->local_count[rank]++;
            if (step->kind == TUTTI_STEP_SIGNAL)
                check->signal_steps[nsignals++] = at;
        }
    }
    check->signal_first[check->nranks] = nsignals;
    return TUTTI_OK;
}

/* Sort the halves of two-sided steps into lanes. */
static void sort_two_sided(struct tutti_check *check, struct lanes *lanes)
{
    for (uint32_t at = 0; at < check->nsteps; at++) {
        const struct tutti_step *step = tutti_check_step(check, at);
        uint32_t rank = check->step_rank[at];
        struct lane *lane;

        if (tutti_access_receives(step)) {
            lane = find_lane(lanes, (uint32_t)step->from, rank, step->channel);
            append(check, &lane->first_recv, &lane->last_recv, 2 * at);
        }
        if (tutti_access_sends(step)) {
            lane = find_lane(lanes, rank, (uint32_t)step->to, step->channel);
            append(check, &lane->first_send, &lane->last_send,
                   2 * at + (tutti_step_is_fused(step) ? 1 : 0));
        }
    }
}

/* Pair a send with its receive, which must have as many chunks of the same sizes. */
static int pair(struct tutti_check *check, uint32_t send, uint32_t recv)
{
    struct tutti_span out = tutti_check_sized_span(check, send / 2);
    struct tutti_span in = tutti_check_sized_span(check, recv / 2);
    uint32_t sender = check->step_rank[send / 2], receiver = check->step_rank[recv / 2];
    uint32_t send_step = send / 2 - check->first_step[sender], i;

    if (out.count != in.count)
        return tutti_check_fail(check, receiver, recv / 2,
                                "receives %u chunks, but step %u of rank %u sends %u", in.count,
                                send_step, sender, out.count);
    i = tutti_check_classes_differ(check, sender, &out, receiver, &in, in.count, false);
    if (i < in.count)
        return tutti_check_fail(check, receiver, recv / 2,
                                "receives into %s %u, which may differ in size from %s %u that "
                                "step %u of rank %u sends",
                                tutti_buffer_name((enum tutti_buffer)in.buffer), in.first + i,
                                tutti_buffer_name((enum tutti_buffer)out.buffer), out.first + i,
                                send_step, sender);
    check->mate[send] = recv;
    check->mate[recv] = send;
    return TUTTI_OK;
}

static int pair_lane(struct tutti_check *check, const struct lane *lane)
{
    uint32_t send = lane->first_send, recv = lane->first_recv;

    while (send != NONE && recv != NONE) {
        TUTTI_TRY(pair(check, send, recv));
        send = check->lane_after[send];
        recv = check->lane_after[recv];
    }
    if (send != NONE)
        return tutti_check_fail(check, lane->from, send / 2,
                                "sends to rank %u on channel %u, but that rank receives no more",
                                lane->to, lane->channel);
    if (recv != NONE)
        return tutti_check_fail(check, lane->to, recv / 2,
                                "receives from rank %u on channel %u, but that rank sends no more",
                                lane->from, lane->channel);
    return TUTTI_OK;
}

static int pair_lanes(struct tutti_check *check, const struct lanes *lanes)
{
    TUTTI_TRY(tutti_check_alloc(&check->lane_sends, lanes->count, sizeof(uint32_t), 0));
    check->nlanes = lanes->count;
    for (uint32_t i = 0; i < lanes->count; i++) {
        TUTTI_TRY(pair_lane(check, &lanes->lanes[i]));
        check->lane_sends[i] = lanes->lanes[i].first_send;
    }
    return TUTTI_OK;
}

/* Make room for as many lanes as there are sends and receives. */
static int lanes_init(struct lanes *lanes, const struct tutti_check *check)
{
    size_t most = 0;

    for (uint32_t at = 0; at < check->nsteps; at++)
        if (tutti_step_is_two_sided(tutti_check_step(check, at)))
            most += tutti_step_is_fused(tutti_check_step(check, at)) ? 2 : 1;
    lanes->table_size = 64;
    while (lanes->table_size < 2 * most)
        lanes->table_size *= 2;
    TUTTI_TRY(tutti_check_alloc(&lanes->table, lanes->table_size, sizeof(uint32_t), 0));
    return tutti_check_alloc(&lanes->lanes, most, sizeof(*lanes->lanes), 0);
}

int tutti_check_lanes(struct tutti_check *check)
{
    size_t nhalves = 2 * (size_t)check->nsteps;
    struct lanes lanes = {0};
    int rc;

    TUTTI_TRY(tutti_check_alloc(&check->lane_before, nhalves, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&check->lane_after, nhalves, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&check->mate, nhalves, sizeof(uint32_t), 0xff));
    TUTTI_TRY(sort_local(check));
    TUTTI_TRY_OR(release, rc, lanes_init(&lanes, check));
    sort_two_sided(check, &lanes);
    rc = pair_lanes(check, &lanes);

release:
    free(lanes.lanes);
    free(lanes.table);
    return rc;
}
