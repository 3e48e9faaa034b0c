/* SPDX-License-Identifier: Apache-2.0
 * Decides when a long wait is worth a log line. */
#include "base/long_wait.h"

#include "base/clock.h"
#include "base/param.h"

/* After this many lines the time until the next one no longer doubles. */
enum { MOST_DOUBLINGS = 20 };

bool tutti_long_wait_is_due(struct tutti_long_wait *wait, uint64_t now_ns, double *ret_seconds)
{
    uint64_t first_ns = (uint64_t)tutti_param_int(TUTTI_PARAM_WAIT_WARN_MS) * TUTTI_NS_PER_MS;

    if (wait->since_ns == 0)
        wait->since_ns = now_ns;
    if (first_ns == 0 || now_ns - wait->since_ns < first_ns << wait->lines)
        return false;
    if (wait->lines < MOST_DOUBLINGS)
        wait->lines++;
    *ret_seconds = (double)(now_ns - wait->since_ns) / TUTTI_NS_PER_S;
    return true;
}
