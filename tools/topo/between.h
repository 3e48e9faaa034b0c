/* SPDX-License-Identifier: Apache-2.0
 * Shows the ports that data takes from host to host. */
#ifndef TUTTI_TOPO_BETWEEN_H
#define TUTTI_TOPO_BETWEEN_H

#include "topo/subject.h"

/* Prints the net by which data leaves, and the net at which it arrives, for each pair of a gpu of
 * the first part with gpus and one of the next part. The ports are those of the machine that
 * tutti-topo machine writes, for all data but that of its rings and trees. Prints nothing if fewer
 * than two parts have gpus, or if no data crosses the network. */
void between_print(const struct subject *subject);

#endif
