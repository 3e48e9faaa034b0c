/* SPDX-License-Identifier: Apache-2.0
 * The machine that is assumed when none was described or measured. */
#ifndef TUTTI_TUNER_ASSUMED_H
#define TUTTI_TUNER_ASSUMED_H

#include "topology/machine/machine.h"

/* Fills in rates only; places stay zero. `shares_memory`: true if the ranks of a node communicate
 * through shared memory, false if by sockets. `cores`: CPU cores of a node. `mbits`: speed of the
 * interfaces between nodes in Mbit/s; 0: not known. */
void tutti_machine_assume(bool shares_memory, uint32_t cores, uint32_t mbits,
                          struct tutti_machine *ret_machine);

#endif
