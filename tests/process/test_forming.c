/* SPDX-License-Identifier: Apache-2.0
 * Communicators from the environment: any number of them, in a row, in groups and by threads, under
 * every launcher's variables, with no barrier between; and what stays behind, which is nothing. */
#include "jobs.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char scratch[64];

static int make_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/tutti-test-XXXXXX");
    if (mkdtemp(scratch) == NULL)
        return 1;
    return setenv("TMPDIR", scratch, 1);
}

static int remove_scratch(void **state)
{
    (void)state;
    return rmdir(scratch);
}

static void expect_empty_scratch(const char *after)
{
    DIR *stream = opendir(scratch);

    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (entry->d_name[0] != '.')
            fail_msg("%s leaves %s behind", after, entry->d_name);
    closedir(stream);
}

static void form_under_all_launchers(const char *way, int nranks, int times)
{
    char path[96];

    snprintf(path, sizeof path, "%s/meeting", scratch);
    for (int i = 0; i < job_launcher_count; i++)
        for (int time = 0; time < times; time++) {
            struct job job = {.variables = job_launchers[i].variables, .nranks = nranks,
                              .token = 100, .way = way, .port = job_free_port(), .path = path};

            job_start(&job);
            job_wait(&job);
            job_expect(&job, RANK_RIGHT);
            expect_empty_scratch(job_launchers[i].name);
        }
}

static void communicators_form_in_a_row_without_a_barrier(void **state)
{
    (void)state;
    form_under_all_launchers("row", 2, 3);
    form_under_all_launchers("row", 4, 2);
}

static void communicators_with_names_form_in_one_group(void **state)
{
    (void)state;
    form_under_all_launchers("group", 3, 1);
}

static void threads_form_communicators_with_names_of_their_own(void **state)
{
    (void)state;
    form_under_all_launchers("threads", 3, 2);
}

static void threads_without_names_are_refused_and_never_mixed(void **state)
{
    (void)state;
    form_under_all_launchers("unordered", 2, 1);
}

/* All ranks are killed at some moment while they form. Where they met in a directory, the next job
 * there finds what they have left, and removes it. */
static void a_job_that_is_killed_leaves_nothing_that_hinders_the_next(void **state)
{
    char path[96];

    (void)state;
    snprintf(path, sizeof path, "%s/meeting", scratch);
    for (int i = 0; i < job_launcher_count; i++)
        for (int time = 0; time < 3; time++) {
            struct job job = {.variables = job_launchers[i].variables, .nranks = 3, .token = 5,
                              .way = "once", .port = job_free_port(), .path = path};

            /* The last rank comes so late that the others are killed while they wait for it. */
            job.delay_ms[2] = 60000;
            job_start(&job);
            usleep(20000u * (unsigned)time);
            for (int rank = 0; rank < 3; rank++)
                assert_int_equal(kill(job.ranks[rank].pid, SIGKILL), 0);
            job_wait(&job); /* who was killed last may have noticed the first, and ended itself */
            if (strstr(job_launchers[i].name, "directory") == NULL)
                expect_empty_scratch(job_launchers[i].name);

            job.delay_ms[2] = 0;
            job_start(&job);
            job_wait(&job);
            job_expect(&job, RANK_RIGHT);
        }
    expect_empty_scratch("the last job");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicators_form_in_a_row_without_a_barrier),
        cmocka_unit_test(communicators_with_names_form_in_one_group),
        cmocka_unit_test(threads_form_communicators_with_names_of_their_own),
        cmocka_unit_test(threads_without_names_are_refused_and_never_mixed),
        cmocka_unit_test(a_job_that_is_killed_leaves_nothing_that_hinders_the_next),
    };
    int status;

    if (job_is_rank(argc, argv, &status))
        return status;
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
