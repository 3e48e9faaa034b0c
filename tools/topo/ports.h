/* SPDX-License-Identifier: Apache-2.0
 * Says which ports of a host the channels of a plan use, and why others are left out. */
#ifndef TUTTI_TOPO_PORTS_H
#define TUTTI_TOPO_PORTS_H

#include "topo/plans.h"

/* Prints a line with the ports that are left out, if there are any. */
void ports_print_left_out(const struct subject *subject, const struct tutti_channels *plan);
/* Prints a table of all ports of a host, or of all hosts if `host` is TUTTI_ALL_HOSTS. It has the
 * number of channels of each port, or the reason why it has none. */
void ports_explain(const struct subject *subject, const struct tutti_channels *plan, uint32_t host);

#endif
