/* SPDX-License-Identifier: Apache-2.0
 * Starts ranks as the perf programs do: all processes are forked before the first call of the
 * library. Rank 0 creates the communicator's id and sends it to the other ranks through a pipe. */
#include "topo/crew.h"

#include "base/param.h"
#include "common/memory.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void crew_must(const struct crew *crew, const char *what, tuttiResult_t result)
{
    const char *reason;

    if (result == tuttiSuccess)
        return;
    reason = tuttiGetLastError(crew->comm);
    if (*reason == '\0')
        reason = tuttiGetLastError(NULL);
    fprintf(stderr, "tutti-topo: rank %d: %s: %s: %s\n", crew->rank, what,
            tuttiGetErrorString(result), reason);
    _exit(EXIT_FAILURE);
}

void crew_gather(struct crew *crew, const void *mine, size_t size, void *ret_all)
{
    crew_must(crew, "tuttiAllGather",
              tuttiAllGather(mine, ret_all, size, tuttiUint8, crew->comm, NULL));
}

void crew_meet(struct crew *crew)
{
    crew_must(crew, "tuttiBarrier", tuttiBarrier(crew->comm, NULL));
}

bool crew_is_launched(void)
{
    static const char *const names[] = {"TUTTI_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tutti_variable_given(names[i]) != NULL)
            return true;
    return false;
}

/* Runs the work of one rank and ends its communicator. Returns the exit status of the rank. */
static int work_and_finalize(struct crew *crew, int (*work)(struct crew *crew))
{
    int status = work(crew);

    crew_must(crew, "tuttiCommFinalize", tuttiCommFinalize(crew->comm));
    crew_must(crew, "tuttiCommDestroy", tuttiCommDestroy(crew->comm));
    return status;
}

int crew_join(const struct crew *settings, int (*work)(struct crew *crew))
{
    struct crew crew = *settings;

    crew_must(&crew, "tuttiCommInitFromEnv", tuttiCommInitFromEnv(&crew.comm, NULL));
    crew_must(&crew, "tuttiCommUserRank", tuttiCommUserRank(crew.comm, &crew.rank));
    crew_must(&crew, "tuttiCommCount", tuttiCommCount(crew.comm, &crew.nranks));
    return work_and_finalize(&crew, work);
}

/* Does the work of one rank in its child process. `ends` is the pipe for the id. The id is shorter
 * than PIPE_BUF, so each rank reads a whole copy. Returns the exit status. */
static int be_rank(struct crew *crew, const int *ends, int (*work)(struct crew *crew))
{
    tuttiUniqueId id;

    close(ends[crew->rank == 0 ? 0 : 1]);
    if (crew->rank == 0) {
        crew_must(crew, "tuttiGetUniqueId", tuttiGetUniqueId(&id));
        for (int i = 1; i < crew->nranks; i++)
            if (write(ends[1], &id, sizeof id) != (ssize_t)sizeof id)
                crew_must(crew, "write the id to a pipe", tuttiSystemError);
    } else if (read(ends[0], &id, sizeof id) != (ssize_t)sizeof id) {
        return EXIT_FAILURE; /* rank 0 has printed the reason */
    }
    close(ends[crew->rank == 0 ? 1 : 0]);
    crew_must(crew, "tuttiCommInitRank",
              tuttiCommInitRank(&crew->comm, crew->nranks, id, crew->rank));
    return work_and_finalize(crew, work);
}

/* Waits until all ranks have ended. If one fails, the library reports this to the others, so that
 * they end too. Returns 0, or the status of the first rank that failed. */
static int wait_for_all(int started)
{
    int status = 0;

    while (started > 0) {
        int ended;

        if (wait(&ended) < 0) {
            if (errno == EINTR)
                continue;
            return EXIT_FAILURE;
        }
        started--;
        if (ended != 0 && status == 0)
            status = WIFEXITED(ended) ? WEXITSTATUS(ended) : EXIT_FAILURE;
        if (WIFSIGNALED(ended))
            fprintf(stderr, "tutti-topo: a rank was killed by signal %d (%s)\n", WTERMSIG(ended),
                    strsignal(WTERMSIG(ended)));
    }
    return status;
}

int crew_fork(const struct crew *settings, int nranks, int (*work)(struct crew *crew))
{
    pid_t parent = getpid(), *pids = must_calloc((size_t)nranks, sizeof *pids);
    int ends[2], started = 0, status;

    if (pipe(ends) != 0) {
        fprintf(stderr, "tutti-topo: pipe: %s\n", strerror(errno));
        free(pids);
        return EXIT_FAILURE;
    }
    for (; started < nranks; started++) {
        pids[started] = fork();
        if (pids[started] < 0)
            break;
        if (pids[started] == 0) {
            struct crew crew = *settings;

            free(pids);
            /* No rank may outlive the parent. The check is needed because the parent may have
             * ended before prctl took effect. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(EXIT_FAILURE);
            crew.rank = started;
            crew.nranks = nranks;
            status = be_rank(&crew, ends, work);
            fflush(stdout);
            _exit(status);
        }
    }
    if (started < nranks) {
        fprintf(stderr, "tutti-topo: fork of rank %d: %s\n", started, strerror(errno));
        for (int i = 0; i < started; i++)
            kill(pids[i], SIGKILL);
    }
    close(ends[0]);
    close(ends[1]);
    status = wait_for_all(started);
    free(pids);
    return started < nranks ? EXIT_FAILURE : status;
}
