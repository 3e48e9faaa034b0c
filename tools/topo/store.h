/* SPDX-License-Identifier: Apache-2.0
 * What was measured, put beside what devices nominally have. */
#ifndef TUTTI_TOPO_STORE_H
#define TUTTI_TOPO_STORE_H

#include "topology/machine/machine.h"

#include <stdbool.h>

struct store_facts {
    const struct tutti_machine *machine; /* as measured */
    int cpu;                             /* that rank 0 ran on; -1: not known */
    bool has_memory;  /* messages within the host went through its memory */
    bool has_network; /* messages were measured between hosts, too */
};

/* Detect this machine and write it as NCCL's topology XML, with what large messages and copies were
 * measured to carry: memory and messages at the NUMA node of that CPU, the network at the port if
 * there is but one. Gives the exit status. */
int store_measured(const char *file, const struct store_facts *facts);

#endif
