/* SPDX-License-Identifier: Apache-2.0
 * Communicators form from the environment: any number of them, in a row, in groups and in threads,
 * under the variables of every launcher, with no barrier between. Nothing remains afterwards. */
#include "jobs.h"

#include "tutti.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* The thread sanitizer leaves files of a process that is killed while it starts. */
static bool is_of_sanitizer(DIR *stream, const char *name)
{
    return strncmp(name, "tsan.", strlen("tsan.")) == 0 && unlinkat(dirfd(stream), name, 0) == 0;
}

static void expect_empty_scratch(const char *after)
{
    DIR *stream = opendir(scratch);

    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (entry->d_name[0] != '.' && !is_of_sanitizer(stream, entry->d_name))
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

/* ---- a directory that is gone ------------------------------------------------------------------ */

/* Two ranks meet in `path`, report this by a byte, and live until they are killed. */
static void start_pair(const char *path, pid_t pids[2])
{
    char store[256], byte;
    int ends[2];

    snprintf(store, sizeof store, "file:%s", path);
    assert_int_equal(pipe(ends), 0);
    for (int rank = 0; rank < 2; rank++) {
        pids[rank] = fork();
        if (pids[rank] != 0)
            continue;
        tuttiComm_t comm;
        bool is_formed = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
                         setenv("TUTTI_INIT_TIMEOUT_MS", "5000", 1) == 0 &&
                         tuttiCommInitStore(&comm, 2, rank, store, NULL, NULL) ==
                             tuttiSuccess;

        byte = is_formed ? '+' : '-';
        while (write(ends[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(read(ends[0], &byte, 1), 1);
        assert_int_equal(byte, '+');
    }
    close(ends[0]);
    close(ends[1]);
}

static void kill_pair(const pid_t pids[2])
{
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(kill(pids[rank], SIGKILL), 0);
        assert_int_equal(waitpid(pids[rank], NULL, 0), pids[rank]);
    }
}

/* The first job continues when its directory has been removed. Another directory never passes for
 * that one, so a file system that reuses the numbers of inodes must not reuse this one. */
static void a_removed_directory_is_not_taken_for_a_new_one(void **state)
{
    char paths[2][96];
    pid_t pairs[2][2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/meeting-%d", scratch, i);
        assert_int_equal(mkdir(paths[i], 0700), 0);
        start_pair(paths[i], pairs[i]);
        assert_int_equal(rmdir(paths[i]), 0);
    }
    kill_pair(pairs[0]);
    kill_pair(pairs[1]);
    expect_empty_scratch("a directory that was removed");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicators_form_in_a_row_without_a_barrier),
        cmocka_unit_test(communicators_with_names_form_in_one_group),
        cmocka_unit_test(threads_form_communicators_with_names_of_their_own),
        cmocka_unit_test(threads_without_names_are_refused_and_never_mixed),
        cmocka_unit_test(a_job_that_is_killed_leaves_nothing_that_hinders_the_next),
        cmocka_unit_test(a_removed_directory_is_not_taken_for_a_new_one),
    };
    int status;

    if (job_is_rank(argc, argv, &status))
        return status;
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
