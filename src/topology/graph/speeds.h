/* SPDX-License-Identifier: Apache-2.0
 * What links carry when nobody has measured: rates that programs reach, not those of data sheets.
 * They are those that NCCL 2.29 and RCCL 2.22 reckon with, so that plans can be held against
 * theirs.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_SPEEDS_H
#define TUTTI_TOPOLOGY_GRAPH_SPEEDS_H

#include "topology/inventory/inventory.h"

/* A nic without a place on a bus does not limit its ports. */
#define TUTTI_LOCAL_BYTES_PER_S 5e12

/* One NVLink or xGMI link of a gpu, by its generation. */
double tutti_speed_nvlink(const struct tutti_inventory *inventory, uint32_t gpu);

/* The link of a pci device upwards. What is not known is assumed: 16 lanes, of the generation that
 * such a gpu or nic has, or the third; *ret_source is then ASSUMED. */
double tutti_speed_pci(const struct tutti_inventory *inventory, uint32_t pci,
                       enum tutti_source *ret_source);

/* Between two NUMA nodes of such a CPU. */
double tutti_speed_sys(const struct tutti_inventory *inventory, uint32_t cpu);

/* A port; where nothing is known 100 Gbit/s on InfiniBand, else 10. */
double tutti_speed_net(const struct tutti_inventory *inventory, uint32_t net,
                       enum tutti_source *ret_source);

/* Do gpus that talk through this CPU's root complex need 6 bytes for 5, as on Intel's, which cut
 * their traffic in packets of 64 bytes? */
bool tutti_speed_has_p2p_overhead(const struct tutti_inventory *inventory, uint32_t cpu);

#endif
