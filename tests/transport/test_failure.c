/* SPDX-License-Identifier: Apache-2.0
 * Ranks die, abort, leave, or are only busy. */
#include "settings.h"

#include "base/result.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define VICTIM 1

/* Wait for a byte from `peer` that never comes, as an executor would: look, idle, check. */
static int wait_in_vain(struct tutti_fabric *fabric, struct tutti_conn *conn)
{
    struct tutti_idle idle = {.passes = 0};

    for (;;) {
        uint8_t byte;
        size_t got = 0;
        int rc = conn->ops->recv(conn, &byte, 1, &got);

        CHECK(got == 0);
        if (rc == TUTTI_OK)
            rc = tutti_fabric_check(fabric);
        if (rc != TUTTI_OK)
            return rc;
        tutti_fabric_idle(fabric, &idle);
    }
}

/* ---- death --------------------------------------------------------------------------- */

static int die_or_notice(struct tutti_fabric *fabric, int rank, int nranks, void *context)
{
    bool is_domain = tutti_fabric_domain(fabric) != NULL;
    int peer = is_domain ? (rank + 1) % nranks : VICTIM;
    struct tutti_conn *conn = NULL;
    char first[TUTTI_MESSAGE_BYTES];

    (void)context;
    if (rank == VICTIM) {
        for (int other = 0; other < nranks; other++)
            if (other != rank)
                connect_waiting(fabric, other, 0);
        kill(getpid(), SIGKILL);
    }
    /* In a domain a rank notices the death of every rank, and elsewhere only that of connected
     * ranks. */
    conn = connect_waiting(fabric, peer == VICTIM || !is_domain ? VICTIM : peer, 0);
    CHECK(wait_in_vain(fabric, conn) == TUTTI_ERR_REMOTE);
    CHECK(strstr(tutti_message_last(), "rank 1") != NULL);
    if (is_domain) {
        CHECK(strstr(tutti_message_last(), "(pid ") != NULL);
        CHECK(strstr(tutti_message_last(), ") died") != NULL);
    }
    /* It is remembered, and said again in the same words. */
    snprintf(first, sizeof first, "%s", tutti_message_last());
    tutti_message_set_last("");
    CHECK(tutti_fabric_check(fabric) == TUTTI_ERR_REMOTE);
    CHECK(strcmp(first, tutti_message_last()) == 0);
    return 0;
}

static void a_killed_process_is_noticed_by_all_and_named(void **state)
{
    (void)state;
    for EACH_SETTING(setting) {
        apply_setting(setting);
        run_processes(4, die_or_notice, NULL, VICTIM);
    }
}

static int leave_early(struct tutti_fabric *fabric, int rank, int nranks, void *context)
{
    struct tutti_domain *domain = tutti_fabric_domain(fabric);
    struct tutti_idle idle = {.passes = 0};
    uint32_t ngone = 0;

    (void)context;
    if (rank == VICTIM)
        return 0; /* leaves in good order while the others go on */
    publish(domain, 0, 1);
    /* As long as the others are here, no rank may be taken for dead. The loop is long enough to see
     * the rank that left. */
    while (ngone < 1000 * (uint32_t)nranks) {
        CHECK(tutti_fabric_check(fabric) == TUTTI_OK);
        ngone++;
    }
    for (uint32_t i = 0; i < (uint32_t)nranks; i++)
        while (i != VICTIM && !tutti_domain_has_signal(domain, i, 0, 1)) {
            CHECK(tutti_fabric_check(fabric) == TUTTI_OK);
            tutti_fabric_idle(fabric, &idle);
        }
    return 0;
}

static void leaving_in_good_order_is_no_death(void **state)
{
    (void)state;
    apply_setting(&settings[SHM_SETTING]);
    run_processes(4, leave_early, NULL, -1);
}

static void a_relative_that_ends_does_not_make_its_process_look_dead(void **state)
{
    struct tutti_fabric *fabrics[4];

    (void)state;
    apply_setting(&settings[SHM_SETTING]);
    form_in_one_thread(4, fabrics);
    for (int rank = 0; rank < 3; rank++) {
        tutti_fabric_leave(fabrics[rank]);
        tutti_fabric_destroy(fabrics[rank]);
        for (int other = rank + 1; other < 4; other++)
            assert_int_equal(tutti_fabric_check(fabrics[other]), TUTTI_OK);
    }
    destroy_all(1, &fabrics[3]);
}

/* ---- abort --------------------------------------------------------------------------- */

static int abort_or_learn(struct tutti_fabric *fabric, int rank, int nranks, void *context)
{
    struct tutti_conn *conn;

    (void)context;
    if (rank == VICTIM) {
        for (int other = 0; other < nranks; other++)
            if (other != rank)
                connect_waiting(fabric, other, 0);
        tutti_fabric_abort(fabric, TUTTI_ERR_INTERNAL, "all-reduce 17 took longer than 5 s");
        tutti_fabric_abort(fabric, TUTTI_ERR_SYSTEM, "only the first reason counts");
        CHECK(tutti_fabric_check(fabric) == TUTTI_ERR_INTERNAL);
        CHECK(strstr(tutti_message_last(), "all-reduce 17") != NULL);
        return 0;
    }
    conn = connect_waiting(fabric, VICTIM, 0);
    CHECK(wait_in_vain(fabric, conn) == TUTTI_ERR_REMOTE);
    CHECK(strstr(tutti_message_last(), "rank 1") != NULL);
    if (tutti_fabric_domain(fabric) != NULL)
        CHECK(strstr(tutti_message_last(), "aborted: all-reduce 17 took longer than 5 s") != NULL);
    return 0;
}

static void an_abort_reaches_all_with_its_reason(void **state)
{
    (void)state;
    for EACH_SETTING(setting) {
        apply_setting(setting);
        run_processes(4, abort_or_learn, NULL, -1);
    }
}

static void a_mismatch_found_by_one_is_a_usage_error_on_all(void **state)
{
    struct tutti_fabric *fabrics[3];

    (void)state;
    apply_setting(&settings[SHM_SETTING]);
    form_in_one_thread(3, fabrics);
    tutti_fabric_abort(fabrics[2], TUTTI_ERR_USAGE, "rank 0 broadcasts, rank 2 reduces");
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(tutti_fabric_check(fabrics[rank]), TUTTI_ERR_USAGE);
        assert_non_null(strstr(tutti_message_last(), "rank 0 broadcasts, rank 2 reduces"));
    }
    destroy_all(3, fabrics);
}

struct waiter {
    struct tutti_fabric *fabric;
    struct tutti_conn *conn;
    int rc;
};

static void *wait_in_thread(void *argument)
{
    struct waiter *waiter = argument;

    waiter->rc = wait_in_vain(waiter->fabric, waiter->conn);
    return NULL;
}

static void an_abort_by_another_thread_ends_the_wait(void **state)
{
    (void)state;
    for EACH_SETTING(setting) {
        struct tutti_fabric *fabrics[2];
        struct tutti_conn *conns[4];
        struct waiter waiters[2];
        pthread_t threads[2];

        apply_setting(setting);
        form_in_one_thread(2, fabrics);
        connect_all(2, fabrics, 0, conns);
        for (int rank = 0; rank < 2; rank++) {
            waiters[rank] = (struct waiter){fabrics[rank], conns[2 * rank + 1 - rank], 0};
            assert_int_equal(pthread_create(&threads[rank], NULL, wait_in_thread, &waiters[rank]),
                             0);
        }
        tutti_fabric_abort(fabrics[0], TUTTI_ERR_INTERNAL, "enough");
        for (int rank = 0; rank < 2; rank++)
            pthread_join(threads[rank], NULL);
        assert_int_equal(waiters[0].rc, TUTTI_ERR_INTERNAL);
        assert_int_equal(waiters[1].rc, TUTTI_ERR_REMOTE);
        destroy_all(2, fabrics);
    }
}

/* ---- closing ------------------------------------------------------------------------- */

static void sending_to_a_rank_that_has_closed_is_an_error_that_names_it(void **state)
{
    static uint8_t bytes[1 << 20];

    (void)state;
    for EACH_SETTING(setting) {
        struct tutti_fabric *fabrics[2];
        struct tutti_conn *conns[4];
        size_t taken;
        int rc;

        apply_setting(setting);
        form_in_one_thread(2, fabrics);
        connect_all(2, fabrics, 0, conns);
        assert_int_equal(conns[1]->ops->send(conns[1], bytes, 1000, &taken), TUTTI_OK);
        tutti_fabric_leave(fabrics[1]);
        tutti_fabric_destroy(fabrics[1]);
        do
            rc = conns[1]->ops->send(conns[1], bytes, sizeof bytes, &taken);
        while (rc == TUTTI_OK);
        assert_int_equal(rc, TUTTI_ERR_REMOTE);
        /* Over TCP it is a reset, because bytes were in flight that had not been read. */
        assert_true(strstr(tutti_message_last(), "rank 1 closed its connection") != NULL ||
                    strstr(tutti_message_last(), "rank 1 reset its connection") != NULL);
        destroy_all(1, fabrics);
    }
}

static void what_was_sent_before_closing_still_arrives(void **state)
{
    (void)state;
    for EACH_SETTING(setting) {
        struct tutti_fabric *fabrics[2];
        struct tutti_conn *conns[4];
        uint8_t bytes[1000], seen[1000];
        size_t taken, done = 0, got;

        apply_setting(setting);
        form_in_one_thread(2, fabrics);
        connect_all(2, fabrics, 0, conns);
        memset(bytes, 0x5a, sizeof bytes);
        assert_int_equal(conns[2]->ops->send(conns[2], bytes, sizeof bytes, &taken), TUTTI_OK);
        assert_int_equal(taken, sizeof bytes);
        tutti_fabric_leave(fabrics[1]);
        tutti_fabric_destroy(fabrics[1]);
        while (done < sizeof seen) {
            assert_int_equal(conns[1]->ops->recv(conns[1], seen + done, sizeof seen - done, &got),
                             TUTTI_OK);
            done += got;
        }
        assert_memory_equal(seen, bytes, sizeof seen);
        assert_int_equal(wait_in_vain(fabrics[0], conns[1]), TUTTI_ERR_REMOTE);
        destroy_all(1, fabrics);
    }
}

static void a_rank_destroyed_while_others_use_it_is_named(void **state)
{
    struct tutti_fabric *fabrics[3];

    (void)state;
    apply_setting(&settings[SHM_SETTING]);
    form_in_one_thread(3, fabrics);
    tutti_fabric_destroy(fabrics[2]); /* without leaving */
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(tutti_fabric_check(fabrics[rank]), TUTTI_ERR_REMOTE);
        assert_non_null(strstr(tutti_message_last(), "rank 2"));
    }
    destroy_all(2, fabrics);
}

static void calling_a_rank_that_is_gone_ends_in_an_error(void **state)
{
    struct tutti_fabric *fabrics[2];
    struct tutti_conn *conn = NULL;
    struct tutti_idle idle = {.passes = 0};
    int rc;

    (void)state;
    apply_setting(&settings[TCP_SETTING]);
    form_in_one_thread(2, fabrics);
    tutti_fabric_destroy(fabrics[1]);
    while ((rc = tutti_fabric_connect(fabrics[0], 1, 0, &conn)) == TUTTI_AGAIN)
        tutti_fabric_idle(fabrics[0], &idle);
    assert_int_equal(rc, TUTTI_ERR_REMOTE);
    assert_non_null(strstr(tutti_message_last(), "rank 1 takes no calls at 127.0.0.1:"));
    assert_null(conn);
    destroy_all(1, fabrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_process_is_noticed_by_all_and_named),
        cmocka_unit_test(leaving_in_good_order_is_no_death),
        cmocka_unit_test(a_relative_that_ends_does_not_make_its_process_look_dead),
        cmocka_unit_test(an_abort_reaches_all_with_its_reason),
        cmocka_unit_test(a_mismatch_found_by_one_is_a_usage_error_on_all),
        cmocka_unit_test(an_abort_by_another_thread_ends_the_wait),
        cmocka_unit_test(sending_to_a_rank_that_has_closed_is_an_error_that_names_it),
        cmocka_unit_test(what_was_sent_before_closing_still_arrives),
        cmocka_unit_test(a_rank_destroyed_while_others_use_it_is_named),
        cmocka_unit_test(calling_a_rank_that_is_gone_ends_in_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
