/* SPDX-License-Identifier: Apache-2.0
 * Ranks call gather-v and scatter-v, in which only the root has all counts. If a rank's own count
 * is not the root's count for it, the rank that waits for the other fails at this call, and the
 * other one at this call or the next. Both messages name the two ranks and the two counts. */
#include "ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5 };

/* How the call is made. */
enum style { PLAIN, SECOND_OF_GROUP, ON_STREAM, ON_SPLIT, IN_LENT_MEMORY };

/* The block of each rank has `usual` elements, but `rank` passes `own` and the root has `listed`
 * for it. */
struct misfit {
    const char *what;
    int nranks, root, rank;
    size_t own, listed, usual;
    enum style style;
};

static const struct misfit misfits[] = {
    {"the root has less", 2, 0, 1, 4, 2, 2, PLAIN},
    {"the root has more", 2, 0, 1, 2, 4, 2, PLAIN},
    {"the root is the last rank", 3, 2, 0, 2, 3, 2, PLAIN},
    {"the rank has none", 2, 0, 1, 0, 5, 3, PLAIN},
    {"the root has none", 2, 1, 0, 5, 0, 3, PLAIN},
    {"nothing else moves, the rank has none", 3, 0, 2, 0, 5, 0, PLAIN},
    {"nothing else moves, the root has none", 3, 1, 2, 7, 0, 0, PLAIN},
    {"large blocks", 2, 0, 1, 100000, 100003, 1000, PLAIN},
    {"a large block for a small one", 3, 1, 0, 300000, 1, 1, PLAIN},
    {"a small block for a large one", 3, 1, 0, 1, 300000, 1, PLAIN},
    {"four ranks", 4, 3, 1, 11, 12, 5, PLAIN},
    {"five ranks, large", 5, 4, 0, 50000, 40000, 30001, PLAIN},
    {"the second call of a group", 2, 0, 1, 4, 2, 2, SECOND_OF_GROUP},
    {"a stream", 3, 2, 0, 4, 2, 2, ON_STREAM},
    {"a split communicator", 2, 0, 1, 4, 2, 2, ON_SPLIT},
    {"memory that peers map", 3, 2, 1, 200000, 100000, 100000, IN_LENT_MEMORY},
};

struct rooted_call {
    const struct misfit *misfit;
    bool gathers;
};

/* ---- calls ----------------------------------------------------------------------------------- */

/* The blocks of the root and the one block of a rank. Ranks other than the root have no list. */
struct buffers {
    int32_t *all, *one;
    const size_t *counts; /* NULL: this rank is not the root */
    size_t own;
};

static tuttiResult_t move(const struct buffers *buffers, bool gathers, int root, tuttiComm_t comm,
                          tuttiStream_t stream)
{
    if (gathers)
        return tuttiGatherV(buffers->one, buffers->own, buffers->all, buffers->counts, NULL,
                            tuttiInt32, root, comm, stream);
    return tuttiScatterV(buffers->all, buffers->counts, NULL, buffers->one, buffers->own,
                         tuttiInt32, root, comm, stream);
}

static tuttiResult_t move_twice(const struct buffers *buffers, bool gathers, int root,
                                tuttiComm_t comm)
{
    static const size_t ones[MOST] = {1, 1, 1, 1, 1};
    int32_t few[2][MOST] = {{0}};
    const struct buffers before = {few[0], few[1], buffers->counts != NULL ? ones : NULL, 1};

    tuttiGroupStart();
    move(&before, gathers, root, comm, NULL);
    move(buffers, gathers, root, comm, NULL);
    return tuttiGroupEnd();
}

/* The call, and a barrier, in which a rank learns what it has not waited for. */
static tuttiResult_t move_and_meet(struct crew_seat *seat, const struct buffers *buffers,
                                   tuttiComm_t comm, tuttiStream_t stream)
{
    const struct rooted_call *call = seat->crew->context;
    int root = call->misfit->root;
    tuttiResult_t result = call->misfit->style == SECOND_OF_GROUP
                               ? move_twice(buffers, call->gathers, root, comm)
                               : move(buffers, call->gathers, root, comm, stream);

    if (result == tuttiSuccess && stream != NULL)
        result = tuttiStreamSynchronize(stream);
    if (result != tuttiSuccess)
        crew_add(&seat->board->steps[seat->rank]);
    else
        result = tuttiBarrier(comm, NULL);
    return result;
}

static tuttiResult_t move_elsewhere(struct crew_seat *seat, const struct buffers *buffers,
                                    enum style style)
{
    tuttiStream_t stream = NULL;
    tuttiComm_t comm = NULL;
    tuttiResult_t result;

    if (style == ON_STREAM) {
        result = tuttiHostStreamCreate(&stream);
        if (result == tuttiSuccess)
            result = move_and_meet(seat, buffers, seat->comm, stream);
        tuttiHostStreamDestroy(stream);
        return result;
    }
    if (style != ON_SPLIT)
        return move_and_meet(seat, buffers, seat->comm, NULL);
    result = tuttiCommSplit(seat->comm, 0, seat->rank, &comm, NULL);
    if (result == tuttiSuccess)
        result = move_and_meet(seat, buffers, comm, NULL);
    tuttiCommDestroy(comm);
    return result;
}

static tuttiResult_t misfit(struct crew_seat *seat)
{
    const struct misfit *misfit = ((const struct rooted_call *)seat->crew->context)->misfit;
    size_t counts[MOST], total = 0;
    struct buffers buffers = {.own = seat->rank == misfit->rank ? misfit->own : misfit->usual};
    void *one = NULL, *all = NULL;
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < misfit->nranks; i++) {
        counts[i] = i == misfit->rank ? misfit->listed : misfit->usual;
        total += counts[i];
    }
    if (misfit->style == IN_LENT_MEMORY) {
        result = tuttiMemAlloc(&one, (buffers.own + 1) * sizeof(int32_t));
        if (result == tuttiSuccess)
            result = tuttiMemAlloc(&all, (total + 1) * sizeof(int32_t));
    } else {
        one = calloc(buffers.own + 1, sizeof(int32_t));
        all = calloc(total + 1, sizeof(int32_t));
    }
    buffers.one = one;
    if (seat->rank == misfit->root) {
        buffers.all = all;
        buffers.counts = counts;
    }
    if (result == tuttiSuccess)
        result = move_elsewhere(seat, &buffers, misfit->style);
    if (misfit->style == IN_LENT_MEMORY) {
        tuttiMemFree(one);
        tuttiMemFree(all);
    } else {
        free(one);
        free(all);
    }
    return result;
}

static void name_misfit(const struct rooted_call *call, char *text, size_t size)
{
    const struct misfit *misfit = call->misfit;
    int from = call->gathers ? misfit->rank : misfit->root;
    int to = call->gathers ? misfit->root : misfit->rank;
    size_t sent = call->gathers ? misfit->own : misfit->listed;
    size_t expected = call->gathers ? misfit->listed : misfit->own;

    snprintf(text, size,
             "rank %d sends %zu elements of int32 (%zu bytes) to rank %d, which expects %zu (%zu "
             "bytes)", from, sent, 4 * sent, to, expected, 4 * expected);
}

static void check_misfit(struct way way, const struct rooted_call *call)
{
    const struct misfit *row = call->misfit;
    struct crew_board *board = ways_play(way, row->nranks, misfit, call);
    int waiting = call->gathers ? row->root : row->rank;
    const char *name = call->gathers ? "gather-v" : "scatter-v";
    char named[160];

    name_misfit(call, named, sizeof named);
    for (int rank = 0; rank < row->nranks; rank++) {
        const struct crew_report *report = &board->reports[rank];
        bool is_one = rank == row->rank || rank == row->root;

        if (is_one && (report->result != tuttiInvalidUsage || strstr(report->text, named) == NULL))
            fail_msg("%s, %s, %s: rank %d got %d: %s", way.name, name, row->what, rank,
                     (int)report->result, report->text);
        if (!is_one && report->result != tuttiInvalidUsage && report->result != tuttiRemoteError)
            fail_msg("%s, %s, %s: rank %d, which is not concerned, got %d: %s", way.name, name,
                     row->what, rank, (int)report->result, report->text);
    }
    if (board->steps[waiting] == 0)
        fail_msg("%s, %s, %s: rank %d fails only later", way.name, name, row->what, waiting);
    crew_clear(board);
}

static void both_ranks_of_a_misfit_are_told_which_counts_differ(void **state)
{
    const struct way *way = *state;

    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++)
        for (int gathers = 0; gathers < 2; gathers++)
            check_misfit(*way, &(struct rooted_call){&misfits[i], gathers == 1});
}

/* ---- calls that fit -------------------------------------------------------------------------- */

enum { ROUNDS = 16, MOST_COUNT = 6 };

static size_t count_of(int round, int rank)
{
    return (size_t)(round + 7 * rank) % MOST_COUNT;
}

static int32_t element_of(int round, int rank, size_t index)
{
    return (int32_t)((round * MOST + rank) * MOST_COUNT + (int)index);
}

/* A scatter-v from one root and a gather-v of what it has brought to another. The blocks lie from
 * behind at the roots, with a gap before each. */
static tuttiResult_t there_and_back(struct crew_seat *seat, int round)
{
    int32_t all[MOST * 2 * MOST_COUNT] = {0}, again[MOST * 2 * MOST_COUNT] = {0}, own[MOST_COUNT];
    int from = round % seat->nranks, to = (round / 2 + 1) % seat->nranks;
    size_t counts[MOST], displs[MOST], mine = count_of(round, seat->rank);
    tuttiResult_t result;

    for (int rank = 0; rank < seat->nranks; rank++) {
        counts[rank] = count_of(round, rank);
        displs[rank] = (size_t)(seat->nranks - 1 - rank) * 2 * MOST_COUNT + 1;
        for (size_t i = 0; i < counts[rank]; i++)
            all[displs[rank] + i] = element_of(round, rank, i);
    }
    result = tuttiScatterV(seat->rank == from ? all : NULL, seat->rank == from ? counts : NULL,
                           seat->rank == from ? displs : NULL, mine > 0 ? own : NULL, mine,
                           tuttiInt32, from, seat->comm, NULL);
    for (size_t i = 0; result == tuttiSuccess && i < mine; i++)
        if (own[i] != element_of(round, seat->rank, i))
            return tuttiInternalError;
    if (result == tuttiSuccess)
        result = tuttiGatherV(mine > 0 ? own : NULL, mine, seat->rank == to ? again : NULL,
                              seat->rank == to ? counts : NULL, seat->rank == to ? displs : NULL,
                              tuttiInt32, to, seat->comm, NULL);
    if (result == tuttiSuccess && seat->rank == to && memcmp(all, again, sizeof all) != 0)
        return tuttiInternalError;
    return result;
}

/* Without any element, the root waits for its peers, but they need not wait for it. */
static tuttiResult_t move_nothing(struct crew_seat *seat, int root)
{
    static const size_t nothing[MOST] = {0};
    const size_t *counts = seat->rank == root ? nothing : NULL;
    tuttiResult_t result =
        tuttiGatherV(NULL, 0, NULL, counts, NULL, tuttiInt32, root, seat->comm, NULL);

    if (result != tuttiSuccess)
        return result;
    return tuttiScatterV(NULL, counts, NULL, NULL, 0, tuttiInt32, root, seat->comm, NULL);
}

static tuttiResult_t call_what_fits(struct crew_seat *seat)
{
    tuttiResult_t result = tuttiSuccess;

    for (int round = 0; round < ROUNDS && result == tuttiSuccess; round++) {
        result = there_and_back(seat, round);
        if (result == tuttiSuccess)
            result = move_nothing(seat, round % seat->nranks);
    }
    return result;
}

static void counts_that_fit_are_right_also_where_some_or_all_are_zero(void **state)
{
    for (int nranks = 1; nranks <= MOST; nranks++)
        ways_play_well(*(const struct way *)*state, nranks, call_what_fits);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ranks_of_a_misfit_are_told_which_counts_differ),
        cmocka_unit_test(counts_that_fit_are_right_also_where_some_or_all_are_zero)};

    return ways_run("rooted v-forms", tests, sizeof tests / sizeof *tests);
}
