/* SPDX-License-Identifier: Apache-2.0
 * Tests how a fabric forms, what it then knows, and how its ranks connect. */
#include "harness.h"

#include "base/clock.h"
#include "base/param.h"
#include "base/result.h"
#include "base/socket.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static const struct setting all_transports = {.name = "all"};
static const struct setting shm_only = {.name = "shm", .transports = "self,shm"};
static const struct setting tcp_only = {.name = "tcp", .transports = "self,tcp"};

/* ---- forming ------------------------------------------------------------------------- */

static void one_rank_needs_no_domain_and_no_network(void **state)
{
    struct tutti_fabric *fabric;
    struct tutti_conn *conn;
    struct tutti_fabric_usage usage;

    (void)state;
    apply_setting(&all_transports);
    form_in_one_thread(1, &fabric);
    assert_null(tutti_fabric_domain(fabric));
    assert_false(tutti_fabric_is_one_domain(fabric));
    assert_string_equal(tutti_fabric_route(fabric, 0), "self");
    assert_int_equal(tutti_fabric_connect(fabric, 0, 0, &conn), TUTTI_OK);
    assert_int_equal(tutti_fabric_check(fabric), TUTTI_OK);
    tutti_fabric_usage(fabric, &usage);
    assert_int_equal(usage.sockets, 0);
    assert_int_equal(usage.connections, 1);
    assert_int_equal(usage.reserved_bytes, 0);
    destroy_all(1, &fabric);
}

static void ranks_of_one_process_may_store_into_each_other(void **state)
{
    struct tutti_fabric *fabrics[5];
    int value = 0, copy = 0;

    (void)state;
    apply_setting(&all_transports);
    form_in_one_thread(5, fabrics);
    for (int rank = 0; rank < 5; rank++) {
        struct tutti_domain *domain = tutti_fabric_domain(fabrics[rank]);

        assert_true(tutti_fabric_is_one_domain(fabrics[rank]));
        assert_true(tutti_fabric_all_store(fabrics[rank]));
        assert_true(tutti_fabric_all_read(fabrics[rank]));
        assert_int_equal(domain->nmembers, 5);
        assert_int_equal(domain->me, rank);
        for (uint32_t i = 0; i < 5; i++) {
            assert_int_equal(domain->ranks[i], i);
            assert_int_equal(domain->access[i], TUTTI_DOMAIN_ACCESS_STORE);
        }
        value = rank + 100;
        assert_int_equal(tutti_domain_read(domain, 0, &copy, (uint64_t)(uintptr_t)&value,
                                           sizeof copy),
                         TUTTI_OK);
        assert_int_equal(copy, rank + 100);
    }
    destroy_all(5, fabrics);
}

static void windows_and_posts_of_all_members_are_one_memory(void **state)
{
    struct tutti_fabric *fabrics[4];

    (void)state;
    apply_setting(&shm_only);
    form_in_one_thread(4, fabrics);
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct tutti_domain *domain = tutti_fabric_domain(fabrics[rank]);

        assert_int_equal(domain->half_bytes % TUTTI_CACHE_LINE, 0);
        for (uint64_t round = 0; round < 2; round++) {
            memset(tutti_domain_window(domain, rank, round), (int)(16 * rank + round),
                   domain->half_bytes);
            publish(domain, round, (uint32_t)(1000 * rank + round));
        }
    }
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct tutti_domain *domain = tutti_fabric_domain(fabrics[rank]);

        for (uint32_t other = 0; other < 4; other++) {
            for (uint64_t round = 0; round < 2; round++) {
                const uint8_t *window = tutti_domain_window(domain, other, round);

                assert_true(tutti_domain_has_signal(domain, other, round,
                                             (uint32_t)(1000 * other + round)));
                assert_false(tutti_domain_has_signal(domain, other, round,
                                              (uint32_t)(1000 * other + round + 1)));
                assert_int_equal(window[0], 16 * other + round);
                assert_int_equal(window[domain->half_bytes - 1], 16 * other + round);
            }
        }
    }
    destroy_all(4, fabrics);
}

struct posted {
    uint8_t bytes[300];
};

/* Each reads a pattern out of the memory of all others, at the address that they post. */
static int read_all_others(struct tutti_fabric *fabric, int rank, int nranks, void *context)
{
    struct tutti_domain *domain = tutti_fabric_domain(fabric);
    struct posted mine, seen;
    struct tutti_idle idle = {.passes = 0};

    (void)context;
    CHECK(tutti_fabric_all_read(fabric));
    CHECK(!tutti_fabric_all_store(fabric));
    memset(&mine, rank + 1, sizeof mine);
    tutti_domain_post(domain, domain->me, 0)->input = (uint64_t)(uintptr_t)&mine;
    publish(domain, 0, 1);
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < (uint32_t)nranks; i++) {
            while (!tutti_domain_has_signal(domain, i, (uint64_t)turn, 1))
                tutti_fabric_idle(fabric, &idle);
            if (turn == 1)
                continue;
            CHECK(tutti_domain_read(domain, i, &seen, tutti_domain_post(domain, i, 0)->input,
                                    sizeof seen) == TUTTI_OK);
            for (size_t b = 0; b < sizeof seen.bytes; b++)
                CHECK(seen.bytes[b] == i + 1);
        }
        if (turn == 0) /* no rank leaves before all have read */
            publish(domain, 1, 1);
    }
    return 0;
}

static void processes_read_each_others_memory(void **state)
{
    (void)state;
    if (access("/proc/self/ns/pid", F_OK) != 0) {
        print_message("[  SKIPPED ] no /proc: processes cannot tell whether their pids mean the "
                      "same\n");
        skip();
    }
    apply_setting(&all_transports);
    run_processes(4, read_all_others, NULL, -1);
    run_processes(24, read_all_others, NULL, -1);
}

/* Changes the verdict as if its rank could not map the segment. */
static void lose_segment(struct tutti_fabric *fabric, union tutti_verdict *verdict)
{
    struct tutti_shm_verdict *own = tutti_verdict_own_slice(fabric, &tutti_shm_ops);

    assert_int_equal(own->has_segment, 1);
    own->has_segment = 0;
    snprintf(own->reason, sizeof own->reason, "out of address space");
    memcpy(verdict, tutti_fabric_verdict(fabric), sizeof *verdict);
}

static void a_rank_that_cannot_map_the_segment_turns_its_host_to_tcp(void **state)
{
    struct tutti_fabric *fabrics[3];
    union tutti_verdict verdicts[3];

    (void)state;
    apply_setting(&all_transports);
    join_in_one_thread(3, fabrics, verdicts);
    lose_segment(fabrics[1], &verdicts[1]);
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(tutti_fabric_settle(fabrics[rank], verdicts), TUTTI_OK);
        assert_null(tutti_fabric_domain(fabrics[rank]));
        assert_false(tutti_fabric_is_one_domain(fabrics[rank]));
        assert_false(tutti_fabric_all_read(fabrics[rank]));
        for (int peer = 0; peer < 3; peer++)
            assert_string_equal(tutti_fabric_route(fabrics[rank], peer),
                                peer == rank ? "self" : "tcp");
    }
    destroy_all(3, fabrics);
}

static void a_host_without_memory_for_the_segment_uses_tcp(void **state)
{
    struct tutti_fabric *fabrics[3];
    struct rlimit old, tight;

    (void)state;
    apply_setting(&all_transports);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = (struct rlimit){.rlim_cur = 65536, .rlim_max = old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    form_in_one_thread(3, fabrics);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    for (int rank = 0; rank < 3; rank++) {
        assert_null(tutti_fabric_domain(fabrics[rank]));
        assert_string_equal(tutti_fabric_route(fabrics[rank], (rank + 1) % 3), "tcp");
    }
    destroy_all(3, fabrics);
}

static void a_pair_without_transport_is_named_with_the_reasons_by_all_ranks(void **state)
{
    struct tutti_fabric *fabrics[3];
    union tutti_verdict verdicts[3];

    (void)state;
    apply_setting(&shm_only);
    join_in_one_thread(3, fabrics, verdicts);
    lose_segment(fabrics[1], &verdicts[1]);
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(tutti_fabric_settle(fabrics[rank], verdicts), TUTTI_ERR_USAGE);
        assert_non_null(strstr(tutti_message_last(), "ranks 0 and 1"));
        assert_non_null(strstr(tutti_message_last(), "out of address space"));
        assert_non_null(strstr(tutti_message_last(), "TUTTI_TRANSPORTS"));
    }
    destroy_all(3, fabrics);
}

static void an_unknown_transport_is_refused_by_name(void **state)
{
    struct tutti_fabric_args args = {.nranks = 1};
    struct tutti_fabric *fabric = NULL;

    (void)state;
    apply_setting(&(struct setting){.transports = "shm,smoke"});
    assert_int_equal(tutti_fabric_open(&args, &fabric), TUTTI_ERR_USAGE);
    assert_non_null(strstr(tutti_message_last(), "'smoke'"));
    assert_null(fabric);
}

/* Checks that rank 0 refuses a record of rank 1 with one wrong byte, in the head or in the slice of
 * TCP. */
static void refuse_record(size_t offset, bool is_of_tcp, const char *expected)
{
    struct tutti_fabric_args args = {.nranks = 2, .deadline_ns = TUTTI_NEVER};
    struct tutti_fabric *fabrics[2];
    union tutti_record records[2];
    uint8_t *begin;

    for (args.rank = 0; args.rank < 2; args.rank++)
        assert_int_equal(tutti_fabric_open(&args, &fabrics[args.rank]), TUTTI_OK);
    begin = is_of_tcp ? tutti_record_own_slice(fabrics[1], &tutti_tcp_ops)
                      : fabrics[1]->mine.bytes;
    begin[offset] ^= 0x55;
    for (int rank = 0; rank < 2; rank++)
        memcpy(&records[rank], tutti_fabric_record(fabrics[rank]), sizeof records[0]);
    assert_int_equal(tutti_fabric_join(fabrics[0], records), TUTTI_ERR_USAGE);
    assert_non_null(strstr(tutti_message_last(), expected));
    destroy_all(2, fabrics);
}

static void foreign_records_are_refused(void **state)
{
    (void)state;
    apply_setting(&tcp_only);
    refuse_record(offsetof(union tutti_record, magic), false, "rank 1 does not run this version");
    refuse_record(offsetof(union tutti_record, version), false, "rank 1 does not run this version");
    refuse_record(offsetof(union tutti_record, nranks), false, "rank 1 says");
    refuse_record(offsetof(union tutti_record, rank), false, "rank 1 says");
    refuse_record(offsetof(struct tutti_tcp_record, ncandidates), true, "rank 1 is malformed");
    refuse_record(offsetof(struct tutti_tcp_record, nsockets), true, "rank 1 is malformed");
    refuse_record(offsetof(struct tutti_tcp_record, seal_mode), true, "rank 1 is malformed");
}

/* The record of a rank has the names of its transports and the sizes of their slices. */
static void a_rank_with_other_transports_is_named_with_them(void **state)
{
    (void)state;
    apply_setting(&tcp_only);
    refuse_record(offsetof(union tutti_record, layout), false,
                  "rank 1 runs a library with other transports: it has &elf,cma,shm:0+60,tcp:");
}

static void ranks_that_disagree_on_encryption_are_told_both_values(void **state)
{
    static const char *const values[] = {"off", "auth", "on"};

    (void)state;
    for (int pair = 0; pair < 9; pair++) {
        const char *own[2] = {values[pair / 3], values[pair % 3]};
        struct tutti_fabric *fabrics[2];
        union tutti_record records[2];
        char expected[2][64];

        for (int rank = 0; rank < 2; rank++) {
            struct tutti_fabric_args args = {.nranks = 2, .rank = rank, .deadline_ns = TUTTI_NEVER};

            apply_setting(&(struct setting){.transports = "self,tcp", .encrypt = own[rank]});
            assert_int_equal(tutti_fabric_open(&args, &fabrics[rank]), TUTTI_OK);
            memcpy(&records[rank], tutti_fabric_record(fabrics[rank]), sizeof records[0]);
            snprintf(expected[rank], sizeof expected[rank], "rank %d has %s", rank, own[rank]);
        }
        for (int rank = 0; rank < 2; rank++) {
            bool do_agree = strcmp(own[0], own[1]) == 0;

            assert_int_equal(tutti_fabric_join(fabrics[rank], records),
                             do_agree ? TUTTI_OK : TUTTI_ERR_USAGE);
            for (int other = 0; other < 2 && !do_agree; other++)
                assert_non_null(strstr(tutti_message_last(), expected[other]));
        }
        destroy_all(2, fabrics);
    }
}

static void a_mistyped_encryption_is_refused_rather_than_turned_off(void **state)
{
    static const char *const values[] = {"yes", "ON", "1", "on ", "authenticated"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct tutti_fabric_args args = {.nranks = 1};
        struct tutti_fabric *fabric = NULL;

        apply_setting(&(struct setting){.encrypt = values[i]});
        assert_int_equal(tutti_fabric_open(&args, &fabric), TUTTI_ERR_USAGE);
        assert_non_null(strstr(tutti_message_last(), "is none of off, auth, on"));
        assert_null(fabric);
    }
}

/* ---- connecting ---------------------------------------------------------------------- */

static void strangers_are_dropped_and_members_still_come_through(void **state)
{
    static const char shout[] = "GET / HTTP/1.1\r\nHost: somebody\r\n\r\n";
    struct tutti_fabric *fabrics[2];
    struct tutti_conn *conns[4];
    struct tutti_address address = {.family = 4, .is_loopback = 1, .bytes = {127, 0, 0, 1}};
    int strangers[40];
    size_t done;
    int ndropped = 0;

    (void)state;
    apply_setting(&(struct setting){.transports = "self,tcp", .family = "ipv4"});
    form_in_one_thread(2, fabrics);
    address.port_be = tutti_tcp_own_record(fabrics[1])->port_be;
    for (int i = 0; i < 40; i++) {
        int rc;

        strangers[i] = -1;
        while ((rc = tutti_socket_connect(&address, &strangers[i])) == TUTTI_AGAIN)
            ;
        assert_int_equal(rc, TUTTI_OK);
        if (i % 2 == 0) /* half of them speak, half are silent */
            assert_int_equal(tutti_socket_send(strangers[i], shout, sizeof shout, &done),
                             TUTTI_OK);
    }
    connect_all(2, fabrics, 0, conns);

    /* A caller that has spoken gets the greeting, and then the end of the stream. */
    for (int i = 0; i < 40; i += 2) {
        char greeting[256];
        int rc;

        do {
            tutti_tcp_progress(fabrics[1]);
            rc = tutti_socket_recv(strangers[i], greeting, sizeof greeting, &done);
        } while (rc == TUTTI_OK);
        assert_int_equal(rc, TUTTI_ERR_REMOTE);
        ndropped++;
    }
    assert_int_equal(ndropped, 20);
    for (int i = 0; i < 40; i++)
        close(strangers[i]);
    destroy_all(2, fabrics);
}

static void ranks_of_another_communicator_are_strangers(void **state)
{
    struct tutti_fabric *fabrics[2];
    struct tutti_conn *conn = NULL;

    (void)state;
    apply_setting(&(struct setting){.transports = "self,tcp", .family = "ipv4"});
    form_in_one_thread(2, fabrics);
    fabrics[0]->secret[0] ^= 1;
    while (tutti_tcp_of(fabrics[1])->has_logged_stranger == false)
        for (int rank = 0; rank < 2; rank++)
            assert_int_equal(tutti_fabric_connect(fabrics[rank], 1 - rank, 0, &conn),
                             TUTTI_AGAIN);
    fabrics[0]->secret[0] ^= 1;
    while (tutti_fabric_connect(fabrics[0], 1, 0, &conn) == TUTTI_AGAIN)
        tutti_tcp_progress(fabrics[1]);
    assert_non_null(conn);
    destroy_all(2, fabrics);
}

static void a_rank_that_waits_for_something_else_still_takes_calls(void **state)
{
    struct tutti_fabric *fabrics[2];
    struct tutti_conn *conn = NULL;
    struct tutti_idle idle = {.passes = 0};
    int rc;

    (void)state;
    apply_setting(&tcp_only);
    form_in_one_thread(2, fabrics);
    while ((rc = tutti_fabric_connect(fabrics[0], 1, 1, &conn)) == TUTTI_AGAIN)
        tutti_fabric_idle(fabrics[1], &idle);
    assert_int_equal(rc, TUTTI_OK);
    assert_int_equal(conn->ops->count_sockets(conn), 1);
    destroy_all(2, fabrics);
}

static void ranks_that_want_different_numbers_of_sockets_use_the_lesser(void **state)
{
    struct tutti_fabric *fabrics[2];
    struct tutti_conn *conns[4];
    struct tutti_fabric_usage usage;

    (void)state;
    apply_setting(&tcp_only);
    setenv("TUTTI_SOCKETS_PER_PEER", "5", 1);
    form_in_one_thread(2, fabrics);
    unsetenv("TUTTI_SOCKETS_PER_PEER");
    for (int rank = 0; rank < 2; rank++) /* as if rank 1 had wanted 3 */
        tutti_tcp_record(fabrics[rank], 1)->nsockets = 3;
    connect_all(2, fabrics, 0, conns);
    tutti_fabric_usage(fabrics[0], &usage);
    assert_int_equal(usage.sockets, 3);
    assert_int_equal(usage.connections, 2);
    destroy_all(2, fabrics);
}

static void ranks_use_one_socket_within_a_host_and_more_between_hosts(void **state)
{
    static const struct {
        uint32_t ours, theirs; /* Mbit/s */
        int sockets;
    } rates[] = {{100000, 0, 2}, {0, 100000, 2}, {10000, 10000, 2}, {24999, 400000, 2},
                 {25000, 25000, 4}, {40000, 100000, 4}, {100000, 99999, 4}, {100000, 100000, 8},
                 {400000, 200000, 8}, {0, 0, 2}};
    struct tutti_fabric *fabrics[2];

    (void)state;
    apply_setting(&tcp_only);
    form_in_one_thread(2, fabrics);
    assert_int_equal(tutti_tcp_count_sockets(fabrics[0], 1), 1);
    fabrics[0]->records[1].identity.network[0] ^= 1;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        fabrics[0]->mine.mbits = rates[i].ours;
        fabrics[0]->records[1].mbits = rates[i].theirs;
        assert_int_equal(tutti_tcp_count_sockets(fabrics[0], 1), rates[i].sockets);
    }
    tutti_tcp_record(fabrics[0], 1)->nsockets = 1; /* a rank that asks for a number gets no more */
    assert_int_equal(tutti_tcp_count_sockets(fabrics[0], 1), 1);
    for (int rank = 0; rank < 2; rank++)
        tutti_tcp_record(fabrics[0], rank)->nsockets = 4;
    assert_int_equal(tutti_tcp_count_sockets(fabrics[0], 1), 4);
    destroy_all(2, fabrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_needs_no_domain_and_no_network),
        cmocka_unit_test(ranks_of_one_process_may_store_into_each_other),
        cmocka_unit_test(windows_and_posts_of_all_members_are_one_memory),
        cmocka_unit_test(processes_read_each_others_memory),
        cmocka_unit_test(a_rank_that_cannot_map_the_segment_turns_its_host_to_tcp),
        cmocka_unit_test(a_host_without_memory_for_the_segment_uses_tcp),
        cmocka_unit_test(a_pair_without_transport_is_named_with_the_reasons_by_all_ranks),
        cmocka_unit_test(an_unknown_transport_is_refused_by_name),
        cmocka_unit_test(foreign_records_are_refused),
        cmocka_unit_test(a_rank_with_other_transports_is_named_with_them),
        cmocka_unit_test(ranks_that_disagree_on_encryption_are_told_both_values),
        cmocka_unit_test(a_mistyped_encryption_is_refused_rather_than_turned_off),
        cmocka_unit_test(strangers_are_dropped_and_members_still_come_through),
        cmocka_unit_test(ranks_of_another_communicator_are_strangers),
        cmocka_unit_test(a_rank_that_waits_for_something_else_still_takes_calls),
        cmocka_unit_test(ranks_that_want_different_numbers_of_sockets_use_the_lesser),
        cmocka_unit_test(ranks_use_one_socket_within_a_host_and_more_between_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
