/* SPDX-License-Identifier: Apache-2.0
 * Builds lists of moves, and emits them forwards and backwards.
 */
#include "algorithms/moves.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists of moves ----------------------------------------------------------------- */

static int append(struct tutti_moves *moves, struct tutti_move move)
{
    if (move.count == 0)
        return TUTTI_OK;
    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(moves->list, moves->count, moves->capacity, "moves of a collective"));
    move.channel = moves->channel;
    moves->list[moves->count++] = move;
    return TUTTI_OK;
}

int tutti_moves_send(struct tutti_moves *moves, uint32_t to, uint32_t first, uint32_t count)
{
    return append(moves,
                  (struct tutti_move){.peer = to, .first = first, .count = count, .is_send = true});
}

int tutti_moves_recv(struct tutti_moves *moves, uint32_t from, uint32_t first, uint32_t count)
{
    return append(moves, (struct tutti_move){.peer = from, .first = first, .count = count});
}

/* Append one move for each run of consecutive marked chunks, and unmark them. */
static int append_marked(struct tutti_moves *moves, struct tutti_move move)
{
    uint32_t nwords = moves->nchunks / 64 + 1;

    move.count = 0;
    for (uint32_t word = 0; word < nwords; word++)
        while (moves->marks[word] != 0) {
            uint32_t bit = (uint32_t)__builtin_ctzll(moves->marks[word]);
            uint64_t rest = moves->marks[word] >> bit; /* begins with a run of ones */
            uint32_t run = ~rest == 0 ? 64 : (uint32_t)__builtin_ctzll(~rest);
            uint32_t chunk = word * 64 + bit;

            if (move.first + move.count != chunk) {
                TUTTI_TRY(append(moves, move));
                move.first = chunk;
                move.count = 0;
            }
            move.count += run;
            moves->marks[word] &= run == 64 ? 0 : ~(((UINT64_C(1) << run) - 1) << bit);
        }
    return append(moves, move);
}

static int append_set(struct tutti_moves *moves, bool is_send, uint32_t peer,
                      const uint32_t *chunks, uint32_t count)
{
    if (moves->marks == NULL)
        moves->marks = calloc(moves->nchunks / 64 + 1, sizeof(*moves->marks));
    if (moves->marks == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for marks of %u chunks", moves->nchunks);
    for (uint32_t i = 0; i < count; i++)
        moves->marks[chunks[i] / 64] |= UINT64_C(1) << chunks[i] % 64;
    return append_marked(moves, (struct tutti_move){.peer = peer, .is_send = is_send});
}

int tutti_moves_send_set(struct tutti_moves *moves, uint32_t to, const uint32_t *chunks,
                         uint32_t count)
{
    return append_set(moves, true, to, chunks, count);
}

int tutti_moves_recv_set(struct tutti_moves *moves, uint32_t from, const uint32_t *chunks,
                         uint32_t count)
{
    return append_set(moves, false, from, chunks, count);
}

void tutti_moves_fini(struct tutti_moves *moves)
{
    free(moves->list);
    free(moves->slots);
    free(moves->marks);
    *moves = (struct tutti_moves){.list = NULL};
}

/* ---- forwards and backwards --------------------------------------------------------- */

/* True if this rank owns all these chunks. */
static bool is_own(const struct tutti_moves *moves, uint32_t first, uint32_t count)
{
    return first >= moves->own_first &&
           first + count <= moves->own_first + moves->own_count;
}

/* Chunks first .. first + count - 1 of a span. */
static struct tutti_span part(struct tutti_span whole, uint32_t first, uint32_t count)
{
    return tutti_span((enum tutti_buffer)whole.buffer, whole.first + first, count);
}

int tutti_moves_gather(const struct tutti_moves *moves, struct tutti_build *build,
                       struct tutti_span own, struct tutti_span whole)
{
    for (uint32_t i = 0; i < moves->count; i++) {
        const struct tutti_move *move = &moves->list[i];
        struct tutti_span chunks = part(whole, move->first, move->count);

        build->channel = move->channel;
        if (!move->is_send)
            TUTTI_TRY(tutti_build_recv(build, move->peer, chunks));
        else if (is_own(moves, move->first, move->count))
            TUTTI_TRY(tutti_build_send(build, move->peer,
                                       part(own, move->first - moves->own_first, move->count)));
        else
            TUTTI_TRY(tutti_build_send(build, move->peer, chunks));
    }
    build->channel = 0;
    return TUTTI_OK;
}

/* Copy, unless the two spans are the same. */
static int copy_apart(struct tutti_build *build, struct tutti_span src, struct tutti_span dst)
{
    if (src.buffer == dst.buffer && src.first == dst.first)
        return TUTTI_OK;
    return tutti_build_copy(build, src, dst);
}

/* State of a chunk's sum. */
enum {
    UNTOUCHED, /* nothing has been added to this rank's input */
    PARTIAL,   /* the sum so far is in `partial` */
    COMPLETE,  /* the sum is in `result` */
};

struct reduction {
    const struct tutti_moves *moves;
    struct tutti_build *build;
    struct tutti_span input, partial, result;
    uint8_t *state;      /* per chunk */
    uint32_t *last_move; /* per own chunk: index of the move that is the last to receive it */
};

/* Where the partial sums of these chunks are kept. */
static struct tutti_span partial_of(const struct reduction *reduction, uint32_t first,
                                    uint32_t count)
{
    const struct tutti_moves *moves = reduction->moves;

    tutti_assert(moves->slots == NULL || count == 1);
    return part(reduction->partial, moves->slots != NULL ? moves->slots[first] : first, count);
}

/* Return the current sums of the move's chunks as one span. If only some of the chunks have been
 * added to, copy the input of the others next to them. */
static int find_sums(struct reduction *reduction, const struct tutti_move *move,
                        struct tutti_span *ret_source)
{
    uint8_t *state = &reduction->state[move->first];
    uint32_t ntouched = 0;

    for (uint32_t i = 0; i < move->count; i++)
        ntouched += state[i] != UNTOUCHED;
    *ret_source = ntouched == 0 ? part(reduction->input, move->first, move->count)
                                : partial_of(reduction, move->first, move->count);
    if (ntouched == 0)
        return TUTTI_OK;
    for (uint32_t i = 0, run; i < move->count; i += run) {
        bool is_touched = state[i] != UNTOUCHED;

        for (run = 1; i + run < move->count && (state[i + run] != UNTOUCHED) == is_touched;)
            run++;
        if (!is_touched)
            TUTTI_TRY(copy_apart(reduction->build, part(reduction->input, move->first + i, run),
                                 partial_of(reduction, move->first + i, run)));
    }
    memset(state, PARTIAL, move->count);
    return TUTTI_OK;
}

/* True if all chunks of this move are this rank's own and this move is the last that adds to
 * them. */
static bool completes(const struct reduction *reduction, uint32_t index)
{
    const struct tutti_moves *moves = reduction->moves;
    const struct tutti_move *move = &moves->list[index];

    if (!is_own(moves, move->first, move->count))
        return false;
    for (uint32_t i = 0; i < move->count; i++)
        if (reduction->last_move[move->first - moves->own_first + i] != index)
            return false;
    return true;
}

/* Emit move `index` of the list backwards. */
static int play_back(struct reduction *reduction, uint32_t index)
{
    const struct tutti_move *move = &reduction->moves->list[index];
    struct tutti_span source, dst;

    reduction->build->channel = move->channel;
    TUTTI_TRY(find_sums(reduction, move, &source));
    if (!move->is_send)
        return tutti_build_send(reduction->build, move->peer, source);
    dst = partial_of(reduction, move->first, move->count);
    memset(&reduction->state[move->first], PARTIAL, move->count);
    if (completes(reduction, index)) {
        dst = part(reduction->result, move->first - reduction->moves->own_first, move->count);
        memset(&reduction->state[move->first], COMPLETE, move->count);
    }
    return tutti_build_recv_reduce(reduction->build, move->peer, source, dst);
}

/* Copy own chunks to `result` that are not there yet: chunks that no rank adds to, or that arrived
 * only in one message with chunks of other ranks. */
static int deliver(struct reduction *reduction)
{
    const struct tutti_moves *moves = reduction->moves;

    for (uint32_t i = 0; i < moves->own_count; i++) {
        uint32_t chunk = moves->own_first + i;
        struct tutti_span result = part(reduction->result, i, 1);
        struct tutti_span source = reduction->state[chunk] == UNTOUCHED
                                       ? part(reduction->input, chunk, 1)
                                       : partial_of(reduction, chunk, 1);

        if (reduction->state[chunk] != COMPLETE)
            TUTTI_TRY(copy_apart(reduction->build, source, result));
    }
    return TUTTI_OK;
}

int tutti_moves_reduce_scatter(const struct tutti_moves *moves, struct tutti_build *build,
                               struct tutti_span input, struct tutti_span partial,
                               struct tutti_span result)
{
    struct reduction reduction = {.moves = moves, .build = build, .input = input,
                                  .partial = partial, .result = result};
    int rc = TUTTI_OK;

    reduction.state = calloc(moves->nchunks + 1, sizeof(*reduction.state));
    reduction.last_move = calloc(moves->own_count + 1, sizeof(*reduction.last_move));
    if (reduction.state == NULL || reduction.last_move == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a reduce-scatter of %u chunks",
                        moves->nchunks);
        goto release;
    }

    /* Played backwards, the first send of a chunk is the last that adds to it. */
    for (uint32_t i = moves->count; i-- > 0;)
        for (uint32_t c = 0; moves->list[i].is_send && c < moves->list[i].count; c++)
            if (is_own(moves, moves->list[i].first + c, 1))
                reduction.last_move[moves->list[i].first + c - moves->own_first] = i;
    for (uint32_t i = moves->count; i-- > 0;)
        TUTTI_TRY_OR(release, rc, play_back(&reduction, i));
    rc = deliver(&reduction);

release:
    build->channel = 0;
    free(reduction.state);
    free(reduction.last_move);
    return rc;
}

/* ---- whole collectives ------------------------------------------------------------- */

static int emit_allgather(const struct tutti_moves *moves, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, moves->own_count);
    struct tutti_span whole = tutti_span(TUTTI_BUF_OUTPUT, 0, moves->nchunks);

    tutti_build_chunks(build, moves->own_count);
    TUTTI_TRY(tutti_build_copy(build, own, part(whole, moves->own_first, moves->own_count)));
    return tutti_moves_gather(moves, build, own, whole);
}

/* SCRATCH has a chunk for each slot, or, without slots, for each chunk. */
static int emit_reduce_scatter(const struct tutti_moves *moves, struct tutti_build *build)
{
    uint32_t nslots = moves->nchunks;

    if (moves->slots != NULL) {
        nslots = 0;
        for (uint32_t c = 0; c < moves->nchunks; c++)
            nslots = moves->slots[c] >= nslots ? moves->slots[c] + 1 : nslots;
    }
    tutti_build_chunks(build, moves->own_count);
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, nslots);
    return tutti_moves_reduce_scatter(moves, build,
                                      tutti_span(TUTTI_BUF_INPUT, 0, moves->nchunks),
                                      tutti_span(TUTTI_BUF_SCRATCH, 0, nslots),
                                      tutti_span(TUTTI_BUF_OUTPUT, 0, moves->own_count));
}

/* The sums stay in OUTPUT, and the all-gather sends them from there. */
static int emit_allreduce_scatter(const struct tutti_moves *moves, struct tutti_build *build)
{
    struct tutti_span whole = tutti_span(TUTTI_BUF_OUTPUT, 0, moves->nchunks);

    tutti_build_chunks(build, moves->nchunks);
    return tutti_moves_reduce_scatter(moves, build,
                                      tutti_span(TUTTI_BUF_INPUT, 0, moves->nchunks), whole,
                                      part(whole, moves->own_first, moves->own_count));
}

static int emit_allreduce_gather(const struct tutti_moves *moves, struct tutti_build *build)
{
    struct tutti_span whole = tutti_span(TUTTI_BUF_OUTPUT, 0, moves->nchunks);

    return tutti_moves_gather(moves, build, part(whole, moves->own_first, moves->own_count), whole);
}

static int make_and_emit(const struct tutti_shape *shape, struct tutti_build *build,
                         int (*make)(const struct tutti_shape *shape,
                                     struct tutti_moves *ret_moves),
                         enum tutti_moves_use use)
{
    static int (*const emit[])(const struct tutti_moves *moves, struct tutti_build *build) = {
        [TUTTI_MOVES_GATHER] = emit_allgather,
        [TUTTI_MOVES_SCATTER] = emit_reduce_scatter,
        [TUTTI_MOVES_ALLREDUCE_GATHER] = emit_allreduce_gather,
        [TUTTI_MOVES_ALLREDUCE_SCATTER] = emit_allreduce_scatter,
    };
    struct tutti_moves moves = {.use = use};
    int rc = make(shape, &moves);

    if (rc == TUTTI_OK)
        rc = emit[use](&moves, build);
    tutti_moves_fini(&moves);
    return rc;
}

int tutti_moves_emit(const struct tutti_shape *shape, struct tutti_build *build,
                     int (*make)(const struct tutti_shape *shape, struct tutti_moves *ret_moves))
{
    if (!tutti_collective_reduces(shape->collective))
        return make_and_emit(shape, build, make, TUTTI_MOVES_GATHER);
    if (tutti_input_is_per_rank(shape->collective))
        return make_and_emit(shape, build, make, TUTTI_MOVES_SCATTER);
    TUTTI_TRY(make_and_emit(shape, build, make, TUTTI_MOVES_ALLREDUCE_SCATTER));
    return make_and_emit(shape, build, make, TUTTI_MOVES_ALLREDUCE_GATHER);
}
