/* SPDX-License-Identifier: Apache-2.0
 * Reads a machine or a cluster that is described in one line of text. Such lines serve for tests,
 * and for machines that are not at hand.
 *
 *   8 gpus h100 nvswitch, 8 nics 400G, 2 cpus
 *   2 hosts: 8 gpus nvswitch, 8 nics 400G, 2 cpus
 *   1 host: 1 gpu t4, 1 nic 50G efa; 1 host: 4 gpus t4, 1 nic 100G efa
 *
 * Grammar: [x] is optional, a | b is one of the two, ... repeats, and capitals stand for what is
 * listed below:
 *
 *   text   hosts; hosts ...                     a new line is the same as ';'
 *   hosts  [N hosts:] item, item ...            N equal hosts; default: one. After ',' the text may
 *                                               continue in the next line; '#' begins a comment
 *          N racks of M hosts: item, item ...   the GPUs of the M hosts of a rack are behind one
 *                                               NVSwitch
 *   item   N cpus     word ...                  each item but nics at most once. The words of an
 *          N switches word ...                  item may stand in any order, each once
 *          N gpus     word ...
 *          N nics     word ...                  up to 8 times: several kinds of NICs
 *
 * Words of `cpus`, which are sockets. Default: one item `1 cpu`.
 *
 *   intel | amd | arm | power     or a MODEL: broadwell skylake icelake sapphire emerald granite,
 *                                 naples rome milan genoa turin, grace neoverse, power8 power9.
 *                                 Default: intel
 *   cores N                       per socket; default: those of the model
 *   threads N                     per core; default: 1
 *   nodes N                       NUMA nodes per socket (AMD's NPS, Intel's sub-NUMA clusters);
 *                                 default: 1
 *   caches N                      last-level caches per socket; default: caches are not described
 *
 * Words of `switches`, which are PCI switches, distributed over the NUMA nodes.
 *
 *   under N                       they are below N more switches, in equal runs; those N are then
 *                                 distributed over the NUMA nodes
 *   genN xN                       the PCI link upwards; default: that of the GPUs, or gen4, x16
 *
 * Words of `gpus`, distributed over the switches, or over the NUMA nodes if there are no switches.
 *
 *   MODEL                         p100 v100 t4 a100 a800 a10g a6000 l4 l40s rtx4090 h100 h800 h200
 *                                 gh200 h20 b200 gb200 b300 gb300, mi50 mi100 mi250x mi300x
 *                                 mi350x; default: h100
 *   sm N | gcn NAME               a GPU that is not listed, such as sm 75, gcn gfx90a
 *   genN xN                       the PCI link; default: the model's, x16. x0: not known, as in
 *                                 virtual machines
 *   nvswitch [N]                  N links from each GPU to the NVSwitches; default: the model's
 *   mesh [N]                      N links (NVLink, xGMI) between any two GPUs; default: 1
 *   ring [N]                      N links from each GPU to the next one, and from the last to the
 *                                 first; default: 1
 *   pairs [N]                     N links between GPUs 0 and 1, 2 and 3, ...; default: 1
 *   cube-mesh                     8 GPUs: the hybrid cube mesh, with one and two links
 *   links A-B[:N] ...             N links between GPUs A and B; default: 1
 *   pcie                          no links; the same as none of the words above
 *   hives N                       mesh, ring, pairs or cube-mesh in each of N equal runs of GPUs,
 *                                 and no links between the runs
 *   cpu-links N                   NVLinks from each GPU to its CPU
 *   c2c RATE                      the coherent link from each GPU to its CPU: 450GB/s
 *   fabric [N]                    the NVSwitch is shared by all GPUs of all hosts that name the
 *                                 same fabric; default: 1
 *   gdr | no-gdr                  whether NICs may access the GPU's memory; default: the model's
 *   on cpu K ...                  distributed over these NUMA nodes instead of the switches
 *
 * Words of `nics`, which are cards, distributed like GPUs.
 *
 *   ib | roce | ethernet | slingshot | efa    default: ib
 *   400G                          Gbit/s of each port, or Mbit/s: 2500M; default: 100G
 *   ports N                       per card; default: 1
 *   rails | no-rails              whether each port is a rail of its own, by its number in the
 *                                 host; default: rails if there are as many cards as GPUs
 *   genN xN                       the PCI link; default: the generation that carries the speed, x16
 *   gdr | no-gdr                  default: no-gdr for ethernet only
 *   near gpu K ...                distributed over the places of these GPUs
 *   on cpu K ...                  distributed over these NUMA nodes, on no switch
 *
 * Devices are distributed in equal runs: with n devices and p places, device i has place i * p / n.
 * So of 8 GPUs and 2 CPUs the first four are at CPU 0; with 4 switches each has two GPUs. All
 * device numbers count from 0 within their host.
 *
 * Of more than TUTTI_LINE_MOST_HOSTS like hosts the inventory has the first two, and of more than
 * two racks the hosts of the first two. The second one stands for all others: its CPUs have the
 * property `copies`. So a line of 2048 hosts makes an inventory of two.
 *
 * The rest is filled in the same way each time. Bus ids ascend in tree order and repeat on each
 * host. CPUs are numbered socket by socket, all first threads before the second threads. Ranks are
 * the GPUs of all hosts, one after another. With several hosts the host_hash of the first is 1.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LINE_H
#define TUTTI_TOPOLOGY_FORMATS_LINE_H

#include "topology/inventory/inventory.h"

/* Like hosts that are all in the inventory, unless a fabric joins them. */
#define TUTTI_LINE_MOST_HOSTS 4u
/* Upper bound for a number of hosts or racks. */
#define TUTTI_LINE_ALL_HOSTS (1u << 20)

/* Reads such a text; `name` is its file's name, for messages. The caller destroys the inventory.
 * TUTTI_ERR_ARGUMENT: the text is invalid, and the message begins with "name:line:column:".
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_line_read(const char *name, const char *text, struct tutti_inventory **ret_inventory);

#endif
