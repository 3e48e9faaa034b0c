/* SPDX-License-Identifier: Apache-2.0
 * Records the stream of each rank's last call, for ranks of one process that share a GPU. If two of
 * them make the same call on one stream, the call never ends. The first rank's kernel waits for the
 * second rank's, but the stream does not begin the second before the first has ended. So such a
 * call is refused. */
#include "executor/cuda/private.h"

#include "base/log.h"
#include "base/param.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The list of all ranks of this process that share a GPU, linked by next_sharer and guarded by
 * `lock`. */
static struct tutti_cuda_gpu *sharers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The hardware queues of a GPU unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise. */
enum { USUAL_QUEUES = 8, MOST_QUEUES = 32 };
/* The streams of a rank: at most two of its own (private.h), and one of the program. */
enum { STREAMS_OF_RANK = 3 };

static long count_queues(void)
{
    const char *text = tutti_variable_given("CUDA_DEVICE_MAX_CONNECTIONS");
    long queues = text != NULL ? strtol(text, NULL, 10) : 0;

    return queues >= 1 && queues <= MOST_QUEUES ? queues : USUAL_QUEUES;
}

/* The commands of a hardware queue begin in their order, whatever their streams are. So if ranks
 * that share a GPU have more streams than it has queues, the kernel of a rank may have to begin
 * after a command that waits for it. Warns of that, once for the ranks of a process on a GPU. */
static void warn_of_queues(const struct tutti_cuda_gpu *gpu)
{
    int nsharers = 0, first = -1;

    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (tutti_cuda_is_in_process(gpu, rank) && gpu->records[rank].device == gpu->args.device)
            first = nsharers++ == 0 ? rank : first;
    if (first == gpu->args.rank && STREAMS_OF_RANK * nsharers > count_queues())
        tutti_log(TUTTI_LOG_WARN, "%d ranks of this process share GPU %d, whose streams share %ld "
                  "hardware queues, so calls may wait for each other forever; set "
                  "CUDA_DEVICE_MAX_CONNECTIONS=32 before the program starts",
                  nsharers, gpu->args.device, count_queues());
}

void tutti_cuda_sharers_enter(struct tutti_cuda_gpu *gpu)
{
    if (gpu->nsharers < 2)
        return;
    warn_of_queues(gpu);
    pthread_mutex_lock(&lock);
    gpu->next_sharer = sharers;
    sharers = gpu;
    pthread_mutex_unlock(&lock);
}

void tutti_cuda_sharers_leave(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_gpu **at = &sharers;

    pthread_mutex_lock(&lock);
    while (*at != NULL && *at != gpu)
        at = &(*at)->next_sharer;
    if (*at != NULL)
        *at = gpu->next_sharer;
    pthread_mutex_unlock(&lock);
}

/* Returns true if `other` is another rank of the same communicator that has made this call, or a
 * later call, on the same stream. Each context has its own legacy default stream, so contexts are
 * compared too. Each thread has its own per-thread default stream, so that stream never counts. */
static bool blocks_call(const struct tutti_cuda_gpu *gpu, const struct tutti_cuda_gpu *other,
                        const struct tutti_cu_stream *stream, uint64_t number)
{
    bool is_same_stream = stream != TUTTI_CU_STREAM_PER_THREAD && other->called_stream == stream &&
                          other->context == gpu->context;
    bool is_same_communicator = memcmp(other->secret, gpu->secret, sizeof gpu->secret) == 0;

    return other != gpu && is_same_stream && is_same_communicator &&
           other->called_number >= number;
}

int tutti_cuda_sharers_record(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                              uint64_t number)
{
    const struct tutti_cuda_gpu *other;
    int rank = -1;

    if (gpu->nsharers < 2)
        return TUTTI_OK;
    pthread_mutex_lock(&lock);
    for (other = sharers; other != NULL && rank < 0; other = other->next_sharer)
        if (blocks_call(gpu, other, stream, number))
            rank = other->args.rank;
    gpu->called_stream = stream;
    gpu->called_number = number;
    pthread_mutex_unlock(&lock);
    if (rank < 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "rank %d calls number %llu on a stream behind the same call "
                      "of rank %d, which waits for it: ranks that share a GPU need streams of "
                      "their own, or NULL", gpu->args.rank, (unsigned long long)number, rank);
}
