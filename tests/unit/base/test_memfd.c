/* SPDX-License-Identifier: Apache-2.0
 * No process can change the size of a file in memory. */
#include "base/memfd.h"

#include "base/result.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { SIZE = 1 << 16 };

static void nobody_can_change_the_size(void **state)
{
    struct stat status;
    int fd;

    (void)state;
    assert_int_equal(tutti_memfd_create("test", SIZE, &fd), TUTTI_OK);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, SIZE);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(ftruncate(fd, SIZE / 2), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 2 * SIZE), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    /* Its pages can be given back all the same. */
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE), 0);
    close(fd);
}

/* In a child: a limit may be lowered, not raised. The kernel would end it by SIGXFSZ. */
static void a_limit_on_files_is_an_error_that_names_it(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = SIZE, .rlim_max = SIZE};
        int fd = -1;

        setrlimit(RLIMIT_FSIZE, &limit);
        if (tutti_memfd_create("test", SIZE, &fd) != TUTTI_OK)
            _exit(1);
        close(fd);
        fd = -1;
        if (tutti_memfd_create("test", SIZE + 1, &fd) != TUTTI_ERR_SYSTEM || fd != -1)
            _exit(2);
        _exit(strstr(tutti_message_last(), "65536 bytes (RLIMIT_FSIZE)") != NULL ? 0 : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_can_change_the_size),
        cmocka_unit_test(a_limit_on_files_is_an_error_that_names_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
