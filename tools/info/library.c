/* SPDX-License-Identifier: Apache-2.0
 * Collects facts about this build, its libraries, and the devices that they find. */
#include "info/facts.h"

#include "base/build_info.h"
#include "base/result.h"
#include "device/cuda/cuda_image.h"
#include "wrap/cuda.h"
#include "wrap/hwloc.h"
#include "wrap/ibv.h"
#include "wrap/nvml.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>

void facts_add(json_t *section, const char *name, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_object_set_new(section, name, json_string(text));
}

static const char *or_none(const char *text)
{
    return *text != '\0' ? text : "none";
}

json_t *facts_of_build(void)
{
    json_t *build = json_object();

    facts_add(build, "revision", "%s", *tutti_version_info.revision != '\0'
                                           ? tutti_version_info.revision : "unknown");
    facts_add(build, "compiler", "%s", tutti_version_info.compiler);
    facts_add(build, "type", "%s", or_none(tutti_version_info.type));
    facts_add(build, "flags", "%s", or_none(tutti_version_info.flags));
    facts_add(build, "sanitizers", "%s", or_none(tutti_version_info.sanitizers));
    facts_add(build, "built for", "%s", tutti_version_info.system);
    facts_add(build, "GPU kernels for", "%s", or_none(tutti_kernel_image_architectures));
    return build;
}

json_t *facts_of_libraries(void)
{
    json_t *libraries = json_object();
    const struct tutti_libhwloc *libhwloc = tutti_libhwloc_get();
    unsigned hwloc = libhwloc != NULL ? libhwloc->get_api_version() : 0;

    facts_add(libraries, "libsodium", "%s", sodium_version_string());
    if (libhwloc != NULL)
        facts_add(libraries, "hwloc", "%u.%u.%u", hwloc >> 16, hwloc >> 8 & 0xff, hwloc & 0xff);
    else
        facts_add(libraries, "hwloc", "no: %s", tutti_message_last());
    facts_add(libraries, "jansson", "%s", JANSSON_VERSION);
    return libraries;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static void add_cuda(json_t *gpus)
{
    const struct tutti_cu_driver *cuda = tutti_cu_get(true);
    int version = 0, count = 0;

    if (cuda == NULL) {
        facts_add(gpus, "CUDA driver", "no: %s", tutti_message_last());
        return;
    }
    if (cuda->driver_version == NULL || cuda->driver_version(&version) != TUTTI_CU_SUCCESS)
        version = 0;
    cuda->device_count(&count);
    facts_add(gpus, "CUDA driver", "CUDA %d.%d, %d GPUs", version / 1000, version % 1000 / 10,
              count);
    for (int i = 0; i < count; i++) {
        char name[128] = "unknown", label[32];
        tutti_cu_device device;
        int major = 0, minor = 0;

        if (cuda->device(&device, i) != TUTTI_CU_SUCCESS)
            continue;
        cuda->device_name(name, sizeof name, device);
        cuda->device_attribute(&major, TUTTI_CU_CAPABILITY_MAJOR, device);
        cuda->device_attribute(&minor, TUTTI_CU_CAPABILITY_MINOR, device);
        snprintf(label, sizeof label, "GPU %d", i);
        facts_add(gpus, label, "%s, compute capability %d.%d", name, major, minor);
    }
}

static void add_nvml(json_t *gpus)
{
    struct tutti_nvml nvml;
    unsigned count = 0;

    if (tutti_nvml_open(&nvml) != TUTTI_OK) {
        facts_add(gpus, "NVML", "no: %s", tutti_message_last());
        return;
    }
    nvml.device_count(&count);
    facts_add(gpus, "NVML", "yes, %u GPUs", count);
    tutti_nvml_close(&nvml);
}

json_t *facts_of_gpus(void)
{
    json_t *gpus = json_object();

    add_cuda(gpus);
    add_nvml(gpus);
    return gpus;
}

/* ---- RDMA ------------------------------------------------------------------------------------ */

/* Adds one fact for each port of a device, or one for the device if it cannot be opened. */
static void add_ports(json_t *rdma, const struct tutti_ibv *ibv, struct ibv_device *device)
{
    const char *name = ibv->get_device_name(device);
    struct ibv_context *context = ibv->open_device(device);
    struct tutti_ibv_device facts = {.nports = 0};
    char label[128];

    if (context == NULL || tutti_ibv_query_device(ibv, context, &facts) != TUTTI_OK)
        facts_add(rdma, name, "cannot be opened");
    for (uint32_t i = 1; i <= facts.nports; i++) {
        struct tutti_ibv_port port;

        snprintf(label, sizeof label, "%s, port %u", name, i);
        if (tutti_ibv_query_port(ibv, context, i, &port) != TUTTI_OK)
            facts_add(rdma, label, "%s", tutti_message_last());
        else
            facts_add(rdma, label, "%s, %u Mbit/s", port.state, port.rate_mbits_per_s);
    }
    if (context != NULL)
        ibv->close_device(context);
}

json_t *facts_of_rdma(void)
{
    json_t *rdma = json_object();
    struct ibv_device **devices;
    struct tutti_ibv ibv;
    int count = 0;

    if (tutti_ibv_open(&ibv) != TUTTI_OK) {
        facts_add(rdma, "libibverbs", "no: %s", tutti_message_last());
        return rdma;
    }
    devices = ibv.get_device_list(&count);
    facts_add(rdma, "libibverbs", "yes, %d devices", devices != NULL ? count : 0);
    for (int i = 0; devices != NULL && i < count; i++)
        add_ports(rdma, &ibv, devices[i]);
    if (devices != NULL)
        ibv.free_device_list(devices);
    tutti_ibv_close(&ibv);
    return rdma;
}
