/* SPDX-License-Identifier: Apache-2.0
 * A file of TUTTI_SCHEDULE serves the calls on device memory that it is for, step by step in
 * kernels. The log says why it does not serve others. */
#include "gpu/ranks.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 5000 };

/* A broadcast of rank 0 to two others, who get it one after the other. */
static const char chain[] =
    "tutti-schedule 1\ncollective broadcast\nranks 3\nroot 0\n"
    "rank 0\nsend to 1 src input[0]\ncopy src input[0] dst output[0]\n"
    "rank 1\nrecv from 0 dst output[0]\nsend to 2 src output[0]\n"
    "rank 2\nrecv from 1 dst output[0]\n";

/* Twice from each root. */
static tuttiResult_t spread(struct rank *rank)
{
    int32_t numbers[COUNT];
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < 2 * NRANKS && result == tuttiSuccess; i++) {
        int root = i % NRANKS;

        for (int at = 0; at < COUNT; at++)
            numbers[at] = rank->seat->rank + at;
        upload(rank, numbers, sizeof numbers);
        result = tuttiBroadcast(rank->numbers, rank->numbers, COUNT, tuttiInt32, root,
                                rank->seat->comm, NULL);
        must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers, sizeof numbers));
        for (int at = 0; at < COUNT; at++)
            if (numbers[at] != root + at)
                return tuttiInternalError;
    }
    return result;
}

static void a_file_serves_its_root_and_the_log_tells_why_not_others(void **state)
{
    char path[] = "/tmp/tutti_schedule_XXXXXX", refusal[128];
    const char *environment[] = {"TUTTI_SCHEDULE", path, "TUTTI_DEBUG", "info", NULL};
    const struct script script = {spread, 0, COUNT, NULL};
    int fd = mkstemp(path);
    const char *said;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, chain, strlen(chain)), strlen(chain));
    close(fd);
    snprintf(refusal, sizeof refusal,
             "does not run by TUTTI_SCHEDULE, since %s is for root 0, not 1", path);
    for (int is_threads = 0; is_threads < 2; is_threads++) {
        said = play_aloud(&script, is_threads, environment);
        assert_int_equal(count_lines_with(said, "step by step: by TUTTI_SCHEDULE"), 1);
        assert_int_equal(count_lines_with(said, refusal), 1);
        assert_int_equal(count_lines_with(said, "does not run by TUTTI_SCHEDULE"), 1);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_serves_its_root_and_the_log_tells_why_not_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
