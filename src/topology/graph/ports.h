/* SPDX-License-Identifier: Apache-2.0
 * Deals the ports of each host out to its gpus, and finds the way from a gpu of one host to a gpu
 * of another.
 *
 * Often several ports are equally near to a gpu: without a PCIe switch for each pair of a gpu and a
 * nic, all ports of a socket are. The best path (paths.h) would then be the same port for all gpus
 * of the socket. So each gpu has a port of its own here, as in NCCL: one of the nearest, and no
 * port has two gpus while another one that is as near has none.
 *
 * Data for gpu b of another host arrives at the port of b. It leaves by the port of the same rail,
 * which may be near another gpu than the sender: NVLinks take the data there (PXN, described in
 * NVIDIA's "Doubling all2all Performance with NVIDIA Collective Communication Library 2.12", 2022).
 *
 *   host 0                                          host 1
 *   gpu 0 ==nvlink==> gpu 6 --pci--> net 6 --rail 6--> net 14 --pci--> gpu 14
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_PORTS_H
#define TUTTI_TOPOLOGY_GRAPH_PORTS_H

#include "topology/graph/paths.h"

struct tutti_ports {
    const struct tutti_paths *paths; /* borrowed; must outlive the ports */
    uint32_t *of_gpu;                /* per gpu number: the net node of its port; TUTTI_NO_NODE:
                                        its host has none */
    int64_t *rail;                   /* per net number: its rail; -1: not known */
};

/* The most paths that follow each other on a way between gpus. */
#define TUTTI_PORTS_PARTS 3

/* Deals the ports out. TUTTI_ERR_SYSTEM: no memory. */
int tutti_ports_deal(const struct tutti_paths *paths, struct tutti_ports **ret_ports);
/* Frees the ports, but not the paths; NULL is allowed. */
void tutti_ports_destroy(struct tutti_ports *ports);

/* Stores the paths that follow each other on the way between two gpus, given by their numbers, and
 * returns how many there are: 1 within a host or an NVLink domain, or if a host has no port; 3
 * across the network. The paths belong to tutti_paths. */
uint32_t tutti_ports_way(const struct tutti_ports *ports, uint32_t from, uint32_t to,
                         const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS]);
/* Stores the paths of the way through given ports: `out` is a net node of the sender's host, and
 * `in` is one of the receiver's host. */
void tutti_ports_way_through(const struct tutti_paths *paths, uint32_t from, uint32_t out,
                             uint32_t in, uint32_t to,
                             const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS]);

#endif
