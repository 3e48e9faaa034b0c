/* SPDX-License-Identifier: Apache-2.0
 * Starts the ranks. The launcher forks all processes before any of them calls the library. The
 * first process makes the communicator's id, because the process that makes an id must hold a rank.
 * It passes the id to the other processes through a pipe. */
#include "launch.h"

#include "timing.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The other processes may run this long after one has failed, so that they can report their own
 * errors. */
#define GRACE_SECONDS 10

/* The ranks of one process. */
struct team {
    const struct perf_options *options;
    tuttiUniqueId id; /* of the communicator to measure */
    int first;        /* the first rank of this process */
    int nranks;       /* number of ranks of all processes */
};

/* One rank of a team. */
struct member {
    const struct team *team;
    struct perf_rank rank;
    pthread_t thread;
    int code; /* exit code */
};

/* The thread of a stream keeps the set of CPUs that the calling thread had when it made the stream.
 * So this function binds the calling thread twice: first for the stream, then for itself. */
static void make_stream(struct perf_rank *rank)
{
    const struct perf_cpus *cpus = &rank->options->cpus;
    int error = perf_cpus_bind_for_stream(cpus);

    perf_must(rank, "tuttiHostStreamCreate", tuttiHostStreamCreate(&rank->stream));
    if (error == 0)
        error = perf_cpus_settle(cpus, rank->rank);
    if (error != 0)
        perf_die(rank, "--overlap: cannot run on these CPUs: %s", strerror(error));
}

/* perf_gpu_init has already made the stream of a GPU. A barrier on a GPU always gets this stream. A
 * barrier has no buffers, so only the stream tells the library that the call is on a GPU. */
static void choose_stream(struct perf_rank *rank)
{
    bool is_wanted = rank->options->use_stream;

    if (rank->options->use_gpu)
        rank->stream = is_wanted || !perf_collective.has_data ? rank->gpu.stream : NULL;
    else if (is_wanted)
        make_stream(rank);
}

/* Runs one rank that has a communicator, and returns the exit code. */
static int run_rank(struct perf_rank *rank)
{
    int code;

    choose_stream(rank);
    code = perf_rank_main(rank);
    if (!rank->options->use_gpu) /* perf_gpu_fini destroys the stream of a GPU */
        perf_must(rank, "tuttiHostStreamDestroy", tuttiHostStreamDestroy(rank->stream));
    perf_must(rank, "tuttiCommFinalize", tuttiCommFinalize(rank->comm));
    perf_must(rank, "tuttiCommDestroy", tuttiCommDestroy(rank->comm));
    perf_gpu_fini(&rank->gpu);
    return code;
}

/* The main function of a rank's thread: forms the communicator and runs the rank. */
static void *run_member(void *argument)
{
    struct member *member = argument;
    const struct perf_options *options = member->team->options;
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    double begun;

    if (options->use_gpu) {
        perf_gpu_init(&member->rank.gpu, member->rank.rank, options->gpu);
        config.device = member->rank.gpu.device;
    }
    begun = perf_now_us(false);
    perf_must(&member->rank, "tuttiCommInitRankConfig",
              tuttiCommInitRankConfig(&member->rank.comm, member->rank.nranks, member->team->id,
                                      member->rank.rank, &config));
    member->rank.formed_us = perf_now_us(false) - begun;
    member->code = run_rank(&member->rank);
    return NULL;
}

/* Runs the ranks of one process, each in its own thread, and returns the largest exit code. */
static int run_team(const struct team *team)
{
    int nthreads = team->options->threads, code = 0;
    struct member *members = calloc((size_t)nthreads, sizeof(*members));

    if (members == NULL) {
        fprintf(stderr, "%s_perf: no memory for %d threads\n", perf_collective.name, nthreads);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < nthreads; i++) {
        struct member *member = &members[i];

        member->team = team;
        member->rank = (struct perf_rank){.options = team->options, .rank = team->first + i,
                                          .nranks = team->nranks, .thread = i};
        if (pthread_create(&member->thread, NULL, run_member, member) != 0)
            perf_die(&member->rank, "cannot start thread %d of %d", i, nthreads);
    }
    for (int i = 0; i < nthreads; i++) {
        pthread_join(members[i].thread, NULL);
        code = members[i].code > code ? members[i].code : code;
    }
    free(members);
    return code;
}

/* Runs the ranks of a process that a launcher has started. The environment describes a communicator
 * with one rank per process. With one thread per process and no GPU, the program measures that
 * communicator. Otherwise that communicator only distributes the id of a second one, which the
 * program measures. Ranks on GPUs need the second one, because the rank's number selects the
 * GPU. */
static int run_environment(const struct perf_options *options)
{
    struct perf_rank rank = {.options = options};
    struct team team = {.options = options};
    double begun = perf_now_us(false);
    int code;

    perf_must(&rank, "tuttiCommInitFromEnv", tuttiCommInitFromEnv(&rank.comm, NULL));
    rank.formed_us = perf_now_us(false) - begun;
    perf_must(&rank, "tuttiCommUserRank", tuttiCommUserRank(rank.comm, &rank.rank));
    perf_must(&rank, "tuttiCommCount", tuttiCommCount(rank.comm, &rank.nranks));
    if (options->threads == 1 && !options->use_gpu)
        return run_rank(&rank);

    if (rank.rank == 0)
        perf_must(&rank, "tuttiGetUniqueId", tuttiGetUniqueId(&team.id));
    perf_must(&rank, "tuttiBroadcast of the id",
              tuttiBroadcast(&team.id, &team.id, sizeof(team.id), tuttiUint8, 0, rank.comm, NULL));
    team.first = rank.rank * options->threads;
    team.nranks = rank.nranks * options->threads;
    code = run_team(&team);
    perf_must(&rank, "tuttiCommFinalize", tuttiCommFinalize(rank.comm));
    perf_must(&rank, "tuttiCommDestroy", tuttiCommDestroy(rank.comm));
    return code;
}

/* Runs in each forked process. The first process makes the id and writes one copy of it for each of
 * the other processes. A copy is shorter than PIPE_BUF, so each reader gets a whole copy. */
static int run_process(const struct perf_options *options, int process, const int *pipe_ends)
{
    struct team team = {.options = options, .first = process * options->threads,
                        .nranks = options->processes * options->threads};
    struct perf_rank nobody = {.options = options, .rank = team.first}; /* for messages */

    if (process == 0) {
        close(pipe_ends[0]);
        perf_must(&nobody, "tuttiGetUniqueId", tuttiGetUniqueId(&team.id));
        for (int i = 1; i < options->processes; i++)
            if (write(pipe_ends[1], &team.id, sizeof(team.id)) != (ssize_t)sizeof(team.id))
                perf_die(&nobody, "cannot pass the id on: %s", strerror(errno));
        close(pipe_ends[1]);
    } else {
        close(pipe_ends[1]);
        if (read(pipe_ends[0], &team.id, sizeof(team.id)) != (ssize_t)sizeof(team.id))
            perf_die(&nobody, "rank 0 ended before it made an id");
        close(pipe_ends[0]);
    }
    return run_team(&team);
}

/* Prints how a process ended. `status` is that of waitpid. */
static void describe_end(const struct perf_options *options, int process, pid_t pid, int status)
{
    int first = process * options->threads;

    fprintf(stderr, "%s_perf: the process of rank %d", perf_collective.name, first);
    if (options->threads > 1)
        fprintf(stderr, " to %d", first + options->threads - 1);
    if (WIFSIGNALED(status))
        fprintf(stderr, " (pid %d) was killed by signal %d (%s)\n", (int)pid, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    else
        fprintf(stderr, " (pid %d) ended with code %d\n", (int)pid, WEXITSTATUS(status));
}

static void kill_all(const pid_t *pids, int count)
{
    for (int i = 0; i < count; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
}

/* Records the end of one child and returns its exit code. Reports a failure unless this program
 * killed the child. */
static int reap(const struct perf_options *options, pid_t *pids, int count, pid_t pid, int status,
                bool is_killed)
{
    for (int i = 0; i < count; i++) {
        if (pids[i] != pid)
            continue;
        pids[i] = 0;
        if (status != 0 && !is_killed)
            describe_end(options, i, pid, status);
        return status == 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    }
    return 0;
}

/* Waits for all processes. After a failure, the function kills the remaining processes if none of
 * them ends for GRACE_SECONDS. */
static int supervise(const struct perf_options *options, pid_t *pids, int count,
                     const sigset_t *child_signal)
{
    const struct timespec grace = {.tv_sec = GRACE_SECONDS};
    bool is_killed = false;
    int left = count, code = 0;

    while (left > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid > 0) {
            int ended = reap(options, pids, count, pid, status, is_killed);

            code = ended > code ? ended : code;
            left--;
        } else if (sigtimedwait(child_signal, NULL, code != 0 ? &grace : NULL) < 0 &&
                   errno == EAGAIN) {
            fprintf(stderr, "%s_perf: ending the other %d processes\n", perf_collective.name, left);
            is_killed = true;
            kill_all(pids, count);
        }
    }
    return code;
}

/* Forks the processes of --ranks and waits for them. Returns the largest exit code. */
static int run_processes(const struct perf_options *options)
{
    pid_t parent = getpid(), *pids = calloc((size_t)options->processes, sizeof(*pids));
    sigset_t child_signal, before;
    int pipe_ends[2], started = 0, code;

    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_signal, &before);
    if (pids == NULL || pipe(pipe_ends) != 0) {
        fprintf(stderr, "%s_perf: cannot start: %s\n", perf_collective.name, strerror(errno));
        free(pids);
        return EXIT_FAILURE;
    }
    for (; started < options->processes; started++) {
        pids[started] = fork();
        if (pids[started] < 0)
            break;
        if (pids[started] == 0) {
            free(pids);
            /* No process may outlive the launcher. The launcher may have ended before prctl took
             * effect, so the process checks its parent afterwards. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(EXIT_FAILURE);
            sigprocmask(SIG_SETMASK, &before, NULL);
            exit(run_process(options, started, pipe_ends));
        }
    }
    if (started < options->processes) {
        fprintf(stderr, "%s_perf: fork of process %d: %s\n", perf_collective.name, started,
                strerror(errno));
        kill_all(pids, started);
    }
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    code = supervise(options, pids, started, &child_signal);
    free(pids);
    return started < options->processes ? EXIT_FAILURE : code;
}

int perf_launch(const struct perf_options *options)
{
    if (options->use_gpu)
        perf_gpu_require();
    return options->processes > 0 ? run_processes(options) : run_environment(options);
}
