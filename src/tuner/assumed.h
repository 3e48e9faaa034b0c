/* SPDX-License-Identifier: Apache-2.0
 * The machine that is assumed when none was described or measured. */
#ifndef TUTTI_TUNER_ASSUMED_H
#define TUTTI_TUNER_ASSUMED_H

#include "topology/machine/machine.h"

/* Fills in the rates of such a machine. Its places stay zero. `shares_memory` is true if the ranks
 * of a node communicate through shared memory, and false if they use sockets. `cores` is the number
 * of CPU cores of a node. `mbits` is the speed of the interfaces between nodes in Mbit/s, or 0 if
 * it is not known. */
void tutti_tuner_assume_machine(bool shares_memory, uint32_t cores, uint32_t mbits,
                                struct tutti_machine *ret_machine);

#endif
