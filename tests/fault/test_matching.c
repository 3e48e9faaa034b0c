/* SPDX-License-Identifier: Apache-2.0
 * Ranks make matching calls with different counts, buffers, streams or neighbors. That is no
 * mismatch, then or later. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <time.h>

enum { NRANKS = 4, COUNT = 700, ROUNDS = 12 };

#define TRY(call)                        \
    do {                                 \
        tuttiResult_t result_ = (call);  \
        if (result_ != tuttiSuccess)     \
            return result_;              \
    } while (0)

static int32_t *elements(void)
{
    static _Thread_local int32_t memory[2][NRANKS * COUNT * 2];
    static _Thread_local int turn;

    return memory[turn++ % 2];
}

/* Every rank sends other counts to others, and keeps them elsewhere. */
static tuttiResult_t call_vectors(struct crew_seat *seat)
{
    size_t sends[NRANKS], receives[NRANKS], alike[NRANKS], places[NRANKS], total = 0;

    for (int peer = 0; peer < NRANKS; peer++) {
        sends[peer] = (size_t)(10 * seat->rank + peer);
        receives[peer] = (size_t)(10 * peer + seat->rank);
        alike[peer] = (size_t)(peer * 7);
        places[peer] = total + (size_t)(seat->rank * peer);
        total = places[peer] + alike[peer];
    }
    TRY(tuttiAlltoAllV(elements(), sends, NULL, elements(), receives, NULL, tuttiInt32, seat->comm,
                       NULL));
    TRY(tuttiAllGatherV(elements(), elements(), alike, places, tuttiInt32, seat->comm, NULL));
    return tuttiReduceScatterV(elements(), elements(), alike, places, tuttiInt32, tuttiMax,
                               seat->comm, NULL);
}

/* Only the root has all counts. */
static tuttiResult_t call_rooted_vectors(struct crew_seat *seat, int root)
{
    size_t counts[NRANKS], mine;
    bool is_root = seat->rank == root;

    for (int peer = 0; peer < NRANKS; peer++)
        counts[peer] = (size_t)((peer + root) % 3 * 5);
    mine = counts[seat->rank];
    TRY(tuttiGatherV(mine > 0 ? elements() : NULL, mine, is_root ? elements() : NULL,
                     is_root ? counts : NULL, NULL, tuttiInt32, root, seat->comm, NULL));
    return tuttiScatterV(is_root ? elements() : NULL, is_root ? counts : NULL, NULL,
                         mine > 0 ? elements() : NULL, mine, tuttiInt32, root, seat->comm, NULL);
}

/* Roots go round; some ranks work in place, some give no buffer where none is asked for. */
static tuttiResult_t call_rooted(struct crew_seat *seat, int round)
{
    int root = round % NRANKS, rank = seat->rank;
    int32_t *one = elements(), *other = elements();

    TRY(tuttiBroadcast(rank == root ? other : NULL, other, COUNT, tuttiInt32, root, seat->comm,
                       NULL));
    TRY(tuttiReduce(one, rank == root ? other : NULL, COUNT, tuttiInt32, tuttiSum, root, seat->comm,
                    NULL));
    TRY(tuttiGather(rank == root ? other + root * COUNT : one, rank == root ? other : NULL, COUNT,
                    tuttiInt32, root, seat->comm, NULL));
    TRY(tuttiScatter(rank == root ? one : NULL, rank == root ? one + root * COUNT : other, COUNT,
                     tuttiInt32, root, seat->comm, NULL));
    TRY(call_rooted_vectors(seat, root));
    return tuttiAllReduce(rank % 2 ? one : other, other, COUNT, tuttiInt32, tuttiSum, seat->comm,
                          NULL);
}

/* Rank 0 has no result of an exclusive scan, and may leave a scan before the others. */
static tuttiResult_t call_scans(struct crew_seat *seat)
{
    int32_t *one = elements(), *other = elements();

    TRY(tuttiScan(one, seat->rank % 2 ? one : other, COUNT, tuttiInt32, tuttiSum, seat->comm,
                  NULL));
    return tuttiExclusiveScan(one, seat->rank == 0 ? NULL : other, COUNT, tuttiInt32, tuttiMax,
                              seat->comm, NULL);
}

/* One rank may be many calls ahead of the others; calls without elements are none at all. */
static tuttiResult_t call_ahead(struct crew_seat *seat)
{
    for (int i = 0; i < 40; i++) {
        TRY(tuttiBroadcast(elements(), elements(), (size_t)(i % 3), tuttiInt32, 0, seat->comm,
                           NULL));
        TRY(tuttiReduce(elements(), elements(), 1, tuttiInt32, tuttiSum, NRANKS - 1, seat->comm,
                        NULL));
    }
    return tuttiBarrier(seat->comm, NULL);
}

/* A batch of collectives, beside messages that only some ranks exchange, and a sum to which each
 * rank contributes by a factor of its own. */
static tuttiResult_t call_group(struct crew_seat *seat, int round)
{
    int32_t factor = seat->rank + 1, messages[4] = {0};
    tuttiRedOp_t sum;

    TRY(tuttiRedOpCreatePreMulSum(&sum, &factor, tuttiInt32, tuttiScalarHostImmediate, seat->comm));
    TRY(tuttiGroupStart());
    tuttiAllReduce(elements(), elements(), COUNT, tuttiInt32, sum, seat->comm, NULL);
    for (int i = 0; i < round % 3 + 1 && seat->rank < 2; i++) {
        if (seat->rank == 0)
            tuttiSend(&messages[0], 1, tuttiInt32, 1, seat->comm, NULL);
        else
            tuttiRecv(&messages[i + 1], 1, tuttiInt32, 0, seat->comm, NULL);
    }
    tuttiBroadcast(elements(), elements(), 5, tuttiInt32, round % NRANKS, seat->comm, NULL);
    tuttiReduce(elements(), elements(), 6, tuttiInt32, tuttiSum, 1, seat->comm, NULL);
    TRY(tuttiGroupEnd());
    return tuttiRedOpDestroy(sum, seat->comm);
}

/* Ranks queue the same calls on different streams of their own. */
static tuttiResult_t call_on_streams(struct crew_seat *seat)
{
    tuttiStream_t streams[3] = {NULL, NULL, NULL};
    int32_t values[8] = {0};

    TRY(tuttiHostStreamCreate(&streams[1]));
    TRY(tuttiHostStreamCreate(&streams[2]));
    for (int i = 0; i < 8; i++)
        TRY(tuttiBroadcast(&values[i], &values[i], 1, tuttiInt32, i % NRANKS, seat->comm,
                           streams[(i + seat->rank) % 3]));
    TRY(tuttiStreamSynchronize(streams[1]));
    TRY(tuttiStreamSynchronize(streams[2]));
    TRY(tuttiHostStreamDestroy(streams[1]));
    return tuttiHostStreamDestroy(streams[2]);
}

/* Each half makes its own calls; then all of them go on together. */
static tuttiResult_t call_halves(struct crew_seat *seat)
{
    int half = seat->rank % 2;
    tuttiComm_t comm;

    TRY(tuttiCommSplit(seat->comm, half, -seat->rank, &comm, NULL));
    for (int i = 0; i <= 3 * half; i++) {
        TRY(tuttiBroadcast(elements(), elements(), (size_t)(9 + half), tuttiInt32, half, comm,
                           NULL));
        TRY(tuttiAllReduce(elements(), elements(), 3, tuttiInt32, tuttiSum, comm, NULL));
    }
    TRY(tuttiBarrier(seat->comm, NULL));
    return tuttiCommDestroy(comm);
}

/* The last rank is so late that the others ask themselves why. */
static tuttiResult_t call_late(struct crew_seat *seat, int root)
{
    if (seat->rank == NRANKS - 1)
        nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    return tuttiReduce(elements(), elements(), 20, tuttiInt32, tuttiSum, root, seat->comm, NULL);
}

static tuttiResult_t match(struct crew_seat *seat)
{
    tuttiTuneConfig_t tuning = TUTTI_TUNE_CONFIG_INITIALIZER;

    tuning.collectives = "broadcast,barrier";
    tuning.maxBytes = 64;
    tuning.budgetMs = 20;
    for (int round = 0; round < ROUNDS; round++) {
        TRY(call_vectors(seat));
        TRY(call_rooted(seat, round));
        TRY(call_scans(seat));
        TRY(call_group(seat, round));
    }
    TRY(call_ahead(seat));
    TRY(call_on_streams(seat));
    TRY(call_halves(seat));
    TRY(tuttiCommTune(seat->comm, NULL, &tuning));
    TRY(call_rooted(seat, 1));
    TRY(call_late(seat, NRANKS - 1));
    TRY(tuttiBarrier(seat->comm, NULL));
    /* Rank 0 waits for the last one while those between may leave. */
    return call_late(seat, 0);
}

static void check(const struct crew *crew, const char *way)
{
    struct crew_board *board = crew_run(crew);

    for (int rank = 0; rank < NRANKS; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("%s: rank %d got %d: %s", way, rank, (int)board->reports[rank].result,
                     board->reports[rank].text);
    crew_clear(board);
}

static void calls_of_processes_that_match_succeed(void **state)
{
    const struct crew_way *way = *state;

    check(&(struct crew){.nranks = NRANKS, .environment = way->environment, .run = match,
                         .timeout_ms = 600000},
          way->name);
}

static void calls_of_threads_that_match_succeed(void **state)
{
    const struct crew_way *way = *state;

    check(&(struct crew){.nranks = NRANKS, .environment = way->environment, .is_threads = true,
                         .run = match, .timeout_ms = 600000},
          way->name);
}

int main(void)
{
    struct CMUnitTest tests[32];
    size_t count = 0;

    for (int i = 0; i < crew_way_count; i++) {
        struct CMUnitTest test = {.name = crew_ways[i].name,
                                  .initial_state = (void *)(uintptr_t)&crew_ways[i]};

        test.test_func = calls_of_processes_that_match_succeed;
        tests[count++] = test;
        test.test_func = calls_of_threads_that_match_succeed;
        tests[count++] = test;
    }
    return _cmocka_run_group_tests("ranks that match", tests, count, NULL, NULL);
}
