/* SPDX-License-Identifier: Apache-2.0
 * Ranks call v-forms whose counts do not match. The call that differs fails on both sides, and the
 * message names the count that differs. */
#include "ways.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5 };

static size_t sum_of(const size_t *counts, int nranks)
{
    size_t sum = 0;

    for (int i = 0; i < nranks; i++)
        sum += counts[i];
    return sum;
}

/* ---- pairs of an all-to-all-v ---------------------------------------------------------------- */

/* How the call is made. */
enum style { PLAIN, SECOND_OF_GROUP, ON_STREAM, ON_SPLIT, IN_LENT_MEMORY };

/* All send `usual` elements to all, but `from` sends `sent` to `to`, which expects `expected`. */
struct pair {
    const char *what;
    int nranks, from, to;
    size_t sent, expected, usual;
    const char *named;
    enum style style;
};

static const struct pair pairs[] = {
    {"fewer are expected", 2, 0, 1, 4, 2, 2,
     "rank 0 sends 4 elements of int32 (16 bytes) to rank 1, which expects 2 (8 bytes)", PLAIN},
    {"more are expected", 2, 0, 1, 2, 4, 2,
     "rank 0 sends 2 elements of int32 (8 bytes) to rank 1, which expects 4 (16 bytes)", PLAIN},
    {"the higher rank sends", 2, 1, 0, 2, 3, 2,
     "rank 1 sends 2 elements of int32 (8 bytes) to rank 0, which expects 3 (12 bytes)", PLAIN},
    {"nothing is sent", 2, 0, 1, 0, 5, 3,
     "rank 0 sends 0 elements of int32 (0 bytes) to rank 1, which expects 5 (20 bytes)", PLAIN},
    {"nothing is expected", 2, 0, 1, 5, 0, 3,
     "rank 0 sends 5 elements of int32 (20 bytes) to rank 1, which expects 0 (0 bytes)", PLAIN},
    {"nothing else moves, nothing is sent", 3, 0, 2, 0, 5, 0,
     "rank 0 sends 0 elements of int32 (0 bytes) to rank 2, which expects 5 (20 bytes)", PLAIN},
    {"nothing else moves, nothing is expected", 3, 1, 2, 7, 0, 0,
     "rank 1 sends 7 elements of int32 (28 bytes) to rank 2, which expects 0 (0 bytes)", PLAIN},
    {"large messages", 2, 0, 1, 100000, 100003, 1000,
     "rank 0 sends 100000 elements of int32 (400000 bytes) to rank 1, which expects 100003", PLAIN},
    {"a large one for a small one", 2, 1, 0, 300000, 1, 1,
     "rank 1 sends 300000 elements of int32 (1200000 bytes) to rank 0, which expects 1 ", PLAIN},
    {"four ranks", 4, 3, 1, 11, 12, 5,
     "rank 3 sends 11 elements of int32 (44 bytes) to rank 1, which expects 12 (48 bytes)", PLAIN},
    {"five ranks, large", 5, 4, 0, 50000, 40000, 30001,
     "rank 4 sends 50000 elements of int32 (200000 bytes) to rank 0, which expects 40000", PLAIN},
    {"the second call of a group", 2, 0, 1, 4, 2, 2,
     "rank 0 sends 4 elements of int32 (16 bytes) to rank 1, which expects 2 (8 bytes)",
     SECOND_OF_GROUP},
    {"a stream", 3, 2, 0, 4, 2, 2,
     "rank 2 sends 4 elements of int32 (16 bytes) to rank 0, which expects 2 (8 bytes)", ON_STREAM},
    {"a split communicator", 2, 0, 1, 4, 2, 2,
     "rank 0 sends 4 elements of int32 (16 bytes) to rank 1, which expects 2 (8 bytes)", ON_SPLIT},
    {"memory that peers map", 3, 2, 1, 200000, 100000, 100000,
     "rank 2 sends 200000 elements of int32 (800000 bytes) to rank 1, which expects 100000 ",
     IN_LENT_MEMORY},
};

static tuttiResult_t exchange(tuttiComm_t comm, int nranks, const size_t *gives,
                              const size_t *takes, tuttiStream_t stream)
{
    int32_t *input = calloc(sum_of(gives, nranks) + 1, sizeof *input);
    int32_t *output = calloc(sum_of(takes, nranks) + 1, sizeof *output);
    tuttiResult_t result = tuttiAlltoAllV(input, gives, NULL, output, takes, NULL, tuttiInt32, comm,
                                          stream);

    if (stream != NULL && result == tuttiSuccess)
        result = tuttiStreamSynchronize(stream);
    free(input);
    free(output);
    return result;
}

static tuttiResult_t exchange_lent(tuttiComm_t comm, int nranks, const size_t *gives,
                                   const size_t *takes)
{
    void *input = NULL, *output = NULL;
    tuttiResult_t result = tuttiMemAlloc(&input, sum_of(gives, nranks) * sizeof(int32_t));

    if (result == tuttiSuccess)
        result = tuttiMemAlloc(&output, sum_of(takes, nranks) * sizeof(int32_t));
    if (result == tuttiSuccess)
        result = tuttiAlltoAllV(input, gives, NULL, output, takes, NULL, tuttiInt32, comm, NULL);
    tuttiMemFree(input);
    tuttiMemFree(output);
    return result;
}

static tuttiResult_t exchange_twice(tuttiComm_t comm, int nranks, const size_t *gives,
                                    const size_t *takes)
{
    static const size_t ones[MOST] = {1, 1, 1, 1, 1};
    int32_t few[2][MOST] = {{0}};
    int32_t *input = calloc(sum_of(gives, nranks) + 1, sizeof *input);
    int32_t *output = calloc(sum_of(takes, nranks) + 1, sizeof *output);
    tuttiResult_t result;

    tuttiGroupStart();
    tuttiAlltoAllV(few[0], ones, NULL, few[1], ones, NULL, tuttiInt32, comm, NULL);
    tuttiAlltoAllV(input, gives, NULL, output, takes, NULL, tuttiInt32, comm, NULL);
    result = tuttiGroupEnd();
    free(input);
    free(output);
    return result;
}

static tuttiResult_t exchange_pairs(struct crew_seat *seat)
{
    const struct pair *pair = seat->crew->context;
    size_t gives[MOST], takes[MOST];
    tuttiStream_t stream = NULL;
    tuttiComm_t comm = NULL;
    tuttiResult_t result;

    for (int i = 0; i < MOST; i++)
        gives[i] = takes[i] = pair->usual;
    if (seat->rank == pair->from)
        gives[pair->to] = pair->sent;
    if (seat->rank == pair->to)
        takes[pair->from] = pair->expected;
    switch (pair->style) {
    case SECOND_OF_GROUP: return exchange_twice(seat->comm, pair->nranks, gives, takes);
    case IN_LENT_MEMORY: return exchange_lent(seat->comm, pair->nranks, gives, takes);
    case ON_STREAM:
        result = tuttiHostStreamCreate(&stream);
        if (result == tuttiSuccess)
            result = exchange(seat->comm, pair->nranks, gives, takes, stream);
        tuttiHostStreamDestroy(stream);
        return result;
    case ON_SPLIT:
        result = tuttiCommSplit(seat->comm, 0, seat->rank, &comm, NULL);
        if (result == tuttiSuccess)
            result = exchange(comm, pair->nranks, gives, takes, NULL);
        tuttiCommDestroy(comm);
        return result;
    default: return exchange(seat->comm, pair->nranks, gives, takes, NULL);
    }
}

static void check_pair(struct way way, const struct pair *pair)
{
    struct crew_board *board = ways_play(way, pair->nranks, exchange_pairs, pair);

    for (int rank = 0; rank < pair->nranks; rank++) {
        const struct crew_report *report = &board->reports[rank];
        bool is_one = rank == pair->from || rank == pair->to;

        if (is_one && (report->result != tuttiInvalidUsage ||
                       strstr(report->text, pair->named) == NULL))
            fail_msg("%s, %s: rank %d got %d: %s", way.name, pair->what, rank, (int)report->result,
                     report->text);
        if (!is_one && report->result != tuttiSuccess && report->result != tuttiInvalidUsage &&
            report->result != tuttiRemoteError)
            fail_msg("%s, %s: rank %d, which is not concerned, got %d: %s", way.name, pair->what,
                     rank, (int)report->result, report->text);
    }
    crew_clear(board);
}

static void both_ranks_of_a_pair_that_does_not_fit_are_told_at_once(void **state)
{
    const struct way *way = *state;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check_pair(*way, &pairs[i]);
}

/* ---- counts that must be the same on all ranks ----------------------------------------------- */

/* `odd` passes other counts than the others; they differ at `entry` first. */
struct counts {
    const char *what;
    int nranks, odd;
    size_t usual[MOST], other[MOST];
    int entry;
};

static const struct counts differences[] = {
    {"same total", 2, 1, {10, 10}, {12, 8}, 0},
    {"same total, other zeros", 2, 0, {20, 0}, {0, 20}, 0},
    {"same total, a zero", 2, 1, {20, 0}, {19, 1}, 0},
    {"other total", 2, 1, {10, 10}, {10, 12}, 1},
    {"a total of zero", 2, 0, {10, 10}, {0, 0}, 0},
    {"far apart", 2, 1, {10, 10}, {10, 100000}, 1},
    {"large, same total", 2, 0, {100000, 90000}, {90000, 100000}, 0},
    {"three ranks", 3, 2, {3, 0, 4}, {3, 4, 0}, 1},
    {"four ranks", 4, 1, {5, 5, 5, 5}, {5, 5, 4, 6}, 2},
    {"four ranks, other total", 4, 3, {5, 5, 5, 5}, {5, 6, 5, 5}, 1},
    {"four ranks, far apart", 4, 1, {5, 5, 5, 5}, {5, 5, 500000, 5}, 2},
    {"four ranks, large", 4, 2, {50000, 50000, 50000, 50000}, {50000, 50000, 50001, 49999}, 2},
    {"five ranks", 5, 4, {1, 2, 3, 4, 5}, {1, 2, 3, 5, 4}, 3},
};

struct counts_call {
    const struct counts *counts;
    bool reduces;
};

static tuttiResult_t pass_counts(struct crew_seat *seat)
{
    const struct counts_call *call = seat->crew->context;
    const size_t *mine = seat->rank == call->counts->odd ? call->counts->other
                                                         : call->counts->usual;
    size_t elements = sum_of(mine, seat->nranks) + 1;
    int32_t *input = calloc(elements, sizeof *input), *output = calloc(elements, sizeof *output);
    tuttiResult_t result =
        call->reduces ? tuttiReduceScatterV(input, output, mine, NULL, tuttiInt32, tuttiSum,
                                            seat->comm, NULL)
                      : tuttiAllGatherV(input, output, mine, NULL, tuttiInt32, seat->comm, NULL);

    if (result != tuttiSuccess)
        crew_add(&seat->board->steps[seat->rank]);
    else
        result = tuttiBarrier(seat->comm, NULL);
    free(input);
    free(output);
    return result;
}

static bool names_entry(const char *text, const struct counts *counts)
{
    size_t usual = counts->usual[counts->entry], other = counts->other[counts->entry];
    char seen_by_usual[96], seen_by_odd[96];

    snprintf(seen_by_usual, sizeof seen_by_usual, "recvcounts[%d] is %zu here, %zu on rank %d",
             counts->entry, usual, other, counts->odd);
    snprintf(seen_by_odd, sizeof seen_by_odd, "recvcounts[%d] is %zu here, %zu on rank ",
             counts->entry, other, usual);
    return strstr(text, seen_by_usual) != NULL || strstr(text, seen_by_odd) != NULL;
}

static void check_counts(struct way way, const struct counts_call *call)
{
    const struct counts *counts = call->counts;
    struct crew_board *board = ways_play(way, counts->nranks, pass_counts, call);
    const char *name = call->reduces ? "reduce_scatterv" : "allgatherv";
    int naming = 0;

    for (int rank = 0; rank < counts->nranks; rank++) {
        const struct crew_report *report = &board->reports[rank];
        bool must_name = counts->nranks == 2 || report->result == tuttiInvalidUsage;

        if (report->result == tuttiSuccess ||
            (must_name && !names_entry(report->text, counts)))
            fail_msg("%s, %s, %s: rank %d got %d: %s", way.name, name, counts->what, rank,
                     (int)report->result, report->text);
        naming += report->result == tuttiInvalidUsage;
    }
    if (naming == 0 || board->steps[counts->odd] == 0)
        fail_msg("%s, %s, %s: %d ranks name the count, rank %d fails %s", way.name, name,
                 counts->what, naming, counts->odd,
                 board->steps[counts->odd] ? "at this call" : "later");
    crew_clear(board);
}

static void ranks_that_pass_different_counts_are_told_which(void **state)
{
    const struct way *way = *state;

    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        for (int reduces = 0; reduces < 2; reduces++)
            check_counts(*way, &(struct counts_call){&differences[i], reduces == 1});
}

/* ---- v-forms that fit ------------------------------------------------------------------------ */

enum { ROUNDS = 12, MOST_COUNT = 6 };

static size_t given(int round, int from, int to)
{
    return (size_t)(round + 7 * from + 3 * to) % MOST_COUNT;
}

static int32_t element_of(int round, int from, int to, size_t index)
{
    return (int32_t)(((round * MOST + from) * MOST + to) * MOST_COUNT + (int)index);
}

/* One all-to-all-v of small counts, many of them zero. */
static tuttiResult_t swap_some(struct crew_seat *seat, int round)
{
    int32_t input[MOST * MOST_COUNT], output[MOST * MOST_COUNT];
    size_t gives[MOST], takes[MOST], at = 0;
    tuttiResult_t result;

    for (int peer = 0; peer < seat->nranks; peer++) {
        gives[peer] = given(round, seat->rank, peer);
        takes[peer] = given(round, peer, seat->rank);
        for (size_t i = 0; i < gives[peer]; i++)
            input[at++] = element_of(round, seat->rank, peer, i);
    }
    result = tuttiAlltoAllV(input, gives, NULL, output, takes, NULL, tuttiInt32, seat->comm, NULL);
    at = 0;
    for (int peer = 0; result == tuttiSuccess && peer < seat->nranks; peer++)
        for (size_t i = 0; i < takes[peer]; i++)
            if (output[at++] != element_of(round, peer, seat->rank, i))
                return tuttiInternalError;
    return result;
}

/* One all-gather-v, the blocks placed from behind, with a gap before each. */
static tuttiResult_t gather_some(struct crew_seat *seat, int round)
{
    int32_t input[MOST_COUNT], output[MOST * 2 * MOST_COUNT];
    size_t all[MOST], displs[MOST];
    tuttiResult_t result;

    for (int peer = 0; peer < seat->nranks; peer++) {
        all[peer] = given(round, peer, 0);
        displs[peer] = (size_t)(seat->nranks - 1 - peer) * 2 * MOST_COUNT + 1;
    }
    for (size_t i = 0; i < all[seat->rank]; i++)
        input[i] = element_of(round, seat->rank, 0, i);
    result = tuttiAllGatherV(all[seat->rank] > 0 ? input : NULL, output, all, displs, tuttiInt32,
                             seat->comm, NULL);
    for (int peer = 0; result == tuttiSuccess && peer < seat->nranks; peer++)
        for (size_t i = 0; i < all[peer]; i++)
            if (output[displs[peer] + i] != element_of(round, peer, 0, i))
                return tuttiInternalError;
    return result;
}

static tuttiResult_t call_what_fits(struct crew_seat *seat)
{
    static const size_t nothing[MOST] = {0};
    tuttiResult_t result = tuttiSuccess;

    for (int round = 0; round < ROUNDS && result == tuttiSuccess; round++) {
        result = swap_some(seat, round);
        if (result == tuttiSuccess)
            result = gather_some(seat, round);
        if (result == tuttiSuccess)
            result = tuttiAllGatherV(NULL, NULL, nothing, NULL, tuttiInt32, seat->comm, NULL);
        if (result == tuttiSuccess)
            result = tuttiAlltoAllV(NULL, nothing, NULL, NULL, nothing, NULL, tuttiInt32,
                                    seat->comm, NULL);
        if (result == tuttiSuccess)
            result = tuttiReduceScatterV(NULL, NULL, nothing, NULL, tuttiInt32, tuttiSum,
                                         seat->comm, NULL);
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
        cmocka_unit_test(both_ranks_of_a_pair_that_does_not_fit_are_told_at_once),
        cmocka_unit_test(ranks_that_pass_different_counts_are_told_which),
        cmocka_unit_test(counts_that_fit_are_right_also_where_some_or_all_are_zero)};

    return ways_run("v-forms", tests, sizeof tests / sizeof *tests);
}
