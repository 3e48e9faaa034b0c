/* SPDX-License-Identifier: Apache-2.0
 * Forks a crew, lets its ranks meet and report, and limits the time of everything. */
#include "crew.h"

#include "comm/comm.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Nothing here takes a second on an idle machine. On one where many ranks spin, and sanitizers slow
 * them down, it may take twenty. Something that lasts this long hangs. */
enum { PATIENCE_S = 75, FORMING_MS = 20000 };

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint32_t crew_load(const uint32_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

void crew_add(uint32_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
}

bool crew_await(const uint32_t *counter, uint32_t least)
{
    double until = now_s() + PATIENCE_S;

    while (crew_load(counter) < least) {
        if (now_s() > until)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return true;
}

/* ---- a rank ---------------------------------------------------------------------------------- */

tuttiUniqueId crew_share_id(struct crew_seat *seat)
{
    struct timespec until;

    if (seat->rank == 0) {
        if (tuttiGetUniqueId(&seat->board->id) != tuttiSuccess)
            fprintf(stderr, "no id: %s\n", tuttiGetLastError(NULL));
        for (int i = 1; i < seat->nranks; i++)
            sem_post(&seat->board->id_is_there);
        return seat->board->id;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (sem_timedwait(&seat->board->id_is_there, &until) != 0 && errno == EINTR)
        ;
    return seat->board->id;
}

static tuttiResult_t form(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    config.initTimeoutMs = FORMING_MS;
    config.timeoutMs = seat->crew->timeout_ms;
    config.commName = seat->crew->name;
    return tuttiCommInitRankConfig(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank,
                                   &config);
}

static void *sit(void *argument)
{
    struct crew_seat *seat = argument;
    struct crew_report *report = &seat->board->reports[seat->rank];
    tuttiResult_t result = tuttiSuccess;

    if (!seat->crew->forms_itself)
        result = form(seat);
    if (result == tuttiSuccess)
        result = seat->crew->run(seat);
    if (result != tuttiSuccess)
        snprintf(report->text, sizeof report->text, "%s", tuttiGetLastError(NULL));
    report->result = result;
    report->is_over = tuttiCommDestroy(seat->comm) == tuttiSuccess;
    return NULL;
}

static void live(const struct crew *crew, struct crew_board *board, int rank)
{
    int nseats = crew->is_threads ? crew->nranks : 1;
    struct crew_seat seats[CREW_MOST];
    pthread_t threads[CREW_MOST];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const char *const *at = crew->environment; at != NULL && *at != NULL; at += 2)
        setenv(at[0], at[1], 1);
    for (int i = 0; i < nseats; i++)
        seats[i] = (struct crew_seat){.board = board, .crew = crew, .rank = rank + i,
                                      .nranks = crew->nranks};
    for (int i = 1; i < nseats; i++)
        if (pthread_create(&threads[i], NULL, sit, &seats[i]) != 0)
            _exit(3);
    sit(&seats[0]);
    for (int i = 1; i < nseats; i++)
        pthread_join(threads[i], NULL);
    exit(0);
}

/* ---- the test's side ------------------------------------------------------------------------- */

static void bury(struct crew_board *board, const pid_t *pids, int count)
{
    double until = now_s() + PATIENCE_S;
    bool is_late = false;

    for (int i = 0; i < count; i++) {
        while (waitpid(pids[i], &board->reports[i].wait_status, WNOHANG) == 0) {
            if (now_s() > until && !is_late) {
                is_late = true;
                for (int k = i; k < count; k++)
                    kill(pids[k], SIGABRT);
            } else if (now_s() > until + 2) {
                kill(pids[i], SIGKILL);
            }
            nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        }
    }
    if (is_late)
        for (int i = 0; i < count; i++)
            print_error("rank %d: result %d, status %#x, %u steps: %s\n", i,
                        (int)board->reports[i].result, (unsigned)board->reports[i].wait_status,
                        board->steps[i], board->reports[i].text);
    assert_false(is_late);
}

struct crew_board *crew_run(const struct crew *crew)
{
    int count = crew->is_threads ? 1 : crew->nranks;
    struct crew_board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[CREW_MOST];

    assert_true(board != MAP_FAILED);
    assert_int_equal(sem_init(&board->id_is_there, 1, 0), 0);
    for (int i = 0; i < crew->nranks; i++)
        board->reports[i].result = tuttiNumResults;
    fflush(NULL);
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            live(crew, board, i);
    }
    if (crew->meddle != NULL)
        crew->meddle(crew, board, pids);
    bury(board, pids, count);
    for (int i = 0; i < count; i++) {
        int status = board->reports[i].wait_status;
        bool is_killed = crew->meddle != NULL && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

        if (!is_killed && status != 0)
            fail_msg("process %d ended with status %#x: %s", i, (unsigned)status,
                     board->reports[i].text);
        for (int rank = i; rank < (crew->is_threads ? crew->nranks : i + 1); rank++)
            assert_true(is_killed || board->reports[rank].is_over);
    }
    return board;
}

void crew_clear(struct crew_board *board)
{
    sem_destroy(&board->id_is_there);
    munmap(board, sizeof *board);
}

/* ---- what a process holds -------------------------------------------------------------------- */

static int count_entries(const char *directory)
{
    DIR *dir = opendir(directory);
    int count = 0;

    if (dir == NULL)
        return -1;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

int crew_count_fds(void)
{
    return count_entries("/proc/self/fd");
}

int crew_count_threads(void)
{
#ifdef __SANITIZE_THREAD__
    return 1; /* its own come and go; that none of ours is left it reports itself */
#else
    return count_entries("/proc/self/task") - 2;
#endif
}

/* "71 (name) S ..." in its stat file, or it is gone. */
static bool is_asleep(const char *thread)
{
    char path[300], line[300] = "";
    const char *end;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
    file = fopen(path, "r");
    if (file == NULL)
        return true;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    end = strrchr(line, ')');
    return end == NULL || strncmp(end, ") S", 3) == 0;
}

static bool others_are_asleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool all_are = true;
    struct dirent *entry;

    while (tasks != NULL && (entry = readdir(tasks)) != NULL)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid() &&
            !is_asleep(entry->d_name))
            all_are = false;
    if (tasks != NULL)
        closedir(tasks);
    return all_are;
}

int crew_fork(int (*body)(void *context), void *context)
{
    int status = -1;
    pid_t child;

    while (!others_are_asleep())
        usleep(1000);
    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(body(context));
    return waitpid(child, &status, 0) == child ? status : -1;
}

struct tutti_comm *crew_look_inside(tuttiComm_t handle)
{
    struct tutti_comm *comm;

    if (tutti_handle_visit(handle, "test", &comm) != TUTTI_OK)
        return NULL;
    tutti_handle_unvisit(handle);
    return comm;
}
