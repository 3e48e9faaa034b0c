/* SPDX-License-Identifier: Apache-2.0
 * Loading of NVML, and its error texts. */
#include "wrap/nvml.h"

#include "base/log.h"
#include "base/param.h"
#include "base/result.h"
#include "wrap/library.h"

#include <assert.h>

#define DEFAULT_LIBRARY "libnvidia-ml.so.1"

/* The driver expects the layouts of nvml.h, so ours must be the same. */
static_assert(sizeof(struct tutti_nvml_pci) == 68, "as nvmlPciInfo_t");
static_assert(sizeof(struct tutti_nvml_field) == 40, "as nvmlFieldValue_t");
static_assert(sizeof(struct tutti_nvml_fabric) == 28, "as nvmlGpuFabricInfo_t");
static_assert(sizeof(struct tutti_nvml_fabric_v2) == 36, "as nvmlGpuFabricInfo_v2_t");

#define AT(member) offsetof(struct tutti_nvml, member)
static const struct tutti_library_function functions[] = {
    {"nvmlInit_v2", AT(init), true},
    {"nvmlShutdown", AT(shutdown), true},
    {"nvmlDeviceGetCount_v2", AT(device_count), true},
    {"nvmlDeviceGetHandleByIndex_v2", AT(device), true},
    {"nvmlDeviceGetPciInfo_v3", AT(pci), true},
    {"nvmlDeviceGetCudaComputeCapability", AT(compute_capability), true},
    {"nvmlErrorString", AT(error_string), false},
    {"nvmlDeviceGetName", AT(name), false},
    {"nvmlDeviceGetUUID", AT(uuid), false},
    {"nvmlDeviceGetCurrPcieLinkGeneration", AT(pcie_generation), false},
    {"nvmlDeviceGetCurrPcieLinkWidth", AT(pcie_width), false},
    {"nvmlDeviceGetMaxPcieLinkGeneration", AT(max_pcie_generation), false},
    {"nvmlDeviceGetMaxPcieLinkWidth", AT(max_pcie_width), false},
    {"nvmlDeviceGetNvLinkState", AT(link_state), false},
    {"nvmlDeviceGetNvLinkVersion", AT(link_version), false},
    {"nvmlDeviceGetNvLinkCapability", AT(link_capability), false},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", AT(link_remote_pci), false},
    {"nvmlDeviceGetNvLinkRemoteDeviceType", AT(link_remote_type), false},
    {"nvmlDeviceGetFieldValues", AT(fields), false},
    {"nvmlDeviceGetP2PStatus", AT(p2p_status), false},
    {"nvmlDeviceGetGpuFabricInfo", AT(fabric), false},
    {"nvmlDeviceGetGpuFabricInfoV", AT(fabric_v2), false},
    {"nvmlDeviceGetMigMode", AT(mig_mode), false},
};
#undef AT

int tutti_nvml_open(struct tutti_nvml *ret_nvml)
{
    const char *wanted = tutti_param_text(TUTTI_PARAM_NVML_LIBRARY);
    const char *file = wanted[0] != '\0' ? wanted : DEFAULT_LIBRARY;
    struct tutti_nvml nvml = {0};
    int rc, code;

    rc = tutti_library_open(file, functions, sizeof functions / sizeof functions[0], &nvml,
                            &nvml.library);
    if (rc != TUTTI_OK) {
        /* A host without GPUs is normal, but a library that the user named must load. */
        tutti_log(wanted[0] != '\0' ? TUTTI_LOG_WARN : TUTTI_LOG_INFO,
                  "no NVML, so NVIDIA GPUs are not asked for: %s", tutti_message_last());
        return rc;
    }
    code = nvml.init();
    if (code != TUTTI_NVML_SUCCESS) {
        rc = tutti_note(TUTTI_ERR_SYSTEM, "nvmlInit: %s", tutti_nvml_error(&nvml, code));
        tutti_log(code == TUTTI_NVML_DRIVER_NOT_LOADED ? TUTTI_LOG_INFO : TUTTI_LOG_WARN,
                  "%s does not start, so NVIDIA GPUs are not asked for: %s", file,
                  tutti_message_last());
        tutti_library_close(nvml.library);
        return rc;
    }
    *ret_nvml = nvml;
    return TUTTI_OK;
}

void tutti_nvml_close(struct tutti_nvml *nvml)
{
    if (nvml->library != NULL)
        nvml->shutdown();
    tutti_library_close(nvml->library);
    *nvml = (struct tutti_nvml){0};
}

const char *tutti_nvml_error(const struct tutti_nvml *nvml, int code)
{
    const char *text = nvml->error_string != NULL ? nvml->error_string(code) : NULL;

    if (text != NULL)
        return text;
    return code == TUTTI_NVML_GPU_IS_LOST           ? "the GPU is lost"
           : code == TUTTI_NVML_RESET_REQUIRED      ? "the GPU needs a reset"
           : code == TUTTI_NVML_NOT_SUPPORTED       ? "not supported"
           : code == TUTTI_NVML_NO_PERMISSION       ? "no permission"
           : code == TUTTI_NVML_DRIVER_NOT_LOADED   ? "the driver is not loaded"
           : code == TUTTI_NVML_FUNCTION_NOT_FOUND  ? "the driver lacks the function"
                                                    : "an error without a text";
}
