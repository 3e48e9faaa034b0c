/* SPDX-License-Identifier: Apache-2.0
 * Checks each schedule on its own. Numbers must be in range, spans must lie inside buffers, sizes
 * must match, and each step may touch only permitted memory. Also checks that the heads of all
 * ranks agree. The later parts of the checker do not repeat these checks.
 */
#include "schedule/check/model.h"

#include "base/result.h"

#define MOST_CHUNKS (UINT32_C(1) << 30) /* limit for chunks and nodes of all ranks and runs */

/* Checks that the numbers of chunks, steps and signals are small. The later parts of the checker
 * multiply and add them in 32 bits, which must not overflow. */
static int check_sums(struct tutti_check *check)
{
    const struct tutti_schedule *first = check->schedules[0];
    uint64_t per_buffer = (uint64_t)first->chunks_per_block * check->nranks, chunks = 0;

    for (uint32_t rank = 0; rank < check->nranks && per_buffer <= MOST_CHUNKS; rank++)
        for (int buffer = TUTTI_BUF_INPUT; buffer < TUTTI_BUF_COUNT; buffer++)
            chunks += (uint64_t)TUTTI_CHECK_SHARED_RUNS *
                      tutti_buffer_chunks(check->schedules[rank], rank, (enum tutti_buffer)buffer);
    if (per_buffer > MOST_CHUNKS || chunks > MOST_CHUNKS)
        return tutti_check_found(check, 0, TUTTI_CHECK_NONE,
                                 "more than %u chunks of memory of all ranks", MOST_CHUNKS / 3);
    if (first->nsignals > UINT16_MAX)
        return tutti_check_found(check, 0, TUTTI_CHECK_NONE, "%u signals; at most %u",
                                 first->nsignals, UINT16_MAX);
    if (check->nsteps > MOST_CHUNKS / (4 * TUTTI_CHECK_SHARED_RUNS))
        return tutti_check_found(check, 0, TUTTI_CHECK_NONE, "%u steps of all ranks; at most %u",
                                 check->nsteps, MOST_CHUNKS / (4 * TUTTI_CHECK_SHARED_RUNS));
    return TUTTI_OK;
}

static int check_heads(struct tutti_check *check)
{
    const struct tutti_schedule *first = check->schedules[0];

    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        const struct tutti_schedule *own = check->schedules[rank];

        if (own->rank != rank || own->nranks != check->nranks)
            return tutti_check_found(check, rank, TUTTI_CHECK_NONE,
                                     "schedule of rank %u of %u in place %u of %u", own->rank,
                                     own->nranks, rank, check->nranks);
        if (own->collective >= TUTTI_COLLECTIVE_COUNT || own->collective != first->collective ||
            own->root != first->root || own->root >= check->nranks)
            return tutti_check_found(check, rank, TUTTI_CHECK_NONE,
                                     "collective %u with root %u, rank 0 has %u with root %u",
                                     own->collective, own->root, first->collective, first->root);
        if (own->chunks_per_block == 0 || own->chunks_per_block != first->chunks_per_block)
            return tutti_check_found(check, rank, TUTTI_CHECK_NONE,
                                     "%u chunks per block, rank 0 has %u", own->chunks_per_block,
                                     first->chunks_per_block);
        if (own->needs != first->needs || own->nsignals != first->nsignals ||
            own->window_chunks != first->window_chunks)
            return tutti_check_found(check, rank, TUTTI_CHECK_NONE,
                                     "needs %#x, %u signals, window of %u; rank 0: %#x, %u, %u",
                                     own->needs, own->nsignals, own->window_chunks, first->needs,
                                     first->nsignals, first->window_chunks);
        if (own->nchannels == 0 || own->nchannels > 256)
            return tutti_check_found(check, rank, TUTTI_CHECK_NONE, "%u channels", own->nchannels);
    }
    if (first->window_chunks > 0 && !(first->needs & TUTTI_NEEDS_WINDOW))
        return tutti_check_found(check, 0, TUTTI_CHECK_NONE,
                                 "a window of %u chunks that needs does not name",
                                 first->window_chunks);
    return check_sums(check);
}

/* Checks that all spans of a step have the same sizes, chunk for chunk. A span without a size
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
            return tutti_check_found(check, rank, at,
                                     "chunk %u of %s at rank %u differs in size from the other "
                                     "chunks of the step",
                                     span->first + i,
                                     tutti_buffer_name((enum tutti_buffer)span->buffer), ranks[a]);
    }
    return TUTTI_OK;
}

/* Checks that the step may make this access, according to the schedule's needs. */
static int check_right(struct tutti_check *check, uint32_t rank, uint32_t at,
                       const struct tutti_touch *access)
{
    const struct tutti_schedule *schedule = check->schedules[rank];
    const struct tutti_step *step = tutti_check_step(check, at);
    uint32_t buffer = access->span.buffer, needed = 0;

    if (access->is_write && buffer == TUTTI_BUF_INPUT)
        return tutti_check_found(check, rank, at, "writes the caller's input");
    if (access->rank == TUTTI_NO_RANK)
        return TUTTI_OK;
    if (buffer == TUTTI_BUF_SCRATCH)
        return tutti_check_found(check, rank, at, "reaches into the scratch memory of a peer");
    if (buffer == TUTTI_BUF_WINDOW)
        needed = TUTTI_NEEDS_WINDOW;
    else if (step->kind == TUTTI_STEP_GET)
        needed = TUTTI_NEEDS_PEER_READ | TUTTI_NEEDS_PEER_STORE;
    else
        needed = TUTTI_NEEDS_PEER_STORE;
    if ((schedule->needs & needed) == 0)
        return tutti_check_found(check, rank, at,
                                 "reaches the %s of a peer, which needs (%#x) do not name",
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
        return tutti_check_found(check, rank, at,
                                 "names chunks %u + %u of %s, which has %u at rank %u", span->first,
                                 span->count, tutti_buffer_name((enum tutti_buffer)span->buffer),
                                 chunks, owner);
    return TUTTI_OK;
}

static int check_spans(struct tutti_check *check, uint32_t rank, uint32_t at)
{
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t ranks[TUTTI_STEP_ACCESSES];
    uint32_t naccesses = tutti_step_accesses(tutti_check_step(check, at), accesses);

    for (uint32_t a = 0; a < naccesses; a++) {
        bool is_own = accesses[a].rank == TUTTI_NO_RANK;
        struct tutti_among owners =
            tutti_step_peers(check->schedules[rank], tutti_check_step(check, at),
                             is_own ? (int32_t)rank : accesses[a].rank);

        for (uint32_t m = 0; m < owners.count; m++)
            TUTTI_TRY(check_span(check, rank, at, tutti_among_rank(owners, m), &accesses[a].span));
        ranks[a] = tutti_among_rank(owners, 0);
        if (accesses[a].span.count != accesses[0].span.count)
            return tutti_check_found(check, rank, at, "joins %u chunks with %u",
                                     accesses[0].span.count, accesses[a].span.count);
        TUTTI_TRY(check_right(check, rank, at, &accesses[a]));
    }
    return check_sizes(check, rank, at, ranks, accesses, naccesses);
}

/* True if the step has the spans that its kind requires. */
static bool has_its_spans(const struct tutti_step *step)
{
    bool src = step->src.buffer != TUTTI_BUF_NONE && step->src.count > 0;
    bool dst = step->dst.buffer != TUTTI_BUF_NONE && step->dst.count > 0;
    bool remote = step->remote.buffer != TUTTI_BUF_NONE && step->remote.count > 0;

    switch (step->kind) {
    case TUTTI_STEP_SEND:
    case TUTTI_STEP_RECV_REDUCE_SEND:
        return src;
    case TUTTI_STEP_RECV:
    case TUTTI_STEP_RECV_COPY_SEND:
        return dst;
    case TUTTI_STEP_PUT:
        return src && tutti_step_stores_right(step);
    case TUTTI_STEP_GET:
        return dst && remote;
    case TUTTI_STEP_GATHER_REDUCE:
        return src && remote && tutti_step_stores_right(step);
    case TUTTI_STEP_SIGNAL:
    case TUTTI_STEP_WAIT:
        return true;
    default:
        return src && dst;
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
        return tutti_check_found(check, rank, at, "names rank %d as its source", step->from);
    if (has_to && (step->to < 0 || (uint32_t)step->to >= check->nranks ||
                   (uint32_t)step->to == rank))
        return tutti_check_found(check, rank, at, "names rank %d as its target", step->to);
    if (tutti_step_is_two_sided(step) && step->channel >= check->schedules[rank]->nchannels)
        return tutti_check_found(check, rank, at, "channel %u of %u", step->channel,
                                 check->schedules[rank]->nchannels);
    return TUTTI_OK;
}

/* Checks the list of ranks that a step addresses instead of all ranks. The list must ascend and
 * must contain the step's own rank. */
static int check_among(struct tutti_check *check, uint32_t rank, uint32_t at)
{
    const struct tutti_schedule *schedule = check->schedules[rank];
    const struct tutti_step *step = tutti_check_step(check, at);
    bool may = step->kind == TUTTI_STEP_GATHER_REDUCE ||
               (step->kind == TUTTI_STEP_PUT && step->to == TUTTI_ALL_RANKS);
    bool has_own = false;

    if (step->among_count == 0)
        return TUTTI_OK;
    if (!may)
        return tutti_check_found(check, rank, at, "goes by some of all ranks, but names them not");
    if (step->among_count > schedule->namong ||
        step->among_first > schedule->namong - step->among_count)
        return tutti_check_found(check, rank, at, "goes by ranks %u + %u of %u that are named",
                                 step->among_first, step->among_count, schedule->namong);
    for (uint32_t i = 0; i < step->among_count; i++) {
        const uint32_t *among = &schedule->among[step->among_first + i];

        if (*among >= check->nranks || (i > 0 && among[0] <= among[-1]))
            return tutti_check_found(check, rank, at, "goes by rank %u, which is none, or does not "
                                     "come after the one before it", *among);
        has_own = has_own || *among == rank;
    }
    return has_own ? TUTTI_OK
                   : tutti_check_found(check, rank, at, "goes by ranks without its own");
}

static int check_one(struct tutti_check *check, uint32_t rank, uint32_t at)
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
        return tutti_check_found(check, rank, at, "no kind of step: %u", step->kind);
    if (reduces && !tutti_collective_reduces(collective))
        return tutti_check_found(check, rank, at, "%s in a collective that reduces nothing",
                                 tutti_step_name((enum tutti_step_kind)step->kind));
    if (!has_its_spans(step))
        return tutti_check_found(check, rank, at, "%s without a span that it needs",
                                 tutti_step_name((enum tutti_step_kind)step->kind));
    TUTTI_TRY(check_peers(check, rank, at));
    TUTTI_TRY(check_among(check, rank, at));
    TUTTI_TRY(check_spans(check, rank, at));
    if (step->kind == TUTTI_STEP_WAIT && (step->signal == 0 || step->signal > schedule->nsignals))
        return tutti_check_found(check, rank, at, "waits for signal %u of %u", step->signal,
                                 schedule->nsignals);
    if (tutti_step_is_one_sided(step) && schedule->needs == 0)
        return tutti_check_found(check, rank, at, "%s, but needs name no shared memory",
                                 tutti_step_name((enum tutti_step_kind)step->kind));
    if (step->dep_count > schedule->ndeps || step->dep_first > schedule->ndeps - step->dep_count)
        return tutti_check_found(check, rank, at, "dependencies %u + %u of %u", step->dep_first,
                                 step->dep_count, schedule->ndeps);
    for (uint32_t d = 0; d < step->dep_count; d++)
        if (schedule->deps[step->dep_first + d] >= index)
            return tutti_check_found(check, rank, at, "depends on step %u, which is not before it",
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

            TUTTI_TRY(check_one(check, rank, at));
            is_one_sided = is_one_sided && !tutti_step_is_two_sided(step);
            check->is_shared = check->is_shared || tutti_step_is_one_sided(step);
            if (step->kind == TUTTI_STEP_SIGNAL && ++nsignals > schedule->nsignals)
                return tutti_check_found(check, rank, at, "gives signal %u of %u", nsignals,
                                         schedule->nsignals);
        }
        if (is_one_sided != schedule->is_one_sided)
            return tutti_check_found(check, rank, TUTTI_CHECK_NONE, "says that it is %s-sided",
                                     schedule->is_one_sided ? "one" : "two");
    }
    if (check->is_shared && check->schedules[0]->nsignals == 0)
        return tutti_check_found(check, 0, TUTTI_CHECK_NONE,
                                 "one-sided steps, but no signal that orders successive runs");
    return TUTTI_OK;
}
