/* SPDX-License-Identifier: Apache-2.0
 * Allocates the memory that a launch reads besides its argument, such as the counts of v-forms and
 * the works of a group. Kernels read this page-locked host memory, which is divided into slabs. A
 * slab is used again when the launches that read it have ended. A slab that a captured launch reads
 * lives as long as the communicator. */
#include "base/round.h"
#include "executor/cuda/private.h"

#include <stdlib.h>
#include <string.h>

/* The least size of a slab, and the alignment of what is taken from slabs. A rank has two slabs
 * from the beginning, of which one becomes free while the other is filled. A launch of few messages
 * takes less than 1 KiB. The two slabs are larger if ranks are on several hosts, because the
 * programs of v-forms are in slabs, too. */
enum { SLAB_BYTES = 128 << 10, SLAB_OF_HOSTS_BYTES = 512 << 10, ALIGNMENT = 64 };

struct tutti_cuda_slab {
    struct tutti_cuda_slab *next;
    uint8_t *bytes;
    size_t size_bytes, used_bytes;
    struct tutti_cu_event *event; /* recorded after the last launch that reads the slab */
    bool is_captured;             /* captured launches read the slab, so it is never used again */
    bool is_recorded;             /* `event` has been recorded since the slab was empty */
    bool is_touched;              /* the launch that is being prepared reads the slab */
};

static void destroy(const struct tutti_cuda_gpu *gpu, struct tutti_cuda_slab *slab)
{
    if (slab->bytes != NULL)
        gpu->cuda->host_free(slab->bytes);
    if (slab->event != NULL)
        gpu->cuda->event_destroy(slab->event);
    free(slab);
}

/* Allocates a slab of at least `size_bytes`, and adds it to the list. */
static int create(struct tutti_cuda_gpu *gpu, size_t size_bytes, bool is_captured,
                  struct tutti_cuda_slab **ret_slab)
{
    struct tutti_cuda_slab *slab = calloc(1, sizeof *slab);
    int code;

    if (slab == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to manage %zu bytes of a launch",
                          size_bytes);
    slab->size_bytes = size_bytes > SLAB_BYTES ? size_bytes : SLAB_BYTES;
    slab->is_captured = is_captured;
    code = gpu->cuda->host_alloc((void **)&slab->bytes, slab->size_bytes,
                                 TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED);
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->event_create(&slab->event, TUTTI_CU_EVENT_DISABLE_TIMING);
    if (code != TUTTI_CU_SUCCESS) {
        destroy(gpu, slab);
        return tutti_cuda_fail(gpu, code, "allocating page-locked memory for a launch");
    }
    slab->next = gpu->slabs;
    gpu->slabs = slab;
    *ret_slab = slab;
    return TUTTI_OK;
}

int tutti_cuda_slabs_reserve(struct tutti_cuda_gpu *gpu)
{
    size_t size_bytes = gpu->spans_hosts ? SLAB_OF_HOSTS_BYTES : SLAB_BYTES;
    struct tutti_cuda_slab *slab;

    if (gpu->slabs != NULL)
        return TUTTI_OK;
    TUTTI_TRY(create(gpu, size_bytes, false, &slab));
    return create(gpu, size_bytes, false, &slab);
}

/* Returns true if no launch reads the slab. The launch that is being prepared may need several
 * slabs, which are touched. */
static bool is_free(const struct tutti_cuda_gpu *gpu, const struct tutti_cuda_slab *slab)
{
    return !slab->is_captured && !slab->is_touched &&
           (!slab->is_recorded || gpu->cuda->event_query(slab->event) == TUTTI_CU_SUCCESS);
}

static bool has_room(const struct tutti_cuda_slab *slab, size_t size_bytes)
{
    return slab != NULL && size_bytes <= slab->size_bytes - slab->used_bytes;
}

/* Makes another slab the current slab, from which memory is taken. It is a free slab that is large
 * enough, or a new slab. */
static int change_slab(struct tutti_cuda_gpu *gpu, size_t size_bytes, bool is_captured)
{
    struct tutti_cuda_slab *slab;

    gpu->slab = NULL;
    for (slab = gpu->slabs; !is_captured && slab != NULL; slab = slab->next)
        if (size_bytes <= slab->size_bytes && is_free(gpu, slab)) {
            slab->used_bytes = 0;
            slab->is_recorded = false;
            gpu->slab = slab;
            return TUTTI_OK;
        }
    return create(gpu, size_bytes, is_captured, &gpu->slab);
}

int tutti_cuda_slab_take(struct tutti_cuda_gpu *gpu, size_t size_bytes, bool is_captured,
                         void **ret_bytes)
{
    size_bytes = tutti_round_up(size_bytes, ALIGNMENT);
    if (!has_room(gpu->slab, size_bytes) || gpu->slab->is_captured != is_captured)
        TUTTI_TRY(change_slab(gpu, size_bytes, is_captured));
    *ret_bytes = gpu->slab->bytes + gpu->slab->used_bytes;
    gpu->slab->used_bytes += size_bytes;
    tutti_assert(gpu->slab->used_bytes <= gpu->slab->size_bytes);
    gpu->slab->is_touched = true;
    return TUTTI_OK;
}

int tutti_cuda_store_for_launch(struct tutti_cuda_gpu *gpu, const void *bytes, size_t size_bytes,
                                bool is_captured, const void **ret_image)
{
    void *image;

    TUTTI_TRY(tutti_cuda_slab_take(gpu, size_bytes, is_captured, &image));
    memcpy(image, bytes, size_bytes);
    *ret_image = image;
    return TUTTI_OK;
}

int tutti_cuda_slabs_launched(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream)
{
    for (struct tutti_cuda_slab *slab = gpu->slabs; slab != NULL; slab = slab->next) {
        int code;

        if (!slab->is_touched)
            continue;
        slab->is_touched = false;
        if (slab->is_captured)
            continue;
        code = gpu->cuda->event_record(slab->event, stream);
        if (code != TUTTI_CU_SUCCESS)
            return tutti_cuda_fail(gpu, code, "recording an event");
        slab->is_recorded = true;
    }
    return TUTTI_OK;
}

void tutti_cuda_slabs_fini(struct tutti_cuda_gpu *gpu)
{
    while (gpu->slabs != NULL) {
        struct tutti_cuda_slab *next = gpu->slabs->next;

        destroy(gpu, gpu->slabs);
        gpu->slabs = next;
    }
    gpu->slab = NULL;
}
