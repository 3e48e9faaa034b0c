/* SPDX-License-Identifier: Apache-2.0
 * A rank tells the next rank its number and chain. That rank may listen, be busy, or be gone. */
#include "harness.h"

#include "base/result.h"
#include "transport/fabric_private.h"
#include "transport/tcp/tcp.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { NRANKS = 4 };

static const struct setting all = {.name = "all"};

static void tell(struct tutti_fabric *fabric, uint64_t number)
{
    assert_true(tutti_fabric_send_state(fabric, (const uint64_t[]){number, ~number}));
}

/* Within a host as between hosts: the socket is one of its own. */
static void each_rank_is_told_by_the_one_before(void **state)
{
    struct tutti_fabric *fabrics[NRANKS];
    uint64_t words[TUTTI_STATE_WORDS];

    (void)state;
    apply_setting(&all);
    form_on_hosts(NRANKS, 2, fabrics);
    for (uint64_t round = 1; round <= 3; round++) {
        for (int rank = 0; rank < NRANKS - 1; rank++)
            tell(fabrics[rank], 10 * round + (uint64_t)rank);
        assert_false(tutti_fabric_send_state(fabrics[NRANKS - 1], words));
        for (int rank = 0; rank < NRANKS - 1; rank++)
            while (tutti_tcp_of(fabrics[rank])->state_call.is_active)
                for (int i = 0; i < NRANKS; i++)
                    tutti_tcp_progress(fabrics[i]);
        assert_false(tutti_fabric_recv_state(fabrics[0], words));
        for (int rank = 1; rank < NRANKS; rank++) {
            assert_true(tutti_fabric_recv_state(fabrics[rank], words));
            assert_int_equal(words[0], 10 * round + (uint64_t)rank - 1);
            assert_int_equal(words[1], ~words[0]);
        }
    }
    for (int rank = 0; rank < NRANKS; rank++) {
        assert_int_equal(tutti_tcp_of(fabrics[rank])->nsockets_open, 0);
        assert_int_equal(tutti_fabric_check(fabrics[rank]), TUTTI_OK);
    }
    destroy_all(NRANKS, fabrics);
}

static void who_is_on_the_way_cannot_tell_more(void **state)
{
    struct tutti_fabric *fabrics[2];
    uint64_t words[TUTTI_STATE_WORDS] = {2, 2};

    (void)state;
    apply_setting(&all);
    form_on_hosts(2, 1, fabrics);
    tell(fabrics[0], 1);
    for (int i = 0; i < 100; i++)
        tutti_tcp_progress(fabrics[0]); /* the other does not look */
    assert_false(tutti_fabric_send_state(fabrics[0], words));
    assert_false(tutti_fabric_recv_state(fabrics[1], words));
    destroy_all(2, fabrics);
}

static void who_is_gone_is_not_told_and_nothing_else_happens(void **state)
{
    struct tutti_fabric *fabrics[2];

    (void)state;
    apply_setting(&all);
    form_on_hosts(2, 1, fabrics);
    tutti_fabric_leave(fabrics[1]);
    tutti_fabric_destroy(fabrics[1]);
    tell(fabrics[0], 1);
    while (tutti_tcp_of(fabrics[0])->state_call.is_active)
        tutti_tcp_progress(fabrics[0]);
    assert_int_equal(tutti_fabric_check(fabrics[0]), TUTTI_OK);
    tutti_fabric_destroy(fabrics[0]);
}

static void ranks_without_sockets_do_not_tell(void **state)
{
    static const struct setting shm_only = {.name = "shm", .transports = "self,shm"};
    struct tutti_fabric *fabrics[2];
    uint64_t words[TUTTI_STATE_WORDS] = {1, 1};

    (void)state;
    apply_setting(&shm_only);
    form_in_one_thread(2, fabrics);
    assert_false(tutti_fabric_send_state(fabrics[0], words));
    assert_false(tutti_fabric_recv_state(fabrics[1], words));
    destroy_all(2, fabrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_is_told_by_the_one_before),
        cmocka_unit_test(who_is_on_the_way_cannot_tell_more),
        cmocka_unit_test(who_is_gone_is_not_told_and_nothing_else_happens),
        cmocka_unit_test(ranks_without_sockets_do_not_tell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
