/* SPDX-License-Identifier: Apache-2.0
 * Tests sockets and addresses. The kernel always chooses the ports. */
#include "base/socket.h"

#include "base/param.h"
#include "base/result.h"
#include "support/address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const loopbacks[] = {"127.0.0.1:0", "[::1]:0"};

static void wait_for(int fd, short events)
{
    struct pollfd ready = {.fd = fd, .events = events};

    assert_int_equal(poll(&ready, 1, 60000), 1);
}

static bool is_nonblocking_and_close_on_exec(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) && (fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* A connected pair over loopback. */
static void connect_pair(const char *where, int *ret_near, int *ret_far)
{
    struct tutti_address address;
    int listener, rc;

    assert_int_equal(address_parse(where, &address), TUTTI_OK);
    assert_int_equal(tutti_socket_listen(&address, &listener, &address.port_be), TUTTI_OK);
    assert_int_equal(tutti_socket_accept(listener, ret_far), TUTTI_AGAIN);
    assert_true(is_nonblocking_and_close_on_exec(listener));

    *ret_near = -1;
    while ((rc = tutti_socket_connect(&address, ret_near)) == TUTTI_AGAIN)
        wait_for(*ret_near, POLLOUT);
    assert_int_equal(rc, TUTTI_OK);
    wait_for(listener, POLLIN);
    assert_int_equal(tutti_socket_accept(listener, ret_far), TUTTI_OK);
    assert_true(is_nonblocking_and_close_on_exec(*ret_near));
    assert_true(is_nonblocking_and_close_on_exec(*ret_far));
    close(listener);
}

static void addresses_survive_text(void **state)
{
    static const struct {
        const char *text;
        int family;
        bool is_loopback;
        const char *formatted; /* NULL: the same */
    } cases[] = {
        {"10.0.0.1:4711", 4, false, NULL},
        {"127.9.0.1:1", 4, true, NULL},
        {"[::1]:65535", 6, true, NULL},
        {"[fe80::1]:4711", 6, false, NULL},
        {"[2001:db8::17]:80", 6, false, NULL},
        {"[::ffff:10.1.2.3]:9", 4, false, "10.1.2.3:9"},
        {"1.2.3.4:0", 4, false, NULL},
    };
    char text[TUTTI_ADDRESS_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_address address;

        assert_int_equal(address_parse(cases[i].text, &address), TUTTI_OK);
        assert_int_equal(address.family, cases[i].family);
        assert_int_equal(address.is_loopback, cases[i].is_loopback);
        assert_string_equal(tutti_address_format(&address, text),
                            cases[i].formatted ? cases[i].formatted : cases[i].text);
    }
}

static void a_name_is_resolved_and_families_can_be_chosen(void **state)
{
    struct tutti_address addresses[8];
    size_t count;

    (void)state;
    assert_int_equal(tutti_address_resolve("localhost:99", addresses, 8, &count), TUTTI_OK);
    assert_in_range(count, 1, 8);
    for (size_t i = 0; i < count; i++) {
        assert_true(addresses[i].is_loopback);
        assert_int_equal(addresses[i].port_be, htons(99));
    }

    setenv("TUTTI_SOCKET_FAMILY", "ipv4", 1);
    tutti_param_reset();
    assert_int_equal(tutti_address_resolve("localhost:99", addresses, 8, &count), TUTTI_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(addresses[i].family, 4);
    unsetenv("TUTTI_SOCKET_FAMILY");
    tutti_param_reset();
}

static void what_is_no_address_is_refused_and_named(void **state)
{
    static const char *const texts[] = {
        "", ":", "10.0.0.1", "10.0.0.1:", ":4711", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0.1:+1",
        "10.0.0.1:47x", "10.0.0.1: 47", "::1:4711", "[::1]4711", "[::1]", "[]:1", "[:1", "]:1",
        "[::1:4711", "10.0.0.1:99999999999999999999", "1.2.3.4.5.invalid:1"};
    struct tutti_address address;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(address_parse(texts[i], &address), TUTTI_ERR_ARGUMENT);
        assert_non_null(strstr(tutti_message_last(), texts[i]));
    }
}

static void list_with(const char *ifname, const char *family, int expected,
                      struct tutti_address addresses[32], size_t *ret_count)
{
    setenv("TUTTI_SOCKET_IFNAME", ifname, 1);
    setenv("TUTTI_SOCKET_FAMILY", family, 1);
    tutti_param_reset();
    assert_int_equal(tutti_address_list(addresses, 32, ret_count), expected);
    unsetenv("TUTTI_SOCKET_IFNAME");
    unsetenv("TUTTI_SOCKET_FAMILY");
    tutti_param_reset();
}

static void addresses_of_this_host_end_with_loopback(void **state)
{
    struct tutti_address addresses[32];
    size_t count, loopback_count = 0;

    (void)state;
    list_with("", "any", TUTTI_OK, addresses, &count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(addresses[i].port_be, 0);
        assert_true(addresses[i].family == 4 || addresses[i].family == 6);
        assert_true(loopback_count == 0 || addresses[i].is_loopback);
        loopback_count += addresses[i].is_loopback;
    }
    assert_true(loopback_count > 0);
    assert_int_equal(tutti_address_list(addresses, 1, &count), TUTTI_OK);
    assert_int_equal(count, 1);
}

static void filters_choose_interfaces_and_families(void **state)
{
    struct tutti_address addresses[32];
    size_t count, others = 0;

    (void)state;
    list_with("=lo", "any", TUTTI_OK, addresses, &count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        assert_true(addresses[i].is_loopback);

    list_with("", "ipv4", TUTTI_OK, addresses, &count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(addresses[i].family, 4);
        others += !addresses[i].is_loopback;
    }
    /* Without loopback only the others are left; if there are none, it is still there. */
    list_with("^lo", "ipv4", TUTTI_OK, addresses, &count);
    if (others > 0) {
        assert_int_equal(count, others);
    } else {
        assert_true(count > 0);
        assert_true(addresses[0].is_loopback);
    }
}

static void a_filter_that_matches_nothing_is_named(void **state)
{
    struct tutti_address addresses[32];
    size_t count;

    (void)state;
    list_with("=nosuchif,nosuchprefix", "any", TUTTI_ERR_USAGE, addresses, &count);
    assert_non_null(strstr(tutti_message_last(), "nosuchprefix"));
    assert_non_null(strstr(tutti_message_last(), " lo"));
}

static void a_pair_connects_and_moves_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char buffer[16];
        size_t done = 99;
        int near_fd, far_fd;

        connect_pair(loopbacks[i], &near_fd, &far_fd);
        assert_int_equal(tutti_socket_tune(near_fd, 0), TUTTI_OK);
        assert_int_equal(tutti_socket_tune(far_fd, 65536), TUTTI_OK);
        assert_int_equal(tutti_socket_recv(far_fd, buffer, sizeof buffer, &done), TUTTI_OK);
        assert_int_equal(done, 0);
        assert_int_equal(tutti_socket_recv(far_fd, buffer, 0, &done), TUTTI_OK);
        assert_int_equal(tutti_socket_send(near_fd, "tutti", 5, &done), TUTTI_OK);
        assert_int_equal(done, 5);
        wait_for(far_fd, POLLIN);
        assert_int_equal(tutti_socket_recv(far_fd, buffer, sizeof buffer, &done), TUTTI_OK);
        assert_int_equal(done, 5);
        assert_memory_equal(buffer, "tutti", 5);
        close(near_fd);
        close(far_fd);
    }
}

static void a_full_socket_sends_less_and_never_blocks(void **state)
{
    static char data[1 << 20];
    size_t done;
    int near_fd, far_fd;

    (void)state;
    connect_pair(loopbacks[0], &near_fd, &far_fd);
    do
        assert_int_equal(tutti_socket_send(near_fd, data, sizeof data, &done), TUTTI_OK);
    while (done > 0);
    close(near_fd);
    close(far_fd);
}

static void a_closed_peer_is_an_error_and_no_signal(void **state)
{
    char byte = 0;
    size_t done;
    int near_fd, far_fd, rc;

    (void)state;
    connect_pair(loopbacks[0], &near_fd, &far_fd);
    close(far_fd);
    wait_for(near_fd, POLLIN);
    assert_int_equal(tutti_socket_recv(near_fd, &byte, 1, &done), TUTTI_ERR_REMOTE);
    assert_non_null(strstr(tutti_message_last(), "closed"));
    /* The first byte draws the reset; SIGPIPE would end this process. */
    while ((rc = tutti_socket_send(near_fd, &byte, 1, &done)) == TUTTI_OK)
        wait_for(near_fd, POLLOUT);
    assert_int_equal(rc, TUTTI_ERR_REMOTE);
    close(near_fd);
}

static void a_port_in_use_is_named(void **state)
{
    struct tutti_address address;
    char text[TUTTI_ADDRESS_TEXT_BYTES];
    int listener, second;
    uint16_t port_be;

    (void)state;
    assert_int_equal(address_parse(loopbacks[0], &address), TUTTI_OK);
    assert_int_equal(tutti_socket_listen(&address, &listener, &address.port_be), TUTTI_OK);
    assert_int_equal(tutti_socket_listen(&address, &second, &port_be), TUTTI_ERR_SYSTEM);
    assert_non_null(strstr(tutti_message_last(), tutti_address_format(&address, text)));
    assert_non_null(strstr(tutti_message_last(), "in use"));
    close(listener);
}

static void a_refused_connect_leaves_no_descriptor(void **state)
{
    struct tutti_address address;
    int listener, fd = -1, rc;

    (void)state;
    assert_int_equal(address_parse(loopbacks[0], &address), TUTTI_OK);
    assert_int_equal(tutti_socket_listen(&address, &listener, &address.port_be), TUTTI_OK);
    close(listener); /* a port that was free a moment ago */
    while ((rc = tutti_socket_connect(&address, &fd)) == TUTTI_AGAIN)
        wait_for(fd, POLLOUT);
    assert_int_equal(rc, TUTTI_ERR_REMOTE);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(tutti_message_last(), "refused"));
}

static void one_listener_serves_both_families(void **state)
{
    struct tutti_address address = {.family = 0};
    uint16_t port_be;
    int listener;

    (void)state;
    assert_int_equal(tutti_socket_listen(&address, &listener, &port_be), TUTTI_OK);
    assert_int_not_equal(port_be, 0);
    for (size_t i = 0; i < 2; i++) {
        struct tutti_address to;
        int near_fd = -1, far_fd, rc;

        assert_int_equal(address_parse(loopbacks[i], &to), TUTTI_OK);
        to.port_be = port_be;
        while ((rc = tutti_socket_connect(&to, &near_fd)) == TUTTI_AGAIN)
            wait_for(near_fd, POLLOUT);
        assert_int_equal(rc, TUTTI_OK);
        wait_for(listener, POLLIN);
        assert_int_equal(tutti_socket_accept(listener, &far_fd), TUTTI_OK);
        close(near_fd);
        close(far_fd);
    }
    close(listener);
}

static void unix_sockets_connect_and_pass_descriptors(void **state)
{
    char name[64], byte = 0;
    int listener, near_fd, far_fd, passed, pipe_fds[2];

    (void)state;
    snprintf(name, sizeof name, "tutti-test-%d", (int)getpid());
    assert_int_equal(tutti_socket_connect_unix(name, &near_fd), TUTTI_AGAIN);
    assert_int_equal(tutti_socket_listen_unix(name, &listener), TUTTI_OK);
    assert_int_equal(tutti_socket_accept(listener, &far_fd), TUTTI_AGAIN);
    assert_int_equal(tutti_socket_connect_unix(name, &near_fd), TUTTI_OK);
    assert_int_equal(tutti_socket_accept(listener, &far_fd), TUTTI_OK);

    assert_int_equal(tutti_socket_recv_fd(far_fd, &passed), TUTTI_AGAIN);
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(tutti_socket_send_fd(near_fd, pipe_fds[1]), TUTTI_OK);
    assert_int_equal(tutti_socket_recv_fd(far_fd, &passed), TUTTI_OK);
    assert_true(fcntl(passed, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(passed, "x", 1), 1);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');

    /* A byte without a descriptor is a protocol error, an end of stream is a lost peer. */
    assert_int_equal(write(near_fd, "x", 1), 1);
    assert_int_equal(tutti_socket_recv_fd(far_fd, &passed), TUTTI_ERR_REMOTE);
    close(near_fd);
    assert_int_equal(tutti_socket_recv_fd(far_fd, &passed), TUTTI_ERR_REMOTE);
    assert_int_equal(tutti_socket_send_fd(far_fd, pipe_fds[0]), TUTTI_ERR_REMOTE);
    close(far_fd);
    close(listener);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    close(passed);
}

static void surplus_descriptors_are_closed(void **state)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fds[2], pipe_fds[2], passed;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(pipe(pipe_fds), 0);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(3 * sizeof(int));
    for (int i = 0; i < 3; i++)
        memcpy(CMSG_DATA(header) + (size_t)i * sizeof(int), &pipe_fds[1], sizeof(int));
    assert_int_equal(sendmsg(fds[0], &message, 0), 1);
    assert_int_equal(tutti_socket_recv_fd(fds[1], &passed), TUTTI_ERR_REMOTE);
    /* With every writing end closed the reader sees the end of the stream. */
    close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
    close(fds[0]);
    close(fds[1]);
}

static void a_unix_name_too_long_is_refused(void **state)
{
    char name[256];
    int fd;

    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(tutti_socket_listen_unix(name, &fd), TUTTI_ERR_ARGUMENT);
    assert_int_equal(tutti_socket_connect_unix(name, &fd), TUTTI_ERR_ARGUMENT);
    assert_int_equal(tutti_socket_listen_unix("", &fd), TUTTI_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_survive_text),
        cmocka_unit_test(a_name_is_resolved_and_families_can_be_chosen),
        cmocka_unit_test(what_is_no_address_is_refused_and_named),
        cmocka_unit_test(addresses_of_this_host_end_with_loopback),
        cmocka_unit_test(filters_choose_interfaces_and_families),
        cmocka_unit_test(a_filter_that_matches_nothing_is_named),
        cmocka_unit_test(a_pair_connects_and_moves_bytes),
        cmocka_unit_test(a_full_socket_sends_less_and_never_blocks),
        cmocka_unit_test(a_closed_peer_is_an_error_and_no_signal),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(a_refused_connect_leaves_no_descriptor),
        cmocka_unit_test(one_listener_serves_both_families),
        cmocka_unit_test(unix_sockets_connect_and_pass_descriptors),
        cmocka_unit_test(surplus_descriptors_are_closed),
        cmocka_unit_test(a_unix_name_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
