/* SPDX-License-Identifier: Apache-2.0
 * Builds the smallest set of devices that explains a matrix. */
#include "topology/formats/matrix_parts.h"

#include "base/result.h"
#include "topology/inventory/cpu_mask.h"
#include "topology/inventory/pci_ids.h"

#include <stdlib.h>
#include <string.h>

/* No GPU has more NVLinks than this. If the sum over all peers is larger, the links must lead to a
 * switch. */
enum { NVLINKS_MOST = 18, NVLINKS_AMPERE = 12 /* the most before Hopper */ };

/* The levels of groups: devices that are at most PIX, PXB or NODE apart. */
enum { LEVEL_PIX, LEVEL_PXB, LEVEL_NODE, LEVELS };

struct build {
    const struct tutti_matrix *matrix;
    struct tutti_inventory *inventory;
    enum tutti_source source;
    uint32_t group[LEVELS][TUTTI_MATRIX_DEVICES]; /* per device: first device of its group */
    uint32_t gpu_of[TUTTI_MATRIX_DEVICES]; /* per device of the matrix that is a GPU: its gpu */
    uint32_t last_bus; /* the bus of the pci that was added last; 0: none */
};

/* ---- groups ---------------------------------------------------------------------------------- */

/* Makes one group of the groups of devices a and b. A group's number is its first device. */
static void unite(uint32_t *group, uint32_t count, uint32_t a, uint32_t b)
{
    uint32_t from = group[a] > group[b] ? group[a] : group[b];
    uint32_t into = group[a] > group[b] ? group[b] : group[a];

    for (uint32_t i = 0; i < count; i++)
        if (group[i] == from)
            group[i] = into;
}

/* Returns true if the matrix gives both devices the same CPUs. */
static bool shares_cpus(const struct tutti_matrix *matrix, uint32_t a, uint32_t b)
{
    return matrix->devices[a].affinity[0] != '\0' &&
           strcmp(matrix->devices[a].affinity, matrix->devices[b].affinity) == 0;
}

/* Groups the devices that are at most PIX, PXB or NODE apart, directly or through a third device.
 * GPUs whose distance is given only as NVLinks share a NUMA node if their CPUs are the same. */
static void find_groups(struct build *build)
{
    const struct tutti_matrix *matrix = build->matrix;

    for (int level = 0; level < LEVELS; level++) {
        uint32_t *group = build->group[level];

        for (uint32_t i = 0; i < matrix->count; i++)
            group[i] = i;
        for (uint32_t i = 0; i < matrix->count; i++)
            for (uint32_t j = 0; j < matrix->count; j++) {
                enum tutti_matrix_distance distance = matrix->cells[i][j].distance;

                if ((distance > TUTTI_MATRIX_SELF &&
                     distance <= (enum tutti_matrix_distance)(TUTTI_MATRIX_PIX + level)) ||
                    (level == LEVEL_NODE && shares_cpus(matrix, i, j)))
                    unite(group, matrix->count, i, j);
            }
    }
}

/* Returns true if the group of a level holds devices that are not all in one group of the level
 * below. */
static bool has_several(const struct build *build, int level, uint32_t device)
{
    for (uint32_t i = 0; i < build->matrix->count; i++)
        if (build->group[level][i] == build->group[level][device] &&
            (level == LEVEL_PIX ? i != device
                                : build->group[level - 1][i] != build->group[level - 1][device]))
            return true;
    return false;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Adds a pci with an invented bus id. */
static int add_pci(struct build *build, uint32_t parent, int64_t class, enum tutti_source source,
                   uint32_t *ret_pci)
{
    TUTTI_TRY(tutti_inventory_add(build->inventory, parent, TUTTI_DEVICE_PCI, source, ret_pci));
    TUTTI_TRY(tutti_device_set_number(build->inventory, *ret_pci, TUTTI_PROPERTY_BUSID,
                                      TUTTI_SOURCE_ASSUMED, (int64_t)++build->last_bus << 12));
    return tutti_device_set_number(build->inventory, *ret_pci, TUTTI_PROPERTY_CLASS,
                                   TUTTI_SOURCE_ASSUMED, class);
}

static int add_nvlink(struct build *build, uint32_t gpu, int64_t target, uint32_t count,
                      int64_t class)
{
    uint32_t link;

    TUTTI_TRY(tutti_inventory_add(build->inventory, gpu, TUTTI_DEVICE_NVLINK, build->source,
                                  &link));
    TUTTI_TRY(tutti_device_set_number(build->inventory, link, TUTTI_PROPERTY_TARGET,
                                      TUTTI_SOURCE_ASSUMED, target));
    TUTTI_TRY(tutti_device_set_number(build->inventory, link, TUTTI_PROPERTY_LINKS, build->source,
                                      count));
    return tutti_device_set_number(build->inventory, link, TUTTI_PROPERTY_TCLASS,
                                   TUTTI_SOURCE_ASSUMED, class);
}

/* Returns the number of a device among those of its kind, as the matrix counts them. */
static uint32_t number_of(const struct tutti_matrix *matrix, uint32_t device)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < device; i++)
        number += matrix->devices[i].is_gpu == matrix->devices[device].is_gpu;
    return number;
}

static int add_gpu(struct build *build, uint32_t pci, uint32_t device)
{
    uint32_t number = number_of(build->matrix, device), gpu;

    TUTTI_TRY(tutti_inventory_add(build->inventory, pci, TUTTI_DEVICE_GPU, build->source, &gpu));
    build->gpu_of[device] = gpu;
    TUTTI_TRY(tutti_device_set_number(build->inventory, gpu, TUTTI_PROPERTY_DEV, build->source,
                                      number));
    if (build->matrix->devices[device].model[0] != '\0')
        TUTTI_TRY(tutti_device_set_text(build->inventory, gpu, TUTTI_PROPERTY_MODEL_NAME,
                                        build->source, build->matrix->devices[device].model));
    return tutti_device_set_number(build->inventory, gpu, TUTTI_PROPERTY_RANK,
                                   TUTTI_SOURCE_ASSUMED, number);
}

static int add_net(struct build *build, uint32_t pci, uint32_t device)
{
    const char *name = build->matrix->devices[device].name;
    bool is_infiniband = strncmp(name, "ib", 2) == 0 || strncmp(name, "mlx", 3) == 0;
    uint32_t nic, net;

    TUTTI_TRY(tutti_inventory_add(build->inventory, pci, TUTTI_DEVICE_NIC, build->source, &nic));
    TUTTI_TRY(tutti_inventory_add(build->inventory, nic, TUTTI_DEVICE_NET, build->source, &net));
    TUTTI_TRY(tutti_device_set_text(build->inventory, net, TUTTI_PROPERTY_NET_NAME, build->source,
                                    name));
    if (is_infiniband)
        TUTTI_TRY(tutti_device_set_text(build->inventory, net, TUTTI_PROPERTY_LAYER,
                                        TUTTI_SOURCE_ASSUMED, "infiniband"));
    return tutti_device_set_number(build->inventory, net, TUTTI_PROPERTY_DEV, build->source,
                                   number_of(build->matrix, device));
}

static int add_device(struct build *build, uint32_t parent, uint32_t device)
{
    bool is_gpu = build->matrix->devices[device].is_gpu;
    uint32_t pci;

    TUTTI_TRY(add_pci(build, parent, is_gpu ? TUTTI_PCI_CLASS_GPU : TUTTI_PCI_CLASS_ETHERNET,
                      build->source, &pci));
    return is_gpu ? add_gpu(build, pci, device) : add_net(build, pci, device);
}

/* Adds the devices of the group that begins with device `first`, below a switch of this level if
 * the group needs one. Level -1 stands for the device itself. */
static int add_group(struct build *build, uint32_t parent, int level, uint32_t first)
{
    if (level < 0)
        return add_device(build, parent, first);
    /* Between devices that are PXB apart there are at least two switches, so each side gets its
     * own. */
    if (has_several(build, level, first) ||
        (level == LEVEL_PIX && has_several(build, LEVEL_PXB, first)))
        TUTTI_TRY(add_pci(build, parent, TUTTI_PCI_CLASS_BRIDGE, TUTTI_SOURCE_ASSUMED, &parent));
    for (uint32_t i = first; i < build->matrix->count; i++)
        if (build->group[level][i] == first &&
            (level == LEVEL_PIX || build->group[level - 1][i] == i))
            TUTTI_TRY(add_group(build, parent, level - 1, i));
    return TUTTI_OK;
}

/* Adds the cpu of a NODE group with all its devices. */
static int add_cpu(struct build *build, uint32_t first, uint32_t number)
{
    struct tutti_cpumask cpus;
    uint32_t cpu;

    TUTTI_TRY(tutti_inventory_add(build->inventory, 0, TUTTI_DEVICE_CPU, TUTTI_SOURCE_ASSUMED,
                                  &cpu));
    TUTTI_TRY(tutti_device_set_number(build->inventory, cpu, TUTTI_PROPERTY_NUMA,
                                      TUTTI_SOURCE_ASSUMED, number));
    for (uint32_t i = first; i < build->matrix->count; i++) {
        char mask[TUTTI_CPUMASK_BYTES];

        if (build->group[LEVEL_NODE][i] != first || build->matrix->devices[i].affinity[0] == '\0' ||
            !tutti_cpumask_parse_list(build->matrix->devices[i].affinity, &cpus))
            continue;
        tutti_cpumask_write(&cpus, mask);
        TUTTI_TRY(tutti_device_set_text(build->inventory, cpu, TUTTI_PROPERTY_AFFINITY,
                                        build->source, mask));
        break;
    }
    for (uint32_t i = first; i < build->matrix->count; i++)
        if (build->group[LEVEL_NODE][i] == first && build->group[LEVEL_PXB][i] == i)
            TUTTI_TRY(add_group(build, cpu, LEVEL_PXB, i));
    return TUTTI_OK;
}

/* ---- NVLinks --------------------------------------------------------------------------------- */

/* Returns true if the GPU's links lead to a switch. *ret_nlinks is then the number of these links,
 * which the matrix repeats for every peer. */
static bool has_nvswitch(const struct tutti_matrix *matrix, uint32_t gpu, uint32_t *ret_nlinks)
{
    uint32_t sum = 0, least = UINT32_MAX;

    for (uint32_t i = 0; i < matrix->count; i++) {
        uint32_t nlinks = matrix->cells[gpu][i].nlinks;

        sum += nlinks;
        if (nlinks > 0 && nlinks < least)
            least = nlinks;
    }
    *ret_nlinks = least;
    return sum > NVLINKS_MOST;
}

static int64_t busid_of(const struct build *build, uint32_t gpu)
{
    return tutti_device_number(build->inventory, build->inventory->devices[gpu].parent,
                               TUTTI_PROPERTY_BUSID, 0);
}

/* The number of links to a switch suggests the generation: H100 has 18, A100 has 12, V100 has 6.
 * Later GPUs with equal numbers are taken for these. More than 12 to one GPU are Hopper's too. GPUs
 * of one machine are usually alike, so the guess holds for all of them. */
static int guess_generation(struct build *build)
{
    const struct tutti_matrix *matrix = build->matrix;
    uint32_t nlinks, most = 0;
    int64_t sm;

    for (uint32_t i = 0; i < matrix->count; i++)
        if (matrix->devices[i].is_gpu &&
            (has_nvswitch(matrix, i, &nlinks) || nlinks > NVLINKS_AMPERE) && nlinks != UINT32_MAX &&
            nlinks > most)
            most = nlinks;
    sm = most == 18 ? 90 : most == 12 ? 80 : most == 6 ? 70 : 0;
    for (uint32_t i = 0; i < matrix->count && sm != 0; i++)
        if (matrix->devices[i].is_gpu)
            TUTTI_TRY(tutti_device_set_number(build->inventory, build->gpu_of[i],
                                              TUTTI_PROPERTY_SM, TUTTI_SOURCE_ASSUMED, sm));
    return TUTTI_OK;
}

static int add_links(struct build *build, uint32_t device)
{
    const struct tutti_matrix *matrix = build->matrix;
    uint32_t gpu = build->gpu_of[device], nlinks;

    if (has_nvswitch(matrix, device, &nlinks))
        return add_nvlink(build, gpu, TUTTI_BUSID_HIDDEN, nlinks, TUTTI_PCI_CLASS_NVSWITCH);
    for (uint32_t peer = 0; peer < matrix->count; peer++)
        if (matrix->cells[device][peer].nlinks > 0 && matrix->devices[peer].is_gpu)
            TUTTI_TRY(add_nvlink(build, gpu, busid_of(build, build->gpu_of[peer]),
                                 matrix->cells[device][peer].nlinks, TUTTI_PCI_CLASS_GPU));
    return TUTTI_OK;
}

static int build_all(struct build *build)
{
    const struct tutti_matrix *matrix = build->matrix;
    uint32_t ncpus = 0;

    find_groups(build);
    for (uint32_t i = 0; i < matrix->count; i++)
        if (build->group[LEVEL_NODE][i] == i)
            TUTTI_TRY(add_cpu(build, i, ncpus++));
    for (uint32_t i = 0; i < matrix->count; i++)
        if (matrix->devices[i].is_gpu)
            TUTTI_TRY(add_links(build, i));
    return guess_generation(build);
}

int tutti_matrix_build(const struct tutti_matrix *matrix, enum tutti_source source,
                       struct tutti_inventory **ret_inventory)
{
    struct build build = {.matrix = matrix, .source = source};
    int rc;

    TUTTI_TRY(tutti_inventory_create(&build.inventory));
    rc = build_all(&build);
    if (rc != TUTTI_OK) {
        tutti_inventory_destroy(build.inventory);
        return rc;
    }
    *ret_inventory = build.inventory;
    return TUTTI_OK;
}
