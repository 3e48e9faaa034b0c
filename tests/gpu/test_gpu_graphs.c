/* SPDX-License-Identifier: Apache-2.0
 * Calls that are captured in graphs: each replay makes them again, with what is in memory then. */
#include "gpu/numbers.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { COUNT = 600, REPLAYS = 20, LARGE = 8192, MANY = 70 };

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A function that callers use and the library does not. */
static void *find(const char *name)
{
    return dlsym(gpus_driver()->library, name);
}

/* Other threads go on with their own calls: captures of one thread must let them. */
static void begin(struct member *member, tuttiStream_t stream)
{
    int (*call)(void *, int);

    if (!gpus_has(member))
        return;
    *(void **)&call = find("cuStreamBeginCapture_v2");
    EXPECT(member, call != NULL && call(stream, TUTTI_CU_CAPTURE_THREAD_LOCAL) == TUTTI_CU_SUCCESS);
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
    int32_t *given, *summed, *told, *taken;
    tuttiStream_t stream;
};

static void open_scene(struct member *member, struct scene *scene)
{
    scene->given = numbers_make(member, COUNT, 0, 0);
    scene->summed = numbers_make(member, COUNT, 0, 0);
    scene->told = numbers_make(member, COUNT, 0, 0);
    scene->taken = numbers_make(member, COUNT, 0, 0);
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
}

/* An all-reduce by itself, then a broadcast and a ring of messages together. */
static void call(struct member *member, const struct scene *scene)
{
    int next = (member->rank + 1) % member->nranks;
    int before = (member->rank + member->nranks - 1) % member->nranks;

    EXPECT_OK(member, tuttiAllReduce(scene->given, scene->summed, COUNT, tuttiInt32, tuttiSum,
                                     member->comm, scene->stream));
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

/* Calls on the same stream between replays, which nobody waits for in between. */
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
    };

    return cmocka_run_group_tests_name("graphs of GPUs", tests, NULL, NULL);
}
