/* SPDX-License-Identifier: Apache-2.0
 * Gives rates for links that were not measured. These are the rates that NCCL 2.29 and RCCL 2.22
 * use, so that plans can be compared. Programs reach these rates; those in data sheets are higher.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_SPEEDS_H
#define TUTTI_TOPOLOGY_GRAPH_SPEEDS_H

#include "topology/inventory/inventory.h"

/* The rate in B/s between a cpu and a nic that is on no bus: so high that it does not limit the
 * nic's ports. */
#define TUTTI_LOCAL_BYTES_PER_S 5e12

/* Returns the rate in B/s of one NVLink or xGMI link of a gpu, by the gpu's generation. */
double tutti_speed_nvlink(const struct tutti_inventory *inventory, uint32_t gpu);

/* Returns the rate in B/s of the link from a pci device upwards. Unknown values are assumed: 16
 * lanes, and the generation that is usual for the gpu or nic, or else the third generation.
 * *ret_source is then ASSUMED. */
double tutti_speed_pci(const struct tutti_inventory *inventory, uint32_t pci,
                       enum tutti_source *ret_source);

/* Returns the rate in B/s between NUMA nodes of which `cpu` is one, by the model of the CPU. */
double tutti_speed_sys(const struct tutti_inventory *inventory, uint32_t cpu);

/* Returns the rate of a port in B/s. An unknown rate is taken for 100 Gbit/s on InfiniBand, else
 * for 10 Gbit/s, and *ret_source is then ASSUMED. */
double tutti_speed_net(const struct tutti_inventory *inventory, uint32_t net,
                       enum tutti_source *ret_source);

/* Returns true if gpus that communicate through this CPU's root complex need 6 bytes on the link
 * for every 5 of data. This holds for Intel's CPUs, which split such traffic into packets of 64
 * bytes. */
bool tutti_speed_has_p2p_overhead(const struct tutti_inventory *inventory, uint32_t cpu);

#endif
