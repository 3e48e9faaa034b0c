/* SPDX-License-Identifier: Apache-2.0
 * Lists the built-in machines, which are examples to start from. Their figures are rounded and
 * typical of such hardware, so users should measure their own machines. Inside a node of 8, ranks
 * load and store each other's memory. This traffic has a latency, but it has no overhead because no
 * message occupies a port. */
#include "topology/machine/machine.h"

static const struct tutti_machine_example machines[] = {
    {"flat", "every rank on its own port: 5 us a message, 50 GB/s",
     "level top overhead 5us bandwidth 50GB/s"},
    {"nodes8", "nodes of 8: inside 1 us, 350 GB/s; between them a 50 GB/s port per rank, 5 us",
     "node 8; level node latency 1us bandwidth 350GB/s; level top overhead 5us bandwidth 50GB/s"},
    {"fattree", "nodes8 in racks of 16 nodes, which share 1.6 TB/s up and down: a taper of 4",
     "node 8; group 16; level node latency 1us bandwidth 350GB/s; "
     "level group overhead 5us bandwidth 50GB/s; "
     "level top latency 2us overhead 5us bandwidth 50GB/s; trunk 1.6TB/s"},
    {"ethernet", "hosts of 32 that share two 12.5 GB/s ports, 15 us; inside 0.5 us, 10 GB/s",
     "node 32; nics 2; level node overhead 500ns bandwidth 10GB/s; "
     "level top latency 10us overhead 5us bandwidth 12.5GB/s; memory 200GB/s"},
};

const struct tutti_machine_example *tutti_machine_example_at(size_t index)
{
    return index < sizeof machines / sizeof machines[0] ? &machines[index] : NULL;
}
