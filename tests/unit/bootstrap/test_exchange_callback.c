/* SPDX-License-Identifier: Apache-2.0
 * Tests the exchange over a caller's own all-gather, which blocks, so there is one thread per
 * rank. */
#include "base/clock.h"
#include "base/result.h"
#include "bootstrap/bootstrap.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define RANKS_MAX 8

/* An all-gather of threads. */
struct hall {
    int nranks;
    pthread_barrier_t barrier;
    uint8_t table[RANKS_MAX * TUTTI_BOOTSTRAP_RECORD_MAX];
    int swap; /* nonzero: places 0 and 1 are given in the wrong order */
};

struct tutti_root_seat {
    struct hall *hall;
    int place;
    int rank, nranks; /* as the rank believes */
    int answer;       /* of the callback */
    int rc;
    uint8_t secret[TUTTI_SECRET_BYTES];
    uint32_t all[RANKS_MAX];
    char message[TUTTI_MESSAGE_BYTES];
};

static int gather(void *context, const void *input, void *output, size_t bytes)
{
    struct tutti_root_seat *seat = context;
    struct hall *hall = seat->hall;
    int place = hall->swap && seat->place < 2 ? 1 - seat->place : seat->place;

    memcpy(hall->table + (size_t)place * bytes, input, bytes);
    pthread_barrier_wait(&hall->barrier);
    memcpy(output, hall->table, (size_t)hall->nranks * bytes);
    pthread_barrier_wait(&hall->barrier);
    return seat->answer;
}

static void *be_rank(void *argument)
{
    struct tutti_root_seat *seat = argument;
    struct tutti_bootstrap *boot = NULL;
    uint32_t mine = (uint32_t)seat->rank * 3 + 1;

    seat->rc = tutti_bootstrap_from_callback(gather, seat, seat->nranks, seat->rank, TUTTI_NEVER,
                                             &boot);
    if (seat->rc == TUTTI_OK) {
        seat->rc = boot->ops->allgather(boot, &mine, sizeof mine, seat->all);
        memcpy(seat->secret, boot->secret, sizeof seat->secret);
        boot->ops->destroy(boot, NULL);
    }
    strcpy(seat->message, tutti_message_last());
    return NULL;
}

static void run(struct hall *hall, struct tutti_root_seat *seats)
{
    pthread_t threads[RANKS_MAX];

    assert_int_equal(pthread_barrier_init(&hall->barrier, NULL, (unsigned)hall->nranks), 0);
    for (int i = 0; i < hall->nranks; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_rank, &seats[i]), 0);
    for (int i = 0; i < hall->nranks; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&hall->barrier);
}

static void fill(struct hall *hall, struct tutti_root_seat *seats, int nranks)
{
    *hall = (struct hall){.nranks = nranks};
    for (int i = 0; i < nranks; i++)
        seats[i] = (struct tutti_root_seat){.hall = hall, .place = i, .rank = i, .nranks = nranks};
}

static struct hall hall;
static struct tutti_root_seat seats[RANKS_MAX];

static void ranks_exchange_records_and_share_a_secret(void **state)
{
    static const uint8_t nothing[TUTTI_SECRET_BYTES];

    (void)state;
    for (int nranks = 1; nranks <= RANKS_MAX; nranks++) {
        fill(&hall, seats, nranks);
        run(&hall, seats);
        for (int i = 0; i < nranks; i++) {
            assert_int_equal(seats[i].rc, TUTTI_OK);
            assert_memory_equal(seats[i].secret, seats[0].secret, sizeof nothing);
            assert_memory_not_equal(seats[i].secret, nothing, sizeof nothing);
            for (int j = 0; j < nranks; j++)
                assert_int_equal(seats[i].all[j], (uint32_t)j * 3 + 1);
        }
    }
}

static void disagreement_and_wrong_order_are_refused_on_all(void **state)
{
    (void)state;
    for (int fault = 0; fault < 3; fault++) {
        fill(&hall, seats, 4);
        if (fault == 0)
            seats[2].nranks = 5;
        else if (fault == 1)
            seats[2].rank = 1;
        else
            hall.swap = 1;
        run(&hall, seats);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(seats[i].rc, TUTTI_ERR_USAGE);
            assert_non_null(strstr(seats[i].message, "rank"));
        }
    }
}

static void a_callback_that_fails_is_a_lost_peer(void **state)
{
    (void)state;
    fill(&hall, seats, 3);
    for (int i = 0; i < 3; i++)
        seats[i].answer = 42;
    run(&hall, seats);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(seats[i].rc, TUTTI_ERR_REMOTE);
        assert_non_null(strstr(seats[i].message, "42"));
    }
}

static void no_callback_is_refused(void **state)
{
    struct tutti_bootstrap *boot;

    (void)state;
    assert_int_equal(tutti_bootstrap_from_callback(NULL, NULL, 1, 0, TUTTI_NEVER, &boot),
                     TUTTI_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_exchange_records_and_share_a_secret),
        cmocka_unit_test(disagreement_and_wrong_order_are_refused_on_all),
        cmocka_unit_test(a_callback_that_fails_is_a_lost_peer),
        cmocka_unit_test(no_callback_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
