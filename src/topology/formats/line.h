/* SPDX-License-Identifier: Apache-2.0
 * A machine or a cluster in one line of text: for tests, and for machines that one does not own.
 *
 *   8 gpus h100 nvswitch, 8 nics 400G, 2 cpus
 *   2 hosts: 8 gpus nvswitch, 8 nics 400G, 2 cpus
 *   1 host: 1 gpu t4, 1 nic 50G efa; 1 host: 4 gpus t4, 1 nic 100G efa
 *
 * The form, where [x] may be left out, a | b is one of both, ... repeats, and capitals stand for
 * what is listed below:
 *
 *   text   hosts; hosts ...                     a new line does the same as ';'
 *   hosts  [N hosts:] item, item ...            equal hosts; default: one. After ',' the text may
 *                                               go on in the next line; '#' begins a comment
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
 *   cores N                       of each; default: those of the model
 *   threads N                     of each core; default: 1
 *   nodes N                       NUMA nodes of each (AMD's NPS, Intel's sub-NUMA clusters);
 *                                 default: 1
 *   caches N                      last-level caches of each; default: nothing is said of caches
 *
 * Words of `switches`, which are PCI switches, dealt to the NUMA nodes.
 *
 *   under N                       they hang in equal runs below N more switches; those are dealt
 *   genN xN                       the PCI link upwards; default: as the GPUs', or gen4, x16
 *
 * Words of `gpus`, dealt to the switches, or to the NUMA nodes where there are no switches.
 *
 *   MODEL                         p100 v100 t4 a100 a800 a10g a6000 l4 l40s rtx4090 h100 h800 h200
 *                                 gh200 b200 gb200, mi50 mi100 mi250x mi300x mi350x; default: h100
 *   sm N | gcn NAME               of a GPU that is not listed, such as sm 75, gcn gfx90a
 *   genN xN                       the PCI link; default: the model's, x16. x0: not known, as in
 *                                 guests
 *   nvswitch [N]                  N links of each GPU to the NVSwitches; default: the model's
 *   mesh [N]                      N links (NVLink, xGMI) between any two GPUs; default: 1
 *   ring [N]                      N links from each GPU to the next one, and from the last to the
 *                                 first; default: 1
 *   pairs [N]                     N links between GPUs 0 and 1, 2 and 3, ...; default: 1
 *   cube-mesh                     of 8: the hybrid cube mesh, with one and two links
 *   links A-B[:N] ...             N links between GPUs A and B; default: 1
 *   pcie                          no links; the same as none of the words above
 *   hives N                       mesh, ring, pairs or cube-mesh in each of N equal runs of GPUs,
 *                                 and no links between the runs
 *   cpu-links N                   NVLinks of each GPU to its CPU
 *   c2c RATE                      the coherent link of each GPU to its CPU: 450GB/s
 *   fabric [N]                    the NVSwitch is shared by all GPUs of all hosts that name the
 *                                 same fabric; default: 1
 *   gdr | no-gdr                  may NICs reach the GPU's memory? Default: the model's answer
 *   on cpu K ...                  not dealt to the switches, but to these NUMA nodes
 *
 * Words of `nics`, which are cards, dealt as GPUs are.
 *
 *   ib | roce | ethernet | slingshot | efa    default: ib
 *   400G                          Gbit/s of each port, or Mbit/s: 2500M; default: 100G
 *   ports N                       of each card; default: 1
 *   rails | no-rails              is each port, by its number in the host, a rail of its own?
 *                                 Default: yes where there are as many cards as GPUs
 *   genN xN                       the PCI link; default: what carries the speed, x16
 *   gdr | no-gdr                  default: no-gdr for ethernet alone
 *   near gpu K ...                dealt to the places of these GPUs
 *   on cpu K ...                  dealt to these NUMA nodes, beside all switches
 *
 * Dealing is in equal runs: of n devices and p places, device i has place i * p / n. So of 8 GPUs
 * and 2 CPUs the first four are at CPU 0, and of 4 switches each has two GPUs. All numbers of
 * devices count from 0 within their host.
 *
 * What a line does not say is invented alike each time: bus ids ascend in the order of the tree and
 * repeat on each host, cores are numbered socket by socket and then their second threads, ranks are
 * the GPUs of all hosts one after another, and with several hosts the host_hash of the first is 1.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LINE_H
#define TUTTI_TOPOLOGY_FORMATS_LINE_H

#include "topology/inventory/inventory.h"

/* Read such a text; `name` is its file's, for messages. TUTTI_ERR_ARGUMENT with
 * "name:line:column: what is wrong"; TUTTI_ERR_SYSTEM. */
int tutti_line_read(const char *name, const char *text, struct tutti_inventory **ret_inventory);

/* The text, in one line, that reads as an equal inventory. TUTTI_ERR_ARGUMENT: no text does, as of
 * most machines that were not read from one; NCCL's XML holds every inventory. The caller frees
 * it. */
int tutti_line_write(const struct tutti_inventory *inventory, char **ret_text);

#endif
