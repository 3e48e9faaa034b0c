/* SPDX-License-Identifier: Apache-2.0
 * Tests the machine that runs kernels on the host. It does what GPUs do, and finds errors that
 * would break on GPUs. */
#include "simcuda/sim_kernel.h"
#include "simcuda/test_kernels.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 16
#define WORDS 64

/* Arguments and what kernels work on, aligned as on a GPU. */
struct message {
    _Alignas(128) uint64_t words[32 + 2 * WORDS];
};

/* ---- meeting --------------------------------------------------------------------------------- */

static void blocks_add_up_by_shared_memory_and_barriers(void **state)
{
    static const uint32_t sizes[] = {1, 2, 31, 32, 33, 64, 100, 256};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t sums[5] = {0}, n = sizes[i];
        _Alignas(16) struct try_sum arg = {sums};

        sim_kernel_run("try_sum", 5, sizes[i], &arg);
        for (uint64_t b = 0; b < 5; b++)
            assert_int_equal(sums[b], n * 1000 * b + n * (n - 1) / 2);
    }
}

static void warps_vote(void **state)
{
    struct try_warp_row rows[96] = {0};
    _Alignas(16) struct try_warps arg = {rows};

    (void)state;
    sim_kernel_run("try_warps", 1, 96, &arg);
    for (uint32_t t = 0; t < 96; t++) {
        assert_int_equal(rows[t].votes, 0x49249249);
        assert_int_equal(rows[t].all, 1);
        assert_int_equal(rows[t].any, 0);
    }
}

static void barriers_vote(void **state)
{
    uint64_t counts[2] = {0};
    _Alignas(16) struct try_votes arg = {counts};

    (void)state;
    sim_kernel_run("try_votes", 3, 70, &arg);
    for (int i = 0; i < 2; i++)
        assert_int_equal(counts[i], 3 * 70 * 100);
}

static void many_launches_meet_though_there_are_few_processors(void **state)
{
    uint64_t counter = 0;
    _Alignas(16) struct try_meet arg = {&counter, RANKS * 2, 50};
    struct sim_kernel_call calls[RANKS];

    (void)state;
    for (int i = 0; i < RANKS; i++)
        calls[i] = (struct sim_kernel_call){"try_meet", 2, 32, &arg};
    sim_kernel_run_all(calls, RANKS);
    assert_int_equal(counter, RANKS * 2 * 50);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Between two blocks of a launch, and between two launches: words that came wrong. */
static uint64_t wrong_words(enum try_how how, uint32_t threads, uint32_t nmessages)
{
    struct message between, within;
    uint64_t wrong[2] = {0};
    _Alignas(16) struct try_send args[3] = {
        {(struct try_message *)(void *)&within, &wrong[0], how, nmessages, WORDS, 1, 1},
        {(struct try_message *)(void *)&between, &wrong[1], how, nmessages, WORDS, 1, 0},
        {(struct try_message *)(void *)&between, &wrong[1], how, nmessages, WORDS, 0, 1},
    };
    struct sim_kernel_call calls[3];

    memset(&between, 0, sizeof between);
    memset(&within, 0, sizeof within);
    for (int i = 0; i < 3; i++)
        calls[i] = (struct sim_kernel_call){"try_send", i == 0 ? 2 : 1, threads, &args[i]};
    sim_kernel_run_all(calls, 3);
    return wrong[0] + wrong[1];
}

static void released_messages_come_whole(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        sim_weak_set(seed);
        assert_int_equal(wrong_words(TRY_RELEASE, 1, 50), 0);
        assert_int_equal(wrong_words(TRY_FENCE, 1, 50), 0);
        assert_int_equal(wrong_words(TRY_FENCES, 32, 50), 0);
        assert_int_equal(wrong_words(TRY_BARRIER_RELEASE, 64, 50), 0);
        assert_int_equal(wrong_words(TRY_FLAGGED, 32, 50), 0);
    }
    sim_weak_set(0);
}

static void messages_that_nobody_released_come_wrong_in_weak_memory(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
    sim_weak_set(7);
    assert_true(wrong_words(TRY_NO_ORDER, 1, 20) > 0);
    assert_true(wrong_words(TRY_NO_ORDER, 32, 20) > 0);
    sim_weak_set(0);
}

static void messages_that_nobody_acquired_come_wrong_in_weak_memory(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
    sim_weak_set(7);
    assert_true(wrong_words(TRY_NO_ACQUIRE, 1, 20) > 0);
    assert_true(wrong_words(TRY_NO_ACQUIRE, 32, 20) > 0);
    sim_weak_set(0);
}

/* Without any acquire: the barriers are enough. */
static void blocks_see_their_own_stores(void **state)
{
    static const uint32_t sizes[] = {1, 7, 32, 96};

    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uint64_t words[3 * 96] = {0}, wrong = 0;
            _Alignas(16) struct try_own arg = {words, &wrong, 40};

            sim_weak_set(seed);
            sim_kernel_run("try_own", 3, sizes[i], &arg);
            if (wrong > 0)
                fail_msg("seed %d, %u threads: a word of round %d is old", (int)seed, sizes[i],
                         (int)wrong);
        }
    sim_weak_set(0);
}

static uint64_t torn_lines(bool are_torn)
{
    _Alignas(128) unsigned char lines[4 * 128] = {0};
    uint64_t torn[2] = {0};
    _Alignas(16) struct try_lines arg = {lines, torn, 100};

    sim_lines_set_torn(are_torn);
    sim_kernel_run("try_lines", 2, 32, &arg);
    sim_lines_set_torn(false);
    return torn[0];
}

static void lines_are_whole_unless_they_are_torn(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        sim_weak_set(seed);
        assert_int_equal(torn_lines(false), 0);
        assert_true(torn_lines(true) > 0);
    }
    sim_weak_set(0);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

struct mistake {
    enum try_mistake_kind what;
    uint32_t threads;
    const char *said; /* NULL: the process ends by a signal of the processor's */
};

/* The output of a child that makes the mistake, and how it ended. */
static const char *make_mistake(const struct mistake *mistake, int *ret_status)
{
    uint64_t memory[2] = {0};
    _Alignas(16) struct try_mistake arg = {mistake->what, memory};
    struct rlimit no_core = {0, 0};
    pid_t child;

    stderr_text_begin();
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        sim_kernel_run("try_mistake", 1, mistake->threads, &arg);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, ret_status, 0), child);
    return stderr_text_end();
}

static void mistakes_of_kernels_are_loud(void **state)
{
    static const struct mistake mistakes[] = {
        {TRY_LEAVES_BEFORE_BARRIER, 64, "kernel try_mistake, block 0, thread 5: has ended, while"},
        {TRY_BARRIER_OF_HALF, 64, "gpu_barrier_or, while thread"},
        {TRY_VOTE_OF_HALF, 64, "thread 1: has ended, while thread 0 waits in a vote of the warp"},
        {TRY_VOTE_OF_HALF, 8, "a vote of the warp in a warp of 8 threads"},
        {TRY_MISALIGNED, 1, "8 bytes at"},
        {TRY_TWO_BARRIERS, 64, "thread 1: gpu_barrier_or, while thread 0 waits in gpu_barrier"},
        {TRY_MUCH_SHARED, 1, "more than 49152 bytes of shared memory"},
        {TRY_DEEP_STACK, 1, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        int status;
        const char *said = make_mistake(&mistakes[i], &status);

        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            fail_msg("mistake %zu went unseen", i);
        if (mistakes[i].said != NULL && strstr(said, mistakes[i].said) == NULL)
            fail_msg("mistake %zu: %s", i, said);
    }
}

/* Two threads store to each place; this process is all that there is of it. With one warp these are lanes of
 * the same one. */
static int run_race(const char *order, const char *threads, const char *watched)
{
    uint64_t memory[64] = {0};
    _Alignas(16) struct try_race arg = {memory, strcmp(order, "ordered") == 0};
    struct sim_launch launch = {.kernel = sim_kernel_find("try_race"), .blocks = 1,
                                .threads = (uint32_t)atoi(threads), .argument = &arg,
                                .has_watched_warps = strcmp(watched, "warps") == 0};

    for (int i = 0; i < 3; i++) /* stacks, and what TSan takes for threads, are used again */
        sim_launch_run(&launch);
    return 0;
}

/* How a process ends that does it: a new one, for TSan looks away in children of many threads. */
static int race(const char *order, const char *threads, const char *watched)
{
    int status;
    pid_t child;

    stderr_text_begin();
    child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "race", order, threads, watched, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    stderr_text_end();
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_thread_sanitizer_finds_races_of_kernels(void **state)
{
    (void)state;
    assert_int_equal(race("ordered", "64", "threads"), 0);
    assert_int_equal(race("ordered", "64", "warps"), 0);
#if defined(__SANITIZE_THREAD__)
    assert_int_equal(race("unordered", "64", "threads"), 66);
    assert_int_equal(race("unordered", "32", "threads"), 66);
    assert_int_equal(race("unordered", "64", "warps"), 66);
    assert_int_equal(race("unordered", "32", "warps"), 0);
#else
    skip();
#endif
}

static bool has_been_asked_enough(void *context)
{
    int *nasked = context;

    return ++*nasked > 20;
}

static void kernels_that_wait_in_vain_can_be_ended(void **state)
{
    uint64_t memory[2] = {0};
    _Alignas(16) struct try_mistake arg = {TRY_ENDLESS, memory};
    int nasked = 0;
    struct sim_launch launch = {.kernel = sim_kernel_find("try_mistake"), .blocks = 3,
                                .threads = 32, .argument = &arg, .context = &nasked,
                                .must_end = has_been_asked_enough};

    (void)state;
    assert_false(sim_launch_run(&launch));
    assert_int_equal(nasked, 21);
}

/* ---- places ---------------------------------------------------------------------------------- */

struct places {
    int nfree, least;
};

static bool take_place(void *context)
{
    struct places *places = context;

    if (places->nfree == 0)
        return false;
    places->nfree--;
    if (places->nfree < places->least)
        places->least = places->nfree;
    return true;
}

static void give_place(void *context)
{
    ((struct places *)context)->nfree++;
}

static void blocks_begin_where_others_have_ended(void **state)
{
    uint64_t sums[20] = {0};
    _Alignas(16) struct try_sum arg = {sums};
    struct places places = {3, 3};
    struct sim_launch launch = {.kernel = sim_kernel_find("try_sum"), .blocks = 20, .threads = 32,
                                .argument = &arg, .context = &places, .take_place = take_place,
                                .give_place = give_place};

    (void)state;
    assert_true(sim_launch_run(&launch));
    assert_int_equal(places.nfree, 3);
    assert_int_equal(places.least, 0);
    for (uint64_t b = 0; b < 20; b++)
        assert_int_equal(sums[b], 32000 * b + 496);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_add_up_by_shared_memory_and_barriers),
        cmocka_unit_test(warps_vote),
        cmocka_unit_test(barriers_vote),
        cmocka_unit_test(many_launches_meet_though_there_are_few_processors),
        cmocka_unit_test(released_messages_come_whole),
        cmocka_unit_test(messages_that_nobody_released_come_wrong_in_weak_memory),
        cmocka_unit_test(messages_that_nobody_acquired_come_wrong_in_weak_memory),
        cmocka_unit_test(blocks_see_their_own_stores),
        cmocka_unit_test(lines_are_whole_unless_they_are_torn),
        cmocka_unit_test(mistakes_of_kernels_are_loud),
        cmocka_unit_test(the_thread_sanitizer_finds_races_of_kernels),
        cmocka_unit_test(kernels_that_wait_in_vain_can_be_ended),
        cmocka_unit_test(blocks_begin_where_others_have_ended),
    };

    if (argc == 4)
        return run_race(argv[1], argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
