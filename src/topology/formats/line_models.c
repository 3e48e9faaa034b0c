/* SPDX-License-Identifier: Apache-2.0
 * Lists the models that a line may name, and computes the default values of a line. The properties
 * come from the makers' data sheets, and the ids from the PCI id list. */
#include "topology/formats/line_parts.h"

#include "topology/inventory/pci_ids.h"

#include <stdlib.h>
#include <string.h>

#define INTEL "x86_64", "GenuineIntel"
#define AMD "x86_64", "AuthenticAMD"

/* AMD's families and models include the extended family the way NCCL's files do. */
const struct tutti_line_cpu_model tutti_line_cpu_models[] = {
    {"intel", NULL, INTEL, 6, 143, 32},
    {"amd", NULL, AMD, 175, 1, 32},
    {"arm", NULL, "arm64", NULL, 0, 0, 64},
    {"power", NULL, "ppc64", NULL, 0, 0, 20},
    {"broadwell", "Broadwell", INTEL, 6, 79, 20},
    {"skylake", "Skylake", INTEL, 6, 85, 24},
    {"icelake", "Ice Lake", INTEL, 6, 106, 40},
    {"sapphire", "Sapphire Rapids", INTEL, 6, 143, 56},
    {"emerald", "Emerald Rapids", INTEL, 6, 207, 56},
    {"granite", "Granite Rapids", INTEL, 6, 173, 64},
    {"naples", "Naples", AMD, 143, 1, 32},
    {"rome", "Rome", AMD, 143, 49, 64},
    {"milan", "Milan", AMD, 175, 1, 64},
    {"genoa", "Genoa", AMD, 175, 17, 96},
    {"turin", "Turin", AMD, 191, 2, 64},
    {"grace", "Grace", "arm64", NULL, 0, 0, 72},
    {"neoverse", "Neoverse", "arm64", NULL, 0, 0, 64},
    {"power8", "POWER8", "ppc64", NULL, 0, 0, 10},
    {"power9", "POWER9", "ppc64", NULL, 0, 0, 22},
    {NULL, NULL, NULL, NULL, 0, 0, 0},
};

/* PCI classes of GPUs: two of NVIDIA's, then two of AMD's. */
#define SCREEN TUTTI_PCI_CLASS_SCREEN
#define COMPUTE TUTTI_PCI_CLASS_GPU
#define DISPLAY 0x038000
#define ACCELERATOR 0x120000

const struct tutti_line_gpu_model tutti_line_gpu_models[] = {
    {"h100", "H100", 0x2330, COMPUTE, 90, NULL, 5, 18, true},
    {"p100", "P100", 0x15f9, COMPUTE, 60, NULL, 3, 0, true},
    {"v100", "V100", 0x1db1, COMPUTE, 70, NULL, 3, 6, true},
    {"t4", "T4", 0x1eb8, COMPUTE, 75, NULL, 3, 0, true},
    {"a100", "A100", 0x20b0, COMPUTE, 80, NULL, 4, 12, true},
    {"a800", "A800", 0x20f3, COMPUTE, 80, NULL, 4, 8, true},
    {"a10g", "A10G", 0x2237, COMPUTE, 86, NULL, 4, 0, true},
    {"a6000", "RTX A6000", 0x2230, SCREEN, 86, NULL, 4, 0, true},
    {"l4", "L4", 0x27b8, COMPUTE, 89, NULL, 4, 0, true},
    {"l40s", "L40S", 0x26b9, COMPUTE, 89, NULL, 4, 0, true},
    {"rtx4090", "RTX 4090", 0x2684, SCREEN, 89, NULL, 4, 0, false},
    {"h800", "H800", 0x2324, COMPUTE, 90, NULL, 5, 8, true},
    {"h200", "H200", 0x2335, COMPUTE, 90, NULL, 5, 18, true},
    {"gh200", "GH200", 0x2342, COMPUTE, 90, NULL, 5, 18, true},
    {"h20", "H20", 0x2329, COMPUTE, 90, NULL, 5, 18, true},
    {"b200", "B200", 0x2901, COMPUTE, 100, NULL, 5, 18, true},
    {"gb200", "GB200", 0x2941, COMPUTE, 100, NULL, 5, 18, true},
    {"b300", "B300", 0x3182, COMPUTE, 103, NULL, 6, 18, true},
    {"gb300", "GB300", 0x31c2, COMPUTE, 103, NULL, 6, 18, true},
    {"mi50", "MI50", 0x66a1, DISPLAY, 64, "906", 4, 0, true},
    {"mi100", "MI100", 0x738c, DISPLAY, 120, "908", 4, 0, true},
    {"mi250x", "MI250X", 0x7408, DISPLAY, 104, "910", 4, 0, true},
    {"mi300x", "MI300X", 0x74a1, ACCELERATOR, 304, "gfx942", 5, 0, true},
    {"mi350x", "MI350X", 0x75a0, ACCELERATOR, 256, "gfx950", 5, 0, true},
    {NULL, NULL, 0, 0, 0, NULL, 0, 0, false},
};
const struct tutti_line_gpu_model tutti_line_other_nvidia = {
    NULL, NULL, 0, COMPUTE, 0, NULL, 5, 0, true,
};
const struct tutti_line_gpu_model tutti_line_other_amd = {
    NULL, NULL, 0, ACCELERATOR, 0, "", 5, 0, true,
};

#define INFINIBAND TUTTI_PCI_CLASS_INFINIBAND
#define ETHERNET TUTTI_PCI_CLASS_ETHERNET

const struct tutti_line_nic_kind tutti_line_nic_kinds[] = {
    {"ib", INFINIBAND, 0x15b3, 0, "mlx5_", "infiniband", true},
    {"roce", ETHERNET, 0x15b3, 0, "mlx5_", "ethernet", true},
    {"ethernet", ETHERNET, 0x8086, 0x1592, "eth", "ethernet", false},
    {"slingshot", ETHERNET, 0x17db, 0x0501, "cxi", "ethernet", true},
    {"efa", ETHERNET, 0x1d0f, 0xefa2, "efa_", "efa", true},
    {NULL, 0, 0, 0, NULL, NULL, false},
};

/* ConnectX-5 to 8: the highest speed of each, and the generation of its PCI link. */
static const struct {
    int64_t mbits, device;
    uint32_t generation;
} cards[] = {
    {100000, 0x1017, 3}, {200000, 0x101b, 4}, {400000, 0x1021, 5}, {INT64_MAX, 0x1023, 6},
};

/* ---- defaults -------------------------------------------------------------------------------- */

/* Replaces what the line does not give by the generation and 16 lanes. */
static struct tutti_line_pci fill_defaults(struct tutti_line_pci pci, uint32_t generation)
{
    if (pci.generation == 0)
        pci.generation = generation;
    if (!pci.has_lanes)
        pci.lanes = 16;
    pci.has_lanes = true;
    return pci;
}

struct tutti_line_pci tutti_line_gpu_pci(const struct tutti_line_gpus *gpus)
{
    return fill_defaults(gpus->pci, gpus->model->generation);
}

/* Returns the index of the first card that carries this speed. */
static size_t card_of(int64_t mbits)
{
    size_t card = 0;

    while (mbits > cards[card].mbits)
        card++;
    return card;
}

struct tutti_line_pci tutti_line_nic_pci(const struct tutti_line_nics *nics)
{
    return fill_defaults(nics->pci, cards[card_of(nics->mbits)].generation);
}

int64_t tutti_line_nic_device(const struct tutti_line_nics *nics)
{
    return nics->kind->device != 0 ? nics->kind->device : cards[card_of(nics->mbits)].device;
}

struct tutti_line_pci tutti_line_switch_pci(const struct tutti_line_host *host)
{
    return fill_defaults(host->switches.pci,
                         host->gpus.count > 0 ? tutti_line_gpu_pci(&host->gpus).generation : 4);
}

bool tutti_line_gpu_gdr(const struct tutti_line_gpus *gpus)
{
    return gpus->gdr == TUTTI_LINE_UNSAID ? gpus->model->has_gdr : gpus->gdr == TUTTI_LINE_YES;
}

bool tutti_line_nic_gdr(const struct tutti_line_nics *nics)
{
    return nics->gdr == TUTTI_LINE_UNSAID ? nics->kind->has_gdr : nics->gdr == TUTTI_LINE_YES;
}

bool tutti_line_nic_rails(const struct tutti_line_host *host, const struct tutti_line_nics *nics)
{
    return nics->rails == TUTTI_LINE_UNSAID ? nics->count == host->gpus.count
                                            : nics->rails == TUTTI_LINE_YES;
}

double tutti_line_generation_speed(uint32_t generation)
{
    static const double speeds[TUTTI_LINE_MOST_GENERATIONS + 1] = {0, 2.5, 5, 8, 16, 32, 64, 128};

    return speeds[generation];
}

/* ---- shapes ---------------------------------------------------------------------------------- */

const char *tutti_line_shape_name(enum tutti_line_shape shape)
{
    static const char *const names[TUTTI_LINE_SHAPES] = {
        "pcie", "nvswitch", "mesh", "ring", "pairs", "cube-mesh", "links",
    };

    return names[shape];
}

/* The hybrid cube mesh of the DGX-1 with V100: each GPU has six links. '=' and '"' are two links,
 * '|' is one. Single links 0-1, 0-2, 1-3 and 4-5, 4-6, 5-7 are not drawn.
 *
 *   1 = 2 = 3 = 0
 *   "   |   |   "
 *   5 = 6 = 7 = 4
 */
static uint8_t cube_links(uint32_t a, uint32_t b)
{
    static const uint8_t links[8][8] = {
        {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
        {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
        {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
    };

    return links[a][b];
}

/* Returns true if GPUs a and b of a hive of `size` are joined; a != b. */
static bool are_joined(enum tutti_line_shape shape, uint32_t size, uint32_t a, uint32_t b)
{
    switch (shape) {
    case TUTTI_LINE_MESH:
        return true;
    case TUTTI_LINE_RING:
        return (a + 1) % size == b || (b + 1) % size == a;
    case TUTTI_LINE_PAIRS:
        return a / 2 == b / 2;
    default:
        return false;
    }
}

bool tutti_line_shape(enum tutti_line_shape shape, uint32_t count, uint32_t hives, uint8_t links,
                      uint8_t *between)
{
    uint32_t size = count / hives;

    if (count % hives != 0 || (shape == TUTTI_LINE_CUBE && size != 8) ||
        (shape == TUTTI_LINE_PAIRS && size % 2 != 0) || (shape == TUTTI_LINE_RING && size < 3) ||
        (shape == TUTTI_LINE_MESH && size < 2))
        return false;
    memset(between, 0, (size_t)count * count);
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = a / size * size; b < (a / size + 1) * size; b++) {
            if (a == b)
                continue;
            if (shape == TUTTI_LINE_CUBE)
                between[a * count + b] = cube_links(a % size, b % size);
            else if (are_joined(shape, size, a % size, b % size))
                between[a * count + b] = links;
        }
    return true;
}

void tutti_line_host_fini(struct tutti_line_host *host)
{
    free(host->gpus.between);
    *host = (struct tutti_line_host){0};
}
