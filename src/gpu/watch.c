/* SPDX-License-Identifier: Apache-2.0
 * The watch over enqueued work. Kernels watch their deadline and the abort word, but only the host
 * learns that a peer has died or given up. A thread checks for this while work is under way, and
 * sleeps otherwise. */
#include "gpu/comm_gpu.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/long_wait.h"

#include <sched.h>
#include <time.h>

/* LOOK_NS: the time between two checks of the watching thread. tutti_gpu_wait first checks
 * EAGER_LOOKS times without a pause, then pauses for PAUSE_NS between two checks. */
enum { LOOK_NS = 5000000, EAGER_LOOKS = 2000, PAUSE_NS = 50000 };

/* The longest wait for the kernels of a failed communicator. The kernels end at once when they run,
 * but other work of the caller may be in front of them on the stream. */
#define GRACE_NS (10 * TUTTI_NS_PER_S)

/* Tells the kernels which ranks have left. Most kernels have what they need of such a rank. */
static void tell_left(struct tutti_comm *comm)
{
    for (int rank = 0; rank < comm->nranks && comm->gpu->has_domain; rank++)
        if (rank != comm->rank && tutti_fabric_has_left(comm->fabric, rank))
            tutti_cuda_tell_left(comm->gpu->gpu, rank);
}

/* Checks the enqueued work and, while it is not complete, the other ranks. TUTTI_OK: all enqueued
 * work is complete. TUTTI_AGAIN: some work is not complete yet. Any other result is the error that
 * ends the work, which has been recorded with tutti_comm_fail. */
static int look(struct tutti_comm *comm)
{
    int rc = tutti_cuda_check(comm->gpu->gpu);

    if (rc == TUTTI_AGAIN) {
        int error = tutti_comm_error(comm);

        error = error != TUTTI_OK ? error : tutti_fabric_find_abort(comm->fabric);
        error = error != TUTTI_OK ? error : tutti_fabric_find_death(comm->fabric);
        rc = error != TUTTI_OK ? error : rc;
        tell_left(comm);
    }
    if (rc != TUTTI_OK && rc != TUTTI_AGAIN) {
        tutti_comm_fail(comm, rc, tutti_message_last());
        tutti_gpu_stage_give_up(comm);
    }
    return rc;
}

static void *watch(void *argument)
{
    struct tutti_comm *comm = argument;
    struct tutti_gpu_comm *gpu_comm = comm->gpu;

    tutti_log_enter(&comm->scope);
    pthread_mutex_lock(&gpu_comm->lock);
    while (!gpu_comm->is_ending) {
        int rc;

        if (!gpu_comm->is_busy) {
            pthread_cond_wait(&gpu_comm->wake, &gpu_comm->lock);
            continue;
        }
        gpu_comm->is_busy = false;
        pthread_mutex_unlock(&gpu_comm->lock);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        rc = look(comm);
        pthread_mutex_lock(&gpu_comm->lock);
        gpu_comm->is_busy = gpu_comm->is_busy || rc == TUTTI_AGAIN;
    }
    pthread_mutex_unlock(&gpu_comm->lock);
    return NULL;
}

int tutti_gpu_watch(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    int error = 0;

    pthread_mutex_lock(&gpu_comm->lock);
    if (!gpu_comm->has_watcher) {
        error = pthread_create(&gpu_comm->watcher, NULL, watch, comm);
        gpu_comm->has_watcher = error == 0;
        if (error == 0)
            pthread_setname_np(gpu_comm->watcher, "tutti-watch");
    }
    if (!gpu_comm->is_busy) {
        gpu_comm->is_busy = true;
        pthread_cond_signal(&gpu_comm->wake);
    }
    pthread_mutex_unlock(&gpu_comm->lock);
    return error == 0 ? TUTTI_OK
                      : tutti_fail(TUTTI_ERR_SYSTEM, "no thread to watch a GPU: error %d", error);
}

void tutti_gpu_watch_end(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;

    if (!gpu_comm->has_watcher)
        return;
    pthread_mutex_lock(&gpu_comm->lock);
    gpu_comm->is_ending = true;
    pthread_cond_signal(&gpu_comm->wake);
    pthread_mutex_unlock(&gpu_comm->lock);
    pthread_join(gpu_comm->watcher, NULL);
    gpu_comm->has_watcher = gpu_comm->is_ending = false;
}

/* Kernels that have begun will end. They get the data that they wait for, see the abort word, or
 * reach their deadline. If the GPU is lost, tutti_cuda_check_ended returns an error. */
static void wait_for_kernels(struct tutti_comm *comm)
{
    uint64_t until_ns = tutti_now_ns() + GRACE_NS;

    while (tutti_cuda_check_ended(comm->gpu->gpu) == TUTTI_AGAIN && !comm->gpu->is_stuck) {
        if (tutti_now_ns() < until_ns) {
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
            continue;
        }
        comm->gpu->is_stuck = true;
        tutti_log(TUTTI_LOG_WARN, "the communicator has failed, but a stream does not reach "
                  "the work that was enqueued on it: the memory of that work stays allocated");
    }
}

/* The warning names no rank, because only kernels know the rank that they wait for. They report
 * this rank when their deadline has passed. */
static void warn_of_wait(const struct tutti_comm *comm, struct tutti_long_wait *wait)
{
    double seconds;

    if (tutti_long_wait_is_due(wait, tutti_now_ns(), &seconds))
        tutti_log(TUTTI_LOG_WARN, "has been waiting for its calls on device memory for "
                  "%.1f s; have all ranks called the same operations, and is the stream free? "
                  "TUTTI_TIMEOUT_MS sets the limit (%d ms)", seconds, tutti_comm_timeout_ms(comm));
}

int tutti_gpu_wait(struct tutti_comm *comm)
{
    struct tutti_long_wait wait = {.lines = 0};
    uint32_t looks = 0;
    int rc;

    while ((rc = tutti_cuda_check(comm->gpu->gpu)) == TUTTI_AGAIN) {
        if (++looks < EAGER_LOOKS) {
            sched_yield();
            continue;
        }
        rc = look(comm);
        if (rc != TUTTI_AGAIN)
            break;
        warn_of_wait(comm, &wait);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    /* Calls through the host have ended by now. If they failed, the communicator has the error. */
    if (rc == TUTTI_OK)
        return tutti_comm_error(comm);
    tutti_comm_fail(comm, rc, tutti_message_last());
    tutti_gpu_stage_give_up(comm);
    wait_for_kernels(comm);
    return tutti_comm_error(comm);
}
