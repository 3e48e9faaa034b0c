/* SPDX-License-Identifier: Apache-2.0
 * Holds the table of reached rates. docs/model.md compares predictions that use it with
 * measurements. */
#include "topology/graph/reached.h"

#include "topology/inventory/products.h"

#include <string.h>

/* Figures are in GB/s of one link or port, as the busbw of large calls shows them. */
struct reached {
    int64_t least;   /* first compute capability, or Mbit/s */
    double measured, planned;
};

/* Returns the part of the last row that begins at or below `value`; 1: none does. */
static double part_of(const struct reached *rows, size_t count, int64_t value)
{
    double part = 1;

    for (size_t i = 0; i < count && rows[i].least <= value; i++)
        part = rows[i].measured / rows[i].planned;
    return part;
}

#define PART_OF(rows, value) part_of(rows, sizeof(rows) / sizeof((rows)[0]), value)

/* Figures of rings, without multicasts and reductions of NVSwitches. For Volta none was found. A
 * row counts up to the next row, and 1, 1 means that nothing is known. */
static const struct reached nvlinks[] = {
    {80, 230.0 / 12, 20}, /* A100, 230 over 12 links: github.com/NVIDIA/nccl-tests/issues/149 */
    {86, 1, 1},
    {87, 230.0 / 12, 20}, /* GA100 for other boards, as A100 */
    {89, 1, 1},
    {90, 368.76 / 18, 20.6}, /* H100, 368.76 over 18 links: NVIDIA/nccl-tests/issues/309 */
    {100, 695.0 / 18, 40.1}, /* B300, 695 over 18 links: NVIDIA/nccl/issues/2140 */
    {110, 1, 1},
};

static const struct reached ports[] = {
    {100000, 12, 12.5}, /* EDR, 12: github.com/NVIDIA/nccl-tests/issues/119 */
    {200000, 24, 25},   /* HDR, 24: the same; 192 over 8 ports: NVIDIA/nccl/issues/812 */
    {400000, 47, 50},   /* NDR, 46 to 48: github.com/NVIDIA/nccl-tests/issues/290 */
};

/* Below 400G no figure for Ethernet was found, so the figures above count. */
static const struct reached ethernet_ports[] = {
    {100000, 12, 12.5},
    {200000, 24, 25},
    {400000, 350.4 / 8, 50}, /* 350.2 and 350.6 over 8 ports: hisohara/ai-scripts, as below */
};

/* All-reduces of 8 gpus with multicasts and reductions of NVSwitches, beside rings of the same
 * machine: github.com/NVIDIA/nccl/issues/2140. */
static const struct reached multicasts[] = {
    {90, 480, 370}, /* H100 */
    {100, 845, 695}, /* B300 */
    {110, 1, 1},
};

double tutti_reached_nvlink(const struct tutti_inventory *inventory, uint32_t gpu)
{
    enum tutti_source source;
    const char *gcn = tutti_product_gcn(inventory, gpu, &source);

    /* MI300X, 315.8 over 7 links of 48: github.com/hisohara/ai-scripts, training/01_rccl-smoketest.
     * Some files have "94..." where others have "gfx94...". */
    if (strncmp(gcn, "gfx94", 5) == 0 || strncmp(gcn, "94", 2) == 0)
        return 315.8 / 7 / 48;
    if (*gcn != '\0') /* another gpu of AMD */
        return 1;
    return PART_OF(nvlinks, tutti_product_sm(inventory, gpu, &source));
}

double tutti_reached_multicast(const struct tutti_inventory *inventory, uint32_t gpu,
                               uint32_t ngpus)
{
    enum tutti_source source;

    /* Up to 4 gpus gained nothing, and 5 to 7 less than 8: github.com/NVIDIA/nccl/issues/1455. */
    return ngpus < 8 ? 1 : PART_OF(multicasts, tutti_product_sm(inventory, gpu, &source));
}

double tutti_reached_port(const struct tutti_inventory *inventory, uint32_t net,
                          double bytes_per_s)
{
    const char *layer = tutti_device_text(inventory, net, TUTTI_PROPERTY_LAYER);
    int64_t mbits = (int64_t)(bytes_per_s * 8 / 1e6 + 0.5); /* 8 bits per byte */

    return strcmp(layer, "ethernet") == 0 ? PART_OF(ethernet_ports, mbits) : PART_OF(ports, mbits);
}
