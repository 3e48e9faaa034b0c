/* SPDX-License-Identifier: Apache-2.0
 * Holds tables of the PCI ids of GPU families, and of the link rates of PCIe generations. */
#include "topology/inventory/pci_ids.h"

#include <math.h>
#include <stddef.h>

bool tutti_pci_is_gpu(uint32_t pci_class, uint32_t vendor)
{
    uint32_t base = pci_class >> 16;

    if (vendor == TUTTI_PCI_NVIDIA)
        return base == 0x03;
    if (vendor == TUTTI_PCI_AMD)
        return base == 0x03 || base == 0x12;
    /* Intel's integrated graphics are VGA controllers (0x0300), so they are not GPUs here. */
    return vendor == TUTTI_PCI_INTEL && pci_class >> 8 == 0x0380;
}

int64_t tutti_pci_compute_capability(uint32_t vendor, uint32_t device)
{
    /* NVIDIA gives each chip a range of ids. */
    static const struct {
        uint32_t first, last;
        int64_t sm;
    } families[] = {
        {0x15f0, 0x15ff, 60}, /* GP100 */
        {0x1b00, 0x1d3f, 61}, /* GP102 to GP108 */
        {0x1d80, 0x1dff, 70}, /* GV100 */
        {0x1e00, 0x1fff, 75}, /* TU102 to TU117 */
        {0x2080, 0x20ff, 80}, /* GA100 */
        {0x2180, 0x21ff, 75}, /* TU116 */
        {0x2200, 0x227f, 86}, /* GA102 */
        {0x2300, 0x23ff, 90}, /* GH100 */
        {0x2480, 0x25ff, 86}, /* GA104 to GA107 */
        {0x2680, 0x28ff, 89}, /* AD102 to AD107 */
        {0x2900, 0x29ff, 100}, /* GB100 */
        {0x2b80, 0x2fff, 120}, /* GB202 to GB207 */
        {0x3180, 0x31ff, 103}, /* GB110 */
    };

    for (size_t i = 0; vendor == TUTTI_PCI_NVIDIA && i < sizeof families / sizeof families[0]; i++)
        if (device >= families[i].first && device <= families[i].last)
            return families[i].sm;
    return 0;
}

const char *tutti_pci_gcn(uint32_t vendor, uint32_t device)
{
    static const struct {
        uint32_t first, last;
        const char *gcn;
    } families[] = {
        {0x6860, 0x687f, "gfx900"}, /* Vega 10 */
        {0x66a0, 0x66af, "gfx906"}, /* Vega 20: MI50, MI60 */
        {0x7388, 0x738e, "gfx908"}, /* MI100 */
        {0x7408, 0x7410, "gfx90a"}, /* MI210, MI250 */
        {0x74a0, 0x74bf, "gfx942"}, /* MI300 */
        {0x75a0, 0x75bf, "gfx950"}, /* MI350 */
    };

    for (size_t i = 0; vendor == TUTTI_PCI_AMD && i < sizeof families / sizeof families[0]; i++)
        if (device >= families[i].first && device <= families[i].last)
            return families[i].gcn;
    return NULL;
}

uint64_t tutti_nvlink_mbytes_per_s(int64_t sm)
{
    return sm >= 100 ? 50000 : sm == 60 ? 20000 : 25000;
}

bool tutti_pci_link_of_rate(double gbytes_per_s, double *ret_gts, uint32_t *ret_lanes)
{
    /* The GT/s and GB/s of a lane. The line codes carry 8 of 10 bits, 128 of 130 bits, and 242 of
     * 256 bytes. */
    static const struct {
        double gts, gbytes_per_s;
    } generations[] = {
        {2.5, 0.25},
        {5, 0.5},
        {8, 8.0 / 8 * 128 / 130},
        {16, 16.0 / 8 * 128 / 130},
        {32, 32.0 / 8 * 128 / 130},
        {64, 64.0 / 8 * 242 / 256},
        {128, 128.0 / 8 * 242 / 256},
    };

    /* Some sources truncate the rate, such as 31.5 to 31, so whole numbers are tried last. Rates
     * below 3 are left out there, because truncation makes them too inexact. */
    for (int is_whole = 0; is_whole < 2; is_whole++)
        for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
            for (uint32_t lanes = 1; lanes <= 16; lanes *= 2) {
                double rate = generations[i].gbytes_per_s * lanes, tolerance = rate / 256;

                if (fabs((is_whole ? floor(rate) : rate) - gbytes_per_s) > tolerance ||
                    (is_whole && rate < 3))
                    continue;
                *ret_gts = generations[i].gts;
                *ret_lanes = lanes;
                return true;
            }
    return false;
}
