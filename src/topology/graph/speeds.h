/* SPDX-License-Identifier: Apache-2.0
 * Rates of links that were not measured. They are rates that programs reach, not those of data
 * sheets: the ones that NCCL 2.29 and RCCL 2.22 use, so that plans can be compared with theirs.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_SPEEDS_H
#define TUTTI_TOPOLOGY_GRAPH_SPEEDS_H

#include "topology/inventory/inventory.h"

/* The rate between a cpu and a nic that is on no bus: so high that it does not limit the nic's
 * ports. */
#define TUTTI_LOCAL_BYTES_PER_S 5e12

/* Rate in B/s of one NVLink or xGMI link of a gpu, by its generation. */
double tutti_speed_nvlink(const struct tutti_inventory *inventory, uint32_t gpu);

/* Rate in B/s of the link from a pci device upwards. Unknown values are assumed: 16 lanes, and the
 * generation that is usual for the gpu or nic, or else the third; *ret_source is then ASSUMED. */
double tutti_speed_pci(const struct tutti_inventory *inventory, uint32_t pci,
                       enum tutti_source *ret_source);

/* Rate in B/s between two NUMA nodes of such a CPU. */
double tutti_speed_sys(const struct tutti_inventory *inventory, uint32_t cpu);

/* Rate in B/s of a port. If it is not known: 100 Gbit/s on InfiniBand, else 10. */
double tutti_speed_net(const struct tutti_inventory *inventory, uint32_t net,
                       enum tutti_source *ret_source);

/* True if gpus that communicate through this CPU's root complex need 6 bytes for every 5, as on
 * Intel's CPUs, which split this traffic into packets of 64 bytes. */
bool tutti_speed_has_p2p_overhead(const struct tutti_inventory *inventory, uint32_t cpu);

#endif
