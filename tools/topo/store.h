/* SPDX-License-Identifier: Apache-2.0
 * Writes the devices of this machine as a file, with measured rates beside the nominal rates. */
#ifndef TUTTI_TOPO_STORE_H
#define TUTTI_TOPO_STORE_H

#include "topology/machine/machine.h"

#include <stdbool.h>

/* What was measured, and where. */
struct store_facts {
    const struct tutti_machine *machine; /* the measured rates; borrowed */
    int cpu;                             /* the CPU on which rank 0 ran; -1: not known */
    bool has_memory;  /* true if messages within the host went through its memory */
    bool has_network; /* true if messages between hosts were measured too */
};

/* Detects the devices of this machine and writes them as NCCL's topology XML. Adds the measured
 * rates of large messages and copies. The rates of memory and of messages within the host are
 * stored in the NUMA node of `cpu`. The rate of the network is stored in the port, if there is only
 * one. Returns the exit status after a message on stderr if it failed. */
int store_measured(const char *file, const struct store_facts *facts);

#endif
