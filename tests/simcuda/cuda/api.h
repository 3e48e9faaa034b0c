/* SPDX-License-Identifier: Apache-2.0
 * The functions of the simulated driver, under the names that the real one exports. */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_API_H
#define TUTTI_TESTS_SIMCUDA_CUDA_API_H

#include "wrap/cuda.h"

#pragma GCC visibility push(default)
int cuInit(unsigned flags);
int cuDriverGetVersion(int *ret_version);
int cuGetErrorName(int code, const char **ret_name);
int cuGetErrorString(int code, const char **ret_text);

int cuDeviceGetCount(int *ret_count);
int cuDeviceGet(tutti_cu_device *ret_device, int ordinal);
int cuDeviceGetAttribute(int *ret_value, int attribute, tutti_cu_device device);
int cuDeviceGetName(char *ret_name, int size_bytes, tutti_cu_device device);
int cuDeviceGetUuid(unsigned char *ret_uuid, tutti_cu_device device);
int cuDeviceCanAccessPeer(int *ret_can, tutti_cu_device device, tutti_cu_device peer);
int cuDeviceGetP2PAttribute(int *ret_value, int attribute, tutti_cu_device device,
                            tutti_cu_device peer);

int cuDevicePrimaryCtxRetain(struct tutti_cu_context **ret_context, tutti_cu_device device);
int cuDevicePrimaryCtxRelease_v2(tutti_cu_device device);
int cuCtxGetCurrent(struct tutti_cu_context **ret_context);
int cuCtxSetCurrent(struct tutti_cu_context *context);
int cuCtxPushCurrent_v2(struct tutti_cu_context *context);
int cuCtxPopCurrent_v2(struct tutti_cu_context **ret_context);
int cuCtxGetDevice(tutti_cu_device *ret_device);
int cuCtxSynchronize(void);
int cuCtxEnablePeerAccess(struct tutti_cu_context *peer, unsigned flags);

int cuStreamCreate(struct tutti_cu_stream **ret_stream, unsigned flags);
int cuStreamCreateWithPriority(struct tutti_cu_stream **ret_stream, unsigned flags, int priority);
/* A stream of a green context, which has only that many multiprocessors of the device. Only the
 * simulated driver has this function. */
int cuSimStreamCreate(struct tutti_cu_stream **ret_stream, unsigned multiprocessors);
int cuStreamGetGreenCtx(struct tutti_cu_stream *stream, struct tutti_cu_green **ret_green);
int cuGreenCtxGetDevResource(struct tutti_cu_green *green, struct tutti_cu_resource *ret_resource,
                             int type);
int cuStreamDestroy_v2(struct tutti_cu_stream *stream);
int cuStreamQuery(struct tutti_cu_stream *stream);
int cuStreamSynchronize(struct tutti_cu_stream *stream);
int cuStreamWaitEvent(struct tutti_cu_stream *stream, struct tutti_cu_event *event, unsigned flags);
int cuStreamGetId(struct tutti_cu_stream *stream, unsigned long long *ret_number);
int cuStreamGetCtx(struct tutti_cu_stream *stream, struct tutti_cu_context **ret_context);
int cuStreamWaitValue32_v2(struct tutti_cu_stream *stream, tutti_cu_address at, uint32_t value,
                           unsigned flags);
int cuLaunchHostFunc(struct tutti_cu_stream *stream, void (*function)(void *), void *argument);

int cuEventCreate(struct tutti_cu_event **ret_event, unsigned flags);
int cuEventDestroy_v2(struct tutti_cu_event *event);
int cuEventRecord(struct tutti_cu_event *event, struct tutti_cu_stream *stream);
int cuEventQuery(struct tutti_cu_event *event);
int cuEventSynchronize(struct tutti_cu_event *event);
int cuEventElapsedTime(float *ret_ms, struct tutti_cu_event *from, struct tutti_cu_event *to);

int cuStreamIsCapturing(struct tutti_cu_stream *stream, int *ret_status);
int cuStreamGetCaptureInfo(struct tutti_cu_stream *stream, int *ret_status,
                           unsigned long long *ret_id);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuStreamBeginCapture_v2(struct tutti_cu_stream *stream, int mode);
int cuStreamEndCapture(struct tutti_cu_stream *stream, struct tutti_cu_graph **ret_graph);
int cuGraphInstantiateWithFlags(struct tutti_cu_exec **ret_exec, struct tutti_cu_graph *graph,
                                unsigned long long flags);
int cuGraphLaunch(struct tutti_cu_exec *exec, struct tutti_cu_stream *stream);
int cuGraphExecDestroy(struct tutti_cu_exec *exec);
int cuGraphDestroy(struct tutti_cu_graph *graph);

int cuMemAlloc_v2(tutti_cu_address *ret_address, size_t size_bytes);
int cuMemFree_v2(tutti_cu_address address);
int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
int cuMemGetAddressRange_v2(tutti_cu_address *ret_base, size_t *ret_size,
                            tutti_cu_address address);
int cuMemHostAlloc(void **ret_address, size_t size_bytes, unsigned flags);
int cuMemFreeHost(void *address);
int cuMemHostRegister_v2(void *address, size_t size_bytes, unsigned flags);
int cuMemHostUnregister(void *address);
int cuMemHostGetDevicePointer_v2(tutti_cu_address *ret_address, void *host, unsigned flags);
int cuPointerGetAttributes(unsigned count, int *attributes, void **values,
                           tutti_cu_address address);
int cuMemcpy(tutti_cu_address to, tutti_cu_address from, size_t size_bytes);
int cuMemcpyAsync(tutti_cu_address to, tutti_cu_address from, size_t size_bytes,
                  struct tutti_cu_stream *stream);
int cuMemsetD8_v2(tutti_cu_address to, unsigned char value, size_t size_bytes);
int cuMemsetD8Async(tutti_cu_address to, unsigned char value, size_t size_bytes,
                    struct tutti_cu_stream *stream);

int cuIpcGetMemHandle(struct tutti_cu_ipc_memory *ret_handle, tutti_cu_address address);
int cuIpcOpenMemHandle_v2(tutti_cu_address *ret_address, struct tutti_cu_ipc_memory handle,
                          unsigned flags);
int cuIpcCloseMemHandle(tutti_cu_address address);

int cuModuleLoadData(struct tutti_cu_module **ret_module, const void *image);
int cuModuleUnload(struct tutti_cu_module *module);
int cuModuleGetFunction(struct tutti_cu_function **ret_function, struct tutti_cu_module *module,
                        const char *name);
int cuFuncGetAttribute(int *ret_value, int attribute, struct tutti_cu_function *function);
int cuFuncSetAttribute(struct tutti_cu_function *function, int attribute, int value);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret_blocks,
                                                struct tutti_cu_function *function, int threads,
                                                size_t shared_bytes);
int cuLaunchKernel(struct tutti_cu_function *function, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared_bytes, struct tutti_cu_stream *stream, void **parameters,
                   void **extra);

int cuMemGetAllocationGranularity(size_t *ret_bytes, const struct tutti_cu_memory_kind *kind,
                                  int option);
int cuMemCreate(tutti_cu_memory *ret_memory, size_t size_bytes,
                const struct tutti_cu_memory_kind *kind, unsigned long long flags);
int cuMemRelease(tutti_cu_memory memory);
int cuMemRetainAllocationHandle(tutti_cu_memory *ret_memory, void *address);
int cuMemExportToShareableHandle(void *ret_handle, tutti_cu_memory memory, int handle_type,
                                 unsigned long long flags);
int cuMemImportFromShareableHandle(tutti_cu_memory *ret_memory, void *handle, int handle_type);
int cuMemAddressReserve(tutti_cu_address *ret_address, size_t size_bytes, size_t alignment,
                        tutti_cu_address wanted, unsigned long long flags);
int cuMemAddressFree(tutti_cu_address address, size_t size_bytes);
int cuMemMap(tutti_cu_address address, size_t size_bytes, size_t offset, tutti_cu_memory memory,
             unsigned long long flags);
int cuMemUnmap(tutti_cu_address address, size_t size_bytes);
int cuMemSetAccess(tutti_cu_address address, size_t size_bytes,
                   const struct tutti_cu_access *accesses, size_t count);
#pragma GCC visibility pop

#endif
