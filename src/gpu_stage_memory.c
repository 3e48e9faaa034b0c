/* SPDX-License-Identifier: Apache-2.0
 * Staged memory is used again when what copies out of it has ended. */
#include "gpu_stage.h"

#include <stdlib.h>

/* What is kept though it is not in use. Page-locking takes milliseconds. */
enum { KEPT_BYTES = 64 << 20, HEAD_BYTES = 64 };

static void destroy(const struct tutti_cuda *cuda, struct tutti_stage *stage)
{
    if (stage->bytes != NULL)
        cuda->host_free(stage->bytes);
    if (stage->event != NULL)
        cuda->event_destroy(stage->event);
    tutti_batch_release(stage->pattern);
    free(stage);
}

static bool is_free(const struct tutti_cuda *cuda, const struct tutti_stage *stage)
{
    return !stage->is_captured &&
           (!stage->is_recorded || cuda->event_query(stage->event) == TUTTI_CU_SUCCESS);
}

/* Free ones, until what is left is not too much. */
static void tidy(struct tutti_comm *comm)
{
    size_t kept_bytes = 0;

    for (struct tutti_stage **at = &comm->gpu->stages; *at != NULL;) {
        struct tutti_stage *stage = *at;

        if (is_free(comm->cuda, stage) && kept_bytes + stage->size_bytes > KEPT_BYTES) {
            *at = stage->next;
            destroy(comm->cuda, stage);
            continue;
        }
        kept_bytes += stage->size_bytes;
        at = &stage->next;
    }
}

static int create(struct tutti_comm *comm, size_t size_bytes, struct tutti_stage **ret_stage)
{
    const struct tutti_cuda *cuda = comm->cuda;
    struct tutti_stage *stage = calloc(1, sizeof *stage);
    int mode = TUTTI_CU_CAPTURE_RELAXED, code;

    if (stage == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a call through the host");
    stage->comm = comm;
    stage->size_bytes = size_bytes;
    cuda->exchange_capture_mode(&mode);
    code = cuda->host_alloc((void **)&stage->bytes, size_bytes,
                            TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED);
    if (code == TUTTI_CU_SUCCESS)
        code = cuda->event_create(&stage->event, TUTTI_CU_EVENT_DISABLE_TIMING);
    cuda->exchange_capture_mode(&mode);
    if (code != TUTTI_CU_SUCCESS) {
        destroy(cuda, stage);
        return tutti_gpu_fail(comm->gpu->gpu, code, "page-locked memory");
    }
    stage->next = comm->gpu->stages;
    comm->gpu->stages = stage;
    *ret_stage = stage;
    return TUTTI_OK;
}

int tutti_stage_take(struct tutti_comm *comm, size_t size_bytes, bool is_captured,
                     struct tutti_stage **ret_stage)
{
    struct tutti_stage *stage;

    size_bytes += HEAD_BYTES;
    for (stage = comm->gpu->stages; stage != NULL; stage = stage->next)
        if (stage->size_bytes >= size_bytes && is_free(comm->cuda, stage))
            break;
    if (stage == NULL) {
        tidy(comm);
        TUTTI_TRY(create(comm, size_bytes, &stage));
    }
    stage->is_recorded = false;
    stage->is_captured = is_captured;
    stage->word = (uint32_t *)(void *)stage->bytes;
    *stage->word = 0;
    *ret_stage = stage;
    return TUTTI_OK;
}

void tutti_gpu_stage_fini(struct tutti_comm *comm)
{
    struct tutti_comm_gpu *side = comm->gpu;

    tuttiHostStreamDestroy(side->stage);
    side->stage = NULL;
    if (tutti_gpu_enter(side->gpu) != TUTTI_OK)
        return;
    while (side->stages != NULL) {
        struct tutti_stage *next = side->stages->next;

        destroy(comm->cuda, side->stages);
        side->stages = next;
    }
    tutti_gpu_leave(side->gpu);
}
