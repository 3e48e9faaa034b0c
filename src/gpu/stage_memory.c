/* SPDX-License-Identifier: Apache-2.0
 * The pool of stages (stage.h). Page-locking memory takes milliseconds, so a stage is reused when
 * the copies of its results have ended. The driver may take long to lock memory or to free it. So
 * this happens without gpu_comm->lock, for which the watching thread would have to wait. */
#include "gpu/stage.h"

#include <stdlib.h>

/* Unused stages are freed while all stages together have more bytes than this. */
enum { KEPT_BYTES = 64 << 20 };

static void destroy(const struct tutti_cu_driver *cuda, struct tutti_stage *stage)
{
    if (stage->bytes != NULL)
        cuda->host_free(stage->bytes);
    if (stage->event != NULL)
        cuda->event_destroy(stage->event);
    tutti_batch_release(stage->pattern);
    free(stage);
}

static bool is_free(const struct tutti_cu_driver *cuda, const struct tutti_stage *stage)
{
    return !stage->is_captured &&
           (!stage->is_recorded || cuda->event_query(stage->event) == TUTTI_CU_SUCCESS);
}

/* Takes stages that are not in use out of the list, until at most KEPT_BYTES are left. Returns
 * their list. */
static struct tutti_stage *take_spare(struct tutti_gpu_comm *gpu_comm,
                                      const struct tutti_cu_driver *cuda)
{
    struct tutti_stage **at = &gpu_comm->stages, *spare = NULL;

    while (*at != NULL && gpu_comm->staged_bytes > KEPT_BYTES) {
        struct tutti_stage *stage = *at;

        if (!is_free(cuda, stage)) {
            at = &stage->next;
            continue;
        }
        *at = stage->next;
        gpu_comm->staged_bytes -= stage->size_bytes;
        stage->next = spare;
        spare = stage;
    }
    return spare;
}

static void destroy_all(const struct tutti_cu_driver *cuda, struct tutti_stage *stages)
{
    while (stages != NULL) {
        struct tutti_stage *next = stages->next;

        destroy(cuda, stages);
        stages = next;
    }
}

static int create(struct tutti_comm *comm, size_t size_bytes, struct tutti_stage **ret_stage)
{
    const struct tutti_cu_driver *cuda = comm->cuda;
    struct tutti_stage *stage = calloc(1, sizeof *stage);
    int code;

    if (stage == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a call through the host");
    stage->comm = comm;
    stage->size_bytes = size_bytes;
    code = cuda->host_alloc((void **)&stage->bytes, size_bytes,
                            TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED);
    if (code == TUTTI_CU_SUCCESS)
        code = cuda->event_create(&stage->event, TUTTI_CU_EVENT_DISABLE_TIMING);
    if (code != TUTTI_CU_SUCCESS) {
        destroy(cuda, stage);
        return tutti_cuda_fail(comm->gpu->gpu, code, "page-locked memory");
    }
    *ret_stage = stage;
    return TUTTI_OK;
}

/* Takes a free stage that is large enough out of the list; NULL if there is none. */
static struct tutti_stage *find(struct tutti_gpu_comm *gpu_comm, const struct tutti_cu_driver *cuda,
                                size_t size_bytes)
{
    for (struct tutti_stage **at = &gpu_comm->stages; *at != NULL; at = &(*at)->next) {
        struct tutti_stage *stage = *at;

        if (stage->size_bytes < size_bytes || !is_free(cuda, stage))
            continue;
        *at = stage->next;
        gpu_comm->staged_bytes -= stage->size_bytes;
        return stage;
    }
    return NULL;
}

int tutti_stage_take(struct tutti_comm *comm, size_t size_bytes, bool is_captured,
                     struct tutti_stage **ret_stage)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    struct tutti_stage *stage, *spare;

    size_bytes += TUTTI_STAGE_HEAD_BYTES;
    pthread_mutex_lock(&gpu_comm->lock);
    stage = find(gpu_comm, comm->cuda, size_bytes);
    spare = take_spare(gpu_comm, comm->cuda);
    pthread_mutex_unlock(&gpu_comm->lock);
    destroy_all(comm->cuda, spare);
    if (stage == NULL)
        TUTTI_TRY(create(comm, size_bytes, &stage));
    stage->is_recorded = false;
    stage->is_captured = is_captured;
    stage->word = (uint32_t *)(void *)stage->bytes;
    *stage->word = 0;
    pthread_mutex_lock(&gpu_comm->lock);
    stage->next = gpu_comm->stages;
    gpu_comm->stages = stage;
    gpu_comm->staged_bytes += stage->size_bytes;
    pthread_mutex_unlock(&gpu_comm->lock);
    *ret_stage = stage;
    return TUTTI_OK;
}

void tutti_gpu_stage_fini(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;

    tuttiHostStreamDestroy(gpu_comm->stage);
    gpu_comm->stage = NULL;
    if (gpu_comm->is_stuck || tutti_cuda_enter(gpu_comm->gpu) != TUTTI_OK)
        return;
    destroy_all(comm->cuda, gpu_comm->stages);
    gpu_comm->stages = NULL;
    tutti_cuda_leave(gpu_comm->gpu);
}
