/* SPDX-License-Identifier: Apache-2.0
 * Strangers connect to a rank's TCP listener, or answer instead of a rank, while ranks connect. */
#include "transport/harness.h"

#include "base/clock.h"
#include "base/param.h"
#include "base/result.h"
#include "bootstrap/bootstrap.h"
#include "support/address.h"
#include "transport/fabric_private.h"
#include "transport/tcp/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const struct setting tcp = {.name = "tcp", .route = "tcp", .transports = "self,tcp",
                                   .family = "ipv4"};

/* Nothing here takes a second of it. */
#define PATIENCE_NS (8 * TUTTI_NS_PER_S)

static void form_two(struct tutti_fabric *fabrics[2])
{
    apply_setting(&tcp);
    form_in_one_thread(2, fabrics);
}

/* ---- callers who say nothing --------------------------------------------------------- */

enum { HELD = 600, REPLACED = 5000 };

struct strangers {
    struct tutti_address address;
    int fds[HELD]; /* -1: to be made */
    int nmade;
};

static void call_again(struct strangers *strangers)
{
    for (int i = 0; i < HELD && strangers->nmade < REPLACED; i++) {
        char byte[64];
        ssize_t got = strangers->fds[i] < 0 ? 0
                                            : recv(strangers->fds[i], byte, sizeof byte,
                                                   MSG_DONTWAIT);

        if (got > 0 || (got < 0 && errno == EAGAIN))
            continue; /* greeted, or in the queue */
        if (strangers->fds[i] >= 0)
            close(strangers->fds[i]);
        strangers->fds[i] = -1;
        if (tutti_socket_connect(&strangers->address, &strangers->fds[i]) < 0)
            strangers->fds[i] = -1;
        strangers->nmade++;
    }
}

static void strangers_begin(struct strangers *strangers, struct tutti_fabric *fabric)
{
    assert_int_equal(address_parse("127.0.0.1:0", &strangers->address), TUTTI_OK);
    strangers->address.port_be = tutti_tcp_own_record(fabric)->port_be;
    strangers->nmade = 0;
    for (int i = 0; i < HELD; i++)
        strangers->fds[i] = -1;
    call_again(strangers);
}

static void strangers_end(struct strangers *strangers)
{
    for (int i = 0; i < HELD; i++)
        if (strangers->fds[i] >= 0)
            close(strangers->fds[i]);
}

/* Both ends of a connection, and a byte through it, while the strangers go on. */
static void connect_among(struct strangers *strangers, struct tutti_fabric *fabrics[2])
{
    uint64_t until_ns = tutti_now_ns() + PATIENCE_NS;
    struct tutti_conn *conns[2] = {NULL, NULL};
    int results[2] = {TUTTI_AGAIN, TUTTI_AGAIN};
    uint8_t byte = 0;
    size_t done = 0;

    while (results[0] != TUTTI_OK || results[1] != TUTTI_OK) {
        for (int i = 0; i < 2; i++) {
            results[i] = tutti_fabric_connect(fabrics[i], 1 - i, 0, &conns[i]);
            assert_true(results[i] == TUTTI_OK || results[i] == TUTTI_AGAIN);
        }
        call_again(strangers);
        assert_true(tutti_now_ns() < until_ns);
    }
    assert_int_equal(conns[0]->ops->send(conns[0], "x", 1, &done), TUTTI_OK);
    assert_int_equal(done, 1);
    do
        assert_int_equal(conns[1]->ops->recv(conns[1], &byte, 1, &done), TUTTI_OK);
    while (done == 0);
    assert_int_equal(byte, 'x');
}

static void silent_callers_do_not_keep_a_rank_from_being_called(void **state)
{
    static struct strangers strangers;
    struct tutti_fabric *fabrics[2];

    (void)state;
    form_two(fabrics);
    strangers_begin(&strangers, fabrics[1]);
    connect_among(&strangers, fabrics);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tutti_fabric_check(fabrics[i]), TUTTI_OK);
    strangers_end(&strangers);
    destroy_all(2, fabrics);
}

static void thousands_of_callers_leave_no_more_than_some_hundred_open(void **state)
{
    static struct strangers strangers;
    uint64_t until_ns = tutti_now_ns() + 4 * PATIENCE_NS;
    struct tutti_fabric *fabrics[2];
    size_t most = 0;

    (void)state;
    form_two(fabrics);
    strangers_begin(&strangers, fabrics[1]);
    while (strangers.nmade < REPLACED && tutti_now_ns() < until_ns) {
        tutti_tcp_progress(fabrics[1]);
        if (tutti_tcp_of(fabrics[1])->ncallers > most)
            most = tutti_tcp_of(fabrics[1])->ncallers;
        call_again(&strangers);
    }
    assert_int_equal(strangers.nmade, REPLACED);
    assert_in_range(most, 200, 300);
    connect_among(&strangers, fabrics);
    strangers_end(&strangers);
    destroy_all(2, fabrics);
}

/* ---- who answers in a rank's place ---------------------------------------------------- */

/* It has the rank's port, at the address that callers try first. It greets, as everybody can, and
 * is silent. */
static void who_greets_and_is_silent_gives_way_to_the_next_address(void **state)
{
    uint64_t until_ns = tutti_now_ns() + PATIENCE_NS;
    struct tutti_conn *conns[2] = {NULL, NULL};
    struct tutti_fabric *fabrics[2];
    struct tutti_address squat;
    int listener, squatted = -1, results[2] = {TUTTI_AGAIN, TUTTI_AGAIN};
    struct tutti_handshake greeting = {.fd = -1};
    struct tutti_tcp_record *record;
    bool has_greeted = false;
    uint16_t port_be;

    (void)state;
    form_two(fabrics);
    record = tutti_tcp_record(fabrics[0], 1);
    assert_int_equal(address_parse("127.0.0.2:0", &squat), TUTTI_OK);
    squat.port_be = record->port_be;
    assert_int_equal(tutti_socket_listen(&squat, &listener, &port_be), TUTTI_OK);
    memmove(record->candidates + 1, record->candidates,
            (TUTTI_MAX_CANDIDATES - 1) * sizeof *record->candidates);
    record->candidates[0] = squat;
    record->candidates[0].is_loopback = 1;
    record->ncandidates = 3;

    while (results[0] != TUTTI_OK || results[1] != TUTTI_OK) {
        for (int i = 0; i < 2; i++) {
            results[i] = tutti_fabric_connect(fabrics[i], 1 - i, 0, &conns[i]);
            assert_true(results[i] == TUTTI_OK || results[i] == TUTTI_AGAIN);
        }
        if (squatted < 0 && tutti_socket_accept(listener, &squatted) == TUTTI_OK) {
            static const uint8_t any_secret[TUTTI_SECRET_BYTES];

            tutti_handshake_start(&greeting, squatted, true, any_secret, NULL, TUTTI_NEVER);
            assert_int_equal(tutti_handshake_step(&greeting), TUTTI_AGAIN);
            has_greeted = true;
        }
        assert_true(tutti_now_ns() < until_ns);
    }
    assert_true(has_greeted);
    close(squatted);
    close(listener);
    destroy_all(2, fabrics);
}

/* ---- a rank that is late -------------------------------------------------------------- */

static void pass_bytes(struct tutti_conn *conns[2])
{
    for (int i = 0; i < 2; i++) {
        uint8_t bytes[100], seen[100];
        size_t done, got = 0;

        memset(bytes, 17 + i, sizeof bytes);
        assert_int_equal(conns[i]->ops->send(conns[i], bytes, sizeof bytes, &done), TUTTI_OK);
        assert_int_equal(done, sizeof bytes);
        while (got < sizeof seen) {
            assert_int_equal(conns[1 - i]->ops->recv(conns[1 - i], seen + got, sizeof seen - got,
                                                     &done), TUTTI_OK);
            got += done;
        }
        assert_memory_equal(seen, bytes, sizeof seen);
    }
}

/* It computes when it has just greeted the rank that calls it, until that rank has given up the
 * call and called again. What it then finds of the first call is not the connection. */
static void a_call_that_was_given_up_is_not_taken_for_the_connection(void **state)
{
    uint64_t until_ns = tutti_now_ns() + PATIENCE_NS;
    struct tutti_conn *conns[2] = {NULL, NULL};
    struct tutti_fabric *fabrics[2];
    struct tutti_tcp_conn *calling;
    int results[2] = {TUTTI_AGAIN, TUTTI_AGAIN};

    (void)state;
    form_two(fabrics);
    assert_int_equal(tutti_fabric_connect(fabrics[0], 1, 0, &conns[0]), TUTTI_AGAIN);
    calling = (struct tutti_tcp_conn *)fabrics[0]->conns[tutti_conn_index(1, 0)];
    while (!calling->dials[0].is_greeted) {
        if (tutti_tcp_of(fabrics[1])->ncallers == 0)
            tutti_tcp_progress(fabrics[1]);
        tutti_tcp_progress(fabrics[0]);
        assert_true(tutti_now_ns() < until_ns);
    }
    while (calling->dials[0].is_greeted) { /* until it is given up */
        assert_int_equal(tutti_fabric_connect(fabrics[0], 1, 0, &conns[0]), TUTTI_AGAIN);
        assert_true(tutti_now_ns() < until_ns);
    }
    while (results[0] != TUTTI_OK || results[1] != TUTTI_OK) {
        for (int i = 1; i >= 0; i--) {
            results[i] = tutti_fabric_connect(fabrics[i], 1 - i, 0, &conns[i]);
            assert_true(results[i] == TUTTI_OK || results[i] == TUTTI_AGAIN);
        }
        assert_true(tutti_now_ns() < until_ns);
    }
    pass_bytes(conns);
    destroy_all(2, fabrics);
}

/* ---- where a rank listens --------------------------------------------------------------- */

static struct tutti_address bound_address(int fd)
{
    struct sockaddr_in native = {.sin_family = AF_UNSPEC};
    struct tutti_address address = {.family = 0};
    socklen_t size = sizeof native;

    assert_int_equal(getsockname(fd, (struct sockaddr *)&native, &size), 0);
    assert_int_equal(native.sin_family, AF_INET);
    address.family = 4;
    memcpy(address.bytes, &native.sin_addr, 4);
    address.port_be = native.sin_port;
    return address;
}

static void a_rank_listens_only_at_the_addresses_that_others_are_told(void **state)
{
    struct tutti_fabric_args args = {.nranks = 2, .rank = 0,
                                     .deadline_ns = tutti_deadline_ns(10000)};
    struct tutti_fabric *fabric;

    (void)state;
    apply_setting(&tcp);
    assert_int_equal(tutti_fabric_open(&args, &fabric), TUTTI_OK);
    assert_int_equal(tutti_tcp_of(fabric)->nlisten, tutti_tcp_own_record(fabric)->ncandidates);
    assert_true(tutti_tcp_of(fabric)->nlisten > 0);
    for (size_t i = 0; i < tutti_tcp_of(fabric)->nlisten; i++) {
        struct tutti_address bound = bound_address(tutti_tcp_of(fabric)->listen_fds[i]);

        assert_memory_equal(bound.bytes, tutti_tcp_own_record(fabric)->candidates[i].bytes, 4);
        assert_int_equal(bound.port_be, tutti_tcp_own_record(fabric)->port_be);
    }
    tutti_fabric_destroy(fabric);
}

static void ranks_of_one_host_listen_at_its_loopback_address_alone(void **state)
{
    struct tutti_fabric *fabrics[2];

    (void)state;
    form_two(fabrics);
    for (int rank = 0; rank < 2; rank++) {
        size_t nopen = 0;

        for (size_t i = 0; i < tutti_tcp_of(fabrics[rank])->nlisten; i++) {
            int fd = tutti_tcp_of(fabrics[rank])->listen_fds[i];

            if (fd < 0)
                continue;
            nopen++;
            assert_int_equal(bound_address(fd).bytes[0], 127);
        }
        assert_int_equal(nopen, 1);
    }
    destroy_all(2, fabrics);
}

/* True if the call is accepted. */
static bool is_taken(const char *host, const uint8_t port_be[2])
{
    struct tutti_address address;
    int fd = -1, rc;

    assert_int_equal(address_parse(host, &address), TUTTI_OK);
    memcpy(&address.port_be, port_be, 2);
    while ((rc = tutti_socket_connect(&address, &fd)) == TUTTI_AGAIN)
        ;
    if (fd >= 0)
        close(fd);
    return rc == TUTTI_OK;
}

static void an_id_for_loopback_is_served_there_alone(void **state)
{
    uint8_t id[TUTTI_UNIQUE_ID_SIZE];

    (void)state;
    apply_setting(&tcp);
    setenv("TUTTI_SOCKET_IFNAME", "lo", 1);
    tutti_param_reset();
    assert_int_equal(tutti_unique_id_create(id), TUTTI_OK);
    unsetenv("TUTTI_SOCKET_IFNAME");
    tutti_param_reset();
    assert_true(is_taken("127.0.0.1:0", id + 6));
    assert_false(is_taken("127.0.0.2:0", id + 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_callers_do_not_keep_a_rank_from_being_called),
        cmocka_unit_test(thousands_of_callers_leave_no_more_than_some_hundred_open),
        cmocka_unit_test(who_greets_and_is_silent_gives_way_to_the_next_address),
        cmocka_unit_test(a_call_that_was_given_up_is_not_taken_for_the_connection),
        cmocka_unit_test(a_rank_listens_only_at_the_addresses_that_others_are_told),
        cmocka_unit_test(ranks_of_one_host_listen_at_its_loopback_address_alone),
        cmocka_unit_test(an_id_for_loopback_is_served_there_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
