/* SPDX-License-Identifier: Apache-2.0
 * Compares the library's declarations of NVML's structs and numbers with the real header, if it is
 * installed. A difference does not compile. */
#include "wrap/nvml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if __has_include(<nvml.h>)
#include <nvml.h>

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours)
#define SAME_PLACE(ours, a, theirs, b) SAME(offsetof(struct ours, a), offsetof(theirs, b))

SAME(TUTTI_NVML_SUCCESS, NVML_SUCCESS);
SAME(TUTTI_NVML_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME(TUTTI_NVML_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(TUTTI_NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(TUTTI_NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME(TUTTI_NVML_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME(TUTTI_NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(TUTTI_NVML_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(TUTTI_NVML_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME(TUTTI_NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(TUTTI_NVML_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME(TUTTI_NVML_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME(TUTTI_NVML_UNKNOWN, NVML_ERROR_UNKNOWN);

SAME(TUTTI_NVML_REMOTE_GPU, NVML_NVLINK_DEVICE_TYPE_GPU);
SAME(TUTTI_NVML_REMOTE_IBM_NPU, NVML_NVLINK_DEVICE_TYPE_IBMNPU);
SAME(TUTTI_NVML_REMOTE_SWITCH, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME(TUTTI_NVML_REMOTE_UNKNOWN, NVML_NVLINK_DEVICE_TYPE_UNKNOWN);
SAME(TUTTI_NVML_LINK_CAN_P2P, NVML_NVLINK_CAP_P2P_SUPPORTED);
SAME(TUTTI_NVML_P2P_READ, NVML_P2P_CAPS_INDEX_READ);
SAME(TUTTI_NVML_P2P_WRITE, NVML_P2P_CAPS_INDEX_WRITE);
SAME(TUTTI_NVML_P2P_NVLINK, NVML_P2P_CAPS_INDEX_NVLINK);
SAME(TUTTI_NVML_P2P_OK, NVML_P2P_STATUS_OK);
SAME(TUTTI_NVML_FIELD_NVLINK_SPEED, NVML_FI_DEV_NVLINK_GET_SPEED);
SAME(TUTTI_NVML_FIELD_C2C_LINKS, NVML_FI_DEV_C2C_LINK_COUNT);
SAME(TUTTI_NVML_FIELD_C2C_STATUS, NVML_FI_DEV_C2C_LINK_GET_STATUS);
SAME(TUTTI_NVML_FIELD_C2C_MAX_BW, NVML_FI_DEV_C2C_LINK_GET_MAX_BW);
SAME(TUTTI_NVML_VALUE_DOUBLE, NVML_VALUE_TYPE_DOUBLE);
SAME(TUTTI_NVML_VALUE_UINT, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME(TUTTI_NVML_VALUE_ULONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME(TUTTI_NVML_VALUE_ULONGLONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME(TUTTI_NVML_VALUE_LONGLONG, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
#ifdef NVML_GPU_FABRIC_STATE_COMPLETED
SAME(TUTTI_NVML_FABRIC_COMPLETED, NVML_GPU_FABRIC_STATE_COMPLETED);
SAME(TUTTI_NVML_CLUSTER_BYTES, NVML_GPU_FABRIC_UUID_LEN);
#endif
_Static_assert(TUTTI_NVML_TEXT_BYTES >= NVML_DEVICE_NAME_V2_BUFFER_SIZE, "a name fits");
_Static_assert(TUTTI_NVML_TEXT_BYTES >= NVML_DEVICE_UUID_V2_BUFFER_SIZE, "a UUID fits");
_Static_assert(TUTTI_NVML_LINKS >= NVML_NVLINK_MAX_LINKS, "all links are asked for");

SAME(sizeof(struct tutti_nvml_pci), sizeof(nvmlPciInfo_t));
SAME_PLACE(tutti_nvml_pci, domain, nvmlPciInfo_t, domain);
SAME_PLACE(tutti_nvml_pci, bus, nvmlPciInfo_t, bus);
SAME_PLACE(tutti_nvml_pci, device, nvmlPciInfo_t, device);
SAME_PLACE(tutti_nvml_pci, ids, nvmlPciInfo_t, pciDeviceId);
SAME_PLACE(tutti_nvml_pci, subsystem_ids, nvmlPciInfo_t, pciSubSystemId);
SAME_PLACE(tutti_nvml_pci, bus_id, nvmlPciInfo_t, busId);
SAME(sizeof(struct tutti_nvml_field), sizeof(nvmlFieldValue_t));
SAME_PLACE(tutti_nvml_field, field, nvmlFieldValue_t, fieldId);
SAME_PLACE(tutti_nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME_PLACE(tutti_nvml_field, type, nvmlFieldValue_t, valueType);
SAME_PLACE(tutti_nvml_field, result, nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(tutti_nvml_field, value, nvmlFieldValue_t, value);
#ifdef nvmlGpuFabricInfo_v2
SAME(sizeof(struct tutti_nvml_fabric), sizeof(nvmlGpuFabricInfo_t));
SAME_PLACE(tutti_nvml_fabric, status, nvmlGpuFabricInfo_t, status);
SAME_PLACE(tutti_nvml_fabric, clique, nvmlGpuFabricInfo_t, cliqueId);
SAME_PLACE(tutti_nvml_fabric, state, nvmlGpuFabricInfo_t, state);
SAME(TUTTI_NVML_FABRIC_VERSION, nvmlGpuFabricInfo_v2);
SAME(sizeof(struct tutti_nvml_fabric_v2), sizeof(nvmlGpuFabricInfo_v2_t));
SAME_PLACE(tutti_nvml_fabric_v2, cluster, nvmlGpuFabricInfo_v2_t, clusterUuid);
SAME_PLACE(tutti_nvml_fabric_v2, status, nvmlGpuFabricInfo_v2_t, status);
SAME_PLACE(tutti_nvml_fabric_v2, clique, nvmlGpuFabricInfo_v2_t, cliqueId);
SAME_PLACE(tutti_nvml_fabric_v2, state, nvmlGpuFabricInfo_v2_t, state);
SAME_PLACE(tutti_nvml_fabric_v2, health, nvmlGpuFabricInfo_v2_t, healthMask);
#endif
#define HAS_HEADER 1
#else
#define HAS_HEADER 0
#endif

static void declarations_are_those_of_the_real_header(void **state)
{
    (void)state;
    if (!HAS_HEADER) {
        print_message("SKIPPED: no nvml.h (of a CUDA toolkit) to compare with\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declarations_are_those_of_the_real_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
