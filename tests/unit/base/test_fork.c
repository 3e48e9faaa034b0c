/* SPDX-License-Identifier: Apache-2.0
 * A child made by fork has none of its parent's sockets. */
#include "base/fork.h"

#include "base/result.h"
#include "base/socket.h"
#include "support/address.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* The exit status of a child that runs `body`. */
static int in_a_child(int (*body)(const int *fds), const int *fds)
{
    int status = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(body(fds));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int count_open(const int *fds)
{
    int count = 0;

    for (; *fds >= 0; fds++)
        count += is_open(*fds);
    return count;
}

static void make_sockets(int ret_fds[5])
{
    struct tutti_address address;
    int rc;

    assert_int_equal(address_parse("127.0.0.1:0", &address), TUTTI_OK);
    assert_int_equal(tutti_socket_listen(&address, &ret_fds[0], &address.port_be), TUTTI_OK);
    ret_fds[1] = -1;
    while ((rc = tutti_socket_connect(&address, &ret_fds[1])) == TUTTI_AGAIN)
        ;
    assert_int_equal(rc, TUTTI_OK);
    while ((rc = tutti_socket_accept(ret_fds[0], &ret_fds[2])) == TUTTI_AGAIN)
        ;
    assert_int_equal(rc, TUTTI_OK);
    ret_fds[3] = tutti_socket_open(AF_UNIX, SOCK_DGRAM);
    assert_true(ret_fds[3] >= 0);
    ret_fds[4] = -1;
}

static void close_all(const int *fds)
{
    for (; *fds >= 0; fds++)
        close(*fds);
}

static void a_child_has_none_of_the_sockets_and_the_parent_keeps_all(void **state)
{
    int fds[5];

    (void)state;
    make_sockets(fds);
    assert_int_equal(in_a_child(count_open, fds), 0);
    assert_int_equal(count_open(fds), 4);
    close_all(fds);
}

/* After a socket was closed, its number may denote a descriptor of the program. */
static void what_has_the_number_of_a_former_socket_is_left_alone(void **state)
{
    int fds[5];

    (void)state;
    make_sockets(fds);
    for (int i = 0; i < 4; i++) {
        int other = i % 2 == 0 ? open("/dev/null", O_RDONLY) : socket(AF_INET, SOCK_STREAM, 0);

        assert_true(other >= 0);
        assert_int_equal(dup2(other, fds[i]), fds[i]);
        close(other);
    }
    assert_int_equal(in_a_child(count_open, fds), 4);
    close_all(fds);
}

static int make_more_and_fork(const int *fds)
{
    int own[5];

    if (count_open(fds) != 0)
        return 100;
    make_sockets(own);
    return 10 * count_open(own) + in_a_child(count_open, own);
}

static void a_child_has_sockets_of_its_own_which_its_child_has_not(void **state)
{
    int fds[5];

    (void)state;
    make_sockets(fds);
    assert_int_equal(in_a_child(make_more_and_fork, fds), 40);
    close_all(fds);
}

static bool is_over; /* atomic */

static void *open_and_close(void *argument)
{
    (void)argument;
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        int fd = tutti_socket_open(AF_UNIX, SOCK_STREAM);

        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

static int count_sockets(const int *fds)
{
    int count = 0;

    (void)fds;
    for (int fd = 3; fd < 64; fd++) {
        int type;
        socklen_t size = sizeof type;

        count += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    }
    return count;
}

/* Whatever another thread is at when the child is made. */
static void sockets_that_are_just_being_made_are_not_passed_on_either(void **state)
{
    int before = count_sockets(NULL);
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, open_and_close, NULL), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(in_a_child(count_sockets, NULL), before);
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_none_of_the_sockets_and_the_parent_keeps_all),
        cmocka_unit_test(what_has_the_number_of_a_former_socket_is_left_alone),
        cmocka_unit_test(a_child_has_sockets_of_its_own_which_its_child_has_not),
        cmocka_unit_test(sockets_that_are_just_being_made_are_not_passed_on_either),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
