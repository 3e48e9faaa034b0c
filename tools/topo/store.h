/* SPDX-License-Identifier: Apache-2.0
 * Writes measured rates beside the nominal ones of the devices. */
#ifndef TUTTI_TOPO_STORE_H
#define TUTTI_TOPO_STORE_H

#include "topology/machine/machine.h"

#include <stdbool.h>

struct store_facts {
    const struct tutti_machine *machine; /* as measured */
    int cpu;                             /* that rank 0 ran on; -1: not known */
    bool has_memory;  /* messages within the host went through its memory */
    bool has_network; /* messages between hosts were measured too */
};

/* Detects this machine and writes it as NCCL's topology XML, with the measured rates of large
 * messages and copies. Rates of memory and messages go to the NUMA node of `cpu`, and the rate of
 * the network goes to the port if there is only one. Returns the exit status. */
int store_measured(const char *file, const struct store_facts *facts);

#endif
