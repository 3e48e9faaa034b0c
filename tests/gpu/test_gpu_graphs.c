/* SPDX-License-Identifier: Apache-2.0
 * Calls are captured in graphs. Each replay makes them again, with the contents of memory at that
 * time. */
#include "gpu/numbers.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 600, LARGE = 20000, REPLAYS = 20, MANY = 40 };

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A function that callers use and the library does not. */
static void *find(const char *name)
{
    return dlsym(gpus_driver()->library, name);
}

static void begin_in_mode(struct member *member, tuttiStream_t stream, int mode)
{
    int (*call)(void *, int);

    if (!gpus_has(member))
        return;
    *(void **)&call = find("cuStreamBeginCapture_v2");
    EXPECT(member, call != NULL && call(stream, mode) == TUTTI_CU_SUCCESS);
}

/* Other threads go on with their own calls: captures of one thread must let them. */
static void begin(struct member *member, tuttiStream_t stream)
{
    begin_in_mode(member, stream, TUTTI_CU_CAPTURE_THREAD_LOCAL);
}

static struct tutti_cu_exec *end(struct member *member, tuttiStream_t stream)
{
    int (*end_capture)(void *, struct tutti_cu_graph **), (*destroy)(struct tutti_cu_graph *);
    int (*instantiate)(struct tutti_cu_exec **, struct tutti_cu_graph *, unsigned long long);
    struct tutti_cu_graph *graph = NULL;
    struct tutti_cu_exec *exec = NULL;

    if (!gpus_has(member))
        return NULL;
    *(void **)&end_capture = find("cuStreamEndCapture");
    *(void **)&instantiate = find("cuGraphInstantiateWithFlags");
    *(void **)&destroy = find("cuGraphDestroy");
    EXPECT(member, end_capture(stream, &graph) == TUTTI_CU_SUCCESS);
    EXPECT(member, instantiate(&exec, graph, 0) == TUTTI_CU_SUCCESS);
    EXPECT(member, destroy(graph) == TUTTI_CU_SUCCESS);
    return exec;
}

static void play(struct member *member, struct tutti_cu_exec *exec, tuttiStream_t stream)
{
    int (*launch)(struct tutti_cu_exec *, void *);

    *(void **)&launch = find("cuGraphLaunch");
    EXPECT(member, launch(exec, stream) == TUTTI_CU_SUCCESS);
}

static void drop(struct member *member, struct tutti_cu_exec *exec)
{
    int (*destroy)(struct tutti_cu_exec *);

    if (!gpus_has(member))
        return;
    *(void **)&destroy = find("cuGraphExecDestroy");
    EXPECT(member, destroy(exec) == TUTTI_CU_SUCCESS);
}

/* ---- what is captured ------------------------------------------------------------------------ */

struct scene {
    int32_t *given, *summed, *told, *taken, *gathered, *scattered, *scanned;
    tuttiStream_t stream;
};

static void open_scene(struct member *member, struct scene *scene)
{
    scene->given = numbers_make(member, COUNT, 0, 0);
    scene->summed = numbers_make(member, COUNT, 0, 0);
    scene->told = numbers_make(member, COUNT, 0, 0);
    scene->taken = numbers_make(member, COUNT, 0, 0);
    scene->gathered = numbers_make(member, COUNT, 0, 0);
    scene->scattered = numbers_make(member, COUNT, 0, 0);
    scene->scanned = numbers_make(member, COUNT, 0, 0);
    scene->stream = numbers_stream(member);
}

static void close_scene(struct member *member, struct scene *scene)
{
    member_meet(member);
    numbers_drop_stream(member, scene->stream);
    numbers_drop(member, scene->given, COUNT);
    numbers_drop(member, scene->summed, COUNT);
    numbers_drop(member, scene->told, COUNT);
    numbers_drop(member, scene->taken, COUNT);
    numbers_drop(member, scene->gathered, COUNT);
    numbers_drop(member, scene->scattered, COUNT);
    numbers_drop(member, scene->scanned, COUNT);
}

/* Rank 1 gathers i elements from each rank i, and rank 0 scatters as many to it. The roots' counts
 * exist only while the calls are captured. */
static void move_uneven(struct member *member, const struct scene *scene)
{
    size_t *counts = calloc((size_t)member->nranks, sizeof *counts);

    for (int i = 0; i < member->nranks; i++)
        counts[i] = (size_t)i;
    EXPECT_OK(member, tuttiGatherV(scene->given, (size_t)member->rank, scene->gathered,
                                   member->rank == 1 ? counts : NULL, NULL, tuttiInt32, 1,
                                   member->comm, scene->stream));
    EXPECT_OK(member, tuttiScatterV(scene->given, member->rank == 0 ? counts : NULL, NULL,
                                    scene->scattered, (size_t)member->rank, tuttiInt32, 0,
                                    member->comm, scene->stream));
    free(counts);
}

/* An all-reduce, a scan and two v-forms by themselves, then a broadcast and a ring of messages together. */
static void call(struct member *member, const struct scene *scene)
{
    int next = (member->rank + 1) % member->nranks;
    int before = (member->rank + member->nranks - 1) % member->nranks;

    EXPECT_OK(member, tuttiAllReduce(scene->given, scene->summed, COUNT, tuttiInt32, tuttiSum,
                                     member->comm, scene->stream));
    EXPECT_OK(member, tuttiScan(scene->given, scene->scanned, COUNT, tuttiInt32, tuttiSum,
                                member->comm, scene->stream));
    move_uneven(member, scene);
    EXPECT_OK(member, tuttiGroupStart());
    EXPECT_OK(member, tuttiSend(scene->given, COUNT, tuttiInt32, next, member->comm,
                                scene->stream));
    EXPECT_OK(member, tuttiBroadcast(scene->given, scene->told, COUNT, tuttiInt32, 1, member->comm,
                                     scene->stream));
    EXPECT_OK(member, tuttiRecv(scene->taken, COUNT, tuttiInt32, before, member->comm,
                                scene->stream));
    EXPECT_OK(member, tuttiGroupEnd());
}

static void expect(struct member *member, const struct scene *scene, int round)
{
    int before = (member->rank + member->nranks - 1) % member->nranks;

    numbers_settle(member, scene->stream);
    numbers_expect(member, scene->summed, COUNT, (triangle(member->nranks)) * round, member->nranks,
                   "all-reduce");
    numbers_expect(member, scene->told, COUNT, 2 * round, 1, "broadcast");
    numbers_expect(member, scene->taken, COUNT, (before + 1) * round, 1, "message");
    for (int i = 0, at = 0; member->rank == 1 && i < member->nranks; at += i++)
        numbers_expect(member, scene->gathered + at, (size_t)i, (i + 1) * round, 1, "gather-v");
    numbers_expect(member, scene->scattered, (size_t)member->rank, round + triangle(member->rank - 1),
                   1, "scatter-v");
    numbers_expect(member, scene->scanned, COUNT, triangle(member->rank + 1) * round,
                   member->rank + 1, "scan");
}

/* A rank without a GPU has no graph, and makes the calls each time. */
static void replay(struct member *member)
{
    struct tutti_cu_exec *exec;
    struct scene scene;
    int round = 0;

    open_scene(member, &scene);
    begin(member, scene.stream);
    if (gpus_has(member))
        call(member, &scene);
    exec = end(member, scene.stream);
    while (++round <= REPLAYS && !member_is_unhappy(member)) {
        numbers_write(member, scene.given, COUNT, (member->rank + 1) * round, 1);
        if (gpus_has(member))
            play(member, exec, scene.stream);
        else
            call(member, &scene);
        expect(member, &scene, round);
    }
    drop(member, exec);
    numbers_write(member, scene.given, COUNT, (member->rank + 1) * round, 1);
    call(member, &scene);
    expect(member, &scene, round);
    close_scene(member, &scene);
}

static void every_replay_takes_what_is_in_memory_then(void **state)
{
    (void)state;
    at_all_places(replay);
}

/* ---- between other calls --------------------------------------------------------------------- */

/* Calls on the same stream between replays, without a wait between them. */
static void mix(struct member *member)
{
    int32_t *numbers = numbers_make(member, COUNT, member->rank + 1, 0);
    tuttiStream_t stream = numbers_stream(member);
    struct tutti_cu_exec *exec;
    int32_t expected = member->nranks;

    begin(member, stream);
    for (int i = 0; i < 2; i++)
        if (gpus_has(member))
            EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32,
                                             i == 0 ? tuttiMax : tuttiSum, member->comm, stream));
    exec = end(member, stream);
    for (int round = 0; round < 5; round++) {
        EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32, tuttiMax,
                                         member->comm, stream));
        if (gpus_has(member))
            play(member, exec, stream);
        for (int i = 0; i < 2 && !gpus_has(member); i++)
            EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32,
                                             i == 0 ? tuttiMax : tuttiSum, member->comm, stream));
        expected *= member->nranks;
    }
    numbers_settle(member, stream);
    numbers_expect(member, numbers, COUNT, expected, 0, "replays between calls");
    member_meet(member);
    drop(member, exec);
    numbers_drop_stream(member, stream);
    numbers_drop(member, numbers, COUNT);
}

static void replays_and_calls_take_turns_on_a_stream(void **state)
{
    (void)state;
    at_all_places(mix);
}

/* ---- large ones ------------------------------------------------------------------------------ */

/* An all-gather, an all-to-all in place of its result, and the largest of all that. */
static void call_large(struct member *member, int32_t *numbers, tuttiStream_t stream)
{
    int32_t *mine = numbers + (size_t)member->rank * LARGE;

    EXPECT_OK(member, tuttiAllGather(mine, numbers, LARGE, tuttiInt32, member->comm, stream));
    EXPECT_OK(member, tuttiAlltoAll(numbers, numbers, LARGE, tuttiInt32, member->comm, stream));
    EXPECT_OK(member, tuttiAllReduce(numbers, numbers, LARGE, tuttiInt32, tuttiMax, member->comm,
                                     stream));
}

/* Rank r gives r + round; the all-to-all leaves block r of all ranks to rank r. */
static void replay_large(struct member *member)
{
    size_t all = (size_t)member->nranks * LARGE;
    int32_t *numbers = numbers_make(member, all, 0, 0);
    tuttiStream_t stream = numbers_stream(member);
    struct tutti_cu_exec *exec;

    begin(member, stream);
    if (gpus_has(member))
        call_large(member, numbers, stream);
    exec = end(member, stream);
    for (int round = 1; round <= 3; round++) {
        numbers_write(member, numbers + (size_t)member->rank * LARGE, LARGE,
                      member->rank + round, 1);
        if (gpus_has(member))
            play(member, exec, stream);
        else
            call_large(member, numbers, stream);
        numbers_settle(member, stream);
        numbers_expect(member, numbers, LARGE, member->nranks - 1 + round, 1, "largest");
        for (int block = 1; block < member->nranks; block++)
            numbers_expect(member, numbers + (size_t)block * LARGE, LARGE, member->rank + round, 1,
                           "all-to-all");
    }
    member_meet(member);
    drop(member, exec);
    numbers_drop_stream(member, stream);
    numbers_drop(member, numbers, all);
}

static void large_calls_are_replayed(void **state)
{
    (void)state;
    at_all_places(replay_large);
}

/* ---- beside other calls ---------------------------------------------------------------------- */

/* While a call waits for the other ranks another is captured, in the mode that forbids much to all
 * threads; the library's own is no exception that anybody would have to know of. */
static void capture_while_waiting(struct member *member)
{
    int32_t *numbers[2] = {numbers_make(member, COUNT, member->rank + 1, 0),
                           numbers_make(member, COUNT, member->rank + 1, 0)};
    tuttiStream_t streams[2] = {numbers_stream(member), numbers_stream(member)};
    struct tutti_cu_exec *exec;

    if (member->rank != 0)
        member_meet(member);
    EXPECT_OK(member, tuttiAllReduce(numbers[0], numbers[0], COUNT, tuttiInt32, tuttiSum,
                                     member->comm, streams[0]));
    begin_in_mode(member, streams[1], TUTTI_CU_CAPTURE_GLOBAL);
    if (member->rank == 0) {
        usleep(20000); /* for the thread that watches the call, if there is one */
        member_meet(member);
    }
    EXPECT_OK(member, tuttiAllReduce(numbers[1], numbers[1], COUNT, tuttiInt32, tuttiSum,
                                     member->comm, streams[1]));
    exec = end(member, streams[1]);
    numbers_settle(member, streams[0]);
    play(member, exec, streams[1]);
    for (int i = 0; i < 2; i++) {
        numbers_settle(member, streams[i]);
        numbers_expect(member, numbers[i], COUNT, triangle(member->nranks), 0, "captured or not");
    }
    member_meet(member);
    drop(member, exec);
    for (int i = 0; i < 2; i++) {
        numbers_drop_stream(member, streams[i]);
        numbers_drop(member, numbers[i], COUNT);
    }
}

static void captures_that_forbid_much_are_left_alone(void **state)
{
    (void)state;
    for (int i = 0; i < all_place_count; i++)
        if (all_places[i].launch == LAUNCH_PROCESSES && all_places[i].on_cpu < 0)
            at_place(&all_places[i], true, capture_while_waiting);
    /* Through the host. */
    setenv("TUTTI_CUDA_KERNELS", "/dev/null", 1);
    gpus_use(2, -1, GPU_MEMORY_EITHER);
    world_run(LAUNCH_PROCESSES, 2, capture_while_waiting, NULL);
}

/* ---- while memory comes ---------------------------------------------------------------------- */

static void sum_numbers(struct member *member, int32_t *numbers, tuttiStream_t stream)
{
    EXPECT_OK(member, tuttiAllReduce(numbers, numbers, LARGE, tuttiInt32, tuttiSum, member->comm,
                                     stream));
}

/* Calls are so large that peers use each other's buffers; the captured one refers to such a buffer.
 * More memory comes than peers have maps for. */
static void crowd_maps(struct member *member)
{
    tuttiStream_t stream = numbers_stream(member);
    void *captured = NULL, *others[MANY] = {NULL};
    struct tutti_cu_exec *exec;

    EXPECT_OK(member, tuttiMemAlloc(&captured, LARGE * sizeof(int32_t)));
    for (int i = 0; i < 5; i++)
        sum_numbers(member, captured, stream);
    numbers_settle(member, stream);
    begin(member, stream);
    sum_numbers(member, captured, stream);
    exec = end(member, stream);
    for (int i = 0; i < MANY && !member_is_unhappy(member); i++) {
        EXPECT_OK(member, tuttiMemAlloc(&others[i], LARGE * sizeof(int32_t)));
        numbers_write(member, others[i], LARGE, member->rank + i, 1);
        sum_numbers(member, others[i], stream);
        numbers_write(member, captured, LARGE, member->rank + 1, 1);
        play(member, exec, stream);
        numbers_settle(member, stream);
        numbers_expect(member, captured, LARGE, triangle(member->nranks), member->nranks, "replay");
        numbers_expect(member, others[i], LARGE, triangle(member->nranks - 1) + member->nranks * i,
                       member->nranks, "new memory");
    }
    member_meet(member);
    drop(member, exec);
    numbers_drop_stream(member, stream);
    for (int i = 0; i < MANY; i++)
        EXPECT_OK(member, tuttiMemFree(others[i]));
    EXPECT_OK(member, tuttiMemFree(captured));
}

static void what_a_graph_refers_to_stays_mapped_however_much_comes(void **state)
{
    (void)state;
    at_place(&(struct place){LAUNCH_PROCESSES, 3, 2, -1}, true, crowd_maps);
    at_place(&(struct place){LAUNCH_MIXED, 4, 2, -1}, true, crowd_maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_replay_takes_what_is_in_memory_then),
        cmocka_unit_test(replays_and_calls_take_turns_on_a_stream),
        cmocka_unit_test(what_a_graph_refers_to_stays_mapped_however_much_comes),
        cmocka_unit_test(large_calls_are_replayed),
        cmocka_unit_test(captures_that_forbid_much_are_left_alone),
    };

    return cmocka_run_group_tests_name("graphs of GPUs", tests, NULL, NULL);
}
