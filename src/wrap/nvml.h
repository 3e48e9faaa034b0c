/* SPDX-License-Identifier: Apache-2.0
 * NVIDIA's management library (NVML), which comes with the driver. It is loaded at run time, so
 * that one build runs with and without it. The functions, structs and constants that we use are
 * declared here with the layout and values of NVIDIA's nvml.h. */
#ifndef TUTTI_WRAP_NVML_H
#define TUTTI_WRAP_NVML_H

#include <stddef.h>

/* Return codes of the functions (nvmlReturn_t). */
enum {
    TUTTI_NVML_SUCCESS = 0,
    TUTTI_NVML_UNINITIALIZED = 1,
    TUTTI_NVML_INVALID_ARGUMENT = 2,
    TUTTI_NVML_NOT_SUPPORTED = 3,
    TUTTI_NVML_NO_PERMISSION = 4,
    TUTTI_NVML_NOT_FOUND = 6,
    TUTTI_NVML_INSUFFICIENT_SIZE = 7,
    TUTTI_NVML_DRIVER_NOT_LOADED = 9,
    TUTTI_NVML_FUNCTION_NOT_FOUND = 13,
    TUTTI_NVML_GPU_IS_LOST = 15,
    TUTTI_NVML_RESET_REQUIRED = 16,
    TUTTI_NVML_ARGUMENT_VERSION_MISMATCH = 25,
    TUTTI_NVML_UNKNOWN = 999,
};

/* No GPU has more NVLinks than this. If a link number is larger than the driver knows, the driver
 * returns INVALID_ARGUMENT. */
#define TUTTI_NVML_LINKS 36
#define TUTTI_NVML_TEXT_BYTES 96 /* size of a name's buffer, and of a UUID's */
#define TUTTI_NVML_CLUSTER_BYTES 16

/* Type of the device at the other end of an NVLink (nvmlIntNvLinkDeviceType_t). */
enum {
    TUTTI_NVML_REMOTE_GPU = 0,
    TUTTI_NVML_REMOTE_IBM_NPU = 1,
    TUTTI_NVML_REMOTE_SWITCH = 2,
    TUTTI_NVML_REMOTE_UNKNOWN = 255,
};

enum { TUTTI_NVML_LINK_CAN_P2P = 0 }; /* nvmlNvLinkCapability_t */

/* nvmlGpuP2PCapsIndex_t, and the status of an available capability (nvmlGpuP2PStatus_t). */
enum { TUTTI_NVML_P2P_READ = 0, TUTTI_NVML_P2P_WRITE = 1, TUTTI_NVML_P2P_NVLINK = 2 };
enum { TUTTI_NVML_P2P_OK = 0 };

/* Field numbers. For a field of a link, the scope is the link's number. */
enum {
    TUTTI_NVML_FIELD_NVLINK_SPEED = 164, /* MB/s */
    TUTTI_NVML_FIELD_C2C_LINKS = 170,
    TUTTI_NVML_FIELD_C2C_STATUS = 171, /* 1: active */
    TUTTI_NVML_FIELD_C2C_MAX_BW = 172, /* MB/s */
};
/* nvmlValueType_t */
enum {
    TUTTI_NVML_VALUE_DOUBLE = 0,
    TUTTI_NVML_VALUE_UINT = 1,
    TUTTI_NVML_VALUE_ULONG = 2,
    TUTTI_NVML_VALUE_ULONGLONG = 3,
    TUTTI_NVML_VALUE_LONGLONG = 4,
};

enum { TUTTI_NVML_FABRIC_COMPLETED = 3 }; /* nvmlGpuFabricState_t */

/* This struct is opaque. nvmlDevice_t is a pointer to it. */
struct tutti_nvml_gpu;

/* nvmlPciInfo_t */
struct tutti_nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device;
    unsigned ids;           /* device << 16 | vendor */
    unsigned subsystem_ids; /* likewise */
    char bus_id[32];        /* "00000000:3B:00.0" */
};

/* nvmlFieldValue_t */
struct tutti_nvml_field {
    unsigned field, scope;
    long long timestamp_us, latency_us;
    int type;
    int result; /* of this field alone */
    union {
        double real;
        int number;
        unsigned unsigned_number;
        unsigned long unsigned_long;
        unsigned long long unsigned_long_long;
        long long long_long;
        unsigned short unsigned_short;
    } value;
};

/* nvmlGpuFabricInfo_t */
struct tutti_nvml_fabric {
    unsigned char cluster[TUTTI_NVML_CLUSTER_BYTES]; /* a UUID; all zeros: none */
    int status;                                      /* of joining the fabric, once completed */
    unsigned clique;
    unsigned char state;
};

/* nvmlGpuFabricInfo_v2_t */
struct tutti_nvml_fabric_v2 {
    unsigned version; /* TUTTI_NVML_FABRIC_VERSION, set by the caller */
    unsigned char cluster[TUTTI_NVML_CLUSTER_BYTES];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};
#define TUTTI_NVML_FABRIC_VERSION ((unsigned)sizeof(struct tutti_nvml_fabric_v2) | 2u << 24)

/* The functions. Those under "optional" are NULL if the driver is too old to have them. All return
 * one of the codes above, and may be called by any thread between init and shutdown. */
struct tutti_nvml {
    void *library; /* handle of dlopen; NULL: not open */
    int (*init)(void);
    int (*shutdown)(void);
    int (*device_count)(unsigned *ret_count);
    int (*device)(unsigned index, struct tutti_nvml_gpu **ret_gpu);
    int (*pci)(struct tutti_nvml_gpu *gpu, struct tutti_nvml_pci *ret_pci);
    int (*compute_capability)(struct tutti_nvml_gpu *gpu, int *ret_major, int *ret_minor);

    /* optional */
    const char *(*error_string)(int code);
    int (*name)(struct tutti_nvml_gpu *gpu, char *ret_name, unsigned size_bytes);
    int (*uuid)(struct tutti_nvml_gpu *gpu, char *ret_uuid, unsigned size_bytes);
    int (*pcie_generation)(struct tutti_nvml_gpu *gpu, unsigned *ret_generation);
    int (*pcie_width)(struct tutti_nvml_gpu *gpu, unsigned *ret_width);
    int (*max_pcie_generation)(struct tutti_nvml_gpu *gpu, unsigned *ret_generation);
    int (*max_pcie_width)(struct tutti_nvml_gpu *gpu, unsigned *ret_width);
    int (*link_state)(struct tutti_nvml_gpu *gpu, unsigned link, int *ret_is_active);
    int (*link_version)(struct tutti_nvml_gpu *gpu, unsigned link, unsigned *ret_version);
    int (*link_capability)(struct tutti_nvml_gpu *gpu, unsigned link, int capability,
                           unsigned *ret_is_there);
    int (*link_remote_pci)(struct tutti_nvml_gpu *gpu, unsigned link,
                           struct tutti_nvml_pci *ret_pci);
    int (*link_remote_type)(struct tutti_nvml_gpu *gpu, unsigned link, int *ret_type);
    int (*fields)(struct tutti_nvml_gpu *gpu, int count, struct tutti_nvml_field *fields);
    int (*p2p_status)(struct tutti_nvml_gpu *gpu, struct tutti_nvml_gpu *peer, int capability,
                      int *ret_status);
    int (*fabric)(struct tutti_nvml_gpu *gpu, struct tutti_nvml_fabric *ret_fabric);
    int (*fabric_v2)(struct tutti_nvml_gpu *gpu, struct tutti_nvml_fabric_v2 *fabric);
    int (*mig_mode)(struct tutti_nvml_gpu *gpu, unsigned *ret_current, unsigned *ret_pending);
};

/* Call an optional function. TUTTI_NVML_FUNCTION_NOT_FOUND: the driver lacks it. */
#define tutti_nvml_call(nvml, function, ...)                      \
    ((nvml)->function == NULL ? (int)TUTTI_NVML_FUNCTION_NOT_FOUND \
                              : (nvml)->function(__VA_ARGS__))

/* Load NVML, or the library that TUTTI_NVML_LIBRARY names, and initialize it. The caller closes
 * *ret_nvml. TUTTI_ERR_SYSTEM: the library cannot be loaded or initialized. The error is recorded
 * as the thread's last message, and logged in one line. */
int tutti_nvml_open(struct tutti_nvml *ret_nvml);
/* Shut NVML down and unload it. Does nothing for a zeroed struct. */
void tutti_nvml_close(struct tutti_nvml *nvml);
/* Return the text for an error code. The result is never NULL. */
const char *tutti_nvml_error(const struct tutti_nvml *nvml, int code);

#endif
