/* SPDX-License-Identifier: Apache-2.0
 * Tests sleeping and waking, and the memory of a fabric. */
#include "harness.h"

#include "base/result.h"
#include "transport/shm/shm.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

static const struct setting shm_only = {.name = "shm", .transports = "self,shm"};

/* ---- waiting ------------------------------------------------------------------------- */

/* Idle until the fabric has announced that it sleeps. Then the caller checks once more. */
static void idle_until_announced(struct tutti_fabric *fabric, struct tutti_idle *idle)
{
    *idle = (struct tutti_idle){.passes = 0};
    do
        tutti_fabric_idle(fabric, idle);
    while (fabric->waiter->sleep_kind == 0);
}

static void whoever_announces_sleep_is_rung_by_send_publish_abort_and_wake(void **state)
{
    enum { SEND, PUBLISH, ABORT, WAKE, COUNT };
    uint8_t byte = 7;

    (void)state;
    for (int how = 0; how < COUNT; how++) {
        struct tutti_fabric *fabrics[2];
        struct tutti_conn *conns[4];
        struct tutti_idle idle;
        uint32_t rings;
        size_t taken;

        apply_setting(&shm_only);
        form_in_one_thread(2, fabrics);
        connect_all(2, fabrics, 0, conns);
        idle_until_announced(fabrics[1], &idle);
        assert_int_equal(*tutti_fabric_domain(fabrics[0])->sleepers, 1);
        rings = fabrics[1]->waiter->rings;
        if (how == SEND)
            assert_int_equal(conns[1]->ops->send(conns[1], &byte, 1, &taken), TUTTI_OK);
        else if (how == PUBLISH)
            publish(tutti_fabric_domain(fabrics[0]), 0, 1);
        else if (how == ABORT)
            tutti_fabric_abort(fabrics[0], TUTTI_ERR_SYSTEM, "a test");
        else
            tutti_fabric_wake(fabrics[1]);
        assert_int_not_equal(fabrics[1]->waiter->rings, rings);
        /* After a ring it does not sleep but begins again. */
        tutti_fabric_idle(fabrics[1], &idle);
        assert_int_equal(idle.phase, 0);
        assert_int_equal(*tutti_fabric_domain(fabrics[0])->sleepers, 0);
        assert_int_equal(fabrics[1]->waiter->sleep_kind, 0);
        destroy_all(2, fabrics);
    }
}

static bool has_event(const struct tutti_fabric *fabric)
{
    struct epoll_event event;

    return epoll_wait(fabric->epoll_fd, &event, 1, 0) > 0;
}

static void whoever_sleeps_on_sockets_is_woken_by_his_host_and_by_the_network(void **state)
{
    enum { PUBLISH, WAKE, SOCKET, ABORT_BY_HOST, COUNT };
    uint8_t byte = 7;

    (void)state;
    for (int how = 0; how < COUNT; how++) {
        struct tutti_fabric *fabrics[4];
        struct tutti_conn *conns[16];
        struct tutti_idle idle;
        size_t taken;

        apply_setting(&(struct setting){.transports = NULL});
        form_on_hosts(4, 2, fabrics);
        connect_all(4, fabrics, 0, conns);
        idle_until_announced(fabrics[1], &idle);
        assert_int_equal(fabrics[1]->waiter->sleep_kind, TUTTI_SLEEPS_ON_SOCKETS);
        while (has_event(fabrics[1]))
            ; /* of setting up */
        if (how == PUBLISH)
            publish(tutti_fabric_domain(fabrics[0]), 0, 1);
        else if (how == WAKE)
            tutti_fabric_wake(fabrics[1]);
        else if (how == SOCKET)
            assert_int_equal(conns[3 * 4 + 1]->ops->send(conns[3 * 4 + 1], &byte, 1, &taken),
                             TUTTI_OK);
        else
            tutti_fabric_abort(fabrics[0], TUTTI_ERR_SYSTEM, "a test");
        assert_true(has_event(fabrics[1]));
        destroy_all(4, fabrics);
    }
}

static void rings_do_not_pile_up_until_one_is_lost(void **state)
{
    struct tutti_fabric *fabrics[4];
    struct tutti_idle idle;

    (void)state;
    apply_setting(&(struct setting){.transports = NULL});
    form_on_hosts(4, 2, fabrics);
    for (uint32_t i = 1; i < 1000; i++) { /* more than a socket's queue has room for */
        idle_until_announced(fabrics[3], &idle);
        while (has_event(fabrics[3]))
            ;
        tutti_bell_quiet(&tutti_shm_of(fabrics[3])->segment->bell);
        publish(tutti_fabric_domain(fabrics[2]), 0, i);
        assert_true(has_event(fabrics[3]));
    }
    destroy_all(4, fabrics);
}

static void a_new_wait_takes_back_the_announcement_of_the_last(void **state)
{
    struct tutti_fabric *fabrics[2];
    struct tutti_idle idle;

    (void)state;
    apply_setting(&shm_only);
    form_in_one_thread(2, fabrics);
    idle_until_announced(fabrics[0], &idle);
    idle_until_announced(fabrics[1], &idle);
    assert_int_equal(*tutti_fabric_domain(fabrics[0])->sleepers, 2);
    for (int rank = 0; rank < 2; rank++) {
        idle = (struct tutti_idle){.passes = 0};
        tutti_fabric_idle(fabrics[rank], &idle);
    }
    assert_int_equal(*tutti_fabric_domain(fabrics[0])->sleepers, 0);
    destroy_all(2, fabrics);
}

static void space_given_back_rouses_a_writer_that_waits_for_it(void **state)
{
    static const char *const transports[] = {"self,shm", "self,shm,cma"};
    static uint8_t bytes[1 << 18];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tutti_fabric *fabrics[2];
        struct tutti_conn *conns[4];
        struct tutti_idle idle;
        size_t taken, got;
        uint32_t rings;

        apply_setting(&(struct setting){.transports = transports[i]});
        form_in_one_thread(2, fabrics);
        connect_all(2, fabrics, 0, conns);
        do
            assert_int_equal(conns[1]->ops->send(conns[1], bytes, sizeof bytes, &taken), TUTTI_OK);
        while (taken > 0);
        idle_until_announced(fabrics[0], &idle);
        rings = fabrics[0]->waiter->rings;
        assert_int_equal(conns[2]->ops->recv(conns[2], bytes, sizeof bytes, &got), TUTTI_OK);
        assert_true(got > 0);
        assert_int_not_equal(fabrics[0]->waiter->rings, rings);
        destroy_all(2, fabrics);
    }
}

/* How often a rank looks before it announces that it will sleep; it never spins for a time. */
static void crowded_ranks_look_a_number_of_times_and_then_sleep(void **state)
{
    enum { RANKS = 3, MOST_LOOKS = 64 };
    struct tutti_fabric *fabrics[RANKS];
    cpu_set_t before, two;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&two);
    for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; core++)
        if (CPU_ISSET(core, &before))
            CPU_SET(core, &two);
    assert_int_equal(sched_setaffinity(0, sizeof two, &two), 0);
    apply_setting(&(struct setting){.transports = "self,shm", .spin_us = "1000000"});
    form_in_one_thread(RANKS, fabrics);
    for (int rank = 0; rank < RANKS; rank++) {
        struct tutti_idle idle = {.passes = 0};
        int looks = 0;

        assert_true(fabrics[rank]->is_crowded);
        assert_int_equal(fabrics[rank]->ranks_per_core, CPU_COUNT(&two) == 2 ? 2 : 0);
        while (fabrics[rank]->waiter->sleep_kind == 0) {
            tutti_fabric_idle(fabrics[rank], &idle);
            assert_true(++looks <= MOST_LOOKS);
        }
    }
    /* One thread waits as all three: it finds too many where it is, again and again, and goes. */
    if (CPU_COUNT(&two) == 2) {
        cpu_set_t after;

        for (int i = 0; i < 100; i++)
            for (int rank = 0; rank < RANKS; rank++) {
                struct tutti_idle idle = {.passes = 0};

                while (fabrics[rank]->waiter->sleep_kind == 0 && idle.passes < MOST_LOOKS)
                    tutti_fabric_idle(fabrics[rank], &idle);
                tutti_fabric_idle(fabrics[rank], &(struct tutti_idle){.passes = 0});
            }
        for (int rank = 0; rank < RANKS; rank++)
            assert_int_not_equal(fabrics[rank]->waiter->core, 0);
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&after, &two));
    }
    destroy_all(RANKS, fabrics);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* ---- cost ---------------------------------------------------------------------------- */

static void memory_is_reported_as_touched(void **state)
{
    struct tutti_fabric *fabrics[8];
    struct tutti_conn *conns[64];
    struct tutti_fabric_usage before, after;
    uint8_t byte = 1;
    size_t taken;

    (void)state;
    apply_setting(&shm_only);
    form_in_one_thread(8, fabrics);
    tutti_fabric_usage(fabrics[3], &before);
    connect_all(8, fabrics, 0, conns);
    assert_int_equal(conns[3 * 8 + 5]->ops->send(conns[3 * 8 + 5], &byte, 1, &taken), TUTTI_OK);
    memset(tutti_domain_window(tutti_fabric_domain(fabrics[3]), 3, 0), 1, 65536);
    tutti_fabric_usage(fabrics[3], &after);
    assert_int_equal(after.connections, before.connections + 8);
    assert_int_equal(after.sockets, 0);
    assert_true(after.private_bytes > before.private_bytes);
    assert_true(after.shared_bytes >= before.shared_bytes + 65536);
    assert_true(after.shared_bytes < (size_t)1 << 20);
    assert_int_equal(after.reserved_bytes, before.reserved_bytes);
    assert_true(after.reserved_bytes > 8 * 512 * 1024);
    destroy_all(8, fabrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_announces_sleep_is_rung_by_send_publish_abort_and_wake),
        cmocka_unit_test(whoever_sleeps_on_sockets_is_woken_by_his_host_and_by_the_network),
        cmocka_unit_test(rings_do_not_pile_up_until_one_is_lost),
        cmocka_unit_test(a_new_wait_takes_back_the_announcement_of_the_last),
        cmocka_unit_test(space_given_back_rouses_a_writer_that_waits_for_it),
        cmocka_unit_test(crowded_ranks_look_a_number_of_times_and_then_sleep),
        cmocka_unit_test(memory_is_reported_as_touched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
