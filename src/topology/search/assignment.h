/* SPDX-License-Identifier: Apache-2.0
 * Solves the assignment problem: chooses a different successor for each of n places, at the lowest
 * total cost. The result is the cheapest set of cycles that together visit each place once.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_ASSIGNMENT_H
#define TUTTI_TOPOLOGY_SEARCH_ASSIGNMENT_H

#include <stdint.h>

/* Stores the lowest total cost in *ret_sum; infinite: there is no solution. cost[i * n + j] is the
 * cost of j after i; infinite: not allowed. The method uses augmenting paths with potentials (Kuhn,
 * 1955; Munkres, 1957), and takes n^3 steps. TUTTI_ERR_SYSTEM: no memory. */
int tutti_assignment(uint32_t n, const double *cost, double *ret_sum);

#endif
