/* SPDX-License-Identifier: Apache-2.0
 * Ranks share their cores evenly, however many or few.
 *
 * Ranks that start or are roused together often find themselves on one core. The kernel evens that
 * out, but it hesitates to move threads that have run a moment ago, and ranks that hand a core to
 * each other every microsecond always have: it takes 150 ms and more. Until then every operation
 * costs up to as many switches on that core as there are ranks, while other cores stand idle.
 *
 * So each rank writes the core that it waits on to its door, and whoever is one too many there goes
 * to the core with the fewest. Not where others than these ranks want to run as well: beside a
 * program that does not give its core away, a rank would wait a whole time slice for each turn. */
#ifndef TUTTI_TRANSPORT_SPREAD_H
#define TUTTI_TRANSPORT_SPREAD_H

#include "transport/domain.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define TUTTI_SPREAD_STAY UINT32_MAX

/* The core that member `me` should go to, or TUTTI_SPREAD_STAY. Up to `share` members may be on a
 * core; of more, those of the highest indices leave. Looks at what the doors say alone. */
uint32_t tutti_spread_choose(const struct tutti_door *doors, uint32_t ndoors, uint32_t me,
                             uint32_t share, const cpu_set_t *allowed);

/* Look where this thread, which waits for its peers, and they are; move it if it is one too many.
 * Which cores it may run on is afterwards as before. False when it is and stays, for there is no
 * better place, or others want to run, or the system does not let it. */
bool tutti_spread(struct tutti_domain *domain, uint32_t share);

#endif
