/* SPDX-License-Identifier: Apache-2.0
 * The assignment problem: choose a different successor for each of n places, at the lowest total
 * cost. The result is the cheapest set of cycles that together visit each place once.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_ASSIGNMENT_H
#define TUTTI_TOPOLOGY_SEARCH_ASSIGNMENT_H

#include <stdint.h>

/* cost[i * n + j] is the cost of j after i; infinite: not allowed. *ret_sum is the lowest total
 * cost, infinite if there is no solution. Uses augmenting paths with potentials (Kuhn, 1955;
 * Munkres, 1957), n^3 steps. TUTTI_ERR_SYSTEM: no memory. */
int tutti_assignment(uint32_t n, const double *cost, double *ret_sum);

#endif
