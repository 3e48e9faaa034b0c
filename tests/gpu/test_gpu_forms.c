/* SPDX-License-Identifier: Apache-2.0
 * Kernels and copies move the bytes that their forms say (algorithms/protocols.h). For every
 * collective and every protocol that runs it as a whole, the simulated driver counts the bytes
 * between each ordered pair of devices during a call. They must be the bytes that the schedule of
 * the form moves between these ranks, with the flags of the protocol, and the bytes by which ranks
 * greet and meet. Both are known exactly, so a single line too many or too few is found. */
#include "gpu/numbers.h"

#include "algorithms/protocols.h"
#include "base/result.h"
#include "base/round.h"
#include "device/cuda/work.h"
#include "schedule/access.h"
#include "schedule/bind.h"
#include "simcuda/cuda/traffic.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

enum { MOST_RANKS = 4 };

/* Elements of a block. The first is a whole number of lines for every number of ranks, so that
 * kernels and schedules cut a block into the same slices. With the second, slices differ. */
static const size_t counts[] = {3072, 1001};

/* Bytes from each rank to each other. */
struct pairs {
    uint64_t bytes[MOST_RANKS][MOST_RANKS];
};

/* One communicator, whose calls all run by one protocol. */
struct run {
    enum tutti_protocol protocol;
    bool is_windows;       /* ranks cannot use each other's buffers */
    struct pairs *counted; /* shared by all ranks */
};

struct call {
    enum tutti_collective collective;
    size_t count; /* of elements in a block */
    int root;
    bool is_in_place;
};

/* ---- what a form moves ----------------------------------------------------------------------- */

/* Adds what a step of `rank` moves between it and others. */
static void add_step(const struct tutti_schedule *schedule, const struct tutti_step *step,
                     size_t count, struct pairs *pairs)
{
    size_t bytes = tutti_bind_step_bytes(schedule, step, sizeof(int32_t), count);
    struct tutti_touch touches[TUTTI_STEP_ACCESSES];
    uint32_t ntouches = tutti_step_accesses(step, touches), rank = schedule->rank;

    if (tutti_access_sends(step))
        pairs->bytes[rank][step->to] += bytes;
    for (uint32_t i = 0; i < ntouches; i++) {
        struct tutti_step_ranks peers = tutti_step_peers(schedule, step, touches[i].rank);

        for (uint32_t k = 0; k < peers.count; k++) {
            uint32_t peer = tutti_step_ranks_at(peers, k);

            if (peer == rank)
                continue;
            if (touches[i].is_write)
                pairs->bytes[rank][peer] += bytes;
            else
                pairs->bytes[peer][rank] += bytes;
        }
    }
}

/* Adds up what the schedules of all ranks move. Returns the chunks of a block. */
static uint32_t add_form(const struct tutti_algorithm *form, const struct call *call, int nranks,
                         struct pairs *pairs)
{
    struct tutti_shape shape = {.nranks = (uint32_t)nranks, .root = (uint32_t)call->root};
    uint32_t chunks = 1;

    for (shape.rank = 0; shape.rank < shape.nranks; shape.rank++) {
        struct tutti_schedule *schedule;

        if (tutti_algorithm_schedule(form, &shape, &schedule) != TUTTI_OK)
            abort();
        for (uint32_t i = 0; i < schedule->nsteps; i++)
            add_step(schedule, &schedule->steps[i], call->count, pairs);
        chunks = schedule->chunks_per_block;
        tutti_schedule_destroy(schedule);
    }
    return chunks;
}

/* ---- what a protocol adds -------------------------------------------------------------------- */

/* True if the call by TUTTI_PROTOCOL_DIRECT goes through windows. The buffer of an all-to-all in
 * place is never used directly. */
static bool goes_through_windows(const struct run *run, const struct call *call)
{
    return run->protocol == TUTTI_PROTOCOL_DIRECT &&
           (run->is_windows || (call->collective == TUTTI_ALLTOALL && call->is_in_place));
}

/* Returns the bytes by which each rank tells each other of a call and of its progress: a greeting,
 * and the posts and signals of device/cuda/core.cuh. All calls here are one piece. A post has four
 * words and its first signal, which is a word too; a signal is a word.
 *
 *   lines    the greeting
 *   copies   two meetings after the first
 *   direct   a post; "done"; through windows also "staged", and another one if ranks fetch results
 *            from windows at the end, which is so if each combines a slice for others */
static uint64_t overhead_bytes(const struct run *run, const struct call *call)
{
    const uint64_t word = sizeof(uint64_t), post = 5 * word;
    uint64_t bytes = sizeof(struct tutti_kernel_greeting);
    bool is_sliced = !tutti_input_is_per_rank(call->collective) &&
                     !tutti_output_is_per_rank(call->collective);

    if (run->protocol == TUTTI_PROTOCOL_COPIES)
        return bytes + 2 * word;
    if (run->protocol != TUTTI_PROTOCOL_DIRECT)
        return bytes;
    bytes += post + word;
    if (!goes_through_windows(run, call))
        return bytes;
    return bytes + (is_sliced && tutti_collective_reduces(call->collective) ? 2 * word : word);
}

/* Returns the bytes that travel for `bytes` bytes of data. What one rank sends to another by lines
 * is a whole number of the units of ll.cuh, of which LL sends no half that is empty. */
static uint64_t bytes_with_flags(enum tutti_protocol protocol, uint64_t bytes)
{
    double travel = (double)bytes * tutti_protocol_cost(protocol).bytes;

    switch (protocol) {
    case TUTTI_PROTOCOL_LL: return tutti_round_up((size_t)ceil(travel), 16);
    case TUTTI_PROTOCOL_LL128:
        return tutti_round_up((size_t)ceil(travel - 1e-6), TUTTI_KERNEL_LINE);
    default: return bytes;
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static tuttiResult_t make_call(const struct member *member, const struct call *call,
                               const int32_t *input, int32_t *output)
{
    tuttiComm_t comm = member->comm;
    size_t count = call->count;
    int root = call->root;

    switch (call->collective) {
    case TUTTI_ALLREDUCE:
        return tuttiAllReduce(input, output, count, tuttiInt32, tuttiSum, comm, NULL);
    case TUTTI_REDUCE:
        return tuttiReduce(input, output, count, tuttiInt32, tuttiSum, root, comm, NULL);
    case TUTTI_BROADCAST:
        return tuttiBroadcast(input, output, count, tuttiInt32, root, comm, NULL);
    case TUTTI_ALLGATHER: return tuttiAllGather(input, output, count, tuttiInt32, comm, NULL);
    case TUTTI_REDUCE_SCATTER:
        return tuttiReduceScatter(input, output, count, tuttiInt32, tuttiSum, comm, NULL);
    case TUTTI_ALLTOALL: return tuttiAlltoAll(input, output, count, tuttiInt32, comm, NULL);
    case TUTTI_GATHER: return tuttiGather(input, output, count, tuttiInt32, root, comm, NULL);
    case TUTTI_SCATTER: return tuttiScatter(input, output, count, tuttiInt32, root, comm, NULL);
    case TUTTI_BARRIER: return tuttiBarrier(comm, NULL);
    case TUTTI_SCAN:
        return tuttiScan(input, output, count, tuttiInt32, tuttiSum, comm, NULL);
    case TUTTI_EXCLUSIVE_SCAN:
        return tuttiExclusiveScan(input, output, count, tuttiInt32, tuttiSum, comm, NULL);
    default: abort();
    }
}

/* Moves one of two buffers into the other where the call is in place on this rank. */
static void overlay(const struct member *member, const struct call *call, int32_t **input,
                    int32_t **output)
{
    int64_t shift;

    if (!call->is_in_place)
        return;
    if (call->collective == TUTTI_ALLTOALL)
        *output = *input;
    else if (tutti_collective_in_place_shift(call->collective, (uint32_t)member->rank,
                                             (uint32_t)call->root, 1, &shift) && shift >= 0)
        *input = *output + (size_t)shift * call->count;
    else if (tutti_collective_in_place_shift(call->collective, (uint32_t)member->rank,
                                             (uint32_t)call->root, 1, &shift))
        *output = *input + (size_t)-shift * call->count;
}

/* Takes what this process has counted, and starts anew. */
static void take_traffic(uint64_t bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES])
{
    void *library = dlopen(getenv("TUTTI_CUDA_LIBRARY"), RTLD_LAZY | RTLD_NOLOAD);
    void *found = library != NULL ? dlsym(library, "cuSimTraffic") : NULL;
    void (*take)(uint64_t bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES]);

    if (found == NULL)
        abort();
    memcpy(&take, &found, sizeof take);
    take(bytes);
    dlclose(library);
}

/* Adds what this process has counted to what all ranks share. */
static void collect(const struct member *member, struct pairs *counted)
{
    uint64_t bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES];

    take_traffic(bytes);
    for (int from = 0; from < member->nranks; from++)
        for (int to = 0; to < member->nranks; to++)
            if (from != to)
                __atomic_fetch_add(&counted->bytes[from][to], bytes[from + 1][to + 1],
                                   __ATOMIC_RELAXED);
}

/* Compares what was counted with what the form moves. Kernels cut a block into whole lines for each
 * rank. Where schedules cut elsewhere, each of two slices may be off by a line for each rank. */
static void judge(struct member *member, const struct run *run, const struct call *call,
                  const struct tutti_algorithm *form)
{
    struct pairs moved = {0};
    uint32_t chunks = add_form(form, call, member->nranks, &moved);
    size_t lines = (size_t)member->nranks * TUTTI_KERNEL_LINE;
    bool is_even = chunks == 1 || call->count * sizeof(int32_t) % lines == 0;
    uint64_t slack = is_even ? 0 : 2 * lines;

    for (int from = 0; from < member->nranks; from++)
        for (int to = 0; to < member->nranks; to++) {
            uint64_t found = run->counted->bytes[from][to];
            uint64_t wanted = from == to ? 0
                                         : bytes_with_flags(run->protocol, moved.bytes[from][to]) +
                                               overhead_bytes(run, call);

            if (found + slack < wanted || found > wanted + slack)
                member_complain(member, "%s %s/%s%s, %d ranks, root %d, %zu elements%s: %d sends "
                                "%llu bytes to %d, not %llu",
                                tutti_collective_name(call->collective), form->name,
                                tutti_protocol_name(run->protocol),
                                goes_through_windows(run, call) ? " through windows" : "",
                                member->nranks, call->root, call->count,
                                call->is_in_place ? " in place" : "", from,
                                (unsigned long long)found, to, (unsigned long long)wanted);
        }
}

/* Complains unless the protocol will run the call. */
static void expect_protocol(struct member *member, const struct run *run, const struct call *call,
                            const int32_t *input)
{
    tuttiExplanation_t told = {.size = sizeof told};
    char wanted[80];

    snprintf(wanted, sizeof wanted, "%s/%s",
             tutti_protocol_form(run->protocol, call->collective)->name,
             tutti_protocol_name(run->protocol));
    EXPECT_OK(member, tuttiCommExplain(member->comm, tutti_collective_name(call->collective), input,
                                       call->count, tuttiInt32, tuttiSum, call->root, &told));
    if (strcmp(told.algorithm, wanted) != 0)
        member_complain(member, "%s runs by %s, not %s", tutti_collective_name(call->collective),
                        told.algorithm, wanted);
}

static void compare(struct member *member, const struct run *run, const struct call *call,
                    int32_t *input, int32_t *output)
{
    const struct tutti_algorithm *form = goes_through_windows(run, call)
        ? tutti_protocol_window_form(call->collective)
        : tutti_protocol_form(run->protocol, call->collective);

    if (form == NULL)
        return;
    overlay(member, call, &input, &output);
    expect_protocol(member, run, call, input);
    member_meet(member);
    collect(member, run->counted);
    member_meet(member);
    if (member->rank == 0)
        memset(run->counted, 0, sizeof *run->counted);
    member_meet(member);
    EXPECT_OK(member, make_call(member, call, input, output));
    member_meet(member);
    collect(member, run->counted);
    member_meet(member);
    if (member->rank == 0)
        judge(member, run, call, form);
}

static void compare_all(struct member *member)
{
    const struct run *run = member->context;
    size_t most = counts[0] * (size_t)member->nranks;
    int32_t *input = numbers_make(member, most, member->rank, 1);
    int32_t *output = numbers_make(member, most, 0, 0);

    for (int collective = 0; collective < TUTTI_COLLECTIVE_COUNT; collective++) {
        bool has_root = tutti_collective_has_root((uint32_t)collective);

        for (int root = 0; root <= (has_root ? member->nranks / 2 : 0); root += member->nranks / 2)
            for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++)
                compare(member, run,
                        &(struct call){(enum tutti_collective)collective, counts[i / 2], root,
                                       i % 2 == 1}, input, output);
    }
    numbers_drop(member, output, most);
    numbers_drop(member, input, most);
}

/* ---- communicators --------------------------------------------------------------------------- */

/* Sets the rules that make every collective run by the protocol. */
static void choose(enum tutti_protocol protocol)
{
    char rules[1000] = "";

    for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++) {
        const struct tutti_algorithm *form =
            tutti_protocol_form(protocol, (enum tutti_collective)i);
        size_t length = strlen(rules);

        if (form != NULL)
            snprintf(rules + length, sizeof rules - length, "%s %s/%s; ",
                     tutti_collective_name((enum tutti_collective)i), form->name,
                     tutti_protocol_name(protocol));
    }
    setenv("TUTTI_TUNE", rules, 1);
    setenv("TUTTI_GPU_COPY_ENGINE_BYTES", protocol == TUTTI_PROTOCOL_COPIES ? "1" : "0", 1);
}

/* Processes do not use each other's plain memory directly, unless it is registered. */
static void run_by(enum tutti_protocol protocol, bool is_windows)
{
    struct pairs *counted = mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct run run = {protocol, is_windows, counted};

    assert_true(counted != MAP_FAILED);
    setenv("SIMCUDA_DEVICES", "4", 1);
    setenv("SIMCUDA_TRAFFIC", "1", 1);
    setenv("TUTTI_GPU_MEMORY_BYTES", "16M", 1); /* so that each call is one piece, also of lines */
    choose(protocol);
    for (int nranks = 2; nranks <= MOST_RANKS; nranks++) {
        gpus_use(nranks, -1, GPU_MEMORY_PLAIN);
        world_run(is_windows ? LAUNCH_PROCESSES : LAUNCH_THREADS, nranks, compare_all, &run);
    }
    munmap(counted, sizeof *counted);
}

static void lines_with_flags_in_each_word_move_what_their_forms_say(void **state)
{
    (void)state;
    run_by(TUTTI_PROTOCOL_LL, false);
}

static void lines_of_128_bytes_move_what_their_forms_say(void **state)
{
    (void)state;
    run_by(TUTTI_PROTOCOL_LL128, false);
}

static void direct_accesses_move_what_their_forms_say(void **state)
{
    (void)state;
    run_by(TUTTI_PROTOCOL_DIRECT, false);
}

static void calls_through_windows_move_what_their_forms_say(void **state)
{
    (void)state;
    if (launch_is_watched(LAUNCH_PROCESSES))
        run_by(TUTTI_PROTOCOL_DIRECT, true);
}

static void copies_move_what_their_forms_say(void **state)
{
    (void)state;
    run_by(TUTTI_PROTOCOL_COPIES, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_with_flags_in_each_word_move_what_their_forms_say),
        cmocka_unit_test(lines_of_128_bytes_move_what_their_forms_say),
        cmocka_unit_test(direct_accesses_move_what_their_forms_say),
        cmocka_unit_test(calls_through_windows_move_what_their_forms_say),
        cmocka_unit_test(copies_move_what_their_forms_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
