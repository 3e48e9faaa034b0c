/* SPDX-License-Identifier: Apache-2.0
 * A fabric in simulated time: its patience and its sleeps take none of the test's. */
#include "harness.h"

#include "base/clock.h"
#include "base/param.h"
#include "base/result.h"
#include "support/simulated.h"
#include "transport/shm/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HOUR_NS (3600 * TUTTI_NS_PER_S)
#define TICK_NS (TUTTI_NS_PER_S / 4)

static const struct setting all = {.name = "all"};

/* Ranks 0 and 1 of three join, rank 2 never does. Returns how long they have waited for it. */
static uint64_t join_without_the_third(uint64_t seed, uint8_t ret_nonces[2][8])
{
    struct simulated simulated;
    struct tutti_fabric *fabrics[3];
    union tutti_record records[3];
    bool has_joined[2] = {false, false};
    uint64_t begun_ns;

    simulated_begin(&simulated, seed);
    for (int rank = 0; rank < 3; rank++) {
        struct tutti_fabric_args args = {
            .nranks = 3, .rank = rank, .deadline_ns = tutti_now_ns() + HOUR_NS};

        assert_int_equal(tutti_fabric_open(&args, &fabrics[rank]), TUTTI_OK);
        memcpy(&records[rank], tutti_fabric_record(fabrics[rank]), sizeof records[rank]);
    }
    begun_ns = tutti_now_ns();
    while (!has_joined[0] || !has_joined[1]) {
        for (int rank = 0; rank < 2; rank++)
            if (!has_joined[rank]) {
                int rc = tutti_fabric_join(fabrics[rank], records);

                assert_true(rc == TUTTI_OK || rc == TUTTI_AGAIN);
                has_joined[rank] = rc == TUTTI_OK;
            }
        simulated_pass(&simulated, TICK_NS);
        assert_true(tutti_now_ns() - begun_ns < HOUR_NS);
    }
    begun_ns = tutti_now_ns() - begun_ns;
    for (int rank = 0; rank < 2; rank++)
        memcpy(ret_nonces[rank], &records[rank].nonce, 8);
    for (int rank = 0; rank < 3; rank++)
        tutti_fabric_destroy(fabrics[rank]);
    simulated_end();
    return begun_ns;
}

static void a_member_that_never_joins_is_waited_for_in_simulated_time(void **state)
{
    uint64_t real_ns = tutti_now_ns(), waited_ns;
    uint8_t nonces[2][8];

    (void)state;
    apply_setting(&all);
    waited_ns = join_without_the_third(1, nonces);
    /* The patience of pass.c: 30 s of the time that forming has. */
    assert_in_range(waited_ns, 30 * TUTTI_NS_PER_S, 31 * TUTTI_NS_PER_S);
    assert_true(tutti_now_ns() - real_ns < 20 * TUTTI_NS_PER_S);
}

static void what_ranks_draw_and_how_long_they_wait_repeats_from_the_seed(void **state)
{
    uint8_t first[2][8], again[2][8], other[2][8];
    struct tutti_identity identity;
    uint64_t waited_ns;

    (void)state;
    apply_setting(&all);
    tutti_identity_describe(&identity); /* draws once per process */
    waited_ns = join_without_the_third(5, first);
    assert_int_equal(join_without_the_third(5, again), waited_ns);
    assert_memory_equal(first, again, sizeof first);
    join_without_the_third(6, other);
    assert_memory_not_equal(first, other, sizeof first);
}

/* Idles until a minute has passed: mostly asleep, so that it takes few passes. */
static void a_rank_sleeps_in_simulated_time(void **state)
{
    static const struct setting settings[] = {{.name = "shm", .transports = "self,shm"},
                                              {.name = "tcp", .transports = "self,tcp"}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint64_t real_ns = tutti_now_ns(), begun_ns, passes = 0;
        struct tutti_idle idle = {.passes = 0};
        struct simulated simulated;
        struct tutti_fabric *fabrics[2];

        simulated_begin(&simulated, i);
        apply_setting(&settings[i]);
        setenv("TUTTI_SPIN_US", "0", 1);
        tutti_param_reset();
        form_in_one_thread(2, fabrics);
        begun_ns = tutti_now_ns();
        for (; tutti_now_ns() - begun_ns < 60 * TUTTI_NS_PER_S; passes++)
            tutti_fabric_idle(fabrics[0], &idle);
        assert_in_range(passes, 60, 60 * 1000 * 2);
        destroy_all(2, fabrics);
        simulated_end();
        assert_true(tutti_now_ns() - real_ns < 30 * TUTTI_NS_PER_S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_that_never_joins_is_waited_for_in_simulated_time),
        cmocka_unit_test(what_ranks_draw_and_how_long_they_wait_repeats_from_the_seed),
        cmocka_unit_test(a_rank_sleeps_in_simulated_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
