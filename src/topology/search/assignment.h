/* SPDX-License-Identifier: Apache-2.0
 * The assignment problem: a successor for each of n places, no two alike, as cheap as can be. The
 * cheapest set of cycles that visits all of them once.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_ASSIGNMENT_H
#define TUTTI_TOPOLOGY_SEARCH_ASSIGNMENT_H

#include <stdint.h>

/* cost[i * n + j] of j after i; infinite: not so. The sum is infinite where there is none. By
 * augmenting paths with potentials (Kuhn, 1955; Munkres, 1957), n^3 steps. */
int tutti_assignment(uint32_t n, const double *cost, double *ret_sum);

#endif
