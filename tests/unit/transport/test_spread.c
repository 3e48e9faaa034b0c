/* SPDX-License-Identifier: Apache-2.0
 * Tests which rank leaves a core, and the core to which it moves. */
#include "transport/spread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 16
#define STAY TUTTI_SPREAD_STAY

/* Cores are written as letters; a dot is a member that has not waited yet. */
struct scene {
    struct tutti_waiter waiters[MOST];
    uint32_t count;
};

static struct scene scene_of(const char *cores)
{
    struct scene scene = {.count = (uint32_t)strlen(cores)};

    for (uint32_t i = 0; i < scene.count; i++)
        scene.waiters[i].core = cores[i] == '.' ? 0 : 1 + (uint32_t)(cores[i] - 'a');
    return scene;
}

static cpu_set_t set_of(const char *cores)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (; *cores != '\0'; cores++)
        CPU_SET((size_t)(*cores - 'a'), &set);
    return set;
}

static uint32_t choice(const char *cores, uint32_t me, uint32_t share, const char *allowed)
{
    struct scene scene = scene_of(cores);
    cpu_set_t set = set_of(allowed);

    return tutti_spread_choose(scene.waiters, scene.count, me, share, &set);
}

static void who_is_one_too_many_goes_to_the_emptiest_core(void **state)
{
    (void)state;
    assert_int_equal(choice("aaaa", 0, 2, "ab"), STAY);
    assert_int_equal(choice("aaaa", 1, 2, "ab"), STAY);
    assert_int_equal(choice("aaaa", 2, 2, "ab"), 1);
    assert_int_equal(choice("aaaa", 3, 2, "ab"), 1);
    assert_int_equal(choice("aaab", 2, 2, "ab"), 1);
    assert_int_equal(choice("aaab", 3, 2, "ab"), STAY);
    assert_int_equal(choice("aaabbc", 2, 2, "abc"), 2);
    assert_int_equal(choice("aaabbc", 2, 2, "abcd"), 3);
}

static void evenly_spread_ranks_stay(void **state)
{
    static const char *const even[] = {"aabb", "abab", "aabbc", "aab", "....", "aa..", ".b.b"};

    (void)state;
    for (size_t i = 0; i < sizeof even / sizeof *even; i++)
        for (uint32_t me = 0; me < strlen(even[i]); me++)
            assert_int_equal(choice(even[i], me, 2, "abc"), STAY);
}

static void nobody_goes_where_it_may_not_or_where_it_is_no_better(void **state)
{
    (void)state;
    assert_int_equal(choice("aaaa", 3, 2, "a"), STAY);
    assert_int_equal(choice("aaabb", 2, 2, "ab"), STAY);
    assert_int_equal(choice("aaabbb", 2, 2, "ab"), STAY);
    assert_int_equal(choice("aaab", 2, 2, "ac"), 2);
}

/* All look at the same waiters at once, act, and look again. */
static void ranks_from_one_core_are_soon_spread(void **state)
{
    (void)state;
    for (uint32_t ncores = 1; ncores <= 5; ncores++)
        for (uint32_t count = 1; count <= MOST; count++) {
            uint32_t share = (count + ncores - 1) / ncores, looks = 0, moved;
            struct scene scene = scene_of("aaaaaaaaaaaaaaaa");
            cpu_set_t allowed;

            CPU_ZERO(&allowed);
            for (uint32_t core = 0; core < ncores; core++)
                CPU_SET(core, &allowed);
            do {
                moved = 0;
                for (uint32_t me = 0; me < count; me++) {
                    uint32_t to = tutti_spread_choose(scene.waiters, count, me, share, &allowed);

                    moved += to != STAY;
                    if (to != STAY)
                        scene.waiters[me].core = to + 1;
                }
                assert_true(++looks <= ncores + 1);
            } while (moved > 0);
            for (uint32_t core = 0; core < ncores; core++) {
                uint32_t here = 0;

                for (uint32_t i = 0; i < count; i++)
                    here += scene.waiters[i].core == core + 1;
                assert_true(here <= share);
            }
        }
}

/* The thread is kept on a core, so that the kernel does not move it while we look. */
static void a_thread_without_a_better_core_stays(void **state)
{
    struct tutti_waiter waiters[2] = {{.core = 0}};
    struct tutti_domain domain = {.nmembers = 2, .me = 1, .waiters = waiters};
    cpu_set_t before, after, one;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_true(tutti_spread(&domain, 1));
    assert_int_equal(waiters[1].core, 1 + (uint32_t)sched_getcpu());
    waiters[0].core = waiters[1].core;
    assert_false(tutti_spread(&domain, 1));
    assert_int_equal(waiters[1].core, waiters[0].core);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&after, &one));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* Wherever this thread is, another rank claims to be there already. The domain has so many members
 * that any thread of the machine might belong to one of them. */
static void a_thread_moves_and_keeps_the_cores_that_it_may_use(void **state)
{
    enum { MEMBERS = 100000 };
    struct tutti_waiter *waiters = aligned_alloc(TUTTI_CACHE_LINE, MEMBERS * sizeof *waiters);
    struct tutti_domain domain = {.nmembers = MEMBERS, .me = 1, .waiters = waiters};
    cpu_set_t before, after;

    (void)state;
    assert_non_null(waiters);
    memset(waiters, 0, MEMBERS * sizeof *waiters);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    /* The kernel may move the thread between two checks. Then the test tries once more. */
    while (CPU_COUNT(&before) > 1 && (waiters[1].core == 0 || waiters[1].core == waiters[0].core)) {
        waiters[0].core = 1 + (uint32_t)sched_getcpu();
        assert_true(tutti_spread(&domain, 1));
    }
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&after, &before));
    free(waiters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_one_too_many_goes_to_the_emptiest_core),
        cmocka_unit_test(evenly_spread_ranks_stay),
        cmocka_unit_test(nobody_goes_where_it_may_not_or_where_it_is_no_better),
        cmocka_unit_test(ranks_from_one_core_are_soon_spread),
        cmocka_unit_test(a_thread_without_a_better_core_stays),
        cmocka_unit_test(a_thread_moves_and_keeps_the_cores_that_it_may_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
