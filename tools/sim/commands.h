/* SPDX-License-Identifier: Apache-2.0
 * The commands of tutti-sim. Each returns the exit status. */
#ifndef TUTTI_SIM_COMMANDS_H
#define TUTTI_SIM_COMMANDS_H

#include "common/request.h"

/* Shows the cases of one machine: tutti-sim COLLECTIVE. */
int sim_show(const struct request *request);
/* Shows two machines side by side: tutti-sim compare MACHINE MACHINE. */
int sim_compare(const struct request *request);

#endif
