/* SPDX-License-Identifier: Apache-2.0
 * The machine that is assumed when nobody has described or measured one. */
#ifndef TUTTI_TUNER_ASSUMED_H
#define TUTTI_TUNER_ASSUMED_H

#include "topology/machine/machine.h"

/* Rates only; places stay zero. `shares_memory`: ranks of a node talk through it, not by sockets.
 * `cores` of a node. `mbits`: of the interfaces between nodes, in Mbit/s; 0: not known. */
void tutti_machine_assume(bool shares_memory, uint32_t cores, uint32_t mbits,
                          struct tutti_machine *ret_machine);

#endif
