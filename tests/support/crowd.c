/* SPDX-License-Identifier: Apache-2.0
 * Runs many ranks for one test. */
#include "support/crowd.h"

#include "support/gpus.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { KEPT = 6, TEXT_BYTES = 600, MOST_RANKS = 256 };

struct crowd {
    enum launch launch;
    int nranks, processes;
    bool forms_world;
    member_fn fn;
    void *context;
    pthread_barrier_t meeting;
    tuttiUniqueId id;
    atomic_int complaints; /* may exceed KEPT: the rest is only counted */
    char texts[KEPT][TEXT_BYTES];
};

const char *const launch_names[LAUNCH_COUNT] = {"threads", "processes", "mixed"};

int launch_find(const char *name)
{
    for (int i = 0; i < LAUNCH_COUNT; i++)
        if (strcmp(launch_names[i], name) == 0)
            return i;
    return -1;
}

/* ---- what ranks say ---------------------------------------------------------------- */

static void complain(struct crowd *crowd, int rank, const char *format, va_list arguments)
{
    int index = atomic_fetch_add(&crowd->complaints, 1);
    int length;

    if (index >= KEPT)
        return;
    length = snprintf(crowd->texts[index], TEXT_BYTES, "rank %d: ", rank);
    vsnprintf(crowd->texts[index] + length, (size_t)(TEXT_BYTES - length), format, arguments);
}

void member_complain(struct member *member, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    complain(member->crowd, member->rank, format, arguments);
    va_end(arguments);
}

bool member_is_unhappy(const struct member *member)
{
    return atomic_load(&member->crowd->complaints) > 0;
}

bool expect_result(struct member *member, tuttiResult_t wanted, tuttiResult_t got,
                   const char *call, const char *file, int line)
{
    if (got == wanted)
        return true;
    member_complain(member, "%s:%d: %s gave %s, not %s: %s", file, line, call,
                    tuttiGetErrorString(got), tuttiGetErrorString(wanted), tuttiGetLastError(NULL));
    return false;
}

/* ---- where ranks meet --------------------------------------------------------------- */

void member_meet(struct member *member)
{
    pthread_barrier_wait(&member->crowd->meeting);
}

void member_share_id(struct member *member, tuttiUniqueId *ret_id)
{
    member_meet(member);
    if (member->rank == 0)
        EXPECT_OK(member, tuttiGetUniqueId(&member->crowd->id));
    member_meet(member);
    *ret_id = member->crowd->id;
}

tuttiConfig_t crowd_config(void)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    config.initTimeoutMs = 60000;
    config.timeoutMs = 60000;
    return config;
}

/* ---- the ranks of one process --------------------------------------------------------- */

/* The time after which no rank waits for another any more. */
static void leave_gpu(struct member *member)
{
    if (!gpus_are_used())
        return;
    member_meet(member);
    gpus_leave(member);
}

static void run_member(struct member *member)
{
    struct crowd *crowd = member->crowd;
    tuttiConfig_t config = crowd_config();
    tuttiUniqueId id;

    gpus_enter(member);
    if (!crowd->forms_world) {
        crowd->fn(member);
        leave_gpu(member);
        return;
    }
    member_share_id(member, &id);
    if (!EXPECT_OK(member, tuttiCommInitRankConfig(&member->comm, member->nranks, id, member->rank,
                                                   &config)))
        return;
    crowd->fn(member);
    EXPECT_OK(member, tuttiCommDestroy(member->comm));
    leave_gpu(member);
}

static void *member_thread(void *context)
{
    run_member(context);
    return NULL;
}

static void run_process(struct crowd *crowd, int process)
{
    struct member members[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    int count = 0;

    for (int rank = process; rank < crowd->nranks; rank += crowd->processes)
        members[count++] = (struct member){.rank = rank, .nranks = crowd->nranks,
                                           .context = crowd->context, .crowd = crowd};
    for (int i = 1; i < count; i++)
        if (pthread_create(&threads[i], NULL, member_thread, &members[i]) != 0) {
            member_complain(&members[i], "no thread: %s", strerror(errno));
            abort();
        }
    run_member(&members[0]);
    for (int i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
}

bool launch_is_watched(enum launch launch)
{
#ifdef __SANITIZE_THREAD__
    return launch != LAUNCH_PROCESSES;
#else
    (void)launch;
    return true;
#endif
}

/* ---- the crowd ------------------------------------------------------------------------- */

static struct crowd *open_crowd(enum launch launch, int nranks)
{
    pthread_barrierattr_t attributes;
    struct crowd *crowd = mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(crowd != MAP_FAILED);
    assert_in_range(nranks, 1, MOST_RANKS);
    crowd->launch = launch;
    crowd->nranks = nranks;
    crowd->processes = launch == LAUNCH_THREADS ? 1 : launch == LAUNCH_PROCESSES ? nranks : 2;
    if (crowd->processes > nranks)
        crowd->processes = nranks;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    assert_int_equal(pthread_barrier_init(&crowd->meeting, &attributes, (unsigned)nranks), 0);
    pthread_barrierattr_destroy(&attributes);
    return crowd;
}

static void note_end(struct crowd *crowd, int process, int status)
{
    struct member member = {.rank = process, .crowd = crowd};

    if (WIFSIGNALED(status))
        member_complain(&member, "its process died of signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        member_complain(&member, "its process exited with %d", WEXITSTATUS(status));
}

/* Wait for all processes. One that dies would keep the others at a meeting forever. */
static void reap(struct crowd *crowd, pid_t *pids)
{
    bool is_over = false;

    for (int left = crowd->processes; left > 0; left--) {
        int status = 0, process = 0;
        pid_t pid = wait(&status);

        assert_true(pid > 0);
        while (process < crowd->processes && pids[process] != pid)
            process++;
        assert_true(process < crowd->processes);
        pids[process] = 0;
        if (status == 0 || is_over)
            continue;
        is_over = true;
        note_end(crowd, process, status);
        for (int i = 0; i < crowd->processes; i++)
            if (pids[i] != 0)
                kill(pids[i], SIGKILL);
    }
}

static void run(struct crowd *crowd)
{
    pid_t pids[MOST_RANKS] = {0};
    int complaints;

    fflush(NULL);
    for (int process = 0; process < crowd->processes; process++) {
        pids[process] = fork();
        assert_true(pids[process] >= 0);
        if (pids[process] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_process(crowd, process);
            exit(0);
        }
    }
    reap(crowd, pids);
    complaints = atomic_load(&crowd->complaints);
    for (int i = 0; i < complaints && i < KEPT; i++)
        print_error("%s, %d ranks: %s\n", launch_names[crowd->launch], crowd->nranks,
                    crowd->texts[i]);
    pthread_barrier_destroy(&crowd->meeting);
    munmap(crowd, sizeof *crowd);
    if (complaints > 0)
        fail_msg("%d complaints", complaints);
}

void crowd_run(enum launch launch, int nranks, member_fn fn, void *context)
{
    struct crowd *crowd = open_crowd(launch, nranks);

    crowd->fn = fn;
    crowd->context = context;
    run(crowd);
}

void world_run(enum launch launch, int nranks, member_fn fn, void *context)
{
    struct crowd *crowd = open_crowd(launch, nranks);

    crowd->fn = fn;
    crowd->context = context;
    crowd->forms_world = true;
    run(crowd);
}
