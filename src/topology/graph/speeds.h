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

/* *ret_source of these functions is ASSUMED if the rate is a guess, PRODUCT if it is known by the
 * product, and otherwise the source that tells the rate. */

/* Returns the rate in B/s of one NVLink or xGMI link of a gpu, by the gpu's generation. That of an
 * unknown gpu is assumed to be Ampere's. */
double tutti_speed_nvlink(const struct tutti_inventory *inventory, uint32_t gpu,
                          enum tutti_source *ret_source);

/* Returns the rate in B/s of the link from a pci device upwards. Values that are not told are 16
 * lanes, and the generation of the gpu or nic; the third generation is assumed for others. */
double tutti_speed_pci(const struct tutti_inventory *inventory, uint32_t pci,
                       enum tutti_source *ret_source);

/* Returns the rate in B/s between NUMA nodes of which `cpu` is one, by the model of the CPU. */
double tutti_speed_sys(const struct tutti_inventory *inventory, uint32_t cpu,
                       enum tutti_source *ret_source);

/* Returns the rate of a port in B/s. An unknown port for RDMA is assumed to have the rate that is
 * usual beside the newest gpus of the inventory, and any other port 10 Gbit/s. */
double tutti_speed_net(const struct tutti_inventory *inventory, uint32_t net,
                       enum tutti_source *ret_source);

/* Returns true if gpus that communicate through this CPU's root complex need 6 bytes on the link
 * for every 5 of data. This holds for Intel's CPUs, which split such traffic into packets of 64
 * bytes. */
bool tutti_speed_has_p2p_overhead(const struct tutti_inventory *inventory, uint32_t cpu);

#endif
