/* SPDX-License-Identifier: Apache-2.0
 * Tells how much of the rate of a link (speeds.h) large collectives reach in measurements that were
 * published. NCCL plans with the rates of speeds.h, so plans that are compared with NCCL's use them
 * too. Times that are simulated or predicted use the reached rates.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_REACHED_H
#define TUTTI_TOPOLOGY_GRAPH_REACHED_H

#include "topology/inventory/inventory.h"

/* Return the part of its rate that a link reaches: an NVLink or xGMI link of a gpu, and a port
 * whose rate is `bytes_per_s`. The result is 1 if no measurement is known. */
double tutti_reached_nvlink(const struct tutti_inventory *inventory, uint32_t gpu);
double tutti_reached_port(const struct tutti_inventory *inventory, uint32_t net,
                          double bytes_per_s);

/* Returns how many times faster than rings the all-reduces of `ngpus` gpus like `gpu` are if
 * NVSwitches multicast and reduce (NVLS). No schedule can do that; the figure is for comparisons
 * with NCCL. The result is 1 for fewer than 8 gpus, and if no measurement is known. */
double tutti_reached_multicast(const struct tutti_inventory *inventory, uint32_t gpu,
                               uint32_t ngpus);

#endif
