/* SPDX-License-Identifier: Apache-2.0
 * Other processes of the host occupy the socket over which shared memory is passed. Everybody can
 * read its name in /proc/net/unix. */
#include "transport/shm/pass.h"

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { CALLS = 40, NOBODY = 65534, FORMING_MS = 30000 };

/* As transport/shm/pass.c names it. */
static void name_of(const uint8_t secret[TUTTI_SECRET_BYTES], char ret_name[64])
{
    uint8_t hidden[TUTTI_SECRET_BYTES];
    size_t length = (size_t)snprintf(ret_name, 64, "tutti-");

    tutti_secret_derive(secret, "segment name", 0, hidden);
    for (int i = 0; i < 16; i++)
        length += (size_t)snprintf(ret_name + length, 64 - length, "%02x", hidden[i]);
}

/* Call as often as the queue takes, say nothing, and stay. Tells by a byte when it has. */
static void occupy(const char *name, uid_t user, int tell_fd)
{
    if (user != geteuid() && setuid(user) != 0)
        _exit(1);
    for (int i = 0; i < CALLS; i++) {
        int fd, rc;

        do
            rc = tutti_socket_connect_unix(name, &fd);
        while (rc == TUTTI_AGAIN);
        if (rc != TUTTI_OK)
            _exit(2);
    }
    if (write(tell_fd, "", 1) != 1)
        _exit(3);
    alarm(120);
    for (;;)
        pause();
}

/* Two members of a host, while a process of `user` occupies the first one's socket. */
static void pass_a_descriptor(uid_t user)
{
    struct tutti_pass_args args = {.nmembers = 2, .fd = open("/dev/null", O_RDONLY)};
    struct tutti_pass *passes[2];
    int fds[2] = {-1, -1}, results[2] = {TUTTI_AGAIN, TUTTI_AGAIN}, ends[2];
    char name[64], byte;
    pid_t child;

    tutti_random_bytes(args.secret, sizeof args.secret);
    args.deadline_ns = tutti_pass_deadline(tutti_deadline_ns(FORMING_MS));
    assert_int_equal(tutti_pass_create(&args, &passes[0]), TUTTI_OK);
    args.me = 1;
    args.fd = -1;
    assert_int_equal(tutti_pass_create(&args, &passes[1]), TUTTI_OK);
    name_of(args.secret, name);

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        occupy(name, user, ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);

    while (results[0] == TUTTI_AGAIN || results[1] == TUTTI_AGAIN)
        for (int i = 0; i < 2; i++)
            if (results[i] == TUTTI_AGAIN)
                results[i] = tutti_pass_step(passes[i], &fds[i]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(results[0], TUTTI_OK);
    assert_int_equal(results[1], TUTTI_OK);
    for (int i = 0; i < 2; i++) {
        tutti_pass_destroy(passes[i]);
        close(fds[i]);
    }
}

static void another_user_does_not_keep_ranks_off_shared_memory(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("SKIPPED: only root can be another user\n");
        skip();
    }
    pass_a_descriptor(NOBODY);
}

static void silent_processes_of_our_user_give_their_places_up(void **state)
{
    (void)state;
    pass_a_descriptor(geteuid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_user_does_not_keep_ranks_off_shared_memory),
        cmocka_unit_test(silent_processes_of_our_user_give_their_places_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
