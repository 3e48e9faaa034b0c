/* SPDX-License-Identifier: Apache-2.0
 * The functions of the simulated NVML. */
#ifndef TUTTI_TESTS_SIMCUDA_NVML_H
#define TUTTI_TESTS_SIMCUDA_NVML_H

#include "wrap/nvml.h"

#pragma GCC visibility push(default)
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *ret_count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct tutti_nvml_gpu **ret_gpu);
int nvmlDeviceGetPciInfo_v3(struct tutti_nvml_gpu *handle, struct tutti_nvml_pci *ret_pci);
int nvmlDeviceGetCudaComputeCapability(struct tutti_nvml_gpu *handle, int *ret_major,
                                       int *ret_minor);
const char *nvmlErrorString(int code);
int nvmlDeviceGetName(struct tutti_nvml_gpu *handle, char *ret_name, unsigned size_bytes);
int nvmlDeviceGetUUID(struct tutti_nvml_gpu *handle, char *ret_uuid, unsigned size_bytes);
int nvmlDeviceGetMaxPcieLinkGeneration(struct tutti_nvml_gpu *handle, unsigned *ret_generation);
int nvmlDeviceGetCurrPcieLinkGeneration(struct tutti_nvml_gpu *handle, unsigned *ret_generation);
int nvmlDeviceGetMaxPcieLinkWidth(struct tutti_nvml_gpu *handle, unsigned *ret_width);
int nvmlDeviceGetCurrPcieLinkWidth(struct tutti_nvml_gpu *handle, unsigned *ret_width);
int nvmlDeviceGetNvLinkState(struct tutti_nvml_gpu *handle, unsigned link, int *ret_is_active);
int nvmlDeviceGetNvLinkCapability(struct tutti_nvml_gpu *handle, unsigned link, int capability,
                                  unsigned *ret_is_there);
int nvmlDeviceGetNvLinkVersion(struct tutti_nvml_gpu *handle, unsigned link, unsigned *ret_version);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct tutti_nvml_gpu *handle, unsigned link,
                                        struct tutti_nvml_pci *ret_pci);
int nvmlDeviceGetNvLinkRemoteDeviceType(struct tutti_nvml_gpu *handle, unsigned link,
                                        int *ret_type);
int nvmlDeviceGetFieldValues(struct tutti_nvml_gpu *handle, int count,
                             struct tutti_nvml_field *fields);
int nvmlDeviceGetP2PStatus(struct tutti_nvml_gpu *handle, struct tutti_nvml_gpu *peer,
                           int capability, int *ret_status);
int nvmlDeviceGetGpuFabricInfo(struct tutti_nvml_gpu *handle, struct tutti_nvml_fabric *ret_fabric);
int nvmlDeviceGetGpuFabricInfoV(struct tutti_nvml_gpu *handle, struct tutti_nvml_fabric_v2 *fabric);
int nvmlDeviceGetMigMode(struct tutti_nvml_gpu *handle, unsigned *ret_current,
                         unsigned *ret_pending);
#pragma GCC visibility pop

#endif
