/* SPDX-License-Identifier: Apache-2.0
 * Starts jobs whose ranks form communicators from the environment. */
#include "jobs.h"

#include "tutti.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

const struct job_launcher job_launchers[] = {
    {"tutti-run", {"TUTTI_RANK=%r", "TUTTI_NRANKS=%n", "TUTTI_ROOT=unix:test-%p",
                   "TUTTI_SECRET=hush"}},
    {"a port", {"TUTTI_RANK=%r", "TUTTI_NRANKS=%n", "TUTTI_ROOT=127.0.0.1:%p"}},
    {"a directory", {"TUTTI_RANK=%r", "TUTTI_NRANKS=%n", "TUTTI_ROOT=file:%d"}},
    {"torchrun", {"RANK=%r", "WORLD_SIZE=%n", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=%p",
                  "TORCHELASTIC_RUN_ID=none"}},
    {"torchrun's variables by hand", {"RANK=%r", "WORLD_SIZE=%n", "MASTER_ADDR=127.0.0.1",
                                      "MASTER_PORT=%p"}},
    {"Open MPI", {"OMPI_COMM_WORLD_RANK=%r", "OMPI_COMM_WORLD_SIZE=%n",
                  "OMPI_COMM_WORLD_LOCAL_SIZE=%n", "PMIX_NAMESPACE=job-%p"}},
    {"MPICH", {"PMI_RANK=%r", "PMI_SIZE=%n", "MPI_LOCALNRANKS=%n"}},
    {"Slurm", {"SLURM_PROCID=%r", "SLURM_NTASKS=%n", "SLURM_JOB_ID=%p", "SLURM_STEP_ID=0",
               "SLURM_STEP_NODELIST=localhost"}},
};
const int job_launcher_count = sizeof job_launchers / sizeof job_launchers[0];

/* ---- a rank ---------------------------------------------------------------------------------- */

enum { COMMS_MAX = 8 };

/* A rank that begins so much later than its delay is late. */
enum { LATE_MS = 300 };

/* One communicator after the other, with nothing between. */
static tuttiResult_t form(tuttiComm_t *comm, const char *name)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    tuttiResult_t result;

    config.commName = name;
    result = tuttiCommInitFromEnv(comm, &config);
    if (result != tuttiSuccess)
        fprintf(stderr, "%d: %s\n", (int)result, tuttiGetLastError(NULL));
    return result;
}

/* Each communicator adds something of its own, so that two of one job are told apart as well. */
static int add_up(tuttiComm_t comm, int addend)
{
    int nranks = 0, sum = 0, mine = addend;

    if (tuttiCommCount(comm, &nranks) != tuttiSuccess ||
        tuttiAllReduce(&mine, &sum, 1, tuttiInt32, tuttiSum, comm, NULL) != tuttiSuccess) {
        fprintf(stderr, "%s\n", tuttiGetLastError(NULL));
        return RANK_FAILED_CALL;
    }
    if (sum == nranks * addend)
        return RANK_RIGHT;
    fprintf(stderr, "%d ranks sum to %d, not %d\n", nranks, sum, nranks * addend);
    return RANK_WRONG_SUM;
}

/* The worse of two results: a wrong sum is the worst. */
static int worse(int status, int other)
{
    return status == RANK_WRONG_SUM || other == RANK_RIGHT ? status : other;
}

/* Communicator i of all ranks sums up token + i. */
static int use_and_destroy(tuttiComm_t *comms, int token, int count)
{
    int status = RANK_RIGHT;

    for (int i = 0; i < count; i++)
        status = worse(status, add_up(comms[i], token + i));
    for (int i = 0; i < count; i++)
        tuttiCommDestroy(comms[i]);
    return status;
}

static int form_in_a_row(int token, int count)
{
    tuttiComm_t comms[COMMS_MAX];

    for (int i = 0; i < count; i++)
        if (form(&comms[i], NULL) != tuttiSuccess)
            return RANK_REFUSED;
    return use_and_destroy(comms, token, count);
}

static int form_in_a_group(int token, int count)
{
    tuttiComm_t comms[COMMS_MAX];

    tuttiGroupStart();
    for (int i = 0; i < count; i++) {
        char name[32];

        snprintf(name, sizeof name, "comm %d", i);
        if (form(&comms[i], name) != tuttiSuccess)
            return RANK_REFUSED;
    }
    if (tuttiGroupEnd() != tuttiSuccess) {
        fprintf(stderr, "%s\n", tuttiGetLastError(NULL));
        return RANK_REFUSED;
    }
    return use_and_destroy(comms, token, count);
}

struct former {
    pthread_t thread;
    int token, number, status;
};

static void *be_former(void *argument)
{
    struct former *former = argument;
    char name[16];

    snprintf(name, sizeof name, "thread %d", former->number);
    for (int time = 0; time < 3 && former->status == RANK_RIGHT; time++) {
        int addend = former->token + 10 * former->number + time;
        tuttiComm_t comm;

        if (form(&comm, name) != tuttiSuccess) {
            former->status = RANK_REFUSED;
            break;
        }
        former->status = add_up(comm, addend);
        tuttiCommDestroy(comm);
    }
    return NULL;
}

static int form_by_threads(int token, int count)
{
    struct former formers[COMMS_MAX];
    int status = RANK_RIGHT;

    for (int i = 0; i < count; i++) {
        formers[i] = (struct former){.token = token, .number = i};
        if (pthread_create(&formers[i].thread, NULL, be_former, &formers[i]) != 0)
            return RANK_REFUSED;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(formers[i].thread, NULL);
        status = worse(status, formers[i].status);
    }
    return status;
}

static void *form_second(void *argument)
{
    tuttiComm_t comm;

    *(tuttiResult_t *)argument = form(&comm, NULL);
    return NULL;
}

/* The main thread forms without a name; another thread that does so too is refused. */
static int form_unordered(int token)
{
    tuttiResult_t second = tuttiSuccess;
    pthread_t thread;
    tuttiComm_t comm;
    int status;

    if (form(&comm, NULL) != tuttiSuccess ||
        pthread_create(&thread, NULL, form_second, &second) != 0)
        return RANK_REFUSED;
    pthread_join(thread, NULL);
    status = add_up(comm, token);
    tuttiCommDestroy(comm);
    return second == tuttiInvalidUsage ? status : RANK_WRONG_SUM;
}

static int form_as_told(const char *way, int token)
{
    if (strcmp(way, "once") == 0)
        return form_in_a_row(token, 1);
    if (strcmp(way, "row") == 0)
        return form_in_a_row(token, 6);
    if (strcmp(way, "group") == 0)
        return form_in_a_group(token, 4);
    if (strcmp(way, "threads") == 0)
        return form_by_threads(token, 4);
    return form_unordered(token);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool job_is_rank(int argc, char **argv, int *ret_status)
{
    int64_t begin_ms, late_ms;
    struct timespec begin;
    char byte = 0;

    if (argc < 5 || strcmp(argv[1], "be-rank") != 0)
        return false;
    begin_ms = now_ms();
    if (argc == 7) { /* say that we are here, and wait for the time from which delays count */
        (void)!write(atoi(argv[5]), &byte, 1);
        if (read(atoi(argv[6]), &begin_ms, sizeof begin_ms) != (ssize_t)sizeof begin_ms)
            _exit(RANK_LATE); /* the test has ended */
        close(atoi(argv[5]));
        close(atoi(argv[6]));
    }
    begin_ms += atol(argv[4]);
    begin = (struct timespec){.tv_sec = begin_ms / 1000, .tv_nsec = begin_ms % 1000 * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin, NULL);
    late_ms = now_ms() - begin_ms;
    *ret_status = form_as_told(argv[2], atoi(argv[3]));
    if (argc == 7 && late_ms > LATE_MS && *ret_status != RANK_RIGHT)
        *ret_status = RANK_LATE;
    return true;
}

/* ---- the job --------------------------------------------------------------------------------- */

unsigned job_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    do {
        if (fd >= 0)
            close(fd);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        address.sin_port = 0;
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    } while (ntohs(address.sin_port) > 65000);
    close(fd);
    return ntohs(address.sin_port);
}

/* Ranks write to the one when they are here, and read the time of their release from the other. */
static int here_fds[2], go_fds[2];
static bool is_held;
static int held_count;

void job_hold(void)
{
    /* The rank's ends are inherited, ours are not. */
    assert_int_equal(pipe(here_fds), 0);
    assert_int_equal(pipe(go_fds), 0);
    assert_int_equal(fcntl(here_fds[0], F_SETFD, FD_CLOEXEC), 0);
    assert_int_equal(fcntl(go_fds[1], F_SETFD, FD_CLOEXEC), 0);
    is_held = true;
    held_count = 0;
}

void job_release(void)
{
    int64_t begin_ms;
    char byte;

    close(here_fds[1]);
    for (int i = 0; i < held_count; i++)
        assert_int_equal(read(here_fds[0], &byte, 1), 1);
    close(here_fds[0]);
    begin_ms = now_ms();
    for (int i = 0; i < held_count; i++)
        assert_int_equal(write(go_fds[1], &begin_ms, sizeof begin_ms), sizeof begin_ms);
    close(go_fds[0]);
    close(go_fds[1]);
    is_held = false;
}

static void set_variable(const struct job *job, int rank, const char *variable)
{
    char text[512];
    size_t length = 0;

    for (const char *at = variable; *at != '\0' && length + 300 < sizeof text; at++) {
        if (*at != '%') {
            text[length++] = *at;
            continue;
        }
        at++;
        if (*at == 'd')
            length += (size_t)snprintf(text + length, sizeof text - length, "%.256s", job->path);
        else
            length += (size_t)snprintf(text + length, sizeof text - length, "%u",
                                       *at == 'r'   ? (unsigned)rank
                                       : *at == 'n' ? (unsigned)job->nranks
                                                    : job->port);
    }
    text[length] = '\0';
    *strchr(text, '=') = '\0';
    setenv(text, text + strlen(text) + 1, 1);
}

static void exec_rank(const struct job *job, int rank)
{
    char token[16], delay[16], here[16], go[16];

    for (int i = 0; job->variables[i] != NULL; i++)
        set_variable(job, rank, job->variables[i]);
    setenv("TUTTI_DEBUG", "none", 1);
    if (getenv("TUTTI_INIT_TIMEOUT_MS") == NULL)
        setenv("TUTTI_INIT_TIMEOUT_MS", "30000", 1);
    snprintf(token, sizeof token, "%d", job->token);
    snprintf(delay, sizeof delay, "%u", job->delay_ms[rank]);
    snprintf(here, sizeof here, "%d", here_fds[1]);
    snprintf(go, sizeof go, "%d", go_fds[0]);
    execl("/proc/self/exe", "rank", "be-rank", job->way, token, delay, is_held ? here : NULL, go,
          (char *)NULL);
    _exit(127);
}

void job_start(struct job *job)
{
    for (int rank = 0; rank < job->nranks; rank++) {
        int fds[2];

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        job->ranks[rank] = (struct job_rank){.fd = fds[0]};
        job->ranks[rank].pid = fork();
        assert_true(job->ranks[rank].pid >= 0);
        if (job->ranks[rank].pid == 0) {
            dup2(fds[1], STDERR_FILENO);
            exec_rank(job, rank);
        }
        close(fds[1]);
        held_count += is_held;
    }
}

/* To the end of what it says, or until a minute has passed without a word. */
static void hear(struct job_rank *rank)
{
    size_t length = 0;

    for (;;) {
        struct pollfd ready = {.fd = rank->fd, .events = POLLIN};
        ssize_t moved = 0;

        if (poll(&ready, 1, 60000) <= 0) {
            kill(rank->pid, SIGKILL);
            break;
        }
        moved = read(rank->fd, rank->text + length, sizeof rank->text - 1 - length);
        if (moved <= 0)
            break;
        length += (size_t)moved;
    }
    rank->text[length] = '\0';
    close(rank->fd);
}

void job_wait(struct job *job)
{
    for (int i = 0; i < job->nranks; i++) {
        struct job_rank *rank = &job->ranks[i];
        int status;

        hear(rank);
        assert_int_equal(waitpid(rank->pid, &status, 0), rank->pid);
        rank->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

void job_expect(const struct job *job, int status)
{
    bool is_as_expected = true;

    for (int rank = 0; rank < job->nranks; rank++)
        is_as_expected &= job->ranks[rank].status == status;
    for (int rank = 0; rank < job->nranks && !is_as_expected; rank++)
        print_error("rank %d of %d ended with %d, not %d: %s\n", rank, job->nranks,
                    job->ranks[rank].status, status, job->ranks[rank].text);
    if (!is_as_expected)
        fail_msg("%s of %s", job->way, job->variables[0]);
}
