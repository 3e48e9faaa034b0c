/* SPDX-License-Identifier: Apache-2.0
 * Reads the facts that NVML reports about one GPU. All facts are read before any of them enters an
 * inventory, so a GPU that is lost halfway leaves nothing behind. */
#ifndef TUTTI_TOPOLOGY_DETECT_NVML_GPU_H
#define TUTTI_TOPOLOGY_DETECT_NVML_GPU_H

#include "wrap/nvml.h"

#include <stdbool.h>
#include <stdint.h>

/* The bus id of a link's other end if a VM hides it: fffffff:ff:ff.0, as in NCCL's files. */
#define TUTTI_NVML_HIDDEN_BUSID ((int64_t)0xfffffff << 20 | 0xff << 12 | 0xff << 4)

/* All NVLinks from a GPU to the same other end. */
struct tutti_detect_nvml_target {
    int64_t busid;
    int remote_type; /* TUTTI_NVML_REMOTE_... */
    uint32_t links;
};

struct tutti_detect_nvml_facts {
    unsigned index; /* the driver's number of the GPU */
    int64_t busid;
    unsigned ids, subsystem_ids; /* as in struct tutti_nvml_pci; 0: not known */
    int sm;                      /* 90 for 9.0 */
    char name[TUTTI_NVML_TEXT_BYTES], uuid[TUTTI_NVML_TEXT_BYTES]; /* "": not known */
    double pcie_gts;     /* 0: not known */
    unsigned pcie_width; /* likewise */
    struct tutti_detect_nvml_target targets[TUTTI_NVML_LINKS]; /* ordered by their first link */
    uint32_t ntargets;
    unsigned link_version, link_mbytes_per_s; /* of the first active link; 0: not known */
    uint32_t c2c_links, c2c_mbytes_per_s; /* active links to the CPU; rate of one, 0: not known */
    uint64_t fabric; /* equal for GPUs of the same clique only; 0: none */
    bool is_split;   /* split into MIG instances */
    bool refuses_peers; /* no other GPU may read its memory */
};

enum tutti_detect_nvml_reading {
    TUTTI_DETECT_NVML_READ,
    TUTTI_DETECT_NVML_UNUSABLE, /* logged with the GPU's name; `busid` is set, or -1 */
};

/* Reads GPU number `index` into *ret_facts; values that are not available stay unknown.
 * TUTTI_DETECT_NVML_UNUSABLE: the GPU cannot be accessed, is lost, or needs a reset. */
enum tutti_detect_nvml_reading tutti_detect_nvml_gpu(const struct tutti_nvml *nvml, unsigned index,
                                                     struct tutti_detect_nvml_facts *ret_facts);

#endif
