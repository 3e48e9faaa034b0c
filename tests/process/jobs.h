/* SPDX-License-Identifier: Apache-2.0
 * A job has ranks that form communicators from the environment, as if a launcher had started them.
 * Each rank is this test program again, with its own variables. */
#ifndef TUTTI_TESTS_JOBS_H
#define TUTTI_TESTS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { JOB_RANKS_MAX = 8, JOB_TEXT_BYTES = 4096 };

/* How a rank ended. RANK_LATE: it was held, began much later than its delay because the machine is
 * busy, and failed. Other exit statuses are those of signals. */
enum {
    RANK_RIGHT = 0,
    RANK_REFUSED = 10,
    RANK_WRONG_SUM = 11,
    RANK_FAILED_CALL = 12,
    RANK_LATE = 13,
};

struct job_rank {
    pid_t pid;
    int fd; /* of what it says */
    int status;
    char text[JOB_TEXT_BYTES];
};

struct job {
    /* "NAME=text", with %r, %n, %p, %d for rank, nranks, port, path. */
    const char *const *variables;
    int nranks;
    int token;       /* what each rank adds to every sum, so that jobs can be told apart */
    const char *way; /* how it forms communicators; see jobs.c */
    unsigned port;
    const char *path;
    unsigned delay_ms[JOB_RANKS_MAX]; /* before a rank starts to form */
    struct job_rank ranks[JOB_RANKS_MAX];
};

/* The variables of each launcher that this machine need not have. */
struct job_launcher {
    const char *name;
    const char *variables[8];
};
extern const struct job_launcher job_launchers[];
extern const int job_launcher_count;

/* A port that is free, with 40 behind it that may be used as well. */
unsigned job_free_port(void);

/* Start all ranks; wait for them, at most a minute. Between job_hold and job_release, ranks start
 * and wait, so that their delays count from one moment. */
void job_hold(void);
void job_release(void);
void job_start(struct job *job);
void job_wait(struct job *job);

/* All ranks ended like this, or the test fails with what they said. */
void job_expect(const struct job *job, int status);

/* For main: if this process is to be a rank, be it; the exit status is that of the rank. */
bool job_is_rank(int argc, char **argv, int *ret_status);

#endif
