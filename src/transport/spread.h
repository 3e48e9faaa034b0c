/* SPDX-License-Identifier: Apache-2.0
 * Spreads ranks evenly over their cores, whatever their numbers are.
 *
 * Ranks that start or wake together are often on one core. The kernel spreads them in the end, but
 * it avoids moving threads that have run a moment ago. Ranks that yield a core to each other every
 * microsecond always have run a moment ago, so the kernel takes 150 ms and more. Until then every
 * operation costs up to as many switches on that core as there are ranks, while other cores are
 * idle.
 *
 * So each rank writes the core on which it waits to its waiter. If there are too many ranks on its
 * core, a rank moves to the core with the fewest. It does not move if other threads than these
 * ranks want to run as well. The reason is that next to a program that does not yield its core, a
 * rank would wait a whole time slice for each turn. */
#ifndef TUTTI_TRANSPORT_SPREAD_H
#define TUTTI_TRANSPORT_SPREAD_H

#include "transport/domain.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* The result of tutti_spread_choose if the member should stay on its core. */
#define TUTTI_SPREAD_STAY UINT32_MAX

/* Returns the core to which member `me` should move, or TUTTI_SPREAD_STAY. Up to `share` members
 * may be on a core. If there are more, those with the highest indices leave. Uses only the contents
 * of the waiters. */
uint32_t tutti_spread_choose(const struct tutti_waiter *waiters, uint32_t nwaiters, uint32_t me,
                             uint32_t share, const cpu_set_t *allowed);

/* A rank that waits for its peers calls this. If more than `share` members wait on its core, the
 * call may move the calling thread to another core. The set of cores on which the thread may run is
 * the same afterwards. Returns false if the thread should move and cannot. Then there is no better
 * core, other threads want to run, or the system does not permit it. */
bool tutti_spread(struct tutti_domain *domain, uint32_t share);

#endif
