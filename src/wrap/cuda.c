/* SPDX-License-Identifier: Apache-2.0
 * Loading of the CUDA driver, at most once per process. */
#include "wrap/cuda.h"

#include "base/log.h"
#include "base/param.h"
#include "base/result.h"
#include "wrap/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>

#define DEFAULT_LIBRARY "libcuda.so.1"

static_assert(sizeof(struct tutti_cu_memory_kind) == 32, "as CUmemAllocationProp");
static_assert(sizeof(struct tutti_cu_access) == 12, "as CUmemAccessDesc");
static_assert(sizeof(struct tutti_cu_resource) == 144, "as CUdevResource");

#define AT(member) offsetof(struct tutti_cu_driver, member)
static const struct tutti_library_function functions[] = {
    {"cuInit", AT(init), true},
    {"cuGetErrorString", AT(error_string), true},
    {"cuDeviceGetCount", AT(device_count), true},
    {"cuDeviceGet", AT(device), true},
    {"cuDeviceGetAttribute", AT(device_attribute), true},
    {"cuDeviceGetName", AT(device_name), true},
    {"cuDeviceGetUuid", AT(device_uuid), true},
    {"cuDeviceCanAccessPeer", AT(can_access_peer), true},
    {"cuDeviceGetP2PAttribute", AT(peer_attribute), true},
    {"cuDevicePrimaryCtxRetain", AT(primary_retain), true},
    {"cuDevicePrimaryCtxRelease_v2", AT(primary_release), true},
    {"cuCtxGetCurrent", AT(context_current), true},
    {"cuCtxSetCurrent", AT(context_set), true},
    {"cuCtxPushCurrent_v2", AT(context_push), true},
    {"cuCtxPopCurrent_v2", AT(context_pop), true},
    {"cuCtxGetDevice", AT(context_device), true},
    {"cuCtxEnablePeerAccess", AT(enable_peer), true},
    {"cuStreamCreate", AT(stream_create), true},
    {"cuStreamDestroy_v2", AT(stream_destroy), true},
    {"cuStreamQuery", AT(stream_query), true},
    {"cuStreamSynchronize", AT(stream_synchronize), true},
    {"cuStreamWaitEvent", AT(stream_wait), true},
    {"cuStreamIsCapturing", AT(stream_is_capturing), true},
    {"cuThreadExchangeStreamCaptureMode", AT(exchange_capture_mode), true},
    {"cuLaunchHostFunc", AT(host_function), true},
    {"cuEventCreate", AT(event_create), true},
    {"cuEventDestroy_v2", AT(event_destroy), true},
    {"cuEventRecord", AT(event_record), true},
    {"cuEventQuery", AT(event_query), true},
    {"cuEventElapsedTime", AT(event_elapsed), true},
    {"cuMemAlloc_v2", AT(memory_alloc), true},
    {"cuMemFree_v2", AT(memory_free), true},
    {"cuMemGetInfo_v2", AT(memory_info), true},
    {"cuMemGetAddressRange_v2", AT(address_range), true},
    {"cuMemHostAlloc", AT(host_alloc), true},
    {"cuMemFreeHost", AT(host_free), true},
    {"cuMemHostRegister_v2", AT(host_register), true},
    {"cuMemHostUnregister", AT(host_unregister), true},
    {"cuMemHostGetDevicePointer_v2", AT(host_device_address), true},
    {"cuPointerGetAttributes", AT(pointer_attributes), true},
    {"cuMemcpy", AT(copy), true},
    {"cuMemcpyAsync", AT(copy_async), true},
    {"cuMemsetD8Async", AT(set8_async), true},
    {"cuIpcGetMemHandle", AT(ipc_export), true},
    {"cuIpcOpenMemHandle_v2", AT(ipc_open), true},
    {"cuIpcCloseMemHandle", AT(ipc_close), true},
    {"cuModuleLoadData", AT(module_load), true},
    {"cuModuleUnload", AT(module_unload), true},
    {"cuModuleGetFunction", AT(module_function), true},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", AT(occupancy), true},
    {"cuLaunchKernel", AT(launch), true},
    {"cuMemGetAllocationGranularity", AT(granularity), false},
    {"cuMemCreate", AT(memory_create), false},
    {"cuMemRelease", AT(memory_release), false},
    {"cuMemRetainAllocationHandle", AT(memory_retain), false},
    {"cuMemExportToShareableHandle", AT(memory_export), false},
    {"cuMemImportFromShareableHandle", AT(memory_import), false},
    {"cuMemAddressReserve", AT(address_reserve), false},
    {"cuMemAddressFree", AT(address_free), false},
    {"cuMemMap", AT(memory_map), false},
    {"cuMemUnmap", AT(memory_unmap), false},
    {"cuStreamWaitValue32_v2", AT(wait_value), false},
    {"cuStreamGetId", AT(stream_id), false},
    {"cuStreamGetGreenCtx", AT(stream_green), false},
    {"cuGreenCtxGetDevResource", AT(green_resource), false},
    {"cuFuncSetAttribute", AT(set_function_attribute), false},
    {"cuMemSetAccess", AT(memory_access), false},
    /* Used only by tests. */
    {"cuDriverGetVersion", AT(driver_version), false},
    {"cuGetErrorName", AT(error_name), false},
    {"cuCtxSynchronize", AT(context_synchronize), false},
    {"cuStreamGetCtx", AT(stream_context), false},
    {"cuStreamGetCaptureInfo", AT(stream_capture_id), false},
    {"cuEventSynchronize", AT(event_synchronize), false},
    {"cuMemsetD8_v2", AT(set8), false},
    {"cuFuncGetAttribute", AT(function_attribute), false},
};
#undef AT

static struct tutti_cu_driver driver;
static enum { UNTRIED, READY, FAILED } state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int load(const char *file, bool is_wanted)
{
    int code, rc = tutti_library_open(file, functions, sizeof functions / sizeof functions[0],
                                      &driver, &driver.library);

    if (rc != TUTTI_OK) {
        /* A host without GPUs is normal, but a library that the user named must load. */
        tutti_log(is_wanted ? TUTTI_LOG_WARN : TUTTI_LOG_INFO,
                  "no CUDA driver, so GPUs are not used: %s", tutti_message_last());
        return rc;
    }
    code = driver.init(0);
    if (code != TUTTI_CU_SUCCESS) {
        rc = tutti_note(TUTTI_ERR_SYSTEM, "cuInit: %s", tutti_cu_error(&driver, code));
        tutti_log(code == TUTTI_CU_NO_DEVICE && !is_wanted ? TUTTI_LOG_INFO : TUTTI_LOG_WARN,
                  "%s does not start, so GPUs are not used: %s", file, tutti_message_last());
        tutti_library_close(driver.library);
    }
    return rc;
}

/* True if other code in this process has loaded the driver and initialized it. Initialization is
 * left to that code, because it takes long, and because children made by fork after it cannot use
 * the driver. */
static bool is_in_use(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    struct tutti_cu_context *context;
    int (*current)(struct tutti_cu_context **ret_context);
    bool is_begun = false;

    if (library != NULL) {
        *(void **)&current = dlsym(library, "cuCtxGetCurrent");
        is_begun = current != NULL && current(&context) != TUTTI_CU_NOT_INITIALIZED;
        tutti_library_close(library);
    }
    return is_begun;
}

const struct tutti_cu_driver *tutti_cu_get(bool must_load)
{
    const char *wanted = tutti_param_text(TUTTI_PARAM_CUDA_LIBRARY);
    const char *file = wanted[0] != '\0' ? wanted : DEFAULT_LIBRARY;
    bool is_ready;

    pthread_mutex_lock(&lock);
    if (state == UNTRIED && (must_load || is_in_use(file)))
        state = load(file, wanted[0] != '\0') == TUTTI_OK ? READY : FAILED;
    is_ready = state == READY;
    pthread_mutex_unlock(&lock);
    return is_ready ? &driver : NULL;
}

const char *tutti_cu_error(const struct tutti_cu_driver *cuda, int code)
{
    const char *text = NULL;

    if (cuda->error_string(code, &text) != TUTTI_CU_SUCCESS || text == NULL)
        return "an error without a text";
    return text;
}
