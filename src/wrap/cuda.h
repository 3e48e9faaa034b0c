/* SPDX-License-Identifier: Apache-2.0
 * NVIDIA's driver API (libcuda). The library is loaded at run time, so that one build runs with and
 * without it. The functions, structs and constants that we use are declared here with the layout
 * and values of NVIDIA's cuda.h. The CUDA runtime is not used. Streams and memory that callers make
 * with the runtime are objects of the driver, too.
 */
#ifndef TUTTI_WRAP_CUDA_H
#define TUTTI_WRAP_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return codes of the functions (CUresult). */
enum {
    TUTTI_CU_SUCCESS = 0,
    TUTTI_CU_INVALID_VALUE = 1,
    TUTTI_CU_OUT_OF_MEMORY = 2,
    TUTTI_CU_NOT_INITIALIZED = 3,
    TUTTI_CU_DEINITIALIZED = 4,
    TUTTI_CU_DEVICE_UNAVAILABLE = 46,
    TUTTI_CU_NO_DEVICE = 100,
    TUTTI_CU_INVALID_DEVICE = 101,
    TUTTI_CU_INVALID_IMAGE = 200,
    TUTTI_CU_INVALID_CONTEXT = 201,
    TUTTI_CU_NO_BINARY_FOR_GPU = 209,
    TUTTI_CU_PEER_ACCESS_UNSUPPORTED = 217,
    TUTTI_CU_INVALID_HANDLE = 400,
    TUTTI_CU_NOT_FOUND = 500,
    TUTTI_CU_NOT_READY = 600,
    TUTTI_CU_ILLEGAL_ADDRESS = 700,
    TUTTI_CU_LAUNCH_OUT_OF_RESOURCES = 701,
    TUTTI_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    TUTTI_CU_CONTEXT_IS_DESTROYED = 709,
    TUTTI_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    TUTTI_CU_LAUNCH_FAILED = 719,
    TUTTI_CU_NOT_PERMITTED = 800,
    TUTTI_CU_NOT_SUPPORTED = 801,
    TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    TUTTI_CU_STREAM_CAPTURE_INVALIDATED = 901,
    TUTTI_CU_UNKNOWN = 999,
};

/* These structs are opaque. They stand for CUcontext, CUstream, CUevent, CUmodule, CUfunction,
 * CUgraph and CUgraphExec. */
struct tutti_cu_context;
struct tutti_cu_stream;
struct tutti_cu_event;
struct tutti_cu_module;
struct tutti_cu_function;
struct tutti_cu_graph;
struct tutti_cu_exec;
struct tutti_cu_green; /* CUgreenCtx */

typedef int tutti_cu_device;          /* CUdevice */
typedef unsigned long long tutti_cu_address; /* CUdeviceptr */
typedef unsigned long long tutti_cu_memory;  /* CUmemGenericAllocationHandle */

/* The default streams of every context. */
#define TUTTI_CU_STREAM_LEGACY ((struct tutti_cu_stream *)0x1)
#define TUTTI_CU_STREAM_PER_THREAD ((struct tutti_cu_stream *)0x2)

/* CUdevice_attribute */
enum {
    TUTTI_CU_MAX_THREADS_PER_BLOCK = 1,
    TUTTI_CU_MULTIPROCESSORS = 16,
    TUTTI_CU_PCI_BUS = 33,
    TUTTI_CU_PCI_DEVICE = 34,
    TUTTI_CU_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    TUTTI_CU_UNIFIED_ADDRESSING = 41,
    TUTTI_CU_PCI_DOMAIN = 50,
    TUTTI_CU_CAPABILITY_MAJOR = 75,
    TUTTI_CU_CAPABILITY_MINOR = 76,
    TUTTI_CU_MANAGED_MEMORY = 83,
    TUTTI_CU_HOST_REGISTERED_POINTERS_USABLE = 91,
    TUTTI_CU_VIRTUAL_MEMORY = 102,
    TUTTI_CU_FILE_DESCRIPTOR_HANDLES = 103,
};

/* CUdevice_P2PAttribute */
enum { TUTTI_CU_PEER_NATIVE_ATOMICS = 3 };

/* CUpointer_attribute, and CUmemorytype */
enum {
    TUTTI_CU_POINTER_CONTEXT = 1,
    TUTTI_CU_POINTER_MEMORY_TYPE = 2,
    TUTTI_CU_POINTER_IS_MANAGED = 8,
    TUTTI_CU_POINTER_DEVICE_ORDINAL = 9,
    TUTTI_CU_POINTER_IS_LEGACY_IPC_CAPABLE = 10,
    TUTTI_CU_POINTER_RANGE_START = 11,
    TUTTI_CU_POINTER_RANGE_SIZE = 12,
};
enum { TUTTI_CU_MEMORY_HOST = 1, TUTTI_CU_MEMORY_DEVICE = 2, TUTTI_CU_MEMORY_UNIFIED = 4 };

enum { TUTTI_CU_STREAM_NON_BLOCKING = 1 };
enum { TUTTI_CU_EVENT_DISABLE_TIMING = 2 };
enum { TUTTI_CU_HOST_PORTABLE = 1, TUTTI_CU_HOST_MAPPED = 2 };  /* flags of alloc and register */
enum { TUTTI_CU_IPC_LAZY_PEER_ACCESS = 1 };
enum { TUTTI_CU_CAPTURE_NONE = 0, TUTTI_CU_CAPTURE_ACTIVE = 1, TUTTI_CU_CAPTURE_INVALIDATED = 2 };
enum {
    TUTTI_CU_CAPTURE_GLOBAL = 0,
    TUTTI_CU_CAPTURE_THREAD_LOCAL = 1,
    TUTTI_CU_CAPTURE_RELAXED = 2,
};
enum { TUTTI_CU_WAIT_AT_LEAST = 0, TUTTI_CU_WAIT_EQUAL = 1 };
/* CUfunction_attribute */
enum {
    TUTTI_CU_FUNCTION_MAX_THREADS = 0,
    TUTTI_CU_FUNCTION_SHARED_BYTES = 1,
    TUTTI_CU_FUNCTION_REGISTERS = 4,
    TUTTI_CU_FUNCTION_CARVEOUT = 9, /* the preferred shared memory, in percent of the largest */
};

/* CUmemAllocationProp, CUmemAccessDesc and their constants */
enum { TUTTI_CU_MEMORY_PINNED = 1, TUTTI_CU_LOCATION_DEVICE = 1, TUTTI_CU_HANDLE_FILE = 1 };
enum { TUTTI_CU_ACCESS_READ_WRITE = 3 };
enum { TUTTI_CU_GRANULARITY_MINIMUM = 0, TUTTI_CU_GRANULARITY_RECOMMENDED = 1 };
struct tutti_cu_location {
    int type, id;
};
struct tutti_cu_memory_kind {
    int type, handle_types;
    struct tutti_cu_location location;
    void *windows;
    struct {
        unsigned char compression, gpudirect_rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};
struct tutti_cu_access {
    struct tutti_cu_location location;
    int flags;
};

/* CUdevResource, and CUdevResourceType */
enum { TUTTI_CU_RESOURCE_MULTIPROCESSORS = 1 };
struct tutti_cu_resource {
    int type;
    unsigned char reserved[92];
    unsigned multiprocessors;
    unsigned char more[44];
};

#define TUTTI_CU_UUID_BYTES 16
#define TUTTI_CU_IPC_BYTES 64
struct tutti_cu_ipc_memory {
    char bytes[TUTTI_CU_IPC_BYTES];
};

/* The functions; cuda.c lists their names in the driver. All return one of the codes above. Those
 * under "optional" are NULL if the driver is too old to have them. */
struct tutti_cu_driver {
    void *library; /* handle of dlopen */
    int (*init)(unsigned flags);
    int (*error_string)(int code, const char **ret_text);

    int (*device_count)(int *ret_count);
    int (*device)(tutti_cu_device *ret_device, int ordinal);
    int (*device_attribute)(int *ret_value, int attribute, tutti_cu_device device);
    int (*device_name)(char *ret_name, int size_bytes, tutti_cu_device device);
    int (*device_uuid)(unsigned char ret_uuid[TUTTI_CU_UUID_BYTES], tutti_cu_device device);
    int (*can_access_peer)(int *ret_can, tutti_cu_device device, tutti_cu_device peer);
    int (*peer_attribute)(int *ret_value, int attribute, tutti_cu_device device,
                          tutti_cu_device peer);

    int (*primary_retain)(struct tutti_cu_context **ret_context, tutti_cu_device device);
    int (*primary_release)(tutti_cu_device device);
    int (*context_current)(struct tutti_cu_context **ret_context);
    int (*context_set)(struct tutti_cu_context *context);
    int (*context_push)(struct tutti_cu_context *context);
    int (*context_pop)(struct tutti_cu_context **ret_context);
    int (*context_device)(tutti_cu_device *ret_device);
    int (*enable_peer)(struct tutti_cu_context *peer, unsigned flags);

    int (*stream_create)(struct tutti_cu_stream **ret_stream, unsigned flags);
    int (*stream_destroy)(struct tutti_cu_stream *stream);
    int (*stream_query)(struct tutti_cu_stream *stream);
    int (*stream_synchronize)(struct tutti_cu_stream *stream);
    int (*stream_wait)(struct tutti_cu_stream *stream, struct tutti_cu_event *event,
                       unsigned flags);
    int (*stream_is_capturing)(struct tutti_cu_stream *stream, int *ret_status);
    int (*exchange_capture_mode)(int *mode);
    int (*host_function)(struct tutti_cu_stream *stream, void (*function)(void *), void *argument);

    int (*event_create)(struct tutti_cu_event **ret_event, unsigned flags);
    int (*event_destroy)(struct tutti_cu_event *event);
    int (*event_record)(struct tutti_cu_event *event, struct tutti_cu_stream *stream);
    int (*event_query)(struct tutti_cu_event *event);
    int (*event_elapsed)(float *ret_ms, struct tutti_cu_event *from, struct tutti_cu_event *to);

    int (*memory_alloc)(tutti_cu_address *ret_address, size_t size_bytes);
    int (*memory_free)(tutti_cu_address address);
    int (*memory_info)(size_t *ret_free, size_t *ret_total);
    int (*address_range)(tutti_cu_address *ret_base, size_t *ret_size, tutti_cu_address address);
    int (*host_alloc)(void **ret_address, size_t size_bytes, unsigned flags);
    int (*host_free)(void *address);
    int (*host_register)(void *address, size_t size_bytes, unsigned flags);
    int (*host_unregister)(void *address);
    int (*host_device_address)(tutti_cu_address *ret_address, void *host, unsigned flags);
    int (*pointer_attributes)(unsigned count, int *attributes, void **values,
                              tutti_cu_address address);
    int (*copy)(tutti_cu_address to, tutti_cu_address from, size_t size_bytes);
    int (*copy_async)(tutti_cu_address to, tutti_cu_address from, size_t size_bytes,
                      struct tutti_cu_stream *stream);
    int (*set8_async)(tutti_cu_address to, unsigned char value, size_t size_bytes,
                      struct tutti_cu_stream *stream);

    int (*ipc_export)(struct tutti_cu_ipc_memory *ret_handle, tutti_cu_address address);
    int (*ipc_open)(tutti_cu_address *ret_address, struct tutti_cu_ipc_memory handle,
                    unsigned flags);
    int (*ipc_close)(tutti_cu_address address);

    int (*module_load)(struct tutti_cu_module **ret_module, const void *image);
    int (*module_unload)(struct tutti_cu_module *module);
    int (*module_function)(struct tutti_cu_function **ret_function, struct tutti_cu_module *module,
                           const char *name);
    int (*occupancy)(int *ret_blocks, struct tutti_cu_function *function, int threads,
                     size_t shared_bytes);
    int (*launch)(struct tutti_cu_function *function, unsigned grid_x, unsigned grid_y,
                  unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                  unsigned shared_bytes, struct tutti_cu_stream *stream, void **parameters,
                  void **extra);

    /* optional */
    int (*granularity)(size_t *ret_bytes, const struct tutti_cu_memory_kind *kind, int option);
    int (*memory_create)(tutti_cu_memory *ret_memory, size_t size_bytes,
                         const struct tutti_cu_memory_kind *kind, unsigned long long flags);
    int (*memory_release)(tutti_cu_memory memory);
    int (*memory_retain)(tutti_cu_memory *ret_memory, void *address);
    int (*memory_export)(void *ret_handle, tutti_cu_memory memory, int handle_type,
                         unsigned long long flags);
    int (*memory_import)(tutti_cu_memory *ret_memory, void *handle, int handle_type);
    int (*address_reserve)(tutti_cu_address *ret_address, size_t size_bytes, size_t alignment,
                           tutti_cu_address wanted, unsigned long long flags);
    int (*address_free)(tutti_cu_address address, size_t size_bytes);
    int (*memory_map)(tutti_cu_address address, size_t size_bytes, size_t offset,
                      tutti_cu_memory memory, unsigned long long flags);
    int (*memory_unmap)(tutti_cu_address address, size_t size_bytes);
    int (*wait_value)(struct tutti_cu_stream *stream, tutti_cu_address at, uint32_t value,
                      unsigned flags);
    int (*stream_id)(struct tutti_cu_stream *stream, unsigned long long *ret_id);
    int (*stream_green)(struct tutti_cu_stream *stream, struct tutti_cu_green **ret_green);
    int (*green_resource)(struct tutti_cu_green *green, struct tutti_cu_resource *ret_resource,
                          int type);
    int (*set_function_attribute)(struct tutti_cu_function *function, int attribute, int value);
    int (*memory_access)(tutti_cu_address address, size_t size_bytes,
                         const struct tutti_cu_access *accesses, size_t count);

    /* optional, too: only the tests of this library call these functions */
    int (*driver_version)(int *ret_version);
    int (*error_name)(int code, const char **ret_name);
    int (*context_synchronize)(void);
    int (*stream_context)(struct tutti_cu_stream *stream, struct tutti_cu_context **ret_context);
    int (*stream_capture_id)(struct tutti_cu_stream *stream, int *ret_status,
                             unsigned long long *ret_id); /* cuStreamGetCaptureInfo, first form */
    int (*event_synchronize)(struct tutti_cu_event *event);
    int (*set8)(tutti_cu_address to, unsigned char value, size_t size_bytes);
    int (*function_attribute)(int *ret_value, int attribute, struct tutti_cu_function *function);
};

/* Get the driver of this process. The variable TUTTI_CUDA_LIBRARY, if set, names the library. The
 * driver is loaded at the first call that needs it, and is never unloaded. If `must_load` is false,
 * the driver is loaded only if other code in this process has begun to use it. NULL: no driver
 * works, or it has not been loaded. Thread-safe. */
const struct tutti_cu_driver *tutti_cu_get(bool must_load);

/* Return the driver's text for an error code. The result is never NULL. */
const char *tutti_cu_error(const struct tutti_cu_driver *cuda, int code);

#endif
