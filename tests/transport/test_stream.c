/* SPDX-License-Identifier: Apache-2.0
 * Tests the promises of byte streams, for all transports. */
#include "flow.h"
#include "settings.h"

#include "base/param.h"
#include "base/result.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SEEDS 12
/* The thread sanitizer has nothing to say of one thread, or of processes. */
#ifdef __SANITIZE_THREAD__
enum { ONLY_THREADS = true };
#else
enum { ONLY_THREADS = false };
#endif

struct traffic {
    uint32_t nmessages;
    size_t most_bytes;
    uint64_t seed;
};

static uint64_t seed_of(const struct traffic *traffic, int from, int to)
{
    return traffic->seed * 1000003 + (uint64_t)from * 1009 + (uint64_t)to;
}

/* ---- in one thread ------------------------------------------------------------------- */

static void exchange_in_one_thread(int nranks, struct tutti_conn **conns,
                                   const struct traffic *traffic)
{
    struct flow *out = calloc((size_t)(nranks * nranks), sizeof *out);
    struct flow *in = calloc((size_t)(nranks * nranks), sizeof *in);
    int ndone = 0;

    for (int i = 0; i < nranks * nranks; i++) {
        int rank = i / nranks, peer = i % nranks;

        flow_start(&out[i], seed_of(traffic, rank, peer), traffic->seed + (uint64_t)i,
                   traffic->nmessages, traffic->most_bytes);
        flow_start(&in[i], seed_of(traffic, peer, rank), traffic->seed - (uint64_t)i,
                   traffic->nmessages, traffic->most_bytes);
    }
    while (ndone < 2 * nranks * nranks) {
        ndone = 0;
        for (int i = 0; i < nranks * nranks; i++) {
            assert_true(flow_send(&out[i], conns[i]) >= 0);
            assert_true(flow_recv(&in[i], conns[i]) >= 0);
            ndone += flow_is_done(&out[i]) + flow_is_done(&in[i]);
        }
    }
    for (int i = 0; i < nranks * nranks; i++) {
        flow_end(&out[i]);
        flow_end(&in[i]);
    }
    free(out);
    free(in);
}

static void run_in_one_thread(const struct setting *setting, int nranks,
                              const struct traffic *traffic)
{
    struct tutti_fabric *fabrics[16];
    struct tutti_conn *conns[16 * 16];

    apply_setting(setting);
    form_in_one_thread(nranks, fabrics);
    for (int rank = 0; rank < nranks; rank++)
        for (int peer = 0; peer < nranks; peer++)
            assert_string_equal(tutti_fabric_route(fabrics[rank], peer),
                                rank == peer ? "self" : setting->route);
    for (int channel = 0; channel < TUTTI_CHANNEL_COUNT; channel++) {
        connect_all(nranks, fabrics, channel, conns);
        exchange_in_one_thread(nranks, conns, traffic);
    }
    destroy_all(nranks, fabrics);
}

static void messages_arrive_byte_for_byte_in_both_directions(void **state)
{
    (void)state;
    for EACH_SETTING(setting)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            run_in_one_thread(setting, 2, &(struct traffic){60, 1 << 17, seed});
}

static void small_messages_keep_elements_whole_at_odd_positions(void **state)
{
    (void)state;
    for EACH_SETTING(setting)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct setting tight = *setting;

            tight.fifo_bytes = "4096";
            tight.threshold = "100";
            run_in_one_thread(&tight, 2, &(struct traffic){400, 4096, seed});
        }
}

static void all_pairs_of_many_ranks_exchange_at_once(void **state)
{
    (void)state;
    for EACH_SETTING(setting)
        run_in_one_thread(setting, 9, &(struct traffic){10, 1 << 14, 77});
}

/* ---- in processes -------------------------------------------------------------------- */

/* All pairs exchange; waiting is done as an executor does it. */
static int exchange_as_process(struct tutti_fabric *fabric, int rank, int nranks, void *context)
{
    const struct traffic *traffic = context;
    struct flow out[16], in[16];
    struct tutti_conn *conns[16];
    struct tutti_idle idle = {.passes = 0};
    int ndone = 0;

    for (int peer = 0; peer < nranks; peer++) {
        /* Some connect upwards, some downwards. */
        int other = rank % 2 == 0 ? peer : nranks - 1 - peer;

        conns[other] = connect_waiting(fabric, other, TUTTI_CHANNEL_COLLECTIVE);
        flow_start(&out[other], seed_of(traffic, rank, other), (uint64_t)other,
                   traffic->nmessages, traffic->most_bytes);
        flow_start(&in[other], seed_of(traffic, other, rank), (uint64_t)rank, traffic->nmessages,
                   traffic->most_bytes);
    }
    while (ndone < 2 * nranks) {
        int nmoved = 0;

        ndone = 0;
        for (int peer = 0; peer < nranks; peer++) {
            int sent = flow_send(&out[peer], conns[peer]);
            int got = flow_recv(&in[peer], conns[peer]);

            CHECK(sent >= 0 && got >= 0);
            nmoved += sent + got;
            ndone += flow_is_done(&out[peer]) + flow_is_done(&in[peer]);
        }
        if (nmoved == 0)
            tutti_fabric_idle(fabric, &idle);
        else
            idle = (struct tutti_idle){.passes = 0};
    }
    for (int peer = 0; peer < nranks; peer++) {
        flow_end(&out[peer]);
        flow_end(&in[peer]);
    }
    return 0;
}

static void processes_exchange_byte_for_byte(void **state)
{
    (void)state;
    for EACH_SETTING(setting)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            apply_setting(setting);
            run_processes(3, exchange_as_process, &(struct traffic){60, 1 << 17, seed}, -1);
        }
}

struct thread_rank {
    struct tutti_fabric *fabric;
    int rank, nranks;
    struct traffic traffic;
};

static void *run_thread_rank(void *argument)
{
    struct thread_rank *self = argument;

    CHECK(exchange_as_process(self->fabric, self->rank, self->nranks, &self->traffic) == 0);
    return NULL;
}

static void threads_exchange_byte_for_byte(void **state)
{
    enum { NRANKS = 4 };

    (void)state;
    for EACH_SETTING(setting) {
        struct tutti_fabric *fabrics[NRANKS];
        struct thread_rank ranks[NRANKS];
        pthread_t threads[NRANKS];

        apply_setting(setting);
        form_in_one_thread(NRANKS, fabrics);
        for (int rank = 0; rank < NRANKS; rank++) {
            ranks[rank] = (struct thread_rank){fabrics[rank], rank, NRANKS, {40, 1 << 17, 21}};
            assert_int_equal(pthread_create(&threads[rank], NULL, run_thread_rank, &ranks[rank]),
                             0);
        }
        for (int rank = 0; rank < NRANKS; rank++)
            pthread_join(threads[rank], NULL);
        destroy_all(NRANKS, fabrics);
    }
}

static void large_messages_stream_through(void **state)
{
    (void)state;
    for EACH_SETTING(setting) {
        apply_setting(setting);
        run_processes(2, exchange_as_process, &(struct traffic){6, 8 << 20, 5}, -1);
    }
}

static void a_stream_over_several_sockets_is_one_stream(void **state)
{
    static const char *const values[] = {"off", "auth", "on"};

    (void)state;
    setenv("TUTTI_SOCKETS_PER_PEER", "3", 1);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct setting setting = {.name = "tcp, three sockets", .route = "tcp",
                                  .transports = "self,tcp", .encrypt = values[i]};

        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            run_in_one_thread(&setting, 2, &(struct traffic){30, 1 << 20, seed});
    }
    unsetenv("TUTTI_SOCKETS_PER_PEER");
}

/* A rank that gives up sends only what is left of a header, though a record with data behind it may
 * be on its way. */
static void an_offer_that_shrinks_does_no_harm(void **state)
{
    static const char *const values[] = {"auth", "on"};
    static uint8_t sent[8 << 20], received[8 << 20];

    (void)state;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t)(i * 7 + i / 4096);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct tutti_fabric *fabrics[2];
        struct tutti_conn *conns[4];
        size_t out = 0, in = 0, taken = 1;

        apply_setting(&(struct setting){.transports = "self,tcp", .encrypt = values[i]});
        form_in_one_thread(2, fabrics);
        connect_all(2, fabrics, 0, conns);
        while (taken > 0) { /* until the kernel takes no more, in the middle of a record */
            assert_int_equal(conns[1]->ops->send(conns[1], sent + out, sizeof sent - out, &taken),
                             TUTTI_OK);
            out += taken;
        }
        assert_true(out < sizeof sent);
        assert_int_equal(conns[1]->ops->send(conns[1], sent + out, 1, &taken), TUTTI_OK);
        assert_int_equal(taken, 0);
        while (in < sizeof sent) {
            assert_int_equal(
                conns[1]->ops->send(conns[1], sent + out, sizeof sent - out, &taken), TUTTI_OK);
            out += taken;
            assert_int_equal(
                conns[2]->ops->recv(conns[2], received + in, sizeof sent - in, &taken), TUTTI_OK);
            in += taken;
        }
        assert_memory_equal(sent, received, sizeof sent);
        destroy_all(2, fabrics);
    }
}

static void ranks_of_which_one_lacks_instructions_for_aes_agree_on_a_cipher(void **state)
{
    static const char *const values[] = {"auth", "on"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct setting setting = {.name = "tcp, without AES", .route = "tcp",
                                  .transports = "self,tcp", .encrypt = values[i],
                                  .lacks_aes = true};

        run_in_one_thread(&setting, 3, &(struct traffic){60, 1 << 17, 13});
    }
}

static void peers_that_sleep_are_woken(void **state)
{
    (void)state;
    for EACH_SETTING(setting) {
        struct setting sleepy = *setting;

        sleepy.spin_us = "0";
        apply_setting(&sleepy);
        run_processes(6, exchange_as_process, &(struct traffic){40, 1 << 12, 9}, -1);
    }
}

static void two_hosts_on_one_machine_use_shared_memory_inside_and_tcp_between(void **state)
{
    struct tutti_fabric *fabrics[4];
    struct tutti_conn *conns[16];

    (void)state;
    apply_setting(&(struct setting){.transports = NULL});
    form_on_hosts(4, 2, fabrics);
    for (int rank = 0; rank < 4; rank++) {
        assert_false(tutti_fabric_is_one_domain(fabrics[rank]));
        assert_false(tutti_fabric_all_store(fabrics[rank]));
        assert_int_equal(tutti_fabric_domain(fabrics[rank])->nmembers, 2);
        assert_int_equal(tutti_fabric_domain(fabrics[rank])->me, rank % 2);
        assert_string_equal(tutti_fabric_route(fabrics[rank], rank ^ 1), "cma");
        assert_string_equal(tutti_fabric_route(fabrics[rank], rank ^ 2), "tcp");
    }
    connect_all(4, fabrics, TUTTI_CHANNEL_POINT_TO_POINT, conns);
    exchange_in_one_thread(4, conns, &(struct traffic){20, 1 << 16, 3});
    destroy_all(4, fabrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_byte_for_byte_in_both_directions),
        cmocka_unit_test(small_messages_keep_elements_whole_at_odd_positions),
        cmocka_unit_test(all_pairs_of_many_ranks_exchange_at_once),
        cmocka_unit_test(processes_exchange_byte_for_byte),
        cmocka_unit_test(threads_exchange_byte_for_byte),
        cmocka_unit_test(large_messages_stream_through),
        cmocka_unit_test(a_stream_over_several_sockets_is_one_stream),
        cmocka_unit_test(an_offer_that_shrinks_does_no_harm),
        cmocka_unit_test(ranks_of_which_one_lacks_instructions_for_aes_agree_on_a_cipher),
        cmocka_unit_test(peers_that_sleep_are_woken),
        cmocka_unit_test(two_hosts_on_one_machine_use_shared_memory_inside_and_tcp_between),
    };
    const struct CMUnitTest watched[] = {cmocka_unit_test(threads_exchange_byte_for_byte)};

    return ONLY_THREADS ? cmocka_run_group_tests(watched, NULL, NULL)
                        : cmocka_run_group_tests(tests, NULL, NULL);
}
