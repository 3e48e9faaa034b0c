/* SPDX-License-Identifier: Apache-2.0
 * Two jobs that form at the same time, at neighboring places or at the same one: ranks of one
 * never end up in a communicator of the other. Each job's ranks add numbers of their own, so a mix
 * shows in the sum. */
#include "jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { TRIES = 6 };

/* Ranks start within this time of each other, in a random order. */
enum { JITTER_MS = 200 };

/* A call may only fail where another rank of the job has not formed, because the deadline of that
 * rank passed at the last moment. */
static void expect_unmixed(const struct job *job)
{
    bool is_refused = false;

    for (int rank = 0; rank < job->nranks; rank++)
        is_refused |= job->ranks[rank].status == RANK_REFUSED;
    for (int rank = 0; rank < job->nranks; rank++) {
        int status = job->ranks[rank].status;

        if (status != RANK_RIGHT && status != RANK_REFUSED &&
            !(status == RANK_FAILED_CALL && is_refused))
            job_expect(job, RANK_RIGHT);
    }
}

static void run_pair(struct job pair[2])
{
    job_hold();
    for (int i = 0; i < 2; i++)
        job_start(&pair[i]);
    job_release();
    for (int i = 0; i < 2; i++)
        job_wait(&pair[i]);
}

/* Jobs that nothing but their environments distinguishes are told apart if their ranks begin within
 * a second. A pair in which this machine let a rank begin late proves nothing. */
static bool was_in_time(const struct job pair[2])
{
    bool is_late = false;

    for (int i = 0; i < 2; i++)
        for (int rank = 0; rank < pair[i].nranks; rank++)
            is_late |= pair[i].ranks[rank].status == RANK_LATE;
    if (is_late)
        print_message("a rank began late, so this pair of jobs does not count\n");
    return !is_late;
}

static void delay_at_random(struct job pair[2])
{
    for (int i = 0; i < 2; i++)
        for (int rank = 0; rank < pair[i].nranks; rank++)
            pair[i].delay_ms[rank] = (unsigned)rand() % (JITTER_MS + 1);
}

/* Two jobs of one launcher at ports that are `apart`. */
static void make_pair(struct job pair[2], const char *const *variables, int nranks, unsigned apart)
{
    unsigned port = job_free_port();

    for (int i = 0; i < 2; i++)
        pair[i] = (struct job){.variables = variables, .nranks = nranks, .token = 1 + 1000 * i,
                               .way = "once", .port = port + apart * (unsigned)i};
}

static void torchruns_at_neighboring_ports_both_form(void **state)
{
    static const char *const with_one_secret[] = {
        "RANK=%r", "WORLD_SIZE=%n", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=%p",
        "TORCHELASTIC_RUN_ID=none", "TUTTI_SECRET=of all jobs of this user", NULL};

    (void)state;
    for (int i = 0; i < TRIES; i++) {
        struct job pair[2];

        make_pair(pair, i % 3 == 2 ? with_one_secret : job_launchers[3].variables,
                  i % 2 == 0 ? 2 : 4, 1);
        delay_at_random(pair);
        run_pair(pair);
        job_expect(&pair[0], RANK_RIGHT);
        job_expect(&pair[1], RANK_RIGHT);
    }
}

static void jobs_of_one_launcher_form_side_by_side(void **state)
{
    static const int numbers[] = {0, 5, 7}; /* by socket, of Open MPI, of Slurm */

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct job pair[2];

        make_pair(pair, job_launchers[numbers[i]].variables, 3, 1);
        delay_at_random(pair);
        run_pair(pair);
        job_expect(&pair[0], RANK_RIGHT);
        job_expect(&pair[1], RANK_RIGHT);
    }
}

static bool is_right(const struct job *job)
{
    return job->ranks[0].status == RANK_RIGHT && job->ranks[1].status == RANK_RIGHT;
}

/* One place for two jobs. Nobody computes with the other's numbers, and a job that does not form is
 * told why. */
static void meet_at_one_place(const char *const *variables_a, const char *const *variables_b,
                              const char *path)
{
    for (int i = 0; i < TRIES; i++) {
        struct job pair[2];

        make_pair(pair, variables_a, 2, 0);
        pair[1].variables = variables_b;
        pair[0].path = pair[1].path = path;
        delay_at_random(pair);
        run_pair(pair);
        if (!was_in_time(pair))
            continue;
        for (int k = 0; k < 2; k++) {
            expect_unmixed(&pair[k]);
            assert_true(is_right(&pair[k]) || pair[k].ranks[0].text[0] != '\0' ||
                        pair[k].ranks[1].text[0] != '\0');
        }
    }
}

/* Rank 0 of job b comes first, and its rank 1 long after all others. Rank 0 of job a, which is
 * refused, shows that rank 1 of job a need not be of job b. */
static void meet_without_a_rank(const char *const *variables_a, const char *const *variables_b,
                                const char *path)
{
    struct job pair[2];

    make_pair(pair, variables_a, 2, 0);
    pair[1].variables = variables_b;
    pair[0].path = pair[1].path = path;
    pair[0].delay_ms[0] = 1200;
    pair[0].delay_ms[1] = 1500;
    pair[1].delay_ms[1] = 4000;
    run_pair(pair);
    if (!was_in_time(pair) || is_right(&pair[0])) /* job a came first */
        return;
    job_expect(&pair[0], RANK_REFUSED);
    job_expect(&pair[1], RANK_REFUSED);
    assert_non_null(strstr(pair[0].ranks[0].text, "is rank 0 of a job at"));
    assert_non_null(strstr(pair[0].ranks[1].text, "two jobs meet at"));
    assert_non_null(strstr(pair[1].ranks[0].text, "two jobs meet at"));
}

static void jobs_at_one_port_never_mix(void **state)
{
    static const char *const a[] = {"JOB=a", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                    "TUTTI_ROOT=127.0.0.1:%p", "TUTTI_INIT_TIMEOUT_MS=3000", NULL};
    static const char *const b[] = {"JOB=b", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                    "TUTTI_ROOT=127.0.0.1:%p", "TUTTI_INIT_TIMEOUT_MS=3000", NULL};
    static const char *const a_in_time[] = {"JOB=a", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                            "TUTTI_ROOT=127.0.0.1:%p",
                                            "TUTTI_INIT_TIMEOUT_MS=6000", NULL};
    static const char *const b_in_time[] = {"JOB=b", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                            "TUTTI_ROOT=127.0.0.1:%p",
                                            "TUTTI_INIT_TIMEOUT_MS=6000", NULL};
    static const char *const c[] = {"JOB=c", "RANK=%r", "WORLD_SIZE=%n", "MASTER_ADDR=127.0.0.1",
                                    "MASTER_PORT=%p", "TUTTI_INIT_TIMEOUT_MS=3000", NULL};
    static const char *const d[] = {"JOB=d", "RANK=%r", "WORLD_SIZE=%n", "MASTER_ADDR=127.0.0.1",
                                    "MASTER_PORT=%p", "TUTTI_INIT_TIMEOUT_MS=3000", NULL};

    (void)state;
    meet_at_one_place(a, b, NULL);
    meet_at_one_place(c, d, NULL);
    meet_without_a_rank(a_in_time, b_in_time, NULL);
}

static void jobs_in_one_directory_never_mix(void **state)
{
    static const char *const a[] = {"JOB=a", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                    "TUTTI_ROOT=file:%d", "TUTTI_INIT_TIMEOUT_MS=3000", NULL};
    static const char *const b[] = {"JOB=b", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                    "TUTTI_ROOT=file:%d", "TUTTI_INIT_TIMEOUT_MS=3000", NULL};
    static const char *const a_in_time[] = {"JOB=a", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                            "TUTTI_ROOT=file:%d", "TUTTI_INIT_TIMEOUT_MS=6000",
                                            NULL};
    static const char *const b_in_time[] = {"JOB=b", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                            "TUTTI_ROOT=file:%d", "TUTTI_INIT_TIMEOUT_MS=6000",
                                            NULL};
    char scratch[] = "/tmp/tutti-test-XXXXXX", path[64];
    struct job next[2];

    (void)state;
    assert_non_null(mkdtemp(scratch));
    snprintf(path, sizeof path, "%s/meeting", scratch);
    meet_at_one_place(a, b, path);
    meet_without_a_rank(a_in_time, b_in_time, path);
    /* The last rank to leave removes the notes of its own session only. If its job was refused, the
     * other job's notes stay until the next job comes, which removes them. */
    make_pair(next, a, 2, 0);
    next[0].path = path;
    job_hold();
    job_start(&next[0]);
    job_release();
    job_wait(&next[0]);
    job_expect(&next[0], RANK_RIGHT);
    assert_int_equal(rmdir(scratch), 0);
}

/* Two jobs with secrets of their own: one has the port, at least until it has formed. */
static void secrets_tell_jobs_at_one_port_apart(void **state)
{
    static const char *const a[] = {"TUTTI_SECRET=a", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                    "TUTTI_ROOT=127.0.0.1:%p", "TUTTI_INIT_TIMEOUT_MS=8000", NULL};
    static const char *const b[] = {"TUTTI_SECRET=b", "TUTTI_RANK=%r", "TUTTI_NRANKS=%n",
                                    "TUTTI_ROOT=127.0.0.1:%p", "TUTTI_INIT_TIMEOUT_MS=8000", NULL};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct job pair[2];

        make_pair(pair, a, 2, 0);
        pair[1].variables = b;
        delay_at_random(pair);
        run_pair(pair);
        if (!was_in_time(pair))
            continue;
        expect_unmixed(&pair[0]);
        expect_unmixed(&pair[1]);
        assert_true(is_right(&pair[0]) || is_right(&pair[1]));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torchruns_at_neighboring_ports_both_form),
        cmocka_unit_test(jobs_of_one_launcher_form_side_by_side),
        cmocka_unit_test(jobs_at_one_port_never_mix),
        cmocka_unit_test(jobs_in_one_directory_never_mix),
        cmocka_unit_test(secrets_tell_jobs_at_one_port_apart),
    };
    unsigned seed = (unsigned)getpid();
    int status;

    if (job_is_rank(argc, argv, &status))
        return status;
    print_message("seed %u\n", seed);
    srand(seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
