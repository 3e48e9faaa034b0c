/* SPDX-License-Identifier: Apache-2.0
 * Ranks make different calls. All of them get an error, one with both calls, and none waits
 * forever. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

enum { NRANKS = 3, ODD_RANK = 1 };

struct difference {
    const char *what;
    struct crew_call most, odd;   /* what the other ranks call, what ODD_RANK calls */
    const char *named[2];         /* in one rank's message */
};

static const struct difference differences[] = {
    {"collective", {CREW_ALLREDUCE, 100, tuttiFloat32, tuttiSum, 0},
     {CREW_ALLGATHER, 100, tuttiFloat32, tuttiSum, 0},
     {"allreduce(count 100", "allgather(count 100"}},
    {"collective, without data", {CREW_BARRIER, 0, tuttiInt8, tuttiSum, 0},
     {CREW_ALLREDUCE, 9, tuttiInt32, tuttiSum, 0}, {"barrier", "allreduce(count 9"}},
    {"vector form", {CREW_ALLGATHER, 64, tuttiInt32, tuttiSum, 0},
     {CREW_ALLGATHERV, 64, tuttiInt32, tuttiSum, 0}, {"allgather(count", "allgatherv(int32"}},
    {"count", {CREW_ALLREDUCE, 1000, tuttiInt32, tuttiSum, 0},
     {CREW_ALLREDUCE, 1001, tuttiInt32, tuttiSum, 0}, {"count 1000", "count 1001"}},
    {"count, far apart", {CREW_ALLREDUCE, 1, tuttiFloat64, tuttiSum, 0},
     {CREW_ALLREDUCE, 100000, tuttiFloat64, tuttiSum, 0}, {"count 1,", "count 100000"}},
    {"count of all-to-all", {CREW_ALLTOALL, 50000, tuttiInt32, tuttiSum, 0},
     {CREW_ALLTOALL, 40000, tuttiInt32, tuttiSum, 0}, {"count 50000", "count 40000"}},
    {"total of counts", {CREW_REDUCE_SCATTERV, 10, tuttiInt32, tuttiSum, 0},
     {CREW_REDUCE_SCATTERV, 20, tuttiInt32, tuttiSum, 0}, {"recvcounts[0] is", "20"}},
    {"type", {CREW_ALLREDUCE, 500, tuttiFloat32, tuttiSum, 0},
     {CREW_ALLREDUCE, 500, tuttiInt32, tuttiSum, 0}, {"float32", "int32"}},
    {"op", {CREW_REDUCE_SCATTER, 500, tuttiFloat32, tuttiSum, 0},
     {CREW_REDUCE_SCATTER, 500, tuttiFloat32, tuttiMax, 0}, {"sum", "max"}},
    {"average", {CREW_ALLREDUCE, 5, tuttiFloat32, tuttiSum, 0},
     {CREW_ALLREDUCE, 5, tuttiFloat32, tuttiAvg, 0}, {"sum", "avg"}},
    {"inclusive or exclusive", {CREW_SCAN, 70, tuttiInt32, tuttiSum, 0},
     {CREW_EXCLUSIVE_SCAN, 70, tuttiInt32, tuttiSum, 0},
     {"scan(count 70", "exclusive_scan(count 70"}},
    {"count of a scan", {CREW_SCAN, 1000, tuttiInt32, tuttiSum, 0},
     {CREW_SCAN, 1001, tuttiInt32, tuttiSum, 0}, {"count 1000", "count 1001"}},
    {"count of a large scan", {CREW_SCAN, 300000, tuttiInt32, tuttiSum, 0},
     {CREW_SCAN, 200000, tuttiInt32, tuttiSum, 0}, {"count 300000", "count 200000"}},
    {"op of a scan", {CREW_SCAN, 500, tuttiInt32, tuttiMin, 0},
     {CREW_SCAN, 500, tuttiInt32, tuttiMax, 0}, {"min", "max"}},
    {"type of an exclusive scan", {CREW_EXCLUSIVE_SCAN, 500, tuttiFloat32, tuttiSum, 0},
     {CREW_EXCLUSIVE_SCAN, 500, tuttiInt32, tuttiSum, 0}, {"float32", "int32"}},
    {"operation on bits", {CREW_ALLREDUCE, 5, tuttiInt16, tuttiBand, 0},
     {CREW_ALLREDUCE, 5, tuttiInt16, tuttiLxor, 0}, {"band", "lxor"}},
    {"root of broadcast", {CREW_BROADCAST, 300, tuttiInt32, tuttiSum, 0},
     {CREW_BROADCAST, 300, tuttiInt32, tuttiSum, ODD_RANK}, {"root 0", "root 1"}},
    {"root of a large broadcast", {CREW_BROADCAST, 300000, tuttiInt32, tuttiSum, 0},
     {CREW_BROADCAST, 300000, tuttiInt32, tuttiSum, ODD_RANK}, {"root 0", "root 1"}},
    {"root of reduce", {CREW_REDUCE, 300, tuttiInt32, tuttiSum, 2},
     {CREW_REDUCE, 300, tuttiInt32, tuttiSum, 0}, {"root 2", "root 0"}},
    {"root of gather", {CREW_GATHER, 300, tuttiInt32, tuttiSum, 2},
     {CREW_GATHER, 300, tuttiInt32, tuttiSum, ODD_RANK}, {"root 2", "root 1"}},
    {"root of scatter", {CREW_SCATTER, 300, tuttiInt32, tuttiSum, 2},
     {CREW_SCATTER, 300, tuttiInt32, tuttiSum, ODD_RANK}, {"root 2", "root 1"}},
    {"root of gather-v", {CREW_GATHERV, 300, tuttiInt32, tuttiSum, 2},
     {CREW_GATHERV, 300, tuttiInt32, tuttiSum, ODD_RANK}, {"root 2", "root 1"}},
    {"root of scatter-v", {CREW_SCATTERV, 300000, tuttiInt32, tuttiSum, 2},
     {CREW_SCATTERV, 300000, tuttiInt32, tuttiSum, ODD_RANK}, {"root 2", "root 1"}},
    {"vector form of gather", {CREW_GATHER, 64, tuttiInt32, tuttiSum, 0},
     {CREW_GATHERV, 64, tuttiInt32, tuttiSum, 0}, {"gather(count", "gatherv("}},
    {"type of scatter-v", {CREW_SCATTERV, 64, tuttiInt32, tuttiSum, 0},
     {CREW_SCATTERV, 64, tuttiFloat32, tuttiSum, 0}, {"int32", "float32"}},
    {"own count of gather-v", {CREW_GATHERV, 10, tuttiInt32, tuttiSum, 0},
     {CREW_GATHERV, 20, tuttiInt32, tuttiSum, 0}, {"rank 1 sends 20", "rank 0, which expects 10"}},
    {"count of a message", {CREW_SENDRECV, 10, tuttiInt32, tuttiSum, 0},
     {CREW_SENDRECV, 11, tuttiInt32, tuttiSum, 0}, {"count 10", "count 11"}},
    {"count of a large message", {CREW_SENDRECV, 200000, tuttiInt32, tuttiSum, 0},
     {CREW_SENDRECV, 100000, tuttiInt32, tuttiSum, 0}, {"count 200000", "count 100000"}},
    {"type of a message", {CREW_SENDRECV, 10, tuttiInt32, tuttiSum, 0},
     {CREW_SENDRECV, 10, tuttiUint32, tuttiSum, 0}, {" int32", "uint32"}},
};

/* Calls that match come before and after: a rank may only learn of the difference in the next call
 * when the one that differs asked nothing of its peers. */
static tuttiResult_t differ(struct crew_seat *seat)
{
    const struct difference *difference = seat->crew->context;
    struct crew_call barrier = {.kind = CREW_BARRIER};
    tuttiResult_t result = crew_call(seat, &barrier);

    if (result == tuttiSuccess)
        result = crew_call(seat, seat->rank == ODD_RANK ? &difference->odd : &difference->most);
    for (int i = 0; i < 2 && result == tuttiSuccess; i++)
        result = crew_call(seat, &barrier);
    return result;
}

/* Both calls, or one of them against the barrier that comes next: a rank of which the call asked
 * nothing has gone on to that. */
static bool names_both(const char *text, const struct difference *difference)
{
    bool first = strstr(text, difference->named[0]) != NULL;
    bool second = strstr(text, difference->named[1]) != NULL;

    return (first && second) ||
           ((first || second) && strstr(text, "is barrier") != NULL && strstr(text, "number 3"));
}

static void check(const struct crew *crew, const char *way, const struct difference *difference)
{
    struct crew_board *board = crew_run(crew);
    bool is_named = false;

    for (int rank = 0; rank < NRANKS; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (report->result != tuttiInvalidUsage && report->result != tuttiRemoteError)
            fail_msg("%s, %s: rank %d got %d: %s", way, difference->what, rank, (int)report->result,
                     report->text);
        is_named |= names_both(report->text, difference);
    }
    if (!is_named)
        fail_msg("%s, %s: nobody names both calls: 0: %s 1: %s 2: %s", way, difference->what,
                 board->reports[0].text, board->reports[1].text, board->reports[2].text);
    crew_clear(board);
}

static void processes_that_call_different_things_are_all_told(void **state)
{
    const struct crew_way *way = *state;

    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        check(&(struct crew){.nranks = NRANKS, .environment = way->environment, .run = differ,
                             .timeout_ms = 600000, .context = &differences[i]},
              way->name, &differences[i]);
}

static void threads_that_call_different_things_are_all_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        check(&(struct crew){.nranks = NRANKS, .is_threads = true, .run = differ,
                             .timeout_ms = 600000, .context = &differences[i]},
              "threads", &differences[i]);
}

int main(void)
{
    struct CMUnitTest tests[16];
    int count = 0;

    tests[count++] = (struct CMUnitTest)cmocka_unit_test(
        threads_that_call_different_things_are_all_told);
    for (int i = 0; i < crew_way_count; i++)
        tests[count++] = (struct CMUnitTest){
            .name = crew_ways[i].name,
            .test_func = processes_that_call_different_things_are_all_told,
            .initial_state = (void *)(uintptr_t)&crew_ways[i]};
    return _cmocka_run_group_tests("ranks that differ", tests, (size_t)count, NULL, NULL);
}
