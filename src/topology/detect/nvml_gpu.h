/* SPDX-License-Identifier: Apache-2.0
 * Reads the facts that NVML reports about one GPU. All facts are read before any of them enters an
 * inventory, so a GPU that is lost halfway leaves nothing behind. */
#ifndef TUTTI_TOPOLOGY_DETECT_NVML_GPU_H
#define TUTTI_TOPOLOGY_DETECT_NVML_GPU_H

#include "topology/inventory/inventory.h"
#include "wrap/nvml.h"

#include <stdbool.h>
#include <stdint.h>

/* All NVLinks from a GPU to the same other end. */
struct tutti_detect_nvml_target {
    int64_t busid;   /* of the other end; TUTTI_BUSID_HIDDEN: a VM hides it */
    int remote_type; /* TUTTI_NVML_REMOTE_... */
    uint32_t links;  /* number of active links */
};

/* What NVML reports about one GPU. */
struct tutti_detect_nvml_facts {
    unsigned index; /* the driver's number of the GPU */
    int64_t busid;
    unsigned ids, subsystem_ids; /* as in struct tutti_nvml_pci; 0: not known */
    int sm;                      /* 90 for 9.0 */
    char name[TUTTI_NVML_TEXT_BYTES], uuid[TUTTI_NVML_TEXT_BYTES]; /* "": not known */
    double pcie_gts;     /* the highest speed; 0: not known */
    unsigned pcie_width; /* current number of lanes; 0: not known */
    struct tutti_detect_nvml_target targets[TUTTI_NVML_LINKS]; /* ordered by their first link */
    uint32_t ntargets;
    unsigned link_version, link_mbytes_per_s; /* of the first active NVLink; 0: not known */
    uint32_t c2c_links;        /* active coherent links to the CPU */
    uint32_t c2c_mbytes_per_s; /* rate of one of these; 0: not known */
    uint64_t fabric; /* equal for the GPUs that reach each other over NVLink; 0: none */
    bool is_split;   /* split into MIG instances */
    bool refuses_peers; /* no other GPU may read its memory */
};

enum tutti_detect_nvml_reading {
    TUTTI_DETECT_NVML_READ,     /* the facts are complete */
    TUTTI_DETECT_NVML_UNUSABLE, /* the reason was logged; of the facts only `busid` counts, which is
                                 * -1 if it is not known */
};

/* Reads the GPU with NVML's index `index` into *ret_facts; values that are not available stay
 * unknown. TUTTI_DETECT_NVML_UNUSABLE: the GPU cannot be accessed, is lost, or needs a reset. */
enum tutti_detect_nvml_reading tutti_detect_nvml_gpu(const struct tutti_nvml *nvml, unsigned index,
                                                     struct tutti_detect_nvml_facts *ret_facts);

#endif
