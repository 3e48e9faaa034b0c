/* SPDX-License-Identifier: Apache-2.0
 * Checks each schedule on its own. Numbers must be in range, spans must lie inside buffers, sizes
 * must match, and each step may touch only permitted memory. Also checks that the heads of all
 * ranks agree. The later parts of the checker do not repeat these checks.
 */
#include "schedule/check/model.h"

#include "base/result.h"

/* Limit for the chunks, and for the nodes, of all ranks and runs together. */
#define MOST_ITEMS (UINT32_C(1) << 30)

/* Check that the numbers of chunks, steps and signals are so small that the 32-bit arithmetic of
 * the later parts of the checker does not overflow. */
static int check_totals(struct tutti_check *check)
{
    const struct tutti_schedule *first = check->schedules[0];
    uint64_t per_buffer = (uint64_t)first->chunks_per_block * check->nranks, chunks = 0;
    /* Each step has up to four nodes in each run. */
    uint32_t most_steps = MOST_ITEMS / (4 * TUTTI_CHECK_SHARED_RUNS);

    for (uint32_t rank = 0; rank < check->nranks && per_buffer <= MOST_ITEMS; rank++)
        for (int buffer = TUTTI_BUF_INPUT; buffer < TUTTI_BUF_COUNT; buffer++)
            chunks += (uint64_t)TUTTI_CHECK_SHARED_RUNS *
                      tutti_buffer_chunks(check->schedules[rank], rank, (enum tutti_buffer)buffer);
    if (per_buffer > MOST_ITEMS || chunks > MOST_ITEMS)
        return tutti_check_fail(check, 0, TUTTI_CHECK_NONE,
                                "more than %u chunks in the memory of all ranks",
                                MOST_ITEMS / TUTTI_CHECK_SHARED_RUNS);
    if (first->nsignals > UINT16_MAX)
        return tutti_check_fail(check, 0, TUTTI_CHECK_NONE, "%u signals; there may be %u",
                                first->nsignals, UINT16_MAX);
    if (check->nsteps > most_steps)
        return tutti_check_fail(check, 0, TUTTI_CHECK_NONE,
                                "%u steps of all ranks together; there may be %u", check->nsteps,
                                most_steps);
    return TUTTI_OK;
}

static int check_heads(struct tutti_check *check)
{
    const struct tutti_schedule *first = check->schedules[0];

    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        const struct tutti_schedule *own = check->schedules[rank];

        if (own->rank != rank || own->nranks != check->nranks)
            return tutti_check_fail(check, rank, TUTTI_CHECK_NONE,
                                    "the schedule at index %u of %u is that of rank %u of %u", rank,
                                    check->nranks, own->rank, own->nranks);
        if (own->collective >= TUTTI_COLLECTIVE_COUNT || own->collective != first->collective ||
            own->root != first->root || own->root >= check->nranks)
            return tutti_check_fail(check, rank, TUTTI_CHECK_NONE,
                                    "collective %u with root %u, but rank 0 has %u with root %u",
                                    own->collective, own->root, first->collective, first->root);
        if (own->chunks_per_block == 0 || own->chunks_per_block != first->chunks_per_block)
            return tutti_check_fail(check, rank, TUTTI_CHECK_NONE,
                                    "%u chunks per block, but rank 0 has %u", own->chunks_per_block,
                                    first->chunks_per_block);
        if (own->needs != first->needs || own->nsignals != first->nsignals ||
            own->window_chunks != first->window_chunks)
            return tutti_check_fail(check, rank, TUTTI_CHECK_NONE,
                                    "needs %#x, %u signals and %u window chunks, but rank 0 has "
                                    "%#x, %u and %u",
                                    own->needs, own->nsignals, own->window_chunks, first->needs,
                                    first->nsignals, first->window_chunks);
        if (own->nchannels == 0 || own->nchannels > UINT8_MAX + 1)
            return tutti_check_fail(check, rank, TUTTI_CHECK_NONE,
                                    "%u channels; there may be 1 to %u", own->nchannels,
                                    UINT8_MAX + 1);
    }
    if (first->window_chunks > 0 && !(first->needs & TUTTI_NEEDS_WINDOW))
        return tutti_check_fail(check, 0, TUTTI_CHECK_NONE,
                                "a window of %u chunks, but needs do not include the window",
                                first->window_chunks);
    return check_totals(check);
}

/* Check that all spans of a step have the same sizes, chunk for chunk. A span without a size
 * class (tutti_check_class) fits any sizes. */
static int check_sizes(struct tutti_check *check, uint32_t rank, uint32_t at,
                       const uint32_t ranks[], const struct tutti_touch accesses[],
                       uint32_t naccesses)
{
    uint32_t sized = 0;

    while (sized < naccesses &&
           tutti_check_class(check, ranks[sized], accesses[sized].span.buffer,
                             accesses[sized].span.first) == TUTTI_CHECK_NONE)
        sized++;
    for (uint32_t a = sized + 1; a < naccesses; a++) {
        const struct tutti_span *span = &accesses[a].span;
        uint32_t i = tutti_check_classes_differ(check, ranks[sized], &accesses[sized].span,
                                                ranks[a], span, span->count, true);

        if (i < span->count)
            return tutti_check_fail(check, rank, at,
                                    "chunk %u of %s at rank %u differs in size from the other "
                                    "chunks of the step",
                                    span->first + i,
                                    tutti_buffer_name((enum tutti_buffer)span->buffer), ranks[a]);
    }
    return TUTTI_OK;
}

/* Check that the step may make this access, according to the schedule's needs. */
static int check_permission(struct tutti_check *check, uint32_t rank, uint32_t at,
                       const struct tutti_touch *access)
{
    const struct tutti_schedule *schedule = check->schedules[rank];
    const struct tutti_step *step = tutti_check_step(check, at);
    uint32_t buffer = access->span.buffer, needed = 0;

    if (access->is_write && buffer == TUTTI_BUF_INPUT)
        return tutti_check_fail(check, rank, at, "writes the caller's input");
    if (access->rank == TUTTI_NO_RANK)
        return TUTTI_OK;
    if (buffer == TUTTI_BUF_SCRATCH)
        return tutti_check_fail(check, rank, at, "reaches into the scratch memory of a peer");
    if (buffer == TUTTI_BUF_WINDOW)
        needed = TUTTI_NEEDS_WINDOW;
    else if (step->kind == TUTTI_STEP_GET)
        needed = TUTTI_NEEDS_PEER_READ | TUTTI_NEEDS_PEER_STORE;
    else
        needed = TUTTI_NEEDS_PEER_STORE;
    if ((schedule->needs & needed) == 0)
        return tutti_check_fail(check, rank, at,
                                "reaches the %s of a peer, which needs (%#x) do not include",
                                tutti_buffer_name((enum tutti_buffer)buffer), schedule->needs);
    return TUTTI_OK;
}

static int check_span(struct tutti_check *check, uint32_t rank, uint32_t at, uint32_t owner,
                      const struct tutti_span *span)
{
    uint32_t chunks = tutti_buffer_chunks(check->schedules[owner], owner,
                                          (enum tutti_buffer)span->buffer);

    if (span->buffer >= TUTTI_BUF_COUNT || span->first > chunks ||
        span->count > chunks - span->first)
        return tutti_check_fail(check, rank, at,
                                 "names chunks %u + %u of %s, which has %u at rank %u", span->first,
                                 span->count, tutti_buffer_name((enum tutti_buffer)span->buffer),
                                 chunks, owner);
    return TUTTI_OK;
}

/* Check all spans of a step. */
static int check_spans(struct tutti_check *check, uint32_t rank, uint32_t at)
{
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t ranks[TUTTI_STEP_ACCESSES];
    uint32_t naccesses = tutti_step_accesses(tutti_check_step(check, at), accesses);

    for (uint32_t a = 0; a < naccesses; a++) {
        bool is_own = accesses[a].rank == TUTTI_NO_RANK;
        struct tutti_step_ranks owners =
            tutti_step_peers(check->schedules[rank], tutti_check_step(check, at),
                             is_own ? (int32_t)rank : accesses[a].rank);

        for (uint32_t m = 0; m < owners.count; m++)
            TUTTI_TRY(
                check_span(check, rank, at, tutti_step_ranks_at(owners, m), &accesses[a].span));
        ranks[a] = tutti_step_ranks_at(owners, 0);
        if (accesses[a].span.count != accesses[0].span.count)
            return tutti_check_fail(check, rank, at, "joins %u chunks with %u",
                                    accesses[0].span.count, accesses[a].span.count);
        TUTTI_TRY(check_permission(check, rank, at, &accesses[a]));
    }
    return check_sizes(check, rank, at, ranks, accesses, naccesses);
}

/* True if the step has the spans that its kind requires. */
static bool has_its_spans(const struct tutti_step *step)
{
    bool has_src = step->src.buffer != TUTTI_BUF_NONE && step->src.count > 0;
    bool has_dst = step->dst.buffer != TUTTI_BUF_NONE && step->dst.count > 0;
    bool has_remote = step->remote.buffer != TUTTI_BUF_NONE && step->remote.count > 0;

    switch (step->kind) {
    case TUTTI_STEP_SEND:
    case TUTTI_STEP_RECV_REDUCE_SEND:
        return has_src;
    case TUTTI_STEP_RECV:
    case TUTTI_STEP_RECV_COPY_SEND:
        return has_dst;
    case TUTTI_STEP_PUT:
        return has_src && tutti_step_has_valid_stores(step);
    case TUTTI_STEP_GET:
        return has_dst && has_remote;
    case TUTTI_STEP_GATHER_REDUCE:
        return has_src && has_remote && tutti_step_has_valid_stores(step);
    case TUTTI_STEP_SIGNAL:
    case TUTTI_STEP_WAIT:
        return true;
    default:
        return has_src && has_dst;
    }
}

static int check_peers(struct tutti_check *check, uint32_t rank, uint32_t at)
{
    const struct tutti_step *step = tutti_check_step(check, at);
    bool has_from = tutti_access_receives(step) || step->kind == TUTTI_STEP_GET;
    bool has_to = tutti_access_sends(step) ||
                  (step->kind == TUTTI_STEP_PUT && step->to != TUTTI_ALL_RANKS) ||
                  (step->kind == TUTTI_STEP_GATHER_REDUCE && step->to != TUTTI_ALL_RANKS &&
                   step->to != TUTTI_NO_RANK);
    bool waits_for_one = step->kind == TUTTI_STEP_WAIT && step->from != TUTTI_ALL_RANKS;

    if ((has_from || waits_for_one) && (step->from < 0 || (uint32_t)step->from >= check->nranks ||
                                        (uint32_t)step->from == rank))
        return tutti_check_fail(check, rank, at,
                                "receives from rank %d, which is none of its peers", step->from);
    if (has_to && (step->to < 0 || (uint32_t)step->to >= check->nranks ||
                   (uint32_t)step->to == rank))
        return tutti_check_fail(check, rank, at, "sends to rank %d, which is none of its peers",
                                step->to);
    if (tutti_step_is_two_sided(step) && step->channel >= check->schedules[rank]->nchannels)
        return tutti_check_fail(check, rank, at, "channel %u, but there are only %u", step->channel,
                                check->schedules[rank]->nchannels);
    return TUTTI_OK;
}

/* Check the list of ranks that a step addresses instead of all ranks. The list must ascend and
 * must contain the step's own rank. */
static int check_among(struct tutti_check *check, uint32_t rank, uint32_t at)
{
    const struct tutti_schedule *schedule = check->schedules[rank];
    const struct tutti_step *step = tutti_check_step(check, at);
    bool may_have_list = step->kind == TUTTI_STEP_GATHER_REDUCE ||
                         (step->kind == TUTTI_STEP_PUT && step->to == TUTTI_ALL_RANKS);
    bool has_own = false;

    if (step->among_count == 0)
        return TUTTI_OK;
    if (!may_have_list)
        return tutti_check_fail(check, rank, at,
                                "has a list of ranks, but does not address several ranks");
    if (step->among_count > schedule->namong ||
        step->among_first > schedule->namong - step->among_count)
        return tutti_check_fail(check, rank, at,
                                "has entries %u + %u as its list of ranks, but there are only %u",
                                step->among_first, step->among_count, schedule->namong);
    for (uint32_t i = 0; i < step->among_count; i++) {
        const uint32_t *among = &schedule->among[step->among_first + i];

        if (*among >= check->nranks || (i > 0 && among[0] <= among[-1]))
            return tutti_check_fail(check, rank, at,
                                    "has rank %u in its list of ranks, which does not exist or is "
                                    "not above the one before it",
                                    *among);
        has_own = has_own || *among == rank;
    }
    return has_own ? TUTTI_OK
                   : tutti_check_fail(check, rank, at, "lacks its own rank in its list of ranks");
}

static int check_step(struct tutti_check *check, uint32_t rank, uint32_t at)
{
    const struct tutti_schedule *schedule = check->schedules[rank];
    const struct tutti_step *step = tutti_check_step(check, at);
    enum tutti_collective collective = (enum tutti_collective)schedule->collective;
    uint32_t index = at - check->first_step[rank];
    bool reduces = step->kind == TUTTI_STEP_RECV_REDUCE || step->kind == TUTTI_STEP_REDUCE ||
                   step->kind == TUTTI_STEP_RECV_REDUCE_SEND ||
                   step->kind == TUTTI_STEP_RECV_REDUCE_COPY_SEND ||
                   step->kind == TUTTI_STEP_GATHER_REDUCE;

    if (step->kind >= TUTTI_STEP_KIND_COUNT)
        return tutti_check_fail(check, rank, at, "has the unknown kind %u", step->kind);
    if (reduces && !tutti_collective_reduces(collective))
        return tutti_check_fail(check, rank, at, "%s in a collective that reduces nothing",
                                tutti_step_name((enum tutti_step_kind)step->kind));
    if (!has_its_spans(step))
        return tutti_check_fail(check, rank, at, "%s without a span that it needs",
                                tutti_step_name((enum tutti_step_kind)step->kind));
    TUTTI_TRY(check_peers(check, rank, at));
    TUTTI_TRY(check_among(check, rank, at));
    TUTTI_TRY(check_spans(check, rank, at));
    if (step->kind == TUTTI_STEP_WAIT && (step->signal == 0 || step->signal > schedule->nsignals))
        return tutti_check_fail(check, rank, at, "waits for signal %u; there are %u",
                                 step->signal, schedule->nsignals);
    if (tutti_step_is_one_sided(step) && schedule->needs == 0)
        return tutti_check_fail(check, rank, at, "%s, but needs include no shared memory",
                                tutti_step_name((enum tutti_step_kind)step->kind));
    if (step->dep_count > schedule->ndeps || step->dep_first > schedule->ndeps - step->dep_count)
        return tutti_check_fail(check, rank, at,
                                "has entries %u + %u as its dependencies, but there are only %u",
                                step->dep_first, step->dep_count, schedule->ndeps);
    for (uint32_t d = 0; d < step->dep_count; d++)
        if (schedule->deps[step->dep_first + d] >= index)
            return tutti_check_fail(check, rank, at, "depends on step %u, which is not before it",
                                    schedule->deps[step->dep_first + d]);
    return TUTTI_OK;
}

int tutti_check_shape(struct tutti_check *check)
{
    TUTTI_TRY(check_heads(check));
    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        const struct tutti_schedule *schedule = check->schedules[rank];
        bool is_one_sided = true;
        uint32_t nsignals = 0;

        for (uint32_t at = check->first_step[rank]; at < check->first_step[rank + 1]; at++) {
            const struct tutti_step *step = tutti_check_step(check, at);

            TUTTI_TRY(check_step(check, rank, at));
            is_one_sided = is_one_sided && !tutti_step_is_two_sided(step);
            check->is_shared = check->is_shared || tutti_step_is_one_sided(step);
            if (step->kind == TUTTI_STEP_SIGNAL && ++nsignals > schedule->nsignals)
                return tutti_check_fail(check, rank, at,
                                        "gives signal %u, but only %u are declared", nsignals,
                                        schedule->nsignals);
        }
        if (is_one_sided != schedule->is_one_sided)
            return tutti_check_fail(check, rank, TUTTI_CHECK_NONE,
                                    schedule->is_one_sided
                                        ? "is declared one-sided, but has two-sided steps"
                                        : "is declared two-sided, but has no two-sided step");
    }
    if (check->is_shared && check->schedules[0]->nsignals == 0)
        return tutti_check_fail(check, 0, TUTTI_CHECK_NONE,
                                "one-sided steps, but no signal that orders successive runs");
    return TUTTI_OK;
}
