/* SPDX-License-Identifier: Apache-2.0
 * The public functions that allocate and register memory for communication. */
#include "gpu/comm_gpu.h"

#include "transport/gpu_memory/alloc.h"
#include "transport/shm/memory.h"

/* Returns the CUDA driver if this thread has a current context, and otherwise NULL. */
static const struct tutti_cu_driver *current_cuda(void)
{
    const struct tutti_cu_driver *cuda = tutti_cu_get(false);
    struct tutti_cu_context *context = NULL;

    if (cuda == NULL || cuda->context_current(&context) != TUTTI_CU_SUCCESS || context == NULL)
        return NULL;
    return cuda;
}

static int allocate(const char *function, void **ptr, size_t size, bool is_for_host)
{
    const struct tutti_cu_driver *cuda;

    if (ptr == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: ptr is NULL", function);
    if (size == 0) {
        *ptr = NULL;
        return TUTTI_OK;
    }
    cuda = is_for_host ? NULL : current_cuda();
    return cuda != NULL ? tutti_gpumem_list_alloc(cuda, size, ptr) : tutti_memory_alloc(size, ptr);
}

tuttiResult_t tuttiMemAlloc(void **ptr, size_t size)
{
    return tutti_public_result(allocate("tuttiMemAlloc", ptr, size, false));
}

tuttiResult_t tuttiMemAllocHost(void **ptr, size_t size)
{
    return tutti_public_result(allocate("tuttiMemAllocHost", ptr, size, true));
}

tuttiResult_t tuttiMemFree(void *ptr)
{
    const struct tutti_cu_driver *cuda;

    if (ptr == NULL)
        return tuttiSuccess;
    cuda = tutti_cu_get(false);
    if (cuda != NULL && tutti_gpumem_list_free(cuda, ptr) == TUTTI_OK)
        return tuttiSuccess;
    return tutti_public_result(tutti_memory_free(ptr));
}

/* ---- registration ---------------------------------------------------------------------------- */

static int enlist(struct tutti_comm *comm, void *buff, size_t size, void **ret_handle)
{
    int rc = TUTTI_OK;

    if (ret_handle == NULL || (buff == NULL && size > 0))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiCommRegister: %s is NULL on rank %d",
                          ret_handle == NULL ? "handle" : "buff", comm->rank);
    /* Host memory gains nothing from registration: memory of tuttiMemAlloc is known to the library,
     * and any other is read directly. */
    if (comm->gpu != NULL && size > 0 && tutti_gpu_is_device_memory(comm, buff)) {
        TUTTI_TRY(tutti_cuda_enter(comm->gpu->gpu));
        rc = tutti_gpumem_list_add(comm->cuda, buff, size);
        tutti_cuda_leave(comm->gpu->gpu);
    }
    if (rc != TUTTI_OK)
        return tutti_fail(rc == TUTTI_ERR_DEVICE ? TUTTI_ERR_ARGUMENT : rc,
                          "tuttiCommRegister: buff on rank %d: %s; use memory of tuttiMemAlloc or "
                          "cuMemAlloc", comm->rank, tutti_message_last());
    *ret_handle = buff;
    return TUTTI_OK;
}

tuttiResult_t tuttiCommRegister(tuttiComm_t handle, void *buff, size_t size, void **registration)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter_ready(handle, "tuttiCommRegister", &comm);

    if (rc == TUTTI_OK) {
        rc = enlist(comm, buff, size, registration);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(rc);
}

tuttiResult_t tuttiCommDeregister(tuttiComm_t handle, void *registration)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter(handle, "tuttiCommDeregister", &comm);

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    if (registration != NULL && comm->gpu != NULL &&
        tutti_cuda_enter(comm->gpu->gpu) == TUTTI_OK) {
        tutti_gpumem_list_remove(comm->cuda, registration);
        tutti_cuda_leave(comm->gpu->gpu);
    }
    tutti_comm_leave(comm);
    return tuttiSuccess;
}
